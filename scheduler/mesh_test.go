package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
)

// A mesh is nodes with real workers and leaders around one real ledger, in
// virtual time. What consensus would do is one lock: a node that is cut off
// waits for ever, and commands land in the order in which they take the lock.
type mesh struct {
	*ledgertest.World
	t     *testing.T
	nodes []*peer
	began time.Time

	mu     sync.Mutex // guards what follows
	salt   uint64
	leader int       // -1: nobody leads
	term   uint64    // grows with each election
	last   time.Time // the newest stamp
	at     time.Time // when it was given
}

// A peer is one node of the mesh.
type peer struct {
	m    *mesh
	i    int
	keys *identity.Keys

	mu      sync.Mutex // guards what follows
	session uint64
	seq     uint64
	life    int
	cut     bool
	facts   Facts
	kinds   []string // adapters of its next life besides process
	started uint64   // index of the last run.start, as it was answered
	refuses string   // the kind of commands that fail

	waited atomic.Uint64 // highest index that a read waited for

	skew atomic.Int64 // of its wall clock, ns
	paid atomic.Bool  // runs pay at its gateway
	late atomic.Int64 // how late it runs, ns
	why  atomic.Value // why it could not run

	adapter *fake
	worker  *Worker
	lead    *Leader
	stop    context.CancelFunc
	done    chan struct{}
}

const (
	testLease  = 6 * time.Second
	testMargin = 2 * time.Second
)

// run plays f on a mesh of n nodes, of which the first leads.
func run(t *testing.T, n int, f func(t *testing.T, m *mesh)) {
	t.Helper()
	runAt(t, n, time.Time{}, f)
}

// runAt does so at a time of its own, which is after the bubble's: midnight UTC on
// 2000-01-01.
func runAt(t *testing.T, n int, at time.Time, f func(t *testing.T, m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(at))
		m := found(t, n)
		defer m.close()
		m.elect(0)
		f(t, m)
	})
}

func found(t *testing.T, n int) *mesh {
	t.Helper()
	m := &mesh{t: t, leader: -1, began: time.Now()}
	for i := range n {
		p := &peer{m: m, i: i, keys: identity.Derive(sha256.Sum256([]byte{byte(i + 1)}))}
		p.why.Store("")
		m.nodes = append(m.nodes, p)
	}
	first := m.nodes[0]
	g := ledgertest.Genesis(first.keys, "test", time.Now())
	g.Founder = newNode(first)
	m.World = ledgertest.Found(t, ledger.Config{Mux: rules.Handlers(), Authorize: people.Authorize}, first.keys, g,
		m.stamp)
	first.open()
	for _, p := range m.nodes[1:] {
		m.must(board(ledger.KindNodeAdmit, "", ledger.NodeAdmit{Node: newNode(p)}))
		p.open()
	}
	for _, p := range m.nodes {
		p.start()
	}
	return m
}

func newNode(p *peer) ledger.NewNode {
	return ledgertest.Node(p.keys, fmt.Sprintf("node-%d", p.i), fmt.Sprintf("node=%d", p.i))
}

func (m *mesh) close() {
	for _, p := range m.nodes {
		p.halt()
	}
}

// propose applies one command as the only one of its batch.
func (m *mesh) propose(p *peer, session, seq uint64, cmd ledger.Command) ledger.Receipt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Apply(m.Entry(p.keys, session, seq, cmd))[0]
}

// stamp gives a batch its time, as consensus does: by the wall clock of whoever
// leads, within what the mesh allows. m.mu is held.
func (m *mesh) stamp() time.Time {
	t := m.timeOf(m.nodes[max(m.leader, 0)])
	if t.After(m.last) {
		m.last, m.at = t, time.Now()
	}
	return t
}

// timeOf is the time that p would give a batch now; m.mu is held.
func (m *mesh) timeOf(p *peer) time.Time {
	return ledger.NextStamp(m.last, time.Since(m.at), time.Now().Add(time.Duration(p.skew.Load())))
}

// now is the mesh's time.
func (m *mesh) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.timeOf(m.nodes[max(m.leader, 0)])
}

func board(kind string, of ledger.CompanyID, payload any) ledger.Command {
	c := nodeCommand("", kind, of, payload)
	c.Actor, c.Credential = ledger.Actor{Type: "user", ID: "local-board"}, ledger.Credential{Kind: "local"}
	return c
}

// ask carries out a command of the board through the session of the first node that
// is not cut off.
func (m *mesh) ask(cmd ledger.Command) ledger.Receipt {
	m.t.Helper()
	p := m.nodes[0]
	if at := slices.IndexFunc(m.nodes, func(p *peer) bool { return !p.isCut() }); at > 0 {
		p = m.nodes[at]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	return m.propose(p, p.session, p.seq, cmd)
}

func (m *mesh) must(cmd ledger.Command) ledger.Receipt {
	m.t.Helper()
	r := m.ask(cmd)
	if r.Refusal != nil {
		m.t.Fatalf("%s: %s", cmd.Kind, r.Refusal.Message)
	}
	return r
}

// elect makes node i the leader; -1 leaves the mesh without one.
func (m *mesh) elect(i int) {
	m.mu.Lock()
	old := m.leader
	m.leader = i
	m.term++
	term := m.term
	m.mu.Unlock()
	if old >= 0 {
		m.nodes[old].lead.Lead(false)
	}
	if i >= 0 {
		m.nodes[i].lead.LeadIn(term)
	}
}

func (m *mesh) leading() *peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader < 0 {
		return nil
	}
	return m.nodes[m.leader]
}

func (p *peer) id() identity.NodeID { return p.keys.ID() }

func (p *peer) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life++
	r := p.m.propose(p, 0, 0, nodeCommand(p.id(), ledger.KindSessionOpen, "", ledger.SessionOpen{Incarnation: "1",
		Nonce: fmt.Sprint(p.life)}))
	var s ledger.Session
	if err := ledger.Unmarshal(r.Value, &s); err != nil || r.Refusal != nil {
		p.m.t.Errorf("open session: %v %v", r.Refusal, err)
	}
	p.session, p.seq = s.ID, 0
}

func (p *peer) Submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	if !p.reach(ctx) {
		return ledger.Receipt{}, ctx.Err()
	}
	time.Sleep(2 * time.Millisecond) // a commit
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == 0 {
		return ledger.Receipt{}, errors.New("no session")
	}
	if cmd.Kind == p.refuses {
		return ledger.Receipt{}, errors.New("the disk is full")
	}
	p.seq++
	r := p.m.propose(p, p.session, p.seq, cmd)
	if cmd.Kind == "run.start" {
		p.started = r.Index
	}
	return r, nil
}

// reach waits until p reaches the leader, or ctx ends.
func (p *peer) reach(ctx context.Context) bool {
	for {
		to := p.m.leading()
		if to != nil && !p.isCut() && !to.isCut() {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (p *peer) isCut() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.cut }

// refuse lets commands of a kind fail at p, "" none.
func (p *peer) refuse(kind string) { p.mu.Lock(); defer p.mu.Unlock(); p.refuses = kind }

func (p *peer) setCut(cut bool) { p.mu.Lock(); defer p.mu.Unlock(); p.cut = cut }

func (p *peer) View(_ context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	p.waited.Store(max(p.waited.Load(), at.AtLeast))
	return p.m.Ledger.Applied(), p.m.Ledger.View(f)
}

func (p *peer) Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error] {
	return p.m.Ledger.Entries(ctx, after)
}

// start begins a life of the node: its leader's part and its worker.
func (p *peer) start() {
	ctx, cancel := context.WithCancel(p.m.t.Context())
	clock := func() time.Duration { return time.Since(p.m.began) }
	p.adapter = &fake{clock: clock, runs: map[string]*fakeRun{}}
	p.lead = NewLeader(LeaderConfig{Node: p, Self: p.id(), Lease: testLease, Clock: clock, Now: func() time.Time {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		return p.m.timeOf(p)
	}, Verify: func(ctx context.Context) error {
		if p.m.leading() != p || p.isCut() {
			return errors.New("does not lead")
		}
		return nil
	}})
	adapters := map[string]Adapter{"process": p.adapter}
	for _, kind := range p.kinds {
		adapters[kind] = p.adapter
	}
	var err error
	p.worker, err = NewWorker(WorkerConfig{
		Node: p, Self: p.id(), Lease: testLease, Margin: testMargin, Clock: clock, Slots: 4,
		Session:     func() uint64 { p.mu.Lock(); defer p.mu.Unlock(); return p.session },
		SessionOver: func(uint64) { p.open() },
		KeepAlive: func(ctx context.Context, b Beat) (time.Duration, error) {
			if !p.reach(ctx) {
				return 0, ctx.Err()
			}
			time.Sleep(time.Millisecond)
			to := p.m.leading() // it may have died while the message was on its way
			if to == nil {
				return 0, errors.New("no leader")
			}
			return to.lead.KeepAlive(ctx, b)
		},
		Adapters: adapters,
		Late:     func() time.Duration { return time.Duration(p.late.Load()) },
		Why:      func(time.Duration) string { return p.why.Load().(string) },
		Facts:    func() Facts { p.mu.Lock(); defer p.mu.Unlock(); return p.facts },
		Paid:     func(string) bool { return p.paid.Load() },
		OpenLog:  func(string) (Log, error) { return &memLog{}, nil },
		LogRef: func(company ledger.CompanyID, agent, run string) string {
			return string(company) + "/" + agent + "/" + run + ".ndjson"
		},
	})
	if err != nil {
		p.m.t.Fatal(err)
	}
	done := make(chan struct{})
	p.stop, p.done = cancel, done
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.lead.Run(ctx) })
		wg.Go(func() { _ = p.worker.Run(ctx) })
		wg.Wait()
	}()
}

func (p *peer) halt() { p.stop(); <-p.done }

// A fake is an adapter whose children are timers. The agent's adapterConfig
// says what they do, such as "sleep 3s" or "sleep 1s, fail".
type fake struct {
	clock Clock
	mu    sync.Mutex
	runs  map[string]*fakeRun // ever invoked here
}

type fakeRun struct {
	cancel    chan struct{}
	asked     bool
	from, to  time.Duration // to is 0 while it works
	authority func() time.Duration
}

func (f *fake) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	k := &fakeRun{cancel: make(chan struct{}), from: f.clock(), authority: inv.Authority}
	f.mu.Lock()
	f.runs[inv.Run.ID] = k
	f.mu.Unlock()
	defer func() { f.mu.Lock(); k.to = f.clock(); f.mu.Unlock() }()
	inv.Log("stdout", "working\n")
	inv.Report(company.Report{PID: 100, Group: 100,
		Events: []company.ReportEvent{{Type: "adapter.invoke", Message: "adapter invocation"}}})
	var c struct{ Command string }
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		panic(err)
	}
	d, verb, _ := strings.Cut(strings.TrimPrefix(c.Command, "sleep "), ", ")
	if d == "" {
		d = "1m" // what a command line does of itself
	}
	wait, err := time.ParseDuration(d)
	if err != nil {
		panic(c.Command)
	}
	select {
	case <-time.After(wait):
		if verb == "fail" {
			return company.Outcome{Status: entity.RunFailed, ExitCode: new(3), Error: "Process exited with code 3",
				ErrorCode: "adapter_failed"}
		}
		if verb == "hiccup" {
			return company.Outcome{Status: entity.RunFailed, Error: "upstream is busy", ErrorCode: "transient_upstream",
				Transient: true}
		}
		if verb == "misconfigured" {
			return company.Outcome{Status: entity.RunFailed, Error: "no key", ErrorCode: "auth_required"}
		}
		if verb == "turns" {
			return company.Outcome{Status: entity.RunFailed, Error: "no turns left", ErrorCode: "max_turns"}
		}
		if verb == "session" {
			return company.Outcome{Status: entity.RunSucceeded, ExitCode: new(0), SessionID: "s-1",
				SessionParams: []byte(`{"sessionId":"s-1"}`)}
		}
		if verb == "cost" {
			return company.Outcome{Status: entity.RunSucceeded, ExitCode: new(0), Cost: &entity.RunCost{Provider: "p",
				Model: "m", Usage: entity.Usage{InputTokens: 10}, Cost: core.Cents(7), Priced: true}}
		}
		return company.Outcome{Status: entity.RunSucceeded, ExitCode: new(0), Result: []byte(`{"stopReason":"completed"}`)}
	case <-k.cancel:
		time.Sleep(time.Second) // its grace
		return company.Outcome{Status: entity.RunCancelled, Signal: "SIGTERM"}
	case <-ctx.Done():
		if verb == "cost" {
			return company.Outcome{Status: entity.RunInterrupted, Cost: &entity.RunCost{Provider: "p", Model: "m",
				Cost: core.Cents(3), Priced: true}}
		}
		return company.Outcome{Status: entity.RunInterrupted}
	}
}

func (f *fake) Status(run string) entity.Phase {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.runs[run]; k != nil && k.to == 0 {
		return entity.PhaseExecute
	}
	return ""
}

func (f *fake) Cancel(run, _ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.runs[run]; k != nil && !k.asked {
		k.asked = true
		close(k.cancel)
	}
}

// at returns what the adapter knows of a run.
func (f *fake) at(run string) (fakeRun, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.runs[run]
	if k == nil {
		return fakeRun{}, false
	}
	return *k, true
}

type memLog struct {
	mu sync.Mutex
	d  company.LogDigest
}

func (l *memLog) Write(stream, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.d.Bytes += int64(len(text))
	l.d.Seq++
	l.d.Stream, l.d.At = stream, time.Now()
}

func (l *memLog) Digest() company.LogDigest { l.mu.Lock(); defer l.mu.Unlock(); return l.d }

func (l *memLog) Close() (company.LogDigest, error) {
	d := l.Digest()
	d.SHA256 = "hash"
	return d, nil
}

// invoke wakes an agent as the board does and returns the run.
func (m *mesh) invoke(of ledger.CompanyID, agent string) entity.Run {
	m.t.Helper()
	return m.woken(board("agent.wake", of, m.wake(agent, entity.WakeOnDemand, "manual")))
}

// wake is a wake with fresh IDs.
func (m *mesh) wake(agent string, source entity.WakeSource, detail string) entity.Wake {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.salt++
	return entity.Wake{Agent: agent, Source: source, TriggerDetail: detail, Wakeup: uuid("w", m.salt),
		Run: uuid("r", m.salt)}
}

func uuid(kind string, n uint64) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind[0], n)
}

func (m *mesh) woken(cmd ledger.Command) entity.Run {
	m.t.Helper()
	var res entity.WakeResult
	if err := ledger.Unmarshal(m.must(cmd).Value, &res); err != nil || res.Run == nil {
		m.t.Fatalf("woken to %+v, %v", res, err)
	}
	return *res.Run
}

func (m *mesh) run(id string) (r entity.Run) {
	m.t.Helper()
	_ = m.Ledger.View(func(tx *ledger.Tx) error { r, _ = entity.RunByID(tx, id); return nil })
	return r
}

// runs returns a company's runs, oldest first.
func (m *mesh) runs(of ledger.CompanyID) (out []entity.Run) {
	_ = m.Ledger.View(func(tx *ledger.Tx) error {
		out = slices.Collect(entity.RunsOf(tx, of))
		return nil
	})
	slices.Reverse(out)
	return out
}

// until waits until ok holds, at most d of virtual time.
func (m *mesh) until(d time.Duration, what string, ok func() bool) {
	m.t.Helper()
	kit.Wait{Most: d, Every: 10 * time.Millisecond}.Until(m.t, what, ok)
}

func (m *mesh) untilStatus(id string, d time.Duration, want entity.RunStatus) entity.Run {
	m.t.Helper()
	m.until(d, "run "+string(want), func() bool { return m.run(id).Status == want })
	return m.run(id)
}

// on returns the node that a run was placed on, -1 when it is on none.
func (m *mesh) on(r entity.Run) int {
	return slices.IndexFunc(m.nodes, func(p *peer) bool { return string(p.id()) == r.Node })
}

// wantAuthority fails when a fake child lived on after the authority of its
// node had ended, or after its run was declared over.
func (m *mesh) wantAuthority() {
	m.t.Helper()
	for _, p := range m.nodes {
		p.adapter.mu.Lock()
		for id, k := range p.adapter.runs {
			r := m.run(id)
			if over := r.FinishedAt.Std().Sub(m.began); r.Status == entity.RunInterrupted && (k.to == 0 || k.to > over) {
				m.t.Errorf("run %s worked until %v on node %d, and was declared over at %v", id, k.to, p.i, over)
			}
		}
		p.adapter.mu.Unlock()
	}
}
