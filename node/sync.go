package node

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/transport"
)

// A node that was away may not know the members admitted meanwhile, and so refuse even
// the current leader. It asks any member that it knows: on a stream of KindSync it
// writes one frame of type syncAsk, empty, and reads one of type syncRoster, the
// deterministic CBOR of a roster answer. A peer that connected with an admission
// certificate may use this stream only.
//
// On a stream that begins with a frame of type syncBlob, which carries a request of
// ledger/blob, a member fetches and sends blobs; raw bytes in the format of that package
// follow.
const (
	syncAsk    = 1
	syncRoster = 2
	syncBlob   = 3

	// A member asks another which nodes wait there for admission (empty; answered by
	// syncWaiting, deterministic CBOR of []waiting), or refuses one by its code (answered by
	// syncDone, empty).
	syncAsks    = 4
	syncWaiting = 5
	syncRefuse  = 6
	syncDone    = 7
)

// A rosterAnswer is a member's answer to a node that was away.
type rosterAnswer struct {
	Version uint64          `cbor:"1,keyasint"` // ledger.RosterVersion
	Nodes   []ledger.Node   `cbor:"2,keyasint"` // including revoked ones
	Wrapped ledger.NodeKeys `cbor:"3,keyasint,omitempty"`
	// Admissions admit the asking node, as in a join reply: a node that lost its own has no
	// other way to get them.
	Admissions []byte `cbor:"4,keyasint,omitempty"`
}

// serveSync serves one peer that catches up.
func (n *Node) serveSync(from identity.NodeID, c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(syncTimeout))
	typ, payload, err := transport.ReadFrameMax(c, maxSyncAsk)
	switch {
	case err == nil && typ == syncBlob && n.blobs != nil && n.roster.isMember(from):
		c.SetDeadline(time.Time{})
		n.blobs.Serve(c, payload)
		return
	case err == nil && (typ == syncAsks || typ == syncRefuse) && n.roster.isMember(from):
		n.serveAsks(c, typ, payload)
		return
	case err != nil || typ != syncAsk || len(payload) > 0:
		return
	}
	var a rosterAnswer
	err = n.ledger.View(func(tx *ledger.Tx) error {
		a = rosterAnswer{Version: ledger.RosterVersion(tx), Nodes: ledger.Roster(tx)}
		a.Wrapped, _ = ledger.WrappedFor(tx, from)
		return nil
	})
	if err != nil {
		return
	}
	if row, ok := n.roster.node(from); ok && row.Member() {
		if mine, err := n.chain(); err == nil {
			if admission, err := n.keys.Admit(n.Mesh(), row.Key, n.ledger.Position().Height); err == nil {
				a.Admissions = identity.EncodeAdmissions(append([]identity.Admission{admission}, mine...))
			}
		}
	}
	if err := transport.WriteFrame(c, syncRoster, ledger.Marshal(a)); err != nil {
		n.log.Debug("sync: answer", "peer", from.Short(), "error", err)
	}
}

// catchUp asks the known members for the roster while this node hears no leader, or has
// no admission: the leader may be a node that it does not know. If all known members
// were replaced it asks any node of the mesh, at the seeds and on the local network;
// these prove their membership by an admission that leads to a known node. If all
// answers say that this node was revoked, it was.
func (n *Node) catchUp(ctx context.Context) {
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.doubted:
			n.askAround(ctx)
		case <-tick.C:
			_, led := n.consensus.Leader()
			if _, err := n.chain(); !led || err != nil {
				n.askAround(ctx)
			}
		}
	}
}

// kick puts a token into a channel of capacity 1, if there is none.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// askAround asks all reachable nodes and accepts the first answer.
func (n *Node) askAround(ctx context.Context) {
	type way struct {
		dial    func(context.Context) (net.Conn, error)
		trusted bool // a member as far as this node knows
	}
	var ways []way
	for _, at := range n.strangers(ctx) {
		ways = append(ways, way{func(ctx context.Context) (net.Conn, error) {
			return n.transport.DialAt(ctx, at,
				transport.KindSync)
		}, false})
	}
	for _, id := range n.peers() {
		m, _ := n.roster.node(id)
		ways = append(ways, way{func(ctx context.Context) (net.Conn, error) {
			return n.transport.Dial(ctx, id,
				transport.KindSync)
		}, m.Member() && !m.Has(ledger.LabelUntrusted)})
	}
	// Nodes that have connected to this one, and proved their membership by an admission,
	// may know more: a founder that lost its state knows nobody.
	for _, p := range n.transport.Peers() {
		if !n.roster.isMember(p.ID) {
			ways = append(ways, way{func(ctx context.Context) (net.Conn, error) {
				return n.transport.Dial(ctx, p.ID,
					transport.KindSync)
			}, false})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	answers := make(chan rosterAnswer, 1)
	var g errgroup.Group
	g.SetLimit(syncParallel)
	var out atomic.Bool
	for _, w := range ways[:min(len(ways), maxSync)] {
		g.Go(func() error {
			a, err := askRoster(ctx, w.dial)
			if err != nil { // another node may answer
				if e, ok := errors.AsType[*transport.RefusedError](err); ok && w.trusted && e.ByPeer &&
					e.Reason == transport.Revoked {
					if !out.Swap(true) {
						time.AfterFunc(syncSecond, cancel) // do not wait for nodes that are down
					}
				}
				return nil
			}
			select {
			case answers <- a:
				cancel()
			default:
			}
			return nil
		})
	}
	g.Wait()
	select {
	case a := <-answers:
		if n.roster.learn(a.Nodes) && n.discovery != nil {
			n.discovery.RosterChanged()
		}
		n.readmit(a.Admissions)
		if a.Wrapped.Epoch > 0 && a.Wrapped.Node == n.ID() {
			n.takeKeys(a.Wrapped)
		}
	default:
		if out.Load() { // it missed its revocation, and no node accepts it any more
			n.expelled()
		}
	}
}

func askRoster(ctx context.Context, dial func(context.Context) (net.Conn, error)) (a rosterAnswer, err error) {
	c, err := dial(ctx)
	if err != nil {
		return a, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(syncTimeout))
	if err := transport.WriteFrame(c, syncAsk, nil); err != nil {
		return a, err
	}
	_, payload, err := transport.ReadFrameMax(c, maxMembership)
	if err != nil {
		return a, err
	}
	return a, ledger.Unmarshal(payload, &a)
}
