package rules

import (
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DashboardDays is how many days of runs the dashboard shows.
	DashboardDays = 14
	// maxDashboardRuns bounds the runs that it counts; it counts the newest.
	maxDashboardRuns = 20_000
)

// A Dashboard is a summary of a company.
type Dashboard struct {
	Company ledger.CompanyID `json:"companyId"`
	Agents  struct {
		Active  int `json:"active"` // ready for work
		Running int `json:"running"`
		Paused  int `json:"paused"`
		Error   int `json:"error"`
	} `json:"agents"`
	Tasks struct {
		Open       int `json:"open"` // neither done nor cancelled
		InProgress int `json:"inProgress"`
		Blocked    int `json:"blocked"`
		Done       int `json:"done"`
	} `json:"tasks"`
	Costs struct {
		Spend       core.Money   `json:"monthSpendCents"`
		Budget      core.Money   `json:"monthBudgetCents"`
		Utilization core.Percent `json:"monthUtilizationPercent"`
		Held        core.Money   `json:"heldCents"` // reserved for calls in progress
	} `json:"costs"`
	PendingApprovals int `json:"pendingApprovals"`
	Budgets          struct {
		ActiveIncidents  int `json:"activeIncidents"`
		PendingApprovals int `json:"pendingApprovals"`
		PausedAgents     int `json:"pausedAgents"`
		PausedProjects   int `json:"pausedProjects"`
	} `json:"budgets"`
	RunActivity []RunDay `json:"runActivity"`
}

// A RunDay counts the runs of one day (UTC) by their status.
type RunDay struct {
	Date      string         `json:"date"`
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`
	Recovered int            `json:"recovered"` // failed, and a retry succeeded
	Other     int            `json:"other"`
	Total     int            `json:"total"`
	ByError   map[string]int `json:"failedByErrorCode"`
}

// DashboardOf returns the dashboard of a company at time now.
func DashboardOf(tx *ledger.Tx, of ledger.CompanyID, now core.Time) Dashboard {
	d := Dashboard{Company: of}
	for _, a := range entity.AgentTable.All(tx, of) {
		switch a.Status {
		case entity.AgentIdle, entity.AgentActive:
			d.Agents.Active++
		case entity.AgentRunning:
			d.Agents.Running++
		case entity.AgentPaused:
			d.Agents.Paused++
		case entity.AgentError:
			d.Agents.Error++
		}
		if a.PauseReason == entity.PausedForBudget {
			d.Budgets.PausedAgents++
		}
	}
	counts := entity.CountIssues(tx, of)
	for _, status := range entity.IssueStatuses {
		if !status.Terminal() {
			d.Tasks.Open += counts[status]
		}
	}
	d.Tasks.InProgress, d.Tasks.Blocked, d.Tasks.Done = counts[entity.IssueInProgress], counts[entity.IssueBlocked],
		counts[entity.IssueDone]
	d.Costs.Budget, d.Costs.Spend = money.CompanyBudget(tx, of, now)
	d.Costs.Held = money.MoneyHeld(tx, of, entity.ScopeCompany, string(of))
	d.Costs.Utilization = d.Costs.Spend.Percent(d.Costs.Budget)
	d.Budgets.ActiveIncidents = len(money.OpenIncidents(tx, of, now))
	d.PendingApprovals, d.Budgets.PendingApprovals = money.PendingApprovals(tx, of)
	for _, p := range entity.ProjectTable.All(tx, of) {
		if p.PauseReason == entity.PausedForBudget {
			d.Budgets.PausedProjects++
		}
	}
	d.RunActivity = runActivity(tx, of, now)
	return d
}

// runActivity counts the runs of the last days by the day on which they were made.
func runActivity(tx *ledger.Tx, of ledger.CompanyID, now core.Time) []RunDay {
	days := make([]RunDay, DashboardDays)
	today := now.Std().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-DashboardDays)
	for i := range days {
		days[i] = RunDay{Date: first.AddDate(0, 0, i).Format(time.DateOnly), ByError: map[string]int{}}
	}
	// The loop goes from the newest run, so it sees a retry before the run that failed.
	healed := map[string]bool{}
	n := 0
	for r := range entity.RunsOf(tx, of) {
		if n++; n > maxDashboardRuns || r.CreatedAt < core.TimeOf(first) {
			break
		}
		i := int(r.CreatedAt.Std().Sub(first) / (24 * time.Hour))
		if i >= len(days) {
			continue // made after now
		}
		day := &days[i]
		day.Total++
		switch r.Status {
		case entity.RunSucceeded:
			day.Succeeded++
		case entity.RunFailed, entity.RunTimedOut, entity.RunInterrupted:
			if healed[r.ID] {
				day.Recovered++
				break
			}
			day.Failed++
			code := string(r.ErrorCode)
			if code == "" {
				code = "unknown"
			}
			day.ByError[code]++
		default:
			day.Other++
		}
		if r.RetryOf != "" && (r.Status == entity.RunSucceeded || healed[r.ID]) {
			healed[string(r.RetryOf)] = true
		}
	}
	return days
}

// Badges are the numbers beside the entries of the board's menu.
type Badges struct {
	Inbox        int `json:"inbox"`
	Approvals    int `json:"approvals"`
	FailedRuns   int `json:"failedRuns"`
	JoinRequests int `json:"joinRequests"`
}

// BadgesOf counts what needs the board's attention: approvals, requests to join, and agents
// whose last run failed.
func BadgesOf(tx *ledger.Tx, of ledger.CompanyID) (b Badges) {
	for range entity.AgentsByStatus.IDs(tx, of, string(entity.AgentError), false) {
		b.FailedRuns++
	}
	b.Approvals, _ = money.PendingApprovals(tx, of)
	for range people.JoinsPending.IDs(tx, of, "all", false) {
		b.JoinRequests++
	}
	b.Inbox = b.FailedRuns + b.Approvals + b.JoinRequests
	return b
}

// A Stat counts the agents and issues of a company.
type Stat struct {
	Agents int `json:"agentCount"`
	Issues int `json:"issueCount"`
}

// Stats counts agents and issues of every company that has any, by company.
func Stats(tx *ledger.Tx) map[ledger.CompanyID]Stat {
	out := map[ledger.CompanyID]Stat{}
	for _, row := range entity.Companies(tx) {
		var s Stat
		for range entity.AgentTable.All(tx, row.ID) {
			s.Agents++
		}
		for _, n := range entity.CountIssues(tx, row.ID) {
			s.Issues += n
		}
		if s != (Stat{}) {
			out[row.ID] = s
		}
	}
	return out
}
