package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger/store"
)

var (
	// ErrNoLeader means that nobody leads now, or nobody who can be reached.
	// What was asked was certainly not done.
	ErrNoLeader = errors.New("no leader")
	// ErrOutcomeUnknown means that the batch or command may have been committed,
	// or may still be. Sending the same sequence again finds out.
	ErrOutcomeUnknown = errors.New("outcome is unknown")
	// ErrRefused means that the leader did not accept a batch (its signature,
	// its origin, its size); sending it again is of no use.
	ErrRefused = errors.New("batch was refused")
	// ErrBusy means that a bounded queue is full; try again later.
	ErrBusy = errors.New("too busy")
	// ErrClosed is returned by everything after Close.
	ErrClosed = errors.New("consensus is closed")
	// ErrLogLost means that the state is ahead of the log: the log was lost or
	// put back from a backup. The node must take a new incarnation.
	ErrLogLost = errors.New("raft log is behind the state")
)

// errNotLeader is the inside form of ErrNoLeader: this node does not lead.
var errNotLeader = errors.New("not the leader")

// A Consensus is this node's part in the agreement. Its methods may be called
// from any goroutine.
type Consensus struct {
	cfg  Config
	self raft.ServerID
	node identity.NodeID
	log  *slog.Logger

	raft    *raft.Raft
	logs    *logStore
	watch   *diskWatch
	snaps   *snapshots
	streams *raftStreams
	trans   *guard
	clock   *clock
	pace    *pace
	reads   coalescer // strong reads asked of this node
	leads   coalescer // strong reads answered by this node as the leader

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines that end with ctx
	calls  tally          // goroutines that wait for raft
	commit chan commitPoint

	rounds rounds        // batches that go into the log together
	order  gate          // held from stamping a batch until raft has it
	room   chan struct{} // tokens of batches that this node leads

	mu      sync.Mutex // guards what follows
	links   map[identity.NodeID]*link
	changed chan struct{} // closed and replaced when leadership or readiness changes
	ready   uint64        // the term in which this node may serve as the leader
	leader  raft.ServerID
	lost    time.Time // when leader became ""
	closing bool
	acks    map[*byte]chan uint64 // Faults.AckBeforeCommit: batches in flight

	closeOnce sync.Once
	fatalOnce sync.Once
	broken    atomic.Bool // the log failed or stalled for good

	stats counters
	pilot atomic.Pointer[AutopilotState] // what the autopilot saw last, while this node leads
}

type commitPoint struct{ index, term uint64 }

// Open opens the log, restores the state if it is older than the newest
// snapshot, and takes part. The node votes and leads only if the configuration
// in the log says so; see Bootstrap and Config.Peers.
func Open(cfg Config) (*Consensus, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Consensus{
		cfg:     cfg,
		self:    raft.ServerID(cfg.ServerID),
		node:    nodeOf(raft.ServerID(cfg.ServerID)),
		log:     cfg.Logger,
		watch:   &diskWatch{long: stallElections * cfg.ElectionTimeout},
		commit:  make(chan commitPoint, 1),
		order:   make(gate, 1),
		room:    make(chan struct{}, maxLeading),
		links:   map[identity.NodeID]*link{},
		changed: make(chan struct{}),
		acks:    map[*byte]chan uint64{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.watch.ended = c.notify // it may have been taken for one that does not lead
	c.lost = time.Now()
	c.clock = &clock{mesh: cfg.Time, wall: cfg.Wall}
	c.clock.observe()
	c.rounds.push = c.push
	c.reads = coalescer{round: c.askIndex, wg: &c.wg}
	c.leads = coalescer{round: c.leadIndex, wg: &c.wg}
	var err error
	if c.snaps, err = openSnapshots(cfg.FS, cfg.Dir, cfg.Logger); err != nil {
		return nil, err
	}
	if c.logs, err = openLog(cfg.Span, !cfg.Faults.SkipFsync, c.watch, c.fatal); err != nil {
		return nil, err
	}
	c.logs.recent.limit = cfg.LogCacheBytes
	if cfg.Faults.AckBeforeCommit {
		c.logs.appended = c.ackEarly
	}
	if err := c.reconcileStores(); err != nil {
		return nil, err
	}
	logger := raftLogger{log: cfg.Logger, name: "raft"}
	c.streams = newRaftStreams(cfg.ServerID, cfg.DialRaft)
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:          c.streams,
		MaxPool:         maxPool,
		MaxRPCsInFlight: maxInFlight,
		Timeout:         rpcTimeout,
		Logger:          logger,
	})
	trans.TimeoutScale = snapshotScale
	c.pace = newPace(c.cfg.ElectionTimeout)
	c.trans = newGuard(trans, c.watch, c.pace, c.ctx.Done())
	machine := &fsm{state: cfg.State, entry: c.logs.GetLog, committed: c.committed, applied: c.clock.observe}
	if c.raft, err = raft.NewRaft(c.raftConfig(logger), machine, c.logs, c.logs, c.snaps, c.trans); err != nil {
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), trans.Close())
	}
	c.pace.steer(c.raft)
	events := make(chan raft.Observation, 1) // one is enough: it only wakes
	observer := raft.NewObserver(events, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.RaftState:
			return true
		}
		return false
	})
	c.raft.RegisterObserver(observer)
	c.wg.Go(func() { c.watchLeadership(events) })
	c.wg.Go(c.watchDisk)
	c.wg.Go(c.keepPace)
	c.wg.Go(c.announce)
	c.wg.Go(c.enroll)
	c.wg.Go(c.compareDigests)
	c.wg.Go(c.fillBase)
	c.wg.Go(c.boundLog)
	c.wg.Go(c.mendSnapshots)
	return c, nil
}

func (c *Consensus) raftConfig(logger raftLogger) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = c.self
	r.HeartbeatTimeout = c.cfg.ElectionTimeout
	r.ElectionTimeout = c.cfg.ElectionTimeout
	r.LeaderLeaseTimeout = c.cfg.ElectionTimeout
	r.CommitTimeout = c.cfg.CommitTimeout
	r.MaxAppendEntries = maxAppendEntries
	r.BatchApplyCh = true
	r.ShutdownOnRemove = false // a removed server waits to be enrolled again
	r.TrailingLogs = c.cfg.TrailingLogs
	r.SnapshotInterval = c.cfg.SnapshotInterval
	r.SnapshotThreshold = c.cfg.SnapshotThreshold
	r.NoSnapshotRestoreOnStart = true // the state is kept; see reconcileStores
	r.NoLegacyTelemetry = true
	r.Logger = logger
	return r
}

// reconcileStores brings snapshots, log and state to one line before raft
// starts, after a crash between any two steps.
func (c *Consensus) reconcileStores() error {
	metas, err := c.snaps.List()
	if err != nil {
		return err
	}
	var newest uint64
	if len(metas) > 0 {
		newest = metas[0].Index
		if c.cfg.State.Applied() < newest {
			if err := c.restoreState(metas[0].ID); err != nil {
				return err
			}
		}
	}
	first, last := c.logs.bounds()
	if last != 0 && newest > last {
		// A snapshot was installed; the entries before it were not yet removed.
		if err := c.logs.DeleteRange(first, last); err != nil {
			return fmt.Errorf("remove entries before the snapshot: %w", err)
		}
		first, last = 0, 0
	}
	if first > newest+1 {
		return &store.Damage{File: "snapshots", Kind: store.DamageLost,
			Err: fmt.Errorf("the raft log begins at %d, the newest snapshot that can be read ends at %d", first, newest)}
	}
	if applied := c.cfg.State.Applied(); applied > max(last, newest) {
		return fmt.Errorf("%w: state %d, log %d", ErrLogLost, applied, max(last, newest))
	}
	return nil
}

func (c *Consensus) restoreState(id string) error {
	m, r, err := c.snaps.Open(id)
	if err != nil {
		return err
	}
	defer r.Close()
	c.log.Info("consensus: state is older than the newest snapshot, restoring it",
		"applied", c.cfg.State.Applied(), "snapshot", m.Index)
	if err := c.cfg.State.Restore(r); errors.Is(err, errSnapshot) {
		return &store.Damage{File: id + snapSuffix, Kind: store.DamageContent, Err: err}
	} else if err != nil {
		return fmt.Errorf("restore snapshot %s: %w", id, err)
	}
	return nil
}

// Bootstrap makes this node the first and only voter of a new mesh. It fails
// when there is a log already.
func (c *Consensus) Bootstrap(ctx context.Context) error {
	f := c.raft.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: c.self, Address: raft.ServerAddress(c.self),
	}}})
	if err := c.wait(ctx, f); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	return nil
}

// AcceptRaft takes over a stream of kind raft that a member opened. It returns
// when the stream is closed.
func (c *Consensus) AcceptRaft(from identity.NodeID, conn net.Conn) {
	if err := c.streams.serve(from, conn); err != nil {
		c.log.Debug("consensus: raft stream ended", "peer", from.Short(), "err", err)
	}
}

// AcceptPropose takes over a stream of kind propose that a member opened. It
// returns when the stream is closed.
func (c *Consensus) AcceptPropose(from identity.NodeID, conn net.Conn) {
	if !c.enter() {
		_ = conn.Close()
		return
	}
	defer c.wg.Done()
	if err := c.answer(from, conn); err != nil {
		c.log.Warn("consensus: propose stream ended", "peer", from.Short(), "err", err)
	}
}

// enter counts a goroutine of a caller among those that Close waits for.
func (c *Consensus) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Add(1)
	return true
}

// wait waits for one of raft's futures or the end of ctx. Raft gives no way to
// abandon a future, so a goroutine stays with it until raft has answered.
func (c *Consensus) wait(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	if !c.calls.Go(func() { done <- f.Error() }) {
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A tally counts goroutines, as a WaitGroup does, until none is called: then it
// takes no more, and those under way may be waited for with a time-out.
type tally struct {
	mu     sync.Mutex // guards what follows
	n      int
	closed bool
	idle   chan struct{} // closed at zero; nil when nobody waits
}

// Go runs f in a goroutine that is counted. After none it runs nothing and says so:
// raft may stop at any moment then, and what reaches it late is never answered.
func (t *tally) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.n++
	go func() {
		defer t.leave()
		f()
	}()
	return true
}

func (t *tally) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// none takes no more, and returns a channel that is closed when the count is zero.
// It is called once.
func (t *tally) none() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	ch := make(chan struct{})
	if t.n == 0 {
		close(ch)
	} else {
		t.idle = ch
	}
	return ch
}

// fatal reports, once, that this node can no longer keep its log.
func (c *Consensus) fatal(err error) {
	c.fatalOnce.Do(func() {
		c.broken.Store(true)
		c.log.Error("consensus: can not go on", "err", err)
		// Not from here: the caller may be raft itself, in the middle of a write.
		go c.cfg.OnFatal(err)
	})
}

// Healthy returns nil, or why this node can not keep its log now.
func (c *Consensus) Healthy() error {
	if c.broken.Load() {
		return errors.New("raft log is broken")
	}
	if t := c.watch.stalled(); t > c.trans.stall() {
		return fmt.Errorf("disk has been stalled for %s", t.Round(time.Millisecond))
	}
	return c.cfg.Span.Store().Writable()
}

// watchDisk ends the node's part when its disk stalls for good. A short stall
// needs no goroutine: see guard.
func (c *Consensus) watchDisk() {
	t := time.NewTicker(fatalStall / 20)
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t.C:
			if d := c.watch.stalled(); d >= fatalStall {
				c.fatal(fmt.Errorf("an append to the raft log has taken %s", d.Round(time.Second)))
			}
		}
	}
}

// committed is called by the state machine when entries up to index are
// committed, before they are applied.
func (c *Consensus) committed(index, term uint64) {
	for {
		select {
		case c.commit <- commitPoint{index, term}:
			return
		default:
		}
		select { // an older point makes way
		case <-c.commit:
		default:
		}
	}
}

// announce tells followers of commits, as the leader, when no append does.
func (c *Consensus) announce() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer c.trans.wait()
	var last time.Time
	for {
		var p commitPoint
		select {
		case <-c.ctx.Done():
			return
		case p = <-c.commit:
		}
		if c.raft == nil || c.raft.State() != raft.Leader {
			continue
		}
		now := time.Now()
		busy := now.Sub(last) < announceQuiet
		if last = now; busy {
			timer.Reset(announceAfter)
			select {
			case <-c.ctx.Done():
				return
			case <-timer.C:
			}
		}
		// More entries are on their way: their commit will be announced.
		if c.raft.LastIndex() == p.index && c.raft.State() == raft.Leader {
			c.trans.announce(p.index, p.term, c.raft.CurrentTerm())
		}
	}
}

// Snapshot takes a snapshot now and shortens the log.
func (c *Consensus) Snapshot(ctx context.Context) error {
	err := c.wait(ctx, c.raft.Snapshot())
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	return err
}

// Close hands leadership on if this node leads others, and stops. It waits for
// every goroutine. The span and the state machine stay open.
func (c *Consensus) Close() error {
	c.closeOnce.Do(func() {
		if c.raft.State() == raft.Leader && c.otherVoters() > 0 {
			ctx, cancel := context.WithTimeout(c.ctx, 2*c.pace.election())
			if err := c.wait(ctx, c.raft.LeadershipTransfer()); err != nil {
				c.log.Info("consensus: leadership was not handed on", "err", err)
			}
			cancel()
		}
		c.stop()
	})
	return nil
}

// Abort stops without handing leadership on, as if the process had been killed.
func (c *Consensus) Abort() { c.closeOnce.Do(c.stop) }

func (c *Consensus) stop() {
	c.mu.Lock()
	c.closing = true
	links := c.links
	c.links = nil
	c.mu.Unlock()
	c.cancel()
	c.notify()
	_ = c.streams.Close()
	for _, l := range links {
		l.close()
	}
	// Raft answers every future while it still runs: what is in flight as the
	// leader within a lease, now that no peer answers. Only a disk that hangs
	// keeps it from that.
	select {
	case <-c.calls.none():
	case <-time.After(2*c.pace.election() + enqueueTimeout):
	}
	if err := c.raft.Shutdown().Error(); err != nil {
		c.log.Warn("consensus: stop raft", "err", err)
	}
	c.wg.Wait()
}
