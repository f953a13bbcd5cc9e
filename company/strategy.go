package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The strategy gate. Until the board has approved a first strategy, an agent of
// role ceo only drafts: it creates issues in backlog, changes and comments
// them, hires by approval, and works on what others have put before it; it does
// not start anything. Nor does any other agent start what a CEO has drafted. The
// board is exempt, and a company may switch the gate off.
//
// To start work is to bring an issue into todo, in_progress, in_review or
// blocked (from where it starts by itself when its blockers end), to create it
// there, or to give an issue that is there to another agent; routines, which do
// that by themselves, are not for such a CEO to make, change or run. An issue that is
// already out of backlog and assigned to the CEO is its own to go on with.

// ApproveStrategy opens the gate for good.
func ApproveStrategy(c *ledger.Context, approval string) {
	if row, ok := entity.CompanyTable.Get(c.Tx, c.Cmd.Company, c.Cmd.Company); ok && row.Strategy == "" {
		row.Strategy, row.UpdatedAt = core.NullText(approval), core.TimeOf(c.Now)
		entity.CompanyTable.Put(c.Tx, row.ID, row.ID, row)
	}
}

// DraftingCEO reports whether the command is an agent's and that agent, or who
// created i, is a CEO that may only draft; own says that it is the agent itself.
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

// mayStart refuses a step from before to next that starts work which the
// strategy gate holds back; before is zero for a new issue.
func mayStart(c *ledger.Context, before, next entity.Issue) error {
	if !next.Status.Started() || next.Status == before.Status && (next.Assignee == before.Assignee || next.Assignee == "") {
		return nil
	}
	drafting, own := DraftingCEO(c, next)
	if !drafting {
		return nil
	}
	if ready := before.ID != "" && before.Status.Started(); ready {
		if !own {
			return nil // somebody has let it out of backlog
		}
		actor := c.Cmd.Actor.ID
		if before.Assignee == actor && (next.Assignee == actor || next.Assignee == "" && next.AssigneeUser != "") {
			return nil
		}
	}
	return RefuseDraft(before, next.Status)
}

// RefuseDraft is the 409 for work that the gate holds back: bringing an issue,
// which is zero where none is meant, to status to.
func RefuseDraft(before entity.Issue, to entity.IssueStatus) error {
	const code = "ceo_strategy_required"
	return &ledger.Refusal{Code: ledger.Conflict, ErrCode: code,
		Message: "A CEO only drafts until the board has approved a strategy",
		Detail: core.Object{}.Str("code", code).Null("issueId", before.ID).Null("status", string(before.Status)).Str("requestedStatus", string(to)).
			List("allowedStatuses", []string{string(entity.IssueBacklog), string(entity.IssueCancelled)}).
			Str("sanctionedPath", "create an approval of type approve_ceo_strategy and wait for the board").Close()}
}
