package api

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// conns bounds the connections of one listener, so that a client that opens many can not use
// up the descriptors of the store and the peers. Beyond the bound the connection that has
// been idle longest is closed, or the newest when all are busy. Hijacked connections of
// streams do not count; MaxStreams bounds them.
type conns struct {
	most int

	mu   sync.Mutex // guards all below
	open map[net.Conn]*list.Element
	Idle *list.List // of net.Conn: idle connections, oldest first
}

func NewConns(most int) *conns {
	return &conns{most: most, open: map[net.Conn]*list.Element{}, Idle: list.New()}
}

// State is the ConnState of the HTTP server.
func (c *conns) State(conn net.Conn, to http.ConnState) {
	if gone := c.Follow(conn, to); gone != nil {
		gone.Close() // the server then reports it closed, which removes it
	}
}

// Follow notes the new state of a connection and returns a connection to close, or nil.
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
			return nil // it was to be closed
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
