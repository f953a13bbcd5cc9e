package company

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// void is the state below a fresh Tx: nothing.
type void struct{}

func (void) Get([]byte) ([]byte, bool) { return nil, false }
func (void) Scan([]byte, []byte, bool) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

// A desk is a company in memory on which commands are carried out as apply
// does: each on a child of the state, kept when it succeeds, and with the next
// height and a clock that goes on by a second.
type desk struct {
	tx      *ledger.Tx
	mux     ledger.Mux
	company string
	now     time.Time
	height  uint64
	ids     int
	last    []ledger.Change // of the last command that succeeded
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{tx: ledger.NewTx(void{}), mux: Handlers(), company: uid(1), now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	companies.Put(d.tx, d.company, d.company, Company{ID: d.company, Name: "Acme", Status: "active", IssuePrefix: "ACM", DefaultResponsibleUser: "local-board"})
	return d
}

// uid returns a UUID that is made of n.
func uid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func (d *desk) id() string { d.ids++; return uid(1_000 + d.ids) }

// agent adds an agent; run gives it a run that is running.
func (d *desk) agent(name string) string {
	id := d.id()
	agents.Put(d.tx, d.company, id, Agent{ID: id, Company: d.company, Name: name, Status: AgentIdle})
	return id
}

func (d *desk) run(agent string) string {
	id := d.id()
	d.height++
	r := Run{ID: id, Company: d.company, Agent: agent, Status: RunRunning, Source: WakeOnDemand, Queue: d.height, CreatedAt: TimeOf(d.now), StartedAt: TimeOf(d.now)}
	d.tx.Set(runCompanyKey(id), []byte(d.company))
	d.storeRun(r)
	return id
}

// storeRun writes a live run with the keys by which it is found.
func (d *desk) storeRun(r Run) {
	runsLive.Add(d.tx, r.Company, r.Agent, r.ID)
	if r.Session != 0 {
		d.tx.Set(sessionKey(r.Session, r.ID), []byte(r.Company))
	}
	runs.Put(d.tx, r.Company, r.ID, r)
}

func (d *desk) endRun(run string) {
	c := d.context(as{}, "", nil)
	r, _ := runs.Get(d.tx, d.company, run)
	endRun(c, r, Outcome{Status: RunSucceeded})
}

// as is who speaks: the board, or an agent under a run.
type as struct{ agent, run string }

var board = as{}

func (d *desk) context(who as, kind string, payload any) *ledger.Context {
	d.height++
	d.now = d.now.Add(time.Second)
	cmd := &ledger.Command{Kind: kind, Company: d.company, Actor: ledger.Actor{Type: "user", ID: "local-board"}, Run: who.run}
	if who.agent != "" {
		cmd.Actor = ledger.Actor{Type: "agent", ID: who.agent}
	}
	if payload != nil {
		cmd.Payload = ledger.Marshal(payload)
	}
	return &ledger.Context{Tx: d.tx, Now: d.now, Height: d.height, Cmd: cmd}
}

// do carries out a command and decodes what it returns into out, if not nil.
func (d *desk) do(who as, kind string, payload, out any) error {
	c := d.context(who, kind, payload)
	c.Tx = d.tx.Child()
	v, err := d.mux[kind](c)
	if err != nil {
		return err
	}
	c.Tx.Merge()
	d.last = c.Changes()
	if out == nil {
		return nil
	}
	reflect.ValueOf(out).Elem().SetZero() // absent keys would keep what was there
	return ledger.Unmarshal(v, out)
}

func (d *desk) must(t testing.TB, who as, kind string, payload, out any) {
	t.Helper()
	if err := d.do(who, kind, payload, out); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
}

// issue creates an issue by the board and returns it.
func (d *desk) issue(t testing.TB, p CreateIssue) Issue {
	t.Helper()
	p.ID = d.id()
	if p.Title == "" {
		p.Title = "Task " + p.ID
	}
	var r IssueResult
	d.must(t, board, "issue.create", p, &r)
	return r.Issue
}

func (d *desk) load(id string) Issue { i, _ := issues.Get(d.tx, d.company, id); return i }

// refused returns the refusal of err, or fails.
func refused(t testing.TB, err error) *ledger.Refusal {
	t.Helper()
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

func wantRefusal(t testing.TB, err error, code ledger.Code, message string) *ledger.Refusal {
	t.Helper()
	r := refused(t, err)
	if r.Code != code || message != "" && r.Message != message {
		t.Fatalf("got %s %q, want %s %q", r.Code, r.Message, code, message)
	}
	return r
}

func detail(t testing.TB, r *ledger.Refusal) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(r.Detail, &m); err != nil {
		t.Fatalf("details %q: %v", r.Detail, err)
	}
	return m
}

// TestMove goes through every pair of statuses, for an agent and for the board.
func TestMove(t *testing.T) {
	t.Parallel()
	agent := map[IssueStatus]string{
		IssueBacklog:    "todo cancelled",
		IssueTodo:       "in_progress blocked cancelled",
		IssueInProgress: "in_review blocked done cancelled",
		IssueInReview:   "in_progress done cancelled",
		IssueBlocked:    "todo in_progress cancelled",
		IssueDone:       "",
		IssueCancelled:  "",
	}
	boardMoves := map[IssueStatus]string{
		IssueBacklog:    "todo in_progress in_review done blocked cancelled",
		IssueTodo:       "backlog in_progress in_review done blocked cancelled",
		IssueInProgress: "backlog todo in_review done blocked cancelled",
		IssueInReview:   "backlog todo in_progress done blocked cancelled",
		IssueBlocked:    "backlog todo in_progress in_review done cancelled",
		IssueDone:       "todo backlog",
		IssueCancelled:  "todo backlog",
	}
	for _, from := range IssueStatuses {
		for _, to := range IssueStatuses {
			for _, byBoard := range []bool{false, true} {
				table := agent
				if byBoard {
					table = boardMoves
				}
				want := from == to || slices.Contains(splitWords(table[from]), string(to))
				i := Issue{ID: uid(7), Status: from, Assignee: "a", CheckoutRun: "r", Fence: 3, StatusVersion: 5}
				next, override, err := i.Move(Move{To: to, Board: byBoard, Routable: true, Now: 99})
				if (err == nil) != want {
					t.Errorf("%s to %s, board %v: got error %v, want allowed %v", from, to, byBoard, err, want)
					continue
				}
				if err != nil {
					m := detail(t, wantRefusal(t, err, ledger.Conflict, ""))
					if m["status"] != string(from) || len(m["allowedStatuses"].([]any)) != len(splitWords(table[from])) {
						t.Errorf("%s to %s: details %v", from, to, m)
					}
					continue
				}
				inTable := from == to || slices.Contains(splitWords(agent[from]), string(to))
				if override == inTable {
					t.Errorf("%s to %s: got override %v", from, to, override)
				}
				checkSideEffects(t, i, next)
			}
		}
	}
}

func splitWords(s string) []string {
	var out []string
	for len(s) > 0 {
		n := slices.Index([]byte(s), ' ')
		if n < 0 {
			return append(out, s)
		}
		out, s = append(out, s[:n]), s[n+1:]
	}
	return out
}

func checkSideEffects(t *testing.T, i, next Issue) {
	t.Helper()
	if i.Status == next.Status {
		if next.StatusVersion != i.StatusVersion || !next.Held() {
			t.Errorf("%s stays: got version %d, held %v", i.Status, next.StatusVersion, next.Held())
		}
		return
	}
	if next.StatusVersion != i.StatusVersion+1 {
		t.Errorf("%s to %s: version %d", i.Status, next.Status, next.StatusVersion)
	}
	for _, f := range []struct {
		status IssueStatus
		at     Time
	}{{IssueInProgress, next.StartedAt}, {IssueDone, next.CompletedAt}, {IssueCancelled, next.CancelledAt}, {IssueBlocked, next.BlockedAt}} {
		want := Time(0)
		if next.Status == f.status {
			want = 99
		}
		if f.at != want {
			t.Errorf("%s to %s: time of %s is %d, want %d", i.Status, next.Status, f.status, f.at, want)
		}
	}
	if next.Status != IssueInProgress && next.Held() {
		t.Errorf("%s to %s: still held", i.Status, next.Status)
	}
}

func TestStartedAtIsSetOnce(t *testing.T) {
	t.Parallel()
	i := Issue{Status: IssueTodo, Assignee: "a"}
	for now := Time(1); now < 10; now++ {
		to := IssueInProgress
		if i.Status == IssueInProgress {
			to = IssueInReview
		}
		var err error
		if i, _, err = i.Move(Move{To: to, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	if i.StartedAt != 1 {
		t.Errorf("got startedAt %d, want 1", i.StartedAt)
	}
}

func TestMoveNeedsAssigneeAndReason(t *testing.T) {
	t.Parallel()
	_, _, err := Issue{Status: IssueTodo}.Move(Move{To: IssueInProgress, Board: true})
	wantRefusal(t, err, ledger.Unprocessable, "in_progress issues require an assignee")
	_, _, err = Issue{Status: IssueTodo}.Move(Move{To: IssueBlocked})
	wantRefusal(t, err, ledger.Unprocessable, "Entering blocked requires unresolved blockers, a pending interaction/approval, or unblockDescriptor")
}

func TestCreateIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	first := d.issue(t, CreateIssue{Title: "Design gripper", Description: "Make one"})
	if first.Identifier != "ACM-1" || first.Status != IssueBacklog || first.Priority != PriorityMedium || first.CreatedUser != "local-board" {
		t.Errorf("got %+v", first)
	}
	if got, ok := FindIssue(d.tx, "acm-1"); !ok || got.ID != first.ID {
		t.Errorf("acm-1 is %v %v", got.ID, ok)
	}
	if got, ok := FindIssue(d.tx, first.ID); !ok || got.Number != 1 {
		t.Errorf("by ID: %v %v", got, ok)
	}
	if assigned := d.issue(t, CreateIssue{Assignee: ada}); assigned.Status != IssueTodo || assigned.Identifier != "ACM-2" {
		t.Errorf("assigned issue: got %s %s", assigned.Identifier, assigned.Status)
	}
	child := d.issue(t, CreateIssue{Parent: first.ID, Child: true})
	if child.Depth != 1 || d.last[0].Action != "issue.child_created" {
		t.Errorf("child: depth %d, change %s", child.Depth, d.last[0].Action)
	}
	area, goal := d.id(), d.id()
	projects.Put(d.tx, d.company, area, Project{ID: area, Goal: goal, Workspace: uid(8)})
	workspaces.Put(d.tx, d.company, uid(8), Workspace{ID: uid(8), Company: d.company, Project: area})
	storeGoal(d.tx, Goal{ID: goal, Company: d.company, Level: "company"})
	if i := d.issue(t, CreateIssue{Project: area}); i.Goal != goal || i.Workspace != uid(8) {
		t.Errorf("of a project: goal %q, workspace %q", i.Goal, i.Workspace)
	}
	if i := d.issue(t, CreateIssue{}); i.Goal != goal {
		t.Errorf("of no project: goal %q", i.Goal)
	}
	for name, p := range map[string]CreateIssue{
		"Agent not found":        {Assignee: uid(5)},
		"Project not found":      {Project: uid(5)},
		"Goal not found":         {Goal: uid(5)},
		"Parent issue not found": {Parent: uid(5)},
	} {
		p.ID, p.Title = d.id(), name
		wantRefusal(t, d.do(board, "issue.create", p, nil), ledger.NotFound, name)
	}
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "ip", Status: IssueInProgress}, nil), ledger.Unprocessable, "in_progress issues require an assignee")
	wantRefusal(t, d.do(board, "issue.create", CreateIssue{ID: d.id(), Title: "b", Status: IssueBlocked}, nil), ledger.Unprocessable, "")
	if next := d.issue(t, CreateIssue{}); next.Identifier != "ACM-6" {
		t.Errorf("refused creations took numbers: next is %s", next.Identifier)
	}
}

func TestDuplicateGuard(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := CreateIssue{Title: "Design gripper", Description: "x"}
	first := d.issue(t, p)
	again := func(p CreateIssue) IssueResult {
		t.Helper()
		p.ID = d.id()
		var r IssueResult
		d.must(t, board, "issue.create", p, &r)
		return r
	}
	if r := again(p); r.Issue.ID != first.ID || r.Duplicate != "recent_open_title" {
		t.Errorf("got %s %q", r.Issue.ID, r.Duplicate)
	}
	other := p
	other.Description = "y"
	if r := again(other); r.Duplicate != "" {
		t.Errorf("another text: %q", r.Duplicate)
	}
	other = p
	other.AllowDuplicate = true
	second := again(other)
	if second.Duplicate != "" {
		t.Errorf("allowed duplicate: %q", second.Duplicate)
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: second.Issue.ID, Status: IssueDone}, nil)
	if r := again(p); r.Duplicate != "" {
		t.Errorf("the open one is done, yet %q", r.Duplicate)
	}
	d.now = d.now.Add(DuplicateWindow + time.Second)
	if r := again(p); r.Duplicate != "" {
		t.Errorf("after the window: %q", r.Duplicate)
	}
	keyed := CreateIssue{Title: "Idem", RequestKey: "idem-1"}
	one := again(keyed)
	keyed.Title = "Idem changed"
	if r := again(keyed); r.Issue.ID != one.Issue.ID || r.Duplicate != "idempotency_key" || r.Issue.Title != "Idem" {
		t.Errorf("replay: %+v", r)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	a, b := d.issue(t, CreateIssue{}), d.issue(t, CreateIssue{})
	waiting := d.issue(t, CreateIssue{Status: IssueBlocked, BlockedBy: []string{a.ID, b.ID}, Assignee: ada})
	claim := CheckOutIssue{Issue: waiting.ID, Agent: ada, Expected: []IssueStatus{IssueBlocked, IssueTodo}}
	r := wantRefusal(t, d.do(board, "issue.checkout", claim, nil), ledger.Unprocessable, "Issue is blocked by unresolved blockers")
	if m := detail(t, r); len(m["unresolvedBlockers"].([]any)) != 2 || len(m["unresolvedBlockerIssueIds"].([]any)) != 2 {
		t.Errorf("details %v", m)
	}
	for _, set := range [][]string{{a.ID}, {waiting.ID}} {
		err := d.do(board, "issue.update", UpdateIssue{Issue: a.ID, BlockedBy: &set}, nil)
		wantRefusal(t, err, ledger.Unprocessable, "")
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: a.ID, Status: IssueDone}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: b.ID, Status: IssueCancelled}, nil)
	wantRefusal(t, d.do(board, "issue.checkout", claim, nil), ledger.Unprocessable, "")
	none := []string{}
	d.must(t, board, "issue.update", UpdateIssue{Issue: waiting.ID, BlockedBy: &none}, nil)
	d.must(t, board, "issue.checkout", claim, nil)
}

func TestUpdateIssue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	i := d.issue(t, CreateIssue{Assignee: ada})
	empty, title := "", "New"
	var r IssueResult
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Title: &title, Priority: PriorityHigh}, &r)
	if string(r.Changes) != fmt.Sprintf(`{"title":{"from":%q,"to":"New"},"priority":{"from":"medium","to":"high"}}`, i.Title) {
		t.Errorf("changes: %s", r.Changes)
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID}, &r)
	if string(r.Changes) != "{}" || r.Issue.UpdatedAt != d.load(i.ID).UpdatedAt || len(d.last) != 0 {
		t.Errorf("nothing changed, yet %s %v", r.Changes, d.last)
	}
	d.must(t, board, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: ada, Expected: []IssueStatus{IssueTodo}}, nil)
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Assignee: &empty}, nil), ledger.Unprocessable, "in_progress issues require an assignee")
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Assignee: &bob}, &r)
	if r.Issue.Assignee != bob || r.Issue.Held() {
		t.Errorf("reassigned: %s, held %v", r.Issue.Assignee, r.Issue.Held())
	}
	user := "local-board"
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, AssigneeUser: &user}, &r)
	if r.Issue.Assignee != "" || r.Issue.AssigneeUser != user {
		t.Errorf("a user took over: %q %q", r.Issue.Assignee, r.Issue.AssigneeUser)
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueDone}, nil)
	if err := d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueInProgress}, nil); err == nil {
		t.Error("done to in_progress was allowed")
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Status: IssueTodo}, nil)
	if got := string(d.last[0].Details); !json.Valid([]byte(got)) || !containsFold(got, `"override":true`) {
		t.Errorf("a reopening is not noted as an override: %s", got)
	}
	grandchild := d.issue(t, CreateIssue{Parent: d.issue(t, CreateIssue{Parent: i.ID}).ID})
	wantRefusal(t, d.do(board, "issue.update", UpdateIssue{Issue: i.ID, Parent: &grandchild.ID}, nil), ledger.Unprocessable, "Issue parent would create cycle")
}

// An agent that lowered how deep its task was delegated could delegate without end.
func TestAnAgentOnlyRaisesTheDepthOfItsTask(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	i, asAda := d.issue(t, CreateIssue{Assignee: ada, Depth: 5}), as{ada, d.run(ada)}
	child := d.issue(t, CreateIssue{Parent: i.ID})
	for _, c := range []struct {
		who  as
		want uint64
		no   ledger.Code
	}{{asAda, 4, ledger.Forbidden}, {asAda, 7, ""}, {board, 2, ""}, {board, MaxRequestDepth + 1, ledger.Unprocessable}} {
		err := d.do(c.who, "issue.update", UpdateIssue{Issue: i.ID, Depth: &c.want}, nil)
		if c.no != "" {
			wantRefusal(t, err, c.no, "")
			continue
		}
		if got, below := d.load(i.ID).Depth, d.load(child.ID).Depth; err != nil || got != c.want || below != c.want+1 {
			t.Errorf("asked for %d: %v, %d and %d below", c.want, err, got, below)
		}
	}
}

func TestDeleteIssueCascades(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must(t, board, "label.create", CreateLabel{ID: uid(77), Name: "bug", Color: "#ff0000"}, nil)
	top := d.issue(t, CreateIssue{})
	i := d.issue(t, CreateIssue{Parent: top.ID, Labels: []string{uid(77)}, RequestKey: "k"})
	child := d.issue(t, CreateIssue{Parent: i.ID})
	waiting := d.issue(t, CreateIssue{BlockedBy: []string{i.ID}})
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: i.ID, Body: "hi", ClientRequest: uid(9)}, nil)
	d.must(t, board, "issue.read", MarkIssue{Issue: i.ID}, nil)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	if len(d.last) != 3 {
		t.Errorf("got %d changes, want one for each of child, waiting and the issue", len(d.last))
	}
	if got := d.load(child.ID); got.Parent != top.ID || got.Depth != 1 {
		t.Errorf("child: parent %q, depth %d", got.Parent, got.Depth)
	}
	if got := d.load(waiting.ID); len(got.BlockedBy) != 0 {
		t.Errorf("still waits for %v", got.BlockedBy)
	}
	for k, v := range d.tx.Writes() {
		if v != nil && containsFold(k+string(v), i.ID) {
			t.Errorf("%q is left", k)
		}
	}
}

func TestListIssues(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	low := d.issue(t, CreateIssue{Title: "low", Priority: PriorityLow, Assignee: ada})
	high := d.issue(t, CreateIssue{Title: "high gripper", Priority: PriorityHigh, Status: IssueTodo})
	old := d.issue(t, CreateIssue{Title: "old", Priority: PriorityMedium, Parent: high.ID})
	hidden := d.issue(t, CreateIssue{Title: "hidden"})
	at := TimeOf(d.now)
	d.must(t, board, "issue.update", UpdateIssue{Issue: hidden.ID, HiddenAt: &at}, nil)
	since := TimeOf(d.now)
	d.must(t, board, "comment.create", CreateComment{ID: d.id(), Issue: low.ID, Body: "x"}, nil)
	for name, tc := range map[string]struct {
		q    IssueQuery
		want []string
	}{
		"default":        {IssueQuery{}, []string{high.ID, old.ID, low.ID}},
		"status":         {IssueQuery{Statuses: []IssueStatus{IssueTodo}}, []string{high.ID, low.ID}},
		"assignee":       {IssueQuery{Assignee: ada}, []string{low.ID}},
		"parent":         {IssueQuery{Parent: high.ID}, []string{old.ID}},
		"text":           {IssueQuery{Text: "GRIPPER"}, []string{high.ID}},
		"since":          {IssueQuery{UpdatedSince: since + 1}, []string{low.ID}},
		"created":        {IssueQuery{Sort: SortCreated}, []string{low.ID, high.ID, old.ID}},
		"updated":        {IssueQuery{Sort: SortUpdated, Descending: true}, []string{low.ID, old.ID, high.ID}},
		"title":          {IssueQuery{Sort: SortTitle}, []string{high.ID, low.ID, old.ID}},
		"limit, offset":  {IssueQuery{Limit: 1, Offset: 1}, []string{old.ID}},
		"far offset":     {IssueQuery{Offset: 50}, nil},
		"with hidden":    {IssueQuery{Hidden: true, Text: "hidden"}, []string{hidden.ID}},
		"nothing":        {IssueQuery{Statuses: []IssueStatus{IssueDone}}, nil},
		"status, parent": {IssueQuery{Statuses: []IssueStatus{IssueTodo}, Parent: high.ID}, nil},
	} {
		var got []string
		for _, i := range ListIssues(d.tx, d.company, tc.q) {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	if n := CountIssues(d.tx, d.company); n[IssueTodo] != 2 || n[IssueBacklog] != 1 {
		t.Errorf("counts: %v", n)
	}
	if f := Search(d.tx, d.company, "gripper high", 0, 0); f.Total != 1 || f.Hits[0].Issue.ID != high.ID || f.Hits[0].Snippets[0].Text != "high gripper" {
		t.Errorf("search: %+v", f)
	}
}

// TestIndexesFollowRows makes many random-looking changes and then compares
// every index with what the rows say.
func TestIndexesFollowRows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	run := d.run(ada)
	var ids []string
	for n := range 40 {
		i := d.issue(t, CreateIssue{Assignee: []string{"", ada, bob}[n%3], Priority: Priorities[n%4]})
		ids = append(ids, i.ID)
	}
	for n, id := range ids {
		to := IssueStatuses[n%len(IssueStatuses)]
		_ = d.do(board, "issue.update", UpdateIssue{Issue: id, Status: to, UnblockDescriptor: []byte(`{"owner":"board"}`)}, nil)
		_ = d.do(as{ada, run}, "issue.checkout", CheckOutIssue{Issue: id, Agent: ada, Expected: IssueStatuses}, nil)
		if n%5 == 0 {
			_ = d.do(board, "issue.release", ReleaseIssue{Issue: id}, nil)
		}
	}
	d.endRun(run)
	for i := range issuesIn(d.tx, d.company, slices.Values(ids)) {
		if i.Held() {
			t.Errorf("%s is held after its run", i.ID)
		}
		for _, s := range IssueStatuses {
			var at []issueSort
			prefix := ledger.Key("c", d.company, "issue-status", string(s), "")
			for k, v := range d.tx.Prefix(prefix) {
				if sort, id, ok := parseIssueSort(k[len(prefix):], v); ok && id == i.ID {
					at = append(at, sort)
				}
			}
			if (len(at) == 1) != (s == i.Status) || len(at) > 1 || len(at) == 1 && at[0] != i.sort() {
				t.Errorf("%s in %s: under %s is %v, want %v", i.ID, i.Status, s, at, i.sort())
			}
		}
		for _, a := range []string{ada, bob} {
			if ok := d.tx.Has(ledger.Key("c", d.company, "issue-assignee", a+"."+string(i.Status), i.ID)); ok != (i.Assignee == a) {
				t.Errorf("%s of %q: under %s is %v", i.ID, i.Assignee, a, ok)
			}
		}
	}
	for k := range d.tx.Prefix(ledger.Key("c", d.company, "issue-held", "")) {
		t.Errorf("lock is left: %s", k)
	}
}

// No issue begins in a status that there is not.
func TestAnIssueBeginsInAStatusThatThereIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := CreateIssue{ID: d.id(), Title: "x", Status: "paused"}
	wantRefusal(t, d.do(board, "issue.create", p, nil), ledger.Invalid, "")
}
