package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// Reads travel with these headers. A caller says how fresh an answer must be
// with X-Selvage-Read or ?read= (default, strong, stale), and hands back the
// X-Selvage-Height of its last answer to read its own writes on any node: it is
// the raft index that the answer reflects. Answers of stale reads carry their
// age in milliseconds; a node that is cut off says so in every answer.
const (
	headerRead   = "X-Selvage-Read"
	headerHeight = "X-Selvage-Height"
	headerAge    = "X-Selvage-Age"
	headerQuorum = "X-Selvage-Quorum"
	headerNode   = "X-Selvage-Node"
)

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
	if v := r.Header.Get(headerHeight); v != "" {
		if at.AtLeast, err = strconv.ParseUint(v, 10, 64); err != nil {
			return at, Invalid("Invalid %s: expected the number of an earlier answer", headerHeight)
		}
	}
	return at, nil
}

// travelBack tells the caller which state the answer reflects.
func (rc *Request) travelBack(h http.Header) {
	if rc.index > 0 {
		h.Set(headerHeight, strconv.FormatUint(rc.index, 10))
	}
	if rc.read.Mode == ledger.ReadStale && rc.server.cfg.Standing != nil {
		h.Set(headerAge, strconv.FormatInt(rc.server.cfg.Standing().Age.Milliseconds(), 10))
	}
}

// standing marks every answer of a node that is cut off.
func (s *Server) standing(h http.Header) {
	if s.cfg.NodeID != "" {
		h.Set(headerNode, s.cfg.NodeID.Short())
	}
	if s.cfg.Standing == nil {
		return
	}
	if st := s.cfg.Standing(); !st.Quorum {
		h.Set(headerQuorum, "lost")
		h.Set(headerAge, strconv.FormatInt(st.Age.Milliseconds(), 10))
	}
}
