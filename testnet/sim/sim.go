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
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/link"
)

// A Mesh is a set of nodes on a simulated network.
type Mesh struct {
	Net   *link.Network
	Peers []*Peer

	rng  *rand.Rand
	dir  string
	tune func(*node.Config)
	log  *slog.Logger
}

// A Peer is one machine of the mesh: an address, a disk, and a node when it is up.
type Peer struct {
	Name string
	Addr netip.AddrPort
	Node *node.Node // nil while the machine is down
	disk *vfs.MemFS
	dir  string
}

// New makes a mesh of n nodes, the first of which founds it, and waits until all
// serve. dir is an empty folder for what nodes keep outside their stores. tune,
// if any, changes each node's configuration.
func New(ctx context.Context, seed uint64, n int, dir string, log *slog.Logger, tune func(*node.Config)) (*Mesh, error) {
	if tune == nil {
		tune = func(*node.Config) {}
	}
	m := &Mesh{Net: link.New(seed), rng: rand.New(rand.NewPCG(seed, 0x5e1)), dir: dir, tune: tune, log: log}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		m.Peers = append(m.Peers, &Peer{
			Name: name, dir: filepath.Join(dir, name), disk: vfs.NewCrashableMem(),
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
			if token, err = m.Peers[0].Node.CreateToken(ctx, n, time.Hour); err != nil {
				return m, fmt.Errorf("make a join token: %w", err)
			}
		}
	}
	return m, nil
}

// Start boots a machine that is down.
func (m *Mesh) Start(ctx context.Context, i int) error { return m.start(ctx, i, "") }

func (m *Mesh) start(ctx context.Context, i int, token string) error {
	p := m.Peers[i]
	if p.Node != nil {
		return nil
	}
	conf := node.Config{
		Dir: p.dir, Name: p.Name, MeshName: "sim", HTTP: "none", Join: token, Machine: "sim-" + p.Name,
		Conn: m.Net.Endpoint(p.Addr), FS: notReusing{p.disk}, Advertise: p.Addr, Logger: m.log.With("node", p.Name),
	}
	m.tune(&conf)
	var err error
	p.Node, err = node.Open(ctx, conf)
	return err
}

// Stop shuts a node down in order.
func (m *Mesh) Stop(i int) error {
	p := m.Peers[i]
	if p.Node == nil {
		return nil
	}
	n := p.Node
	p.Node = nil
	return n.Close()
}

// Crash ends a node as a power cut does: nothing more leaves the machine, and of
// what it had not synced, lost percent (0–100) is gone, by chance and by block.
func (m *Mesh) Crash(i, lost int) {
	p := m.Peers[i]
	if p.Node == nil {
		return
	}
	after := p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 - lost, RNG: rand.New(rand.NewPCG(m.rng.Uint64(), 1))})
	// The old node goes on for a moment in a world of its own, and is then stopped.
	for _, q := range m.Peers {
		if q != p {
			m.Net.Set(p.Addr, q.Addr, link.Faults{Cut: true})
		}
	}
	p.Node.Kill()
	p.Node, p.disk = nil, after
	for _, q := range m.Peers {
		if q != p {
			m.Net.Set(p.Addr, q.Addr, link.Faults{})
		}
	}
}

// Leader returns the number of the node that leads and may serve, or -1.
func (m *Mesh) Leader() int {
	for i, p := range m.Peers {
		if p.Node != nil && p.Node.IsLeader() {
			return i
		}
	}
	return -1
}

// WaitLeader waits until a node leads.
func (m *Mesh) WaitLeader(ctx context.Context) (int, error) {
	for {
		if i := m.Leader(); i >= 0 {
			return i, nil
		}
		select {
		case <-ctx.Done():
			return -1, errors.New("no leader")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close stops all nodes.
func (m *Mesh) Close() error {
	var errs []error
	for i := range m.Peers {
		errs = append(errs, m.Stop(i))
	}
	return errors.Join(errs...)
}

// notReusing is a file system that makes a new file instead of using an old one
// again: the memory file system takes its lock twice there, which hangs when a
// clone waits for it in between.
type notReusing struct{ vfs.FS }

func (fs notReusing) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.Remove(from); err != nil {
		return nil, err
	}
	return fs.Create(to, c)
}
