package container

import "golang.org/x/sys/unix"

// ceiling bounds open files and processes of a container's user where this
// machine does not.
const ceiling = 16_384

// most are limits for open files and processes that this process may set. Engines
// want more on their own, and fail where they may not raise them.
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
