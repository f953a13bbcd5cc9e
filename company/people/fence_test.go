package people_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// Every write of an agent under a run that is over is refused, whatever the command's kind:
// with the run's token, which is no longer valid, and with the agent's own key, which is.
// Kinds that are handled otherwise are listed one by one.
func TestNothingIsWrittenUnderARunThatIsOver(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	key := d.ID()
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: key, Agent: ada, Name: "k",
		Hash: strings.Repeat("01", 32)}, nil)
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	old := d.Run(ada)
	d.Must(t, companytest.As{Agent: ada, Run: old}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: entity.IssueStatuses}, nil)
	d.EndRun(old)
	next := d.Run(ada) // the run that has the issue now
	d.Must(t, companytest.As{Agent: ada, Run: next}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: entity.IssueStatuses}, nil)

	ask := func(kind, cred, id, run string) error {
		c := d.Context(companytest.As{Agent: ada}, kind, nil)
		c.Cmd.Credential, c.Cmd.Run, c.Mesh, c.Origin = ledger.Credential{Kind: cred, ID: id}, run, "m", "n1"
		return people.Authorize(c)
	}
	n := 0
	for _, row := range company.Kinds() {
		kind := row.Name
		if row.From&company.FromAgent == 0 {
			continue
		}
		n++
		if err := ask(kind, "agent_key", key, next); err != nil {
			t.Errorf("%s under a live run: %v", kind, err)
		}
		if r, ok := ask(kind, "run", old, "").(*ledger.Refusal); (!ok || r.Code != ledger.Unauthorized) &&
			kind != "tool.trace" { // which notes the calls that were made
			t.Errorf("%s by the token of a run that is over: %v", kind, r)
		}
		r, ok := ask(kind, "agent_key", key, old).(*ledger.Refusal)
		switch {
		case row.Has(company.FencesItself):
			if ok {
				t.Errorf("%s does not reach its handler: %v", kind, r)
			}
		case !ok || r.Code != ledger.Conflict || r.ErrCode != "run_over":
			t.Errorf("%s by the agent's key under a run that is over: %v", kind, r)
		}
	}
	if n < 50 {
		t.Errorf("only %d kinds were looked at", n)
	}
	done, status := "done", entity.IssueDone
	for kind, payload := range map[string]any{
		"issue.update":   company.UpdateIssue{Issue: i.ID, Status: status, Title: &done},
		"issue.checkout": company.CheckOutIssue{Issue: i.ID, Agent: ada, Expected: entity.IssueStatuses},
		"issue.release":  company.ReleaseIssue{Issue: i.ID},
		"comment.create": entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "stale"},
		"cost.report": money.ReportCost{Event: money.CostEvent{ID: d.ID(), Agent: ada, Run: core.NullText(old),
			Issue: core.NullText(i.ID), Provider: "p", Model: "m", Cost: 1, OccurredAt: core.TimeOf(d.Now)}},
		"run.callback": company.Callback{Run: old, Status: entity.RunSucceeded, Summary: "stale"},
	} {
		before := d.Load(i.ID)
		if r, ok := d.Do(companytest.As{Agent: ada, Run: old}, kind, payload, nil).(*ledger.Refusal); !ok ||
			r.Code != ledger.Conflict && r.Code != ledger.Forbidden {
			t.Errorf("%s under a run that is over: %v", kind, r)
		}
		if now := d.Load(i.ID); now.Status != before.Status || now.CheckoutRun != next || now.Fence != before.Fence ||
			now.Title != before.Title || now.Comments != before.Comments {
			t.Errorf("%s under a run that is over changed the issue to %+v", kind, now)
		}
	}
	if err := d.Do(companytest.As{Agent: ada, Run: old}, "run.cancel", company.Cancel{Run: old}, nil); err != nil {
		t.Errorf("cancelling what is over: %v", err)
	}
	if r, _ := entity.RunOf(d.Tx, d.Company, old); r.Status != entity.RunSucceeded {
		t.Errorf("what is over became %s", r.Status)
	}

	// A node writes nothing of a run either if its session is over or is another's.
	r, _ := entity.RunTable.Get(d.Tx, d.Company, next)
	r.Node, r.Session, r.Owed = "n1", 1, true
	entity.RunTable.Put(d.Tx, d.Company, next, r)
	for kind, payload := range map[string]any{
		"run.start": company.Start{Run: next}, "run.report": company.Report{Run: next, Phase: entity.PhaseExecute},
		"run.finish": company.Finish{Run: next, Outcome: company.Outcome{Status: entity.RunSucceeded}},
		"run.return": company.Return{Run: next}, "run.cost": money.TellCost{Run: next, Cost: entity.RunCost{Provider: "p",
			Model: "m", Cost: core.Cents(3), Priced: true}},
	} {
		for name, c := range map[string]struct {
			node    string
			session uint64
		}{"an older session": {"n1", 7}, "another node": {"n2", 1}} {
			if kind == "run.cost" && c.node == "n1" {
				continue // a cost is recorded in whichever session the node has now
			}
			ctx := d.Context(companytest.Board, kind, payload)
			ctx.Cmd.Actor, ctx.Session = ledger.Actor{Type: "node", ID: c.node}, c.session
			ctx.Tx = d.Tx.Child()
			if _, err := d.Mux[kind](ctx); err == nil {
				t.Errorf("%s of %s was taken", kind, name)
			}
		}
	}
}
