package consensus

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// Leader returns who leads as far as this node knows, which may be itself.
func (c *Consensus) Leader() (identity.NodeID, bool) {
	_, id := c.raft.LeaderWithID()
	if id == "" || id == c.self && !c.IsLeader() {
		return "", false
	}
	return nodeOf(id), true
}

// IsLeader tells whether this node leads and may serve: an entry of its own
// term has passed through its state machine, which goes on, and its disk does not
// stall. It may have been replaced a moment ago; see ReadIndex.
func (c *Consensus) IsLeader() bool {
	if c.raft.State() != raft.Leader || c.trans.silent() || c.cfg.State.Err() != nil {
		return false
	}
	term := c.raft.CurrentTerm()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready == term
}

// Leads returns the term in which this node leads and may serve, as IsLeader has it.
// Nobody else ever leads in that term.
func (c *Consensus) Leads() (term uint64, yes bool) {
	c.mu.Lock()
	term = c.ready // set only while this node led in it
	c.mu.Unlock()
	return term, c.IsLeader() && c.raft.CurrentTerm() == term
}

// Term returns the raft term this node is in.
func (c *Consensus) Term() uint64 { return c.raft.CurrentTerm() }

// Changes returns a channel that is closed at the next change of what Leader
// and IsLeader return.
func (c *Consensus) Changes() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *Consensus) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

// WaitLeader waits until somebody leads and returns who.
func (c *Consensus) WaitLeader(ctx context.Context) (identity.NodeID, error) {
	for {
		changed := c.Changes()
		if id, ok := c.Leader(); ok {
			return id, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", errors.Join(ErrNoLeader, ctx.Err())
		case <-c.ctx.Done():
			return "", ErrClosed
		}
	}
}

// watchLeadership follows raft's state. Events only wake it: what counts is
// read from raft itself, so a dropped event does no harm.
func (c *Consensus) watchLeadership(events <-chan raft.Observation) {
	rule := func(term uint64) context.CancelFunc {
		ctx, stop := context.WithCancel(c.ctx)
		c.wg.Go(func() { defer stop(); c.rule(ctx, term) })
		return stop
	}
	var stop context.CancelFunc // ends what runs while this node leads, nil when it does not
	var led uint64              // its term
	for {
		state, term := c.raft.State(), c.raft.CurrentTerm()
		if stop != nil && (state != raft.Leader || term != led) {
			stop()
			stop = nil
		}
		if state == raft.Leader && stop == nil {
			stop, led = rule(term), term
		}
		c.noteLeader()
		select {
		case <-c.ctx.Done():
			return
		case <-events:
		}
	}
}

func (c *Consensus) noteLeader() {
	_, id := c.raft.LeaderWithID()
	c.mu.Lock()
	if id != c.leader && id != "" {
		c.stats.leaderChanges.Add(1)
	}
	if id == "" && c.leader != "" {
		c.lost = time.Now()
	}
	c.leader = id
	c.mu.Unlock()
	c.notify()
}

// rule is what a leader does besides leading. It first gets ready.
func (c *Consensus) rule(ctx context.Context, term uint64) {
	if !c.takeOver(ctx, term) {
		return
	}
	c.log.Info("consensus: this node leads", "term", term)
	c.autopilot(ctx, term)
}

// takeOver proposes an empty entry and waits until this node's state machine
// has it: then it has everything that earlier leaders committed. Raft's own
// no-op does not pass through state machines, so it can not tell. A node whose
// state machine has stopped hands leadership on instead.
func (c *Consensus) takeOver(ctx context.Context, term uint64) bool {
	for ctx.Err() == nil && c.raft.State() == raft.Leader {
		if stopped := c.cfg.State.Err(); stopped != nil {
			c.handOn(ctx, stopped)
			_ = sleep(ctx, c.cfg.ElectionTimeout)
			continue
		}
		err := c.wait(ctx, c.raft.Apply(nil, enqueueTimeout))
		if err == nil && c.raft.CurrentTerm() == term && c.cfg.State.Err() == nil {
			c.mu.Lock()
			c.ready = term
			c.mu.Unlock()
			c.notify()
			return true
		}
		select { // a transfer under way, or no room; both pass
		case <-ctx.Done():
		case <-time.After(minBackoff):
		}
	}
	return false
}

// handOn makes another voter the leader, if there is one, because this node must
// not lead.
func (c *Consensus) handOn(ctx context.Context, why error) {
	if c.otherVoters() == 0 {
		return
	}
	c.log.Warn("consensus: this node must not lead, handing on", "err", why)
	if err := c.leadTransfer(ctx); err != nil {
		c.log.Warn("consensus: hand leadership on", "err", err)
	}
}

// awaitReady returns the term in which this node may serve as the leader, once
// it may, or errNotLeader.
func (c *Consensus) awaitReady(ctx context.Context) (uint64, error) {
	for {
		changed := c.Changes()
		if c.raft.State() != raft.Leader || c.trans.silent() || c.cfg.State.Err() != nil {
			return 0, errNotLeader
		}
		term := c.raft.CurrentTerm()
		c.mu.Lock()
		ready := c.ready == term
		c.mu.Unlock()
		if ready {
			return term, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, errNotLeader
		case <-c.ctx.Done():
			return 0, ErrClosed
		}
	}
}
