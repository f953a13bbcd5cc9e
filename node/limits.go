package node

import "time"

const (
	// maxName bounds what people call a node or a mesh, in bytes; the ledger's bound.
	maxName = 64
	// maxMembership bounds the membership file: a roster of 4,096 nodes of 1 KiB.
	maxMembership = 8 << 20
	// joinTimeout bounds one attempt to join, over all seeds.
	joinTimeout = 30 * time.Second
	// foundTimeout bounds founding: an election of one and one commit. leadPoll is
	// how often a founder looks whether it leads.
	foundTimeout = 30 * time.Second
	leadPoll     = 20 * time.Millisecond
	// submitTimeout bounds a command of the node itself.
	submitTimeout = 15 * time.Second
	// readyTimeout bounds the strong read by which a node finds out whether it is ready.
	readyTimeout = 2 * time.Second
	// keepAliveTimeout bounds what a node waits for another in passing.
	keepAliveTimeout = time.Second
	// beatTimeout bounds how long a leader looks at a beat. Who sent it waits as long as
	// its lease lets it, and ends the stream.
	beatTimeout = 5 * time.Second
	// maxGranted bounds, in ms, what a leader's answer is believed: a number is no reason
	// to act for ever.
	maxGranted = 120_000
	// drainTimeout bounds what Close waits for requests under way.
	drainTimeout = 5 * time.Second
	// maxAdvertised bounds the addresses that a node tells others.
	maxAdvertised = 8
	// maxKeys bounds the data keys that are kept open: rotations are rare.
	maxKeys = 64
	// healWait is how long a node whose store was set aside looks for a quorum: peers
	// that start after the same power cut are there by then. healLook is how often
	// it looks whether it has caught up.
	healWait = time.Minute
	healLook = 250 * time.Millisecond
	// rememberAfter gathers changes of the roster for one write of the membership file.
	rememberAfter = 100 * time.Millisecond
	// rosterRetry is how long the node waits before it looks at a feed again that failed.
	rosterRetry = 200 * time.Millisecond
	// beat divides the pauses of most of what a node does again and again, and is
	// when they begin: see every.
	beat = 250 * time.Millisecond
	// rotateRetry is how often the leader looks whether the keys shall be rotated.
	rotateRetry = time.Second
	// syncTimeout bounds one question for the roster, syncEvery how often a node
	// without a leader asks.
	syncTimeout = 3 * time.Second
	syncEvery   = time.Second
	// syncSecond is how long others have to say otherwise, once a member has said
	// that this node was thrown out.
	syncSecond = time.Second
	// maxSync bounds whom it asks each time, syncParallel how many at a time.
	maxSync      = 32
	syncParallel = 8
	// maxSkew is how far a leader's clock may be from the others', and from the
	// mesh's time.
	maxSkew = 2 * time.Second
	// clockMemory is how long a reading of another node's clock counts.
	clockMemory = time.Minute
	// stepAfter is how many looks in a row must find the mesh's time behind.
	stepAfter = 3
	// pruneEvery is how often old run logs are taken away.
	pruneEvery = time.Hour
	// revokeGrace is how long a revoked node's connections stay open, so that it
	// hears what happened; its commands are refused from the first moment.
	revokeGrace = 300 * time.Millisecond
	// choreEvery is how often the leader looks for chores, maxChores how many it
	// does in a row; the rest waits for the next look.
	choreEvery = 10 * time.Second
	// maxReseal bounds the sealed values of one command that seals them anew, in
	// bytes: a payload has 256 KiB, and one value with its successor up to 176.
	maxReseal = 128 << 10
	maxChores = 64
	// workspaceCommandTime bounds a command that prepares or winds up a workspace:
	// a clean build of something large. commandGrace is what it has after TERM.
	workspaceCommandTime = 15 * time.Minute
	commandGrace         = 5 * time.Second
	// serviceEvery is how often a node looks which services and commands it is to
	// carry out, maxServices how many services it keeps at work.
	serviceEvery = 500 * time.Millisecond
	maxServices  = 64
	// serviceReady is how long a service may take to be ready unless it says
	// otherwise, serviceHealth how often it is looked at then, serviceAsk how long
	// an answer may take.
	serviceReady  = time.Minute
	serviceHealth = 10 * time.Second
	serviceAsk    = 5 * time.Second
	// serviceFirst and serviceMost are the waits before a service that ended is
	// started again. After serviceRestarts in a row it has failed; one that worked
	// for serviceSteady begins to count anew.
	serviceFirst    = time.Second
	serviceMost     = 30 * time.Second
	serviceRestarts = 6
	serviceSteady   = 2 * time.Minute
	// keepLogsEvery is how often a node brings logs of runs that are over to others.
	// maxKeepFailures bounds the warnings about those that can not be kept.
	keepLogsEvery   = 2 * time.Second
	maxKeepFailures = 20
	// segmentGrace is how long a node keeps its own copy of a log that is kept: nodes
	// whose state does not say so yet read that one.
	segmentGrace = time.Minute
	// keyOverlap is how long gossip accepts a new key before it uses it, and the
	// old one after: a feed that lags by more is not a member that others hear.
	keyOverlap = 1500 * time.Millisecond
	// maxSyncAsk bounds the first frame of a stream of KindSync, in bytes.
	maxSyncAsk = 256
	// maxFrame bounds a frame of the node's own protocols on KindIPC and KindRunLog.
	maxFrame = 1 << 20
	// lanLook is how long a node without a mesh looks around before it decides,
	// lanUnsure how much longer when it hears of a mesh that does not answer (its
	// nodes fall silent for some seconds when somebody floods them), and lanYield
	// when another node without one goes before it.
	lanLook   = 3 * time.Second
	lanUnsure = 20 * time.Second
	lanYield  = 8 * time.Second
	// lanTick is how often it looks at what it has heard, greetTimeout bounds one
	// acquaintance, greetAgain how soon an address is tried again.
	lanTick      = 250 * time.Millisecond
	greetTimeout = 2 * time.Second
	greetAgain   = 2 * time.Second
	// strangeEnough members, or one as often, must not know an owner key before its
	// holder gives their mesh up.
	strangeEnough = 2
	// maxGreet bounds the acquaintances that are made at a time.
	maxGreet = 8
	// askAgain and askAgainMax bound the pause before a node asks once more.
	askAgain    = time.Second
	askAgainMax = 15 * time.Second
	// maxAsks bounds the nodes that wait to be let in at one member, maxAsksFrom
	// those of one address (an IPv6 /64): somebody has to look at them.
	maxAsks     = 16
	maxAsksFrom = 4
	// askAge is how long one waits; then it asks again under another code.
	askAge = 10 * time.Minute
	// askBurst and askEvery bound how often anybody may ask.
	askBurst = 16
	askEvery = 5 * time.Second
	// askRefused is how long a node that a person refused is not heard here;
	// maxRefused bounds who is remembered.
	askRefused = 10 * time.Minute
	maxRefused = 64
	// asksTimeout bounds what other members may take to say who waits at them.
	asksTimeout = 2 * time.Second
	// addressEvery is how often a node looks whether it still has its address.
	addressEvery = 2 * time.Second
	// KeyAge is how old the mesh's keys become before the leader draws new ones.
	KeyAge = 30 * 24 * time.Hour
)
