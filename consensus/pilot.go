package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// An AutopilotState is how the leader sees the servers, at most a second ago.
// Its JSON is what nodes tell each other (opAutopilot); fields may be added.
type AutopilotState struct {
	Term      uint64          `json:"term"`
	Leader    identity.NodeID `json:"leader"`
	At        time.Time       `json:"at"`
	Voters    int             `json:"voters"`
	Most      int             `json:"mostVoters"`       // that there will be when there are nodes for it
	Tolerance int             `json:"failureTolerance"` // voters that may yet die without the mesh standing still
	Healthy   bool            `json:"healthy"`          // every voter is alive and caught up
	Next      string          `json:"next"`             // the change that comes next, "" for none
	Seats     []Seat          `json:"servers"`
}

// A Seat is one server in it.
type Seat struct {
	Node   identity.NodeID `json:"node"`
	Voter  bool            `json:"voter"`
	Leader bool            `json:"leader"`
	May    bool            `json:"mayVote"` // its labels and role allow it
	Zone   string          `json:"zone"`
	Member bool            `json:"member"`
	Alive  bool            `json:"alive"`
	Halted bool            `json:"cannotFollow"`  // it applies nothing more until it is upgraded
	Well   int64           `json:"stableSeconds"` // how long it has been alive and caught up
	Gone   int64           `json:"goneSeconds"`   // how long it has not been alive
}

// tolerance is how many of the living voters may die.
func tolerance(voters, living int) int { return max(0, living-(voters/2+1)) }

// noteAutopilot keeps what the autopilot has seen for whoever asks.
func (c *Consensus) noteAutopilot(term uint64, seats []seat, m move) {
	s := AutopilotState{Term: term, Leader: c.node, At: c.cfg.Wall().UTC(), Most: c.cfg.MaxVoters, Healthy: true,
		Seats: []Seat{}}
	living := 0
	for _, v := range seats {
		s.Seats = append(s.Seats, Seat{Node: v.node, Voter: v.voter, Leader: v.self, May: v.may, Zone: v.zone,
			Member: v.member && !v.outdone, Alive: v.alive, Halted: v.stopped,
			Well: int64(v.well / time.Second), Gone: int64(v.gone / time.Second)})
		if !v.voter {
			continue
		}
		s.Voters++
		if v.alive {
			living++
		}
		s.Healthy = s.Healthy && !v.stopped && (v.self || v.alive && v.well > 0)
	}
	s.Tolerance = tolerance(s.Voters, living)
	if m.do != stay {
		s.Next = fmt.Sprintf("%s %s: %s", m.do, m.node.Short(), m.why)
	}
	c.pilot.Store(&s)
}

// OwnView is how this node sees the servers itself, for when no leader tells: who
// votes by the newest configuration that it knows, and who lives by discovery. At is
// when it last heard of a leader.
func (c *Consensus) OwnView() AutopilotState {
	s := AutopilotState{Term: c.raft.CurrentTerm(), Most: c.cfg.MaxVoters, Seats: []Seat{}}
	if d, ok := c.Silence(); ok {
		s.At = c.cfg.Wall().UTC().Add(-d)
	}
	living := 0
	for _, v := range c.configuration().Servers {
		node := nodeOf(v.ID)
		may, zone := c.cfg.MayVote(node)
		seat := Seat{Node: node, Voter: v.Suffrage == raft.Voter, May: may, Zone: zone, Member: c.cfg.Member(node),
			Alive:  v.ID == c.self || c.cfg.Alive(node),
			Halted: v.ID == c.self && c.cfg.State.Err() != nil}
		s.Seats = append(s.Seats, seat)
		if seat.Voter {
			s.Voters++
			if seat.Alive {
				living++
			}
		}
	}
	s.Tolerance = tolerance(s.Voters, living)
	return s
}

// Autopilot asks the leader how it sees the servers. [ErrNoLeader] while nobody
// leads, or the leader has only just begun; see OwnView.
func (c *Consensus) Autopilot(ctx context.Context) (s AutopilotState, err error) {
	if !c.enter() {
		return s, ErrClosed
	}
	defer c.wg.Done()
	if c.leaderless() > 0 {
		return s, ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(ctx, pilotTimeout)
	defer cancel()
	m, err := c.toLeader(ctx, &message{op: opAutopilot, hops: maxHops})
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(m.body, &s)
}

// leadAutopilot answers as the leader.
func (c *Consensus) leadAutopilot(ctx context.Context) ([]byte, error) {
	for {
		if s := c.pilot.Load(); s != nil && s.Term == c.raft.CurrentTerm() {
			return json.Marshal(s)
		}
		if err := sleep(ctx, minBackoff); err != nil {
			return nil, errors.Join(errNotLeader, err)
		}
	}
}
