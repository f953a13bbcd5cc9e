package work

import (
	"encoding/json"
	"strconv"

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

// Issues are written by hand, not by reflection: a row has some seventy keys,
// most of them always null, and a list has up to a thousand rows.

// listedDescription is how much of a description a list shows, in bytes; the
// issue itself has all of it.
const listedDescription = 1_200

// A jsonRow is a JSON object under construction, without its closing brace.
type jsonRow []byte

func (b jsonRow) key(name string) jsonRow {
	if n := len(b); n > 0 && b[n-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

func (b jsonRow) str(name, v string) jsonRow { return core.AppendJSONString(b.key(name), v) }

// null adds a string, or null when it is empty.
func (b jsonRow) null(name, v string) jsonRow {
	if v == "" {
		return append(b.key(name), "null"...)
	}
	return b.str(name, v)
}

func (b jsonRow) num(name string, v int64) jsonRow { return strconv.AppendInt(b.key(name), v, 10) }

func (b jsonRow) flag(name string, v bool) jsonRow { return strconv.AppendBool(b.key(name), v) }

func (b jsonRow) at(name string, v core.Time) jsonRow {
	j, _ := v.MarshalJSON() // never fails
	return append(b.key(name), j...)
}

// raw adds ready JSON, null when there is none.
func (b jsonRow) raw(name string, v []byte) jsonRow {
	if len(v) == 0 {
		return append(b.key(name), "null"...)
	}
	return append(b.key(name), v...)
}

// value adds anything that encodes as JSON.
func (b jsonRow) value(name string, v any) jsonRow {
	j, err := json.Marshal(v)
	if err != nil {
		panic("api: " + name + " does not encode: " + err.Error()) // rows always encode
	}
	return append(b.key(name), j...)
}

// fixed adds keys that are the same for every issue of this system.
func (b jsonRow) fixed(keys string) jsonRow {
	if n := len(b); n > 0 && b[n-1] != '{' {
		b = append(b, ',')
	}
	return append(b, keys...)
}

func (b jsonRow) done() json.RawMessage { return json.RawMessage(append(b, '}')) }

const (
	issueConversation = `"conversationAgentId":null,"conversationUserId":null,"conversationState":null,"conversationSessionGeneration":0,"conversationBoundaryCommentId":null`
	noMonitor         = `"monitorNextCheckAt":null,"monitorWakeRequestedAt":null,"monitorLastTriggeredAt":null,"monitorAttemptCount":0,"monitorNotes":null,"monitorScheduledBy":null`
	issueRelated      = `"relatedWork":{"outbound":[],"inbound":[]},"referencedIssueIdentifiers":[]`
	noReview          = `"reviewAttention":{"state":"none","paths":[],"reason":null}`
)

// issueRow begins an issue with the keys that every answer about one has.
func issueRow(i entity.Issue, labels []entity.Label, listed bool) jsonRow {
	return issueRowWith(i, labels, listed, nil)
}

// issueRowWith is issueRow of an issue that an agent looks after, in ready JSON.
func issueRowWith(i entity.Issue, labels []entity.Label, listed bool, watchdog json.RawMessage) jsonRow {
	b := append(make(jsonRow, 0, 3_072+len(i.Description)), '{')
	b = b.str("id", i.ID).str("companyId", i.Company).fixed(issueConversation).
		null("projectId", i.Project).null("projectWorkspaceId", i.Workspace).null("goalId", i.Goal).null("parentId", i.Parent).
		str("title", i.Title)
	description, cut := i.Description, false
	if listed && len(description) > listedDescription {
		description, cut = api.CutText(description, listedDescription), true
	}
	b = b.null("description", description)
	if listed {
		b = b.flag("descriptionTruncated", cut)
	}
	b = b.str("status", string(i.Status)).num("statusVersion", int64(i.StatusVersion)).null("lastStatusDecisionId", paper.LastDecision(i)).
		str("workMode", i.Mode()).null("harnessKind", i.HarnessKind).str("priority", string(i.Priority)).null("reviewPolicy", i.ReviewPolicy).
		null("assigneeAgentId", i.Assignee).null("assigneeUserId", i.AssigneeUser).
		null("checkoutRunId", i.CheckoutRun).null("executionRunId", i.CheckoutRun).fixed(`"executionAgentNameKey":null,"executionLockedAt":null`).
		null("createdByAgentId", i.CreatedAgent).null("createdByUserId", i.CreatedUser).null("responsibleUserId", i.ResponsibleUser).
		num("issueNumber", int64(i.Number)).str("identifier", i.Identifier).
		str("originKind", i.Origin()).null("originId", i.OriginID).null("originRunId", i.OriginRun).
		fixed(`"originIdentityContextId":null`).null("continuationIdentityContextId", i.ContinuationIdentity).str("originFingerprint", i.Fingerprint()).
		num("requestDepth", int64(i.Depth)).null("billingCode", i.BillingCode).
		raw("assigneeAdapterOverrides", i.AdapterOverrides).raw("executionPolicy", i.ExecutionPolicy).raw("executionState", i.ExecutionStateJSON()).
		monitor(i.Monitor).null("executionWorkspaceId", i.ExecutionWorkspace).null("executionWorkspacePreference", i.WorkspacePref).
		raw("executionWorkspaceSettings", i.WorkspaceSettings).fixed(`"sourceTrust":null`).raw("unblockDescriptor", i.UnblockDescriptor).
		at("blockedTransitionAt", i.BlockedAt).fixed(`"blockedOwnerNotifiedAt":null`).
		at("startedAt", i.StartedAt).at("completedAt", i.CompletedAt).at("cancelledAt", i.CancelledAt).at("hiddenAt", i.HiddenAt).
		at("createdAt", i.CreatedAt).at("updatedAt", i.UpdatedAt)
	if len(labels) == 0 {
		b = b.fixed(`"labels":[],"labelIds":[]`)
	} else {
		ids := make([]string, len(labels))
		for n, l := range labels {
			ids[n] = l.ID
		}
		b = b.value("labels", labels).value("labelIds", ids)
	}
	b = b.raw("watchdog", watchdog)
	// The fencing token is ours: what later writes under this checkout are checked by.
	if i.Held() {
		return b.num("fencingToken", int64(i.Fence))
	}
	return b.fixed(`"fencingToken":null`)
}

// monitor writes when an issue's agent looks again at something outside.
func (b jsonRow) monitor(m *entity.Monitor) jsonRow {
	if m == nil {
		return b.fixed(noMonitor)
	}
	return b.at("monitorNextCheckAt", m.NextAt).at("monitorWakeRequestedAt", m.LastAt).at("monitorLastTriggeredAt", m.LastAt).
		num("monitorAttemptCount", m.Attempts).null("monitorNotes", m.Notes).null("monitorScheduledBy", m.By)
}

// refs writes issues in their short form.
func (b jsonRow) refs(name string, refs []entity.IssueRef) jsonRow {
	if len(refs) == 0 {
		return append(b.key(name), "[]"...)
	}
	return b.value(name, refs)
}

func refsOf(issues []entity.Issue) []entity.IssueRef {
	out := make([]entity.IssueRef, len(issues))
	for n, i := range issues {
		out[n] = i.Ref()
	}
	return out
}

// attention writes what the blockers of an issue need.
func (b jsonRow) attention(tx *ledger.Tx, i entity.Issue) jsonRow {
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
	o := append(jsonRow{}, '{').str("state", a.State).null("reason", a.Reason).
		num("unresolvedBlockerCount", int64(len(a.Waiting))).num("coveredBlockerCount", int64(a.Covered)).num("stalledBlockerCount", int64(a.Stalled)).
		num("attentionBlockerCount", int64(len(a.Waiting)-a.Covered-a.Stalled)).fixed(`"pendingFinalizeBlockerIssueIds":[]`).
		null("sampleBlockerIdentifier", sample).null("sampleStalledBlockerIdentifier", stalled).flag("blockingTreeLive", live).
		null("directBlockerIssueId", direct).fixed(`"terminalBlockerIssueId":null,"terminalBlocker":null`)
	return b.raw("blockerAttention", o.done())
}

// activeRun writes the run that holds an issue, or null.
func (b jsonRow) activeRun(tx *ledger.Tx, i entity.Issue) jsonRow {
	if i.CheckoutRun == "" {
		return b.raw("activeRun", nil)
	}
	r, ok := entity.RunOf(tx, i.Company, i.CheckoutRun)
	if !ok {
		return b.raw("activeRun", nil)
	}
	o := append(jsonRow{}, '{').str("id", r.ID).str("status", string(r.Status)).str("agentId", r.Agent).
		str("invocationSource", string(r.Source)).null("triggerDetail", string(r.TriggerDetail)).
		at("startedAt", r.StartedAt).at("finishedAt", r.FinishedAt).at("createdAt", r.CreatedAt)
	return b.raw("activeRun", o.done())
}

// issueBare is the answer of checkout, release and delete.
func issueBare(i entity.Issue, labels []entity.Label) json.RawMessage {
	return issueRow(i, labels, false).done()
}

// issueCreated is the answer of creating an issue, or of finding the one that
// was created before.
func issueCreated(r entity.IssueResult, child bool) json.RawMessage {
	b := issueRow(r.Issue, r.Labels, false).refs("blockedBy", r.BlockedBy).refs("blocks", r.Blocks)
	if r.Duplicate != "" {
		b = b.flag("deduplicated", true).str("deduplicationReason", r.Duplicate)
	}
	if !child {
		b = b.fixed(issueRelated)
	}
	return b.done()
}

// issueUpdated is the answer of an update; text says that the title or the
// description was in it.
func issueUpdated(r entity.IssueResult, text bool) json.RawMessage {
	b := issueRow(r.Issue, r.Labels, false).raw("changes", r.Changes)
	if text {
		b = b.fixed(issueRelated)
	}
	if r.Comment == nil {
		return b.raw("comment", nil).done()
	}
	return b.value("comment", r.Comment).done()
}

// issueListed is one row of a list. Viewer is the user as whom it was asked for,
// "" for nobody.
func issueListed(tx *ledger.Tx, i entity.Issue, viewer string) json.RawMessage {
	return listedRow(tx, i, viewer).done()
}

func listedRow(tx *ledger.Tx, i entity.Issue, viewer string) jsonRow {
	b := issueRow(i, entity.LabelRows(tx, i), true).activeRun(tx, i).at("lastActivityAt", i.UpdatedAt).
		attention(tx, i).fixed(noReview).handoff(tx, i).recovery(tx, i)
	if viewer != "" {
		s := inbox.StandingOf(tx, i, viewer)
		b = b.at("myLastTouchAt", s.Touched).at("lastExternalCommentAt", s.External).flag("isUnreadForMe", s.Unread())
	}
	return b
}

// issueShown is the whole of one issue. project and goal are ready JSON or nil.
func issueShown(tx *ledger.Tx, i entity.Issue, project, goal []byte) json.RawMessage {
	has := company.ExtrasOf(tx, i.Company, i.ID)
	return issueRowWith(i, entity.LabelRows(tx, i), false, watchdogRow(tx, i, has)).ancestors(tx, i).attention(tx, i).fixed(noReview).
		handoff(tx, i).fixed(`"executionBlocker":null`).retry(tx, i).recovery(tx, i).
		refs("blockedBy", refsOf(entity.Blockers(tx, i))).refs("blocks", waiting(tx, i, has)).fixed(issueRelated).
		documents(tx, i, has).raw("project", project).raw("goal", goal).value("goalChain", entity.GoalChain(tx, i)).
		fixed(`"mentionedProjects":[],"currentExecutionWorkspace":null`).products(tx, i, has).fixed(`"linkedCases":[],"externalChannelBinding":null`).activeRun(tx, i).done()
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
		panic("api: watchdog does not encode: " + err.Error()) // rows always encode
	}
	return b
}

// waiting returns the issues that wait for i.
func waiting(tx *ledger.Tx, i entity.Issue, has company.Extras) []entity.IssueRef {
	if has&company.HasWaiting == 0 {
		return nil
	}
	return refsOf(entity.Blocks(tx, i))
}

func (b jsonRow) products(tx *ledger.Tx, i entity.Issue, has company.Extras) jsonRow {
	if has&company.HasProducts == 0 {
		return b.fixed(`"workProducts":[]`)
	}
	return b.value("workProducts", file.ProductsOf(tx, i))
}

func (b jsonRow) ancestors(tx *ledger.Tx, i entity.Issue) jsonRow {
	list := []byte{'['}
	for n, a := range entity.Ancestors(tx, i) {
		if n > 0 {
			list = append(list, ',')
		}
		list = append(list, append(jsonRow{}, '{').str("id", a.ID).str("identifier", a.Identifier).str("title", a.Title).
			null("description", a.Description).str("status", string(a.Status)).str("priority", string(a.Priority)).
			null("assigneeAgentId", a.Assignee).null("assigneeUserId", a.AssigneeUser).null("projectId", a.Project).null("goalId", a.Goal).done()...)
	}
	return b.raw("ancestors", append(list, ']'))
}

// jsonList joins ready rows to an array.
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
