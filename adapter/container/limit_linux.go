package container

import "golang.org/x/sys/unix"

// ceiling bounds the open files and processes of a container's user if this machine sets no
// limit.
const ceiling = 16_384

// most returns limits of open files and processes that this process may set. Engines ask for
// more by default, and fail if they may not raise them.
func most() (files, processes int64) {
	hard := func(of int) int64 {
		var l unix.Rlimit
		if err := unix.Getrlimit(of, &l); err != nil || l.Max >= ceiling {
			return ceiling
		}
		return int64(l.Max)
	}
	return hard(unix.RLIMIT_NOFILE), hard(unix.RLIMIT_NPROC)
}
