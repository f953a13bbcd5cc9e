//go:build unix

package sandbox

import "syscall"

// reserve returns n bytes of zeroes that take up room only when they are used,
// or nil.
func reserve(n uint64) []byte {
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

func giveBack(b []byte) { _ = syscall.Munmap(b) }
