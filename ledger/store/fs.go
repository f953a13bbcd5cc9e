package store

import (
	"errors"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// storeFS is the file system as Pebble sees it. It counts the syncs of write-ahead
// log files, and tells the mark how far logs and manifests are synced.
// It writes tables as a [LongFile]: the page cache took a tenth of a
// node's time under load. And it makes the files that a marker names durable before
// it: Pebble syncs their directory only after it has made the marker, and what a
// power loss leaves of a directory that was not synced may be the marker alone.
type storeFS struct {
	vfs.FS
	store *Store
}

func (fs *storeFS) Unwrap() vfs.FS { return fs.FS }

func (fs *storeFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	switch {
	case err != nil:
		return nil, err
	case strings.HasSuffix(name, ".sst") && f.Fd() != vfs.InvalidFd:
		return &longTable{File: f, long: NewLongFile(f)}, nil
	}
	logged, ok := loggedName(fs.PathBase(name))
	if !ok {
		return f, nil
	}
	w := &loggedWriter{File: f, m: fs.store.mark, name: logged}
	if logged.kind == 'L' {
		return &countingFile{File: w, syncs: &fs.store.syncs}, nil
	}
	return w, nil
}

// forget tells the mark that a file goes, or becomes another.
func (fs *storeFS) forget(name string) error {
	if logged, ok := loggedName(fs.PathBase(name)); ok {
		return fs.store.mark.forget(logged)
	}
	return nil
}

func (fs *storeFS) Remove(name string) error {
	if err := fs.forget(name); err != nil {
		return err
	}
	return fs.FS.Remove(name)
}

func (fs *storeFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(fs.PathBase(name), "marker.") {
		if err := SyncDir(fs, fs.PathDir(name)); err != nil {
			return nil, err
		}
	}
	if err := fs.forget(name); err != nil { // a name that was used before
		return nil, err
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

func (fs *storeFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.forget(from); err != nil {
		return nil, err
	}
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

// longTable is a table that is written as a [LongFile].
type longTable struct {
	vfs.File
	long *LongFile
}

func (t *longTable) Write(p []byte) (int, error) { return t.long.Write(p) }
func (t *longTable) Sync() error                 { return t.long.Sync() }
func (t *longTable) SyncData() error             { return t.long.Sync() }
func (t *longTable) Close() error                { t.long.Close(); return t.File.Close() }

// SyncTo does nothing: a long file is on its way to the disk as it is.
func (t *longTable) SyncTo(int64) (bool, error) { return false, nil }
