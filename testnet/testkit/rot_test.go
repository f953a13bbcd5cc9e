package testkit

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// largeBlob is the digest of the one blob of several chunks.
var largeBlob atomic.Value

// rotDamages are what a disk does to a file of a stopped or running node.
var rotDamages = []struct {
	name string
	do   func(path string, size int64) error
}{
	{"flip", func(path string, size int64) error {
		return changeFile(path, size/2, func(b []byte) {
			if len(b) > 0 {
				b[0] ^= 1
			}
		})
	}},
	{"zero", func(path string, size int64) error {
		return changeFile(path, (size/2)&^4095, func(b []byte) { clear(b) })
	}},
	{"cut", func(path string, size int64) error { return os.Truncate(path, size/2) }},
	{"delete", func(path string, _ int64) error { return os.Remove(path) }},
}

// changeFile changes up to a page of a file in its place.
func changeFile(path string, at int64, change func([]byte)) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, at)
	change(b[:n])
	_, err = f.WriteAt(b[:n], at)
	return err
}

// A rotBed is three nodes of which the second is hurt.
type rotBed struct {
	*Bed
	t      *testing.T
	dir    string // of the second node
	mesh   string
	files  map[string][]byte // contents of attachments, by path of the API
	logs   string            // path of a run's log
	log    []byte
	good   map[string][]byte // files of the second node as they were, by path below dir
	table  [][]string
	victim int
}

// newRotBed uses the nodes as people do, so that all kinds of files are there.
func newRotBed(t *testing.T) *rotBed {
	dir, work := t.TempDir(), working(t.TempDir())
	r := &rotBed{t: t, victim: 1, files: map[string][]byte{}, good: map[string][]byte{}}
	r.Bed = Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != r.victim {
			c.Adapters = map[string]scheduler.Adapter{}
		}
		c.Dir = filepath.Join(dir, c.Name)
		c.Blobs = node.Blobs{Every: 200 * time.Millisecond, Gone: time.Minute, Grace: time.Hour}
		c.Blobs.Store.Reserve = 1
	})
	r.dir, r.mesh = filepath.Join(dir, "n2"), string(r.Nodes[0].Mesh())
	of := r.Company("Acme")
	issue := r.Issue(0, of, "Keep this")
	for name, size := range map[string]int{"small.bin": 5000, "large.bin": 700_000} {
		want := bytes.Repeat([]byte(name), size/len(name))
		body, contentType := form(t, name, want)
		var at attachment
		r.Must(r.victim, "POST", "/api/companies/"+string(of)+"/issues/"+issue+"/attachments", body, &at, "Content-Type",
			contentType, "X-Selvage-Read", "strong")
		r.files["/api/attachments/"+at.ID+"/content"] = want
		if size > 600_000 {
			largeBlob.Store(at.SHA256)
		}
	}
	a, err := r.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh",
		"args": []string{"-c", "echo what was made > made.txt; echo what was said; exit 0"}})
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ ID, Status, LogKeptAt string }
	r.Must(0, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &run, Strong...)
	r.Until("the log is kept", func() bool {
		r.Must(0, "GET", "/api/heartbeat-runs/"+run.ID, nil, &run, Strong...)
		return run.Status == "succeeded" && run.LogKeptAt != ""
	})
	r.logs = "/api/heartbeat-runs/" + run.ID + "/log"
	r.log = r.Must(0, "GET", r.logs, nil, nil, Strong...).Body
	r.Until("the second node has all blobs", func() bool {
		files, _ := filepath.Glob(filepath.Join(r.dir, "blobs", "*", "*"))
		return len(files) >= 4 // two attachments, sums, a log
	})
	return r
}

// list returns the files of the second node by kind, and fails on one of no kind.
func (r *rotBed) list() map[*rotKind][]string {
	r.t.Helper()
	out := map[*rotKind][]string{}
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		rel, _ := filepath.Rel(r.dir, path)
		rel = filepath.ToSlash(rel)
		if strings.HasSuffix(rel, ".new") || strings.HasSuffix(rel, ".damaged") || strings.HasPrefix(rel, "blobs/tmp/") ||
			strings.HasSuffix(rel, ".broken") {
			return nil // being written, or set aside: never read
		}
		k := kindOf(rel)
		if k == nil {
			r.t.Errorf("%s is of no kind: say in rotKinds what the node does when it is damaged", rel)
			return nil
		}
		out[k] = append(out[k], rel)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// hurt damages a file, which is as it was at first when an earlier case took it.
func (r *rotBed) hurt(damage int, k *rotKind, file string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(file))
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 {
		err = errJoin(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, r.good[file], 0o600))
		if err == nil {
			info, err = os.Stat(path)
		}
	}
	if err == nil {
		err = rotDamages[damage].do(path, info.Size())
	}
	if err != nil {
		r.t.Fatal(k.name, err)
	}
}

func errJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// whole checks that the second node is of its mesh, and that what it serves is right to
// the last byte.
func (r *rotBed) whole(what string) {
	r.t.Helper()
	n := r.Nodes[r.victim]
	if got := string(n.Mesh()); got != r.mesh {
		r.t.Fatalf("%s: the node is of mesh %s, want %s", what, got, r.mesh)
	}
	r.Until("the hurt node is ready: "+what, func() bool { return n.Ready(r.t.Context()) == nil })
	for path, want := range r.files {
		got, err := r.Ask(r.victim, "GET", path, nil, nil, r.Seen()...)
		if err != nil || got.Status != 200 || !bytes.Equal(got.Body, want) {
			r.t.Errorf("%s: %s gives %d, %d bytes, %v", what, path, got.Status, len(got.Body), err)
		}
		at := len(want) / 2
		part, err := r.Ask(r.victim, "GET", path, nil, nil,
			append(r.Seen(), "Range", fmt.Sprintf("bytes=%d-%d", at-50, at+49))...)
		if err != nil || part.Status != 206 || !bytes.Equal(part.Body, want[at-50:at+50]) {
			r.t.Errorf("%s: a range of %s gives %d, %d bytes, %v", what, path, part.Status, len(part.Body), err)
		}
	}
	if got := r.Must(r.victim, "GET", r.logs, nil, nil, r.Seen()...); !bytes.Equal(got.Body, r.log) {
		r.t.Errorf("%s: the log of the run reads %s", what, got.Body)
	}
}

// row adds to the table what came of a damage.
func (r *rotBed) row(k *rotKind, damage, state, what string, took time.Duration) {
	r.table = append(r.table, []string{k.name, damage, state, what, fmt.Sprintf("%.1f s", took.Seconds())})
}

// start opens the second node again and tells in how long it was ready.
func (r *rotBed) start() (took time.Duration, err error) {
	began := time.Now()
	n, err := r.tryOpen(r.confs[r.victim])
	if err != nil {
		return time.Since(began), err
	}
	r.Nodes[r.victim] = n
	r.Until("the hurt node is ready", func() bool { return n.Ready(r.t.Context()) == nil })
	return time.Since(began), nil
}

func (r *rotBed) stop() {
	r.t.Helper()
	if err := r.Nodes[r.victim].Close(); err != nil {
		r.t.Fatal(err)
	}
}

// Each kind of file that a node keeps is damaged in each way, while the node is stopped
// and while it runs. It is put right, or the node says what to do, and nothing that it
// serves is ever wrong. The kinds are found by listing a node's directory after use, so
// that a new one can not be forgotten: see rotKinds. With -v a table tells what happened.
func TestRotMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node again and again")
	}
	r := newRotBed(t)
	r.whole("before all")
	r.stop()
	list := r.list()
	var heal, refuse []*rotKind
	for i := range rotKinds {
		k := &rotKinds[i]
		switch {
		case len(list[k]) == 0 && k.elsewhere == "":
			t.Errorf("no node of this test has a %s", k.name)
		case k.elsewhere != "":
		case k.refuses != "":
			refuse = append(refuse, k)
		default:
			heal = append(heal, k)
		}
	}
	if t.Failed() {
		return
	}
	for _, files := range list {
		slices.Sort(files)
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(f)))
			if err != nil {
				t.Fatal(err)
			}
			r.good[f] = b
		}
	}
	for i := range rotDamages {
		for _, k := range refuse {
			r.refused(i, k, list[k][0])
		}
		for _, k := range heal {
			r.healed(i, k, list[k][0])
		}
	}
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	r.whole("after all")
	r.list() // what was set aside is of no new kind
	for _, row := range r.table {
		t.Logf("| %s |", strings.Join(row, " | "))
	}
}

// healed damages a file of the stopped node, which starts and is whole, and of the
// running one, which goes on, and starts again. It leaves the node stopped.
func (r *rotBed) healed(damage int, k *rotKind, file string) {
	r.t.Helper()
	name := rotDamages[damage].name
	r.hurt(damage, k, file)
	r.examined(name, k)
	since := len(r.Logs[r.victim].String())
	took, err := r.start()
	if err != nil {
		r.t.Fatalf("%s of %s: the node does not start: %v", name, k.name, err)
	}
	r.whole(name + " of " + k.name + " while it was stopped")
	if words := k.log[name]; words != "" && !strings.Contains(r.Logs[r.victim].String()[since:], words) {
		r.t.Errorf("%s of %s while it was stopped: the log does not say %q", name, k.name, words)
	}
	what := "starts, serves what it did"
	if k.back {
		began := time.Now()
		r.back(k, file)
		what += ", mends the file"
		took += time.Since(began)
	}
	r.row(k, name, "stopped", what, took)

	r.hurt(damage, k, file)
	began := time.Now()
	r.whole(name + " of " + k.name + " while it runs")
	r.row(k, name, "running", "goes on, serves what it did", time.Since(began))
	r.stop()
	if _, err := r.start(); err != nil {
		r.t.Fatalf("%s of %s while it ran: the node does not start again: %v", name, k.name, err)
	}
	r.whole(name + " of " + k.name + " while it ran, and started again")
	if k.back {
		r.back(k, file)
	}
	r.stop()
}

// back waits until a file is as it was.
func (r *rotBed) back(k *rotKind, file string) {
	r.t.Helper()
	r.Until(k.name+" is put right", func() bool {
		got, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(file)))
		want := r.good[file]
		if whole := k.twin; err == nil && whole != "" { // what it says may have changed since
			want, err = os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(whole)))
		}
		return err == nil && bytes.Equal(got, want)
	})
}

// examined checks that doctor --dir finds what it can find.
func (r *rotBed) examined(damage string, k *rotKind) {
	r.t.Helper()
	found := map[string]bool{}
	for _, c := range node.DoctorDir(r.dir, r.confs[r.victim].Machine) {
		found[c.Name] = found[c.Name] || c.Level == "warn" || c.Level == "bad"
	}
	if want := k.doctor[damage]; want != "" && !found[want] {
		r.t.Errorf("%s of %s: the doctor finds nothing in %s", damage, k.name, want)
	}
}

// refused damages what the node can not do without, and checks that it says what to do;
// a node that runs goes on without it.
func (r *rotBed) refused(damage int, k *rotKind, file string) {
	r.t.Helper()
	name := rotDamages[damage].name
	r.hurt(damage, k, file)
	r.examined(name, k)
	took, err := r.start()
	if err == nil {
		r.t.Fatalf("%s of %s: the node starts", name, k.name)
	}
	if !strings.Contains(err.Error(), k.refuses) {
		r.t.Errorf("%s of %s: the node says %q, want %q in it", name, k.name, err, k.refuses)
	}
	r.row(k, name, "stopped", "does not start, says what to do", took)
	r.putBack(file)
	if _, err := r.start(); err != nil {
		r.t.Fatal(err)
	}
	r.hurt(damage, k, file)
	began := time.Now()
	r.whole(name + " of " + k.name + " while it runs")
	r.row(k, name, "running", "goes on, serves what it did", time.Since(began))
	r.stop()
	r.putBack(file)
}

func (r *rotBed) putBack(file string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, filepath.FromSlash(file)), r.good[file], 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// A node that lost its membership and the copy makes them again from its state, is given
// an admission by a peer, and lets others in; with its state gone too, or its identity,
// it says what to do and founds nothing.
func TestLostMembershipIsMadeAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a node again and again")
	}
	dir := t.TempDir()
	b := Mesh(t, 3, func(i int, c *node.Config) { c.Dir = filepath.Join(dir, c.Name) })
	at, mesh := filepath.Join(dir, "n2"), b.Nodes[0].Mesh()
	remove := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(at, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func() error{
		"gone": func() error { remove("membership", "membership.copy"); return nil },
		"damaged": func() error {
			return errJoin(os.Truncate(filepath.Join(at, "membership"), 70), os.WriteFile(filepath.Join(at, "membership.copy"),
				make([]byte, 4096), 0o600))
		},
	} {
		if err := b.Nodes[1].Close(); err != nil {
			t.Fatal(err)
		}
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range node.DoctorDir(at, "testkit-2") {
			found = found || c.Name == "membership" && c.Level == "warn"
		}
		if !found {
			t.Errorf("%s: the doctor does not tell", name)
		}
		since := len(b.Logs[1].String())
		n, err := b.tryOpen(b.confs[1])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b.Nodes[1] = n
		if n.Mesh() != mesh {
			t.Fatalf("%s: the node is of mesh %s, want %s", name, n.Mesh(), mesh)
		}
		b.Until("it is ready and has an admission", func() bool {
			return n.Ready(t.Context()) == nil && strings.Contains(b.Logs[1].String()[since:], "a peer gave an admission")
		})
	}
	// It lets others in: they check that its admission leads to the founder.
	token, err := b.Nodes[1].CreateToken(t.Context(), 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	late := b.confs[2]
	late.Dir, late.Name, late.Machine, late.Join, late.Conn = filepath.Join(dir, "n4"), "n4", "testkit-4", token, nil
	n, err := b.tryOpen(late)
	if err != nil {
		t.Fatal("a node does not get in:", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}

	if err := b.Nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	b.dead[b.Nodes[1]] = true
	remove("membership", "membership.copy")
	if err := os.Rename(filepath.Join(at, "store"), filepath.Join(at, "damaged-1")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.tryOpen(b.confs[1]); err == nil || !strings.Contains(err.Error(), "join with a new token") {
		t.Errorf("without a state: %v", err)
	}
}
