package care

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// CheckMonitor is the payload of issue.monitor. The leader sends it when a monitor is due;
// whoever may change the issue sends it to check now.
type CheckMonitor struct {
	Issue string    `cbor:"1,keyasint"`
	Due   core.Time `cbor:"2,keyasint,omitempty"` // from the leader: the due time
}

// A DueMonitor is an issue whose monitor is due.
type DueMonitor struct {
	Company ledger.CompanyID
	CheckMonitor
}

// Scheduled monitors by time, over all companies:
//
//	issue-monitor/<time>/<issue>   company
func MonitorKey(i entity.Issue) []byte {
	return ledger.Key("issue-monitor", ledger.Order(uint64(i.Monitor.NextAt)), i.ID)
}

const KindIssueMonitor = "issue.monitor"

var monitorKinds = []company.Kind{
	{Name: KindIssueMonitor, From: company.FromBoard | company.FromAgent | company.FromNode, Traits: company.SeldomWork,
		Weight: company.Weights.Task, Do: ledger.Typed(checkMonitor)},
}

// monitored applies what the execution policy of next says about a monitor, if that changed.
func monitored(c *ledger.Context, old, next entity.Issue) (entity.Issue, error) {
	if string(old.ExecutionPolicy) == string(next.ExecutionPolicy) {
		return next, nil
	}
	p := next.Policy().Monitor
	m := entity.Monitor{}
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
	if core.IsAgent(c) {
		m.By = "assignee"
	} else {
		m.Attempts = 0 // a person starts again
	}
	if p.MaxAttempts > 0 && m.Attempts >= p.MaxAttempts {
		return next, core.RefuseCode(ledger.Unprocessable, "issue_monitor_exhausted", core.Object{}.Str("issueId", next.ID).
			Int("attemptCount", m.Attempts).Int("maxAttempts", p.MaxAttempts).Close(),
			"The issue was looked at as often as its monitor allows")
	}
	m.NextAt, m.Notes = p.NextAt, p.Notes
	next.Monitor = &m
	return next, nil
}

// scheduleMonitor maintains the key of an issue's monitor while it can fire.
func scheduleMonitor(tx *ledger.Tx, old, next entity.Issue) {
	var was, is []byte
	if old.Monitors() {
		was = MonitorKey(old)
	}
	if next.Monitors() {
		is = MonitorKey(next)
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
func DueMonitors(tx *ledger.Tx, now core.Time, limit int) (out []DueMonitor) {
	from := ledger.Key("issue-monitor", "")
	for k, v := range tx.Scan(from, ledger.Key("issue-monitor", ledger.Order(uint64(now)+1)), false) {
		if len(out) == limit {
			break
		}
		if i, ok := entity.IssueTable.Get(tx, ledger.CompanyID(v), string(k[len(k)-36:])); ok && i.Monitors() {
			out = append(out, DueMonitor{i.Company, CheckMonitor{i.ID, i.Monitor.NextAt}})
		}
	}
	return out
}

// checkMonitor wakes the waiting agent and ends the schedule: the agent schedules the next
// check itself, or decides about the issue.
func checkMonitor(c *ledger.Context, p CheckMonitor) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	now := core.TimeOf(c.Now)
	if p.Due != 0 {
		if !i.Monitors() || i.Monitor.NextAt != p.Due || i.Monitor.NextAt > now {
			return nil, ledger.Refuse(ledger.Conflict, nil, "the monitor of issue %s is not due", i.Identifier)
		}
	} else {
		if err := company.MayUpdate(c, i); err != nil {
			return nil, err
		}
		if i.Monitor == nil || i.Monitor.NextAt == 0 {
			return nil, core.RefuseCode(ledger.Conflict, "issue_monitor_not_scheduled", core.Object{}.Str("issueId", i.ID).
				Str("status", string(i.Status)).Close(),
				"Issue has no scheduled monitor")
		}
		if !i.Watchable() {
			return nil, core.RefuseCode(ledger.Unprocessable, "issue_monitor_not_eligible",
				core.Object{}.Str("issueId", i.ID).Str("status", string(i.Status)).Null("assigneeAgentId", i.Assignee).Close(),
				"A monitor fires only for an issue that an agent has in progress or in review")
		}
	}
	policy := i.Policy().Monitor
	m := *i.Monitor
	m.NextAt, m.LastAt = 0, now
	m.Attempts++
	next := i
	next.Monitor, next.ExecutionPolicy, next.UpdatedAt = &m, withoutMonitor(i.ExecutionPolicy), now
	late := policy != nil && (policy.TimeoutAt > 0 && now >= policy.TimeoutAt || policy.MaxAttempts > 0 &&
		m.Attempts >= policy.MaxAttempts)
	reason := "issue_monitor_due"
	var recovery entity.Issue
	if late {
		var err error
		reason = "issue_monitor_exhausted"
		if policy.Recovery == "create_recovery_issue" {
			if recovery, err = recoveryIssue(c, i, *policy, m.Attempts); err != nil {
				return nil, err
			}
			next.BlockedBy = core.SortedSet(append(slices.Clone(next.BlockedBy), recovery.ID))
			if recovery.ID == "" { // there is no room for one
				policy.Recovery, next.BlockedBy = "escalate_to_board", i.BlockedBy
			}
		}
		if policy.Recovery == "escalate_to_board" {
			if next, _, err = next.Move(entity.Move{To: entity.IssueBlocked, Routable: true, Now: now}); err != nil {
				return nil, err
			}
			next.UnblockDescriptor = core.Object{}.Str("owner", "board").Str("action", "decide").Str("reason", reason).Close()
		}
	}
	c.Record(ledger.Change{Action: "issue.monitor_triggered", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).
			Int("attemptCount", m.Attempts).Bool("exhausted", late).Str("status", string(next.Status)).Null("recoveryIssueId",
			recovery.ID).Null("recoveryIdentifier", recovery.Identifier).Close()})
	company.StoreIssue(c.Tx, i, next)
	if next.Status == entity.IssueBlocked || recovery.ID != "" {
		return next, nil
	}
	return next, company.WakeForIssue(c, next, entity.WakeAutomation, "issue.monitor", reason, "")
}

// originStranded is the origin kind of an issue about another issue that is stuck.
const originStranded = "stranded_issue_recovery"

// recoveryIssue returns the issue for finding out why i waited in vain: an open one, or a new
// sub-issue of i for the same agent. i waits for it. It returns the zero issue when i can have
// no more sub-issues.
func recoveryIssue(c *ledger.Context, i entity.Issue, p entity.MonitorPolicy, attempts int64) (entity.Issue, error) {
	for id := range entity.IssuesByParent.IDs(c.Tx, i.Company, i.ID, false) {
		if o, ok := entity.IssueTable.Get(c.Tx, i.Company, id); ok && o.OriginKind == originStranded && o.OriginID == i.ID &&
			!o.Status.Terminal() {
			return o, nil
		}
	}
	id := core.DerivedID("monitor-recovery", i.ID, ledger.Order(c.Height))
	if i.Depth >= company.MaxRequestDepth || entity.CheckParent(c.Tx, entity.Issue{ID: id, Company: i.Company,
		Parent: i.ID}) != nil {
		return entity.Issue{}, nil
	}
	why, mark := "it was looked at "+strconv.FormatInt(attempts, 10)+" times", "issue_monitor:max_attempts_exhausted"
	if p.TimeoutAt > 0 && i.Monitor != nil && core.TimeOf(c.Now) >= p.TimeoutAt {
		why, mark = "its time was up", "issue_monitor:timeout_exceeded"
	}
	text := "What " + i.Identifier + " waits for did not come about: the monitor ended because " + why +
		".\n\nFind out how it stands, write it down on " + i.Identifier +
		", and set this issue to done when that one can go on, or will wait for something else."
	if p.Notes != "" {
		text += "\n\nIt waited for: " + p.Notes
	}
	in := company.CreateIssue{ID: id, Title: "Find out what " + i.Identifier + " waits for", Description: text,
		Status: entity.IssueTodo, Priority: entity.PriorityHigh, Assignee: i.Assignee, Project: i.Project,
		Goal: i.Goal, Parent: i.ID, BillingCode: i.BillingCode, OriginKind: originStranded, OriginID: i.ID,
		OriginFingerprint: mark, AllowDuplicate: true, Many: true}
	if entity.Assignable(c.Tx, i.Company, in.Assignee) != nil {
		in.Assignee = ""
	}
	made, err := company.MakeIssue(c, in)
	if err != nil {
		return entity.Issue{}, err
	}
	return made.(entity.IssueResult).Issue, nil
}

// withoutMonitor returns an execution policy without its monitor, which has fired.
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
