package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// standing is the node's position in the mesh, which every answer carries. It is cheap:
// raft's own view, without a round trip.
func (n *Node) standing() api.Standing {
	leader, ok := n.consensus.Leader()
	st := api.Standing{Quorum: ok, Leader: leader}
	if ok {
		return st
	}
	if d, ok := n.consensus.Silence(); ok {
		st.Age = d
	} else { // it has heard of no leader since its start
		st.Age = max(0, n.conf.Wall().Sub(n.ledger.Time()))
	}
	return st
}

// quorum returns which voters this node hears, for people.
func (n *Node) quorum() api.Quorum {
	q := n.consensus.Quorum()
	out := api.Quorum{Heard: n.names(q.Heard), Silent: n.names(q.Silent), Enough: q.Enough(), Leaderless: q.Leaderless}
	if !q.Voter {
		out.Of = "voters"
	}
	return out
}

// names returns the names of nodes.
func (n *Node) names(ids []identity.NodeID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		m, _ := n.roster.node(id)
		out[i] = cmp.Or(m.Name, id.Short())
	}
	return out
}

func (n *Node) raftInfo() (consensus.Stats, []consensus.Server) {
	return n.consensus.Stats(), n.consensus.Servers()
}

// Role returns the node's current role in the consensus group.
func (n *Node) Role() string {
	s := n.consensus.Stats()
	switch {
	case s.Serving:
		return "leader"
	case s.Voter:
		return "voter"
	}
	return "non-voter"
}

// Leave removes this node from the mesh permanently: it transfers leadership, gives up
// its vote, has itself removed from the roster, and stops.
func (n *Node) Leave(ctx context.Context) error {
	members := 0
	for _, m := range n.roster.all() {
		if m.Member() {
			members++
		}
	}
	if members < 2 {
		return ledger.Refuse(ledger.Conflict, nil, "The last node of a mesh can not leave it")
	}
	if n.consensus.IsLeader() {
		if err := n.consensus.StepAside(ctx); errors.Is(err, consensus.ErrRefused) {
			return ledger.Refuse(ledger.Conflict, nil,
				"This node leads and no other can in its place: wait until one that may vote is up and has caught up (selvage "+
					"autopilot state)")
		} else if err != nil {
			return fmt.Errorf("hand leadership on: %w", err)
		}
	}
	// The vote goes first: the remaining one of two voters could not remove it.
	if n.consensus.Stats().Voter {
		if err := n.consensus.Leave(ctx); err != nil {
			return fmt.Errorf("give up the vote: %w", err)
		}
	}
	receipt, err := n.submit(ctx, n.command(ledger.KindNodeRevoke, "", ledger.NodeRevoke{Node: n.ID(), Reason: "left"}))
	if err != nil {
		return err
	}
	if err := receipt.Err(); err != nil {
		return err
	}
	if n.discovery != nil {
		if err := n.discovery.Leave(); err != nil {
			n.log.Warn("tell the others of leaving", "error", err)
		}
	}
	n.expelled()
	return nil
}

// expelled stops a node that is no longer a member, and records that, so that it says so
// at its next start even if its state has not applied the revocation.
func (n *Node) expelled() {
	n.saving.Lock()
	defer n.saving.Unlock()
	if !n.member.Over {
		n.member.Over = true
		if err := n.saveMember(); err != nil {
			n.log.Error("note the end of the membership", "error", err)
		}
	}
	n.stopWith(ErrRevoked)
}

// VerifyDir verifies the chain in the data directory of a stopped node.
func VerifyDir(ctx context.Context, dir string) (v ledger.Verified, err error) {
	if err := hasStore(dir); err != nil {
		return v, err
	}
	s, err := store.Open(storeDir(Config{Dir: dir, OnDisk: true}), store.Options{})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := ledger.Open(ledger.Config{Span: s.Span(spanState), Mux: rules.Handlers()})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.Verify(ctx, nil)
}
