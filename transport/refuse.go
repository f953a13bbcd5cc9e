package transport

import (
	"errors"
	"fmt"

	"github.com/quic-go/quic-go"
)

// A Reason says why a connection, a stream or a dial was refused or closed. It
// is the QUIC application error code and the label of a counter. Sent between
// versions: do not renumber; an unknown one is shown by its number.
type Reason uint16

const (
	Closing      Reason = 0  // the node shuts down, or has no more use for the connection
	Malformed    Reason = 1  // garbage where a handshake or frame should be
	BadHandshake Reason = 2  // a Noise message did not decrypt; also: wrong join token
	BadIdentity  Reason = 3  // the certificate of the Noise key is not valid
	Unknown      Reason = 4  // not on the roster, and no admission that leads to it
	Revoked      Reason = 5  // revoked, or admitted by a node that was
	WrongMesh    Reason = 6  // member of another mesh
	WrongPeer    Reason = 7  // another node answered at the address
	Busy         Reason = 8  // a bound on connections or streams was reached
	NotAllowed   Reason = 9  // a kind of stream that this peer does not get (yet)
	UnknownKind  Reason = 10 // a kind of stream that nobody handles
	TooSlow      Reason = 11 // the handshake took too long, or control stalled
	Superseded   Reason = 12 // a newer connection to the same peer replaced it
	NoTLS        Reason = 13 // QUIC's own handshake failed
	JoinRefused  Reason = 14 // a join request was answered with no
	OtherEpoch   Reason = 15 // in another epoch of the mesh

	numReasons = 16
)

var reasonNames = [numReasons]string{"closing", "malformed", "bad_handshake", "bad_identity", "unknown", "revoked",
	"wrong_mesh", "wrong_peer", "busy", "not_allowed", "unknown_kind", "too_slow", "superseded", "no_tls", "join_refused",
	"other_epoch"}

func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// A RefusedError says that this node or the peer ended a dial or a stream on
// purpose. Match the reason with errors.AsType.
type RefusedError struct {
	Reason Reason
	ByPeer bool   // the peer refused us, not we the peer
	Detail string // for people
}

func (e *RefusedError) Error() string {
	who := "refused"
	if e.ByPeer {
		who = "refused by peer"
	}
	if e.Detail == "" {
		return who + ": " + e.Reason.String()
	}
	return who + ": " + e.Reason.String() + ": " + e.Detail
}

func refuse(r Reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// Is matches refusals of the same reason, so that errors.Is(err, &RefusedError{Reason: Revoked}) works.
func (e *RefusedError) Is(target error) bool {
	t, ok := target.(*RefusedError)
	return ok && t.Reason == e.Reason
}

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("transport is closed")
	// ErrNoAddress says that no address of a peer is known.
	ErrNoAddress = errors.New("no address of this peer is known")
	// ErrSelf is returned by a dial to the node itself.
	ErrSelf = errors.New("a node does not dial itself")
)

// byPeer turns what quic-go reports when the peer closed with a reason of ours
// into a RefusedError; other errors stay.
func byPeer(err error) error {
	if e, ok := errors.AsType[*quic.ApplicationError](err); ok && e.Remote {
		return &RefusedError{Reason: reasonOf(uint64(e.ErrorCode)), ByPeer: true}
	}
	if e, ok := errors.AsType[*quic.StreamError](err); ok && e.Remote && e.ErrorCode != 0 {
		return &RefusedError{Reason: reasonOf(uint64(e.ErrorCode)), ByPeer: true}
	}
	return err
}

func reasonOf(code uint64) Reason { return Reason(min(code, 1<<16-1)) }
