package blob

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
)

// sums are those of the chunks of a blob, in order, by which a piece of it is checked
// before it is given to anybody (see chunkSum). They tell of damage, not of malice: who
// can write here can write the sums. A blob of one chunk has none, but its digest.
//
// Those of a larger one are kept beside it, in <its file>.sums: the line
// "selvage chunk sums 1", the digest (32), the bytes of a chunk and of the blob (8
// each, big endian), the sums (8 each, big endian) and the SHA-256 of all that. The file is
// written only when the blob's bytes have just been seen to have its digest. It is
// not synced; one that is lost, or is not what its own sum says, is made again from
// the blob. Another first line counts as lost.
type sums struct {
	d    Digest
	size int64
	of   []uint64 // none when there is one chunk
}

const (
	sumsSuffix = ".sums"
	sumsHeader = "selvage chunk sums 1\n"
	sumsFixed  = len(sumsHeader) + sha256.Size + 16
)

func chunksOf(size int64) int { return int((size + chunkBytes - 1) / chunkBytes) }

// bounds are the first byte of a chunk and the one after its last.
func (s sums) bounds(i int) (from, to int64) {
	return int64(i) * chunkBytes, min(int64(i+1)*chunkBytes, s.size)
}

func (s sums) encode(d Digest) []byte {
	b := append([]byte(sumsHeader), d[:]...)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, chunkBytes), uint64(s.size))
	for _, c := range s.of {
		b = binary.BigEndian.AppendUint64(b, c)
	}
	own := sha256.Sum256(b)
	return append(b, own[:]...)
}

var errSums = errors.New("chunk sums are damaged")

func decodeSums(d Digest, b []byte) (s sums, err error) {
	if len(b) < sumsFixed+sha256.Size || !bytes.HasPrefix(b, []byte(sumsHeader)) {
		return s, errSums
	}
	rest := b[:len(b)-sha256.Size]
	if sha256.Sum256(rest) != [sha256.Size]byte(b[len(rest):]) {
		return s, errSums
	}
	rest = rest[len(sumsHeader):]
	size := binary.BigEndian.Uint64(rest[sha256.Size+8:])
	if Digest(rest[:sha256.Size]) != d || binary.BigEndian.Uint64(rest[sha256.Size:]) != chunkBytes || size > MaxBlob {
		return s, errSums
	}
	s.d, s.size, rest = d, int64(size), rest[sha256.Size+16:]
	if len(rest) != chunksOf(s.size)*8 {
		return s, errSums
	}
	for ; len(rest) > 0; rest = rest[8:] {
		s.of = append(s.of, binary.BigEndian.Uint64(rest))
	}
	return s, nil
}

// holds reports whether b is chunk i.
func (s sums) holds(i int, b []byte) bool {
	if len(s.of) == 0 {
		return Digest(sha256.Sum256(b)) == s.d
	}
	return chunkSum(b) == s.of[i]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkSum is the CRC-32C of bytes and their CRC-32 (IEEE), in this order: processors
// compute both faster than they read memory, and what a disk does to a chunk passes
// neither of them by itself.
func chunkSum(b []byte) uint64 {
	return uint64(crc32.Checksum(b, castagnoli))<<32 | uint64(crc32.ChecksumIEEE(b))
}

// A summer computes the digest of a blob and the sums of its chunks in one pass.
type summer struct {
	whole   hash.Hash
	c, ieee uint32 // of the chunk that at is in
	at      int64
	of      []uint64
}

func newSummer() *summer { return &summer{whole: sha256.New()} }

func (s *summer) Write(p []byte) (n int, err error) {
	s.whole.Write(p)
	for n = len(p); len(p) > 0; {
		part := p[:min(int64(len(p)), chunkBytes-s.at%chunkBytes)]
		s.c, s.ieee = crc32.Update(s.c, castagnoli, part), crc32.Update(s.ieee, crc32.IEEETable, part)
		if s.at += int64(len(part)); s.at%chunkBytes == 0 {
			s.end()
		}
		p = p[len(part):]
	}
	return n, nil
}

func (s *summer) end() {
	s.of = append(s.of, uint64(s.c)<<32|uint64(s.ieee))
	s.c, s.ieee = 0, 0
}

// done returns what was computed; nothing is written afterwards.
func (s *summer) done() (Digest, sums) {
	if s.at%chunkBytes != 0 {
		s.end()
	}
	d := Digest(s.whole.Sum(nil))
	if len(s.of) < 2 {
		return d, sums{d, s.at, nil}
	}
	return d, sums{d, s.at, s.of}
}

// keepSums writes the sums of a blob beside it, where it has more than one chunk.
// What can not be written is made again when it is needed.
func (s *Store) keepSums(d Digest, of sums) {
	if len(of.of) == 0 {
		return
	}
	tmp := "tmp/" + d.String() + sumsSuffix
	if s.root().WriteFile(tmp, of.encode(d), 0o600) == nil {
		_ = s.root().Rename(tmp, d.path()+sumsSuffix)
	}
}

// sumsOf returns the sums of a blob whose file is f, and has size bytes. The error
// wraps ErrMismatch when f is certainly not the blob.
func (s *Store) sumsOf(d Digest, f *os.File, size int64) (of sums, err error) {
	if size <= chunkBytes {
		return sums{d, size, nil}, nil
	}
	if of, err := s.readSums(d); err == nil {
		if of.size != size {
			return of, fmt.Errorf("%w: %s has %d bytes, want %d", ErrMismatch, d, size, of.size)
		}
		return of, nil
	}
	sum := newSummer()
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(f, 0, size), make([]byte, chunk)); err != nil {
		return of, fmt.Errorf("%w: read %s: %w", ErrMismatch, d, err)
	}
	got, of := sum.done()
	if got != d {
		return of, fmt.Errorf("%w: %s", ErrMismatch, d)
	}
	s.keepSums(d, of)
	return of, nil
}

func (s *Store) readSums(d Digest) (of sums, err error) {
	f, err := s.root().Open(d.path() + sumsSuffix)
	if err != nil {
		return of, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(sumsFixed+chunksOf(MaxBlob)*8+sha256.Size)))
	if err != nil {
		return of, err
	}
	return decodeSums(d, b)
}

// dropSums removes the sums of a blob that goes.
func (s *Store) dropSums(d Digest) {
	if err := s.root().Remove(d.path() + sumsSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // it is looked for at the next start
	}
}
