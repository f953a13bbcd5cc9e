package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/selvage-mesh/selvage/identity"
)

// A Transport is a node's side of everything between peers. Register handlers
// with Handle, then Start it; Close ends it.
type Transport struct {
	cfg      Config
	aes      bool
	cert     identity.Certificate // of this node's Noise key
	tls      *tls.Config
	quic     *quic.Transport
	quicConf *quic.Config
	handlers [numKinds]func(identity.NodeID, net.Conn)
	gossip   *GossipPort
	gate     gate
	count    counters

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	started chan struct{} // closed by Start, after which handlers do not change
	wg      sync.WaitGroup

	mu       sync.Mutex
	listener *quic.Listener // nil before Start
	closed   bool
	peers    map[identity.NodeID][]*peer // registered, oldest first
	conns    int                         // of all peers
	serial   uint64
	contacts map[identity.NodeID]*contact
}

// Open takes the socket over. Dial, Join and gossip's DialStream work at once;
// connections, and streams that peers open on the dialled ones, are not accepted
// before Start.
func Open(cfg Config) (*Transport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	t := &Transport{
		cfg:      cfg,
		aes:      hasAES() && !cfg.NoAES,
		cert:     cfg.Keys.Certificate(identity.ForNoise),
		gate:     gate{from: map[netip.Prefix]int{}},
		peers:    map[identity.NodeID][]*peer{},
		contacts: map[identity.NodeID]*contact{},
		started:  make(chan struct{}),
	}
	var err error
	if t.tls, err = tlsConfig(t.aes); err != nil {
		return nil, err
	}
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.quicConf = &quic.Config{
		HandshakeIdleTimeout:  cfg.HandshakeTimeout,
		MaxIdleTimeout:        cfg.IdleTimeout,
		MaxIncomingStreams:    int64(cfg.MaxStreams) + 1, // and the control channel
		MaxIncomingUniStreams: -1,
	}
	reset := quic.StatelessResetKey(cfg.StatelessResetKey)
	t.quic = &quic.Transport{
		Conn:                cfg.Conn,
		StatelessResetKey:   &reset,
		VerifySourceAddress: t.gate.suspicious,
		ConnContext:         t.admit,
		Tracer:              junkCounter{&t.count},
	}
	t.gossip = newGossipPort(t)
	t.handlers[KindGossip] = t.gossip.take
	return t, nil
}

// junkCounter counts the datagrams that quic-go drops because they belong to
// no connection and are no attempt at one.
type junkCounter struct{ count *counters }

func (j junkCounter) RecordEvent(e qlogwriter.Event) {
	if _, ok := e.(qlog.PacketDropped); ok {
		j.count.junk.Add(1)
	}
}

func (j junkCounter) Close() error { return nil }

// Handle registers what takes streams of a kind; call it before Start, once for
// each kind but KindGossip and KindJoin. f runs in a goroutine of its own, may
// keep the stream after it returned, and must close it in the end. It must
// return when the stream fails, because Close waits for it.
func (t *Transport) Handle(kind Kind, f func(from identity.NodeID, c net.Conn)) {
	if kind == 0 || kind >= numKinds || kind == KindGossip || kind == KindJoin || t.handlers[kind] != nil {
		panic("transport: no (second) handler for " + kind.String())
	}
	t.handlers[kind] = f
}

// Start lets peers in. Gossip packets that came before are lost.
func (t *Transport) Start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if t.listener != nil {
		return errors.New("transport is started already")
	}
	l, err := t.quic.Listen(t.tls, t.quicConf)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	t.listener = l
	close(t.started)
	t.wg.Go(func() { t.acceptLoop(l) })
	t.wg.Go(t.gossip.read)
	t.wg.Go(t.tend)
	return nil
}

// Addr is the address of the socket.
func (t *Transport) Addr() net.Addr { return t.cfg.Conn.LocalAddr() }

// spawn runs f in a goroutine that Close waits for; after Close it does nothing.
func (t *Transport) spawn(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.wg.Go(f)
	}
}

// Close tells all peers, ends every connection, closes the socket and waits
// until all goroutines have stopped, handlers included. It may be called twice,
// but not by a handler.
func (t *Transport) Close() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	l := t.listener
	var peers []*peer
	for _, ps := range t.peers {
		peers = append(peers, ps...)
	}
	t.mu.Unlock()
	var err error
	if first {
		t.stop()
		if l != nil {
			err = l.Close()
		}
		for _, p := range peers {
			p.close(Closing)
		}
		err = errors.Join(err, t.quic.Close(), t.cfg.Conn.Close())
	}
	t.wg.Wait()
	return err
}

func (t *Transport) acceptLoop(l *quic.Listener) {
	for {
		conn, err := l.Accept(t.ctx)
		if err != nil {
			if t.ctx.Err() == nil {
				t.cfg.Logger.Error("the peer port takes no connections any more", "err", err)
			}
			return
		}
		t.spawn(func() { t.accept(conn) })
	}
}

// accept authenticates one incoming connection and serves it until it ends.
func (t *Transport) accept(conn *quic.Conn) {
	ps := conn.Context().Value(passKey{}).(*pass)
	ps.mu.Lock()
	ps.tls = true
	ps.mu.Unlock()
	p, err := t.welcome(conn, ps.leave)
	ps.leave()
	if err != nil {
		t.turnAway(conn, err)
		return
	}
	if p != nil {
		p.run()
	}
}

// welcome runs the responder's handshake. It returns no peer and no error when
// the connection was a join that is over. A node that waits for a person calls
// leave, which gives up its place among those that shake hands.
func (t *Transport) welcome(conn *quic.Conn, leave func()) (*peer, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.HandshakeTimeout)
	defer cancel()
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	s.SetDeadline(time.Now().Add(t.cfg.HandshakeTimeout))
	sh, err := t.shake(conn, hello{})
	if err != nil {
		return nil, err
	}
	var byCert bool
	who, h, rec, err := sh.respond(s, t.pskOf, func(h hello, p party) (err error) {
		switch h.pattern {
		case patternXX:
			byCert, err = t.judge(p)
		case patternAsk:
			err = t.mayAsk(p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	switch h.pattern {
	case patternJoin:
		return nil, t.serveJoin(conn, rec, who.cert, h.tokenID)
	case patternAsk:
		return nil, t.serveAsk(conn, rec, who.cert, leave)
	}
	p := t.newPeer(conn, s, rec, identity.NodeIDOf(who.cert.Node), byCert, false)
	yes := []byte{1, 0}
	if byCert {
		yes[1] = 1
	}
	s.SetDeadline(time.Time{})
	if err := p.out.add(t.ctx, ctlAccept, yes, true); err != nil {
		return nil, err
	}
	t.count.accepted.Add(1)
	return p, t.register(p)
}

// shake prepares this side of a handshake on conn.
func (t *Transport) shake(conn *quic.Conn, h hello) (shake, error) {
	state := conn.ConnectionState().TLS
	exporter, err := state.ExportKeyingMaterial(exporterLabel, nil, exporterBytes)
	if err != nil {
		return shake{}, fmt.Errorf("export keying material: %w", err)
	}
	return shake{
		keys:     t.cfg.Keys,
		self:     encodeParty(t.cfg.Mesh(), t.cfg.Epoch(), t.cert, t.cfg.Admission()),
		exporter: exporter,
		aes:      state.NegotiatedProtocol == protoAES,
		hello:    h,
	}, nil
}

// turnAway closes a connection that did not become a peer, and counts why.
func (t *Transport) turnAway(conn *quic.Conn, err error) {
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		e = refuse(TooSlow, "%v", err)
		if t.ctx.Err() != nil {
			e.Reason = Closing
		}
	}
	t.count.refusing(e)
	conn.CloseWithError(quic.ApplicationErrorCode(e.Reason), "")
	t.cfg.Logger.Debug("connection refused", "from", conn.RemoteAddr().String(), "err", e)
}

// refuseStream resets a stream that no handler gets, and counts why.
func (t *Transport) refuseStream(s *stream, e *RefusedError) {
	t.count.refusing(e)
	s.finish(e.Reason)
	t.cfg.Logger.Debug("stream refused", "from", s.peer.id.Short(), "err", e)
}

// register makes p the connection that dials to its node use, wakes who waits
// for one, and puts older ones on probation.
func (t *Transport) register(p *peer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return refuse(Closing, "")
	}
	if t.conns >= maxPeerConns {
		return refuse(Busy, "%d connections", t.conns)
	}
	older := t.peers[p.id]
	t.serial++
	p.serial = t.serial
	t.peers[p.id] = append(older, p)
	t.conns++
	t.cfg.Logger.Debug("peer connected", "peer", p.id.Short(), "addr", p.conn.RemoteAddr().String(), "outgoing",
		p.outgoing, "limited", p.byCert.Load())
	c := t.contact(p.id)
	c.reached(addrPort(p.conn.RemoteAddr()))
	spare := len(older) - maxConnsPerPeer + 1
	for _, o := range older {
		if spare > 0 && o.streams.Load() == 0 {
			spare--
			t.wg.Go(func() { o.close(Superseded) })
		}
	}
	for _, o := range older[:max(0, spare)] { // all in use: the oldest has to go
		t.wg.Go(func() { o.close(Superseded) })
	}
	for _, o := range older {
		if o.displaced.CompareAndSwap(0, o.signs.now()) {
			t.wg.Go(o.ping)
		}
	}
	return nil
}

func (t *Transport) unregister(p *peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ps := t.peers[p.id]
	i := slices.Index(ps, p)
	if i < 0 {
		return
	}
	t.conns--
	if ps = slices.Delete(slices.Clone(ps), i, i+1); len(ps) == 0 {
		delete(t.peers, p.id)
	} else {
		t.peers[p.id] = ps
	}
}

func (t *Transport) noteEnd(p *peer, err error) {
	err = byPeer(err)
	if e, ok := errors.AsType[*RefusedError](err); ok && e.Reason != Closing {
		t.count.refusing(e)
		if e.ByPeer && e.Reason == Revoked && p.standing() == member {
			t.cfg.OnRevoked(p.id)
		}
	}
	t.cfg.Logger.Debug("peer disconnected", "peer", p.id.Short(), "after", time.Since(p.since), "err", err)
}

// Connected returns where the newest working connection to a node leads, if there
// is one. That need not be where the node says it is: it may be on several networks.
func (t *Transport) Connected(id identity.NodeID) (netip.AddrPort, bool) {
	p := t.newest(id)
	if p == nil {
		return netip.AddrPort{}, false
	}
	return addrPort(p.conn.RemoteAddr()), true
}

// newest returns the newest working connection to a node, or nil.
func (t *Transport) newest(id identity.NodeID) *peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newestLocked(id)
}

func (t *Transport) newestLocked(id identity.NodeID) *peer {
	for _, p := range slices.Backward(t.peers[id]) {
		if !p.gone() {
			return p
		}
	}
	return nil
}

// Latency returns the round-trip time to a node, as its newest connection has measured it
// of late; ok is false without a connection, and before the first measurement.
func (t *Transport) Latency(id identity.NodeID) (d time.Duration, ok bool) {
	p := t.newest(id)
	if p == nil {
		return 0, false
	}
	d = p.conn.ConnectionStats().SmoothedRTT
	return d, d > 0
}

// Disconnect ends all connections with a node, for example because it was
// revoked. Whether it may come back is for the roster.
func (t *Transport) Disconnect(id identity.NodeID) {
	why := Closing
	if _, revoked, _ := t.cfg.Member(id); revoked {
		why = Revoked
	}
	t.mu.Lock()
	ps := t.peers[id]
	t.mu.Unlock()
	for _, p := range ps {
		p.close(why)
	}
}

// tend looks after connections: it pings peers in use, and closes connections
// that do not answer, also when something still arrives on them (a cut in one
// direction), and those of nodes that were revoked.
func (t *Transport) tend() {
	tick := time.NewTicker(min(t.cfg.KeepAlive/2, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		var all []*peer
		for _, ps := range t.peers {
			all = append(all, ps...)
		}
		t.mu.Unlock()
		for _, p := range all {
			t.tendOne(p)
		}
	}
}

func (t *Transport) tendOne(p *peer) {
	since := p.signs.since
	asked, displaced := p.asked.Load(), p.displaced.Load()
	switch {
	case p.standing() == revoked:
		t.count.refusing(refuse(Revoked, ""))
		p.close(Revoked)
	case displaced != 0 && p.signs.last.Load() < displaced && since(displaced) > supersedeAfter:
		p.close(Superseded)
	case asked != 0 && since(asked) > t.cfg.IdleTimeout:
		t.count.refusing(refuse(TooSlow, ""))
		p.close(TooSlow)
	case p.streams.Load() > 0 && since(p.pinged.Load()) >= t.cfg.KeepAlive:
		p.ping()
	}
}
