package recall

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	company "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
)

// graphWorld is a company with enough memories for a graph, and the folder of its node.
func graphWorld(t *testing.T, records int) (*world, Config) {
	w := newWorld(t)
	for n := range records {
		w.add(fmt.Sprintf("memory number %d of the crane in hall %d", n, n%7))
	}
	conf := w.config()
	conf.Dir, conf.GraphFrom = filepath.Join(t.TempDir(), "memory"), 30
	return w, conf
}

// started is a node after a start: what is there is indexed and linked.
func (w *world) started(conf Config) *Recall {
	w.t.Helper()
	r := New(conf)
	if err := r.keep(w.t.Context(), w.Company); err != nil {
		w.t.Fatal(err)
	}
	w.whole(r)
	return r
}

// whole wants everything found by vectors, and in the graph.
func (w *world) whole(r *Recall) {
	w.t.Helper()
	st, far := r.Stat(w.Company)
	if !far.Ready || len(st.Models) != 1 || st.Models[0].Linked != st.Records || st.Records == 0 {
		w.t.Errorf("the index has %+v, %+v", st, far)
	}
	if n := w.near(r); n != min(st.Records, 50) {
		w.t.Errorf("%d of %d are found", n, st.Records)
	}
}

// near counts what a search by vectors finds, of 50 at most.
func (w *world) near(r *Recall) (n int) {
	w.t.Helper()
	err := w.view(func(tx *ledger.Tx) error {
		f, _, err := r.Search(tx, w.Company, memory.Search{Query: "the crane in the hall", By: memory.ByVectors, Limit: 50,
			Filter: memory.Filter{All: true}})
		n = len(f.Results)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// A node that dies at any step of saving a graph has the one before or the new one when it
// starts again, and saves on.
func TestANodeThatDiesWhileItSavesAGraph(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"made", "written", "synced", "closed", "renamed", "kept"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w, conf := graphWorld(t, 60)
			w.started(conf)
			r := New(conf)
			w.add("one more about the crane")
			died := false
			r.dies = func(step string) bool { died = died || step == at; return step == at }
			if err := r.keep(t.Context(), w.Company); err != nil {
				t.Fatal(err)
			}
			if !died {
				t.Fatal("the node did not die")
			}
			path := r.graphFile(w.Company, memory.Lexical)
			_, err := os.Stat(path + ".new")
			if torn := err == nil; torn != (at != "renamed" && at != "kept") {
				t.Errorf("a file that is not done is there: %v", torn)
			}
			w.started(conf)
			w.add("and one after the start")
			w.started(conf)
			if left, _ := filepath.Glob(filepath.Join(conf.Dir, "*.new")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A saved graph that was cut or flipped is taken away and built anew. Searches find
// everything meanwhile, because vectors that are in no graph are compared one by one.
func TestADamagedGraphIsBuiltAnewWhileSearchesAnswer(t *testing.T) {
	t.Parallel()
	w, conf := graphWorld(t, 200)
	path := w.started(conf).graphFile(w.Company, memory.Lexical)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 || strings.Contains(string(sound), "crane") {
		t.Errorf("the saved graph has mode %v, or texts", info.Mode())
	}
	for what, spoil := range map[string]func([]byte) []byte{
		"cut to nothing":  func([]byte) []byte { return nil },
		"cut in half":     func(b []byte) []byte { return b[:len(b)/2] },
		"cut by one byte": func(b []byte) []byte { return b[:len(b)-1] },
		"flipped in its head": func(b []byte) []byte {
			b[9] ^= 1
			return b
		},
		"flipped in the middle": func(b []byte) []byte {
			b[len(b)/2] ^= 0x10
			return b
		},
		"flipped in its sum": func(b []byte) []byte {
			b[len(b)-1] ^= 0x80
			return b
		},
		"of another file": func(b []byte) []byte { return []byte(strings.Repeat("selvage ", len(b)/8)) },
	} {
		if err := os.WriteFile(path, spoil(append([]byte{}, sound...)), 0o600); err != nil {
			t.Fatal(err)
		}
		r := New(conf)
		sh := r.shelf(w.Company, true)
		err := w.view(func(tx *ledger.Tx) error { sh.take(tx, inline); return nil })
		if err != nil {
			t.Fatal(err)
		}
		r.loadGraphs(sh)
		st, _ := r.Stat(w.Company)
		if _, err := os.Stat(path); !os.IsNotExist(err) || st.Models[0].Linked != 0 {
			t.Errorf("%s: the file is there still: %v, and %d are linked", what, err, st.Models[0].Linked)
		}
		if n := w.near(r); n != 50 {
			t.Errorf("%s: %d are found before the graph is built", what, n)
		}
		if err := r.keep(t.Context(), w.Company); err != nil {
			t.Fatal(err)
		}
		w.whole(r)
		if b, err := os.ReadFile(path); err != nil || len(b) != len(sound) {
			t.Errorf("%s: the graph that was built is not saved: %d bytes, %v", what, len(b), err)
		}
	}
}

// A saved graph that is large is mapped and not read. A mapped one is the same as one that
// was read.
func TestLargeGraphsAreMapped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "graph")
	want := strings.Repeat("0123456789abcdef", mapFrom/16+3)
	if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := mapFile(path)
	if err != nil || string(b) != want {
		t.Errorf("mapped are %d bytes, %v", len(b), err)
	}
	unmapFile(b)
	w, conf := graphWorld(t, 40)
	r := w.started(conf)
	if err := os.WriteFile(r.graphFile(w.Company, memory.Lexical), []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.loadGraph(r.shelf(w.Company, false), memory.Lexical, r.graphFile(w.Company, memory.Lexical)); err == nil {
		t.Error("a large file that is no graph is read")
	}
}

// Ten thousand memories that come at once are taken in bit by bit; searches answer
// meanwhile, and say how far that is.
func TestTenThousandMemoriesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := New(w.config())
	w.add("the first zebra")
	w.search(r, "zebra")
	const many = 10_000
	for n := range many {
		w.add(fmt.Sprint("invoice ", n))
	}
	ids, far := w.search(r, "zebra")
	if len(ids) != 1 || far.Ready || far.Of != many+1 {
		t.Errorf("%d found, %+v", len(ids), far)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()
	until(t, func() bool { st, far := r.Stat(w.Company); return far.Ready && st.Records == many+1 })
	if ids, far := w.search(r, fmt.Sprint(many-1)); len(ids) != 1 || !far.Ready {
		t.Errorf("%d found, %+v", len(ids), far)
	}
}

// What is forgotten of several memories that were embedded together takes nothing from the
// others.
func TestForgettingOneOfAnEmbeddedBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []string{w.add("the boiler leaks"), w.add("the boiler is mended"), w.add("the boiler is sold")}
	ada := w.Agent("Ada")
	w.Must(t, companytest.Board, company.KindConfigure, company.Configure{Model: "box/mini", Agent: ada}, nil)
	p := company.Embed{Model: "box/mini@1"}
	for n, id := range ids {
		v, err := memory.Pack([]float32{1, float32(n), 0, 0, 0, 0, 0, 1})
		if err != nil {
			t.Fatal(err)
		}
		row, _ := company.Of(w.Tx, w.Company, id)
		p.Vectors = append(p.Vectors, company.Embedded{ID: id, Text: company.TextDigest(row.Text), Vector: v})
	}
	if err := w.ByNode("n1", company.KindEmbed, p); err != nil {
		t.Fatal(err)
	}
	r := New(w.config())
	w.Must(t, companytest.Board, company.KindForget, company.Forget{IDs: ids[:1]}, nil)
	for _, id := range ids[1:] {
		if row, ok := company.Of(w.Tx, w.Company, id); !ok || row.Vector.Dims() != 8 || row.Model != "box/mini@1" {
			t.Errorf("of the others is left %+v", row)
		}
	}
	w.search(r, "boiler")
	if st, _ := r.Stat(w.Company); st.Records != 2 || len(st.Models) != 2 || st.Models[0].Vectors != 2 {
		t.Errorf("the index has %+v", st)
	}
	w.Must(t, companytest.Board, company.KindForget, company.Forget{IDs: ids[1:]}, nil)
	if n := company.CountOf(w.Tx, w.Company); n.Records != 0 || n.Bytes != 0 || len(n.Models) != 0 {
		t.Errorf("left are %+v", n)
	}
}
