package transport

import "sync/atomic"

// Stats is what the transport has counted since it was opened, for /metrics.
type Stats struct {
	Accepted     uint64            // connections that peers opened and that were authenticated
	Dialled      uint64            // connections that this node opened and that were authenticated
	DialFailures uint64            // attempts to reach a peer at an address that came to nothing
	Joins        uint64            // join requests that were answered with a reply
	Refused      map[string]uint64 // by reason: connections and streams that this node refused or closed
	RefusedBy    map[string]uint64 // by reason: those that peers refused

	Connections int // authenticated now
	Handshakes  int // incoming connections that have not shown yet who they are

	StreamsOpened   map[string]uint64 // by kind
	StreamsAccepted map[string]uint64 // by kind
	BytesSent       map[string]uint64 // by kind, without the control channel
	BytesReceived   map[string]uint64 // by kind, without the control channel

	ControlSent     uint64 // frames
	ControlReceived uint64 // frames
	ControlDropped  uint64 // frames of peers that may not send any (yet)

	GossipSent     uint64 // packets
	GossipReceived uint64 // packets, garbage included: only the gossip room can tell
	GossipDropped  uint64 // packets that came while the backlog was full
	PacketsDropped uint64 // datagrams that looked like QUIC and were nothing
}

type counters struct {
	accepted, dialled, dialFailures, joins          atomic.Uint64
	refused, refusedBy                              [numReasons]atomic.Uint64
	opened, served, sent, received                  [numKinds]atomic.Uint64
	controlSent, controlReceived, controlDropped    atomic.Uint64
	gossipSent, gossipReceived, gossipDropped, junk atomic.Uint64
}

// Stats returns the present counts.
func (t *Transport) Stats() Stats {
	c := &t.count
	s := Stats{
		Accepted:        c.accepted.Load(),
		Dialled:         c.dialled.Load(),
		DialFailures:    c.dialFailures.Load(),
		Joins:           c.joins.Load(),
		Refused:         named(&c.refused, reasonNames),
		RefusedBy:       named(&c.refusedBy, reasonNames),
		Handshakes:      t.gate.pending(),
		StreamsOpened:   byKind(&c.opened),
		StreamsAccepted: byKind(&c.served),
		BytesSent:       byKind(&c.sent),
		BytesReceived:   byKind(&c.received),
		ControlSent:     c.controlSent.Load(),
		ControlReceived: c.controlReceived.Load(),
		ControlDropped:  c.controlDropped.Load(),
		GossipSent:      c.gossipSent.Load(),
		GossipReceived:  c.gossipReceived.Load(),
		GossipDropped:   c.gossipDropped.Load(),
		PacketsDropped:  c.junk.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Connections = t.conns
	return s
}

// named leaves out what never happened.
func named(c *[numReasons]atomic.Uint64, names [numReasons]string) map[string]uint64 {
	m := map[string]uint64{}
	for i := range c {
		if n := c[i].Load(); n > 0 {
			m[names[i]] = n
		}
	}
	return m
}

func byKind(c *[numKinds]atomic.Uint64) map[string]uint64 {
	m := map[string]uint64{}
	for k := KindRaft; k < numKinds; k++ {
		m[k.String()] = c[k].Load()
	}
	return m
}

// refusing counts a refusal, ours or the peer's.
func (c *counters) refusing(e *RefusedError) {
	if e.Reason >= numReasons {
		return
	}
	if e.ByPeer {
		c.refusedBy[e.Reason].Add(1)
	} else {
		c.refused[e.Reason].Add(1)
	}
}
