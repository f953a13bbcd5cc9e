package runlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, cfg Config) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func create(t *testing.T, s *Store, ref string) *Writer {
	t.Helper()
	w, err := s.Create(ref)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A growing log is read in pieces; together they equal the file, and the file's hash equals
// the one in the closing command.
func TestALogIsReadWhileItGrows(t *testing.T) {
	s, dir := open(t, Config{})
	ref := Ref("c", "a", "r")
	if _, err := s.Read(ref, 0, 0); !errors.Is(err, ErrNoLog) {
		t.Fatalf("before the run: %v", err)
	}
	w := create(t, s, ref)
	var got []byte
	for _, text := range []string{"one\n", "zwei ü \xff\n", strings.Repeat("x", 3*maxChunk)} {
		w.Write("stdout", text)
		for {
			c, err := s.Read(ref, int64(len(got)), 1000)
			if err != nil || !c.Growing {
				t.Fatalf("growing %v, %v", c.Growing, err)
			}
			if got = append(got, c.Content...); len(c.Content) == 0 {
				break
			}
		}
	}
	d, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	file, _ := os.ReadFile(filepath.Join(dir, ref))
	sum := sha256.Sum256(file)
	if !bytes.Equal(got, file) || d.SHA256 != hex.EncodeToString(sum[:]) || d.Bytes != int64(len(file)) || d.Seq != 5 {
		t.Errorf("digest %+v of %d bytes, read %d", d, len(file), len(got))
	}
	var text strings.Builder
	for l := range bytes.Lines(file) {
		var e line
		if err := json.Unmarshal(l, &e); err != nil {
			t.Fatal(err)
		}
		text.WriteString(e.Chunk)
	}
	if want := "one\nzwei ü \uFFFD\n" + strings.Repeat("x", 3*maxChunk); text.String() != want {
		t.Errorf("text of %d bytes, want %d", text.Len(), len(want))
	}
	if c, _ := s.Read(ref, 0, 0); c.Growing {
		t.Error("a closed log grows")
	}
}

func TestALogIsCutAtItsLimitAndSaysSo(t *testing.T) {
	s, dir := open(t, Config{MaxBytes: 8 << 10})
	w := create(t, s, Ref("c", "a", "r"))
	for range 1000 {
		w.Write("stderr", strings.Repeat("y", 100))
	}
	d, err := w.Close()
	if err != nil || !d.Cut || d.Bytes > 8<<10 {
		t.Errorf("digest %+v, %v", d, err)
	}
	file, _ := os.ReadFile(filepath.Join(dir, Ref("c", "a", "r")))
	if n := bytes.Count(file, []byte("reached its limit of 8192 bytes")); n != 1 || !bytes.HasSuffix(file, []byte("\n")) {
		t.Errorf("%d markers", n)
	}
}

func TestOnlyReferencesAreRead(t *testing.T) {
	s, dir := open(t, Config{})
	if err := os.WriteFile(filepath.Join(dir, "..", "secret.ndjson"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"", "x", "../secret.ndjson", "a/../secret.ndjson", "/etc/passwd",
		"c/a/../../../secret.ndjson", "c/a/r"} {
		if _, err := s.Read(ref, 0, 0); !errors.Is(err, ErrNoLog) {
			t.Errorf("%q: %v", ref, err)
		}
		if _, err := s.Create(ref); err == nil {
			t.Errorf("%q was created", ref)
		}
	}
}

func TestRetentionKeepsTheNewestAndWhatGrows(t *testing.T) {
	s, dir := open(t, Config{KeepBytes: 200, KeepFor: time.Hour})
	now := time.Now()
	for i, run := range []string{"old", "first", "second", "third", "growing"} {
		w := create(t, s, Ref("c", "a", run))
		w.Write("stdout", "0123456789")
		if run != "growing" {
			w.Close()
		}
		at := now.Add(time.Duration(i) * time.Minute).Add(-10 * time.Minute)
		if run == "old" || run == "growing" {
			at = now.Add(-2 * time.Hour)
		}
		if err := os.Chtimes(filepath.Join(dir, Ref("c", "a", run)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Prune(now, &Keep{For: 24 * time.Hour, Bytes: 1 << 40}); n != 3 ||
		err != nil { // not above its own configuration
		t.Errorf("removed %d, %v", n, err)
	}
	for run, want := range map[string]bool{"old": false, "first": false, "second": false, "third": true, "growing": true} {
		if _, err := s.Read(Ref("c", "a", run), 0, 0); (err == nil) != want {
			t.Errorf("%s: %v", run, err)
		}
	}
	if n, err := s.Prune(now, nil); n != 0 || err != nil { // within its own bounds
		t.Errorf("removed %d, %v", n, err)
	}
	if n, err := s.Prune(now, &Keep{For: time.Minute, Bytes: 1 << 40}); n != 1 ||
		err != nil { // what the mesh keeps for less time goes here too
		t.Errorf("removed %d, %v", n, err)
	}
	// A mesh that keeps none leaves none here, but what grows.
	for i, most := range []*Keep{{Bytes: 1 << 40}, {For: time.Hour}} {
		ref := Ref("c", "a", fmt.Sprint("none", i))
		w := create(t, s, ref)
		w.Write("stdout", "0123456789")
		w.Close()
		if n, err := s.Prune(now.Add(time.Minute), most); n != 1 || err != nil {
			t.Errorf("removed %d, %v", n, err)
		}
		if _, err := s.Read(ref, 0, 0); err == nil {
			t.Errorf("a log is there under %+v", *most)
		}
	}
	if _, err := s.Read(Ref("c", "a", "growing"), 0, 0); err != nil {
		t.Error(err)
	}
}

func TestAnotherNodeReadsIt(t *testing.T) {
	s, _ := open(t, Config{})
	w := create(t, s, Ref("c", "a", "r"))
	w.Write("stdout", strings.Repeat("z", 2*MaxRead))
	w.Close()
	ask := func(ref string, offset int64) (Chunk, error) {
		here, there := net.Pipe()
		go s.Serve(there)
		return Fetch(t.Context(), here, ref, offset, 0)
	}
	c, err := ask(Ref("c", "a", "r"), 100)
	local, _ := s.Read(Ref("c", "a", "r"), 100, 0)
	if err != nil || len(c.Content) != MaxRead || !bytes.Equal(c.Content, local.Content) {
		t.Errorf("%d bytes, %v", len(c.Content), err)
	}
	if _, err := ask("c/a/none.ndjson", 0); !errors.Is(err, ErrNoLog) {
		t.Errorf("missing log: %v", err)
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(t.TempDir(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		here, there := net.Pipe()
		done := make(chan bool)
		go func() { s.Serve(there); close(done) }()
		go func() { _, _ = here.Write(b); here.Close() }()
		<-done
	})
}

func TestRemoveLeavesGrowingSegmentsAlone(t *testing.T) {
	s, err := Open(t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ref := Ref("c", "a", "r")
	w, err := s.Create(ref)
	if err != nil {
		t.Fatal(err)
	}
	w.Write("stdout", "text\n")
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ref, 0, 0); err != nil {
		t.Errorf("a segment that grows was removed: %v", err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone
		if err := s.Remove(ref); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Read(ref, 0, 0); !errors.Is(err, ErrNoLog) {
		t.Errorf("a removed segment reads %v", err)
	}
}
