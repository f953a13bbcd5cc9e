package blob

import (
	"context"
	"errors"
)

// Scrub hashes all blobs of this node's disk once. What is damaged is mended from a
// peer: of a large blob the chunks, a small one as a whole. found hears of each blob
// that was damaged, with nil when it was mended. pace hears how many bytes of how many
// in all were read, and may wait; its error ends the scrub.
func (k *Keeper) Scrub(ctx context.Context, pace func(bytes, of int64) error, found func(Digest, error)) error {
	_, total := k.Usage()
	for _, d := range k.List() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var ended error
		of, bad, err := k.check(d, func(n int) error {
			ended = pace(int64(n), total)
			return ended
		})
		switch {
		case ended != nil:
			return ended
		case errors.Is(err, ErrMismatch):
			found(d, k.mendAll(d, of, bad))
		case err != nil && !errors.Is(err, ErrMissing): // one that is gone is fetched by Tend
			found(d, err)
		}
	}
	return nil
}

// mendAll brings the damaged chunks of a blob, or all of it when they are not known.
func (k *Keeper) mendAll(d Digest, of sums, bad []int) error {
	if len(bad) == 0 {
		k.log.Error("blob: a file is damaged on this disk", "digest", d.String())
		return k.replace(Reference{Digest: d, Size: MaxBlob})
	}
	for _, i := range bad {
		if _, err := k.mend(&chunkError{d: d, sums: of, i: i}); err != nil {
			return err
		}
	}
	return nil
}
