package store

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countingFS counts the syncs of write-ahead log files, and makes the files that a
// marker names durable before it: Pebble syncs their directory only after it has
// made the marker, and what a power loss leaves of a directory that was not synced
// may be the marker alone.
type countingFS struct {
	vfs.FS
	syncs *atomic.Uint64
}

func (fs *countingFS) Unwrap() vfs.FS { return fs.FS }

func (fs *countingFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &countingFile{File: f, syncs: fs.syncs}, nil
}

func (fs *countingFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		if err := SyncDir(fs, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	f, err := fs.FS.Create(name, c)
	return fs.wrap(name, f, err)
}

// SyncDir makes durable which files a directory has.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (fs *countingFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(from, to, c)
	return fs.wrap(to, f, err)
}

type countingFile struct {
	vfs.File
	syncs *atomic.Uint64
}

func (f *countingFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f *countingFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}

func (f *countingFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	if full {
		f.syncs.Add(1)
	}
	return full, err
}
