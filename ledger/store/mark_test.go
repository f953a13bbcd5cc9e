package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// filled returns the file system of a store that was killed after n synced
// commits, with tables, older logs and a newest log.
func filled(t *testing.T, n int) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s, err := Open("db", Options{FS: fs, Small: true, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	value := strings.Repeat("entry", 400)
	for i := range n {
		commit(t, s.Span('r'), true, fmt.Sprintf("%06d", i), value)
		if i == n/2 { // so that there are tables as well
			if err := db(s).Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	killed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return killed
}

// copied returns a copy of a file system that may be damaged.
func copied(fs *vfs.MemFS) *vfs.MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

func contentOf(t *testing.T, fs vfs.FS, path string) []byte {
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

func overwrite(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// reads opens the store in fs and counts what it holds. A damage that is met on
// the way is returned; another error fails the test.
func reads(t *testing.T, fs vfs.FS, o Options) (n int, damage *Damage) {
	t.Helper()
	o.FS, o.Small = fs, true
	s, err := Open("db", o)
	if errors.As(err, &damage) {
		return 0, damage
	}
	if err != nil {
		t.Fatalf("refused with %v, which is no damage", err)
	}
	defer s.Close()
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(Failure)
			if !ok || !errors.As(f.Err, &damage) {
				t.Fatalf("panics with %v", p)
			}
		}
	}()
	return len(contents(s.Span('r'))), nil
}

// TestNothingSyncedIsMissedInSilence damages each file of a store in many places.
// The store either says that it is damaged or has everything that was synced.
func TestNothingSyncedIsMissedInSilence(t *testing.T) {
	const entries = 300
	each := 1
	if testing.Short() { // under the race detector a start costs ten times the work
		each = 12
	}
	killed := filled(t, entries)
	if n, d := reads(t, copied(killed), Options{}); n != entries || d != nil {
		t.Fatalf("undamaged: %d of %d entries, %v", n, entries, d)
	}
	names, err := killed.List("db")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	check := func(name, what string, change func(fs *vfs.MemFS, path string)) {
		t.Helper()
		fs := copied(killed)
		change(fs, "db/"+name)
		n, d := reads(t, fs, Options{})
		if d == nil && n != entries {
			t.Errorf("%s, %s: opens with %d of %d entries", name, what, n, entries)
		}
		if d != nil {
			found[name]++
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if info, err := killed.Stat("db/" + name); err != nil || info.IsDir() || name == "BALLAST" || name == "LOCK" {
			continue
		}
		b := contentOf(t, killed, "db/"+name)
		check(name, "deleted", func(fs *vfs.MemFS, path string) {
			if err := fs.Remove(path); err != nil {
				t.Fatal(err)
			}
		})
		if len(b) == 0 {
			continue
		}
		for i, at := range places(len(b)) {
			if i%each != 0 || strings.HasSuffix(name, ".sst") && i%4 != 0 { // Pebble's own sums hold for tables
				continue
			}
			check(name, fmt.Sprintf("bit flipped at %d of %d", at, len(b)), func(fs *vfs.MemFS, path string) {
				c := slices.Clone(b)
				c[at] ^= 4
				overwrite(t, fs, path, c)
			})
			check(name, fmt.Sprintf("cut at %d of %d", at, len(b)),
				func(fs *vfs.MemFS, path string) { overwrite(t, fs, path, b[:at]) })
			check(name, fmt.Sprintf("a zero page from %d of %d", at, len(b)), func(fs *vfs.MemFS, path string) {
				c := slices.Clone(b)
				clear(c[at:min(at+4096, len(c))])
				overwrite(t, fs, path, c)
			})
		}
	}
	t.Log("damages found:", found)
	for _, kind := range []string{".log", ".sst", "MANIFEST-", "marker.manifest", "marker.format", markFile} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, kind) && found[n] > 0 }) {
			t.Errorf("no damage of %s was found", kind)
		}
	}
}

// places are offsets of all classes in a file of n bytes: its head and end, the
// edges of blocks, and some between.
func places(n int) (out []int) {
	for _, at := range []int{0, 1, 6, 7, 11, 100, 4095, 4096, 32767, 32768, 32769} {
		if at < n {
			out = append(out, at)
		}
	}
	for k := 1; k < 8; k++ {
		out = append(out, n*k/8)
	}
	for _, back := range []int{1, 2, 5, 12, 100, 2000, 4096} {
		if back <= n {
			out = append(out, n-back)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestOneWrongSlotOfTheMarkIsNoDamage: a torn write of the mark leaves the note
// before, which promises less.
func TestOneWrongSlotOfTheMarkIsNoDamage(t *testing.T) {
	const entries = 40
	killed := filled(t, entries)
	b := contentOf(t, killed, "db/"+markFile)
	if len(b) <= markSlot {
		t.Fatalf("the mark has %d bytes", len(b))
	}
	for slot := range 2 {
		fs := copied(killed)
		c := slices.Clone(b)
		clear(c[slot*markSlot+20 : min((slot+1)*markSlot, len(c))])
		overwrite(t, fs, "db/"+markFile, c)
		if n, d := reads(t, fs, Options{}); n != entries || d != nil {
			t.Errorf("slot %d torn: %d entries, %v", slot, n, d)
		}
	}
	fs := copied(killed)
	overwrite(t, fs, "db/"+markFile, make([]byte, len(b)))
	if _, d := reads(t, fs, Options{}); d == nil || d.Kind != DamageMark {
		t.Errorf("both slots zeroed: %v", d)
	}
}

// TestSalvageReadsWhatIsLeft: a person who has nothing better may open a store
// whose log is short.
func TestSalvageReadsWhatIsLeft(t *testing.T) {
	const entries = 40
	fs := filled(t, entries)
	names, err := fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	newest := ""
	for _, n := range names {
		if strings.HasSuffix(n, ".log") && len(contentOf(t, fs, "db/"+n)) > 0 {
			newest = n
		}
	}
	b := contentOf(t, fs, "db/"+newest)
	overwrite(t, fs, "db/"+newest, b[:len(b)/2])
	n, d := reads(t, fs, Options{})
	if d == nil || d.File != newest || d.Kind != DamageCut {
		t.Fatalf("a log cut in half: %d entries, %v", n, d)
	}
	if n, d := reads(t, fs, Options{Salvage: true}); d != nil || n == 0 || n >= entries {
		t.Errorf("salvaged %d of %d entries, %v", n, entries, d)
	}
	if n, d := reads(t, fs, Options{}); d != nil || n == 0 {
		t.Errorf("after the salvage: %d entries, %v", n, d)
	}
}

// TestTheMarkReachesTheDisk: within markSyncEvery of a commit the disk has the
// mark, so a log that loses its end with the power is found out, too.
func TestTheMarkReachesTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		s, err := Open("db", Options{FS: fs, Small: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range 20 {
			commit(t, s.Span('r'), true, fmt.Sprintf("%06d", i), "entry")
		}
		onDisk := func() (n int64) {
			got, err := readMark(fs.CrashClone(vfs.CrashCloneCfg{}), "db")
			if err != nil {
				t.Fatal(err)
			}
			for f, s := range got.files {
				if f.kind == 'L' {
					n += s.bytes
				}
			}
			return n
		}
		before := onDisk()
		time.Sleep(markSyncEvery)
		synctest.Wait()
		now, err := readMark(fs, "db")
		if err != nil {
			t.Fatal(err)
		}
		if after := onDisk(); after <= before || after == 0 {
			t.Errorf("the disk has a mark of %d bytes of log, and had %d; the file says %v", after, before, now.files)
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add(note{seq: 3, head: Head{Index: 9, Term: 2}, files: map[loggedFile]synced{{'L', 7}: {100, 5},
		{'M', 1}: {20, 6}}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeNote(b)
		if err != nil {
			return
		}
		if again, err := decodeNote(n.encode()); err != nil || fmt.Sprint(again) != fmt.Sprint(n) {
			t.Fatalf("%v is encoded as %v, %v", n, again, err)
		}
	})
}

func TestNoteFormat(t *testing.T) {
	n := note{seq: 3, head: Head{Index: 9, Term: 2}, files: map[loggedFile]synced{{'L', 7}: {100, 5}, {'M', 1}: {20, 6}}}
	const want = "534c564d41524b31" + "0000000000000003" + "0000000000000009" + "0000000000000002" + "0002" +
		"4d" + "0000000000000001" + "0000000000000014" + "00000006" + "4c" + "0000000000000007" +
		"0000000000000064" + "00000005"
	if got := fmt.Sprintf("%x", n.encode()); !strings.HasPrefix(got, want) || len(got) != len(want)+8 {
		t.Errorf("encoded %s, want %s and a sum", got, want)
	}
}
