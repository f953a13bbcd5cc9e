package discovery

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kit"
)

func testMeta() Meta {
	m := Meta{
		Mesh: testMesh, Node: "0123456789abcdeffedcba9876543210", Leaving: true,
		Incarnation: "1f3a", HTTP: "192.0.2.7:3100", Role: "voter", Zone: "attic", Name: "mill-1", MeshName: "acme",
	}
	for i := range m.Capabilities {
		m.Capabilities[i] = byte(i)
	}
	return m
}

func TestMetaFormat(t *testing.T) {
	t.Parallel()
	want := testMeta()
	b, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "meta.hex", hex.Dump(b))
	for name, b := range map[string][]byte{
		"as written": b, "with a later field": append(bytes.Clone(b), "later"...),
	} {
		var got Meta
		if err := got.UnmarshalBinary(b); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, want)
		}
	}
	if got := want.ServerID(); got != "0123456789abcdeffedcba9876543210/1f3a" {
		t.Errorf("server ID %q", got)
	}
	for n := range b {
		var m Meta
		if err := m.UnmarshalBinary(b[:n]); !errors.Is(err, ErrMeta) || m != (Meta{}) {
			t.Errorf("%d bytes of %d: got %+v, %v", n, len(b), m, err)
		}
	}
	old := len(b)
	want.Program = "1.4.0-3-g0123456"
	if b, err = want.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "meta-program.hex", hex.Dump(b))
	var got Meta
	if err := got.UnmarshalBinary(b); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := got.UnmarshalBinary(b[:len(b)-1]); err != nil || got.Program != "" {
		t.Errorf("half of a version: %+v, %v", got, err)
	}
	if err := got.UnmarshalBinary(b[:old]); err != nil || got.Program != "" || got.MeshName != want.MeshName {
		t.Errorf("from a node that does not tell its version: %+v, %v", got, err)
	}
	want.Program, want.Level = "", 2
	if b, err = want.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "meta-level.hex", hex.Dump(b))
	if err := got.UnmarshalBinary(b); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	b[0] = 2
	if err := new(Meta).UnmarshalBinary(b); !errors.Is(err, ErrMeta) {
		t.Errorf("version 2: %v", err)
	}
}

func TestMetaTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	fits := Meta{Mesh: testMesh, Node: testID(0), Name: strings.Repeat("n", 255), Zone: strings.Repeat("z", 255-70)}
	b, err := fits.MarshalBinary()
	if err != nil || len(b) != MaxMeta {
		t.Errorf("%d bytes, %v, want %d", len(b), err, MaxMeta)
	}
	over := fits
	over.Role = "x"
	if _, err := over.MarshalBinary(); !errors.Is(err, ErrMetaTooLarge) {
		t.Errorf("one more byte: %v", err)
	}
	long := Meta{Mesh: testMesh, Node: testID(0), Name: strings.Repeat("n", 256)}
	if _, err := long.MarshalBinary(); !errors.Is(err, ErrMetaTooLarge) || !strings.Contains(err.Error(), "name has 256") {
		t.Errorf("long name: %v", err)
	}
	if _, err := (Meta{Mesh: "ab", Node: testID(0)}).MarshalBinary(); !errors.Is(err, ErrMeta) {
		t.Errorf("short mesh ID: %v", err)
	}
	inMesh(t, 1, func(m *mesh) {
		another := fits
		another.Node = testID(5)
		if err := m.nodes[0].SetMeta(another); !errors.Is(err, ErrMeta) {
			t.Errorf("another node's: %v", err)
		}
		if err := m.nodes[0].SetMeta(over); !errors.Is(err, ErrMetaTooLarge) {
			t.Errorf("SetMeta took it: %v", err)
		}
		if got := m.nodes[0].Self().Meta.Name; got != "n0" {
			t.Errorf("a refused change left %q", got)
		}
	})
}

func FuzzMeta(f *testing.F) {
	b, _ := testMeta().MarshalBinary()
	f.Add(b)
	told := testMeta()
	told.Program = "1.4.0"
	b, _ = told.MarshalBinary()
	f.Add(b)
	f.Add(b[:metaFixed])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Meta
		if m.UnmarshalBinary(b) != nil {
			return
		}
		out, err := m.MarshalBinary()
		if err != nil {
			t.Fatalf("read but can not be written: %v", err)
		}
		if err := again.UnmarshalBinary(out); err != nil || again != m {
			t.Fatalf("got %+v, %v, want %+v", again, err, m)
		}
	})
}

func testCache() peerCache {
	c := peerCache{}
	at := time.Unix(1_795_000_000, 0).UTC()
	c.learn(testID(0), netip.MustParseAddrPort("192.0.2.1:9470"), at)
	c.learn(testID(1), netip.MustParseAddrPort("[2001:db8::7]:9470"), at.Add(time.Minute))
	c.learn(testID(0), netip.MustParseAddrPort("192.0.2.9:9500"), at.Add(time.Hour))
	return c
}

func TestPeerCacheFormat(t *testing.T) {
	t.Parallel()
	c := testCache()
	b := c.encode(testMesh)
	kit.Golden(t, "peers.txt", string(b))
	if got, skipped := decodeCache(b, testMesh); skipped != 0 || !reflect.DeepEqual(got, c) {
		t.Errorf("got %v, %d skipped, want %v", got, skipped, c)
	}
	if got, _ := decodeCache(b, "ffffffffffffffffffffffffffffffff"); len(got) != 0 {
		t.Errorf("another mesh reads %v", got)
	}
	bad := strings.Replace(string(b), "192.0.2.9:9500", "0.0.0.0:9500", 1)
	if got, skipped := decodeCache([]byte(bad), testMesh); skipped != 1 || len(got) != 1 {
		t.Errorf("one bad line: got %v, %d skipped", got, skipped)
	}
}

func TestPeerCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := peerCache{}
	at := time.Unix(1_795_000_000, 0).UTC()
	for i := range 2 * maxCachedPeers {
		for port := range 5 {
			// The longest address there is.
			a := netip.MustParseAddrPort(fmt.Sprintf("[2001:1111:2222:3333:4444:5555:6666:7777]:%d", 60000+port))
			c.learn(testID(i), a, at.Add(time.Duration(i)*time.Second))
		}
	}
	if len(c) != maxCachedPeers || len(c[testID(2*maxCachedPeers-1)].Addrs) != maxCachedAddresses {
		t.Errorf("%d peers", len(c))
	}
	if _, old := c[testID(0)]; old {
		t.Error("the oldest was kept")
	}
	if b := c.encode(testMesh); len(b) > maxCacheBytes {
		t.Errorf("%d bytes, more than are read", len(b))
	} else if got, skipped := decodeCache(b, testMesh); skipped != 0 || len(got) != len(c) {
		t.Errorf("%d of %d read, %d skipped", len(got), len(c), skipped)
	}
}

func FuzzPeerCache(f *testing.F) {
	f.Add(testCache().encode(testMesh))
	f.Add([]byte("selvage peers 1 " + string(testMesh) + "\nx\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _ := decodeCache(b, testMesh)
		if len(c) > maxCachedPeers {
			t.Fatalf("%d peers", len(c))
		}
		got, skipped := decodeCache(c.encode(testMesh), testMesh)
		if skipped != 0 || !reflect.DeepEqual(got, c) {
			t.Fatalf("got %v, %d skipped, want %v", got, skipped, c)
		}
	})
}

func TestKeyring(t *testing.T) {
	t.Parallel()
	k, err := newKeyring([]Key{testKey(1)})
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name string
		do   func() error
		ok   bool
		want []uint64
	}{
		{"use what is not there", func() error { return k.use(2) }, false, []uint64{1}},
		{"add", func() error { return k.add(testKey(2)) }, true, []uint64{1, 2}},
		{"add again", func() error { return k.add(testKey(2)) }, true, []uint64{1, 2}},
		{"add the epoch with another key", func() error { return k.add(Key{Epoch: 2}) }, false, []uint64{1, 2}},
		{"add the key as another epoch", func() error { return k.add(Key{5, testKey(2).Key}) }, false, []uint64{1, 2}},
		{"remove what is used", func() error { return k.remove(1) }, false, []uint64{1, 2}},
		{"use", func() error { return k.use(2) }, true, []uint64{2, 1}},
		{"add a third", func() error { return k.add(testKey(3)) }, true, []uint64{2, 1, 3}},
		{"add a fourth", func() error { return k.add(testKey(4)) }, false, []uint64{2, 1, 3}},
		{"remove", func() error { return k.remove(1) }, true, []uint64{2, 3}},
		{"remove again", func() error { return k.remove(1) }, true, []uint64{2, 3}},
	}
	for _, s := range steps {
		if err := s.do(); (err == nil) != s.ok || err != nil && !errors.Is(err, ErrKeys) {
			t.Errorf("%s: %v", s.name, err)
		}
		if got := fmt.Sprint(k.epochs()); got != fmt.Sprint(s.want) {
			t.Errorf("%s: epochs %v, want %v", s.name, got, s.want)
		}
		// memberlist holds the same keys, the one in use first.
		var held []string
		for _, key := range k.ring.GetKeys() {
			held = append(held, fmt.Sprint(key[0]))
		}
		if len(held) != len(s.want) || held[0] != fmt.Sprint(s.want[0]) {
			t.Errorf("%s: memberlist holds %v, want %v", s.name, held, s.want)
		}
	}
	for _, keys := range [][]Key{nil, {testKey(1), testKey(2), testKey(3), testKey(4)}} {
		if _, err := newKeyring(keys); !errors.Is(err, ErrKeys) {
			t.Errorf("%d keys: %v", len(keys), err)
		}
	}
}

// Packets are opened while keys come and go: run with -race.
func TestKeyringWhileInUse(t *testing.T) {
	t.Parallel()
	k, err := newKeyring([]Key{testKey(1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for epoch := uint64(2); epoch < 200; epoch++ {
			if err := errors.Join(k.add(testKey(epoch)), k.use(epoch), k.remove(epoch-1)); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			k.opens(make([]byte, 100))
			for _, key := range k.ring.GetKeys() {
				if len(key) != 32 {
					t.Error("no key")
				}
			}
		}
	}
}

func FuzzOpens(f *testing.F) {
	k, err := newKeyring([]Key{testKey(1)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{1})
	f.Add(bytes.Repeat([]byte{1}, 29))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k.opens(b) {
			t.Error("it opens without the key")
		}
	})
}
