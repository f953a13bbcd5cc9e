package company

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// routine makes an active routine of an agent.
func (d *desk) routine(t testing.TB, agent string, change func(*SaveRoutine)) Routine {
	t.Helper()
	s := SaveRoutine{ID: d.id(), Title: new("Report of {{topic}}"), Description: new("Write about {{ topic }} on {{date}}."), Assignee: &agent,
		Variables: &[]RoutineVariable{{Name: "topic", Type: "text", Required: true, Default: json.RawMessage(`"sales"`)}}}
	if change != nil {
		change(&s)
	}
	var r Routine
	d.must(t, board, "routine.create", s, &r)
	return r
}

func (d *desk) runIt(t testing.TB, r Routine) RoutineRun {
	t.Helper()
	var run RoutineRun
	d.must(t, board, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "manual"}, &run)
	return run
}

func (d *desk) routineRun(t testing.TB, id string) RoutineRun {
	t.Helper()
	run, ok := routineRuns.Get(d.tx, d.company, id)
	if !ok {
		t.Fatalf("run %s of a routine is gone", id)
	}
	return run
}

func (d *desk) closeIssue(t testing.TB, id string, status IssueStatus) {
	t.Helper()
	d.must(t, board, "issue.update", UpdateIssue{Issue: id, Status: status}, nil)
}

func TestARoutineMakesAnIssueAndWakesItsAssignee(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	r := d.routine(t, ada, nil)
	run := d.runIt(t, r)
	i := d.load(string(run.Issue))
	if run.Status != RoutineIssued || i.Title != "Report of sales" || i.Description != "Write about sales on 2026-11-21." || i.Assignee != ada ||
		i.OriginKind != OriginRoutine || i.OriginID != r.ID || i.OriginRun != run.ID || i.Status != IssueTodo {
		t.Fatalf("run %+v made %+v", run, i)
	}
	if live := LiveRunsOfAgent(d.tx, d.company, ada); len(live) != 1 || live[0].Context.IssueID != i.ID {
		t.Errorf("its agent has %d runs", len(live))
	}
	d.closeIssue(t, i.ID, IssueDone)
	if run = d.routineRun(t, run.ID); run.Status != RoutineCompleted || run.CompletedAt == 0 {
		t.Errorf("after its issue is done the run is %+v", run)
	}
	run = d.runIt(t, r)
	d.closeIssue(t, string(run.Issue), IssueCancelled)
	if run = d.routineRun(t, run.ID); run.Status != RoutineFailed || run.Failure == "" {
		t.Errorf("after its issue is cancelled the run is %+v", run)
	}
	run = d.runIt(t, r)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: string(run.Issue)}, nil)
	if run = d.routineRun(t, run.ID); run.Status != RoutineFailed {
		t.Errorf("after its issue is deleted the run is %+v", run)
	}
	if _, ok := ActiveRoutineIssue(d.tx, r); ok {
		t.Error("an issue that is gone is active")
	}
}

func TestConcurrencyOfRoutines(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]RoutineRunStatus{RoutineCoalesce: RoutineCoalesced, RoutineSkip: RoutineSkipped, RoutineAlways: RoutineIssued} {
		d := newDesk(t)
		ada := d.agent("Ada")
		r := d.routine(t, ada, func(s *SaveRoutine) { s.Concurrency = &policy })
		first := d.runIt(t, r)
		second := d.runIt(t, r)
		if second.Status != want || want != RoutineIssued && (second.Issue != first.Issue || second.CoalescedInto != NullText(first.ID) || second.CompletedAt == 0) {
			t.Errorf("%s: while the issue is at work: %+v", policy, second)
		}
		// The same with other values is other work, but for a policy that skips.
		var other RoutineRun
		d.must(t, board, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "api", Variables: map[string]json.RawMessage{"topic": json.RawMessage(`"costs"`)}}, &other)
		if wantOther := map[string]RoutineRunStatus{RoutineCoalesce: RoutineIssued, RoutineSkip: RoutineSkipped, RoutineAlways: RoutineIssued}[policy]; other.Status != wantOther {
			t.Errorf("%s: with another topic: %s", policy, other.Status)
		}
		// What was left in the queue without a run does not hold the routine up.
		cancelRunsOfAgent(d.context(board, "", nil), d.company, ada, DeniedAgent, "test")
		left := d.runIt(t, r)
		switch {
		case policy == RoutineCoalesce && (left.Status != RoutineCoalesced || len(LiveRunsOfAgent(d.tx, d.company, ada)) != 1):
			t.Errorf("the issue that was left is not taken up: %+v", left)
		case policy != RoutineCoalesce && left.Status != RoutineIssued:
			t.Errorf("%s: an issue that was left holds its routine up: %+v", policy, left)
		}
	}
}

func TestARoutineStopsAtItsOpenIssues(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.routine(t, d.agent("Ada"), func(s *SaveRoutine) { s.Concurrency = new(RoutineAlways) })
	for range 20 { // the agent takes that many; more are issues without a run
		d.runIt(t, r)
	}
	for n := range MaxRoutineIssues {
		routineIssues.Add(d.tx, d.company, r.ID, fmt.Sprintf("filler-%03d", n))
	}
	wantRefusal(t, d.do(board, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "manual"}, nil), ledger.Conflict, "120 issues of this routine are open; close some first")
}

func TestVariablesOfRoutines(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, c := range []struct {
		v    RoutineVariable
		in   string
		want string // "" is refused
	}{
		{RoutineVariable{Type: "text"}, `"a"`, `"a"`}, {RoutineVariable{Type: "text"}, `5`, `"5"`}, {RoutineVariable{Type: "text"}, `{}`, ""},
		{RoutineVariable{Type: "number"}, `1.50`, `1.50`}, {RoutineVariable{Type: "number"}, `"7"`, `7`}, {RoutineVariable{Type: "number"}, `"1e9"`, ""},
		{RoutineVariable{Type: "boolean"}, `"true"`, `true`}, {RoutineVariable{Type: "boolean"}, `1`, ""},
		{RoutineVariable{Type: "select", Options: []string{"x"}}, `"x"`, `"x"`}, {RoutineVariable{Type: "select", Options: []string{"x"}}, `"y"`, ""},
		{RoutineVariable{Type: "date"}, `"2026-11-21"`, `"2026-11-21"`}, {RoutineVariable{Type: "date"}, `"2026-02-30"`, ""},
	} {
		got, ok := c.v.accept(raw(c.in))
		if ok != (c.want != "") || ok && string(got) != c.want {
			t.Errorf("%s %s: %s, %v", c.v.Type, c.in, got, ok)
		}
	}
	if _, err := checkVariables([]RoutineVariable{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Error("a name that is there twice passes")
	}
	list, err := checkVariables(nil, "{{x}} {{date}} {{ x }} {{9}} {{y_1}}")
	if err != nil || len(list) != 2 || list[0].Name != "x" || list[1].Name != "y_1" || !list[0].Required {
		t.Errorf("what the text names: %+v, %v", list, err)
	}
	d := newDesk(t)
	r := d.routine(t, d.agent("Ada"), func(s *SaveRoutine) { s.Variables = nil })
	wantRefusal(t, d.do(board, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "manual"}, nil), ledger.Unprocessable, `Missing a value for the routine's variable "topic"`)
	wantRefusal(t, d.do(board, "routine_trigger.create", SaveTrigger{ID: d.id(), Routine: r.ID, Kind: TriggerSchedule, Cron: new("0 9 * * *"), Next: 1}, nil),
		ledger.Unprocessable, `A scheduled routine needs a default for the required variable "topic"`)
	// Values are not read as texts with blanks.
	var run RoutineRun
	d.must(t, board, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "manual", Variables: map[string]json.RawMessage{"topic": raw(`"{{date}}"`)}}, &run)
	if i := d.load(string(run.Issue)); i.Title != "Report of {{date}}" {
		t.Errorf("title %q", i.Title)
	}
}

// schedule adds a trigger that is due at next.
func (d *desk) schedule(t testing.TB, r Routine, next Time) RoutineTrigger {
	t.Helper()
	var res TriggerResult
	d.must(t, board, "routine_trigger.create", SaveTrigger{ID: d.id(), Routine: r.ID, Kind: TriggerSchedule, Cron: new("0 9 * * *"), Next: next}, &res)
	return res.Trigger
}

func TestAScheduleFiresATimeOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.routine(t, d.agent("Ada"), func(s *SaveRoutine) { s.Concurrency = new(RoutineAlways) })
	due := TimeOf(d.now) + 60_000
	tr := d.schedule(t, r, due)
	tick := TickRoutine{Trigger: tr.ID, Due: due, Next: due + msPerDay}
	if refused(t, d.do(board, "routine.tick", tick, nil)).Code != ledger.Conflict || len(DueTriggers(d.tx, due-1, 10)) != 0 {
		t.Error("it fires before its time")
	}
	d.now = due.Std()
	if list := DueTriggers(d.tx, due, 10); len(list) != 1 || list[0].ID != tr.ID {
		t.Fatalf("due: %v", list)
	}
	var run RoutineRun
	d.must(t, board, "routine.tick", tick, &run)
	if run.Status != RoutineIssued || run.Source != "schedule" || run.Trigger != NullText(tr.ID) {
		t.Fatalf("run %+v", run)
	}
	// Another leader that saw the same time due is refused.
	if refused(t, d.do(board, "routine.tick", tick, nil)).Code != ledger.Conflict || len(RoutineRunsOf(d.tx, r, 10)) != 1 {
		t.Error("it fires twice")
	}
	if tr, _ = TriggerByID(d.tx, tr.ID); tr.Next != due+msPerDay || tr.LastFiredAt == 0 {
		t.Errorf("trigger %+v", tr)
	}
	// A routine at rest is not due; going on, it does not make up for the rest.
	d.must(t, board, "routine.update", SaveRoutine{ID: r.ID, Status: new(RoutinePaused)}, nil)
	if len(DueTriggers(d.tx, due+10*msPerDay, 10)) != 0 {
		t.Error("a paused routine is due")
	}
	d.must(t, board, "routine.update", SaveRoutine{ID: r.ID, Status: new(RoutineActive), Next: []TriggerNext{{tr.ID, due + 5*msPerDay}}}, nil)
	if len(DueTriggers(d.tx, due+4*msPerDay, 10)) != 0 || len(DueTriggers(d.tx, due+5*msPerDay, 10)) != 1 {
		t.Error("it does not go on at the time that it was given")
	}
	// A schedule whose agent came to its end fails and goes on; when the agent is
	// deleted the routine rests.
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: string(r.Assignee)}, nil)
	d.now = (due + 5*msPerDay).Std()
	d.must(t, board, "routine.tick", TickRoutine{Trigger: tr.ID, Due: due + 5*msPerDay, Next: due + 6*msPerDay}, &run)
	if run.Status != RoutineFailed || run.Failure == "" {
		t.Errorf("without an agent: %+v", run)
	}
	d.must(t, board, "agent.delete", ChangeAgent{Agent: string(r.Assignee)}, nil)
	if r, _ := RoutineByID(d.tx, r.ID); r.Status != RoutinePaused || len(DueTriggers(d.tx, due+10*msPerDay, 10)) != 0 {
		t.Errorf("after its agent the routine is %s", r.Status)
	}
	d.must(t, board, "routine.delete", ChangeRoutine{ID: r.ID}, nil)
	for k := range d.tx.Scan([]byte{0}, []byte{0xff}, false) {
		if s := string(k); len(s) > 7 && s[:7] == "routine" {
			t.Errorf("left behind: %q", s)
		}
	}
}

func TestDeliveriesAreGoodOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.routine(t, d.agent("Ada"), func(s *SaveRoutine) { s.Concurrency = new(RoutineAlways) })
	var res TriggerResult
	d.must(t, board, "routine_trigger.create", SaveTrigger{ID: d.id(), Routine: r.ID, Kind: TriggerWebhook, Signing: new(SignedHMAC), PublicID: "0123456789abcdef01234567", Sealed: []byte("sealed")}, &res)
	fire := func(hash string) error {
		return d.do(board, "routine.fire", FireRoutine{Run: d.id(), Trigger: res.Trigger.ID, Payload: json.RawMessage(`{"topic":"bugs"}`),
			Delivery: hash, Until: TimeOf(d.now) + 300_000}, nil)
	}
	if err := fire("aa"); err != nil {
		t.Fatal(err)
	}
	if i := d.load(string(RoutineRunsOf(d.tx, r, 1)[0].Issue)); i.Title != "Report of bugs" {
		t.Errorf("title %q", i.Title)
	}
	wantRefusal(t, fire("aa"), ledger.Conflict, "This webhook was delivered before")
	for n := range 30 {
		if err := fire(fmt.Sprintf("b%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	d.now = d.now.Add(10 * 60_000_000_000)
	if err := fire("cc"); err != nil {
		t.Fatal(err)
	}
	if tr, _ := TriggerByID(d.tx, res.Trigger.ID); tr.Seen != 1 {
		t.Errorf("%d deliveries are remembered after their window", tr.Seen)
	}
	d.must(t, board, "routine_trigger.update", SaveTrigger{ID: res.Trigger.ID, Enabled: new(false)}, nil)
	wantRefusal(t, fire("dd"), ledger.Conflict, "Routine trigger is not active")
}

func TestRevisionsOfRoutines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	r := d.routine(t, ada, nil)
	first := r.Revision
	d.must(t, board, "routine.update", SaveRoutine{ID: r.ID, Title: new("Other"), Assignee: &bob, Base: first}, &r)
	wantRefusal(t, d.do(board, "routine.update", SaveRoutine{ID: r.ID, Title: new("Third"), Base: first}, nil), ledger.Conflict, "Routine was updated by someone else")
	var res RestoredRoutine
	d.must(t, board, "routine.restore", RestoreRoutine{ID: r.ID, Revision: first}, &res)
	if res.Routine.Title != "Report of {{topic}}" || string(res.Routine.Assignee) != ada || res.Revision.Number != 3 || string(res.Revision.RestoredFrom) != first {
		t.Errorf("restored %+v", res)
	}
	for range keptRoutineRevisions {
		d.must(t, board, "routine.update", SaveRoutine{ID: r.ID, Description: new("x")}, nil)
	}
	if n := len(RoutineRevisions(d.tx, r)); n != keptRoutineRevisions {
		t.Errorf("%d revisions are kept", n)
	}
	// An agent manages its own routines only, under its run.
	wantRefusal(t, d.do(as{bob, d.run(bob)}, "routine.update", SaveRoutine{ID: r.ID, Title: new("Mine")}, nil), ledger.Forbidden, "Agents can only manage routines assigned to themselves")
	if err := d.do(as{ada, d.run(ada)}, "routine.update", SaveRoutine{ID: r.ID, Title: new("Mine")}, nil); err != nil {
		t.Error(err)
	}
	wantRefusal(t, d.do(as{ada, d.run(ada)}, "routine.update", SaveRoutine{ID: r.ID, Assignee: &bob}, nil), ledger.Forbidden, "Agents can only manage routines assigned to themselves")
}

func TestRoutineRunsAreKeptWithinABound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	r := d.routine(t, d.agent("Ada"), func(s *SaveRoutine) { s.Concurrency = new(RoutineSkip) })
	for range keptRoutineRuns + 5 {
		d.runIt(t, r)
	}
	n := 0
	for range routineRuns.All(d.tx, d.company) {
		n++
	}
	if n != keptRoutineRuns {
		t.Errorf("%d runs are kept", n)
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var a, b Folder
	d.must(t, board, "folder.save", SaveFolder{ID: d.id(), New: true, Kind: FolderRoutines, Name: new("Daily work")}, &a)
	d.must(t, board, "folder.save", SaveFolder{ID: d.id(), New: true, Kind: FolderRoutines, Name: new("Below"), Parent: &a.ID}, &b)
	if a.Slug != "daily-work" {
		t.Errorf("slug %q", a.Slug)
	}
	wantRefusal(t, d.do(board, "folder.save", SaveFolder{ID: a.ID, Parent: &b.ID}, nil), ledger.Unprocessable, "A folder can not lie in itself")
	r := d.routine(t, d.agent("Ada"), nil)
	d.must(t, board, "folder.file", FileItem{Kind: FolderRoutines, Item: r.ID, Folder: b.ID}, nil)
	d.must(t, board, "folder.delete", DeleteFolder{ID: b.ID}, nil)
	if r, _ = RoutineByID(d.tx, r.ID); string(r.Folder) != a.ID {
		t.Errorf("after its folder is gone the routine lies in %q", r.Folder)
	}
}
