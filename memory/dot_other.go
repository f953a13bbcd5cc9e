//go:build !amd64

package memory

func dot(q []int16, v []int8) int32 { return dotPlain(q, v) }

func dotSelf(u, v []int8) int32 { return dotSelfPlain(u, v) }
