package company

import (
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// dashboardDays is how many days of runs the dashboard shows.
	dashboardDays = 14
	// maxDashboardRuns bounds the runs that it counts, newest first.
	maxDashboardRuns = 20_000
)

// A Dashboard sums up a company.
type Dashboard struct {
	Company string `json:"companyId"`
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
		Spend       Money   `json:"monthSpendCents"`
		Budget      Money   `json:"monthBudgetCents"`
		Utilization Percent `json:"monthUtilizationPercent"`
		Held        Money   `json:"heldCents"` // set aside for calls under way
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

// A RunDay counts the runs of a day (UTC) by how they ended.
type RunDay struct {
	Date      string         `json:"date"`
	Succeeded int            `json:"succeeded"`
	Failed    int            `json:"failed"`
	Recovered int            `json:"recovered"` // failed, and a retry succeeded
	Other     int            `json:"other"`
	Total     int            `json:"total"`
	ByError   map[string]int `json:"failedByErrorCode"`
}

// DashboardOf sums up company at now.
func DashboardOf(tx *ledger.Tx, company string, now Time) Dashboard {
	d := Dashboard{Company: company}
	for _, a := range agents.All(tx, company) {
		switch a.Status {
		case AgentIdle, AgentActive:
			d.Agents.Active++
		case AgentRunning:
			d.Agents.Running++
		case AgentPaused:
			d.Agents.Paused++
		case AgentError:
			d.Agents.Error++
		}
		if a.PauseReason == pausedForBudget {
			d.Budgets.PausedAgents++
		}
	}
	counts := CountIssues(tx, company)
	for _, status := range IssueStatuses {
		if !status.Terminal() {
			d.Tasks.Open += counts[status]
		}
	}
	d.Tasks.InProgress, d.Tasks.Blocked, d.Tasks.Done = counts[IssueInProgress], counts[IssueBlocked], counts[IssueDone]
	d.Costs.Budget, d.Costs.Spend = CompanyBudget(tx, company, now)
	d.Costs.Held = MoneyHeld(tx, company, ScopeCompany, company)
	d.Costs.Utilization = d.Costs.Spend.Percent(d.Costs.Budget)
	d.Budgets.ActiveIncidents = len(OpenIncidents(tx, company, now))
	d.PendingApprovals, d.Budgets.PendingApprovals = PendingApprovals(tx, company)
	for _, p := range projects.All(tx, company) {
		if p.PauseReason == pausedForBudget {
			d.Budgets.PausedProjects++
		}
	}
	d.RunActivity = runActivity(tx, company, now)
	return d
}

// runActivity counts the runs of the last days by the day when they were made.
func runActivity(tx *ledger.Tx, company string, now Time) []RunDay {
	days := make([]RunDay, dashboardDays)
	today := now.Std().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-dashboardDays)
	for i := range days {
		days[i] = RunDay{Date: first.AddDate(0, 0, i).Format(time.DateOnly), ByError: map[string]int{}}
	}
	// The newest come first, so a retry is met before what it retries.
	healed := map[string]bool{}
	n := 0
	for r := range RunsOf(tx, company) {
		if n++; n > maxDashboardRuns || r.CreatedAt < TimeOf(first) {
			break
		}
		i := int(r.CreatedAt.Std().Sub(first) / (24 * time.Hour))
		if i >= len(days) {
			continue // made after now
		}
		day := &days[i]
		day.Total++
		switch r.Status {
		case RunSucceeded:
			day.Succeeded++
		case RunFailed, RunTimedOut, RunInterrupted:
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
		if r.RetryOf != "" && (r.Status == RunSucceeded || healed[r.ID]) {
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

// BadgesOf counts what waits for the board: approvals, requests to join, and agents
// whose last run went wrong.
func BadgesOf(tx *ledger.Tx, company string) (b Badges) {
	for range agentsByStatus.IDs(tx, company, string(AgentError), false) {
		b.FailedRuns++
	}
	b.Approvals, _ = PendingApprovals(tx, company)
	for range joinsPending.IDs(tx, company, "all", false) {
		b.JoinRequests++
	}
	b.Inbox = b.FailedRuns + b.Approvals + b.JoinRequests
	return b
}

// A Stat counts what a company has.
type Stat struct {
	Agents int `json:"agentCount"`
	Issues int `json:"issueCount"`
}

// Stats counts agents and issues of every company that has any, by company.
func Stats(tx *ledger.Tx) map[string]Stat {
	out := map[string]Stat{}
	for _, row := range Companies(tx) {
		var s Stat
		for range agents.All(tx, row.ID) {
			s.Agents++
		}
		for _, n := range CountIssues(tx, row.ID) {
			s.Issues += n
		}
		if s != (Stat{}) {
			out[row.ID] = s
		}
	}
	return out
}
