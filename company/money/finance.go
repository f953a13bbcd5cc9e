package money

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A FinanceEvent is a booking that is not the cost of a call: a fee, bought or expired
// credit, a correction. Budgets do not count it.
type FinanceEvent struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent       core.NullText    `cbor:"3,keyasint,omitempty" json:"agentId"`
	Issue       core.NullText    `cbor:"4,keyasint,omitempty" json:"issueId"`
	Project     core.NullText    `cbor:"5,keyasint,omitempty" json:"projectId"`
	Goal        core.NullText    `cbor:"6,keyasint,omitempty" json:"goalId"`
	Run         core.NullText    `cbor:"7,keyasint,omitempty" json:"heartbeatRunId"`
	Cost        core.NullText    `cbor:"8,keyasint,omitempty" json:"costEventId"`
	BillingCode core.NullText    `cbor:"9,keyasint,omitempty" json:"billingCode"`
	Description core.NullText    `cbor:"10,keyasint,omitempty" json:"description"`
	Kind        string           `cbor:"11,keyasint" json:"eventKind"`
	Direction   string           `cbor:"12,keyasint" json:"direction"`
	Biller      string           `cbor:"13,keyasint" json:"biller"`
	Provider    core.NullText    `cbor:"14,keyasint,omitempty" json:"provider"`
	Adapter     core.NullText    `cbor:"15,keyasint,omitempty" json:"executionAdapterType"`
	Tier        core.NullText    `cbor:"16,keyasint,omitempty" json:"pricingTier"`
	Region      core.NullText    `cbor:"17,keyasint,omitempty" json:"region"`
	Model       core.NullText    `cbor:"18,keyasint,omitempty" json:"model"`
	Quantity    *int64           `cbor:"19,keyasint,omitempty" json:"quantity"`
	Unit        core.NullText    `cbor:"20,keyasint,omitempty" json:"unit"`
	Amount      core.Money       `cbor:"21,keyasint,omitempty" json:"amountCents"`
	Currency    string           `cbor:"22,keyasint" json:"currency"`
	Estimated   bool             `cbor:"23,keyasint,omitempty" json:"estimated"`
	Invoice     core.NullText    `cbor:"24,keyasint,omitempty" json:"externalInvoiceId"`
	Metadata    json.RawMessage  `cbor:"25,keyasint,omitempty" json:"metadataJson"` // an object, without secrets
	OccurredAt  core.Time        `cbor:"26,keyasint" json:"occurredAt"`
	CreatedAt   core.Time        `cbor:"27,keyasint" json:"createdAt"`
}

// Clone returns a copy that shares no memory with e. The ledger's cache of decoded rows
// needs it.
func (e FinanceEvent) Clone() FinanceEvent {
	e.Metadata = slices.Clone(e.Metadata)
	if e.Quantity != nil {
		e.Quantity = new(*e.Quantity)
	}
	return e
}

// Directions of a booking: a debit is money paid, a credit money received.
const (
	Debit  = "debit"
	Credit = "credit"
)

// FinanceKinds are the kinds of bookings, in the contract's order.
var FinanceKinds = []string{"inference_charge", "platform_fee", "credit_purchase", "credit_refund", "credit_expiry",
	"byok_fee", "gateway_overhead", "log_storage_charge",
	"logpush_charge", "provisioned_capacity_charge", "training_charge", "custom_model_import_charge",
	"custom_model_storage_charge", "manual_adjustment"}

// A FinanceSum sums up the bookings of one biller and kind in one day, or is a line of a
// report.
type FinanceSum struct {
	Biller    string     `cbor:"1,keyasint"`
	Kind      string     `cbor:"2,keyasint"`
	Debit     core.Money `cbor:"3,keyasint,omitempty"`
	Credit    core.Money `cbor:"4,keyasint,omitempty"`
	Estimated core.Money `cbor:"5,keyasint,omitempty"` // the part of Debit that is not invoiced yet
	Events    int64      `cbor:"6,keyasint,omitempty"`
	// Others is the number of kinds in a line by biller, or of billers in a line by kind.
	Others int `cbor:"-"`
}

// Net returns debits minus credits.
func (s FinanceSum) Net() core.Money { return s.Debit - s.Credit }

func (s FinanceSum) Plus(o FinanceSum) FinanceSum {
	s.Debit, s.Credit, s.Estimated, s.Events = s.Debit.Plus(o.Debit), s.Credit.Plus(o.Credit),
		s.Estimated.Plus(o.Estimated), s.Events+o.Events
	return s
}

func (e FinanceEvent) Sum() FinanceSum {
	s := FinanceSum{Biller: e.Biller, Kind: e.Kind, Events: 1}
	switch {
	case e.Direction == Credit:
		s.Credit = e.Amount
	case e.Estimated:
		s.Debit, s.Estimated = e.Amount, e.Amount
	default:
		s.Debit = e.Amount
	}
	return s
}

// Where bookings are stored, under c/<company>/:
//
//	finance/<occurredAt>.<event>       FinanceEvent, by time
//	finance-id/<event>                 the ID is taken
//	finance-day/<day>.<biller, kind>   FinanceSum
var (
	financeEvents = ledger.NewTable[string, FinanceEvent]("finance")
	financeDays   = ledger.NewTable[string, FinanceSum]("finance-day")
)

// MaxFinanceList bounds the bookings that a list shows at a time.
const MaxFinanceList = 500

const KindFinanceBook = "finance.book"

var financeKinds = []company.Kind{
	{Name: KindFinanceBook, From: company.FromBoard, Weight: company.Weights.Reporting, Do: ledger.Typed(bookFinance)},
}

// bookFinance handles finance.book. Its payload is the event without Company and CreatedAt.
func bookFinance(c *ledger.Context, e FinanceEvent) (any, error) {
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	e.Company, e.CreatedAt = c.Cmd.Company, core.TimeOf(c.Now)
	e.Direction, e.Currency = cmp.Or(e.Direction, Debit), cmp.Or(e.Currency, "USD")
	if err := e.check(c.Tx); err != nil {
		return nil, err
	}
	if i, ok := entity.IssueTable.Get(c.Tx, e.Company, string(e.Issue)); ok && e.Issue != "" {
		e.Project = core.NullText(cmp.Or(string(e.Project), i.Project))
		e.BillingCode = core.NullText(cmp.Or(string(e.BillingCode), i.BillingCode))
	}
	var err error
	if e.Metadata, err = core.CheckObject("metadataJson", e.Metadata, entity.MaxConfig); err != nil {
		return nil, err
	}
	taken := ledger.Key("c", string(e.Company), "finance-id", e.ID)
	if c.Has(taken) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "Finance event ID is taken")
	}
	c.Set(taken, nil)
	financeEvents.Put(c.Tx, e.Company, ledger.Order(uint64(e.OccurredAt))+"."+e.ID, e)
	sum := e.Sum()
	day := ledger.Order(uint64(e.OccurredAt/MsPerDay)) + "." + core.TextKey(e.Kind+"/"+e.Biller)
	if old, ok := financeDays.Get(c.Tx, e.Company, day); ok {
		sum = old.Plus(sum)
	}
	financeDays.Put(c.Tx, e.Company, day, sum)
	c.Record(ledger.Change{Action: "finance_event.reported", EntityType: "finance_event", EntityID: e.ID,
		Details: core.Object{}.Str("eventKind", e.Kind).Str("direction", e.Direction).Str("biller", e.Biller).
			Int("amountCents", e.Amount.Cents()).Close()})
	return e, nil
}

// check refuses a booking that is out of range or refers to something that does not exist.
func (e FinanceEvent) check(tx *ledger.Tx) error {
	if !core.IsID(e.ID) || e.Amount < 0 || e.Amount > core.Cents(core.MaxEventCents) || e.OccurredAt < 0 ||
		e.Biller == "" || len(e.Biller) > entity.MaxName ||
		!slices.Contains(FinanceKinds, e.Kind) || e.Direction != Debit && e.Direction != Credit || e.Quantity != nil &&
		(*e.Quantity < 0 || *e.Quantity > MaxEventTokens) {
		return ledger.Refuse(ledger.Invalid, nil, "Finance event is out of range")
	}
	if e.Currency != "USD" {
		return ledger.Refuse(ledger.Unprocessable, nil, "currency: must be USD; convert other currencies first")
	}
	_, costed := tx.Get(CostIDKey(e.Company, string(e.Cost)))
	for _, ref := range []struct {
		id   core.NullText
		ok   bool
		what string
	}{
		{e.Agent, entity.AgentExists(tx, e.Company, string(e.Agent)), "Agent"},
		{e.Issue, tx.Has(entity.IssueTable.Key(e.Company, string(e.Issue))), "Issue"},
		{e.Project, entity.ProjectExists(tx, e.Company, string(e.Project)), "Project"},
		{e.Goal, entity.GoalExists(tx, e.Company, string(e.Goal)), "Goal"},
		{e.Run, tx.Has(entity.RunTable.Key(e.Company, string(e.Run))), "Heartbeat run"},
		{e.Cost, costed, "Cost event"},
	} {
		if ref.id != "" && !ref.ok {
			return ledger.Refuse(ledger.NotFound, nil, "%s not found", ref.what)
		}
	}
	return nil
}

// FinanceEvents returns the newest bookings of company in s.
func FinanceEvents(tx *ledger.Tx, company ledger.CompanyID, s Span, limit int) []FinanceEvent {
	out := []FinanceEvent{}
	from, to := ledger.Key("c", string(company), "finance", ledger.Order(uint64(max(s.From, 0)))),
		ledger.Key("c", string(company), "finance", ledger.Order(uint64(s.End())))
	for _, v := range tx.Scan(from, to, true) {
		if len(out) == limit {
			break
		}
		out = append(out, decode[FinanceEvent](v))
	}
	return out
}

// Finances sums up the bookings of company in s, one line for each key that by returns,
// greatest debit first. by sets the names of the line.
func Finances(tx *ledger.Tx, company ledger.CompanyID, s Span, by func(FinanceSum) FinanceSum) []FinanceSum {
	lines := map[FinanceSum]FinanceSum{}
	seen := map[[2]string]bool{}
	add := func(one FinanceSum) {
		key := by(FinanceSum{Biller: one.Biller, Kind: one.Kind})
		line, ok := lines[key]
		if !ok {
			line = key
		}
		if pair := [2]string{one.Biller, one.Kind}; !seen[pair] {
			seen[pair] = true
			line.Others++
		}
		lines[key] = line.Plus(one)
	}
	from, to := max(s.From, 0), min(s.End(), foreverEnd)
	first, last := (from+MsPerDay-1)/MsPerDay, to/MsPerDay // whole days from first, before last
	edges := []Span{{from, min(first*MsPerDay, to)}, {max(last*MsPerDay, from), to}}
	if first > last { // within one day
		edges = []Span{{from, to}}
	}
	for _, edge := range edges {
		for _, v := range scanTimes(tx, company, "finance", "", edge) {
			add(decode[FinanceEvent](v).Sum())
		}
	}
	for _, v := range scanTimes(tx, company, "finance-day", "", Span{first, last}) {
		add(decode[FinanceSum](v))
	}
	out := make([]FinanceSum, 0, len(lines))
	for _, line := range lines {
		out = append(out, line)
	}
	slices.SortFunc(out, func(a, b FinanceSum) int {
		return cmp.Or(cmp.Compare(b.Debit, a.Debit), cmp.Compare(a.Biller, b.Biller), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// ByFinanceBiller and ByFinanceKind group the lines of Finances; AllFinances makes one line.
func ByFinanceBiller(s FinanceSum) FinanceSum { return FinanceSum{Biller: s.Biller} }

// ByFinanceKind, see ByFinanceBiller.
func ByFinanceKind(s FinanceSum) FinanceSum { return FinanceSum{Kind: s.Kind} }

// AllFinances, see ByFinanceBiller.
func AllFinances(FinanceSum) FinanceSum { return FinanceSum{} }
