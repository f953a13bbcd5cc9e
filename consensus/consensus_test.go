package consensus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/identity"
)

// bubble runs f with a mesh of n nodes in virtual time.
func bubble(t *testing.T, n int, tune func(*Config), f func(t *testing.T, m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, n, tune)
		f(t, m)
	})
}

func TestEveryNodeProposesAndAllAgree(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		var acked []string
		for i, n := range m.nodes {
			for k := range 3 {
				id := fmt.Sprintf("%d-%d", i, k)
				if err := n.add(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				acked = append(acked, id)
			}
		}
		m.same(acked)
	})
}

func TestKilledLeaderIsReplacedInTime(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		follower := m.followers()[0]
		if err := follower.add(t.Context(), "before"); err != nil {
			t.Fatal(err)
		}
		l.stop(true)
		start := time.Now()
		if err := follower.add(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		if gap := time.Since(start); gap > 3*time.Second {
			t.Errorf("writes were accepted again after %s, want at most 3 s", gap)
		} else {
			t.Logf("gap %s", gap)
		}
		m.same([]string{"before", "after"})
	})
}

// load submits through every node until it is told to stop, and returns what
// was acknowledged. Each command waits as long as it needs.
func (m *mesh) load(t *testing.T, workers int) (peek, stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	pause := 10 * time.Millisecond
	if testing.Short() { // under the race detector a command costs ten times the work
		pause *= 4
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var acked []string
	for w := range workers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				n := m.nodes[(w+i)%len(m.nodes)]
				id := fmt.Sprintf("%d-%d", w, i)
				if n.add(ctx, id) == nil {
					mu.Lock()
					acked = append(acked, id)
					mu.Unlock()
				}
				time.Sleep(pause)
			}
		})
	}
	peek = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(acked)
	}
	return peek, func() []string {
		cancel()
		wg.Wait()
		return acked
	}
}

// TestLeaderDiesBetweenCommitAndAnswer kills the leader again and again under
// load: each acknowledged command is there once on every node, also those whose
// batch was sent again to another leader. No other is there twice.
func TestLeaderDiesBetweenCommitAndAnswer(t *testing.T) {
	deaths := 4
	if testing.Short() { // under the race detector a command costs ten times the work
		deaths = 2
	}
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		_, stop := m.load(t, 6)
		for range deaths {
			time.Sleep(2 * time.Second)
			l := m.leader()
			l.crash()
			time.Sleep(2 * time.Second)
			l.start()
		}
		time.Sleep(3 * time.Second)
		acked := stop()
		if len(acked) < 250*deaths {
			t.Errorf("only %d commands were acknowledged", len(acked))
		}
		m.same(acked)
		for id, n := range m.nodes[0].counts() {
			if n > 1 {
				t.Fatalf("command %s was carried out %d times", id, n)
			}
		}
		t.Logf("%d acknowledged", len(acked))
	})
}

// TestOneWayPartition cuts the leader's way out only, then its way in only.
// Either way the others go on, and the leader that can not be sure serves
// nothing.
func TestOneWayPartition(t *testing.T) {
	for _, out := range []bool{true, false} {
		t.Run(fmt.Sprintf("out=%v", out), func(t *testing.T) {
			bubble(t, 3, nil, func(t *testing.T, m *mesh) {
				l := m.leader()
				others := m.followers()
				if err := l.add(t.Context(), "before"); err != nil {
					t.Fatal(err)
				}
				set := func(cut bool) {
					for _, o := range others {
						if out {
							m.wires.setCut(l.id(), o.id(), cut)
						} else {
							m.wires.setCut(o.id(), l.id(), cut)
						}
					}
				}
				set(true)
				start := time.Now()
				if err := others[0].add(t.Context(), "during"); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("the others took %s", d)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				if i, err := l.cons.ReadIndex(ctx); err == nil && i < others[0].led.Applied() {
					t.Errorf("the cut-off leader served a strong read at %d", i)
				}
				set(false)
				err := l.add(t.Context(), "after")
				for errors.Is(err, ErrNoQuorum) && !errors.Is(err, ErrOutcomeUnknown) { // it has not heard of the leader yet
					err = l.add(t.Context(), "after")
				}
				if err != nil {
					t.Fatal(err)
				}
				m.same([]string{"before", "during", "after"})
			})
		})
	}
}

// TestLaggingNodeInstallsSnapshot keeps a node away while the log is cut short
// under load: it comes back by a snapshot, without the log before it.
func TestLaggingNodeInstallsSnapshot(t *testing.T) {
	tune := func(c *Config) {
		c.TrailingLogs, c.SnapshotThreshold, c.SnapshotInterval = 20, 50, 200*time.Millisecond
	}
	bubble(t, 3, tune, func(t *testing.T, m *mesh) {
		away := m.followers()[0]
		last := away.led.Applied()
		away.stop(true)
		_, stop := m.load(t, 4)
		time.Sleep(5 * time.Second)
		l := m.leader()
		if s := l.cons.Stats(); s.LogFirst <= last+1 {
			t.Fatalf("the leader's log begins at %d, the lagging node is at %d", s.LogFirst, last)
		}
		away.start()
		time.Sleep(3 * time.Second)
		acked := stop()
		m.same(acked)
		if s := away.cons.Stats(); s.Snapshot <= last {
			t.Errorf("the node has no newer snapshot than %d", s.Snapshot)
		}
		// And it goes on from its own disk.
		away.crash()
		away.start()
		if err := away.add(t.Context(), "again"); err != nil {
			t.Fatal(err)
		}
		m.same(append(acked, "again"))
	})
}

// A log of few large entries is cut short too: a start reads what lies behind the
// newest snapshot.
func TestALongLogIsBoundByItsBytes(t *testing.T) {
	tune := func(c *Config) {
		c.SnapshotBytes, c.SnapshotInterval = 200<<10, 6*time.Second
	}
	bubble(t, 1, tune, func(t *testing.T, m *mesh) {
		n := m.nodes[0]
		add := func(kib int) {
			for range kib / 20 {
				if err := n.add(t.Context(), strings.Repeat("x", 20<<10)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(3 * time.Second)
		}
		add(100)
		if s := n.cons.Stats(); s.Snapshot != 0 {
			t.Errorf("a snapshot at %d of a short log", s.Snapshot)
		}
		add(200)
		first := n.cons.Stats().Snapshot
		if first == 0 {
			t.Fatal("no snapshot of a long log")
		}
		add(100)
		if s := n.cons.Stats(); s.Snapshot != first {
			t.Errorf("another snapshot at %d, the log was not long again", s.Snapshot)
		}
		n.crash()
		n.start()
		if err := n.add(t.Context(), "again"); err != nil {
			t.Fatal(err)
		}
		add(600)
		if s := n.cons.Stats(); s.Snapshot <= first {
			t.Errorf("no snapshot after %d", first)
		}
	})
}

func TestRestartFromDisk(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		var acked []string
		for i := range 20 {
			id := fmt.Sprint("r", i)
			if err := m.nodes[i%3].add(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			acked = append(acked, id)
		}
		m.same(acked)
		for _, n := range m.nodes {
			n.stop(false)
		}
		for _, n := range m.nodes {
			n.start()
		}
		if err := m.nodes[1].add(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		m.same(append(acked, "after"))
	})
}

// TestPowerLossKeepsWhatWasAcknowledged takes the power from all nodes at once.
func TestPowerLossKeepsWhatWasAcknowledged(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		acked := powerLoss(t, m)
		m.same(acked)
	})
}

func powerLoss(t *testing.T, m *mesh) []string {
	peek, stop := m.load(t, 4)
	time.Sleep(2*time.Second + time.Millisecond)
	acked := peek()
	var after []*vfs.MemFS
	for _, n := range m.nodes {
		after = append(after, n.fs.CrashClone(vfs.CrashCloneCfg{}))
	}
	for _, n := range m.nodes {
		m.wires.unplug(n.id())
	}
	stop()
	for i, n := range m.nodes {
		n.stop(true)
		n.fs = after[i]
	}
	for _, n := range m.nodes {
		n.start()
	}
	m.leader()
	return acked
}

// stallFS holds every sync of the write-ahead log while it is stalled.
type stallFS struct {
	vfs.FS
	mu   sync.Mutex
	gate chan struct{} // nil: open
}

func (f *stallFS) stall(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on {
		f.gate = make(chan struct{})
	} else if f.gate != nil {
		close(f.gate)
		f.gate = nil
	}
}

func (f *stallFS) pass() {
	f.mu.Lock()
	g := f.gate
	f.mu.Unlock()
	if g != nil {
		<-g
	}
}

func (f *stallFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return file, err
	}
	return &stallFile{file, f}, nil
}

func (f *stallFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *stallFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, to, c)
	return f.wrap(to, file, err)
}

type stallFile struct {
	vfs.File
	fs *stallFS
}

func (f *stallFile) Sync() error                  { f.fs.pass(); return f.File.Sync() }
func (f *stallFile) SyncData() error              { f.fs.pass(); return f.File.SyncData() }
func (f *stallFile) SyncTo(n int64) (bool, error) { f.fs.pass(); return f.File.SyncTo(n) }

// TestALeaderIsSeenToLeadAgainAfterAStall blocks the fsync of a leader that nobody
// can replace: whoever took it for one that does not lead hears of the end.
func TestALeaderIsSeenToLeadAgainAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{t: t, wires: newWires(), diverged: map[identity.NodeID][]Divergence{}, fatal: map[identity.NodeID]error{}}
		var disk *stallFS
		n := m.add(1)
		n.wrap = func(fs vfs.FS) vfs.FS {
			disk = &stallFS{FS: fs}
			return disk
		}
		m.found()
		m.leader()
		disk.stall(true)
		done := make(chan error, 1)
		go func() { done <- n.add(t.Context(), "late") }()
		time.Sleep(3 * electionTimeout)
		changed := n.cons.Changes()
		if _, leads := n.cons.Leads(); leads {
			t.Fatal("a leader with a stalled disk serves")
		}
		disk.stall(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Error("the end of the stall was not told")
		}
		if _, leads := n.cons.Leads(); !leads {
			t.Error("it does not lead again")
		}
	})
}

// TestStalledDiskMakesTheLeaderStepDown blocks the leader's fsync: another node
// accepts writes within 10 s, the old leader says that it is ill and, after
// 20 s, that it is done for. When the disk comes back it follows.
func TestStalledDiskMakesTheLeaderStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{t: t, wires: newWires(), diverged: map[identity.NodeID][]Divergence{}, fatal: map[identity.NodeID]error{}}
		disks := map[*node]*stallFS{}
		for i := range 3 {
			n := m.add(byte(i + 1))
			n.wrap = func(fs vfs.FS) vfs.FS {
				disks[n] = &stallFS{FS: fs}
				return disks[n]
			}
		}
		m.found()
		l := m.leader()
		others := m.followers()
		disks[l].stall(true)
		start := time.Now()
		stuck := make(chan error, 1)
		go func() { stuck <- l.add(t.Context(), "stuck") }()
		if err := others[0].add(t.Context(), "during"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("another node accepted writes after %s, want 10 s", d)
		} else {
			t.Logf("another node accepted writes after %s", d)
		}
		if l.cons.IsLeader() || l.cons.Healthy() == nil {
			t.Error("the stalled node serves, or thinks it is healthy")
		}
		time.Sleep(fatalStall)
		m.mu.Lock()
		if m.fatal[l.id()] == nil {
			t.Error("20 s of stall were not fatal")
		}
		m.mu.Unlock()
		disks[l].stall(false)
		want := []string{"during"}
		switch err := <-stuck; {
		case err == nil: // the same sequence, at the new leader
			want = append(want, "stuck")
		case !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrOutcomeUnknown): // it never left the node
			t.Error(err)
		}
		m.same(want)
	})
}

func TestLeadershipIsHandedOn(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		// A follower asks for it; the answer may be lost with the change, and is asked again.
		if err := m.followers()[0].cons.TransferLeadership(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wait(5*time.Second, "another leader", func() bool { return m.leader() != l })
		l = m.leader()
		start := time.Now()
		l.stop(false)
		if err := m.alive()[0].add(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 500*time.Millisecond {
			t.Errorf("a graceful stop cost %s", d)
		}
	})
}

// TestStrongReadsSeeAcknowledgedWrites reads through every node while leaders
// change: a strong read begun after a write was acknowledged sees it.
func TestStrongReadsSeeAcknowledgedWrites(t *testing.T) {
	bubble(t, 3, nil, func(t *testing.T, m *mesh) {
		if n := staleReads(t, m); n > 0 {
			t.Errorf("%d strong reads were stale", n)
		}
	})
}

// staleReads cuts leaders off again and again and returns how many strong
// reads missed a write that was acknowledged before they began.
func staleReads(t *testing.T, m *mesh) int {
	var stale, done atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(20 * time.Millisecond) // the disk costs no virtual time
				id := fmt.Sprintf("s%d-%d", w, i)
				wctx, stop := context.WithTimeout(ctx, 5*time.Second)
				if m.nodes[(w+i)%3].add(wctx, id) == nil {
					for _, n := range m.nodes {
						rctx, stop := context.WithTimeout(ctx, 2*time.Second)
						index, err := n.cons.ReadIndex(rctx)
						if err == nil && n.led.WaitApplied(rctx, index) == nil {
							done.Add(1)
							if n.count(id) != 1 {
								stale.Add(1)
							}
						}
						stop()
					}
				}
				stop()
			}
		})
	}
	for range 3 {
		time.Sleep(2 * time.Second)
		l := m.leader()
		for _, o := range m.nodes {
			if o != l {
				m.wires.setCut(l.id(), o.id(), true)
				m.wires.setCut(o.id(), l.id(), true)
			}
		}
		time.Sleep(4 * time.Second)
		for _, o := range m.nodes {
			m.wires.setCut(l.id(), o.id(), false)
			m.wires.setCut(o.id(), l.id(), false)
		}
	}
	cancel()
	wg.Wait()
	if done.Load() < 100 {
		t.Errorf("only %d strong reads were answered", done.Load())
	}
	return int(stale.Load())
}

// TestNonvotersDoNotConfirmTheLeader: raft's own check counts them. A leader
// that only a non-voter still hears must not answer strong reads.
func TestNonvotersDoNotConfirmTheLeader(t *testing.T) {
	bubble(t, 4, nil, func(t *testing.T, m *mesh) {
		l := m.leader()
		var learner *node
		for _, s := range l.cons.Servers() {
			if !s.Voter {
				for _, n := range m.nodes {
					if n.id() == s.Node {
						learner = n
					}
				}
			}
		}
		if learner == nil {
			t.Fatal("no non-voter among four nodes")
		}
		for _, o := range m.nodes {
			if o != l && o != learner {
				m.wires.setCut(l.id(), o.id(), true)
				m.wires.setCut(o.id(), l.id(), true)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), electionTimeout/2)
		defer cancel()
		term := l.cons.Term()
		if err := l.cons.verify(ctx, term); err == nil {
			t.Error("leadership was confirmed without a majority of voters")
		}
	})
}
