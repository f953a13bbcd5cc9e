package consensus

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/kit"
)

func sampleEntries() []raft.Log {
	return []raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("configuration")},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 0x0102030405060708, Term: 9, Type: raft.LogCommand, Data: []byte("batch"), Extensions: []byte("ext"),
			AppendedAt: time.Unix(0, 1_763_700_000_123_456_789)},
	}
}

func TestEntryFormat(t *testing.T) {
	var all []byte
	for _, l := range sampleEntries() {
		b := encodeEntry(nil, &l)
		all = append(all, b...)
		var got raft.Log
		if err := decodeEntry(b, &got); err != nil || !reflect.DeepEqual(got, l) {
			t.Errorf("%+v, %v; want %+v", got, err, l)
		}
		for i := range b {
			b[i] ^= 0x40
			if decodeEntry(b, &got) == nil {
				t.Errorf("a flipped bit in byte %d was not found", i)
			}
			b[i] ^= 0x40
		}
	}
	kit.Golden(t, "entries.hex", kit.Hex(all))
}

func FuzzEntry(f *testing.F) {
	for _, l := range sampleEntries() {
		f.Add(encodeEntry(nil, &l))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var l raft.Log
		if decodeEntry(b, &l) == nil && !bytes.Equal(encodeEntry(nil, &l), b) {
			t.Errorf("%x decodes to what encodes differently", b)
		}
	})
}

func sampleMessages() []*message {
	return []*message{
		{kind: kindRequest, id: 1, op: opPropose, hops: 3, wait: 5 * time.Second, body: []byte("batch")},
		{kind: kindRequest, id: 2, op: opReadIndex, hops: 0, wait: time.Millisecond, body: []byte{}},
		{kind: kindResponse, id: 1, status: statusOK, index: 77, body: []byte("result")},
		{kind: kindResponse, id: 2, status: statusNotLeader, body: []byte{}},
		{kind: kindResponse, id: 3, status: statusOK, body: progress{last: 9, applied: 8, writable: true}.encode()},
	}
}

func TestMessageFormat(t *testing.T) {
	var all []byte
	for _, m := range sampleMessages() {
		all = appendMessage(all, m)
	}
	kit.Golden(t, "messages.hex", kit.Hex(all))
	r := bytes.NewReader(all)
	for _, want := range sampleMessages() {
		if got, err := readMessage(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := readMessage(r); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range sampleMessages() {
		f.Add(appendMessage(nil, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readMessage(bytes.NewReader(b))
		if err != nil {
			return
		}
		if out := appendMessage(nil, m); !bytes.Equal(out, b[:len(out)]) {
			t.Errorf("%x was read as %+v", b, m)
		}
		_, _ = decodeProgress(m.body)
	})
}

func TestHelloFormat(t *testing.T) {
	var b bytes.Buffer
	if err := writeHello(&b, "aa/one", "bb/two"); err != nil {
		t.Fatal(err)
	}
	kit.Golden(t, "hello.hex", kit.Hex(b.Bytes()))
	if to, from, err := readHello(&b); err != nil || to != "aa/one" || from != "bb/two" {
		t.Error(to, from, err)
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte("\x01\x06aa/one\x06bb/two"))
	f.Fuzz(func(t *testing.T, b []byte) {
		to, from, err := readHello(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeHello(&out, to, from); err != nil || !bytes.HasPrefix(b, out.Bytes()) {
			t.Errorf("%x was read as %q %q, %v", b, to, from, err)
		}
	})
}

func sampleConfiguration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{
		{Suffrage: raft.Voter, ID: "aa/one", Address: "aa/one"},
		{Suffrage: raft.Nonvoter, ID: "bb/two", Address: "bb/two"},
	}}
}

// writeSnapshot writes a snapshot and returns its file.
func writeSnapshot(t testing.TB, s *snapshots, index uint64, state []byte) string {
	t.Helper()
	sink, err := s.Create(1, index, 3, sampleConfiguration(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sink.Write(state); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return s.path(sink.ID() + snapSuffix)
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newSnapshots(t testing.TB) *snapshots {
	t.Helper()
	s, err := openSnapshots(vfs.NewMem(), "/snapshots", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshotFormat(t *testing.T) {
	s := newSnapshots(t)
	path := writeSnapshot(t, s, 7, []byte("the state"))
	whole := readFile(t, s.fs, path)
	kit.Golden(t, "snapshot.hex", kit.Hex(whole))
	read := func(b []byte) ([]byte, error) {
		f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		m, r, err := s.Open(snapID(3, 7))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if m.Index != 7 || m.Term != 3 || m.ConfigurationIndex != 2 || !reflect.DeepEqual(m.Configuration,
			sampleConfiguration()) {
			t.Errorf("%+v", m)
		}
		return io.ReadAll(r)
	}
	if got, err := read(whole); err != nil || string(got) != "the state" {
		t.Errorf("%q %v", got, err)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if _, err := read(b); !errors.Is(err, errSnapshot) {
			t.Errorf("a flipped bit in byte %d: %v", i, err)
		}
		if _, err := read(whole[:i]); !errors.Is(err, errSnapshot) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func TestSnapshotsArePruned(t *testing.T) {
	s := newSnapshots(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 100_000) // several chunks
	for i := range uint64(5) {
		writeSnapshot(t, s, 10+i, big)
	}
	dropped, err := s.Create(1, 99, 3, sampleConfiguration(), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dropped.Write(big); err != nil {
		t.Fatal(err)
	}
	if err := dropped.Cancel(); err != nil {
		t.Fatal(err)
	}
	metas, err := s.List()
	if err != nil || len(metas) != keptSnapshots || metas[0].Index != 14 || metas[0].Size != int64(len(big)) {
		t.Fatalf("%+v %v", metas, err)
	}
	_, r, err := s.Open(metas[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func FuzzSnapshot(f *testing.F) {
	s := newSnapshots(f)
	f.Add(readFile(f, s.fs, writeSnapshot(f, s, 7, []byte("the state"))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		if _, err := readSnapHead(r); err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, &snapReader{f: io.NopCloser(r), r: r, sum: sha256.New()})
	})
}
