package node

import (
	"context"
	"crypto/ed25519"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A roster is a copy of the members in memory: transport and discovery read it for every
// packet. It follows the feed. Members that the state does not have yet, such as the
// node that admitted this one while it catches up from an older snapshot, come from the
// reports of other nodes.
type roster struct {
	byID atomic.Pointer[map[identity.NodeID]ledger.Node]

	reading sync.Mutex // held while the state is read and set, see refresh

	mu      sync.Mutex                      // guards the fields below
	state   []ledger.Node                   // from the state
	learned map[identity.NodeID]ledger.Node // reported by members while this node was behind
}

func newRoster(told []ledger.Node) *roster {
	r := &roster{learned: map[identity.NodeID]ledger.Node{}}
	r.publish()
	r.learn(told)
	return r
}

// set replaces the members of the state, which take precedence over reported ones.
func (r *roster) set(nodes []ledger.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = nodes
	for _, n := range nodes {
		delete(r.learned, n.ID)
	}
	r.publish()
}

// refresh sets the members that read finds in the state, unless there are none. It
// returns the previous members. It runs one read at a time, so that an earlier read
// never overwrites a later one.
func (r *roster) refresh(read func() []ledger.Node) (before map[identity.NodeID]ledger.Node, known bool) {
	r.reading.Lock()
	defer r.reading.Unlock()
	nodes := read()
	if len(nodes) == 0 {
		return nil, false
	}
	before = r.all()
	r.set(nodes)
	return before, true
}

// learn adds nodes that the state does not have yet, and revocations that it has not
// seen. It reports whether anything was new.
func (r *roster) learn(nodes []ledger.Node) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range nodes {
		was, known := (*r.byID.Load())[n.ID]
		if identity.NodeIDOf(n.Key) == n.ID && (!known || was.Member() && !n.Member()) {
			r.learned[n.ID] = n
			news = true
		}
	}
	if news {
		r.publish()
	}
	return news
}

func (r *roster) publish() {
	m := make(map[identity.NodeID]ledger.Node, len(r.state)+len(r.learned))
	for _, n := range r.state {
		m[n.ID] = n
	}
	for id, n := range r.learned {
		m[id] = n
	}
	r.byID.Store(&m)
}

// member answers transport about a node.
func (r *roster) member(id identity.NodeID) (key ed25519.PublicKey, revoked, known bool) {
	n, ok := (*r.byID.Load())[id]
	return n.Key, !n.Member(), ok
}

func (r *roster) isMember(id identity.NodeID) bool {
	n, ok := (*r.byID.Load())[id]
	return ok && n.Member()
}

func (r *roster) node(id identity.NodeID) (ledger.Node, bool) {
	n, ok := (*r.byID.Load())[id]
	return n, ok
}

// all returns the nodes in no order. The map is replaced, never changed.
func (r *roster) all() map[identity.NodeID]ledger.Node { return *r.byID.Load() }

// followRoster updates the roster and the keyring from the state, and handles
// revocations.
func (n *Node) followRoster(ctx context.Context) {
	after := n.refreshRoster()
	for ctx.Err() == nil {
		for e, err := range n.ledger.Entries(ctx, after) {
			if err != nil {
				break
			}
			after = e.Height
			n.tally.see(e)
			if concernsReplicas(e.Kind) {
				kick(n.replicaNews)
			}
			if e.Kind == replica.KindReport || e.Kind == app.KindSettle {
				kick(n.appNews)
			}
			if publishes(e) {
				n.topicNews.Ring()
			}
			if touchesRoster(e.Kind) {
				after = max(after, n.refreshRoster())
			}
		}
		select { // a snapshot was installed, or the ledger is closed
		case <-ctx.Done():
		case <-time.After(rosterRetry):
			n.topicNews.Ring()
			after = n.refreshRoster()
		}
	}
}

// disconnect closes the connections with a revoked node, after a moment in which it may
// learn of the revocation.
func (n *Node) disconnect(ctx context.Context, id identity.NodeID) {
	select {
	case <-ctx.Done():
	case <-time.After(revokeGrace):
		n.transport.Disconnect(id)
		if n.discovery != nil {
			n.discovery.RosterChanged()
		}
	}
}

func touchesRoster(kind string) bool {
	return strings.HasPrefix(kind, "node.") || kind == ledger.KindGenesis || kind == ledger.KindEpoch ||
		kind == ledger.KindKeysRotate
}

// A membersView is the members at one height of the state.
type membersView struct {
	height uint64 // of the newest entry in the state
	nodes  []ledger.Node
	keys   ledger.NodeKeys // wrapped for one of the members
}

func membersOf(tx *ledger.Tx, self identity.NodeID) (v membersView) {
	v.height, v.nodes = tx.Position().Height, ledger.Roster(tx)
	v.keys, _ = ledger.WrappedFor(tx, self)
	return v
}

// refreshRoster reads the members and keys from the state. It returns their height.
func (n *Node) refreshRoster() (height uint64) {
	var v membersView
	before, known := n.roster.refresh(func() []ledger.Node {
		err := n.ledger.View(func(tx *ledger.Tx) error { v = membersOf(tx, n.ID()); return nil })
		if err != nil || n.alone.Load() {
			return nil
		}
		return v.nodes
	})
	if !known {
		return v.height
	}
	n.asks.settle(n.roster)
	if n.discovery != nil {
		n.discovery.RosterChanged()
	}
	for _, m := range v.nodes {
		if was := before[m.ID]; !m.Member() && was.Member() {
			if m.ID == n.ID() {
				n.expelled()
				continue
			}
			n.spawn(func(ctx context.Context) { n.disconnect(ctx, m.ID) })
		}
	}
	if v.keys.Epoch > 0 {
		n.takeKeys(v.keys)
	}
	n.remember(v)
	return v.height
}

// remember schedules a write of the current members and keys to the membership file. A
// node that loses its state learns from it which nodes to ask for another.
func (n *Node) remember(v membersView) {
	n.saving.Lock()
	n.known = &v
	n.saving.Unlock()
	if n.remembering.Swap(true) {
		return // the scheduled write saves this too
	}
	n.spawn(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rememberAfter):
		}
		n.remembering.Store(false)
		n.saving.Lock()
		defer n.saving.Unlock()
		if err := n.saveMember(); err != nil {
			n.log.Error("remember the members", "error", err)
		}
	})
}
