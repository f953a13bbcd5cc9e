package company

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// A company with more rows than one command removes is deleted by several, is
// gone for everybody after the first, and leaves nothing in the end; what is
// another company's stays.
// Whatever was done in a company, nothing names it when it is deleted but the ledger's own
// rows, and rows of the mesh that tell of what was.
func TestDeletingACompanyLeavesNothingOfAnyKind(t *testing.T) {
	t.Parallel()
	for _, story := range stories {
		t.Run(story.of, func(t *testing.T) {
			s := newStory(t, map[string]int{})
			story.tell(s)
			gone := s.company
			if _, ok := CompanyOf(s.tx, gone); !ok {
				return // the story deleted it
			}
			for table := range ownedTables { // of each that is found by its ID, one row at least
				id := s.id()
				s.tx.Set(ledger.Key("c", gone, table, id), []byte{0xa0}) // an empty map
				s.tx.Set(ownerKey(id), []byte(gone))
			}
			for done, rounds := false, 0; !done; rounds++ {
				if rounds > 50 {
					t.Fatal("the deletion does not end")
				}
				var out Deletion
				s.must(t, board, "company.delete", ChangeCompany{}, &out)
				done = out.Done
			}
			for k, v := range s.tx.Writes() {
				if v != nil && (strings.Contains(k, gone) || strings.HasPrefix(k, "i/") && string(v) == gone) && !strings.Contains(k, "/~") {
					t.Errorf("left behind: %s", k)
				}
			}
		})
	}
}
