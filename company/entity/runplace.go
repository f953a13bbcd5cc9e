package entity

import "github.com/selvage-mesh/selvage/company/core"

// A RunPlace is where a run works on its node, as its adapter reports it. The paths are valid
// on that node only.
type RunPlace struct {
	Dir     string `cbor:"1,keyasint,omitempty"` // working directory
	Home    string `cbor:"2,keyasint,omitempty"` // the agent's own directory
	Scratch string `cbor:"3,keyasint,omitempty"` // removed when the run has ended
	Source  string `cbor:"4,keyasint,omitempty"` // where Dir comes from: "agent_home" or "adapter_config"
}

// MaxPlacePath bounds each path of a RunPlace, in bytes.
const MaxPlacePath = 4 << 10

func (p RunPlace) fits() bool {
	return max(len(p.Dir), len(p.Home), len(p.Scratch), len(p.Source)) <= MaxPlacePath
}

// An Environment is the short form of where runs are executed.
type Environment struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
}

// LocalEnvironment is the environment of runs that their node executes itself. It is the same
// on every node.
var LocalEnvironment = Environment{ID: core.DerivedID("environment", "local"), Name: "Local", Driver: "local"}

// An EnvironmentLease is the time for which a run has its environment. It is computed from
// the run.
type EnvironmentLease struct {
	ID                 string        `json:"id"`
	Status             string        `json:"status"` // active, released, expired or failed
	Policy             string        `json:"leasePolicy"`
	Provider           string        `json:"provider"`
	ProviderLease      core.NullText `json:"providerLeaseId"`
	ExecutionWorkspace core.NullText `json:"executionWorkspaceId"`
	WorkspacePath      core.NullText `json:"workspacePath"`
	FailureReason      core.NullText `json:"failureReason"`
	CleanupStatus      core.NullText `json:"cleanupStatus"`
	AcquiredAt         core.Time     `json:"acquiredAt"`
	ReleasedAt         core.Time     `json:"releasedAt"`
}

// LeaseEntity is the entity type of activity lines about leases.
const LeaseEntity = "environment_lease"

// A RunFolder is the workspace of a run, as its node prepared it.
type RunFolder struct {
	ID               string // of the execution workspace
	Dir              string
	Mode             WorkspaceMode
	Strategy         string
	Source           string // project_primary or git_worktree
	Project          string
	ProjectWorkspace string
	RepoURL, BaseRef string // without credentials
	Branch, Worktree string // "" in a shared workspace
}

// A WorkspaceMode says which runs share a folder. Persisted: do not rename.
type WorkspaceMode string

const (
	// SharedWorkspace is the project's own folder, shared by all its runs.
	SharedWorkspace WorkspaceMode = "shared_workspace"
	// IsolatedWorkspace is a Git worktree for each issue.
	IsolatedWorkspace WorkspaceMode = "isolated_workspace"
)
