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
	// pulseEvery is how often this node looks how late it runs, at the same moments
	// as most of what else a node at rest wakes for.
	pulseEvery = beat
	// pulseSpan and pulseSpans: the worst of each span is kept, for a minute.
	pulseSpan  = 2 * time.Second
	pulseSpans = 30
	// stallsKept bounds the stalls that are remembered one by one, stallLeast is how
	// long a node must not have run for it to be one.
	stallsKept = 32
	stallLeast = 500 * time.Millisecond
)

// A pulse measures, while the node runs, how late it does: how long after a timer
// was due this process had a processor for it. Election time-outs, gossip and
// leases follow it. Its goroutine is beatOn; everybody may ask.
type pulse struct {
	clock scheduler.Clock // the boot-time clock

	mu     sync.Mutex // guards what follows
	worst  [pulseSpans]span
	stalls []stall   // the newest last
	due    time.Time // when it measures next; zero before the first
}

// A span is one slot of the ring: which it is, and the worst of it.
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

// note takes one measure: at now, by the boot-time clock, something ran late.
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

// remember keeps a stall, for whoever asks why something was lost.
func (p *pulse) remember(s stall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stalls) == stallsKept {
		p.stalls = p.stalls[1:]
	}
	p.stalls = append(p.stalls, s)
}

// Late is how late this node runs now and then: the second-worst span of the last
// minute, since one bad moment does not make a machine slow, or a quarter of the
// worst one, since a very bad one may. It falls back within a minute.
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

// why says how long this node did not run since a moment of the boot-time clock,
// "" when it ran: "this node could not run for 9.1 s: load 31".
func (p *pulse) why(since time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var worst stall
	if late := time.Since(p.due); !p.due.IsZero() && late >= stallLeast {
		worst = stall{took: late, load: load()} // who asks was sooner than the pulse
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
		return fmt.Sprintf("this node could not run for %s: load %s", seconds(worst.took), strings.TrimSuffix(fmt.Sprintf("%.1f", float64(worst.load)/1000), ".0"))
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
		// The boot-time clock goes on while the machine is suspended, the other does not.
		if slept := now - asleep - pause - late; slept >= stallLeast {
			p.remember(stall{ended: now, took: slept, slept: true})
		} else if late >= stallLeast {
			p.remember(stall{ended: now, took: late, load: load()})
		}
	}
}
