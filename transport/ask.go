package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/selvage-mesh/selvage/identity"
)

// A node that holds nothing but its own key asks with pattern 2, plain XX. The
// first frames of the control channel are
//
//	← accept, as always
//	← commit: SHA-256("selvage/join-commit/v1" ‖ member's nonce) (32) | genesis (rest)
//	→ nonce: newcomer's nonce (32)
//	← reveal: member's nonce (32)
//
// upon which both sides know the code (identity.JoinCode) that a person compares.
// The genesis is what the mesh's ID, which the member said in its party, is the
// hash of; with the member's admission chain it shows that the member was let in
// by the founder, or by those whom the founder let in. On one stream of KindJoin
// the newcomer then writes a joinRequest and reads joinWaits and, when a person has
// decided, joinReply or joinNo. Nothing else is served on such a connection.
const commitDomain = "selvage/join-commit/v1"

func commitment(nonce [32]byte) [32]byte {
	return sha256.Sum256(append([]byte(commitDomain), nonce[:]...))
}

// Asked is a node's request to be let in, as a member sees it.
type Asked struct {
	From    identity.Certificate // the node has shown to hold this key
	Code    string               // to be compared with what the node shows
	Addr    netip.AddrPort       // where it was seen
	Request []byte
}

// mayAsk says whether a party may ask to be let in here.
func (t *Transport) mayAsk(p party) error {
	if t.cfg.OnAsk == nil || t.cfg.Mesh() == "" {
		return refuse(NotAllowed, "nobody asks to join here")
	}
	if p.mesh != "" {
		return refuse(WrongMesh, "a member of %s asks to join", p.mesh.Short())
	}
	if _, revoked, _ := t.cfg.Member(identity.NodeIDOf(p.cert.Node)); revoked {
		return refuse(Revoked, "node %s", identity.NodeIDOf(p.cert.Node).Short())
	}
	return nil
}

// serveAsk answers a node that asks to be let in, and waits for it to close.
func (t *Transport) serveAsk(conn *quic.Conn, rec *records, from identity.Certificate, leave func()) error {
	code, err := t.offerCode(rec, from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(conn.Context(), t.cfg.HandshakeTimeout)
	defer cancel()
	s, request, err := acceptRequest(ctx, conn, t.cfg.HandshakeTimeout, maxAskRequest)
	if err != nil {
		return err
	}
	say := func(typ byte, b []byte) error {
		s.SetWriteDeadline(time.Now().Add(t.cfg.HandshakeTimeout))
		return WriteFrame(s, typ, b)
	}
	why := func(err error) []byte {
		b := []byte(err.Error())
		return b[:min(len(b), maxJoinNo)]
	}
	await, err := t.cfg.OnAsk(Asked{From: from, Code: code, Addr: addrPort(conn.RemoteAddr()), Request: request})
	if err != nil {
		t.count.refusing(refuse(Busy, ""))
		err = say(joinLater, why(err))
		return t.lastWord(conn, s, err)
	}
	leave()
	wait, stop := context.WithTimeout(conn.Context(), askTimeout)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()
	if err := say(joinWaits, nil); err != nil {
		stop() // whoever asks again finds no request of an earlier connection
	}
	reply, err := await(wait)
	if err != nil {
		t.count.refusing(refuse(JoinRefused, ""))
		err = say(joinNo, why(err))
	} else {
		t.count.joins.Add(1)
		err = say(joinReply, reply)
	}
	return t.lastWord(conn, s, err)
}

// lastWord ends a connection whose dialler closes it when it has the answer.
func (t *Transport) lastWord(conn *quic.Conn, s *quic.Stream, err error) error {
	if err != nil {
		return byPeer(err)
	}
	s.Close()
	select {
	case <-conn.Context().Done():
	case <-time.After(t.cfg.HandshakeTimeout):
		conn.CloseWithError(quic.ApplicationErrorCode(Closing), "")
	case <-t.ctx.Done():
	}
	return nil
}

// offerCode is the member's side of agreeing on a code.
func (t *Transport) offerCode(rec *records, from identity.Certificate) (string, error) {
	var mine [32]byte
	rand.Read(mine[:])
	commit := commitment(mine)
	if err := WriteFrame(rec, ctlAccept, []byte{1, 0}); err != nil {
		return "", err
	}
	if err := WriteFrame(rec, ctlCommit, append(commit[:], t.cfg.Genesis()...)); err != nil {
		return "", err
	}
	typ, theirs, err := ReadFrameMax(rec, 32)
	if err != nil {
		return "", cutShort(err)
	}
	if typ != ctlNonce || len(theirs) != 32 {
		return "", refuse(Malformed, "nonce")
	}
	if err := WriteFrame(rec, ctlReveal, mine[:]); err != nil {
		return "", err
	}
	return identity.JoinCode(rec.binding, from.Node, t.cfg.Keys.Public(), [32]byte(theirs), mine), nil
}

// A Member is who a node that has no mesh found at an address: a member of a
// mesh, who has shown so.
type Member struct {
	Mesh       identity.MeshID
	Node       identity.NodeID
	Code       string // to be compared with what the member shows
	Genesis    []byte // that Mesh is the hash of
	admissions []identity.Admission
	key        ed25519.PublicKey

	t    *Transport
	conn *quic.Conn
	ctl  *quic.Stream
}

// Greet finds out who is at addr. The caller checks with [Member.Vouched] that
// the member was let in by the founder whom the genesis names, and then asks, or
// closes it.
func (t *Transport) Greet(ctx context.Context, addr netip.AddrPort) (*Member, error) {
	dialCtx, cancel := context.WithTimeout(ctx, t.cfg.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	conf := t.quicConf.Clone()
	conf.KeepAlivePeriod = t.cfg.KeepAlive // it may wait for a person
	conn, err := t.quic.Dial(dialCtx, net.UDPAddrFromAddrPort(addr), t.tls, conf)
	if err != nil {
		t.count.dialFailures.Add(1)
		return nil, byPeer(err)
	}
	m, err := t.greetOn(ctx, conn)
	if err != nil {
		t.giveUp(conn, err)
		return nil, err
	}
	return m, nil
}

func (t *Transport) greetOn(ctx context.Context, conn *quic.Conn) (*Member, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	stop := t.bound(ctx, s)
	defer stop()
	sh, err := t.shake(conn, hello{pattern: patternAsk})
	if err != nil {
		return nil, err
	}
	who, rec, err := sh.initiate(s, func(p party) error {
		if p.mesh == "" {
			return refuse(Unknown, "the node has no mesh")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := accepted(rec); err != nil {
		return nil, err
	}
	typ, commit, err := ReadFrameMax(rec, 32+maxGenesis)
	if err != nil {
		return nil, cutShort(err)
	}
	if typ != ctlCommit || len(commit) <= 32 {
		return nil, refuse(Malformed, "commitment")
	}
	if identity.MeshIDOf(commit[32:]) != who.mesh {
		return nil, refuse(BadIdentity, "the genesis is not that of mesh %s", who.mesh.Short())
	}
	var mine [32]byte
	rand.Read(mine[:])
	if err := WriteFrame(rec, ctlNonce, mine[:]); err != nil {
		return nil, err
	}
	typ, theirs, err := ReadFrameMax(rec, 32)
	if err != nil {
		return nil, cutShort(err)
	}
	if typ != ctlReveal || len(theirs) != 32 {
		return nil, refuse(Malformed, "nonce")
	}
	if c := commitment([32]byte(theirs)); subtle.ConstantTimeCompare(c[:], commit[:32]) != 1 {
		return nil, refuse(BadHandshake, "the nonce is not the one that was committed to")
	}
	return &Member{
		Mesh: who.mesh, Node: identity.NodeIDOf(who.cert.Node), Genesis: commit[32:], admissions: who.admissions,
		key:  who.cert.Node,
		Code: identity.JoinCode(rec.binding, t.cfg.Keys.Public(), who.cert.Node, mine, [32]byte(theirs)),
		t:    t, conn: conn, ctl: s,
	}, nil
}

// Vouched checks that the member is the founder, whose key the genesis names, or
// that its admission leads there. It can have been revoked since.
func (m *Member) Vouched(founder identity.Roster) error {
	if key, _, known := founder(m.Node); known && key.Equal(m.key) {
		return nil
	}
	return identity.VerifyAdmissions(m.admissions, m.Mesh, m.key, founder)
}

// Ask hands in a request and waits, for at most askTimeout, until somebody on the
// mesh has decided. waits is called when the request was taken and a person is to
// compare the codes. A [RefusedError] by the peer has the reason JoinRefused when
// a person said no, and Busy when the request was not taken.
func (m *Member) Ask(ctx context.Context, request []byte, waits func()) (reply []byte, err error) {
	defer func() { m.t.giveUp(m.conn, err) }()
	if len(request) > maxAskRequest {
		return nil, fmt.Errorf("ask: %w: %d bytes", ErrFrameTooLarge, len(request))
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	defer context.AfterFunc(m.t.ctx, cancel)()
	s, err := m.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	defer context.AfterFunc(ctx, func() { s.CancelRead(0) })()
	s.SetWriteDeadline(time.Now().Add(m.t.cfg.HandshakeTimeout))
	if _, err := s.Write(appendFrame([]byte{byte(KindJoin)}, joinRequest, request)); err != nil {
		return nil, byPeer(err)
	}
	s.Close()
	for told := false; ; {
		typ, b, err := ReadFrameMax(s, maxJoinReply)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, byPeer(err)
		case typ == joinReply:
			return b, nil
		case typ == joinWaits && !told:
			told = true
			if waits != nil {
				waits()
			}
		case typ == joinNo:
			return nil, &RefusedError{Reason: JoinRefused, ByPeer: true, Detail: string(b[:min(len(b), maxJoinNo)])}
		case typ == joinLater:
			return nil, &RefusedError{Reason: Busy, ByPeer: true, Detail: string(b[:min(len(b), maxJoinNo)])}
		default:
			return nil, refuse(Malformed, "answer to a join request")
		}
	}
}

// Close ends the acquaintance.
func (m *Member) Close() { m.t.giveUp(m.conn, nil) }
