package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

type patient struct{ ready, stuck atomic.Bool }

func (p *patient) Ready(context.Context) error {
	if p.ready.Load() {
		return nil
	}
	return errors.New("no quorum\nfor now")
}

func (p *patient) Answers(context.Context) error {
	if p.stuck.Load() {
		return errors.New("stuck")
	}
	return nil
}

// TestNotify acts as the supervisor: it receives that the node runs, why it does not
// serve, that it is not stuck while that is true, and that it stops.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "60000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, done := &patient{}, make(chan struct{})
	go func() { notify(ctx, n, slog.New(slog.DiscardHandler)); close(done) }()

	hear := func(want string) {
		t.Helper()
		sock.SetReadDeadline(time.Now().Add(2 * time.Minute))
		for b := make([]byte, 1<<10); ; {
			k, err := sock.Read(b)
			if err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
			if got := string(b[:k]); got == want {
				return
			} else if strings.Contains(got, "\n") {
				t.Fatalf("a message of two lines: %q", got)
			}
		}
	}
	hear("READY=1")
	hear("STATUS=not ready: no quorum; for now")
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	n.ready.Store(true)
	hear("STATUS=serving")
	n.stuck.Store(true)
	sock.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	fed := 0
	for b := make([]byte, 1<<10); ; {
		k, err := sock.Read(b)
		if err != nil {
			break
		}
		if string(b[:k]) == "WATCHDOG=1" {
			fed++
		}
	}
	if fed > 1 { // one may have been in transit
		t.Errorf("a stuck node fed its watchdog %d times", fed)
	}
	cancel()
	hear("STOPPING=1")
	<-done
}

func TestNotifyWithoutSupervisor(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	notify(t.Context(), &patient{}, slog.New(slog.DiscardHandler)) // returns at once
}
