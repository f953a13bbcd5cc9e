package consensus

import (
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// A follower that has not heard from the leader for one to two (by raft's
	// sampling: at most three) heartbeat time-outs asks for votes, and with
	// pre-vote both followers of three must have missed it. 500 ms puts the
	// typical gap near 1 s and the worst below 3 s with one split vote, while
	// five to ten heartbeats in a row must be late for a false alarm.
	electionTimeout = 500 * time.Millisecond
	// leaseTimes is how many election time-outs a leader goes on without a quorum in
	// contact. Nothing but its callers' wait depends on it: the others elect when they
	// miss it, and what is read or committed is confirmed by a quorum.
	leaseTimes = 2
	// minElection is below any disk's sync, maxElection above what a lease on
	// runs leaves for an election.
	minElection = 100 * time.Millisecond
	maxElection = 10 * time.Second

	// A message and its answer wait for a processor about six times (the sender's
	// timer, its socket, the peer's socket, its raft, and back), so a node that runs
	// late by up to 80 ms keeps the usual time-out, and with it the usual failover.
	// mostPatient bounds what becomes of it: beyond, a dead leader would hold up all
	// that a lease on runs is to outlive.
	lateTimes   = 6
	mostPatient = 5 * time.Second
	// paceEvery is how often it is looked at.
	paceEvery = 500 * time.Millisecond

	// beats is how many moments there are in an election time-out at which
	// heartbeats leave. Raft rests for one to two of them after an answer, so with
	// the wait for the next moment it is every other one, or where answers take
	// long every third.
	beats = 10

	// commitTimeout is the fallback by which followers learn of a commit; the
	// announcer is normally sooner, and its messages are carried again until they
	// arrive. Its price is idle traffic: every follower gets an empty append once
	// in 1 to 2 times this, and a leader with two followers wakes three times for
	// each: at 50 ms that was a quarter of what an idle leader costs.
	commitTimeout = 250 * time.Millisecond
	// announceAfter is how long the announcer waits for the next append to carry
	// the commit index before it sends an empty one.
	announceAfter = time.Millisecond
	// announceQuiet is how long nothing has been committed when it does not wait:
	// whoever writes one thing after another waits for a follower each time.
	announceQuiet = 2 * time.Millisecond

	// maxAppendEntries bounds the entries of one raft message. An entry is a
	// batch of up to 1 MiB, so this also bounds memory: 64 MiB at worst.
	maxAppendEntries = 64
	// logCacheBytes and logCacheEntries bound the recent entries kept decoded,
	// from which followers are fed; entries are batches, so bytes matter.
	logCacheBytes    = 8 << 20
	logCacheEntries  = 4096
	logCacheOverhead = 192 // of an entry, beside its data
	// trailingLogs stay after a snapshot so that a follower that was away for
	// minutes catches up from the log.
	trailingLogs = 10_240
	// A snapshot is considered every one to two intervals, when the log has
	// grown by the threshold.
	snapshotInterval  = 30 * time.Second
	snapshotThreshold = 65_536
	// snapshotBytes of log are read in half a second when a node starts; boundLooks is
	// how often in a snapshotInterval the log is measured.
	snapshotBytes = 128 << 20
	boundLooks    = 6
	// keptSnapshots is the newest and one that a slow follower may still read.
	keptSnapshots = 2
	// snapCheckEvery is how often the snapshots are read for damage, snapCheckRest how
	// many times longer the reader rests than it reads: it takes 2 % of a processor.
	snapCheckEvery = 24 * time.Hour
	snapCheckRest  = 49

	// maxPool keeps one idle raft stream for heartbeats, one for the pipeline
	// and one for announcements to a peer.
	maxPool = 3
	// maxInFlight is raft's own advice: more pipelining hurts batching.
	maxInFlight = 2
	// rpcTimeout bounds one raft message; the watchdog needs it above a slow
	// fsync, failover needs it short.
	rpcTimeout = 3 * time.Second
	// snapshotScale gives a snapshot rpcTimeout for each so many bytes.
	snapshotScale = 64 << 10
	// A follower that refused entries because its disk is full gets them again after
	// refusedLeast, or where they are many after what they take at refusedRate bytes a
	// second, up to refusedMost. Raft's own wait doubles up to 10 s, and the follower
	// would be behind for that long when there is room again.
	refusedLeast = 100 * time.Millisecond
	refusedMost  = time.Second
	refusedRate  = 16 << 20
	// dialTimeout bounds opening a stream to a peer.
	dialTimeout = 2 * time.Second
	// maxRaftStreams bounds the raft streams accepted from one peer: its pool,
	// a snapshot, and as many that it has given up and we have not noticed.
	maxRaftStreams = 2 * (maxPool + 1)

	// fatalStall is how long one append to the log may take before the node gives
	// up; after stallElections election time-outs it stops sending as a leader.
	fatalStall     = 20 * time.Second
	stallElections = 2

	// maxHops bounds how often a batch is handed on in search of the leader.
	maxHops = 3
	// proposeTimeout bounds one proposal, waiting for a leader included.
	proposeTimeout = 5 * time.Second
	// Where nobody has led for quorumElections of the election time-outs in force, within
	// the bounds, there is no quorum: a leader that dies is missed within three of them, and
	// elected within two more. A call waits for leastPatience in any case, so that who
	// repeats it at once does no harm. quorumLook is how often one that waits looks,
	// and outcomeGrace how much longer it waits to hear that nothing was done.
	quorumElections = 6
	quorumLeast     = 3 * time.Second
	quorumMost      = 10 * time.Second
	leastPatience   = time.Second
	quorumLook      = 250 * time.Millisecond
	outcomeGrace    = 500 * time.Millisecond
	// enqueueTimeout bounds the wait for room in raft's own queue.
	enqueueTimeout = time.Second
	// maxLeading bounds the batches that a leader works on at once; more wait.
	maxLeading = 64
	// maxBatch is a batch on the wire: its commands and what frames them.
	maxBatch = ledger.MaxBatchBytes + ledger.MaxBatchCommands*1024

	// maxMessage bounds a message between peers; results hold what handlers
	// returned and may be larger than the batch.
	maxMessage = 16 << 20
	// maxServing bounds the requests of one peer worked on at once.
	maxServing = 64
	// writeTimeout bounds one write to a peer's stream.
	writeTimeout = 5 * time.Second

	// Autopilot looks at the servers once in every interval, or as often as a
	// shorter stabilisation asks, down to the least.
	autopilotInterval = time.Second
	autopilotLeast    = 100 * time.Millisecond
	// stabilisation is how long a server must be well before it may vote.
	stabilisation = 10 * time.Second
	// removeAfter is how long a server may be gone before its seat is cleared;
	// it is enrolled again when it comes back.
	removeAfter = 24 * time.Hour
	// maxVoters: beyond five, more voters cost more than they protect.
	maxVoters = 5
	// maxLag is how many entries behind the leader a server may be to get a vote.
	maxLag = 1024
	// probeTimeout bounds one question about a server's progress.
	probeTimeout = time.Second
	// stepTries bounds how often a leader that leaves alone makes another a voter.
	stepTries = 3
	// pilotTimeout bounds the question how the leader sees the servers.
	pilotTimeout = 2 * time.Second
	// changeTimeout bounds one change of the configuration.
	changeTimeout = 10 * time.Second
	// promoteAgain is how long a promotion may take before an entry is appended
	// behind it, which the promoted server acknowledges as a voter.
	promoteAgain = time.Second
	// enrollInterval is how often a node that is in no configuration asks in, and
	// enrollFirst is when it does first; the waits between grow.
	enrollInterval = time.Second
	enrollFirst    = 50 * time.Millisecond
	// enrollAfter is how long a node in the configuration may hear from no
	// leader before it asks whether it still is.
	enrollAfter = 5 * time.Second
	// aliveContact is how old a server's last answer to the leader may be, in
	// election time-outs.
	aliveContact = 4

	// digestInterval is how often the digests of states are compared.
	digestInterval = 10 * time.Second

	// maxQueue bounds the commands that wait in a Proposer: a second's worth.
	maxQueue = 8192
	// maxBatches bounds a Proposer's batches in flight. One at a time is
	// fastest; another goes out only when the newest is older than lateAfter.
	maxBatches = 4
	lateAfter  = 25 * time.Millisecond
	// roundWait bounds how long a round of batches waits for the nodes of the one
	// before it, and a Proposer's batch for the callers that were just answered.
	roundWait = 10 * time.Millisecond
	// Resending a batch backs off between these.
	minBackoff = 10 * time.Millisecond
	maxBackoff = 250 * time.Millisecond
	// attemptTimeout bounds one attempt of a Proposer, so that a leader that
	// went silent does not hold a batch that another would take. It is above an
	// election and below a user's patience.
	attemptTimeout = 2 * time.Second
	// batchMargin is what a batch takes beside its commands, and some.
	batchMargin = 4096
)

const _ = uint(ledger.MaxOutstanding - ledger.MaxBatchCommands) // a full batch must fit what may be outstanding
const _ = uint(maxMessage - maxBatch)
const _ = uint((maxElection - mostPatient) / time.Millisecond)
