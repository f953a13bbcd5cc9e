package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// An Op is what a request asks for. Sent between versions: do not renumber.
type Op byte

const (
	OpGet Op = 1 // bytes of a blob
	OpPut Op = 2 // to take a blob
	OpHas Op = 3 // whether it is there, without a look at its bytes
	// OpCheck asks whether it is there and whole: it is hashed for the answer. Whoever
	// does not know it says no.
	OpCheck Op = 4
)

// A status is what an answer says. Sent between versions: do not renumber.
type status byte

const (
	statusHeld     status = 1 // the blob is here, synced
	statusMissing  status = 2
	statusSend     status = 3 // send the bytes
	statusFull     status = 4
	statusTooLarge status = 5
	statusMismatch status = 6 // the bytes were not those of the digest
	statusBad      status = 7 // no such request
)

// A Request is what the opener of a stream asks.
type Request struct {
	Op     Op
	Digest Digest
	Offset uint64 // of get: the first byte
	Length uint64 // of get: at most so many bytes; of put: the blob's size
}

// requestBytes is the length of an encoded request.
const requestBytes = 1 + 1 + 32 + 8 + 8

// AppendRequest encodes a request:
//
//	version (1, always 1) | op (1) | digest (32) | offset (8) | length (8)
//
// with numbers in big endian. For example 01 03, the digest, and 16 zero bytes
// asks whether a blob is there. Another version, or length, is an error.
func AppendRequest(b []byte, r Request) []byte {
	b = append(append(b, 1, byte(r.Op)), r.Digest[:]...)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, r.Offset), r.Length)
}

// DecodeRequest is the inverse of AppendRequest.
func DecodeRequest(b []byte) (r Request, err error) {
	if len(b) != requestBytes || b[0] != 1 || Op(b[1]) < OpGet || Op(b[1]) > OpCheck {
		return r, errors.New("malformed blob request")
	}
	r = Request{Op: Op(b[1]), Digest: Digest(b[2:34]), Offset: binary.BigEndian.Uint64(b[34:42]),
		Length: binary.BigEndian.Uint64(b[42:])}
	if r.Op != OpGet && r.Offset != 0 || r.Op >= OpHas && r.Length != 0 {
		return r, errors.New("malformed blob request")
	}
	return r, nil
}

func writeHead(w io.Writer, s status, size int64) error {
	_, err := w.Write(binary.BigEndian.AppendUint64([]byte{byte(s)}, uint64(size)))
	return err
}

func readHead(r io.Reader) (s status, size int64, err error) {
	var h [9]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, 0, fmt.Errorf("answer: %w", err)
	}
	n := binary.BigEndian.Uint64(h[1:])
	if n > MaxBlob {
		return 0, 0, fmt.Errorf("answer: a blob of %d bytes", n)
	}
	return status(h[0]), int64(n), nil
}

// errOf is what a no means to whoever asked.
func errOf(s status) error {
	switch s {
	case statusMissing:
		return ErrMissing
	case statusFull:
		return ErrFull
	case statusTooLarge:
		return ErrTooLarge
	case statusMismatch:
		return ErrMismatch
	}
	return fmt.Errorf("peer answered %d", s)
}

// statusFor is how an error of the store is told.
func statusFor(err error) status {
	switch {
	case errors.Is(err, ErrMissing):
		return statusMissing
	case errors.Is(err, ErrTooLarge):
		return statusTooLarge
	case errors.Is(err, ErrMismatch):
		return statusMismatch
	}
	return statusFull
}

// patient gives each read and write of a connection a time of its own, so that
// large blobs may take long and silent peers may not.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// Serve answers one request of a peer and closes the connection.
func (s *Store) Serve(c net.Conn, request []byte) (err error) {
	defer c.Close()
	conn := patient{c}
	r, err := DecodeRequest(request)
	if err != nil {
		return errors.Join(err, writeHead(conn, statusBad, 0))
	}
	switch r.Op {
	case OpHas:
		if s.Has(r.Digest) {
			return writeHead(conn, statusHeld, 0)
		}
		return writeHead(conn, statusMissing, 0)
	case OpCheck:
		if err := s.Check(r.Digest); err != nil {
			return writeHead(conn, statusFor(err), 0)
		}
		return writeHead(conn, statusHeld, 0)
	case OpGet:
		return s.serveGet(conn, r)
	}
	return s.servePut(conn, r)
}

func (s *Store) serveGet(c net.Conn, r Request) error {
	f, size, err := s.Open(r.Digest)
	if err != nil {
		return errors.Join(err, writeHead(c, statusMissing, 0))
	}
	defer f.Close()
	if r.Offset > uint64(size) {
		return writeHead(c, statusBad, size)
	}
	if r.Length > 0 && r.Offset < uint64(size) { // what is damaged is not promised
		if _, err := f.chunk(int(r.Offset / chunkBytes)); err != nil {
			return errors.Join(err, writeHead(c, statusMissing, 0))
		}
	}
	if err := writeHead(c, statusHeld, size); err != nil {
		return err
	}
	if _, err := f.Seek(int64(r.Offset), io.SeekStart); err != nil {
		return err
	}
	err = copyChunks(c, f, int64(min(r.Length, uint64(size)-r.Offset)))
	return err
}

func (s *Store) servePut(c net.Conn, r Request) error {
	if r.Length > uint64(s.cfg.MaxBlob) {
		return writeHead(c, statusTooLarge, 0)
	}
	if s.Touch(r.Digest) {
		return writeHead(c, statusHeld, int64(r.Length))
	}
	if err := s.room(); err != nil {
		return errors.Join(err, writeHead(c, statusFor(err), 0))
	}
	w, err := s.Create(int64(r.Length))
	if err != nil {
		return errors.Join(err, writeHead(c, statusFor(err), 0))
	}
	defer w.Abort()
	if err := writeHead(c, statusSend, 0); err != nil {
		return err
	}
	if err := copyChunks(w, c, int64(r.Length)); err != nil {
		return errors.Join(err, writeHead(c, statusFor(err), 0))
	}
	if err := w.CommitAs(r.Digest); err != nil {
		return errors.Join(err, writeHead(c, statusFor(err), 0))
	}
	return writeHead(c, statusHeld, int64(r.Length))
}

// copyChunks copies exactly n bytes, a chunk at a time.
func copyChunks(w io.Writer, r io.Reader, n int64) error {
	buf := make([]byte, min(n, chunk))
	for n > 0 {
		m, err := r.Read(buf[:min(n, chunk)])
		if m > 0 {
			if _, err := w.Write(buf[:m]); err != nil {
				return err
			}
			n -= int64(m)
		}
		if err == io.EOF && n > 0 {
			return io.ErrUnexpectedEOF
		} else if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// The client's side: the request was sent when the connection was opened.

// get reads the answer to a get; the bytes follow on c.
func get(c net.Conn) (size int64, err error) {
	st, size, err := readHead(patient{c})
	if err == nil && st != statusHeld {
		err = errOf(st)
	}
	return size, err
}

// put brings a blob of this store to a peer and returns once it is synced there.
func (s *Store) put(c net.Conn, d Digest, size int64) error {
	conn := patient{c}
	st, _, err := readHead(conn)
	switch {
	case err != nil:
		return err
	case st == statusHeld:
		return nil
	case st != statusSend:
		return errOf(st)
	}
	f, _, err := s.Open(d)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := copyChunks(conn, f, size); err != nil {
		return err
	}
	if st, _, err = readHead(conn); err == nil && st != statusHeld {
		err = errOf(st)
	}
	return err
}

// fetch brings a whole blob from a peer into the store; its hash is computed
// while it comes in.
func (s *Store) fetch(c net.Conn, d Digest) error {
	size, err := get(c)
	if err != nil {
		return err
	}
	w, err := s.Create(size)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := copyChunks(w, patient{c}, size); err != nil {
		return err
	}
	return w.CommitAs(d)
}
