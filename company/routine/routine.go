// Package routine is recurring work: routines with their revisions, the triggers that fire
// them by time and by webhook, their variables, and the folders that group them.
package routine

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Routine is a template of an issue that is made again and again: by schedule, by webhook,
// or on request. Its env may hold secrets; JSON of the row leaves it out.
type Routine struct {
	ID              string            `cbor:"1,keyasint" json:"id"`
	Company         ledger.CompanyID  `cbor:"2,keyasint" json:"companyId"`
	Project         core.NullText     `cbor:"3,keyasint,omitempty" json:"projectId"`
	Folder          core.NullText     `cbor:"4,keyasint,omitempty" json:"folderId"`
	Goal            core.NullText     `cbor:"5,keyasint,omitempty" json:"goalId"`
	Parent          core.NullText     `cbor:"6,keyasint,omitempty" json:"parentIssueId"`
	Title           string            `cbor:"7,keyasint" json:"title"`
	Description     core.NullText     `cbor:"8,keyasint,omitempty" json:"description"`
	Assignee        core.NullText     `cbor:"9,keyasint,omitempty" json:"assigneeAgentId"`
	Priority        entity.Priority   `cbor:"10,keyasint" json:"priority"`
	Status          RoutineStatus     `cbor:"11,keyasint" json:"status"`
	Concurrency     string            `cbor:"12,keyasint" json:"concurrencyPolicy"`
	CatchUp         string            `cbor:"13,keyasint" json:"catchUpPolicy"`
	Gate            string            `cbor:"14,keyasint" json:"activityGatePolicy"`
	GateScope       string            `cbor:"15,keyasint" json:"activityGateScope"`
	OriginKind      string            `cbor:"16,keyasint" json:"originKind"`
	OriginID        core.NullText     `cbor:"17,keyasint,omitempty" json:"originId"`
	Variables       []RoutineVariable `cbor:"18,keyasint,omitempty" json:"variables"`
	Env             json.RawMessage   `cbor:"19,keyasint,omitempty" json:"-"`
	Revision        string            `cbor:"20,keyasint" json:"latestRevisionId"`
	RevisionNumber  uint64            `cbor:"21,keyasint" json:"latestRevisionNumber"`
	CreatedAgent    core.NullText     `cbor:"22,keyasint,omitempty" json:"createdByAgentId"`
	CreatedUser     core.NullText     `cbor:"23,keyasint,omitempty" json:"createdByUserId"`
	ResponsibleUser core.NullText     `cbor:"24,keyasint,omitempty" json:"responsibleUserId"`
	UpdatedAgent    core.NullText     `cbor:"25,keyasint,omitempty" json:"updatedByAgentId"`
	UpdatedUser     core.NullText     `cbor:"26,keyasint,omitempty" json:"updatedByUserId"`
	LastTriggeredAt core.Time         `cbor:"27,keyasint,omitempty" json:"lastTriggeredAt"`
	LastEnqueuedAt  core.Time         `cbor:"28,keyasint,omitempty" json:"lastEnqueuedAt"`
	CreatedAt       core.Time         `cbor:"29,keyasint" json:"createdAt"`
	UpdatedAt       core.Time         `cbor:"30,keyasint" json:"updatedAt"`
	Labels          []string          `cbor:"31,keyasint,omitempty" json:"labelIds"`
	BillingCode     core.NullText     `cbor:"32,keyasint,omitempty" json:"billingCode"`
	// TextVersion counts the changes of the description; TextAt is the time of the last one.
	TextVersion uint64    `cbor:"33,keyasint,omitempty" json:"-"`
	TextAt      core.Time `cbor:"34,keyasint,omitempty" json:"-"`
	Runs        uint64    `cbor:"35,keyasint,omitempty" json:"-"` // number of runs ever made
}

// Clone returns a copy that shares no memory with r, as the ledger's cache of
// decoded rows needs it.
func (r Routine) Clone() Routine {
	r.Env, r.Labels = slices.Clone(r.Env), slices.Clone(r.Labels)
	r.Variables = slices.Clone(r.Variables)
	for n, v := range r.Variables {
		r.Variables[n].Options, r.Variables[n].Default = slices.Clone(v.Options), slices.Clone(v.Default)
	}
	return r
}

// A RoutineStatus is the state of a routine; only an active one fires. Persisted: do not
// rename.
type RoutineStatus string

const (
	RoutineActive   RoutineStatus = "active"
	RoutinePaused   RoutineStatus = "paused"
	RoutineArchived RoutineStatus = "archived"
)

// What a routine does if it fires while its issue is being worked on.
const (
	RoutineCoalesce = "coalesce_if_active"
	RoutineAlways   = "always_enqueue"
	RoutineSkip     = "skip_if_active"
)

// What happens to the times that passed while there was no leader.
const (
	CatchUpSkip    = "skip_missed"
	CatchUpEnqueue = "enqueue_missed_with_cap"
)

var (
	routineStatuses    = []RoutineStatus{RoutineActive, RoutinePaused, RoutineArchived}
	RoutineConcurrency = []string{RoutineCoalesce, RoutineAlways, RoutineSkip}
	routineCatchUps    = []string{CatchUpSkip, CatchUpEnqueue}
	routineGates       = []string{"always", "require_external_activity"}
	routineGateScopes  = []string{"company", "project"}
)

const (
	// MaxRoutines bounds the routines of a company: lists show all of them.
	MaxRoutines = 1_000
	// MaxTriggers bounds the triggers of one routine, MaxRoutineVariables its variables.
	MaxTriggers         = 20
	MaxRoutineVariables = 50
	// MaxCatchUp bounds how many missed times of one trigger are fired late.
	MaxCatchUp = 25
	// MaxRoutineIssues bounds the open issues of one routine, so that a routine whose issues
	// nobody finishes does not fill the company.
	MaxRoutineIssues = 100
	// keptRoutineRuns and keptRoutineRevisions bound the runs and revisions that are kept of one
	// routine.
	keptRoutineRuns      = 200
	keptRoutineRevisions = 50
)

// A RoutineVariable is a placeholder in a routine's text, written {{name}}.
type RoutineVariable struct {
	Name     string          `cbor:"1,keyasint" json:"name"`
	Type     string          `cbor:"2,keyasint" json:"type"`
	Label    core.NullText   `cbor:"3,keyasint,omitempty" json:"label"`
	Options  []string        `cbor:"4,keyasint,omitempty" json:"options"`
	Required bool            `cbor:"5,keyasint,omitempty" json:"required"`
	Default  json.RawMessage `cbor:"6,keyasint,omitempty" json:"defaultValue"` // a JSON scalar
}

// A RoutineRevision is the state of a routine and its triggers after one change.
type RoutineRevision struct {
	ID           string           `cbor:"1,keyasint"`
	Number       uint64           `cbor:"2,keyasint"`
	Routine      Routine          `cbor:"3,keyasint"`
	Triggers     []RoutineTrigger `cbor:"4,keyasint,omitempty"`
	Summary      core.NullText    `cbor:"5,keyasint,omitempty"`
	RestoredFrom core.NullText    `cbor:"6,keyasint,omitempty"`
	Agent        core.NullText    `cbor:"7,keyasint,omitempty"`
	User         core.NullText    `cbor:"8,keyasint,omitempty"`
	Run          core.NullText    `cbor:"9,keyasint,omitempty"`
	CreatedAt    core.Time        `cbor:"10,keyasint"`
}

// Keys of routines, under c/<company>/ unless marked (mesh):
//
//	routine/<id>                          Routine
//	routine-trigger/<id>                  RoutineTrigger, routine-trigger-of/<routine>/<id>
//	routine-run/<id>                      RoutineRun, routine-run-order/<routine>/<n> → id
//	routine-run-once/<routine>/<hash>     the run made with an idempotency key
//	routine-issue/<routine>/<issue>       its open issues
//	routine-revision/<routine>.<n>        RoutineRevision
//	routine-seen/<trigger>/<hash>         a delivery, and when it may be deleted;
//	routine-seen-at/<trigger>/<time>.<hash>   the same, ordered by that time
//	(mesh) routine-due/<time>/<trigger>   company; schedules that will fire
//	(mesh) routine-public/<publicId>      company/trigger
var (
	Routines        = core.Owned(ledger.NewTable[string, Routine]("routine"))
	RoutineTriggers = core.Owned(ledger.NewTable[string, RoutineTrigger]("routine-trigger").
			Beside(ledger.Indexed(triggersOf, func(t *RoutineTrigger) string { return t.Routine })))
	triggersOf       = ledger.NewIndex[string, string]("routine-trigger-of")
	RoutineRuns      = ledger.NewTable[string, RoutineRun]("routine-run")
	routineIssues    = ledger.NewIndex[string, string]("routine-issue")
	routineRevisions = ledger.NewTable[string, RoutineRevision]("routine-revision")
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

// RoutineByID finds a routine of any company.
func RoutineByID(tx *ledger.Tx, id string) (Routine, bool) {
	return Routines.Get(tx, core.OwnerOf(tx, id), id)
}

// RoutinesOf returns the routines of company, the newest first.
func RoutinesOf(tx *ledger.Tx, company ledger.CompanyID) []Routine {
	out := []Routine{}
	for _, r := range Routines.All(tx, company) {
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Routine) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return out
}

// RoutineRevisions returns the kept revisions of a routine, the newest first.
func RoutineRevisions(tx *ledger.Tx, r Routine) []RoutineRevision {
	out := []RoutineRevision{}
	for _, v := range tx.Prefix(routineRevisions.Key(r.Company, r.ID+".")) {
		out = append(out, core.DecodeRow[RoutineRevision](v))
	}
	slices.Reverse(out)
	return out
}

// ActiveRoutineIssue returns the newest open issue of a routine that is being worked on.
func ActiveRoutineIssue(tx *ledger.Tx, r Routine) (found entity.Issue, ok bool) {
	for i := range entity.IssuesIn(tx, r.Company, routineIssues.IDs(tx, r.Company, r.ID, false)) {
		if workedOn(tx, i) && (!ok || i.Number > found.Number) {
			found, ok = i, true
		}
	}
	return found, ok
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

func (r Routine) with(s SaveRoutine) (Routine, error) {
	core.Assign(&r.Title, s.Title)
	core.AssignText(&r.Description, s.Description)
	core.AssignText(&r.Project, s.Project)
	core.AssignText(&r.Folder, s.Folder)
	core.AssignText(&r.Goal, s.Goal)
	core.AssignText(&r.Parent, s.Parent)
	core.AssignText(&r.Assignee, s.Assignee)
	core.Assign(&r.Priority, s.Priority)
	core.Assign(&r.Status, s.Status)
	core.Assign(&r.Concurrency, s.Concurrency)
	core.Assign(&r.CatchUp, s.CatchUp)
	core.Assign(&r.Gate, s.Gate)
	core.Assign(&r.GateScope, s.GateScope)
	core.AssignText(&r.BillingCode, s.BillingCode)
	if s.Variables != nil {
		r.Variables = *s.Variables
	}
	if s.Labels != nil {
		r.Labels = core.SortedSet(*s.Labels)
	}
	env, err := core.CheckObject("env", s.Env, entity.MaxConfig)
	if err != nil {
		return r, err
	}
	if len(s.Env) > 0 {
		r.Env = conceal.KeepHidden(env, r.Env)
	}
	r.Variables, err = checkVariables(r.Variables, r.Title, string(r.Description))
	return r, err
}

// check rejects a routine that is incomplete or names rows that do not exist. Fields equal to
// those of old are not checked again.
func (r Routine) check(tx *ledger.Tx, old Routine) error {
	one := func(list []string, v string) bool { return slices.Contains(list, v) }
	switch {
	case r.Title == "" || len(r.Title) > entity.MaxTitle || len(r.Description) > entity.MaxText ||
		len(r.BillingCode) > entity.MaxName:
		return ledger.Refuse(ledger.Invalid, nil,
			"title: required, at most %d bytes; description has at most %d, billingCode %d", entity.MaxTitle, entity.MaxText,
			entity.MaxName)
	case !slices.Contains(routineStatuses, r.Status) || r.Priority.Rank() == len(entity.Priorities) ||
		!one(RoutineConcurrency, r.Concurrency) ||
		!one(routineCatchUps, r.CatchUp) || !one(routineGates, r.Gate) || !one(routineGateScopes, r.GateScope):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown status or policy of a routine")
	case r.Status == RoutineActive && r.Assignee == "":
		return ledger.Refuse(ledger.Unprocessable, nil, "An active routine needs an assignee")
	case r.Folder != "" && r.Folder != old.Folder && !folderIs(tx, r.Company, string(r.Folder), FolderRoutines):
		return ledger.Refuse(ledger.NotFound, nil, "Folder not found")
	}
	i := entity.Issue{Company: r.Company, Assignee: string(r.Assignee), Project: string(r.Project), Goal: string(r.Goal),
		Labels: r.Labels}
	was := entity.Issue{Company: r.Company, Assignee: string(old.Assignee), Project: string(old.Project),
		Goal: string(old.Goal), Labels: old.Labels}
	if err := company.CheckReferences(tx, was, i); err != nil {
		return err
	}
	if r.Parent != "" && r.Parent != old.Parent && !tx.Has(entity.IssueTable.Key(r.Company, string(r.Parent))) {
		return ledger.Refuse(ledger.NotFound, nil, "Parent issue not found")
	}
	for _, t := range TriggersOf(tx, r) {
		if t.Kind == TriggerSchedule && t.Enabled && r.Status == RoutineActive {
			if err := r.mayRunAlone(); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindEnv checks the env of a routine, see the function of that name. An agent can not give
// the runs of a routine a secret that they do not have: only the board decides which secrets
// an agent gets.
func (r Routine) bindEnv(c *ledger.Context, old json.RawMessage) (json.RawMessage, error) {
	env, err := company.Ask.BindEnv(c.Tx, r.Company, r.Env, old)
	if err != nil || !core.IsAgent(c) {
		return env, err
	}
	list, err := conceal.Bindings(env)
	if err != nil {
		return nil, err
	}
	before, err := conceal.Bindings(old)
	if err != nil {
		return nil, err
	}
	for _, b := range list {
		if (b.Secret != "" || b.User != "") && !slices.Contains(before, b) {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "env.%s: only the board gives secrets to a routine", b.Name)
		}
	}
	return env, nil
}

// mayRunAlone rejects a schedule for a routine with a required variable without a default.
func (r Routine) mayRunAlone() error {
	for _, v := range r.Variables {
		if v.Required && len(v.Default) == 0 {
			return ledger.Refuse(ledger.Unprocessable, nil,
				"A scheduled routine needs a default for the required variable %q", v.Name)
		}
	}
	return nil
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

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds:  slices.Concat(routineKinds, folderKinds),
	Causes: causes,
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"routine-trigger": func(tx *ledger.Tx, _ string, row []byte) {
			for _, key := range triggerKeys(core.DecodeRow[RoutineTrigger](row)) {
				tx.Delete(key)
			}
		},
	},
	IssueStored: func(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
		settleRoutineIssue(tx, was, next)
		return next
	},
	Gone:     gone,
	Routines: origins{},
	Sealed: func(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
		for _, r := range Routines.All(tx, company) {
			o := conceal.SealedConfig{Type: "routine", ID: r.ID, Owner: r.ID}
			o.Collect("env", r.Env)
			for _, v := range RoutineRevisions(tx, r) {
				o.Collect("env", v.Routine.Env)
			}
			out = append(out, o)
		}
		for _, t := range RoutineTriggers.All(tx, company) {
			if len(t.Sealed) > 0 {
				out = append(out, conceal.SealedConfig{Type: "routine_trigger", ID: t.ID, Owner: t.ID,
					Values: []conceal.SealedValue{{Path: "", Sealed: base64.StdEncoding.EncodeToString(t.Sealed)}}})
			}
		}
		return out
	},
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{"routine": resealRoutine,
		"routine_trigger": resealTrigger},
	Envs: func(tx *ledger.Tx, company ledger.CompanyID) (out []company.EnvUse) {
		for _, r := range Routines.All(tx, company) {
			out = append(out, r.envUse())
		}
		return out
	},
}

// Sealed seals the variables of a routine.
func (s SaveRoutine) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	s.Env, err = conceal.SealEnv(s.Env, s.ID, seal)
	return s, err
}

// origins implements the hook by which the kernel asks about routines.
type origins struct{}

func (origins) Env(tx *ledger.Tx, i entity.Issue) (company.EnvUse, bool) {
	if i.OriginKind != entity.OriginRoutine || !core.IsID(i.OriginID) {
		return company.EnvUse{}, false
	}
	r, ok := Routines.Get(tx, i.Company, i.OriginID)
	return r.envUse(), ok
}

func (origins) Description(tx *ledger.Tx, company ledger.CompanyID, id string) (company.Description, bool) {
	r, ok := Routines.Get(tx, company, id)
	return r.Described(), ok
}

func (origins) DescriptionAt(tx *ledger.Tx, companyID ledger.CompanyID, id, revision string,
	number uint64) (version uint64, text string, ok bool) {
	r, _ := Routines.Get(tx, companyID, id)
	is := func(of Routine) bool {
		return company.DocumentOfRoutine(r.ID, of.TextVersion) == revision && of.TextVersion == number
	}
	if is(r) {
		return r.TextVersion, string(r.Description), true
	}
	for _, v := range RoutineRevisions(tx, r) {
		if is(v.Routine) || v.ID == revision && v.Number == number {
			return v.Routine.TextVersion, string(v.Routine.Description), true
		}
	}
	return 0, "", false
}

// Described returns the description as a text on which comments can be made.
func (r Routine) Described() company.Description {
	return company.Description{Company: r.Company, Routine: r.ID, Version: r.TextVersion, At: r.TextAt}
}

func (r Routine) envUse() company.EnvUse {
	return company.EnvUse{Env: r.Env, Of: conceal.SecretTarget{Type: "routine", ID: r.ID, Label: r.Title,
		Href: "/routines/" + r.ID, Status: string(r.Status)}, At: r.UpdatedAt}
}

func resealRoutine(c *ledger.Context, p conceal.Reseal) error {
	ro, ok := Routines.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return errNoRoutine()
	}
	ro.Env = p.Config(ro.Env)
	Routines.Put(c.Tx, ro.Company, ro.ID, ro)
	for _, v := range RoutineRevisions(c.Tx, ro) { // at most keptRoutineRevisions
		v.Routine.Env = p.Config(v.Routine.Env)
		routineRevisions.Put(c.Tx, ro.Company, ro.ID+"."+ledger.Order(v.Number), v)
	}
	return nil
}

func resealTrigger(c *ledger.Context, p conceal.Reseal) error {
	t, ok := RoutineTriggers.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok || base64.StdEncoding.EncodeToString(t.Sealed) != p.Old[0] {
		return ledger.Refuse(ledger.NotFound, nil, "Routine trigger not found")
	}
	var err error
	if t.Sealed, err = p.Sealed(); err == nil {
		RoutineTriggers.Put(c.Tx, c.Cmd.Company, t.ID, t)
	}
	return err
}
