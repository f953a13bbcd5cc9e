package store

import (
	"errors"

	"golang.org/x/sys/unix"
)

// setDirect makes writes to a file pass the page cache by, or go through it
// again, and tells whether they pass it by now.
func setDirect(fd uintptr, on bool) bool {
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil {
		return false // a file of memory
	}
	want := flags &^ unix.O_DIRECT
	if on {
		want |= unix.O_DIRECT
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, want); err != nil {
		return !on
	}
	return on
}

// refusesDirect tells whether an error says that the file system takes no
// direct writes after all, or wants larger blocks for them.
func refusesDirect(err error) bool { return errors.Is(err, unix.EINVAL) }

// writeBack tells the system to begin to write a part of a file to the disk. It
// promises nothing.
func writeBack(fd uintptr, offset, n int64) {
	_ = unix.SyncFileRange(int(fd), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
