package api

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/selvage-mesh/selvage/ledger"
)

// maxLooks bounds the concurrent searches for callers: each reads the machine's list of
// processes.
const maxLooks = 2

var (
	errCallerRun = &ledger.Refusal{Code: ledger.Unauthorized, ErrCode: "run_without_token",
		Message: "This request comes from an agent's run and has no credential, so it is not the board's. Send the token " +
			"of the run (PAPERCLIP_API_KEY) as Authorization: Bearer"}
	errCallerUnknown = &ledger.Refusal{Code: ledger.Unauthorized, ErrCode: "caller_unknown",
		Message: "It can not be told whether this request, which has no credential, comes from an agent's run: keep the " +
			"connection open until the answer, and ask from a process of this machine that the node's user may look into, or " +
			"send a key as Authorization: Bearer"}
)

// errLooksBusy is the refusal of a request that got no turn for its search in time.
var errLooksBusy = &ledger.Refusal{Code: ledger.Unavailable, ErrCode: "caller_look_busy",
	Message: "This node did not get to find out in time whether this request, which has no credential, comes from an " +
		"agent's run. Try again, or send a key as Authorization: Bearer"}

// A caller is the process at the other end of a connection. Whether it is a run is determined
// once, for the first request without a credential.
type caller struct {
	client, server netip.AddrPort

	mu     sync.Mutex // guards what follows
	looked bool
	run    bool
}

type callerKey struct{}

// ConnContext is the ConnContext of the HTTP server.
func (s *Server) ConnContext(ctx context.Context, c net.Conn) context.Context {
	client, err := netip.ParseAddrPort(c.RemoteAddr().String())
	server, err2 := netip.ParseAddrPort(c.LocalAddr().String())
	if s.Cfg.FromRun == nil || err != nil || err2 != nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, &caller{client: client, server: server})
}

// NotARun refuses a request without a credential that comes from a run: a run has a token,
// and without it is nobody. A request without a connection, as in tests, is the program's
// own.
func (s *Server) NotARun(ctx context.Context) error {
	c, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looked {
		select {
		case s.Looks <- struct{}{}:
			defer func() { <-s.Looks }()
		case <-ctx.Done():
			return errLooksBusy
		}
		run, err := s.Cfg.FromRun(c.client, c.server)
		if err != nil { // the next request looks again
			s.Log.Debug("look who calls", "client", c.client, "error", err)
			return errCallerUnknown
		}
		c.looked, c.run = true, run
	}
	if c.run {
		return errCallerRun
	}
	return nil
}
