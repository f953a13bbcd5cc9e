package company_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestMove goes through every pair of statuses, for an agent and for the board.
func TestMove(t *testing.T) {
	t.Parallel()
	agent := map[entity.IssueStatus]string{
		entity.IssueBacklog:    "todo cancelled",
		entity.IssueTodo:       "in_progress blocked cancelled",
		entity.IssueInProgress: "in_review blocked done cancelled",
		entity.IssueInReview:   "in_progress done cancelled",
		entity.IssueBlocked:    "todo in_progress cancelled",
		entity.IssueDone:       "",
		entity.IssueCancelled:  "",
	}
	boardMoves := map[entity.IssueStatus]string{
		entity.IssueBacklog:    "todo in_progress in_review done blocked cancelled",
		entity.IssueTodo:       "backlog in_progress in_review done blocked cancelled",
		entity.IssueInProgress: "backlog todo in_review done blocked cancelled",
		entity.IssueInReview:   "backlog todo in_progress done blocked cancelled",
		entity.IssueBlocked:    "backlog todo in_progress in_review done cancelled",
		entity.IssueDone:       "todo backlog",
		entity.IssueCancelled:  "todo backlog",
	}
	for _, from := range entity.IssueStatuses {
		for _, to := range entity.IssueStatuses {
			for _, byBoard := range []bool{false, true} {
				table := agent
				if byBoard {
					table = boardMoves
				}
				want := from == to || slices.Contains(splitWords(table[from]), string(to))
				i := entity.Issue{ID: companytest.UID(7), Status: from, Assignee: "a", CheckoutRun: "r", Fence: 3, StatusVersion: 5}
				next, override, err := i.Move(entity.Move{To: to, Board: byBoard, Routable: true, Now: 99})
				if (err == nil) != want {
					t.Errorf("%s to %s, board %v: got error %v, want allowed %v", from, to, byBoard, err, want)
					continue
				}
				if err != nil {
					m := companytest.Detail(t, companytest.WantRefusal(t, err, ledger.Conflict,
						fmt.Sprintf("Issue cannot move from %s to %s", from, to)))
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

func checkSideEffects(t *testing.T, i, next entity.Issue) {
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
		status entity.IssueStatus
		at     core.Time
	}{{entity.IssueInProgress, next.StartedAt}, {entity.IssueDone, next.CompletedAt},
		{entity.IssueCancelled, next.CancelledAt}, {entity.IssueBlocked, next.BlockedAt}} {
		want := core.Time(0)
		if next.Status == f.status {
			want = 99
		}
		if f.at != want {
			t.Errorf("%s to %s: time of %s is %d, want %d", i.Status, next.Status, f.status, f.at, want)
		}
	}
	if next.Status != entity.IssueInProgress && next.Held() {
		t.Errorf("%s to %s: still held", i.Status, next.Status)
	}
}

func TestStartedAtIsSetOnce(t *testing.T) {
	t.Parallel()
	i := entity.Issue{Status: entity.IssueTodo, Assignee: "a"}
	for now := core.Time(1); now < 10; now++ {
		to := entity.IssueInProgress
		if i.Status == entity.IssueInProgress {
			to = entity.IssueInReview
		}
		var err error
		if i, _, err = i.Move(entity.Move{To: to, Now: now}); err != nil {
			t.Fatal(err)
		}
	}
	if i.StartedAt != 1 {
		t.Errorf("got startedAt %d, want 1", i.StartedAt)
	}
}

func TestMoveNeedsAssigneeAndReason(t *testing.T) {
	t.Parallel()
	_, _, err := entity.Issue{Status: entity.IssueTodo}.Move(entity.Move{To: entity.IssueInProgress, Board: true})
	companytest.WantRefusal(t, err, ledger.Unprocessable, "in_progress issues require an assignee")
	_, _, err = entity.Issue{Status: entity.IssueTodo}.Move(entity.Move{To: entity.IssueBlocked})
	companytest.WantRefusal(t, err, ledger.Unprocessable,
		"Entering blocked requires unresolved blockers, a pending interaction/approval, or unblockDescriptor")
}

func TestCreateIssue(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	first := d.Issue(t, company.CreateIssue{Title: "Design gripper", Description: "Make one"})
	if first.Identifier != "ACM-1" || first.Status != entity.IssueBacklog || first.Priority != entity.PriorityMedium ||
		first.CreatedUser != "local-board" {
		t.Errorf("got %+v", first)
	}
	if got, ok := entity.FindIssue(d.Tx, "acm-1"); !ok || got.ID != first.ID {
		t.Errorf("acm-1 is %v %v", got.ID, ok)
	}
	if got, ok := entity.FindIssue(d.Tx, first.ID); !ok || got.Number != 1 {
		t.Errorf("by ID: %v %v", got, ok)
	}
	if assigned := d.Issue(t, company.CreateIssue{Assignee: ada}); assigned.Status != entity.IssueTodo ||
		assigned.Identifier != "ACM-2" {
		t.Errorf("assigned issue: got %s %s", assigned.Identifier, assigned.Status)
	}
	child := d.Issue(t, company.CreateIssue{Parent: first.ID, Child: true})
	if child.Depth != 1 || d.Last[0].Action != "issue.child_created" {
		t.Errorf("child: depth %d, change %s", child.Depth, d.Last[0].Action)
	}
	area, goal := d.ID(), d.ID()
	entity.ProjectTable.Put(d.Tx, d.Company, area, entity.Project{ID: area, Goal: goal, Workspace: companytest.UID(8)})
	place.Workspaces.Put(d.Tx, d.Company, companytest.UID(8), place.Workspace{ID: companytest.UID(8), Company: d.Company,
		Project: area})
	entity.StoreGoal(d.Tx, entity.Goal{ID: goal, Company: d.Company, Level: "company"})
	if i := d.Issue(t, company.CreateIssue{Project: area}); i.Goal != goal || i.Workspace != companytest.UID(8) {
		t.Errorf("of a project: goal %q, workspace %q", i.Goal, i.Workspace)
	}
	if i := d.Issue(t, company.CreateIssue{}); i.Goal != goal {
		t.Errorf("of no project: goal %q", i.Goal)
	}
	for name, p := range map[string]company.CreateIssue{
		"Agent not found":        {Assignee: companytest.UID(5)},
		"Project not found":      {Project: companytest.UID(5)},
		"Goal not found":         {Goal: companytest.UID(5)},
		"Parent issue not found": {Parent: companytest.UID(5)},
	} {
		p.ID, p.Title = d.ID(), name
		companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", p, nil), ledger.NotFound, name)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "ip",
		Status: entity.IssueInProgress}, nil), ledger.Unprocessable, "in_progress issues require an assignee")
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", company.CreateIssue{ID: d.ID(), Title: "b",
		Status: entity.IssueBlocked}, nil), ledger.Unprocessable,
		"Entering blocked requires unresolved blockers, a pending interaction/approval, or unblockDescriptor")
	if next := d.Issue(t, company.CreateIssue{}); next.Identifier != "ACM-6" {
		t.Errorf("refused creations took numbers: next is %s", next.Identifier)
	}
}

func TestDuplicateGuard(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	p := company.CreateIssue{Title: "Design gripper", Description: "x"}
	first := d.Issue(t, p)
	again := func(p company.CreateIssue) entity.IssueResult {
		t.Helper()
		p.ID = d.ID()
		var r entity.IssueResult
		d.Must(t, companytest.Board, "issue.create", p, &r)
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
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: second.Issue.ID,
		Status: entity.IssueDone}, nil)
	if r := again(p); r.Duplicate != "" {
		t.Errorf("the open one is done, yet %q", r.Duplicate)
	}
	d.Now = d.Now.Add(entity.DuplicateWindow + time.Second)
	if r := again(p); r.Duplicate != "" {
		t.Errorf("after the window: %q", r.Duplicate)
	}
	keyed := company.CreateIssue{Title: "Idem", RequestKey: "idem-1"}
	one := again(keyed)
	keyed.Title = "Idem changed"
	if r := again(keyed); r.Issue.ID != one.Issue.ID || r.Duplicate != "idempotency_key" || r.Issue.Title != "Idem" {
		t.Errorf("replay: %+v", r)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	a, b := d.Issue(t, company.CreateIssue{}), d.Issue(t, company.CreateIssue{})
	waiting := d.Issue(t, company.CreateIssue{Status: entity.IssueBlocked, BlockedBy: []string{a.ID, b.ID}, Assignee: ada})
	claim := company.CheckOutIssue{Issue: waiting.ID, Agent: ada, Expected: []entity.IssueStatus{entity.IssueBlocked,
		entity.IssueTodo}}
	r := companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout", claim, nil), ledger.Unprocessable,
		"Issue is blocked by unresolved blockers")
	if m := companytest.Detail(t, r); len(m["unresolvedBlockers"].([]any)) != 2 ||
		len(m["unresolvedBlockerIssueIds"].([]any)) != 2 {
		t.Errorf("details %v", m)
	}
	for by, says := range map[string]string{a.ID: "Issue cannot be blocked by itself",
		waiting.ID: "Blocking relations cannot contain cycles"} {
		err := d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: a.ID, BlockedBy: &[]string{by}}, nil)
		companytest.WantRefusal(t, err, ledger.Unprocessable, says)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: a.ID, Status: entity.IssueDone}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: b.ID, Status: entity.IssueCancelled}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.checkout", claim, nil), ledger.Unprocessable,
		"Issue is blocked by unresolved blockers")
	none := []string{}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: waiting.ID, BlockedBy: &none}, nil)
	d.Must(t, companytest.Board, "issue.checkout", claim, nil)
}

func TestUpdateIssue(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	i := d.Issue(t, company.CreateIssue{Assignee: ada})
	empty, title := "", "New"
	var r entity.IssueResult
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Title: &title,
		Priority: entity.PriorityHigh}, &r)
	if string(r.Changes) != fmt.Sprintf(`{"title":{"from":%q,"to":"New"},"priority":{"from":"medium","to":"high"}}`,
		i.Title) {
		t.Errorf("changes: %s", r.Changes)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID}, &r)
	if string(r.Changes) != "{}" || r.Issue.UpdatedAt != d.Load(i.ID).UpdatedAt || len(d.Last) != 0 {
		t.Errorf("nothing changed, yet %s %v", r.Changes, d.Last)
	}
	d.Must(t, companytest.Board, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: ada,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Assignee: &empty},
		nil), ledger.Unprocessable, "in_progress issues require an assignee")
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Assignee: &bob}, &r)
	if r.Issue.Assignee != bob || r.Issue.Held() {
		t.Errorf("reassigned: %s, held %v", r.Issue.Assignee, r.Issue.Held())
	}
	user := "local-board"
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, AssigneeUser: &user}, &r)
	if r.Issue.Assignee != "" || r.Issue.AssigneeUser != user {
		t.Errorf("a user took over: %q %q", r.Issue.Assignee, r.Issue.AssigneeUser)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueDone}, nil)
	if err := d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueInProgress},
		nil); err == nil {
		t.Error("done to in_progress was allowed")
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Status: entity.IssueTodo}, nil)
	if got := string(d.Last[0].Details); !json.Valid([]byte(got)) || !entity.ContainsFold(got, `"override":true`) {
		t.Errorf("a reopening is not noted as an override: %s", got)
	}
	grandchild := d.Issue(t, company.CreateIssue{Parent: d.Issue(t, company.CreateIssue{Parent: i.ID}).ID})
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID,
		Parent: &grandchild.ID}, nil), ledger.Unprocessable, "Issue parent would create cycle")
}

// An agent that lowered how deep its task was delegated could delegate without end.
func TestAnAgentOnlyRaisesTheDepthOfItsTask(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	i, asAda := d.Issue(t, company.CreateIssue{Assignee: ada, Depth: 5}), companytest.As{Agent: ada, Run: d.Run(ada)}
	child := d.Issue(t, company.CreateIssue{Parent: i.ID})
	for _, c := range []struct {
		who  companytest.As
		want uint64
		no   ledger.Code
		says string
	}{
		{asAda, 4, ledger.Forbidden, "Board access required"}, {asAda, 7, "", ""}, {companytest.Board, 2, "", ""},
		{companytest.Board, company.MaxRequestDepth + 1, ledger.Unprocessable, "Work can be delegated at most 64 deep"},
	} {
		err := d.Do(c.who, "issue.update", company.UpdateIssue{Issue: i.ID, Depth: &c.want}, nil)
		if c.no != "" {
			companytest.WantRefusal(t, err, c.no, c.says)
			continue
		}
		if got, below := d.Load(i.ID).Depth, d.Load(child.ID).Depth; err != nil || got != c.want || below != c.want+1 {
			t.Errorf("asked for %d: %v, %d and %d below", c.want, err, got, below)
		}
	}
}

func TestDeleteIssueCascades(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Must(t, companytest.Board, "label.create", company.CreateLabel{ID: companytest.UID(77), Name: "bug",
		Color: "#ff0000"}, nil)
	top := d.Issue(t, company.CreateIssue{})
	i := d.Issue(t, company.CreateIssue{Parent: top.ID, Labels: []string{companytest.UID(77)}, RequestKey: "k"})
	child := d.Issue(t, company.CreateIssue{Parent: i.ID})
	waiting := d.Issue(t, company.CreateIssue{BlockedBy: []string{i.ID}})
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: i.ID, Body: "hi",
		ClientRequest: companytest.UID(9)}, nil)
	d.Must(t, companytest.Board, "issue.read", inbox.MarkIssue{Issue: i.ID}, nil)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	if len(d.Last) != 3 {
		t.Errorf("got %d changes, want one for each of child, waiting and the issue", len(d.Last))
	}
	if got := d.Load(child.ID); got.Parent != top.ID || got.Depth != 1 {
		t.Errorf("child: parent %q, depth %d", got.Parent, got.Depth)
	}
	if got := d.Load(waiting.ID); len(got.BlockedBy) != 0 {
		t.Errorf("still waits for %v", got.BlockedBy)
	}
	for k, v := range d.Tx.Writes() {
		if v != nil && entity.ContainsFold(k+string(v), i.ID) {
			t.Errorf("%q is left", k)
		}
	}
}

func TestListIssues(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	low := d.Issue(t, company.CreateIssue{Title: "low", Priority: entity.PriorityLow, Assignee: ada})
	high := d.Issue(t, company.CreateIssue{Title: "high gripper", Priority: entity.PriorityHigh, Status: entity.IssueTodo})
	old := d.Issue(t, company.CreateIssue{Title: "old", Priority: entity.PriorityMedium, Parent: high.ID})
	hidden := d.Issue(t, company.CreateIssue{Title: "hidden"})
	at := core.TimeOf(d.Now)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: hidden.ID, HiddenAt: &at}, nil)
	since := core.TimeOf(d.Now)
	d.Must(t, companytest.Board, "comment.create", entity.CreateComment{ID: d.ID(), Issue: low.ID, Body: "x"}, nil)
	for name, tc := range map[string]struct {
		q    inbox.IssueQuery
		want []string
	}{
		"default":        {inbox.IssueQuery{}, []string{high.ID, old.ID, low.ID}},
		"status":         {inbox.IssueQuery{Statuses: []entity.IssueStatus{entity.IssueTodo}}, []string{high.ID, low.ID}},
		"assignee":       {inbox.IssueQuery{Assignee: ada}, []string{low.ID}},
		"parent":         {inbox.IssueQuery{Parent: high.ID}, []string{old.ID}},
		"text":           {inbox.IssueQuery{Text: "GRIPPER"}, []string{high.ID}},
		"since":          {inbox.IssueQuery{UpdatedSince: since + 1}, []string{low.ID}},
		"created":        {inbox.IssueQuery{Sort: inbox.SortCreated}, []string{low.ID, high.ID, old.ID}},
		"updated":        {inbox.IssueQuery{Sort: inbox.SortUpdated, Descending: true}, []string{low.ID, old.ID, high.ID}},
		"title":          {inbox.IssueQuery{Sort: inbox.SortTitle}, []string{high.ID, low.ID, old.ID}},
		"limit, offset":  {inbox.IssueQuery{Limit: 1, Offset: 1}, []string{old.ID}},
		"far offset":     {inbox.IssueQuery{Offset: 50}, nil},
		"with hidden":    {inbox.IssueQuery{Hidden: true, Text: "hidden"}, []string{hidden.ID}},
		"nothing":        {inbox.IssueQuery{Statuses: []entity.IssueStatus{entity.IssueDone}}, nil},
		"status, parent": {inbox.IssueQuery{Statuses: []entity.IssueStatus{entity.IssueTodo}, Parent: high.ID}, nil},
	} {
		var got []string
		for _, i := range inbox.ListIssues(d.Tx, d.Company, tc.q) {
			got = append(got, i.ID)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
	if n := entity.CountIssues(d.Tx, d.Company); n[entity.IssueTodo] != 2 || n[entity.IssueBacklog] != 1 {
		t.Errorf("counts: %v", n)
	}
	if f := inbox.Search(d.Tx, d.Company, "gripper high", 0, 0); f.Total != 1 || f.Hits[0].Issue.ID != high.ID ||
		f.Hits[0].Snippets[0].Text != "high gripper" {
		t.Errorf("search: %+v", f)
	}
}

// TestIndexesFollowRows makes many random-looking changes and then compares
// every index with what the rows say.
func TestIndexesFollowRows(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	run := d.Run(ada)
	var ids []string
	for n := range 40 {
		i := d.Issue(t, company.CreateIssue{Assignee: []string{"", ada, bob}[n%3], Priority: entity.Priorities[n%4]})
		ids = append(ids, i.ID)
	}
	for n, id := range ids {
		to := entity.IssueStatuses[n%len(entity.IssueStatuses)]
		_ = d.Do(companytest.Board, "issue.update", company.UpdateIssue{Issue: id, Status: to,
			UnblockDescriptor: []byte(`{"owner":"board"}`)}, nil)
		_ = d.Do(companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: id, Agent: ada,
			Expected: entity.IssueStatuses}, nil)
		if n%5 == 0 {
			_ = d.Do(companytest.Board, "issue.release", company.ReleaseIssue{Issue: id}, nil)
		}
	}
	d.EndRun(run)
	for i := range entity.IssuesIn(d.Tx, d.Company, slices.Values(ids)) {
		if i.Held() {
			t.Errorf("%s is held after its run", i.ID)
		}
		for _, s := range entity.IssueStatuses {
			var at []entity.IssueSort
			prefix := ledger.Key("c", string(d.Company), "issue-status", string(s), "")
			for k, v := range d.Tx.Prefix(prefix) {
				if sort, id, ok := entity.ParseIssueSort(k[len(prefix):], v); ok && id == i.ID {
					at = append(at, sort)
				}
			}
			if (len(at) == 1) != (s == i.Status) || len(at) > 1 || len(at) == 1 && at[0] != i.Sort() {
				t.Errorf("%s in %s: under %s is %v, want %v", i.ID, i.Status, s, at, i.Sort())
			}
		}
		for _, a := range []string{ada, bob} {
			if ok := d.Tx.Has(ledger.Key("c", string(d.Company), "issue-assignee", a+"."+string(i.Status),
				i.ID)); ok != (i.Assignee == a) {
				t.Errorf("%s of %q: under %s is %v", i.ID, i.Assignee, a, ok)
			}
		}
	}
	for k := range d.Tx.Prefix(ledger.Key("c", string(d.Company), "issue-held", "")) {
		t.Errorf("lock is left: %s", k)
	}
}

// No issue begins in a status that there is not.
func TestAnIssueBeginsInAStatusThatThereIs(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	p := company.CreateIssue{ID: d.ID(), Title: "x", Status: "paused"}
	companytest.WantRefusal(t, d.Do(companytest.Board, "issue.create", p, nil), ledger.Invalid,
		"status is one of [backlog todo in_progress in_review done blocked cancelled]")
}
