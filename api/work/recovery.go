package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// recoveryBody is the body by which a recovery action is resolved.
type recoveryBody struct {
	Action  api.Opt[string] `json:"actionId" format:"uuid"`
	Outcome string          `json:"outcome" enum:"restored,false_positive,blocked,cancelled"`
	Status  string          `json:"sourceIssueStatus" enum:"todo,done,in_review,blocked"`
	Note    api.Opt[string] `json:"resolutionNote" maxLength:"4096" maxBytes:"4096"`
}

type recoveryList struct {
	Active  *care.RecoveryAction  `json:"active"`
	Actions []care.RecoveryAction `json:"actions"`
}

type recoveryResult struct {
	Action care.RecoveryAction `json:"action"`
	Issue  any                 `json:"issue"`
}

func RecoveryRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/issues/{id}/recovery-actions", Tag: "issues", Summary: "List what was or is to be decided about an issue that got stuck",
			Out: recoveryList{}, Handle: listRecoveries},
		{Method: "POST", Path: "/api/issues/{id}/recovery-actions/resolve", Tag: "issues", Summary: "Decide what becomes of an issue that got stuck",
			In: recoveryBody{}, Out: recoveryResult{}, Handle: resolveRecovery},
	}
}

func listRecoveries(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (out recoveryList, err error) {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return out, err
		}
		out.Actions = care.RecoveriesOf(tx, i)
		if a, ok := care.ActiveRecovery(tx, i); ok {
			out.Active = &a
		}
		return out, nil
	})
}

func resolveRecovery(rc *api.Request) (api.Response, error) {
	in, err := api.Body[recoveryBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	var i entity.Issue
	err = rc.View(func(tx *ledger.Tx) (err error) {
		i, err = api.FindIssue(tx, rc)
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	res, err := api.Do[care.Recovered](rc, care.KindIssueResolveRecovery, i.Company, care.ResolveRecovery{Issue: i.ID, Action: in.Action.Or(""),
		Outcome: in.Outcome, Status: entity.IssueStatus(in.Status), Note: in.Note.Or("")})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(recoveryResult{res.Action, issueBare(res.Issue, nil)}), nil
}

// recovery writes what has to be decided about an issue, or null.
func (b jsonRow) recovery(tx *ledger.Tx, i entity.Issue) jsonRow {
	if a, ok := care.ActiveRecovery(tx, i); ok {
		return b.value("activeRecoveryAction", a)
	}
	return b.raw("activeRecoveryAction", nil)
}

// handoff writes that a run said nothing of its issue and another one asks
// again, or null.
func (b jsonRow) handoff(tx *ledger.Tx, i entity.Issue) jsonRow {
	h := i.Handoff
	if h == nil {
		return b.raw("successfulRunHandoff", nil)
	}
	next, ok := entity.RunOf(tx, i.Company, h.Corrective)
	state := "required"
	if i.Recovery != "" {
		state = "escalated"
	}
	o := append(jsonRow{}, '{').str("state", state).flag("required", i.Recovery == "").flag("hasLiveContinuation", ok && next.Status.Live()).
		str("sourceRunId", h.Source).str("correctiveRunId", h.Corrective).str("assigneeAgentId", h.Assignee).
		str("detectedProgressSummary", h.Summary).at("createdAt", h.At)
	return b.raw("successfulRunHandoff", o.done())
}

// retry writes the run that waits to try again for an issue, or null.
func (b jsonRow) retry(tx *ledger.Tx, i entity.Issue) jsonRow {
	r, ok := company.RetryOf(tx, i)
	if !ok {
		return b.raw("scheduledRetry", nil)
	}
	return b.raw("scheduledRetry", retryRow(r).done())
}

func retryRow(r entity.Run) jsonRow {
	return append(jsonRow{}, '{').str("runId", r.ID).str("agentId", r.Agent).str("status", string(r.Status)).null("retryOfRunId", string(r.RetryOf)).
		at("scheduledRetryAt", r.ScheduledRetryAt).num("scheduledRetryAttempt", int64(r.ScheduledRetryAttempt)).
		null("scheduledRetryReason", string(r.ScheduledRetryReason))
}
