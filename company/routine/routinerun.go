package routine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A RoutineRunStatus is the outcome of a firing. Persisted: do not rename.
type RoutineRunStatus string

const (
	RoutineReceived  RoutineRunStatus = "received"
	RoutineCoalesced RoutineRunStatus = "coalesced"
	RoutineSkipped   RoutineRunStatus = "skipped"
	RoutineIssued    RoutineRunStatus = "issue_created"
	RoutineCompleted RoutineRunStatus = "completed"
	RoutineFailed    RoutineRunStatus = "failed"
)

// A RoutineRun is one firing of a routine and its outcome.
type RoutineRun struct {
	ID              string           `cbor:"1,keyasint" json:"id"`
	Company         ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Routine         string           `cbor:"3,keyasint" json:"routineId"`
	Trigger         core.NullText    `cbor:"4,keyasint,omitempty" json:"triggerId"`
	Source          string           `cbor:"5,keyasint" json:"source"`
	Status          RoutineRunStatus `cbor:"6,keyasint" json:"status"`
	TriggeredAt     core.Time        `cbor:"7,keyasint" json:"triggeredAt"`
	Revision        core.NullText    `cbor:"8,keyasint,omitempty" json:"routineRevisionId"`
	ResponsibleUser core.NullText    `cbor:"9,keyasint,omitempty" json:"responsibleUserId"`
	IdempotencyKey  core.NullText    `cbor:"10,keyasint,omitempty" json:"idempotencyKey"`
	Payload         json.RawMessage  `cbor:"11,keyasint,omitempty" json:"triggerPayload"`
	Fingerprint     core.NullText    `cbor:"12,keyasint,omitempty" json:"dispatchFingerprint"`
	Issue           core.NullText    `cbor:"13,keyasint,omitempty" json:"linkedIssueId"`
	CoalescedInto   core.NullText    `cbor:"14,keyasint,omitempty" json:"coalescedIntoRunId"`
	Failure         core.NullText    `cbor:"15,keyasint,omitempty" json:"failureReason"`
	CompletedAt     core.Time        `cbor:"16,keyasint,omitempty" json:"completedAt"`
	CreatedAt       core.Time        `cbor:"17,keyasint" json:"createdAt"`
	UpdatedAt       core.Time        `cbor:"18,keyasint" json:"updatedAt"`
	Number          uint64           `cbor:"19,keyasint" json:"-"` // counts from 1 in each routine
}

// Clone returns a copy that shares no memory with r, as the ledger's cache of
// decoded rows needs it.
func (r RoutineRun) Clone() RoutineRun { r.Payload = slices.Clone(r.Payload); return r }

// MaxRoutinePayload bounds the payload of a firing, in bytes.
const MaxRoutinePayload = 64 << 10

func RoutineRunOrderKey(company ledger.CompanyID, routine string, n uint64) []byte {
	return ledger.Key("c", string(company), "routine-run-order", routine, ledger.Order(n))
}

func RoutineOnceKey(company ledger.CompanyID, routine, key string) []byte {
	return ledger.Key("c", string(company), "routine-run-once", routine, core.TextKey(key))
}

// FireRoutine is the payload of routine.run, given by the board or an agent, and of
// routine.fire, given by a node that has verified the signature of a webhook's delivery.
type FireRoutine struct {
	Routine            string                     `cbor:"1,keyasint"`
	Run                string                     `cbor:"2,keyasint"` // UUID of the new run
	Trigger            string                     `cbor:"3,keyasint,omitempty"`
	Source             string                     `cbor:"4,keyasint"`           // manual, api, webhook or schedule
	Payload            json.RawMessage            `cbor:"5,keyasint,omitempty"` // a JSON object
	Variables          map[string]json.RawMessage `cbor:"6,keyasint,omitempty"` // scalars
	Project            string                     `cbor:"7,keyasint,omitempty"`
	Workspace          string                     `cbor:"8,keyasint,omitempty"`
	Assignee           string                     `cbor:"9,keyasint,omitempty"`
	IdempotencyKey     string                     `cbor:"10,keyasint,omitempty"`
	ExecutionWorkspace string                     `cbor:"11,keyasint,omitempty"`
	WorkspacePref      string                     `cbor:"12,keyasint,omitempty"`
	WorkspaceSettings  json.RawMessage            `cbor:"13,keyasint,omitempty"`
	// Delivery is the hash of a signature that may be used once. Until is when the delivery
	// would be too old to be accepted.
	Delivery string    `cbor:"14,keyasint,omitempty"`
	Until    core.Time `cbor:"15,keyasint,omitempty"`
}

// TickRoutine is the payload of routine.tick, by which the leader fires a schedule whose time
// Due has come; Next is its next time. Due must equal the time that the trigger waits for, so
// that no time fires twice, even with several leaders. Quiet says that none of the events
// happened that the trigger's activity gate requires.
type TickRoutine struct {
	Trigger string    `cbor:"1,keyasint"`
	Due     core.Time `cbor:"2,keyasint"`
	Next    core.Time `cbor:"3,keyasint,omitempty"` // 0: never again
	Quiet   bool      `cbor:"4,keyasint,omitempty"`
	Problem string    `cbor:"5,keyasint,omitempty"` // why there is no Next; turns the trigger off
}

// RoutineRunsOf returns up to limit runs of a routine, newest first.
func RoutineRunsOf(tx *ledger.Tx, r Routine, limit int) []RoutineRun {
	out := []RoutineRun{}
	from := ledger.Key("c", string(r.Company), "routine-run-order", r.ID, "")
	for _, id := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		if len(out) == limit {
			break
		}
		if run, ok := RoutineRuns.Get(tx, r.Company, string(id)); ok {
			out = append(out, run)
		}
	}
	return out
}

func dropRoutineRun(tx *ledger.Tx, run RoutineRun) {
	tx.Delete(RoutineRunOrderKey(run.Company, run.Routine, run.Number))
	if run.IdempotencyKey != "" {
		tx.Delete(RoutineOnceKey(run.Company, run.Routine, string(run.IdempotencyKey)))
	}
	RoutineRuns.Delete(tx, run.Company, run.ID)
}

func runRoutine(c *ledger.Context, p FireRoutine) (any, error) {
	r, err := routineOf(c, p.Routine)
	if err != nil {
		return nil, err
	}
	if p.Source != "manual" && p.Source != "api" {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown source of a routine's run")
	}
	if p.Assignee != "" {
		if err := mayRoutine(c, p.Assignee); err != nil {
			return nil, err
		}
	}
	if r.Status == RoutineArchived {
		return nil, ledger.Refuse(ledger.Conflict, core.StatusDetail("routineId", r.ID, r.Status), "Routine is archived")
	}
	var t *RoutineTrigger
	if p.Trigger != "" {
		row, ok := RoutineTriggers.Get(c.Tx, r.Company, p.Trigger)
		if !ok || row.Routine != r.ID {
			return nil, errNoTrigger()
		}
		if !row.Enabled {
			return nil, errTriggerOff(r, row)
		}
		t = &row
	}
	return fire(c, r, t, p)
}

// errTriggerOff is the 409 for a trigger that is off, or whose routine is not active.
func errTriggerOff(r Routine, t RoutineTrigger) error {
	return ledger.Refuse(ledger.Conflict, core.Object{}.Str("triggerId", t.ID).Bool("enabled", t.Enabled).Str("routineId",
		r.ID).Str("status", string(r.Status)).Close(), "Routine trigger is not active")
}

// fireRoutine runs a routine for a webhook. The node that received the delivery has verified
// it.
func fireRoutine(c *ledger.Context, p FireRoutine) (any, error) {
	t, ok := RoutineTriggers.Get(c.Tx, c.Cmd.Company, p.Trigger)
	if !ok || t.Kind != TriggerWebhook {
		return nil, errNoTrigger()
	}
	r, ok := Routines.Get(c.Tx, t.Company, t.Routine)
	if !ok {
		return nil, errNoRoutine()
	}
	if !t.Enabled || r.Status != RoutineActive {
		return nil, errTriggerOff(r, t)
	}
	if p.Delivery != "" {
		var err error
		if t, err = t.remember(c, p.Delivery, p.Until); err != nil {
			return nil, err
		}
	}
	p.Routine, p.Source = r.ID, "webhook"
	return fire(c, r, &t, p)
}

// tickRoutine fires a schedule whose time has come, once.
func tickRoutine(c *ledger.Context, p TickRoutine) (any, error) {
	t, ok := RoutineTriggers.Get(c.Tx, c.Cmd.Company, p.Trigger)
	if !ok || t.Due == 0 || t.Due != p.Due || core.TimeOf(c.Now) < p.Due || p.Next != 0 && p.Next <= p.Due {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Schedule %s is not due", p.Trigger)
	}
	r, ok := Routines.Get(c.Tx, t.Company, t.Routine)
	if !ok {
		return nil, errNoRoutine()
	}
	before := t
	t.Next = p.Next
	if p.Next == 0 {
		t.Enabled = false
	}
	if p.Problem != "" {
		t.LastResult = core.NullText(core.Snippet(p.Problem, 200))
	}
	t = storeTrigger(c.Tx, before, t, r.Status)
	id := core.DerivedID("routine-tick", t.ID, ledger.Order(uint64(p.Due)))
	if row, ok := entity.CompanyTable.Get(c.Tx, r.Company, r.Company); !ok || row.Status != entity.CompanyActive {
		return endFiring(c, r, &t, FireRoutine{Run: id, Source: "schedule"}, RoutineSkipped,
			"The company is not active"), nil
	}
	if r.Gate != "always" && p.Quiet {
		return endFiring(c, r, &t, FireRoutine{Run: id, Source: "schedule"}, RoutineSkipped,
			"Nothing happened since the last run"), nil
	}
	return fire(c, r, &t, FireRoutine{Routine: r.ID, Run: id, Source: "schedule"})
}

// newFiring returns a new run; keepFiring stores it.
func newFiring(c *ledger.Context, r Routine, t *RoutineTrigger, p FireRoutine) RoutineRun {
	now := core.TimeOf(c.Now)
	run := RoutineRun{ID: p.Run, Company: r.Company, Routine: r.ID, Source: p.Source, Status: RoutineReceived,
		TriggeredAt: now, Revision: core.NullText(r.Revision),
		ResponsibleUser: r.ResponsibleUser, IdempotencyKey: core.NullText(p.IdempotencyKey), CreatedAt: now, UpdatedAt: now}
	if t != nil {
		run.Trigger = core.NullText(t.ID)
	}
	if core.IsBoard(c) {
		run.ResponsibleUser = core.NullText(c.Cmd.Actor.ID)
	}
	return run
}

// keepFiring stores a run whose outcome is decided, updates its routine and trigger, and
// deletes the oldest run beyond keptRoutineRuns.
func keepFiring(c *ledger.Context, r Routine, t *RoutineTrigger, run RoutineRun, result string) RoutineRun {
	r.Runs++
	run.Number = r.Runs
	r.LastTriggeredAt = run.TriggeredAt
	if run.Status == RoutineIssued || run.Status == RoutineCoalesced {
		r.LastEnqueuedAt = run.TriggeredAt
	}
	Routines.Put(c.Tx, r.Company, r.ID, r)
	if t != nil {
		t.LastFiredAt, t.LastResult = run.TriggeredAt, core.NullText(result)
		RoutineTriggers.Put(c.Tx, t.Company, t.ID, *t)
	}
	RoutineRuns.Put(c.Tx, run.Company, run.ID, run)
	c.Set(RoutineRunOrderKey(run.Company, run.Routine, run.Number), []byte(run.ID))
	if run.IdempotencyKey != "" {
		c.Set(RoutineOnceKey(run.Company, run.Routine, string(run.IdempotencyKey)), []byte(run.ID))
	}
	if run.Number > keptRoutineRuns {
		if id, ok := c.Get(RoutineRunOrderKey(run.Company, run.Routine, run.Number-keptRoutineRuns)); ok {
			if old, ok := RoutineRuns.Get(c.Tx, run.Company, string(id)); ok {
				dropRoutineRun(c.Tx, old)
			}
		}
	}
	c.Record(ledger.Change{Action: "routine.run_triggered", EntityType: "routine_run", EntityID: run.ID,
		Details: core.Object{}.Str("routineId", r.ID).Str("source", run.Source).Str("status", string(run.Status)).
			Null("triggerId", string(run.Trigger)).
			Null("issueId", string(run.Issue)).Close()})
	return run
}

// endFiring stores a run that makes no issue.
func endFiring(c *ledger.Context, r Routine, t *RoutineTrigger, p FireRoutine, status RoutineRunStatus,
	why string) RoutineRun {
	run := newFiring(c, r, t, p)
	run.Status, run.Failure, run.CompletedAt = status, core.NullText(why), run.TriggeredAt
	return keepFiring(c, r, t, run, why)
}

// fire decides what a firing does: make an issue, join an open one, or nothing. If a request
// of an actor is impossible, it is refused. If a schedule's or webhook's firing is impossible,
// its run fails.
func fire(c *ledger.Context, r Routine, t *RoutineTrigger, p FireRoutine) (any, error) {
	if p.IdempotencyKey != "" {
		if id, ok := c.Get(RoutineOnceKey(r.Company, r.ID, p.IdempotencyKey)); ok {
			if run, ok := RoutineRuns.Get(c.Tx, r.Company, string(id)); ok {
				return run, nil
			}
		}
	}
	if !core.IsID(p.Run) || c.Has(RoutineRuns.Key(r.Company, p.Run)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "A run of a routine with this ID exists")
	}
	var run RoutineRun
	err := c.Try(func(c *ledger.Context) (err error) {
		run, err = dispatch(c, r, t, p)
		return err
	})
	if no, ok := err.(*ledger.Refusal); ok && (p.Source == "schedule" || p.Source == "webhook") {
		return endFiring(c, r, t, p, RoutineFailed, no.Message), nil
	}
	return run, err
}

func dispatch(c *ledger.Context, r Routine, t *RoutineTrigger, p FireRoutine) (RoutineRun, error) {
	run := newFiring(c, r, t, p)
	payload, err := core.CheckObject("payload", p.Payload, MaxRoutinePayload)
	if err != nil {
		return run, err
	}
	given := map[string]json.RawMessage{}
	if p.Source == "webhook" {
		given = scalars(payload)
	}
	if v, _ := core.ParseJSON(payload); v != nil {
		if inner, ok := v.(map[string]any)["variables"].(map[string]any); ok {
			for k, value := range scalars(core.FormatJSON(inner)) {
				given[k] = value
			}
		}
	}
	for k, value := range p.Variables {
		given[k] = value
	}
	values, err := r.resolve(given)
	if err != nil {
		return run, err
	}
	if len(values) > 0 {
		payload = core.MergeObjects(payload, core.FormatJSON(map[string]any{"variables": values}))
	}
	run.Payload = payload
	now := r.present(c.Tx)
	want := company.CreateIssue{ID: core.DerivedID("routine-issue", run.ID),
		Title:       core.Snippet(fill(r.Title, values, run.TriggeredAt), entity.MaxTitle),
		Description: fill(string(r.Description), values, run.TriggeredAt), Priority: r.Priority,
		Assignee: cmp.Or(p.Assignee, string(r.Assignee)),
		Project:  cmp.Or(p.Project, string(now.Project)), Workspace: p.Workspace, Goal: string(now.Goal),
		Parent: string(now.Parent), Labels: now.Labels,
		BillingCode: string(r.BillingCode), OriginKind: entity.OriginRoutine, OriginID: r.ID, OriginRun: run.ID,
		ExecutionWorkspace: p.ExecutionWorkspace,
		WorkspacePref:      p.WorkspacePref, WorkspaceSettings: p.WorkspaceSettings, Status: entity.IssueTodo,
		AllowDuplicate: true}
	if want.Assignee == "" {
		return run, ledger.Refuse(ledger.Unprocessable, nil, "The routine has no assignee, and the request names none")
	}
	if len(want.Description) > entity.MaxText {
		return run, ledger.Refuse(ledger.TooLarge, nil, "The routine's text is too long with its values")
	}
	run.Fingerprint = core.NullText(dispatchFingerprint(want))
	want.OriginFingerprint = string(run.Fingerprint)
	if joined, ok, err := join(c, r, t, run); ok || err != nil {
		return joined, err
	}
	open := 0
	for range routineIssues.IDs(c.Tx, r.Company, r.ID, false) {
		open++
	}
	if open >= MaxRoutineIssues {
		return run, ledger.Refuse(ledger.Conflict, nil, "%d issues of this routine are open; close some first", open)
	}
	made, err := company.MakeIssue(c, want)
	if err != nil {
		return run, err
	}
	i := made.(entity.IssueResult).Issue
	if core.IsAgent(c) && c.Cmd.Actor.ID == i.Assignee &&
		i.Status == entity.IssueTodo { // an agent that fired the routine itself gets the issue like any other
		if err := company.WakeForIssue(c, i, entity.WakeAutomation, "routine.run", "issue_assigned", ""); err != nil {
			return run, err
		}
	}
	run.Status, run.Issue = RoutineIssued, core.NullText(i.ID)
	return keepFiring(c, r, t, run, "Created issue "+i.Identifier), nil
}

// present returns r without references to rows that are deleted.
func (r Routine) present(tx *ledger.Tx) Routine {
	if r.Project != "" && !entity.ProjectExists(tx, r.Company, string(r.Project)) {
		r.Project = ""
	}
	if r.Goal != "" && !entity.GoalExists(tx, r.Company, string(r.Goal)) {
		r.Goal = ""
	}
	if r.Parent != "" && !tx.Has(entity.IssueTable.Key(r.Company, string(r.Parent))) {
		r.Parent = ""
	}
	r.Labels = slices.DeleteFunc(slices.Clone(r.Labels),
		func(id string) bool { return !tx.Has(entity.Labels.Key(r.Company, id)) })
	return r
}

// dispatchFingerprint identifies what a firing asks for. Firings with equal ones may join.
func dispatchFingerprint(p company.CreateIssue) string {
	h := sha256.New()
	for _, s := range []string{p.Title, p.Description, string(p.Priority), p.Assignee, p.Project, p.Workspace, p.Goal,
		p.Parent, p.BillingCode, p.ExecutionWorkspace,
		p.WorkspacePref, string(p.WorkspaceSettings)} {
		h.Write([]byte(core.UintText(uint64(len(s))) + ":" + s))
	}
	for _, l := range p.Labels {
		h.Write([]byte(l))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// workedOn reports whether an open issue is checked out or has a live run. An abandoned
// issue is not worked on; it must not block its routine for ever.
func workedOn(tx *ledger.Tx, i entity.Issue) bool {
	if i.Status.Terminal() {
		return false
	}
	if i.Held() {
		return true
	}
	return len(entity.LiveRunsOnIssue(tx, i)) > 0
}

// join looks for an open issue that makes a new one unnecessary. To coalesce, it takes an
// issue that asks for the same: one that is worked on, or one that was abandoned in the
// queue, whose assignee is then woken again. To skip, any issue of the routine that is worked
// on is enough.
func join(c *ledger.Context, r Routine, t *RoutineTrigger, run RoutineRun) (RoutineRun, bool, error) {
	if r.Concurrency == RoutineAlways {
		return run, false, nil
	}
	var found entity.Issue
	for i := range entity.IssuesIn(c.Tx, r.Company, routineIssues.IDs(c.Tx, r.Company, r.ID, false)) {
		if r.Concurrency == RoutineCoalesce && i.OriginFingerprint != string(run.Fingerprint) {
			continue
		}
		if workedOn(c.Tx, i) || r.Concurrency == RoutineCoalesce && (i.Status == entity.IssueTodo ||
			i.Status == entity.IssueInProgress) {
			if i.Number > found.Number {
				found = i
			}
		}
	}
	if found.ID == "" {
		return run, false, nil
	}
	run.Issue, run.CompletedAt = core.NullText(found.ID), run.TriggeredAt
	if first, ok := RoutineRuns.Get(c.Tx, r.Company, found.OriginRun); ok {
		run.CoalescedInto = core.NullText(first.ID)
	}
	if r.Concurrency == RoutineSkip {
		run.Status = RoutineSkipped
		return keepFiring(c, r, t, run, "Skipped: "+found.Identifier+" is being worked on"), true, nil
	}
	run.Status = RoutineCoalesced
	if !workedOn(c.Tx, found) {
		if err := company.WakeForIssue(c, found, entity.WakeAutomation, "routine.run", "issue_assigned", ""); err != nil {
			return run, true, err
		}
	}
	return keepFiring(c, r, t, run, "Joined issue "+found.Identifier), true, nil
}

// settleRoutineIssue follows the changes of an issue of a routine. The issue is in the
// routine's index of open issues until it ends, and its run ends with it. next is zero if the
// issue is deleted.
func settleRoutineIssue(tx *ledger.Tx, old, next entity.Issue) {
	i := next
	if i.ID == "" {
		i = old
	}
	if i.OriginKind != entity.OriginRoutine || !core.IsID(i.OriginID) {
		return
	}
	was, is := old.ID != "" && !old.Status.Terminal(), next.ID != "" && !next.Status.Terminal()
	if was == is && !(old.ID == "" && !is) {
		return
	}
	if !tx.Has(Routines.Key(i.Company, i.OriginID)) {
		return
	}
	if is {
		routineIssues.Add(tx, i.Company, i.OriginID, i.ID)
	} else {
		routineIssues.Remove(tx, i.Company, i.OriginID, i.ID)
	}
	run, ok := RoutineRuns.Get(tx, i.Company, i.OriginRun)
	if !ok || run.Issue != core.NullText(i.ID) {
		return
	}
	run.Status, run.Failure, run.CompletedAt = RoutineIssued, "", 0
	switch {
	case next.ID == "":
		run.Status, run.Failure, run.CompletedAt = RoutineFailed, "Its issue was deleted", old.UpdatedAt
	case next.Status == entity.IssueDone:
		run.Status, run.CompletedAt = RoutineCompleted, next.UpdatedAt
	case next.Status == entity.IssueCancelled:
		run.Status, run.Failure, run.CompletedAt = RoutineFailed, "Its issue was cancelled", next.UpdatedAt
	}
	run.UpdatedAt = max(run.UpdatedAt, i.UpdatedAt)
	RoutineRuns.Put(tx, run.Company, run.ID, run)
}
