package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
	"github.com/selvage-mesh/selvage/llm"
	"github.com/selvage-mesh/selvage/mind"
	"github.com/selvage-mesh/selvage/recall"
	"github.com/selvage-mesh/selvage/transport"
)

var (
	// ErrRevoked ends a node that was revoked, or has left its mesh.
	ErrRevoked = errors.New("this node is no longer a member of the mesh; " +
		"to join again, move its data directory away and use a new join token")
	// ErrNotReady says that the node can not serve current state.
	ErrNotReady = errors.New("not ready")
)

// Spans of the store's keys.
const (
	spanRaft  = 'r'
	spanState = 's'
)

// A Node is one running peer.
type Node struct {
	conf Config
	log  *slog.Logger

	small       bool          // the machine is small: see profile.go
	syncTime    time.Duration // a sync of the disk; 0: not measured
	election    time.Duration // timeout that disk and processor need; 0 is the default
	store       *store.Store
	keys        *identity.Keys
	member      membership
	readmitted  atomic.Pointer[[]byte]          // the new admission after the first was lost
	unread      error                           // why the membership could not be read, until it was recreated
	saving      sync.Mutex                      // guards member.Over, member.Met, known, saved and their file
	known       *membersView                    // members in the state; nil before it was read
	saved       []byte                          // content of the file, nil when unknown
	founds      atomic.Bool                     // this node is founding an epoch
	alone       atomic.Bool                     // and that will remove the other members from the roster
	mesh        atomic.Pointer[identity.MeshID] // set once the node belongs to a mesh
	roster      *roster
	keyring     *keyring
	resealed    identity.DataKeyID // nothing is sealed with an earlier key; used by keepHouse
	ledger      *ledger.Ledger
	blobs       *blob.Keeper
	scrubs      *scrubber
	transport   *transport.Transport
	discovery   *discovery.Discovery
	consensus   *consensus.Consensus
	proposer    *consensus.Proposer
	lan         *discovery.LAN // nil if mDNS is off
	asks        asks
	trees       trees
	advertise   atomic.Pointer[netip.AddrPort]
	work        work
	tally       tally
	gate        localGate
	toolTimes   histogram // of modules that were executed as tools
	models      *llm.Gateway
	recall      *recall.Recall
	mind        *mind.Mind // nil where it is switched off
	serving     serving
	parts       []part        // in the order of opening
	remembering atomic.Bool   // a write of the file is scheduled
	freshLog    bool          // the raft log was empty at the start
	healing     *rebuild      // why the store was set aside, nil when it was not
	healed      atomic.Bool   // and it has been rebuilt
	gaveUp      atomic.Bool   // no quorum was found to rebuild it from
	hurt        atomic.Bool   // the running node found damage
	topicNews   courier.Bell  // something was published
	replicaNews chan struct{} // which declared processes run here may have changed
	appNews     chan struct{} // a program of an app's hook may have ended
	events      *kernel.EventLog
	boot        *kernel.Boot
	clocks      clocks // of this node and the others
	pulse       pulse  // how late this node runs

	sessionID  atomic.Uint64
	halted     atomic.Pointer[error] // why commands are no longer accepted
	sessionEnd chan uint64
	doubted    chan struct{} // a member says that this node is revoked; read by catchUp

	ctx    context.Context // ends when the node closes
	cancel context.CancelFunc
	life   sync.Mutex // held while a goroutine is added to wg, and while ctx ends
	wg     sync.WaitGroup
	failed chan error
	once   sync.Once
	closed error
}

// A part is something opened that Close must close.
type part struct {
	name  string
	close func() error
}

// Open starts a node and returns once it serves: it has founded a mesh, joined one, or
// returned to its own. The error says what to do if that is known. A node whose store is
// damaged is opened a second time, to rebuild it: see heal.go.
func Open(ctx context.Context, conf Config) (*Node, error) {
	conf = conf.withDefaults()
	if err := conf.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(conf.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := unfinished(conf.Dir); err != nil {
		return nil, err
	}
	n, err := open(ctx, conf)
	if err == nil {
		return n, nil
	}
	why := distrusted(err)
	if why == "" {
		return nil, err
	}
	conf.Logger.Error("the store can not be trusted", "why", why)
	if err := startAgain(conf, why); err != nil {
		return nil, err
	}
	if conf.Conn != nil && n.transport != nil { // it was closed with the transport
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	n, err = open(ctx, conf)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// open is one attempt of Open. On an error it returns the node, closed.
func open(ctx context.Context, conf Config) (_ *Node, err error) {
	n := &Node{conf: conf, scrubs: newScrubber(max(conf.ScrubEvery, 0), conf.Wall), log: conf.Logger,
		failed:     make(chan error, 1),
		trees:      trees{wake: make(chan struct{}, 1)},
		sessionEnd: make(chan uint64, 1), doubted: make(chan struct{}, 1), replicaNews: make(chan struct{}, 1),
		appNews: make(chan struct{}, 1)}
	n.pulse.clock, n.clocks.wall = conf.Clock, conf.Wall
	n.events = kernel.NewEventLog(conf.Wall)
	n.boot = kernel.NewBoot(n.events, conf.Wall())
	n.boot.Enter(kernel.PhaseInit, fmt.Sprintf("selvage %s, node %s, directory %s", conf.Version, conf.Name, conf.Dir))
	n.boot.Enter(kernel.PhaseConfig, conf.said())
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.spawn(n.pulse.beatOn)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	for _, step := range []struct {
		phase kernel.Phase
		name  string
		do    func(context.Context) error
	}{
		{kernel.PhaseServices, "machine", n.measure},
		{kernel.PhaseServices, "store", n.openStore},
		{kernel.PhaseServices, "identity", n.openIdentity},
		{kernel.PhaseServices, "listen", n.openPort},
		{kernel.PhaseTree, "ledger", n.openLedger},
		{kernel.PhaseTree, "blobs", n.openBlobs},
		{kernel.PhaseNetwork, "transport", n.openTransport},
		{kernel.PhaseNetwork, "lan", n.openLAN},
		{kernel.PhaseNetwork, "mesh", n.openMembership},
		{kernel.PhaseNetwork, "discovery", n.openDiscovery},
		{kernel.PhaseNetwork, "consensus", n.openConsensus},
		{kernel.PhaseNetwork, "founding", n.found},
		{kernel.PhaseAgents, "work", n.openWork},
		{kernel.PhaseAgents, "models", n.openModels},
		{kernel.PhaseECC, "memories", n.openRecall},
		{kernel.PhaseECC, "mind", n.openMind},
		{kernel.PhaseAgents, "webhooks of tasks", n.openPusher},
		{kernel.PhaseReady, "api", n.openAPI},
	} {
		n.boot.Enter(step.phase, step.name)
		if err := readable(func() error { return step.do(ctx) }); err != nil {
			n.events.Add(kernel.Event{Level: kernel.LevelError, Phase: step.phase, Message: fmt.Sprintf("%s: %v",
				step.name, err)})
			return n, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	n.lives(kernel.NodeRunning)
	return n, nil
}

// readable returns the result of f, or the store's failure (store.Failure) if f panics
// with one.
func readable(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case store.Failure:
			err = r
		default:
			panic(r)
		}
	}()
	return f()
}

// opened registers something to close, in reverse order.
func (n *Node) opened(name string, close func() error) {
	n.parts = append(n.parts, part{name, close})
}

// spawn runs f until the node closes. On a closed node it does nothing.
func (n *Node) spawn(f func(context.Context)) {
	n.life.Lock()
	defer n.life.Unlock()
	if n.ctx.Err() == nil {
		n.wg.Go(func() { f(n.ctx) })
	}
}

// endSpawned stops all spawned goroutines and waits for them.
func (n *Node) endSpawned() {
	n.life.Lock()
	n.cancel()
	n.life.Unlock()
	n.wg.Wait()
}

// measure determines the machine's resources.
func (n *Node) measure(context.Context) error {
	memory := Memory()
	n.small = n.conf.Size.Small(memory)
	var sync time.Duration
	if n.conf.FS == vfs.Default && !n.conf.OnDisk { // the disk of a test is not measured
		var err error
		if sync, err = syncTime(n.conf.Dir); err != nil {
			return err
		}
	}
	check := checkTime()
	n.syncTime = sync
	n.election = electionTimeout(sync, check)
	n.log.Info("this machine", "memoryBytes", memory, "small", n.small, "sync", sync, "signature", check, "election",
		cmp.Or(n.election, 500*time.Millisecond))
	return nil
}

func (n *Node) openStore(context.Context) error {
	if err := n.setAside(); err != nil {
		return err
	}
	s, err := store.Open(storeDir(n.conf), store.Options{
		FS: n.conf.FS, Small: n.small, Logger: n.log, OnFatal: n.stopWith, OnDamage: n.damaged,
		OnSlowDisk: func(d store.SlowDisk) { n.log.Warn("disk is slow", "operation", fmt.Sprint(d)) },
	})
	if err != nil {
		return err
	}
	n.store = s
	n.opened("store", s.Close)
	n.freshLog = true
	for range s.Span(spanRaft).Scan(nil, nil, false) {
		n.freshLog = false
		break
	}
	return nil
}

// storeDir is the directory of the store: below the data directory on a disk, the root
// of a file system in memory.
func storeDir(c Config) string {
	if c.FS == vfs.Default || c.OnDisk {
		return filepath.Join(c.Dir, "store")
	}
	return "store"
}

// machine returns the ID of the machine that the node is bound to.
func (n *Node) machine() string {
	if n.conf.Machine != "" {
		return n.conf.Machine
	}
	return identity.MachineID()
}

// openIdentity loads or creates the keys. A member whose log is gone returns as a new
// incarnation, because its earlier votes are lost.
func (n *Node) openIdentity(context.Context) (err error) {
	machine := n.machine()
	if err := n.checkIdentity(machine); err != nil {
		return err
	}
	n.keys, err = identity.LoadOrCreate(n.conf.Dir, machine)
	if err != nil {
		return err
	}
	if n.member, n.unread = loadMembership(n.conf.Dir); n.unread != nil {
		return nil // openLedger checks whether the state has it
	}
	if err := n.healMembership(); err != nil {
		return err
	}
	return n.belong()
}

// checkIdentity refuses a directory without an identity if the rest of a node is there:
// with new keys it would be another node that holds this one's votes.
func (n *Node) checkIdentity(machine string) error {
	_, err := identity.Load(n.conf.Dir, machine)
	if !errors.Is(err, identity.ErrNoIdentity) || n.freshLog && !usedBefore(n.conf.Dir) {
		return nil // other errors are reported by whoever loads it
	}
	return fmt.Errorf("identity.key is gone from %s, and this directory is a node's: put it back from a copy of this "+
		"machine's disk. "+
		"If there is none this node is lost: move the directory away, join with a new token, and on another member run "+
		"`selvage node remove` with the old node's name", n.conf.Dir)
}

// belong makes the node a member of its membership file's mesh.
func (n *Node) belong() (err error) {
	if n.member.Over {
		return ErrRevoked
	}
	if n.member.Met != nil {
		return n.member.Met.err()
	}
	n.belongTo(n.member.mesh())
	if !n.freshLog {
		return nil
	}
	n.log.Warn("the raft log is gone: coming back as a new incarnation")
	n.keys, err = identity.Reincarnate(n.conf.Dir, n.machine())
	return err
}

func (n *Node) openLedger(context.Context) error {
	rules := rules.Handlers()
	if wrap := n.conf.Faults.Rules; wrap != nil {
		for kind, h := range rules {
			rules[kind] = wrap(kind, h)
		}
	}
	conf := ledger.Config{
		Span: n.store.Span(spanState), Mux: rules, Authorize: people.Authorize, Gate: govern.Weigh, Prefetch: people.Prefetch,
		Level: n.conf.Level, Clock: n.conf.Wall, Logger: n.log, Faults: n.conf.Faults.Ledger,
	}
	if n.small {
		conf.RowCacheBytes, conf.DecodedBytes, conf.ReadCacheBytes = smallRowCacheBytes, smallDecodedBytes,
			smallReadCacheBytes
	}
	l, err := ledger.Open(conf)
	if err != nil {
		return err
	}
	n.ledger = l
	n.opened("ledger", l.Close)
	if err := n.regainMembership(); err != nil {
		return err
	}
	n.keyring = newKeyring(n.keys)
	n.roster = newRoster(n.member.Roster)
	return nil
}

func (n *Node) openTransport(context.Context) error {
	conn := n.conf.Conn
	if conn == nil {
		addr, err := net.ResolveUDPAddr("udp", n.conf.Mesh)
		if err != nil {
			return err
		}
		if conn, err = net.ListenUDP("udp", addr); err != nil {
			return fmt.Errorf("peer port (another node may have it; choose one with --mesh): %w", err)
		}
	}
	n.setAdvertise(advertised(n.conf.Advertise, conn.LocalAddr()))
	t, err := transport.Open(transport.Config{
		Conn: conn, Keys: n.keys, Logger: n.log,
		Mesh:      n.Mesh,
		Epoch:     n.epoch,
		OnEpoch:   n.onEpoch,
		Member:    n.roster.member,
		Admission: n.admission,
		Resolve:   n.resolve,
		PSK:       n.joinKey,
		OnJoin:    n.onJoin,
		Genesis:   n.genesisShown,
		OnAsk:     n.onAsk,
		OnRevoked: func(identity.NodeID) { kick(n.doubted) },
	})
	if err != nil {
		conn.Close()
		return err
	}
	n.transport = t
	n.opened("transport", t.Close)
	return nil
}

func (n *Node) openDiscovery(ctx context.Context) error {
	if n.conf.Profile == ProfileSingle {
		return nil // there is nobody to be found
	}
	epoch, _, gossip := n.keyring.current()
	d, err := discovery.Open(discovery.Config{
		Port: n.transport.Gossip(), Advertise: n.advertised(), Dir: n.conf.Dir, Logger: n.log,
		Keys:   []discovery.Key{{Epoch: epoch, Key: gossip}},
		Member: n.roster.isMember,
		Seeds:  n.conf.Seeds,
		Late:   n.pulse.Late,
		Hints:  n.hints, Sighted: n.sightings, Connected: n.transport.Connected,
		Meta: discovery.Meta{
			Mesh: n.Mesh(), Node: n.keys.ID(), Incarnation: n.keys.Incarnation, Name: n.conf.Name, MeshName: n.meshName(),
			HTTP: n.boundHTTP(), Zone: n.conf.Labels["zone"], Program: shortVersion(n.conf.Version), Level: uint8(n.conf.Level),
		},
	})
	if err != nil {
		return err
	}
	n.discovery = d
	n.opened("discovery", d.Close)
	return nil
}

func (n *Node) openConsensus(context.Context) error {
	dial := func(kind transport.Kind) func(context.Context, identity.NodeID) (net.Conn, error) {
		return func(ctx context.Context, to identity.NodeID) (net.Conn, error) {
			return n.transport.Dial(ctx, to, kind)
		}
	}
	conf := consensus.Config{
		ServerID: n.keys.ServerID(), Span: n.store.Span(spanRaft), Dir: snapshotDir(n.conf), FS: n.conf.FS,
		State:    consensus.LedgerState(n.ledger),
		DialRaft: dial(transport.KindRaft), DialPropose: dial(transport.KindPropose),
		Verify: n.checkBatch, Time: n.ledger.Time, Wall: n.conf.Wall, MayLead: n.clocks.mayLead,
		Member: n.roster.isMember, Alive: n.alive, Peers: n.peers, MayVote: n.mayVote,
		OnFatal: n.stopWith, OnDiverged: n.diverged, ElectionTimeout: n.election, Late: n.pulse.Late,
		Logger: n.log, Faults: n.conf.Faults.Consensus,
	}
	if n.small {
		conf.SnapshotBytes, conf.LogCacheBytes = smallSnapshotBytes, smallLogCacheBytes
	}
	if n.conf.TuneConsensus != nil {
		n.conf.TuneConsensus(&conf)
	}
	c, err := consensus.Open(conf)
	if err != nil {
		return err
	}
	n.consensus = c
	n.opened("consensus", c.Close)
	n.transport.Handle(transport.KindRaft, c.AcceptRaft)
	n.transport.Handle(transport.KindPropose, c.AcceptPropose)
	n.transport.Handle(transport.KindIPC, n.serveIPC)
	n.transport.Handle(transport.KindRunLog, n.serveRunLog)
	n.transport.Handle(transport.KindSync, n.serveSync)
	if err := n.transport.Start(); err != nil {
		return err
	}
	n.proposer = consensus.NewProposer(consensus.ProposerConfig{
		Node: n.keys.ID(), Mesh: n.Mesh, Sign: n.keys.Sign,
		Propose: c.Propose, OpenSession: consensus.SessionOpener(n.keys.ID(), n.keys.Incarnation), Logger: n.log,
	})
	n.opened("proposer", n.proposer.Close)
	n.spawn(n.followRoster)
	n.spawn(n.rotateKeys)
	n.spawn(n.announce)
	n.spawn(n.catchUp)
	n.spawn(n.followAddress)
	n.spawn(n.followLAN)
	n.spawn(n.keepTime)
	n.spawn(n.tendBlobs)
	if n.healing != nil {
		n.spawn(n.heal)
	}
	n.spawn(n.scrub)
	if n.conf.Backups.Every > 0 {
		n.spawn(n.backUp)
	}
	n.opened("followers", func() error { n.endSpawned(); return nil })
	return nil
}

// Close stops the node in order: no new work, running work ended, leadership
// transferred, then everything closed in the reverse order of opening.
func (n *Node) Close() error {
	n.once.Do(func() {
		n.lives(kernel.ShuttingDown)
		var errs []error
		for i := len(n.parts) - 1; i >= 0; i-- {
			if err := n.parts[i].close(); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", n.parts[i].name, err))
			}
		}
		n.endSpawned()
		if n.gaveUp.Load() {
			if err := n.putBack(); err != nil {
				errs = append(errs, fmt.Errorf("put the store back: %w", err))
			}
		}
		n.lives(kernel.Halted)
		n.closed = errors.Join(errs...)
	})
	return n.closed
}

// Kill stops the node as if its process had died: it notifies nobody and transfers
// nothing. For tests; the caller has detached its disk and network.
func (n *Node) Kill() {
	if n.consensus != nil {
		n.consensus.Abort()
	}
	if err := n.Close(); err != nil {
		n.log.Debug("killed", "error", err)
	}
}

// Failed delivers the error with which the node can not go on; the caller must close the
// node.
func (n *Node) Failed() <-chan error { return n.failed }

func (n *Node) stopWith(err error) {
	n.log.Error("the node stops", "error", err)
	select {
	case n.failed <- err:
	default:
	}
}

// ID and Name identify the node.
func (n *Node) ID() identity.NodeID { return n.keys.ID() }
func (n *Node) Name() string        { return n.conf.Name }

// Mesh returns the node's mesh, "" while it belongs to none.
func (n *Node) Mesh() identity.MeshID {
	if m := n.mesh.Load(); m != nil {
		return *m
	}
	return ""
}

func (n *Node) belongTo(m identity.MeshID) { n.mesh.Store(&m) }

// IsLeader reports whether this node leads and may serve as leader.
func (n *Node) IsLeader() bool { return n.consensus.IsLeader() }

// Ledger returns the node's replica, for reading.
func (n *Node) Ledger() *ledger.Ledger { return n.ledger }

// advertised returns the address that others are told: the configured one, the socket's
// own, or for a socket on all interfaces the first that is up.
func advertised(configured netip.AddrPort, local net.Addr) netip.AddrPort {
	if configured.IsValid() {
		return configured
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().IsUnspecified() {
		return at
	}
	addrs, _ := net.InterfaceAddrs()
	fallback := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if ip := p.Addr().Unmap(); err == nil && ip.IsGlobalUnicast() {
			return netip.AddrPortFrom(ip, at.Port())
		}
	}
	return fallback
}
