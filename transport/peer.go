package transport

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/selvage-mesh/selvage/identity"
)

// A peer is one authenticated connection. There may be several to one node: a
// dial uses the newest, the others end when they fall idle.
type peer struct {
	t        *Transport
	id       identity.NodeID
	conn     *quic.Conn
	rec      *records
	out      *outbox
	signs    *signs
	outgoing bool
	since    time.Time
	serial   uint64 // order of registration; guarded by t.mu

	byCert    atomic.Bool  // not on our roster when that was asked last
	streams   atomic.Int32 // open now, in both directions, without the control channel
	displaced atomic.Int64 // when a newer connection took its place, by signs.now; 0 for never
	pinged    atomic.Int64 // when the last ping was sent
	asked     atomic.Int64 // when the oldest ping without a pong was sent; 0 for none
	trusted   atomic.Int64 // until when the roster need not be asked for a control frame
}

// standing says what a peer may do now.
type standing int

const (
	member  standing = iota // everything
	limited                 // KindSync
	revoked                 // nothing any more
)

// standing asks the roster again, which may have moved since the handshake. A
// peer that it does not have (yet, or any more: this node may have fallen
// behind what it knew) is limited, never cut off.
func (p *peer) standing() standing {
	_, out, known := p.t.cfg.Member(p.id)
	p.byCert.Store(!known)
	switch {
	case out:
		return revoked
	case known:
		return member
	}
	return limited
}

// mayControl reports whether the peer is a member, as the roster said at most
// rosterAge ago: control frames are too many to ask for each.
func (p *peer) mayControl() bool {
	now := p.signs.now()
	if now < p.trusted.Load() {
		return true
	}
	if p.standing() != member {
		return false
	}
	p.trusted.Store(now + int64(rosterAge))
	return true
}

// judge decides whether a party may be a peer, and whether only its admission
// speaks for it.
func (t *Transport) judge(p party) (byCert bool, err error) {
	mesh := t.cfg.Mesh()
	switch {
	case mesh == "":
		return false, refuse(Unknown, "this node has no mesh yet")
	case p.mesh != mesh:
		return false, refuse(WrongMesh, "mesh %s", p.mesh.Short())
	}
	id := identity.NodeIDOf(p.cert.Node)
	switch _, out, known := t.cfg.Member(id); {
	case out:
		return false, refuse(Revoked, "node %s", id.Short())
	case known:
		return false, t.judgeEpoch(id, id, p.epoch)
	}
	err = identity.VerifyAdmissions(p.admissions, mesh, p.cert.Node, t.cfg.Member)
	switch {
	case errors.Is(err, identity.ErrRevoked):
		return false, refuse(Revoked, "node %s: %v", id.Short(), err)
	case err != nil:
		return false, refuse(Unknown, "node %s", id.Short())
	}
	return true, t.judgeEpoch(id, t.voucher(p.admissions), p.epoch)
}

// voucher is the member on the roster that a verified chain rests on.
func (t *Transport) voucher(chain []identity.Admission) (id identity.NodeID) {
	for _, a := range chain {
		id = identity.NodeIDOf(a.Admitter)
		if _, _, known := t.cfg.Member(id); known {
			break
		}
	}
	return id
}

// judgeEpoch turns away a node of another epoch, and tells of a later one.
func (t *Transport) judgeEpoch(from, known identity.NodeID, epoch uint64) error {
	own := t.cfg.Epoch()
	if epoch == own {
		return nil
	}
	if epoch > own {
		t.cfg.OnEpoch(from, known, epoch)
	}
	return refuse(OtherEpoch, "node %s is in epoch %d of the mesh, this one in %d", from.Short(), epoch, own)
}

// newPeer makes the peer of an authenticated connection.
func (t *Transport) newPeer(conn *quic.Conn, ctl *quic.Stream, rec *records, id identity.NodeID, byCert,
	outgoing bool) *peer {
	p := &peer{t: t, id: id, conn: conn, rec: rec, signs: &signs{epoch: time.Now()}, outgoing: outgoing, since: time.Now()}
	p.byCert.Store(byCert)
	p.signs.heard()
	p.out = newOutbox(func(frames []byte) error {
		ctl.SetWriteDeadline(time.Now().Add(controlStall))
		_, err := rec.Write(frames)
		if err != nil {
			p.close(TooSlow) // or the connection is gone, and this does nothing
		}
		return err
	}, t.spawn)
	return p
}

// run serves the connection until it ends.
func (p *peer) run() {
	defer p.t.unregister(p)
	defer p.out.close()
	p.t.spawn(p.readControl)
	select {
	case <-p.t.started:
	case <-p.conn.Context().Done():
	}
	for {
		s, err := p.conn.AcceptStream(p.t.ctx)
		if err != nil {
			p.t.noteEnd(p, err)
			return
		}
		p.t.spawn(func() { p.serve(s) })
	}
}

// close ends the connection, telling the peer why.
func (p *peer) close(why Reason) {
	p.conn.CloseWithError(quic.ApplicationErrorCode(why), "")
}

// gone reports whether the connection has ended.
func (p *peer) gone() bool { return p.conn.Context().Err() != nil }

// open opens a stream of a kind.
func (p *peer) open(ctx context.Context, kind Kind) (*stream, error) {
	q, err := p.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	s := &stream{Stream: q, peer: p, kind: kind}
	p.streams.Add(1)
	if _, err := q.Write([]byte{byte(kind)}); err != nil {
		s.Close()
		return nil, byPeer(err)
	}
	p.t.count.opened[kind].Add(1)
	return s, nil
}

// serve reads the kind of a stream that the peer opened and runs its handler.
func (p *peer) serve(q *quic.Stream) {
	s := &stream{Stream: q, peer: p}
	p.streams.Add(1)
	var b [1]byte
	q.SetReadDeadline(time.Now().Add(kindTimeout))
	if _, err := q.Read(b[:]); err != nil {
		p.t.refuseStream(s, refuse(Malformed, "stream without a kind"))
		return
	}
	q.SetReadDeadline(time.Time{})
	p.signs.heard()
	kind := Kind(b[0])
	if kind == 0 || kind >= numKinds || p.t.handlers[kind] == nil {
		p.t.refuseStream(s, refuse(UnknownKind, "%v from %s", kind, p.id.Short()))
		return
	}
	s.kind = kind
	switch p.standing() {
	case revoked:
		p.t.refuseStream(s, refuse(Revoked, "node %s", p.id.Short()))
		p.close(Revoked)
		return
	case limited:
		if kind != KindSync {
			p.t.refuseStream(s, refuse(NotAllowed, "%v from %s, which is not on the roster here yet", kind, p.id.Short()))
			return
		}
	}
	p.t.count.served[kind].Add(1)
	p.t.handlers[kind](p.id, s)
}

// readControl reads the control channel until it ends.
func (p *peer) readControl() {
	for {
		typ, payload, err := ReadFrame(p.rec)
		if err != nil {
			if e, ok := errors.AsType[*RefusedError](err); ok && !e.ByPeer {
				p.t.count.refusing(e)
				p.close(e.Reason)
			} else if errors.Is(err, ErrFrameTooLarge) {
				p.t.count.refusing(refuse(Malformed, "control frame"))
				p.close(Malformed)
			} else {
				p.close(Closing) // the peer ended its side, or the connection is gone
			}
			return
		}
		p.signs.answered()
		switch {
		case typ == ctlPing:
			p.out.add(p.t.ctx, ctlPong, nil, true)
		case typ == ctlPong:
			p.asked.Store(0)
		case typ > MaxControlType: // of a newer version
		case !p.mayControl():
			p.t.count.controlDropped.Add(1)
		default:
			p.t.count.controlReceived.Add(1)
			p.t.cfg.OnControl(p.id, typ, payload)
		}
	}
}

// ping asks for a sign of life; nobody waits for it here.
func (p *peer) ping() {
	now := p.signs.now()
	p.pinged.Store(now)
	p.asked.CompareAndSwap(0, now)
	p.out.add(p.t.ctx, ctlPing, nil, true)
}

// answers reports whether the connection seems to work: it was heard lately, or
// answers a ping in time. If not, late is closed when it answers after all.
func (p *peer) answers(ctx context.Context) (yes bool, late <-chan struct{}) {
	if p.signs.silence() < quietAfter {
		return true, nil
	}
	sign := p.signs.awaited()
	p.ping()
	timeout := time.NewTimer(probeTimeout)
	defer timeout.Stop()
	select {
	case <-sign:
		return true, nil
	case <-p.conn.Context().Done():
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false, sign
}

// A Peer describes one authenticated connection.
type Peer struct {
	ID       identity.NodeID
	Addr     netip.AddrPort
	Since    time.Time
	Streams  int  // open now, without the control channel
	Outgoing bool // this node dialled
	Limited  bool // known by its admission only: KindSync and nothing else
}

// Peers returns the authenticated connections, in no particular order. A node
// may be there more than once.
func (t *Transport) Peers() []Peer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Peer
	for _, ps := range t.peers {
		for _, p := range ps {
			out = append(out, Peer{p.id, addrPort(p.conn.RemoteAddr()), p.since, int(p.streams.Load()), p.outgoing,
				p.byCert.Load()})
		}
	}
	return out
}
