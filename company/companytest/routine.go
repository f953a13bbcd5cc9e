package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
)

// Routine makes an active routine of an agent.
func (d *Desk) Routine(t testing.TB, agent string, change func(*routine.SaveRoutine)) routine.Routine {
	t.Helper()
	s := routine.SaveRoutine{ID: d.ID(), Title: new("Report of {{topic}}"),
		Description: new("Write about {{ topic }} on {{date}}."), Assignee: &agent,
		Variables: &[]routine.RoutineVariable{{Name: "topic", Type: "text", Required: true,
			Default: json.RawMessage(`"sales"`)}}}
	if change != nil {
		change(&s)
	}
	var r routine.Routine
	d.Must(t, Board, "routine.create", s, &r)
	return r
}

func (d *Desk) RunIt(t testing.TB, r routine.Routine) routine.RoutineRun {
	t.Helper()
	var run routine.RoutineRun
	d.Must(t, Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(), Source: "manual"}, &run)
	return run
}

func (d *Desk) RoutineRun(t testing.TB, id string) routine.RoutineRun {
	t.Helper()
	run, ok := routine.RoutineRuns.Get(d.Tx, d.Company, id)
	if !ok {
		t.Fatalf("run %s of a routine is gone", id)
	}
	return run
}

func (d *Desk) CloseIssue(t testing.TB, id string, status entity.IssueStatus) {
	t.Helper()
	d.Must(t, Board, "issue.update", company.UpdateIssue{Issue: id, Status: status}, nil)
}

// Schedule adds a trigger that is due at next.
func (d *Desk) Schedule(t testing.TB, r routine.Routine, next core.Time) routine.RoutineTrigger {
	t.Helper()
	var res routine.TriggerResult
	d.Must(t, Board, "routine_trigger.create", routine.SaveTrigger{ID: d.ID(), Routine: r.ID,
		Kind: routine.TriggerSchedule, Cron: new("0 9 * * *"), Next: next}, &res)
	return res.Trigger
}
