package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// wires joins nodes by in-memory streams that can be cut one way: a write over
// a cut wire waits, like one into a dead network, until it is healed.
type wires struct {
	mu    sync.Mutex // guards what follows
	nodes map[identity.NodeID]*Consensus
	cut   map[[2]identity.NodeID]bool
	heal  chan struct{} // closed and replaced when a cut is taken back
	conns map[*wire]bool
	pipe  func() (net.Conn, net.Conn) // net.Pipe, or TCP for benchmarks
}

type wire struct {
	net.Conn
	w        *wires
	from, to identity.NodeID
	mu       sync.Mutex
	deadline time.Time
	once     sync.Once
	closed   chan struct{}
}

func newWires() *wires {
	return &wires{nodes: map[identity.NodeID]*Consensus{}, cut: map[[2]identity.NodeID]bool{}, heal: make(chan struct{}),
		conns: map[*wire]bool{}, pipe: net.Pipe}
}

func (w *wires) blocked(from, to identity.NodeID) (bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[[2]identity.NodeID{from, to}], w.heal
}

// setCut cuts or heals the way from one node to another.
func (w *wires) setCut(from, to identity.NodeID, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]identity.NodeID{from, to}] = cut
	if !cut {
		close(w.heal)
		w.heal = make(chan struct{})
	}
}

func (w *wires) dial(from identity.NodeID, accept func(*Consensus, identity.NodeID, net.Conn)) func(context.Context,
	identity.NodeID) (net.Conn, error) {
	return func(ctx context.Context, to identity.NodeID) (net.Conn, error) {
		for _, way := range [][2]identity.NodeID{{from, to}, {to, from}} {
			if cut, _ := w.blocked(way[0], way[1]); cut {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}
		w.mu.Lock()
		peer := w.nodes[to]
		w.mu.Unlock()
		if peer == nil {
			return nil, errors.New("connection refused")
		}
		a, b := w.pipe()
		here := &wire{Conn: a, w: w, from: from, to: to, closed: make(chan struct{})}
		there := &wire{Conn: b, w: w, from: to, to: from, closed: make(chan struct{})}
		w.mu.Lock()
		w.conns[here], w.conns[there] = true, true
		w.mu.Unlock()
		go accept(peer, from, there)
		return here, nil
	}
}

// unplug closes every stream of a node and lets nobody dial it.
func (w *wires) unplug(id identity.NodeID) {
	w.mu.Lock()
	delete(w.nodes, id)
	var open []*wire
	for c := range w.conns {
		if c.from == id || c.to == id {
			open = append(open, c)
		}
	}
	w.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

func (c *wire) Write(b []byte) (int, error) {
	for {
		cut, healed := c.w.blocked(c.from, c.to)
		if !cut {
			return c.Conn.Write(b)
		}
		c.mu.Lock()
		at := c.deadline
		c.mu.Unlock()
		var late <-chan time.Time
		if !at.IsZero() {
			late = time.After(time.Until(at))
		}
		select {
		case <-healed:
		case <-late:
			return 0, os.ErrDeadlineExceeded
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
}

func (c *wire) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.Conn.SetDeadline(t)
}

func (c *wire) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return c.Conn.SetWriteDeadline(t)
}

func (c *wire) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.w.mu.Lock()
		delete(c.w.conns, c)
		c.w.mu.Unlock()
	})
	return c.Conn.Close()
}

// mesh is nodes of one mesh, each with its own file system and ledger.
type mesh struct {
	t     testing.TB
	wires *wires
	id    identity.MeshID
	nodes []*node
	tune  func(*Config) // of every node, before it is opened

	mu       sync.Mutex
	diverged map[identity.NodeID][]Divergence
	fatal    map[identity.NodeID]error
}

type node struct {
	m    *mesh
	keys *identity.Keys
	fs   *vfs.MemFS
	wrap func(vfs.FS) vfs.FS // nil: none
	dir  string              // set for a node on the real disk
	// the newest feature level that it knows; 0: one more than this program, which a test may raise
	level uint64
	keep  uint64 // what its disk keeps free, in bytes; 1 when it is 0
	store *store.Store
	led   *ledger.Ledger
	cons  *Consensus
	prop  *Proposer
}

func (n *node) id() identity.NodeID { return n.keys.ID() }

// newMesh starts a mesh of n nodes: the first founds it, the others are
// admitted and enrol.
func newMesh(t testing.TB, n int, tune func(*Config)) *mesh {
	t.Helper()
	m := &mesh{t: t, wires: newWires(), tune: tune, diverged: map[identity.NodeID][]Divergence{},
		fatal: map[identity.NodeID]error{}}
	for i := range n {
		m.add(byte(i + 1))
	}
	m.found()
	return m
}

func (m *mesh) add(seed byte) *node {
	n := &node{m: m, keys: identity.Derive([32]byte{seed}), fs: vfs.NewCrashableMem()}
	n.keys.Incarnation = "one"
	// The directory of a node is made, and made durable, before its first start.
	if err := errors.Join(n.fs.MkdirAll("/data/state", 0o700), store.SyncDir(n.fs, "/data"),
		store.SyncDir(n.fs, "/")); err != nil {
		m.t.Fatal(err)
	}
	m.nodes = append(m.nodes, n)
	return n
}

func (m *mesh) found() {
	m.t.Helper()
	m.t.Cleanup(m.close)
	first := m.nodes[0]
	genesis := ledger.Marshal(ledgertest.Genesis(first.keys, "node-1", time.Now()))
	m.id = identity.MeshIDOf(genesis)
	for _, n := range m.nodes {
		n.start()
	}
	if err := first.cons.Bootstrap(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	batch := ledger.EncodeBatch(m.id, first.id(), 0, 0, 0, []ledger.Command{{
		Kind: ledger.KindGenesis, Actor: board, Credential: local, Payload: genesis, Salt: [16]byte{1},
	}}, first.keys.Sign)
	result, _, err := first.cons.Propose(m.t.Context(), batch)
	if err != nil {
		m.t.Fatal(err)
	}
	if rs, err := ledger.DecodeReceipts(result); err != nil || rs[0].Refusal != nil {
		m.t.Fatal("genesis:", rs, err)
	}
	for i, n := range m.nodes[1:] {
		m.admit(first, n, fmt.Sprintf("node-%d", i+2))
	}
	want := len(m.nodes)
	if want%2 == 0 {
		want--
	}
	m.wait(time.Minute, "voters", func() bool {
		return first.cons.Stats().Voters == want && first.cons.Stats().
			Servers == len(m.nodes)
	})
}

var (
	board = ledger.Actor{Type: "user", ID: "local-board"}
	local = ledger.Credential{Kind: "local"}
)

func (m *mesh) admit(by, n *node, name string) {
	m.t.Helper()
	r, err := by.prop.Submit(m.t.Context(), ledger.Command{Kind: ledger.KindNodeAdmit, Actor: board, Credential: local,
		Payload: ledger.Marshal(ledger.NodeAdmit{Node: ledger.NewNode{Key: n.keys.Public(), Name: name}})})
	if err != nil || r.Refusal != nil {
		m.t.Fatal("admit:", err, r.Refusal)
	}
}

type addPayload struct {
	ID string `cbor:"1,keyasint"`
}

// testMux has a command that counts how often it was carried out under an ID,
// and one that always refuses.
func testMux() ledger.Mux {
	mux := ledger.Mux{}
	ledger.Handle(mux, "test.add", func(c *ledger.Context, p addPayload) (any, error) {
		key := ledger.Key("t", p.ID)
		n := byte(0)
		if v, ok := c.Get(key); ok {
			n = v[0]
		}
		c.Set(key, []byte{n + 1})
		c.Record(ledger.Change{Action: "test.added", EntityType: "test", EntityID: p.ID})
		return []byte{n + 1}, nil
	})
	ledger.Handle(mux, "test.refuse", func(*ledger.Context, addPayload) (any, error) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "no")
	})
	return mux
}

func (n *node) start() {
	n.m.t.Helper()
	var fs vfs.FS = n.fs
	dir := "/data"
	if n.dir != "" {
		fs, dir = vfs.Default, n.dir
	}
	if n.wrap != nil {
		fs = n.wrap(fs)
	}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("SELVAGE_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(n.m.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})).
			With("node", n.id().Short())
	}
	var err error
	if n.store, err = store.Open(dir+"/state", store.Options{FS: fs, Small: true,
		ReserveBytes: max(n.keep, 1)}); err != nil {
		n.m.t.Fatal(err)
	}
	if n.led, err = ledger.Open(ledger.Config{Span: n.store.Span('s'), Mux: testMux(),
		Level: cmp.Or(n.level, ledger.FeatureLevel+1)}); err != nil {
		n.m.t.Fatal(err)
	}
	cfg := Config{
		ServerID:    n.keys.ServerID(),
		Span:        n.store.Span('r'),
		Dir:         dir + "/snapshots",
		FS:          fs,
		State:       LedgerState(n.led),
		DialRaft:    n.m.wires.dial(n.id(), (*Consensus).AcceptRaft),
		DialPropose: n.m.wires.dial(n.id(), (*Consensus).AcceptPropose),
		Verify:      n.led.CheckBatch,
		Time:        n.led.Time,
		Member: func(id identity.NodeID) (ok bool) {
			_ = n.led.View(func(tx *ledger.Tx) error {
				var v ledger.Node
				v, ok = ledger.FindNode(tx, id)
				ok = ok && v.Member()
				return nil
			})
			return ok
		},
		Peers: func() (out []identity.NodeID) {
			for _, o := range n.m.nodes {
				out = append(out, o.id())
			}
			return out
		},
		OnDiverged: func(d Divergence) {
			n.m.mu.Lock()
			defer n.m.mu.Unlock()
			n.m.diverged[n.id()] = append(n.m.diverged[n.id()], d)
		},
		OnFatal: func(err error) {
			n.m.mu.Lock()
			defer n.m.mu.Unlock()
			n.m.fatal[n.id()] = err
		},
		Stabilisation: time.Second,
		Logger:        log,
	}
	if n.m.tune != nil {
		n.m.tune(&cfg)
	}
	if n.cons, err = Open(cfg); err != nil {
		n.m.t.Fatal(err)
	}
	prop := NewProposer(ProposerConfig{
		Node: n.id(), Mesh: func() identity.MeshID { return n.m.id }, Sign: n.keys.Sign, Propose: n.cons.Propose,
		OpenSession: SessionOpener(n.id(), n.keys.Incarnation), Logger: log,
	})
	n.m.mu.Lock()
	n.prop = prop
	n.m.mu.Unlock()
	n.m.wires.mu.Lock()
	n.m.wires.nodes[n.id()] = n.cons
	n.m.wires.mu.Unlock()
}

// stop ends a node; abruptly means without handing anything on.
func (n *node) stop(abruptly bool) {
	n.m.t.Helper()
	if n.cons == nil {
		return
	}
	if abruptly {
		n.m.wires.unplug(n.id())
		n.cons.Abort()
	} else {
		_ = n.cons.Close()
		n.m.wires.unplug(n.id())
	}
	_ = n.prop.Close()
	if err := errors.Join(n.led.Close(), n.store.Close()); err != nil {
		n.m.t.Error("stop:", err)
	}
	n.cons = nil
}

// crash ends a node as a power loss does: what was not synced is gone.
func (n *node) crash() {
	n.m.t.Helper()
	after := n.fs.CrashClone(vfs.CrashCloneCfg{})
	n.stop(true)
	n.fs = after
}

func (m *mesh) close() {
	for _, n := range m.nodes {
		n.stop(true)
	}
}

// wait waits, in virtual time when in a bubble, until ok holds.
func (m *mesh) wait(d time.Duration, what string, ok func() bool) {
	m.t.Helper()
	kit.Wait{Most: d, Every: 5 * time.Millisecond, State: m.state}.Until(m.t, what, ok)
}

// state says what each node that is open sees of the mesh.
func (m *mesh) state() string {
	var b strings.Builder
	for _, n := range m.nodes {
		if n.cons != nil {
			fmt.Fprintf(&b, "%s: %+v %+v\n", n.id().Short(), n.cons.Stats(), n.cons.Servers())
		}
	}
	return b.String()
}

func (m *mesh) alive() (out []*node) {
	for _, n := range m.nodes {
		if n.cons != nil {
			out = append(out, n)
		}
	}
	return out
}

// leader waits for a node that serves as the leader.
func (m *mesh) leader() *node {
	m.t.Helper()
	var l *node
	m.wait(20*time.Second, "a leader", func() bool {
		for _, n := range m.alive() {
			if n.cons.IsLeader() {
				l = n
				return true
			}
		}
		return false
	})
	return l
}

func (m *mesh) followers() (out []*node) {
	l := m.leader()
	for _, n := range m.alive() {
		if n != l {
			out = append(out, n)
		}
	}
	return out
}

func addCommand(id string) ledger.Command {
	return ledger.Command{Kind: "test.add", Actor: board, Credential: local, Payload: ledger.Marshal(addPayload{id})}
}

// add carries out test.add through n.
func (n *node) add(ctx context.Context, id string) error {
	n.m.mu.Lock()
	p := n.prop
	n.m.mu.Unlock()
	r, err := p.Submit(ctx, addCommand(id))
	if err == nil && r.Refusal != nil {
		err = r.Refusal
	}
	return err
}

// count returns how often id was carried out, as n sees it.
func (n *node) count(id string) (c int) {
	err := n.led.View(func(tx *ledger.Tx) error {
		if v, ok := tx.Get(ledger.Key("t", id)); ok {
			c = int(v[0])
		}
		return nil
	})
	if err != nil {
		n.m.t.Error(err)
	}
	return c
}

// counts returns how often each ID was carried out, as n sees it.
func (n *node) counts() map[string]int {
	all, prefix := map[string]int{}, ledger.Key("t", "")
	err := n.led.View(func(tx *ledger.Tx) error {
		for k, v := range tx.Prefix(prefix) {
			all[string(k[len(prefix):])] = int(v[0])
		}
		return nil
	})
	if err != nil {
		n.m.t.Error(err)
	}
	return all
}

// same waits until all living nodes have the same state and checks that every
// acknowledged ID is there once.
func (m *mesh) same(acked []string) {
	m.t.Helper()
	m.wait(30*time.Second, "equal ledgers", func() bool {
		d, i := m.alive()[0].led.Digest()
		for _, n := range m.alive() {
			if d2, i2 := n.led.Digest(); d2 != d || i2 != i {
				return false
			}
		}
		return true
	})
	for _, n := range m.alive() {
		counts := n.counts()
		for _, id := range acked {
			if got := counts[id]; got != 1 {
				m.t.Errorf("%s is %d times on %s, want once", id, got, n.id().Short())
			}
		}
	}
}

var _ io.Closer = (*wire)(nil)
