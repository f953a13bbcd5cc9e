package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/selvage-mesh/selvage/identity"
)

// raw dials QUIC without a Noise handshake and opens the first stream.
func raw(t *testing.T, from *Transport, to netip.AddrPort) (*quic.Conn, *quic.Stream) {
	t.Helper()
	conn, err := from.quic.Dial(t.Context(), net.UDPAddrFromAddrPort(to), from.tls, from.quicConf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	s, err := conn.OpenStreamSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn, s
}

// Garbage datagrams of every first byte are counted at most; members go on.
func TestGarbageDatagrams(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		wantEcho(t, b, ka.ID())
		eve := w.socket()
		defer eve.Close()
		src := rand.NewChaCha8([32]byte{1})
		throw := func(packets int) {
			for i := range packets {
				n := 1 + i%1400
				p := make([]byte, n)
				src.Read(p)
				p[0] = byte(i)
				if _, err := eve.WriteTo(p, a.Addr()); err != nil {
					t.Fatal(err)
				}
				if i%50 == 0 {
					time.Sleep(time.Millisecond) // let some of them in
				}
			}
		}
		throw(2000)
		wantEcho(t, b, ka.ID())
		soon.Until(t, "garbage is counted", func() bool {
			throw(256)
			s := a.Stats()
			return s.PacketsDropped > 100 && s.GossipReceived > 100
		})
	})
}

// Whatever comes instead of a handshake ends the connection with a reason.
func TestGarbageHandshakes(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, eve := testKeys(1), testKeys(66)
		cfg := testConfig(w.socket(), ka, newRoster(ka))
		if cfg.HandshakeTimeout = time.Second; !w.bubble { // one that is garbage is refused before, on a busy machine too
			cfg.HandshakeTimeout = 5 * time.Second
		}
		a := open(t, cfg)
		e := open(t, testConfig(w.socket(), eve, newRoster(ka)))
		msg := func(b []byte) []byte { return appendMessage(nil, b) }
		ok := msg(hello{pattern: patternXX}.encode())
		for name, c := range map[string]struct {
			send []byte
			why  Reason
		}{
			"zeros":           {make([]byte, 100), Malformed},
			"other version":   {msg([]byte{9, 0, 0}), Malformed},
			"other pattern":   {msg([]byte{1, 7, 0}), Malformed},
			"XX with a token": {msg([]byte{1, 0, 1, 'x'}), Malformed},
			"empty token":     {msg([]byte{1, 1, 0}), Malformed},
			"long token":      {msg(append([]byte{1, 1, 65}, make([]byte, 65)...)), Malformed},
			"too long":        {binary.BigEndian.AppendUint16(nil, maxHandshakeMessage+1), Malformed},
			"short message 1": {append(bytes.Clone(ok), msg([]byte("e"))...), Malformed},
			"with payload":    {append(bytes.Clone(ok), msg(make([]byte, 40))...), Malformed},
			"low-order key":   {append(bytes.Clone(ok), msg(make([]byte, 32))...), BadHandshake},
			"garbage 3":       {append(append(bytes.Clone(ok), msg(goodPoint())...), msg(make([]byte, 200))...), BadHandshake},
			"nothing more":    {[]byte{0}, TooSlow},
		} {
			conn, s := raw(t, e, addrOf(a))
			if _, err := s.Write(c.send); err != nil {
				t.Fatal(err)
			}
			select {
			case <-conn.Context().Done():
			case <-time.After(time.Minute):
				t.Errorf("%s: still connected", name)
				continue
			}
			t.Log(name)
			wantRefused(t, byPeer(context.Cause(conn.Context())), c.why)
		}
		if got := a.Stats(); got.Refused["malformed"] != 9 || got.Refused["bad_handshake"] != 2 ||
			got.Refused["too_slow"] != 1 || got.Handshakes != 0 {
			t.Errorf("counted %v, %d handshakes left", got.Refused, got.Handshakes)
		}
		conn, _ := raw(t, e, addrOf(a)) // opens no stream at all
		<-conn.Context().Done()
		soon.Until(t, "it is counted", func() bool { return a.Stats().Refused["too_slow"] == 2 })
	})
}

// goodPoint is an X25519 public key.
func goodPoint() []byte { return testKeys(9).Noise.PublicKey().Bytes() }

// A QUIC client that speaks no protocol of ours is refused by TLS, and counted.
func TestOtherProtocol(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka := testKeys(1)
		a := open(t, testConfig(w.socket(), ka, newRoster(ka)))
		e := open(t, testConfig(w.socket(), testKeys(66), newRoster(ka)))
		conf := e.tls.Clone()
		conf.NextProtos = []string{"h3"}
		if conn, err := e.quic.Dial(t.Context(), a.Addr(), conf, e.quicConf); err == nil {
			conn.CloseWithError(0, "")
			t.Error("a web browser was let in")
		}
		soon.Until(t, "it is counted", func() bool { return a.Stats().Refused["no_tls"] == 1 })
		conf = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protoChaCha}, MaxVersion: tls.VersionTLS12}
		if _, err := e.quic.Dial(t.Context(), a.Addr(), conf, e.quicConf); err == nil {
			t.Error("TLS 1.2 was let in")
		}
	})
}

// Somebody else's certificate, a certificate for another purpose, and a man in
// the middle of two TLS connections all fail.
func TestStolenCertificate(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, eve := testKeys(1), testKeys(2), testKeys(66)
		r := newRoster(ka, kb)
		a := open(t, testConfig(w.socket(), ka, r))
		e := open(t, testConfig(w.socket(), eve, r))
		for name, self := range map[string][]byte{
			"b's certificate":    encodeParty(testMesh, 1, kb.Certificate(identity.ForNoise), nil),
			"b's seal key":       encodeParty(testMesh, 1, kb.Certificate(identity.ForSeal), nil),
			"own, seal key":      encodeParty(testMesh, 1, eve.Certificate(identity.ForSeal), nil),
			"broken certificate": append(encodeParty(testMesh, 1, eve.Certificate(identity.ForNoise), nil)[:146], 0),
		} {
			conn, s := raw(t, e, addrOf(a))
			sh, err := e.shake(conn, hello{})
			if err != nil {
				t.Fatal(err)
			}
			sh.self = self
			_, rec, err := sh.initiate(s, func(party) error { return nil })
			if err == nil {
				err = accepted(rec)
			}
			t.Log(name)
			wantRefused(t, err, BadIdentity)
		}
		// A handshake that is honest but was bound to another TLS connection.
		b := open(t, testConfig(w.socket(), kb, r))
		conn, s := raw(t, b, addrOf(a))
		sh, err := b.shake(conn, hello{})
		if err != nil {
			t.Fatal(err)
		}
		sh.exporter[0]++
		_, _, err = sh.initiate(s, func(party) error { return nil })
		wantRefused(t, err, BadHandshake)
		if got := a.Stats().Connections; got != 0 {
			t.Errorf("%d connections", got)
		}
	})
}

// A member that sends garbage on its control channel loses its connection.
func TestGarbageOnControl(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		for name, c := range map[string]struct {
			send func(*records)
			why  Reason
		}{
			"no Noise message": {func(r *records) { r.w.Write(make([]byte, 100)) }, BadHandshake},
			"huge frame":       {func(r *records) { r.Write([]byte{0xff, 0xff, 0xff, 0xff, 1}) }, Malformed},
			"other flag": {func(r *records) {
				m, _ := r.send.Encrypt(nil, nil, []byte{7})
				r.w.Write(appendMessage(nil, m))
			}, Malformed},
			"empty record": {func(r *records) {
				m, _ := r.send.Encrypt(nil, nil, nil)
				r.w.Write(appendMessage(nil, m))
			}, Malformed},
		} {
			wantEcho(t, b, ka.ID())
			p := b.newest(ka.ID())
			c.send(p.rec)
			select {
			case <-p.conn.Context().Done():
			case <-time.After(time.Minute):
				t.Fatalf("%s: still connected", name)
			}
			t.Log(name)
			wantRefused(t, byPeer(context.Cause(p.conn.Context())), c.why)
		}
		wantEcho(t, b, ka.ID())
	})
}

// While many unknown connections are pending, a caller must prove its address
// first, and members still get in; when the bound is reached, nobody does.
func TestManyHandshakes(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		var leave []func()
		fill := func(n int) {
			for range n {
				l, ok := a.gate.enter(addrFor(len(leave)))
				if !ok {
					t.Fatal("the gate is full")
				}
				leave = append(leave, l)
			}
		}
		fill(retryAbove)
		wantEcho(t, b, ka.ID())
		b.Disconnect(ka.ID())
		fill(handshakesTotal - retryAbove)
		if err := tryEcho(t.Context(), b, ka.ID(), KindRaft); err == nil {
			t.Error("got in through a full gate")
		}
		if got := a.Stats(); got.Refused["busy"] == 0 || got.Handshakes != handshakesTotal {
			t.Errorf("counted %v, %d handshakes", got.Refused, got.Handshakes)
		}
		for _, l := range leave {
			l()
		}
		wantEcho(t, b, ka.ID())
	})
}

func addrFor(i int) net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, byte(i/256), byte(i)), Port: 1}
}
