package testnet

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A FaultyFS is a file system whose syncs do not finish while the fault file
// names the node as stalled.
type FaultyFS struct {
	vfs.FS
	Faults *FaultWatcher
}

// wait returns once the disk is not stalled; closing the watcher ends it.
func (f FaultyFS) wait() {
	for f.Faults.stalled.Load() {
		time.Sleep(pollInterval)
	}
}

// Create hands out a file whose syncs may stall.
func (f FaultyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.Create(name, c))
}

// ReuseForWrite hands out a file whose syncs may stall.
func (f FaultyFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.wrap(f.FS.ReuseForWrite(old, name, c))
}

// OpenReadWrite hands out a file whose syncs may stall.
func (f FaultyFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.wrap(f.FS.OpenReadWrite(name, c, o...))
}

func (f FaultyFS) wrap(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return faultyFile{file, f}, nil
}

type faultyFile struct {
	vfs.File
	fs FaultyFS
}

func (f faultyFile) Sync() error {
	f.fs.wait()
	return f.File.Sync()
}

func (f faultyFile) SyncData() error {
	f.fs.wait()
	return f.File.SyncData()
}

func (f faultyFile) SyncTo(length int64) (bool, error) {
	f.fs.wait()
	return f.File.SyncTo(length)
}
