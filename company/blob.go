package company

import (
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A blob is content that lies beside the state, on the disks of several nodes,
// and is named by its SHA-256. Rows refer to it; what is not referred to by any
// is thrown away by the nodes. Apply never reads one.
//
//	blob/<sha256>/<company>   a [BlobRef]: that a company refers to it, how often
//
// The key spans companies, because equal content is kept once.

// A BlobRef says that rows of a company refer to a blob.
type BlobRef struct {
	Size  int64    `cbor:"1,keyasint"`           // bytes
	Refs  uint32   `cbor:"2,keyasint"`           // rows that refer to it
	Nodes []string `cbor:"3,keyasint,omitempty"` // who had synced it when the newest of them was made
}

// MaxBlobNodes bounds the nodes that a reference names.
const MaxBlobNodes = 8

func blobRef(tx *ledger.Tx, sha256, company string) (r BlobRef, ok bool) {
	b, ok := tx.Get(entity.BlobKey(sha256, company))
	if ok {
		r = core.DecodeRow[BlobRef](b)
	}
	return r, ok
}

// RefBlob notes that one more row of company refers to a blob.
func RefBlob(tx *ledger.Tx, company, sha256 string, size int64, nodes []string) {
	r, _ := blobRef(tx, sha256, company)
	r.Size, r.Refs, r.Nodes = size, r.Refs+1, nodes
	tx.Set(entity.BlobKey(sha256, company), ledger.Marshal(r))
}

// UnrefBlob notes that a row of company does not refer to a blob any more.
func UnrefBlob(tx *ledger.Tx, company, sha256 string) {
	r, ok := blobRef(tx, sha256, company)
	if !ok {
		return
	}
	if r.Refs--; r.Refs == 0 {
		tx.Delete(entity.BlobKey(sha256, company))
		return
	}
	tx.Set(entity.BlobKey(sha256, company), ledger.Marshal(r))
}

// CheckBlob refuses what cannot be a reference to a blob.
func CheckBlob(sha256 string, size int64, nodes []string) error {
	if !core.IsHash(sha256) || size < 0 || size > MaxAttachmentBytes || len(nodes) > MaxBlobNodes ||
		slices.ContainsFunc(nodes, func(id string) bool { return id == "" || len(id) > 64 }) {
		return ledger.Refuse(ledger.Invalid, nil, "malformed reference to a blob")
	}
	return nil
}

// Blobs yields the blobs that anything refers to, with the company that does.
// One that several companies refer to comes several times.
func Blobs(tx *ledger.Tx) iter.Seq2[string, BlobRef] {
	prefix := ledger.Key("blob", "")
	return func(yield func(string, BlobRef) bool) {
		for k, v := range tx.Prefix(prefix) {
			sha256, _, _ := strings.Cut(string(k[len(prefix):]), "/")
			if !yield(sha256, core.DecodeRow[BlobRef](v)) {
				return
			}
		}
	}
}

// BlobOf returns what company's rows say of a blob.
func BlobOf(tx *ledger.Tx, company, sha256 string) (BlobRef, bool) {
	if !core.IsHash(sha256) {
		return BlobRef{}, false
	}
	return blobRef(tx, sha256, company)
}

// MaxAttachmentBytes is the most that a company may allow for one attachment, and the
// size of the largest blob.
const MaxAttachmentBytes = 1 << 30

// A NewFile is what a payload says of a file whose bytes the nodes have.
type NewFile struct {
	ID          string   `cbor:"1,keyasint"` // of the asset
	Object      string   `cbor:"2,keyasint"` // random UUID, part of the object key
	Name        string   `cbor:"3,keyasint,omitempty"`
	ContentType string   `cbor:"4,keyasint"`
	Size        int64    `cbor:"5,keyasint"`
	SHA256      string   `cbor:"6,keyasint"`
	Nodes       []string `cbor:"7,keyasint,omitempty"` // who has synced the bytes
}
