package company

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// recordLease adds to the activity log that a run started or ended: what people look for
// first about an agent's work. The node gives the command; the line is shown as the
// agent's.
func recordLease(c *ledger.Context, r entity.Run) {
	l, ok := r.Lease()
	if !ok {
		return
	}
	o := core.Object{}.Str("environmentId", entity.LocalEnvironment.ID).Str("driver", entity.LocalEnvironment.Driver).
		Str("leasePolicy", l.Policy).
		Str("provider", l.Provider).Null("executionWorkspaceId", string(l.ExecutionWorkspace)).
		Null("issueId", r.Context.IssueID)
	action := "environment.lease_acquired"
	if r.Status.Live() {
		o = o.Null("networkEgress", "")
	} else {
		action = "environment.lease_released"
		o = o.Str("status", l.Status).Null("cleanupStatus", "").Null("failureReason", string(l.FailureReason)).
			Str("providerResourceDisposition", "none")
	}
	RecordLive(c, ledger.Change{Action: action, EntityType: entity.LeaseEntity, EntityID: l.ID,
		Details: o.Str("agentId", r.Agent).Str("runId", r.ID).Close()})
}

// freshness returns resultJson.configFreshness: whether the agent's configuration is still
// that of the session which the run resumes.
func freshness(resumes bool, stored, next string) []byte {
	changed := []string{}
	reset := !resumes && stored != "" && stored != next
	if reset {
		changed = append(changed, "agentConfiguration")
	}
	session := core.Object{}.Bool("reset", reset).List("categories", freshnessCategories).List("resetReasons", changed).
		Str("nextFingerprint", next).
		List("changedCategories", changed).Bool("taskSessionReused", resumes).Int("fingerprintVersion", 1).
		Bool("taskSessionAvailable", resumes || stored != "").Bool("storedFingerprintPresent", stored != "").Close()
	workspace := core.Object{}.Str("action", "create").List("reasons", nil).List("categories", []string{"mode"}).
		Bool("reuseRequested", false).Str("nextFingerprint", next).
		Bool("workspaceReused", false).Null("activeWorkspaceId", "").List("changedCategories", nil).Null("storedFingerprint",
		"").Int("fingerprintVersion", 1).
		Null("inferredFingerprint", "").Null("previousWorkspaceId", "").Bool("configSnapshotRefreshed", false).
		Bool("storedFingerprintPresent", false).Close()
	return core.Object{}.Raw("session", session).Int("version", 1).Raw("workspace", workspace).Close()
}

// freshnessCategories is what a fingerprint covers.
var freshnessCategories = []string{"adapter", "adapterConfig", "agentRuntimeConfig"}

// fingerprint returns a hash that changes with an agent's configuration and reveals
// nothing of it. Literal values are left out; the revision shows that they changed.
func fingerprint(tx *ledger.Tx, a entity.Agent) string {
	last := ""
	if keys := revisionRows(tx, a); len(keys) > 0 {
		last = string(keys[len(keys)-1])
	}
	h := sha256.New()
	for _, s := range []string{a.AdapterType, string(conceal.RedactConfig(a.AdapterConfig)),
		string(conceal.RedactConfig(a.RuntimeConfig)), last} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return "v1:sha256:" + hex.EncodeToString(h.Sum(nil))
}

// runResult returns resultJson: the adapter's, with what the state knows about the session
// and about what people see of the run.
func runResult(c *ledger.Context, r entity.Run, result json.RawMessage) (json.RawMessage, []byte) {
	decision := presentation(c.Tx, r)
	var of map[string]json.RawMessage
	if result == nil || json.Unmarshal(result, &of) != nil || of == nil {
		return result, decision
	}
	if r.Freshness != nil {
		of["configFreshness"] = r.Freshness
	}
	of["presentationDecision"] = decision
	o := core.Object{}
	for _, k := range slices.Sorted(maps.Keys(of)) {
		o = append(core.AppendJSONString(o.Comma(), k), ':')
		o = append(o, of[k]...)
	}
	return o.Close(), decision
}

// maxSpokenComments bounds the comments that are searched for the run's own.
const maxSpokenComments = 20

// presentation returns which comment on its issue is the run's result, if one is.
func presentation(tx *ledger.Tx, r entity.Run) []byte {
	comment, source, action, reason := "", "none", "none", "no_user_facing_response"
	if i, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID); ok {
		list, _ := entity.CommentsOf(tx, i, entity.CommentQuery{Limit: maxSpokenComments})
		for _, cm := range list {
			if string(cm.Run) == r.ID && cm.DeletedAt == 0 {
				comment, source, action, reason = cm.ID, "existing_issue_comment", "reuse", "run_authored_issue_comment"
				break
			}
		}
	}
	return core.Object{}.Str("schema", "paperclip.run_presentation_decision.v1").Null("commentId", comment).
		List("reasonCodes", []string{reason}).
		Str("chosenSource", source).Str("commentAction", action).Null("sourceEventId", "").Str("resolverVersion", "1").
		Str("activityDisposition", "collapse").Close()
}

// timeLimit returns the timeoutSec of an adapterConfig: whole seconds, 0 for none.
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
