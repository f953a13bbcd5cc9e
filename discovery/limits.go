package discovery

import "time"

const (
	// MaxMeta is memberlist's limit for the metadata of a node, in bytes; it
	// panics above it.
	MaxMeta = 512

	// MaxKeys is how many gossip keys are accepted at once: the last epoch, the
	// present and the next. Each is tried in turn on every packet.
	MaxKeys = 3

	// maxPacket fits every path we know, tunnels included (transport sends no
	// longer ones).
	maxPacket = 1200

	// packetBacklog is how many opened packets wait for memberlist: 2 s of a
	// burst in which each of 500 nodes sends one.
	packetBacklog = 1024

	// probeInterval is how often a node probes one other. A dead node is noticed
	// in (time until someone probes it) + probeInterval; with three nodes that
	// is at most 3 intervals + 1, in a large mesh 1 + 1 on average and 5 + 1 once
	// in a hundred times.
	probeInterval = 300 * time.Millisecond

	// probeTimeout is how long a direct answer may take before others are asked.
	// They answer "no" after the same time, which has to be back before the
	// interval is over, or we blame ourselves: less than half of it.
	probeTimeout = 120 * time.Millisecond

	// suspicionMult × probeInterval × max(1, log10(nodes)) is the time to object:
	// 0.6 s up to 10 nodes, 1.8 s at 1,000.
	suspicionMult = 2

	// callAttempts × probeTimeout is how long a last call takes: 1.1 s of this
	// process' own running time. Together a node may be silent for 2 s.
	callAttempts = 9

	// A node that runs late asks longer: further attempts for lateTimes what it is
	// late, maxAttempts in all (4.8 s), and once more over a stream, which waits for
	// streamTimeout and not for a probe's.
	lateTimes   = 6
	maxAttempts = 40

	// maxCalls bounds the last calls at a time; when a whole site is cut off, the
	// members beyond it are believed dead without one.
	maxCalls = 64

	// awarenessMax bounds how far a node that finds itself slow stretches its
	// probe interval: to 1.2 s, so that it still finds a dead peer in 4 s or so.
	awarenessMax = 4

	// gossipInterval and gossipNodes spread a message through 20 nodes in three
	// rounds, 0.3 s.
	gossipInterval = 100 * time.Millisecond
	gossipNodes    = 4

	// pushPullInterval is how long a lost message may stay lost; memberlist
	// stretches it above 32 nodes.
	pushPullInterval = 15 * time.Second

	// streamTimeout bounds a push-pull and the handshake before it. On a starved
	// CPU a handshake takes more than a second.
	streamTimeout = 5 * time.Second

	// updateTimeout bounds each of the two waits of a node that leaves.
	updateTimeout = time.Second

	// maxStreams bounds the inbound push-pulls at a time; memberlist has its own
	// bound of 128 for those that got as far as asking.
	maxStreams = 64

	// joinParallel bounds the addresses tried at once, joinAddresses those of
	// one round: an isolated node finds a mesh of which a quarter is up.
	joinParallel  = 4
	joinAddresses = 16

	// rejoinMin and rejoinMax bound the backoff of an isolated node (jittered by
	// half), reconnectEvery is how often a node that is not isolated calls at one
	// failed member, which is what heals a partition.
	rejoinMin      = 500 * time.Millisecond
	rejoinMax      = 30 * time.Second
	reconnectEvery = 5 * time.Second

	// settleJoins are further push-pulls after the first success, 1 s, 2 s and
	// 4 s later: a node that came back at another address is refused by those
	// who have not yet noticed that it was gone.
	settleJoins = 3

	// lookupTimeout bounds the DNS lookup of a seed.
	lookupTimeout = 5 * time.Second

	// maxSeedAddresses bounds what a name resolves to.
	maxSeedAddresses = 8

	// cacheDelay gathers changes before the peer cache is written.
	cacheDelay = 5 * time.Second

	// maxCachedPeers and maxCachedAddresses bound the peer cache, maxCacheBytes
	// what is read of it: 256 × 3 lines of less than 120 bytes fit.
	maxCachedPeers     = 256
	maxCachedAddresses = 3
	maxCacheBytes      = 128 << 10

	// logLineBytes bounds one line of memberlist's log.
	logLineBytes = 1024
)

// A probe's two timeouts must fit its interval, see probeTimeout.
const _ = uint(probeInterval - 2*probeTimeout - 1)

const (
	// lookEvery is how often a member looks who is on the local network (jittered
	// by half), lookFor how long; a node that has no mesh looks for lookFast again
	// and again, since a query or its answer may be lost.
	lookEvery = 45 * time.Second
	lookFor   = 3 * time.Second
	lookFast  = time.Second

	// addressEvery is how often the announcement is compared with the machine's addresses.
	addressEvery = 2 * time.Second

	// sightAge is how long somebody who is not heard counts as there: three looks
	// and a half. newcomerAge is that of a node that has no mesh, which looks all the time.
	sightAge    = 4 * time.Minute
	newcomerAge = 6 * time.Second

	// maxSights bounds who is remembered, maxSightAddrs the addresses of each,
	// maxHeard what is taken from one look: anybody on the network may tell anything.
	maxSights     = 128
	maxSightAddrs = 8
	maxHeard      = 512
	sightBacklog  = 64
	// maxText bounds the strings of a record that are looked at, maxLANName a name.
	maxText    = 16
	maxLANName = 64
	// maxInterfaces bounds the interfaces that are used.
	maxInterfaces = 8

	// troubleMin and troubleMax bound the wait after the network can not be used.
	troubleMin = 5 * time.Second
	troubleMax = 5 * time.Minute

	// floodMost questions in a floodSpan are more than people's devices ask. Then the
	// node is silent for floodQuiet, and answers for floodHeard after that, in which
	// everybody asks who looks for a mesh; such a node waits for two such rounds
	// before it founds a mesh of its own. floodMemory is how long a flood is one
	// and the same.
	floodMost   = 100
	floodSpan   = 250 * time.Millisecond
	floodQuiet  = 7 * time.Second
	floodHeard  = lookFast + 500*time.Millisecond
	floodMemory = 10 * time.Minute

	// settleServer is how long an announcement lives at least: the library's
	// goroutines have to be there before they can be ended.
	settleServer = 300 * time.Millisecond
)
