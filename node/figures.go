package node

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxCompanyFigures bounds the companies with their own series in /metrics, to keep a
// scrape small. The newest beyond it are added up as company "other".
const maxCompanyFigures = 200

// A histogram counts times by the buckets of the kernel's metrics.
type histogram struct {
	mu     sync.Mutex                    // guards the fields below
	counts [len(post.Buckets) + 1]uint64 // by post.Buckets, and above
	sum    time.Duration
}

// add counts what has taken since a time.
func (h *histogram) add(since time.Time) {
	took := time.Since(since)
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(post.Buckets[:], func(ms int) bool { return took <= time.Duration(ms)*time.Millisecond })
	if at < 0 {
		at = len(post.Buckets)
	}
	h.counts[at]++
	h.sum += took
}

// all returns how many were counted.
func (h *histogram) all() (n uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.counts {
		n += c
	}
	return n
}

// stats returns the counts for /metrics under a name of the kernel; what says of what they are the times, and which the
// things that are counted.
func (h *histogram) stats(name, what, which string) []api.Stat {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bucketStats(name, what, which, h.counts[:], h.sum)
}

func bucketStats(name, what, which string, counts []uint64, total time.Duration) (out []api.Stat) {
	add := func(part, help string, v float64, labels map[string]string) {
		out = append(out, api.Stat{Name: kernelPrefix + name + part, Help: help, Value: v, Counter: true, Labels: labels})
	}
	sum := uint64(0)
	for i, n := range counts {
		le := "+Inf"
		if i < len(post.Buckets) {
			le = strconv.Itoa(post.Buckets[i])
		}
		sum += n
		add("_bucket", what+": "+which+" within le ms", float64(sum), map[string]string{"le": le})
	}
	add("_sum", "sum of the times of "+name+"_bucket, in ms", float64(total)/float64(time.Millisecond), nil)
	add("_count", which+" in "+name+"_bucket", float64(sum), nil)
	return out
}

// kernelPrefix begins the names of the kernel's metrics.
const kernelPrefix = "selvage_kernel_"

// kernelStats returns the figures of processes, tools and the gate for /metrics.
func (n *Node) kernelStats() (out []api.Stat) {
	if n.work.host == nil {
		return nil
	}
	add := func(counter bool, name, help string, v float64) {
		out = append(out, api.Stat{Name: kernelPrefix + name, Help: help, Value: v, Counter: counter})
	}
	f := n.work.host.Table().Figures()
	add(true, "agent_spawns_total", "processes that began on this node, runs and services included", float64(f.Begun))
	add(true, "agent_crashes_total", "processes of this node that ended by a crash", float64(f.Crashed))
	add(false, "active_agents", "processes of this node that have not ended, runs and services included", float64(f.Live))
	add(false, "active_services", "processes among them that are services", float64(f.Services))
	add(false, "chain_length", "height of the chain, as this node has it", float64(n.ledger.Position().Height))
	add(true, "tool_executions_total", "modules that this node executed as tools", float64(n.toolTimes.all()))
	out = append(out, n.toolTimes.stats("tool_execution_ms", "time to execute a module as a tool", "executions")...)
	return append(out, n.gate.times.stats("governance_evaluation_ms",
		"time in which the gate of this node weighed an act that is no command", "acts")...)
}

// A tally counts events of the chain since the node was started. All nodes apply the
// same entries and count the same; a node that started later counts fewer.
type tally struct {
	mu    sync.Mutex        // guards the fields below
	ended map[string]uint64 // runs, by how they ended
	lost  uint64            // nodes that were declared lost
}

// endings are the states in which a run can end.
var endings = []entity.RunStatus{entity.RunSucceeded, entity.RunFailed, entity.RunTimedOut, entity.RunInterrupted,
	entity.RunCancelled}

// see counts one entry.
func (t *tally) see(e ledger.Entry) {
	for _, ch := range e.Changes {
		switch ch.Action {
		case "heartbeat.run.status":
			// A lost node can end more runs than fit one by one into the entry.
			var run struct{ Status entity.RunStatus }
			if e.Kind == company.KindNodeLost || json.Unmarshal(ch.Details, &run) != nil || run.Status.Live() {
				continue
			}
			t.add(run.Status, 1)
		case "node.lost":
			var lost struct{ Runs uint64 }
			if json.Unmarshal(ch.Details, &lost) == nil {
				t.add(entity.RunInterrupted, lost.Runs)
			}
			t.mu.Lock()
			t.lost++
			t.mu.Unlock()
		}
	}
}

func (t *tally) add(status entity.RunStatus, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = map[string]uint64{}
	}
	t.ended[string(status)] += n
}

// stats returns the counts for /metrics.
func (t *tally) stats() []api.Stat {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []api.Stat{{Name: "selvage_nodes_lost_total", Counter: true, Value: float64(t.lost),
		Help: "nodes with work whose lease passed, so that their runs were ended; every node counts all of the mesh"}}
	for _, s := range endings {
		out = append(out, api.Stat{Name: "selvage_runs_ended_total", Labels: map[string]string{"outcome": string(s)},
			Counter: true,
			Value:   float64(t.ended[string(s)]), Help: "runs that ended, by outcome; every node counts all of the mesh"})
	}
	return out
}

// meshStats returns figures of the replicated state for /metrics. They are the same on
// all nodes.
func (n *Node) meshStats() (out []api.Stat) {
	gauge := func(name, help string, v float64, labels ...string) {
		s := api.Stat{Name: "selvage_" + name, Help: help, Value: v, Labels: map[string]string{}}
		for i := 0; i+1 < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		out = append(out, s)
	}
	now := core.TimeOf(n.consensus.Now())
	members := map[string]float64{}
	for id, m := range n.roster.all() {
		switch {
		case !m.Member():
		case id == n.ID() || n.alive(id):
			members["alive"]++
		default:
			members["dead"]++
		}
	}
	for _, state := range []string{"alive", "dead"} {
		gauge("members", "members of the mesh, as this node sees them", members[state], "state", state)
	}
	gauge("build_info", "1; the version of the program and the newest feature level that it knows", 1,
		"version", shortVersion(n.conf.Version), "level", strconv.FormatUint(n.conf.Level, 10))
	_ = n.ledger.View(func(tx *ledger.Tx) error { // without a state there are no figures
		gauge("feature_level", "feature level of the mesh", float64(ledger.Features(tx)))
		q := entity.QueueDepth(tx, now)
		const of = "runs of the mesh that are not over, by state: queued for a node, an agent or another run; waiting for " +
			"the time of a retry; running"
		gauge("runs", of, float64(q.Queued), "state", "queued")
		gauge("runs", of, float64(q.Retries), "state", "retry")
		gauge("runs", of, float64(entity.CountPlacedRuns(tx)), "state", "running")
		gauge("run_queue_oldest_seconds", "how long the oldest queued run has waited", q.Oldest.Seconds())
		for _, c := range companyFigures(tx, now) {
			gauge("company_spent_cents", "what the company spent in this calendar month (UTC)", cents(c.spent), "company",
				string(c.company))
			gauge("company_reserved_cents", "what is set aside for calls and runs of the company and not spent yet",
				cents(c.reserved), "company", string(c.company))
			gauge("company_budget_cents", "monthly limit of the company, 0 for none", cents(c.budget), "company",
				string(c.company))
			for _, threshold := range []string{"soft", "hard"} {
				gauge("company_budget_incidents",
					"open incidents of the company's budgets (its own, of agents, of projects): soft is the warning, hard the stop",
					float64(c.incidents[threshold]), "company", string(c.company), "threshold", threshold)
			}
		}
		return nil
	})
	if b := n.conf.Backups; b.Every > 0 {
		if all, err := backupsIn(b.Dir); err == nil && len(all) > 0 {
			if info, err := os.Stat(all[len(all)-1]); err == nil {
				gauge("backup_timestamp_seconds", "when this node's newest scheduled backup was made, in Unix time",
					float64(info.ModTime().Unix()))
			}
		}
	}
	return out
}

// companyFigure is what /metrics shows of one company, by its ID: neither its name nor
// any content.
type companyFigure struct {
	company                 ledger.CompanyID
	spent, reserved, budget core.Money
	incidents               map[string]int // open ones, by threshold
}

func companyFigures(tx *ledger.Tx, now core.Time) []companyFigure {
	var out []companyFigure
	for i, c := range entity.Companies(tx) {
		b := money.BudgetOf(tx, c.ID, entity.ScopeCompany, string(c.ID), now)
		if i <= maxCompanyFigures {
			out = append(out, companyFigure{company: c.ID, incidents: map[string]int{}})
		}
		f := &out[len(out)-1]
		if i >= maxCompanyFigures {
			f.company = "other"
		}
		f.spent, f.reserved, f.budget = f.spent.Plus(b.Month), f.reserved.Plus(b.Held), f.budget.Plus(b.MonthlyLimit())
		for _, in := range money.OpenIncidents(tx, c.ID, now) {
			f.incidents[in.Threshold]++
		}
	}
	return out
}

// cents converts an amount to cents.
func cents(m core.Money) float64 { return float64(m) / float64(core.Cent) }

// lag is by how much applied is behind committed.
func lag(committed, applied uint64) float64 { return float64(max(committed, applied) - applied) }

// stats returns the node's figures for /metrics.
func (n *Node) stats() []api.Stat {
	c, l, p := n.consensus.Stats(), n.ledger.Stats(), n.proposer.Stats()
	var d discovery.Stats // none without discovery
	if n.discovery != nil {
		d = n.discovery.Stats()
	}
	t, b := n.transport.Stats(), n.blobs.Stats()
	pos := n.ledger.Position()
	gauge := func(name, help string, v float64) api.Stat {
		return api.Stat{Name: "selvage_" + name, Help: help, Value: v}
	}
	sum := func(name, help string, v float64) api.Stat {
		return api.Stat{Name: "selvage_" + name, Help: help, Value: v, Counter: true}
	}
	count := func(name, help string, v uint64) api.Stat { return sum(name, help, float64(v)) }
	scrub := n.Scrubbed()
	leader, quorum, silence := 0.0, 0.0, 0.0
	if c.Serving {
		leader = 1
	}
	if n.standing().Quorum {
		quorum = 1
	}
	if d, ok := n.consensus.Silence(); ok {
		silence = d.Seconds()
	}
	skew, _ := n.clocks.skew()
	disk := n.store.Metrics()
	return []api.Stat{
		gauge("raft_leader", "1 on the node that leads", leader),
		gauge("raft_term", "raft term", float64(c.Term)),
		gauge("raft_log_first_index", "first index of the raft log", float64(c.LogFirst)),
		gauge("raft_log_last_index", "last index of the raft log", float64(c.LastIndex)),
		gauge("raft_commit_index", "newest index of the raft log that this node knows to be committed", float64(c.Commit)),
		gauge("raft_voters", "voters in the configuration", float64(c.Voters)),
		gauge("raft_silence_seconds", "time since this node heard of a leader, 0 on the leader", silence),
		gauge("quorum", "1 where the node knows a leader: writes are taken", quorum),
		count("raft_leader_changes_total", "changes of leadership seen", c.LeaderChanges),
		count("raft_proposals_total", "batches proposed by this node as leader", c.Proposals),
		count("raft_forwarded_total", "requests handed to the leader", c.Forwarded),
		count("raft_strong_reads_total", "strong reads", c.StrongReads),
		count("raft_divergences_total", "comparisons that found this node's state different", c.Divergences),
		count("raft_log_writes_total", "synced appends to the raft log", c.LogWrites),
		sum("raft_log_write_seconds_total", "time spent in synced appends", c.LogWriteTime.Seconds()),
		gauge("raft_log_write_worst_seconds", "slowest synced append", c.LogWorst.Seconds()),
		count("store_syncs_total", "fsyncs of the write-ahead log", n.store.Syncs()),
		gauge("ledger_height", "entries of the chain", float64(pos.Height)),
		gauge("ledger_applied_index", "raft index of the state", float64(pos.Applied)),
		gauge("ledger_lag_entries", "committed entries of the raft log that this node has not applied yet",
			lag(c.Commit, pos.Applied)),
		count("ledger_commands_total", "commands applied, refusals included", l.Commands),
		sum("ledger_apply_seconds_total", "time spent in apply", l.ApplyTime.Seconds()),
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
		count("lease_losses_total", "times that this node's lease ended under its runs, which it then stopped",
			n.work.worker.Lapses()),
		gauge("clock_skew_seconds", "how far this node's clock is from the median of the nodes", skew.Seconds()),
		gauge("store_bytes", "bytes of this node's store: state, raft log, write-ahead log", float64(disk.DiskBytes)),
		gauge("store_wal_bytes", "of these, bytes of the write-ahead log", float64(disk.WALBytes)),
		gauge("disk_free_bytes", "free bytes of the file system with the node's data, 0 where that is not known",
			float64(disk.FreeBytes)),
	}
}
