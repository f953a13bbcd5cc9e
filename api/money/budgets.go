package money

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// setBudget is the body of a monthly limit; 0 takes it away.
type setBudget struct {
	BudgetMonthlyCents int64 `json:"budgetMonthlyCents" minimum:"0" maximum:"1000000000000"`
}

// setPolicy is the body of a limit of any scope and window.
type setPolicy struct {
	ScopeType       string `json:"scopeType" enum:"company,agent,project"`
	ScopeID         string `json:"scopeId" format:"uuid"`
	Metric          string `json:"metric,omitempty" enum:"billed_cents"`
	WindowKind      string `json:"windowKind,omitempty" enum:"calendar_month_utc,lifetime,calendar_day_utc,calendar_week_utc,rolling_24h,rolling_7d,rolling_30d"`
	Amount          int64  `json:"amount" minimum:"0" maximum:"1000000000000"`
	WarnPercent     *int64 `json:"warnPercent,omitempty" minimum:"1" maximum:"99"`
	HardStopEnabled *bool  `json:"hardStopEnabled,omitempty"`
	NotifyEnabled   *bool  `json:"notifyEnabled,omitempty"`
	IsActive        *bool  `json:"isActive,omitempty"`
}

// resolveIncident is the body that deals with an incident.
type resolveIncident struct {
	Action       string          `json:"action" enum:"keep_paused,raise_budget_and_resume"`
	Amount       *int64          `json:"amount,omitempty" minimum:"0" maximum:"1000000000000"`
	DecisionNote api.Opt[string] `json:"decisionNote" maxLength:"2000"`
}

// A BudgetPolicy is a policy as it stands, with what was spent.
type BudgetPolicy struct {
	PolicyID           string           `json:"policyId"`
	CompanyID          ledger.CompanyID `json:"companyId"`
	ScopeType          entity.ScopeType `json:"scopeType"`
	ScopeID            string           `json:"scopeId"`
	ScopeName          string           `json:"scopeName"`
	Metric             string           `json:"metric"`
	WindowKind         money.WindowKind `json:"windowKind"`
	Amount             core.Money       `json:"amount"`
	ObservedAmount     core.Money       `json:"observedAmount"`
	RemainingAmount    core.Money       `json:"remainingAmount"`
	HeldAmount         core.Money       `json:"heldAmount"` // set aside for calls under way, besides what was observed
	UtilizationPercent core.Percent     `json:"utilizationPercent"`
	WarnPercent        int64            `json:"warnPercent"`
	HardStopEnabled    bool             `json:"hardStopEnabled"`
	NotifyEnabled      bool             `json:"notifyEnabled"`
	IsActive           bool             `json:"isActive"`
	Status             string           `json:"status"`
	Paused             bool             `json:"paused"`
	PauseReason        core.NullText    `json:"pauseReason"`
	WindowStart        instant          `json:"windowStart"`
	WindowEnd          instant          `json:"windowEnd"`
}

// An instant is a time that is never null: a lifetime begins at zero.
type instant core.Time

func (t instant) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte(`"1970-01-01T00:00:00.000Z"`), nil
	}
	return core.Time(t).MarshalJSON()
}

type BudgetIncident struct {
	ID             string           `json:"id"`
	CompanyID      ledger.CompanyID `json:"companyId"`
	PolicyID       string           `json:"policyId"`
	ScopeType      entity.ScopeType `json:"scopeType"`
	ScopeID        string           `json:"scopeId"`
	ScopeName      string           `json:"scopeName"`
	Metric         string           `json:"metric"`
	WindowKind     money.WindowKind `json:"windowKind"`
	WindowStart    instant          `json:"windowStart"`
	WindowEnd      instant          `json:"windowEnd"`
	ThresholdType  string           `json:"thresholdType"`
	AmountLimit    core.Money       `json:"amountLimit"`
	AmountObserved core.Money       `json:"amountObserved"`
	Status         string           `json:"status"`
	ApprovalID     core.NullText    `json:"approvalId"`
	ApprovalStatus core.NullText    `json:"approvalStatus"`
	ResolvedAt     core.Time        `json:"resolvedAt"`
	CreatedAt      core.Time        `json:"createdAt"`
	UpdatedAt      core.Time        `json:"updatedAt"`
}

type BudgetOverview struct {
	CompanyID            ledger.CompanyID `json:"companyId"`
	Policies             []BudgetPolicy   `json:"policies"`
	ActiveIncidents      []BudgetIncident `json:"activeIncidents"`
	PausedAgentCount     int              `json:"pausedAgentCount"`
	PausedProjectCount   int              `json:"pausedProjectCount"`
	PendingApprovalCount int              `json:"pendingApprovalCount"`
	HeldAmount           core.Money       `json:"heldAmount"` // of the whole company
	ReservationCount     int64            `json:"reservationCount"`
}

func BudgetRoutes() []api.Route {
	return []api.Route{{
		Method: "PATCH", Path: "/api/companies/{companyId}/budgets", Tag: "costs",
		Summary: "Set the monthly budget of a company", Who: api.Board, In: setBudget{},
		Out: api.SameAs("/api/companies/{companyId}"), Handle: setCompanyBudget,
	}, {
		Method: "PATCH", Path: "/api/agents/{agentId}/budgets", Tag: "costs", Summary: "Set the monthly budget of an agent",
		Query: api.ByName(), In: setBudget{}, Out: api.SameAs("/api/agents/{id}"), Handle: setAgentBudget,
	}, {
		Method: "POST", Path: "/api/companies/{companyId}/budgets/policies", Tag: "costs", Summary: "Set a budget policy",
		In: setPolicy{}, Out: BudgetPolicy{}, Handle: putPolicy,
	}, {
		Method: "GET", Path: "/api/companies/{companyId}/budgets/overview", Tag: "costs",
		Summary: "Read all budgets and open incidents", Out: BudgetOverview{}, Handle: readBudgets,
	}, {
		Method: "GET", Path: "/api/companies/{companyId}/budget-incidents", Tag: "costs",
		Summary: "List the newest budget incidents", Out: []BudgetIncident{}, Handle: listIncidents,
		Query: []api.Param{{Name: "status", Doc: "open, resolved or dismissed; without it all"}},
	}, {
		Method: "POST", Path: "/api/companies/{companyId}/budget-incidents/{incidentId}/resolve", Tag: "costs",
		Summary: "Deal with a budget incident", Who: api.Board,
		In: resolveIncident{}, Out: BudgetIncident{}, Handle: resolveBudgetIncident,
	}}
}

func PolicyShown(tx *ledger.Tx, of ledger.CompanyID, b money.ScopeBudget, p money.BudgetPolicy,
	now core.Time) BudgetPolicy {
	spent, window := b.Spent(p.Window), p.Window.Window(now)
	out := BudgetPolicy{PolicyID: p.ID, CompanyID: of, ScopeType: b.Type, ScopeID: b.ID, ScopeName: money.ScopeName(tx, of,
		b.Type, b.ID), Metric: "billed_cents",
		WindowKind: p.Window, Amount: p.Amount, ObservedAmount: spent, RemainingAmount: max(p.Amount-spent, 0),
		HeldAmount: b.Held, UtilizationPercent: spent.Percent(p.Amount),
		WarnPercent: p.WarnPercent, HardStopEnabled: p.HardStop, NotifyEnabled: p.Notify, IsActive: p.Active,
		Status: p.Status(spent),
		Paused: entity.ScopePaused(tx, of, b.Type, b.ID), WindowStart: instant(window.From), WindowEnd: instant(window.To)}
	if out.Paused {
		out.PauseReason = "budget"
	}
	return out
}

func IncidentShown(tx *ledger.Tx, of ledger.CompanyID, in money.BudgetIncident) BudgetIncident {
	out := BudgetIncident{ID: in.ID, CompanyID: of, PolicyID: in.Policy, ScopeType: in.Type, ScopeID: in.Scope,
		ScopeName: money.ScopeName(tx, of, in.Type, in.Scope),
		Metric:    "billed_cents", WindowKind: in.Window, WindowStart: instant(in.Start), WindowEnd: instant(in.End),
		ThresholdType: in.Threshold,
		AmountLimit:   in.Limit, AmountObserved: in.Observed, Status: in.Status, ResolvedAt: in.ResolvedAt,
		CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt}
	if a, ok := money.ApprovalByID(tx, in.Approval); ok {
		out.ApprovalID, out.ApprovalStatus = core.NullText(a.ID), core.NullText(a.Status)
	}
	return out
}

func readBudgets(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		of, now := rc.Path("companyId"), core.TimeOf(rc.Now())
		if !entity.CompanyExists(tx, ledger.CompanyID(of)) {
			return api.NotFound("Company not found")
		}
		out := BudgetOverview{CompanyID: ledger.CompanyID(of), Policies: []BudgetPolicy{},
			ActiveIncidents: []BudgetIncident{}}
		for _, b := range money.Budgets(tx, ledger.CompanyID(of), now) {
			for _, p := range b.Policies {
				out.Policies = append(out.Policies, PolicyShown(tx, ledger.CompanyID(of), b, p, now))
			}
			if entity.ScopePaused(tx, ledger.CompanyID(of), b.Type, b.ID) {
				switch b.Type {
				case entity.ScopeAgent:
					out.PausedAgentCount++
				case entity.ScopeProject:
					out.PausedProjectCount++
				}
			}
		}
		for _, in := range money.OpenIncidents(tx, ledger.CompanyID(of), now) {
			out.ActiveIncidents = append(out.ActiveIncidents, IncidentShown(tx, ledger.CompanyID(of), in))
		}
		_, out.PendingApprovalCount = money.PendingApprovals(tx, ledger.CompanyID(of))
		whole := money.BudgetOf(tx, ledger.CompanyID(of), entity.ScopeCompany, of, now)
		out.HeldAmount, out.ReservationCount = whole.Held, whole.Holds
		r = api.OK(out)
		return nil
	})
	return r, err
}

func listIncidents(rc *api.Request) (r api.Response, err error) {
	status := rc.Query("status")
	switch status {
	case "", "open", "resolved", "dismissed":
	default:
		return r, api.Invalid("status is open, resolved or dismissed")
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of, out := api.CompanyID(rc), []BudgetIncident{}
		if !entity.CompanyExists(tx, of) {
			return api.NotFound("Company not found")
		}
		for _, in := range money.IncidentsOf(tx, of, status) {
			out = append(out, IncidentShown(tx, of, in))
		}
		r = api.OK(out)
		return nil
	})
	return r, err
}

func putPolicy(rc *api.Request) (api.Response, error) {
	in, err := api.Body[setPolicy](rc)
	if err != nil {
		return api.Response{}, err
	}
	of := api.CompanyID(rc)
	p := money.SetBudget{Type: entity.ScopeType(in.ScopeType), Scope: strings.ToLower(in.ScopeID),
		Window: money.WindowKind(in.WindowKind),
		Amount: core.Cents(in.Amount), WarnPercent: in.WarnPercent, HardStop: in.HardStopEnabled, Notify: in.NotifyEnabled,
		Active: in.IsActive}
	if p.Window == "" {
		p.Window = money.WindowMonth
		if p.Type == entity.ScopeProject {
			p.Window = money.WindowLifetime
		}
	}
	b, err := api.Do[money.ScopeBudget](rc, money.KindBudgetSet, of, p)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error {
		policy, _ := b.Policy(p.Window)
		r = api.OK(PolicyShown(tx, of, b, policy, core.TimeOf(rc.Now())))
		return nil
	})
	return r, err
}

func resolveBudgetIncident(rc *api.Request) (api.Response, error) {
	in, err := api.Body[resolveIncident](rc)
	if err != nil {
		return api.Response{}, err
	}
	of := api.CompanyID(rc)
	p := money.ResolveIncident{Incident: strings.ToLower(rc.Path("incidentId")), Action: in.Action,
		Note: in.DecisionNote.Or("")}
	if in.Amount != nil {
		p.Amount = new(core.Cents(*in.Amount))
	}
	incident, err := api.Do[money.BudgetIncident](rc, money.KindBudgetResolve, of, p)
	if err != nil {
		return api.Response{}, err
	}
	var r api.Response
	err = rc.View(func(tx *ledger.Tx) error {
		r = api.OK(IncidentShown(tx, of, incident))
		return nil
	})
	return r, err
}

// setMonthly sets the monthly limit of a company or an agent.
func setMonthly(rc *api.Request, of ledger.CompanyID, scope entity.ScopeType, id string) error {
	in, err := api.Body[setBudget](rc)
	if err != nil {
		return err
	}
	_, err = rc.Submit(money.KindBudgetSet, of, money.SetBudget{Type: scope, Scope: id, Window: money.WindowMonth,
		Amount: core.Cents(in.BudgetMonthlyCents)})
	return err
}

func setCompanyBudget(rc *api.Request) (api.Response, error) {
	of := rc.Path("companyId")
	if err := setMonthly(rc, ledger.CompanyID(of), entity.ScopeCompany, of); err != nil {
		return api.Response{}, err
	}
	return rc.AnswerOf("/api/companies/{}", of)
}

func setAgentBudget(rc *api.Request) (api.Response, error) {
	agent, of := strings.ToLower(rc.Path("agentId")), rc.Company
	err := rc.View(func(tx *ledger.Tx) error {
		if of = entity.CompanyOfAgent(tx, agent); of == "" || !api.Seen(tx, rc, of) {
			return api.NotFound("Agent not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if err := setMonthly(rc, of, entity.ScopeAgent, agent); err != nil {
		return api.Response{}, err
	}
	return rc.AnswerOf("/api/agents/{}", agent)
}
