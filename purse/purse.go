// Package purse holds a node's money: slices that were reserved for the metered calls of its
// runs, so that not each call needs a command, and the settlements that it has not yet sent.
//
// Each call is noted on the node's own disk before it is sent, and the purse grants only money
// that the mesh has reserved. So a node that is partitioned, crashes or restarts spends no
// more than is reserved for it. See journal.go for the file, and company/reservation.go for
// the rules.
package purse

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

var (
	// ErrNoAuthority refuses a call on a node that may not act: its lease has expired, or it has
	// no session.
	ErrNoAuthority = errors.New("purse: this node may not act now")
	// ErrClosed refuses a call after Close.
	ErrClosed = errors.New("purse: closed")
	// ErrBusy refuses a call if too many are in progress.
	ErrBusy = errors.New("purse: too many calls are under way")
)

// Node is what the purse needs of its node.
type Node interface {
	// Submit executes a command and returns its final outcome. After an error the outcome is
	// unknown.
	Submit(context.Context, ledger.Command) (ledger.Receipt, error)
	// View reads this node's state.
	View(context.Context, ledger.Read, func(*ledger.Tx) error) (applied uint64, err error)
}

// Config is what a [Purse] needs. Node, Self, Session, Holds and Path are required.
type Config struct {
	Node    Node
	Self    identity.NodeID
	Session func() uint64 // under which this node submits; 0: none now
	Holds   func() bool   // whether this node holds its lease, and may act
	Path    string        // of the journal; its folder exists
	// Boot identifies the boot of the machine: notes of an earlier boot that were not synced may
	// be lost. "": not known, so every note is synced.
	Boot string
	// Slice bounds a slice; default DefaultSlice. The rules reserve less if a limit leaves
	// less.
	Slice core.Money
	For   time.Duration    // how long calls begin under a slice; default DefaultFor
	Idle  time.Duration    // after which an unused one is given back; default DefaultIdle
	Now   func() time.Time // default time.Now
	Log   *slog.Logger     // default: discard
}

// A Purse is safe for concurrent use. Create it with [Open]; [Purse.Run] sends settlements.
type Purse struct {
	cfg  Config
	more chan struct{} // signalled when there is something to send

	mu      sync.Mutex // guards the fields below
	journal *journal
	stocks  map[string]*stock     // by reservation
	asking  map[key]chan struct{} // full while a reservation is being requested
	calls   int                   // in progress
	paid    noted                 // runs that were granted something
	refused noted                 // runs that were refused money
	closed  bool
}

// A key says whose calls a slice pays for, and under which allowance, if any.
type key struct {
	company                   ledger.CompanyID
	agent, project, allowance string
}

// A stock is one reservation as this node has it.
type stock struct {
	id      string
	of      key
	session uint64
	made    bool       // the mesh has made it; false while that is unknown
	amount  core.Money // as it was made
	left    core.Money // neither granted nor spent
	until   time.Time
	used    time.Time                // time of the last grant
	under   map[string]money.Metered // calls in progress, as they are settled if nothing else becomes known
	ended   []money.Metered          // calls to settle
	closing bool                     // nothing more is granted from it
	unsure  bool                     // calls may be missing here, so it can not be closed
	sunk    bool                     // the mesh knows that it is unsure
	telling bool                     // a command about it is in progress
	quiet   time.Time                // nothing is sent before this time, after a failure
	pause   time.Duration
}

// Open reads the journal and continues with its open stocks.
func Open(cfg Config) (*Purse, error) {
	if cfg.Node == nil || cfg.Session == nil || cfg.Holds == nil || cfg.Path == "" || cfg.Self == "" {
		return nil, errors.New("purse: Node, Self, Session, Holds and Path are required")
	}
	cfg.Slice, cfg.For, cfg.Idle = cmp.Or(cfg.Slice, DefaultSlice), cmp.Or(cfg.For, DefaultFor),
		cmp.Or(cfg.Idle, DefaultIdle)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Purse{cfg: cfg, more: make(chan struct{}, 1), asking: map[key]chan struct{}{}, paid: noted{}, refused: noted{}}
	var err error
	if p.journal, p.stocks, err = openJournal(cfg.Path, string(cfg.Self), cfg.Boot, cfg.Log); err != nil {
		return nil, fmt.Errorf("purse: %w", err)
	}
	p.wake()
	return p, nil
}

func (p *Purse) wake() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Reserve reserves the money of one call, from a slice of this node if one has enough, else by
// a command. A refusal (*ledger.Refusal) says which scope is stopped or has too little money.
// After any other error too, the call must not be sent.
func (p *Purse) Reserve(ctx context.Context, ask money.SpendAsk) (money.SpendGrant, error) {
	g, err := p.reserve(ctx, ask)
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && (no.ErrCode == "budget_exceeded" ||
		no.ErrCode == "budget_paused") {
		p.mu.Lock()
		p.refused.add(ask.Run)
		p.mu.Unlock()
	}
	return g, err
}

func (p *Purse) reserve(ctx context.Context, ask money.SpendAsk) (money.SpendGrant, error) {
	if ask.Least == 0 {
		ask.Least = ask.Want
	}
	session, err := p.allowed(ctx, &ask)
	if err != nil {
		return money.SpendGrant{}, err
	}
	of := key{ask.Company, ask.Agent, ask.Project, ask.Allowance}
	if g, ok, err := p.take(of, session, ask, ask.Want); ok || err != nil {
		return g, err
	}
	done, err := p.turn(ctx, of)
	if err != nil {
		return money.SpendGrant{}, err
	}
	defer done()
	for again := false; ; again = true {
		if g, ok, err := p.take(of, session, ask, ask.Want); ok || err != nil {
			return g, err
		}
		err := p.fetch(ctx, of, session, ask)
		var no *ledger.Refusal
		switch {
		case err == nil: // the next iteration takes from it, unless another call did
			if g, ok, err := p.take(of, session, ask, ask.Least); ok || err != nil {
				return g, err
			}
		case !errors.As(err, &no) || no.ErrCode != "budget_exceeded":
			return money.SpendGrant{}, err
		default:
			if g, ok, err := p.take(of, session, ask, ask.Least); ok || err != nil {
				return g, err // too little for the whole, enough for a part
			}
			if again || !p.giveBack(ctx, ask.Company) {
				return money.SpendGrant{}, err
			}
		}
		if ctx.Err() != nil {
			return money.SpendGrant{}, ctx.Err()
		}
	}
}

// allowed checks, in this node's state, that the agent may spend now, and fills in the project.
// It returns the session that holds the lease.
func (p *Purse) allowed(ctx context.Context, ask *money.SpendAsk) (uint64, error) {
	session := p.cfg.Session()
	if session == 0 || !p.cfg.Holds() {
		return 0, ErrNoAuthority
	}
	_, err := p.cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		ask.Allowance = money.AllowanceOfRun(tx, ask.Company, ask.Run)
		if ask.Project == "" && ask.Issue != "" {
			ask.Project = entity.ProjectOfIssue(tx, ask.Company, ask.Issue)
		}
		return money.MaySpend(tx, money.Reservation{Company: ask.Company, Agent: ask.Agent,
			Project: core.NullText(ask.Project),
			Run:     core.NullText(ask.Run), Node: string(p.cfg.Self), Session: session})
	})
	return session, err
}

// turn waits until no other call requests money for the same key, so that concurrent calls
// share a slice.
func (p *Purse) turn(ctx context.Context, of key) (done func(), err error) {
	for {
		p.mu.Lock()
		busy, ok := p.asking[of]
		if !ok {
			mine := make(chan struct{})
			p.asking[of] = mine
			p.mu.Unlock()
			return func() {
				p.mu.Lock()
				delete(p.asking, of)
				p.mu.Unlock()
				close(mine)
			}, nil
		}
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take grants from a stock that has at least enough, after it has noted the call.
func (p *Purse) take(of key, session uint64, ask money.SpendAsk, enough core.Money) (g money.SpendGrant, ok bool,
	err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return g, false, ErrClosed
	}
	now := p.cfg.Now()
	var from *stock
	for _, s := range p.stocks {
		if s.of == of && s.session == session && s.made && !s.closing && !s.unsure && now.Before(s.until) &&
			s.left >= enough &&
			(from == nil || s.left > from.left || s.left == from.left && s.id < from.id) {
			from = s
		}
	}
	if from == nil {
		return g, false, nil
	}
	if p.calls >= MaxCalls {
		return g, false, ErrBusy
	}
	g = money.SpendGrant{ID: newID(), Reservation: from.id, Amount: min(ask.Want, from.left), Until: from.until, Ask: ask}
	m := unheard(g, now)
	if err := p.journal.write(note{Kind: noteBegun, Reservation: from.id, Call: &m}, false); err != nil {
		return g, false, fmt.Errorf("purse: note a call: %w", err)
	}
	from.left -= g.Amount
	from.used = now
	from.under[g.ID] = m
	p.calls++
	p.paid.add(ask.Run)
	return g, true, nil
}

// noted is a set of at most maxPaid runs; each is removed when it is asked for.
type noted map[string]struct{}

// add adds a run, unless it is "".
func (n noted) add(run string) {
	if run != "" && len(n) < maxPaid {
		n[run] = struct{}{}
	}
}

// take reports whether a run is in the set, and removes it.
func (n noted) take(run string) bool {
	_, ok := n[run]
	delete(n, run)
	return ok
}

// Paid reports whether calls of a run were granted money here, and forgets it: it
// is asked once, when the run is over.
func (p *Purse) Paid(run string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paid.take(run)
}

// Refused reports whether a call of a run was refused because a limit does not
// allow it, and forgets it: it is asked once, when the run is over.
func (p *Purse) Refused(run string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused.take(run)
}

// unheard returns the settlement of a call about which nothing more is known: it cost all that
// was granted.
func unheard(g money.SpendGrant, now time.Time) money.Metered {
	return money.Metered{Event: money.CostEvent{ID: g.ID, Issue: core.NullText(g.Ask.Issue),
		Goal: core.NullText(g.Ask.Goal), Run: core.NullText(g.Ask.Run),
		BillingCode: core.NullText(g.Ask.BillingCode), Provider: cmp.Or(g.Ask.Provider, "unknown"),
		Model: cmp.Or(g.Ask.Model, "unknown"),
		Cost:  g.Amount, OccurredAt: core.TimeOf(now)}}
}

// fetch requests a reservation and adds it to the stocks.
func (p *Purse) fetch(ctx context.Context, of key, session uint64, ask money.SpendAsk) error {
	now := p.cfg.Now()
	slice := p.cfg.Slice
	if ask.Want == 0 {
		slice = 0 // calls without a price share a reservation of nothing
	}
	s := &stock{id: newID(), of: of, session: session, amount: max(ask.Want, slice), until: now.Add(p.cfg.For), used: now,
		under: map[string]money.Metered{}}
	want := money.Reserve{ID: s.id, Agent: of.agent, Project: of.project, Run: ask.Run, Want: ask.Want, Least: ask.Least,
		Slice: slice, Until: core.TimeOf(s.until)}
	p.mu.Lock()
	if len(p.stocks) >= MaxStocks {
		p.mu.Unlock()
		return ErrBusy
	}
	err := p.journal.write(note{Kind: noteAsked, Reservation: s.id, Company: of.company, Agent: of.agent,
		Project: of.project, Session: session, Amount: s.amount, Until: want.Until}, true)
	if err == nil {
		s.telling = true // nothing is sent until its outcome is known
		p.stocks[s.id] = s
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("purse: note a reservation: %w", err)
	}
	r, err := p.submit(ctx, money.KindBudgetReserve, of.company, want)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.telling = false
	if err != nil {
		s.closing = true // it may have been made, so it is returned
		p.wake()
		return fmt.Errorf("purse: reserve: %w", err)
	}
	if r.Refusal != nil {
		p.drop(s)
		return r.Refusal
	}
	var made money.Reservation
	if err := ledger.Unmarshal(r.Value, &made); err != nil {
		s.closing = true
		return fmt.Errorf("purse: answer to budget.reserve: %w", err)
	}
	s.made, s.amount, s.left, s.until = true, made.Amount, made.Amount, made.Until.Std()
	if err := p.journal.write(note{Kind: noteMade, Reservation: s.id, Amount: made.Amount, Until: made.Until},
		false); err != nil {
		p.cfg.Log.Error("a reservation could not be noted", "reservation", s.id, "error", err)
	}
	return nil
}

// drop deletes a stock about which nothing is left to send; p.mu is held.
func (p *Purse) drop(s *stock) {
	delete(p.stocks, s.id)
	if err := p.journal.write(note{Kind: noteClosed, Reservation: s.id}, false); err != nil {
		p.cfg.Log.Warn("the end of a reservation could not be noted", "reservation", s.id, "error", err)
	}
}

// Settle notes the cost of a call. The settlement is sent to the mesh in the background, also
// after a restart. Settling a grant twice has no effect.
func (p *Purse) Settle(_ context.Context, g money.SpendGrant, use money.SpendUse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.stocks[g.Reservation]
	if !ok {
		return nil
	}
	m, ok := s.under[g.ID]
	if !ok {
		return nil
	}
	granted := m.Event.Cost
	var err error
	if use.Unsent {
		err = p.journal.write(note{Kind: noteUnsent, Reservation: s.id, Calls: []string{g.ID}}, false)
		s.left += granted
	} else {
		e := &m.Event
		e.Provider, e.Model = cmp.Or(use.Provider, e.Provider), cmp.Or(use.Model, e.Model)
		e.Biller, e.BillingType = use.Biller, use.BillingType
		e.InputTokens, e.CachedInputTokens, e.OutputTokens = bounded(use.InputTokens), bounded(use.CachedInputTokens),
			bounded(use.OutputTokens)
		cost := min(max(use.Cost, 0), money.MaxReservation)
		e.Cost, m.Beyond = min(cost, granted), max(cost-granted, 0)
		if !use.OccurredAt.IsZero() {
			e.OccurredAt = core.TimeOf(use.OccurredAt)
		}
		err = p.journal.write(note{Kind: noteEnded, Reservation: s.id, Call: &m}, false)
		s.left += granted - e.Cost
		s.ended = append(s.ended, m)
	}
	delete(s.under, g.ID)
	p.calls--
	s.used = p.cfg.Now()
	p.wake()
	if err != nil { // it is sent anyway; after a crash the whole grant is settled
		return fmt.Errorf("purse: note the end of a call: %w", err)
	}
	return nil
}

func bounded(tokens int64) int64 { return min(max(tokens, 0), money.MaxEventTokens) }

// A Stock is the state of one reservation in a purse, for inspection.
type Stock struct {
	Reservation     string
	Company         ledger.CompanyID
	Agent, Project  string
	Amount, Left    core.Money
	Calls           int // under way
	Untold          int
	Closing, Unsure bool
}

// Stocks returns what the purse has, in no order.
func (p *Purse) Stocks() []Stock {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Stock
	for _, s := range p.stocks {
		out = append(out, Stock{s.id, s.of.company, s.of.agent, s.of.project, s.amount, s.left, len(s.under), len(s.ended),
			s.closing, s.unsure})
	}
	return out
}

func (p *Purse) submit(ctx context.Context, kind string, of ledger.CompanyID, payload any) (ledger.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, submitWait)
	defer cancel()
	c := ledger.Command{Kind: kind, Company: of, Payload: ledger.Marshal(payload),
		Actor:      ledger.Actor{Type: "node", ID: string(p.cfg.Self)},
		Credential: ledger.Credential{Kind: "node", ID: string(p.cfg.Self)}}
	_, _ = rand.Read(c.Salt[:]) // never fails
	return p.cfg.Node.Submit(ctx, c)
}

func newID() string {
	id, err := uuid.NewV7()
	if err != nil {
		panic("purse: " + err.Error()) // the system's randomness never fails
	}
	return id.String()
}
