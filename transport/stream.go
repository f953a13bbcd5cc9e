package transport

import (
	"net"
	"sync"

	"github.com/quic-go/quic-go"
)

// A Stream is the net.Conn that Dial returns and handlers get. Close ends both
// directions: what was written before is still delivered, what the peer sends
// after it is thrown away. Besides net.Conn it can end its writing side alone.
type Stream interface {
	net.Conn
	// CloseWrite tells the peer that no more bytes follow; reading goes on.
	CloseWrite() error
}

type stream struct {
	*quic.Stream
	peer *peer
	kind Kind

	mu      sync.Mutex
	closed  bool
	writing int // Write calls under way
}

func (s *stream) LocalAddr() net.Addr  { return s.peer.conn.LocalAddr() }
func (s *stream) RemoteAddr() net.Addr { return s.peer.conn.RemoteAddr() }

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	if n > 0 {
		s.peer.signs.heard()
		s.peer.t.count.received[s.kind].Add(uint64(n))
	}
	return n, s.explain(err)
}

func (s *stream) Write(b []byte) (int, error) {
	if !s.begin() {
		return 0, net.ErrClosed
	}
	n, err := s.Stream.Write(b)
	s.end()
	s.peer.t.count.sent[s.kind].Add(uint64(n))
	return n, s.explain(err)
}

func (s *stream) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.writing++
	return true
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing--
}

// explain says net.ErrClosed for what this side closed itself.
func (s *stream) explain(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	return byPeer(err)
}

func (s *stream) CloseWrite() error { return s.Stream.Close() }

// Close may be called while Read and Write block; they return net.ErrClosed.
func (s *stream) Close() error { return s.finish(Closing) }

// finish closes both directions and gives the stream's credit back to its opener.
func (s *stream) finish(why Reason) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	abort := s.writing > 0 || why != Closing // quic-go forbids Close beside a Write
	s.mu.Unlock()
	s.CancelRead(quic.StreamErrorCode(why))
	if abort {
		s.CancelWrite(quic.StreamErrorCode(why))
	} else {
		s.Stream.Close()
	}
	s.peer.streams.Add(-1)
	return nil
}
