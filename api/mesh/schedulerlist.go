package mesh

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A schedulerRow is an agent that has a timer or could have one.
type schedulerRow struct {
	ID          string             `json:"id"`
	Company     ledger.CompanyID   `json:"companyId"`
	CompanyName string             `json:"companyName"`
	Prefix      string             `json:"companyIssuePrefix"`
	Agent       string             `json:"agentName"`
	Key         string             `json:"agentUrlKey"`
	Role        string             `json:"role"`
	Title       core.NullText      `json:"title"`
	Status      entity.AgentStatus `json:"status"`
	Adapter     string             `json:"adapterType"`
	Interval    int64              `json:"intervalSec"`
	Enabled     bool               `json:"heartbeatEnabled"`
	Active      bool               `json:"schedulerActive"`
	LastAt      core.Time          `json:"lastHeartbeatAt"`
}

// maxSchedulerRows bounds the list: the first companies by name are listed.
const maxSchedulerRows = 2_000

func SchedulerRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/instance/scheduler-heartbeats", Tag: "system",
		Summary: "List the agents of all companies with their timers", Who: api.Admin, Out: []schedulerRow{},
		Handle: listSchedulers}}
}

func listSchedulers(rc *api.Request) (api.Response, error) {
	out := []schedulerRow{}
	err := rc.View(func(tx *ledger.Tx) error {
		for _, of := range entity.Companies(tx) {
			for _, a := range entity.AgentsOf(tx, of.ID, false) {
				if a.Status == entity.AgentPaused || a.Status == entity.AgentPendingApproval {
					continue
				}
				on, interval := a.Timer()
				out = append(out, schedulerRow{ID: a.ID, Company: of.ID, CompanyName: of.Name, Prefix: of.IssuePrefix,
					Agent: a.Name, Key: a.URLKey(), Role: a.Role, Title: a.Title, Status: a.Status,
					Adapter: a.AdapterType, Interval: interval, Enabled: on, Active: on && interval > 0, LastAt: a.LastHeartbeatAt})
			}
			if len(out) >= maxSchedulerRows {
				break
			}
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b schedulerRow) int {
		if a.Active != b.Active { // active timers first
			if a.Active {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.CompanyName, b.CompanyName), cmp.Compare(a.Agent, b.Agent))
	})
	return api.OK(out[:min(len(out), maxSchedulerRows)]), err
}
