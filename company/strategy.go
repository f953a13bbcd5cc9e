package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The strategy gate. Until the board has approved a first strategy, an agent with role
// ceo can only draft: it creates issues in backlog, updates and comments on them, hires
// through approvals, and works on what others assigned to it. It can not start work, and
// no other agent can start an issue that a CEO drafted. The gate does not apply to the
// board, and a company can switch it off.
//
// To start work is to move an issue to todo, in_progress, in_review or blocked (from where
// it starts by itself when its blockers end), to create it there, or to give an issue that
// is there to another agent. Routines start work by themselves, so such a CEO can not
// create, change or run them. It can continue an issue that has left backlog and is
// assigned to it.

// ApproveStrategy opens the gate for good.
func ApproveStrategy(c *ledger.Context, approval string) {
	if row, ok := entity.CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company); ok && row.Strategy == "" {
		row.Strategy, row.UpdatedAt = core.NullText(approval), core.TimeOf(c.Now)
		entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	}
}

// DraftingCEO reports whether an agent gives the command and that agent, or the creator of
// i, is a CEO that can only draft; own reports that it is the agent itself.
func DraftingCEO(c *ledger.Context, i entity.Issue) (drafting, own bool) {
	if !core.IsAgent(c) {
		return false, false
	}
	row, ok := entity.CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company)
	if !ok || !row.Drafting() {
		return false, false
	}
	if a, _ := entity.AgentTable.Get(c.Tx, row.ID, c.Cmd.Actor.ID); a.Role == "ceo" {
		return true, true
	}
	creator, _ := entity.AgentTable.Get(c.Tx, row.ID, i.CreatedAgent)
	return i.CreatedAgent != "" && creator.Role == "ceo", false
}

// mayStart refuses a change from before to next that starts work which the gate holds
// back; before is zero for a new issue.
func mayStart(c *ledger.Context, before, next entity.Issue) error {
	if !next.Status.Started() || next.Status == before.Status && (next.Assignee == before.Assignee ||
		next.Assignee == "") {
		return nil
	}
	drafting, own := DraftingCEO(c, next)
	if !drafting {
		return nil
	}
	if ready := before.ID != "" && before.Status.Started(); ready {
		if !own {
			return nil // somebody moved it out of backlog
		}
		actor := c.Cmd.Actor.ID
		if before.Assignee == actor && (next.Assignee == actor || next.Assignee == "" && next.AssigneeUser != "") {
			return nil
		}
	}
	return RefuseDraft(before, next.Status)
}

// RefuseDraft returns the 409 for moving an issue, zero for none, to a status that the
// gate holds back.
func RefuseDraft(before entity.Issue, to entity.IssueStatus) error {
	const code = "ceo_strategy_required"
	return &ledger.Refusal{Code: ledger.Conflict, ErrCode: code,
		Message: "A CEO only drafts until the board has approved a strategy",
		Detail: core.Object{}.Str("code", code).Null("issueId", before.ID).Null("status", string(before.Status)).
			Str("requestedStatus", string(to)).
			List("allowedStatuses", []string{string(entity.IssueBacklog), string(entity.IssueCancelled)}).
			Str("sanctionedPath", "create an approval of type approve_ceo_strategy and wait for the board").Close()}
}
