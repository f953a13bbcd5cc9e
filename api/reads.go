package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// Headers of reads. A caller requests the freshness of an answer with X-Selvage-Read or
// ?read= (default, strong, stale). It sends the X-Selvage-Height of its last answer to read
// its own writes on any node: the raft index that the answer reflects. Answers of stale reads
// have their age in milliseconds. A node that is cut off says so in every answer.
const (
	headerRead   = "X-Selvage-Read"
	HeaderHeight = "X-Selvage-Height"
	headerAge    = "X-Selvage-Age"
	headerQuorum = "X-Selvage-Quorum"
	headerNode   = "X-Selvage-Node"
	headerName   = "X-Selvage-Node-Name"
)

var errBehind = &ledger.Refusal{Code: ledger.Unavailable, ErrCode: "behind",
	Message: "This node has not got as far as what you have seen; try again, or use another node"}

func readOf(r *http.Request) (at ledger.Read, err error) {
	mode := r.Header.Get(headerRead)
	if mode == "" && strings.Contains(r.URL.RawQuery, "read=") {
		mode = r.URL.Query().Get("read")
	}
	switch mode {
	case "", "default":
	case "strong":
		at.Mode = ledger.ReadStrong
	case "stale":
		at.Mode = ledger.ReadStale
	default:
		return at, Invalid("Unknown read mode: expected default, strong or stale")
	}
	if v := r.Header.Get(HeaderHeight); v != "" {
		if at.AtLeast, err = strconv.ParseUint(v, 10, 64); err != nil {
			return at, Invalid("Invalid %s: expected the number of an earlier answer", HeaderHeight)
		}
	}
	return at, nil
}

// least returns the raft index at which the caller's credential must be valid: a caller who
// sends the height at which a key was revoked is not served by a node that has not applied
// it.
func (rc *Request) least() uint64 {
	if rc.Read.Mode == ledger.ReadStale {
		return 0
	}
	return max(rc.Read.AtLeast, rc.asOf)
}

// applied returns the raft index that this node has applied, 0 if it is unknown.
func (s *Server) applied() (index uint64) {
	if s.Cfg.Head != nil {
		_, index = s.Cfg.Head()
	}
	return index
}

// reach waits until this node's state satisfies a read, and returns its raft index.
func (s *Server) reach(ctx context.Context, at ledger.Read) (applied uint64, err error) {
	return s.Cfg.Node.View(ctx, at, func(*ledger.Tx) error { return nil })
}

// catchUp waits, before authentication, until this node has applied what the caller has seen.
// The caller is still unknown, so only few wait, and not long.
func (rc *Request) catchUp() error {
	s, least := rc.Server, rc.least()
	if least == 0 {
		return nil
	}
	if s.applied() >= least {
		return nil
	}
	select {
	case s.Behind <- struct{}{}:
		defer func() { <-s.Behind }()
	default:
		return errBehind
	}
	ctx, cancel := context.WithTimeout(rc.Context(), catchUpTimeout)
	defer cancel()
	_, err := s.reach(ctx, ledger.Read{AtLeast: least})
	if errors.Is(err, context.DeadlineExceeded) && rc.Context().Err() == nil {
		return errBehind
	}
	return err
}

// answers notes that this node answers a command with that raft index.
func (s *Server) answers(index uint64) {
	for old := s.answered.Load(); index > old && !s.answered.CompareAndSwap(old, index); old = s.answered.Load() {
	}
}

// awaitOwn makes a read see what this node has already answered, for clients that know no
// heights and read where they wrote: a follower applies its own commands a moment after their
// outcome. A node that is cut off serves what it has.
func (rc *Request) awaitOwn(least uint64) {
	s := rc.Server
	own := s.answered.Load()
	if own <= least || rc.awaited || rc.Submits > 0 || rc.HTTP.Method != http.MethodGet &&
		rc.HTTP.Method != http.MethodHead {
		return
	}
	rc.awaited = true
	if s.applied() >= own {
		return
	}
	ctx, cancel := context.WithTimeout(rc.Context(), ownWait)
	defer cancel()
	_, _ = s.reach(ctx, ledger.Read{AtLeast: own})
}

// mayBeBehind reports whether a write was refused on a state that is older than the leader's,
// and waits until this node has everything acknowledged before: writes on every node see what
// any node has answered. Without a quorum the refusal stands.
func (rc *Request) mayBeBehind(err error) bool {
	s, method := rc.Server, rc.HTTP.Method
	if err == nil || rc.Submits > 0 || rc.asOf > 0 || rc.spent || rc.Route.Once || rc.Route.Who == Public ||
		s.Cfg.Head == nil || method == http.MethodGet || method == http.MethodHead {
		return false
	}
	no, ok := errors.AsType[*ledger.Refusal](err)
	if !ok || !slices.Contains([]ledger.Code{ledger.NotFound, ledger.Forbidden, ledger.Conflict,
		ledger.Unprocessable}, no.Code) {
		return false
	}
	ctx, cancel := context.WithTimeout(rc.Context(), ownWait)
	defer cancel()
	applied, err := s.reach(ctx, ledger.Read{Mode: ledger.ReadStrong})
	if err != nil || applied <= rc.began {
		return false
	}
	rc.asOf = applied
	return true
}

// authenticateAsOf authenticates the caller, and for a strong read again on the state of the
// read.
func (rc *Request) authenticateAsOf() error {
	err := rc.Authenticate()
	if err == nil {
		err = rc.ChargeTool(false)
	}
	if err != nil || rc.Read.Mode != ledger.ReadStrong || rc.Credential.Kind == "local" {
		return err
	}
	applied, err := rc.Server.reach(rc.Context(), ledger.Read{Mode: ledger.ReadStrong})
	if err != nil {
		return err
	}
	rc.asOf = applied
	return rc.Authenticate()
}

// travelBack adds to an answer which state it reflects.
func (rc *Request) travelBack(h http.Header) {
	if rc.Index > 0 {
		h.Set(HeaderHeight, strconv.FormatUint(rc.Index, 10))
	}
	if rc.Read.Mode == ledger.ReadStale && rc.Server.Cfg.Standing != nil {
		h.Set(headerAge, strconv.FormatInt(rc.Server.Cfg.Standing().Age.Milliseconds(), 10))
	}
}

// standing marks every answer of a node that is cut off.
func (s *Server) standing(h http.Header) {
	if s.Cfg.NodeID != "" {
		h.Set(headerNode, s.Cfg.NodeID.Short())
	}
	if s.Cfg.Standing == nil {
		return
	}
	if st := s.Cfg.Standing(); !st.Quorum {
		h.Set(headerQuorum, "lost")
		h.Set(headerName, url.PathEscape(s.Cfg.Name))
		h.Set(headerAge, strconv.FormatInt(st.Age.Milliseconds(), 10))
	}
}
