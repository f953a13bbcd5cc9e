package transport

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A pair is two members on loopback. The second sends control frames back; the
// first notes that they came.
type pair struct {
	a, b *Transport
	to   identity.NodeID
	back chan struct{}
}

func newPair(b *testing.B) *pair {
	b.Helper()
	ka, kb := testKeys(1), testKeys(2)
	r := newRoster(ka, kb)
	p := &pair{to: kb.ID(), back: make(chan struct{}, 4096)}
	ca, cb := testConfig(loopback(b), ka, r), testConfig(loopback(b), kb, r)
	ca.OnControl = func(identity.NodeID, byte, []byte) { p.back <- struct{}{} }
	cb.OnControl = func(from identity.NodeID, typ byte, msg []byte) { p.b.Send(b.Context(), from, typ, msg) }
	for _, side := range []struct {
		tr  **Transport
		cfg Config
	}{{&p.a, ca}, {&p.b, cb}} {
		tr, err := Open(side.cfg)
		if err != nil {
			b.Fatal(err)
		}
		tr.Handle(KindRaft, echo)
		*side.tr = tr
		b.Cleanup(func() { tr.Close() })
	}
	for _, tr := range []*Transport{p.a, p.b} {
		if err := tr.Start(); err != nil {
			b.Fatal(err)
		}
	}
	introduce(p.a, p.b)
	return p
}

func (p *pair) dial(b *testing.B) net.Conn {
	b.Helper()
	c, err := p.a.Dial(b.Context(), p.to, KindRaft)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// quantiles reports what one call of f takes.
func quantiles(b *testing.B, f func()) {
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		f()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
}

// A new connection: QUIC and Noise handshakes, a stream, and its first echo.
func BenchmarkDial(b *testing.B) {
	p := newPair(b)
	quantiles(b, func() {
		c := p.dial(b)
		if err := echoOn(c, []byte("hi")); err != nil {
			b.Fatal(err)
		}
		c.Close()
		p.a.Disconnect(p.to)
		for p.a.newest(p.to) != nil {
			time.Sleep(10 * time.Microsecond)
		}
	})
}

// A new stream on an open connection, and its first echo.
func BenchmarkNewStream(b *testing.B) {
	p := newPair(b)
	p.dial(b)
	quantiles(b, func() {
		c := p.dial(b)
		if err := echoOn(c, []byte("hi")); err != nil {
			b.Fatal(err)
		}
		c.Close()
	})
}

// 64 bytes there and back on a stream that stays open.
func BenchmarkRoundTrip(b *testing.B) {
	p := newPair(b)
	c := p.dial(b)
	msg := make([]byte, 64)
	quantiles(b, func() {
		if err := echoOn(c, msg); err != nil {
			b.Fatal(err)
		}
	})
}

// A control frame of 256 bytes there and back; one way is half of it.
func BenchmarkControlRoundTrip(b *testing.B) {
	p := newPair(b)
	msg := make([]byte, 256)
	quantiles(b, func() {
		if err := p.a.Send(b.Context(), p.to, 1, msg); err != nil {
			b.Fatal(err)
		}
		<-p.back
	})
}

// Control frames of 256 bytes, sent as fast as they go and sent back.
func BenchmarkControlRate(b *testing.B) {
	p := newPair(b)
	msg := make([]byte, 256)
	sent, start := 0, time.Now()
	all := make(chan struct{})
	want := make(chan int, 1)
	go func() {
		defer close(all)
		for got, n := 0, -1; got != n; {
			select {
			case <-p.back:
				got++
			case n = <-want:
			}
		}
	}()
	for b.Loop() {
		if err := p.a.Send(b.Context(), p.to, 1, msg); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	want <- sent
	<-all
	b.ReportMetric(float64(sent)/time.Since(start).Seconds(), "there-and-back/s")
}

// One long stream, in 64 KiB writes, echoed.
func BenchmarkBulkEcho(b *testing.B) {
	p := newPair(b)
	c := p.dial(b)
	msg := make([]byte, 64<<10)
	go func() {
		for {
			if _, err := c.Write(msg); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, len(msg))
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
}
