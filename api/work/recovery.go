package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// recoveryBody is the body that resolves a recovery action.
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
		api.Show(api.Route{Path: "/api/issues/{id}/recovery-actions", Tag: "issues",
			Summary: "List what was or is to be decided about an issue that got stuck"}, api.FindIssue, recoveriesOf),
		{Method: "POST", Path: "/api/issues/{id}/recovery-actions/resolve", Tag: "issues",
			Summary: "Decide what becomes of an issue that got stuck",
			In:      recoveryBody{}, Out: recoveryResult{}, Handle: resolveRecovery},
	}
}

func recoveriesOf(tx *ledger.Tx, i entity.Issue) recoveryList {
	out := recoveryList{Actions: care.RecoveriesOf(tx, i)}
	if a, ok := care.ActiveRecovery(tx, i); ok {
		out.Active = &a
	}
	return out
}

func resolveRecovery(rc *api.Request) (api.Response, error) {
	in, err := api.Body[recoveryBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := issueAt(rc)
	if err != nil {
		return api.Response{}, err
	}
	res, err := api.Do[care.Recovered](rc, care.KindIssueResolveRecovery, of, care.ResolveRecovery{Issue: issue,
		Action:  in.Action.Or(""),
		Outcome: in.Outcome, Status: entity.IssueStatus(in.Status), Note: in.Note.Or("")})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(recoveryResult{res.Action, issueBare(res.Issue, nil)}), nil
}

// recoveryMember writes the recovery action that an issue needs, or null.
func recoveryMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		if a, ok := care.ActiveRecovery(tx, i); ok {
			return b.Value("activeRecoveryAction", a)
		}
		return b.Raw("activeRecoveryAction", nil)
	}
}

// handoffMember writes that a run ended without a decision about its issue and another
// run asks again, or null.
func handoffMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		h := i.Handoff
		if h == nil {
			return b.Raw("successfulRunHandoff", nil)
		}
		next, ok := entity.RunOf(tx, i.Company, h.Corrective)
		state := "required"
		if i.Recovery != "" {
			state = "escalated"
		}
		o := core.Object{}.Str("state", state).Bool("required", i.Recovery == "").Bool("hasLiveContinuation",
			ok && next.Status.Live()).
			Str("sourceRunId", h.Source).Str("correctiveRunId", h.Corrective).Str("assigneeAgentId", h.Assignee).
			Str("detectedProgressSummary", h.Summary).Time("createdAt", h.At)
		return b.Raw("successfulRunHandoff", o.Close())
	}
}

// retryMember writes the run that waits for its retry on an issue, or null.
func retryMember(tx *ledger.Tx, i entity.Issue) member {
	return func(b core.Object) core.Object {
		r, ok := company.RetryOf(tx, i)
		if !ok {
			return b.Raw("scheduledRetry", nil)
		}
		return b.Raw("scheduledRetry", retryRow(r).Close())
	}
}

func retryRow(r entity.Run) core.Object {
	return core.Object{}.Str("runId", r.ID).Str("agentId", r.Agent).Str("status", string(r.Status)).Null("retryOfRunId",
		string(r.RetryOf)).
		Time("scheduledRetryAt", r.ScheduledRetryAt).Int("scheduledRetryAttempt", int64(r.ScheduledRetryAttempt)).
		Null("scheduledRetryReason", string(r.ScheduledRetryReason))
}
