// Package routine is the routes about work that comes again.
package routine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// saveRoutine is the body that creates a routine or changes one.
type saveRoutine struct {
	Title         *string                  `json:"title,omitempty" minLength:"1" maxLength:"200" nullable:"false"`
	Description   api.Opt[string]          `json:"description" maxLength:"200000" maxBytes:"200000"`
	ProjectID     api.Opt[string]          `json:"projectId" format:"uuid"`
	FolderID      api.Opt[string]          `json:"folderId" format:"uuid"`
	GoalID        api.Opt[string]          `json:"goalId" format:"uuid"`
	ParentIssueID api.Opt[string]          `json:"parentIssueId" format:"uuid"`
	AssigneeID    api.Opt[string]          `json:"assigneeAgentId" format:"uuid"`
	Priority      string                   `json:"priority,omitempty" enum:"critical,high,medium,low"`
	Status        string                   `json:"status,omitempty" enum:"active,paused,archived"`
	Concurrency   string                   `json:"concurrencyPolicy,omitempty" enum:"coalesce_if_active,always_enqueue,skip_if_active"`
	CatchUp       string                   `json:"catchUpPolicy,omitempty" enum:"skip_missed,enqueue_missed_with_cap"`
	Gate          string                   `json:"activityGatePolicy,omitempty" enum:"always,require_external_activity"`
	GateScope     string                   `json:"activityGateScope,omitempty" enum:"company,project"`
	Variables     *[]routineVariable       `json:"variables,omitempty" maxItems:"50" nullable:"false"`
	Env           api.Opt[json.RawMessage] `json:"env" maxBytes:"65536"`
	LabelIDs      *[]string                `json:"labelIds,omitempty" format:"uuid" maxItems:"50" nullable:"false"`
	BillingCode   api.Opt[string]          `json:"billingCode" maxLength:"200"`
	Base          api.Opt[string]          `json:"baseRevisionId" format:"uuid"`
}

type routineVariable struct {
	Name     string                   `json:"name" minLength:"1" maxLength:"100"`
	Label    api.Opt[string]          `json:"label" maxLength:"120"`
	Type     string                   `json:"type,omitempty" enum:"text,textarea,number,boolean,select,date"`
	Default  api.Opt[json.RawMessage] `json:"defaultValue" types:"string,number,boolean" maxBytes:"65536"`
	Required *bool                    `json:"required,omitempty" nullable:"false"`
	Options  []string                 `json:"options,omitempty" minLength:"1" maxLength:"120" maxItems:"100"`
}

// runRoutine is the body that starts a routine now.
type runRoutine struct {
	Trigger            api.Opt[string]          `json:"triggerId" format:"uuid"`
	Payload            api.Opt[json.RawMessage] `json:"payload" maxBytes:"65536"`
	Variables          api.Opt[json.RawMessage] `json:"variables"`
	ProjectID          api.Opt[string]          `json:"projectId" format:"uuid"`
	Workspace          api.Opt[string]          `json:"projectWorkspaceId" format:"uuid"`
	AssigneeID         api.Opt[string]          `json:"assigneeAgentId" format:"uuid"`
	IdempotencyKey     api.Opt[string]          `json:"idempotencyKey" maxLength:"255"`
	Source             string                   `json:"source,omitempty" enum:"manual,api"`
	ExecutionWorkspace api.Opt[string]          `json:"executionWorkspaceId" format:"uuid"`
	WorkspacePref      api.Opt[string]          `json:"executionWorkspacePreference" maxLength:"100"`
	WorkspaceSettings  api.Opt[json.RawMessage] `json:"executionWorkspaceSettings" maxBytes:"16000"`
}

// A routineRow is a routine as answers show it.
type routineRow struct {
	routine.Routine
	Variables []routine.RoutineVariable `json:"variables"`
	Env       json.RawMessage           `json:"env"`
	LabelIDs  []string                  `json:"labelIds"`
}

// A routineInList is a row in a list, a routineDetail the answer of a routine's own
// route.
type routineInList struct {
	routineRow
	ManagedByPlugin *struct{}                `json:"managedByPlugin"`
	Triggers        []routine.RoutineTrigger `json:"triggers"`
	LastRun         *routineRunRow           `json:"lastRun"`
	ActiveIssue     *routineIssue            `json:"activeIssue"`
}

type routineDetail struct {
	routineRow
	ManagedByPlugin *struct{}                `json:"managedByPlugin"`
	Project         *routineProject          `json:"project"`
	Assignee        *routineAgent            `json:"assignee"`
	ParentIssue     *routineIssue            `json:"parentIssue"`
	Text            *routineText             `json:"descriptionDocument"`
	Triggers        []routine.RoutineTrigger `json:"triggers"`
	RecentRuns      []routineRunRow          `json:"recentRuns"`
	ActiveIssue     *routineIssue            `json:"activeIssue"`
}

type routineProject struct {
	entity.Project
	GoalID          core.NullText   `json:"goalId"`
	Env             json.RawMessage `json:"env"`
	WorkspacePolicy json.RawMessage `json:"executionWorkspacePolicy"`
}

type routineAgent struct {
	ID     string        `json:"id"`
	Name   string        `json:"name"`
	Role   string        `json:"role"`
	Title  core.NullText `json:"title"`
	URLKey string        `json:"urlKey"`
}

type routineIssue struct {
	ID         string             `json:"id"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	Priority   entity.Priority    `json:"priority"`
	UpdatedAt  core.Time          `json:"updatedAt"`
}

// A routineText is a routine's description as a document.
type routineText struct {
	ID             string           `json:"id"`
	Company        ledger.CompanyID `json:"companyId"`
	Routine        string           `json:"routineId"`
	Key            string           `json:"key"`
	Title          string           `json:"title"`
	Format         string           `json:"format"`
	Body           string           `json:"body"`
	Revision       string           `json:"latestRevisionId"`
	RevisionNumber uint64           `json:"latestRevisionNumber"`
	CreatedAgent   core.NullText    `json:"createdByAgentId"`
	CreatedUser    core.NullText    `json:"createdByUserId"`
	UpdatedAgent   core.NullText    `json:"updatedByAgentId"`
	UpdatedUser    core.NullText    `json:"updatedByUserId"`
	CreatedAt      core.Time        `json:"createdAt"`
	UpdatedAt      core.Time        `json:"updatedAt"`
}

type routineRunRow struct {
	routine.RoutineRun
	Payload     json.RawMessage    `json:"triggerPayload"`
	LinkedIssue *routineIssue      `json:"linkedIssue"`
	Trigger     *routineRunTrigger `json:"trigger"`
}

// A routineRunAnswer is a run without its context.
type routineRunAnswer struct {
	routine.RoutineRun
	Payload json.RawMessage `json:"triggerPayload"`
}

type routineRunTrigger struct {
	ID    string        `json:"id"`
	Kind  string        `json:"kind"`
	Label core.NullText `json:"label"`
}

type routineRevision struct {
	ID              string           `json:"id"`
	Company         ledger.CompanyID `json:"companyId"`
	Routine         string           `json:"routineId"`
	Number          uint64           `json:"revisionNumber"`
	Title           string           `json:"title"`
	Description     core.NullText    `json:"description"`
	Snapshot        routineSnapshot  `json:"snapshot"`
	Summary         core.NullText    `json:"changeSummary"`
	RestoredFrom    core.NullText    `json:"restoredFromRevisionId"`
	Agent           core.NullText    `json:"createdByAgentId"`
	User            core.NullText    `json:"createdByUserId"`
	Run             core.NullText    `json:"createdByRunId"`
	ResponsibleUser core.NullText    `json:"responsibleUserId"`
	CreatedAt       core.Time        `json:"createdAt"`
}

type routineSnapshot struct {
	Routine  snapshotRoutine   `json:"routine"`
	Version  int               `json:"version"`
	Triggers []snapshotTrigger `json:"triggers"`
}

type snapshotRoutine struct {
	ID              string                    `json:"id"`
	Env             json.RawMessage           `json:"env"`
	Title           string                    `json:"title"`
	GoalID          core.NullText             `json:"goalId"`
	Status          routine.RoutineStatus     `json:"status"`
	Priority        entity.Priority           `json:"priority"`
	Company         ledger.CompanyID          `json:"companyId"`
	ProjectID       core.NullText             `json:"projectId"`
	Variables       []routine.RoutineVariable `json:"variables"`
	Description     core.NullText             `json:"description"`
	CatchUp         string                    `json:"catchUpPolicy"`
	ParentIssueID   core.NullText             `json:"parentIssueId"`
	AssigneeID      core.NullText             `json:"assigneeAgentId"`
	GateScope       string                    `json:"activityGateScope"`
	Concurrency     string                    `json:"concurrencyPolicy"`
	ResponsibleUser core.NullText             `json:"responsibleUserId"`
	Gate            string                    `json:"activityGatePolicy"`
}

type snapshotTrigger struct {
	ID           string        `json:"id"`
	Kind         string        `json:"kind"`
	Label        core.NullText `json:"label"`
	Enabled      bool          `json:"enabled"`
	PublicID     core.NullText `json:"publicId"`
	Zone         core.NullText `json:"timezone"`
	Signing      core.NullText `json:"signingMode"`
	Cron         core.NullText `json:"cronExpression"`
	ReplayWindow *int64        `json:"replayWindowSec"`
}

func RoutineRoutes() []api.Route {
	const tag, all, one, trigger = "routines", "/api/companies/{companyId}/routines", "/api/routines/{id}",
		"/api/routine-triggers/{id}"
	return []api.Route{
		api.List(api.Route{Path: all, Tag: tag, Summary: "List routines"}, routinesOf),
		{Method: "POST", Path: all, Tag: tag, Summary: "Create a routine", In: saveRoutine{}, Out: routineRow{}, Status: 201,
			Handle: createRoutine},
		api.Show(api.Route{Path: one, Tag: tag, Summary: "Read a routine"}, api.RoutineIn, detailRoutine),
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change a routine", In: saveRoutine{}, Out: routineRow{},
			Handle: updateRoutine},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a routine with its triggers and runs; its issues stay",
			Who: api.Board, Out: routineRow{}, Handle: deleteRoutine},
		{Method: "POST", Path: one + "/run", Tag: tag, Summary: "Run a routine now", In: runRoutine{},
			Out: routineRunAnswer{}, Status: 202, Handle: startRoutine},
		{Method: "GET", Path: one + "/runs", Tag: tag, Summary: "List the newest runs of a routine", Out: []routineRunRow{},
			Handle: listRoutineRuns,
			Query:  []api.Param{{Name: "limit", Type: "integer"}}},
		api.Show(api.Route{Path: one + "/revisions", Tag: tag, Summary: "List the revisions of a routine"},
			api.RoutineIn, revisionsOf),
		{Method: "POST", Path: one + "/revisions/{revisionId}/restore", Tag: tag,
			Summary: "Bring back a revision of a routine", Out: restoredRoutine{}, Handle: restoreRoutine},
		{Method: "POST", Path: one + "/triggers", Limited: true, Tag: tag, Summary: "Add a trigger to a routine",
			In: newTrigger{}, Out: TriggerAnswer{}, Status: 201, Handle: createTrigger},
		{Method: "PATCH", Path: trigger, Tag: tag, Summary: "Change a trigger", In: patchTrigger{},
			Out: routine.RoutineTrigger{}, Handle: updateTrigger},
		{Method: "DELETE", Path: trigger, Tag: tag, Summary: "Remove a trigger", Out: api.Okay{}, Handle: deleteTrigger},
		{Method: "POST", Path: trigger + "/rotate-secret", Limited: true, Tag: tag, Summary: "Give a webhook a new secret",
			Out: TriggerAnswer{}, Handle: rotateTrigger},
		{Method: "POST", Path: "/api/routine-triggers/public/{publicId}/fire", Tag: tag, Summary: "Fire a webhook",
			Who: api.Public, Takes: api.Taken{Media: "application/json"}, Out: routineRunAnswer{}, Status: 202,
			MaxBody: routine.MaxRoutinePayload, Handle: fireWebhook},
		scheduleRoute(tag),
	}
}

func showRoutine(r routine.Routine) routineRow {
	row := routineRow{Routine: r, Variables: showVariables(r.Variables), Env: conceal.RedactEnv(r.Env), LabelIDs: r.Labels}
	if row.LabelIDs == nil {
		row.LabelIDs = []string{}
	}
	return row
}

func showVariables(list []routine.RoutineVariable) []routine.RoutineVariable {
	out := slices.Clone(list)
	for n := range out {
		if out[n].Options == nil {
			out[n].Options = []string{}
		}
		out[n].Default = api.RawJSON(out[n].Default)
	}
	if out == nil {
		out = []routine.RoutineVariable{}
	}
	return out
}

func showRoutineIssue(tx *ledger.Tx, of ledger.CompanyID, id string) *routineIssue {
	i, ok := entity.IssueOf(tx, of, id)
	if id == "" || !ok {
		return nil
	}
	return &routineIssue{i.ID, i.Identifier, i.Title, i.Status, i.Priority, i.UpdatedAt}
}

func activeIssue(tx *ledger.Tx, r routine.Routine) *routineIssue {
	i, ok := routine.ActiveRoutineIssue(tx, r)
	if !ok {
		return nil
	}
	return showRoutineIssue(tx, r.Company, i.ID)
}

func showRoutineRun(run routine.RoutineRun) routineRunAnswer {
	return routineRunAnswer{run, api.RawJSON(run.Payload)}
}

func routineRuns(tx *ledger.Tx, r routine.Routine, limit int) []routineRunRow {
	out := []routineRunRow{}
	for _, run := range routine.RoutineRunsOf(tx, r, limit) {
		row := routineRunRow{RoutineRun: run, Payload: api.RawJSON(run.Payload), LinkedIssue: showRoutineIssue(tx, r.Company,
			string(run.Issue))}
		if t, ok := routine.TriggerByID(tx, string(run.Trigger)); ok {
			row.Trigger = &routineRunTrigger{t.ID, t.Kind, t.Label}
		}
		out = append(out, row)
	}
	return out
}

func showRevision(v routine.RoutineRevision) routineRevision {
	r := v.Routine
	out := routineRevision{ID: v.ID, Company: r.Company, Routine: r.ID, Number: v.Number, Title: r.Title,
		Description: r.Description, Summary: v.Summary,
		RestoredFrom: v.RestoredFrom, Agent: v.Agent, User: v.User, Run: v.Run, ResponsibleUser: r.ResponsibleUser,
		CreatedAt: v.CreatedAt}
	out.Snapshot = routineSnapshot{Version: 1, Triggers: []snapshotTrigger{}, Routine: snapshotRoutine{r.ID,
		conceal.RedactEnv(r.Env), r.Title, r.Goal, r.Status,
		r.Priority, r.Company, r.Project, showVariables(r.Variables), r.Description, r.CatchUp, r.Parent, r.Assignee,
		r.GateScope, r.Concurrency, r.ResponsibleUser, r.Gate}}
	for _, t := range v.Triggers {
		out.Snapshot.Triggers = append(out.Snapshot.Triggers, snapshotTrigger{t.ID, t.Kind, t.Label, t.Enabled, t.PublicID,
			t.Zone, t.Signing, t.Cron, t.ReplayWindow})
	}
	return out
}

func routinesOf(tx *ledger.Tx, of ledger.CompanyID) []routineInList {
	out := []routineInList{}
	for _, r := range routine.RoutinesOf(tx, of) {
		in := routineInList{routineRow: showRoutine(r), Triggers: routine.TriggersOf(tx, r), ActiveIssue: activeIssue(tx, r)}
		if last := routineRuns(tx, r, 1); len(last) > 0 {
			in.LastRun = &last[0]
		}
		out = append(out, in)
	}
	return out
}

func detailRoutine(tx *ledger.Tx, r routine.Routine) routineDetail {
	out := routineDetail{routineRow: showRoutine(r), Triggers: routine.TriggersOf(tx, r), RecentRuns: routineRuns(tx, r,
		25), ActiveIssue: activeIssue(tx, r),
		ParentIssue: showRoutineIssue(tx, r.Company, string(r.Parent))}
	if p, ok := entity.ProjectOf(tx, r.Company, string(r.Project)); ok {
		out.Project = &routineProject{p, core.NullText(p.Goal), conceal.RedactEnv(p.Env), api.RawJSON(p.WorkspacePolicy)}
		out.Project.Project.Env = nil
	}
	if a, ok := entity.AgentByID(tx, string(r.Assignee)); ok {
		out.Assignee = &routineAgent{a.ID, a.Name, a.Role, a.Title, a.URLKey()}
	}
	if r.Description != "" {
		out.Text = &routineText{ID: company.DocumentOfRoutine(r.ID, 0), Company: r.Company, Routine: r.ID,
			Key: "description", Title: "Routine description",
			Format: "markdown", Body: string(r.Description), Revision: company.DocumentOfRoutine(r.ID, r.TextVersion),
			RevisionNumber: r.TextVersion,
			CreatedAgent:   r.CreatedAgent, CreatedUser: r.CreatedUser, UpdatedAgent: r.UpdatedAgent,
			UpdatedUser: r.UpdatedUser,
			CreatedAt:   r.CreatedAt, UpdatedAt: r.TextAt}
	}
	return out
}

func (in saveRoutine) command(id string) routine.SaveRoutine {
	s := routine.SaveRoutine{ID: id, Title: in.Title, Description: api.TextOf(in.Description),
		Project: api.IdPointer(in.ProjectID), Folder: api.IdPointer(in.FolderID),
		Goal: api.IdPointer(in.GoalID), Parent: api.IdPointer(in.ParentIssueID), Assignee: api.IdPointer(in.AssigneeID),
		Priority: api.Given[entity.Priority](in.Priority),
		Status:   api.Given[routine.RoutineStatus](in.Status), Concurrency: api.Given[string](in.Concurrency),
		CatchUp: api.Given[string](in.CatchUp), Gate: api.Given[string](in.Gate),
		GateScope: api.Given[string](in.GateScope), Env: api.RawOf(in.Env), BillingCode: api.TextOf(in.BillingCode),
		Base: api.BodyID(in.Base)}
	if in.LabelIDs != nil {
		s.Labels = new(api.BodyIDs(*in.LabelIDs))
	}
	if in.Variables != nil {
		list := []routine.RoutineVariable{}
		for _, v := range *in.Variables {
			list = append(list, routine.RoutineVariable{Name: v.Name, Type: v.Type, Label: core.NullText(v.Label.Or("")),
				Options:  v.Options,
				Required: v.Required == nil || *v.Required, Default: v.Default.Or(nil)})
		}
		s.Variables = &list
	}
	return s
}

func createRoutine(rc *api.Request) (api.Response, error) {
	in, err := api.Body[saveRoutine](rc)
	if err != nil {
		return api.Response{}, err
	}
	if in.Title == nil {
		return api.Response{}, api.ValidationError(api.Issue{Code: "invalid_type", Expected: "string", Path: []any{"title"},
			Message: "Invalid input: expected string, received undefined"})
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	r, err := api.Do[routine.Routine](rc, routine.KindRoutineCreate, api.CompanyID(rc), in.command(api.NewID()))
	return api.OK(showRoutine(r)), err
}

// upcoming returns when the schedules of a routine fire next.
func upcoming(rc *api.Request, triggers []routine.RoutineTrigger) (next []routine.TriggerNext) {
	for _, t := range triggers {
		if t.Kind == routine.TriggerSchedule {
			if at, err := scheduler.NextRun(string(t.Cron), string(t.Zone), rc.Now()); err == nil {
				next = append(next, routine.TriggerNext{Trigger: t.ID, At: at})
			}
		}
	}
	return next
}

func updateRoutine(rc *api.Request) (api.Response, error) {
	in, err := api.Body[saveRoutine](rc)
	if err != nil {
		return api.Response{}, err
	}
	r, triggers, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	s := in.command(r.ID)
	if in.Status == string(routine.RoutineActive) && r.Status != routine.RoutineActive {
		s.Next = upcoming(rc, triggers)
	}
	r, err = api.Do[routine.Routine](rc, routine.KindRoutineUpdate, r.Company, s)
	return api.OK(showRoutine(r)), err
}

func deleteRoutine(rc *api.Request) (api.Response, error) {
	r, _, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err = api.Do[routine.Routine](rc, routine.KindRoutineDelete, r.Company, routine.ChangeRoutine{ID: r.ID})
	return api.OK(showRoutine(r)), err
}

func startRoutine(rc *api.Request) (api.Response, error) {
	in, err := api.Body[runRoutine](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.RawBounds(in.WorkspaceSettings.Value); err != nil {
		return api.Response{}, err
	}
	if err := api.CheckWorkspaceSettings(in.WorkspaceSettings.Or(nil)); err != nil {
		return api.Response{}, err
	}
	r, _, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := routine.FireRoutine{Routine: r.ID, Run: api.NewID(), Trigger: api.BodyID(in.Trigger),
		Source: api.OrElse(in.Source, "manual"), Payload: in.Payload.Or(nil),
		Project: api.BodyID(in.ProjectID), Workspace: api.BodyID(in.Workspace), Assignee: api.BodyID(in.AssigneeID),
		IdempotencyKey:     in.IdempotencyKey.Or(""),
		ExecutionWorkspace: api.BodyID(in.ExecutionWorkspace), WorkspacePref: in.WorkspacePref.Or(""),
		WorkspaceSettings: in.WorkspaceSettings.Or(nil)}
	if raw := in.Variables.Or(nil); raw != nil {
		if len(raw) > routine.MaxRoutinePayload || json.Unmarshal(raw, &p.Variables) != nil {
			return api.Response{}, api.ValidationError(api.Issue{Code: "invalid_type", Expected: "record",
				Path: []any{"variables"}, Message: "Invalid input: expected record"})
		}
	}
	run, err := api.Do[routine.RoutineRun](rc, routine.KindRoutineRun, r.Company, p)
	return api.OK(showRoutineRun(run)), err
}

func listRoutineRuns(rc *api.Request) (answer api.Response, err error) {
	limit, err := rc.QueryInt("limit", 50, 1, 200)
	if err != nil {
		return answer, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		r, err := api.RoutineIn(tx, rc)
		if err == nil {
			answer = api.OK(routineRuns(tx, r, limit))
		}
		return err
	})
	return answer, err
}

func revisionsOf(tx *ledger.Tx, r routine.Routine) []routineRevision {
	out := []routineRevision{}
	for _, v := range routine.RoutineRevisions(tx, r) {
		out = append(out, showRevision(v))
	}
	return out
}

// restoredRoutine is the answer to a restore.
type restoredRoutine struct {
	Routine        routineRow      `json:"routine"`
	Revision       routineRevision `json:"revision"`
	RestoredFrom   string          `json:"restoredFromRevisionId"`
	RestoredNumber uint64          `json:"restoredFromRevisionNumber"`
}

func restoreRoutine(rc *api.Request) (api.Response, error) {
	r, triggers, err := api.FindRoutine(rc)
	if err != nil {
		return api.Response{}, err
	}
	id := strings.ToLower(rc.Path("revisionId"))
	out := restoredRoutine{RestoredFrom: id}
	err = rc.View(func(tx *ledger.Tx) error {
		for _, v := range routine.RoutineRevisions(tx, r) {
			if v.ID != id {
				continue
			}
			out.RestoredNumber = v.Number
			for n, t := range triggers { // as they will be after the restore
				for _, was := range v.Triggers {
					if was.ID == t.ID {
						triggers[n].Cron, triggers[n].Zone = was.Cron, was.Zone
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	done, err := api.Do[routine.RestoredRoutine](rc, routine.KindRoutineRestore, r.Company,
		routine.RestoreRoutine{ID: r.ID, Revision: id, Next: upcoming(rc, triggers)})
	out.Routine, out.Revision = showRoutine(done.Routine), showRevision(done.Revision)
	return api.OK(out), err
}
