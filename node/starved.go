package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/scheduler"
)

const (
	// pulseEvery is how often this node measures its delay, at the same moments as most
	// other periodic work of an idle node.
	pulseEvery = beat
	// The worst delay of each pulseSpan is kept, pulseSpans of them: one minute.
	pulseSpan  = 2 * time.Second
	pulseSpans = 30
	// stallsKept bounds the recorded stalls. stallLeast is the shortest delay that counts as
	// one.
	stallsKept = 32
	stallLeast = 500 * time.Millisecond
)

// A pulse measures the node's scheduling delay: how long after a timer was due this
// process got a processor for it. Election timeouts, gossip and leases are adjusted to
// it. Its goroutine is beatOn; any goroutine may read it.
type pulse struct {
	clock scheduler.Clock // the boot-time clock

	mu     sync.Mutex // guards the fields below
	worst  [pulseSpans]span
	stalls []stall   // newest last
	due    time.Time // time of the next measurement; zero before the first
}

// A span is one slot of the ring: its number and its worst delay.
type span struct {
	n    int64
	late time.Duration
}

// A stall is a time in which the node did not run.
type stall struct {
	ended time.Duration // on the boot-time clock
	took  time.Duration
	load  int64 // of the machine at its end, in thousandths of a processor
	slept bool  // the machine was suspended
}

// note records a measurement: at now, on the boot-time clock, a timer ran late.
func (p *pulse) note(now, late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(now / pulseSpan)
	if s := &p.worst[n%pulseSpans]; s.n != n {
		*s = span{n, late}
	} else {
		s.late = max(s.late, late)
	}
}

// remember records a stall, to explain later why something was lost.
func (p *pulse) remember(s stall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stalls) == stallsKept {
		p.stalls = p.stalls[1:]
	}
	p.stalls = append(p.stalls, s)
}

// Late returns the node's typical delay: the second-worst span of the last minute,
// because one bad moment does not make a machine slow, or a quarter of the worst one if
// that is more. It recovers within a minute.
func (p *pulse) Late() time.Duration {
	now := int64(p.clock() / pulseSpan)
	p.mu.Lock()
	defer p.mu.Unlock()
	var first, second time.Duration
	for _, s := range p.worst {
		if s.n <= now-pulseSpans {
			continue
		}
		if s.late > first {
			first, second = s.late, first
		} else {
			second = max(second, s.late)
		}
	}
	return max(second, first/4)
}

// why returns how long this node did not run since a time of the boot-time clock, such
// as "this node could not run for 9.1 s: load 31", or "" if it ran.
func (p *pulse) why(since time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var worst stall
	if late := time.Since(p.due); !p.due.IsZero() && late >= stallLeast {
		worst = stall{took: late, load: load()} // the caller is earlier than the pulse's own measurement
	}
	for _, s := range p.stalls {
		if s.ended > since && s.took > worst.took {
			worst = s
		}
	}
	switch {
	case worst.took == 0:
		return ""
	case worst.slept:
		return fmt.Sprintf("this machine was asleep for %s", seconds(worst.took))
	default:
		return fmt.Sprintf("this node could not run for %s: load %s", seconds(worst.took),
			strings.TrimSuffix(fmt.Sprintf("%.1f", float64(worst.load)/1000), ".0"))
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// beatOn measures until ctx ends.
func (p *pulse) beatOn(ctx context.Context) {
	for {
		pause := pulseEvery - time.Duration(time.Now().UnixNano()%int64(pulseEvery))
		asleep, due := p.clock(), time.Now().Add(pause)
		p.mu.Lock()
		p.due = due
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		now, late := p.clock(), time.Since(due)
		p.note(now, late)
		// The boot-time clock advances while the machine is suspended, the other does not.
		if slept := now - asleep - pause - late; slept >= stallLeast {
			p.remember(stall{ended: now, took: slept, slept: true})
		} else if late >= stallLeast {
			p.remember(stall{ended: now, took: late, load: load()})
		}
	}
}
