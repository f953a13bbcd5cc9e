package memory

import (
	"crypto/sha256"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sealed appends the sum that a saved graph ends with.
func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(append([]byte(nil), body...), sum[:]...)
}

// Packing is off by what is promised, and a cosine by little.
func TestPackedVectorsAreNear(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		dims := MinDims + r.IntN(600)
		x, y := make([]float32, dims), make([]float32, dims)
		most := 0.0
		for i := range x {
			x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
			y[i] += x[i]
			most = max(most, math.Abs(float64(x[i])))
		}
		v, w := packed(t, x), packed(t, y)
		if v.Check() != nil || v.Dims() != dims {
			t.Fatal(v.Check(), v.Dims())
		}
		var xy, xx, yy float64
		for i, got := range v.Unpack() {
			if off := math.Abs(float64(got) - float64(x[i])); off > most/254*1.001 {
				t.Fatalf("a component is off by %g, the largest is %g", off, most)
			}
			xy, xx, yy = xy+float64(x[i])*float64(y[i]), xx+float64(x[i])*float64(x[i]), yy+float64(y[i])*float64(y[i])
		}
		if off := math.Abs(float64(cosine(v, w)) - xy/math.Sqrt(xx*yy)); off > 0.01 {
			t.Fatalf("the cosine of %d components is off by %g", dims, off)
		}
	}
}

func TestBadVectorsAreRefused(t *testing.T) {
	t.Parallel()
	good := make([]float32, 16)
	good[3] = 1
	with := func(f float32) []float32 {
		x := append([]float32(nil), good...)
		x[5] = f
		return x
	}
	for _, c := range []struct {
		x    []float32
		want error
	}{
		{with(float32(math.NaN())), ErrNotFinite}, {with(float32(math.Inf(1))), ErrNotFinite},
		{with(float32(math.Inf(-1))), ErrNotFinite},
		{make([]float32, 16), ErrZero}, {good[:7], ErrDims}, {make([]float32, MaxDims+1), ErrDims}, {nil, ErrDims},
		{with(math.SmallestNonzeroFloat32), nil}, {with(math.MaxFloat32), nil},
	} {
		if _, err := Pack(c.x); !errors.Is(err, c.want) {
			t.Errorf("Pack: %v, want %v", err, c.want)
		}
		if c.want != nil && len(c.x) == 16 {
			s := newSpace(t, 16, 10)
			if _, err := s.Search(c.x, 1, nil); !errors.Is(err, c.want) {
				t.Errorf("Search: %v, want %v", err, c.want)
			}
		}
	}
	v := packed(t, good)
	for at, b := range map[int]byte{0: 2, 1: 0x7f, 6: 0x80} {
		bad := append(Vector(nil), v...)
		if bad[at] = b; at == 1 {
			bad[2] = 0xff
		}
		if bad.Check() == nil {
			t.Errorf("byte %d may be %x", at, b)
		}
	}
	for _, bad := range []Vector{nil, {}, {1, 2, 3}, append(v[:5:5], make([]byte, 16)...)} {
		if bad.Check() == nil || bad.Dims() > 16 {
			t.Errorf("%x is a vector", []byte(bad))
		}
	}
	s := newSpace(t, 32, 10)
	if err := s.Add(idOf(1), v); !errors.Is(err, ErrOtherDims) {
		t.Error(err)
	}
	if _, err := s.Search(good, 1, nil); !errors.Is(err, ErrOtherDims) {
		t.Error(err)
	}
	tiny, err := Pack([]float32{math.SmallestNonzeroFloat32, 0, 0, 0, 0, 0, 0, 0})
	if !errors.Is(err, ErrZero) {
		t.Errorf("too small for a scale: %x, %v", []byte(tiny), err)
	}
}

// Vector instructions and plain Go agree to the last bit.
func TestProductsAgree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for n := lanes; n <= MaxDims; n += lanes * (1 + r.IntN(5)) {
		q, u, v := make([]int16, n), make([]int8, n), make([]int8, n)
		for i := range n {
			q[i], u[i], v[i] = int16(r.IntN(2*queryMost+1)-queryMost), int8(r.IntN(256)-128), int8(r.IntN(256)-128)
			if n%3 == 0 {
				q[i], u[i], v[i] = queryMost, 127, -128 // the most there can be
			}
		}
		if got, want := dot(q, v), dotPlain(q, v); got != want {
			t.Fatalf("%d components: %d, want %d", n, got, want)
		}
		var got4, want4 [4]int32
		four := [4][]int8{v, u, slices.Repeat(u[:lanes], n/lanes), slices.Repeat(v[n-lanes:], n/lanes)}
		dot4(q, &four, &got4)
		if dotPlain4(q, &four, &want4); got4 != want4 {
			t.Fatalf("%d components, four at a time: %d, want %d", n, got4, want4)
		}
		if got, want := dotSelf(u, v), dotSelfPlain(u, v); got != want {
			t.Fatalf("%d components: %d, want %d", n, got, want)
		}
	}
}

// Levels follow from the ID: a sixteenth goes up each time.
func TestLevels(t *testing.T) {
	t.Parallel()
	var have [maxLevel + 1]int
	for n := range 64 << 10 {
		have[idOf(n).level()]++
	}
	for level, want := range []int{61440, 3840, 240, 15} {
		if got := have[level]; float64(got) < float64(want)*0.6 || float64(got) > float64(want)*1.6 {
			t.Errorf("%d vectors on level %d, want about %d", got, level, want)
		}
	}
	id := idOf(77)
	if again, ok := ParseID(id.String()); !ok || again != id {
		t.Error("an ID does not read back")
	}
	for _, s := range []string{"", "x", id.String()[1:], "G" + id.String()[1:], "AB" + id.String()[2:]} {
		if _, ok := ParseID(s); ok {
			t.Errorf("%q is an ID", s)
		}
	}
}

// cosine is the similarity of two vectors, -1 to 1.
func cosine(a, b Vector) float32 {
	if a.Dims() != b.Dims() || a.Dims() == 0 {
		return 0
	}
	var ab, aa, bb int64
	for i := range a.Dims() {
		x, y := int64(int8(a[vectorHead+i])), int64(int8(b[vectorHead+i]))
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return float32(ab) * inverseRoot(aa) * inverseRoot(bb)
}
