package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// ReadIndex returns an index such that a read of any state machine that has
// applied it sees everything that was acknowledged before ReadIndex was called.
// The caller waits until its own state machine has it. Calls that come while
// one is under way share the next.
//
// Errors: ErrNoLeader when no leader could be reached before ctx ended, ErrNoQuorum
// when there has been none for long, ErrClosed.
func (c *Consensus) ReadIndex(ctx context.Context) (uint64, error) {
	if c.cfg.Faults.StaleStrongRead {
		return c.cfg.State.Applied(), nil
	}
	if !c.enter() {
		return 0, ErrClosed
	}
	defer c.wg.Done()
	c.stats.reads.Add(1)
	return c.reads.next(ctx)
}

// askIndex is one round of strong reads of this node.
func (c *Consensus) askIndex(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	began := time.Now()
	for {
		m, err := c.toLeader(ctx, &message{op: opReadIndex, hops: maxHops})
		switch {
		case err == nil:
			return m.index, nil
		case errors.Is(err, ErrClosed), errors.Is(err, ErrNoQuorum) && time.Since(began) >= leastPatience:
			return 0, err
		case ctx.Err() != nil:
			return 0, fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
		}
		// Reading is harmless to repeat, whatever became of the question.
		if err := sleep(ctx, minBackoff); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrNoLeader, err)
		}
	}
}

// leadIndex is one round of strong reads that this node answers as the leader:
// it notes its own state machine's index first, then makes sure that it still
// leads. Raft's own applied index is of no use, it runs ahead of the state.
func (c *Consensus) leadIndex(ctx context.Context) (uint64, error) {
	term, err := c.awaitReady(ctx)
	if err != nil {
		return 0, err
	}
	index := c.cfg.State.Applied()
	if err := c.verify(ctx, term); err != nil {
		return 0, err
	}
	return index, nil
}

// verify returns nil when this node was the leader of term at a moment after
// the call began. Raft's VerifyLeader makes it ask all peers at once, but counts
// the answers of non-voters too; so the answers of voters are counted again.
func (c *Consensus) verify(ctx context.Context, term uint64) error {
	round := c.trans.verifying()
	if err := c.wait(ctx, c.raft.VerifyLeader()); err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return errNotLeader
	}
	voters, self := c.voters()
	for {
		if c.raft.State() != raft.Leader || c.raft.CurrentTerm() != term {
			return errNotLeader
		}
		n, answered := c.trans.confirmed(round, term, voters)
		if self {
			n++
		}
		total := len(voters)
		if self {
			total++
		}
		if n > total/2 {
			return nil
		}
		changed := c.Changes()
		select {
		case <-answered:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// voters returns the other voters, and whether this node is one too.
func (c *Consensus) voters() (others []raft.ServerID, self bool) {
	for _, s := range c.configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case s.ID == c.self:
			self = true
		default:
			others = append(others, s.ID)
		}
	}
	return others, self
}

// A coalescer lets callers share rounds: who calls while a round is under way
// gets the result of the next one, which begins after the call.
type coalescer struct {
	round func(context.Context) (uint64, error)
	wg    *sync.WaitGroup // whoever calls next is counted in it

	mu      sync.Mutex // guards what follows
	running bool
	waiting []reader
}

type reader struct {
	ctx context.Context
	ch  chan readResult
}

type readResult struct {
	index uint64
	err   error
}

// next returns the result of the next round. The caller that finds no round
// under way runs it, and the ones that become necessary meanwhile.
func (q *coalescer) next(ctx context.Context) (uint64, error) {
	me := reader{ctx, make(chan readResult, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, me)
	if !q.running {
		q.running = true
		q.wg.Go(q.run)
	}
	q.mu.Unlock()
	select {
	case r := <-me.ch:
		return r.index, r.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
	}
}

// run does rounds until nobody waits. A round lasts as long as one of those
// who wait for it does.
func (q *coalescer) run() {
	for {
		q.mu.Lock()
		all := q.waiting
		q.waiting = nil
		if len(all) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer cancel()
			for _, r := range all {
				select {
				case <-r.ctx.Done():
				case <-done:
					return
				}
			}
		}()
		index, err := q.round(ctx)
		close(done)
		for _, r := range all {
			r.ch <- readResult{index, err}
		}
	}
}
