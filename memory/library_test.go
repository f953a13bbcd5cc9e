package memory

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/coder/hnsw"
)

// A library is github.com/coder/hnsw behind [Index]. It is not safe for concurrent use, so
// a mutex stands around it; it has no filter, so it is asked for more.
type library struct {
	mu sync.Mutex
	g  *hnsw.Graph[string]
	n  int
}

func newLibrary() *library {
	g := hnsw.NewGraph[string]()
	g.M, g.EfSearch = degree, beamSearch
	return &library{g: g}
}

// guarded turns a panic of the library into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

func (l *library) Add(id ID, v Vector) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return guarded(func() error {
		l.g.Add(hnsw.MakeNode(string(id[:]), v.Unpack()))
		l.n++
		return nil
	})
}

func (l *library) Remove(id ID) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := guarded(func() error { ok = l.g.Delete(string(id[:])); return nil }); err != nil {
		return false
	}
	return ok
}

func (l *library) Search(x []float32, k int, keep func(ID) bool) (out []Hit, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask := k
	if keep != nil {
		ask = l.n
	}
	err = guarded(func() error {
		for _, n := range l.g.Search(x, ask) {
			id := ID([]byte(n.Key))
			if keep == nil || keep(id) {
				out = append(out, Hit{id, 1 - hnsw.CosineDistance(x, n.Value)})
			}
		}
		return nil
	})
	return out[:min(k, len(out))], err
}

func (l *library) Save(w io.Writer) error { return guarded(func() error { return l.g.Export(w) }) }
func (l *library) Load(r io.Reader) error { return guarded(func() error { return l.g.Import(r) }) }

// share is recall without a word about the order.
func share(s Index, all, questions [][]float32, gone func(int) bool) (float64, error) {
	hit, of := 0, 0
	for _, q := range questions {
		got, err := s.Search(q, 10, nil)
		if err != nil {
			return 0, err
		}
		have := map[ID]bool{}
		for _, h := range got {
			have[h.ID] = true
		}
		for _, id := range nearest(all, q, 10, gone) {
			of++
			if have[id] {
				hit++
			}
		}
	}
	return float64(hit) / float64(of), nil
}

// faults are what an index does wrong in the life of a collection: it is filled, asked,
// half of it is taken out, vectors come again, and in the end all go.
func faults(s Index, all [][]float32, link func()) (bad []string) {
	note := func(format string, a ...any) { bad = append(bad, fmt.Sprintf(format, a...)) }
	pack := func(x []float32) Vector { v, _ := Pack(x); return v }
	for n, x := range all {
		if err := s.Add(idOf(n), pack(x)); err != nil {
			note("adding: %v", err)
			return bad
		}
	}
	link()
	ask := func(when string, gone func(int) bool) {
		if r, err := share(s, all, all[:30], gone); err != nil || r < 0.95 {
			note("recall %.3f %s (%v)", r, when, err)
		}
	}
	ask("when full", nil)
	if err := s.Add(idOf(3), pack(all[3])); err != nil {
		note("adding again: %v", err)
	}
	for n := 30; n < len(all); n += 2 {
		if !s.Remove(idOf(n)) {
			note("removing failed")
			break
		}
	}
	link()
	gone := func(n int) bool { return n >= 30 && n%2 == 0 }
	ask("after half went", gone)
	got, err := s.Search(all[32], 10, nil)
	for _, h := range got {
		if h.ID == idOf(32) {
			note("finds what was removed")
		}
	}
	if err != nil {
		note("searching: %v", err)
	}
	for n := range all {
		s.Remove(idOf(n))
	}
	if got, err := s.Search(all[0], 10, nil); err != nil || len(got) > 0 {
		note("empty, it finds %d (%v)", len(got), err)
	}
	if err := s.Add(idOf(1), pack(all[1])); err != nil {
		note("adding to the emptied: %v", err)
	}
	return bad
}

// Our index goes through the life of a collection without a fault. The named library does
// not yet; the day it does, this test fails, and the library takes the seat.
func TestTheNamedLibraryBesideOurs(t *testing.T) {
	t.Parallel()
	all := clustered(rand.New(rand.NewPCG(21, 22)), 1200, 48, 20)
	ours := newSpace(t, 48, 50)
	link := func() {
		for ours.Link(500) > 0 {
		}
	}
	if bad := faults(ours, all, link); len(bad) > 0 {
		t.Errorf("ours: %q", bad)
	}
	bad := faults(newLibrary(), all, func() {})
	t.Logf("github.com/coder/hnsw: %q", bad)
	if len(bad) == 0 {
		t.Error("github.com/coder/hnsw passes: let it take the seat of Space")
	}
}

// BenchmarkSearch asks both, and an exact scan, for the ten nearest of 20,000 vectors of
// 384 components; recall stands beside the time.
func BenchmarkSearch(b *testing.B) {
	r := rand.New(rand.NewPCG(23, 24))
	all := clustered(r, 20_000, 384, 200)
	questions := make([][]float32, 100)
	for i := range questions {
		questions[i] = make([]float32, 384)
		for k := range questions[i] {
			questions[i][k] = all[i*151][k] + float32(r.NormFloat64()*0.2)
		}
	}
	run := func(name string, s Index) {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				if _, err := s.Search(questions[n%len(questions)], 10, nil); err != nil {
					b.Fatal(err)
				}
				n++
			}
			got, _ := share(s, all, questions, nil)
			b.ReportMetric(got, "recall@10")
		})
	}
	scan := filled(b, all, Exact)
	run("exact", scan)
	run("ours", filled(b, all, 1000))
	lib := newLibrary()
	for n, x := range all {
		if err := lib.Add(idOf(n), packed(b, x)); err != nil {
			b.Fatal(err)
		}
	}
	run("coder/hnsw", lib)
}

// BenchmarkLink puts vectors into a graph of 10,000 and more.
func BenchmarkLink(b *testing.B) {
	all := clustered(rand.New(rand.NewPCG(25, 26)), 20_000, 384, 200)
	s := filled(b, all[:10_000], 1000)
	n := 10_000
	for b.Loop() {
		if n == len(all) {
			b.StopTimer()
			s, n = filled(b, all[:10_000], 1000), 10_000
			b.StartTimer()
		}
		if err := s.Add(idOf(n), packed(b, all[n])); err != nil {
			b.Fatal(err)
		}
		s.Link(1)
		n++
	}
}
