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

func (f Fault) String() string { return fmt.Sprintf("%.1fs %s", f.At.Seconds(), f.What) }

// Kinds of faults. Each goes wrong for a while and is then mended.
const (
	crashLeader = iota
	crashAny
	restart
	cutOff
	cutOut
	cutIn
	badLinks
	slowLinks
	kinds
)

// Harm lets n faults happen, one after the other, each of another kind as long
// as there are some, the leader's crash always among them. At most a minority of
// the nodes is down or cut off at a time, but leaders are hit more often than
// others. It returns what it did; afterwards all nodes are up and all links work.
func (m *Mesh) Harm(ctx context.Context, n int) (done []Fault, err error) {
	start := time.Now()
	note := func(format string, args ...any) {
		done = append(done, Fault{time.Since(start), fmt.Sprintf(format, args...)})
	}
	order := m.rng.Perm(kinds)
	for k, kind := range order {
		if kind == crashLeader && k >= n {
			at := m.rng.IntN(n)
			order[at], order[k] = order[k], order[at]
		}
	}
	for k := range n {
		if err := m.pause(ctx, 500*time.Millisecond, 2*time.Second); err != nil {
			return done, err
		}
		if err := m.fault(ctx, order[k%kinds], note); err != nil {
			return done, err
		}
		m.Heal()
	}
	return done, nil
}

// fault lets one fault happen and waits for its end; its links are still bad.
func (m *Mesh) fault(ctx context.Context, kind int, note func(string, ...any)) error {
	victim := m.Leader()
	if kind != crashLeader && m.rng.IntN(2) == 0 || victim < 0 {
		victim = m.rng.IntN(len(m.Peers))
	}
	name := m.Peers[victim].Name
	if m.Leader() == victim {
		name += " (leader)"
	}
	switch kind {
	case crashLeader, crashAny:
		lost := []int{0, 50, 100}[m.rng.IntN(3)]
		note("crash %s, losing %d%% of what was not synced", name, lost)
		if err := m.Crash(lost, victim); err != nil {
			return err
		}
		return m.boot(ctx, victim)
	case restart:
		note("restart %s", name)
		if err := m.Stop(victim); err != nil {
			return err
		}
		return m.boot(ctx, victim)
	case cutOff:
		note("cut %s off", name)
		m.Isolate(victim, true, true)
	case cutOut:
		note("cut what %s sends", name)
		m.Isolate(victim, true, false)
	case cutIn:
		note("cut what %s receives", name)
		m.Isolate(victim, false, true)
	case badLinks:
		f := link.Faults{Loss: 0.02 + 0.1*m.rng.Float64(), Duplicate: 0.1, Reorder: 0.1, Delay: 5 * time.Millisecond,
			Jitter: 20 * time.Millisecond}
		note("bad links: %.0f%% lost, 10%% duplicated, 10%% reordered", 100*f.Loss)
		m.Net.SetAll(f)
	case slowLinks:
		d := time.Duration(20+m.rng.IntN(80)) * time.Millisecond
		note("slow links: %s each way", d)
		m.Net.SetAll(link.Faults{Delay: d, Jitter: d / 4})
	}
	return m.pause(ctx, 1500*time.Millisecond, 6*time.Second)
}

// boot starts a machine again after a while.
func (m *Mesh) boot(ctx context.Context, i int) error {
	if err := m.pause(ctx, 100*time.Millisecond, 4*time.Second); err != nil {
		return err
	}
	if err := m.Start(ctx, i); err != nil {
		return fmt.Errorf("start %s again: %w", m.Peers[i].Name, err)
	}
	return nil
}

// Isolate cuts what a node sends, what it receives, or both.
func (m *Mesh) Isolate(i int, out, in bool) {
	for j := range m.Peers {
		if j != i && out {
			m.Cut(i, j)
		}
		if j != i && in {
			m.Cut(j, i)
		}
	}
}

// Cut lets nothing through in one direction between two nodes.
func (m *Mesh) Cut(from, to int) {
	m.Net.Set(m.Peers[from].Addr, m.Peers[to].Addr, link.Faults{Cut: true})
}

func (m *Mesh) pause(ctx context.Context, least, most time.Duration) error {
	return sleep(ctx, least+time.Duration(m.rng.Int64N(int64(most-least))))
}
