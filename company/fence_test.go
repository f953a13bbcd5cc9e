package company

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// What an agent writes under a run that is over is refused, whatever kind of command
// it is: by the run's token, which is worth nothing any more, and by the agent's own
// key, which is. Kinds that answer for themselves are told of one by one.
func TestNothingIsWrittenUnderARunThatIsOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hire(t, "Ada", "")
	key := d.id()
	d.must(t, board, "agent_key.create", CreateKey{ID: key, Agent: ada, Name: "k", Hash: strings.Repeat("01", 32)}, nil)
	i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
	old := d.run(ada)
	d.must(t, as{ada, old}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: IssueStatuses}, nil)
	d.endRun(old)
	next := d.run(ada) // the one that has the issue now
	d.must(t, as{ada, next}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: IssueStatuses}, nil)

	ask := func(kind, cred, id, run string) error {
		c := d.context(as{agent: ada}, kind, nil)
		c.Cmd.Credential, c.Cmd.Run, c.Mesh, c.Origin = ledger.Credential{Kind: cred, ID: id}, run, "m", "n1"
		return Authorize(c)
	}
	n := 0
	for _, row := range Kinds() {
		kind := row.Name
		if row.From&FromAgent == 0 {
			continue
		}
		n++
		if err := ask(kind, "agent_key", key, next); err != nil {
			t.Errorf("%s under a live run: %v", kind, err)
		}
		if r, ok := ask(kind, "run", old, "").(*ledger.Refusal); (!ok || r.Code != ledger.Unauthorized) && kind != "tool.trace" { // which notes the calls that were made
			t.Errorf("%s by the token of a run that is over: %v", kind, r)
		}
		r, ok := ask(kind, "agent_key", key, old).(*ledger.Refusal)
		switch {
		case row.Has(FencesItself):
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
	done, status := "done", IssueDone
	for kind, payload := range map[string]any{
		"issue.update":   UpdateIssue{Issue: i.ID, Status: status, Title: &done},
		"issue.checkout": CheckOutIssue{Issue: i.ID, Agent: ada, Expected: IssueStatuses},
		"issue.release":  ReleaseIssue{Issue: i.ID},
		"comment.create": CreateComment{ID: d.id(), Issue: i.ID, Body: "stale"},
		"cost.report":    ReportCost{CostEvent{ID: d.id(), Agent: ada, Run: NullText(old), Issue: NullText(i.ID), Provider: "p", Model: "m", Cost: 1, OccurredAt: TimeOf(d.now)}},
		"run.callback":   Callback{Run: old, Status: RunSucceeded, Summary: "stale"},
	} {
		before := d.load(i.ID)
		if r, ok := d.do(as{ada, old}, kind, payload, nil).(*ledger.Refusal); !ok || r.Code != ledger.Conflict && r.Code != ledger.Forbidden {
			t.Errorf("%s under a run that is over: %v", kind, r)
		}
		if now := d.load(i.ID); now.Status != before.Status || now.CheckoutRun != next || now.Fence != before.Fence || now.Title != before.Title || now.Comments != before.Comments {
			t.Errorf("%s under a run that is over changed the issue to %+v", kind, now)
		}
	}
	if err := d.do(as{ada, old}, "run.cancel", Cancel{Run: old}, nil); err != nil {
		t.Errorf("cancelling what is over: %v", err)
	}
	if r, _ := RunOf(d.tx, d.company, old); r.Status != RunSucceeded {
		t.Errorf("what is over became %s", r.Status)
	}

	// A node whose session is over, or another's, writes nothing of a run either.
	r, _ := runs.Get(d.tx, d.company, next)
	r.Node, r.Session, r.Owed = "n1", 1, true
	runs.Put(d.tx, d.company, next, r)
	for kind, payload := range map[string]any{
		"run.start": Start{Run: next}, "run.report": Report{Run: next, Phase: PhaseExecute}, "run.finish": Finish{Run: next, Outcome: Outcome{Status: RunSucceeded}},
		"run.return": Return{Run: next}, "run.cost": TellCost{next, RunCost{Provider: "p", Model: "m", Cost: Cents(3), Priced: true}},
	} {
		for name, c := range map[string]struct {
			node    string
			session uint64
		}{"an older session": {"n1", 7}, "another node": {"n2", 1}} {
			if kind == "run.cost" && c.node == "n1" {
				continue // money that was spent is told in whatever session the node has now
			}
			ctx := d.context(board, kind, payload)
			ctx.Cmd.Actor, ctx.Session = ledger.Actor{Type: "node", ID: c.node}, c.session
			ctx.Tx = d.tx.Child()
			if _, err := d.mux[kind](ctx); err == nil {
				t.Errorf("%s of %s was taken", kind, name)
			}
		}
	}
}
