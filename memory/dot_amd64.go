package memory

import "golang.org/x/sys/cpu"

var wide = cpu.X86.HasAVX2

// dot16 and dot8 take n components, a multiple of 16 that is not zero.
//
//go:noescape
func dot16(q *int16, v *int8, n int) int32

//go:noescape
func dot8(u, v *int8, n int) int32

//go:noescape
func dot16x4(q *int16, v *[4]*int8, n int, out *[4]int32)

// dot4 is dot of four vectors.
func dot4(q []int16, v *[4][]int8, out *[4]int32) {
	if !wide {
		dotPlain4(q, v, out)
		return
	}
	n := len(q)
	dot16x4(&q[0], &[4]*int8{&v[0][:n][0], &v[1][:n][0], &v[2][:n][0], &v[3][:n][0]}, n, out)
}

// dot is the product of a question and a stored vector; both have a multiple of 16
// components.
func dot(q []int16, v []int8) int32 {
	if !wide {
		return dotPlain(q, v)
	}
	return dot16(&q[0], &v[:len(q)][0], len(q))
}

// dotSelf is the product of two stored vectors.
func dotSelf(u, v []int8) int32 {
	if !wide {
		return dotSelfPlain(u, v)
	}
	return dot8(&u[0], &v[:len(u)][0], len(u))
}

// fetch asks for the cache lines of n bytes, without waiting for them.
//
//go:noescape
func fetch(v *int8, n int)

// prefetch asks for a vector that is needed soon.
func prefetch(v []int8) { fetch(&v[0], len(v)) }
