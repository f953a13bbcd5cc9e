package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// profileHeaderTimeout bounds how long a client of the profiler may take to send its
// request.
const profileHeaderTimeout = 5 * time.Second

// serveProfiles serves Go's profiler on addr, which must be loopback: profiles show what
// is in memory, and there is no authentication. It logs the address, for port 0. stop
// ends it.
func serveProfiles(addr string, log *slog.Logger) (stop func() error, err error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, cli.Misuse(fmt.Errorf("--pprof %s: expected an address and port of this machine's loopback, such as "+
			"127.0.0.1:6060", addr))
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("serve profiles: %w", err)
	}
	log.Warn("profiles are served", "url", "http://"+l.Addr().String()+"/debug/pprof/")
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: profileHeaderTimeout}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() error {
		err := s.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
