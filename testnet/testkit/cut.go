package testkit

import (
	"net"
	"sync/atomic"
)

// A Cut is a socket between nodes that can be taken away and given back: hand it
// to a node as its Conn in a tune, and the bed lays a real one below it. A node
// that is cut off goes on answering HTTP from what it knew. It hides the fast
// paths of the socket below, which would read past it.
type Cut struct {
	net.PacketConn
	off atomic.Bool
}

// Off takes the network away.
func (c *Cut) Off() { c.off.Store(true) }

// On gives the network back.
func (c *Cut) On() { c.off.Store(false) }

// WriteTo sends b, or swallows it.
func (c *Cut) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.off.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

// ReadFrom waits for a datagram that comes while the network is there.
func (c *Cut) ReadFrom(b []byte) (n int, from net.Addr, err error) {
	for {
		if n, from, err = c.PacketConn.ReadFrom(b); err != nil || !c.off.Load() {
			return n, from, err
		}
	}
}
