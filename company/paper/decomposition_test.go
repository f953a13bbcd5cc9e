package paper_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAPlanIsTurnedIntoIssuesOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	issue, revision := d.Agreed(t)
	children := func() []company.CreateIssue {
		return []company.CreateIssue{{ID: d.ID(), Title: "Draw"}, {ID: d.ID(), Title: "Cut", BlockedBy: []string{"#1"}}}
	}
	do := func(of []company.CreateIssue) error {
		return d.Do(companytest.Board, "plan.decompose", paper.DecomposePlan{ID: d.ID(), Issue: issue, Revision: revision,
			Children: of}, nil)
	}
	companytest.WantRefusal(t, do(children()), ledger.Unprocessable,
		"acceptedPlanRevisionId must have an accepted plan confirmation")
	d.Agree(t, issue, revision)
	companytest.WantRefusal(t, d.Do(companytest.Board, "plan.decompose", paper.DecomposePlan{ID: d.ID(), Issue: issue,
		Revision: d.ID(), Children: children()}, nil), ledger.Unprocessable,
		"acceptedPlanRevisionId must belong to the source issue's plan document")
	companytest.WantRefusal(t, do(nil), ledger.Invalid, "A plan can become 1 to 25 issues")
	companytest.WantRefusal(t, do([]company.CreateIssue{{ID: d.ID(), Title: "Cut", BlockedBy: []string{"#1"}}}),
		ledger.Unprocessable, "#1 names no child before this one")
	// One that is refused makes none.
	companytest.WantRefusal(t, do([]company.CreateIssue{{ID: d.ID(), Title: "Draw"},
		{ID: d.ID(), Title: "Cut", Assignee: d.ID()}}), ledger.NotFound, "children.1: Agent not found")
	if n := len(childrenOf(d, issue)); n != 0 {
		t.Fatalf("a refused decomposition made %d issues", n)
	}
	var first, again paper.Decomposed
	d.Must(t, companytest.Board, "plan.decompose", paper.DecomposePlan{ID: d.ID(), Issue: issue, Revision: revision,
		Children: children()}, &first)
	if len(d.Last) != 3 || d.Last[2].Action != "issue.accepted_plan_decomposition_updated" { // and one of each issue
		t.Errorf("recorded %+v", d.Last)
	}
	if len(first.Created) != 2 || len(childrenOf(d, issue)) != 2 {
		t.Fatalf("made %+v", first)
	}
	if cut, _ := entity.IssueOf(d.Tx, d.Company, first.Created[1]); len(cut.BlockedBy) != 1 ||
		cut.BlockedBy[0] != first.Created[0] {
		t.Errorf("the second waits for %v", cut.BlockedBy)
	}
	d.Must(t, companytest.Board, "plan.decompose", paper.DecomposePlan{ID: d.ID(), Issue: issue, Revision: revision,
		Children: children()}, &again)
	if len(again.Created) != 0 || again.Decomposition.ID != first.Decomposition.ID || len(childrenOf(d, issue)) != 2 {
		t.Errorf("the same once more: %+v", again)
	}
	companytest.WantRefusal(t, do(children()[:1]), ledger.Conflict,
		"Accepted-plan decomposition already exists for this revision with a different child set")
}

func childrenOf(d *companytest.Desk, issue string) (out []entity.Issue) {
	for _, i := range entity.IssueTable.All(d.Tx, d.Company) {
		if i.Parent == issue {
			out = append(out, i)
		}
	}
	return out
}

func TestExtracts(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	issue := d.ID()
	d.Must(t, companytest.Board, "issue.create", company.CreateIssue{ID: issue, Title: "See ACME docs",
		Description: "At https://acme.example/a(b). Also (www.acme.example/c), acme and Acme."}, nil)
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: issue,
		Body: "acme.example/d?x=1 says acme"}, nil)
	find := func(x inbox.Extraction) (values []string) {
		x.Limit, x.PerIssue = 10, 10
		if x.Scope == "" {
			x.Scope = "all"
		}
		out, _, _ := inbox.Extracts(d.Tx, d.Company, x)
		for _, e := range out {
			for _, m := range e.Matches {
				values = append(values, m.Field+"="+m.Value)
			}
		}
		return values
	}
	for _, c := range []struct {
		x    inbox.Extraction
		want string
	}{
		{inbox.Extraction{Contains: "acme"}, "[title=ACME]"}, // each match once, whatever its case
		{inbox.Extraction{Contains: "acme", URLs: true},
			"[description=https://acme.example/a(b) description=www.acme.example/c comment=acme.example/d?x=1]"},
		{inbox.Extraction{Contains: "acme", URLs: true, Scope: "comments"}, "[comment=acme.example/d?x=1]"},
		{inbox.Extraction{Contains: "acme", Scope: "documents"}, "[]"},
		{inbox.Extraction{Contains: "acme", Statuses: []entity.IssueStatus{entity.IssueDone}}, "[]"},
		{inbox.Extraction{Contains: "acme", Since: core.TimeOf(d.Now) + 1_000_000_000}, "[]"},
	} {
		if got := fmtList(find(c.x)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.x, got, c.want)
		}
	}
}

func fmtList(list []string) string {
	s := "["
	for n, v := range list {
		if n > 0 {
			s += " "
		}
		s += v
	}
	return s + "]"
}
