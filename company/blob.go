package company

import (
	"iter"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A blob is content that is stored beside the state, on the disks of several nodes,
// under its SHA-256. Rows refer to it. Nodes delete blobs that no row refers to. Apply
// never reads a blob.
//
//	blob/<sha256>/<company>   a [BlobRef]: how many rows of a company refer to it
//
// The key comes before the company, because equal content is stored once.

// A BlobRef counts the rows of a company that refer to a blob.
type BlobRef struct {
	Size  int64    `cbor:"1,keyasint"`           // bytes
	Refs  uint32   `cbor:"2,keyasint"`           // rows that refer to it
	Nodes []string `cbor:"3,keyasint,omitempty"` // which had synced it when the newest row was stored
}

// MaxBlobNodes bounds the nodes named in a reference.
const MaxBlobNodes = 8

func blobRef(tx *ledger.Tx, sha256 string, company ledger.CompanyID) (r BlobRef, ok bool) {
	b, ok := tx.Get(entity.BlobKey(sha256, company))
	if ok {
		r = core.DecodeRow[BlobRef](b)
	}
	return r, ok
}

// RefBlob adds one reference of company to a blob.
func RefBlob(tx *ledger.Tx, company ledger.CompanyID, sha256 string, size int64, nodes []string) {
	r, _ := blobRef(tx, sha256, company)
	r.Size, r.Refs, r.Nodes = size, r.Refs+1, nodes
	tx.Set(entity.BlobKey(sha256, company), ledger.Marshal(r))
}

// UnrefBlob removes one reference of company to a blob.
func UnrefBlob(tx *ledger.Tx, company ledger.CompanyID, sha256 string) {
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

// CheckBlob refuses a malformed reference to a blob.
func CheckBlob(sha256 string, size int64, nodes []string) error {
	if !core.IsHash(sha256) || size < 0 || size > MaxAttachmentBytes || len(nodes) > MaxBlobNodes ||
		slices.ContainsFunc(nodes, func(id string) bool { return id == "" || len(id) > 64 }) {
		return ledger.Refuse(ledger.Invalid, nil, "malformed reference to a blob")
	}
	return nil
}

// Blobs yields every blob with a company that refers to it. A blob with references of
// several companies is yielded several times.
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

// BlobOf returns the reference of company to a blob.
func BlobOf(tx *ledger.Tx, company ledger.CompanyID, sha256 string) (BlobRef, bool) {
	if !core.IsHash(sha256) {
		return BlobRef{}, false
	}
	return blobRef(tx, sha256, company)
}

// MaxAttachmentBytes is the highest limit that a company can set for an attachment, and
// the size of the largest blob.
const MaxAttachmentBytes = 1 << 30

// A NewFile describes, in a payload, a file whose bytes the nodes already have.
type NewFile struct {
	ID          string   `cbor:"1,keyasint"` // of the asset row
	Object      string   `cbor:"2,keyasint"` // random UUID, part of the object key
	Name        string   `cbor:"3,keyasint,omitempty"`
	ContentType string   `cbor:"4,keyasint"`
	Size        int64    `cbor:"5,keyasint"`
	SHA256      string   `cbor:"6,keyasint"`
	Nodes       []string `cbor:"7,keyasint,omitempty"` // which have synced the bytes
}
