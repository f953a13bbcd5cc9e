package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// Propose brings a signed batch to the leader and returns what applying it gave
// and its raft index, once the leader's own state machine has applied it. It
// takes at most 5 seconds. The batch is not changed.
//
// Errors: ErrNoLeader (ErrNoQuorum when it has lasted), ErrBusy, ErrClosed and store.ErrDiskFull (certainly not
// committed), ErrRefused (never will be), ErrOutcomeUnknown (perhaps
// committed). ctx ending gives ErrOutcomeUnknown or ErrNoLeader likewise.
func (c *Consensus) Propose(ctx context.Context, batch []byte) (result []byte, index uint64, err error) {
	if !c.enter() {
		return nil, 0, ErrClosed
	}
	defer c.wg.Done()
	c.stats.proposals.Add(1)
	ctx, cancel := context.WithTimeout(ctx, proposeTimeout)
	defer cancel()
	m, err := c.toLeader(ctx, &message{op: opPropose, hops: maxHops, body: batch})
	if err != nil {
		return nil, 0, err
	}
	return m.body, m.index, nil
}

// toLeader carries a request out on this node if it leads, or hands it on.
// While nobody leads, or whoever was asked does not lead any more, it waits.
// The response has statusOK or statusAbsent; other statuses become errors.
func (c *Consensus) toLeader(ctx context.Context, req *message) (*message, error) {
	for hops := int(req.hops); ; {
		// Read first, so that no change after it is missed.
		changed := c.Changes()
		var m *message
		var err error
		_, id := c.raft.LeaderWithID()
		switch {
		case c.raft.State() == raft.Leader && !c.trans.silent():
			m = c.lead(ctx, req)
		case id == "" || id == c.self:
			err = ErrNoLeader
		case hops == 0:
			return nil, ErrNoLeader
		default:
			hops--
			c.stats.forwarded.Add(1)
			m, err = c.askLeader(ctx, id, &message{op: req.op, hops: byte(hops), body: req.body})
		}
		switch {
		case err == nil:
			if err = statusError(m); !errors.Is(err, ErrNoLeader) {
				return m, err
			}
		case errors.Is(err, errLost):
			return nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case errors.Is(err, ErrClosed):
			return nil, ErrClosed
		}
		if c.leaderless() >= c.patience() {
			return nil, ErrNoQuorum
		}
		select { // the leader is not known yet, or no longer right
		case <-changed:
		case <-time.After(maxBackoff / 5):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// askLeader asks the leader, until another leads: one that was killed or cut
// off would otherwise keep the question until it times out.
func (c *Consensus) askLeader(ctx context.Context, id raft.ServerID, m *message) (*message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.wg.Go(func() {
		for {
			changed := c.Changes()
			if _, now := c.raft.LeaderWithID(); now != id && now != "" {
				cancel()
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return c.ask(ctx, nodeOf(id), m)
}

// ask sends a request to a peer.
func (c *Consensus) ask(ctx context.Context, to identity.NodeID, m *message) (*message, error) {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	l := c.links[to]
	if l == nil {
		l = newLink(to, c.cfg.DialPropose, &c.wg)
		c.links[to] = l
	}
	c.mu.Unlock()
	m.wait = proposeTimeout
	if at, ok := ctx.Deadline(); ok {
		m.wait = min(m.wait, max(time.Until(at), time.Millisecond))
	}
	return l.ask(ctx, m)
}

// statusError returns the error that a response stands for.
func statusError(m *message) error {
	switch m.status {
	case statusOK, statusAbsent:
		return nil
	case statusNotLeader:
		return ErrNoLeader
	case statusRefused:
		return fmt.Errorf("%w: %s", ErrRefused, m.body)
	case statusBusy:
		return ErrBusy
	case statusDiskFull:
		return fmt.Errorf("leader: %w", store.ErrDiskFull)
	case statusUnsupported:
		return fmt.Errorf("%w: the leader does not know the operation", ErrRefused)
	}
	return ErrOutcomeUnknown
}

// errorMessage is the response that stands for err.
func errorMessage(err error) *message {
	switch {
	case errors.Is(err, errNotLeader), errors.Is(err, ErrNoLeader), errors.Is(err, ErrClosed):
		return &message{status: statusNotLeader}
	case errors.Is(err, ErrRefused):
		return &message{status: statusRefused, body: []byte(err.Error())}
	case errors.Is(err, ErrBusy):
		return &message{status: statusBusy}
	case errors.Is(err, store.ErrDiskFull):
		return &message{status: statusDiskFull}
	}
	return &message{status: statusUnknown}
}

// serve answers a request of a peer.
func (c *Consensus) serve(ctx context.Context, from identity.NodeID, m *message) *message {
	switch m.op {
	case opProgress:
		return &message{status: statusOK, body: c.progress().encode()}
	case opDigest:
		return c.answerDigest(m)
	case opPropose, opReadIndex, opEnroll, opRemove, opTransfer, opNonvoter, opAutopilot:
		if !c.cfg.Member(from) && m.op != opReadIndex {
			return &message{status: statusRefused, body: []byte("not a member")}
		}
		m.hops = min(m.hops, maxHops)
		out, err := c.toLeader(ctx, m)
		if err != nil {
			return errorMessage(err)
		}
		return &message{status: out.status, index: out.index, body: out.body}
	}
	return &message{status: statusUnsupported}
}

// lead carries out a request as the leader.
func (c *Consensus) lead(ctx context.Context, m *message) *message {
	var out message
	var err error
	switch m.op {
	case opPropose:
		out.body, out.index, err = c.leadBatch(ctx, m.body)
	case opReadIndex:
		out.index, err = c.leads.next(ctx)
	case opEnroll:
		err = c.leadEnroll(ctx, raft.ServerID(m.body))
	case opNonvoter:
		err = c.leadNonvoter(ctx, raft.ServerID(m.body))
	case opRemove:
		err = c.leadRemove(ctx, identity.NodeID(m.body))
	case opTransfer:
		err = c.leadAskedTransfer(ctx, m.body)
	case opAutopilot:
		out.body, err = c.leadAutopilot(ctx)
	}
	if err != nil {
		return errorMessage(err)
	}
	out.status = statusOK
	return &out
}

// leadBatch proposes a batch as the leader.
func (c *Consensus) leadBatch(ctx context.Context, batch []byte) (result []byte, index uint64, err error) {
	if len(batch) == 0 || len(batch) > maxBatch {
		return nil, 0, fmt.Errorf("%w: it has %d bytes", ErrRefused, len(batch))
	}
	if err := c.cfg.Span.Store().Writable(); err != nil {
		return nil, 0, err
	}
	if _, err := c.awaitReady(ctx); err != nil {
		return nil, 0, err
	}
	select {
	case c.room <- struct{}{}:
		defer func() { <-c.room }()
	case <-ctx.Done():
		return nil, 0, ErrBusy
	}
	if err := c.cfg.Verify(batch); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	e := &entrant{batch: append([]byte(nil), batch...),
		origin: ledger.BatchOrigin(batch)} // stamped when it is pushed, and kept by raft
	batch = e.batch
	early := c.expectAck(batch)
	defer c.forgetAck(batch)
	if c.rounds.enter(ctx, e) != nil {
		return nil, 0, ErrBusy
	}
	defer c.rounds.leave()
	f := e.future
	if e.err != nil {
		return nil, 0, e.err
	}

	done := make(chan error, 1)
	if !c.calls.Go(func() { done <- f.Error() }) {
		return nil, 0, ErrOutcomeUnknown
	}
	select {
	case err = <-done:
	case index := <-early:
		return fakeReceipts(batch, index), index, nil
	case <-ctx.Done():
		err = ErrOutcomeUnknown
	}
	switch {
	case err == nil:
		result, _ := f.Response().([]byte)
		return result, f.Index(), nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return nil, 0, errNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return nil, 0, ErrBusy
	}
	return nil, 0, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// push stamps the batches of a round and hands them to raft, one behind the
// other, so that it appends and sends them together.
func (c *Consensus) push(all []*entrant) {
	c.order.enter()
	defer c.order.leave()
	for _, e := range all {
		if c.ctx.Err() != nil { // raft may be gone, and would never answer
			e.err = ErrClosed
			continue
		}
		c.clock.stamp(e.batch)
		e.future = c.raft.Apply(e.batch, enqueueTimeout)
	}
}

// The rest is the planted bug of Faults.AckBeforeCommit.

func (c *Consensus) expectAck(batch []byte) <-chan uint64 {
	if !c.cfg.Faults.AckBeforeCommit {
		return nil
	}
	if b, err := ledger.DecodeBatch(batch); err != nil || b.Session == 0 {
		return nil // founding and opening sessions need their result
	}
	ch := make(chan uint64, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acks[&batch[0]] = ch
	return ch
}

func (c *Consensus) forgetAck(batch []byte) {
	if c.cfg.Faults.AckBeforeCommit {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.acks, &batch[0])
	}
}

func (c *Consensus) ackEarly(logs []*raft.Log) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range logs {
		if len(l.Data) > 0 {
			if ch := c.acks[&l.Data[0]]; ch != nil {
				ch <- l.Index
				delete(c.acks, &l.Data[0])
			}
		}
	}
}

func fakeReceipts(batch []byte, index uint64) []byte {
	b, err := ledger.DecodeBatch(batch)
	if err != nil {
		return nil
	}
	rs := make([]ledger.Receipt, len(b.Commands))
	for i := range rs {
		rs[i].Index = index
	}
	return ledger.EncodeReceipts(rs)
}
