package routine

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// SaveRoutine is the payload of routine.create and routine.update. In an update a nil field
// keeps the value and an empty one clears it.
type SaveRoutine struct {
	ID          string             `cbor:"1,keyasint"`
	Title       *string            `cbor:"2,keyasint,omitempty"`
	Description *string            `cbor:"3,keyasint,omitempty"`
	Project     *string            `cbor:"4,keyasint,omitempty"`
	Folder      *string            `cbor:"5,keyasint,omitempty"`
	Goal        *string            `cbor:"6,keyasint,omitempty"`
	Parent      *string            `cbor:"7,keyasint,omitempty"`
	Assignee    *string            `cbor:"8,keyasint,omitempty"`
	Priority    *entity.Priority   `cbor:"9,keyasint,omitempty"`
	Status      *RoutineStatus     `cbor:"10,keyasint,omitempty"`
	Concurrency *string            `cbor:"11,keyasint,omitempty"`
	CatchUp     *string            `cbor:"12,keyasint,omitempty"`
	Gate        *string            `cbor:"13,keyasint,omitempty"`
	GateScope   *string            `cbor:"14,keyasint,omitempty"`
	Variables   *[]RoutineVariable `cbor:"15,keyasint,omitempty"`
	Env         json.RawMessage    `cbor:"16,keyasint,omitempty"`
	Labels      *[]string          `cbor:"17,keyasint,omitempty"`
	BillingCode *string            `cbor:"18,keyasint,omitempty"`
	Base        string             `cbor:"19,keyasint,omitempty"` // the revision that the caller has seen
	// Next is when the schedules fire next, if the change resumes them.
	Next []TriggerNext `cbor:"20,keyasint,omitempty"`
}

// A TriggerNext is when a schedule fires next. The node that takes the request computes it:
// time zone rules differ between versions of the program, and all nodes must store the same
// instant.
type TriggerNext struct {
	Trigger string    `cbor:"1,keyasint"`
	At      core.Time `cbor:"2,keyasint,omitempty"`
}

// ChangeRoutine is the payload of routine.delete.
type ChangeRoutine struct {
	ID string `cbor:"1,keyasint"`
}

// RestoreRoutine is the payload of routine.restore.
type RestoreRoutine struct {
	ID       string        `cbor:"1,keyasint"`
	Revision string        `cbor:"2,keyasint"`
	Next     []TriggerNext `cbor:"3,keyasint,omitempty"`
}

const (
	KindRoutineCreate        = "routine.create"
	KindRoutineUpdate        = "routine.update"
	KindRoutineRestore       = "routine.restore"
	KindRoutineDelete        = "routine.delete"
	KindRoutineRun           = "routine.run"
	KindRoutineFire          = "routine.fire"
	KindRoutineTick          = "routine.tick"
	KindRoutineTriggerCreate = "routine_trigger.create"
	KindRoutineTriggerUpdate = "routine_trigger.update"
	KindRoutineTriggerRotate = "routine_trigger.rotate"
	KindRoutineTriggerDelete = "routine_trigger.delete"
)

var routineKinds = []company.Kind{
	{Name: KindRoutineCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.SetUp, Do: ledger.Typed(createRoutine)},
	{Name: KindRoutineUpdate, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(updateRoutine)},
	{Name: KindRoutineRestore, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(restoreRoutine)},
	{Name: KindRoutineDelete, From: company.FromBoard, Weight: company.Weights.Erase, Do: ledger.Typed(deleteRoutine)},
	{Name: KindRoutineRun, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Task,
		Do: ledger.Typed(runRoutine)},
	{Name: KindRoutineFire, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(fireRoutine)},
	{Name: KindRoutineTick, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(tickRoutine)},
	{Name: KindRoutineTriggerCreate, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.SetUp, Do: ledger.Typed(createTrigger)},
	{Name: KindRoutineTriggerUpdate, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(updateTrigger)},
	{Name: KindRoutineTriggerRotate, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(rotateTrigger)},
	{Name: KindRoutineTriggerDelete, From: company.FromBoard | company.FromAgent, Weight: company.Weights.SetUp,
		Do: ledger.Typed(deleteTrigger)},
}

func errNoRoutine() error { return ledger.Refuse(ledger.NotFound, nil, "Routine not found") }

// routineOf returns a routine that the actor may change. The board may change any. An agent
// may change its own and those of agents below it, under a run of its own. A CEO who may
// only draft may change none, see strategy.go.
func routineOf(c *ledger.Context, id string) (Routine, error) {
	r, ok := Routines.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return r, errNoRoutine()
	}
	return r, mayRoutine(c, string(r.Assignee))
}

func mayRoutine(c *ledger.Context, assignee string) error {
	if !core.IsAgent(c) {
		return nil
	}
	if drafting, own := company.DraftingCEO(c, entity.Issue{}); drafting &&
		own { // an issue of a routine starts without anybody's decision
		return company.RefuseDraft(entity.Issue{}, entity.IssueTodo)
	}
	if assignee != c.Cmd.Actor.ID && (assignee == "" || !entity.Manages(c.Tx, c.Cmd.Company, c.Cmd.Actor.ID, assignee)) {
		return ledger.Refuse(ledger.Forbidden, nil, "Agents can only manage routines assigned to themselves")
	}
	return company.MustRun(c)
}

// author returns the actor in the form in which rows store it.
func author(c *ledger.Context) (agent, user core.NullText) {
	switch {
	case core.IsAgent(c):
		return core.NullText(c.Cmd.Actor.ID), ""
	case core.IsBoard(c):
		return "", core.NullText(c.Cmd.Actor.ID)
	}
	return "", ""
}

func createRoutine(c *ledger.Context, s SaveRoutine) (any, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := core.CheckNewID(c.Tx, s.ID); err != nil {
		return nil, err
	}
	r := Routine{ID: s.ID, Company: of, Priority: entity.PriorityMedium, Status: RoutineActive,
		Concurrency: RoutineCoalesce, CatchUp: CatchUpSkip,
		Gate: "always", GateScope: "company", OriginKind: "manual", CreatedAt: now}
	r.CreatedAgent, r.CreatedUser = author(c)
	r.ResponsibleUser = r.CreatedUser
	if r.ResponsibleUser == "" {
		row, _ := entity.CompanyTable.Get(c.Tx, of, of)
		r.ResponsibleUser = row.DefaultResponsibleUser
	}
	if s.Status == nil && (s.Assignee == nil || *s.Assignee == "") {
		r.Status = RoutinePaused // a draft
	}
	r, err := r.with(s)
	if err != nil {
		return nil, err
	}
	if err := mayRoutine(c, string(r.Assignee)); err != nil {
		return nil, err
	}
	if err := r.check(c.Tx, Routine{}); err != nil {
		return nil, err
	}
	if err := core.HasRoom(Routines.All(c.Tx, of), MaxRoutines, "routines"); err != nil {
		return nil, err
	}
	if r.Env, err = r.bindEnv(c, nil); err != nil {
		return nil, err
	}
	r, _ = storeRoutine(c, Routine{}, r, "Created routine", "")
	c.Record(ledger.Change{Action: "routine.created", EntityType: "routine", EntityID: r.ID,
		Details: core.Object{}.Str("title", core.Snippet(r.Title, 200)).Null("assigneeAgentId", string(r.Assignee)).Close()})
	return r, nil
}

// storeRoutine writes a changed routine as a new revision.
func storeRoutine(c *ledger.Context, old, r Routine, summary string, from core.NullText) (Routine, RoutineRevision) {
	r.UpdatedAt = core.TimeOf(c.Now)
	r.UpdatedAgent, r.UpdatedUser = author(c)
	r.RevisionNumber++
	r.Revision = core.DerivedID("routine-revision", r.ID, ledger.Order(r.RevisionNumber))
	if r.Description != old.Description {
		r.TextVersion++
		r.TextAt = r.UpdatedAt
	}
	Routines.Put(c.Tx, r.Company, r.ID, r)
	v := RoutineRevision{ID: r.Revision, Number: r.RevisionNumber, Routine: r, Triggers: TriggersOf(c.Tx, r),
		Summary: core.NullText(summary), RestoredFrom: from,
		Agent: r.UpdatedAgent, User: r.UpdatedUser, Run: core.NullText(c.Cmd.Run), CreatedAt: r.UpdatedAt}
	for n := range v.Triggers { // a restore does not bring back secrets
		v.Triggers[n].Sealed = nil
	}
	routineRevisions.Put(c.Tx, r.Company, r.ID+"."+ledger.Order(v.Number), v)
	if v.Number > keptRoutineRevisions {
		routineRevisions.Delete(c.Tx, r.Company, r.ID+"."+ledger.Order(v.Number-keptRoutineRevisions))
	}
	return r, v
}

func updateRoutine(c *ledger.Context, s SaveRoutine) (any, error) {
	old, err := routineOf(c, s.ID)
	if err != nil {
		return nil, err
	}
	if s.Base != "" && s.Base != old.Revision {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("currentRevisionId", old.Revision).
			Uint("currentRevisionNumber", old.RevisionNumber).Close(),
			"Routine was updated by someone else")
	}
	r, err := old.with(s)
	if err != nil {
		return nil, err
	}
	if err := mayRoutine(c, string(r.Assignee)); err != nil {
		return nil, err
	}
	if err := r.check(c.Tx, old); err != nil {
		return nil, err
	}
	if len(s.Env) > 0 {
		if r.Env, err = r.bindEnv(c, old.Env); err != nil {
			return nil, err
		}
	}
	r, _ = storeRoutine(c, old, r, "Updated routine", "")
	reschedule(c, r, s.Next)
	c.Record(ledger.Change{Action: "routine.updated", EntityType: "routine", EntityID: r.ID,
		Details: core.Object{}.Str("title", core.Snippet(r.Title, 200)).Str("status", string(r.Status)).Close()})
	return r, nil
}

// reschedule sets the triggers of a routine to match its status. Schedules that resume after
// a pause fire at the given times; times that passed during the pause are not made up for.
func reschedule(c *ledger.Context, r Routine, next []TriggerNext) {
	for _, t := range TriggersOf(c.Tx, r) {
		before := t
		for _, n := range next {
			if n.Trigger == t.ID && t.Kind == TriggerSchedule {
				t.Next = n.At
			}
		}
		storeTrigger(c.Tx, before, t, r.Status)
	}
}

// restoreRoutine restores a revision: the routine's fields, and those of triggers that still
// exist. Deleted triggers are not made again, because their secrets are gone. Triggers newer
// than the revision stay.
func restoreRoutine(c *ledger.Context, p RestoreRoutine) (any, error) {
	old, err := routineOf(c, p.ID)
	if err != nil {
		return nil, err
	}
	all := RoutineRevisions(c.Tx, old)
	n := slices.IndexFunc(all, func(v RoutineRevision) bool { return v.ID == p.Revision })
	if n < 0 {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Routine revision not found")
	}
	if all[n].ID == old.Revision {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The routine has this revision already")
	}
	r, kept := old, all[n].Routine
	r.Project, r.Folder, r.Goal, r.Parent, r.Title, r.Description, r.Assignee = kept.Project, kept.Folder, kept.Goal,
		kept.Parent, kept.Title, kept.Description, kept.Assignee
	r.Priority, r.Status, r.Concurrency, r.CatchUp, r.Gate, r.GateScope = kept.Priority, kept.Status, kept.Concurrency,
		kept.CatchUp, kept.Gate, kept.GateScope
	r.Variables, r.Env, r.Labels, r.BillingCode = kept.Variables, kept.Env, kept.Labels, kept.BillingCode
	if err := mayRoutine(c, string(r.Assignee)); err != nil {
		return nil, err
	}
	for _, was := range all[n].Triggers {
		if t, ok := RoutineTriggers.Get(c.Tx, r.Company, was.ID); ok {
			before := t
			t.Label, t.Enabled, t.Cron, t.Zone, t.Signing, t.ReplayWindow = was.Label, was.Enabled, was.Cron, was.Zone,
				was.Signing, was.ReplayWindow
			storeTrigger(c.Tx, before, t, r.Status)
		}
	}
	if err := r.check(c.Tx, old); err != nil {
		return nil, err
	}
	r, v := storeRoutine(c, old, r, "Restored revision "+core.UintText(all[n].Number), core.NullText(all[n].ID))
	reschedule(c, r, p.Next)
	c.Record(ledger.Change{Action: "routine.revision_restored", EntityType: "routine", EntityID: r.ID,
		Details: core.Object{}.Uint("restoredRevisionNumber", all[n].Number).Uint("revisionNumber", v.Number).Close()})
	return RestoredRoutine{r, v}, nil
}

// A RestoredRoutine is what routine.restore returns.
type RestoredRoutine struct {
	Routine  Routine         `cbor:"1,keyasint"`
	Revision RoutineRevision `cbor:"2,keyasint"`
}

// deleteRoutine deletes a routine with its triggers, runs and revisions. The issues that it
// made stay.
func deleteRoutine(c *ledger.Context, p ChangeRoutine) (any, error) {
	r, err := routineOf(c, p.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range TriggersOf(c.Tx, r) {
		dropTrigger(c.Tx, t)
	}
	for _, run := range RoutineRunsOf(c.Tx, r, keptRoutineRuns) {
		dropRoutineRun(c.Tx, run)
	}
	for _, v := range RoutineRevisions(c.Tx, r) {
		routineRevisions.Delete(c.Tx, r.Company, r.ID+"."+ledger.Order(v.Number))
	}
	for id := range routineIssues.IDs(c.Tx, r.Company, r.ID, false) {
		routineIssues.Remove(c.Tx, r.Company, r.ID, id)
	}
	company.DescriptionGone(c, r.Described())
	Routines.Delete(c.Tx, r.Company, r.ID)
	c.Record(ledger.Change{Action: "routine.deleted", EntityType: "routine", EntityID: r.ID,
		Details: core.Object{}.Str("title", core.Snippet(r.Title, 200)).Close()})
	return r, nil
}

// gone replaces an agent, a project, a goal or an issue that is deleted, in the routines that
// name it, by instead, or removes it if that is "". A routine that is left without an agent
// is paused.
func gone(c *ledger.Context, gone, instead string) {
	for _, old := range Routines.All(c.Tx, c.Cmd.Company) {
		r, changed := old, false
		for _, field := range []*core.NullText{&r.Assignee, &r.Project, &r.Goal, &r.Parent} {
			if string(*field) == gone {
				*field, changed = core.NullText(instead), true
			}
		}
		if !changed {
			continue
		}
		if r.Assignee == "" && r.Status == RoutineActive {
			r.Status = RoutinePaused
		}
		r, _ = storeRoutine(c, old, r, "What it named was deleted", "")
		reschedule(c, r, nil)
	}
}
