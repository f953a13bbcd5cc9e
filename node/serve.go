package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// standing is what every answer says of the node's place in the mesh. It is
// cheap: raft's own view, no round trip.
func (n *Node) standing() api.Standing {
	leader, ok := n.consensus.Leader()
	st := api.Standing{Quorum: ok, Leader: leader}
	if ok {
		return st
	}
	at := n.consensus.Heard()
	if at.IsZero() { // it has heard of none since it was started
		at = n.ledger.Time()
	}
	st.Age = max(0, time.Since(at))
	return st
}

// quorum is which voters this node hears, for people.
func (n *Node) quorum() api.Quorum {
	q := n.consensus.Quorum()
	out := api.Quorum{Heard: n.names(q.Heard), Silent: n.names(q.Silent), Enough: q.Enough(), Leaderless: q.Leaderless}
	if !q.Voter {
		out.Of = "voters"
	}
	return out
}

// names are what people call nodes.
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

// Role is what the node is in the consensus group now.
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

// Leave takes this node out of the mesh for good: it hands leadership on, gives
// its vote up, has itself struck off the roster, and stops.
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
			return ledger.Refuse(ledger.Conflict, nil, "This node leads and no other can in its place: wait until one that may vote is up and has caught up (selvage autopilot state)")
		} else if err != nil {
			return fmt.Errorf("hand leadership on: %w", err)
		}
	}
	// The vote goes first: of two voters the one that stays could not take it away.
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
	if err := n.discovery.Leave(); err != nil {
		n.log.Warn("tell the others of leaving", "error", err)
	}
	n.expelled()
	return nil
}

// expelled ends a node that is no member any more, and sees to it that it says
// so when it is started again, also when its state has not got that far.
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

// VerifyDir checks the chain in the data directory of a stopped node.
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

// stats are the node's figures for /metrics.
func (n *Node) stats() []api.Stat {
	c, l, p := n.consensus.Stats(), n.ledger.Stats(), n.proposer.Stats()
	d, t, b := n.discovery.Stats(), n.transport.Stats(), n.blobs.Stats()
	pos := n.ledger.Position()
	gauge := func(name, help string, v float64) api.Stat {
		return api.Stat{Name: "selvage_" + name, Help: help, Value: v}
	}
	count := func(name, help string, v uint64) api.Stat {
		return api.Stat{Name: "selvage_" + name, Help: help, Value: float64(v), Counter: true}
	}
	scrub := n.Scrubbed()
	leader := 0.0
	if c.Serving {
		leader = 1
	}
	return []api.Stat{
		gauge("raft_leader", "1 on the node that leads", leader),
		gauge("raft_term", "raft term", float64(c.Term)),
		gauge("raft_log_first_index", "first index of the raft log", float64(c.LogFirst)),
		gauge("raft_log_last_index", "last index of the raft log", float64(c.LastIndex)),
		gauge("raft_voters", "voters in the configuration", float64(c.Voters)),
		count("raft_leader_changes_total", "changes of leadership seen", c.LeaderChanges),
		count("raft_proposals_total", "batches proposed by this node as leader", c.Proposals),
		count("raft_forwarded_total", "requests handed to the leader", c.Forwarded),
		count("raft_strong_reads_total", "strong reads", c.StrongReads),
		count("raft_divergences_total", "comparisons that found this node's state different", c.Divergences),
		count("raft_log_writes_total", "synced appends to the raft log", c.LogWrites),
		gauge("raft_log_write_seconds_total", "time spent in synced appends", c.LogWriteTime.Seconds()),
		gauge("raft_log_write_worst_seconds", "slowest synced append", c.LogWorst.Seconds()),
		count("store_syncs_total", "fsyncs of the write-ahead log", n.store.Syncs()),
		gauge("ledger_height", "entries of the chain", float64(pos.Height)),
		gauge("ledger_applied_index", "raft index of the state", float64(pos.Applied)),
		count("ledger_commands_total", "commands applied, refusals included", l.Commands),
		gauge("ledger_apply_seconds_total", "time spent in apply", l.ApplyTime.Seconds()),
		count("proposer_commands_total", "commands sent by this node", p.Commands),
		count("proposer_batches_total", "batches sent by this node", p.Batches),
		count("proposer_resent_total", "batches sent again because their outcome was unknown", p.Resent),
		count("proposer_busy_total", "commands refused because the queue was full", p.Busy),
		gauge("proposer_queued", "commands that wait to be sent", float64(p.Queued)),
		count("discovery_joined_total", "members seen to join", d.Joins),
		count("discovery_failed_total", "members declared dead", d.Failures),
		count("discovery_doubts_total", "members that were asked once more before they were declared dead", d.Doubts),
		count("discovery_spared_total", "members that answered then", d.Spared),
		count("discovery_strangers_total", "nodes in gossip that are no members", d.Strangers),
		count("discovery_garbage_total", "gossip packets that do not open", d.Garbage),
		gauge("transport_connections", "connections with peers", float64(t.Connections)),
		count("transport_accepted_total", "connections that peers opened", t.Accepted),
		count("transport_dialled_total", "connections that this node opened", t.Dialled),
		count("transport_junk_total", "datagrams that were nothing", t.PacketsDropped),
		gauge("blobs", "blobs on this node's disk", float64(b.Blobs)),
		gauge("blob_bytes", "bytes of blobs on this node's disk", float64(b.Bytes)),
		count("blob_fetched_total", "blobs fetched because this node shall have them", b.Fetched),
		count("blob_rotten_total", "files of blobs that did not have their hash any more", b.Rotten),
		count("blob_mended_total", "of those, put right with a peer's bytes", b.Mended),
		gauge("blobs_damaged", "blobs on this node's disk that no peer had a good copy of yet", float64(b.Damaged)),
		count("scrub_rounds_total", "times that all of this node's store and blobs was read", scrub.Rounds),
		count("scrub_bytes_total", "bytes that scrubs read", uint64(scrub.AllBytes)),
		gauge("scrub_progress", "share that the scrub under way has read, or the last one", progress(scrub)),
		count("scrub_damaged_total", "damaged files that scrubs found", scrub.AllDamaged),
		count("blob_collected_total", "blobs thrown away because nothing referred to them", b.Collected),
		count("blob_surplus_total", "blobs given up because others have them", b.Surplus),
		count("blob_streams_total", "streams of blobs that peers opened", b.Streams),
		gauge("late_seconds", "how late this node runs for want of a processor", n.pulse.Late().Seconds()),
		gauge("raft_election_timeout_seconds", "election time-out in force; it follows late_seconds", c.Election.Seconds()),
		gauge("lease_seconds", "length of the lease that this node was granted last", n.work.worker.LeaseLength().Seconds()),
		gauge("runs_here", "runs that this node carries out", float64(len(n.work.worker.Running()))),
	}
}
