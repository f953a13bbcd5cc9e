package money

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// When a budget lets its scope go on, the work that it stopped goes on too: a raise
// wakes agents in its own entry, and what one command can not wake, or what goes on
// because time passed, is woken by budget.sweep. A row says how far that has come.

const (
	// maxResumed is the number of runs after which a command leaves the rest to the
	// next: at about 20 keys for a run, and at most MaxLiveRuns more of the last agent.
	maxResumed = 100
	// maxResumeReads bounds the issues that one command reads, and of one agent.
	maxResumeReads = 2_000
)

// budgetResumed is why an agent is woken whose work a budget had stopped.
const budgetResumed = "budget_resumed"

// A resumption is a scope that goes on, and how far its work has been woken.
type resumption struct {
	Type  entity.ScopeType `cbor:"1,keyasint"`
	ID    string           `cbor:"2,keyasint"`
	Since core.Time        `cbor:"3,keyasint,omitempty"` // when it was stopped
	// After is the last agent whose work was woken; of a project, the last issue.
	After string `cbor:"4,keyasint,omitempty"`
}

var resumptions = ledger.NewTable[string, resumption]("budget-resume")

// toResume notes that the work of a scope which was stopped at since is to go on.
func toResume(c *ledger.Context, t entity.ScopeType, id string, since core.Time) {
	resumptions.Put(c.Tx, c.Cmd.Company, scopeKey(t, id), resumption{Type: t, ID: id, Since: since})
}

// dropResumption forgets what was to go on in a scope that is stopped anew.
func dropResumption(c *ledger.Context, t entity.ScopeType, id string) {
	if key := scopeKey(t, id); c.Tx.Has(resumptions.Key(c.Cmd.Company, key)) {
		resumptions.Delete(c.Tx, c.Cmd.Company, key)
	}
}

// workToResume reports whether work of company waits to be woken; not while everything is
// stopped.
func workToResume(tx *ledger.Tx, of ledger.CompanyID) bool {
	if _, halted := entity.Halted(tx); halted {
		return false
	}
	for range resumptions.All(tx, of) {
		return true
	}
	return false
}

// resumeWork wakes agents whose work a budget had stopped, of all scopes of the
// company that go on, as far as one command may.
func resumeWork(c *ledger.Context) error {
	if c.Quiet || !workToResume(c.Tx, c.Cmd.Company) {
		return nil
	}
	w := &resumer{c: c, company: c.Cmd.Company, now: core.TimeOf(c.Now), live: map[string]int{}}
	var rows []resumption
	for _, row := range resumptions.All(c.Tx, w.company) {
		rows = append(rows, row)
	}
	for _, row := range rows {
		before := w.woken
		done, err := w.scope(&row)
		if err != nil {
			return err
		}
		if key := scopeKey(row.Type, row.ID); done {
			resumptions.Delete(c.Tx, w.company, key)
		} else {
			resumptions.Put(c.Tx, w.company, key, row)
		}
		if n := w.woken - before; n > 0 {
			c.Record(ledger.Change{Action: "budget.work_resumed", EntityType: string(row.Type), EntityID: row.ID,
				Details: core.Object{}.Int("runs", int64(n)).Bool("more", !done).Close()})
		}
		if w.full() {
			return nil
		}
	}
	return nil
}

// A resumer counts what one command wakes.
type resumer struct {
	c       *ledger.Context
	company ledger.CompanyID
	now     core.Time
	woken   int
	reads   int
	live    map[string]int // runs that wait or work, by agent; read by key only
}

func (w *resumer) full() bool { return w.woken >= maxResumed || w.reads >= maxResumeReads }

// scope goes on with a scope, and reports whether nothing is left of it.
func (w *resumer) scope(row *resumption) (done bool, err error) {
	if !ScopeExists(w.c.Tx, w.company, row.Type, row.ID) {
		return true, nil
	}
	if row.Type == entity.ScopeProject {
		var ids []string
		for id := range entity.IssuesByProject.IDs(w.c.Tx, w.company, row.ID, false) {
			if id > row.After {
				ids = append(ids, id)
			}
			if len(ids) > maxResumeReads {
				break
			}
		}
		for _, id := range ids {
			if w.full() {
				return false, nil
			}
			if err := w.issue(id); err != nil {
				return false, err
			}
			row.After = id
		}
		return true, nil
	}
	all := []string{row.ID}
	if row.Type == entity.ScopeCompany {
		all = all[:0]
		for id := range entity.AgentTable.All(w.c.Tx, w.company) {
			all = append(all, id)
		}
	}
	for _, id := range all {
		if id <= row.After && row.Type == entity.ScopeCompany {
			continue
		}
		if w.full() {
			return false, nil
		}
		if err := w.agent(id, row.Since); err != nil {
			return false, err
		}
		row.After = id
	}
	return true, nil
}

// agent wakes one agent for all that it was stopped at, and that waits for it.
func (w *resumer) agent(id string, since core.Time) error {
	a, ok := entity.Wakeable(w.c.Tx, w.company, id)
	w.reads++
	if !ok || a.Gone() || a.Stopped(w.c.Tx) != "" {
		return nil
	}
	if err := w.stoppedRuns(a, since); err != nil {
		return err
	}
	var ids []string
	for _, status := range entity.IssueStatuses {
		if status.Rests() {
			continue
		}
		for i := range entity.IssuesByAssignee.IDs(w.c.Tx, w.company, id+"."+string(status), false) {
			if len(ids) == maxResumeReads {
				break // care.Stranded finds the others
			}
			ids = append(ids, i)
		}
	}
	for _, i := range ids {
		if err := w.issue(i); err != nil {
			return err
		}
	}
	return nil
}

// stoppedRuns wakes an agent once for the runs about no issue that the stop ended.
func (w *resumer) stoppedRuns(a entity.WakeTarget, since core.Time) error {
	seen := map[string]bool{}
	var stopped []entity.Run
	n := 0
	for r := range entity.RunsOfAgent(w.c.Tx, w.company, a.ID) {
		if n++; n > entity.MaxLiveRuns {
			break
		}
		if r.Context.IssueID != "" || seen[r.Context.Scope()] {
			continue
		}
		seen[r.Context.Scope()] = true // what came later took its place
		if r.FinishedAt >= since && deniedBy(r) == company.DeniedBudget {
			stopped = append(stopped, r)
		}
	}
	w.reads += n
	for _, r := range slices.Backward(stopped) {
		if err := w.wake(a, r, ""); err != nil {
			return err
		}
	}
	return nil
}

// deniedBy returns which decision of governance ended a run, "" for none.
func deniedBy(r entity.Run) company.Denial {
	var end struct {
		DeniedBy company.Denial `json:"deniedBy"`
	}
	if r.Status != entity.RunCancelled || json.Unmarshal(r.ResultJSON, &end) != nil {
		return ""
	}
	return end.DeniedBy
}

// issue wakes the agent of an issue, unless something else brings it on or a person
// meant it to wait.
func (w *resumer) issue(id string) error {
	tx := w.c.Tx
	w.reads++
	i, ok := entity.IssueTable.Get(tx, w.company, id)
	if !ok || i.Assignee == "" || i.Status.Rests() || company.OnHold(tx, w.company, id) {
		return nil
	}
	a, ok := entity.Wakeable(tx, w.company, i.Assignee)
	if !ok || a.Gone() || a.Stopped(tx) != "" || entity.ProjectStopped(tx, w.company, id) {
		return nil
	}
	last, ran := entity.Run{}, false
	for r := range entity.RunsOfIssue(tx, w.company, id) {
		if r.Agent == i.Assignee {
			last, ran = r, true
			break
		}
	}
	if ran && last.Status.Live() {
		return nil
	}
	if deniedBy(last) == company.DeniedBudget {
		if i.Recovery != "" || company.AwaitsBoard(tx, i) || i.Status == entity.IssueBlocked && last.Context.CommentID == "" {
			return nil
		}
		return w.wake(a, last, id)
	}
	byHand := last.Status == entity.RunCancelled && last.ErrorCode == "cancelled" // somebody ended it, or another stop
	if byHand || i.Status != entity.IssueTodo && i.Status != entity.IssueInProgress {
		return nil
	}
	if path := company.PathOf(tx, i, w.now); path != "" && path != "timer" {
		return nil
	}
	return w.wake(a, entity.Run{}, id)
}

// wake queues a run for an issue, "" for none, in place of the one that was stopped.
func (w *resumer) wake(a entity.WakeTarget, stopped entity.Run, issue string) error {
	n, known := w.live[a.ID]
	if !known {
		n = len(entity.LiveRunsOfAgent(w.c.Tx, w.company, a.ID))
	}
	w.live[a.ID] = n
	if n >= entity.MaxLiveRuns {
		return nil // care.Stranded finds its issues when there is room
	}
	ctx, at := stopped.Context, ledger.Order(w.c.Height)
	about := issue
	if issue == "" {
		about = stopped.ID
	}
	res, err := company.WakeAgent(w.c, a, entity.Wake{Agent: a.ID, Source: entity.WakeAutomation, TriggerDetail: "system",
		Reason: budgetResumed, Issue: issue, Task: ctx.TaskKey,
		Fresh: ctx.ForceFreshSession, Comment: ctx.CommentID, Approval: ctx.ApprovalID, ApprovalStatus: ctx.ApprovalStatus,
		LinkedIssues: ctx.LinkedIssueIDs,
		Interaction:  ctx.InteractionID, InteractionKind: ctx.InteractionKind, InteractionStatus: ctx.InteractionStatus,
		From: "budget.resume", Responsible: ctx.ResponsibleUserID, Stopped: &ctx,
		Wakeup: core.DerivedID("budget-wake", about, a.ID, at), Run: core.DerivedID("budget-run", about, a.ID, at)})
	if err == nil && res.Status == entity.WakeQueued {
		w.woken++
		w.live[a.ID]++
	}
	return err
}
