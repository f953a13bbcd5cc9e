package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// A File is a blob of this node's disk for reading. Every byte that it gives was
// checked in memory after it was read, with the chunk that it lies in, and that chunk
// had its sum; it holds one chunk at a time. Once a chunk has not, Read fails with an
// error that wraps ErrMismatch; nothing of that chunk is given. It belongs to one
// goroutine.
type File struct {
	d    Digest
	f    *os.File
	sums sums
	buf  []byte // chunk at
	at   int    // -1: none
	pos  int64
}

// Open returns a blob for reading, with its size. The bytes of a small one have been
// hashed when it returns. The error wraps ErrMissing when there is none, and
// ErrMismatch too when what is there is damaged; then the store does not have it any
// more, until it is put again. The damaged file stays until that, or until nothing
// refers to it.
func (s *Store) Open(d Digest) (*File, int64, error) {
	f, err := s.open(d)
	if errors.Is(err, ErrMismatch) {
		return nil, 0, fmt.Errorf("%w: %w", ErrMissing, err)
	} else if err != nil {
		return nil, 0, err
	}
	return f, f.sums.size, nil
}

func (s *Store) open(d Digest) (*File, error) {
	s.mu.Lock()
	h, ok := s.held[d]
	s.mu.Unlock()
	if !ok {
		return nil, ErrMissing
	} else if h.damaged {
		return nil, fmt.Errorf("%w: %s", ErrMismatch, d)
	}
	f, err := s.root().Open(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		s.lost(d)
		return nil, ErrMissing
	} else if err != nil {
		return nil, err
	}
	file, err := s.opened(d, f)
	if err != nil {
		if errors.Is(err, ErrMismatch) {
			s.damaged(d, f)
		}
		f.Close()
		return nil, err
	}
	return file, nil
}

func (s *Store) opened(d Digest, f *os.File) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	of, err := s.sumsOf(d, f, info.Size())
	if err != nil {
		return nil, err
	}
	file := &File{d: d, f: f, sums: of, at: -1}
	if len(of.of) == 0 {
		_, err = file.chunk(0)
	}
	return file, err
}

// chunk returns chunk i, from memory or from the disk.
func (f *File) chunk(i int) ([]byte, error) {
	if f.at == i {
		return f.buf, nil
	}
	from, to := f.sums.bounds(i)
	if f.at = -1; f.buf == nil {
		f.buf = make([]byte, min(chunkBytes, f.sums.size))
	}
	f.buf = f.buf[:to-from]
	if n, err := f.f.ReadAt(f.buf, from); n < len(f.buf) {
		return nil, &chunkError{f.d, f.sums, i, err}
	}
	if !f.sums.holds(i, f.buf) {
		return nil, &chunkError{f.d, f.sums, i, nil}
	}
	f.at = i
	return f.buf, nil
}

// Read reads no further than the chunk that it is in.
func (f *File) Read(p []byte) (int, error) {
	if f.pos >= f.sums.size {
		return 0, io.EOF
	}
	i := int(f.pos / chunkBytes)
	b, err := f.chunk(i)
	if err != nil {
		return 0, err
	}
	from, _ := f.sums.bounds(i)
	n := copy(p, b[f.pos-from:])
	f.pos += int64(n)
	return n, nil
}

// Seek sets where the next Read begins.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	to, err := seekFrom(f.pos, f.sums.size, offset, whence)
	f.pos = to
	return to, err
}

// Close closes the file.
func (f *File) Close() error { return f.f.Close() }

// lost notes that a file is gone.
func (s *Store) lost(d Digest) { s.Remove(d, time.Now().Add(time.Hour)) }

// damaged notes that the file of a blob is not the blob, unless it was replaced since
// it was opened as was. The file stays: it may be all that there is of it.
func (s *Store) damaged(d Digest, was *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.held[d]
	if !ok {
		return
	}
	now, err := s.root().Stat(d.path())
	if err != nil {
		return
	}
	if info, err := was.Stat(); err == nil && os.SameFile(info, now) && !h.damaged {
		h.damaged = true
		s.held[d] = h
		s.rotten.Add(1)
	}
}

// patch writes a chunk of a blob anew, where it lies, and syncs it.
func (s *Store) patch(d Digest, at int64, b []byte) error {
	f, err := s.root().OpenFile(d.path(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Sync(), f.Close())
}

// check hashes all of a blob's file and returns the numbers of its chunks that are
// damaged, or none when that is not known. The error wraps ErrMismatch when it is not
// what its name says, and ErrMissing when it is gone. pace is told what was read, and
// may wait; its error ends the look.
func (s *Store) check(d Digest, pace func(bytes int) error) (of sums, bad []int, err error) {
	f, err := s.root().Open(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		s.lost(d)
		return of, nil, ErrMissing
	} else if err != nil {
		return of, nil, err
	}
	defer f.Close()
	sum, buf := newSummer(), make([]byte, chunk)
	var broke error // the disk does not read it
	for {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if pace != nil && n > 0 {
			if err := pace(n); err != nil {
				return of, nil, err
			}
		}
		if err == io.EOF {
			break
		} else if err != nil {
			broke = err
			break
		}
	}
	got, seen := sum.done()
	kept, keptErr := s.readSums(d)
	if broke == nil && got == d {
		if keptErr != nil || kept.size != seen.size {
			s.keepSums(d, seen)
		}
		s.intact(d)
		return seen, nil, nil
	}
	switch {
	case keptErr == nil && kept.size == seen.size && broke == nil:
		for i, c := range kept.of {
			if seen.of[i] != c {
				bad = append(bad, i)
			}
		}
		return kept, bad, fmt.Errorf("%w: %d chunks of %s", ErrMismatch, len(bad), d)
	default:
		s.damaged(d, f)
		return of, nil, errors.Join(fmt.Errorf("%w: %s", ErrMismatch, d), broke)
	}
}

// intact notes that a file was seen to be what its name says.
func (s *Store) intact(d Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.held[d]; ok && h.damaged {
		h.damaged = false
		s.held[d] = h
	}
}

// Check hashes a blob's file. The error wraps ErrMissing when it is gone, or is not
// what its name says; then ErrMismatch too.
func (s *Store) Check(d Digest) error {
	_, bad, err := s.check(d, nil)
	if errors.Is(err, ErrMismatch) {
		if len(bad) > 0 { // not known to the store yet
			s.spoil(d)
		}
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
}

// spoil notes that a blob is damaged, and can not be mended.
func (s *Store) spoil(d Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.held[d]; ok {
		h.damaged = true
		s.held[d] = h
	}
}
