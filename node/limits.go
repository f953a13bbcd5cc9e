package node

import "time"

const (
	// maxName bounds the name of a node or a mesh, in bytes; the ledger's bound.
	maxName = 64
	// maxMembership bounds the membership file: a roster of 4,096 nodes of 1 KiB.
	maxMembership = 8 << 20
	// joinTimeout bounds one attempt to join, over all seeds.
	joinTimeout = 30 * time.Second
	// foundTimeout bounds founding: an election with one voter and one commit. leadPoll is
	// the interval at which a founder checks whether it leads.
	foundTimeout = 30 * time.Second
	leadPoll     = 20 * time.Millisecond
	// submitTimeout bounds a command of the node itself.
	submitTimeout = 15 * time.Second
	// readyTimeout bounds the strong read that checks whether a node is ready.
	readyTimeout = 2 * time.Second
	// keepAliveTimeout bounds the wait for another node's answer in a keep-alive.
	keepAliveTimeout = time.Second
	// beatTimeout bounds how long a leader handles a beat. The sender waits as long as its
	// lease allows, and then closes the stream.
	beatTimeout = 5 * time.Second
	// maxGranted bounds the lease that a node accepts from a leader's answer, in ms, so that
	// a wrong number does not let it act forever.
	maxGranted = 120_000
	// drainTimeout bounds how long Close waits for requests in progress.
	drainTimeout = 5 * time.Second
	// maxAdvertised bounds the addresses that a node announces.
	maxAdvertised = 8
	// maxKeys bounds the data keys that are kept open; rotations are rare.
	maxKeys = 64
	// healWait is how long a node whose store was set aside waits for a quorum: peers that
	// start after the same power cut are up by then. healLook is how often it checks whether
	// it has caught up.
	healWait = time.Minute
	healLook = 250 * time.Millisecond
	// rememberAfter collects changes of the roster for one write of the membership file.
	rememberAfter = 100 * time.Millisecond
	// rosterRetry is the wait before a failed feed is read again.
	rosterRetry = 200 * time.Millisecond
	// beat divides the intervals of most periodic work, and the work starts at its
	// multiples: see every.
	beat = 250 * time.Millisecond
	// rotateRetry is how often the leader checks whether the keys must be rotated.
	rotateRetry = time.Second
	// syncTimeout bounds one request for the roster. syncEvery is how often a node without a
	// leader sends one.
	syncTimeout = 3 * time.Second
	syncEvery   = time.Second
	// syncSecond is how long other members may contradict a member that says that this node
	// was revoked.
	syncSecond = time.Second
	// maxSync bounds the members that it asks each time, syncParallel how many at once.
	maxSync      = 32
	syncParallel = 8
	// maxSkew bounds the offset of a leader's clock from the others', and from the mesh's
	// time.
	maxSkew = 2 * time.Second
	// clockMemory is how long a reading of another node's clock counts.
	clockMemory = time.Minute
	// stepAfter is how many checks in a row must find the mesh's time behind.
	stepAfter = 3
	// pruneEvery is how often old run logs are deleted.
	pruneEvery = time.Hour
	// revokeGrace is how long a revoked node's connections stay open, so that it learns of
	// the revocation. Its commands are refused at once.
	revokeGrace = 300 * time.Millisecond
	// choreEvery is how often the leader looks for chores. maxChores bounds how many it does
	// in a row; the others follow next time.
	choreEvery = 10 * time.Second
	// maxReseal bounds the sealed values in one command that seals them again, in bytes: a
	// payload has at most 256 KiB, and one value with its replacement up to 176.
	maxReseal = 128 << 10
	maxChores = 64
	// workspaceCommandTime bounds a command that prepares or winds up a workspace: a clean
	// build of a large project. commandGrace is the time it has after TERM.
	workspaceCommandTime = 15 * time.Minute
	commandGrace         = 5 * time.Second
	// serviceEvery is how often a node checks which services and commands it must run.
	// maxServices bounds the running services.
	serviceEvery = 500 * time.Millisecond
	maxServices  = 64
	// serviceReady is how long a service may take to become ready by default, serviceHealth
	// the interval of its health checks, serviceAsk the timeout of one check.
	serviceReady  = time.Minute
	serviceHealth = 10 * time.Second
	serviceAsk    = 5 * time.Second
	// serviceFirst and serviceMost are the first and the longest wait before a service that
	// ended is restarted. After serviceRestarts in a row it has failed; a service that ran
	// for serviceSteady starts counting again.
	serviceFirst    = time.Second
	serviceMost     = 30 * time.Second
	serviceRestarts = 6
	serviceSteady   = 2 * time.Minute
	// keepLogsEvery is how often a node copies logs of ended runs to others. maxKeepFailures
	// bounds the warnings about logs that can not be kept.
	keepLogsEvery   = 2 * time.Second
	maxKeepFailures = 20
	// maxLateLogs bounds the decision logs of earlier runs that a node looks for when it starts. Telling of them that
	// fails is tried again after keepLogsEvery, then after twice as long each time up to maxLateWait, and maxLateTries
	// times: about eight hours. The next start begins anew.
	maxLateLogs  = 10_000
	maxLateWait  = 5 * time.Minute
	maxLateTries = 100
	// segmentGrace is how long a node keeps its own copy of a kept log: nodes whose state
	// lags still read that copy.
	segmentGrace = time.Minute
	// keyOverlap is how long gossip accepts a new key before it uses it, and the old key
	// afterwards: other nodes do not hear a member whose feed lags by more.
	keyOverlap = 1500 * time.Millisecond
	// maxSyncAsk bounds the first frame of a stream of KindSync, in bytes.
	maxSyncAsk = 256
	// maxFrame bounds a frame of the node's own protocols on KindIPC and KindRunLog, in
	// bytes.
	maxFrame = 1 << 20
	// lanLook is how long a node without a mesh searches before it decides. It searches
	// lanUnsure longer when it hears of a mesh that does not answer (its nodes are silent
	// for some seconds when flooded), and lanYield longer when another node without a mesh
	// takes precedence.
	lanLook   = 3 * time.Second
	lanUnsure = 20 * time.Second
	lanYield  = 8 * time.Second
	// lanTick is how often it evaluates what it has heard. greetTimeout bounds one contact,
	// greetAgain is the interval between contacts to an address.
	lanTick      = 250 * time.Millisecond
	greetTimeout = 2 * time.Second
	greetAgain   = 2 * time.Second
	// strangeEnough is how many members, or answers of one member, must not know an owner
	// key before its holder gives up their mesh.
	strangeEnough = 2
	// maxGreet bounds the concurrent contacts.
	maxGreet = 8
	// askAgain and askAgainMax bound the pause before a node asks again.
	askAgain    = time.Second
	askAgainMax = 15 * time.Second
	// maxAsks bounds the nodes that wait for admission at one member, maxAsksFrom those of
	// one address (an IPv6 /64): a person has to check them.
	maxAsks     = 16
	maxAsksFrom = 4
	// askAge is how long a node waits; then it asks again with another code.
	askAge = 10 * time.Minute
	// askBurst and askEvery limit the rate of requests from all nodes.
	askBurst = 16
	askEvery = 5 * time.Second
	// askRefused is how long requests of a refused node are ignored. maxRefused bounds the
	// remembered refusals.
	askRefused = 10 * time.Minute
	maxRefused = 64
	// asksTimeout bounds the answers of other members about their waiting nodes.
	asksTimeout = 2 * time.Second
	// addressEvery is how often a node checks that it still has its address.
	addressEvery = 2 * time.Second
	// KeyAge is the age at which the leader rotates the mesh's keys.
	KeyAge = 30 * 24 * time.Hour
)
