package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/selvage-mesh/selvage/identity"
)

// ErrTooFew says that a blob could not be brought to as many nodes as must have
// it before it is acknowledged.
var ErrTooFew = errors.New("too few nodes took the blob")

// Peers is what a keeper needs of the mesh.
type Peers interface {
	// Dial opens a stream to a peer and sends it a request.
	Dial(ctx context.Context, to identity.NodeID, request []byte) (net.Conn, error)
	// Live names the nodes that may have blobs and are seen alive, this one among
	// them, in any order.
	Live() []identity.NodeID
}

// Config is what a keeper needs. Zero values mean the defaults of the constants.
type Config struct {
	Store StoreConfig
	Self  identity.NodeID
	Peers Peers // nil: there is nobody else
	Gone  time.Duration
	Grace time.Duration
	Log   *slog.Logger // default: discards
}

// A Keeper is the blobs of the mesh, seen from one node. Its background copies
// end with Close.
type Keeper struct {
	*Store
	cfg     Config
	log     *slog.Logger
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // held while a goroutine is added to wg, and while ctx ends
	wg      sync.WaitGroup
	serving chan struct{}
	flights singleflight.Group
	count   counters

	seenMu sync.Mutex
	seen   map[identity.NodeID]time.Time // when a node was last alive, for Tend
}

type counters struct{ fetched, collected, surplus, served atomic.Uint64 }

// Stats are a keeper's figures since it was opened.
type Stats struct {
	Blobs   int
	Bytes   int64
	Damaged int // of Blobs: without a good copy to mend them from, up to now

	// Rotten counts what was found not to have its hash, Mended what of that was put
	// right with a peer's bytes.
	Fetched, Rotten, Mended, Collected, Surplus, Streams uint64
}

// Open opens the store in dir and a keeper on it.
func Open(dir string, cfg Config) (*Keeper, error) {
	s, err := OpenStore(dir, cfg.Store)
	if err != nil {
		return nil, err
	}
	cfg.Gone, cfg.Grace = cmp.Or(cfg.Gone, DefaultGone), cmp.Or(cfg.Grace, DefaultGrace)
	k := &Keeper{Store: s, cfg: cfg, log: cfg.Log, serving: make(chan struct{}, maxServing),
		seen: map[identity.NodeID]time.Time{}}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k, nil
}

// Close ends background copies and closes the store.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.cancel()
	k.mu.Unlock()
	k.wg.Wait()
	return k.Store.Close()
}

// spawn runs f until Close; afterwards it reports false and does nothing.
func (k *Keeper) spawn(f func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return false
	}
	k.wg.Go(f)
	return true
}

// Stats returns the figures.
func (k *Keeper) Stats() Stats {
	n, b := k.Usage()
	return Stats{Blobs: n, Bytes: b, Damaged: k.Damaged(), Fetched: k.count.fetched.Load(), Rotten: k.rotten.Load(),
		Mended:    k.mended.Load(),
		Collected: k.count.collected.Load(), Surplus: k.count.surplus.Load(), Streams: k.count.served.Load()}
}

// Serve answers one request of a peer and closes the connection. Too many at
// once are hung up on.
func (k *Keeper) Serve(c net.Conn, request []byte) {
	select {
	case k.serving <- struct{}{}:
		defer func() { <-k.serving }()
	default:
		c.Close()
		return
	}
	stop := context.AfterFunc(k.ctx, func() { c.Close() })
	defer stop()
	k.count.served.Add(1)
	err := k.Store.Serve(c, request)
	if d, ok := errors.AsType[*chunkError](err); ok { // the peer goes on with another; this one mends its own
		k.spawn(func() { _, _ = k.mend(d) })
	}
	if err != nil {
		k.log.Debug("blob: serve a peer", "error", err)
	}
}

func (k *Keeper) live() []identity.NodeID {
	if k.cfg.Peers == nil {
		return []identity.NodeID{k.cfg.Self}
	}
	return k.cfg.Peers.Live()
}

// call opens a stream with a request, for no longer than a stall.
func (k *Keeper) call(ctx context.Context, to identity.NodeID, r Request) (net.Conn, error) {
	if k.cfg.Peers == nil || to == k.cfg.Self {
		return nil, ErrMissing
	}
	ctx, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	return k.cfg.Peers.Dial(ctx, to, AppendRequest(nil, r))
}

// has asks a peer whether it has a blob. The peer does not look at the bytes, so this
// says where to read, and nothing may be given up for it; see intact.
func (k *Keeper) has(ctx context.Context, id identity.NodeID, d Digest) bool {
	if id == k.cfg.Self {
		return k.Has(d)
	}
	c, err := k.call(ctx, id, Request{Op: OpHas, Digest: d})
	if err != nil {
		return false
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	st, _, err := readHead(patient{c})
	return err == nil && st == statusHeld
}

// intact asks a peer whether it has a blob that is whole, which it hashes.
func (k *Keeper) intact(ctx context.Context, id identity.NodeID, ref Reference) bool {
	c, err := k.call(ctx, id, Request{Op: OpCheck, Digest: ref.Digest})
	if err != nil {
		return false
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if c.SetReadDeadline(time.Now().Add(stall+time.Duration(ref.Size/slowestDisk)*time.Second)) != nil {
		return false
	}
	st, _, err := readHead(c)
	return err == nil && st == statusHeld
}

// A Placement says where a blob is.
type Placement struct {
	Holders []identity.NodeID // synced there, this node first
	Wanted  int               // how many shall have it
}

// Spread brings a blob that this node has to those that shall have it. It
// returns once all of them have synced it, or a majority and the others take
// their time; they go on in the background. The error wraps ErrTooFew when there
// is no majority; with a single node alive, its own copy is all there can be.
func (k *Keeper) Spread(ctx context.Context, d Digest, size int64) (Placement, error) {
	rank := Rank(d, k.live())
	p := Placement{Wanted: Copies(len(rank))}
	if slices.Contains(rank, k.cfg.Self) {
		p.Holders = append(p.Holders, k.cfg.Self)
	}
	enough := majority(p.Wanted)
	done := make(chan identity.NodeID, len(rank)) // "" for one that failed
	next := slices.DeleteFunc(slices.Clone(rank), func(id identity.NodeID) bool { return id == k.cfg.Self })
	// Those of the first that are not this node; it is one copy in any case.
	open := p.Wanted
	if slices.Contains(rank[:p.Wanted], k.cfg.Self) {
		open--
	}
	under := 0
	start := func() {
		id := next[0]
		next = next[1:]
		if k.spawn(func() {
			if err := k.bring(id, d, size); err != nil {
				k.log.Warn("blob: bring a copy to a peer", "peer", id.Short(), "error", err)
				id = ""
			}
			done <- id
		}) {
			under++
		}
	}
	for range open {
		start()
	}
	var late <-chan time.Time
	for under > 0 {
		select {
		case id := <-done:
			under--
			if id != "" {
				p.Holders = append(p.Holders, id)
			} else if len(next) > 0 {
				start()
			}
			if late == nil && len(p.Holders) >= enough {
				late = time.After(patience)
			}
		case <-late:
			return p, nil
		case <-ctx.Done():
			if len(p.Holders) >= enough {
				return p, nil
			}
			return p, fmt.Errorf("%w: %d of %d: %w", ErrTooFew, len(p.Holders), enough, ctx.Err())
		}
	}
	if len(p.Holders) < enough {
		return p, fmt.Errorf("%w: %d of %d", ErrTooFew, len(p.Holders), enough)
	}
	return p, nil
}

func (k *Keeper) bring(id identity.NodeID, d Digest, size int64) error {
	c, err := k.call(k.ctx, id, Request{Op: OpPut, Digest: d, Length: uint64(size)})
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(k.ctx, func() { c.Close() })
	defer stop()
	return k.put(c, d, size)
}

// sources names the peers that may have a blob, the likeliest first.
func (k *Keeper) sources(ref Reference) []identity.NodeID {
	live := k.live()
	var out []identity.NodeID
	for _, id := range append(Rank(ref.Digest, live), ref.Hints...) {
		if id != k.cfg.Self && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out[:min(len(out), maxTries)]
}

// fetch brings a copy to this node. Many may ask for the same at once.
func (k *Keeper) fetch(ctx context.Context, ref Reference) error {
	_, err, _ := k.flights.Do(ref.Digest.String(), func() (any, error) {
		errs := []error{ErrMissing}
		for _, id := range k.sources(ref) {
			c, err := k.call(ctx, id, Request{Op: OpGet, Digest: ref.Digest, Length: uint64(ref.Size)})
			if err != nil {
				errs = append(errs, err)
				continue
			}
			stop := context.AfterFunc(ctx, func() { c.Close() })
			err = k.Store.fetch(c, ref.Digest)
			stop()
			c.Close()
			if err == nil {
				k.count.fetched.Add(1)
				return nil, nil
			}
			errs = append(errs, err)
			if errors.Is(err, ErrFull) || ctx.Err() != nil {
				break
			}
		}
		return nil, errors.Join(errs...)
	})
	return err
}

// steady are the nodes that copies are planned for: those alive, and those that
// were a moment ago, which may only be starting again.
func (k *Keeper) steady(now time.Time) (out []identity.NodeID) {
	k.seenMu.Lock()
	defer k.seenMu.Unlock()
	for _, id := range k.live() {
		k.seen[id] = now
	}
	for id, at := range k.seen {
		if now.Sub(at) > k.cfg.Gone {
			delete(k.seen, id)
			continue
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Tend looks after this node's blobs once, given all that the state refers to:
// it fetches what this node shall have and does not, gives up what others shall
// have and have whole, and throws away what nothing refers to. Nothing is
// thrown away while the state that refs come from is not current.
func (k *Keeper) Tend(ctx context.Context, refs []Reference, current bool) {
	now := time.Now()
	if lost, err := k.Renew(); err != nil {
		k.log.Error("blob: look for the files", "error", err)
	} else if lost > 0 {
		k.log.Error("blob: files are gone and are fetched anew", "files", lost)
	}
	nodes := k.steady(now)
	var missing []Reference
	var surplus []Reference
	wanted := map[Digest]bool{}
	for _, ref := range refs {
		if wanted[ref.Digest] {
			continue
		}
		wanted[ref.Digest] = true
		rank := Rank(ref.Digest, nodes)
		mine, have := slices.Contains(rank[:Copies(len(rank))], k.cfg.Self), k.Has(ref.Digest)
		switch {
		case mine && !have && len(missing) < maxRepairs:
			missing = append(missing, ref)
		case !mine && have && len(surplus) < maxRepairs:
			surplus = append(surplus, ref)
		}
	}
	for _, ref := range missing {
		if ctx.Err() != nil {
			return
		}
		if err := k.fetch(ctx, ref); err != nil {
			k.log.Warn("blob: fetch a copy", "digest", ref.Digest.String(), "error", err)
		}
	}
	if !current {
		return
	}
	before := now.Add(-k.cfg.Grace)
	for _, d := range k.List() {
		if !wanted[d] && k.Remove(d, before) {
			k.count.collected.Add(1)
		}
	}
	for _, ref := range surplus {
		if k.heldBy(ctx, ref, Rank(ref.Digest, nodes)) && k.Remove(ref.Digest, before) {
			k.count.surplus.Add(1)
		}
	}
}

// heldBy reports whether all that shall have a blob have it whole: what is given up for
// that may be the last good copy.
func (k *Keeper) heldBy(ctx context.Context, ref Reference, rank []identity.NodeID) bool {
	for _, id := range rank[:Copies(len(rank))] {
		if !k.intact(ctx, id, ref) {
			return false
		}
	}
	return true
}
