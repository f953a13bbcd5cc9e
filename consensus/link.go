package consensus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// errLink means that a peer could not be asked; errLost that it was asked and
// its answer did not come.
var (
	errLink = errors.New("peer is not reachable")
	errLost = errors.New("peer's answer was lost")
)

// A gate lets one goroutine through at a time. It is a lock that may be held
// while waiting for the network or for raft: virtual time goes on when others
// wait at a channel, and stands still when they wait for a mutex.
type gate chan struct{}

func (g gate) enter() { g <- struct{}{} }
func (g gate) leave() { <-g }

// A link asks one peer over one long-lived stream, opened when needed.
type link struct {
	to   identity.NodeID
	dial func(context.Context, identity.NodeID) (net.Conn, error)
	wg   *sync.WaitGroup // of the Consensus

	dialing gate       // held while a stream is opened
	mu      sync.Mutex // guards what follows
	conn    net.Conn
	waiting map[uint64]chan *message
	lastID  uint64
	closed  bool

	writing gate // held for one write
}

func newLink(to identity.NodeID, dial func(context.Context, identity.NodeID) (net.Conn, error),
	wg *sync.WaitGroup) *link {
	return &link{to: to, dial: dial, wg: wg, dialing: make(gate, 1), writing: make(gate, 1),
		waiting: map[uint64]chan *message{}}
}

// ask sends a request and waits for its response. An error wraps errLink when
// the request certainly did not arrive.
func (l *link) ask(ctx context.Context, m *message) (*message, error) {
	conn, err := l.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errLink, l.to.Short(), err)
	}
	m.kind = kindRequest
	answer := make(chan *message, 1)
	l.mu.Lock()
	if l.conn != conn {
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: %s: stream was lost", errLink, l.to.Short())
	}
	l.lastID++
	m.id = l.lastID
	l.waiting[m.id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, m.id)
	}()

	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", errLink, l.to.Short(), ctx.Err())
	}
	// Whoever gives up in the middle of a write takes the stream with it.
	stop := context.AfterFunc(ctx, func() { l.lose(conn) })
	err = write(conn, m)
	stop()
	l.writing.leave()
	if err != nil {
		l.lose(conn)
		return nil, fmt.Errorf("%w: %s: %w", errLost, l.to.Short(), err)
	}
	select {
	case r := <-answer:
		if r == nil {
			return nil, fmt.Errorf("%w: %s: stream was lost", errLost, l.to.Short())
		}
		return r, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", errLost, l.to.Short(), ctx.Err())
	}
}

func write(conn net.Conn, m *message) error {
	b := appendMessage(make([]byte, 0, 4+headResponse+len(m.body)), m)
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := conn.Write(b)
	return err
}

// open returns the stream, opening it if there is none. One caller opens, the
// others wait for it.
func (l *link) open(ctx context.Context) (net.Conn, error) {
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	select {
	case l.dialing <- struct{}{}:
		defer l.dialing.leave()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c, err := l.current(); c != nil || err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := l.dial(ctx, l.to)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(ErrClosed, c.Close())
	}
	l.conn = c
	l.wg.Go(func() { l.read(c) })
	return c, nil
}

func (l *link) current() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	return l.conn, nil
}

// read hands out responses until the stream ends.
func (l *link) read(c net.Conn) {
	defer l.lose(c)
	r := bufio.NewReaderSize(c, 32<<10)
	for {
		m, err := readMessage(r)
		if err != nil || m.kind != kindResponse {
			return
		}
		l.mu.Lock()
		answer := l.waiting[m.id]
		delete(l.waiting, m.id)
		l.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// lose closes a stream and tells everyone who waits on it.
func (l *link) lose(c net.Conn) {
	_ = c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != c {
		return
	}
	l.conn = nil
	for id, answer := range l.waiting {
		answer <- nil
		delete(l.waiting, id)
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	c := l.conn
	l.mu.Unlock()
	if c != nil {
		l.lose(c)
	}
}

// answer serves a propose stream that a peer opened, until it ends.
func (c *Consensus) answer(from identity.NodeID, conn net.Conn) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel() // requests of a peer that is gone end with its stream
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()

	writing := make(gate, 1)
	room := make(chan struct{}, maxServing)
	r := bufio.NewReaderSize(conn, 32<<10)
	for {
		m, err := readMessage(r)
		if err != nil {
			if errors.Is(err, errMessage) {
				return fmt.Errorf("propose stream of %s: %w", from.Short(), err)
			}
			return nil
		}
		if m.kind != kindRequest {
			return fmt.Errorf("propose stream of %s: %w: a response", from.Short(), errMessage)
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		wg.Go(func() {
			defer func() { <-room }()
			rctx, done := context.WithTimeout(ctx, min(max(m.wait, time.Millisecond), proposeTimeout))
			defer done()
			out := c.serve(rctx, from, m)
			out.kind, out.id = kindResponse, m.id
			if len(out.body) > maxMessage-headResponse {
				out.status, out.body = statusUnknown, nil
			}
			writing.enter()
			defer writing.leave()
			if write(conn, out) != nil {
				cancel()
			}
		})
	}
}
