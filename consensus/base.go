package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// A Tail is what the log of a stopped node holds.
type Tail struct {
	Last uint64    // index of the last entry, 0 for an empty log
	Term uint64    // of that entry
	At   time.Time // when a leader appended it; zero when unknown
	// Snapshot and SnapshotTerm are those of the newest snapshot.
	Snapshot, SnapshotTerm uint64
	Voters                 []identity.NodeID // in the newest configuration of the log or snapshot
}

// ReadTail looks at the log in a span and the snapshots in dir.
func ReadTail(span *store.Span, fs vfs.FS, dir string) (t Tail, err error) {
	logs, err := openLog(span, true, &diskWatch{}, func(error) {})
	if err != nil {
		return t, err
	}
	snaps, err := openSnapshots(fs, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return t, err
	}
	metas, err := snaps.List()
	if err != nil {
		return t, err
	}
	if len(metas) > 0 {
		t.Snapshot, t.SnapshotTerm = metas[0].Index, metas[0].Term
		t.Voters = votersOf(metas[0].Configuration)
	}
	first, last := logs.bounds()
	t.Last = last
	for i := max(first, t.Snapshot+1); i <= last && last > 0; i++ {
		var l raft.Log
		if err := logs.GetLog(i, &l); err != nil {
			return t, err
		}
		if l.Type == raft.LogConfiguration {
			t.Voters = votersOf(raft.DecodeConfiguration(l.Data))
		}
		if i == last {
			t.Term, t.At = l.Term, l.AppendedAt
		}
	}
	return t, nil
}

func votersOf(c raft.Configuration) (out []identity.NodeID) {
	for _, s := range c.Servers {
		if s.Suffrage == raft.Voter {
			out = append(out, nodeOf(s.ID))
		}
	}
	return out
}

// maxReplay bounds the entries that are applied at once by Replay.
const maxReplay = 256

// Replay applies to state what the log holds beyond it, as if all of it were
// committed, and returns how many entries that were. Whether the last ones were
// committed can not be known any more; they may have been answered.
func Replay(span *store.Span, state StateMachine) (n int, err error) {
	logs, err := openLog(span, true, &diskWatch{}, func(error) {})
	if err != nil {
		return 0, err
	}
	machine := &fsm{state: state, entry: logs.GetLog, committed: func(uint64, uint64) {}, applied: func() {}}
	_, last := logs.bounds()
	for next := state.Applied() + 1; next <= last; {
		var group []*raft.Log
		for ; next <= last && len(group) < maxReplay; next++ {
			l := &raft.Log{}
			if err := logs.GetLog(next, l); err != nil {
				return n, err
			}
			group = append(group, l)
		}
		machine.ApplyBatch(group)
		n += len(group)
		if got := state.Applied(); got != next-1 {
			return n, fmt.Errorf("the state stopped at %d of %d", got, next-1)
		}
	}
	return n, nil
}

// Base makes what a node's span and snapshot directory hold the beginning of a
// log whose only server is serverID: the next entry follows on index, in a term
// after term. The state as of index is in the store and durable. Log, votes and
// other snapshots are thrown away, so the server ID must be one that never voted.
// It may be cut off anywhere and done again.
func Base(span *store.Span, fs vfs.FS, dir, serverID string, index, term uint64) error {
	if index == 0 {
		return errors.New("base: a state at index 0")
	}
	if err := fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("base: remove snapshots: %w", err)
	}
	b := span.NewBatch()
	defer b.Close()
	b.DeleteRange(nil, []byte{0xff})
	// Raft's term; with it the log is not one that was lost.
	b.Set(stableKey([]byte("CurrentTerm")), binary.BigEndian.AppendUint64(nil, max(term, 1)))
	if err := span.Commit(b, true); err != nil {
		return fmt.Errorf("base: empty the log: %w", err)
	}
	snaps, err := openSnapshots(fs, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	conf := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(serverID),
		Address: raft.ServerAddress(serverID)}}}
	sink, err := snaps.Create(raft.SnapshotVersionMax, index, max(term, 1), conf, index, nil)
	if err != nil {
		return err
	}
	return sink.Close()
}

// fillBase takes a snapshot with a state as soon as the node leads, when the one
// that it began from has none: others could not be given theirs.
func (c *Consensus) fillBase() {
	metas, err := c.snaps.List()
	if err != nil || len(metas) == 0 || metas[0].Size > 0 {
		return
	}
	base := metas[0].Index
	for sleep(c.ctx, autopilotInterval) == nil {
		if c.cfg.State.Applied() <= base {
			continue
		}
		if err := c.Snapshot(c.ctx); err != nil {
			c.log.Debug("consensus: first snapshot", "err", err)
			continue
		}
		if metas, err := c.snaps.List(); err == nil && len(metas) > 0 && metas[0].Size > 0 {
			return
		}
	}
}

// mendSnapshots reads the snapshots when the node starts, once a day, and when
// one could not be read. A damaged one is removed, and another taken as soon as
// there is anything new: the state itself is sound.
func (c *Consensus) mendSnapshots() {
	for {
		if c.dropDamaged() {
			for sleep(c.ctx, autopilotInterval) == nil {
				if err := c.wait(c.ctx, c.raft.Snapshot()); err == nil {
					break
				}
			}
		}
		select {
		case <-c.ctx.Done():
			return
		case <-c.snaps.doubted:
		case <-time.After(snapCheckEvery):
		}
	}
}

// dropDamaged removes snapshots that are damaged, and reports whether the newest was.
func (c *Consensus) dropDamaged() (newest bool) {
	metas, err := c.snaps.List()
	if err != nil {
		return false
	}
	for i, m := range metas {
		err := c.snaps.check(c.ctx, m.ID)
		if !errors.Is(err, errSnapshot) {
			continue
		}
		c.log.Error("consensus: a snapshot is damaged, it is removed and another taken", "file", m.ID+snapSuffix, "err", err)
		if err := c.snaps.remove(m.ID); err != nil {
			c.log.Error("consensus: remove a damaged snapshot", "err", err)
			continue
		}
		newest = newest || i == 0
	}
	return newest
}

// boundLog takes a snapshot when much log lies behind the newest one. Raft counts
// entries, and an entry may hold a megabyte.
func (c *Consensus) boundLog() {
	newest := func() (index uint64, size int64) {
		metas, err := c.snaps.List()
		if err != nil || len(metas) == 0 {
			return 0, 0
		}
		return metas[0].Index, metas[0].Size
	}
	from, _ := newest()
	mark := int64(0) // of the log's bytes when the newest snapshot was taken
	if held, err := c.cfg.Span.RangeBytes(logKey(from+1), []byte{keyLog + 1}); err == nil {
		mark = -int64(held)
	}
	for sleep(c.ctx, c.cfg.SnapshotInterval/boundLooks) == nil {
		written := c.logs.written.Load()
		if written-mark < int64(c.cfg.SnapshotBytes) {
			continue
		}
		index, size := newest()
		switch {
		case index != from: // taken for the number of entries, or installed
			from, mark = index, written
		case written-mark < size/4: // or the disk would do little else
		default:
			if err := c.Snapshot(c.ctx); err != nil {
				c.log.Debug("consensus: snapshot of a long log", "err", err)
				_ = sleep(c.ctx, c.cfg.SnapshotInterval) // the loop ends with the same context
				continue
			}
			mark = written
			from, _ = newest()
		}
	}
}
