package work

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/file"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// Issues are encoded by hand, not by reflection: a row has some seventy keys, most of
// them always null, and a list has up to a thousand rows.

// listedDescription bounds the description in a list, in bytes. The issue's own route
// returns all of it.
const listedDescription = 1_200

// A member writes one or more members of an issue.
type member = func(core.Object) core.Object

const (
	issueConversation = `"conversationAgentId":null,"conversationUserId":null,"conversationState":null,` +
		`"conversationSessionGeneration":0,"conversationBoundaryCommentId":null`
	noMonitor = `"monitorNextCheckAt":null,"monitorWakeRequestedAt":null,"monitorLastTriggeredAt":null,` +
		`"monitorAttemptCount":0,"monitorNotes":null,"monitorScheduledBy":null`
	issueRelated = `"relatedWork":{"outbound":[],"inbound":[]},"referencedIssueIdentifiers":[]`
	noReview     = `"reviewAttention":{"state":"none","paths":[],"reason":null}`
)

// issueRow begins an issue with the keys that every answer about an issue has.
func issueRow(i entity.Issue, labels []entity.Label, listed bool) core.Object {
	return issueRowWith(i, labels, listed, nil)
}

// issueRowWith is issueRow for an issue with a watchdog, given as encoded JSON.
func issueRowWith(i entity.Issue, labels []entity.Label, listed bool, watchdog json.RawMessage) core.Object {
	b := make(core.Object, 0, 3_072+len(i.Description)).Str("id", i.ID).Str("companyId", string(i.Company)).
		Fixed(issueConversation).
		Null("projectId", i.Project).Null("projectWorkspaceId", i.Workspace).Null("goalId", i.Goal).
		Null("parentId", i.Parent).
		Str("title", i.Title)
	description, cut := i.Description, false
	if listed && len(description) > listedDescription {
		description, cut = api.CutText(description, listedDescription), true
	}
	b = b.Null("description", description)
	if listed {
		b = b.Bool("descriptionTruncated", cut)
	}
	b = b.Str("status", string(i.Status)).Int("statusVersion", int64(i.StatusVersion)).Null("lastStatusDecisionId",
		paper.LastDecision(i)).
		Str("workMode", i.Mode()).Null("harnessKind", i.HarnessKind).Str("priority", string(i.Priority)).Null("reviewPolicy",
		i.ReviewPolicy).
		Null("assigneeAgentId", i.Assignee).Null("assigneeUserId", i.AssigneeUser).
		Null("checkoutRunId", i.CheckoutRun).Null("executionRunId", i.CheckoutRun).
		Fixed(`"executionAgentNameKey":null,"executionLockedAt":null`).
		Null("createdByAgentId", i.CreatedAgent).Null("createdByUserId", i.CreatedUser).Null("responsibleUserId",
		i.ResponsibleUser).
		Int("issueNumber", int64(i.Number)).Str("identifier", i.Identifier).
		Str("originKind", i.Origin()).Null("originId", i.OriginID).Null("originRunId", i.OriginRun).
		Fixed(`"originIdentityContextId":null`).Null("continuationIdentityContextId", i.ContinuationIdentity).
		Str("originFingerprint", i.Fingerprint()).
		Int("requestDepth", int64(i.Depth)).Null("billingCode", i.BillingCode).
		Raw("assigneeAdapterOverrides", i.AdapterOverrides).Raw("executionPolicy", i.ExecutionPolicy).Raw("executionState",
		i.ExecutionStateJSON()).
		With(monitorMember(i.Monitor)).Null("executionWorkspaceId", i.ExecutionWorkspace).Null("executionWorkspacePreference",
		i.WorkspacePref).
		Raw("executionWorkspaceSettings", i.WorkspaceSettings).Fixed(`"sourceTrust":null`).Raw("unblockDescriptor",
		i.UnblockDescriptor).
		Time("blockedTransitionAt", i.BlockedAt).Fixed(`"blockedOwnerNotifiedAt":null`).
		Time("startedAt", i.StartedAt).Time("completedAt", i.CompletedAt).Time("cancelledAt", i.CancelledAt).Time("hiddenAt",
		i.HiddenAt).
		Time("createdAt", i.CreatedAt).Time("updatedAt", i.UpdatedAt)
	if len(labels) == 0 {
		b = b.Fixed(`"labels":[],"labelIds":[]`)
	} else {
		ids := make([]string, len(labels))
		for n, l := range labels {
			ids[n] = l.ID
		}
		b = b.Value("labels", labels).Value("labelIds", ids)
	}
	b = b.Raw("watchdog", watchdog)
	// The fencing token is not in the contract: later writes under this checkout are checked
	// against it.
	if i.Held() {
		return b.Int("fencingToken", int64(i.Fence))
	}
	return b.Fixed(`"fencingToken":null`)
}

// monitorMember writes the issue's monitor: when its agent checks something external
// again.
func monitorMember(m *entity.Monitor) member {
	return func(b core.Object) core.Object {
		if m == nil {
			return b.Fixed(noMonitor)
		}
		return b.Time("monitorNextCheckAt", m.NextAt).Time("monitorWakeRequestedAt", m.LastAt).
			Time("monitorLastTriggeredAt", m.LastAt).
			Int("monitorAttemptCount", m.Attempts).Null("monitorNotes", m.Notes).Null("monitorScheduledBy", m.By)
	}
}

// refsMember writes references to issues.
func refsMember(name string, refs []entity.IssueRef) member {
	return func(b core.Object) core.Object {
		if len(refs) == 0 {
			return b.Raw(name, []byte("[]"))
		}
		return b.Value(name, refs)
	}
}

func refsOf(issues []entity.Issue) []entity.IssueRef {
	out := make([]entity.IssueRef, len(issues))
	for n, i := range issues {
		out[n] = i.Ref()
	}
	return out
}

// attentionMember writes what an issue's blockers need.
func attentionMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		a := entity.AttentionOf(tx, i)
		sample, stalled, direct := "", "", ""
		live := false
		for _, w := range a.Waiting {
			if sample == "" {
				sample, direct = w.Identifier, w.ID
			}
			if w.Status == entity.IssueInReview && stalled == "" {
				stalled = w.Identifier
			}
			live = live || w.Held()
		}
		o := core.Object{}.Str("state", a.State).Null("reason", a.Reason).
			Int("unresolvedBlockerCount", int64(len(a.Waiting))).Int("coveredBlockerCount", int64(a.Covered)).
			Int("stalledBlockerCount", int64(a.Stalled)).
			Int("attentionBlockerCount", int64(len(a.Waiting)-a.Covered-a.Stalled)).Fixed(`"pendingFinalizeBlockerIssueIds":[]`).
			Null("sampleBlockerIdentifier", sample).Null("sampleStalledBlockerIdentifier", stalled).
			Bool("blockingTreeLive", live).
			Null("directBlockerIssueId", direct).Fixed(`"terminalBlockerIssueId":null,"terminalBlocker":null`)
		return b.Raw("blockerAttention", o.Close())
	}
}

// activeRunMember writes the run that holds an issue, or null.
func activeRunMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		if i.CheckoutRun == "" {
			return b.Raw("activeRun", nil)
		}
		r, ok := entity.RunOf(tx, i.Company, i.CheckoutRun)
		if !ok {
			return b.Raw("activeRun", nil)
		}
		o := core.Object{}.Str("id", r.ID).Str("status", string(r.Status)).Str("agentId", r.Agent).
			Str("invocationSource", string(r.Source)).Null("triggerDetail", string(r.TriggerDetail)).
			Time("startedAt", r.StartedAt).Time("finishedAt", r.FinishedAt).Time("createdAt", r.CreatedAt)
		return b.Raw("activeRun", o.Close())
	}
}

// issueBare is the answer to checkout, release and delete.
func issueBare(i entity.Issue, labels []entity.Label) json.RawMessage {
	return issueRow(i, labels, false).Close()
}

// issueCreated is the answer to creating an issue, or to a repetition that finds the
// issue created before.
func issueCreated(r entity.IssueResult, child bool) json.RawMessage {
	b := issueRow(r.Issue, r.Labels, false).With(refsMember("blockedBy", r.BlockedBy)).With(refsMember("blocks", r.Blocks))
	if r.Duplicate != "" {
		b = b.Bool("deduplicated", true).Str("deduplicationReason", r.Duplicate)
	}
	if !child {
		b = b.Fixed(issueRelated)
	}
	return b.Close()
}

// issueUpdated is the answer to an update. text reports whether it changed the title or
// the description.
func issueUpdated(r entity.IssueResult, text bool) json.RawMessage {
	b := issueRow(r.Issue, r.Labels, false).Raw("changes", r.Changes)
	if text {
		b = b.Fixed(issueRelated)
	}
	if r.Comment == nil {
		return b.Raw("comment", nil).Close()
	}
	return b.Value("comment", r.Comment).Close()
}

// listedRow is one row of a list. viewer is the user for whom the list was requested,
// or "".
func listedRow(tx *ledger.Tx, i entity.Issue, viewer string) core.Object {
	b := issueRow(i, entity.LabelRows(tx, i), true).With(activeRunMember(tx, i)).Time("lastActivityAt", i.UpdatedAt).
		With(attentionMember(tx, i)).Fixed(noReview).With(handoffMember(tx, i)).With(recoveryMember(tx, i))
	if viewer != "" {
		s := inbox.StandingOf(tx, i, viewer)
		b = b.Time("myLastTouchAt", s.Touched).Time("lastExternalCommentAt", s.External).Bool("isUnreadForMe", s.Unread())
	}
	return b
}

// issueShown is an issue in full. project and goal are encoded JSON or nil.
func issueShown(tx *ledger.Tx, i entity.Issue, project, goal []byte) json.RawMessage {
	has := company.ExtrasOf(tx, i.Company, i.ID)
	return issueRowWith(i, entity.LabelRows(tx, i), false, watchdogRow(tx, i, has)).With(ancestorsMember(tx, i)).
		With(attentionMember(tx, i)).Fixed(noReview).
		With(handoffMember(tx, i)).Fixed(`"executionBlocker":null`).With(retryMember(tx, i)).With(recoveryMember(tx, i)).
		With(refsMember("blockedBy", refsOf(entity.Blockers(tx, i)))).With(refsMember("blocks", waiting(tx, i, has))).
		Fixed(issueRelated).
		With(documentsMember(tx, i, has)).Raw("project", project).Raw("goal", goal).Value("goalChain",
		entity.GoalChain(tx, i)).
		Fixed(`"mentionedProjects":[],"currentExecutionWorkspace":null`).With(productsMember(tx, i, has)).
		Fixed(`"linkedCases":[],"externalChannelBinding":null`).With(activeRunMember(tx, i)).Close()
}

func watchdogRow(tx *ledger.Tx, i entity.Issue, has company.Extras) json.RawMessage {
	if has&company.HasWatchdog == 0 {
		return nil
	}
	w, ok := care.WatchdogOf(tx, i.Company, i.ID)
	if !ok {
		return nil
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic("api: watchdog does not encode: " + err.Error()) // rows can always be encoded
	}
	return b
}

// waiting returns the issues that are blocked by i.
func waiting(tx *ledger.Tx, i entity.Issue, has company.Extras) []entity.IssueRef {
	if has&company.HasWaiting == 0 {
		return nil
	}
	return refsOf(entity.Blocks(tx, i))
}

func productsMember(tx *ledger.Tx, i entity.Issue, has company.Extras) member {
	return func(b core.Object) core.Object {
		if has&company.HasProducts == 0 {
			return b.Fixed(`"workProducts":[]`)
		}
		return b.Value("workProducts", file.ProductsOf(tx, i))
	}
}

func ancestorsMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		list := []byte{'['}
		for n, a := range entity.Ancestors(tx, i) {
			if n > 0 {
				list = append(list, ',')
			}
			list = append(list, core.Object{}.Str("id", a.ID).Str("identifier", a.Identifier).Str("title", a.Title).
				Null("description", a.Description).Str("status", string(a.Status)).Str("priority", string(a.Priority)).
				Null("assigneeAgentId", a.Assignee).Null("assigneeUserId", a.AssigneeUser).Null("projectId", a.Project).
				Null("goalId", a.Goal).Close()...)
		}
		return b.Raw("ancestors", append(list, ']'))
	}
}

// jsonList joins encoded rows into an array.
func jsonList(rows []json.RawMessage) json.RawMessage {
	n := 2 + len(rows)
	for _, r := range rows {
		n += len(r)
	}
	b := append(make([]byte, 0, n), '[')
	for i, r := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(b, ']')
}
