package govern_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A review says what a draft would decide of the last acts, and how many of them otherwise than they were decided: an
// act that was denied anyway is not the draft's doing.
func TestAReviewComparesWithWhatWasDecided(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Critical, `rank == "worker"`, "label.create")))
	refusal(t, do(d, as, "label.create", label(d, "one")), "rule")
	for _, c := range []struct {
		what            string
		draft           govern.Draft
		denied          int
		stricter, milds int
		says            string
	}{
		{"about other acts", put(rule("T-3", governance.Critical, `true`, "goal.create")), 1, 0, 0,
			"would have denied 1 of 1, deferred 0, and warned about 0; that is what was decided of each"},
		{"it permits", govern.Draft{Change: governance.Change{Drop: []string{"T-1"}}}, 0, 0, 1,
			"would have denied 0 of 1, deferred 0, and warned about 0; 0 more strictly than it was decided, 1 less: " +
				"label.create (deny → permit)"},
		{"it asks", put(rule("T-1", governance.Blocking, `true`, "label.create")), 0, 0, 1, "deferred 1"},
	} {
		r, err := govern.ReviewOf(d.Tx, c.draft, 100, []ledger.CompanyID{d.Company})
		if err != nil || r.Considered != 1 || r.Decided[governance.Deny] != c.denied || r.Stricter != c.stricter ||
			r.Milder != c.milds || !strings.Contains(r.Summary(), c.says) {
			t.Errorf("%s: %+v %v, says %q", c.what, r, err, r.Summary())
		}
	}
	enact(t, d, put(rule("T-1", governance.Warning, `true`, "label.create")))
	if err := do(d, as, "label.create", label(d, "two")); err != nil {
		t.Fatal(err)
	}
	r, err := govern.ReviewOf(d.Tx, put(rule("T-1", governance.Critical, `true`, "label.create")), 100,
		[]ledger.CompanyID{d.Company})
	if err != nil || r.Considered != 2 || r.Decided[governance.Deny] != 2 || r.Stricter != 1 || r.Milder != 0 ||
		!strings.Contains(r.Summary(), "; 1 more strictly than it was decided, 0 less: label.create (warn → deny)") {
		t.Errorf("stricter: %+v %v, says %q", r, err, r.Summary())
	}
}
