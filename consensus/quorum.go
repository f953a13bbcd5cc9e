package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// ErrNoQuorum is ErrNoLeader for longer than elections take: too few voters can
// hear each other, and waiting on is of no use. What was asked was certainly not
// done, unless the error is ErrOutcomeUnknown too.
var ErrNoQuorum = fmt.Errorf("no quorum: %w", ErrNoLeader)

// patience is how long nobody may lead before that is ErrNoQuorum. A starved node's
// elections take longer.
func (c *Consensus) patience() time.Duration {
	return min(max(quorumElections*c.pace.election(), quorumLeast), quorumMost)
}

// leaderless is how long this node has known of no leader, 0 while it knows one.
func (c *Consensus) leaderless() time.Duration {
	if _, id := c.raft.LeaderWithID(); id != "" {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader != "" {
		return 0 // it was lost a moment ago
	}
	return time.Since(c.lost)
}

// Patient returns a context that ends, with the cause ErrNoQuorum, when nobody has
// led for so long that waiting on is of no use, and not before the call has had its
// time to be answered. The caller must call stop.
func (c *Consensus) Patient(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(leastPatience+outcomeGrace, func() {
		<-armed
		if c.leaderless() >= c.patience()+outcomeGrace {
			cancel(ErrNoQuorum)
			return
		}
		if ctx.Err() == nil {
			timer.Reset(quorumLook)
		}
	})
	close(armed)
	return ctx, func() { cancel(nil); timer.Stop() }
}

// Silence is how long ago this node last heard of a leader; ok is false when it has not since Open.
// A leader hears itself.
func (c *Consensus) Silence() (d time.Duration, ok bool) {
	if _, id := c.raft.LeaderWithID(); id == c.self && c.raft.State() == raft.Leader {
		return 0, true
	}
	at := c.raft.LastContact()
	return max(0, time.Since(at)), !at.IsZero()
}

// ended is why ctx has ended.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrNoQuorum) {
		return cause
	}
	return ctx.Err()
}

// A Quorum is which of the other voters this node hears.
type Quorum struct {
	Voter      bool // this node votes, too
	Heard      []identity.NodeID
	Silent     []identity.NodeID
	Leaderless time.Duration // how long this node has known of no leader
}

// Enough tells whether those that are heard, with this node, are a majority.
func (q Quorum) Enough() bool {
	heard, all := len(q.Heard), len(q.Heard)+len(q.Silent)
	if q.Voter {
		heard, all = heard+1, all+1
	}
	return heard > all/2
}

// Quorum tells which voters this node hears, by discovery.
func (c *Consensus) Quorum() Quorum {
	q := Quorum{Leaderless: c.leaderless()}
	for _, s := range c.configuration().Servers {
		switch node := nodeOf(s.ID); {
		case s.Suffrage != raft.Voter:
		case s.ID == c.self:
			q.Voter = true
		case c.cfg.Alive(node):
			q.Heard = append(q.Heard, node)
		default:
			q.Silent = append(q.Silent, node)
		}
	}
	return q
}
