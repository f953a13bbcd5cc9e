package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/selvage-mesh/selvage/identity"
)

// A contact is what is known about reaching one node. All fields are guarded
// by the transport's mutex.
type contact struct {
	addrs    []netip.AddrPort // latest first, at most maxAddrs
	failures int              // dials in a row that came to nothing
	next     time.Time        // no dial before
	dialling *dialling        // the one under way, or nil
	arrived  chan struct{}    // closed and replaced when a connection was registered
	news     chan struct{}    // holds one token when an address was learned
}

// A dialling is one attempt to connect, shared by all who wait for it.
type dialling struct {
	done chan struct{}
	err  error // set before done is closed
}

// contact returns the contact of a node; t.mu is held.
func (t *Transport) contact(id identity.NodeID) *contact {
	c := t.contacts[id]
	if c == nil {
		if len(t.contacts) >= maxContacts {
			t.forgetOne()
		}
		c = &contact{arrived: make(chan struct{}), news: make(chan struct{}, 1)}
		t.contacts[id] = c
	}
	return c
}

// forgetOne drops a contact that nobody uses.
func (t *Transport) forgetOne() {
	for id, c := range t.contacts {
		if c.dialling == nil && len(t.peers[id]) == 0 {
			delete(t.contacts, id)
			return
		}
	}
}

// reached notes that the node was met at addr.
func (c *contact) reached(addr netip.AddrPort) {
	c.learn(addr)
	c.failures, c.next = 0, time.Time{}
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// learn puts addr first and reports whether it is new.
func (c *contact) learn(addr netip.AddrPort) bool {
	if !addr.IsValid() || addr.Port() == 0 {
		return false
	}
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	i := slices.Index(c.addrs, addr)
	if i >= 0 {
		c.addrs = slices.Delete(c.addrs, i, i+1)
	}
	c.addrs = slices.Insert(c.addrs, 0, addr)
	c.addrs = c.addrs[:min(len(c.addrs), maxAddrs)]
	return i < 0
}

// Learn tells where a node may be. It need not be true: the handshake shows who
// answers. A new address is tried at once when a dial waits for its next attempt.
func (t *Transport) Learn(id identity.NodeID, addr netip.AddrPort) {
	if id == t.cfg.Keys.ID() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.contact(id)
	if c.learn(addr) {
		c.next = time.Time{}
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
}

// Dial opens a stream of a kind to a node, on a connection that exists or on a
// new one. It waits for the pause after failed attempts (at most 2 s, less when
// the node calls here), so that a caller may simply dial again. Errors: a
// [RefusedError] (reasons Revoked, NotAllowed, Unknown …), [ErrNoAddress],
// [ErrSelf], [ErrClosed], ctx's, or the network's. A refusal of the stream
// itself by the peer is reported by its first Read or Write.
func (t *Transport) Dial(ctx context.Context, to identity.NodeID, kind Kind) (net.Conn, error) {
	s, err := t.dial(ctx, to, kind)
	if err != nil {
		return nil, fmt.Errorf("dial %s for %v: %w", to.Short(), kind, err)
	}
	return s, nil
}

// DialAt opens a stream of a kind to the member at an address, whoever that is. One
// that the roster does not have is given KindSync only.
func (t *Transport) DialAt(ctx context.Context, at netip.AddrPort, kind Kind) (net.Conn, error) {
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	s, err := t.openVia(ctx, kind, func() (*peer, error) { return t.peerAt(ctx, at) })
	if err != nil {
		return nil, fmt.Errorf("dial %v for %v: %w", at, kind, err)
	}
	return s, nil
}

func (t *Transport) dial(ctx context.Context, to identity.NodeID, kind Kind) (*stream, error) {
	return t.openVia(ctx, kind, func() (*peer, error) { return t.peer(ctx, to) })
}

// openVia opens a stream on the connection that find returns. One that turns
// out to have just ended is forgotten, and find asked once more.
func (t *Transport) openVia(ctx context.Context, kind Kind, find func() (*peer, error)) (*stream, error) {
	for again := true; ; again = false {
		p, err := find()
		if err != nil {
			return nil, err
		}
		s, err := t.openOn(ctx, p, kind)
		if err == nil || !again || ctx.Err() != nil || !ended(err) {
			return s, err
		}
		t.unregister(p)
	}
}

// ended reports whether a stream could not be opened because its connection is
// over, for reasons that need not hold for the next one.
func ended(err error) bool {
	e, ok := errors.AsType[*RefusedError](err)
	return !ok || e.ByPeer && (e.Reason == Closing || e.Reason == Superseded || e.Reason == TooSlow)
}

func (t *Transport) openOn(ctx context.Context, p *peer, kind Kind) (*stream, error) {
	switch p.standing() {
	case revoked:
		return nil, refuse(Revoked, "node %s", p.id.Short())
	case limited:
		if kind != KindSync {
			return nil, refuse(NotAllowed, "%s is not on the roster here yet", p.id.Short())
		}
	}
	return p.open(ctx, kind)
}

// Send puts a frame on the control channel to a node, dialling when there is
// none. typ is at most [MaxControlType]. It returns when the frame is queued;
// frames arrive in order, but those of a connection that breaks are lost.
func (t *Transport) Send(ctx context.Context, to identity.NodeID, typ byte, payload []byte) error {
	if typ > MaxControlType || len(payload) > MaxFrame {
		return fmt.Errorf("send to %s: %w: type %#x, %d bytes", to.Short(), ErrFrameTooLarge, typ, len(payload))
	}
	p := t.newest(to)
	if p == nil {
		var err error
		if p, err = t.peer(ctx, to); err != nil {
			return fmt.Errorf("send to %s: %w", to.Short(), err)
		}
	}
	if !p.mayControl() {
		return fmt.Errorf("send to %s: %w", to.Short(), refuse(NotAllowed, "it is not on the roster here"))
	}
	if err := p.out.add(ctx, typ, payload, false); err != nil {
		return fmt.Errorf("send to %s: %w", to.Short(), err)
	}
	t.count.controlSent.Add(1)
	return nil
}

// peer returns a connection to a node that seems to work, dialling if needed.
func (t *Transport) peer(ctx context.Context, id identity.NodeID) (*peer, error) {
	if id == t.cfg.Keys.ID() {
		return nil, ErrSelf
	}
	if _, revoked, _ := t.cfg.Member(id); revoked {
		return nil, refuse(Revoked, "node %s", id.Short())
	}
	old := t.newest(id)
	if old == nil {
		return t.connect(ctx, id, 0)
	}
	p, err := t.better(ctx, old, func(ctx context.Context) (*peer, error) { return t.connect(ctx, id, old.serial) })
	if err != nil && !old.gone() {
		return old, nil // there is no better way
	}
	return p, err
}

// better returns a connection that works: old, or the one that dial makes where old does not
// answer. Old may only be slow, and on a slow path or machine a new connection takes several
// times as long as an answer, so whichever comes first is taken.
func (t *Transport) better(ctx context.Context, old *peer, dial func(context.Context) (*peer, error)) (*peer, error) {
	yes, late := old.answers(ctx)
	if yes {
		return old, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var made *peer
	var err error
	done := make(chan struct{})
	t.spawn(func() {
		defer close(done)
		made, err = dial(ctx)
	})
	select {
	case <-done:
	case <-late:
		return old, nil
	case <-t.ctx.Done():
		return nil, ErrClosed
	}
	return made, err
}

// connect waits for a connection to id that was registered after the given
// serial, and sees to it that somebody dials.
func (t *Transport) connect(ctx context.Context, id identity.NodeID, after uint64) (*peer, error) {
	for {
		t.mu.Lock()
		if t.closed {
			t.mu.Unlock()
			return nil, ErrClosed
		}
		if p := t.newestLocked(id); p != nil && p.serial > after {
			t.mu.Unlock()
			return p, nil
		}
		c := t.contact(id)
		d := c.dialling
		if d == nil {
			d = &dialling{done: make(chan struct{})}
			c.dialling = d
			t.wg.Go(func() { t.reach(id, c, d) })
		}
		arrived := c.arrived
		t.mu.Unlock()
		select {
		case <-arrived:
		case <-d.done:
			if d.err != nil {
				return nil, d.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reach makes one attempt for all who wait: the pause, then every address.
func (t *Transport) reach(id identity.NodeID, c *contact, d *dialling) {
	called, err := t.pause(c)
	if err == nil && !called {
		err = t.attempt(id, c)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		wait := min(backoffMin<<min(c.failures, 16), backoffMax)
		c.next = time.Now().Add(wait/2 + rand.N(wait/2+1)) // jitter keeps peers from dialling in step
		c.failures++
	}
	d.err = err
	c.dialling = nil
	close(d.done)
}

// pause waits until the next attempt is due, an address is learned, or the node
// has called here, so that no attempt is needed.
func (t *Transport) pause(c *contact) (called bool, err error) {
	t.mu.Lock()
	wait, arrived := time.Until(c.next), c.arrived
	t.mu.Unlock()
	if wait <= 0 {
		return false, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-arrived:
		return true, nil
	case <-timer.C:
	case <-c.news:
	case <-t.ctx.Done():
		return false, ErrClosed
	}
	return false, nil
}

// attempt tries the addresses of a node, each a little after the one before,
// and registers the first connection that is the node's.
func (t *Transport) attempt(id identity.NodeID, c *contact) error {
	t.mu.Lock()
	addrs := slices.Clone(c.addrs)
	t.mu.Unlock()
	for _, a := range t.cfg.Resolve(id) {
		if a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port()); !slices.Contains(addrs, a) && len(addrs) < 2*maxAddrs {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return ErrNoAddress
	}
	ctx, cancel := context.WithTimeout(t.ctx, 3*t.cfg.HandshakeTimeout)
	defer cancel()
	p, err := t.race(ctx, addrs, id)
	if err != nil {
		return err
	}
	return t.welcomeBack(p)
}

// welcomeBack registers and serves a connection that this node opened.
func (t *Transport) welcomeBack(p *peer) error {
	t.count.dialled.Add(1)
	if err := t.register(p); err != nil {
		p.close(Busy)
		return err
	}
	t.spawn(p.run)
	return nil
}

// race dials addresses until one answers as it should; the others are closed.
func (t *Transport) race(ctx context.Context, addrs []netip.AddrPort, want identity.NodeID) (*peer, error) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		p   *peer
		err error
	}
	results := make(chan result, len(addrs))
	failed := make(chan struct{}, len(addrs))
	t.spawn(func() {
		// Starts the attempts, one after the other unless the one before failed.
		for _, a := range addrs {
			t.spawn(func() {
				p, err := t.dialAddr(ctx, a, want)
				results <- result{p, err}
				failed <- struct{}{}
			})
			timer := time.NewTimer(stagger)
			select {
			case <-timer.C:
			case <-failed:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	})
	var problems []error
	for i := range addrs {
		var r result
		select {
		case r = <-results:
		case <-t.ctx.Done():
			cancel()
			return nil, ErrClosed
		}
		if r.err == nil {
			cancel()
			t.spawn(func() { // whoever else arrived, too late
				for range len(addrs) - 1 - i {
					select {
					case r := <-results:
						if r.err == nil {
							r.p.close(Closing)
						}
					case <-t.ctx.Done():
						return
					}
				}
			})
			return r.p, nil
		}
		problems = append(problems, r.err)
	}
	cancel()
	return nil, worst(problems)
}

// worst returns the refusal that says most, or all errors.
func worst(problems []error) error {
	for _, err := range problems {
		if e, ok := errors.AsType[*RefusedError](err); ok && e.Reason != WrongPeer && e.Reason != Closing {
			return err
		}
	}
	return errors.Join(problems...)
}

// dialAddr opens and authenticates a connection to whoever is at addr, who must
// be want unless that is "". It is not registered yet.
func (t *Transport) dialAddr(ctx context.Context, addr netip.AddrPort, want identity.NodeID) (*peer, error) {
	conn, err := t.quic.Dial(ctx, net.UDPAddrFromAddrPort(addr), t.tls, t.quicConf)
	if err != nil {
		t.count.dialFailures.Add(1)
		return nil, fmt.Errorf("%v: %w", addr, byPeer(err))
	}
	p, err := t.greet(ctx, conn, want)
	if err != nil {
		t.count.dialFailures.Add(1)
		t.giveUp(conn, err)
		return nil, fmt.Errorf("%v: %w", addr, err)
	}
	return p, nil
}

// giveUp closes a connection whose handshake failed on this side.
func (t *Transport) giveUp(conn *quic.Conn, err error) {
	why := Closing
	if e, ok := errors.AsType[*RefusedError](err); ok {
		t.count.refusing(e)
		if !e.ByPeer {
			why = e.Reason
		}
	}
	conn.CloseWithError(quic.ApplicationErrorCode(why), "")
}

// greet runs the dialler's handshake.
func (t *Transport) greet(ctx context.Context, conn *quic.Conn, want identity.NodeID) (*peer, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	stop := t.bound(ctx, s)
	defer stop()
	sh, err := t.shake(conn, hello{pattern: patternXX})
	if err != nil {
		return nil, err
	}
	var byCert bool
	who, rec, err := sh.initiate(s, func(p party) (err error) {
		if id := identity.NodeIDOf(p.cert.Node); want != "" && id != want {
			return refuse(WrongPeer, "node %s answered", id.Short())
		}
		byCert, err = t.judge(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := accepted(rec); err != nil {
		return nil, err
	}
	return t.newPeer(conn, s, rec, identity.NodeIDOf(who.cert.Node), byCert, true), nil
}

// bound gives a handshake its time, less when ctx ends before.
func (t *Transport) bound(ctx context.Context, s *quic.Stream) (stop func()) {
	s.SetDeadline(time.Now().Add(t.cfg.HandshakeTimeout))
	cancel := context.AfterFunc(ctx, func() { s.SetDeadline(time.Now()) })
	return func() {
		if cancel() {
			s.SetDeadline(time.Time{})
		}
	}
}

// accepted reads the responder's yes, the first frame of the control channel.
// A no is the end of the connection, with its reason.
func accepted(rec *records) error {
	typ, b, err := ReadFrameMax(rec, 256)
	if err != nil {
		return cutShort(err)
	}
	if typ != ctlAccept || len(b) < 2 || b[0] != 1 {
		return refuse(Malformed, "accept")
	}
	return nil
}
