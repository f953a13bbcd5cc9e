package consensus

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// A spaceFS tells of as much free space as a test says.
type spaceFS struct {
	vfs.FS
	free *atomic.Uint64
}

func (f spaceFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free.Load(), TotalBytes: 1 << 40}, nil
}

// keptFree is more than the ballast, so that a node makes none here.
const keptFree = 1 << 30

// spaced is a mesh of three whose disks are full where a test says so.
func spaced(t *testing.T, f func(t *testing.T, m *mesh, full func(n *node, is bool))) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, 3, nil)
		free := map[*node]*atomic.Uint64{}
		for _, n := range m.nodes {
			disk := &atomic.Uint64{}
			disk.Store(keptFree + keptFree/4) // more than the margin, less than a ballast beside it asks for
			free[n] = disk
			n.stop(false)
			n.keep, n.wrap = keptFree, func(fs vfs.FS) vfs.FS { return spaceFS{fs, disk} }
			n.start()
			m.leader()
			m.wait(30*time.Second, "all three are back", func() bool { return n.led.Applied() > 0 && n.cons.Stats().Voter })
		}
		f(t, m, func(n *node, is bool) {
			if is {
				free[n].Store(0)
			} else {
				free[n].Store(keptFree + keptFree/4)
			}
		})
	})
}

// promptly bounds how long a mesh may take to go on when there is room again.
const promptly = 500 * time.Millisecond

// While the disks are full a write is refused at once, through every node; with room
// again all nodes take writes promptly.
func TestWritesGoOnPromptlyWhenThereIsRoomAgain(t *testing.T) {
	spaced(t, func(t *testing.T, m *mesh, full func(*node, bool)) {
		var acked []string
		for round := range 8 { // in each at another moment between two looks at the disk
			for _, n := range m.nodes {
				full(n, true)
			}
			time.Sleep(2 * time.Second)
			for range 91 + round {
				for _, n := range m.nodes {
					if err := n.add(t.Context(), "full"); !errors.Is(err, store.ErrDiskFull) {
						t.Fatalf("on full disks: %v", err)
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			for _, n := range m.nodes {
				full(n, false)
			}
			began := time.Now()
			for i, n := range m.nodes {
				id := fmt.Sprint("after ", round, i)
				for n.add(t.Context(), id) != nil {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(began); took > promptly {
					t.Errorf("round %d: node %d took a write %s after there was room", round, i+1, took)
				}
				acked = append(acked, id)
			}
		}
		m.same(acked)
		if m.nodes[0].count("full") != 0 {
			t.Error("a command that was refused has been carried out")
		}
	})
}

// A follower whose disk was full for minutes gets what it has missed as soon as
// there is room: raft alone would wait up to 10 s before it sends again.
func TestAFollowerCatchesUpPromptlyWhenItHasRoomAgain(t *testing.T) {
	spaced(t, func(t *testing.T, m *mesh, full func(*node, bool)) {
		n := m.followers()[0]
		full(n, true)
		var acked []string
		for i := range 600 {
			id := fmt.Sprint(strings.Repeat("long ", 200), i) // a vote, which is short, is kept even then
			if err := m.leader().add(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			acked = append(acked, id)
			time.Sleep(100 * time.Millisecond)
		}
		if n.count(acked[599]) != 0 {
			t.Fatal("the full disk took entries")
		}
		full(n, false)
		m.wait(2*promptly, "the follower has caught up", func() bool { return n.count(acked[599]) == 1 })
		m.same(acked)
	})
}
