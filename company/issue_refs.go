package company

import (
	"strconv"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// What issues, costs and budgets ask of the other nouns stands here.

func AgentExists(tx *ledger.Tx, company, id string) bool { return tx.Has(AgentTable.Key(company, id)) }

func ProjectExists(tx *ledger.Tx, company, id string) bool {
	return tx.Has(ProjectTable.Key(company, id))
}

func GoalExists(tx *ledger.Tx, company, id string) bool {
	return tx.Has(Goals.Key(company, id)) || id == ImpliedGoalID(company)
}

// CompanyOfAgent returns the company that an agent belongs to, or "".
func CompanyOfAgent(tx *ledger.Tx, agent string) string {
	of := core.OwnerOf(tx, agent)
	if of == "" || !AgentExists(tx, of, agent) {
		return ""
	}
	return of
}

// Assignable refuses an assignee that does not exist or never works.
func Assignable(tx *ledger.Tx, company, agent string) error {
	a, ok := AgentTable.Get(tx, company, agent)
	switch {
	case !ok:
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case a.Status == AgentTerminated:
		return ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot assign work to terminated agents")
	case a.Status == AgentPendingApproval:
		return ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot assign work to pending approval agents")
	}
	return nil
}

// Manages reports whether boss stands above agent in the org tree.
func Manages(tx *ledger.Tx, company, boss, agent string) bool {
	for range MaxIssueDepth {
		a, ok := AgentTable.Get(tx, company, agent)
		if !ok || a.ReportsTo == "" {
			return false
		}
		if agent = string(a.ReportsTo); agent == boss {
			return true
		}
	}
	return false
}

// takeIdentifier gives out the next issue number of company.
func takeIdentifier(c *ledger.Context, company string) (string, uint64, error) {
	row, ok := CompanyTable.Get(c.Tx, company, company)
	if !ok {
		return "", 0, ledger.Refuse(ledger.NotFound, nil, "Company not found")
	}
	row.IssueCounter++
	CompanyTable.Put(c.Tx, company, company, row)
	return row.IssuePrefix + "-" + strconv.FormatUint(uint64(row.IssueCounter), 10), uint64(row.IssueCounter), nil
}

// responsibleUser is who answers for an issue that no person made: who answers
// for its parent, or for the company.
func responsibleUser(tx *ledger.Tx, i Issue) string {
	if parent, ok := IssueTable.Get(tx, i.Company, i.Parent); ok && i.Parent != "" {
		return parent.ResponsibleUser
	}
	row, _ := CompanyTable.Get(tx, i.Company, i.Company)
	return string(row.DefaultResponsibleUser)
}

// mayWork refuses work for an agent that is stopped, or whose project or
// company is. A budget pause whose window has passed ends here.
func mayWork(c *ledger.Context, agent, project string) error {
	company := c.Cmd.Company
	a, ok := Wakeable(c.Tx, company, agent)
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	if a.PauseReason == PausedForBudget || ScopePaused(c.Tx, company, ScopeCompany, company) || project != "" && ScopePaused(c.Tx, company, ScopeProject, project) {
		if err := Ask.Renew(c, agent, project); err != nil {
			return err
		}
		a, _ = Wakeable(c.Tx, company, agent)
	}
	return a.invokable(c.Tx)
}

// projectDefaults returns what an issue takes from its project.
func projectDefaults(tx *ledger.Tx, company, id string) (goal, workspace string, ok bool) {
	p, ok := ProjectTable.Get(tx, company, id)
	return p.Goal, p.Workspace, ok
}

// wakeForUpdate wakes whom a change of an issue concerns: its new assignee, the
// assignee who gets a comment, those who waited for it, and the owner of the
// parent whose last sub-issue has ended. An issue in backlog is nobody's work yet.
func wakeForUpdate(c *ledger.Context, before, i Issue, cm *Comment, resumed bool) error {
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
	if i.Status == IssueDone {
		for _, waiting := range Blocks(c.Tx, i) {
			if waiting.Assignee == "" || waiting.Status.Terminal() || waiting.Status == IssueBacklog || len(Unresolved(c.Tx, waiting)) > 0 {
				continue
			}
			if err := WakeForIssue(c, waiting, WakeAutomation, "issue.update", "issue_blockers_resolved", ""); err != nil {
				return err
			}
		}
	}
	return wakeForChildren(c, i)
}

func wakeForChildren(c *ledger.Context, i Issue) error {
	parent, ok := IssueTable.Get(c.Tx, i.Company, i.Parent)
	if i.Parent == "" || !ok || parent.Assignee == "" || parent.Status.Terminal() || parent.Status == IssueBacklog || core.IsAgent(c) && c.Cmd.Actor.ID == parent.Assignee {
		return nil
	}
	for child := range ChildrenOf(c.Tx, i.Company, i.Parent) {
		if !child.Status.Terminal() {
			return nil
		}
	}
	return WakeForIssue(c, parent, WakeAutomation, "issue.update", "issue_children_completed", "")
}

// CompanyExists reports whether there is a company with this ID.
func CompanyExists(tx *ledger.Tx, company string) bool {
	return company != "" && tx.Has(CompanyTable.Key(company, company))
}

// IssuePrefixOf returns what the identifiers of a company's issues begin with.
func IssuePrefixOf(tx *ledger.Tx, company string) (string, bool) {
	row, ok := CompanyTable.Get(tx, company, company)
	return row.IssuePrefix, ok
}

// AgentLabel returns the name and the status of an agent, "" when it is gone.
func AgentLabel(tx *ledger.Tx, company, agent string) (name, status string) {
	a, _ := AgentTable.Get(tx, company, agent)
	return a.Name, string(a.Status)
}

// DocumentIssue returns the issue, if the actor may write documents of it.
func DocumentIssue(c *ledger.Context, issue string) (Issue, error) {
	i, ok := IssueTable.Get(c.Tx, c.Cmd.Company, issue)
	if !ok {
		return i, ErrNoIssue()
	}
	return i, MayComment(c, i)
}

// Touch notes that something on an issue changed.
func Touch(c *ledger.Context, i Issue) {
	next := i
	next.UpdatedAt = core.TimeOf(c.Now)
	StoreIssue(c.Tx, i, next)
}

// Managers yields whom an agent reports to, from the nearest up.
func Managers(tx *ledger.Tx, a Agent) func(yield func(Agent) bool) {
	return func(yield func(Agent) bool) {
		for range MaxOrgDepth {
			if a.ReportsTo == "" {
				return
			}
			boss, ok := AgentTable.Get(tx, a.Company, string(a.ReportsTo))
			if !ok || !yield(boss) {
				return
			}
			a = boss
		}
	}
}
