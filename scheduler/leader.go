package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

var (
	// ErrNotLeader is returned to a keep-alive that did not reach the leader.
	ErrNotLeader = errors.New("this node does not lead")
	// ErrSessionOver is returned to a keep-alive of a session that has ended or
	// was declared lost. The node must open a new session.
	ErrSessionOver = errors.New("the node's session is over")
)

// LeaderConfig is what a [Leader] needs. Node, Self and Verify are required.
type LeaderConfig struct {
	Node Node
	Self identity.NodeID
	// Verify returns nil when this node leads, confirmed by a majority after the call
	// began. A new leader answers only after it has applied a command of its own term.
	Verify func(context.Context) error
	Lease  time.Duration // the usual length; default DefaultLease; equal on all nodes of a mesh
	Clock  Clock         // required; the boot-time clock
	// Why returns why this node did not run for some time since the given reading of
	// Clock, "" when it ran all the time. nil: it always ran.
	Why func(since time.Duration) string
	// Now returns the time that the leader would stamp on a command now: the mesh's
	// time, which does not jump when a machine's clock is set. Default: the wall clock.
	Now    func() time.Time
	Logger *slog.Logger // default: discard
}

// A Leader schedules for the whole mesh while its node leads.
type Leader struct {
	cfg  LeaderConfig
	wake *signal

	mu       sync.Mutex // guards what follows
	leading  bool
	term     int                       // counts the calls of Lead
	raftTerm uint64                    // in which this node leads; 0: leases have the usual length
	marks    uint64                    // number of lease commands submitted
	led      time.Duration             // when Lead was called last
	leases   map[uint64]*lease         // by session
	seek     bool                      // read the open sessions again
	reload   bool                      // read all timers again
	stale    map[[2]string]bool        // timers to read again, by company and agent
	changed  map[ledger.CompanyID]bool // companies that may have been stopped; nil: any

	// Fields of Run's goroutine only.
	timers map[[2]string]entity.Timer // by company and agent
	last   ledger.CompanyID           // company that was served last
	said   map[string]string          // the reported reason why a run waits, by run
	never  map[string]time.Duration   // since when no node could take a run, by run
	terms  int                        // value of term when never was started
	awake  time.Duration              // when the last look ended, on Clock; 0 before the first
	looked time.Duration              // when it last searched for stranded issues
	sweep  sweep                      // where the search continues
}

// A lease is what the leader granted to one session.
type lease struct {
	beat   Beat // only Session and Node until the first beat
	heard  bool
	at     time.Duration // when it was last granted, or first waited for
	expiry time.Duration // on the leader's clock; never decreases
	lost   bool          // declared lost; never granted again
	asking int           // beats that are being checked

	// The length of the lease, see grant.go.
	want time.Duration    // length that the node asked for last
	row  ledger.Session   // as it was at the last beat
	told bool             // a beat arrived after mark was submitted
	mark ledger.LeaseMark // of this leader's last command about the lease
}

// NewLeader returns a leader that does nothing until [Leader.Lead].
func NewLeader(cfg LeaderConfig) *Leader {
	cfg.Lease = cmp.Or(cfg.Lease, DefaultLease)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Leader{cfg: cfg, wake: newSignal(), leases: map[uint64]*lease{}, timers: map[[2]string]entity.Timer{},
		stale: map[[2]string]bool{}}
}

// Lead is called at every change of leadership that the node hears of. A node that
// begins to lead does not know what other leaders granted before or in between, so
// each call gives every session a full lease. Leases have the usual length until
// [Leader.LeadIn] is called.
func (l *Leader) Lead(leading bool) { l.lead(leading, 0) }

// LeadIn is Lead for a node that leads in the given raft term. A term has one leader.
func (l *Leader) LeadIn(term uint64) { l.lead(true, term) }

func (l *Leader) lead(leading bool, term uint64) {
	l.mu.Lock()
	l.leading, l.raftTerm = leading, term
	l.term++
	l.led = l.cfg.Clock()
	l.leases, l.seek, l.reload, l.changed = map[uint64]*lease{}, true, true, nil
	l.mu.Unlock()
	l.wake.set()
}

// KeepAlive grants a lease to the session that b names and returns its length, or
// fails with ErrNotLeader or ErrSessionOver. The node counts the length from before
// it sent the beat. The leader counts it from after the check of leadership, which
// began after the beat arrived.
func (l *Leader) KeepAlive(ctx context.Context, b Beat) (time.Duration, error) {
	l.mu.Lock()
	leading := l.leading
	if g := l.leases[b.Session]; leading && g != nil {
		g.asking++ // the node is not declared lost while its beat is checked
		defer func() { l.mu.Lock(); g.asking--; l.mu.Unlock() }()
	}
	l.mu.Unlock()
	if !leading {
		return 0, ErrNotLeader
	}
	if err := l.cfg.Verify(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	var s ledger.Session
	open := false
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		s, open = ledger.FindSession(tx, b.Session)
		open = open && s.EndedAt == 0 && s.Node == b.Node
		return nil
	})
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.leases[b.Session]
	now := l.cfg.Clock()
	switch {
	case !l.leading:
		return 0, ErrNotLeader
	case !open, g != nil && g.lost:
		return 0, ErrSessionOver
	case g == nil:
		g = &lease{expiry: now + l.boundOf(s)} // the longest that another leader may have granted
		l.leases[b.Session] = g
	}
	fresh := !g.heard
	b.Slots = min(max(b.Slots, 0), MaxSlots)
	g.want = stepped(l.cfg.Lease, time.Duration(b.Want)*time.Millisecond)
	g.beat, g.heard, g.at, g.row, g.told = b, true, now, s, true
	length := l.length(g)
	g.expiry = max(g.expiry, now+length)
	if fresh {
		l.wake.set() // a new node may take waiting runs
	}
	return length, nil
}

// Live returns the last beats of the nodes that hold a lease, sorted by node.
func (l *Leader) Live() []Beat {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Clock()
	var out []Beat
	for _, g := range l.leases {
		if g.heard && !g.lost && g.expiry > now {
			out = append(out, g.beat)
		}
	}
	slices.SortFunc(out, func(a, b Beat) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// Run schedules until ctx ends, and returns the error of ctx.
func (l *Leader) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		begun := func() {
			l.mu.Lock()
			l.seek, l.reload, l.changed = true, true, nil
			l.mu.Unlock()
			l.wake.set()
		}
		follow(ctx, l.cfg.Node, l.cfg.Logger, begun, func(e ledger.Entry) {
			l.mu.Lock()
			for _, ch := range e.Changes {
				switch ch.EntityType {
				case "session":
					l.seek = true
				case "agent":
					l.stale[[2]string{string(e.Company), ch.EntityID}] = true
				case "company":
					l.reload = true // the company may have been paused, resumed or deleted
					if l.changed != nil {
						l.changed[ledger.CompanyID(ch.EntityID)] = true
					}
				}
			}
			l.mu.Unlock()
			l.wake.set()
		})
	})
	again := time.Duration(0)
	for l.wake.wait(ctx, again) {
		l.overslept(again)
		l.mu.Lock()
		leading := l.leading
		l.mu.Unlock()
		again = 0 // Lead will wake it
		if leading {
			l.look(ctx)
			again = untilLook()
		}
		l.awake = l.cfg.Clock()
	}
	return ctx.Err()
}

// overslept extends every lease by a time in which this process did not run: beats
// may have arrived that it could not check. Waiting longer is always safe.
func (l *Leader) overslept(pause time.Duration) {
	late := l.cfg.Clock() - l.awake - pause
	if l.awake == 0 || pause == 0 || late < oversleepLeast {
		return
	}
	late = min(late, maxLeaseTimes*l.cfg.Lease)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.leases {
		g.expiry += late
	}
}

// look does what is due, once. A step that fails is retried at the next look. It does
// not stop the steps after it, except when this node no longer leads.
func (l *Leader) look(ctx context.Context) {
	var failed []error
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"end lost sessions", l.declareLost}, {"set leases", l.setLeases}, {"settle companies", l.settleCompanies},
		{"fire timers", l.fireTimers},
		{"fire routines", l.fireRoutines}, {"fire monitors", l.fireMonitors}, {"fire cron jobs", l.fireCron},
		{"place runs", l.placeRuns},
		{"place processes", l.placeReplicas}, {"recover issues", l.recoverStranded},
	} {
		err := step.do(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", step.name, err))
		}
		if errors.Is(err, ErrNotLeader) {
			break
		}
	}
	if err := errors.Join(failed...); err != nil {
		l.cfg.Logger.Info("scheduling was interrupted", "error", err)
	}
}

// submit submits one command. A refusal is not an error.
func (l *Leader) submit(ctx context.Context, kind string, of ledger.CompanyID, payload any) (ledger.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, submitWait)
	defer cancel()
	r, err := l.cfg.Node.Submit(ctx, nodeCommand(l.cfg.Self, kind, of, payload))
	if err == nil && r.Refusal != nil {
		l.cfg.Logger.Debug("scheduling command was refused", "kind", kind, "reason", r.Refusal.Message)
	}
	return r, err
}

// declareLost ends the sessions whose lease has passed. Those that never sent a beat to
// this leader, such as one of a node that died together with the leader before, first get
// a full lease. An idle node's counts too: others wait for what they watch there.
func (l *Leader) declareLost(ctx context.Context) error {
	l.mu.Lock()
	seek := l.seek
	l.seek = false
	l.mu.Unlock()
	var working []entity.NodeLost
	rows := map[uint64]ledger.Session{}
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		working = entity.SessionsWithRuns(tx) // of sessions that have ended too
		for _, s := range working {
			rows[s.Session], _ = ledger.FindSession(tx, s.Session)
		}
		if !seek {
			return nil
		}
		for _, s := range ledger.OpenSessions(tx) {
			if _, known := rows[s.ID]; !known {
				working = append(working, entity.NodeLost{Node: string(s.Node), Session: s.ID})
				rows[s.ID] = s
			}
		}
		return nil
	})
	if err != nil {
		l.seekAgain()
		return err
	}
	var due []entity.NodeLost
	passed := func(g *lease, now time.Duration) bool { return g.expiry <= now && g.asking == 0 }
	l.mu.Lock()
	now, doubt := l.cfg.Clock(), false
	for _, s := range working {
		if l.leases[s.Session] == nil {
			l.leases[s.Session] = &lease{beat: Beat{Node: identity.NodeID(s.Node), Session: s.Session}, at: now, expiry: now +
				l.boundOf(rows[s.Session])}
		}
	}
	for _, g := range l.leases {
		doubt = doubt || passed(g, now)
	}
	l.mu.Unlock()
	if !doubt {
		return nil
	}
	// A leader that was deposed without knowing it gets no beats, because the nodes
	// send theirs to the new leader.
	sure, cancel := context.WithTimeout(ctx, submitWait)
	defer cancel()
	if err := l.cfg.Verify(sure); err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	l.mu.Lock()
	now = l.cfg.Clock()
	for session, g := range l.leases {
		if passed(g, now) {
			g.lost = true
			due = append(due, entity.NodeLost{Node: string(g.beat.Node), Session: session, Why: l.reason(g, now)})
		}
	}
	l.mu.Unlock()
	if len(due) > 0 {
		l.seekAgain() // for what the ledger refuses now
	}
	slices.SortFunc(due, func(a, b entity.NodeLost) int { return cmp.Compare(a.Session, b.Session) })
	for _, lost := range due {
		l.cfg.Logger.Warn("node is lost", "node", identity.NodeID(lost.Node).Short(), "session", lost.Session,
			"reason", lost.Why)
		for left := 1; left > 0; {
			r, err := l.submit(ctx, company.KindNodeLost, "", lost)
			if err != nil {
				return err
			}
			var answer company.Lost
			if r.Refusal == nil {
				if err := ledger.Unmarshal(r.Value, &answer); err != nil {
					return fmt.Errorf("answer to node.lost: %w", err)
				}
			}
			left = answer.Left
		}
		l.mu.Lock()
		delete(l.leases, lost.Session) // from here on the ledger refuses the session
		l.mu.Unlock()
	}
	return nil
}

// seekAgain has the open sessions read at the next look.
func (l *Leader) seekAgain() {
	l.mu.Lock()
	l.seek = true
	l.mu.Unlock()
}

// reason returns what is known about why a node sent no beats. l.mu is held.
func (l *Leader) reason(g *lease, now time.Duration) string {
	why := fmt.Sprintf("the leader has not heard it for %.1f s", (now - g.at).Seconds())
	if g.beat.Late >= tellLate {
		why += fmt.Sprintf("; when it was heard last it ran up to %.1f s late", float64(g.beat.Late)/1000)
		if g.beat.Facts.Load > 0 {
			why += fmt.Sprintf(" under a load of %.0f", float64(g.beat.Facts.Load)/1000)
		}
	}
	if l.cfg.Why != nil {
		if own := l.cfg.Why(g.at); own != "" {
			why += "; the leader: " + own
		}
	}
	return why[:min(len(why), company.MaxLossReason)]
}

// settleCompanies ends the runs that are left in companies that were stopped with
// more runs than one command can end.
func (l *Leader) settleCompanies(ctx context.Context) error {
	l.mu.Lock()
	changed, term := l.changed, l.term
	l.changed = map[ledger.CompanyID]bool{}
	l.mu.Unlock()
	if changed != nil && len(changed) == 0 {
		return nil
	}
	again := func(err error) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.term != term: // the next leader looks at all companies
		case changed == nil:
			l.changed = nil
		case l.changed != nil:
			maps.Copy(l.changed, changed)
		}
		return err
	}
	var rest []ledger.CompanyID
	left := func(tx *ledger.Tx) error {
		rest = slices.DeleteFunc(rest, func(id ledger.CompanyID) bool { return !company.CompanyToSettle(tx, id) })
		return nil
	}
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		if rest = slices.Sorted(maps.Keys(changed)); changed == nil {
			for _, c := range entity.Companies(tx) {
				rest = append(rest, c.ID)
			}
		}
		return left(tx)
	})
	for err == nil && len(rest) > 0 {
		for _, id := range rest {
			r, failed := l.submit(ctx, company.KindCompanySettle, id, company.SettleCompany{})
			if failed != nil {
				return again(failed)
			}
			if r.Refusal != nil {
				rest = slices.DeleteFunc(slices.Clone(rest),
					func(other ledger.CompanyID) bool { return other == id }) // the company is running again
			}
		}
		err = view(ctx, l.cfg.Node, left)
	}
	if err != nil {
		return again(err)
	}
	return nil
}

// fireTimers wakes the agents whose interval has passed.
func (l *Leader) fireTimers(ctx context.Context) error {
	l.mu.Lock()
	all, stale := l.reload, l.stale
	l.reload, l.stale = false, map[[2]string]bool{}
	l.mu.Unlock()
	if all {
		l.timers = map[[2]string]entity.Timer{}
	}
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		if all {
			for t := range entity.Timers(tx) {
				l.timers[[2]string{string(t.Company), t.Agent}] = t
			}
		}
		for key := range stale {
			if t, ok := entity.TimerOf(tx, ledger.CompanyID(key[0]), key[1]); ok {
				l.timers[key] = t
			} else {
				delete(l.timers, key)
			}
		}
		return nil
	})
	if err != nil {
		l.mu.Lock()
		l.reload = true
		l.mu.Unlock()
		return err
	}
	now := core.TimeOf(l.cfg.Now())
	var due []entity.Timer
	for _, t := range l.timers {
		if t.DueAt <= now {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b entity.Timer) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), cmp.Compare(a.Agent, b.Agent))
	})
	due = due[:min(len(due), ticksPerLook)]
	err = each(due, func(t entity.Timer) error {
		_, err := l.submit(ctx, company.KindTimerTick, t.Company, company.Tick{Agent: t.Agent, Seq: t.Seq})
		return err
	})
	l.mu.Lock()
	for _, t := range due {
		l.stale[[2]string{string(t.Company), t.Agent}] = true // read again at the next due time
	}
	l.mu.Unlock()
	return err
}

// each calls f for every element of list, placesAtOnce at a time, and joins the errors.
func each[T any](list []T, f func(T) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
		room = make(chan struct{}, placesAtOnce)
	)
	for _, v := range list {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			if err := f(v); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
