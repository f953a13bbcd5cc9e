// Package sim is a mesh in one process, for testing/synctest: real nodes, real
// raft, real QUIC and Noise, real Pebble; only the network and the disks are in
// memory, and time is virtual. An hour costs seconds.
//
// Nodes have crashable disks: what was not synced when a node crashes is lost,
// or torn. Links lose, delay, duplicate, reorder and cut, each direction on its
// own. Everything that is left to chance follows from the seed.
package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
	"github.com/selvage-mesh/selvage/testnet/disk"
	"github.com/selvage-mesh/selvage/testnet/link"
)

// A Mesh is a set of nodes on a simulated network.
type Mesh struct {
	Net   *link.Network
	Peers []*Peer

	rng   *rand.Rand // of whoever makes the faults; one goroutine at a time
	began time.Time
	tune  func(*node.Config)
	log   *slog.Logger
}

// A Peer is one machine of the mesh: an address, a disk, and a node while it is up.
type Peer struct {
	Name string
	Addr netip.AddrPort
	disk *disk.Disk
	dir  string
	up   atomic.Pointer[Life] // nil while the machine is down
}

// A Life is a node from its start to its end.
type Life struct {
	*node.Node
	conn *link.Endpoint
	dead atomic.Bool
}

// Dead reports whether the node has crashed: what it says from then on, nobody
// has heard.
func (l *Life) Dead() bool { return l.dead.Load() }

// Up returns the node that runs on the machine, nil while none does.
func (p *Peer) Up() *Life { return p.up.Load() }

// New makes a mesh of n nodes, the first of which founds it, and waits until all
// serve and vote. dir is an empty folder for what nodes keep outside their
// stores. tune, if any, changes each node's configuration.
func New(ctx context.Context, seed uint64, n int, dir string, log *slog.Logger,
	tune func(*node.Config)) (*Mesh, error) {
	if tune == nil {
		tune = func(*node.Config) {}
	}
	m := &Mesh{Net: link.New(seed), rng: rand.New(rand.NewPCG(seed, 0x5e1)), began: time.Now(), tune: tune, log: log}
	m.Heal()
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		m.Peers = append(m.Peers, &Peer{
			Name: name, dir: filepath.Join(dir, name), disk: disk.New(),
			Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 9470),
		})
	}
	token := ""
	for i := range m.Peers {
		if err := m.start(ctx, i, token); err != nil {
			return m, fmt.Errorf("start %s: %w", m.Peers[i].Name, err)
		}
		if i == 0 && n > 1 {
			var err error
			if token, err = m.Peers[0].Up().CreateToken(ctx, n, time.Hour); err != nil {
				return m, fmt.Errorf("make a join token: %w", err)
			}
		}
	}
	return m, m.waitVoters(ctx)
}

func (m *Mesh) waitVoters(ctx context.Context) error {
	return m.until(ctx, "all nodes vote", func() bool {
		for _, p := range m.Peers {
			if p.Up().Role() == "non-voter" {
				return false
			}
		}
		return true
	})
}

// until waits until done, for settleTimeout at most.
func (m *Mesh) until(ctx context.Context, what string, done func() bool) error {
	for deadline := time.Now().Add(settleTimeout); !done(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("timed out after %s waiting until %s", settleTimeout, what)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// settleTimeout bounds what a mesh without faults needs to be well again.
const settleTimeout = time.Minute

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Start boots a machine that is down.
func (m *Mesh) Start(ctx context.Context, i int) error { return m.start(ctx, i, "") }

func (m *Mesh) start(ctx context.Context, i int, token string) error {
	p := m.Peers[i]
	if p.Up() != nil {
		return nil
	}
	l := &Life{conn: m.Net.Endpoint(p.Addr)}
	conf := node.Config{
		Dir: p.dir, Name: p.Name, MeshName: "sim", HTTP: "none", Join: token, Machine: "sim-" + p.Name, Size: node.SizeSmall,
		Conn: l.conn, FS: p.disk, Advertise: p.Addr, Logger: m.log.With("node", p.Name),
		Clock:    func() time.Duration { return time.Since(m.began) },
		Adapters: map[string]scheduler.Adapter{},
		TuneConsensus: func(c *consensus.Config) {
			c.Stabilisation = time.Second // nobody comes and goes while the mesh is made
			c.SnapshotThreshold, c.TrailingLogs, c.SnapshotInterval = snapshotAfter, snapshotAfter/4, 5*time.Second
		},
	}
	m.tune(&conf)
	var err error
	if l.Node, err = node.Open(ctx, conf); err != nil {
		return err
	}
	p.up.Store(l)
	return nil
}

// snapshotAfter is low so that nodes that were away also come back by snapshot.
const snapshotAfter = 256

// Stop shuts a node down in order. The error is also that for which the node
// wanted to stop by itself.
func (m *Mesh) Stop(i int) error {
	l := m.Peers[i].up.Swap(nil)
	if l == nil {
		return nil
	}
	return errors.Join(l.Close(), l.complaint())
}

// complaint is the error for which a node can not go on, if there is one.
func (l *Life) complaint() error {
	select {
	case err := <-l.Failed():
		return fmt.Errorf("%s stopped itself: %w", l.Name(), err)
	default:
		return nil
	}
}

// Crash ends nodes as a power cut does, all at the same moment: nothing more
// leaves the machines, and of what they had not synced, lost percent (0 to 100)
// is gone, by chance and by block.
func (m *Mesh) Crash(lost int, which ...int) error {
	var lives []*Life
	for _, i := range which {
		if l := m.Peers[i].up.Swap(nil); l != nil {
			l.dead.Store(true)
			l.conn.Close()
			lives = append(lives, l)
		}
	}
	for _, i := range which {
		p := m.Peers[i]
		p.disk = p.disk.Crash(100-lost, rand.New(rand.NewPCG(m.rng.Uint64(), 1)))
	}
	// What is left of the old nodes goes on for a moment in a world of its own.
	var wg sync.WaitGroup
	errs := make([]error, len(lives))
	for i, l := range lives {
		errs[i] = l.complaint()
		wg.Go(l.Kill)
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Leader returns the number of the node that leads and may serve, or -1.
func (m *Mesh) Leader() int {
	for i, p := range m.Peers {
		if l := p.Up(); l != nil && l.IsLeader() {
			return i
		}
	}
	return -1
}

// WaitLeader waits until a node leads.
func (m *Mesh) WaitLeader(ctx context.Context) (leader int, err error) {
	err = m.until(ctx, "a node leads", func() bool { leader = m.Leader(); return leader >= 0 })
	return leader, err
}

// Heal gives all links back what a rack has: half a millisecond, and nothing lost.
func (m *Mesh) Heal() {
	m.Net.Heal()
	m.Net.SetAll(link.Faults{Delay: 300 * time.Microsecond, Jitter: 200 * time.Microsecond})
}

// Close stops all nodes.
func (m *Mesh) Close() error {
	var wg sync.WaitGroup
	errs := make([]error, len(m.Peers))
	for i := range m.Peers {
		wg.Go(func() { errs[i] = m.Stop(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
