package node

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeBack tells the system to begin to write a part of a file to the disk, so
// that the sync at its end has little left to wait for. It promises nothing.
func writeBack(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
