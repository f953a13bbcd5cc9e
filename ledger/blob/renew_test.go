package blob

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A node that loses its files while it works gets them back from the others: all,
// when the directory is gone or is another one, and single ones that were deleted.
func TestLostFilesComeBack(t *testing.T) {
	r := newRing(t, 3) // each shall have every blob
	k, dir := r.k[r.ids[0]], r.dirs[r.ids[0]]
	var refs []Reference
	for n := range 5 {
		ref := put(t, k, content(uint64(n), 50_000))
		if _, err := k.Spread(t.Context(), ref.Digest, ref.Size); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	back := func(what string) {
		t.Helper()
		k.Tend(t.Context(), refs, true)
		for n, ref := range refs {
			got, err := os.ReadFile(filepath.Join(dir, ref.Digest.path()))
			if err != nil || !bytes.Equal(got, content(uint64(n), 50_000)) || !k.Has(ref.Digest) {
				t.Errorf("%s: blob %d is not back: %d bytes, %v", what, n, len(got), err)
			}
		}
		if _, used := k.Usage(); used != 5*50_000 {
			t.Errorf("%s: %d bytes are counted, want %d", what, used, 5*50_000)
		}
		late := put(t, k, fmt.Append(nil, "written after ", what))
		if !k.Remove(late.Digest, tomorrow()) {
			t.Errorf("%s: what was written then can not be removed", what)
		}
	}
	if err := os.Remove(filepath.Join(dir, refs[3].Digest.path())); err != nil {
		t.Fatal(err)
	}
	back("one file was deleted")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	back("the directory was deleted")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	back("the directory is another one")
	if lost, err := k.Renew(); lost != 0 || err != nil {
		t.Errorf("with all there %d are lost, %v", lost, err)
	}
	if s := k.Stats(); s.Fetched != 11 {
		t.Errorf("fetched %d blobs, want 11", s.Fetched)
	}
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }
