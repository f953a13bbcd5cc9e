package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/selvage-mesh/selvage/identity"
)

// On a connection that was authenticated by a join token the dialler opens one
// stream of KindJoin and writes one frame, its request, which means whatever the
// two nodes agree on. The answer is one frame:
const (
	joinRequest = 1 // → the request
	joinReply   = 2 // ← the reply
	joinNo      = 3 // ← why not, UTF-8 text for people, at most maxJoinNo bytes
	joinWaits   = 4 // ← empty: the request waits for a person; another frame follows
	joinLater   = 5 // ← why not now, as joinNo; with pattern 2 only
)

const maxJoinNo = 512

// Join asks the members at addrs, in turn, to admit this node by a token, and
// returns the first reply. The handshake (XXpsk3) shows each side that the other
// holds the token's key and its own node key. That does not make the answer
// true: others may hold the token too. The caller must verify that the
// admission in the reply leads to the founder in the genesis that the token's
// mesh ID is the hash of.
//
// Errors are joined; a [RefusedError] with reason BadHandshake means that the
// member does not know the token, with JoinRefused that it said no, and why.
func (t *Transport) Join(ctx context.Context, addrs []netip.AddrPort, token identity.JoinToken,
	request []byte) ([]byte, error) {
	if len(request) > maxJoinRequest {
		return nil, fmt.Errorf("join: %w: %d bytes", ErrFrameTooLarge, len(request))
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("join: %w", ErrNoAddress)
	}
	var problems []error
	for _, addr := range addrs[:min(len(addrs), 2*maxAddrs)] {
		reply, err := t.joinAt(ctx, addr, token, request)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("join: %w", errors.Join(append(problems, err)...))
		}
		problems = append(problems, fmt.Errorf("%v: %w", addr, err))
	}
	return nil, fmt.Errorf("join: %w", errors.Join(problems...))
}

func (t *Transport) joinAt(ctx context.Context, addr netip.AddrPort, token identity.JoinToken,
	request []byte) ([]byte, error) {
	dialCtx, cancel := context.WithTimeout(ctx, 2*t.cfg.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	conn, err := t.quic.Dial(dialCtx, net.UDPAddrFromAddrPort(addr), t.tls, t.quicConf)
	if err != nil {
		t.count.dialFailures.Add(1)
		return nil, byPeer(err)
	}
	reply, err := t.joinOn(ctx, conn, token, request)
	t.giveUp(conn, err)
	return reply, err
}

func (t *Transport) joinOn(ctx context.Context, conn *quic.Conn, token identity.JoinToken,
	request []byte) ([]byte, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	stop := t.bound(ctx, s)
	defer stop()
	sh, err := t.shake(conn, hello{pattern: patternJoin, tokenID: token.ID})
	if err != nil {
		return nil, err
	}
	sh.psk = token.PSK[:]
	_, rec, err := sh.initiate(s, func(p party) error {
		if p.mesh != token.Mesh {
			return refuse(WrongMesh, "mesh %s", p.mesh.Short())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := accepted(rec); err != nil { // and so the member holds the token's key
		return nil, err
	}
	return t.ask(ctx, conn, request)
}

func (t *Transport) ask(ctx context.Context, conn *quic.Conn, request []byte) ([]byte, error) {
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, byPeer(err)
	}
	defer context.AfterFunc(ctx, func() { s.CancelRead(0) })()
	s.SetDeadline(time.Now().Add(joinTimeout))
	if _, err := s.Write(appendFrame([]byte{byte(KindJoin)}, joinRequest, request)); err != nil {
		return nil, byPeer(err)
	}
	s.Close()
	typ, reply, err := ReadFrameMax(s, maxJoinReply)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, byPeer(err)
	case typ == joinReply:
		return reply, nil
	case typ == joinNo:
		return nil, &RefusedError{Reason: JoinRefused, ByPeer: true, Detail: string(reply[:min(len(reply), maxJoinNo)])}
	}
	return nil, refuse(Malformed, "answer to a join request")
}

// pskOf returns the key of a join token, or one that nobody has.
func (t *Transport) pskOf(tokenID string) []byte {
	if key, ok := t.cfg.PSK(tokenID); ok && len(key) == 32 {
		return key
	}
	return unknownPSK()
}

// acceptRequest takes the stream of a join connection and the request on it, of at most max
// bytes. All that is read and written on the stream has to be done within timeout.
func acceptRequest(ctx context.Context, conn *quic.Conn, timeout time.Duration, max int) (*quic.Stream, []byte, error) {
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, nil, byPeer(err)
	}
	s.SetDeadline(time.Now().Add(timeout))
	var kind [1]byte
	if _, err := s.Read(kind[:]); err != nil {
		return nil, nil, cutShort(err)
	}
	if Kind(kind[0]) != KindJoin {
		return nil, nil, refuse(NotAllowed, "%v on a join connection", Kind(kind[0]))
	}
	typ, request, err := ReadFrameMax(s, max)
	if err != nil || typ != joinRequest {
		return nil, nil, refuse(Malformed, "join request")
	}
	return s, request, nil
}

// serveJoin answers one join request on a connection that a token
// authenticated, and waits for the dialler to close it.
func (t *Transport) serveJoin(conn *quic.Conn, rec *records, from identity.Certificate,
	tokenID string) error {
	if t.cfg.OnJoin == nil || t.cfg.Mesh() == "" {
		return refuse(NotAllowed, "joins are not taken here")
	}
	if _, revoked, _ := t.cfg.Member(identity.NodeIDOf(from.Node)); revoked {
		return refuse(Revoked, "node %s", identity.NodeIDOf(from.Node).Short())
	}
	if err := WriteFrame(rec, ctlAccept, []byte{1, 0}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(conn.Context(), joinTimeout)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	s, request, err := acceptRequest(ctx, conn, joinTimeout, maxJoinRequest)
	if err != nil {
		return err
	}
	reply, err := t.cfg.OnJoin(ctx, from, tokenID, request)
	switch {
	case err != nil:
		t.count.refusing(refuse(JoinRefused, ""))
		t.cfg.Logger.Info("join refused", "node", identity.NodeIDOf(from.Node).Short(), "token", tokenID, "err", err)
		why := err.Error()
		err = WriteFrame(s, joinNo, []byte(why[:min(len(why), maxJoinNo)]))
	default:
		t.count.joins.Add(1)
		t.cfg.Logger.Info("join answered", "node", identity.NodeIDOf(from.Node).Short(), "token", tokenID)
		err = WriteFrame(s, joinReply, reply)
	}
	if err != nil {
		return byPeer(err)
	}
	s.Close()
	select { // the dialler closes when it has the answer
	case <-conn.Context().Done():
	case <-ctx.Done():
		conn.CloseWithError(quic.ApplicationErrorCode(Closing), "")
	}
	return nil
}
