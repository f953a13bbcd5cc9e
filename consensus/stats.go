package consensus

import (
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// Stats are numbers for the operator; the counters begin at Open.
type Stats struct {
	State     string // "Follower", "Candidate", "Leader" or "Shutdown"
	Serving   bool   // leads and is ready to serve
	Term      uint64
	Leader    identity.NodeID // "" when there is none
	Voter     bool
	Voters    int
	Servers   int
	LastIndex uint64 // of the log
	Commit    uint64
	Applied   uint64 // by the state machine
	LogFirst  uint64
	Snapshot  uint64 // index of the newest snapshot, 0 when there is none

	Proposals     uint64 // batches proposed by this node
	Forwarded     uint64 // requests handed to another node
	StrongReads   uint64
	LeaderChanges uint64
	Divergences   uint64

	LogWrites    uint64 // writes to the log
	LogWriteTime time.Duration
	LogWorst     time.Duration // the slowest of them
	LogStalled   time.Duration // how long the write under way has taken, 0 when there is none
	Election     time.Duration // the election time-out in force
}

type counters struct {
	proposals, forwarded, reads, leaderChanges, divergences atomic.Uint64
}

// Stats returns the numbers as of now.
func (c *Consensus) Stats() Stats {
	s := Stats{
		State: c.raft.State().String(), Serving: c.IsLeader(), Term: c.raft.CurrentTerm(),
		LastIndex: c.raft.LastIndex(), Commit: c.raft.CommitIndex(), Applied: c.cfg.State.Applied(),
		Proposals: c.stats.proposals.Load(), Forwarded: c.stats.forwarded.Load(), StrongReads: c.stats.reads.Load(),
		LeaderChanges: c.stats.leaderChanges.Load(), Divergences: c.stats.divergences.Load(),
		LogStalled: c.watch.stalled(), Election: c.pace.election(),
	}
	s.Leader, _ = c.Leader()
	s.LogFirst, _ = c.logs.bounds()
	s.LogWrites, s.LogWriteTime, s.LogWorst = c.watch.totals()
	for _, v := range c.Servers() {
		s.Servers++
		if v.Voter {
			s.Voters++
			s.Voter = s.Voter || v.ID == string(c.self)
		}
	}
	if metas, err := c.snaps.List(); err == nil && len(metas) > 0 {
		s.Snapshot = metas[0].Index
	}
	return s
}
