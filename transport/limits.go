package transport

import "time"

const (
	// MaxFrame bounds the payload of a frame. Larger things are blobs, fetched
	// by hash in chunks.
	MaxFrame = 16 << 20

	// MaxGossipPacket is the largest datagram that passes every path we know,
	// WireGuard and PPPoE included; the socket has Don't Fragment set.
	MaxGossipPacket = 1200

	// gossipBacklog is how many packets wait for the gossip room. quic-go itself
	// keeps only 32, so they are moved here at once.
	gossipBacklog = 1024

	// gossipStreams is how many push-pull streams wait to be taken; the gossip
	// room takes them one after the other.
	gossipStreams = 64

	// maxConnsPerPeer allows both of two simultaneous dials, and the same again
	// after a restart while the old ones time out.
	maxConnsPerPeer = 4

	// maxPeerConns bounds the authenticated connections of a node: an idle one
	// costs about 60 KiB and four goroutines.
	maxPeerConns = 4096

	// maxAddrs bounds the addresses kept and tried for one peer: a few
	// interfaces, and an old one or two.
	maxAddrs = 6

	// maxContacts bounds the address book; the largest mesh before regions has
	// about 3,000 nodes.
	maxContacts = 8192

	// handshakesPerAddr and handshakesTotal bound connections that did not show
	// yet who they are; retryAbove is where sources must first prove their
	// address (QUIC Retry), so that spoofed ones can not fill the bounds.
	handshakesPerAddr = 64
	handshakesTotal   = 512
	retryAbove        = 32

	// maxHandshakeMessage fits a certificate and the longest admission chain.
	maxHandshakeMessage = 12 << 10

	// maxOutbox bounds the bytes that wait to be written to one control channel,
	// besides the one frame that may always be queued.
	maxOutbox = 4 << 20

	// rekeyMessages and rekeyInterval bound what one key of the control channel
	// protects (Noise specification §11.3 leaves the choice to the application).
	rekeyMessages = 1 << 20
	rekeyInterval = time.Hour

	// controlStall closes a connection whose peer takes nothing off its control
	// channel for that long.
	controlStall = 30 * time.Second

	// kindTimeout is how long a stream may stay open without saying its kind.
	kindTimeout = 10 * time.Second

	// quietAfter is the silence after which a connection must answer a ping
	// before a stream is opened on it, probeTimeout how long that may take
	// before a new connection is dialled.
	quietAfter   = 2 * time.Second
	probeTimeout = 500 * time.Millisecond

	// supersedeAfter is how long an older connection to the same peer may stay
	// silent, after it was pinged, before it is closed.
	supersedeAfter = 3 * time.Second

	// rosterAge is how old the roster's word on a peer may be for a control
	// frame; connections of revoked nodes are closed within a second anyway.
	rosterAge = 250 * time.Millisecond

	// stagger is the head start of an address over the next one.
	stagger = 200 * time.Millisecond

	// backoffMin and backoffMax bound the pause after a failed dial; it doubles.
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second

	// maxJoinReply bounds what a joining node accepts: roster, keys, genesis.
	maxJoinReply = MaxFrame
	// maxJoinRequest bounds what a token holder may make a member read.
	maxJoinRequest = 64 << 10
	// joinTimeout bounds a join, whose command has to be committed.
	joinTimeout = 60 * time.Second
	// askTimeout bounds how long a node waits for a person to decide on it.
	askTimeout = 15 * time.Minute
	// maxAskRequest bounds what a stranger may make a member read, maxGenesis what
	// one that asks reads of the mesh.
	maxAskRequest = 8 << 10
	maxGenesis    = 256 << 10
)

// A Noise message has at most 65,535 bytes (its specification, §3), of which 16
// are the tag and one is the record's flag.
const (
	maxNoiseMessage = 65535
	maxRecord       = maxNoiseMessage - 16 - 1
)

const _ = uint(maxHandshakeMessage - 130 - 17 - 1 - 64*153) // the longest payload must fit a handshake message
