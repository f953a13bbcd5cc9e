package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"

	"github.com/selvage-mesh/selvage/identity"
)

// A Content is a blob for reading: the file of this node, or a stream from
// others. It belongs to one goroutine, but for Close.
type Content interface {
	io.ReadSeekCloser
}

// remote reads a blob from peers. When one breaks off, the next goes on where it
// stopped. Bytes that are read from the first to the last are hashed on the way,
// and the last of them are held back when the hash is not the blob's: whoever
// counts bytes sees that they are not all there. Of a blob of one chunk nothing is
// given before all of it was hashed.
type remote struct {
	k    *Keeper
	ref  Reference
	from []identity.NodeID // who is still to be asked

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	conn   net.Conn // at pos, or nil
	pos    int64
	sum    hash.Hash // of the bytes up to hashed
	hashed int64
	whole  []byte // all of a blob of one chunk
}

func (k *Keeper) remote(ref Reference, from []identity.NodeID) *remote {
	r := &remote{k: k, ref: ref, from: from, sum: sha256.New()}
	r.ctx, r.cancel = context.WithCancel(k.ctx)
	return r
}

// seekFrom is where a reader at pos of size bytes goes; it stays where it is with an error.
func seekFrom(pos, size, offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += pos
	case io.SeekEnd:
		offset += size
	}
	if offset < 0 {
		return pos, errors.New("seek before the first byte")
	}
	return offset, nil
}

func (r *remote) Seek(offset int64, whence int) (int64, error) {
	offset, err := seekFrom(r.pos, r.ref.Size, offset, whence)
	if err != nil {
		return r.pos, err
	}
	if offset != r.pos {
		r.hangUp()
		r.pos = offset
	}
	if offset == 0 {
		r.sum.Reset()
		r.hashed = 0
	}
	return offset, nil
}

func (r *remote) Read(p []byte) (int, error) {
	if r.pos >= r.ref.Size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.ref.Size <= chunkBytes {
		if err := r.fill(); err != nil {
			return 0, err
		}
		n := copy(p, r.whole[r.pos:])
		r.pos += int64(n)
		return n, nil
	}
	for {
		if r.conn == nil {
			if err := r.dial(); err != nil {
				return 0, err
			}
		}
		n, err := patient{r.conn}.Read(p[:min(int64(len(p)), r.ref.Size-r.pos)])
		if n == 0 && err != nil {
			r.hangUp()
			if r.ctx.Err() != nil {
				return 0, net.ErrClosed
			}
			continue // the next peer goes on; each is asked once, so this ends
		}
		if r.hashed == r.pos {
			r.sum.Write(p[:n])
			r.hashed += int64(n)
			if r.hashed == r.ref.Size && Digest(r.sum.Sum(nil)) != r.ref.Digest {
				return 0, ErrMismatch
			}
		}
		r.pos += int64(n)
		return n, nil
	}
}

// fill reads a small blob from the first peer that has it as its name says.
func (r *remote) fill() error {
	at := r.pos
	defer func() { r.pos = at }()
	errs := []error(nil)
	for r.pos = 0; r.whole == nil; r.hangUp() {
		if err := r.dial(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		b := make([]byte, r.ref.Size)
		if _, err := io.ReadFull(patient{r.conn}, b); err != nil {
			errs = append(errs, err)
		} else if Digest(sha256.Sum256(b)) != r.ref.Digest {
			errs = append(errs, ErrMismatch)
		} else {
			r.whole = b
		}
	}
	return nil
}

// dial opens the stream at pos from the next peer that has the blob.
func (r *remote) dial() error {
	for len(r.from) > 0 {
		id := r.from[0]
		r.from = r.from[1:]
		c, err := r.k.call(r.ctx, id, Request{Op: OpGet, Digest: r.ref.Digest, Offset: uint64(r.pos),
			Length: uint64(r.ref.Size - r.pos)})
		if err != nil {
			continue
		}
		if size, err := get(c); err != nil || size != r.ref.Size {
			c.Close()
			continue
		}
		r.conn = c
		context.AfterFunc(r.ctx, func() { c.Close() })
		return nil
	}
	return fmt.Errorf("%w: no peer gives it", ErrMissing)
}

func (r *remote) hangUp() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}

// Close ends a Read under way, too.
func (r *remote) Close() error {
	r.cancel()
	return nil
}
