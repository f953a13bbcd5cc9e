//go:build !amd64

package memory

func dot(q []int16, v []int8) int32 { return dotPlain(q, v) }

func dot4(q []int16, v *[4][]int8, out *[4]int32) { dotPlain4(q, v, out) }

func dotSelf(u, v []int8) int32 { return dotSelfPlain(u, v) }

func prefetch([]int8) {}
