package transport

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flynn/noise"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
)

// A tape notes what passes through a connection in one direction.
type tape struct {
	io.ReadWriter
	name string
	out  *strings.Builder
}

func (p tape) Write(b []byte) (int, error) {
	fmt.Fprintf(p.out, "%s %x\n", p.name, b)
	return p.ReadWriter.Write(b)
}

// shakes runs both sides of a handshake over a pipe, from fixed randomness.
func shakes(t *testing.T, aes bool, h hello, psk []byte) (a, b *records, story string) {
	t.Helper()
	ca, cb := net.Pipe()
	ka, kb := testKeys(1), testKeys(2)
	admission, err := ka.Admit(testMesh, kb.Public(), 2)
	if err != nil {
		t.Fatal(err)
	}
	side := func(k *identity.Keys, seed byte, chain []byte) shake {
		return shake{
			keys:     k,
			self:     encodeParty(testMesh, 1, k.Certificate(identity.ForNoise), chain),
			exporter: bytes.Repeat([]byte{7}, exporterBytes),
			aes:      aes,
			random:   rand.NewChaCha8([32]byte{seed}),
		}
	}
	var out strings.Builder
	sa, sb := side(ka, 1, nil), side(kb, 2, identity.EncodeAdmissions([]identity.Admission{admission}))
	sa.hello, sa.psk = h, psk
	type result struct {
		who party
		h   hello
		rec *records
		err error
	}
	done := make(chan result, 1)
	go func() {
		who, h, rec, err := sb.respond(tape{cb, "<", &out}, func(string) []byte { return psk },
			func(hello, party) error { return nil })
		done <- result{who, h, rec, err}
	}()
	who, a, err := sa.initiate(tape{ca, ">", &out}, func(party) error { return nil })
	r := <-done
	if err != nil || r.err != nil {
		t.Fatal(err, r.err)
	}
	if !who.cert.Node.Equal(kb.Public()) || who.mesh != testMesh || len(who.admissions) != 1 ||
		!r.who.cert.Node.Equal(ka.Public()) || r.h != h {
		t.Errorf("the sides know each other as %v and %v, %v", who, r.who, r.h)
	}
	return a, r.rec, out.String()
}

// Handshakes and the first record are pinned, byte by byte.
func TestGoldenHandshakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		aes bool
		h   hello
		psk []byte
	}{
		"xx-aesgcm":     {true, hello{pattern: patternXX}, nil},
		"xx-chacha":     {false, hello{pattern: patternXX}, nil},
		"xxpsk3-aesgcm": {true, hello{patternJoin, "token"}, bytes.Repeat([]byte{5}, 32)},
	} {
		a, b, story := shakes(t, c.aes, c.h, c.psk)
		var out strings.Builder
		go func() { // net.Pipe waits for the reader
			b.w = tape{b.w.(io.ReadWriter), "<", &out}
			b.Write(appendFrame(nil, ctlAccept, []byte{1, 0}))
		}()
		if err := accepted(a); err != nil {
			t.Error(err)
		}
		kit.Golden(t, "handshake-"+name+".txt", story+out.String())
	}
	kit.Golden(t, "frame.hex", hex.EncodeToString(appendFrame(nil, 7, []byte("payload")))+"\n")
}

// Records are rekeyed by count and by time in lockstep, in each direction, and
// a side that does not follow is found out.
func TestRekey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := shakes(t, true, hello{}, nil)
		turn := func(from, to *records, msg string) {
			t.Helper()
			go from.Write([]byte(msg))
			got := make([]byte, len(msg))
			if _, err := io.ReadFull(to, got); err != nil || string(got) != msg {
				t.Fatalf("got %q, %v; want %q", got, err, msg)
			}
			synctest.Wait()
		}
		turn(a, b, "one")
		turn(b, a, "two")
		a.sent, b.got = rekeyMessages-2, rekeyMessages-2 // as after many messages
		turn(a, b, "last but one under the first key")
		turn(a, b, "last under the first key")
		if a.sent != 0 || b.got != 0 {
			t.Errorf("not rekeyed: %d sent, %d got", a.sent, b.got)
		}
		turn(a, b, "first under the second key")
		turn(b, a, "the other direction is not touched")
		time.Sleep(rekeyInterval)
		before := b.send.UnsafeKey()
		turn(b, a, "an hour later")
		if b.send.UnsafeKey() == before || b.send.UnsafeKey() != a.recv.UnsafeKey() {
			t.Error("not rekeyed after an hour")
		}
		turn(b, a, "and on")
		b.got = rekeyMessages
		go a.Write([]byte("too many under one key"))
		_, err := b.Read(make([]byte, 1))
		wantRefused(t, err, Malformed)
	})
}

// Frames survive; what is too large or cut short is an error.
func TestFrames(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 3 << 20, MaxFrame} {
		var b bytes.Buffer
		want := bytes.Repeat([]byte{byte(size), 1}, size/2+1)[:size]
		if err := WriteFrame(&b, 9, want); err != nil {
			t.Fatal(err)
		}
		typ, got, err := ReadFrame(&b)
		if typ != 9 || !bytes.Equal(got, want) || err != nil {
			t.Errorf("frame of %d bytes: type %d, %d bytes, %v", size, typ, len(got), err)
		}
	}
	if err := WriteFrame(io.Discard, 1, make([]byte, MaxFrame+1)); !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("write of a large frame: %v", err)
	}
	whole := appendFrame(nil, 1, []byte("hello"))
	for n := range whole {
		_, _, err := ReadFrame(bytes.NewReader(whole[:n]))
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if err != want {
			t.Errorf("first %d bytes: %v, want %v", n, err, want)
		}
	}
	if _, _, err := ReadFrameMax(bytes.NewReader(whole), 4); !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("over the reader's own bound: %v", err)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, 1, []byte("hello")))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, payload, err := ReadFrame(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, appendFrame(nil, typ, payload)) {
			t.Errorf("%x was read as something else", b)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{pattern: patternXX}.encode())
	f.Add(hello{patternJoin, "token"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHello(b); err == nil && !bytes.Equal(h.encode(), b) {
			t.Errorf("%x was read as something else", b)
		}
	})
}

func FuzzParty(f *testing.F) {
	ka, kb := testKeys(1), testKeys(2)
	admission, err := ka.Admit(testMesh, kb.Public(), 2)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encodeParty(testMesh, 1, kb.Certificate(identity.ForNoise),
		identity.EncodeAdmissions([]identity.Admission{admission})))
	f.Add(encodeParty(testMesh, 7, kb.Certificate(identity.ForNoise),
		identity.EncodeAdmissions([]identity.Admission{admission})))
	f.Add(encodeParty("", 1, ka.Certificate(identity.ForNoise), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeParty(b)
		if err == nil && !bytes.Equal(encodeParty(p.mesh, p.epoch, p.cert, identity.EncodeAdmissions(p.admissions)), b) {
			t.Errorf("%x was read as something else", b)
		}
	})
}

// A responder fed with anything ends with an error.
func FuzzRespond(f *testing.F) {
	msg := func(b []byte) []byte { return appendMessage(nil, b) }
	f.Add(append(msg(hello{pattern: patternXX}.encode()), msg(goodPoint())...))
	f.Add(append(append(msg(hello{patternJoin, "t"}.encode()), msg(goodPoint())...), msg(make([]byte, 64))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		k := testKeys(1)
		s := shake{keys: k, self: encodeParty(testMesh, 1, k.Certificate(identity.ForNoise), nil), exporter: make([]byte, 32)}
		rw := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), io.Discard}
		if _, _, _, err := s.respond(rw, func(string) []byte { return unknownPSK() },
			func(hello, party) error { return nil }); err == nil {
			t.Errorf("%x passed for a handshake", b)
		}
	})
}

// A control channel fed with anything ends with an error.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{0, 17, 1, 2, 3})
	f.Add(make([]byte, 200))
	f.Fuzz(func(t *testing.T, b []byte) {
		cs := noise.UnsafeNewCipherState(suiteAES, [32]byte{1}, 0)
		rec := newRecords(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), io.Discard}, cs, cs)
		if _, _, err := ReadFrame(rec); err == nil {
			t.Errorf("%x passed for a record", b)
		}
	})
}
