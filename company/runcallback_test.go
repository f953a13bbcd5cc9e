package company_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The end of a run is told once, by its agent, while it goes on; nothing of it is
// left afterwards.
func TestAnAgentTellsTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	run := d.Run(ada)
	asAda, asBob := companytest.As{Agent: ada, Run: run}, companytest.As{Agent: bob, Run: d.Run(bob)}
	told := company.Callback{Run: run, Status: entity.RunSucceeded, Summary: "done", Result: json.RawMessage(`{"n":1}`),
		Usage: &entity.Usage{InputTokens: 3}}
	try := func(who companytest.As, change func(*company.Callback)) error {
		p := told.Clone()
		if change != nil {
			change(&p)
		}
		return d.Do(who, "run.callback", p, nil)
	}
	companytest.WantRefusal(t, try(asBob, nil), ledger.Forbidden, "Agent can only tell of its own runs")
	companytest.WantRefusal(t, try(asAda, func(p *company.Callback) { p.Run = d.ID() }), ledger.NotFound,
		"Heartbeat run not found")
	companytest.WantRefusal(t, try(asAda, func(p *company.Callback) { p.Status = entity.RunCancelled }), ledger.Invalid,
		"A run has succeeded or failed")
	companytest.WantRefusal(t, try(asAda, func(p *company.Callback) { p.Usage.OutputTokens = -1 }), ledger.Invalid,
		"Usage can not be negative")
	companytest.WantRefusal(t, try(asAda,
		func(p *company.Callback) { p.Summary = strings.Repeat("x", company.MaxCallbackText+1) }), ledger.Unprocessable,
		"A summary and an error have at most 8192 bytes, a result is JSON of at most 16384")
	companytest.WantRefusal(t, try(asAda, func(p *company.Callback) { p.Result = json.RawMessage(`{`) }),
		ledger.Unprocessable, "A summary and an error have at most 8192 bytes, a result is JSON of at most 16384")
	if err := try(asAda, nil); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, try(asAda, nil), ledger.Conflict, "The end of the run was reported already")
	if got, ok := company.CallbackOf(d.Tx, d.Company, run); !ok || got.Summary != "done" || got.Usage.InputTokens != 3 ||
		got.At == 0 {
		t.Errorf("it was told %+v", got)
	}
	d.EndRun(run)
	if _, ok := company.CallbackOf(d.Tx, d.Company, run); ok {
		t.Error("what was told is left after the end of the run")
	}
	companytest.WantRefusal(t, try(asAda, nil), ledger.Conflict, "The run is succeeded")
}
