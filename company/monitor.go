package company

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// CheckMonitor is the payload of issue.monitor. The leader sends it when the time
// has come; who may change the issue sends it to look now.
type CheckMonitor struct {
	Issue string `cbor:"1,keyasint"`
	Due   Time   `cbor:"2,keyasint,omitempty"` // of the leader: what it fires for
}

// A DueMonitor is an issue whose monitor is to fire.
type DueMonitor struct {
	Company string
	CheckMonitor
}

// The monitors that will fire, by time, over all companies:
//
//	issue-monitor/<time>/<issue>   company
func monitorKey(i Issue) []byte {
	return ledger.Key("issue-monitor", ledger.Order(uint64(i.Monitor.NextAt)), i.ID)
}

const KindIssueMonitor = "issue.monitor"

var monitorKinds = []Kind{
	{Name: KindIssueMonitor, From: FromBoard | FromAgent | FromNode, Traits: SeldomWork, Do: ledger.Typed(checkMonitor)},
}

// monitored takes over what the execution policy of next says about a monitor,
// when it is another one than before.
func monitored(c *ledger.Context, old, next Issue) (Issue, error) {
	if string(old.ExecutionPolicy) == string(next.ExecutionPolicy) {
		return next, nil
	}
	p := next.policy().Monitor
	m := Monitor{}
	if next.Monitor != nil {
		m = *next.Monitor
	}
	if p == nil {
		if next.Monitor != nil {
			m.NextAt = 0
			next.Monitor = &m
		}
		return next, nil
	}
	if p.NextAt <= 0 {
		return next, ledger.Refuse(ledger.Invalid, nil, "executionPolicy.monitor.nextCheckAt is required")
	}
	m.By = "board"
	if isAgent(c) {
		m.By = "assignee"
	} else {
		m.Attempts = 0 // a person begins anew
	}
	if p.MaxAttempts > 0 && m.Attempts >= p.MaxAttempts {
		return next, refuseCode(ledger.Unprocessable, "issue_monitor_exhausted", jsonObject{}.str("issueId", next.ID).int("attemptCount", m.Attempts).int("maxAttempts", p.MaxAttempts).close(),
			"The issue was looked at as often as its monitor allows")
	}
	m.NextAt, m.Notes = p.NextAt, p.Notes
	next.Monitor = &m
	return next, nil
}

// scheduleMonitor keeps the key of an issue's monitor as long as it can fire.
func scheduleMonitor(tx *ledger.Tx, old, next Issue) {
	var was, is []byte
	if old.monitors() {
		was = monitorKey(old)
	}
	if next.monitors() {
		is = monitorKey(next)
	}
	if string(was) == string(is) {
		return
	}
	if was != nil {
		tx.Delete(was)
	}
	if is != nil {
		tx.Set(is, []byte(next.Company))
	}
}

// DueMonitors returns the monitors that are due at now, the longest due first.
func DueMonitors(tx *ledger.Tx, now Time, limit int) (out []DueMonitor) {
	from := ledger.Key("issue-monitor", "")
	for k, v := range tx.Scan(from, ledger.Key("issue-monitor", ledger.Order(uint64(now)+1)), false) {
		if len(out) == limit {
			break
		}
		if i, ok := issues.Get(tx, string(v), string(k[len(k)-36:])); ok && i.monitors() {
			out = append(out, DueMonitor{i.Company, CheckMonitor{i.ID, i.Monitor.NextAt}})
		}
	}
	return out
}

// checkMonitor wakes the agent that waits. What was scheduled is over then: the
// agent schedules the next look itself, or says what becomes of the issue.
func checkMonitor(c *ledger.Context, p CheckMonitor) (any, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, errNoIssue()
	}
	now := TimeOf(c.Now)
	if p.Due != 0 {
		if !i.monitors() || i.Monitor.NextAt != p.Due || i.Monitor.NextAt > now {
			return nil, ledger.Refuse(ledger.Conflict, nil, "the monitor of issue %s is not due", i.Identifier)
		}
	} else {
		if err := mayUpdate(c, i); err != nil {
			return nil, err
		}
		if i.Monitor == nil || i.Monitor.NextAt == 0 {
			return nil, refuseCode(ledger.Conflict, "issue_monitor_not_scheduled", jsonObject{}.str("issueId", i.ID).str("status", string(i.Status)).close(),
				"Issue has no scheduled monitor")
		}
		if !i.watchable() {
			return nil, refuseCode(ledger.Unprocessable, "issue_monitor_not_eligible",
				jsonObject{}.str("issueId", i.ID).str("status", string(i.Status)).null("assigneeAgentId", i.Assignee).close(),
				"A monitor fires only for an issue that an agent has in progress or in review")
		}
	}
	policy := i.policy().Monitor
	m := *i.Monitor
	m.NextAt, m.LastAt = 0, now
	m.Attempts++
	next := i
	next.Monitor, next.ExecutionPolicy, next.UpdatedAt = &m, withoutMonitor(i.ExecutionPolicy), now
	late := policy != nil && (policy.TimeoutAt > 0 && now >= policy.TimeoutAt || policy.MaxAttempts > 0 && m.Attempts >= policy.MaxAttempts)
	reason := "issue_monitor_due"
	var recovery Issue
	if late {
		var err error
		reason = "issue_monitor_exhausted"
		if policy.Recovery == "create_recovery_issue" {
			if recovery, err = recoveryIssue(c, i, *policy, m.Attempts); err != nil {
				return nil, err
			}
			next.BlockedBy = sortedSet(append(slices.Clone(next.BlockedBy), recovery.ID))
			if recovery.ID == "" { // there is no room for one
				policy.Recovery, next.BlockedBy = "escalate_to_board", i.BlockedBy
			}
		}
		if policy.Recovery == "escalate_to_board" {
			if next, _, err = next.Move(Move{To: IssueBlocked, Routable: true, Now: now}); err != nil {
				return nil, err
			}
			next.UnblockDescriptor = jsonObject{}.str("owner", "board").str("action", "decide").str("reason", reason).close()
		}
	}
	c.Record(ledger.Change{Action: "issue.monitor_triggered", EntityType: "issue", EntityID: i.ID, Details: jsonObject{}.str("identifier", i.Identifier).
		int("attemptCount", m.Attempts).bool("exhausted", late).str("status", string(next.Status)).null("recoveryIssueId", recovery.ID).null("recoveryIdentifier", recovery.Identifier).close()})
	storeIssue(c.Tx, i, next)
	if next.Status == IssueBlocked || recovery.ID != "" {
		return next, nil
	}
	return next, wakeForIssue(c, next, WakeAutomation, "issue.monitor", reason, "")
}

// originStranded is the origin of an issue that is about another that does not go on.
const originStranded = "stranded_issue_recovery"

// recoveryIssue returns the issue in which somebody finds out what became of that
// for which i waited in vain: one that is open already, or a new part of i, for the
// same agent. i waits for it. It is no issue where i can have no more parts.
func recoveryIssue(c *ledger.Context, i Issue, p monitorPolicy, attempts int64) (Issue, error) {
	for id := range issuesByParent.IDs(c.Tx, i.Company, i.ID, false) {
		if o, ok := issues.Get(c.Tx, i.Company, id); ok && o.OriginKind == originStranded && o.OriginID == i.ID && !o.Status.Terminal() {
			return o, nil
		}
	}
	id := derivedID("monitor-recovery", i.ID, ledger.Order(c.Height))
	if i.Depth >= MaxRequestDepth || checkParent(c.Tx, Issue{ID: id, Company: i.Company, Parent: i.ID}) != nil {
		return Issue{}, nil
	}
	why, mark := "it was looked at "+strconv.FormatInt(attempts, 10)+" times", "issue_monitor:max_attempts_exhausted"
	if p.TimeoutAt > 0 && i.Monitor != nil && TimeOf(c.Now) >= p.TimeoutAt {
		why, mark = "its time was up", "issue_monitor:timeout_exceeded"
	}
	text := "What " + i.Identifier + " waits for did not come about: the monitor ended because " + why + ".\n\nFind out how it stands, write it down on " + i.Identifier +
		", and set this issue to done when that one can go on, or will wait for something else."
	if p.Notes != "" {
		text += "\n\nIt waited for: " + p.Notes
	}
	in := CreateIssue{ID: id, Title: "Find out what " + i.Identifier + " waits for", Description: text, Status: IssueTodo, Priority: PriorityHigh, Assignee: i.Assignee, Project: i.Project,
		Goal: i.Goal, Parent: i.ID, BillingCode: i.BillingCode, OriginKind: originStranded, OriginID: i.ID, OriginFingerprint: mark, AllowDuplicate: true, many: true}
	if assignable(c.Tx, i.Company, in.Assignee) != nil {
		in.Assignee = ""
	}
	made, err := createIssue(c, in)
	if err != nil {
		return Issue{}, err
	}
	return made.(IssueResult).Issue, nil
}

// withoutMonitor returns an execution policy as it is once its monitor has fired.
func withoutMonitor(b json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return b
	}
	delete(all, "monitor")
	if len(all) == 0 {
		return nil
	}
	out, err := json.Marshal(all) // members in the order of their names
	if err != nil {
		return b
	}
	return out
}
