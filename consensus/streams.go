package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/identity"
)

// maxServerID bounds a server ID: a NodeID, a slash and an incarnation.
const maxServerID = 128

// splitServerID returns the parts of NodeID/incarnation, or empty strings.
func splitServerID(id string) (node identity.NodeID, incarnation string) {
	n, inc, ok := strings.Cut(id, "/")
	if !ok || n == "" || inc == "" {
		return "", ""
	}
	return identity.NodeID(n), inc
}

func nodeOf(id raft.ServerID) identity.NodeID {
	n, _ := splitServerID(string(id))
	return n
}

// helloVersion is the first byte of a raft stream.
const helloVersion = 1

// A raft stream begins with a greeting by the side that opened it:
//
//	1 byte  version, 1
//	1 byte  length, then the server ID that is meant
//	1 byte  length, then the server ID of the sender
//
// The other side closes the stream when it is another server than the one
// meant: a node that lost its log has a new incarnation and must not be taken
// for the old one. After the greeting raft's own messages follow.
func writeHello(w io.Writer, to, from string) error {
	if len(to) > maxServerID || len(from) > maxServerID {
		return errors.New("server ID is too long")
	}
	b := append([]byte{helloVersion, byte(len(to))}, to...)
	b = append(append(b, byte(len(from))), from...)
	_, err := w.Write(b)
	return err
}

func readHello(r io.Reader) (to, from string, err error) {
	text := func() string {
		var n [1]byte
		if err == nil {
			_, err = io.ReadFull(r, n[:])
		}
		if err == nil && n[0] > maxServerID {
			err = errors.New("server ID is too long")
		}
		b := make([]byte, n[0])
		if err == nil {
			_, err = io.ReadFull(r, b)
		}
		return string(b)
	}
	var v [1]byte
	if _, err = io.ReadFull(r, v[:]); err == nil && v[0] != helloVersion {
		err = fmt.Errorf("greeting has version %d", v[0])
	}
	to, from = text(), text()
	return to, from, err
}

// raftStreams is raft's stream layer over the mesh's streams.
type raftStreams struct {
	self string
	dial func(context.Context, identity.NodeID) (net.Conn, error)

	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex // guards what follows
	conns map[*raftConn]struct{}
	from  map[identity.NodeID]int // streams accepted and open, by peer
}

func newRaftStreams(self string, dial func(context.Context, identity.NodeID) (net.Conn, error)) *raftStreams {
	return &raftStreams{
		self:     self,
		dial:     dial,
		accepted: make(chan net.Conn),
		closed:   make(chan struct{}),
		conns:    map[*raftConn]struct{}{},
		from:     map[identity.NodeID]int{},
	}
}

type serverAddr string

func (serverAddr) Network() string  { return "selvage" }
func (a serverAddr) String() string { return string(a) }

func (s *raftStreams) Addr() net.Addr { return serverAddr(s.self) }

// Dial opens a stream to a server; the address is its server ID.
func (s *raftStreams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	node, _ := splitServerID(string(to))
	if node == "" {
		return nil, fmt.Errorf("dial %q: not a server ID", to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(timeout, dialTimeout))
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-stop:
		}
	}()
	c, err := s.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	rc := s.track(c, string(to), "")
	if rc == nil {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	_ = rc.SetWriteDeadline(time.Now().Add(dialTimeout)) // a stream without deadlines still works
	if err := writeHello(rc, string(to), s.self); err != nil {
		return nil, errors.Join(fmt.Errorf("greet %s: %w", to, err), rc.Close())
	}
	_ = rc.SetWriteDeadline(time.Time{})
	return rc, nil
}

// Accept returns the next stream that serve was given.
func (s *raftStreams) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// serve hands a stream from a peer to raft and returns when it is closed.
func (s *raftStreams) serve(from identity.NodeID, c net.Conn) error {
	_ = c.SetReadDeadline(time.Now().Add(dialTimeout))
	to, sender, err := readHello(c)
	if err != nil {
		return errors.Join(fmt.Errorf("greeting of %s: %w", from.Short(), err), c.Close())
	}
	_ = c.SetReadDeadline(time.Time{})
	if node, _ := splitServerID(sender); node != from || to != s.self {
		return errors.Join(fmt.Errorf("stream from %q of %s is for %q", sender, from.Short(), to), c.Close())
	}
	rc := s.track(c, sender, from)
	if rc == nil {
		return errors.Join(fmt.Errorf("too many raft streams from %s, or closing", from.Short()), c.Close())
	}
	select {
	case s.accepted <- rc:
	case <-s.closed:
		return rc.Close()
	}
	<-rc.done
	return nil
}

// track registers a stream so that Close can end it; nil means that the layer
// is closed or the peer has too many.
func (s *raftStreams) track(c net.Conn, remote string, from identity.NodeID) *raftConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
	}
	if from != "" {
		if s.from[from] >= maxRaftStreams {
			return nil
		}
		s.from[from]++
	}
	rc := &raftConn{Conn: c, s: s, remote: serverAddr(remote), from: from, done: make(chan struct{})}
	s.conns[rc] = struct{}{}
	return rc
}

// Close ends the layer and all its streams.
func (s *raftStreams) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		close(s.closed)
		open := make([]*raftConn, 0, len(s.conns))
		for c := range s.conns {
			open = append(open, c)
		}
		s.mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	return nil
}

// A raftConn is one stream; closing it tells who waits for its end.
type raftConn struct {
	net.Conn
	s      *raftStreams
	remote serverAddr
	from   identity.NodeID // who opened it, when it was not us
	once   sync.Once
	done   chan struct{}
}

func (c *raftConn) RemoteAddr() net.Addr { return c.remote }
func (c *raftConn) LocalAddr() net.Addr  { return serverAddr(c.s.self) }

func (c *raftConn) Close() (err error) {
	c.once.Do(func() {
		err = c.Conn.Close()
		c.s.mu.Lock()
		delete(c.s.conns, c)
		if c.from != "" {
			if c.s.from[c.from]--; c.s.from[c.from] == 0 {
				delete(c.s.from, c.from)
			}
		}
		c.s.mu.Unlock()
		close(c.done)
	})
	return err
}
