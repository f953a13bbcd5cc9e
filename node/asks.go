package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/transport"
)

// errRefusedHere is the answer to a node that a person refused; that node stops.
var errRefusedHere = errors.New("a person refused this node")

// A waiting is a node that asked one member for admission and waits for a person. Only
// that member has it, in memory; the other members request it.
type waiting struct {
	Code  string         `cbor:"1,keyasint"`
	Node  ledger.NewNode `cbor:"2,keyasint"`
	Addr  string         `cbor:"3,keyasint"` // its address
	Asked int64          `cbor:"4,keyasint"` // ms since 1970, by the member's clock
	Until int64          `cbor:"5,keyasint"`

	decided chan error // nil: it was admitted
}

// asks are the nodes that wait at this node.
type asks struct {
	mu      sync.Mutex
	waits   map[identity.NodeID]*waiting
	refused map[identity.NodeID]time.Time
	tokens  float64 // of the bucket that limits requests from all sources
	at      time.Time
}

func (a *asks) add(w *waiting, from netip.Addr, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == nil {
		a.waits, a.refused, a.tokens, a.at = map[identity.NodeID]*waiting{}, map[identity.NodeID]time.Time{}, askBurst, now
	}
	id := identity.NodeIDOf(w.Node.Key)
	if now.Sub(a.refused[id]) < askRefused {
		return errRefusedHere
	}
	a.tokens = min(askBurst, a.tokens+now.Sub(a.at).Seconds()/askEvery.Seconds())
	a.at = now
	if a.tokens < 1 {
		return errors.New("too many requests, try again later")
	}
	a.tokens--
	same := 0
	for other, o := range a.waits {
		if was, err := netip.ParseAddr(o.Addr); err == nil && other != id && source(was) == source(from) {
			same++
		}
	}
	old := a.waits[id]
	if same >= maxAsksFrom || old == nil && len(a.waits) >= maxAsks {
		return errors.New("too many nodes wait already, try again later")
	}
	if old != nil {
		old.decided <- errors.New("the node asks anew")
	}
	a.waits[id] = w
	return nil
}

// source is the unit of the limits per source: an IPv4 address or an IPv6 /64.
func source(ip netip.Addr) netip.Prefix {
	bits := 32
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}

func (a *asks) remove(w *waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id := identity.NodeIDOf(w.Node.Key); a.waits[id] == w {
		delete(a.waits, id)
	}
}

// settle answers the waiting nodes that have become members.
func (a *asks) settle(r *roster) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, w := range a.waits {
		if r.isMember(id) {
			w.decided <- nil
			delete(a.waits, id)
		}
	}
}

// refuse ends a wait permanently. It returns false if nobody waits here with that code.
func (a *asks) refuse(code string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, w := range a.waits {
		if w.Code != code {
			continue
		}
		if len(a.refused) >= maxRefused {
			clear(a.refused)
		}
		a.refused[id] = now
		w.decided <- errRefusedHere
		delete(a.waits, id)
		return true
	}
	return false
}

func (a *asks) list() (out []waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.waits {
		c := *w
		c.decided = nil
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b waiting) int { return strings.Compare(a.Code, b.Code) })
	return out
}

// genesisShown returns the genesis that a node asking for admission sees: nil before
// this node is in a mesh that could admit it.
func (n *Node) genesisShown() []byte {
	if height, _ := n.ledger.Head(); height == 0 {
		return nil
	}
	return n.member.Genesis
}

// onAsk receives the request of a node on the local network.
func (n *Node) onAsk(a transport.Asked) (func(context.Context) ([]byte, error), error) {
	if n.lan == nil || !onLink(a.Addr.Addr()) {
		return nil, errors.New("this member takes no requests from there")
	}
	var node ledger.NewNode
	if err := ledger.Unmarshal(a.Request, &node); err != nil || !a.From.Node.Equal(asKey(node.Key)) {
		return nil, errors.New("malformed join request")
	}
	row, err := node.Check()
	if err != nil {
		return nil, err
	}
	if was, ok := n.roster.node(row.ID); ok && was.Member() { // it was admitted and missed the answer
		return func(context.Context) ([]byte, error) { return n.welcome(row.ID) }, nil
	}
	now := n.conf.Wall()
	w := &waiting{Code: a.Code, Node: node, Addr: a.Addr.Addr().Unmap().WithZone("").String(), Asked: now.UnixMilli(),
		Until: now.Add(askAge).UnixMilli(), decided: make(chan error, 2)}
	if err := n.asks.add(w, a.Addr.Addr(), now); err != nil {
		return nil, err
	}
	n.log.Info("a node asks to be let in", "node", row.ID.Short(), "name", row.Name, "from", w.Addr, "code", w.Code)
	return func(ctx context.Context) ([]byte, error) {
		defer n.asks.remove(w)
		ctx, cancel := context.WithTimeout(ctx, askAge)
		defer cancel()
		select {
		case <-n.ctx.Done():
			return nil, errors.New("this member stops")
		case <-ctx.Done():
			return nil, errors.New("nobody has decided")
		case err := <-w.decided:
			if err != nil {
				return nil, err
			}
			return n.welcome(row.ID)
		}
	}, nil
}

// welcome returns the answer to a node that is in the roster.
func (n *Node) welcome(id identity.NodeID) (reply []byte, err error) {
	var row ledger.Node
	var wrapped ledger.NodeKeys
	err = n.ledger.View(func(tx *ledger.Tx) error {
		row, _ = ledger.FindNode(tx, id)
		wrapped, _ = ledger.WrappedFor(tx, id)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case row.ID != id || !row.Member() || wrapped.Node != id:
		return nil, errors.New("the node is no member")
	}
	return n.vouch(row.Key, row.AdmittedAt, wrapped)
}

// serveAsks answers another member that lists or refuses the nodes waiting here.
func (n *Node) serveAsks(c net.Conn, typ byte, payload []byte) {
	var err error
	if typ == syncAsks {
		err = transport.WriteFrame(c, syncWaiting, ledger.Marshal(n.asks.list()))
	} else {
		n.asks.refuse(string(payload), n.conf.Wall())
		err = transport.WriteFrame(c, syncDone, nil)
	}
	if err != nil {
		n.log.Debug("sync: answer", "error", err)
	}
}

// everyAsk sends a request to all other nodes that are alive, at once, and to this one.
func (n *Node) everyAsk(ctx context.Context, typ byte, payload []byte) (out []waiting) {
	ctx, cancel := context.WithTimeout(ctx, asksTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	if typ == syncAsks {
		out = n.asks.list()
	} else {
		n.asks.refuse(string(payload), n.conf.Wall())
	}
	live := n.others()
	for _, m := range live[:min(len(live), maxAsked)] {
		wg.Go(func() {
			c, err := n.transport.Dial(ctx, m.Meta.Node, transport.KindSync)
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(asksTimeout))
			if transport.WriteFrame(c, typ, payload) != nil {
				return
			}
			got, b, err := transport.ReadFrameMax(c, maxFrame)
			var there []waiting
			if err != nil || got != syncWaiting || ledger.Unmarshal(b, &there) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, there[:min(len(there), maxAsks)]...)
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b waiting) int { return strings.Compare(a.Code, b.Code) })
	return out
}

// maxAsked bounds the members that are asked for their waiting nodes.
const maxAsked = 256

// JoinRequests lists the nodes that wait for admission at any member.
func (n *Node) JoinRequests(ctx context.Context) (out []api.JoinRequest) {
	for _, w := range n.everyAsk(ctx, syncAsks, nil) {
		if row, err := w.Node.Check(); err == nil {
			out = append(out, api.JoinRequest{Code: w.Code, Node: row.ID, Name: row.Name, Labels: row.Labels, Address: w.Addr,
				Asked: w.Asked, Until: w.Until})
		}
	}
	return out
}

// Approve admits the node that shows a code, on behalf of the actor by.
func (n *Node) Approve(ctx context.Context, by ledger.Actor, with ledger.Credential,
	code string) (identity.NodeID, error) {
	var found []waiting
	for _, w := range n.everyAsk(ctx, syncAsks, nil) {
		if w.Code == code {
			found = append(found, w)
		}
	}
	switch {
	case len(found) == 0:
		return "", ledger.Refuse(ledger.NotFound, nil, "No node waits with the code %s", code)
	case len(found) > 1:
		return "", ledger.Refuse(ledger.Conflict, nil,
			"More than one node shows the code %s: refuse it, and let the right one ask again", code)
	}
	_, _, err := n.admit(ctx, ledger.NodeAdmit{Node: found[0].Node}, by, with)
	return identity.NodeIDOf(found[0].Node.Key), err
}

// Refuse refuses the node that shows a code. It returns false if there is none.
func (n *Node) Refuse(ctx context.Context, code string) bool {
	if !slices.ContainsFunc(n.everyAsk(ctx, syncAsks, nil), func(w waiting) bool { return w.Code == code }) {
		return false
	}
	n.everyAsk(ctx, syncRefuse, []byte(code))
	return true
}
