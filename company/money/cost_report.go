package money

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Span is a time range, including From and excluding To. The zero Span is all time.
type Span struct{ From, To core.Time }

func (s Span) End() core.Time {
	if s.To == 0 {
		return math.MaxInt64
	}
	return s.To
}

// cut divides s into whole days in the middle, whole hours around them, and the rest at both
// ends, for which single events are read.
type cut struct {
	head, hoursBefore, days, hoursAfter, tail Span
}

func (s Span) cut() cut {
	up := func(t, unit core.Time) core.Time { return (t + unit - 1) / unit * unit }
	down := func(t, unit core.Time) core.Time { return t / unit * unit }
	from, to := max(s.From, 0), min(s.End(), math.MaxInt64-MsPerDay)
	h0, h1 := up(from, msPerHour), down(to, msPerHour)
	if h0 >= h1 {
		return cut{head: Span{from, max(from, to)}}
	}
	d0, d1 := up(h0, MsPerDay), down(h1, MsPerDay)
	if d0 >= d1 {
		return cut{head: Span{from, h0}, hoursBefore: Span{h0, h1}, tail: Span{h1, to}}
	}
	return cut{Span{from, h0}, Span{h0, d0}, Span{d0, d1}, Span{d1, h1}, Span{h1, to}}
}

// costCells yields the costs in s as cells. A combination is yielded once for each of its
// days and hours, and for each event at the ends of s.
func costCells(tx *ledger.Tx, company ledger.CompanyID, s Span) iter.Seq[CostCell] {
	c := s.cut()
	return func(yield func(CostCell) bool) {
		for e := range eventsIn(tx, company, c.head) {
			if !yield(e.Cell()) {
				return
			}
		}
		for _, part := range []struct {
			table string
			unit  core.Time
			span  Span
		}{{"cost-hour", msPerHour, c.hoursBefore}, {"cost-day", MsPerDay, c.days}, {"cost-hour", msPerHour, c.hoursAfter}} {
			for _, v := range scanTimes(tx, company, part.table, "", Span{part.span.From / part.unit,
				part.span.To / part.unit}) {
				if !yield(decode[CostCell](v)) {
					return
				}
			}
		}
		for e := range eventsIn(tx, company, c.tail) {
			if !yield(e.Cell()) {
				return
			}
		}
	}
}

// CostsOfAgentSince yields the cost events of an agent's work since a time, newest first.
func CostsOfAgentSince(tx *ledger.Tx, company ledger.CompanyID, agent string, since core.Time) iter.Seq[CostEvent] {
	return func(yield func(CostEvent) bool) {
		for row := range costsByAgent.IDs(tx, company, agent, true) {
			if e, ok := CostEvents.Get(tx, company, row); ok && (e.OccurredAt < since || !yield(e)) {
				return
			}
		}
	}
}

func eventsIn(tx *ledger.Tx, company ledger.CompanyID, s Span) iter.Seq[CostEvent] {
	return func(yield func(CostEvent) bool) {
		for _, v := range scanTimes(tx, company, "cost", "", s) {
			if !yield(decode[CostEvent](v)) {
				return
			}
		}
	}
}

// scanTimes yields the rows of a table whose ID is prefix, a time in s, and a rest.
func scanTimes(tx *ledger.Tx, company ledger.CompanyID, table, prefix string, s Span) iter.Seq2[[]byte, []byte] {
	if s.From >= s.To {
		return func(func([]byte, []byte) bool) {}
	}
	return tx.Scan(ledger.Key("c", string(company), table, prefix+ledger.Order(uint64(s.From))),
		ledger.Key("c", string(company), table, prefix+ledger.Order(uint64(s.To))), false)
}

func decode[T any](b []byte) (row T) {
	if err := ledger.Unmarshal(b, &row); err != nil {
		panic("company: row does not decode: " + err.Error())
	}
	return row
}

// A CostSum is one line of a report. The grouping decides which names are set.
type CostSum struct {
	Agent, Project, Provider, Biller, BillingType, Model, BillingCode string

	Total            // of every billing type
	APIRuns          int64
	SubscriptionRuns int64
	Subscription     Total // the part billed by subscription
	Providers        int   // number of providers in the line
	Models           int
}

// A CostGrouping is what a report has one line for.
type CostGrouping int

const (
	ByAgent CostGrouping = iota
	ByAgentModel
	ByProvider
	ByBiller
	ByProject
	ByBillingCode // costs without a code are left out
	ByAgentProjectModel
)

// CostsBy returns what company spent in s, the most expensive line first.
func CostsBy(tx *ledger.Tx, company ledger.CompanyID, by CostGrouping, s Span) []CostSum {
	lines := map[CostCell]*CostSum{}
	providers, models := map[[3]string]bool{}, map[[3]string]bool{}
	for cell := range costCells(tx, company, s) {
		if by == ByProject && cell.Project == "" || by == ByBillingCode && cell.BillingCode == "" {
			continue
		}
		key := by.Key(cell)
		sum := lines[key]
		if sum == nil {
			sum = &CostSum{Agent: key.Agent, Project: key.Project, Provider: key.Provider, Biller: key.Biller,
				BillingType: key.BillingType, Model: key.Model, BillingCode: key.BillingCode}
			lines[key] = sum
		}
		sum.Total = sum.Total.Plus(cell.Total)
		runs := cell.Total.Runs
		if by == ByAgent || by == ByProject || by == ByBillingCode {
			runs = cell.Total.Firsts
		}
		if cell.subscription() {
			sum.Subscription = sum.Subscription.Plus(cell.Total)
			sum.SubscriptionRuns += runs
		} else {
			sum.APIRuns += runs
		}
		if p := [3]string{key.Biller, cell.Provider}; !providers[p] {
			providers[p] = true
			sum.Providers++
		}
		if m := [3]string{key.Biller, cell.Provider, cell.Model}; !models[m] {
			models[m] = true
			sum.Models++
		}
	}
	return sortedSums(lines)
}

func (by CostGrouping) Key(c CostCell) CostCell {
	switch by {
	case ByAgent:
		return CostCell{Agent: c.Agent}
	case ByAgentModel:
		return CostCell{Agent: c.Agent, Provider: c.Provider, Biller: c.Biller, BillingType: c.BillingType, Model: c.Model}
	case ByProvider:
		return CostCell{Provider: c.Provider, Biller: c.Biller, BillingType: c.BillingType, Model: c.Model}
	case ByBiller:
		return CostCell{Biller: c.Biller}
	case ByBillingCode:
		return CostCell{BillingCode: c.BillingCode}
	case ByAgentProjectModel:
		return CostCell{Agent: c.Agent, Project: c.Project, Provider: c.Provider, Model: c.Model}
	default:
		return CostCell{Project: c.Project}
	}
}

func sortedSums(lines map[CostCell]*CostSum) []CostSum {
	out := make([]CostSum, 0, len(lines))
	for _, sum := range lines {
		out = append(out, *sum)
	}
	slices.SortFunc(out, func(a, b CostSum) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Project, b.Project),
			cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Biller, b.Biller), cmp.Compare(a.BillingType, b.BillingType),
			cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.BillingCode, b.BillingCode))
	})
	return out
}

// A DayCost is what one agent spent for one project with one model on a day in UTC.
type DayCost struct {
	Day core.Time // its first instant
	CostSum
}

// CostsByDay returns what company spent in s, which has an end, the earliest day first and of a
// day the most expensive line first.
func CostsByDay(tx *ledger.Tx, company ledger.CompanyID, s Span) []DayCost {
	out := []DayCost{}
	for day := max(s.From, 0) / MsPerDay * MsPerDay; day < s.To; day += MsPerDay {
		part := Span{max(day, s.From), min(day+MsPerDay, s.To)}
		for _, sum := range CostsBy(tx, company, ByAgentProjectModel, part) {
			out = append(out, DayCost{day, sum})
		}
	}
	return out
}

// SpentIn returns what company spent in s.
func SpentIn(tx *ledger.Tx, company ledger.CompanyID, s Span) Total {
	var t Total
	for cell := range costCells(tx, company, s) {
		t = t.Plus(cell.Total)
	}
	return t
}

// A WindowSpend is what one provider and biller cost in the last hours.
type WindowSpend struct {
	Provider, Biller string
	Hours            int64
	Total
}

// SpendWindows returns the costs of the last 5 hours, day and week before now, each from the
// start of its first hour.
func SpendWindows(tx *ledger.Tx, company ledger.CompanyID, now core.Time) []WindowSpend {
	out := []WindowSpend{}
	for _, hours := range []int64{5, 24, 168} {
		from := max((now-core.Time(hours)*msPerHour)/msPerHour*msPerHour, 0)
		to := (now/msPerHour + 1) * msPerHour
		lines := map[CostCell]*CostSum{}
		for cell := range costCells(tx, company, Span{from, to}) {
			key := CostCell{Provider: cell.Provider, Biller: cell.Biller}
			if lines[key] == nil {
				lines[key] = &CostSum{Provider: key.Provider, Biller: key.Biller}
			}
			lines[key].Total = lines[key].Total.Plus(cell.Total)
		}
		for _, sum := range sortedSums(lines) {
			out = append(out, WindowSpend{sum.Provider, sum.Biller, hours, sum.Total})
		}
	}
	slices.SortStableFunc(out, func(a, b WindowSpend) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Biller, b.Biller), cmp.Compare(a.Hours, b.Hours))
	})
	return out
}

// IssueCosts are the costs of an issue and everything below it.
type IssueCosts struct {
	Issues int
	Total
	HeartbeatRuns int
	RuntimeMS     int64
}

// CostsOfIssue returns what was spent on an issue and its sub-issues in s.
func CostsOfIssue(tx *ledger.Tx, of ledger.CompanyID, issue string, s Span) IssueCosts {
	ids := entity.Descendants(tx, of, issue)
	out := IssueCosts{Issues: len(ids)}
	c := s.cut()
	hours := Span{c.hoursBefore.From, c.hoursBefore.To}
	if c.days.From < c.days.To {
		hours.To = c.hoursAfter.To
	}
	for _, id := range ids {
		for _, v := range scanTimes(tx, of, "cost-issue", id+".", Span{hours.From / msPerHour, hours.To / msPerHour}) {
			out.Total = out.Total.Plus(decode[Total](v))
		}
		for r := range entity.RunsOfIssue(tx, of, id) {
			if r.CreatedAt < s.From || r.CreatedAt >= s.End() {
				continue
			}
			out.HeartbeatRuns++
			if r.StartedAt != 0 && r.FinishedAt >= r.StartedAt {
				out.RuntimeMS += int64(r.FinishedAt - r.StartedAt)
			}
		}
	}
	for _, edge := range []Span{c.head, c.tail} {
		for e := range eventsIn(tx, of, edge) {
			if slices.Contains(ids, string(e.Issue)) {
				out.Total = out.Total.Plus(e.Total())
			}
		}
	}
	return out
}
