package company

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// hired is an agent that can be woken.
func (d *desk) hired(name string) string {
	id := d.id()
	agents.Put(d.tx, d.company, id, Agent{ID: id, Company: d.company, Name: name, Status: AgentIdle, AdapterType: "process", RuntimeConfig: json.RawMessage(`{"heartbeat":{"wakeOnDemand":true,"maxConcurrentRuns":20}}`)})
	return id
}

// onIssue is a run of an agent that is at work on an issue it has checked out.
func (d *desk) onIssue(t testing.TB, agent string, i Issue) as {
	t.Helper()
	who := as{agent, d.run(agent)}
	r, _ := runs.Get(d.tx, d.company, who.run)
	r.Context.IssueID, r.Context.TaskID, r.Context.CheckedOut = i.ID, i.ID, true
	d.storeRun(r)
	d.must(t, who, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: agent, Expected: IssueStatuses}, nil)
	return who
}

func (d *desk) byLeader(kind string, payload any) error {
	c := d.context(board, kind, payload)
	c.Cmd.Actor = ledger.Actor{Type: "node", ID: "n"}
	c.Tx = d.tx.Child()
	if _, err := d.mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	d.last = c.Changes()
	return nil
}

func (d *desk) wakesOf(agent string) (reasons []string) {
	for _, u := range WakeupsOf(d.tx, d.company, agent) {
		reasons = append(reasons, string(u.Reason))
	}
	return reasons
}

func TestAMonitorWakesItsIssuesAgentOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada})
	who := d.onIssue(t, ada, i)
	at := TimeOf(d.now.Add(time.Hour))
	policy := func(more string) json.RawMessage {
		return json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","notes":"the build"` + more + `},"commentRequired":false}`)
	}
	d.must(t, who, "issue.update", UpdateIssue{Issue: i.ID, ExecutionPolicy: policy("")}, nil)
	if m := d.load(i.ID).Monitor; m == nil || m.NextAt != at || m.By != "assignee" || m.Notes != "the build" {
		t.Fatalf("monitor %+v", m)
	}
	// It waits, so its run leaves nothing undecided.
	d.endRun(who.run)
	if i := d.load(i.ID); i.Status != IssueInProgress || i.Handoff != nil {
		t.Fatalf("after its run the issue is %s, handoff %v", i.Status, i.Handoff)
	}
	if due := DueMonitors(d.tx, at-1, 10); len(due) != 0 {
		t.Fatalf("due too early: %v", due)
	}
	due := DueMonitors(d.tx, at, 10)
	if len(due) != 1 || due[0].Issue != i.ID {
		t.Fatalf("due %v", due)
	}
	wantRefusal(t, d.byLeader("issue.monitor", due[0].CheckMonitor), ledger.Conflict, "")
	d.now = at.Std()
	if err := d.byLeader("issue.monitor", due[0].CheckMonitor); err != nil {
		t.Fatal(err)
	}
	if n := len(d.last); n == 0 || d.last[0].Action != "issue.monitor_triggered" {
		t.Errorf("entries %v", d.last)
	}
	got := d.load(i.ID)
	if got.Monitor.NextAt != 0 || got.Monitor.Attempts != 1 || string(got.ExecutionPolicy) != `{"commentRequired":false}` {
		t.Errorf("after it fired: %+v, policy %s", got.Monitor, got.ExecutionPolicy)
	}
	if w := d.wakesOf(ada); w[0] != "issue_monitor_due" {
		t.Errorf("wakes %v", w)
	}
	wantRefusal(t, d.byLeader("issue.monitor", due[0].CheckMonitor), ledger.Conflict, "")
	if due := DueMonitors(d.tx, at, 10); len(due) != 0 {
		t.Errorf("still due: %v", due)
	}
	wantRefusal(t, d.do(board, "issue.monitor", CheckMonitor{Issue: i.ID}, nil), ledger.Conflict, "")
}

func TestAMonitorFiresOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	at := TimeOf(d.now.Add(time.Hour))
	monitor := json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","maxAttempts":1,"recoveryPolicy":"escalate_to_board"}}`)
	for _, c := range []struct {
		status IssueStatus
		agent  string
		fires  bool
	}{{IssueBacklog, ada, false}, {IssueTodo, ada, false}, {IssueInProgress, ada, true}, {IssueInReview, ada, true}, {IssueDone, ada, false}, {IssueInReview, "", false}} {
		i := d.issue(t, CreateIssue{Status: c.status, Assignee: c.agent, ExecutionPolicy: monitor})
		if got := len(DueMonitors(d.tx, at, 10)) == 1; got != c.fires {
			t.Errorf("%s of %q: due %v, want %v", c.status, c.agent, got, c.fires)
		}
		if !c.fires {
			wantRefusal(t, d.do(board, "issue.monitor", CheckMonitor{Issue: i.ID}, nil), ledger.Unprocessable, "")
		}
		d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
		if due := DueMonitors(d.tx, at, 10); len(due) != 0 {
			t.Fatalf("%s: a deleted issue is due: %v", c.status, due)
		}
	}
	// The last attempt hands the issue to the board when its policy says so.
	i := d.issue(t, CreateIssue{Status: IssueInProgress, Assignee: ada, ExecutionPolicy: monitor})
	d.must(t, board, "issue.monitor", CheckMonitor{Issue: i.ID}, nil)
	if got := d.load(i.ID); got.Status != IssueBlocked || !strings.Contains(string(got.UnblockDescriptor), "issue_monitor_exhausted") {
		t.Errorf("%s, %s", got.Status, got.UnblockDescriptor)
	}
	// An agent does not wait for ever; a person may begin anew.
	who := d.onIssue(t, ada, d.issue(t, CreateIssue{Status: IssueTodo, Assignee: ada}))
	mine := string(d.load(runOfDesk(d, who).Context.IssueID).ID)
	again := json.RawMessage(strings.Replace(string(monitor), `,"recoveryPolicy":"escalate_to_board"`, "", 1))
	d.must(t, who, "issue.update", UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil)
	d.must(t, who, "issue.monitor", CheckMonitor{Issue: mine}, nil)
	wantRefusal(t, d.do(who, "issue.update", UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil), ledger.Unprocessable, "")
	d.must(t, board, "issue.update", UpdateIssue{Issue: mine, ExecutionPolicy: again}, nil)
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: mine, ExecutionPolicy: json.RawMessage(`{"monitor":{}}`)}, nil), ledger.Invalid, "")
}

// A monitor that ends in vain makes one issue in which somebody finds out why, for
// which the first waits; it is not blocked, and goes on when the other is done.
func TestAMonitorInVainMakesARecoveryIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	at := TimeOf(d.now.Add(time.Hour))
	policy := func(more string) json.RawMessage {
		return json.RawMessage(`{"monitor":{"nextCheckAt":"` + at.String() + `","notes":"the build",` + more + `"recoveryPolicy":"create_recovery_issue"}}`)
	}
	for name, more := range map[string]string{"attempts": `"maxAttempts":1,`, "time": `"timeoutAt":"` + at.String() + `",`} {
		i := d.issue(t, CreateIssue{Status: IssueInProgress, Assignee: ada, BillingCode: "BC-9", ExecutionPolicy: policy(more)})
		now := d.now
		d.now = at.Std()
		if err := d.byLeader("issue.monitor", CheckMonitor{Issue: i.ID, Due: at}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.now = now
		got := d.load(i.ID)
		if got.Status != IssueInProgress || len(got.BlockedBy) != 1 || PathOf(d.tx, got, at) != "blockers" {
			t.Fatalf("%s: %s waits for %v by %q", name, got.Status, got.BlockedBy, PathOf(d.tx, got, at))
		}
		made := d.load(got.BlockedBy[0])
		if made.Parent != i.ID || made.Assignee != ada || made.Status != IssueTodo || made.Priority != PriorityHigh || made.BillingCode != "BC-9" || made.Depth != i.Depth+1 ||
			made.OriginKind != "stranded_issue_recovery" || made.OriginID != i.ID || !strings.Contains(made.Description, "the build") {
			t.Errorf("%s: made %+v", name, made)
		}
		if w := d.wakesOf(ada); w[0] != "issue_assigned" {
			t.Errorf("%s: wakes %v", name, w)
		}
		// While it is open no second is made.
		d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, ExecutionPolicy: policy(more + `"serviceName":"again",`)}, nil)
		d.must(t, board, "issue.monitor", CheckMonitor{Issue: i.ID}, nil)
		if again := d.load(i.ID); len(again.BlockedBy) != 1 || name == "attempts" && again.BlockedBy[0] != made.ID {
			t.Errorf("%s: waits for %v after a second time", name, again.BlockedBy)
		}
		d.must(t, board, "issue.update", UpdateIssue{Issue: made.ID, Status: IssueDone}, nil)
		if w := d.wakesOf(ada); !slices.Contains(w[:2], "issue_blockers_resolved") {
			t.Errorf("%s: wakes %v after it was done", name, w)
		}
	}
	// Where there is no room for a part the board decides.
	deep := d.issue(t, CreateIssue{Status: IssueInProgress, Assignee: ada, Depth: MaxRequestDepth, ExecutionPolicy: policy(`"maxAttempts":1,`)})
	d.must(t, board, "issue.monitor", CheckMonitor{Issue: deep.ID}, nil)
	if got := d.load(deep.ID); got.Status != IssueBlocked || len(got.BlockedBy) != 0 {
		t.Errorf("%s, waits for %v", got.Status, got.BlockedBy)
	}
}

func runOfDesk(d *desk, who as) Run { r, _ := runs.Get(d.tx, d.company, who.run); return r }

func TestAWatchdogIsWokenWhenNobodyDecides(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, wendy, other := d.hired("Ada"), d.hired("Wendy"), d.hired("Otto")
	top := d.issue(t, CreateIssue{Status: IssueTodo})
	i := d.issue(t, CreateIssue{Status: IssueBacklog, Assignee: ada, Parent: top.ID})
	d.must(t, board, "watchdog.set", SetWatchdog{ID: d.id(), Issue: top.ID, Agent: wendy, Instructions: new("Ask the board")}, nil)
	d.must(t, board, "watchdog.set", SetWatchdog{ID: d.id(), Issue: i.ID, Agent: ada}, nil)
	at := d.onIssue(t, ada, d.load(i.ID))
	r := runOfDesk(d, at)
	r.Followups = MaxFollowups // it is the one that asks again
	runs.Put(d.tx, d.company, r.ID, r)
	d.endRun(at.run)
	if got := d.load(i.ID); got.Status != IssueBlocked || got.Recovery == "" {
		t.Fatalf("the issue is %s", got.Status)
	}
	if w := d.wakesOf(wendy); len(w) != 1 || w[0] != "issue_watchdog" {
		t.Errorf("wakes of the watchdog: %v", w)
	}
	u := WakeupsOf(d.tx, d.company, wendy)[0]
	for _, want := range []string{i.ID, top.ID, "missing_disposition", "Ask the board"} {
		if !strings.Contains(string(u.Payload), want) {
			t.Errorf("payload %s has no %s", u.Payload, want)
		}
	}
	for _, reason := range d.wakesOf(ada) {
		if reason == "issue_watchdog" {
			t.Error("an agent is alarmed because of itself")
		}
	}
	if w, _ := WatchdogOf(d.tx, d.company, top.ID); w.Wakes != 1 || w.LastWakeAt == 0 {
		t.Errorf("watchdog %+v", w)
	}
	// Who may: an agent names itself or whom it manages, on what it may change.
	own := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: other})
	who := d.onIssue(t, other, own)
	wantRefusal(t, d.do(who, "watchdog.set", SetWatchdog{ID: d.id(), Issue: own.ID, Agent: wendy}, nil), ledger.Forbidden, "")
	d.must(t, who, "watchdog.set", SetWatchdog{ID: d.id(), Issue: own.ID, Agent: other}, nil)
	wantRefusal(t, d.do(board, "watchdog.set", SetWatchdog{ID: d.id(), Issue: own.ID, Agent: uid(99)}, nil), ledger.NotFound, "")
	wantRefusal(t, d.do(board, "watchdog.set", SetWatchdog{ID: d.id(), Issue: uid(98), Agent: wendy}, nil), ledger.NotFound, "")
	// It goes with its issue, and with its agent.
	d.must(t, board, "watchdog.remove", RemoveWatchdog{Issue: i.ID}, nil)
	wantRefusal(t, d.do(board, "watchdog.remove", RemoveWatchdog{Issue: i.ID}, nil), ledger.NotFound, "")
	d.must(t, board, "issue.delete", DeleteIssue{Issue: own.ID}, nil)
	d.must(t, board, "agent.delete", ChangeAgent{Agent: wendy}, nil)
	if n := d.count("watchdog") + d.count("watchdog-agent"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestWhatIsThoughtOfASilentRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, boss, other := d.hired("Ada"), d.hired("Boss"), d.hired("Otto")
	a, _ := agents.Get(d.tx, d.company, ada)
	next := a
	next.ReportsTo = NullText(boss)
	agents.Put(d.tx, next.Company, next.ID, next)
	run := d.run(ada)
	soon := TimeOf(d.now.Add(time.Hour))
	for _, c := range []struct {
		who  as
		p    DecideWatch
		code ledger.Code
	}{
		{board, DecideWatch{Run: run, Decision: "snooze"}, ledger.Unprocessable},
		{board, DecideWatch{Run: run, Decision: "shrug"}, ledger.Invalid},
		{board, DecideWatch{Run: uid(77), Decision: "continue"}, ledger.NotFound},
		{board, DecideWatch{Run: run, Decision: "continue", Issue: uid(78)}, ledger.NotFound},
		{as{ada, run}, DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden},
		{as{other, d.run(other)}, DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden},
		{as{boss, ""}, DecideWatch{Run: run, Decision: "continue"}, ledger.Forbidden},
	} {
		wantRefusal(t, d.do(c.who, "run.watch", c.p, nil), c.code, "")
	}
	var got WatchDecision
	d.must(t, board, "run.watch", DecideWatch{ID: d.id(), Run: run, Decision: "snooze", Until: soon, Reason: "a long build"}, &got)
	if got.Until != soon || got.ByUser != "local-board" || runOfDesk(d, as{ada, run}).Watch.Until != soon {
		t.Errorf("decision %+v", got)
	}
	d.must(t, as{boss, d.run(boss)}, "run.watch", DecideWatch{ID: d.id(), Run: run, Decision: "continue"}, &got)
	if got.ByAgent != NullText(boss) || got.Until != 0 {
		t.Errorf("decision %+v", got)
	}
	d.endRun(run)
	wantRefusal(t, d.do(board, "run.watch", DecideWatch{ID: d.id(), Run: run, Decision: "continue"}, nil), ledger.Conflict, "")
}

func TestCommentsThatWaitCanBeTakenBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Status: IssueBacklog, Assignee: ada})
	who := d.onIssue(t, ada, i)
	say := func(text string) string {
		id := d.id()
		d.must(t, board, "comment.create", CreateComment{ID: id, Issue: i.ID, Body: text}, nil)
		return id
	}
	if _, ok := QueueOf(d.tx, d.load(i.ID)); ok {
		t.Fatal("a queue without comments")
	}
	one, two := say("one"), say("two")
	queue := func() CommentQueue {
		t.Helper()
		q, ok := QueueOf(d.tx, d.load(i.ID))
		if !ok {
			t.Fatal("no queue")
		}
		return q
	}
	q := queue()
	if len(q.Entries) != 2 || q.Entries[0].ID != one || q.Target != who.run {
		t.Fatalf("queue %+v", q)
	}
	p := ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision()}
	edit := p
	edit.Comment, edit.Body = one, "ONE"
	d.must(t, board, "queue.edit", edit, nil)
	if cm, _ := CommentOf(d.tx, d.company, i.ID, one); cm.Body != "ONE" {
		t.Errorf("comment %q", cm.Body)
	}
	order := p
	order.Order = []string{two, one}
	wantRefusal(t, d.do(board, "queue.order", order, nil), ledger.Conflict, "")
	order.Revision = queue().Revision()
	order.Order = []string{two, two}
	wantRefusal(t, d.do(board, "queue.order", order, nil), ledger.Unprocessable, "")
	order.Order = []string{two, one}
	d.must(t, board, "queue.order", order, nil)
	if q = queue(); q.Entries[0].ID != two {
		t.Errorf("order %v", q.Entries)
	}
	drop := ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision(), Comment: uid(55)}
	wantRefusal(t, d.do(board, "queue.drop", drop, nil), ledger.NotFound, "")
	drop.Comment = two
	d.must(t, board, "queue.drop", drop, nil)
	q = queue()
	// What was sent for another run at work is refused; this one ends it.
	stop := ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision()}
	wantRefusal(t, d.do(board, "queue.interrupt", stop, nil), ledger.Conflict, "")
	stop.Target = who.run
	d.must(t, board, "queue.interrupt", stop, nil)
	if r := runOfDesk(d, who); r.Status != RunCancelled {
		t.Errorf("the run at work is %s", r.Status)
	}
	q = queue()
	if q.Target != "" {
		t.Errorf("target %q", q.Target)
	}
	// Without anything left to tell the run does not begin.
	d.must(t, board, "queue.drop", ChangeQueue{Issue: i.ID, Queue: q.Run.ID, Revision: q.Revision(), Comment: one}, nil)
	if r, _ := runs.Get(d.tx, d.company, q.Run.ID); r.Status != RunCancelled {
		t.Errorf("the run that waited is %s", r.Status)
	}
	wantRefusal(t, d.do(board, "queue.drop", drop, nil), ledger.Conflict, "")
}

func TestRetryNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hired("Ada")
	i := d.issue(t, CreateIssue{Status: IssueBacklog, Assignee: ada})
	who := d.onIssue(t, ada, i)
	wantRefusal(t, d.do(board, "run.retry_now", RetryNow{Issue: i.ID}, nil), ledger.Conflict, "")
	c := d.context(board, "", nil)
	endRun(c, runOfDesk(d, who), Outcome{Status: RunFailed, ErrorCode: "upstream", Transient: true})
	r, ok := RetryOf(d.tx, d.load(i.ID))
	if !ok || r.ScheduledRetryAt <= TimeOf(d.now) {
		t.Fatalf("retry %v %+v", ok, r)
	}
	var got Run
	d.must(t, board, "run.retry_now", RetryNow{Issue: i.ID}, &got)
	if got.ID != r.ID || got.ScheduledRetryAt > TimeOf(d.now) || len(QueuedRuns(d.tx, TimeOf(d.now), "", 10, 10)) != 1 {
		t.Errorf("retry at %s, now %s", got.ScheduledRetryAt, TimeOf(d.now))
	}
}
