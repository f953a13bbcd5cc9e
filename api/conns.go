package api

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// conns bounds the connections of one listener, so that whoever opens many can
// not take the descriptors that the store and the peers need: when there are too
// many, the one goes that has asked nothing for the longest time, and the newest
// when all are at work. Streams that took their connection over do not count;
// MaxStreams bounds them.
type conns struct {
	most int

	mu   sync.Mutex // guards all below
	open map[net.Conn]*list.Element
	Idle *list.List // of net.Conn: those without a request, the oldest first
}

func NewConns(most int) *conns {
	return &conns{most: most, open: map[net.Conn]*list.Element{}, Idle: list.New()}
}

// State is the server's ConnState.
func (c *conns) State(conn net.Conn, to http.ConnState) {
	if gone := c.Follow(conn, to); gone != nil {
		gone.Close() // the server tells of it, which takes it off
	}
}

// Follow notes what became of a connection and returns one that must go, or nil.
func (c *conns) Follow(conn net.Conn, to http.ConnState) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	if at != nil {
		c.Idle.Remove(at)
	}
	switch to {
	case http.StateActive:
		if known {
			c.open[conn] = nil
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	case http.StateNew, http.StateIdle:
		if to == http.StateIdle && !known {
			return nil // it had to go
		}
		c.open[conn] = c.Idle.PushBack(conn)
		if len(c.open) > c.most {
			oldest := c.Idle.Front()
			gone := oldest.Value.(net.Conn)
			c.Idle.Remove(oldest)
			delete(c.open, gone)
			return gone
		}
	}
	return nil
}

// Len returns how many connections there are.
func (c *conns) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
