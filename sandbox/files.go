package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"
)

// A Dir is a directory of the host that a guest sees, and nothing above it:
// neither ".." nor a link leads out.
type Dir struct {
	Root     *os.Root // stays the caller's, who closes it after the instance
	Guest    string   // where the guest sees it, such as "/work"
	ReadOnly bool
}

const (
	// maxOpen bounds the files that an instance holds open.
	maxOpen = 64
	// maxWritten bounds what an instance may write into files.
	maxWritten = 256 << 20
)

// files is what the runtime is told of directories.
func (i *Instance) files(dirs []Dir) (wazero.FSConfig, *Error) {
	if len(dirs) == 0 {
		return nil, nil
	}
	if len(dirs) > maxDirs {
		return nil, refuse(RuntimeUnavailable, "%d directories are more than the %d that are allowed", len(dirs), maxDirs)
	}
	conf := wazero.NewFSConfig()
	use := &usage{i: i}
	for _, d := range dirs {
		if d.Root == nil || !strings.HasPrefix(d.Guest, "/") || path.Clean(d.Guest) != d.Guest {
			return nil, refuse(RuntimeUnavailable, "directory %q has no root or no clean absolute path", d.Guest)
		}
		conf = conf.(sysfs.FSConfig).WithSysFSMount(&rooted{dir: d, use: use}, d.Guest)
	}
	return conf, nil
}

// usage is what an instance uses of files.
type usage struct {
	i       *Instance
	open    int
	written int64
}

// costFile is what a look at the file system costs beside the call of the host.
const costFile = 512

// rooted is a directory as the runtime sees it.
type rooted struct {
	experimentalsys.UnimplementedFS
	dir Dir
	use *usage
}

// errno is what a guest is told of an error.
func errno(err error) experimentalsys.Errno {
	if err == nil {
		return 0
	}
	if no := experimentalsys.UnwrapOSError(err); no != experimentalsys.EIO {
		return no
	}
	var sysErr syscall.Errno
	if errors.As(err, &sysErr) {
		return experimentalsys.EIO
	}
	return experimentalsys.EPERM // the path leads out of the root
}

// name is a path as the root takes it.
func name(p string) string {
	if p = strings.TrimLeft(p, "/"); p == "" {
		return "."
	}
	return p
}

func (r *rooted) spend() { r.use.i.look(); r.use.i.spend(costFile) }

// mayWrite is nil when the directory may be changed.
func (r *rooted) mayWrite() experimentalsys.Errno {
	r.spend()
	if r.dir.ReadOnly {
		return experimentalsys.EROFS
	}
	return 0
}

const writing = experimentalsys.O_RDWR | experimentalsys.O_WRONLY | experimentalsys.O_CREAT |
	experimentalsys.O_TRUNC | experimentalsys.O_APPEND

var flags = []struct {
	of experimentalsys.Oflag
	is int
}{
	{experimentalsys.O_RDWR, os.O_RDWR}, {experimentalsys.O_WRONLY, os.O_WRONLY}, {experimentalsys.O_APPEND, os.O_APPEND},
	{experimentalsys.O_CREAT, os.O_CREATE}, {experimentalsys.O_EXCL, os.O_EXCL}, {experimentalsys.O_TRUNC, os.O_TRUNC},
	{experimentalsys.O_SYNC, os.O_SYNC},
}

// OpenFile opens what is a file or a directory. Pipes and devices are refused,
// and opening one does not wait.
func (r *rooted) OpenFile(p string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File,
	experimentalsys.Errno) {
	r.spend()
	if r.dir.ReadOnly && flag&writing != 0 {
		return nil, experimentalsys.EROFS
	}
	if r.use.open >= maxOpen {
		return nil, experimentalsys.EAGAIN
	}
	goFlag := syscall.O_NONBLOCK
	for _, f := range flags {
		if flag&f.of != 0 {
			goFlag |= f.is
		}
	}
	if flag&experimentalsys.O_NOFOLLOW != 0 {
		if st, err := r.dir.Root.Lstat(name(p)); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return nil, experimentalsys.ELOOP
		}
	}
	f, err := r.dir.Root.OpenFile(name(p), goFlag, perm&0o777)
	if err != nil {
		return nil, errno(err)
	}
	st, err := f.Stat()
	switch {
	case err != nil:
		f.Close()
		return nil, errno(err)
	case !st.IsDir() && !st.Mode().IsRegular():
		f.Close()
		return nil, experimentalsys.EACCES
	case !st.IsDir() && flag&experimentalsys.O_DIRECTORY != 0:
		f.Close()
		return nil, experimentalsys.ENOTDIR
	}
	r.use.open++
	return &file{f: f, dir: st.IsDir(), fs: r, appends: flag&experimentalsys.O_APPEND != 0}, 0
}

func (r *rooted) Lstat(p string) (sys.Stat_t, experimentalsys.Errno) {
	r.spend()
	return stat(r.dir.Root.Lstat(name(p)))
}

func (r *rooted) Stat(p string) (sys.Stat_t, experimentalsys.Errno) {
	r.spend()
	return stat(r.dir.Root.Stat(name(p)))
}

func stat(st fs.FileInfo, err error) (sys.Stat_t, experimentalsys.Errno) {
	if err != nil {
		return sys.Stat_t{}, errno(err)
	}
	return sys.NewStat_t(st), 0
}

func (r *rooted) Mkdir(p string, perm fs.FileMode) experimentalsys.Errno {
	if no := r.mayWrite(); no != 0 {
		return no
	}
	return errno(r.dir.Root.Mkdir(name(p), perm&0o777))
}

func (r *rooted) Rename(from, to string) experimentalsys.Errno {
	if no := r.mayWrite(); no != 0 {
		return no
	}
	return errno(r.dir.Root.Rename(name(from), name(to)))
}

func (r *rooted) Rmdir(p string) experimentalsys.Errno {
	return r.remove(p, true)
}

func (r *rooted) Unlink(p string) experimentalsys.Errno {
	return r.remove(p, false)
}

func (r *rooted) remove(p string, dir bool) experimentalsys.Errno {
	if no := r.mayWrite(); no != 0 {
		return no
	}
	st, err := r.dir.Root.Lstat(name(p))
	switch {
	case err != nil:
		return errno(err)
	case dir && !st.IsDir():
		return experimentalsys.ENOTDIR
	case !dir && st.IsDir():
		return experimentalsys.EISDIR
	}
	return errno(r.dir.Root.Remove(name(p)))
}

// Link and Symlink are refused: links that a guest leaves behind would lead
// others who follow them.
func (r *rooted) Link(string, string) experimentalsys.Errno {
	r.spend()
	return experimentalsys.EPERM
}

func (r *rooted) Symlink(string, string) experimentalsys.Errno {
	r.spend()
	return experimentalsys.EPERM
}

func (r *rooted) Readlink(p string) (string, experimentalsys.Errno) {
	r.spend()
	to, err := r.dir.Root.Readlink(name(p))
	return to, errno(err)
}

func (r *rooted) Utimens(p string, atim, mtim int64) experimentalsys.Errno {
	if no := r.mayWrite(); no != 0 {
		return no
	}
	if atim == experimentalsys.UTIME_OMIT || mtim == experimentalsys.UTIME_OMIT {
		return experimentalsys.ENOSYS
	}
	return errno(r.dir.Root.Chtimes(name(p), time.Unix(0, atim), time.Unix(0, mtim)))
}

// A file is one that a guest has open.
type file struct {
	experimentalsys.UnimplementedFile
	f       *os.File
	fs      *rooted
	dir     bool
	appends bool
	closed  bool
}

func (f *file) IsDir() (bool, experimentalsys.Errno) { return f.dir, 0 }
func (f *file) IsAppend() bool                       { return f.appends }

func (f *file) SetAppend(on bool) experimentalsys.Errno {
	f.appends = on
	return 0
}

func (f *file) Stat() (sys.Stat_t, experimentalsys.Errno) {
	f.fs.spend()
	return stat(f.f.Stat())
}

func (f *file) Dev() (uint64, experimentalsys.Errno) {
	st, no := f.Stat()
	return st.Dev, no
}

func (f *file) Ino() (sys.Inode, experimentalsys.Errno) {
	st, no := f.Stat()
	return st.Ino, no
}

func (f *file) read(n int, err error) (int, experimentalsys.Errno) {
	f.fs.use.i.spend(int64(n) >> perRange)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errno(err)
}

func (f *file) Read(b []byte) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	return f.read(f.f.Read(b))
}

func (f *file) Pread(b []byte, at int64) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	if at < 0 {
		return 0, experimentalsys.EINVAL
	}
	return f.read(f.f.ReadAt(b, at))
}

// room is an error when n bytes more may not be written.
func (f *file) room(n int64) experimentalsys.Errno {
	switch use := f.fs.use; {
	case f.dir:
		return experimentalsys.EISDIR
	case f.fs.dir.ReadOnly:
		return experimentalsys.EROFS
	case use.written+n > maxWritten:
		return experimentalsys.EIO
	default:
		use.written += n
		use.i.spend(n >> perRange)
	}
	return 0
}

func (f *file) Write(b []byte) (int, experimentalsys.Errno) {
	if no := f.room(int64(len(b))); no != 0 {
		return 0, no
	}
	if f.appends {
		if _, err := f.f.Seek(0, io.SeekEnd); err != nil {
			return 0, errno(err)
		}
	}
	n, err := f.f.Write(b)
	return n, errno(err)
}

func (f *file) Pwrite(b []byte, at int64) (int, experimentalsys.Errno) {
	if at < 0 {
		return 0, experimentalsys.EINVAL
	}
	if no := f.room(int64(len(b))); no != 0 {
		return 0, no
	}
	n, err := f.f.WriteAt(b, at)
	return n, errno(err)
}

// position is int64 under a name by which vet does not take Seek for io.Seeker's,
// whose error is another.
type position = int64

func (f *file) Seek(offset position, whence int) (int64, experimentalsys.Errno) {
	f.fs.spend()
	if f.dir && (offset != 0 || whence != io.SeekStart) {
		return 0, experimentalsys.EISDIR
	}
	at, err := f.f.Seek(offset, whence)
	return at, errno(err)
}

func (f *file) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.dir {
		return nil, experimentalsys.ENOTDIR
	}
	f.fs.spend()
	entries, err := f.f.ReadDir(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	f.fs.use.i.spend(int64(len(entries)))
	list := make([]experimentalsys.Dirent, 0, len(entries))
	for _, e := range entries {
		list = append(list, experimentalsys.Dirent{Name: e.Name(), Type: e.Type()})
	}
	return list, errno(err)
}

func (f *file) Truncate(size int64) experimentalsys.Errno {
	st, err := f.f.Stat()
	if err != nil {
		return errno(err)
	}
	if size < 0 {
		return experimentalsys.EINVAL
	}
	if no := f.room(max(0, size-st.Size())); no != 0 {
		return no
	}
	return errno(f.f.Truncate(size))
}

func (f *file) Sync() experimentalsys.Errno {
	f.fs.spend()
	return errno(f.f.Sync())
}

func (f *file) Datasync() experimentalsys.Errno { return f.Sync() }

func (f *file) Close() experimentalsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.fs.use.open--
	return errno(f.f.Close())
}
