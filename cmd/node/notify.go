package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusEvery is the interval of the status line. answerWithin bounds each answer that
// it, or the watchdog, waits for.
const (
	statusEvery  = 5 * time.Second
	answerWithin = 5 * time.Second
)

// A watched node reports its state.
type watched interface {
	Ready(context.Context) error   // nil if it serves
	Answers(context.Context) error // nil if it works at all
}

// waitMore is how much longer a supervisor is asked to wait for a node that waits for a
// person: the longest wait before the next line, and a reserve.
const waitMore = 20 * time.Minute

// notices prints lines for people at the node. While the node does not serve yet, each
// line also goes to the supervisor, which would otherwise time out.
func notices(w io.Writer) func(string) {
	return func(line string) {
		fmt.Fprintln(w, line)
		_, _ = daemon.SdNotify(false, fmt.Sprintf("STATUS=%s\nEXTEND_TIMEOUT_USEC=%d", line,
			waitMore.Microseconds())) // there may be no supervisor
	}
}

// notify tells the supervisor ($NOTIFY_SOCKET; systemd's protocol) that the node runs,
// whether it serves or why not, and, if the supervisor has a watchdog ($WATCHDOG_USEC),
// periodically that the node is not stuck. A node without a quorum is not stuck:
// restarting it would not help. notify returns when ctx ends, at once without a
// supervisor.
func notify(ctx context.Context, n watched, log *slog.Logger) {
	tell := func(state string) bool {
		ok, err := daemon.SdNotify(false, state)
		if err != nil {
			log.Warn("the supervisor can not be told", "error", err)
		}
		return ok && err == nil
	}
	if !tell(daemon.SdNotifyReady) {
		return
	}
	bark, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog's interval can not be read", "error", err)
	}
	var hungry <-chan time.Time
	if bark > 0 {
		t := time.NewTicker(bark / 3)
		defer t.Stop()
		hungry = t.C
	}
	look := time.NewTicker(statusEvery)
	defer look.Stop()
	for status := ""; ; {
		now := "serving"
		if err := ask(ctx, n.Ready); err != nil {
			now = "not ready: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if now != status && ctx.Err() == nil {
			tell("STATUS=" + now)
			status = now
		}
		select {
		case <-ctx.Done():
			tell(daemon.SdNotifyStopping)
			return
		case <-look.C:
		case <-hungry:
			if err := ask(ctx, n.Answers); err != nil {
				log.Error("the node is stuck, its watchdog is not fed", "error", err)
			} else {
				tell(daemon.SdNotifyWatchdog)
			}
		}
	}
}

func ask(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return f(ctx)
}
