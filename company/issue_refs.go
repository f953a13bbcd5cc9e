package company

import (
	"strconv"

	"github.com/selvage-mesh/selvage/ledger"
)

// What issues, costs and budgets ask of the other nouns stands here.

func agentExists(tx *ledger.Tx, company, id string) bool { return tx.Has(agents.Key(company, id)) }

func projectExists(tx *ledger.Tx, company, id string) bool { return tx.Has(projects.Key(company, id)) }

func goalExists(tx *ledger.Tx, company, id string) bool {
	return tx.Has(goals.Key(company, id)) || id == impliedGoalID(company)
}

// CompanyOfAgent returns the company that an agent belongs to, or "".
func CompanyOfAgent(tx *ledger.Tx, agent string) string {
	of := OwnerOf(tx, agent)
	if of == "" || !agentExists(tx, of, agent) {
		return ""
	}
	return of
}

// assignable refuses an assignee that does not exist or never works.
func assignable(tx *ledger.Tx, company, agent string) error {
	a, ok := agents.Get(tx, company, agent)
	switch {
	case !ok:
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	case a.Status == AgentTerminated:
		return ledger.Refuse(ledger.Conflict, a.standing(), "Cannot assign work to terminated agents")
	case a.Status == AgentPendingApproval:
		return ledger.Refuse(ledger.Conflict, a.standing(), "Cannot assign work to pending approval agents")
	}
	return nil
}

// manages reports whether boss stands above agent in the org tree.
func manages(tx *ledger.Tx, company, boss, agent string) bool {
	for range MaxIssueDepth {
		a, ok := agents.Get(tx, company, agent)
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
	row, ok := companies.Get(c.Tx, company, company)
	if !ok {
		return "", 0, ledger.Refuse(ledger.NotFound, nil, "Company not found")
	}
	row.IssueCounter++
	companies.Put(c.Tx, company, company, row)
	return row.IssuePrefix + "-" + strconv.FormatUint(uint64(row.IssueCounter), 10), uint64(row.IssueCounter), nil
}

// responsibleUser is who answers for an issue that no person made: who answers
// for its parent, or for the company.
func responsibleUser(tx *ledger.Tx, i Issue) string {
	if parent, ok := issues.Get(tx, i.Company, i.Parent); ok && i.Parent != "" {
		return parent.ResponsibleUser
	}
	row, _ := companies.Get(tx, i.Company, i.Company)
	return string(row.DefaultResponsibleUser)
}

// mayWork refuses work for an agent that is stopped, or whose project or
// company is. A budget pause whose window has passed ends here.
func mayWork(c *ledger.Context, agent, project string) error {
	company := c.Cmd.Company
	a, ok := wakeable(c.Tx, company, agent)
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	if a.PauseReason == pausedForBudget || ScopePaused(c.Tx, company, ScopeCompany, company) || project != "" && ScopePaused(c.Tx, company, ScopeProject, project) {
		if err := ask.Renew(c, agent, project); err != nil {
			return err
		}
		a, _ = wakeable(c.Tx, company, agent)
	}
	return a.invokable(c.Tx)
}

// projectDefaults returns what an issue takes from its project.
func projectDefaults(tx *ledger.Tx, company, id string) (goal, workspace string, ok bool) {
	p, ok := projects.Get(tx, company, id)
	return p.Goal, p.Workspace, ok
}

// wakeForUpdate wakes whom a change of an issue concerns: its new assignee, the
// assignee who gets a comment, those who waited for it, and the owner of the
// parent whose last sub-issue has ended. An issue in backlog is nobody's work yet.
func wakeForUpdate(c *ledger.Context, before, i Issue, cm *Comment, resumed bool) error {
	if err := wakeForAssignment(c, before, i); err != nil {
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
			if err := wakeForIssue(c, waiting, WakeAutomation, "issue.update", "issue_blockers_resolved", ""); err != nil {
				return err
			}
		}
	}
	return wakeForChildren(c, i)
}

func wakeForChildren(c *ledger.Context, i Issue) error {
	parent, ok := issues.Get(c.Tx, i.Company, i.Parent)
	if i.Parent == "" || !ok || parent.Assignee == "" || parent.Status.Terminal() || parent.Status == IssueBacklog || isAgent(c) && c.Cmd.Actor.ID == parent.Assignee {
		return nil
	}
	for child := range ChildrenOf(c.Tx, i.Company, i.Parent) {
		if !child.Status.Terminal() {
			return nil
		}
	}
	return wakeForIssue(c, parent, WakeAutomation, "issue.update", "issue_children_completed", "")
}

// CompanyExists reports whether there is a company with this ID.
func CompanyExists(tx *ledger.Tx, company string) bool {
	return company != "" && tx.Has(companies.Key(company, company))
}

// IssuePrefixOf returns what the identifiers of a company's issues begin with.
func IssuePrefixOf(tx *ledger.Tx, company string) (string, bool) {
	row, ok := companies.Get(tx, company, company)
	return row.IssuePrefix, ok
}

// AgentLabel returns the name and the status of an agent, "" when it is gone.
func AgentLabel(tx *ledger.Tx, company, agent string) (name, status string) {
	a, _ := agents.Get(tx, company, agent)
	return a.Name, string(a.Status)
}

// documentIssue returns the issue, if the actor may write documents of it.
func documentIssue(c *ledger.Context, issue string) (Issue, error) {
	i, ok := issues.Get(c.Tx, c.Cmd.Company, issue)
	if !ok {
		return i, errNoIssue()
	}
	return i, mayComment(c, i)
}

// touch notes that something on an issue changed.
func touch(c *ledger.Context, i Issue) {
	next := i
	next.UpdatedAt = TimeOf(c.Now)
	storeIssue(c.Tx, i, next)
}

// managers yields whom an agent reports to, from the nearest up.
func managers(tx *ledger.Tx, a Agent) func(yield func(Agent) bool) {
	return func(yield func(Agent) bool) {
		for range MaxOrgDepth {
			if a.ReportsTo == "" {
				return
			}
			boss, ok := agents.Get(tx, a.Company, string(a.ReportsTo))
			if !ok || !yield(boss) {
				return
			}
			a = boss
		}
	}
}
