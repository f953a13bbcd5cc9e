package run

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A runSnapshot is contextSnapshot: why the run exists and, once it has started, where
// it works.
type runSnapshot struct {
	entity.RunContext
	*runSurroundings
}

// runSurroundings are the keys that are set when a run starts. Paths are on the
// executing node.
type runSurroundings struct {
	Wake         wakeNote           `json:"paperclipWake"`
	Scratch      *scratchNote       `json:"paperclipScratch"`
	Workspace    workspaceNote      `json:"paperclipWorkspace"`
	Workspaces   []struct{}         `json:"paperclipWorkspaces"`
	Environment  environmentNote    `json:"paperclipEnvironment"`
	Continuation *entity.RunContext `json:"executionContinuation"` // always null: a run is never continued elsewhere
	IdentityRun  string             `json:"executionIdentityRunId"`
	GitHub       string             `json:"githubAuthenticationMode"`
}

// A wakeNote is the wake as the agent receives it.
type wakeNote struct {
	Instructions string   `json:"connectorSkillInstructions"`
	Reason       string   `json:"reason,omitempty"`
	Issue        string   `json:"issueId,omitempty"`
	Comments     []string `json:"commentIds,omitempty"`
	CheckedOut   bool     `json:"checkedOutByHarness,omitempty"`
}

type scratchNote struct {
	Dir     string   `json:"dir"`
	Type    string   `json:"type"`
	Marker  string   `json:"marker"`
	Cleanup string   `json:"cleanupPolicy"`
	Keys    []string `json:"tempKeysApplied"`
}

type environmentNote struct {
	entity.Environment
	Lease       string              `json:"leaseId"`
	Realization api.RealizationNote `json:"workspaceRealization"`
	Sandbox     *string             `json:"sandboxLeaseAcquisition"`
}

type workspaceNote struct {
	Dir         string              `json:"cwd"`
	Mode        string              `json:"mode"`
	Source      string              `json:"source"`
	RepoRef     *string             `json:"repoRef"`
	RepoURL     *string             `json:"repoUrl"`
	Strategy    string              `json:"strategy"`
	Home        string              `json:"agentHome"`
	Project     core.NullText       `json:"projectId"`
	Branch      *string             `json:"branchName"`
	Realization api.RealizationNote `json:"realization"`
	ID          core.NullText       `json:"workspaceId"`
	Worktree    *string             `json:"worktreePath"`
}

// scratchMarker is the file that marks a scratch directory.
const scratchMarker = ".paperclip-run-scratch.json"

// snapshotOf is the context of a run as answers show it.
func snapshotOf(r entity.Run) runSnapshot {
	s := runSnapshot{RunContext: r.Context}
	lease, started := r.Lease()
	if !started {
		return s
	}
	p := entity.RunPlace{Source: "agent_home"}
	if r.Place != nil {
		p = *r.Place
	}
	const mode, strategy = "shared_workspace", "project_primary"
	env := entity.LocalEnvironment
	project := core.NullText(r.Context.ProjectID)
	local := api.FolderNote{Path: &p.Dir, Source: p.Source, Strategy: strategy, Project: project}
	source := api.FolderNote{Kind: p.Source, LocalPath: &p.Dir, Strategy: strategy, Project: project}
	realized := api.RealizationNote{Mode: "copy", Local: local, Lease: lease.ID, Summary: "The run works in " + p.Dir +
		" on its node.", Version: 1, Provider: env.Driver,
		Rebuild: api.RebuildNote{Mode: mode, LocalPath: p.Dir, ExecutionWorkspace: core.NullText(r.ExecutionWorkspace),
			Metadata: api.RebuildMetadata{Source: source, Provider: env.Driver, Driver: env.Driver}},
		Additional: []struct{}{}, Aliases: []struct{}{}, Outbound: []struct{}{}, Environment: env.ID, Root: p.Dir}
	s.runSurroundings = &runSurroundings{
		Wake: wakeNote{Reason: r.Context.WakeReason, Issue: r.Context.IssueID, Comments: r.Context.CommentIDs,
			CheckedOut: r.Context.CheckedOut},
		Workspace: workspaceNote{Dir: p.Dir, Mode: mode, Source: p.Source, Strategy: strategy, Home: p.Home,
			Project: project, Realization: realized},
		Workspaces:  []struct{}{},
		Environment: environmentNote{Environment: env, Lease: lease.ID, Realization: realized},
		IdentityRun: r.ID, GitHub: "none",
	}
	if p.Scratch != "" {
		s.Scratch = &scratchNote{Dir: p.Scratch, Type: "heartbeat_run", Marker: scratchMarker, Cleanup: "terminal_run",
			Keys: []string{"TMPDIR", "TEMP", "TMP"}}
	}
	return s
}

// A runRow is a run without derived members, as commands answer it.
type runRow struct {
	entity.Run
	Context runSnapshot `json:"contextSnapshot"`
}

func rowOf(r entity.Run) runRow { return runRow{r, snapshotOf(r)} }

// leaseOf returns the environment and lease of a run for lists, nil while it has none.
func leaseOf(r entity.Run) (*entity.Environment, *entity.EnvironmentLease) {
	l, ok := r.Lease()
	if !ok {
		return nil, nil
	}
	return new(entity.LocalEnvironment), &l
}
