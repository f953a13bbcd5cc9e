package memory

import "golang.org/x/sys/cpu"

var wide = cpu.X86.HasAVX2

// dot16 and dot8 take n components, a multiple of 16 that is not zero.
//
//go:noescape
func dot16(q *int16, v *int8, n int) int32

//go:noescape
func dot8(u, v *int8, n int) int32

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
