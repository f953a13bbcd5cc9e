package care_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAMonitorWakesItsIssuesAgentOnce(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada})
	who := d.OnIssue(t, ada, i)
	at := core.TimeOf(d.Now.Add(time.Hour))
	policy := func(more string) json.RawMessage {
		return json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","notes":"the build"` + more +
			`},"commentRequired":false}`)
	}
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: i.ID, ExecutionPolicy: policy("")}, nil)
	if m := d.Load(i.ID).Monitor; m == nil || m.NextAt != at || m.By != "assignee" || m.Notes != "the build" {
		t.Fatalf("monitor %+v", m)
	}
	// It waits, so its run leaves nothing undecided.
	d.EndRun(who.Run)
	if i := d.Load(i.ID); i.Status != entity.IssueInProgress || i.Handoff != nil {
		t.Fatalf("after its run the issue is %s, handoff %v", i.Status, i.Handoff)
	}
	if due := care.DueMonitors(d.Tx, at-1, 10); len(due) != 0 {
		t.Fatalf("due too early: %v", due)
	}
	due := care.DueMonitors(d.Tx, at, 10)
	if len(due) != 1 || due[0].Issue != i.ID {
		t.Fatalf("due %v", due)
	}
	companytest.WantRefusal(t, d.ByLeader("issue.monitor", due[0].CheckMonitor), ledger.Conflict,
		"the monitor of issue ACM-1 is not due")
	d.Now = at.Std()
	if err := d.ByLeader("issue.monitor", due[0].CheckMonitor); err != nil {
		t.Fatal(err)
	}
	if n := len(d.Last); n == 0 || d.Last[0].Action != "issue.monitor_triggered" {
		t.Errorf("entries %v", d.Last)
	}
	got := d.Load(i.ID)
	if got.Monitor.NextAt != 0 || got.Monitor.Attempts != 1 || string(got.ExecutionPolicy) != `{"commentRequired":false}` {
		t.Errorf("after it fired: %+v, policy %s", got.Monitor, got.ExecutionPolicy)
	}
	if w := d.WakesOf(ada); w[0] != "issue_monitor_due" {
		t.Errorf("wakes %v", w)
	}
	companytest.WantRefusal(t, d.ByLeader("issue.monitor", due[0].CheckMonitor), ledger.Conflict,
		"the monitor of issue ACM-1 is not due")
	if due := care.DueMonitors(d.Tx, at, 10); len(due) != 0 {
		t.Errorf("still due: %v", due)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.monitor", care.CheckMonitor{Issue: i.ID}, nil),
		ledger.Conflict, "Issue has no scheduled monitor")
}

func TestAMonitorFiresOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	at := core.TimeOf(d.Now.Add(time.Hour))
	monitor := json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() +
		`","maxAttempts":1,"recoveryPolicy":"escalate_to_board"}}`)
	for _, c := range []struct {
		status entity.IssueStatus
		agent  string
		fires  bool
	}{{entity.IssueBacklog, ada, false}, {entity.IssueTodo, ada, false}, {entity.IssueInProgress, ada, true},
		{entity.IssueInReview, ada, true}, {entity.IssueDone, ada, false}, {entity.IssueInReview, "", false}} {
		i := d.Issue(t, company.CreateIssue{Status: c.status, Assignee: c.agent, ExecutionPolicy: monitor})
		if got := len(care.DueMonitors(d.Tx, at, 10)) == 1; got != c.fires {
			t.Errorf("%s of %q: due %v, want %v", c.status, c.agent, got, c.fires)
		}
		if !c.fires {
			companytest.WantRefusal(t, d.Do(companytest.Board, "issue.monitor", care.CheckMonitor{Issue: i.ID}, nil),
				ledger.Unprocessable, "A monitor fires only for an issue that an agent has in progress or in review")
		}
		d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
		if due := care.DueMonitors(d.Tx, at, 10); len(due) != 0 {
			t.Fatalf("%s: a deleted issue is due: %v", c.status, due)
		}
	}
	// The last attempt hands the issue to the board when its policy says so.
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueInProgress, Assignee: ada, ExecutionPolicy: monitor})
	d.Must(t, companytest.Board, "issue.monitor", care.CheckMonitor{Issue: i.ID}, nil)
	if got := d.Load(i.ID); got.Status != entity.IssueBlocked || !strings.Contains(string(got.UnblockDescriptor),
		"issue_monitor_exhausted") {
		t.Errorf("%s, %s", got.Status, got.UnblockDescriptor)
	}
	// An agent does not wait for ever; a person may begin anew.
	who := d.OnIssue(t, ada, d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: ada}))
	mine := d.Load(companytest.RunOfDesk(d, who).Context.IssueID).ID
	again := json.RawMessage(strings.Replace(string(monitor), `,"recoveryPolicy":"escalate_to_board"`, "", 1))
	d.Must(t, who, "issue.update", company.UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil)
	d.Must(t, who, "issue.monitor", care.CheckMonitor{Issue: mine}, nil)
	companytest.WantRefusal(t, d.Do(who, "issue.update", company.UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil),
		ledger.Unprocessable, "The issue was looked at as often as its monitor allows")
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: mine,
		ExecutionPolicy: json.RawMessage(`{"monitor":{}}`)}, nil), ledger.Invalid,
		"executionPolicy.monitor.nextCheckAt is required")
}

// A monitor that ends in vain makes one issue in which somebody finds out why, for
// which the first waits; it is not blocked, and goes on when the other is done.
func TestAMonitorInVainMakesARecoveryIssue(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	at := core.TimeOf(d.Now.Add(time.Hour))
	policy := func(more string) json.RawMessage {
		return json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","notes":"the build",` + more +
			`"recoveryPolicy":"create_recovery_issue"}}`)
	}
	for name, more := range map[string]string{"attempts": `"maxAttempts":1,`, "time": `"timeoutAt":"` +
		at.String() + `",`} {
		i := d.Issue(t, company.CreateIssue{Status: entity.IssueInProgress, Assignee: ada, BillingCode: "BC-9",
			ExecutionPolicy: policy(more)})
		now := d.Now
		d.Now = at.Std()
		if err := d.ByLeader("issue.monitor", care.CheckMonitor{Issue: i.ID, Due: at}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.Now = now
		got := d.Load(i.ID)
		if got.Status != entity.IssueInProgress || len(got.BlockedBy) != 1 || company.PathOf(d.Tx, got, at) != "blockers" {
			t.Fatalf("%s: %s waits for %v by %q", name, got.Status, got.BlockedBy, company.PathOf(d.Tx, got, at))
		}
		made := d.Load(got.BlockedBy[0])
		if made.Parent != i.ID || made.Assignee != ada || made.Status != entity.IssueTodo ||
			made.Priority != entity.PriorityHigh || made.BillingCode != "BC-9" || made.Depth != i.Depth+1 ||
			made.OriginKind != "stranded_issue_recovery" || made.OriginID != i.ID || !strings.Contains(made.Description,
			"the build") {
			t.Errorf("%s: made %+v", name, made)
		}
		if w := d.WakesOf(ada); w[0] != "issue_assigned" {
			t.Errorf("%s: wakes %v", name, w)
		}
		// While it is open no second is made.
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID,
			ExecutionPolicy: policy(more + `"serviceName":"again",`)}, nil)
		d.Must(t, companytest.Board, "issue.monitor", care.CheckMonitor{Issue: i.ID}, nil)
		if again := d.Load(i.ID); len(again.BlockedBy) != 1 || name == "attempts" && again.BlockedBy[0] != made.ID {
			t.Errorf("%s: waits for %v after a second time", name, again.BlockedBy)
		}
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: made.ID, Status: entity.IssueDone}, nil)
		if w := d.WakesOf(ada); !slices.Contains(w[:2], "issue_blockers_resolved") {
			t.Errorf("%s: wakes %v after it was done", name, w)
		}
	}
	// Where there is no room for a part the board decides.
	deep := d.Issue(t, company.CreateIssue{Status: entity.IssueInProgress, Assignee: ada, Depth: company.MaxRequestDepth,
		ExecutionPolicy: policy(`"maxAttempts":1,`)})
	d.Must(t, companytest.Board, "issue.monitor", care.CheckMonitor{Issue: deep.ID}, nil)
	if got := d.Load(deep.ID); got.Status != entity.IssueBlocked || len(got.BlockedBy) != 0 {
		t.Errorf("%s, waits for %v", got.Status, got.BlockedBy)
	}
}

func TestAWatchdogIsWokenWhenNobodyDecides(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, wendy, other := d.Hired("Ada"), d.Hired("Wendy"), d.Hired("Otto")
	top := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueBacklog, Assignee: ada, Parent: top.ID})
	d.Must(t, companytest.Board, "watchdog.set", care.SetWatchdog{ID: d.ID(), Issue: top.ID, Agent: wendy,
		Instructions: new("Ask the board")}, nil)
	d.Must(t, companytest.Board, "watchdog.set", care.SetWatchdog{ID: d.ID(), Issue: i.ID, Agent: ada}, nil)
	at := d.OnIssue(t, ada, d.Load(i.ID))
	r := companytest.RunOfDesk(d, at)
	r.Followups = entity.MaxFollowups // it is the one that asks again
	entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
	d.EndRun(at.Run)
	if got := d.Load(i.ID); got.Status != entity.IssueBlocked || got.Recovery == "" {
		t.Fatalf("the issue is %s", got.Status)
	}
	if w := d.WakesOf(wendy); len(w) != 1 || w[0] != "issue_watchdog" {
		t.Errorf("wakes of the watchdog: %v", w)
	}
	u := entity.WakeupsOf(d.Tx, d.Company, wendy)[0]
	for _, want := range []string{i.ID, top.ID, "missing_disposition", "Ask the board"} {
		if !strings.Contains(string(u.Payload), want) {
			t.Errorf("payload %s has no %s", u.Payload, want)
		}
	}
	for _, reason := range d.WakesOf(ada) {
		if reason == "issue_watchdog" {
			t.Error("an agent is alarmed because of itself")
		}
	}
	if w, _ := care.WatchdogOf(d.Tx, d.Company, top.ID); w.Wakes != 1 || w.LastWakeAt == 0 {
		t.Errorf("watchdog %+v", w)
	}
	// Who may: an agent names itself or whom it manages, on what it may change.
	own := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: other})
	who := d.OnIssue(t, other, own)
	companytest.WantRefusal(t, d.Do(who, "watchdog.set", care.SetWatchdog{ID: d.ID(), Issue: own.ID, Agent: wendy}, nil),
		ledger.Forbidden, "An agent may name itself, or an agent that it manages")
	d.Must(t, who, "watchdog.set", care.SetWatchdog{ID: d.ID(), Issue: own.ID, Agent: other}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "watchdog.set", care.SetWatchdog{ID: d.ID(), Issue: own.ID,
		Agent: companytest.UID(99)}, nil), ledger.NotFound, "Agent not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "watchdog.set",
		care.SetWatchdog{ID: d.ID(), Issue: companytest.UID(98), Agent: wendy}, nil), ledger.NotFound, "Issue not found")
	// It goes with its issue, and with its agent.
	d.Must(t, companytest.Board, "watchdog.remove", care.RemoveWatchdog{Issue: i.ID}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "watchdog.remove", care.RemoveWatchdog{Issue: i.ID}, nil),
		ledger.NotFound, "Issue watchdog not found")
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: own.ID}, nil)
	d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: wendy}, nil)
	if n := d.Count("watchdog") + d.Count("watchdog-agent"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestWhatIsThoughtOfASilentRun(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, boss, other := d.Hired("Ada"), d.Hired("Boss"), d.Hired("Otto")
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
	next := a
	next.ReportsTo = core.NullText(boss)
	entity.AgentTable.Put(d.Tx, next.Company, next.ID, next)
	run := d.Run(ada)
	soon := core.TimeOf(d.Now.Add(time.Hour))
	const notDecider = "Only the board, the manager of the run's agent, or the watchdog of its issue decides about a run"
	for _, c := range []struct {
		who  companytest.As
		p    care.DecideWatch
		code ledger.Code
		text string
	}{
		{companytest.Board, care.DecideWatch{Run: run, Decision: "snooze"}, ledger.Unprocessable,
			"snoozedUntil must be in the future"},
		{companytest.Board, care.DecideWatch{Run: run, Decision: "shrug"}, ledger.Invalid, `unknown decision "shrug"`},
		{companytest.Board, care.DecideWatch{Run: companytest.UID(77), Decision: "continue"}, ledger.NotFound,
			"Heartbeat run not found"},
		{companytest.Board, care.DecideWatch{Run: run, Decision: "continue", Issue: companytest.UID(78)}, ledger.NotFound,
			"Evaluation issue not found"},
		{companytest.As{Agent: ada, Run: run}, care.DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden,
			notDecider},
		{companytest.As{Agent: other, Run: d.Run(other)}, care.DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden,
			notDecider},
		{companytest.As{Agent: boss, Run: ""}, care.DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden,
			"An agent writes on issues under a run of its own that is still going on; this request named none."},
	} {
		companytest.WantRefusal(t, d.Do(c.who, "run.watch", c.p, nil), c.code, c.text)
	}
	var got entity.WatchDecision
	d.Must(t, companytest.Board, "run.watch", care.DecideWatch{ID: d.ID(), Run: run, Decision: "snooze", Until: soon,
		Reason: "a long build"}, &got)
	if got.Until != soon || got.ByUser != "local-board" || companytest.RunOfDesk(d, companytest.As{Agent: ada, Run: run}).
		Watch.Until != soon {
		t.Errorf("decision %+v", got)
	}
	d.Must(t, companytest.As{Agent: boss, Run: d.Run(boss)}, "run.watch", care.DecideWatch{ID: d.ID(), Run: run,
		Decision: "continue"}, &got)
	if got.ByAgent != core.NullText(boss) || got.Until != 0 {
		t.Errorf("decision %+v", got)
	}
	d.EndRun(run)
	companytest.WantRefusal(t, d.Do(companytest.Board, "run.watch", care.DecideWatch{ID: d.ID(), Run: run,
		Decision: "continue"}, nil), ledger.Conflict, "Only a running run is watched")
}

func TestCommentsThatWaitCanBeTakenBack(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueBacklog, Assignee: ada})
	who := d.OnIssue(t, ada, i)
	say := func(text string) string {
		id := d.ID()
		d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: id, Issue: i.ID, Body: text}, nil)
		return id
	}
	if _, ok := company.QueueOf(d.Tx, d.Load(i.ID)); ok {
		t.Fatal("a queue without comments")
	}
	one, two := say("one"), say("two")
	queue := func() company.CommentQueue {
		t.Helper()
		q, ok := company.QueueOf(d.Tx, d.Load(i.ID))
		if !ok {
			t.Fatal("no queue")
		}
		return q
	}
	q := queue()
	if len(q.Entries) != 2 || q.Entries[0].ID != one || q.Target != who.Run {
		t.Fatalf("queue %+v", q)
	}
	p := company.ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision()}
	edit := p
	edit.Comment, edit.Body = one, "ONE"
	d.Must(t, companytest.Board, "queue.edit", edit, nil)
	if cm, _ := entity.CommentOf(d.Tx, d.Company, i.ID, one); cm.Body != "ONE" {
		t.Errorf("comment %q", cm.Body)
	}
	order := p
	order.Order = []string{two, one}
	companytest.WantRefusal(t, d.Do(companytest.Board, "queue.order", order, nil), ledger.Conflict,
		"The queued comments have changed since; look again")
	order.Revision = queue().Revision()
	order.Order = []string{two, two}
	companytest.WantRefusal(t, d.Do(companytest.Board, "queue.order", order, nil), ledger.Unprocessable,
		"orderedCommentIds names each queued comment once")
	order.Order = []string{two, one}
	d.Must(t, companytest.Board, "queue.order", order, nil)
	if q = queue(); q.Entries[0].ID != two {
		t.Errorf("order %v", q.Entries)
	}
	drop := company.ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision(), Comment: companytest.UID(55)}
	companytest.WantRefusal(t, d.Do(companytest.Board, "queue.drop", drop, nil), ledger.NotFound,
		"Queued comment not found")
	drop.Comment = two
	d.Must(t, companytest.Board, "queue.drop", drop, nil)
	q = queue()
	// What was sent for another run at work is refused; this one ends it.
	stop := company.ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision()}
	companytest.WantRefusal(t, d.Do(companytest.Board, "queue.interrupt", stop, nil), ledger.Conflict,
		"Another run is at work by now, or none")
	stop.Target = who.Run
	d.Must(t, companytest.Board, "queue.interrupt", stop, nil)
	if r := companytest.RunOfDesk(d, who); r.Status != entity.RunCancelled {
		t.Errorf("the run at work is %s", r.Status)
	}
	q = queue()
	if q.Target != "" {
		t.Errorf("target %q", q.Target)
	}
	// Without anything left to tell the run does not begin.
	d.Must(t, companytest.Board, "queue.drop", company.ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision(),
		Comment: one}, nil)
	if r, _ := entity.RunTable.Get(d.Tx, d.Company, q.Run.ID); r.Status != entity.RunCancelled {
		t.Errorf("the run that waited is %s", r.Status)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "queue.drop", drop, nil), ledger.Conflict,
		"The queued comments are no longer waiting: their run has begun or ended")
}

func TestRetryNow(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hired("Ada")
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueBacklog, Assignee: ada})
	who := d.OnIssue(t, ada, i)
	companytest.WantRefusal(t, d.Do(companytest.Board, "run.retry_now", company.RetryNow{Issue: i.ID}, nil),
		ledger.Conflict, "No run of the issue waits to try again")
	c := d.Context(companytest.Board, "", nil)
	company.EndRun(c, companytest.RunOfDesk(d, who), company.Outcome{Status: entity.RunFailed, ErrorCode: "upstream",
		Transient: true})
	r, ok := company.RetryOf(d.Tx, d.Load(i.ID))
	if !ok || r.ScheduledRetryAt <= core.TimeOf(d.Now) {
		t.Fatalf("retry %v %+v", ok, r)
	}
	var got entity.Run
	d.Must(t, companytest.Board, "run.retry_now", company.RetryNow{Issue: i.ID}, &got)
	if got.ID != r.ID || got.ScheduledRetryAt > core.TimeOf(d.Now) || len(entity.QueuedRuns(d.Tx, core.TimeOf(d.Now), "",
		10, 10)) != 1 {
		t.Errorf("retry at %s, now %s", got.ScheduledRetryAt, core.TimeOf(d.Now))
	}
}
