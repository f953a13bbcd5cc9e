package consensus

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/ledger"
)

// fsm is the state machine as raft sees it. Raft's goroutine for applying is
// the only one that calls it, apart from Persist and Release of a snapshot.
type fsm struct {
	state     StateMachine
	entry     func(index uint64, l *raft.Log) error // of the log
	committed func(index, term uint64)              // called before the entries are applied
	applied   func()                                // called after
	given     uint64                                // the last index given to state
	taken     *fsmSnapshot                          // the last one taken
}

// Apply is never called by raft, which sees that fsm takes batches.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch hands logs on to the state machine. Raft keeps its no-ops to
// itself and replays from the last snapshot, while the state machine counts
// every index and has kept its state: so gaps are filled with empty entries,
// and what was applied already is passed over. A result is nil for an entry
// that was passed over; nobody waits for one.
//
// A state machine that has stopped (it met what only a newer version knows)
// stays behind what it was given; it is given the rest all the same.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	last := logs[len(logs)-1]
	f.committed(last.Index, last.Term)

	results := make([]any, len(logs))
	next := max(f.given, f.state.Applied()) + 1
	entries := make([]ledger.LogEntry, 0, len(logs)+1)
	at := make([]int, 0, len(logs)+1) // the place of an entry's result, -1 for nowhere
	for i, l := range logs {
		if l.Index < next {
			continue
		}
		for ; next < l.Index; next++ {
			entries = append(entries, ledger.LogEntry{Index: next, Term: f.skipped(next, l.Term)})
			at = append(at, -1)
		}
		e := ledger.LogEntry{Index: l.Index, Term: l.Term}
		if l.Type == raft.LogCommand && len(l.Data) > 0 {
			e.Data = l.Data
		}
		entries = append(entries, e)
		at = append(at, i)
		next++
	}
	if len(entries) == 0 {
		return results
	}
	f.given = next - 1
	out := f.state.ApplyBatch(entries)
	if len(out) != len(entries) {
		panic(fmt.Sprintf("consensus: %d results for %d entries", len(out), len(entries)))
	}
	for i, r := range out {
		if at[i] >= 0 {
			results[at[i]] = r
		}
	}
	f.applied()
	return results
}

// skipped returns the term of an entry that raft did not hand out. It must be
// one that is raft's own; term stands in when the log no longer has it.
func (f *fsm) skipped(index, term uint64) uint64 {
	var l raft.Log
	if err := f.entry(index, &l); err != nil {
		return term
	}
	if l.Type == raft.LogCommand || l.Type == raft.LogConfiguration {
		panic(fmt.Sprintf("consensus: entry %d was not applied", index))
	}
	return l.Term
}

// Snapshot is raft's question for a snapshot.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.state.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("snapshot state: %w", err)
	}
	f.taken = &fsmSnapshot{s: s}
	return f.taken, nil
}

// Restore replaces the state. A snapshot that raft has taken and not begun to
// write is dropped first: a state machine may wait for its snapshots to be
// closed, and raft, in its turn, begins to write only when its main goroutine,
// which now waits for us, has told it the configuration.
func (f *fsm) Restore(r io.ReadCloser) error {
	if f.taken != nil {
		f.taken.drop()
		f.taken = nil
	}
	if err := f.state.Restore(r); err != nil {
		return fmt.Errorf("restore state: %w", err)
	}
	f.given = 0
	f.applied()
	return nil
}

// fsmSnapshot is a snapshot that raft writes out, or not.
type fsmSnapshot struct {
	mu      sync.Mutex // guards what follows
	s       Snapshot
	writing bool
	closed  bool
}

var errDropped = errors.New("snapshot was dropped for a newer state")

func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errDropped
	}
	s.writing = true
	s.mu.Unlock()
	_, err := s.s.WriteTo(sink)
	return err // raft cancels the sink on an error and closes it otherwise
}

func (s *fsmSnapshot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.close()
}

// drop closes the snapshot unless it is being written.
func (s *fsmSnapshot) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.writing {
		s.close()
	}
}

func (s *fsmSnapshot) close() {
	if !s.closed {
		s.closed = true
		_ = s.s.Close()
	}
}
