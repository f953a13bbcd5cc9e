package node

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// An archive is the content of a backup, which is a sealed file (identity.SealFile):
//
//	"selvage-archive/1\n"
//	parts: type (1) | length (8, big endian) | that many bytes
//
//	'h' once, first: deterministic CBOR of an archiveHead
//	's' pieces of the state, in order: ledger.Snapshot's stream, without a sum
//	    since version 2 of sealed files
//	'b' one for each file: its SHA-256 (32), then its bytes
//	'e' once, last: deterministic CBOR of an archiveEnd
//
// The sealed file detects truncation. Each block of the state also has a checksum, and
// each file a hash. A reader refuses another first line, or an unknown part.
const (
	archiveMagic = "selvage-archive/1\n"
	partHead     = 'h'
	partState    = 's'
	partBlob     = 'b'
	partEnd      = 'e'
	// archivePiece is the size of a part of the state, in bytes. It equals the piece of the
	// sealed file, so that neither waits for the other.
	archivePiece = 256 << 10
	// archiveBuffer buffers small writes; pieces of the state bypass it.
	archiveBuffer = 16 << 10
	// maxArchiveHead bounds head and end, in bytes: a genesis and a chain of admissions.
	maxArchiveHead = 1 << 20
)

var errArchive = errors.New("not a valid backup")

// An archiveHead is the part of a mesh that is not in its state.
type archiveHead struct {
	Genesis  []byte           `cbor:"1,keyasint"`
	KeyEpoch uint64           `cbor:"2,keyasint"` // of the keys
	Data     identity.DataKey `cbor:"3,keyasint"`
	Gossip   identity.DataKey `cbor:"4,keyasint"`
	// Warrant is the seed of a key (identity.Derive) that the node which made the backup has
	// admitted. A restoring node admits itself with it.
	Warrant    [32]byte `cbor:"5,keyasint"`
	Admissions []byte   `cbor:"6,keyasint"` // of the warrant's key
	Term       uint64   `cbor:"7,keyasint"` // of raft, when the backup was made
	Blobs      bool     `cbor:"8,keyasint"` // the archive contains files
	About      About    `cbor:"9,keyasint"`
}

// About is the part of a backup that anybody can read.
type About struct {
	Mesh    identity.MeshID `cbor:"1,keyasint" json:"mesh"`
	Name    string          `cbor:"2,keyasint" json:"name"` // of the mesh
	Node    identity.NodeID `cbor:"3,keyasint" json:"node"` // that made it
	At      string          `cbor:"4,keyasint" json:"at"`
	Epoch   uint64          `cbor:"5,keyasint" json:"epoch"`
	Index   uint64          `cbor:"6,keyasint" json:"index"` // of raft
	Height  uint64          `cbor:"7,keyasint" json:"height"`
	Head    string          `cbor:"8,keyasint" json:"head"`   // hash of the newest entry
	Digest  string          `cbor:"9,keyasint" json:"digest"` // of the state
	Files   bool            `cbor:"10,keyasint" json:"files"` // it contains attachments and images
	Version string          `cbor:"11,keyasint" json:"version"`
}

// An archiveEnd counts the content of an archive.
type archiveEnd struct {
	StateBytes  uint64 `cbor:"1,keyasint"`
	Blobs       uint64 `cbor:"2,keyasint"`
	BlobBytes   uint64 `cbor:"3,keyasint"`
	MissingBlob uint64 `cbor:"4,keyasint"` // referenced, but no answering node has it
}

type archiveWriter struct {
	w     *bufio.Writer
	state uint64
}

func newArchive(w io.Writer) (*archiveWriter, error) {
	a := &archiveWriter{w: bufio.NewWriterSize(w, archiveBuffer)}
	_, err := a.w.WriteString(archiveMagic)
	return a, err
}

func (a *archiveWriter) begin(typ byte, n uint64) error {
	_, err := a.w.Write(binary.BigEndian.AppendUint64([]byte{typ}, n))
	return err
}

func (a *archiveWriter) part(typ byte, b []byte) error {
	if err := a.begin(typ, uint64(len(b))); err != nil {
		return err
	}
	_, err := a.w.Write(b)
	return err
}

// Write writes a piece of the state.
func (a *archiveWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		take := min(len(b), archivePiece)
		if err := a.part(partState, b[:take]); err != nil {
			return n, err
		}
		a.state += uint64(take)
		n, b = n+take, b[take:]
	}
	return n, nil
}

func (a *archiveWriter) end(e archiveEnd) error {
	e.StateBytes = a.state
	if err := a.part(partEnd, ledger.Marshal(e)); err != nil {
		return err
	}
	return a.w.Flush()
}

// archiveReader reads an archive part by part. As an io.Reader it returns the state, up
// to the part that follows.
type archiveReader struct {
	r     *bufio.Reader
	begun bool   // the head of the current part was read
	typ   byte   // of the current part
	left  uint64 // unread bytes of it
	state uint64
}

func openArchive(r io.Reader) (*archiveReader, archiveHead, error) {
	a := &archiveReader{r: bufio.NewReaderSize(r, archiveBuffer)}
	var h archiveHead
	magic := make([]byte, len(archiveMagic))
	if err := a.full(magic); err != nil {
		return nil, h, err
	}
	if string(magic) != archiveMagic {
		return nil, h, fmt.Errorf("%w: made by another version", errArchive)
	}
	return a, h, a.value(partHead, &h)
}

func (a *archiveReader) full(b []byte) error {
	if _, err := io.ReadFull(a.r, b); err != nil {
		return fmt.Errorf("%w: %w", errArchive, err)
	}
	return nil
}

// next returns the type of the current part, or of the next one.
func (a *archiveReader) next() (typ byte, err error) {
	if !a.begun {
		var head [9]byte
		if err := a.full(head[:]); err != nil {
			return 0, err
		}
		a.begun, a.typ, a.left = true, head[0], binary.BigEndian.Uint64(head[1:])
	}
	return a.typ, nil
}

// value reads a part that holds one value.
func (a *archiveReader) value(typ byte, v any) error {
	got, err := a.next()
	switch {
	case err != nil:
		return err
	case got != typ:
		return fmt.Errorf("%w: part %q where %q should be", errArchive, got, typ)
	case a.left > maxArchiveHead:
		return fmt.Errorf("%w: part %q has %d bytes", errArchive, got, a.left)
	}
	b := make([]byte, a.left)
	if err := a.full(b); err != nil {
		return err
	}
	a.begun = false
	if err := ledger.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", errArchive, err)
	}
	return nil
}

// Read reads bytes of the state.
func (a *archiveReader) Read(p []byte) (int, error) {
	for {
		switch typ, err := a.next(); {
		case err != nil:
			return 0, err
		case typ != partState:
			return 0, io.EOF
		case a.left == 0:
			a.begun = false
			continue
		}
		n, err := a.r.Read(p[:min(uint64(len(p)), a.left)])
		a.left -= uint64(n)
		a.state += uint64(n)
		if err == io.EOF {
			err = fmt.Errorf("%w: %w", errArchive, io.ErrUnexpectedEOF)
		}
		return n, err
	}
}

// blob returns the content of the current part, which is a file's. The caller must read
// it to the end.
func (a *archiveReader) blob() (d blob.Digest, size int64, r io.Reader, err error) {
	if a.left < uint64(len(d)) || a.left > blob.MaxBlob+uint64(len(d)) {
		return d, 0, nil, fmt.Errorf("%w: a file of %d bytes", errArchive, a.left)
	}
	if err := a.full(d[:]); err != nil {
		return d, 0, nil, err
	}
	a.begun = false
	size = int64(a.left) - int64(len(d))
	return d, size, io.LimitReader(a.r, size), nil
}
