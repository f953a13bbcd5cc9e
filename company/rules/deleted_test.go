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

// A company with more rows than one command deletes is deleted by several commands. After
// the first, nobody sees it any more; after the last, no row of it is left, and rows of other
// companies are unchanged. Whatever was done in the company, only the ledger's own rows and
// the mesh's records of past events still refer to it.
func TestDeletingACompanyLeavesNothingOfAnyKind(t *testing.T) {
	t.Parallel()
	for _, story := range stories {
		t.Run(story.of, func(t *testing.T) {
			s := newStory(t, map[string]int{})
			story.tell(s)
			gone := s.Company
			if _, ok := entity.CompanyOf(s.Tx, gone); !ok {
				return // a story deleted the company itself
			}
			for table := range core.OwnedTables { // at least one row of each table that is indexed by ID
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
				if v != nil && (strings.Contains(k, string(gone)) || strings.HasPrefix(k, "i/") && ledger.CompanyID(v) == gone) &&
					!strings.Contains(k, "/~") {
					t.Errorf("left behind: %s", k)
				}
			}
		})
	}
}
