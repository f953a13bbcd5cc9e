package discovery

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// A call is the last one at a member that memberlist declared dead. It counts
// attempts, each of which waits for an answer while this process runs; so a
// node that was not scheduled for a while, and whose timers all fire at once
// when it wakes, still asks before it believes them. Nor does an attempt count
// in which a witness, another live member, does not answer either: then it may
// be this node that nobody hears.
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
		d.list.Load().Join([]string{addr})
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
	late := d.config.Late()
	attempts := attemptsFor(late)
	for tries, count := 0, 0; tries < 2*attempts && count < attempts; tries++ {
		if ctx.Err() != nil {
			return true
		}
		w, have := d.witness(m)
		heard := make(chan bool, 1)
		d.done.Go(func() { heard <- !have || d.ping(w) })
		if d.ping(m) {
			return true
		}
		if <-heard {
			count++
		}
	}
	// An answer may have come each time, and each time after its probe had ended.
	if lateTimes*late > probeTimeout {
		n, err := d.list.Load().Join([]string{m.Addr.String()})
		return err == nil && n > 0
	}
	return false
}

// attemptsFor is how often a node that runs late asks before it believes.
func attemptsFor(late time.Duration) int {
	return min(callAttempts+int(lateTimes*late/probeTimeout), maxAttempts)
}

// witness returns a live member other than m, if there is one.
func (d *Discovery) witness(m Member) (w Member, ok bool) {
	live := slices.DeleteFunc(d.Live(), func(o Member) bool { return o.Meta.Node == m.Meta.Node })
	if len(live) == 0 {
		return w, false
	}
	return live[rand.IntN(len(live))], true
}

// ping waits at most probeTimeout.
func (d *Discovery) ping(m Member) bool {
	_, err := d.list.Load().Ping(string(m.Meta.Node), net.UDPAddrFromAddrPort(m.Addr))
	return err == nil
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
