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

// statusEvery is how often the status line is looked at; answerWithin bounds
// each answer that it, or the watchdog, waits for.
const (
	statusEvery  = 5 * time.Second
	answerWithin = 5 * time.Second
)

// A watched node can be asked how it is.
type watched interface {
	Ready(context.Context) error   // nil when it serves
	Answers(context.Context) error // nil when it works at all
}

// waitMore is how much longer a supervisor is asked to wait for a node that waits
// for a person: the longest wait before the next line, with room.
const waitMore = 20 * time.Minute

// notices shows lines for people who stand at the node. What it waits for before it
// serves is told to the supervisor too, which would else give up on it.
func notices(w io.Writer) func(string) {
	return func(line string) {
		fmt.Fprintln(w, line)
		_, _ = daemon.SdNotify(false, fmt.Sprintf("STATUS=%s\nEXTEND_TIMEOUT_USEC=%d", line, waitMore.Microseconds())) // there may be none
	}
}

// notify tells the supervisor ($NOTIFY_SOCKET; systemd's protocol) that the node
// runs, whether it serves or why not, and, where it wants to know
// ($WATCHDOG_USEC), again and again that the node is not stuck. A node without
// its quorum runs and is not stuck: to start it again would help nobody. It
// returns when ctx ends, at once where there is no supervisor.
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
