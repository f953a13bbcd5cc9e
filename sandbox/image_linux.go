package sandbox

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sharing is a file in memory that memories are mapped from: what they do not
// write to is there once for all of them.
type sharing struct {
	file *os.File
	size uint64
}

func (s *sharing) make(size uint64, parts []segment) bool {
	fd, err := unix.MemfdCreate("selvage-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), "image")
	err = f.Truncate(int64(size))
	for _, p := range parts {
		if err == nil {
			_, err = f.WriteAt(p.b, int64(p.at))
		}
	}
	if err == nil { // nobody changes what others run on
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return false
	}
	s.file, s.size = f, size
	return true
}

func (s *sharing) lay(buf []byte) bool {
	if s.file == nil {
		return true
	}
	_, err := unix.MmapPtr(int(s.file.Fd()), 0, unsafe.Pointer(unsafe.SliceData(buf)), uintptr(s.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	return err == nil
}

// shares reports whether there is anything in the file.
func (s *sharing) shares() bool { return s.file != nil }

// look returns the file's bytes, until done.
func (s *sharing) look() (b []byte, done func(), ok bool) {
	b, err := unix.Mmap(int(s.file.Fd()), 0, int(s.size), unix.PROT_READ, unix.MAP_SHARED)
	return b, func() { _ = unix.Munmap(b) }, err == nil
}

func (s *sharing) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// forget drops what was written to a memory since it was made: zero again, or
// what the image has there.
func forget(buf []byte) bool { return len(buf) == 0 || unix.Madvise(buf, unix.MADV_DONTNEED) == nil }
