package consensus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// A Server is one seat in raft's configuration.
type Server struct {
	ID          string // NodeID/incarnation
	Node        identity.NodeID
	Incarnation string
	Voter       bool
	Leader      bool
	// LastContact is when the leader last heard of the server; only the leader
	// knows, and only of others. Zero elsewhere.
	LastContact time.Time
}

// Servers returns the servers of the newest configuration this node knows.
func (c *Consensus) Servers() []Server {
	_, leader := c.raft.LeaderWithID()
	leads := c.raft.State() == raft.Leader
	var out []Server
	for _, s := range c.configuration().Servers {
		node, inc := splitServerID(string(s.ID))
		v := Server{ID: string(s.ID), Node: node, Incarnation: inc, Voter: s.Suffrage == raft.Voter, Leader: s.ID == leader}
		if leads && s.ID != c.self {
			v.LastContact = c.trans.contact(s.ID)
		}
		out = append(out, v)
	}
	return out
}

// Bootstrapped tells whether this node knows of any configuration.
func (c *Consensus) Bootstrapped() bool { return len(c.configuration().Servers) > 0 }

// configuration is raft's newest, committed or not; reading it never blocks.
func (c *Consensus) configuration() raft.Configuration {
	return c.raft.GetConfiguration().Configuration()
}

func (c *Consensus) find(id raft.ServerID) (raft.Server, bool) {
	for _, s := range c.configuration().Servers {
		if s.ID == id {
			return s, true
		}
	}
	return raft.Server{}, false
}

func (c *Consensus) otherVoters() int {
	others, _ := c.voters()
	return len(others)
}

// AddNonvoter adds a server of a member, by any node; the autopilot promotes it
// when it is well. It does nothing for a server that is there already, and takes
// the vote from one that has it.
func (c *Consensus) AddNonvoter(ctx context.Context, serverID string) error {
	return c.change(ctx, &message{op: opNonvoter, body: []byte(serverID)})
}

// Remove removes all servers of a node, by any node. Before a node is revoked
// it is removed, so that a voter leaves the configuration first.
func (c *Consensus) Remove(ctx context.Context, node identity.NodeID) error {
	return c.change(ctx, &message{op: opRemove, body: []byte(node)})
}

// TransferLeadership makes the leader, whichever node it is, hand leadership to
// another voter.
func (c *Consensus) TransferLeadership(ctx context.Context) error {
	return c.change(ctx, &message{op: opTransfer, body: binary.BigEndian.AppendUint64(nil, c.raft.CurrentTerm())})
}

// StepAside makes this node hand leadership on, if it leads, before it leaves for
// good. Where no other has a vote, as of two nodes, a member that is well gets one
// first; without one it fails with ErrRefused.
func (c *Consensus) StepAside(ctx context.Context) error {
	if !c.enter() {
		return ErrClosed
	}
	defer c.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	var err error
	for range stepTries {
		if c.raft.State() != raft.Leader {
			return nil
		}
		if c.otherVoters() == 0 {
			if err = c.leadHeir(ctx); errors.Is(err, errNotLeader) {
				return nil // another leads by now
			} else if err != nil {
				return err
			}
		}
		// The autopilot takes back a vote that makes their number even.
		if err = c.TransferLeadership(ctx); !errors.Is(err, ErrRefused) {
			return err
		}
	}
	return err
}

// leadHeir gives the vote to a member that could lead in this node's place.
func (c *Consensus) leadHeir(ctx context.Context) error {
	memory := map[raft.ServerID]*health{}
	seats, _ := c.look(ctx, memory)
	for _, s := range seats {
		if !s.voter && s.member && s.may && !s.outdone && s.alive && memory[s.id].well {
			return c.carryOut(ctx, move{promote, s.id, "the only voter leaves", s.node})
		}
	}
	return fmt.Errorf("%w: no other node is well and may vote", ErrRefused)
}

func (c *Consensus) change(ctx context.Context, m *message) error {
	if !c.enter() {
		return ErrClosed
	}
	defer c.wg.Done()
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	m.hops = maxHops
	for {
		_, err := c.toLeader(ctx, m)
		// All changes may be repeated, so a lost answer is asked for again.
		if errors.Is(err, ErrOutcomeUnknown) && sleep(ctx, minBackoff) == nil {
			continue
		}
		return err
	}
}

// leadNonvoter adds a server or takes its vote away.
func (c *Consensus) leadNonvoter(ctx context.Context, id raft.ServerID) error {
	node := nodeOf(id)
	if node == "" || len(id) > maxServerID {
		return fmt.Errorf("%w: %q is not a server ID", ErrRefused, id)
	}
	if !c.cfg.Member(node) {
		return fmt.Errorf("%w: %s is not a member", ErrRefused, node.Short())
	}
	switch s, ok := c.find(id); {
	case !ok:
		return c.reconfigure(ctx, c.raft.AddNonvoter(id, raft.ServerAddress(id), 0, changeTimeout))
	case s.Suffrage == raft.Voter:
		return c.reconfigure(ctx, c.raft.DemoteVoter(id, 0, changeTimeout))
	}
	return nil
}

// leadEnroll adds the server that a node asks for itself, and removes those of
// the node's earlier incarnations: their log is gone.
func (c *Consensus) leadEnroll(ctx context.Context, id raft.ServerID) error {
	if _, ok := c.find(id); !ok {
		if err := c.leadNonvoter(ctx, id); err != nil {
			return err
		}
	}
	for _, s := range c.configuration().Servers {
		if s.ID != id && nodeOf(s.ID) == nodeOf(id) {
			if err := c.reconfigure(ctx, c.raft.RemoveServer(s.ID, 0, changeTimeout)); err != nil {
				return err
			}
		}
	}
	return nil
}

// leadAskedTransfer hands leadership on, if this is still the term in which it
// was asked for: a question that is repeated must not hand it back.
func (c *Consensus) leadAskedTransfer(ctx context.Context, body []byte) error {
	if len(body) != 8 {
		return fmt.Errorf("%w: malformed term", ErrRefused)
	}
	if c.raft.CurrentTerm() != binary.BigEndian.Uint64(body) {
		return nil
	}
	return c.leadTransfer(ctx)
}

// leadRemove removes a node's servers. A leader that is to be removed hands
// leadership on first, and lets the next one do it.
func (c *Consensus) leadRemove(ctx context.Context, node identity.NodeID) error {
	if node == c.node {
		if c.otherVoters() == 0 {
			return fmt.Errorf("%w: the only voter can not be removed", ErrRefused)
		}
		return errors.Join(errNotLeader, c.leadTransfer(ctx))
	}
	for _, s := range c.configuration().Servers {
		if nodeOf(s.ID) == node {
			if err := c.reconfigure(ctx, c.raft.RemoveServer(s.ID, 0, changeTimeout)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Consensus) leadTransfer(ctx context.Context) error {
	if c.otherVoters() == 0 {
		return fmt.Errorf("%w: there is no other voter", ErrRefused)
	}
	if err := c.wait(ctx, c.raft.LeadershipTransfer()); err != nil {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return nil
}

// reconfigure waits for a change of the configuration.
func (c *Consensus) reconfigure(ctx context.Context, f raft.IndexFuture) error {
	err := c.wait(ctx, f)
	switch {
	case err == nil:
		c.notify()
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return errNotLeader
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return ErrBusy
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}

// enroll asks to be in the configuration, for as long as this node is in none
// that it knows of, or hears from no leader (it was removed while it was away).
// A node that has just been admitted is not kept waiting.
func (c *Consensus) enroll() {
	for wait := enrollFirst; sleep(c.ctx, wait) == nil; wait = min(2*wait, enrollInterval) {
		if _, in := c.find(c.self); in {
			wait = enrollInterval
			if _, ok := c.Leader(); ok || time.Since(c.raft.LastContact()) < enrollAfter {
				continue
			}
			if c.raft.State() == raft.Leader {
				continue
			}
		}
		for _, peer := range c.cfg.Peers() {
			if peer == c.node || c.ctx.Err() != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(c.ctx, proposeTimeout)
			m, err := c.ask(ctx, peer, &message{op: opEnroll, hops: maxHops, body: []byte(c.self)})
			cancel()
			if err == nil {
				err = statusError(m)
			}
			if err == nil {
				break
			}
			c.log.Debug("consensus: enroll", "peer", peer.Short(), "err", err)
		}
	}
}

// Leave takes this node out of the configuration for good: a voter hands
// leadership on first. Close afterwards; a node that runs on asks in again.
func (c *Consensus) Leave(ctx context.Context) error { return c.Remove(ctx, c.node) }

// progress is what a server tells the leader's autopilot:
//
//	8 bytes  index of the last entry in its log, big endian
//	8 bytes  index that its state machine has applied
//	1 byte   bit 0: its disk takes writes; bit 1: its state machine has stopped;
//	         other bits are 0, and ignored
//	...      later versions may add more, which is ignored
type progress struct {
	last, applied uint64
	writable      bool
	stopped       bool
}

const progressBytes = 8 + 8 + 1

func (c *Consensus) progress() progress {
	return progress{last: c.raft.LastIndex(), applied: c.cfg.State.Applied(), writable: c.Healthy() == nil,
		stopped: c.cfg.State.Err() != nil}
}

func (p progress) encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, p.last)
	b = binary.BigEndian.AppendUint64(b, p.applied)
	var flags byte
	if p.writable {
		flags |= 1
	}
	if p.stopped {
		flags |= 2
	}
	return append(b, flags)
}

func decodeProgress(b []byte) (progress, error) {
	if len(b) < progressBytes {
		return progress{}, errMessage
	}
	return progress{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), b[16]&1 != 0, b[16]&2 != 0}, nil
}
