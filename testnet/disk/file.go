package disk

import (
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file is an open file or directory; one goroutine reads or writes through it.
type file struct {
	d      *Disk
	n      *node
	name   string
	pos    int
	writes bool
	closed bool
}

var _ vfs.File = (*file)(nil)

// locked runs f under the disk's lock, unless the file is closed or a directory.
func (f *file) locked(op string, writes bool, do func()) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	var err error
	switch {
	case f.closed:
		err = fs.ErrClosed
	case f.n.isDir():
		err = syscall.EISDIR
	case writes && !f.writes:
		err = fs.ErrPermission
	default:
		do()
		return nil
	}
	return &fs.PathError{Op: op, Path: f.name, Err: err}
}

func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

func (f *file) Read(p []byte) (n int, err error) {
	err = f.locked("read", false, func() {
		n = f.n.read(p, f.pos)
		f.pos += n
	})
	if err == nil && n == 0 && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.locked("read", false, func() { n = f.n.read(p, int(off)) })
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (f *file) Write(p []byte) (int, error) {
	err := f.locked("write", true, func() {
		f.n.write(p, f.pos)
		f.pos += len(p)
	})
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	if err := f.locked("write", true, func() { f.n.write(p, int(off)) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *file) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "sync", Path: f.name, Err: fs.ErrClosed}
	}
	f.n.sync()
	return nil
}

func (f *file) SyncData() error { return f.Sync() }

// SyncTo promises nothing and does nothing: whoever relies on it is found out.
func (f *file) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func (f *file) Preallocate(int64, int64) error { return nil }

func (f *file) Prefetch(int64, int64) error { return nil }

func (f *file) Fd() uintptr { return vfs.InvalidFd }

func (f *file) Stat() (vfs.FileInfo, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.n.info(f.name), nil
}

// info is what Stat says of a node.
type info struct {
	name    string
	size    int64
	mode    fs.FileMode
	changed time.Time
}

func (n *node) info(name string) vfs.FileInfo {
	i := info{name: name, size: int64(n.size), mode: 0o644, changed: n.changed}
	if n.isDir() {
		i.mode = fs.ModeDir | 0o755
	}
	return i
}

func (i info) Name() string           { return i.name }
func (i info) Size() int64            { return i.size }
func (i info) Mode() fs.FileMode      { return i.mode }
func (i info) ModTime() time.Time     { return i.changed }
func (i info) IsDir() bool            { return i.mode.IsDir() }
func (i info) Sys() any               { return nil }
func (i info) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
