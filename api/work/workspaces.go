package work

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// An executionWorkspaceRow is an execution workspace as answers show it.
type executionWorkspaceRow struct {
	place.ExecutionWorkspace
	Delivery    string                 `json:"deliveryState"` // always "unknown": the branch is not tracked
	Provider    string                 `json:"providerType"`
	ProviderRef core.NullText          `json:"providerRef"`
	DerivedFrom core.NullText          `json:"derivedFromExecutionWorkspaceId"`
	Config      workspaceConfig        `json:"config"`
	Metadata    workspaceMetadata      `json:"metadata"`
	Services    []place.RuntimeService `json:"runtimeServices"`
}

// workspaceConfig is what nodes execute for a workspace: its own settings, else those of
// the project. The setupCommand is part of the project's workspace.
type workspaceConfig struct {
	Environment      string           `json:"environmentId"`
	Provision        *string          `json:"provisionCommand"`
	RuntimeProvision *string          `json:"runtimeProvisionCommand"`
	Teardown         *string          `json:"teardownCommand"`
	Cleanup          *string          `json:"cleanupCommand"`
	Runtime          *json.RawMessage `json:"workspaceRuntime"`
	Desired          *string          `json:"desiredState"`
	States           *json.RawMessage `json:"serviceStates"`
}

type workspaceMetadata struct {
	Config      workspaceConfig     `json:"config"`
	Source      string              `json:"source"`
	ByRuntime   bool                `json:"createdByRuntime"`
	Fingerprint configFingerprint   `json:"configFingerprint"`
	Realization api.RealizationNote `json:"workspaceRealization"`
	Request     realizeRequest      `json:"workspaceRealizationRequest"`
	Own         json.RawMessage     `json:"own"` // set on the workspace itself
}

type configFingerprint struct {
	Version    int               `json:"version"`
	Categories []string          `json:"categories"`
	Hash       string            `json:"workspaceHash"`
	At         core.Time         `json:"lastEvaluatedAt"`
	Prints     map[string]string `json:"categoryFingerprints"`
}

type realizeRequest struct {
	Source      api.FolderNote       `json:"source"`
	Issue       core.NullText        `json:"issueId"`
	Version     int                  `json:"version"`
	Company     ledger.CompanyID     `json:"companyId"`
	Adapter     string               `json:"adapterType"`
	Environment string               `json:"environmentId"`
	Mode        entity.WorkspaceMode `json:"requestedMode"`
	Run         string               `json:"heartbeatRunId"`
	Overlay     api.RuntimeOverlay   `json:"runtimeOverlay"`
	More        []struct{}           `json:"additionalSources"`
	Workspace   string               `json:"executionWorkspaceId"`
}

func showLifecycle(l place.Lifecycle, environment string) workspaceConfig {
	text := func(s string) *string { return pointerTo(core.NullText(s)) }
	object := func(b json.RawMessage) *json.RawMessage {
		if len(b) == 0 || string(b) == "null" {
			return nil
		}
		return &b
	}
	return workspaceConfig{Environment: environment, Provision: text(l.Provision),
		RuntimeProvision: text(l.RuntimeProvision), Teardown: text(l.Teardown),
		Cleanup: text(l.Cleanup), Runtime: object(l.Runtime), Desired: text(l.Desired), States: object(l.States)}
}

func pointerTo(s core.NullText) *string {
	if s == "" {
		return nil
	}
	return new(string(s))
}

func showWorkspace(tx *ledger.Tx, w place.ExecutionWorkspace) executionWorkspaceRow {
	env := entity.LocalEnvironment
	l := place.LifecycleOf(tx, w)
	row := executionWorkspaceRow{ExecutionWorkspace: w, Delivery: "unknown", Provider: "local_fs",
		Config: showLifecycle(l, env.ID), Services: place.ServicesOf(tx, w.Company, w.ID)}
	var worktree *string
	isolated := w.Mode == entity.IsolatedWorkspace
	if isolated {
		row.Provider, row.ProviderRef, worktree = "git_worktree", w.Cwd, pointerTo(w.Cwd)
	}
	lease := ""
	if r, ok := entity.RunOf(tx, w.Company, w.Run); ok {
		if l, ok := r.Lease(); ok {
			lease = l.ID
		}
	}
	url, ref, branch, project, of := pointerTo(w.RepoURL), pointerTo(w.BaseRef), pointerTo(w.Branch),
		core.NullText(w.Project), w.ProjectWorkspace
	local := api.FolderNote{Path: new(string(w.Cwd)), Source: w.Strategy, RepoRef: ref, RepoURL: url, Strategy: w.Strategy,
		Project: project, Branch: branch, Worktree: worktree, Workspace: of}
	source := api.FolderNote{Kind: w.Strategy, LocalPath: new(string(w.Cwd)), RepoRef: ref, RepoURL: url,
		Strategy: w.Strategy, Project: project, Branch: branch, Worktree: worktree, Workspace: of}
	row.Metadata = workspaceMetadata{Config: row.Config, Source: w.Strategy, ByRuntime: isolated,
		Fingerprint: fingerprintOf(w, l), Own: api.RawJSON(w.Metadata),
		Realization: api.RealizationNote{Mode: "copy", Local: local, Lease: lease, Summary: "Runs work in " + string(w.Cwd) +
			" on their node.", Version: 1, Provider: env.Driver,
			Rebuild: api.RebuildNote{Mode: string(w.Mode), RepoRef: ref, RepoURL: url, LocalPath: string(w.Cwd),
				ExecutionWorkspace: core.NullText(w.ID),
				Metadata:           api.RebuildMetadata{Source: source, Provider: env.Driver, Driver: env.Driver}},
			Additional: []struct{}{}, Aliases: []struct{}{}, Outbound: []struct{}{}, Environment: env.ID, Root: string(w.Cwd)},
		Request: realizeRequest{Source: source, Issue: w.SourceIssue, Version: 1, Company: w.Company, Adapter: w.Adapter,
			Environment: env.ID, Mode: w.Mode,
			Run: w.Run, More: []struct{}{}, Workspace: w.ID}}
	return row
}

// currentWorkspace is the workspace of an issue's runs, nil if there is none.
func currentWorkspace(tx *ledger.Tx, i entity.Issue) *executionWorkspaceRow {
	w, ok := place.WorkspaceOfIssue(tx, i)
	if !ok {
		return nil
	}
	return new(showWorkspace(tx, w))
}

// fingerprintOf returns what a workspace was created from, by category.
func fingerprintOf(w place.ExecutionWorkspace, l place.Lifecycle) configFingerprint {
	f := configFingerprint{Version: 1, At: w.UpdatedAt, Prints: map[string]string{},
		Categories: []string{"mode", "projectWorkspace", "strategy", "repo", "lifecycleCommands", "runtimeServices",
			"environment", "realization"}}
	values := []string{string(w.Mode), string(w.ProjectWorkspace), w.Strategy, string(w.RepoURL) + "\x00" +
		string(w.BaseRef),
		strings.Join([]string{l.Provision, l.RuntimeProvision, l.Cleanup, l.Teardown}, "\x00"), string(l.Runtime),
		entity.LocalEnvironment.ID, string(w.Branch)}
	hash := func(parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		return "v1:sha256:" + hex.EncodeToString(sum[:])
	}
	for i, name := range f.Categories {
		f.Prints[name] = hash(name, values[i])
	}
	f.Hash = hash(values...)
	return f
}

// patchWorkspace is the body that changes an execution workspace.
type patchWorkspace struct {
	Name     *string                  `json:"name,omitempty" minLength:"1" maxLength:"500" maxBytes:"500" nullable:"false"`
	Status   *string                  `json:"status,omitempty" enum:"active,idle,in_review,archived" nullable:"false"`
	Metadata api.Opt[json.RawMessage] `json:"metadata" maxBytes:"16000"`
	Config   *patchLifecycle          `json:"config,omitempty" nullable:"false"`
}

// patchLifecycle sets what nodes execute for a workspace. null and "" mean no command,
// even when the project has one.
type patchLifecycle struct {
	_                struct{}                 `additionalProperties:"false"`
	Environment      api.Opt[string]          `json:"environmentId" format:"uuid"`
	Provision        api.Opt[string]          `json:"provisionCommand" maxLength:"10000" maxBytes:"10000"`
	RuntimeProvision api.Opt[string]          `json:"runtimeProvisionCommand" maxLength:"10000" maxBytes:"10000"`
	Teardown         api.Opt[string]          `json:"teardownCommand" maxLength:"10000" maxBytes:"10000"`
	Cleanup          api.Opt[string]          `json:"cleanupCommand" maxLength:"10000" maxBytes:"10000"`
	Runtime          api.Opt[json.RawMessage] `json:"workspaceRuntime" maxBytes:"65536"`
	Desired          api.Opt[string]          `json:"desiredState" enum:"running,stopped,manual"`
	States           api.Opt[json.RawMessage] `json:"serviceStates" maxBytes:"65536"`
}

func (p patchLifecycle) config() *place.WorkspaceConfig {
	text := func(o api.Opt[string]) *string {
		if !o.Set {
			return nil
		}
		return new(o.Or(""))
	}
	object := func(o api.Opt[json.RawMessage]) json.RawMessage {
		if o.Set && o.Null {
			return json.RawMessage("{}")
		}
		return o.Value
	}
	return &place.WorkspaceConfig{Provision: text(p.Provision), RuntimeProvision: text(p.RuntimeProvision),
		Teardown: text(p.Teardown), Cleanup: text(p.Cleanup),
		Runtime: object(p.Runtime), Desired: text(p.Desired), States: object(p.States), Environment: text(p.Environment)}
}

// A closeReadiness says whether a workspace can be closed.
type closeReadiness struct {
	ID       string   `json:"workspaceId"`
	State    string   `json:"state"` // ready or blocked
	Blocking []string `json:"blockingReasons"`
	Warnings []string `json:"warnings"`
}

func WorkspaceRoutes() []api.Route {
	const tag, one = "execution-workspaces", "/api/execution-workspaces/{id}"
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/execution-workspaces", Tag: tag,
			Summary: "List execution workspaces, the newest first", Out: []executionWorkspaceRow{},
			Query: []api.Param{{Name: "projectId"}, {Name: "issueId"}, {Name: "status", Doc: "only these, comma separated"},
				{Name: "limit", Type: "integer"}},
			Handle: listExecutionWorkspaces},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read an execution workspace", Out: executionWorkspaceRow{},
			Handle: readExecutionWorkspace},
		{Method: "PATCH", Path: one, Tag: tag, Summary: "Change an execution workspace, or close it", In: patchWorkspace{},
			Out: executionWorkspaceRow{}, Handle: updateExecutionWorkspace},
		{Method: "GET", Path: one + "/close-readiness", Tag: tag,
			Summary: "Tell whether an execution workspace can be closed", Out: closeReadiness{}, Handle: workspaceReadiness},
		{Method: "GET", Path: one + "/workspace-operations", Tag: tag,
			Summary: "List the commands that nodes carried out in an execution workspace, the newest first",
			Out:     []place.WorkspaceOperation{}, Handle: listWorkspaceOperations},
		api.Show(api.Route{Path: "/api/heartbeat-runs/{runId}/workspace-operations", Tag: "runs",
			Summary: "List the commands that prepared the workspace of a run"}, api.FindRun,
			func(tx *ledger.Tx, r entity.Run) []place.WorkspaceOperation {
				return place.OperationsOfRun(tx, r.Company, r.ID)
			}),
		{Method: "GET", Path: "/api/workspace-operations/{operationId}/log", Tag: "runs",
			Summary: "Read the log of a workspace operation, also while it grows",
			Query:   logQuery, Out: operationLogPage{}, Handle: readOperationLog},
	}
}

// findWorkspace returns an execution workspace that the caller may see.
func findWorkspace(rc *api.Request) (row executionWorkspaceRow, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		w, ok := place.ExecutionWorkspaceByID(tx, strings.ToLower(rc.Path("id")))
		if !ok || !api.Seen(tx, rc, w.Company) {
			return api.NotFound("Execution workspace not found")
		}
		row = showWorkspace(tx, w)
		return nil
	})
	return row, err
}

func listExecutionWorkspaces(rc *api.Request) (r api.Response, err error) {
	var q place.WorkspaceQuery
	if q.Project, err = rc.QueryUUID("projectId"); err != nil {
		return r, err
	}
	if q.Issue, err = rc.QueryUUID("issueId"); err != nil {
		return r, err
	}
	if q.Limit, err = rc.QueryInt("limit", place.DefaultWorkspaceLimit, 1, place.MaxWorkspaceLimit); err != nil {
		return r, err
	}
	q.Status = rc.QueryList("status")
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		rows := []executionWorkspaceRow{}
		for _, w := range place.ExecutionWorkspacesOf(tx, row.ID, q) {
			rows = append(rows, showWorkspace(tx, w))
		}
		r = api.OK(rows)
		return nil
	})
	return r, err
}

func readExecutionWorkspace(rc *api.Request) (api.Response, error) {
	row, err := findWorkspace(rc)
	return api.OK(row), err
}

func updateExecutionWorkspace(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchWorkspace](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.RawBounds(in.Metadata.Value); err != nil {
		return api.Response{}, err
	}
	row, err := findWorkspace(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := place.UpdateExecutionWorkspace{ID: row.ID, Name: in.Name, Metadata: in.Metadata.Value}
	if in.Metadata.Null {
		p.Metadata = json.RawMessage("null")
	}
	if in.Config != nil {
		if err := environmentThere(rc, row.Company, in.Config.Environment.Or("")); err != nil {
			return api.Response{}, err
		}
		p.Config = in.Config.config()
	}
	if in.Status != nil {
		p.Status = new(place.WorkspaceStatus(*in.Status))
	}
	if _, err := rc.Submit(place.KindExecWorkspaceUpdate, row.Company, p); err != nil {
		return api.Response{}, err
	}
	return readExecutionWorkspace(rc)
}

// environmentThere refuses an environment that the company does not have; "" is allowed.
func environmentThere(rc *api.Request, of ledger.CompanyID, id string) error {
	if id = strings.ToLower(id); id == "" || id == entity.LocalEnvironment.ID {
		return nil
	}
	return rc.View(func(tx *ledger.Tx) error {
		if e, ok := place.EnvironmentByID(tx, id); !ok || e.Company != of {
			return api.NotFound("Environment not found")
		}
		return nil
	})
}

func workspaceReadiness(rc *api.Request) (api.Response, error) {
	var out closeReadiness
	row, err := findWorkspace(rc)
	if err != nil {
		return api.Response{}, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		out = closeReadiness{ID: row.ID, State: "ready", Blocking: []string{}, Warnings: []string{}}
		if row.Status.Over() {
			out.State, out.Blocking = "blocked", append(out.Blocking, "The execution workspace is closed already")
		}
		if run, busy := row.Busy(tx); busy {
			out.State, out.Blocking = "blocked", append(out.Blocking, "Run "+run+" works in it")
		}
		if row.Mode == entity.IsolatedWorkspace {
			out.Warnings = append(out.Warnings, "What was not committed in the worktree is removed with it; the branch stays")
		}
		return nil
	})
	return api.OK(out), err
}
