package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/identity"
)

// damage is what a disk does to a file.
var damages = []struct {
	name string
	do   func(t testing.TB, path string, at int64)
}{
	{"flip", func(t testing.TB, path string, at int64) {
		patchFile(t, path, at, func(b byte) byte { return b ^ 1 }, 1)
	}},
	{"zero", func(t testing.TB, path string, at int64) {
		patchFile(t, path, at&^4095, func(byte) byte { return 0 }, 4096)
	}},
	{"cut", func(t testing.TB, path string, at int64) { must(t, os.Truncate(path, at)) }},
	{"delete", func(t testing.TB, path string, _ int64) { must(t, os.Remove(path)) }},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patchFile changes n bytes of a file in place, as a disk does, or as many as it has.
func patchFile(t testing.TB, path string, at int64, change func(byte) byte, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, n)
	n, err = f.ReadAt(b, at)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for i := range b[:n] {
		b[i] = change(b[i])
	}
	_, err = f.WriteAt(b[:n], at)
	must(t, err)
}

// sizes are those around which a blob is kept otherwise.
var sizes = []int{1, chunkBytes, chunkBytes + 1, 3*chunkBytes + 77}

// A file that is damaged under a running node, which has just hashed it, is read
// from the first to the last byte and in ranges as it was, from three nodes, and its
// copy on the disk is mended by that.
func TestDamagedCopyIsMendedBeforeAByteOfItIsRead(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		for _, damage := range damages {
			for _, at := range []int64{0, int64(size) - 1} {
				t.Run(fmt.Sprintf("%d/%s at %d", size, damage.name, at), func(t *testing.T) {
					r := newRing(t, 3)
					k, path := r.k[r.ids[0]], ""
					b := content(uint64(size), size)
					ref := put(t, k, b)
					if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
						t.Fatal(err)
					}
					path = filepath.Join(r.dirs[r.ids[0]], ref.Digest.path())
					before, err := k.Read(t.Context(), ref) // is open while the file is damaged
					must(t, err)
					defer before.Close()
					damage.do(t, path, at)
					for name, c := range map[string]func() (Content, error){
						"opened before": func() (Content, error) { return before, nil },
						"opened after":  func() (Content, error) { return k.Read(t.Context(), ref) },
					} {
						c, err := c()
						must(t, err)
						if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, b) {
							t.Errorf("%s: read %d of %d bytes, %v", name, len(got), size, err)
						}
						from := at / 2
						_, err = c.Seek(from, io.SeekStart)
						must(t, err)
						part := make([]byte, min(100, int64(size)-from))
						if _, err := io.ReadFull(c, part); err != nil || !bytes.Equal(part, b[from:from+int64(len(part))]) {
							t.Errorf("%s: range at %d: %v", name, from, err)
						}
						c.Close()
					}
					k.Tend(t.Context(), []Reference{ref}, true)
					if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b) {
						t.Errorf("the file has %d bytes and is not mended: %v", len(got), err)
					}
				})
			}
		}
	}
}

// Where there is no good copy, an error is read and never a byte that is not the
// blob's; a copy that comes back makes it whole again.
func TestDamageWithoutAGoodCopyIsAnError(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		for _, damage := range damages {
			t.Run(fmt.Sprintf("%d/%s", size, damage.name), func(t *testing.T) {
				r := newRing(t, 2)
				k := r.k[r.ids[0]]
				b := content(uint64(size), size)
				ref := put(t, k, b)
				if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
					t.Fatal(err)
				}
				r.fail(r.ids[1], true)
				damage.do(t, filepath.Join(r.dirs[r.ids[0]], ref.Digest.path()), int64(size)-1)
				got, err := read(t, k, ref)
				if err == nil || !bytes.HasPrefix(b, got) || len(got) == len(b) {
					t.Errorf("read %d of %d bytes, %v", len(got), size, err)
				}
				if !errors.Is(err, ErrMissing) {
					t.Errorf("the error is %v", err)
				}
				if got, err := read(t, k, ref); len(got) > 0 || !errors.Is(err, ErrMissing) {
					t.Errorf("again: read %d bytes, %v", len(got), err)
				}
				if k.Has(ref.Digest) {
					t.Error("the node says that it has it")
				}
				r.fail(r.ids[1], false)
				if got, err := read(t, k, ref); err != nil || !bytes.Equal(got, b) {
					t.Errorf("with the other node back: %d bytes, %v", len(got), err)
				}
				k.Tend(t.Context(), []Reference{ref}, true)
				if err := k.Check(ref.Digest); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// What goes to a peer is hashed too: one whose copy rotted gives nothing wrong, and
// mends it.
func TestRottenCopyIsNotGivenToAPeer(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			r := newRing(t, 4)
			b := content(uint64(size), size)
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
			sources := r.k[outside].sources(ref)
			patchFile(t, filepath.Join(r.dirs[sources[0]], ref.Digest.path()), int64(size-1),
				func(b byte) byte { return b ^ 1 }, 1)
			c, err := r.k[outside].Read(t.Context(), ref)
			must(t, err)
			defer c.Close()
			if _, err := c.Seek(int64(size)/2, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, b[size/2:]) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			for _, id := range r.ids {
				r.k[id].Tend(t.Context(), []Reference{ref}, true)
			}
			r.k[sources[0]].wg.Wait()
			if err := r.k[sources[0]].Check(ref.Digest); err != nil {
				t.Error(err)
			}
		})
	}
}

// A scrub finds what nobody has read, and mends it where there is a good copy.
func TestScrubMendsBlobs(t *testing.T) {
	t.Parallel()
	r := newRing(t, 2)
	k, dir := r.k[r.ids[0]], r.dirs[r.ids[0]]
	var refs []Reference
	var bytesOfAll int64
	for i, size := range sizes {
		ref := put(t, k, content(uint64(i), size))
		if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
		bytesOfAll += ref.Size
	}
	scrub := func() (read int64, found map[Digest]error) {
		t.Helper()
		found = map[Digest]error{}
		err := k.Scrub(t.Context(), func(n, _ int64) error { read += n; return nil }, func(d Digest,
			err error) {
			found[d] = err
		})
		must(t, err)
		return read, found
	}
	if read, found := scrub(); read != bytesOfAll || len(found) > 0 {
		t.Errorf("of blobs that are whole: read %d of %d, found %v", read, bytesOfAll, found)
	}
	for _, damage := range damages[:3] { // one that is gone is noticed by Tend
		for _, ref := range refs {
			damage.do(t, filepath.Join(dir, ref.Digest.path()), ref.Size-1)
		}
		if _, found := scrub(); len(found) != len(refs) {
			t.Errorf("%s: found %v", damage.name, found)
		} else {
			for d, err := range found {
				if err != nil || k.Check(d) != nil {
					t.Errorf("%s: %s is not mended: %v", damage.name, d, err)
				}
			}
		}
	}
	for _, ref := range refs { // the sums alone
		if path := filepath.Join(dir, ref.Digest.path()) + sumsSuffix; ref.Size > chunkBytes {
			patchFile(t, path, 100, func(b byte) byte { return b ^ 1 }, 1)
			if _, found := scrub(); len(found) > 0 {
				t.Errorf("sums: found %v", found)
			}
			if _, err := k.readSums(ref.Digest); err != nil {
				t.Errorf("sums: not made again: %v", err)
			}
		}
	}
	r.fail(r.ids[1], true)
	damages[0].do(t, filepath.Join(dir, refs[0].Digest.path()), 0)
	if _, found := scrub(); len(found) != 1 || !errors.Is(found[refs[0].Digest], ErrMissing) {
		t.Errorf("without a good copy: found %v", found)
	}
}

// What the sums cost: reading a blob from the first to the last byte. The small one
// says what a reader of many small files feels.
func BenchmarkRead(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			r := newRing(b, 1)
			k := r.k[r.ids[0]]
			ref := put(b, k, content(uint64(size), size))
			b.SetBytes(int64(size))
			buf := make([]byte, 32<<10)
			for b.Loop() {
				c, err := k.Read(b.Context(), ref)
				must(b, err)
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, c, buf); err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}

// BenchmarkWrite is an upload's way to the disk, with its sync.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			r := newRing(b, 1)
			k := r.k[r.ids[0]]
			data := content(uint64(size), size)
			b.SetBytes(int64(size))
			for b.Loop() {
				put(b, k, data)
			}
		})
	}
}

// Many readers at once of a damaged blob all get it as it was; it is brought once.
func TestManyReadersOfADamagedBlob(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		r := newRing(t, 2)
		k := r.k[r.ids[0]]
		b := content(uint64(size), size)
		ref := put(t, k, b)
		if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
			t.Fatal(err)
		}
		damages[0].do(t, filepath.Join(r.dirs[r.ids[0]], ref.Digest.path()), int64(size)-1)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if got, err := read(t, k, ref); err != nil || !bytes.Equal(got, b) {
					t.Errorf("of %d bytes read %d, %v", size, len(got), err)
				}
			})
		}
		wg.Wait()
		if err := k.Check(ref.Digest); err != nil {
			t.Error(err)
		}
	}
}

// The file of sums is as it was: these are of two chunks, one of zeros and one byte.
func TestSumsFormat(t *testing.T) {
	sum := newSummer()
	sum.Write(make([]byte, chunkBytes+1))
	d, of := sum.done()
	b := of.encode(d)
	if got, want := fmt.Sprintf("%x", sha256.Sum256(b)),
		"d6672df1ec206e385016e605dac9f49ad82f6e5a0b977510c486d64c65c38de9"; got != want {
		t.Errorf("encoded %x with sum %s, want %s", b, got, want)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		if _, err := decodeSums(d, bad); err == nil {
			t.Errorf("a bit of byte %d flipped is not found", i)
		}
	}
}

// Whatever a disk gives, decoding neither panics nor takes what does not add up.
func FuzzSums(f *testing.F) {
	sum := newSummer()
	sum.Write(make([]byte, chunkBytes+1))
	d, of := sum.done()
	f.Add(of.encode(d))
	f.Add([]byte(sumsHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeSums(d, b)
		if err == nil && !bytes.Equal(got.encode(d), b) {
			t.Errorf("%x does not survive", b)
		}
	})
}
