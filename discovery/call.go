package discovery

import (
	"context"
	"net"
	"time"
)

// A call is the last one at a member that memberlist declared dead. It counts
// attempts, each of which waits for an answer while this process runs; so a
// node that was not scheduled for a while, and whose timers all fire at once
// when it wakes, still asks before it believes them.
//
// A member that answers stays live. It is then told what is said of it, so that
// it objects and memberlist takes it back; until that has happened, or it does
// not answer any more, the call goes on.
type call struct {
	member Member
	cancel context.CancelFunc
}

func (d *Discovery) lastCall(ctx context.Context, c *call) {
	addr := c.member.Addr.String()
	for first := true; ; first = false {
		if !d.answers(ctx, c.member) {
			break
		}
		if first {
			d.count.spared.Add(1)
		}
		d.list.Join([]string{addr})
		if !wait(ctx, probeInterval) {
			return
		}
	}
	select {
	case d.unanswered <- c:
	case <-ctx.Done():
	}
}

func (d *Discovery) answers(ctx context.Context, m Member) bool {
	for range callAttempts {
		if ctx.Err() != nil {
			return true
		}
		if _, err := d.list.Ping(string(m.Meta.Node), net.UDPAddrFromAddrPort(m.Addr)); err == nil {
			return true
		}
	}
	return false
}

// wait reports whether ctx outlived the wait.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
