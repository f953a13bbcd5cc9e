package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// A storeKind is a kind of file in a node's store or beside it.
type storeKind struct {
	name  string
	match string // of filepath.Match, below the data directory
	// rebuilds are the damages after which the node must rebuild itself. After the
	// others it may, or goes on.
	rebuilds string
}

// storeKinds are all kinds of files below store and snapshots.
var storeKinds = []storeKind{
	{"write-ahead log", "store/*.log", "flipped zeroed cut deleted"},
	{"mark of what is synced", "store/MARK", "deleted"}, // it has two slots
	{"manifest", "store/MANIFEST-*", "flipped zeroed cut deleted"},
	{"name of the manifest", "store/marker.manifest.*", "deleted"},
	{"format version", "store/marker.format-version.*", "deleted"},
	{"options", "store/OPTIONS-*", ""},      // written anew
	{"table", "store/*.sst", "cut deleted"}, // found when it is read
	{"snapshot", "snapshots/*.snap", ""},    // made anew, unless the log goes on from it
}

// damages are what a disk does to a file.
var damages = []struct {
	name string
	do   func(t *testing.T, path string)
}{
	{"flipped", func(t *testing.T, path string) {
		change(t, path, func(b []byte) []byte {
			for _, at := range []int{len(b) / 3, len(b) - 1} { // one that is in use, and the last
				b[at] ^= 4
			}
			return b
		})
	}},
	{"zeroed", func(t *testing.T, path string) {
		change(t, path, func(b []byte) []byte { clear(b[len(b)/4:]); return b })
	}},
	{"cut", func(t *testing.T, path string) {
		change(t, path, func(b []byte) []byte { return b[:len(b)/3] })
	}},
	{"deleted", func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}},
}

func change(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) == 0 {
		return
	}
	if err := os.WriteFile(path, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newest returns the newest file of a kind that has content, or whose name is its content.
func newest(t *testing.T, dir string, k storeKind) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, k.match))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	for _, path := range slices.Backward(all) {
		info, err := os.Stat(path)
		if err == nil && (info.Size() > 0 || strings.Contains(path, "marker.")) {
			return path
		}
	}
	return ""
}

// TestADamagedStoreHealsItself damages each kind of file of a store in each way, on
// each node in turn, while writes go on. The node comes back by itself, with a
// vote, the peers' state, and every acknowledged write.
func TestADamagedStoreHealsItself(t *testing.T) {
	b := meshOnItsPorts(t, 3, func(_ int, c *node.Config) {
		tune := c.TuneConsensus
		c.TuneConsensus = func(cc *consensus.Config) {
			tune(cc)
			cc.SnapshotThreshold, cc.SnapshotInterval, cc.TrailingLogs = 40, 500*time.Millisecond, 20
		}
	})
	of := b.Company("Acme")
	w := writes(b, of)
	for k, kind := range storeKinds {
		for d, damage := range damages {
			sick := (k + d) % 3
			name := kind.name + " " + damage.name
			w.except(sick)
			dir := b.confs[sick].Dir
			b.Kill(sick)
			path := newest(t, dir, kind)
			if path == "" {
				t.Fatalf("%s: n%d has no such file", name, sick+1)
			}
			if info, err := os.Stat(path); err == nil && info.Size() == 0 && damage.name != "deleted" {
				b.Restart(sick) // an empty file has nothing else to lose
				continue
			}
			damage.do(t, path)
			began, said := time.Now(), len(b.Logs[sick].String())
			b.Restart(sick)
			b.Until("the node votes again after: "+name, func() bool { return b.Nodes[sick].Role() != "non-voter" })
			took := time.Since(began).Round(time.Millisecond)
			b.acquainted()
			aside := setAsides(t, dir)
			if strings.Contains(kind.rebuilds, damage.name) && len(aside) == 0 {
				t.Errorf("%s: n%d set nothing aside", name, sick+1)
			}
			if len(aside) > 1 {
				t.Errorf("%s: n%d keeps %v", name, sick+1, aside)
			}
			what := "went on"
			if len(aside) > 0 {
				what = "rebuilt itself"
				if log := b.Logs[sick].String()[said:]; !strings.Contains(log, "can not be trusted") || !strings.Contains(log,
					strings.SplitN(filepath.Base(path), ".0", 2)[0]) && kind.name != "snapshot" {
					t.Errorf("%s: the log does not name %s", name, filepath.Base(path))
				}
				if err := os.RemoveAll(filepath.Join(dir, aside[0])); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "rebuild")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the mark of the rebuilding is still there", name)
			}
			t.Logf("%-24s %-8s n%d: %s, %v until it voted again", kind.name, damage.name, sick+1, what, took)
		}
	}
	w.stop()
	for on := range b.Nodes {
		w.wantAll(on)
	}
	b.Heads()
}

// TestDamageMetWhileRunning damages all tables of a node that runs, the leader
// first. The scrub meets it; the node stops with that reason, and rebuilds itself
// when it is opened again. Every read meanwhile is right or refused.
func TestDamageMetWhileRunning(t *testing.T) {
	b := meshOnItsPorts(t, 3)
	of := b.Company("Acme")
	w := writes(b, of)
	for range 2 {
		sick := b.Leader()
		dir := b.confs[sick].Dir
		w.except(sick)
		b.Kill(sick)
		b.Restart(sick) // its log becomes a table
		b.Until("the node votes", func() bool { return b.Nodes[sick].Role() != "non-voter" })
		tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatalf("n%d has no tables: %v", sick+1, err)
		}
		for _, path := range tables {
			inPlace(t, path)
		}
		b.Must(sick, "POST", "/api/v1/mesh/scrub", nil, nil)
		var failed error
		b.Until("the node stops", func() bool {
			if a, err := b.Ask(sick, "GET", "/api/companies/"+string(of), nil, nil); err == nil && a.Status != 200 &&
				a.Status != 503 {
				t.Fatalf("a read was answered %d %s", a.Status, a.Body)
			}
			select {
			case failed = <-b.Nodes[sick].Failed():
				return true
			default:
				return false
			}
		})
		if !errors.Is(failed, node.ErrDamaged) || !strings.Contains(failed.Error(), ".sst") {
			t.Errorf("n%d stopped with %v", sick+1, failed)
		}
		began := time.Now()
		b.Restart(sick)
		b.Until("the node votes again", func() bool { return b.Nodes[sick].Role() != "non-voter" })
		t.Logf("n%d: %v from the stop to a vote", sick+1, time.Since(began).Round(time.Millisecond))
		if aside := setAsides(t, dir); len(aside) != 1 {
			t.Errorf("n%d keeps %v", sick+1, aside)
		}
	}
	w.stop()
	for on := range b.Nodes {
		w.wantAll(on)
	}
	b.Heads()
}

// inPlace flips bits all over a file without giving it another inode: whoever has
// it open reads them.
func inPlace(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b); i += 50 {
		b[i] ^= 1
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
}

// TestTheOnlyVoterSaysWhatToDo: a node that is alone has nobody to rebuild its
// store from. It does not start, says what can be done, and keeps everything.
func TestTheOnlyVoterSaysWhatToDo(t *testing.T) {
	b := Mesh(t, 1)
	b.Company("Acme")
	conf := b.confs[0]
	b.Kill(0)
	path := newest(t, conf.Dir, storeKinds[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damages[2].do(t, path)
	for range 2 { // the second time by its mark
		_, err := node.Open(t.Context(), conf)
		if !errors.Is(err, node.ErrNoHealing) {
			t.Fatalf("it opens, or fails with %v", err)
		}
		for _, words := range []string{filepath.Base(path), "selvage recover", "selvage snapshot restore"} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not say %q", err, words)
			}
		}
	}
	if left, err := os.ReadFile(path); err != nil || len(left) != len(whole)/3 {
		t.Errorf("the log has %d bytes, %v", len(left), err)
	}
	v, err := node.Recover(t.Context(), conf.Dir, conf.Machine, true)
	if err != nil || v.Damage == "" {
		t.Fatalf("recover: %+v, %v", v, err)
	}
	b.Restart(0)
}

// TestWithoutAQuorumADamagedStoreIsPutBack: a damaged node whose peers are away puts
// its store back and stops, and rebuilds itself once they are there.
func TestWithoutAQuorumADamagedStoreIsPutBack(t *testing.T) {
	b := meshOnItsPorts(t, 3, func(_ int, c *node.Config) { c.HealWait = 3 * time.Second })
	b.Company("Acme")
	for on := range b.Nodes {
		b.Kill(on)
	}
	dir := b.confs[0].Dir
	path := newest(t, dir, storeKinds[0])
	damages[2].do(t, path)
	cut, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := b.open(b.confs[0])
	b.Nodes[0] = alone
	select {
	case err := <-alone.Failed():
		if !errors.Is(err, node.ErrNoHealing) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("it stops with %v", err)
		}
	case <-time.After(settle):
		t.Fatal("it looks for a quorum for ever")
	}
	if err := alone.Close(); err != nil {
		t.Fatal(err)
	}
	b.dead[alone] = true
	if left, err := os.ReadFile(path); err != nil || len(left) != len(cut) {
		t.Errorf("the log was not put back: %d bytes, %v", len(left), err)
	}
	if aside := setAsides(t, dir); len(aside) > 0 {
		t.Errorf("%v is left", aside)
	}
	b.Nodes[1], b.Nodes[2] = b.open(b.confs[1]), b.open(b.confs[2])
	b.Restart(0)
	b.Until("it votes again", func() bool { return b.Nodes[0].Role() != "non-voter" })
	if aside := setAsides(t, dir); len(aside) != 1 {
		t.Errorf("%v was set aside", aside)
	}
}

// acquainted waits until every node hears every other: a node that is started
// again has another address, and the next one to be killed may be who knew it.
func (b *Bed) acquainted() {
	b.t.Helper()
	b.Until("all nodes hear each other", func() bool {
		for on := range b.Nodes {
			var members []struct{ Status string }
			if a, err := b.Call(on, "GET", "/api/v1/mesh/members", nil, &members); err != nil || a.Status != 200 ||
				len(members) != len(b.Nodes) {
				return false
			}
			for _, m := range members {
				if m.Status != "alive" {
					return false
				}
			}
		}
		return true
	})
}

func setAsides(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		out = append(out, filepath.Base(path))
	}
	return out
}

// A writer makes goals through nodes that are well, and remembers those that were
// acknowledged.
type writer struct {
	b       *Bed
	company ledger.CompanyID
	mu      sync.Mutex // guards what follows, and is held while a write is under way
	sick    int
	acked   []string
	done    chan struct{}
	over    chan struct{}
}

func writes(b *Bed, company ledger.CompanyID) *writer {
	w := &writer{b: b, company: company, sick: -1, done: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(w.over)
		for i := 0; ; i++ {
			select {
			case <-w.done:
				return
			case <-time.After(10 * poll):
			}
			w.write(i)
		}
	}()
	return w
}

func (w *writer) write(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := i % len(w.b.Nodes)
	if on == w.sick {
		return
	}
	title := fmt.Sprintf("goal %d", i)
	if a, err := w.b.Ask(on, "POST", "/api/companies/"+string(w.company)+"/goals", map[string]any{"title": title},
		nil); err == nil && a.Status < 300 {
		w.acked = append(w.acked, title)
	}
}

// except makes the writer leave a node alone, before it is killed.
func (w *writer) except(on int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sick = on
}

func (w *writer) stop() {
	close(w.done)
	<-w.over
}

// wantAll fails the test when a node lacks an acknowledged write. The read is strong: a
// node may have the last one a moment later than the node that took it.
func (w *writer) wantAll(on int) {
	w.b.t.Helper()
	if len(w.acked) == 0 {
		w.b.t.Fatal("nothing was acknowledged")
	}
	var goals []struct{ Title string }
	w.b.Must(on, "GET", "/api/companies/"+string(w.company)+"/goals", nil, &goals, Strong...)
	has := map[string]bool{}
	for _, g := range goals {
		has[g.Title] = true
	}
	for _, title := range w.acked {
		if !has[title] {
			w.b.t.Errorf("n%d lacks %q, which was acknowledged", on+1, title)
		}
	}
}
