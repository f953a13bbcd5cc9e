// Package routine is recurring work: routines with their revisions, the triggers that fire
// them by time and by webhook, their variables, and the folders that group them.
package routine

import (
	"cmp"
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
