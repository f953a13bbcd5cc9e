// Package money is the routes about costs, budgets, approvals, and models with their
// prices.
package money

import (
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// reportCost is the body of a cost event.
type reportCost struct {
	AgentID           string          `json:"agentId" format:"uuid"`
	IssueID           api.Opt[string] `json:"issueId" format:"uuid"`
	ProjectID         api.Opt[string] `json:"projectId" format:"uuid"`
	GoalID            api.Opt[string] `json:"goalId" format:"uuid"`
	HeartbeatRunID    api.Opt[string] `json:"heartbeatRunId" format:"uuid"`
	BillingCode       api.Opt[string] `json:"billingCode" maxLength:"200"`
	Provider          string          `json:"provider" minLength:"1" maxLength:"100"`
	Biller            string          `json:"biller,omitempty" minLength:"1" maxLength:"100"`
	BillingType       string          `json:"billingType,omitempty" enum:"metered_api,subscription_included,subscription_overage,credits,fixed,unknown"`
	CostStatus        string          `json:"costStatus,omitempty" enum:"reported,unpriced"`
	Model             string          `json:"model" minLength:"1" maxLength:"200"`
	InputTokens       int64           `json:"inputTokens,omitempty" minimum:"0" maximum:"1000000000000"`
	CachedInputTokens int64           `json:"cachedInputTokens,omitempty" minimum:"0" maximum:"1000000000000"`
	OutputTokens      int64           `json:"outputTokens,omitempty" minimum:"0" maximum:"1000000000000"`
	CostCents         int64           `json:"costCents" minimum:"0" maximum:"1000000000"`
	OccurredAt        string          `json:"occurredAt" format:"date-time"`
}

// tokens are the token counts of each line of a report.
type tokens struct {
	CostCents         core.Money `json:"costCents"`
	InputTokens       int64      `json:"inputTokens"`
	CachedInputTokens int64      `json:"cachedInputTokens"`
	OutputTokens      int64      `json:"outputTokens"`
}

func tokensOf(t money.Total) tokens { return tokens{t.Cost, t.Input, t.Cached, t.Output} }

// runCounts are the run counts of lines about agents and providers.
type runCounts struct {
	APIRunCount                   int64 `json:"apiRunCount"`
	SubscriptionRunCount          int64 `json:"subscriptionRunCount"`
	SubscriptionCachedInputTokens int64 `json:"subscriptionCachedInputTokens"`
	SubscriptionInputTokens       int64 `json:"subscriptionInputTokens"`
	SubscriptionOutputTokens      int64 `json:"subscriptionOutputTokens"`
}

func runCountsOf(s money.CostSum) runCounts {
	return runCounts{s.APIRuns, s.SubscriptionRuns, s.Subscription.Cached, s.Subscription.Input, s.Subscription.Output}
}

type CostSummary struct {
	CompanyID          ledger.CompanyID `json:"companyId"`
	SpendCents         core.Money       `json:"spendCents"`
	BudgetCents        core.Money       `json:"budgetCents"`
	UtilizationPercent core.Percent     `json:"utilizationPercent"`
}

type CostByAgent struct {
	AgentID     string `json:"agentId"`
	AgentName   string `json:"agentName"`
	AgentStatus string `json:"agentStatus"`
	tokens
	runCounts
}

type CostByAgentModel struct {
	AgentID     string `json:"agentId"`
	AgentName   string `json:"agentName"`
	Provider    string `json:"provider"`
	Biller      string `json:"biller"`
	BillingType string `json:"billingType"`
	Model       string `json:"model"`
	tokens
}

type CostByProvider struct {
	Provider    string `json:"provider"`
	Biller      string `json:"biller"`
	BillingType string `json:"billingType"`
	Model       string `json:"model"`
	tokens
	runCounts
}

type CostByBiller struct {
	Biller string `json:"biller"`
	tokens
	runCounts
	ProviderCount int `json:"providerCount"`
	ModelCount    int `json:"modelCount"`
}

type CostByProject struct {
	ProjectID   string `json:"projectId"`
	ProjectName string `json:"projectName"`
	tokens
}

// CostByDay is one line of the report by day: the cost of one agent, project and model.
type CostByDay struct {
	Date        string        `json:"date" format:"date"`
	AgentID     string        `json:"agentId"`
	AgentName   string        `json:"agentName"`
	ProjectID   core.NullText `json:"projectId"`
	ProjectName string        `json:"projectName"`
	Provider    string        `json:"provider"`
	Model       string        `json:"model"`
	tokens
}

// maxCostDays bounds the days of a report by day.
const maxCostDays = 366

type WindowSpend struct {
	Provider    string `json:"provider"`
	Biller      string `json:"biller"`
	Window      string `json:"window"`
	WindowHours int64  `json:"windowHours"`
	tokens
}

type IssueCosts struct {
	IssueID            string `json:"issueId"`
	IssueCount         int    `json:"issueCount"`
	IncludeDescendants bool   `json:"includeDescendants"`
	tokens
	RunCount  int   `json:"runCount"`
	RuntimeMS int64 `json:"runtimeMs"`
}

type costByCode struct {
	BillingCode string `json:"billingCode"`
	tokens
	runCounts
}

func CostRoutes() []api.Route {
	span := []api.Param{{Name: "from", Doc: "ISO date"}, {Name: "to", Doc: "ISO date"}}
	report := func(name, summary string, out any, f func(tx *ledger.Tx, rc *api.Request, of ledger.CompanyID,
		s money.Span) any) api.Route {
		return api.Route{Method: "GET", Path: "/api/companies/{companyId}/costs/" + name, Tag: "costs", Summary: summary,
			Query: span, Out: out,
			Handle: func(rc *api.Request) (api.Response, error) { return costReport(rc, f) }}
	}
	return []api.Route{
		{Method: "POST", Path: "/api/companies/{companyId}/cost-events", Tag: "costs", Summary: "Report a cost",
			In: reportCost{}, Out: money.CostEvent{}, Status: 201, Handle: newCost},
		report("summary", "Sum up what a company spent", CostSummary{}, func(tx *ledger.Tx, rc *api.Request,
			of ledger.CompanyID, s money.Span) any {
			spent := money.SpentIn(tx, of, s).Cost
			limit := money.BudgetOf(tx, of, entity.ScopeCompany, string(of), core.TimeOf(rc.Now())).MonthlyLimit()
			return CostSummary{of, spent, limit, spent.Percent(limit)}
		}),
		report("by-agent", "Sum up costs by agent", []CostByAgent{}, func(tx *ledger.Tx, _ *api.Request, of ledger.CompanyID,
			s money.Span) any {
			return lines(tx, of, money.ByAgent, s, func(l money.CostSum) CostByAgent {
				name, status := entity.AgentLabel(tx, of, l.Agent)
				return CostByAgent{l.Agent, name, status, tokensOf(l.Total), runCountsOf(l)}
			})
		}),
		report("by-agent-model", "Sum up costs by agent and model", []CostByAgentModel{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			return lines(tx, of, money.ByAgentModel, s, func(l money.CostSum) CostByAgentModel {
				name, _ := entity.AgentLabel(tx, of, l.Agent)
				return CostByAgentModel{l.Agent, name, l.Provider, l.Biller, l.BillingType, l.Model, tokensOf(l.Total)}
			})
		}),
		report("by-provider", "Sum up costs by provider and model", []CostByProvider{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			return lines(tx, of, money.ByProvider, s, func(l money.CostSum) CostByProvider {
				return CostByProvider{l.Provider, l.Biller, l.BillingType, l.Model, tokensOf(l.Total), runCountsOf(l)}
			})
		}),
		report("by-biller", "Sum up costs by biller", []CostByBiller{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			return lines(tx, of, money.ByBiller, s, func(l money.CostSum) CostByBiller {
				return CostByBiller{l.Biller, tokensOf(l.Total), runCountsOf(l), l.Providers, l.Models}
			})
		}),
		report("by-project", "Sum up costs by project", []CostByProject{}, func(tx *ledger.Tx, _ *api.Request,
			of ledger.CompanyID, s money.Span) any {
			return lines(tx, of, money.ByProject, s, func(l money.CostSum) CostByProject {
				return CostByProject{l.Project, money.ScopeName(tx, of, entity.ScopeProject, l.Project), tokensOf(l.Total)}
			})
		}),
		{Method: "GET", Path: "/api/companies/{companyId}/costs/by-day", Tag: "costs",
			Summary: "Sum up costs by day in UTC, agent, project and model; of this month unless a time is named", Query: span,
			Out: []CostByDay{}, Handle: readCostsByDay},
		{Method: "GET", Path: "/api/companies/{companyId}/costs/window-spend", Tag: "costs",
			Summary: "Sum up the last hours, day and week", Out: []WindowSpend{}, Handle: readWindowSpend},
		report("by-billing-code", "Sum up costs by billing code, with all that was delegated under it", []costByCode{},
			func(tx *ledger.Tx, _ *api.Request, of ledger.CompanyID, s money.Span) any {
				return lines(tx, of, money.ByBillingCode, s, func(l money.CostSum) costByCode {
					return costByCode{l.BillingCode, tokensOf(l.Total), runCountsOf(l)}
				})
			}),
		{Method: "GET", Path: "/api/issues/{id}/cost-summary", Tag: "costs",
			Summary: "Sum up what an issue and its sub-issues cost", Query: span, Out: IssueCosts{}, Handle: readIssueCosts},
	}
}

func costReport(rc *api.Request, f func(tx *ledger.Tx, rc *api.Request, of ledger.CompanyID,
	s money.Span) any) (r api.Response, err error) {
	span, err := api.QuerySpan(rc)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		if !entity.CompanyExists(tx, of) {
			return api.NotFound("Company not found")
		}
		r = api.OK(f(tx, rc, of, span))
		return nil
	})
	return r, err
}

func readCostsByDay(rc *api.Request) (api.Response, error) {
	span, err := api.QuerySpan(rc)
	if err != nil {
		return api.Response{}, err
	}
	now := rc.Now().UTC()
	if span.To == 0 {
		span.To = core.TimeOf(now) + 1
	}
	if span.From == 0 {
		span.From = core.TimeOf(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC))
	}
	if span.To-span.From > maxCostDays*money.MsPerDay {
		return api.Response{}, api.Invalid("from, to: a report by day covers at most %d days; ask for less", maxCostDays)
	}
	of := api.CompanyID(rc)
	return api.Viewed(rc, func(tx *ledger.Tx) ([]CostByDay, error) {
		if !entity.CompanyExists(tx, of) {
			return nil, api.NotFound("Company not found")
		}
		out := []CostByDay{}
		for _, l := range money.CostsByDay(tx, of, span) {
			name, _ := entity.AgentLabel(tx, of, l.Agent)
			row := CostByDay{Date: l.Day.Std().Format(time.DateOnly), AgentID: l.Agent, AgentName: name,
				ProjectID: core.NullText(l.Project), Provider: l.Provider, Model: l.Model, tokens: tokensOf(l.Total)}
			if l.Project != "" {
				row.ProjectName = money.ScopeName(tx, of, entity.ScopeProject, l.Project)
			}
			out = append(out, row)
		}
		return out, nil
	})
}

func readWindowSpend(rc *api.Request) (api.Response, error) {
	of := api.CompanyID(rc)
	return api.Viewed(rc, func(tx *ledger.Tx) ([]WindowSpend, error) {
		if !entity.CompanyExists(tx, of) {
			return nil, api.NotFound("Company not found")
		}
		out := []WindowSpend{}
		for _, w := range money.SpendWindows(tx, of, core.TimeOf(rc.Now())) {
			name := map[int64]string{5: "5h", 24: "24h", 168: "7d"}[w.Hours]
			out = append(out, WindowSpend{w.Provider, w.Biller, name, w.Hours, tokensOf(w.Total)})
		}
		return out, nil
	})
}

func lines[T any](tx *ledger.Tx, of ledger.CompanyID, by money.CostGrouping, s money.Span,
	line func(money.CostSum) T) []T {
	out := []T{}
	for _, l := range money.CostsBy(tx, of, by, s) {
		out = append(out, line(l))
	}
	return out
}

func newCost(rc *api.Request) (api.Response, error) {
	in, err := api.Body[reportCost](rc)
	if err != nil {
		return api.Response{}, err
	}
	at, err := parseInstant(in.OccurredAt)
	if err != nil {
		return api.Response{}, err
	}
	e, err := api.Do[money.CostEvent](rc, money.KindCostReport, api.CompanyID(rc), money.ReportCost{Event: money.CostEvent{
		ID: api.NewID(), Agent: strings.ToLower(in.AgentID), Issue: core.NullText(api.BodyID(in.IssueID)),
		Project: core.NullText(api.BodyID(in.ProjectID)),
		Goal:    core.NullText(api.BodyID(in.GoalID)), Run: core.NullText(api.BodyID(in.HeartbeatRunID)),
		BillingCode: core.NullText(in.BillingCode.Or("")),
		Provider:    in.Provider, Biller: in.Biller, BillingType: in.BillingType, CostStatus: in.CostStatus, Model: in.Model,
		InputTokens: in.InputTokens, CachedInputTokens: in.CachedInputTokens, OutputTokens: in.OutputTokens,
		Cost: core.Cents(in.CostCents), OccurredAt: at,
	}})
	return api.OK(e), err
}

// parseInstant parses the time of a cost event. A time before 1970 is invalid.
func parseInstant(s string) (core.Time, error) {
	var t core.Time
	if err := t.UnmarshalJSON(core.AppendJSONString(nil, s)); err != nil || t < 0 {
		return 0, api.ValidationError(api.Issue{Origin: "string", Code: "invalid_format", Format: "datetime",
			Path: []any{"occurredAt"}, Message: "Invalid ISO datetime"})
	}
	return t, nil
}

func readIssueCosts(rc *api.Request) (r api.Response, err error) {
	span, err := api.QuerySpan(rc)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return err
		}
		c := money.CostsOfIssue(tx, i.Company, i.ID, span)
		r = api.OK(IssueCosts{i.ID, c.Issues, true, tokensOf(c.Total), c.HeartbeatRuns, c.RuntimeMS})
		return nil
	})
	return r, err
}
