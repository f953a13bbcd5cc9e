package company

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// The end of a run is told once, by its agent, while it goes on; nothing of it is
// left afterwards.
func TestAnAgentTellsTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	run := d.run(ada)
	asAda, asBob := as{ada, run}, as{bob, d.run(bob)}
	told := Callback{Run: run, Status: RunSucceeded, Summary: "done", Result: json.RawMessage(`{"n":1}`), Usage: &Usage{InputTokens: 3}}
	try := func(who as, change func(*Callback)) error {
		p := told.Clone()
		if change != nil {
			change(&p)
		}
		return d.do(who, "run.callback", p, nil)
	}
	wantRefusal(t, try(asBob, nil), ledger.Forbidden, "Agent can only tell of its own runs")
	wantRefusal(t, try(asAda, func(p *Callback) { p.Run = d.id() }), ledger.NotFound, "")
	wantRefusal(t, try(asAda, func(p *Callback) { p.Status = RunCancelled }), ledger.Invalid, "")
	wantRefusal(t, try(asAda, func(p *Callback) { p.Usage.OutputTokens = -1 }), ledger.Invalid, "")
	wantRefusal(t, try(asAda, func(p *Callback) { p.Summary = strings.Repeat("x", maxCallbackText+1) }), ledger.Unprocessable, "")
	wantRefusal(t, try(asAda, func(p *Callback) { p.Result = json.RawMessage(`{`) }), ledger.Unprocessable, "")
	if err := try(asAda, nil); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, try(asAda, nil), ledger.Conflict, "The end of the run was reported already")
	if got, ok := CallbackOf(d.tx, d.company, run); !ok || got.Summary != "done" || got.Usage.InputTokens != 3 || got.At == 0 {
		t.Errorf("it was told %+v", got)
	}
	d.endRun(run)
	if _, ok := CallbackOf(d.tx, d.company, run); ok {
		t.Error("what was told is left after the end of the run")
	}
	wantRefusal(t, try(asAda, nil), ledger.Conflict, "The run is succeeded")
}
