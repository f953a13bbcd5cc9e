package consensus

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// The autopilot is ours and not raft-autopilot: that library promotes every
// server that is well (its promoter can be replaced, its rounds can not: several
// at once, which passes through even numbers of voters while a candidate may
// die), keeps its own health bookkeeping in wall time, and skips stabilisation
// after every change of leader. What is needed is one pure function from what is
// seen to the next single change, and this file is shorter than the adapters.

// seat is a server as the autopilot sees it.
type seat struct {
	id      raft.ServerID
	node    identity.NodeID
	voter   bool
	self    bool          // the leader itself
	may     bool          // it may vote
	zone    string        // where it stands
	member  bool          // admitted and not revoked
	outdone bool          // a later incarnation of its node has a seat too
	alive   bool          // seen by discovery and by raft
	stopped bool          // its state machine applies nothing more, until it is upgraded
	well    time.Duration // how long it has been alive and caught up
	gone    time.Duration // how long it has not been alive
}

// A move is one change of the configuration.
type move struct {
	do   moveKind
	id   raft.ServerID
	why  string
	node identity.NodeID
}

type moveKind int

const (
	stay moveKind = iota
	promote
	demote
	remove
)

func (k moveKind) String() string { return [...]string{"stay", "promote", "demote", "remove"}[k] }

// plan returns the next change, or stay. The rules, in order:
//
//  1. A server of a node that is no member, or of an incarnation that was
//     replaced, is removed; so is one that has been gone for removeAfter and has
//     no vote. A removal must leave a majority of living voters.
//  2. There are to be 1, 3, 5 or 7 voters: the largest of these that the servers
//     allow that may vote, dead or alive. Two nodes have one voter: two would
//     need both. From an odd number two are promoted, one after the other, and
//     the first only when the second stands ready.
//  3. A dead voter, one that has stopped applying, or one that may not vote any
//     more, is replaced when another stands ready: first the promotion, then the
//     demotion. Without one it keeps its seat: the dead may come back, and who has
//     stopped still keeps the log, so fewer could fail without its vote.
//  4. Voters are spread over zones, as far as rules 2 and 3 leave a choice.
func plan(seats []seat, want int, settled time.Duration) move {
	var voters, living, capable int
	var candidates, surplus []seat
	inZone := map[string]int{}
	for _, s := range seats {
		if s.voter {
			voters++
			inZone[s.zone]++
			if s.alive {
				living++
			}
		}
		if s.member && s.may && !s.outdone {
			capable++
			if !s.voter && s.alive && !s.stopped && s.well >= settled {
				candidates = append(candidates, s)
			}
		}
		if s.voter && !s.self {
			surplus = append(surplus, s)
		}
	}
	want = min(want, capable)
	want = max(1, want-(want+1)%2)
	// safe tells whether one voter less still leaves a majority of living ones.
	safe := func(s seat) bool {
		v, l := voters-1, living
		if s.alive {
			l--
		}
		return v > 0 && l > v/2
	}
	good := func(s seat) bool { return s.alive && !s.stopped && s.may && s.member && !s.outdone }

	for _, s := range seats {
		switch {
		case s.self:
		case !s.member && (!s.voter || safe(s)):
			return move{remove, s.id, "not a member", s.node}
		case s.outdone && (!s.voter || safe(s)):
			return move{remove, s.id, "replaced by a later incarnation", s.node}
		case !s.voter && s.gone >= removeAfter:
			return move{remove, s.id, "gone", s.node}
		}
	}
	slices.SortFunc(candidates, func(a, b seat) int { // best first
		return cmp.Or(cmp.Compare(inZone[a.zone], inZone[b.zone]), cmp.Compare(b.well, a.well), cmp.Compare(a.id, b.id))
	})
	slices.SortFunc(surplus, func(a, b seat) int { // to go first
		return cmp.Or(compareBool(good(a), good(b)), cmp.Compare(inZone[b.zone], inZone[a.zone]), cmp.Compare(b.id, a.id))
	})
	up := func(why string) move { return move{promote, candidates[0].id, why, candidates[0].node} }
	down := func(why string) move {
		if len(surplus) > 0 && safe(surplus[0]) {
			return move{demote, surplus[0].id, why, surplus[0].node}
		}
		return move{}
	}
	bad := len(surplus) > 0 && !good(surplus[0]) && (surplus[0].alive || surplus[0].gone >= settled)
	switch {
	case voters > want:
		return down("one voter too many")
	case voters < want && voters%2 == 1 && len(candidates) >= 2:
		return up("two stand ready")
	case voters < want && voters%2 == 0 && len(candidates) >= 1:
		return up("the number of voters is even")
	case voters < want && voters%2 == 0 && !hopeful(seats):
		return down("the number of voters is even and nobody stands ready")
	case voters == want && bad && len(candidates) >= 1:
		return up("a voter is to be replaced")
	case len(candidates) >= 1 && len(surplus) > 0 && voters == want:
		// A zone with two more voters than the best candidate's gives one up.
		if s := crowded(surplus, inZone); inZone[s.zone] >= inZone[candidates[0].zone]+2 {
			return up("to spread voters over zones")
		}
	}
	return move{}
}

// hopeful tells whether a living server may yet become a candidate.
func hopeful(seats []seat) bool {
	return slices.ContainsFunc(seats, func(s seat) bool {
		return !s.voter && s.alive && !s.stopped && s.may && s.member && !s.outdone
	})
}

func crowded(voters []seat, inZone map[string]int) seat {
	return slices.MaxFunc(voters, func(a, b seat) int { return cmp.Compare(inZone[a.zone], inZone[b.zone]) })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// health is what the leader remembers of a server between rounds.
type health struct {
	since time.Time // when it became what it is
	alive bool
	well  bool
	until time.Time // of well: since when
}

// autopilot runs while this node leads.
func (c *Consensus) autopilot(ctx context.Context, term uint64) {
	memory := map[raft.ServerID]*health{}
	interval := min(autopilotInterval, max(c.cfg.Stabilisation, autopilotLeast))
	for sleep(ctx, interval) == nil {
		if err := cmp.Or(c.cfg.State.Err(), c.cfg.MayLead()); err != nil && c.otherVoters() > 0 {
			c.handOn(ctx, err)
			continue
		}
		seats, writable := c.look(ctx, memory)
		if writable && c.cfg.Span.Store().Writable() != nil {
			c.log.Warn("consensus: the leader's disk is full, another's is not: handing on")
			if err := c.leadTransfer(ctx); err != nil {
				c.log.Warn("consensus: hand leadership on", "err", err)
			}
			continue
		}
		m := plan(seats, c.cfg.MaxVoters, c.cfg.Stabilisation)
		c.noteAutopilot(term, seats, m)
		if m.do == stay || ctx.Err() != nil || c.raft.CurrentTerm() != term {
			continue
		}
		c.log.Info("consensus: autopilot", "do", m.do.String(), "server", m.node.Short(), "why", m.why)
		if err := c.carryOut(ctx, m); err != nil {
			c.log.Warn("consensus: autopilot", "do", m.do.String(), "server", m.node.Short(), "err", err)
		}
	}
}

func (c *Consensus) carryOut(ctx context.Context, m move) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	switch m.do {
	case promote:
		// raft sends the entry that promotes before it counts the promoted server
		// among the voters. An answer that comes sooner than that is not counted, and
		// when it was needed for a majority, because another voter is dead, the change
		// is not committed until that server acknowledges a later entry.
		promoted := c.raft.AddVoter(m.id, raft.ServerAddress(m.id), 0, changeTimeout)
		again := time.AfterFunc(promoteAgain, func() { c.raft.Barrier(changeTimeout) })
		defer again.Stop()
		return c.reconfigure(ctx, promoted)
	case demote:
		return c.reconfigure(ctx, c.raft.DemoteVoter(m.id, 0, changeTimeout))
	case remove:
		return c.reconfigure(ctx, c.raft.RemoveServer(m.id, 0, changeTimeout))
	}
	return nil
}

// look asks every server how far it is and returns the seats, and whether
// another voter is well and has room on its disk.
func (c *Consensus) look(ctx context.Context, memory map[raft.ServerID]*health) (seats []seat, writable bool) {
	servers := c.configuration().Servers
	last := c.raft.LastIndex()
	now := time.Now()

	answers := make([]*progress, len(servers))
	room := make(chan struct{}, maxServing)
	var wg sync.WaitGroup
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for i, s := range servers {
		if s.ID == c.self {
			continue
		}
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			m, err := c.ask(pctx, nodeOf(s.ID), &message{op: opProgress})
			if err != nil || m.status != statusOK {
				return
			}
			if p, err := decodeProgress(m.body); err == nil {
				answers[i] = &p
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, false
	}
	newest := map[identity.NodeID]raft.ServerID{} // servers are listed in the order in which they were added
	keep := map[raft.ServerID]bool{}
	for _, s := range servers {
		newest[nodeOf(s.ID)] = s.ID
		keep[s.ID] = true
	}
	for id := range memory {
		if !keep[id] {
			delete(memory, id)
		}
	}
	c.trans.forget(keep)
	for i, s := range servers {
		node := nodeOf(s.ID)
		may, zone := c.cfg.MayVote(node)
		v := seat{
			id: s.ID, node: node, voter: s.Suffrage == raft.Voter, self: s.ID == c.self, may: may, zone: zone,
			member: c.cfg.Member(node), outdone: newest[node] != s.ID,
		}
		h := memory[s.ID]
		if h == nil {
			h = &health{since: now, alive: true}
			memory[s.ID] = h
		}
		p := answers[i]
		alive := v.self || c.cfg.Alive(node) && now.Sub(c.trans.contact(s.ID)) < aliveContact*c.pace.election()
		v.stopped = v.self && c.cfg.State.Err() != nil || p != nil && p.stopped
		well := v.self || alive && p != nil && p.writable && !p.stopped && p.last+maxLag >= last
		if alive != h.alive {
			h.alive, h.since = alive, now
		}
		if well != h.well {
			h.well, h.until = well, now
		}
		v.alive = alive
		if !alive {
			v.gone = now.Sub(h.since)
		}
		if well {
			v.well = now.Sub(h.until)
			writable = writable || !v.self && v.voter
		}
		seats = append(seats, v)
	}
	return seats, writable
}
