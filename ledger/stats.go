package ledger

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are counters of one node since it opened its ledger.
type Stats struct {
	Applied   uint64          // raft index
	Height    uint64          // of the chain
	Groups    uint64          // apply groups, one write each
	Batches   uint64          // raft entries with commands
	Commands  uint64          // commands given an outcome, repetitions too
	Entries   uint64          // links added to the chain
	Refused   map[Code]uint64 // refusals by code, also those that were not entered
	Repeated  uint64          // sequences and idempotency keys that got their first outcome again
	Panics    uint64          // handlers that panicked
	RowHits   uint64          // rows that apply found in memory
	RowReads  uint64          // rows that apply asked for
	Fetched   uint64          // rows read ahead in parallel
	ApplyTime time.Duration   // spent in ApplyBatch
	Bytes     uint64          // written to the state
}

type stats struct {
	groups, batches, commands, entries, repeated, panics atomic.Uint64
	hits, reads, fetched, nanos, bytes                   atomic.Uint64

	mu      sync.Mutex
	refused map[Code]uint64
}

func (s *stats) refuse(code Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[Code]uint64{}
	}
	s.refused[code]++
}

// Stats returns the counters as of now.
func (l *Ledger) Stats() Stats {
	pos, s := l.Position(), &l.stats
	s.mu.Lock()
	refused := maps.Clone(s.refused)
	s.mu.Unlock()
	return Stats{
		Applied: pos.Applied, Height: pos.Height,
		Groups: s.groups.Load(), Batches: s.batches.Load(), Commands: s.commands.Load(), Entries: s.entries.Load(),
		Refused: refused, Repeated: s.repeated.Load(), Panics: s.panics.Load(),
		RowHits: s.hits.Load(), RowReads: s.reads.Load(), Fetched: s.fetched.Load(),
		ApplyTime: time.Duration(s.nanos.Load()), Bytes: s.bytes.Load(),
	}
}
