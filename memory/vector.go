package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A Vector is a packed vector, as it is stored and sent:
//
//	version 0x01
//	scale, an IEEE 754 binary32, big-endian, finite and above zero
//	one int8 for each component, -127 to 127, not all of them zero
//
// A component is its int8 times the scale. Example: 01 3c000000 7f 81 00 is the vector
// (127/128, -127/128, 0) of three components. Rules read such bytes without computing
// with floats; see [Vector.Check].
//
// Packing rounds each component to the nearest multiple of the scale, which is the largest
// component divided by 127: a component is off by at most 1/254 of the largest one.
type Vector []byte

const (
	vectorVersion = 1
	vectorHead    = 5
	int8Most      = 127
	// queryMost is the largest component of a question: eight times finer than int8.
	queryMost = int8Most * 8
)

// Refusals of vectors.
var (
	ErrNotFinite = errors.New("vector: a component is not a finite number")
	ErrZero      = errors.New("vector: all components are zero")
	ErrDims      = fmt.Errorf("vector: needs %d to %d components", MinDims, MaxDims)
	ErrOtherDims = errors.New("vector: has another number of components than the collection")
	ErrVector    = errors.New("vector: is not a packed vector of version 1")
)

// Pack rounds the components of x to int8.
func Pack(x []float32) (Vector, error) {
	if len(x) < MinDims || len(x) > MaxDims {
		return nil, ErrDims
	}
	most, err := largest(x)
	if err != nil {
		return nil, err
	}
	// A scale that is not a normal number would round to nothing.
	scale := max(most/int8Most, math.SmallestNonzeroFloat32*(1<<23))
	v := make(Vector, vectorHead, vectorHead+len(x))
	v[0] = vectorVersion
	binary.BigEndian.PutUint32(v[1:], math.Float32bits(scale))
	zero := true
	for _, f := range x {
		n := int8(max(-int8Most, min(int8Most, math.RoundToEven(float64(f)/float64(scale)))))
		zero = zero && n == 0
		v = append(v, byte(n))
	}
	if zero {
		return nil, ErrZero
	}
	return v, nil
}

// largest returns the largest magnitude in x.
func largest(x []float32) (most float32, err error) {
	for _, f := range x {
		if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
			return 0, ErrNotFinite
		}
		most = max(most, float32(math.Abs(float64(f))))
	}
	if most == 0 {
		return 0, ErrZero
	}
	return most, nil
}

// packInts returns the vector that has the direction of x.
func packInts(x []int64) Vector {
	most := int64(0)
	for _, n := range x {
		most = max(most, n, -n)
	}
	v := make(Vector, vectorHead, vectorHead+len(x))
	v[0] = vectorVersion
	binary.BigEndian.PutUint32(v[1:], math.Float32bits(1.0/int8Most))
	for _, n := range x {
		// Half away from zero, in integers alone.
		r := (2*int8Most*max(n, -n) + most) / (2 * most)
		if n < 0 {
			r = -r
		}
		v = append(v, byte(int8(r)))
	}
	return v
}

// Dims is the number of components.
func (v Vector) Dims() int { return max(0, len(v)-vectorHead) }

// Check refuses what is no packed vector. It computes with integers alone.
func (v Vector) Check() error {
	if v.Dims() < MinDims || v.Dims() > MaxDims {
		return ErrDims
	}
	if v[0] != vectorVersion {
		return ErrVector
	}
	bits := binary.BigEndian.Uint32(v[1:])
	if exponent := bits >> 23; exponent == 0 || exponent >= 255 {
		return ErrNotFinite // zero, tiny, negative, infinite or not a number
	}
	zero := true
	for _, b := range v[vectorHead:] {
		if int8(b) == -128 {
			return ErrVector
		}
		zero = zero && b == 0
	}
	if zero {
		return ErrZero
	}
	return nil
}

// Unpack returns the components.
func (v Vector) Unpack() []float32 {
	scale := math.Float32frombits(binary.BigEndian.Uint32(v[1:]))
	out := make([]float32, v.Dims())
	for i, b := range v[vectorHead:] {
		out[i] = float32(int8(b)) * scale
	}
	return out
}

// A question is a vector that others are compared with: finer than what is stored.
type question struct {
	v    []int16 // padded to the stride
	norm float32 // 1 / length of v
}

// ask makes a question of x.
func ask(x []float32, stride int) (question, error) {
	most, err := largest(x)
	if err != nil {
		return question{}, err
	}
	q := question{v: make([]int16, stride)}
	sum := int64(0)
	for i, f := range x {
		n := int64(math.RoundToEven(float64(f) / float64(most) * queryMost))
		q.v[i] = int16(n)
		sum += n * n
	}
	q.norm = inverseRoot(sum)
	return q, nil
}

// inverseRoot is 1/√sum. A root and a quotient are rounded alike on every processor.
func inverseRoot(sum int64) float32 { return float32(1 / math.Sqrt(float64(sum))) }
