// Package money has what work costs and may cost: budgets and their incidents, costs,
// reservations, allowances, prices, and the approvals of the board, including hires.
package money

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A WindowKind is the time span of a limit. Costs count in the window of their entry's time,
// not of the time that an agent reports. Persisted: do not rename.
type WindowKind string

const (
	WindowMonth    WindowKind = "calendar_month_utc"
	WindowLifetime WindowKind = "lifetime"
	WindowDay      WindowKind = "calendar_day_utc"
	WindowWeek     WindowKind = "calendar_week_utc" // begins on Monday
	// Rolling windows end now. They are counted in whole UTC hours or days: the current one and
	// as many before it as the name says, so a window is never too short. Costs from before the
	// scope's first policy of the kind count as far as the sums of the current day (for days:
	// week and month) show them, and as late as they can have occurred.
	WindowRolling24h WindowKind = "rolling_24h"
	WindowRolling7d  WindowKind = "rolling_7d"
	WindowRolling30d WindowKind = "rolling_30d"
)

// WindowKinds lists the windows that a policy can have.
var WindowKinds = []WindowKind{WindowMonth, WindowLifetime, WindowDay, WindowWeek, WindowRolling24h, WindowRolling7d,
	WindowRolling30d}

// Rolls returns the unit of a rolling window and the number of whole units before the current
// one; 0 for other windows.
func (w WindowKind) Rolls() (unit, n core.Time) {
	switch w {
	case WindowRolling24h:
		return msPerHour, 24
	case WindowRolling7d:
		return MsPerDay, 7
	case WindowRolling30d:
		return MsPerDay, 30
	}
	return 0, 0
}

func (w WindowKind) Rolling() bool { _, n := w.Rolls(); return n > 0 }

// foreverEnd is the end of a lifetime in the contract's answers.
var foreverEnd = core.TimeOf(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))

// Window returns the current window of kind w; it excludes its end.
func (w WindowKind) Window(now core.Time) Span {
	if unit, n := w.Rolls(); n > 0 {
		return Span{(now/unit - n) * unit, (now/unit + 1) * unit}
	}
	t := now.Std()
	switch w {
	case WindowMonth:
		from := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
		return Span{core.TimeOf(from), core.TimeOf(from.AddDate(0, 1, 0))}
	case WindowDay:
		from := now / MsPerDay * MsPerDay
		return Span{from, from + MsPerDay}
	case WindowWeek:
		monday := (now/MsPerDay+3)/7*7 - 3 // 1970-01-01 was a Thursday
		return Span{monday * MsPerDay, (monday + 7) * MsPerDay}
	}
	return Span{0, foreverEnd}
}

// A BudgetPolicy limits what one scope may spend in one window.
type BudgetPolicy struct {
	ID          string     `cbor:"1,keyasint"`
	Window      WindowKind `cbor:"2,keyasint"`
	Amount      core.Money `cbor:"3,keyasint,omitempty"` // 0: none set
	WarnPercent int64      `cbor:"4,keyasint"`
	HardStop    bool       `cbor:"5,keyasint,omitempty"`
	Notify      bool       `cbor:"6,keyasint,omitempty"`
	Active      bool       `cbor:"7,keyasint,omitempty"`
	CreatedAt   core.Time  `cbor:"8,keyasint"`
	UpdatedAt   core.Time  `cbor:"9,keyasint"`
	// Soft and Hard are the incidents of the window that begins at Since.
	Soft  string    `cbor:"10,keyasint,omitempty"`
	Hard  string    `cbor:"11,keyasint,omitempty"`
	Since core.Time `cbor:"12,keyasint,omitempty"`
}

func (p BudgetPolicy) limits() bool { return p.Active && p.Amount > 0 }

// Status returns ok, warning or hard_stop for the spent money of the window.
func (p BudgetPolicy) Status(spent core.Money) string {
	switch {
	case !p.limits():
		return "ok"
	case p.HardStop && spent >= p.Amount:
		return "hard_stop"
	case spent.Reaches(p.Amount, p.WarnPercent):
		return "warning"
	}
	return "ok"
}

// A ScopeBudget is what one scope has spent in the current window of each kind, with its
// limits: one row with all that a cost event needs.
type ScopeBudget struct {
	Type     entity.ScopeType `cbor:"1,keyasint"`
	ID       string           `cbor:"2,keyasint"`
	At       core.Time        `cbor:"3,keyasint,omitempty"` // of the last event; identifies the windows of the sums
	Month    core.Money       `cbor:"4,keyasint,omitempty"`
	Week     core.Money       `cbor:"5,keyasint,omitempty"`
	Day      core.Money       `cbor:"6,keyasint,omitempty"`
	Lifetime core.Money       `cbor:"7,keyasint,omitempty"`
	Policies []BudgetPolicy   `cbor:"8,keyasint,omitempty"` // at most one for each window kind, sorted
	// Hours and Days are the sums of rolling windows, oldest first, kept while the scope has a
	// policy of such a kind.
	Hours []Slot    `cbor:"9,keyasint,omitempty"`
	Days  []Slot    `cbor:"10,keyasint,omitempty"`
	Now   core.Time `cbor:"11,keyasint,omitempty"` // the instant that they are counted back from
	// Held is the reserved and unspent money of Holds reservations. It counts in every window.
	Held  core.Money `cbor:"12,keyasint,omitempty"`
	Holds int64      `cbor:"13,keyasint,omitempty"`
}

// A Slot is what was spent in one hour or day, counted from the Unix epoch.
type Slot struct {
	At  core.Time  `cbor:"1,keyasint"`
	Sum core.Money `cbor:"2,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with b. The ledger's cache of decoded rows
// needs it.
func (b ScopeBudget) Clone() ScopeBudget {
	b.Policies, b.Hours, b.Days = slices.Clone(b.Policies), slices.Clone(b.Hours), slices.Clone(b.Days)
	return b
}

// slots returns the sums of rolling windows with the given unit.
func (b *ScopeBudget) slots(unit core.Time) *[]Slot {
	if unit == msPerHour {
		return &b.Hours
	}
	return &b.Days
}

// rollSlots drops the hours and days that are outside all windows of the scope's policies,
// and adds m to the current ones.
func (b ScopeBudget) rollSlots(now core.Time, m core.Money) ScopeBudget {
	for _, unit := range []core.Time{msPerHour, MsPerDay} {
		keep := core.Time(0)
		for _, p := range b.Policies {
			if u, n := p.Window.Rolls(); u == unit {
				keep = max(keep, n)
			}
		}
		at, list := now/unit, b.slots(unit)
		if keep == 0 {
			*list = nil
			continue
		}
		b.Now = now
		out := slices.DeleteFunc(slices.Clone(*list), func(s Slot) bool { return s.At < at-keep })
		switch last := len(out) - 1; {
		case m == 0:
		case last >= 0 && out[last].At >= at: // when the clock went back, add to the latest
			out[last].Sum = out[last].Sum.Plus(m)
		default:
			out = append(out, Slot{at, m})
		}
		*list = out
	}
	return b
}

// seed estimates the sums of a rolling window from the calendar windows, when a scope gets
// its first policy of the kind.
func (b ScopeBudget) seed(w WindowKind, now core.Time) ScopeBudget {
	unit, n := w.Rolls()
	if n == 0 || slices.ContainsFunc(b.Policies, func(p BudgetPolicy) bool {
		u,
			m := p.Window.Rolls()
		return u == unit && m >= n
	}) {
		return b
	}
	if unit == msPerHour {
		b.Hours = []Slot{{now / unit, b.Day}}
		return b
	}
	today, monday := now/MsPerDay, WindowWeek.Window(now).From/MsPerDay
	b.Days = nil
	for _, s := range []Slot{{monday - 1, max(b.Month-b.Week, 0)}, {today - 1, max(b.Week-b.Day, 0)}, {today, b.Day}} {
		if s.Sum > 0 {
			b.Days = append(b.Days, s)
		}
	}
	return b
}

var BudgetTable = ledger.NewTable[string, ScopeBudget]("budget").Hot()

func scopeKey(t entity.ScopeType, id string) string { return string(t) + "." + id }

// BudgetOf returns the budget of a scope at now.
func BudgetOf(tx *ledger.Tx, company ledger.CompanyID, t entity.ScopeType, id string, now core.Time) ScopeBudget {
	b, ok := BudgetTable.Get(tx, company, scopeKey(t, id))
	if !ok {
		return ScopeBudget{Type: t, ID: id}
	}
	return b.roll(now)
}

func putBudget(tx *ledger.Tx, company ledger.CompanyID, b ScopeBudget) {
	if len(b.Policies) == 0 {
		b.Policies = nil // as it is decoded, see Hot
	}
	if len(b.Hours) == 0 {
		b.Hours = nil
	}
	if len(b.Days) == 0 {
		b.Days = nil
	}
	BudgetTable.Put(tx, company, scopeKey(b.Type, b.ID), b)
}

// roll clears the sums and incidents of windows that ended before now.
func (b ScopeBudget) roll(now core.Time) ScopeBudget {
	for _, w := range []struct {
		kind WindowKind
		sum  *core.Money
	}{{WindowMonth, &b.Month}, {WindowWeek, &b.Week}, {WindowDay, &b.Day}} {
		if now >= w.kind.Window(b.At).To {
			*w.sum = 0
		}
	}
	if len(b.Hours)+len(b.Days) > 0 {
		b = b.rollSlots(now, 0)
	}
	for n, p := range b.Policies {
		if p.Window.Rolling() {
			continue // has no end; enforce closes its incidents
		}
		if since := p.Window.Window(now).From; (p.Soft != "" || p.Hard != "") && p.Since != since {
			b.Policies = slices.Clone(b.Policies)
			b.Policies[n].Soft, b.Policies[n].Hard = "", ""
		}
	}
	return b
}

// Spend returns the budget after spending m at now.
func (b ScopeBudget) Spend(m core.Money, now core.Time) ScopeBudget {
	b = b.roll(now)
	b.At = max(b.At, now)
	b.Month, b.Week, b.Day, b.Lifetime = b.Month.Plus(m), b.Week.Plus(m), b.Day.Plus(m), b.Lifetime.Plus(m)
	return b.rollSlots(now, m)
}

// Spent returns what was spent in the current window of kind w.
func (b ScopeBudget) Spent(w WindowKind) core.Money {
	if unit, n := w.Rolls(); n > 0 {
		list, sum := *b.slots(unit), core.Money(0)
		for _, s := range list {
			if s.At >= b.Now/unit-n {
				sum = sum.Plus(s.Sum)
			}
		}
		return sum
	}
	switch w {
	case WindowMonth:
		return b.Month
	case WindowWeek:
		return b.Week
	case WindowDay:
		return b.Day
	}
	return b.Lifetime
}

// Policy returns the policy of a window.
func (b ScopeBudget) Policy(w WindowKind) (BudgetPolicy, bool) {
	n := slices.IndexFunc(b.Policies, func(p BudgetPolicy) bool { return p.Window == w })
	if n < 0 {
		return BudgetPolicy{}, false
	}
	return b.Policies[n], true
}

// with returns b with p as the policy of its window.
func (b ScopeBudget) with(p BudgetPolicy) ScopeBudget {
	b.Policies = slices.Clone(b.Policies)
	if n := slices.IndexFunc(b.Policies, func(q BudgetPolicy) bool { return q.Window == p.Window }); n >= 0 {
		b.Policies[n] = p
		return b
	}
	b.Policies = append(b.Policies, p)
	slices.SortFunc(b.Policies, func(x, y BudgetPolicy) int {
		return slices.Index(WindowKinds, x.Window) - slices.Index(WindowKinds, y.Window)
	})
	return b
}

// Exceeded returns the first exhausted policy with a hard stop.
func (b ScopeBudget) Exceeded() (BudgetPolicy, bool) {
	for _, p := range b.Policies {
		if p.Status(b.Spent(p.Window)) == "hard_stop" {
			return p, true
		}
	}
	return BudgetPolicy{}, false
}

// MonthlyLimit returns the monthly limit of the scope, 0 when none is set.
func (b ScopeBudget) MonthlyLimit() core.Money {
	p, ok := b.Policy(WindowMonth)
	if !ok || !p.Active {
		return 0
	}
	return p.Amount
}

// Budgets returns every scope of company that has a policy, at now, newest policy first.
func Budgets(tx *ledger.Tx, company ledger.CompanyID, now core.Time) []ScopeBudget {
	var out []ScopeBudget
	for _, b := range BudgetTable.All(tx, company) {
		if len(b.Policies) > 0 {
			out = append(out, b.roll(now))
		}
	}
	newest := func(b ScopeBudget) core.Time {
		t := core.Time(math.MinInt64)
		for _, p := range b.Policies {
			t = max(t, p.CreatedAt)
		}
		return t
	}
	slices.SortStableFunc(out, func(a, b ScopeBudget) int { return cmp.Compare(newest(b), newest(a)) })
	return out
}

// ScopesOf lists the scopes of a cost event: its agent, its project and the company.
func (e CostEvent) ScopesOf() []scope {
	scopes := append(make([]scope, 0, 3), scope{entity.ScopeAgent, e.Agent})
	if e.Project != "" {
		scopes = append(scopes, scope{entity.ScopeProject, string(e.Project)})
	}
	return append(scopes, scope{entity.ScopeCompany, string(e.Company)})
}

// A scope is what has a budget.
type scope struct {
	Type entity.ScopeType
	ID   string
}

// spendBudgets adds e to its scopes and stops those that it exhausts.
func spendBudgets(c *ledger.Context, e CostEvent) error {
	now := core.TimeOf(c.Now)
	countAllowance(c.Tx, e.Company, e.allowanceOfCost(c.Tx), 0, e.Cost)
	for _, s := range e.ScopesOf() {
		b := BudgetOf(c.Tx, e.Company, s.Type, s.ID, now).Spend(e.Cost, now)
		if err := enforce(c, b); err != nil {
			return err
		}
	}
	return nil
}

// refuseBudget returns the 409 for work in a scope that reached its hard stop.
func refuseBudget(b ScopeBudget, p BudgetPolicy) error {
	name := map[entity.ScopeType]string{entity.ScopeAgent: "Agent", entity.ScopeCompany: "Company",
		entity.ScopeProject: "Project"}[b.Type]
	detail := core.Object{}.Str("scopeType", string(b.Type)).Str("scopeId", b.ID).Str("windowKind", string(p.Window)).
		Int("amountLimit", p.Amount.Cents()).Int("amountObserved", b.Spent(p.Window).Cents()).Close()
	return ledger.Refuse(ledger.Conflict, detail, "%s is paused because its budget hard-stop was reached.", name)
}

// overBudget refuses work when one of its scopes is over its limit now: the agent, its
// project ("" for none), or the company.
func overBudget(c *ledger.Context, agent, project string) error {
	for _, s := range (CostEvent{Company: c.Cmd.Company, Agent: agent, Project: core.NullText(project)}).ScopesOf() {
		b := BudgetOf(c.Tx, c.Cmd.Company, s.Type, s.ID, core.TimeOf(c.Now))
		if p, over := b.Exceeded(); over {
			return refuseBudget(b, p)
		}
	}
	return nil
}

// AgentBudget returns the monthly limit of an agent and what it has spent.
func AgentBudget(tx *ledger.Tx, of ledger.CompanyID, agent string, now core.Time) (limit, spent core.Money) {
	return monthly(tx, of, entity.ScopeAgent, agent, now)
}

// CompanyBudget returns the monthly limit of a company and what it has spent.
func CompanyBudget(tx *ledger.Tx, of ledger.CompanyID, now core.Time) (limit, spent core.Money) {
	return monthly(tx, of, entity.ScopeCompany, string(of), now)
}

func monthly(tx *ledger.Tx, company ledger.CompanyID, t entity.ScopeType, id string, now core.Time) (limit,
	spent core.Money) {
	b := BudgetOf(tx, company, t, id, now)
	if p, ok := b.Policy(WindowMonth); ok && p.Active {
		limit = p.Amount
	}
	return limit, b.Spent(WindowMonth)
}
