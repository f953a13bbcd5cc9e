package money

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ReservationStatus is the status of a reservation. Persisted: do not rename.
type ReservationStatus string

const (
	ReservationOpen       ReservationStatus = "open"        // its unspent part is held
	ReservationSettled    ReservationStatus = "settled"     // its node has reported everything; nothing is held
	ReservationWrittenOff ReservationStatus = "written_off" // a person closed it in place of its node
)

const (
	// MaxReservation bounds one reservation, as an event is bounded.
	MaxReservation = core.MaxEventCents * core.Cent
	// MaxOpenReservations bounds the open reservations of a company. One for each agent, project
	// and node is far more than what runs at the same time.
	MaxOpenReservations = 4096
	// MaxReservationTime bounds how long calls may start under a reservation.
	MaxReservationTime = 15 * 60 * 1000 // ms
	// MaxSettledEvents bounds the calls that one command settles, at a dozen keys each.
	MaxSettledEvents = 64
	// sliceShare bounds what a slice may take beyond the call that asks for it: this fraction of
	// the room under a limit, so that no node takes what the others need.
	sliceShare = 8
	// keepSettled is how long a settled reservation can be read, in ms.
	keepSettled = MsPerDay
	// sweptReservations bounds the settled reservations that one command deletes.
	sweptReservations = 256
)

// A Reservation is money of a company that is set aside, for one call or as a slice: a stock
// from which a node pays the calls of one agent on one project without asking for each. Its
// unspent part counts in every window of the agent, the project and the company, also in one
// that starts while it is held. Spent money counts from when it is settled.
type Reservation struct {
	ID      string            `cbor:"1,keyasint" json:"id"`
	Company ledger.CompanyID  `cbor:"2,keyasint" json:"companyId"`
	Agent   string            `cbor:"3,keyasint" json:"agentId"`
	Project core.NullText     `cbor:"4,keyasint,omitempty" json:"projectId"`
	Run     core.NullText     `cbor:"5,keyasint,omitempty" json:"heartbeatRunId"` // the first run that asked for it
	Slice   bool              `cbor:"6,keyasint,omitempty" json:"slice"`
	Node    string            `cbor:"7,keyasint" json:"nodeId"`
	Session uint64            `cbor:"8,keyasint,omitempty" json:"-"` // of the node at that time
	Amount  core.Money        `cbor:"9,keyasint,omitempty" json:"amount"`
	Spent   core.Money        `cbor:"10,keyasint,omitempty" json:"spent"`
	Calls   int64             `cbor:"11,keyasint,omitempty" json:"calls"` // number of settled calls
	Status  ReservationStatus `cbor:"12,keyasint" json:"status"`
	Until   core.Time         `cbor:"13,keyasint" json:"until"` // no call starts under it after that
	// Uncertain is set when the node does not know what happened to the rest.
	Uncertain bool `cbor:"14,keyasint,omitempty" json:"uncertain"`
	// Credit is what a person booked in place of the node and the node has not reported yet. If
	// it reports it later, it is not booked twice.
	Credit    core.Money `cbor:"15,keyasint,omitempty" json:"-"`
	Closing   uint64     `cbor:"16,keyasint,omitempty" json:"-"` // height at which it was settled, for the index
	CreatedAt core.Time  `cbor:"17,keyasint" json:"createdAt"`
	UpdatedAt core.Time  `cbor:"18,keyasint" json:"updatedAt"`
	// Allowance is the issue whose allowance it also belongs to.
	Allowance core.NullText `cbor:"19,keyasint,omitempty" json:"allowanceIssueId"`
}

// Held returns what counts against limits without being spent.
func (r Reservation) Held() core.Money {
	if r.Status != ReservationOpen {
		return 0
	}
	return r.Amount - r.Spent
}

// Where reservations are stored, under c/<company>/:
//
//	reservation/<id>                      Reservation
//	reservation-open/<node>/<id>          the open ones
//	reservation-done/all/<height>.<id>    the settled ones, until they are swept
var (
	Reservations = ledger.NewTable[string, Reservation]("reservation").
			Beside(ledger.Indexed(reservationsOpen, func(r *Reservation) string {
			if r.Status != ReservationOpen {
				return ""
			}
			return r.Node
		})).
		Beside(ledger.IndexedAs(reservationsDone, func(r *Reservation, _ string) (value, entry string) {
			if r.Status != ReservationSettled {
				return "", ""
			}
			return AllDone, r.DoneRef()
		}))
	reservationsOpen = ledger.NewIndex[string, string]("reservation-open")
	reservationsDone = ledger.NewIndex[string, string]("reservation-done")
)

// AllDone is the only value of reservationsDone.
const AllDone = "all"

func (r Reservation) DoneRef() string { return ledger.Order(r.Closing) + "." + r.ID }

// OpenReservations returns the open reservations of company, by node and ID, at most
// MaxOpenReservations.
func OpenReservations(tx *ledger.Tx, company ledger.CompanyID) []Reservation {
	out := []Reservation{}
	prefix := ledger.Key("c", string(company), "reservation-open", "")
	for k := range tx.Prefix(prefix) {
		_, id, _ := strings.Cut(string(k[len(prefix):]), "/")
		if r, ok := Reservations.Get(tx, company, id); ok {
			out = append(out, r)
		}
	}
	return out
}

// ReservationLost reports whether the session of r is over: its node was lost or restarted,
// and has not reported what happened to r.
func ReservationLost(tx *ledger.Tx, r Reservation) bool {
	s, ok := ledger.FindSession(tx, r.Session)
	return r.Status == ReservationOpen && (!ok || s.EndedAt != 0)
}

// MoneyHeld returns the reserved and unspent money of a scope.
func MoneyHeld(tx *ledger.Tx, company ledger.CompanyID, t entity.ScopeType, id string) core.Money {
	b, _ := BudgetTable.Get(tx, company, scopeKey(t, id))
	return b.Held
}

// Reserve is the payload of budget.reserve, by which a node reserves money. Repeating it with
// the same ID returns the same reservation.
type Reserve struct {
	ID      string     `cbor:"1,keyasint"`
	Agent   string     `cbor:"2,keyasint"`
	Project string     `cbor:"3,keyasint,omitempty"`
	Run     string     `cbor:"4,keyasint,omitempty"` // if given, a run that runs on the node
	Want    core.Money `cbor:"5,keyasint,omitempty"`
	Least   core.Money `cbor:"6,keyasint,omitempty"` // the least acceptable amount; 0: Want
	Slice   core.Money `cbor:"7,keyasint,omitempty"` // the amount in place of Want, when there is enough room
	Until   core.Time  `cbor:"8,keyasint"`
}

// Settle is the payload of budget.settle, by which a node reports what calls under a
// reservation cost. Each event is booked once, however often it is reported. While the
// reservation is open, it does not matter what happened to the run, the session or the agent.
type Settle struct {
	Reservation string    `cbor:"1,keyasint"`
	Calls       []Metered `cbor:"2,keyasint,omitempty"` // at most MaxSettledEvents
	// Close returns the unspent rest: no call under the reservation runs, and none will start.
	Close bool `cbor:"3,keyasint,omitempty"`
	// Uncertain says that the node does not know all calls that it made. The unspent rest stays
	// held until a person writes it off.
	Uncertain bool `cbor:"4,keyasint,omitempty"`
}

// A Metered is one settled call. Company, Agent and Project of the event are those of the
// reservation. Beyond is the cost above the grant, which is booked as reported.
type Metered struct {
	Event  CostEvent  `cbor:"1,keyasint"`
	Beyond core.Money `cbor:"2,keyasint,omitempty"`
}

// WriteOff is the payload of budget.writeoff, by which a person closes the reservation of a
// node that is lost or does not know what it spent.
type WriteOff struct {
	Reservation string      `cbor:"1,keyasint"`
	Spent       *core.Money `cbor:"2,keyasint,omitempty"` // how much of the held money to book; nil: all
	Note        string      `cbor:"3,keyasint,omitempty"`
}

const (
	KindBudgetReserve  = "budget.reserve"
	KindBudgetSettle   = "budget.settle"
	KindBudgetWriteoff = "budget.writeoff"
)

var reservationKinds = []company.Kind{
	{Name: KindBudgetReserve, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(reserve)},
	{Name: KindBudgetSettle, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(settle)},
	{Name: KindBudgetWriteoff, From: company.FromBoard, Weight: company.Weights.Spending, Do: ledger.Typed(writeOff)},
}

func errBudget(code string, detail []byte, format string, args ...any) error {
	err := ledger.Refuse(ledger.Conflict, detail, format, args...)
	err.(*ledger.Refusal).ErrCode = code
	return err
}

// ScopesOf lists the scopes of r that still exist.
func (r Reservation) ScopesOf(tx *ledger.Tx) []scope {
	all := CostEvent{Company: r.Company, Agent: r.Agent, Project: r.Project}.ScopesOf()
	return slices.DeleteFunc(all, func(s scope) bool { return !ScopeExists(tx, r.Company, s.Type, s.ID) })
}

// Room returns what may still be spent or held under the tightest limit, and that limit;
// limited is false when the scope has none.
func (b ScopeBudget) Room() (room core.Money, by BudgetPolicy, limited bool) {
	for _, p := range b.Policies {
		if !p.limits() || !p.HardStop {
			continue
		}
		left := p.Amount - b.Spent(p.Window) - b.Held // each below 2^62
		if !limited || left < room {
			room, by, limited = left, p, true
		}
	}
	return room, by, limited
}

func reserve(c *ledger.Context, p Reserve) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if c.Cmd.Actor.Type != "node" {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Reservations are made by nodes")
	}
	if old, ok := Reservations.Get(c.Tx, company, p.ID); ok {
		if old.Node != c.Cmd.Actor.ID || old.Agent != p.Agent || old.Status != ReservationOpen {
			return nil, errBudget("reservation_taken", nil, "Reservation %s was made before and is %s", p.ID, old.Status)
		}
		return old, nil
	}
	if p.Least == 0 {
		p.Least = p.Want
	}
	if !core.IsID(p.ID) || min(p.Want, p.Least, p.Slice) < 0 || p.Least > p.Want || max(p.Want, p.Slice) > MaxReservation {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Reservation is out of range")
	}
	r := Reservation{ID: p.ID, Company: company, Agent: p.Agent, Project: core.NullText(p.Project),
		Run: core.NullText(p.Run), Slice: p.Slice > 0,
		Node: c.Cmd.Actor.ID, Session: c.Session, Status: ReservationOpen, Until: min(p.Until, now+MaxReservationTime),
		CreatedAt: now, UpdatedAt: now}
	if err := MaySpend(c.Tx, r); err != nil {
		return nil, err
	}
	r.Allowance = core.NullText(AllowanceOfRun(c.Tx, company, p.Run))
	amount, err := r.fit(c, p, now)
	if err != nil {
		return nil, err
	}
	r.Amount = amount
	for _, s := range r.ScopesOf(c.Tx) {
		b := BudgetOf(c.Tx, company, s.Type, s.ID, now)
		b.Held = b.Held.Plus(r.Amount)
		b.Holds++
		putBudget(c.Tx, company, b)
	}
	countAllowance(c.Tx, company, string(r.Allowance), r.Amount, 0)
	Reservations.Put(c.Tx, company, r.ID, r)
	c.Record(ledger.Change{Action: "budget.reserved", EntityType: "reservation", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).Null("projectId", string(r.Project)).Null("runId", string(r.Run)).
			Int("amountCents", r.Amount.Cents()).Bool("slice", r.Slice).Str("nodeId", r.Node).Close()})
	return r, nil
}

// MaySpend refuses money for r's agent that it may not spend now: the agent, its project or
// the company is stopped, or the run does not run on r's node. A node asks before each call,
// and it is checked again when a reservation is made.
func MaySpend(tx *ledger.Tx, r Reservation) error {
	a, ok := entity.Wakeable(tx, r.Company, r.Agent)
	if !ok {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	if r.Project != "" {
		p, ok := entity.ProjectTable.Get(tx, r.Company, string(r.Project))
		if !ok {
			return ledger.Refuse(ledger.NotFound, nil, "Project not found")
		}
		if p.PauseReason != "" {
			return errBudget("budget_paused", core.Object{}.Str("scopeType", "project").Str("scopeId", p.ID).
				Str("reason", string(p.PauseReason)).Close(),
				"The project is paused")
		}
	}
	switch why := a.Stopped(tx); why {
	case "":
	case "budget.blocked":
		return errBudget("budget_paused", core.Object{}.Str("scopeType", "agent").Str("scopeId", a.ID).
			Str("reason", entity.PausedForBudget).Close(),
			"Agent is paused because its budget hard-stop was reached.")
	default:
		code := "agent_stopped"
		if why == "mesh.stopped" {
			code = "mesh_stopped"
		}
		if row, ok := entity.CompanyTable.Get(tx, r.Company, r.Company); ok && row.PauseReason == entity.PausedForBudget {
			code = "budget_paused"
		}
		return errBudget(code, core.Object{}.Str("scopeType", "agent").Str("scopeId", a.ID).Str("reason", why).Close(),
			"The agent may not act now: %s", why)
	}
	if r.Run != "" {
		if run, ok := entity.RunTable.Get(tx, r.Company, string(r.Run)); !ok || run.Agent != r.Agent ||
			run.Status != entity.RunRunning || run.Node != r.Node || run.Session != r.Session {
			return errBudget("run_not_running", core.Object{}.Str("runId", string(r.Run)).Close(),
				"Run %s does not run on this node", r.Run)
		}
	}
	return nil
}

// fit returns how much of the requested money there is room for, or refuses with the limit
// that is reached.
func (r Reservation) fit(c *ledger.Context, p Reserve, now core.Time) (core.Money, error) {
	amount, most := p.Want, p.Slice
	for _, s := range r.ScopesOf(c.Tx) {
		b := BudgetOf(c.Tx, r.Company, s.Type, s.ID, now)
		if s.Type == entity.ScopeCompany && b.Holds >= MaxOpenReservations {
			return 0, ledger.Refuse(ledger.TooMany, nil, "The company has %d reservations that are not settled", b.Holds)
		}
		if policy, over := b.Exceeded(); over {
			err := refuseBudget(b, policy)
			err.(*ledger.Refusal).ErrCode = "budget_paused"
			return 0, err
		}
		room, by, limited := b.Room()
		if !limited {
			continue
		}
		if room < p.Least {
			return 0, errBudget("budget_exceeded", core.Object{}.Str("scopeType", string(b.Type)).Str("scopeId", b.ID).
				Str("windowKind", string(by.Window)).
				Int("amountLimit", by.Amount.Cents()).Int("amountObserved", b.Spent(by.Window).Cents()).Int("amountHeld",
				b.Held.Cents()).
				Int("amountAsked", p.Least.Cents()).Close(), "The budget of the %s does not allow this call.", b.Type)
		}
		amount, most = min(amount, room), min(most, room/sliceShare)
	}
	if a, ok := Allowances.Get(c.Tx, r.Company, string(r.Allowance)); ok && r.Allowance != "" {
		room := a.Left()
		if room < p.Least {
			return 0, a.refuse(p.Least)
		}
		amount, most = min(amount, room), min(most, room/sliceShare)
	}
	return max(amount, most), nil
}

func settle(c *ledger.Context, p Settle) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if c.Cmd.Actor.Type != "node" {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "Reservations are settled by nodes")
	}
	if len(p.Calls) > MaxSettledEvents || p.Close && p.Uncertain {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"One command settles at most %d calls, and can not both close and be uncertain", MaxSettledEvents)
	}
	r, ok := Reservations.Get(c.Tx, company, p.Reservation)
	switch {
	case !ok && p.Close && len(p.Calls) == 0 && core.IsID(p.Reservation):
		// The node does not know whether the reservation exists: from here on it can not be made.
		r = Reservation{ID: p.Reservation, Company: company, Node: c.Cmd.Actor.ID, Status: ReservationOpen, CreatedAt: now,
			UpdatedAt: now}
		r.close(c, ReservationSettled)
		c.Record(ledger.Change{Action: "budget.released", EntityType: "reservation", EntityID: r.ID,
			Details: core.Object{}.Str("nodeId", r.Node).Close()})
		return r, nil
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Reservation not found")
	case r.Node != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "The reservation is another node's")
	}
	fresh, err := r.fresh(c.Tx, p.Calls, now)
	if err != nil {
		return nil, err
	}
	if r.Status == ReservationSettled {
		if len(fresh) > 0 {
			return nil, errBudget("reservation_settled", nil, "Reservation %s is settled", r.ID)
		}
		return r, nil
	}
	if len(fresh) == 0 && !p.Close && (r.Uncertain || !p.Uncertain) {
		return r, nil
	}
	var metered, total core.Money
	for _, m := range fresh {
		cost := m.Event.Cost
		if r.Status == ReservationOpen && cost > r.Held() {
			return nil, errBudget("beyond_reservation", nil, "A call of reservation %s cost more than is left of it", r.ID)
		}
		book := cost
		if r.Status == ReservationWrittenOff {
			credit := min(r.Credit, cost)
			r.Credit, book = r.Credit-credit, cost-credit
		}
		r.Spent, r.Calls = r.Spent.Plus(cost), r.Calls+1
		m.Event.Cost = book
		bookCost(c.Tx, m.Event)
		if m.Beyond > 0 {
			bookCost(c.Tx, m.beyond())
		}
		metered, total = metered.Plus(cost), total.Plus(book).Plus(m.Beyond)
	}
	r.Uncertain, r.UpdatedAt = r.Uncertain || p.Uncertain, now
	free, ended := metered, core.Money(0) // no longer held: spent or returned
	if r.Status != ReservationOpen {
		free = 0
	}
	if action := "cost.metered"; p.Close || len(fresh) > 0 {
		if len(fresh) == 0 {
			action = "budget.released"
		}
		ended = r.Held()
		c.Record(ledger.Change{Action: action, EntityType: "reservation", EntityID: r.ID,
			Details: core.Object{}.Str("agentId", r.Agent).Int("calls", int64(len(fresh))).Int("costCents", total.Cents()).
				Bool("closed", p.Close).Str("nodeId", r.Node).Close()})
	} else {
		c.Record(ledger.Change{Action: "budget.uncertain", EntityType: "reservation", EntityID: r.ID,
			Details: core.Object{}.Str("agentId", r.Agent).Int("heldCents", r.Held().Cents()).Str("nodeId", r.Node).Close()})
	}
	holds := int64(0)
	if p.Close {
		if r.Status == ReservationOpen {
			free, holds = free.Plus(ended), 1
		}
		r.close(c, ReservationSettled)
	} else {
		Reservations.Put(c.Tx, company, r.ID, r)
	}
	return r, r.count(c, free, total, holds)
}

// close ends r and stores it.
func (r *Reservation) close(c *ledger.Context, as ReservationStatus) {
	r.Status, r.UpdatedAt = as, core.TimeOf(c.Now)
	if as == ReservationSettled {
		r.Closing = c.Height
	}
	Reservations.Put(c.Tx, r.Company, r.ID, *r)
}

// count subtracts free from the held money of r's scopes and adds what was spent.
func (r Reservation) count(c *ledger.Context, free, spent core.Money, holds int64) error {
	now := core.TimeOf(c.Now)
	countAllowance(c.Tx, r.Company, string(r.Allowance), -free, spent)
	for _, s := range r.ScopesOf(c.Tx) {
		b := BudgetOf(c.Tx, r.Company, s.Type, s.ID, now)
		// A scope that was deleted and created again with the same ID holds nothing.
		b.Held, b.Holds = max(b.Held-free, 0), max(b.Holds-holds, 0)
		if spent == 0 {
			putBudget(c.Tx, r.Company, b)
			continue
		}
		if err := enforce(c, b.Spend(spent, now)); err != nil {
			return err
		}
	}
	return nil
}

// fresh returns the calls that are not booked yet, with their events completed. References to
// deleted rows are cleared: spent money is booked whatever became of its purpose.
func (r Reservation) fresh(tx *ledger.Tx, calls []Metered, now core.Time) ([]Metered, error) {
	var out []Metered
	for _, m := range calls {
		e := m.Event
		if !core.IsID(e.ID) || e.Provider == "" || e.Model == "" || m.Beyond < 0 || m.Beyond > MaxReservation {
			return nil, ledger.Refuse(ledger.Invalid, nil, "Call is malformed")
		}
		if tx.Has(CostIDKey(r.Company, e.ID)) || slices.ContainsFunc(out,
			func(o Metered) bool { return o.Event.ID == e.ID }) {
			continue
		}
		e.Company, e.Agent, e.Project = r.Company, r.Agent, r.Project
		if e.Issue != "" && !tx.Has(entity.IssueTable.Key(r.Company, string(e.Issue))) {
			e.Issue = ""
		}
		if e.Goal != "" && !entity.GoalExists(tx, r.Company, string(e.Goal)) {
			e.Goal = ""
		}
		if e.Run != "" {
			if run, ok := entity.RunTable.Get(tx, r.Company, string(e.Run)); !ok || run.Agent != r.Agent {
				e.Run = ""
			}
		}
		e.BillingType = cmp.Or(e.BillingType, "metered_api")
		e.Reservation = core.NullText(r.ID)
		if !entity.ProjectExists(tx, r.Company, string(e.Project)) {
			e.Project = ""
		}
		e, err := e.complete(tx)
		if err != nil {
			return nil, err
		}
		e.Project, e.CreatedAt = r.Project, now // the scopes that hold the money
		m.Event = e
		out = append(out, m)
	}
	return out, nil
}

// beyond returns the event for the cost above the grant.
func (m Metered) beyond() CostEvent {
	e := m.Event
	e.ID, e.Cost, e.Reservation = core.DerivedID("beyond-grant", e.ID), m.Beyond, ""
	e.InputTokens, e.CachedInputTokens, e.OutputTokens = 0, 0, 0
	return e
}

func writeOff(c *ledger.Context, p WriteOff) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if core.IsAgent(c) {
		return nil, core.ErrBoardOnly()
	}
	r, ok := Reservations.Get(c.Tx, company, p.Reservation)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Reservation not found")
	}
	if r.Status != ReservationOpen {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(r.Status)).Close(),
			"The reservation is %s already", r.Status)
	}
	if !r.Uncertain && !ReservationLost(c.Tx, r) {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("nodeId", r.Node).Close(),
			"Its node is there and spends from it")
	}
	held := r.Held()
	spent := held
	if p.Spent != nil {
		spent = *p.Spent
	}
	if spent < 0 || spent > held {
		return nil, ledger.Refuse(ledger.Unprocessable, core.Object{}.Int("amountHeld", held.Cents()).Close(),
			"At most what is held can have been spent")
	}
	if spent > 0 {
		e := CostEvent{ID: core.DerivedID("written-off", string(company), r.ID), Company: company, Agent: r.Agent,
			Project: r.Project, Provider: "selvage", Biller: "selvage",
			BillingType: "metered_api", CostStatus: "reported", Model: "written-off", Cost: spent, OccurredAt: now,
			CreatedAt: now, Reservation: core.NullText(r.ID)}
		bookCost(c.Tx, e)
	}
	r.Credit = spent
	r.close(c, ReservationWrittenOff)
	c.Record(ledger.Change{Action: "budget.written_off", EntityType: "reservation", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).Str("nodeId", r.Node).Int("heldCents", held.Cents()).Int("spentCents",
			spent.Cents()).Null("note", p.Note).Close()})
	return r, r.count(c, held, spent, 1)
}

// staleReservations returns up to limit settled reservations that need not be
// looked up any more; a call that is told again is known by its event.
func staleReservations(tx *ledger.Tx, company ledger.CompanyID, now core.Time, limit int) []Reservation {
	var out []Reservation
	for ref := range reservationsDone.IDs(tx, company, AllDone, false) {
		r, ok := Reservations.Get(tx, company, ref[len(ledger.Order(0))+1:])
		if ok && r.UpdatedAt+keepSettled > now || len(out) == limit {
			break
		}
		if ok {
			out = append(out, r)
		}
	}
	return out
}

func sweepReservations(c *ledger.Context) (n int) {
	for _, r := range staleReservations(c.Tx, c.Cmd.Company, core.TimeOf(c.Now), sweptReservations) {
		Reservations.Delete(c.Tx, r.Company, r.ID)
		n++
	}
	return n
}
