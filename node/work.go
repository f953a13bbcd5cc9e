package node

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/adapter/a2a"
	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/spawn"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/adapter/weftos"
	"github.com/selvage-mesh/selvage/adapter/worktree"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/purse"
	"github.com/selvage-mesh/selvage/sandbox"
	"github.com/selvage-mesh/selvage/scheduler"
	"github.com/selvage-mesh/selvage/transport"
)

// work schedules and executes runs on this node.
type work struct {
	leader   *scheduler.Leader
	worker   *scheduler.Worker
	logs     *runlog.Store
	trees    *worktree.Maker
	turns    turns                  // one command at a time prepares or winds up a folder
	runs     func(kind string) bool // whether this node executes runs of an adapter
	active   sync.Map               // IDs of the operations in progress here
	purse    *purse.Purse
	facts    facts
	sandbox  *sandbox.Engine // nil if adapters were replaced
	host     *spawn.Host
	post     *courier.Courier           // messages of processes
	services *calls.Registry            // calls of services
	api      atomic.Pointer[api.Server] // set once the node serves

	turn chan struct{} // holds a token while line is in use; waiting for it is bounded
	line net.Conn      // to the leader, for keep-alives
	to   identity.NodeID
}

// floor is what applies to everything that runs start. dir is the absolute path of the
// node's data.
func (n *Node) floor(dir string) shim.Floor {
	return shim.Floor{Hide: []string{dir}, Cgroup: n.conf.Cgroup, Nodes: n.conf.Nodes}
}

func (n *Node) openWork(context.Context) (err error) {
	n.work.turn = make(chan struct{}, 1)
	n.work.logs, err = runlog.Open(filepath.Join(n.conf.Dir, "logs"), runlog.Config{Wall: n.conf.Wall})
	if err != nil {
		return err
	}
	n.work.leader = scheduler.NewLeader(scheduler.LeaderConfig{
		Node: n, Self: n.ID(), Verify: n.verifyLeading, Lease: n.conf.Lease, Clock: n.conf.Clock,
		Now: n.consensus.Now, Why: n.pulse.why, Logger: n.log,
	})
	dir, err := filepath.Abs(n.conf.Dir)
	if err != nil {
		return err
	}
	if n.conf.Nodes != "" {
		if err := shim.Register(n.conf.Nodes, dir); err != nil {
			n.log.Warn("tell the other nodes of this machine where the data lies: their runs are kept from it by ownership "+
				"and modes only", "error", err)
		}
	}
	if len(n.conf.Shim) > 0 {
		// A run's processes can not access the files of any node other than its own.
		n.conf.Shim = append(slices.Clone(n.conf.Shim), n.floor(dir).Args()...)
	}
	if n.work.trees, err = worktree.New(filepath.Join(dir, "runs", "git"), os.Environ()); err != nil {
		return err
	}
	adapters := n.conf.Adapters
	if adapters == nil {
		if adapters, err = n.openAdapters(dir); err != nil {
			return err
		}
	}
	if err := n.openHost(dir); err != nil {
		return err
	}
	n.work.runs = func(kind string) bool { return adapters[kind] != nil }
	n.work.worker, err = scheduler.NewWorker(scheduler.WorkerConfig{
		Node: n, Self: n.ID(), Session: n.session, SessionOver: n.sessionOver, KeepAlive: n.keepAlive,
		Adapters: adapters, Folder: n.runFolder, Facts: n.work.facts.look, Secrets: n.resolveSecrets, Skills: runSkills,
		Memories: n.remembered, Track: n.track, Slots: n.conf.Slots,
		Price: priceOfRun, Paid: func(run string) bool { return n.work.purse.Paid(run) },
		Refused:   func(run string) bool { return n.work.purse.Refused(run) },
		Decisions: n.closeDecisions,
		OpenLog:   func(ref string) (scheduler.Log, error) { return n.work.logs.Create(ref) }, LogRef: runlog.Ref,
		Lease: n.conf.Lease, Margin: n.conf.Margin, Clock: n.conf.Clock, Wall: n.conf.Wall, Late: n.pulse.Late,
		Why: n.pulse.why, Logger: n.log,
	})
	if err != nil {
		return err
	}
	n.work.purse, err = purse.Open(purse.Config{Node: n, Self: n.ID(), Session: n.session, Holds: n.work.worker.Holds,
		Path: filepath.Join(dir, "purse"), Boot: bootID(), Now: n.conf.Wall, Log: n.log})
	if err != nil {
		return err
	}
	n.startWork()
	return nil
}

// openAdapters returns the adapters of a node by kind. dir is the absolute path of its data.
func (n *Node) openAdapters(dir string) (map[string]scheduler.Adapter, error) {
	addr := n.nearHTTP()
	host, port, _ := net.SplitHostPort(addr)
	p, err := process.New(process.Config{
		Shim: n.conf.Shim, Dir: filepath.Join(dir, "runs"), APIURL: "http://" + addr, ListenHost: host, ListenPort: port,
		Token: n.runToken, Environ: os.Environ(), MemoryMB: int64(Memory() >> 20), Logger: n.log,
	})
	if err != nil {
		return nil, err
	}
	n.opened("processes", func() error { p.Close(); return nil })
	w, err := n.wasmAdapter(dir)
	if err != nil {
		return nil, err
	}
	adapters := map[string]scheduler.Adapter{"process": p, "wasm": w,
		"http": webcall.New(webcall.Config{Private: n.conf.Private, Token: n.runToken, APIURL: "http://" + addr,
			Told: n.toldOfRun, Logger: n.log}),
		"a2a": a2a.New(a2a.Config{API: n.handler, Token: n.runToken, Private: n.conf.Private, Logger: n.log})}
	if err := n.addContainers(adapters, p, dir); err != nil {
		return nil, err
	}
	return adapters, n.addTools(adapters, p, filepath.Join(dir, "runs"),
		weftos.New(weftos.Config{Private: n.conf.Private, API: n.handler, Token: n.runToken}))
}

// startWork starts the goroutines of the node's work. They end, and what they use is closed,
// when the node closes.
func (n *Node) startWork() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.work.leader.Run(ctx) })
	wg.Go(func() { n.work.purse.Run(ctx) })
	wg.Go(func() { n.work.worker.Run(ctx) })
	wg.Go(func() { n.followLeadership(ctx) })
	wg.Go(func() { n.keepSession(ctx) })
	wg.Go(func() { n.pruneLogs(ctx) })
	wg.Go(func() { n.keepHouse(ctx) })
	wg.Go(func() { n.keepApps(ctx) })
	wg.Go(func() { n.recordDecisions(ctx) })
	wg.Go(func() { n.cleanTrees(ctx) })
	wg.Go(func() { n.keepLogs(ctx) })
	keep := &keeper{n: n, services: map[string]*keptService{}, jobs: map[string]bool{}}
	wg.Go(func() { keep.run(ctx) })
	wg.Go(func() { n.keepProcesses(ctx) })
	wg.Go(func() { n.probeServices(ctx) })
	wg.Go(func() { every(ctx, handOnEvery, n.handOn) })
	wg.Go(func() { n.keepTree(ctx) })
	n.opened("work", func() error {
		n.handBackReplicas()
		cancel()
		wg.Wait()
		ended := errors.Join(n.work.host.Close(), n.work.post.Close())
		spent := n.work.purse.Close(context.Background())
		n.work.hangUp()
		return errors.Join(ended, spent, n.work.logs.Close())
	})
}

// Purse returns where this node's runs get the money for their calls.
func (n *Node) Purse() *purse.Purse { return n.work.purse }

// bootID identifies the boot of the machine, "" if the system does not report it.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// followLeadership notifies the scheduler when this node becomes leader and when it
// stops.
func (n *Node) followLeadership(ctx context.Context) {
	for {
		changed := n.consensus.Changes()
		if term, leads := n.consensus.Leads(); leads {
			n.work.leader.LeadIn(term)
		} else {
			n.work.leader.Lead(false)
		}
		select {
		case <-ctx.Done():
			n.work.leader.Lead(false)
			return
		case <-changed:
		}
	}
}

// pruneLogs deletes run logs beyond the limits of age and size.
func (n *Node) pruneLogs(ctx context.Context) {
	every(ctx, pruneEvery, func() {
		// The limits of the mesh apply here too.
		var most *runlog.Keep // nil when the state can not be read: only the node's own limits apply
		_ = n.ledger.View(func(tx *ledger.Tx) error {
			keep := company.LogRetentionOf(tx)
			most = &runlog.Keep{For: time.Duration(keep.Days) * 24 * time.Hour, Bytes: keep.Bytes}
			return nil
		})
		if _, err := n.work.logs.Prune(time.Now(), most); err != nil {
			n.log.Warn("prune run logs", "error", err)
		}
	})
}

// verifyLeading verifies that this node leads, with a check begun after the call.
func (n *Node) verifyLeading(ctx context.Context) error {
	if !n.consensus.IsLeader() {
		return scheduler.ErrNotLeader
	}
	if _, err := n.consensus.ReadIndex(ctx); err != nil {
		return err
	}
	if !n.consensus.IsLeader() {
		return scheduler.ErrNotLeader
	}
	return nil
}

// toldOfRun returns what the agent behind a URL reported about the end of its run.
func (n *Node) toldOfRun(r entity.Run) (told company.Callback, ok bool) {
	_, err := n.View(n.ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		told, ok = company.CallbackOf(tx, r.Company, r.ID)
		return nil
	})
	return told, ok && err == nil
}

// runToken creates the token with which a run calls any node's API.
func (n *Node) runToken(run entity.Run) (string, error) {
	_, data, _ := n.keyring.current()
	claims := identity.RunClaims{Agent: run.Agent, Company: string(run.Company), Adapter: cmp.Or(run.AdapterType,
		"process"), Run: run.ID, Responsible: string(run.ResponsibleUser)}
	return identity.MintRunToken(data, n.Mesh(), claims, n.conf.Wall())
}

// Keep-alives and their answers are frames on a stream of KindIPC that a node keeps open
// to the leader: a type, then for a beat the sender's wall clock (8 bytes, big endian,
// ms since 1970) and the beat in deterministic CBOR, for a refusal its reason as text.
// Other types end the stream.
const (
	ipcBeat      = 1  // → clock, scheduler.Beat
	ipcGranted   = 2  // ← length of the lease, 8 bytes, big endian, ms; empty: the default
	ipcNoLeader  = 3  // ← reason
	ipcOver      = 4  // ← empty: the session has ended
	ipcProbe     = 5  // → probeAsk as JSON
	ipcProbed    = 6  // ← []adapter.Finding as JSON
	ipcOffers    = 7  // → adapter.Look as JSON
	ipcOffered   = 8  // ← []adapter.Offer as JSON
	ipcProcess   = 9  // → api.ProcessAsk as JSON
	ipcProcesses = 10 // ← api.ProcessAnswer as JSON
	ipcMessages  = 11 // → empty: frames of package courier follow
	ipcPost      = 12 // → api.PostAsk as JSON
	ipcPosted    = 13 // ← api.PostAnswer as JSON
	ipcTree      = 14 // → treeStand as JSON
	ipcTreeTold  = 15 // ← treeStand as JSON
)

// keepAlive sends a beat to the leader, which may be this node.
func (n *Node) keepAlive(ctx context.Context, b scheduler.Beat) (time.Duration, error) {
	leader, ok := n.consensus.Leader()
	if !ok {
		return 0, scheduler.ErrNotLeader
	}
	if leader == n.ID() {
		return n.work.leader.KeepAlive(ctx, b)
	}
	return n.work.beat(ctx, leader, n.transport, n.conf.Wall(), b)
}

func (w *work) beat(ctx context.Context, leader identity.NodeID, t *transport.Transport,
	wall time.Time, b scheduler.Beat) (granted time.Duration, err error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if w.line == nil || w.to != leader {
		w.hangUpNow()
		if w.line, err = t.Dial(ctx, leader, transport.KindIPC); err != nil {
			w.line = nil
			return 0, err
		}
		w.to = leader
	}
	defer func() {
		if err != nil && !errors.Is(err, scheduler.ErrSessionOver) {
			w.hangUpNow()
		}
	}()
	deadline, _ := ctx.Deadline()
	if err := w.line.SetDeadline(deadline); err != nil {
		return 0, err
	}
	frame := binary.BigEndian.AppendUint64(nil, uint64(wall.UnixMilli()))
	if err := transport.WriteFrame(w.line, ipcBeat, append(frame, ledger.Marshal(b)...)); err != nil {
		return 0, err
	}
	typ, payload, err := transport.ReadFrameMax(w.line, maxFrame)
	switch {
	case err != nil:
		return 0, err
	case typ == ipcGranted && len(payload) == 8:
		return time.Duration(min(binary.BigEndian.Uint64(payload), maxGranted)) * time.Millisecond, nil
	case typ == ipcGranted:
		return 0, nil
	case typ == ipcOver:
		return 0, scheduler.ErrSessionOver
	}
	return 0, fmt.Errorf("%w: %s", scheduler.ErrNotLeader, payload)
}

func (w *work) hangUp() {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	w.hangUpNow()
}

// hangUpNow closes the line. The caller holds the token of turn.
func (w *work) hangUpNow() {
	if w.line != nil {
		w.line.Close()
		w.line = nil
	}
}

// serveIPC answers the beats of one node.
func (n *Node) serveIPC(from identity.NodeID, c net.Conn) {
	defer c.Close()
	for {
		typ, payload, err := transport.ReadFrameMax(c, maxFrame)
		if err == nil && typ == ipcProbe {
			_ = n.probeQuestion().answer(n.ctx, c, payload) // the asking node sees a closed stream
			return
		}
		if err == nil && typ == ipcOffers {
			_ = n.offersQuestion().answer(n.ctx, c, payload)
			return
		}
		if err == nil && typ == ipcProcess {
			_ = n.processQuestion().answer(n.ctx, c, payload)
			return
		}
		if err == nil && typ == ipcTree {
			_ = n.treeQuestion().answer(n.ctx, c, payload)
			return
		}
		if err == nil && typ == ipcPost {
			_ = n.postQuestion().answer(n.ctx, c, payload)
			return
		}
		if err == nil && typ == ipcMessages && n.work.post != nil { // a node that boots ends the stream, and is tried again
			n.work.post.Serve(string(from), c)
			return
		}
		if err != nil || typ != ipcBeat || len(payload) < 8 {
			return
		}
		var b scheduler.Beat
		if err := ledger.Unmarshal(payload[8:], &b); err != nil || b.Node != from {
			return
		}
		n.clocks.heard(from, int64(binary.BigEndian.Uint64(payload)))
		ctx, cancel := context.WithTimeout(n.ctx, beatTimeout)
		granted, err := time.Duration(0), scheduler.ErrNotLeader
		if n.work.leader != nil {
			granted, err = n.work.leader.KeepAlive(ctx, b)
		}
		cancel()
		answer, said := byte(ipcGranted), binary.BigEndian.AppendUint64(nil, uint64(granted.Milliseconds()))
		switch {
		case errors.Is(err, scheduler.ErrSessionOver):
			answer, said = ipcOver, nil
		case err != nil:
			answer, said = ipcNoLeader, []byte(err.Error())
		}
		c.SetWriteDeadline(time.Now().Add(keepAliveTimeout))
		if transport.WriteFrame(c, answer, said) != nil {
			return
		}
	}
}

func (n *Node) serveRunLog(_ identity.NodeID, c net.Conn) {
	if n.work.logs == nil {
		c.Close()
		return
	}
	n.work.logs.Serve(c)
}

func (n *Node) runLog(ctx context.Context, on identity.NodeID, ref string, offset, limit int64) (runlog.Chunk, error) {
	if on == n.ID() {
		return n.work.logs.Read(ref, offset, limit)
	}
	c, err := n.transport.Dial(ctx, on, transport.KindRunLog)
	if err != nil {
		return runlog.Chunk{}, err
	}
	return runlog.Fetch(ctx, c, ref, offset, limit)
}
