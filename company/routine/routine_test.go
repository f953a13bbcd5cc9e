package routine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestARoutineMakesAnIssueAndWakesItsAssignee(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	r := d.Routine(t, ada, nil)
	run := d.RunIt(t, r)
	i := d.Load(string(run.Issue))
	if run.Status != routine.RoutineIssued || i.Title != "Report of sales" ||
		i.Description != "Write about sales on 2026-11-21." || i.Assignee != ada ||
		i.OriginKind != entity.OriginRoutine || i.OriginID != r.ID || i.OriginRun != run.ID || i.Status != entity.IssueTodo {
		t.Fatalf("run %+v made %+v", run, i)
	}
	if live := entity.LiveRunsOfAgent(d.Tx, d.Company, ada); len(live) != 1 || live[0].Context.IssueID != i.ID {
		t.Errorf("its agent has %d runs", len(live))
	}
	d.CloseIssue(t, i.ID, entity.IssueDone)
	if run = d.RoutineRun(t, run.ID); run.Status != routine.RoutineCompleted || run.CompletedAt == 0 {
		t.Errorf("after its issue is done the run is %+v", run)
	}
	run = d.RunIt(t, r)
	d.CloseIssue(t, string(run.Issue), entity.IssueCancelled)
	if run = d.RoutineRun(t, run.ID); run.Status != routine.RoutineFailed || run.Failure == "" {
		t.Errorf("after its issue is cancelled the run is %+v", run)
	}
	run = d.RunIt(t, r)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: string(run.Issue)}, nil)
	if run = d.RoutineRun(t, run.ID); run.Status != routine.RoutineFailed {
		t.Errorf("after its issue is deleted the run is %+v", run)
	}
	if _, ok := routine.ActiveRoutineIssue(d.Tx, r); ok {
		t.Error("an issue that is gone is active")
	}
}

func TestConcurrencyOfRoutines(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]routine.RoutineRunStatus{routine.RoutineCoalesce: routine.RoutineCoalesced,
		routine.RoutineSkip: routine.RoutineSkipped, routine.RoutineAlways: routine.RoutineIssued} {
		d := companytest.NewDesk(t)
		ada := d.Agent("Ada")
		r := d.Routine(t, ada, func(s *routine.SaveRoutine) { s.Concurrency = &policy })
		first := d.RunIt(t, r)
		second := d.RunIt(t, r)
		if second.Status != want || want != routine.RoutineIssued && (second.Issue != first.Issue ||
			second.CoalescedInto != core.NullText(first.ID) || second.CompletedAt == 0) {
			t.Errorf("%s: while the issue is at work: %+v", policy, second)
		}
		// Other values make other work, which does not join, except under a policy that skips.
		var other routine.RoutineRun
		d.Must(t, companytest.Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(), Source: "api",
			Variables: map[string]json.RawMessage{"topic": json.RawMessage(`"costs"`)}}, &other)
		if wantOther := map[string]routine.RoutineRunStatus{routine.RoutineCoalesce: routine.RoutineIssued,
			routine.RoutineSkip:   routine.RoutineSkipped,
			routine.RoutineAlways: routine.RoutineIssued}[policy]; other.Status != wantOther {
			t.Errorf("%s: with another topic: %s", policy, other.Status)
		}
		// An issue that is in the queue without a run does not block the routine.
		company.CancelRunsOfAgent(d.Context(companytest.Board, "", nil), d.Company, ada, company.DeniedAgent, "test")
		left := d.RunIt(t, r)
		switch {
		case policy == routine.RoutineCoalesce && (left.Status != routine.RoutineCoalesced ||
			len(entity.LiveRunsOfAgent(d.Tx, d.Company, ada)) != 1):
			t.Errorf("the issue that was left is not taken up: %+v", left)
		case policy != routine.RoutineCoalesce && left.Status != routine.RoutineIssued:
			t.Errorf("%s: an issue that was left holds its routine up: %+v", policy, left)
		}
	}
}

func TestARoutineStopsAtItsOpenIssues(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	r := d.Routine(t, d.Agent("Ada"), func(s *routine.SaveRoutine) { s.Concurrency = new(routine.RoutineAlways) })
	for range 20 { // the agent's queue takes that many; the others are issues without a run
		d.RunIt(t, r)
	}
	for n := range routine.MaxRoutineIssues {
		routine.RoutineIssues.Add(d.Tx, d.Company, r.ID, fmt.Sprintf("filler-%03d", n))
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(),
		Source: "manual"}, nil), ledger.Conflict, "120 issues of this routine are open; close some first")
}

func TestVariablesOfRoutines(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		v    routine.RoutineVariable
		in   string
		want string // "" is refused
	}{
		{routine.RoutineVariable{Type: "text"}, `"a"`, `"a"`}, {routine.RoutineVariable{Type: "text"}, `5`, `"5"`},
		{routine.RoutineVariable{Type: "text"}, `{}`, ""},
		{routine.RoutineVariable{Type: "number"}, `1.50`, `1.50`}, {routine.RoutineVariable{Type: "number"}, `"7"`, `7`},
		{routine.RoutineVariable{Type: "number"}, `"1e9"`, ""},
		{routine.RoutineVariable{Type: "boolean"}, `"true"`, `true`}, {routine.RoutineVariable{Type: "boolean"}, `1`, ""},
		{routine.RoutineVariable{Type: "select", Options: []string{"x"}}, `"x"`, `"x"`},
		{routine.RoutineVariable{Type: "select", Options: []string{"x"}}, `"y"`, ""},
		{routine.RoutineVariable{Type: "date"}, `"2026-11-21"`, `"2026-11-21"`}, {routine.RoutineVariable{Type: "date"},
			`"2026-02-30"`, ""},
	} {
		got, ok := c.v.Accept(raw(c.in))
		if ok != (c.want != "") || ok && string(got) != c.want {
			t.Errorf("%s %s: %s, %v", c.v.Type, c.in, got, ok)
		}
	}
	if _, err := routine.CheckVariables([]routine.RoutineVariable{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Error("a name that is there twice passes")
	}
	list, err := routine.CheckVariables(nil, "{{x}} {{date}} {{ x }} {{9}} {{y_1}}")
	if err != nil || len(list) != 2 || list[0].Name != "x" || list[1].Name != "y_1" || !list[0].Required {
		t.Errorf("what the text names: %+v, %v", list, err)
	}
	d := companytest.NewDesk(t)
	r := d.Routine(t, d.Agent("Ada"), func(s *routine.SaveRoutine) { s.Variables = nil })
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(),
		Source: "manual"}, nil), ledger.Unprocessable, `Missing a value for the routine's variable "topic"`)
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine_trigger.create", routine.SaveTrigger{ID: d.ID(),
		Routine: r.ID, Kind: routine.TriggerSchedule, Cron: new("0 9 * * *"), Next: 1}, nil),
		ledger.Unprocessable, `A scheduled routine needs a default for the required variable "topic"`)
	// A placeholder inside a value is not replaced.
	var run routine.RoutineRun
	d.Must(t, companytest.Board, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(), Source: "manual",
		Variables: map[string]json.RawMessage{"topic": raw(`"{{date}}"`)}}, &run)
	if i := d.Load(string(run.Issue)); i.Title != "Report of {{date}}" {
		t.Errorf("title %q", i.Title)
	}
}

func TestAScheduleFiresATimeOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	r := d.Routine(t, d.Agent("Ada"), func(s *routine.SaveRoutine) { s.Concurrency = new(routine.RoutineAlways) })
	due := core.TimeOf(d.Now) + 60_000
	tr := d.Schedule(t, r, due)
	tick := routine.TickRoutine{Trigger: tr.ID, Due: due, Next: due + money.MsPerDay}
	if companytest.Refused(t, d.Do(companytest.Board, "routine.tick", tick, nil)).Code != ledger.Conflict ||
		len(routine.DueTriggers(d.Tx, due-1, 10)) != 0 {
		t.Error("it fires before its time")
	}
	d.Now = due.Std()
	if list := routine.DueTriggers(d.Tx, due, 10); len(list) != 1 || list[0].ID != tr.ID {
		t.Fatalf("due: %v", list)
	}
	var run routine.RoutineRun
	d.Must(t, companytest.Board, "routine.tick", tick, &run)
	if run.Status != routine.RoutineIssued || run.Source != "schedule" || run.Trigger != core.NullText(tr.ID) {
		t.Fatalf("run %+v", run)
	}
	// Another leader that tries to fire the same due time is refused.
	if companytest.Refused(t, d.Do(companytest.Board, "routine.tick", tick, nil)).Code != ledger.Conflict ||
		len(routine.RoutineRunsOf(d.Tx, r, 10)) != 1 {
		t.Error("it fires twice")
	}
	if tr, _ = routine.TriggerByID(d.Tx, tr.ID); tr.Next != due+money.MsPerDay || tr.LastFiredAt == 0 {
		t.Errorf("trigger %+v", tr)
	}
	// A paused routine is not due. When it resumes, it does not make up for the pause.
	d.Must(t, companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Status: new(routine.RoutinePaused)}, nil)
	if len(routine.DueTriggers(d.Tx, due+10*money.MsPerDay, 10)) != 0 {
		t.Error("a paused routine is due")
	}
	d.Must(t, companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Status: new(routine.RoutineActive),
		Next: []routine.TriggerNext{{Trigger: tr.ID, At: due + 5*money.MsPerDay}}}, nil)
	if len(routine.DueTriggers(d.Tx, due+4*money.MsPerDay, 10)) != 0 ||
		len(routine.DueTriggers(d.Tx, due+5*money.MsPerDay, 10)) != 1 {
		t.Error("it does not go on at the time that it was given")
	}
	// If the agent is terminated, the schedule's runs fail and it keeps firing. If the agent is
	// deleted, the routine is paused.
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: string(r.Assignee)}, nil)
	d.Now = (due + 5*money.MsPerDay).Std()
	d.Must(t, companytest.Board, "routine.tick", routine.TickRoutine{Trigger: tr.ID, Due: due + 5*money.MsPerDay,
		Next: due + 6*money.MsPerDay}, &run)
	if run.Status != routine.RoutineFailed || run.Failure == "" {
		t.Errorf("without an agent: %+v", run)
	}
	d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: string(r.Assignee)}, nil)
	if r, _ := routine.RoutineByID(d.Tx, r.ID); r.Status != routine.RoutinePaused ||
		len(routine.DueTriggers(d.Tx, due+10*money.MsPerDay, 10)) != 0 {
		t.Errorf("after its agent the routine is %s", r.Status)
	}
	d.Must(t, companytest.Board, "routine.delete", routine.ChangeRoutine{ID: r.ID}, nil)
	for k := range d.Tx.Scan([]byte{0}, []byte{0xff}, false) {
		if s := string(k); len(s) > 7 && s[:7] == "routine" {
			t.Errorf("left behind: %q", s)
		}
	}
}

func TestDeliveriesAreGoodOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	r := d.Routine(t, d.Agent("Ada"), func(s *routine.SaveRoutine) { s.Concurrency = new(routine.RoutineAlways) })
	var res routine.TriggerResult
	d.Must(t, companytest.Board, "routine_trigger.create", routine.SaveTrigger{ID: d.ID(), Routine: r.ID,
		Kind: routine.TriggerWebhook, Signing: new(routine.SignedHMAC), PublicID: "0123456789abcdef01234567",
		Sealed: []byte("sealed")}, &res)
	fire := func(hash string) error {
		return d.Do(companytest.Board, "routine.fire", routine.FireRoutine{Run: d.ID(), Trigger: res.Trigger.ID,
			Payload:  json.RawMessage(`{"topic":"bugs"}`),
			Delivery: hash, Until: core.TimeOf(d.Now) + 300_000}, nil)
	}
	if err := fire("aa"); err != nil {
		t.Fatal(err)
	}
	if i := d.Load(string(routine.RoutineRunsOf(d.Tx, r, 1)[0].Issue)); i.Title != "Report of bugs" {
		t.Errorf("title %q", i.Title)
	}
	companytest.WantRefusal(t, fire("aa"), ledger.Conflict, "This webhook was delivered before")
	for n := range 30 {
		if err := fire(fmt.Sprintf("b%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	d.Now = d.Now.Add(10 * 60_000_000_000)
	if err := fire("cc"); err != nil {
		t.Fatal(err)
	}
	if tr, _ := routine.TriggerByID(d.Tx, res.Trigger.ID); tr.Seen != 1 {
		t.Errorf("%d deliveries are remembered after their window", tr.Seen)
	}
	d.Must(t, companytest.Board, "routine_trigger.update", routine.SaveTrigger{ID: res.Trigger.ID,
		Enabled: new(false)}, nil)
	companytest.WantRefusal(t, fire("dd"), ledger.Conflict, "Routine trigger is not active")
}

func TestRevisionsOfRoutines(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	r := d.Routine(t, ada, nil)
	first := r.Revision
	d.Must(t, companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Title: new("Other"), Assignee: &bob,
		Base: first}, &r)
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Title: new("Third"),
		Base: first}, nil), ledger.Conflict, "Routine was updated by someone else")
	var res routine.RestoredRoutine
	d.Must(t, companytest.Board, "routine.restore", routine.RestoreRoutine{ID: r.ID, Revision: first}, &res)
	if res.Routine.Title != "Report of {{topic}}" || string(res.Routine.Assignee) != ada || res.Revision.Number != 3 ||
		string(res.Revision.RestoredFrom) != first {
		t.Errorf("restored %+v", res)
	}
	for range routine.KeptRoutineRevisions {
		d.Must(t, companytest.Board, "routine.update", routine.SaveRoutine{ID: r.ID, Description: new("x")}, nil)
	}
	if n := len(routine.RoutineRevisions(d.Tx, r)); n != routine.KeptRoutineRevisions {
		t.Errorf("%d revisions are kept", n)
	}
	// An agent may change only its own routines, under its run.
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: bob, Run: d.Run(bob)}, "routine.update",
		routine.SaveRoutine{ID: r.ID, Title: new("Mine")}, nil), ledger.Forbidden,
		"Agents can only manage routines assigned to themselves")
	if err := d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "routine.update",
		routine.SaveRoutine{ID: r.ID, Title: new("Mine")}, nil); err != nil {
		t.Error(err)
	}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "routine.update",
		routine.SaveRoutine{ID: r.ID, Assignee: &bob}, nil), ledger.Forbidden,
		"Agents can only manage routines assigned to themselves")
}

func TestRoutineRunsAreKeptWithinABound(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	r := d.Routine(t, d.Agent("Ada"), func(s *routine.SaveRoutine) { s.Concurrency = new(routine.RoutineSkip) })
	for range routine.KeptRoutineRuns + 5 {
		d.RunIt(t, r)
	}
	n := 0
	for range routine.RoutineRuns.All(d.Tx, d.Company) {
		n++
	}
	if n != routine.KeptRoutineRuns {
		t.Errorf("%d runs are kept", n)
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	var a, b routine.Folder
	d.Must(t, companytest.Board, "folder.save", routine.SaveFolder{ID: d.ID(), New: true, Kind: routine.FolderRoutines,
		Name: new("Daily work")}, &a)
	d.Must(t, companytest.Board, "folder.save", routine.SaveFolder{ID: d.ID(), New: true, Kind: routine.FolderRoutines,
		Name: new("Below"), Parent: &a.ID}, &b)
	if a.Slug != "daily-work" {
		t.Errorf("slug %q", a.Slug)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "folder.save", routine.SaveFolder{ID: a.ID, Parent: &b.ID}, nil),
		ledger.Unprocessable, "A folder can not lie in itself")
	r := d.Routine(t, d.Agent("Ada"), nil)
	d.Must(t, companytest.Board, "folder.file", routine.FileItem{Kind: routine.FolderRoutines, Item: r.ID,
		Folder: b.ID}, nil)
	d.Must(t, companytest.Board, "folder.delete", routine.DeleteFolder{ID: b.ID}, nil)
	if r, _ = routine.RoutineByID(d.Tx, r.ID); string(r.Folder) != a.ID {
		t.Errorf("after its folder is gone the routine lies in %q", r.Folder)
	}
}
