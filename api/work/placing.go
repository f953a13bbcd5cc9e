package work

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// These types decode the objects stored with projects and issues that a run reads later,
// and refuse wrong types when they are written. Otherwise the rules would ignore a wrong
// value, and a run would fail on one that its adapter can not decode. Unknown members
// are stored unchanged, and null counts as absent.

// workspacePolicyBody is a project's executionWorkspacePolicy.
type workspacePolicyBody struct {
	Enabled          *bool              `json:"enabled,omitempty"`
	DefaultMode      api.Opt[string]    `json:"defaultMode" enum:"shared_workspace,isolated_workspace,operator_branch,adapter_default"`
	AllowOverride    *bool              `json:"allowIssueOverride,omitempty"`
	ProjectWorkspace api.Opt[string]    `json:"defaultProjectWorkspaceId"`
	Strategy         *workspaceStrategy `json:"workspaceStrategy,omitempty"`
	Runtime          *declaredBody      `json:"workspaceRuntime,omitempty"`
}

// workspaceStrategy says how the folder of a worktree is created and removed.
type workspaceStrategy struct {
	Type             api.Opt[string] `json:"type" enum:"project_primary,git_worktree,adapter_managed,cloud_sandbox"`
	BaseRef          api.Opt[string] `json:"baseRef"`
	BranchTemplate   api.Opt[string] `json:"branchTemplate"`
	ParentDir        api.Opt[string] `json:"worktreeParentDir"`
	Provision        api.Opt[string] `json:"provisionCommand"`
	RuntimeProvision api.Opt[string] `json:"runtimeProvisionCommand"`
	Teardown         api.Opt[string] `json:"teardownCommand"`
}

// declaredBody is a workspaceRuntime: the commands and services that a node starts in a
// workspace.
type declaredBody struct {
	Commands api.Opt[[]commandBody] `json:"commands"`
	Services api.Opt[[]commandBody] `json:"services"`
	Jobs     api.Opt[[]commandBody] `json:"jobs"`
}

// commandBody is a [company.DeclaredCommand]. Its other constraints are checked when it
// is started.
type commandBody struct {
	ID         api.Opt[string]            `json:"id"`
	Name       api.Opt[string]            `json:"name"`
	Kind       api.Opt[string]            `json:"kind"`
	Command    api.Opt[string]            `json:"command"`
	Cwd        api.Opt[string]            `json:"cwd"`
	Env        api.Opt[map[string]string] `json:"env"`
	Port       api.Opt[json.RawMessage]   `json:"port" types:"number,object"`
	Readiness  *readinessBody             `json:"readiness,omitempty"`
	Expose     *exposeBody                `json:"expose,omitempty"`
	Lifecycle  api.Opt[string]            `json:"lifecycle"`
	ReuseScope api.Opt[string]            `json:"reuseScope"`
	StopPolicy api.Opt[json.RawMessage]   `json:"stopPolicy" types:"any"`
}

type readinessBody struct {
	Type     api.Opt[string] `json:"type"`
	URL      api.Opt[string] `json:"urlTemplate"`
	Timeout  api.Opt[int64]  `json:"timeoutSec"`
	Interval api.Opt[int64]  `json:"intervalMs"`
}

type exposeBody struct {
	URL api.Opt[string] `json:"urlTemplate"`
}

// overridesBody is an issue's assigneeAdapterOverrides.
type overridesBody struct {
	Config     api.Opt[json.RawMessage] `json:"adapterConfig"`
	Profile    api.Opt[string]          `json:"modelProfile"`
	UseProject *bool                    `json:"useProjectWorkspace,omitempty"`
}

// checkWorkspacePolicy refuses a project's policy that a node could not carry out as
// written.
func checkWorkspacePolicy(b json.RawMessage) error {
	return api.DecodeMember(b, &workspacePolicyBody{}, "executionWorkspacePolicy")
}

// checkOverrides refuses overrides that the agent's adapter could not decode. Without an
// agent it refuses those that no adapter could decode.
func checkOverrides(rc *api.Request, of ledger.CompanyID, agent string, b json.RawMessage, at ...any) error {
	var p overridesBody
	at = append(at[:len(at):len(at)], "assigneeAdapterOverrides")
	if err := api.DecodeMember(b, &p, at...); err != nil || agent == "" || p.Config.Or(nil) == nil {
		return err
	}
	kind, known := "", false
	err := rc.View(func(tx *ledger.Tx) error {
		if a, ok := entity.AgentOf(tx, of, agent); ok && api.Seen(tx, rc, of) { // otherwise the rules refuse the agent
			kind, known = cmp.Or(a.AdapterType, company.DefaultAdapter), true
		}
		return nil
	})
	if err != nil || !known {
		return err
	}
	if bad := api.AdapterIssues(kind, p.Config.Or(nil), append(at, "adapterConfig")); len(bad) > 0 {
		return api.ValidationError(bad[:min(len(bad), api.MaxIssues)]...)
	}
	return nil
}

// check refuses overrides that the assignee after the change could not decode: those of
// the body, and those of the issue when the assignee changes.
func (in updateIssue) check(rc *api.Request, of ledger.CompanyID, issue string) error {
	if err := api.CheckWorkspaceSettings(in.WorkspaceSettings.Or(nil)); err != nil {
		return err
	}
	overrides := in.AdapterOverrides.Or(nil)
	if overrides == nil && (in.AdapterOverrides.Set || in.AssigneeAgentID.Or("") == "") {
		return nil
	}
	var now entity.Issue
	err := rc.View(func(tx *ledger.Tx) error {
		if i, ok := entity.IssueOf(tx, of, issue); ok && api.Seen(tx, rc, of) {
			now = i
		}
		return nil
	})
	if err != nil {
		return err
	}
	agent := now.Assignee
	switch {
	case in.AssigneeAgentID.Set:
		agent = strings.ToLower(in.AssigneeAgentID.Or(""))
	case in.AssigneeUserID.Or("") != "":
		agent = ""
	}
	if overrides == nil && agent != now.Assignee {
		overrides = now.AdapterOverrides
	}
	return checkOverrides(rc, of, agent, overrides)
}
