package money

import (
	"cmp"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A CostEvent is money that an agent spent, reported or metered.
type CostEvent struct {
	ID                string           `cbor:"1,keyasint" json:"id"`
	Company           ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent             string           `cbor:"3,keyasint" json:"agentId"`
	Issue             core.NullText    `cbor:"4,keyasint,omitempty" json:"issueId"`
	Project           core.NullText    `cbor:"5,keyasint,omitempty" json:"projectId"`
	Goal              core.NullText    `cbor:"6,keyasint,omitempty" json:"goalId"`
	Run               core.NullText    `cbor:"7,keyasint,omitempty" json:"heartbeatRunId"`
	BillingCode       core.NullText    `cbor:"8,keyasint,omitempty" json:"billingCode"`
	Provider          string           `cbor:"9,keyasint" json:"provider"`
	Biller            string           `cbor:"10,keyasint" json:"biller"`
	BillingType       string           `cbor:"11,keyasint" json:"billingType"`
	CostStatus        string           `cbor:"12,keyasint" json:"costStatus"`
	Model             string           `cbor:"13,keyasint" json:"model"`
	InputTokens       int64            `cbor:"14,keyasint,omitempty" json:"inputTokens"`
	CachedInputTokens int64            `cbor:"15,keyasint,omitempty" json:"cachedInputTokens"`
	OutputTokens      int64            `cbor:"16,keyasint,omitempty" json:"outputTokens"`
	Cost              core.Money       `cbor:"17,keyasint,omitempty" json:"costCents"`
	OccurredAt        core.Time        `cbor:"18,keyasint" json:"occurredAt"`
	CreatedAt         core.Time        `cbor:"19,keyasint" json:"createdAt"`
	// Reservation paid for a metered call; "" for reported costs.
	Reservation core.NullText `cbor:"20,keyasint,omitempty" json:"reservationId,omitempty"`
}

// Billing types and cost statuses of the contract.
var (
	BillingTypes = []string{"metered_api", "subscription_included", "subscription_overage", "credits", "fixed", "unknown"}
	CostStatuses = []string{"reported", "unpriced"}
)

const (
	// MaxEventTokens bounds the counts of one event, see [MaxEventCents].
	MaxEventTokens = 1_000_000_000_000
)

// A Total sums up events. A run counts once, for the combination of provider, biller, type
// and model that it used first.
type Total struct {
	Cost   core.Money `cbor:"1,keyasint,omitempty"`
	Input  int64      `cbor:"2,keyasint,omitempty"`
	Cached int64      `cbor:"3,keyasint,omitempty"`
	Output int64      `cbor:"4,keyasint,omitempty"`
	Events int64      `cbor:"5,keyasint,omitempty"`
	Runs   int64      `cbor:"6,keyasint,omitempty"` // runs first counted in this combination
	Firsts int64      `cbor:"7,keyasint,omitempty"` // runs first counted with this billing, in any combination
}

func (t Total) Plus(u Total) Total {
	return Total{t.Cost.Plus(u.Cost), t.Input + u.Input, t.Cached + u.Cached, t.Output + u.Output,
		t.Events + u.Events, t.Runs + u.Runs, t.Firsts + u.Firsts}
}

func (e CostEvent) Total() Total {
	return Total{Cost: e.Cost, Input: e.InputTokens, Cached: e.CachedInputTokens, Output: e.OutputTokens, Events: 1}
}

// A CostCell sums up one combination in one hour or day. Reports add up cells, so their cost
// does not grow with the number of events.
type CostCell struct {
	Agent       string `cbor:"1,keyasint"`
	Project     string `cbor:"2,keyasint,omitempty"`
	Provider    string `cbor:"3,keyasint"`
	Biller      string `cbor:"4,keyasint"`
	BillingType string `cbor:"5,keyasint"`
	Model       string `cbor:"6,keyasint"`
	Total       Total  `cbor:"7,keyasint"`
	BillingCode string `cbor:"8,keyasint,omitempty"`
}

func (e CostEvent) Cell() CostCell {
	return CostCell{e.Agent, string(e.Project), e.Provider, e.Biller, e.BillingType, e.Model, e.Total(),
		string(e.BillingCode)}
}

// subscription reports whether the cell is billed by subscription.
func (cell CostCell) subscription() bool {
	return cell.BillingType == "subscription_included" || cell.BillingType == "subscription_overage"
}

// hash names the cell's combination in keys, because its parts are free text.
func (cell CostCell) hash() string {
	var b []byte
	parts := []string{cell.Agent, cell.Project, cell.Provider, cell.Biller, cell.BillingType, cell.Model}
	if cell.BillingCode != "" { // cells without one keep their names
		parts = append(parts, cell.BillingCode)
	}
	for _, s := range parts {
		b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
		b = append(b, s...)
	}
	return core.TextKey(string(b))
}

// Where costs are stored, all under c/<company>/:
//
//	cost/<occurredAt>.<event>             every event, by time
//	cost-id/<event>                       its row ID
//	cost-agent/<agent>/<row ID>           an agent's events, by time
//	cost-hour/<hour>.<combination>        CostCell
//	cost-day/<day>.<combination>          CostCell
//	cost-issue/<issue>.<hour>             Total of one issue
//	cost-run/<run>.<billing or combination>   marks where the run was counted
//	budget/<scope type>.<scope>           ScopeBudget, see budget.go
//
// Hours and days are counted from the Unix epoch, UTC, in fixed width.
var (
	CostEvents = ledger.NewTable[string, CostEvent]("cost")
	costHours  = ledger.NewTable[string, CostCell]("cost-hour").Hot()
	costDays   = ledger.NewTable[string, CostCell]("cost-day").Hot()
	costIssues = ledger.NewTable[string, Total]("cost-issue").Hot()

	costsByAgent = ledger.NewIndex[string, string]("cost-agent")
)

const (
	msPerHour core.Time = 3_600_000
	MsPerDay  core.Time = 24 * msPerHour
)

func CostIDKey(company ledger.CompanyID, id string) []byte {
	return ledger.Key("c", string(company), "cost-id", id)
}

func costRunKey(company ledger.CompanyID, run, what string) []byte {
	return ledger.Key("c", string(company), "cost-run", run+"."+what)
}

// ReportCost is the payload of cost.report: one event, without Company and CreatedAt. The
// caller chooses the ID; a second event with the same ID is refused.
type ReportCost struct {
	Event CostEvent `cbor:"1,keyasint"`
}

const KindCostReport = "cost.report"

var costKinds = []company.Kind{
	{Name: KindCostReport, From: company.FromBoard | company.FromAgent | company.FromNode,
		Traits: company.FencesItself | company.SeldomWork, Weight: company.Weights.Reporting, Do: ledger.Typed(reportCost)},
}

func reportCost(c *ledger.Context, p ReportCost) (any, error) {
	e := p.Event
	e.Company, e.CreatedAt = c.Cmd.Company, core.TimeOf(c.Now)
	if err := mayReport(c, e); err != nil {
		return nil, err
	}
	if e.OccurredAt > e.CreatedAt+MsPerDay { // it would count in a future window of the budgets
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"occurredAt is more than a day ahead; give the time at which the cost arose")
	}
	e, err := e.complete(c.Tx)
	if err != nil {
		return nil, err
	}
	if c.Has(CostIDKey(e.Company, e.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Cost event ID is taken")
	}
	c.Record(ledger.Change{Action: "cost.reported", EntityType: "cost_event", EntityID: e.ID,
		Details: core.Object{}.Str("model", e.Model).Int("costCents", e.Cost.Cents()).Close()})
	row := bookCost(c.Tx, e)
	if err := spendBudgets(c, e); err != nil {
		return nil, err
	}
	return row, nil
}

// mayReport lets the board, nodes and the system report for every agent, and an agent for
// itself; under a run only while it runs.
func mayReport(c *ledger.Context, e CostEvent) error {
	if !entity.AgentExists(c.Tx, e.Company, e.Agent) {
		if elsewhere := entity.CompanyOfAgent(c.Tx, e.Agent); elsewhere != "" {
			return ledger.Refuse(ledger.Unprocessable, nil, "Agent does not belong to company")
		}
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	if !core.IsAgent(c) {
		return nil
	}
	actor, run := c.Cmd.Actor.ID, c.Cmd.Run
	if e.Agent != actor {
		return ledger.Refuse(ledger.Forbidden, nil, "Agent can only report its own costs")
	}
	if run != "" && !entity.RunAlive(c.Tx, e.Company, run, actor) {
		i, _ := entity.IssueTable.Get(c.Tx, e.Company, string(e.Issue))
		i.ID = string(e.Issue)
		return i.StaleRun(actor, run)
	}
	return nil
}

// complete checks the references of e and fills in derived fields.
func (e CostEvent) complete(tx *ledger.Tx) (CostEvent, error) {
	missing := func(what string) (CostEvent, error) {
		return e, ledger.Refuse(ledger.NotFound, nil, "%s not found", what)
	}
	if e.Issue != "" {
		i, ok := entity.IssueTable.Get(tx, e.Company, string(e.Issue))
		if !ok {
			return missing("Issue")
		}
		if e.Project == "" {
			e.Project = core.NullText(i.Project)
		}
		if e.BillingCode == "" {
			e.BillingCode = core.NullText(i.BillingCode)
		}
	}
	if e.Project != "" && !entity.ProjectExists(tx, e.Company, string(e.Project)) {
		return missing("Project")
	}
	if e.Goal != "" && !entity.GoalExists(tx, e.Company, string(e.Goal)) {
		return missing("Goal")
	}
	if e.Run != "" {
		if r, ok := entity.RunTable.Get(tx, e.Company, string(e.Run)); !ok || r.Agent != e.Agent {
			return missing("Heartbeat run")
		}
	}
	e.Biller = cmp.Or(e.Biller, e.Provider)
	e.BillingType = cmp.Or(e.BillingType, "unknown")
	e.CostStatus = cmp.Or(e.CostStatus, "reported")
	if e.Cost < 0 || e.Cost > core.Cents(core.MaxEventCents) || e.OccurredAt < 0 ||
		min(e.InputTokens, e.CachedInputTokens, e.OutputTokens) < 0 || max(e.InputTokens, e.CachedInputTokens,
		e.OutputTokens) > MaxEventTokens {
		return e, ledger.Refuse(ledger.Invalid, nil, "Cost event is out of range")
	}
	return e, nil
}

// bookCost stores e, adds it to its cells, and returns its encoding.
func bookCost(tx *ledger.Tx, e CostEvent) []byte {
	row := ledger.Order(uint64(e.OccurredAt)) + "." + e.ID
	tx.Set(CostIDKey(e.Company, e.ID), []byte(row))
	encoded := CostEvents.Put(tx, e.Company, row, e)
	costsByAgent.Add(tx, e.Company, e.Agent, row)

	cell := e.Cell()
	hash := cell.hash()
	if e.Run != "" {
		billing := "api"
		if cell.subscription() {
			billing = "subscription"
		}
		cell.Total.Firsts = markRun(tx, e, billing)
		uncoded := cell
		uncoded.BillingCode = ""
		cell.Total.Runs = markRun(tx, e, uncoded.hash())
	}
	hour := ledger.Order(uint64(e.OccurredAt / msPerHour))
	add(tx, costHours, e.Company, hour+"."+hash, cell)
	add(tx, costDays, e.Company, ledger.Order(uint64(e.OccurredAt/MsPerDay))+"."+hash, cell)
	if e.Issue != "" {
		id := string(e.Issue) + "." + hour
		t, _ := costIssues.Get(tx, e.Company, id)
		costIssues.Put(tx, e.Company, id, t.Plus(e.Total()))
	}
	return encoded
}

func add(tx *ledger.Tx, t *ledger.Table[string, CostCell], company ledger.CompanyID, id string, cell CostCell) {
	if old := t.Look(tx, company, id); old != nil {
		cell.Total = old.Total.Plus(cell.Total)
	}
	t.Put(tx, company, id, cell)
}

// markRun returns 1 when what counts the event's run for the first time, then 0.
func markRun(tx *ledger.Tx, e CostEvent, what string) int64 {
	key := costRunKey(e.Company, string(e.Run), what)
	if tx.Has(key) {
		return 0
	}
	tx.Set(key, nil)
	return 1
}
