package rules_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
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
			gone := s.Company
			if _, ok := entity.CompanyOf(s.Tx, gone); !ok {
				return // the story deleted it
			}
			for table := range core.OwnedTables { // of each that is found by its ID, one row at least
				id := s.ID()
				s.Tx.Set(ledger.Key("c", string(gone), table, id), []byte{0xa0}) // an empty map
				s.Tx.Set(core.OwnerKey(id), []byte(gone))
			}
			for done, rounds := false, 0; !done; rounds++ {
				if rounds > 50 {
					t.Fatal("the deletion does not end")
				}
				var out company.Deletion
				s.Must(t, companytest.Board, "company.delete", company.ChangeCompany{}, &out)
				done = out.Done
			}
			for k, v := range s.Tx.Writes() {
				if v != nil && (strings.Contains(k, string(gone)) || strings.HasPrefix(k, "i/") && ledger.CompanyID(v) == gone) && !strings.Contains(k, "/~") {
					t.Errorf("left behind: %s", k)
				}
			}
		})
	}
}
