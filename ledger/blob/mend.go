package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/selvage-mesh/selvage/identity"
)

// A chunkError says that a chunk of a blob on this disk is not what it was.
type chunkError struct {
	d    Digest
	sums sums
	i    int
	why  error // of the disk; nil when it gave other bytes
}

func (e *chunkError) Error() string {
	from, to := e.sums.bounds(e.i)
	s := fmt.Sprintf("bytes %d to %d of %s are damaged on this disk", from, to, e.d)
	if e.why != nil {
		s += ": " + e.why.Error()
	}
	return s
}

// Unwrap makes it an ErrMismatch.
func (e *chunkError) Unwrap() []error { return []error{ErrMismatch, e.why} }

// Read opens a blob for reading, wherever it is. What is damaged on this node's disk
// is brought from a peer first, and put right: a small blob as a whole, of a larger
// one the chunks that are read. The error wraps ErrMissing when no node that answers
// has the blob, and ErrMismatch too when this one has a damaged copy.
func (k *Keeper) Read(ctx context.Context, ref Reference) (Content, error) {
	f, size, err := k.Open(ref.Digest)
	damaged := errors.Is(err, ErrMismatch)
	switch {
	case damaged && ref.Size <= wholeBytes:
		if k.replace(ref) == nil {
			f, size, err = k.Open(ref.Digest)
		}
	case damaged:
		k.spawn(func() { _ = k.replace(ref) })
	}
	if err == nil {
		if size == ref.Size {
			return &local{File: f, k: k, ref: ref}, nil
		}
		f.Close()
	} else if !errors.Is(err, ErrMissing) {
		return nil, err
	}
	from := k.sources(ref)
	for i, id := range from {
		if k.has(ctx, id, ref.Digest) {
			return k.remote(ref, from[i:]), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if damaged {
		return nil, fmt.Errorf("%w: %w: %s, and none of %d peers has it", ErrMissing, ErrMismatch, ref.Digest, len(from))
	}
	return nil, fmt.Errorf("%w: none of %d peers has %s", ErrMissing, len(from), ref.Digest)
}

// replace fetches a copy in the place of a damaged one.
func (k *Keeper) replace(ref Reference) error {
	ctx, cancel := context.WithTimeout(k.ctx, mendTimeout)
	defer cancel()
	return k.fetch(ctx, ref)
}

// local reads a blob from this node's disk; a chunk that is damaged there is given as
// a peer has it.
type local struct {
	*File
	k   *Keeper
	ref Reference
}

func (l *local) Read(p []byte) (int, error) {
	n, err := l.File.Read(p)
	bad, ok := errors.AsType[*chunkError](err)
	if !ok {
		return n, err
	}
	b, err := l.k.mend(bad, l.ref.Hints...)
	if err != nil {
		return 0, err
	}
	l.buf, l.at = append(l.buf[:0], b...), bad.i // a peer's bytes are shared with other readers
	return l.File.Read(p)
}

// mend brings a damaged chunk from a peer, checks it, and writes it where it was. When
// nobody has it the whole blob counts as damaged. Many may ask for the same at once;
// none of them writes to what it returns.
func (k *Keeper) mend(bad *chunkError, hints ...identity.NodeID) ([]byte, error) {
	if len(bad.sums.of) == 0 { // how many bytes it had is not known either
		return nil, k.replace(Reference{Digest: bad.d, Size: MaxBlob, Hints: hints})
	}
	b, err, _ := k.flights.Do(bad.d.String()+"/"+strconv.Itoa(bad.i), func() (any, error) {
		k.rotten.Add(1)
		k.log.Error("blob: a piece of a file is damaged on this disk", "digest", bad.d.String(), "error", bad)
		ctx, cancel := context.WithTimeout(k.ctx, mendTimeout)
		defer cancel()
		ref := Reference{Digest: bad.d, Size: bad.sums.size, Hints: hints}
		b, err := k.chunkOf(ctx, ref, bad.sums, bad.i)
		if err != nil {
			if k.ctx.Err() == nil {
				k.spoil(bad.d)
			}
			return nil, err
		}
		from, _ := bad.sums.bounds(bad.i)
		if err := k.patch(bad.d, from, b); err != nil {
			k.log.Error("blob: a piece of a file was brought from a peer, and this disk does not take it", "digest",
				bad.d.String(), "error", err)
			return b, nil
		}
		k.mended.Add(1)
		k.log.Info("blob: a piece of a file was brought from a peer and put right", "digest", bad.d.String(), "at", from,
			"bytes", len(b))
		return b, nil
	})
	if err != nil {
		return nil, err
	}
	return b.([]byte), nil
}

// chunkOf brings one chunk of a blob from whichever peer has it as its sum says.
func (k *Keeper) chunkOf(ctx context.Context, ref Reference, of sums, i int) ([]byte, error) {
	errs := []error{fmt.Errorf("%w: %w: %s, and no peer has a good copy", ErrMissing, ErrMismatch, ref.Digest)}
	from, to := of.bounds(i)
	b := make([]byte, to-from)
	for _, id := range k.sources(ref) {
		err := func() error {
			c, err := k.call(ctx, id, Request{Op: OpGet, Digest: ref.Digest, Offset: uint64(from), Length: uint64(len(b))})
			if err != nil {
				return err
			}
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			if size, err := get(c); err != nil {
				return err
			} else if size != of.size {
				return fmt.Errorf("%w: a blob of %d bytes, want %d", ErrMismatch, size, of.size)
			}
			if _, err := io.ReadFull(patient{c}, b); err != nil {
				return err
			}
			if !of.holds(i, b) {
				return ErrMismatch
			}
			return nil
		}()
		if err == nil {
			return b, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", id.Short(), err))
	}
	return nil, errors.Join(errs...)
}
