package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/selvage-mesh/selvage/testnet/link"
)

// A Fault is one thing that went wrong, for the record.
type Fault struct {
	At   time.Duration // since the faults began
	What string
}

func (f Fault) String() string { return fmt.Sprintf("%6.1fs %s", f.At.Seconds(), f.What) }

// Harm lets n faults happen, one after the other, and mends each after a while.
// At most a minority of the nodes is down or cut off at a time, but leaders are
// hit more often than others. It returns what it did; afterwards all nodes are
// up and all links work.
func (m *Mesh) Harm(ctx context.Context, n int) (done []Fault, err error) {
	start := time.Now()
	note := func(format string, args ...any) {
		done = append(done, Fault{time.Since(start), fmt.Sprintf(format, args...)})
	}
	for range n {
		if err := m.pause(ctx, time.Second, 3*time.Second); err != nil {
			return done, err
		}
		victim := m.Leader()
		if victim < 0 || m.rng.IntN(3) == 0 {
			victim = m.rng.IntN(len(m.Peers))
		}
		name := m.Peers[victim].Name
		switch kind := m.rng.IntN(7); kind {
		case 0, 1:
			lost := []int{0, 50, 100}[m.rng.IntN(3)]
			note("crash %s, losing %d%% of what was not synced", name, lost)
			m.Crash(victim, lost)
			if err := m.pause(ctx, time.Second, 6*time.Second); err != nil {
				return done, err
			}
			if err := m.Start(ctx, victim); err != nil {
				return done, fmt.Errorf("restart %s: %w", name, err)
			}
			note("restart %s", name)
		case 2:
			note("cut %s off", name)
			m.isolate(victim, true, true)
			err = m.pause(ctx, 2*time.Second, 8*time.Second)
		case 3:
			note("cut what %s sends", name)
			m.isolate(victim, true, false)
			err = m.pause(ctx, 2*time.Second, 8*time.Second)
		case 4:
			note("cut what %s receives", name)
			m.isolate(victim, false, true)
			err = m.pause(ctx, 2*time.Second, 8*time.Second)
		case 5:
			f := link.Faults{Loss: 0.02 + 0.1*m.rng.Float64(), Duplicate: 0.1, Reorder: 0.1, Delay: 5 * time.Millisecond, Jitter: 20 * time.Millisecond}
			note("bad links: %.0f%% lost, duplicated and reordered", 100*f.Loss)
			m.Net.SetAll(f)
			err = m.pause(ctx, 3*time.Second, 8*time.Second)
		case 6:
			d := time.Duration(20+m.rng.IntN(80)) * time.Millisecond
			note("slow links: %s each way", d)
			m.Net.SetAll(link.Faults{Delay: d, Jitter: d / 4})
			err = m.pause(ctx, 3*time.Second, 8*time.Second)
		}
		m.Net.Heal()
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// isolate cuts what a node sends, what it receives, or both.
func (m *Mesh) isolate(i int, out, in bool) {
	for j, q := range m.Peers {
		if j == i {
			continue
		}
		if out {
			m.Net.Set(m.Peers[i].Addr, q.Addr, link.Faults{Cut: true})
		}
		if in {
			m.Net.Set(q.Addr, m.Peers[i].Addr, link.Faults{Cut: true})
		}
	}
}

func (m *Mesh) pause(ctx context.Context, least, most time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(least + time.Duration(m.rng.Int64N(int64(most-least)))):
		return nil
	}
}
