package blob

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/selvage-mesh/selvage/identity"
)

// A Digest names a blob: the SHA-256 of its bytes.
type Digest [sha256.Size]byte

// String returns the digest as 64 hex digits in lower case.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Compare orders digests by their bytes.
func (d Digest) Compare(other Digest) int { return bytes.Compare(d[:], other[:]) }

// ParseDigest reads what String writes.
func ParseDigest(s string) (d Digest, err error) {
	if len(s) != hex.EncodedLen(len(d)) {
		return d, errors.New("a digest has 64 hex digits")
	}
	b, err := hex.DecodeString(s)
	if err != nil || hex.EncodeToString(b) != s {
		return d, errors.New("a digest has 64 hex digits in lower case")
	}
	return Digest(b), nil
}

// A Reference is what the state says of a blob that something refers to.
type Reference struct {
	Digest Digest
	Size   int64             // bytes
	Hints  []identity.NodeID // who had it when it was put
}

// Copies is how many of n nodes shall have each blob.
func Copies(n int) int { return min(desired, n) }

// majority of the desired copies must be synced before an upload is
// acknowledged; with two nodes that is both.
func majority(copies int) int { return copies/2 + 1 }

// Rank orders nodes by who shall have a blob first (rendezvous hashing: the
// weight of a node is the SHA-256 of the digest and its ID). A node that comes
// or goes moves only the blobs that it has.
func Rank(d Digest, nodes []identity.NodeID) []identity.NodeID {
	type weighted struct {
		id     identity.NodeID
		weight Digest
	}
	all := make([]weighted, len(nodes))
	for i, id := range nodes {
		all[i] = weighted{id, sha256.Sum256(append(d[:], id...))}
	}
	slices.SortFunc(all, func(a, b weighted) int {
		return cmp.Or(-a.weight.Compare(b.weight), cmp.Compare(a.id, b.id))
	})
	out := make([]identity.NodeID, len(all))
	for i, w := range all {
		out[i] = w.id
	}
	return slices.Compact(out)
}
