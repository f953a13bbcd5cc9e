package run

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// Diagnostics say why an issue makes progress or not, as text and as values that a
// program can branch on. They only read.

const (
	// maxDiagnosed bounds the issues of a subtree that are read, maxWakeEvents the wakes
	// that are listed for an issue.
	maxDiagnosed  = 200
	maxWakeEvents = 100
)

type (
	diagnosedIssue struct {
		ID         string             `json:"id"`
		Identifier string             `json:"identifier"`
		Status     entity.IssueStatus `json:"status"`
		Title      string             `json:"title"`
		Agent      core.NullText      `json:"assigneeAgentId"`
		User       core.NullText      `json:"assigneeUserId"`
	}
	diagnosedBlocker struct {
		entity.IssueRef
		Done bool `json:"done"`
		Live bool `json:"hasLiveRun"`
	}
	blockerReadiness struct {
		AllDone    bool `json:"allBlockersDone"`
		Ready      bool `json:"isDependencyReady"`
		Unresolved int  `json:"unresolvedBlockerCount"`
	}
	blockerDiagnosis struct {
		Issue     diagnosedIssue     `json:"issue"`
		Diagnosis string             `json:"diagnosis"`
		Readiness blockerReadiness   `json:"readiness"`
		Blockers  []diagnosedBlocker `json:"blockers"`
		Waits     issueWaits         `json:"waits"`
	}
	// issueWaits are what an issue may wait for, besides other issues.
	issueWaits struct {
		Hold         *api.PauseHold  `json:"treeHold"`
		Interactions int             `json:"pendingInteractions"`
		Approvals    int             `json:"pendingApprovals"`
		Recovery     bool            `json:"recoveryAction"`
		Monitor      core.Time       `json:"monitorNextCheckAt"`
		RetryAt      core.Time       `json:"scheduledRetryAt"`
		Unblock      json.RawMessage `json:"unblockDescriptor"`
	}
	wakeEvent struct {
		Kind        string            `json:"kind"` // run, or a wake that created no run
		ID          string            `json:"id"`
		Agent       string            `json:"agentId"`
		Source      entity.WakeSource `json:"source"`
		Status      string            `json:"status"`
		Reason      core.NullText     `json:"reason"`
		Error       core.NullText     `json:"error"`
		Run         core.NullText     `json:"runId"`
		RequestedAt core.Time         `json:"requestedAt"`
		FinishedAt  core.Time         `json:"finishedAt"`
	}
	wakeDiagnosis struct {
		Issue     diagnosedIssue  `json:"issue"`
		Diagnosis string          `json:"diagnosis"`
		Agent     *diagnosedAgent `json:"assignee"`
		Live      int             `json:"liveRuns"`
		Watchdog  *care.Watchdog  `json:"watchdog"`
		Events    []wakeEvent     `json:"events"`
	}
	diagnosedAgent struct {
		ID          string             `json:"id"`
		Name        string             `json:"name"`
		Status      entity.AgentStatus `json:"status"`
		PauseReason core.NullText      `json:"pauseReason"`
	}
	subtreeRow struct {
		diagnosedIssue
		Parent    core.NullText    `json:"parentId"`
		Depth     int              `json:"depth"`
		Diagnosis string           `json:"diagnosis"`
		Readiness blockerReadiness `json:"readiness"`
		Live      int              `json:"liveRuns"`
		Stuck     bool             `json:"needsAttention"`
	}
	subtreeDiagnosis struct {
		Root      diagnosedIssue `json:"issue"`
		Diagnosis string         `json:"diagnosis"`
		Total     int            `json:"issueCount"`
		Stuck     int            `json:"needsAttentionCount"`
		Truncated bool           `json:"truncated"`
		Issues    []subtreeRow   `json:"issues"`
	}
)

func DiagnosticRoutes() []api.Route {
	const tag, path = "issues", "/api/issues/{id}/diagnostics"
	return []api.Route{
		api.ShowNow(api.Route{Path: path + "/blockers", Tag: tag, Summary: "Tell what an issue waits for"},
			api.FindIssue, blockersOf),
		api.ShowNow(api.Route{Path: path + "/wakes", Tag: tag, Summary: "Tell why an issue's agent was woken, or was not"},
			api.FindIssue, wakesOf),
		api.ShowNow(api.Route{Path: path + "/subtree", Tag: tag, Summary: "Tell which issues below one need somebody"},
			api.FindIssue, subtreeOf),
	}
}

func diagnosed(i entity.Issue) diagnosedIssue {
	return diagnosedIssue{i.ID, i.Identifier, i.Status, i.Title, core.NullText(i.Assignee), core.NullText(i.AssigneeUser)}
}

// liveOf counts the live and the running runs of an issue's agent for the issue.
func liveOf(tx *ledger.Tx, i entity.Issue) (live, running int) {
	for _, r := range entity.LiveRunsOnIssue(tx, i) {
		live++
		if r.Status == entity.RunRunning {
			running++
		}
	}
	return live, running
}

func waitsOf(tx *ledger.Tx, i entity.Issue) issueWaits {
	w := issueWaits{Recovery: i.Recovery != "", Unblock: api.RawJSON(i.UnblockDescriptor)}
	if h, ok := care.HeldBy(tx, i); ok {
		w.Hold = &api.PauseHold{Hold: h.ID, Root: h.Root, Issue: i.ID, IsRoot: h.Root == i.ID, Mode: h.Mode, Reason: h.Reason,
			Release: h.Release, Since: h.CreatedAt}
	}
	for _, in := range paper.InteractionsOf(tx, i) {
		if in.Status == "pending" {
			w.Interactions++
		}
	}
	for _, a := range money.ApprovalsOfIssue(tx, i.Company, i.ID) {
		if a.Status.Open() {
			w.Approvals++
		}
	}
	if i.Monitor != nil {
		w.Monitor = i.Monitor.NextAt
	}
	if r, ok := company.RetryOf(tx, i); ok {
		w.RetryAt = r.ScheduledRetryAt
	}
	return w
}

func readinessOf(tx *ledger.Tx, i entity.Issue) blockerReadiness {
	n := len(entity.Unresolved(tx, i))
	return blockerReadiness{AllDone: n == 0, Ready: n == 0, Unresolved: n}
}

// verdict returns a sentence about an issue's state, and whether somebody must act.
func verdict(tx *ledger.Tx, i entity.Issue, now core.Time) (text string, stuck bool) {
	w, r := waitsOf(tx, i), readinessOf(tx, i)
	live, running := liveOf(tx, i)
	owner := i.Assignee != "" || i.AssigneeUser != ""
	why, stop := company.StoppedBy(tx, i.Company, i.Assignee, i.ID)
	switch {
	case i.Status.Terminal():
		return "The issue is " + string(i.Status) + ".", false
	case w.Hold != nil:
		return "The issue's tree is paused; releasing the hold lets it go on.", false
	case w.Recovery:
		return "A recovery action waits for a person: the issue's runs ended without deciding what becomes of it.", true
	case w.Approvals > 0:
		return fmt.Sprintf("%d approvals of the issue are not decided.", w.Approvals), true
	case w.Interactions > 0:
		return fmt.Sprintf("%d questions on the issue are not answered.", w.Interactions), true
	case running > 0:
		return "A run is at work on the issue.", false
	case live > 0 && w.RetryAt != 0:
		return "A run of the issue waits to try again.", false
	case live > 0:
		return queued(tx, i, now)
	case r.Unresolved > 0:
		return fmt.Sprintf("The issue waits for %d issues that are not done.", r.Unresolved), false
	case i.Status == entity.IssueBlocked && len(i.BlockedBy) > 0:
		return "All that the issue waited for is done; it can go on.", true
	case i.Status == entity.IssueBlocked:
		return "The issue is blocked by what its unblock descriptor says.", true
	case i.Status == entity.IssueBacklog:
		return "The issue is in the backlog: nobody is woken for it.", false
	case !owner:
		return "The issue has no assignee.", true
	case i.AssigneeUser != "":
		return "The issue is a person's.", false
	case stop != "":
		return "The issue does not go on: " + stop + ".", why == string(company.DeniedBudget) ||
			why == string(company.DeniedNoProgress)
	case w.Monitor != 0:
		return "The issue's agent waits for something outside, and is woken when it is to look again.", false
	case i.Status == entity.IssueInProgress:
		return "The issue is in progress, but no run is at work on it or queued.", true
	case i.Status == entity.IssueInReview:
		return "The issue is in review, and nobody was asked to decide.", true
	}
	return "The issue is to do; its agent has no run for it.", true
}

// queued says why the first run of an issue waits.
func queued(tx *ledger.Tx, i entity.Issue, now core.Time) (text string, stuck bool) {
	for _, r := range entity.LiveRunsOnIssue(tx, i) {
		if w, ok := company.WaitOf(tx, r, now); ok {
			text = "A run of the issue is queued: " + w.Text + "."
			if w.Do != "" {
				text += " To do: " + string(w.Do) + "."
			}
			return text, w.Lasting
		}
	}
	return "A run of the issue is queued.", false
}

func blockersOf(tx *ledger.Tx, i entity.Issue, now core.Time) blockerDiagnosis {
	text, _ := verdict(tx, i, now)
	out := blockerDiagnosis{Issue: diagnosed(i), Diagnosis: text, Readiness: readinessOf(tx, i),
		Blockers: []diagnosedBlocker{}, Waits: waitsOf(tx, i)}
	for _, b := range entity.Blockers(tx, i) {
		live, _ := liveOf(tx, b)
		out.Blockers = append(out.Blockers, diagnosedBlocker{b.Ref(), b.Status == entity.IssueDone, live > 0})
	}
	return out
}

func wakesOf(tx *ledger.Tx, i entity.Issue, now core.Time) wakeDiagnosis {
	text, _ := verdict(tx, i, now)
	out := wakeDiagnosis{Issue: diagnosed(i), Diagnosis: text, Events: []wakeEvent{}}
	if a, ok := entity.AgentByID(tx, i.Assignee); ok {
		out.Agent = &diagnosedAgent{a.ID, a.Name, a.Status, a.PauseReason}
	}
	if w, ok := care.WatchdogOf(tx, i.Company, i.ID); ok {
		out.Watchdog = &w
	}
	out.Live, _ = liveOf(tx, i)
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if len(out.Events) == maxWakeEvents {
			break
		}
		out.Events = append(out.Events, wakeEvent{"run", r.ID, r.Agent, r.Source, string(r.Status),
			core.NullText(r.Context.WakeReason), r.Error, core.NullText(r.ID), r.CreatedAt, r.FinishedAt})
	}
	// A wake without a run names its issue in its payload.
	for _, u := range entity.WakeupsOf(tx, i.Company, i.Assignee) {
		var about struct {
			Issue string `json:"issueId"`
		}
		if u.Status != entity.WakeSkipped && u.Status != entity.WakeCoalesced || json.Unmarshal(u.Payload, &about) != nil ||
			about.Issue != i.ID {
			continue
		}
		out.Events = append(out.Events, wakeEvent{"wake", u.ID, u.Agent, u.Source, string(u.Status), u.Reason, u.Error, u.Run,
			u.RequestedAt, u.FinishedAt})
	}
	slices.SortStableFunc(out.Events,
		func(a, b wakeEvent) int { return int(min(max(b.RequestedAt-a.RequestedAt, -1), 1)) })
	out.Events = out.Events[:min(len(out.Events), maxWakeEvents)]
	return out
}

func subtreeOf(tx *ledger.Tx, root entity.Issue, now core.Time) subtreeDiagnosis {
	all := entity.Descendants(tx, root.Company, root.ID)
	out := subtreeDiagnosis{Root: diagnosed(root), Total: len(all), Truncated: len(all) > maxDiagnosed,
		Issues: []subtreeRow{}}
	depth := map[string]int{root.ID: 0}
	for _, id := range all[:min(len(all), maxDiagnosed)] {
		i, ok := entity.IssueOf(tx, root.Company, id)
		if !ok {
			continue
		}
		if id != root.ID {
			depth[id] = depth[i.Parent] + 1
		}
		row := subtreeRow{diagnosedIssue: diagnosed(i), Parent: core.NullText(i.Parent), Depth: depth[id],
			Readiness: readinessOf(tx, i)}
		row.Diagnosis, row.Stuck = verdict(tx, i, now)
		if row.Live, _ = liveOf(tx, i); row.Stuck {
			out.Stuck++
		}
		out.Issues = append(out.Issues, row)
	}
	out.Diagnosis = fmt.Sprintf("%d of %d issues need somebody.", out.Stuck, len(out.Issues))
	return out
}
