package memory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// idOf is the n-th ID of a test.
func idOf(n int) (id ID) {
	binary.BigEndian.PutUint64(id[:8], mix(uint64(n)))
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// clustered returns vectors around a few centres, as those of sentences are.
func clustered(r *rand.Rand, n, dims, centres int) [][]float32 {
	gauss := func(x []float32, spread float64) []float32 {
		out := make([]float32, dims)
		for i := range out {
			out[i] = float32(r.NormFloat64() * spread)
			if x != nil {
				out[i] += x[i]
			}
		}
		return out
	}
	mid := make([][]float32, centres)
	for i := range mid {
		mid[i] = gauss(nil, 1)
	}
	out := make([][]float32, n)
	for i := range out {
		out[i] = gauss(mid[r.IntN(centres)], 0.4)
	}
	return out
}

func packed(t testing.TB, x []float32) Vector {
	t.Helper()
	v, err := Pack(x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// newSpace returns an index that uses its graph from exact vectors on.
func newSpace(t testing.TB, dims, exact int) *Space {
	t.Helper()
	s, err := NewSpace(dims)
	if err != nil {
		t.Fatal(err)
	}
	s.exact = exact
	return s
}

func filled(t testing.TB, all [][]float32, exact int) *Space {
	t.Helper()
	s := newSpace(t, len(all[0]), exact)
	for n, x := range all {
		if err := s.Add(idOf(n), packed(t, x)); err != nil {
			t.Fatal(err)
		}
	}
	for s.Link(500) > 0 {
	}
	return s
}

// nearest looks at every vector that has not gone.
func nearest(all [][]float32, q []float32, k int, gone func(int) bool) []ID {
	type sim struct {
		n int
		f float64
	}
	var sims []sim
	for n, x := range all {
		if gone != nil && gone(n) {
			continue
		}
		var xy, xx float64
		for i := range x {
			xy, xx = xy+float64(x[i])*float64(q[i]), xx+float64(x[i])*float64(x[i])
		}
		sims = append(sims, sim{n, xy / math.Sqrt(xx)})
	}
	slices.SortFunc(sims, func(a, b sim) int {
		if a.f > b.f {
			return -1
		}
		return 1
	})
	var out []ID
	for _, s := range sims[:min(k, len(sims))] {
		out = append(out, idOf(s.n))
	}
	return out
}

// recall is the share of the ten nearest that an index finds.
func recall(t testing.TB, s Index, all, questions [][]float32, gone func(int) bool) float64 {
	t.Helper()
	hit, of := 0, 0
	for _, q := range questions {
		got, err := s.Search(q, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Cosine > got[i-1].Cosine {
				t.Fatal("the results are not in order")
			}
		}
		for _, id := range nearest(all, q, 10, gone) {
			of++
			if slices.ContainsFunc(got, func(h Hit) bool { return h.ID == id }) {
				hit++
			}
		}
	}
	return float64(hit) / float64(of)
}

// The graph finds what an exact search finds, also when half of the vectors were taken
// out again, when others came in their place, and when it was saved and loaded.
func TestTheGraphFindsTheNearest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	all := clustered(r, 2400, 48, 30)
	questions := clustered(r, 24, 48, 30)
	for i := range questions { // near what is there
		for k := range questions[i] {
			questions[i][k] = all[i*97][k] + float32(r.NormFloat64()*0.2)
		}
	}
	s := filled(t, all, 100)
	if count, linked := s.Len(); count != 2400 || linked != 2400 {
		t.Fatalf("%d vectors, %d linked", count, linked)
	}
	if got := recall(t, s, all, questions, nil); got < 0.95 {
		t.Errorf("recall %.3f, want 0.95 at least", got)
	}
	gone := func(n int) bool { return n%2 == 1 }
	for n := range all {
		if gone(n) && !s.Remove(idOf(n)) {
			t.Fatal("a vector was not there")
		}
	}
	for s.Link(500) > 0 {
	}
	if got := recall(t, s, all, questions, gone); got < 0.95 {
		t.Errorf("recall %.3f after half of them went, want 0.95 at least", got)
	}
	if lost := s.unreached(); len(lost) > 0 {
		t.Errorf("no way leads to %d vectors", len(lost))
	}
	for n := range all {
		if n%4 == 1 {
			if err := s.Add(idOf(n), packed(t, all[n])); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone = func(n int) bool { return n%4 == 3 }
	// Not linked yet, and found all the same.
	if got := recall(t, s, all, questions, gone); got < 0.95 {
		t.Errorf("recall %.3f with vectors that wait, want 0.95 at least", got)
	}
	for s.Link(500) > 0 {
	}
	if got := recall(t, s, all, questions, gone); got < 0.95 {
		t.Errorf("recall %.3f after others came, want 0.95 at least", got)
	}

	var file bytes.Buffer
	if err := s.Save(&file); err != nil {
		t.Fatal(err)
	}
	again := newSpace(t, 48, 100)
	for n := len(all) - 1; n >= 0; n-- { // in another order
		if !gone(n) && n != 8 {
			if err := again.Add(idOf(n), packed(t, all[n])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := again.Load(&file); err != nil {
		t.Fatal(err)
	}
	if count, linked := again.Len(); count != 1799 || linked != 1799 {
		t.Errorf("%d vectors, %d linked after loading", count, linked)
	}
	if got := recall(t, again, all, questions, func(n int) bool { return gone(n) || n == 8 }); got < 0.95 {
		t.Errorf("recall %.3f after loading, want 0.95 at least", got)
	}
}

// What keep does not accept is not found, however few it accepts.
func TestOnlyWhatIsKeptIsFound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	all := clustered(r, 3000, 32, 10)
	s := filled(t, all, 100)
	for _, every := range []int{1, 2, 7, 500} {
		keep := func(id ID) bool { return binary.BigEndian.Uint64(id[8:])%uint64(every) == 0 }
		hit, of := 0, 0
		for q := range 30 {
			got, err := s.Search(all[q], 10, keep)
			if err != nil {
				t.Fatal(err)
			}
			want := nearest(all, all[q], 10, func(n int) bool { return n%every != 0 })
			if len(got) != len(want) {
				t.Fatalf("%d found of one in %d, want %d", len(got), every, len(want))
			}
			for _, h := range got {
				if !keep(h.ID) {
					t.Fatal("found what was not to be")
				}
				of++
				if slices.Contains(want, h.ID) {
					hit++
				}
			}
		}
		if share := float64(hit) / float64(of); share < 0.93 {
			t.Errorf("recall %.3f of one in %d", share, every)
		}
	}
	if got, _ := s.Search(all[0], 10, func(ID) bool { return false }); len(got) > 0 {
		t.Errorf("found %v of nothing", got)
	}
}

// A text that is there ten thousand times takes no place away from others.
func TestManyEqualVectors(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	same := clustered(r, 1, 32, 1)[0]
	all := clustered(r, 1000, 32, 10)
	for len(all) < 4000 {
		all = append(all, same)
	}
	s := filled(t, all, 100)
	if got := recall(t, s, all[:1000], all[:50], nil); got < 0.9 {
		t.Errorf("recall %.3f beside equal vectors", got)
	}
	for n := 1000; n < 3999; n++ {
		s.Remove(idOf(n))
	}
	for s.Link(500) > 0 {
	}
	if got, err := s.Search(same, 1, nil); err != nil || len(got) != 1 || got[0].ID != idOf(3999) {
		t.Errorf("the last of the equal ones is not found: %v, %v", got, err)
	}
}

// Removing everything leaves nothing, not even bytes, and the index works on.
func TestRemovedVectorsLeaveMemory(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	all := clustered(r, 700, 32, 5)
	s := filled(t, all, 100)
	for n := range all {
		s.Remove(idOf(n))
		if s.Remove(idOf(n)) {
			t.Fatal("a vector went twice")
		}
	}
	for _, c := range s.chunks {
		if slices.ContainsFunc(c.vec, func(n int8) bool { return n != 0 }) || slices.ContainsFunc(c.links,
			func(n uint32) bool { return n != 0 }) {
			t.Error("something is left of what was removed")
		}
	}
	if got, err := s.Search(all[0], 10, nil); err != nil || len(got) > 0 || len(s.upper) > 0 || s.top != -1 {
		t.Errorf("found %v, %v", got, err)
	}
	for n, x := range all[:300] {
		if err := s.Add(idOf(n), packed(t, x)); err != nil {
			t.Fatal(err)
		}
		if err := s.Add(idOf(n), packed(t, x)); err != nil { // again
			t.Fatal(err)
		}
	}
	for s.Link(500) > 0 {
	}
	if got := recall(t, s, all[:300], all[:20], nil); got < 0.95 {
		t.Errorf("recall %.3f after a new start", got)
	}
}

// Searches go on while vectors come, are linked and go; the race detector looks on.
func TestSearchesDuringChanges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	all := clustered(r, 2000, 32, 5)
	s := filled(t, all[:1000], 100)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for n := g; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				got, err := s.Search(all[n%1000], 10, nil)
				if err != nil || len(got) != 10 {
					t.Errorf("found %d, %v", len(got), err)
					return
				}
			}
		})
	}
	for n := 1000; n < 2000; n++ {
		if err := s.Add(idOf(n), packed(t, all[n])); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			s.Remove(idOf(n - 1000))
		}
		if n%50 == 0 {
			s.Link(60)
		}
	}
	close(done)
	wg.Wait()
}

// A saved graph that was cut or altered anywhere is refused, and the searches answer as
// before.
func TestDamagedGraphsAreRefused(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	all := clustered(r, 80, 16, 5)
	s := filled(t, all, 20)
	var file bytes.Buffer
	if err := s.Save(&file); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	fresh := func() *Space {
		n := newSpace(t, 16, 20)
		for i, x := range all {
			if err := n.Add(idOf(i), packed(t, x)); err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	into := fresh()
	for at := range whole {
		flipped := slices.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		if err := into.Load(bytes.NewReader(flipped)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("a flipped bit at %d: %v", at, err)
		}
	}
	for n := range len(whole) {
		if err := into.Load(bytes.NewReader(whole[:n])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if got := recall(t, into, all, all[:20], nil); got < 0.97 {
		t.Errorf("recall %.3f without a graph", got)
	}
	if err := into.Load(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	if _, linked := into.Len(); linked != 80 {
		t.Errorf("%d linked after loading", linked)
	}
	// A vector that changed since is linked anew.
	changed := fresh()
	if err := changed.Add(idOf(7), packed(t, all[8])); err != nil {
		t.Fatal(err)
	}
	if err := changed.Load(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	if _, linked := changed.Len(); linked != 79 || changed.Link(10) != 0 {
		t.Errorf("%d linked after one changed", linked)
	}
}

// Whatever a file holds, reading it neither fails hard nor leaves a broken graph.
func FuzzLoadGraph(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	all := clustered(r, 40, 16, 3)
	s := filled(f, all, 10)
	var file bytes.Buffer
	if err := s.Save(&file); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes()[:file.Len()-32])
	f.Add([]byte(graphMagic))
	f.Fuzz(func(t *testing.T, body []byte) {
		n := newSpace(t, 16, 10)
		for i, x := range all {
			if err := n.Add(idOf(i), packed(t, x)); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Load(bytes.NewReader(sealed(body))); err != nil {
			return
		}
		for n.Link(100) > 0 {
		}
		if got := recall(t, n, all, all[:3], nil); got < 0.5 {
			t.Errorf("recall %.2f", got)
		}
	})
}
