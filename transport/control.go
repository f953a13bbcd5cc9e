package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Frame types of the control channel from 0xf0 up are its own; those below are
// the application's. An unknown one of its own is ignored, so that a newer
// node may send what an older one does not know.
const (
	ctlAccept = 0xf0 // the responder's yes: version 0x01 | 1 when it knows the dialler by certificate only, else 0
	ctlPing   = 0xf1 // answered by ctlPong
	ctlPong   = 0xf2
	ctlCommit = 0xf3 // with pattern 2, see ask.go
	ctlNonce  = 0xf4
	ctlReveal = 0xf5

	// MaxControlType is the largest frame type that [Transport.Send] takes.
	MaxControlType = ctlAccept - 1
)

// An outbox holds frames until the control channel takes them. Whoever adds to
// an idle one starts a goroutine that writes until it is empty: frames that
// come while it writes go out together, and an idle connection has no writer.
type outbox struct {
	write func([]byte) error // of whole frames; an error ends the connection
	start func(func())       // runs the writer, awaited by Transport.Close

	mu      sync.Mutex
	pending []byte // encoded frames; guarded by mu, like the rest
	writing bool
	closed  bool
	room    chan struct{} // closed and replaced when pending was taken
}

func newOutbox(write func([]byte) error, start func(func())) *outbox {
	return &outbox{write: write, start: start, room: make(chan struct{})}
}

// add queues one frame. It waits while more than maxOutbox bytes are queued,
// unless urgent (the channel's own few bytes).
func (o *outbox) add(ctx context.Context, typ byte, payload []byte, urgent bool) error {
	for {
		o.mu.Lock()
		if o.closed {
			o.mu.Unlock()
			return ErrClosed
		}
		if urgent || len(o.pending) == 0 || len(o.pending)+len(payload) <= maxOutbox {
			o.pending = appendFrame(o.pending, typ, payload)
			first := !o.writing
			o.writing = true
			o.mu.Unlock()
			if first {
				o.start(o.drain)
			}
			return nil
		}
		room := o.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain writes what is pending until nothing is.
func (o *outbox) drain() {
	var spare []byte
	for {
		o.mu.Lock()
		if len(o.pending) == 0 || o.closed {
			o.writing = false
			o.mu.Unlock()
			return
		}
		batch := o.pending
		o.pending = spare[:0]
		close(o.room)
		o.room = make(chan struct{})
		o.mu.Unlock()
		if o.write(batch) != nil {
			o.close()
		}
		if spare = batch; cap(spare) > maxNoiseMessage {
			spare = nil
		}
	}
}

// close drops what is pending and refuses more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.pending = nil
		close(o.room)
	}
}

// signs notes when the peer was last heard. Any stream may note it; whoever
// asked the peer for a sign waits for the next one on the control channel.
type signs struct {
	epoch time.Time
	last  atomic.Int64 // see now

	mu   sync.Mutex
	next chan struct{} // nil while nobody waits; guarded by mu
}

// now is the time since the epoch in nanoseconds, never 0. It is monotonic: a
// stepped clock must not make peers look silent.
func (s *signs) now() int64 { return int64(time.Since(s.epoch)) + 1 }

// since returns how long ago now was then.
func (s *signs) since(then int64) time.Duration { return time.Duration(s.now() - then) }

// heard notes that bytes of the peer arrived.
func (s *signs) heard() { s.last.Store(s.now()) }

// answered notes that a control frame arrived and tells who waits.
func (s *signs) answered() {
	s.heard()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// awaited returns what the next control frame closes.
func (s *signs) awaited() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// silence returns for how long nothing was heard.
func (s *signs) silence() time.Duration { return s.since(s.last.Load()) }
