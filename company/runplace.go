package company

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// A RunPlace is where a run works on its node, as its adapter tells. The paths
// are of the node and mean nothing elsewhere.
type RunPlace struct {
	Dir     string `cbor:"1,keyasint,omitempty"` // working directory
	Home    string `cbor:"2,keyasint,omitempty"` // the agent's own directory
	Scratch string `cbor:"3,keyasint,omitempty"` // removed when the run is over
	Source  string `cbor:"4,keyasint,omitempty"` // why Dir: "agent_home" or "adapter_config"
}

// maxPlacePath bounds each path of a RunPlace, in bytes.
const maxPlacePath = 4 << 10

func (p RunPlace) fits() bool {
	return max(len(p.Dir), len(p.Home), len(p.Scratch), len(p.Source)) <= maxPlacePath
}

// An Environment is what runs are carried out in, in short.
type Environment struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
}

// LocalEnvironment is the environment of runs that their node carries out
// itself. It is the same on every node.
var LocalEnvironment = Environment{ID: derivedID("environment", "local"), Name: "Local", Driver: "local"}

// An EnvironmentLease is the time for which a run has its environment. It
// follows from the run.
type EnvironmentLease struct {
	ID                 string   `json:"id"`
	Status             string   `json:"status"` // active, released, expired or failed
	Policy             string   `json:"leasePolicy"`
	Provider           string   `json:"provider"`
	ProviderLease      NullText `json:"providerLeaseId"`
	ExecutionWorkspace NullText `json:"executionWorkspaceId"`
	WorkspacePath      NullText `json:"workspacePath"`
	FailureReason      NullText `json:"failureReason"`
	CleanupStatus      NullText `json:"cleanupStatus"`
	AcquiredAt         Time     `json:"acquiredAt"`
	ReleasedAt         Time     `json:"releasedAt"`
}

// Lease returns the lease of a run; ok is false when it never started.
func (r Run) Lease() (l EnvironmentLease, ok bool) {
	if r.StartedAt == 0 {
		return l, false
	}
	l = EnvironmentLease{ID: derivedID("environment-lease", r.ID), Policy: "ephemeral", Provider: LocalEnvironment.Driver, ExecutionWorkspace: NullText(r.ExecutionWorkspace), AcquiredAt: r.StartedAt, ReleasedAt: r.FinishedAt}
	switch r.Status {
	case RunRunning:
		l.Status = "active"
	case RunSucceeded:
		l.Status = "released"
	case RunCancelled:
		l.Status = "expired"
	default:
		l.Status, l.FailureReason = "failed", r.Error
	}
	return l, true
}

// LeaseEntity is the entity type of entity that lines about leases are of.
const LeaseEntity = "environment_lease"

// recordLease tells the activity log that a run began or ended: what of its
// agent's work a person sees first. The run's node gives the command; the line
// is shown as the agent's.
func recordLease(c *ledger.Context, r Run) {
	l, ok := r.Lease()
	if !ok {
		return
	}
	o := jsonObject{}.str("environmentId", LocalEnvironment.ID).str("driver", LocalEnvironment.Driver).str("leasePolicy", l.Policy).
		str("provider", l.Provider).null("executionWorkspaceId", string(l.ExecutionWorkspace)).null("issueId", r.Context.IssueID)
	action := "environment.lease_acquired"
	if r.Status.Live() {
		o = o.null("networkEgress", "")
	} else {
		action = "environment.lease_released"
		o = o.str("status", l.Status).null("cleanupStatus", "").null("failureReason", string(l.FailureReason)).str("providerResourceDisposition", "none")
	}
	recordLive(c, ledger.Change{Action: action, EntityType: LeaseEntity, EntityID: l.ID,
		Details: o.str("agentId", r.Agent).str("runId", r.ID).close()})
}

// freshness says whether an agent's configuration is the one that the session
// began with from which a run resumes; it becomes resultJson.configFreshness.
func freshness(resumes bool, stored, next string) []byte {
	changed := []string{}
	reset := !resumes && stored != "" && stored != next
	if reset {
		changed = append(changed, "agentConfiguration")
	}
	session := jsonObject{}.bool("reset", reset).list("categories", freshnessCategories).list("resetReasons", changed).str("nextFingerprint", next).
		list("changedCategories", changed).bool("taskSessionReused", resumes).int("fingerprintVersion", 1).
		bool("taskSessionAvailable", resumes || stored != "").bool("storedFingerprintPresent", stored != "").close()
	workspace := jsonObject{}.str("action", "create").list("reasons", nil).list("categories", []string{"mode"}).bool("reuseRequested", false).str("nextFingerprint", next).
		bool("workspaceReused", false).null("activeWorkspaceId", "").list("changedCategories", nil).null("storedFingerprint", "").int("fingerprintVersion", 1).
		null("inferredFingerprint", "").null("previousWorkspaceId", "").bool("configSnapshotRefreshed", false).bool("storedFingerprintPresent", false).close()
	return jsonObject{}.raw("session", session).int("version", 1).raw("workspace", workspace).close()
}

// freshnessCategories is what a fingerprint covers.
var freshnessCategories = []string{"adapter", "adapterConfig", "agentRuntimeConfig"}

// fingerprint names an agent's configuration: it changes when that does, and
// tells nothing of it. Plain values are left out; that they changed shows in
// the revision.
func fingerprint(tx *ledger.Tx, a Agent) string {
	last := ""
	if keys := revisionRows(tx, a); len(keys) > 0 {
		last = string(keys[len(keys)-1])
	}
	h := sha256.New()
	for _, s := range []string{a.AdapterType, string(RedactConfig(a.AdapterConfig)), string(RedactConfig(a.RuntimeConfig)), last} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return "v1:sha256:" + hex.EncodeToString(h.Sum(nil))
}

// runResult is resultJson: what the adapter says, and what is known here of the
// session and of what people get to see of the run.
func runResult(c *ledger.Context, r Run, result json.RawMessage) (json.RawMessage, []byte) {
	decision := presentation(c.Tx, r)
	var of map[string]json.RawMessage
	if result == nil || json.Unmarshal(result, &of) != nil || of == nil {
		return result, decision
	}
	if r.Freshness != nil {
		of["configFreshness"] = r.Freshness
	}
	of["presentationDecision"] = decision
	o := jsonObject{}
	for _, k := range slices.Sorted(maps.Keys(of)) {
		o = append(AppendJSONString(o.comma(), k), ':')
		o = append(o, of[k]...)
	}
	return o.close(), decision
}

// maxSpokenComments bounds the comments that are looked at for one of a run.
const maxSpokenComments = 20

// presentation says which comment of its issue speaks for a run, if one does.
func presentation(tx *ledger.Tx, r Run) []byte {
	comment, source, action, reason := "", "none", "none", "no_user_facing_response"
	if i, ok := issues.Get(tx, r.Company, r.Context.IssueID); ok {
		list, _ := CommentsOf(tx, i, CommentQuery{Limit: maxSpokenComments})
		for _, cm := range list {
			if string(cm.Run) == r.ID && cm.DeletedAt == 0 {
				comment, source, action, reason = cm.ID, "existing_issue_comment", "reuse", "run_authored_issue_comment"
				break
			}
		}
	}
	return jsonObject{}.str("schema", "paperclip.run_presentation_decision.v1").null("commentId", comment).list("reasonCodes", []string{reason}).
		str("chosenSource", source).str("commentAction", action).null("sourceEventId", "").str("resolverVersion", "1").
		str("activityDisposition", "collapse").close()
}

// timeLimit is how long an agent's runs may take, as its adapterConfig has it:
// whole seconds, 0 for none given.
func timeLimit(config json.RawMessage) int64 {
	var of struct {
		Seconds json.Number `json:"timeoutSec"`
	}
	if json.Unmarshal(config, &of) != nil {
		return 0
	}
	n, err := of.Seconds.Int64()
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// A RunFolder is the workspace of a run, as its node made it.
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

// A WorkspaceMode says who else works in the folder of a run. Persisted: do not
// rename.
type WorkspaceMode string

const (
	// SharedWorkspace is the project's own folder: all its runs work there.
	SharedWorkspace WorkspaceMode = "shared_workspace"
	// IsolatedWorkspace is a Git worktree of its own for each issue.
	IsolatedWorkspace WorkspaceMode = "isolated_workspace"
)
