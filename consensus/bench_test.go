package consensus

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// onDisk starts n nodes in this process, on the real disk, with TCP between them.
func onDisk(b *testing.B, n int, tune func(*Config)) *mesh {
	m := &mesh{t: b, wires: newWires(), tune: tune, diverged: map[identity.NodeID][]Divergence{},
		fatal: map[identity.NodeID]error{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	var one sync.Mutex
	m.wires.pipe = func() (net.Conn, net.Conn) {
		one.Lock()
		defer one.Unlock()
		a, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		return a, c
	}
	for i := range n {
		m.add(byte(i + 1)).dir = b.TempDir()
	}
	m.found()
	return m
}

// BenchmarkPropose submits commands through all three nodes, whose state is the
// real ledger with a command that writes one row.
func BenchmarkPropose(b *testing.B) {
	for _, clients := range []int{1, 64} {
		for _, via := range []string{"leader", "follower", "all"} {
			if clients == 64 && via == "follower" {
				continue
			}
			b.Run(fmt.Sprintf("clients=%d/via=%s", clients, via), func(b *testing.B) {
				m := onDisk(b, 3, nil)
				nodes := m.nodes
				switch via {
				case "leader":
					nodes = []*node{m.leader()}
				case "follower":
					nodes = m.followers()[:1]
				}
				var next atomic.Int64
				var lat sync.Map
				ctx := context.Background()
				for _, n := range nodes {
					if err := n.add(ctx, "warm"+n.id().Short()); err != nil {
						b.Fatal(err)
					}
				}
				before := make([]uint64, len(m.nodes))
				for i, n := range m.nodes {
					before[i] = n.store.Syncs()
				}
				b.ResetTimer()
				var wg sync.WaitGroup
				for w := range clients {
					wg.Go(func() {
						var ds []time.Duration
						for {
							i := next.Add(1)
							if i > int64(b.N) {
								break
							}
							start := time.Now()
							if err := nodes[w%len(nodes)].add(ctx, fmt.Sprint("b", i)); err != nil {
								b.Error(err)
								return
							}
							ds = append(ds, time.Since(start))
						}
						lat.Store(w, ds)
					})
				}
				wg.Wait()
				b.StopTimer()
				var all []time.Duration
				lat.Range(func(_, v any) bool { all = append(all, v.([]time.Duration)...); return true })
				p50, p99 := quantiles(all)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cmds/s")
				b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
				b.ReportMetric(float64(p99.Microseconds()), "p99-µs")
				b.ReportMetric(float64(m.nodes[0].store.Syncs()-before[0])/float64(b.N), "syncs/cmd")
			})
		}
	}
}

// BenchmarkReadIndex asks followers for the index of a strong read.
func BenchmarkReadIndex(b *testing.B) {
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m := onDisk(b, 3, nil)
			n := m.followers()[0]
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range clients {
				wg.Go(func() {
					for next.Add(1) <= int64(b.N) {
						i, err := n.cons.ReadIndex(context.Background())
						if err == nil {
							err = n.led.WaitApplied(context.Background(), i)
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
		})
	}
}

// BenchmarkReadAfterWrite writes through a follower and waits until that
// follower has applied the write: what a default read there costs.
func BenchmarkReadAfterWrite(b *testing.B) {
	m := onDisk(b, 3, nil)
	n := m.followers()[0]
	var writes, reads []time.Duration
	ctx := context.Background()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		r, err := n.prop.Submit(ctx, addCommand(fmt.Sprint("w", i)))
		if err != nil {
			b.Fatal(err)
		}
		writes = append(writes, time.Since(start))
		start = time.Now()
		if err := n.led.WaitApplied(ctx, r.Index); err != nil {
			b.Fatal(err)
		}
		reads = append(reads, time.Since(start))
		time.Sleep(time.Millisecond) // not the next write tells of the commit
	}
	w50, _ := quantiles(writes)
	r50, r99 := quantiles(reads)
	b.ReportMetric(float64(w50.Microseconds()), "write-p50-µs")
	b.ReportMetric(float64(r50.Microseconds()), "wait-p50-µs")
	b.ReportMetric(float64(r99.Microseconds()), "wait-p99-µs")
}

func quantiles(d []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(d)
	return d[len(d)/2], d[len(d)*99/100]
}

// BenchmarkFailover kills the leader and measures, in real time, how long it
// takes until a write through another node is accepted.
func BenchmarkFailover(b *testing.B) {
	m := onDisk(b, 3, nil)
	var gaps []time.Duration
	ctx := context.Background()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		l := m.leader()
		f := m.followers()[0]
		if err := f.add(ctx, fmt.Sprint("warm", i)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		start := time.Now()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			l.stop(true)
		}()
		if err := f.add(ctx, fmt.Sprint("after", i)); err != nil {
			b.Fatal(err)
		}
		gaps = append(gaps, time.Since(start))
		b.StopTimer()
		<-stopped
		l.start()
		m.wait(20*time.Second, "everybody to catch up", func() bool {
			return l.led.Applied() == m.leader().led.Applied()
		})
		b.StartTimer()
	}
	slices.Sort(gaps)
	b.ReportMetric(float64(gaps[len(gaps)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(gaps[len(gaps)-1].Milliseconds()), "worst-ms")
}
