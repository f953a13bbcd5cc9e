package company

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// agreed makes an issue whose plan was agreed on, and returns it with the revision.
func (d *desk) agreed(t testing.TB) (issue, revision string) {
	t.Helper()
	issue, revision = d.id(), d.id()
	d.must(t, board, "issue.create", CreateIssue{ID: issue, Title: "Plan it", Status: IssueTodo}, nil)
	d.must(t, board, "document.save", SaveDocument{Issue: issue, Key: "plan", ID: d.id(), Revision: revision, Title: new("Plan"), Format: "markdown", Body: "1. draw 2. cut"}, nil)
	return issue, revision
}

func (d *desk) agree(t testing.TB, issue, revision string) {
	t.Helper()
	ask := d.id()
	payload, _ := json.Marshal(map[string]any{"version": 1, "prompt": "Agreed?", "target": map[string]any{"type": "issue_document", "issueId": issue, "key": "plan", "revisionId": revision}})
	d.must(t, board, "interaction.create", CreateInteraction{ID: ask, Issue: issue, Kind: Confirmation, Payload: payload}, nil)
	d.must(t, board, "interaction.accept", ResolveInteraction{Issue: issue, ID: ask}, nil)
}

func TestAPlanIsTurnedIntoIssuesOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	issue, revision := d.agreed(t)
	children := func() []CreateIssue {
		return []CreateIssue{{ID: d.id(), Title: "Draw"}, {ID: d.id(), Title: "Cut", BlockedBy: []string{"#1"}}}
	}
	do := func(of []CreateIssue) error {
		return d.do(board, "plan.decompose", DecomposePlan{ID: d.id(), Issue: issue, Revision: revision, Children: of}, nil)
	}
	wantRefusal(t, do(children()), ledger.Unprocessable, "acceptedPlanRevisionId must have an accepted plan confirmation")
	d.agree(t, issue, revision)
	wantRefusal(t, d.do(board, "plan.decompose", DecomposePlan{ID: d.id(), Issue: issue, Revision: d.id(), Children: children()}, nil), ledger.Unprocessable, "acceptedPlanRevisionId must belong to the source issue's plan document")
	wantRefusal(t, do(nil), ledger.Invalid, "")
	wantRefusal(t, do([]CreateIssue{{ID: d.id(), Title: "Cut", BlockedBy: []string{"#1"}}}), ledger.Unprocessable, "#1 names no child before this one")
	// One that is refused makes none.
	wantRefusal(t, do([]CreateIssue{{ID: d.id(), Title: "Draw"}, {ID: d.id(), Title: "Cut", Assignee: d.id()}}), ledger.NotFound, "")
	if n := len(childrenOf(d, issue)); n != 0 {
		t.Fatalf("a refused decomposition made %d issues", n)
	}
	var first, again Decomposed
	d.must(t, board, "plan.decompose", DecomposePlan{ID: d.id(), Issue: issue, Revision: revision, Children: children()}, &first)
	if len(d.last) != 3 || d.last[2].Action != "issue.accepted_plan_decomposition_updated" { // and one of each issue
		t.Errorf("recorded %+v", d.last)
	}
	if len(first.Created) != 2 || len(childrenOf(d, issue)) != 2 {
		t.Fatalf("made %+v", first)
	}
	if cut, _ := IssueOf(d.tx, d.company, first.Created[1]); len(cut.BlockedBy) != 1 || cut.BlockedBy[0] != first.Created[0] {
		t.Errorf("the second waits for %v", cut.BlockedBy)
	}
	d.must(t, board, "plan.decompose", DecomposePlan{ID: d.id(), Issue: issue, Revision: revision, Children: children()}, &again)
	if len(again.Created) != 0 || again.Decomposition.ID != first.Decomposition.ID || len(childrenOf(d, issue)) != 2 {
		t.Errorf("the same once more: %+v", again)
	}
	wantRefusal(t, do(children()[:1]), ledger.Conflict, "Accepted-plan decomposition already exists for this revision with a different child set")
}

func childrenOf(d *desk, issue string) (out []Issue) {
	for _, i := range issues.All(d.tx, d.company) {
		if i.Parent == issue {
			out = append(out, i)
		}
	}
	return out
}

func TestExtracts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	issue := d.id()
	d.must(t, board, "issue.create", CreateIssue{ID: issue, Title: "See ACME docs", Description: "At https://acme.example/a(b). Also (www.acme.example/c), acme and Acme."}, nil)
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: issue, Body: "acme.example/d?x=1 says acme"}, nil)
	find := func(x Extraction) (values []string) {
		x.Limit, x.PerIssue = 10, 10
		if x.Scope == "" {
			x.Scope = "all"
		}
		out, _, _ := Extracts(d.tx, d.company, x)
		for _, e := range out {
			for _, m := range e.Matches {
				values = append(values, m.Field+"="+m.Value)
			}
		}
		return values
	}
	for _, c := range []struct {
		x    Extraction
		want string
	}{
		{Extraction{Contains: "acme"}, "[title=ACME]"}, // each match once, whatever its case
		{Extraction{Contains: "acme", URLs: true}, "[description=https://acme.example/a(b) description=www.acme.example/c comment=acme.example/d?x=1]"},
		{Extraction{Contains: "acme", URLs: true, Scope: "comments"}, "[comment=acme.example/d?x=1]"},
		{Extraction{Contains: "acme", Scope: "documents"}, "[]"},
		{Extraction{Contains: "acme", Statuses: []IssueStatus{IssueDone}}, "[]"},
		{Extraction{Contains: "acme", Since: TimeOf(d.now) + 1_000_000_000}, "[]"},
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
