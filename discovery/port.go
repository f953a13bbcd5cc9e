package discovery

import (
	"errors"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// A wire is memberlist's view of a Port. Its goroutine opens packets and counts
// strangers before memberlist sees them; its streams are known, so that Shutdown
// ends whatever waits on one.
type wire struct {
	port Port
	keys *keyring
	addr netip.AddrPort
	stop chan struct{}
	done chan struct{}

	packets chan *memberlist.Packet
	streams chan net.Conn
	count   *counters
	// elsewhere is where else the node at an address is reached.
	elsewhere func(addr string) (netip.AddrPort, bool)

	mu     sync.Mutex // guards the following
	closed bool
	open   map[*stream]struct{}
	in     int // of open, those that others opened
}

type counters struct {
	garbage, dropped, unsent, refused         atomic.Uint64
	joined, left, failed, spared, doubtful    atomic.Uint64
	strangers, foreign, badMeta, cacheSkipped atomic.Uint64
}

func newWire(p Port, keys *keyring, addr netip.AddrPort, count *counters, elsewhere func(string) (netip.AddrPort,
	bool)) *wire {
	w := &wire{
		port: p, keys: keys, addr: addr, count: count, elsewhere: elsewhere,
		stop: make(chan struct{}), done: make(chan struct{}),
		packets: make(chan *memberlist.Packet, packetBacklog),
		streams: make(chan net.Conn),
		open:    make(map[*stream]struct{}),
	}
	go w.run()
	return w
}

func (w *wire) run() {
	defer close(w.done)
	for {
		select {
		case <-w.stop:
			return
		case p := <-w.port.Packets():
			if !w.keys.opens(p.Buf) {
				w.count.garbage.Add(1)
				continue
			}
			select {
			case w.packets <- &memberlist.Packet{Buf: p.Buf, From: p.From, Timestamp: p.Time}:
			default:
				w.count.dropped.Add(1)
			}
		case c := <-w.port.Streams():
			w.accept(c)
		}
	}
}

func (w *wire) accept(c net.Conn) {
	w.mu.Lock()
	full := w.in >= maxStreams
	w.mu.Unlock()
	if full {
		w.count.refused.Add(1)
		c.Close()
		return
	}
	s := w.track(c, true)
	if s == nil {
		return
	}
	select {
	case w.streams <- s:
	case <-w.stop:
		s.Close()
	}
}

// track returns nil and closes c when the wire is closed.
func (w *wire) track(c net.Conn, in bool) *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		c.Close()
		return nil
	}
	s := &stream{Conn: c, wire: w, in: in}
	w.open[s] = struct{}{}
	if in {
		w.in++
	}
	return s
}

type stream struct {
	net.Conn
	wire *wire
	in   bool
}

func (s *stream) Close() error {
	s.wire.mu.Lock()
	if _, ok := s.wire.open[s]; ok {
		delete(s.wire.open, s)
		if s.in {
			s.wire.in--
		}
	}
	s.wire.mu.Unlock()
	return s.Conn.Close()
}

// FinalAdvertiseAddr implements memberlist.Transport.
func (w *wire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.addr.Addr().AsSlice(), int(w.addr.Port()), nil
}

// WriteTo implements memberlist.Transport. A packet that can not be sent is
// lost, like one on the way: memberlist gives up a probe without suspecting
// anyone when it is told of an error.
func (w *wire) WriteTo(b []byte, addr string) (time.Time, error) {
	at, err := w.port.WriteTo(b, addr)
	if other, ok := w.elsewhere(addr); ok { // whichever arrives; twice does no harm
		if then, also := w.port.WriteTo(b, other.String()); err != nil {
			at, err = then, also
		}
	}
	if err != nil {
		w.count.unsent.Add(1)
		return time.Now(), nil
	}
	return at, nil
}

// PacketCh implements memberlist.Transport.
func (w *wire) PacketCh() <-chan *memberlist.Packet { return w.packets }

// StreamCh implements memberlist.Transport.
func (w *wire) StreamCh() <-chan net.Conn { return w.streams }

// DialTimeout implements memberlist.Transport. Shutdown does not wait for a
// dial, which has no context: it ends with the port, or its timeout, and what
// it then brings is closed.
func (w *wire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	type dialed struct {
		c   net.Conn
		err error
	}
	got := make(chan dialed, 1)
	go func() {
		var c net.Conn
		err := ErrClosed
		if other, ok := w.elsewhere(addr); ok { // there is a connection already
			c, err = w.port.DialStream(other.String(), timeout/2)
		}
		if err != nil {
			c, err = w.port.DialStream(addr, timeout)
		}
		if err == nil {
			if s := w.track(c, false); s != nil {
				c = s
			} else {
				err = ErrClosed
			}
		}
		got <- dialed{c, err}
	}()
	select {
	case d := <-got:
		if d.err != nil {
			return nil, d.err
		}
		return d.c, nil
	case <-w.stop:
		return nil, ErrClosed
	}
}

// Shutdown implements memberlist.Transport.
func (w *wire) Shutdown() error {
	w.mu.Lock()
	again := w.closed
	w.closed = true
	var open []*stream
	for s := range w.open {
		open = append(open, s)
	}
	w.mu.Unlock()
	if !again {
		close(w.stop)
	}
	var errs []error
	for _, s := range open {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	<-w.done
	return errors.Join(errs...)
}

// A logWriter turns memberlist's log lines into records. Its errors are our
// warnings: each is about a peer, and gossip goes on.
type logWriter struct{ logger *slog.Logger }

func newLog(l *slog.Logger) *log.Logger { return log.New(logWriter{l}, "", 0) }

func (w logWriter) Write(b []byte) (int, error) {
	line := strings.TrimSpace(string(b[:min(len(b), logLineBytes)]))
	level, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	if !ok {
		level, rest = "", line
	}
	rest = strings.TrimPrefix(rest, "memberlist: ")
	switch level {
	case "ERR", "WARN":
		w.logger.Warn("gossip: " + rest)
	default:
		w.logger.Debug("gossip: " + rest)
	}
	return len(b), nil
}
