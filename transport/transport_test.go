package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// Two members reach each other in both directions over the one connection that
// the first dial made.
func TestTwoNodes(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		a.Learn(kb.ID(), addrOf(b))
		wantEcho(t, a, kb.ID())
		wantEcho(t, b, ka.ID())
		if got := a.Stats(); got.Dialled != 1 || got.Accepted != 0 || got.Connections != 1 {
			t.Errorf("a dialled %d, accepted %d, has %d connections; want 1, 0, 1", got.Dialled, got.Accepted, got.Connections)
		}
		ps := b.Peers()
		if len(ps) != 1 || ps[0].ID != ka.ID() || ps[0].Addr != addrOf(a) || ps[0].Outgoing || ps[0].Limited {
			t.Errorf("b sees %+v", ps)
		}
	})
}

// Three nodes that dial one another all at once end up connected, with at most
// one connection of each direction, and stay so.
func TestSimultaneousDials(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ks := []*identity.Keys{testKeys(1), testKeys(2), testKeys(3)}
		r := newRoster(ks...)
		var ts []*Transport
		for _, k := range ks {
			ts = append(ts, open(t, testConfig(w.socket(), k, r)))
		}
		introduce(ts...)
		var wg sync.WaitGroup
		for range 20 {
			for i, from := range ts {
				for j, to := range ks {
					if i != j {
						wg.Go(func() {
							if err := tryEcho(t.Context(), from, to.ID(), KindRaft); err != nil {
								t.Errorf("%d to %d: %v", i, j, err)
							}
						})
					}
				}
			}
			wg.Wait()
		}
		for i, tr := range ts {
			if s := tr.Stats(); s.Dialled > 2 || s.Accepted > 2 || s.Connections < 2 || s.Connections > 4 {
				t.Errorf("node %d dialled %d, accepted %d, has %d connections", i, s.Dialled, s.Accepted, s.Connections)
			}
		}
	})
}

// More connections to one node than make sense are closed, those in use last.
func TestConnectionsPerPeer(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := echoOn(c, []byte("first")); err != nil {
			t.Fatal(err)
		}
		for range 3 * maxConnsPerPeer {
			p, err := a.dialAddr(t.Context(), addrOf(b), kb.ID())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.welcomeBack(p); err != nil {
				t.Fatal(err)
			}
		}
		soon.Until(t, "the spare ones are closed", func() bool {
			return a.Stats().Connections <= maxConnsPerPeer && b.Stats().Connections <= maxConnsPerPeer
		})
		if err := echoOn(c, []byte("still in use")); err != nil {
			t.Error(err)
		}
		wantEcho(t, b, ka.ID())
	})
}

// Megabytes arrive whole, in both directions at once.
func TestBigStreams(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		size := 16 << 20
		if w.bubble {
			size = 2 << 20
		}
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		a.Learn(kb.ID(), addrOf(b))
		c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		src := rand.NewChaCha8([32]byte{})
		want := sha256.New()
		go func() {
			io.Copy(c, io.TeeReader(io.LimitReader(src, int64(size)), want))
			c.(Stream).CloseWrite()
		}()
		got := sha256.New()
		n, err := io.Copy(got, c)
		if err != nil || n != int64(size) || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
			t.Errorf("got %d of %d bytes back, %v", n, size, err)
		}
		if s := a.Stats(); s.BytesSent["raft"] != uint64(size) || s.BytesReceived["raft"] != uint64(size) {
			t.Errorf("counted %d bytes sent, %d received", s.BytesSent["raft"], s.BytesReceived["raft"])
		}
	})
}

// A node that nobody admitted gets nowhere, and is told so.
func TestOutsiderIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, eve := testKeys(1), testKeys(66)
		a := open(t, testConfig(w.socket(), ka, newRoster(ka)))
		e := open(t, testConfig(w.socket(), eve, newRoster(ka, eve))) // believes that it is a member
		e.Learn(ka.ID(), addrOf(a))
		err := tryEcho(t.Context(), e, ka.ID(), KindSync)
		wantRefused(t, err, Unknown)
		if got := a.Stats(); got.Refused["unknown"] == 0 || got.Connections != 0 {
			t.Errorf("counted %v, %d connections", got.Refused, got.Connections)
		}
		if got := e.Stats().RefusedBy["unknown"]; got == 0 {
			t.Error("the outsider did not count that it was refused")
		}
	})
}

// A node without a mesh lets nobody in; one of another mesh is refused.
func TestOtherMeshes(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		for mesh, why := range map[identity.MeshID]Reason{"": Unknown, "ffffffffffffffffffffffffffffffff": WrongMesh} {
			cfg := testConfig(w.socket(), ka, r)
			cfg.Mesh = func() identity.MeshID { return mesh }
			a, b := open(t, cfg), open(t, testConfig(w.socket(), kb, r))
			b.Learn(ka.ID(), addrOf(a))
			a.Learn(kb.ID(), addrOf(b))
			wantRefused(t, tryEcho(t.Context(), b, ka.ID(), KindRaft), WrongMesh) // b judges first
			wantRefused(t, tryEcho(t.Context(), a, kb.ID(), KindRaft), why)
		}
	})
}

// Whoever answers at an address must be the node that was dialled.
func TestAnotherNodeAtTheAddress(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, kc := testKeys(1), testKeys(2), testKeys(3)
		r := newRoster(ka, kb, kc)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		a.Learn(kc.ID(), addrOf(b))
		wantRefused(t, tryEcho(t.Context(), a, kc.ID(), KindRaft), WrongPeer)
		a.Learn(kc.ID(), addrOf(a)) // and not the node itself
		wantRefused(t, tryEcho(t.Context(), a, kc.ID(), KindRaft), WrongPeer)
		if _, err := a.Dial(t.Context(), ka.ID(), KindRaft); !errors.Is(err, ErrSelf) {
			t.Errorf("dial to itself: %v", err)
		}
		if got := b.Stats().Accepted; got != 0 {
			t.Errorf("b accepted %d", got)
		}
	})
}

// Once the roster says so, a revoked node's connections end within seconds and
// it does not come back.
func TestRevokedPeer(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		ra, rb := newRoster(ka, kb), newRoster(ka, kb) // b has not heard of it
		a, b := open(t, testConfig(w.socket(), ka, ra)), open(t, testConfig(w.socket(), kb, rb))
		introduce(a, b)
		c, err := b.Dial(t.Context(), ka.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		if err := echoOn(c, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		ra.revoke(kb)
		c.SetDeadline(time.Now().Add(5 * time.Second))
		_, err = c.Read(make([]byte, 1))
		wantRefused(t, err, Revoked)
		wantRefused(t, tryEcho(t.Context(), b, ka.ID(), KindSync), Revoked)
		wantRefused(t, tryEcho(t.Context(), a, kb.ID(), KindSync), Revoked)
	})
}

// Disconnect ends connections at once; a member may come back.
func TestDisconnect(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		c, err := b.Dial(t.Context(), ka.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		if err := echoOn(c, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		a.Disconnect(kb.ID())
		c.SetDeadline(time.Now().Add(time.Second))
		_, err = c.Read(make([]byte, 1))
		wantRefused(t, err, Closing)
		wantEcho(t, b, ka.ID())
	})
}

// A node that a member has admitted, but that the others have not heard of,
// gets the sync stream and nothing else until they have.
func TestAdmittedButUnknown(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, kc := testKeys(1), testKeys(2), testKeys(3)
		ra := newRoster(ka, kb) // does not know c
		admission, err := kb.Admit(testMesh, kc.Public(), 7)
		if err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(w.socket(), kc, newRoster(ka, kb, kc))
		cfg.Admission = func() []byte { return identity.EncodeAdmissions([]identity.Admission{admission}) }
		a, c := open(t, testConfig(w.socket(), ka, ra)), open(t, cfg)
		introduce(a, c)
		if err := tryEcho(t.Context(), c, ka.ID(), KindSync); err != nil {
			t.Fatal(err)
		}
		if ps := a.Peers(); len(ps) != 1 || !ps[0].Limited {
			t.Errorf("a sees %+v", ps)
		}
		wantRefused(t, tryEcho(t.Context(), c, ka.ID(), KindRaft), NotAllowed)
		wantRefused(t, tryEcho(t.Context(), a, kc.ID(), KindRaft), NotAllowed)
		wantRefused(t, a.Send(t.Context(), kc.ID(), 1, nil), NotAllowed)
		if err := c.Send(t.Context(), ka.ID(), 1, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		soon.Until(t, "a control frame of it is dropped", func() bool { return a.Stats().ControlDropped == 1 })
		ra.admit(kc) // the roster caught up
		wantEcho(t, c, ka.ID())
		wantEcho(t, a, kc.ID())
		if got := a.Stats(); got.Accepted != 1 || got.Refused["not_allowed"] == 0 {
			t.Errorf("accepted %d, refused %v; want one connection throughout", got.Accepted, got.Refused)
		}
	})
}

// A node whose own state fell back does not cut off the peers it needs to
// catch up; they get the sync stream until it knows them again.
func TestRosterFallsBack(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		ra := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, ra)), open(t, testConfig(w.socket(), kb, newRoster(ka, kb)))
		introduce(a, b)
		wantEcho(t, b, ka.ID())
		ra.forget(kb)
		time.Sleep(3 * time.Second)
		wantRefused(t, tryEcho(t.Context(), b, ka.ID(), KindRaft), NotAllowed)
		if err := tryEcho(t.Context(), a, kb.ID(), KindSync); err != nil {
			t.Error(err)
		}
		ra.admit(kb)
		wantEcho(t, b, ka.ID())
		if got := a.Stats().Accepted; got != 1 {
			t.Errorf("accepted %d connections, want 1 throughout", got)
		}
	})
}

// An admission by a node that was revoked admits nobody.
func TestAdmittedByRevoked(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, kc := testKeys(1), testKeys(2), testKeys(3)
		ra := newRoster(ka, kb)
		ra.revoke(kb)
		admission, err := kb.Admit(testMesh, kc.Public(), 7)
		if err != nil {
			t.Fatal(err)
		}
		cfg := testConfig(w.socket(), kc, newRoster(ka, kb, kc))
		cfg.Admission = func() []byte { return identity.EncodeAdmissions([]identity.Admission{admission}) }
		a, c := open(t, testConfig(w.socket(), ka, ra)), open(t, cfg)
		introduce(a, c)
		wantRefused(t, tryEcho(t.Context(), c, ka.ID(), KindSync), Revoked)
	})
}

// Nodes of two epochs do not talk to each other, whoever dials, and the one that
// was left behind hears of it: from a member, or from whom a member admitted.
func TestOtherEpoch(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb, kc := testKeys(1), testKeys(2), testKeys(3)
		admission, err := kb.Admit(testMesh, kc.Public(), 7)
		if err != nil {
			t.Fatal(err)
		}
		type heard struct {
			from, known identity.NodeID
			epoch       uint64
		}
		news := make(chan heard, 16)
		ca, cb, cc := testConfig(w.socket(), ka, newRoster(ka, kb)), testConfig(w.socket(), kb, newRoster(ka, kb, kc)),
			testConfig(w.socket(), kc, newRoster(ka, kb, kc))
		ca.OnEpoch = func(from, known identity.NodeID, epoch uint64) { news <- heard{from, known, epoch} }
		later := func() uint64 { return 2 }
		cb.Epoch, cc.Epoch = later, later
		cc.Admission = func() []byte { return identity.EncodeAdmissions([]identity.Admission{admission}) }
		a, b, c := open(t, ca), open(t, cb), open(t, cc)
		introduce(a, b)
		introduce(a, c)
		introduce(b, c)
		wantRefused(t, tryEcho(t.Context(), a, kb.ID(), KindSync), OtherEpoch)
		if got := <-news; got != (heard{kb.ID(), kb.ID(), 2}) {
			t.Errorf("a heard %+v when it dialled", got)
		}
		wantRefused(t, tryEcho(t.Context(), a, kc.ID(), KindSync), OtherEpoch)
		if got := <-news; got != (heard{kc.ID(), kb.ID(), 2}) {
			t.Errorf("a heard %+v of a node that b admitted", got)
		}
		wantRefused(t, tryEcho(t.Context(), c, ka.ID(), KindSync), OtherEpoch)
		wantEcho(t, c, kb.ID())
	})
}

// A restarted node is found on another port, because it calls, or is resolved.
func TestPeerComesBackOnAnotherPort(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		wantEcho(t, a, kb.ID())
		b.Close()
		b = open(t, testConfig(w.socket(), kb, r))
		b.Learn(ka.ID(), addrOf(a))
		wantEcho(t, b, ka.ID())
		wantEcho(t, a, kb.ID()) // over b's call
		a.Disconnect(kb.ID())
		wantEcho(t, a, kb.ID()) // by the address that it called from
	})
}

// All nodes change ports while they are down, and find one another by hints.
func TestAllChangePorts(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ks := []*identity.Keys{testKeys(1), testKeys(2), testKeys(3)}
		r := newRoster(ks...)
		var mu sync.Mutex
		where := map[identity.NodeID]netip.AddrPort{}
		for range 2 {
			var ts []*Transport
			for _, k := range ks {
				cfg := testConfig(w.socket(), k, r)
				cfg.Resolve = func(id identity.NodeID) []netip.AddrPort {
					mu.Lock()
					defer mu.Unlock()
					return []netip.AddrPort{where[id]}
				}
				tr := open(t, cfg)
				ts = append(ts, tr)
				mu.Lock()
				where[k.ID()] = addrOf(tr)
				mu.Unlock()
			}
			for i, tr := range ts {
				for j, k := range ks {
					if i != j {
						wantEcho(t, tr, k.ID())
					}
				}
			}
			for _, tr := range ts {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// The two sides agree on a cipher also when only one CPU has AES.
func TestCipherIsAgreed(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		for _, no := range [][2]bool{{false, true}, {true, false}, {true, true}} {
			ca, cb := testConfig(w.socket(), ka, r), testConfig(w.socket(), kb, r)
			ca.NoAES, cb.NoAES = no[0], no[1]
			a, b := open(t, ca), open(t, cb)
			introduce(a, b)
			wantEcho(t, a, kb.ID())
			a.Close()
			b.Close()
		}
	})
}

// Control frames of any size arrive in order, and only on their own types.
func TestControlFrames(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		type frame struct {
			from identity.NodeID
			typ  byte
			b    []byte
		}
		got := make(chan frame, 2000)
		cb := testConfig(w.socket(), kb, r)
		cb.OnControl = func(from identity.NodeID, typ byte, b []byte) { got <- frame{from, typ, b} }
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, cb)
		introduce(a, b)
		sizes := []int{0, 1, maxRecord - frameHeader, maxRecord, 200_000, 5 << 20}
		for i := range 1000 {
			size := i % 100
			if i < len(sizes) {
				size = sizes[i]
			}
			if err := a.Send(t.Context(), kb.ID(), byte(i%int(MaxControlType+1)),
				bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1000 {
			size := i % 100
			if i < len(sizes) {
				size = sizes[i]
			}
			f := <-got
			if f.from != ka.ID() || f.typ != byte(i%int(MaxControlType+1)) ||
				!bytes.Equal(f.b, bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("frame %d is from %s, type %d, %d bytes", i, f.from.Short(), f.typ, len(f.b))
			}
		}
		if err := a.Send(t.Context(), kb.ID(), ctlPing, nil); !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("a frame of the channel's own types: %v", err)
		}
		if sa, sb := a.Stats(), b.Stats(); sa.ControlSent != 1000 || sb.ControlReceived != 1000 {
			t.Errorf("counted %d sent, %d received", sa.ControlSent, sb.ControlReceived)
		}
	})
}

// A peer may have only so many streams open; closed ones are given back, a
// thousand of them too.
func TestStreamLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		cb := testConfig(w.socket(), kb, r)
		cb.MaxStreams = 8
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, cb)
		introduce(a, b)
		for range 300 {
			wantEcho(t, a, kb.ID())
		}
		var held []net.Conn
		for range 8 {
			c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := a.Dial(ctx, kb.ID(), KindRaft); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ninth stream: %v, want to wait", err)
		}
		held[0].Close()
		wantEcho(t, a, kb.ID())
		for _, c := range held {
			c.Close()
		}
		soon.Until(t, "streams are counted down", func() bool {
			return a.Peers()[0].Streams == 0 &&
				b.Peers()[0].Streams == 0
		})
	})
}

// A stream of a kind that nobody handles, or of none, is reset and counted.
func TestUnknownKind(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		for _, kind := range []Kind{KindRunLog, KindJoin} {
			wantRefused(t, tryEcho(t.Context(), a, kb.ID(), kind), UnknownKind)
		}
		p := a.newest(kb.ID())
		q, err := p.conn.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		q.Write([]byte{200})
		soon.Until(t, "it is counted", func() bool { return b.Stats().Refused["unknown_kind"] == 3 })
		wantEcho(t, a, kb.ID())
	})
}

// A node may dial before it starts; what peers open on that connection waits
// for its handlers.
func TestDialBeforeStart(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a := open(t, testConfig(w.socket(), ka, r))
		b, err := Open(testConfig(w.socket(), kb, r))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		introduce(a, b)
		wantEcho(t, b, ka.ID())
		c, err := a.Dial(t.Context(), kb.ID(), KindSync)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.Sleep(50 * time.Millisecond)
		b.Handle(KindSync, echo)
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		if err := echoOn(c, []byte("at last")); err != nil {
			t.Error(err)
		}
		if err := b.Start(); err == nil {
			t.Error("started twice")
		}
	})
}

// Close ends what waits, on both sides, at once; afterwards nothing works and
// nothing hangs.
func TestClose(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		if err := echoOn(c, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		reading := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			reading <- err
		}()
		start := time.Now()
		for range 2 {
			if err := b.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		wantRefused(t, <-reading, Closing)
		if took := time.Since(start); w.bubble && took > time.Second {
			t.Errorf("the peer noticed after %v", took)
		}
		if _, err := b.Dial(t.Context(), ka.ID(), KindRaft); !errors.Is(err, ErrClosed) {
			t.Errorf("dial after Close: %v", err)
		}
		if err := b.Start(); !errors.Is(err, ErrClosed) {
			t.Errorf("start after Close: %v", err)
		}
		if _, err := b.Gossip().WriteTo([]byte{1}, addrOf(a).String()); !errors.Is(err, ErrClosed) {
			t.Errorf("gossip after Close: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := a.Dial(ctx, kb.ID(), KindRaft); err == nil {
			t.Error("dialled a closed node")
		}
		never, err := Open(testConfig(w.socket(), testKeys(3), r))
		if err != nil {
			t.Fatal(err)
		}
		if err := never.Close(); err != nil {
			t.Errorf("close of one that was not started: %v", err)
		}
	})
}

// A stream may be closed while it is written to; the writer is told.
func TestCloseWhileWriting(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a := open(t, testConfig(w.socket(), ka, r))
		b, err := Open(testConfig(w.socket(), kb, r))
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		held := make(chan net.Conn, 1)
		b.Handle(KindRaft, func(_ identity.NodeID, c net.Conn) { held <- c }) // and nobody reads
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		introduce(a, b)
		c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, 64<<20))
			done <- err
		}()
		far := <-held
		if _, err := far.Read(make([]byte, 1)); err != nil { // the write has begun
			t.Fatal(err)
		}
		c.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("write to a closed stream: %v", err)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after Close: %v", err)
		}
		if _, err := io.Copy(io.Discard, far); err == nil {
			t.Error("the far side read to the end of what was cut off")
		}
		far.Close()
	})
}

// Gossip packets and streams pass between members on the same socket.
func TestGossip(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		soon.Until(t, "packets arrive", func() bool { // the first may come before b reads
			if _, err := a.Gossip().WriteTo([]byte{7, 1, 2}, addrOf(b).String()); err != nil {
				t.Fatal(err)
			}
			select {
			case p := <-b.Gossip().Packets():
				if !bytes.Equal(p.Buf, []byte{7, 1, 2}) || addrPort(p.From) != addrOf(a) || time.Since(p.Time) > time.Second {
					t.Errorf("got %v from %v", p.Buf, p.From)
				}
				return true
			case <-time.After(50 * time.Millisecond):
				return false
			}
		})
		for name, bad := range map[string][]byte{"empty": nil, "long": make([]byte, MaxGossipPacket+1), "like QUIC": {0x40},
			"label": {244}} {
			if _, err := a.Gossip().WriteTo(bad, addrOf(b).String()); !errors.Is(err, ErrGossipPacket) {
				t.Errorf("%s packet: %v", name, err)
			}
		}
		if _, err := a.Gossip().WriteTo([]byte{1}, "nowhere"); err == nil {
			t.Error("a packet to nowhere was sent")
		}
		for range 3 {
			c, err := a.Gossip().DialStream(addrOf(b).String(), 5*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			d := <-b.Gossip().Streams()
			go func() { d.Write([]byte("push-pull")); d.Close() }()
			if got, err := io.ReadAll(c); string(got) != "push-pull" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			c.Close()
		}
		if got := b.Stats(); got.Accepted != 1 || got.StreamsAccepted["gossip"] != 3 {
			t.Errorf("accepted %d connections, %d gossip streams; want 1, 3", got.Accepted, got.StreamsAccepted["gossip"])
		}
		for range gossipStreams + 1 { // nobody takes them
			if _, err := a.Gossip().DialStream(addrOf(b).String(), 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		soon.Until(t, "the stream too many is refused", func() bool { return b.Stats().Refused["busy"] == 1 })
	})
}

// Keep-alive holds the connection of an open stream for as long as it is open;
// one that nobody uses ends.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		introduce(a, b)
		c, err := a.Dial(t.Context(), kb.ID(), KindRaft)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour) // and the control channel was rekeyed on the way
		if err := echoOn(c, []byte("still there")); err != nil {
			t.Errorf("an open stream after three hours: %v", err)
		}
		if got := a.Stats().Dialled; got != 1 {
			t.Errorf("dialled %d times, want 1", got)
		}
		c.Close()
		time.Sleep(time.Minute)
		if got := a.Stats().Connections + b.Stats().Connections; got != 0 {
			t.Errorf("%d connections that nobody uses are left", got)
		}
		wantEcho(t, b, ka.ID())
	})
}

// A peer that answers later than a dial likes to wait is reached on the connection that there is: by its node
// ID and at its address. A new one takes longer than the caller has.
func TestSlowPeerIsReached(t *testing.T) {
	t.Parallel()
	bubbleWith(t, 400*time.Millisecond, func(t *testing.T, w world) {
		r := newRoster(testKeys(1), testKeys(2))
		a, b := open(t, testConfig(w.socket(), testKeys(1), r)), open(t, testConfig(w.socket(), testKeys(2), r))
		introduce(a, b)
		wantEcho(t, a, testKeys(2).ID())
		for _, way := range []struct {
			name string
			dial func(context.Context) (net.Conn, error)
		}{
			{"by ID", func(ctx context.Context) (net.Conn, error) { return a.Dial(ctx, testKeys(2).ID(), KindRaft) }},
			{"by address", func(ctx context.Context) (net.Conn, error) { return a.DialAt(ctx, addrOf(b), KindRaft) }},
			{"for gossip", func(context.Context) (net.Conn, error) {
				return a.Gossip().DialStream(addrOf(b).String(), 2*time.Second)
			}},
		} {
			time.Sleep(4 * quietAfter) // what the dial before began has ended, and is silent, too
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			began := time.Now()
			c, err := way.dial(ctx)
			cancel()
			if took := time.Since(began); err != nil || took < probeTimeout || took > 1500*time.Millisecond {
				t.Errorf("%s: %v after %v", way.name, err, took)
			}
			if err == nil {
				c.Close()
			}
		}
	})
}

// After a failed dial there is a pause, which grows; a new address, and a call
// by the peer, end it.
func TestBackoff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w world) {
		ka, kb := testKeys(1), testKeys(2)
		r := newRoster(ka, kb)
		a, b := open(t, testConfig(w.socket(), ka, r)), open(t, testConfig(w.socket(), kb, r))
		var waits []time.Duration
		for range 10 {
			start := time.Now()
			if _, err := a.Dial(t.Context(), kb.ID(), KindRaft); !errors.Is(err, ErrNoAddress) {
				t.Fatal(err)
			}
			waits = append(waits, time.Since(start))
		}
		if waits[0] != 0 || waits[1] > backoffMin || waits[9] < backoffMax/2 || waits[9] > backoffMax {
			t.Errorf("waited %v", waits)
		}
		start := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { a.Learn(kb.ID(), addrOf(b)) })
		wantEcho(t, a, kb.ID())
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("a learned address was used after %v", took)
		}
		b.Close()
		time.Sleep(time.Second) // a has noticed
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			a.Dial(ctx, kb.ID(), KindRaft)
			cancel()
		}
		b = open(t, testConfig(w.socket(), kb, r))
		b.Learn(ka.ID(), addrOf(a))
		start = time.Now()
		time.AfterFunc(50*time.Millisecond, func() { tryEcho(context.Background(), b, ka.ID(), KindRaft) })
		wantEcho(t, a, kb.ID())
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("the peer's own call was used after %v", took)
		}
		synctest.Wait()
	})
}

// The gate bounds by source and in all, and counts down.
func TestGate(t *testing.T) {
	t.Parallel()
	g := gate{from: map[netip.Prefix]int{}}
	from := func(ip string) net.Addr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(ip)) }
	var leave []func()
	for i := range handshakesPerAddr {
		l, ok := g.enter(from(fmt.Sprintf("192.0.2.1:%d", 1000+i)))
		if !ok {
			t.Fatalf("refused number %d", i)
		}
		leave = append(leave, l)
	}
	if _, ok := g.enter(from("192.0.2.1:1")); ok {
		t.Error("one source got more than its share")
	}
	if _, ok := g.enter(from("[::ffff:192.0.2.1]:1")); ok {
		t.Error("one source got more than its share by another spelling")
	}
	if !g.suspicious(from("192.0.2.1:1")) {
		t.Error("a busy source need not prove its address")
	}
	for i := range handshakesTotal - handshakesPerAddr {
		l, ok := g.enter(from(fmt.Sprintf("[2001:db8:0:%x::%x]:1", i/32, i+1)))
		if !ok {
			t.Fatalf("refused source %d", i)
		}
		leave = append(leave, l)
	}
	if _, ok := g.enter(from("198.51.100.1:1")); ok {
		t.Error("more than the total got in")
	}
	for _, l := range leave {
		l()
		l() // twice is once
	}
	if g.pending() != 0 || len(g.from) != 0 || g.suspicious(from("192.0.2.1:1")) {
		t.Errorf("after all left: %d, %v", g.pending(), g.from)
	}
}

// Validate names every mistake.
func TestValidate(t *testing.T) {
	t.Parallel()
	_, err := Open(Config{MaxStreams: 1, IdleTimeout: time.Second, KeepAlive: time.Second})
	for _, want := range []string{"Conn", "Keys", "Mesh", "Member", "Logger", "MaxStreams", "KeepAlive"} {
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
