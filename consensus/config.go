package consensus

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// A StateMachine is what the agreed order is applied to. ApplyBatch and Restore
// are called by one goroutine at a time.
type StateMachine interface {
	// ApplyBatch applies entries that follow Applied without a gap and returns
	// one result for each. An entry with nil Data is raft's own (a change of
	// configuration, a new leader) and only moves the applied index.
	ApplyBatch([]ledger.LogEntry) [][]byte
	// Applied returns the index of the last entry applied.
	Applied() uint64
	// Err tells why it has stopped applying, for good (it met what only a newer
	// version knows), and nil while it goes on. A node that has stopped keeps its log
	// and votes, and does not lead; the autopilot replaces it.
	Err() error
	// Snapshot returns the state as it is now, at once; writing it out goes on
	// beside further applies.
	Snapshot() (Snapshot, error)
	// Restore puts what a Snapshot wrote in place of the state, all or nothing.
	Restore(io.Reader) error
}

// A Snapshot is a state at one index.
type Snapshot interface {
	WriteTo(io.Writer) (int64, error)
	Close() error
}

// Config says how to open a Consensus. Fields without a default are required.
type Config struct {
	// ServerID is NodeID/incarnation, as identity.Keys.ServerID gives it. It is
	// also the server's address: DialRaft resolves it.
	ServerID string
	// Span holds the log and the stable values; nothing else may write to it.
	Span *store.Span
	// Dir holds the snapshots, in FS; FS is the operating system's when nil.
	Dir string
	FS  vfs.FS
	// State is what committed entries are applied to.
	State StateMachine
	// DialRaft and DialPropose open a stream of the kinds raft and propose to a
	// member, whose identity the transport has checked. Streams that come in are
	// given to AcceptRaft and AcceptPropose.
	DialRaft, DialPropose func(ctx context.Context, to identity.NodeID) (net.Conn, error)

	// Verify checks the signature of a batch and that its origin may speak; an
	// error refuses the batch. The leader calls it once for each batch.
	Verify func(batch []byte) error
	// Time is the time of the newest batch that State has applied, zero before
	// the first (ledger.Ledger.Time), and Wall this node's own clock; nil is
	// time.Now. The leader stamps batches by both, see [ledger.NextStamp].
	Time, Wall func() time.Time
	// Member tells whether a node is admitted and not revoked; servers of
	// others are removed, and only members are enrolled. nil means all are.
	Member func(identity.NodeID) bool
	// MayVote tells whether a member may become a voter (an untrusted node or
	// one on a weak disk never does), and the zone it stands in, by which voters
	// are spread. nil means that all may, in one zone.
	MayVote func(identity.NodeID) (may bool, zone string)
	// Alive tells whether discovery sees the node. nil means that contact with
	// the leader alone decides.
	Alive func(identity.NodeID) bool
	// Peers names members that a node outside the configuration may ask to be
	// enrolled, best first. nil means that it waits to be added.
	Peers func() []identity.NodeID
	// MayLead tells whether this node may lead now; a node whose clock is wrong
	// may not, and hands leadership on. nil means that it may.
	MayLead func() error

	// OnFatal hears of a log that can no longer be written (an error, or a stall
	// of fatalStall): the process must end, and is not fit to go on meanwhile.
	OnFatal func(error)
	// OnDiverged hears, on the node itself, that its state at an index differs
	// from what a majority of the voters has, or that no majority agrees.
	OnDiverged func(Divergence)

	// Stabilisation is how long a server must be well before it may vote.
	// Default 10 s: joining and restarting nodes settle within it.
	Stabilisation time.Duration
	// MaxVoters is 1, 3, 5 or 7. Default 5.
	MaxVoters int
	// SnapshotThreshold and TrailingLogs are in entries, SnapshotInterval is
	// how often the threshold is looked at. Defaults 65,536, 10,240 and 30 s.
	SnapshotThreshold, TrailingLogs uint64
	// SnapshotBytes is how much log may lie behind the newest snapshot, or a quarter
	// of the snapshot if that is more: a start reads all of it. Default 128 MiB.
	SnapshotBytes    uint64
	SnapshotInterval time.Duration
	// LogCacheBytes bounds the newest entries that are kept in memory for followers.
	// Default 8 MiB.
	LogCacheBytes int
	// CommitTimeout is the fallback by which followers learn of commits.
	// Default 50 ms; see there.
	CommitTimeout time.Duration
	// ElectionTimeout is how long this node waits for its leader before it asks
	// for votes, and how long it leads without a quorum in contact. A disk that
	// takes long to sync needs more; at most 10 s. Default 500 ms. Nodes of one
	// group may differ.
	ElectionTimeout time.Duration
	// Late is how late this node runs at the moment, for want of a processor: the
	// election time-out follows it up to mostPatient. It is asked twice a second.
	// nil: it never does.
	Late func() time.Duration

	Logger *slog.Logger // nil drops everything
	Faults Faults       // tests only
}

// Faults are planted bugs, with which the tests show that the checkers find
// them. The zero value has none; production code never sets one.
type Faults struct {
	// AckBeforeCommit acknowledges a batch as soon as the leader alone has it
	// in its log.
	AckBeforeCommit bool
	// SkipFsync appends to the log without syncing it.
	SkipFsync bool
	// StaleStrongRead answers a strong read with this node's own index, without
	// asking who leads.
	StaleStrongRead bool
}

func (c Config) withDefaults() Config {
	c.Stabilisation = cmp.Or(c.Stabilisation, stabilisation)
	c.MaxVoters = cmp.Or(c.MaxVoters, maxVoters)
	c.SnapshotThreshold = cmp.Or(c.SnapshotThreshold, snapshotThreshold)
	c.TrailingLogs = cmp.Or(c.TrailingLogs, trailingLogs)
	c.SnapshotBytes = cmp.Or(c.SnapshotBytes, snapshotBytes)
	c.LogCacheBytes = cmp.Or(c.LogCacheBytes, logCacheBytes)
	c.SnapshotInterval = cmp.Or(c.SnapshotInterval, snapshotInterval)
	c.CommitTimeout = cmp.Or(c.CommitTimeout, commitTimeout)
	c.ElectionTimeout = cmp.Or(c.ElectionTimeout, electionTimeout)
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Member == nil {
		c.Member = func(identity.NodeID) bool { return true }
	}
	if c.MayVote == nil {
		c.MayVote = func(identity.NodeID) (bool, string) { return true, "" }
	}
	if c.Alive == nil {
		c.Alive = func(identity.NodeID) bool { return true }
	}
	if c.Peers == nil {
		c.Peers = func() []identity.NodeID { return nil }
	}
	if c.Late == nil {
		c.Late = func() time.Duration { return 0 }
	}
	if c.MayLead == nil {
		c.MayLead = func() error { return nil }
	}
	if c.OnFatal == nil {
		c.OnFatal = func(error) {}
	}
	if c.OnDiverged == nil {
		c.OnDiverged = func(Divergence) {}
	}
	return c
}

// Validate reports every problem of c at once.
func (c Config) Validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New("consensus: "+what))
		}
	}
	node, incarnation := splitServerID(c.ServerID)
	need(node != "" && incarnation != "", "ServerID is not NodeID/incarnation")
	need(len(c.ServerID) <= maxServerID, "ServerID is too long")
	need(c.Span != nil, "no Span")
	need(c.Dir != "", "no Dir")
	need(c.State != nil, "no State")
	need(c.DialRaft != nil && c.DialPropose != nil, "no way to dial peers")
	need(c.Verify != nil && c.Time != nil, "no way to verify or stamp batches")
	switch c.MaxVoters {
	case 0, 1, 3, 5, 7:
	default:
		need(false, "MaxVoters must be 1, 3, 5 or 7")
	}
	need(c.Stabilisation >= 0 && c.SnapshotInterval >= 0, "a negative duration")
	need(c.CommitTimeout == 0 || c.CommitTimeout >= time.Millisecond, "CommitTimeout is below 1 ms")
	need(c.ElectionTimeout == 0 || c.ElectionTimeout >= minElection && c.ElectionTimeout <= maxElection,
		"ElectionTimeout is not between 100 ms and 10 s")
	return errors.Join(errs...)
}
