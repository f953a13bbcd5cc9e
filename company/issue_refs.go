package company

import (
	"strconv"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// What issues, costs and budgets read of other nouns.

// takeIdentifier assigns the next issue number of company.
func takeIdentifier(c *ledger.Context, company ledger.CompanyID) (string, uint64, error) {
	row, ok := entity.CompanyTable.Get(c.Tx, company, company)
	if !ok {
		return "", 0, ledger.Refuse(ledger.NotFound, nil, "Company not found")
	}
	row.IssueCounter++
	entity.CompanyTable.Put(c.Tx, company, company, row)
	return row.IssuePrefix + "-" + strconv.FormatUint(uint64(row.IssueCounter), 10), uint64(row.IssueCounter), nil
}

// responsibleUser returns the user who is responsible for an issue that no person
// created: that of its parent, or of the company.
func responsibleUser(tx *ledger.Tx, i entity.Issue) string {
	if parent, ok := entity.IssueTable.Get(tx, i.Company, i.Parent); ok && i.Parent != "" {
		return parent.ResponsibleUser
	}
	row, _ := entity.CompanyTable.Get(tx, i.Company, i.Company)
	return string(row.DefaultResponsibleUser)
}

// mayWork refuses work for an agent that is stopped, or whose project or company is. A
// budget pause whose window has passed ends here.
func mayWork(c *ledger.Context, agent, project string) error {
	company := c.Cmd.Company
	a, ok := entity.Wakeable(c.Tx, company, agent)
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	if a.PauseReason == entity.PausedForBudget || entity.ScopePaused(c.Tx, company, entity.ScopeCompany,
		string(company)) || project != "" && entity.ScopePaused(c.Tx, company, entity.ScopeProject, project) {
		if err := Ask.Renew(c, agent, project); err != nil {
			return err
		}
		a, _ = entity.Wakeable(c.Tx, company, agent)
	}
	return invokable(c.Tx, a)
}

// projectDefaults returns the goal and workspace that an issue takes from its project.
func projectDefaults(tx *ledger.Tx, company ledger.CompanyID, id string) (goal, workspace string, ok bool) {
	p, ok := entity.ProjectTable.Get(tx, company, id)
	return p.Goal, p.Workspace, ok
}

// wakeForUpdate wakes the agents that a change of an issue concerns: the new assignee,
// the assignee who gets a comment, the assignees of issues that waited for it, and the
// owner of the parent whose last sub-issue ended. An issue in backlog wakes nobody.
func wakeForUpdate(c *ledger.Context, before, i entity.Issue, cm *entity.Comment, resumed bool) error {
	if err := WakeForAssignment(c, before, i); err != nil {
		return err
	}
	if cm != nil {
		if err := wakeForComment(c, i, *cm, resumed); err != nil {
			return err
		}
	}
	if before.Status == i.Status || !i.Status.Terminal() {
		return nil
	}
	if i.Status == entity.IssueDone {
		for _, waiting := range entity.Blocks(c.Tx, i) {
			if waiting.Assignee == "" || waiting.Status.Terminal() || waiting.Status == entity.IssueBacklog ||
				len(entity.Unresolved(c.Tx, waiting)) > 0 {
				continue
			}
			if err := WakeForIssue(c, waiting, entity.WakeAutomation, "issue.update", "issue_blockers_resolved",
				""); err != nil {
				return err
			}
		}
	}
	return wakeForChildren(c, i)
}

func wakeForChildren(c *ledger.Context, i entity.Issue) error {
	parent, ok := entity.IssueTable.Get(c.Tx, i.Company, i.Parent)
	if i.Parent == "" || !ok || parent.Assignee == "" || parent.Status.Terminal() ||
		parent.Status == entity.IssueBacklog || core.IsAgent(c) && c.Cmd.Actor.ID == parent.Assignee {
		return nil
	}
	for child := range entity.ChildrenOf(c.Tx, i.Company, i.Parent) {
		if !child.Status.Terminal() {
			return nil
		}
	}
	return WakeForIssue(c, parent, entity.WakeAutomation, "issue.update", "issue_children_completed", "")
}

// DocumentIssue returns the issue if the actor may write its documents.
func DocumentIssue(c *ledger.Context, issue string) (entity.Issue, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, issue)
	if !ok {
		return i, ErrNoIssue()
	}
	return i, MayComment(c, i)
}

// Touch sets the time of the last change of an issue.
func Touch(c *ledger.Context, i entity.Issue) {
	next := i
	next.UpdatedAt = core.TimeOf(c.Now)
	StoreIssue(c.Tx, i, next)
}
