package discovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/selvage-mesh/selvage/identity"
)

// ErrClosed says that discovery was closed.
var ErrClosed = errors.New("discovery is closed")

// Discovery is a node's part in gossip. Its goroutines: run keeps the member
// table and the peer cache, seek looks for peers, announce sends changed
// metadata, the wire's takes packets, and two for each last call. memberlist has
// its own; after Close they end by themselves within a probe.
type Discovery struct {
	config Config
	keys   *keyring
	inbox  *inbox
	table  *table
	count  counters

	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	done       sync.WaitGroup
	unanswered chan *call    // to run
	roster     chan struct{} // to run: it changed
	resync     chan struct{} // to seek: exchange tables
	changed    chan struct{} // to announce: the metadata changed

	closing sync.Mutex // held by Leave and Close, one after the other
	closed  bool
	left    bool

	updating sync.Mutex // memberlist's UpdateNode is not made for two at a time

	list  atomic.Pointer[memberlist.Memberlist] // SetAdvertise replaces it
	wire  atomic.Pointer[wire]                  // of list
	at    atomic.Pointer[netip.AddrPort]        // where others reach this node
	moved chan struct{}                         // to run: whoever was alive has to be found anew
	now   chan struct{}                         // to seek: look at once

	mu     sync.Mutex // guards the following
	self   Meta
	meta   []byte                             // self, encoded
	cache  peerCache                          // written by run
	claims map[identity.NodeID]netip.AddrPort // addresses that memberlist refused; written by run
}

// Open starts gossip and the search for peers; it does not wait for either.
func Open(c Config) (*Discovery, error) {
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	keys, err := newKeyring(c.Keys)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	meta, err := c.Meta.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	d := &Discovery{
		config: c, keys: keys, inbox: newInbox(), table: newTable(),
		unanswered: make(chan *call),
		roster:     make(chan struct{}, 1),
		resync:     make(chan struct{}, 1),
		changed:    make(chan struct{}, 1),
		moved:      make(chan struct{}, 1),
		now:        make(chan struct{}, 1),
		self:       c.Meta, meta: meta,
		cache:  peerCache{},
		claims: make(map[identity.NodeID]netip.AddrPort),
	}
	if c.Dir != "" {
		cache, skipped, err := loadCache(c.Dir, c.Meta.Mesh)
		if err != nil || skipped > 0 {
			d.count.cacheSkipped.Add(uint64(max(skipped, 1)))
			c.Logger.Warn("peer cache is damaged; using what can be read", "skipped", skipped, "error", err)
		}
		d.cache = cache
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if err := d.gossipAs(c.Advertise); err != nil {
		d.cancel()
		return nil, fmt.Errorf("discovery: %w", err)
	}
	d.done.Go(d.run)
	d.done.Go(d.seek)
	d.done.Go(d.announce)
	return d, nil
}

// gossipAs starts memberlist as reached at an address.
func (d *Discovery) gossipAs(at netip.AddrPort) error {
	d.at.Store(&at)
	w := newWire(d.config.Port, d.keys, at, &d.count, d.elsewhere)
	list, err := memberlist.Create(memberlistConfig(d, w))
	if err != nil {
		return errors.Join(err, w.Shutdown())
	}
	d.list.Store(list)
	d.wire.Store(w)
	return nil
}

// elsewhere is where a connection to the node leads that says it is at an address,
// if it leads somewhere else. Who is on several networks tells of one address, which
// not everybody reaches.
func (d *Discovery) elsewhere(addr string) (netip.AddrPort, bool) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.AddrPort{}, false
	}
	id, ok := d.table.at(unmap(at))
	if !ok {
		return netip.AddrPort{}, false
	}
	to, ok := d.config.Connected(id)
	return to, ok && to != unmap(at)
}

// SetAdvertise tells the others that this node is reached at another address. For
// memberlist that is another life of the node: everybody counts as failed until
// they are heard again, which is looked for at once.
func (d *Discovery) SetAdvertise(at netip.AddrPort) error {
	at = unmap(at)
	if !usable(at) {
		return fmt.Errorf("%v can not be advertised to peers", at)
	}
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed || d.left {
		return ErrClosed
	}
	if at == *d.at.Load() {
		return nil
	}
	err := d.list.Load().Shutdown()
	if err := errors.Join(err, d.gossipAs(at)); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	offer(d.moved)
	return nil
}

// Seek looks for peers now.
func (d *Discovery) Seek() { offer(d.now) }

// run copies memberlist's news into the table and keeps the cache.
func (d *Discovery) run() {
	last := make(map[identity.NodeID]news) // memberlist's last word on each node
	calls := make(map[identity.NodeID]*call)
	save := time.NewTimer(cacheDelay)
	save.Stop()
	dirty := false
	defer func() {
		save.Stop()
		for _, m := range d.Live() {
			d.learn(m.Meta.Node, m.Addr) // it was seen until now
		}
		d.save()
	}()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.inbox.ring:
			latest, conflicts := d.inbox.take()
			for id, a := range conflicts {
				d.claim(id, a)
			}
			for id, n := range latest {
				last[id] = n
				if d.hear(n, calls) && !dirty {
					dirty = true
					save.Reset(cacheDelay)
				}
			}
		case <-d.roster:
			for id, n := range last {
				_, listed := d.table.get(id)
				switch member := d.config.Member(id); {
				case member && !listed && !n.gone:
					d.hear(n, calls)
				case !member && listed:
					d.endCall(id, calls)
					d.table.remove(id)
				}
			}
			offer(d.resync)
		case <-d.moved:
			for _, m := range d.Live() {
				d.endCall(m.Meta.Node, calls)
				d.enter(m, Failed)
			}
			d.Seek()
		case c := <-d.unanswered:
			if id := c.member.Meta.Node; calls[id] == c {
				d.endCall(id, calls)
				d.enter(c.member, Failed)
			}
		case <-save.C:
			dirty = false
			d.save()
		}
	}
}

// hear takes memberlist's word on a node into the table, or makes a last call
// first. It reports whether the peer cache learned something.
func (d *Discovery) hear(n news, calls map[identity.NodeID]*call) bool {
	id := n.meta.Node
	if id == d.config.Meta.Node || !d.config.Member(id) {
		return false
	}
	m := Member{Meta: n.meta, Addr: n.addr}
	if !n.gone {
		d.endCall(id, calls)
		d.enter(m, Live)
		return d.learn(id, n.addr)
	}
	old, known := d.table.get(id)
	switch {
	case known && old.State != Live, calls[id] != nil:
	case n.meta.Leaving:
		d.enter(m, Left)
	case !known, len(calls) >= maxCalls:
		d.enter(m, Failed)
	default:
		d.count.doubtful.Add(1)
		ctx, cancel := context.WithCancel(d.ctx)
		c := &call{m, cancel}
		calls[id] = c
		d.done.Go(func() { d.lastCall(ctx, c) })
	}
	return false
}

func (d *Discovery) endCall(id identity.NodeID, calls map[identity.NodeID]*call) {
	if c := calls[id]; c != nil {
		c.cancel()
		delete(calls, id)
	}
}

// enter puts m into the table as s.
func (d *Discovery) enter(m Member, s State) {
	old, known := d.table.get(m.Meta.Node)
	m.State, m.Since = s, old.Since
	if !known || old.State != s {
		m.Since = time.Now()
		count := map[State]interface{ Add(uint64) uint64 }{Live: &d.count.joined, Left: &d.count.left,
			Failed: &d.count.failed}
		count[s].Add(1)
		d.config.Logger.Info("member "+s.String(), "node", string(m.Meta.Node), "name", m.Meta.Name, "addr", m.Addr.String())
	}
	d.table.put(m)
}

func (d *Discovery) learn(id identity.NodeID, a netip.AddrPort) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.claims, id)
	return d.cache.learn(id, a, time.Now())
}

func (d *Discovery) claim(id identity.NodeID, a netip.AddrPort) {
	if id != d.config.Meta.Node && d.config.Member(id) {
		d.mu.Lock()
		d.claims[id] = a
		d.mu.Unlock()
	}
}

func (d *Discovery) save() {
	if d.config.Dir == "" {
		return
	}
	// Only run writes to the cache, so it may be read here without the lock.
	if err := saveCache(d.config.Dir, d.config.Meta.Mesh, d.cache); err != nil {
		d.config.Logger.Warn("peer cache not written", "error", err)
	}
}

// announce sends the node's metadata when it has changed.
func (d *Discovery) announce() {
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.changed:
			d.update(time.Millisecond)
		}
	}
}

// update gossips the present metadata and waits for at most so long until it
// was sent often enough.
func (d *Discovery) update(atMost time.Duration) {
	d.updating.Lock()
	defer d.updating.Unlock()
	if err := d.list.Load().UpdateNode(atMost); err != nil {
		d.config.Logger.Debug("metadata is still on its way", "error", err)
	}
}

// offer puts a token into a channel of capacity 1, if there is none.
func offer(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// SetMeta changes what this node tells about itself and returns before others
// have heard. The node and the mesh can not change. The error may be an
// ErrMetaTooLarge; then nothing has changed.
func (d *Discovery) SetMeta(m Meta) error {
	if m.Node != d.config.Meta.Node || m.Mesh != d.config.Meta.Mesh {
		return fmt.Errorf("%w: of another node or mesh", ErrMeta)
	}
	d.mu.Lock()
	m.Leaving = d.self.Leaving
	b, err := m.MarshalBinary()
	if err == nil {
		d.self, d.meta = m, b
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	offer(d.changed)
	return nil
}

// Self returns this node's entry.
func (d *Discovery) Self() Member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Member{Meta: d.self, Addr: *d.at.Load(), State: Live}
}

// Members returns what is known of the other members, in any state, by ID.
func (d *Discovery) Members() []Member { return d.table.list() }

// Live returns the other members that are believed to live, by ID.
func (d *Discovery) Live() []Member {
	live, _ := d.split()
	return live
}

// Member returns what is known of a node other than this one.
func (d *Discovery) Member(id identity.NodeID) (Member, bool) { return d.table.get(id) }

// Alive reports whether the node is believed to live; this one does.
func (d *Discovery) Alive(id identity.NodeID) bool {
	m, ok := d.table.get(id)
	return id == d.config.Meta.Node || ok && m.State == Live
}

// Events yields a Join for each live member and then what changes, until ctx or
// discovery ends. A slow reader holds nobody up: it is told the difference
// between what it was told last and what is true now.
func (d *Discovery) Events(ctx context.Context) iter.Seq[Event] { return d.table.events(ctx) }

// Addresses returns where a node may be, the best guess first: what it gossips,
// what it claims against an older entry, the peer cache, where it was sighted. Whoever is there has
// to prove who it is.
func (d *Discovery) Addresses(id identity.NodeID) []netip.AddrPort {
	var as []netip.AddrPort
	if m, ok := d.table.get(id); ok {
		as = append(as, m.Addr)
	}
	d.mu.Lock()
	if a, ok := d.claims[id]; ok {
		as = append(as, a)
	}
	as = append(as, d.cache[id].Addrs...)
	d.mu.Unlock()
	as = append(as, d.config.Sighted(id)...)
	var unique []netip.AddrPort
	for _, a := range as {
		if !slices.Contains(unique, a) {
			unique = append(unique, a)
		}
	}
	return unique
}

// RosterChanged tells that Config.Member may now answer otherwise: members that
// are none any more leave the table, new ones are looked for.
func (d *Discovery) RosterChanged() { offer(d.roster) }

// AddKey accepts packets that are sealed with a further epoch's key. The error
// is an ErrKeys when there are MaxKeys already.
func (d *Discovery) AddKey(k Key) error { return d.keys.add(k) }

// UseKey seals with the key of an epoch that was added. All members should have
// added it before.
func (d *Discovery) UseKey(epoch uint64) error { return d.keys.use(epoch) }

// RemoveKey forgets an epoch that is not used. All members should use another
// before.
func (d *Discovery) RemoveKey(epoch uint64) error { return d.keys.remove(epoch) }

// KeyEpochs returns the epochs that are accepted, the one in use first.
func (d *Discovery) KeyEpochs() []uint64 { return d.keys.epochs() }

// Leave tells the others that this node goes on purpose, so that nobody has to
// find out, and waits until they were told, at most two updateTimeouts.
// Close follows.
func (d *Discovery) Leave() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return ErrClosed
	}
	if d.left {
		return nil
	}
	d.left = true
	d.mu.Lock()
	d.self.Leaving = true
	b, err := d.self.MarshalBinary()
	if err == nil {
		d.meta = b
	}
	d.mu.Unlock()
	d.update(updateTimeout)
	if err = errors.Join(err, d.list.Load().Leave(updateTimeout)); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// Close ends gossip at once; to others it looks like a crash, unless Leave came
// first. It waits and can be called again.
func (d *Discovery) Close() error {
	d.closing.Lock()
	defer d.closing.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.cancel()
	err := d.list.Load().Shutdown()
	d.done.Wait()
	d.table.end()
	return err
}

// Stats are counts since Open, and what is now.
type Stats struct {
	Live, Failed int // members now

	Joins, Leaves, Failures uint64
	Doubts, Spared          uint64 // last calls made; answered
	Garbage                 uint64 // packets that no key opens
	Dropped                 uint64 // packets that memberlist did not take in time
	Unsent                  uint64 // packets that the socket refused
	RefusedStreams          uint64 // above the limit
	Strangers               uint64 // alive messages of nodes that are not in the roster
	Foreign                 uint64 // messages of another mesh's nodes
	BadMeta                 uint64 // metadata that can not be read or used
	CacheSkipped            uint64 // lines of the peer cache that could not be read
	Health                  int    // memberlist's awareness score: 0 is healthy
}

// Stats returns the present numbers.
func (d *Discovery) Stats() Stats {
	live, failed := d.split()
	c := &d.count
	return Stats{
		Live: len(live), Failed: len(failed),
		Joins: c.joined.Load(), Leaves: c.left.Load(), Failures: c.failed.Load(),
		Doubts: c.doubtful.Load(), Spared: c.spared.Load(),
		Garbage: c.garbage.Load(), Dropped: c.dropped.Load(), Unsent: c.unsent.Load(),
		RefusedStreams: c.refused.Load(),
		Strangers:      c.strangers.Load(), Foreign: c.foreign.Load(), BadMeta: c.badMeta.Load(),
		CacheSkipped: c.cacheSkipped.Load(),
		Health:       d.list.Load().GetHealthScore(),
	}
}
