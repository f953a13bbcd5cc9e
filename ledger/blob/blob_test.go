package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A ring is a few keepers that reach each other through pipes.
type ring struct {
	t    testing.TB
	mu   sync.Mutex // guards down
	down map[identity.NodeID]bool
	k    map[identity.NodeID]*Keeper
	dirs map[identity.NodeID]string
	ids  []identity.NodeID
}

type seat struct {
	r    *ring
	self identity.NodeID
}

func (s seat) Dial(_ context.Context, to identity.NodeID, request []byte) (net.Conn, error) {
	s.r.mu.Lock()
	down := s.r.down[to] || s.r.down[s.self]
	s.r.mu.Unlock()
	if down {
		return nil, errors.New("unreachable")
	}
	a, b := net.Pipe()
	go s.r.k[to].Serve(b, request)
	return a, nil
}

func (s seat) Live() (out []identity.NodeID) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for _, id := range s.r.ids {
		if !s.r.down[id] || id == s.self {
			out = append(out, id)
		}
	}
	return out
}

func newRing(t testing.TB, n int, change ...func(*Config)) *ring {
	t.Helper()
	r := &ring{t: t, down: map[identity.NodeID]bool{}, k: map[identity.NodeID]*Keeper{},
		dirs: map[identity.NodeID]string{}}
	for i := range n {
		id := identity.NodeID(fmt.Sprintf("%032x", i+1))
		dir := t.TempDir()
		cfg := Config{Self: id, Peers: seat{r, id}, Gone: time.Nanosecond, Grace: time.Nanosecond,
			Store: StoreConfig{Reserve: 1}}
		for _, f := range change {
			f(&cfg)
		}
		k, err := Open(dir, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		})
		r.ids, r.k[id], r.dirs[id] = append(r.ids, id), k, dir
	}
	return r
}

func (r *ring) fail(id identity.NodeID, down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down[id] = down
}

func (r *ring) holders(d Digest) (out []identity.NodeID) {
	for _, id := range r.ids {
		if r.k[id].Has(d) {
			out = append(out, id)
		}
	}
	return out
}

// tend lets every keeper that is up look after its blobs once.
func (r *ring) tend(refs ...Reference) {
	for _, id := range (seat{r: r}).Live() {
		r.k[id].Tend(r.t.Context(), refs, true)
	}
}

func put(t testing.TB, k *Keeper, b []byte) Reference {
	t.Helper()
	w, err := k.Create(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	d, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return Reference{Digest: d, Size: int64(len(b))}
}

func read(t testing.TB, k *Keeper, ref Reference) ([]byte, error) {
	t.Helper()
	c, err := k.Read(t.Context(), ref)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return io.ReadAll(c)
}

func content(seed uint64, n int) []byte {
	b, r := make([]byte, n), rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func rot(t testing.TB, dir string, d Digest) {
	t.Helper()
	path := filepath.Join(dir, d.path())
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCommittedBlobOutlivesTheStore(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir, StoreConfig{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	k := &Keeper{Store: s}
	ref := put(t, k, []byte("kept"))
	half, err := s.Create(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.Write([]byte("broke off")); err != nil {
		t.Fatal(err)
	}
	if ref.Digest != sha256.Sum256([]byte("kept")) {
		t.Errorf("named %s", ref.Digest)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("not a blob"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStore(dir, StoreConfig{Reserve: 1}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, b := s.Usage(); n != 1 || b != 4 {
		t.Errorf("%d blobs of %d bytes, want one of 4", n, b)
	}
	f, size, err := s.Open(ref.Digest)
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	defer f.Close()
	if b, _ := io.ReadAll(f); string(b) != "kept" {
		t.Errorf("reads %q", b)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "tmp")); len(left) > 0 {
		t.Errorf("%d files are left in tmp", len(left))
	}
}

func TestBoundsOfAStore(t *testing.T) {
	s, err := OpenStore(t.TempDir(), StoreConfig{MaxBytes: 100, MaxBlob: 60, Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(limit int64, n int) error {
		w, err := s.Create(limit)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write(content(uint64(n), n)); err != nil {
			return err
		}
		_, err = w.Commit()
		return err
	}
	if err := write(10, 11); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the writer's limit: %v", err)
	}
	if err := write(0, 61); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the store's limit of one: %v", err)
	}
	if err := write(0, 50); err != nil {
		t.Error(err)
	}
	if err := write(0, 50); err != nil {
		t.Errorf("the same again: %v", err)
	} else if _, b := s.Usage(); b != 50 {
		t.Errorf("%d bytes in use, want 50", b)
	}
	if err := write(0, 51); !errors.Is(err, ErrFull) {
		t.Errorf("above the bound of all: %v", err)
	}
	if err := write(0, 49); err != nil {
		t.Error(err)
	}
	if n, b := s.Usage(); n != 2 || b != 99 {
		t.Errorf("%d blobs of %d bytes, want 2 of 99", n, b)
	}
	s.cfg.Reserve = 1 << 62
	if err := write(0, 1); !errors.Is(err, ErrFull) {
		t.Errorf("into the reserve of the disk: %v", err)
	}
}

func TestRottenFileIsNeverServed(t *testing.T) {
	r := newRing(t, 1)
	k := r.k[r.ids[0]]
	ref := put(t, k, content(1, 1000))
	rot(t, r.dirs[r.ids[0]], ref.Digest)
	if b, err := read(t, k, ref); !errors.Is(err, ErrMissing) {
		t.Errorf("read %d bytes, %v", len(b), err)
	}
	if k.Has(ref.Digest) {
		t.Error("the node says that it has it")
	}
	if s := k.Stats(); s.Damaged != 1 || s.Rotten != 1 || s.Bytes != 1000 {
		t.Errorf("counted %+v", s)
	}
	if put(t, k, content(1, 1000)); !k.Has(ref.Digest) || k.Stats().Damaged != 0 {
		t.Error("it is not taken again")
	}
}

func TestPlacementMovesLittle(t *testing.T) {
	var nodes []identity.NodeID
	for i := range 10 {
		nodes = append(nodes, identity.NodeID(fmt.Sprintf("%032x", i)))
	}
	load, moved := map[identity.NodeID]int{}, 0
	const blobs = 1000
	for i := range blobs {
		d := Digest(sha256.Sum256(fmt.Append(nil, i)))
		before := Rank(d, nodes)[:3]
		for _, id := range before {
			load[id]++
		}
		shuffled := slices.Clone(nodes[1:])
		slices.Reverse(shuffled)
		after := Rank(d, shuffled)[:3]
		for _, id := range after {
			if !slices.Contains(before, id) {
				moved++
			}
		}
		if !slices.Contains(before, nodes[0]) && !slices.Equal(before, after) {
			t.Fatalf("%s moved from %v to %v though no holder went", d, before, after)
		}
	}
	if moved != load[nodes[0]] {
		t.Errorf("%d copies are made anew, want the %d of the node that went", moved, load[nodes[0]])
	}
	for id, n := range load {
		if n < blobs*3/10/2 || n > blobs*3/10*2 {
			t.Errorf("%s has %d of %d copies", id, n, blobs*3)
		}
	}
}

// An upload is acknowledged when a majority of the copies is synced, and losing
// the node that took it loses nothing.
func TestUploadOutlivesItsNode(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		r := newRing(t, n)
		first := r.k[r.ids[0]]
		b := content(uint64(n), 300_000)
		ref := put(t, first, b)
		p, err := first.Spread(t.Context(), ref.Digest, ref.Size)
		if err != nil {
			t.Fatal(err)
		}
		ref.Hints = p.Holders
		if p.Wanted != min(3, n) || len(p.Holders) < p.Wanted {
			t.Errorf("%d nodes: %d holders of %d wanted", n, len(p.Holders), p.Wanted)
		}
		if n == 1 {
			continue
		}
		r.fail(r.ids[0], true)
		for _, id := range r.ids[1:] {
			if got, err := read(t, r.k[id], ref); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d nodes: %s reads %d bytes, %v", n, id.Short(), len(got), err)
			}
		}
	}
}

func TestTooFewCopiesAreNoUpload(t *testing.T) {
	r := newRing(t, 3)
	k := r.k[r.ids[0]]
	ref := put(t, k, []byte("alone"))
	// They are seen alive, and do not answer.
	for _, id := range r.ids[1:] {
		r.k[id].Store.cfg.MaxBlob = 1
	}
	if p, err := k.Spread(t.Context(), ref.Digest, ref.Size); !errors.Is(err, ErrTooFew) {
		t.Errorf("acknowledged with %v, %v", p, err)
	}
	r.k[r.ids[1]].Store.cfg.MaxBlob = MaxBlob
	if p, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil || len(p.Holders) != 2 {
		t.Errorf("with one peer that takes it: %v, %v", p, err)
	}
}

// Copies that were lost are made again, in the right places; what is there
// besides, and what nothing refers to, goes away.
func TestTending(t *testing.T) {
	r := newRing(t, 5)
	b := content(9, 200_000)
	ref := put(t, r.k[r.ids[0]], b)
	garbage := put(t, r.k[r.ids[0]], []byte("nobody refers to it"))
	if _, err := r.k[r.ids[0]].Spread(t.Context(), ref.Digest, ref.Size); err != nil {
		t.Fatal(err)
	}
	settled := func(what string, nodes []identity.NodeID) {
		t.Helper()
		for range 3 {
			r.tend(ref)
		}
		want := slices.Sorted(slices.Values(Rank(ref.Digest, nodes)[:3]))
		var got []identity.NodeID
		for _, id := range r.holders(ref.Digest) {
			if slices.Contains(nodes, id) {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: held by %v, want %v", what, got, want)
		}
	}
	settled("after the upload", r.ids)
	if got := r.holders(garbage.Digest); len(got) > 0 {
		t.Errorf("what nothing refers to is kept by %v", got)
	}
	gone := Rank(ref.Digest, r.ids)[0]
	r.fail(gone, true)
	settled("after a holder went", slices.DeleteFunc(slices.Clone(r.ids),
		func(id identity.NodeID) bool { return id == gone }))
	r.fail(gone, false)
	settled("after it came back", r.ids)

	rotten := Rank(ref.Digest, r.ids)[1]
	rot(t, r.dirs[rotten], ref.Digest)
	k := r.k[rotten]
	if err := k.Check(ref.Digest); !errors.Is(err, ErrMismatch) {
		t.Error(err)
	}
	k.Tend(t.Context(), []Reference{ref}, true)
	if got, err := os.ReadFile(filepath.Join(r.dirs[rotten], ref.Digest.path())); err != nil || !bytes.Equal(got, b) {
		t.Errorf("the rotten file was not replaced: %d bytes, %v", len(got), err)
	}
	if s := k.Stats(); s.Rotten != 1 || s.Fetched == 0 {
		t.Errorf("counted %+v", s)
	}
	// Nothing is thrown away by a node that may be behind.
	late := put(t, k, []byte("not referred to yet"))
	k.Tend(t.Context(), nil, false)
	if !k.Has(late.Digest) || !k.Has(ref.Digest) {
		t.Error("a node that may be behind threw something away")
	}
}

// A copy that is one too many is kept while one of the others is damaged, which nobody
// has noticed: those that shall have it look at the bytes before it is given up.
func TestSurplusIsNotGivenUpForDamagedCopies(t *testing.T) {
	t.Parallel()
	r := newRing(t, 4)
	ref := put(t, r.k[r.ids[0]], content(11, 3*chunkBytes+77))
	rank := Rank(ref.Digest, r.ids)
	spare := rank[3]
	if spare != r.ids[0] {
		b, err := read(t, r.k[r.ids[0]], ref)
		must(t, err)
		put(t, r.k[spare], b)
	}
	k := r.k[spare]
	if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
		t.Fatal(err)
	}
	for _, id := range rank[:3] {
		rot(t, r.dirs[id], ref.Digest)
	}
	k.Tend(t.Context(), []Reference{ref}, true)
	if !k.Has(ref.Digest) {
		t.Fatal("the last good copy was given up")
	}
	for range 4 { // one damaged copy is found, and made again, at a time
		r.tend(ref)
	}
	if k.Has(ref.Digest) {
		t.Error("it is kept though all others are whole")
	}
	for _, id := range rank[:3] {
		if err := r.k[id].Check(ref.Digest); err != nil {
			t.Errorf("%s: %v", id.Short(), err)
		}
	}
}

// A reader reads ranges through a node that has no copy, and goes on with
// another peer when one breaks off.
func TestReadThrough(t *testing.T) {
	r := newRing(t, 5)
	b := content(4, 1_000_000)
	ref := put(t, r.k[r.ids[0]], b)
	if _, err := r.k[r.ids[0]].Spread(t.Context(), ref.Digest, ref.Size); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.tend(ref)
	}
	var outside identity.NodeID
	for _, id := range r.ids {
		if !r.k[id].Has(ref.Digest) {
			outside = id
		}
	}
	c, err := r.k[outside].Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if size, err := c.Seek(0, io.SeekEnd); size != ref.Size || err != nil {
		t.Fatal(size, err)
	}
	for _, at := range []int64{999_999, 0, 123_456} {
		if _, err := c.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		part := make([]byte, min(70_000, len(b)-int(at)))
		if _, err := io.ReadFull(c, part); err != nil || !bytes.Equal(part, b[at:int(at)+len(part)]) {
			t.Errorf("range at %d: %v", at, err)
		}
	}
	if r.k[outside].Has(ref.Digest) {
		t.Error("reading through left a copy")
	}
	whole, err := r.k[outside].Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	got := make([]byte, 100_000)
	if _, err := io.ReadFull(whole, got); err != nil {
		t.Fatal(err)
	}
	whole.(*remote).conn.Close() // as a node that dies
	rest, err := io.ReadAll(whole)
	if err != nil || !bytes.Equal(append(got, rest...), b) {
		t.Errorf("after a peer broke off: %d bytes, %v", len(got)+len(rest), err)
	}
}

// Bytes that are not the blob's never read as a whole one, even when a peer
// sends them with a good conscience.
func TestLyingPeer(t *testing.T) {
	r := newRing(t, 2)
	liar, reader := r.k[r.ids[0]], r.k[r.ids[1]]
	b := content(5, 500_000)
	ref := put(t, liar, b)
	rot(t, r.dirs[r.ids[0]], ref.Digest)
	sum := newSummer()
	wrong, err := os.ReadFile(filepath.Join(r.dirs[r.ids[0]], ref.Digest.path()))
	must(t, err)
	sum.Write(wrong)
	_, of := sum.done()
	liar.keepSums(ref.Digest, of) // it believes its file
	if got, err := read(t, reader, ref); !errors.Is(err, ErrMismatch) || len(got) >= len(b) {
		t.Errorf("read %d of %d bytes, %v", len(got), len(b), err)
	}
	if err := reader.fetch(t.Context(), ref); !errors.Is(err, ErrMismatch) || reader.Has(ref.Digest) {
		t.Errorf("fetched: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(r.dirs[r.ids[1]], "tmp")); len(left) > 0 {
		t.Errorf("%d files are left in tmp", len(left))
	}
}

func TestRequestFormat(t *testing.T) {
	r := Request{Op: OpGet, Digest: sha256.Sum256(nil), Offset: 1, Length: 2}
	const want = "0101e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85500000000000000010000000000000002"
	if got := fmt.Sprintf("%x", AppendRequest(nil, r)); got != want {
		t.Errorf("encoded %s, want %s", got, want)
	}
}

// Whatever a peer sends, a store neither panics, nor keeps bytes under a name
// that is not theirs, nor takes more than it may.
func FuzzServe(f *testing.F) {
	d := Digest(sha256.Sum256([]byte("abc")))
	f.Add(AppendRequest(nil, Request{Op: OpPut, Digest: d, Length: 3}), []byte("abc"))
	f.Add(AppendRequest(nil, Request{Op: OpPut, Digest: d, Length: 1 << 60}), []byte("abc"))
	f.Add(AppendRequest(nil, Request{Op: OpGet, Digest: d, Offset: 1 << 63, Length: 1}), []byte{})
	f.Add(AppendRequest(nil, Request{Op: OpHas, Digest: d}), []byte{})
	f.Add(AppendRequest(nil, Request{Op: OpCheck, Digest: d}), []byte{})
	f.Add([]byte{1, 2}, []byte{})
	s, err := OpenStore(f.TempDir(), StoreConfig{MaxBytes: 1 << 20, MaxBlob: 1 << 16, Reserve: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, request, body []byte) {
		a, b := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(b, request) }()
		go func() { a.Write(body) }()
		a.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, _ = io.Copy(io.Discard, a)
		a.Close()
		<-done
		if r, err := DecodeRequest(request); err == nil {
			if again := AppendRequest(nil, r); !bytes.Equal(again, request) {
				t.Fatalf("%x decodes to %+v, which encodes to %x", request, r, again)
			}
		}
		for _, d := range s.List() {
			if err := s.Check(d); err != nil {
				t.Fatal(err)
			}
			s.Remove(d, time.Now())
		}
		if _, used := s.Usage(); used != 0 {
			t.Fatalf("%d bytes are in use by nothing", used)
		}
	})
}
