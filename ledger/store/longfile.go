package store

import (
	"io"
	"sync"
	"unsafe"
)

// A LongFile writes a new file once, from its beginning to its end, one piece
// while the caller makes the next. The pieces go past the system's page cache
// where the file system lets them: what is written once and read much later
// would only drive out what is in use, and copying it there costs several times
// what writing it does. Elsewhere the disk is told to begin at once, so that the
// sync at the end has little left to wait for. It is used by one goroutine.
type LongFile struct {
	f           RawFile
	direct      bool
	fill, spare []byte // longPiece each, on the boundary of a block
	at          int64  // where the piece that is written begins
	busy        sync.WaitGroup
	err         error // of the piece before; busy guards it
}

// A RawFile is what a LongFile writes to: an os.File, or one of a store's.
type RawFile interface {
	io.Writer
	Sync() error
	Fd() uintptr // of the operating system, or a number that is none
}

// NewLongFile writes to f, which is empty. f is the caller's to close, after
// [LongFile.Close].
func NewLongFile(f RawFile) *LongFile {
	return &LongFile{f: f, direct: setDirect(f.Fd(), true)}
}

// Write takes in p. The error may be that of a piece before.
func (l *LongFile) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if l.fill == nil {
			l.fill = *pieces.Get().(*[]byte)
		}
		take := min(len(p)-n, longPiece-len(l.fill))
		l.fill = append(l.fill, p[n:n+take]...)
		n += take
		if len(l.fill) == longPiece {
			if err := l.turn(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// turn begins to write what was taken in.
func (l *LongFile) turn() error {
	l.busy.Wait()
	if l.err != nil {
		return l.err
	}
	full := l.fill
	l.fill, l.spare = l.spare[:0], full
	l.busy.Go(func() { l.err = l.put(full) })
	return nil
}

// put writes a piece.
func (l *LongFile) put(b []byte) error {
	if l.direct && len(b)%blockBytes != 0 { // the end of the file
		l.direct = false
		setDirect(l.f.Fd(), false)
	}
	n, err := l.f.Write(b)
	if l.direct && n == 0 && refusesDirect(err) {
		l.direct = false
		setDirect(l.f.Fd(), false)
		n, err = l.f.Write(b)
	}
	if err == nil && !l.direct {
		writeBack(l.f.Fd(), l.at, int64(n))
	}
	l.at += int64(n)
	return err
}

// Sync returns when all that was written is durable. It ends the file: nothing
// may be written after it.
func (l *LongFile) Sync() error {
	if len(l.fill) > 0 {
		if err := l.turn(); err != nil {
			return err
		}
	}
	l.busy.Wait()
	if l.err != nil {
		return l.err
	}
	return l.f.Sync()
}

// Close waits for the piece under way; what was not synced may not be in the
// file.
func (l *LongFile) Close() {
	l.busy.Wait()
	for _, b := range [][]byte{l.fill, l.spare} {
		if b != nil {
			b = b[:0]
			pieces.Put(&b)
		}
	}
	l.fill, l.spare = nil, nil
}

const (
	// longPiece is how much of a long file is written at once. Past the page cache
	// 512 KiB take a tenth less time than 256 KiB, and 4 MiB a tenth less again,
	// twice for each of two tables at a time; a board of 512 MB would feel that.
	longPiece = 512 << 10
	// blockBytes is what file systems want addresses, places and lengths of direct
	// writes to be multiples of, at most.
	blockBytes = 4 << 10
)

// pieces are between two files: a store under load writes a table each second.
var pieces = sync.Pool{New: func() any { b := alignedPiece(); return &b }}

// alignedPiece returns an empty piece that begins on the boundary of a block.
func alignedPiece() []byte {
	b := make([]byte, longPiece+blockBytes)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % blockBytes)
	return b[skip : skip : skip+longPiece]
}
