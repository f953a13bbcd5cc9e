package filters

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Witness is what a receipt says: an act, what the filters read of it, and what they measured.
type Witness struct {
	Sequence uint64             `cbor:"1,keyasint"` // of the company, from 1
	Before   []byte             `cbor:"2,keyasint"` // hash of the receipt before it, 32 bytes; of the first, zeros
	Company  ledger.CompanyID   `cbor:"3,keyasint"`
	Height   uint64             `cbor:"4,keyasint"` // of the command
	At       int64              `cbor:"5,keyasint"` // ms since 1970
	Question Question           `cbor:"6,keyasint"`
	Findings []Finding          `cbor:"7,keyasint"`
	Rules    governance.Verdict `cbor:"8,keyasint"` // what the rules say
	Decided  governance.Verdict `cbor:"9,keyasint"` // the strictest of both
}

// A Receipt is a witness as it is stored: its CBOR, and the hash over it. The hash is SHA-256 over
// "selvage/receipt/v1", a zero byte and the CBOR. As each witness has the hash of the one before, a receipt can not be
// changed, left out or moved without changing all later ones. Readers ignore members that they do not know; the hash
// covers them.
type Receipt struct {
	Body []byte `cbor:"1,keyasint"`
	Hash []byte `cbor:"2,keyasint"`
}

// Clone returns a copy that shares no memory with r.
func (r Receipt) Clone() Receipt { return Receipt{slices.Clone(r.Body), slices.Clone(r.Hash)} }

func hashOf(body []byte) []byte {
	h := sha256.New()
	h.Write([]byte("selvage/receipt/v1\x00"))
	h.Write(body)
	return h.Sum(nil)
}

// Seal makes the receipt of a witness.
func Seal(w Witness) Receipt {
	if len(w.Before) == 0 {
		w.Before = make([]byte, sha256.Size)
	}
	body := ledger.Marshal(w)
	return Receipt{body, hashOf(body)}
}

// Open returns what a receipt says, if its hash is right.
func (r Receipt) Open() (w Witness, err error) {
	if !bytes.Equal(r.Hash, hashOf(r.Body)) {
		return w, fmt.Errorf("the hash of the receipt is not that of its content")
	}
	if err := ledger.Unmarshal(r.Body, &w); err != nil {
		return w, fmt.Errorf("read the receipt: %w", err)
	}
	return w, nil
}

// Again decides the act of a witness again, and says what differs; "" for nothing.
func (w Witness) Again() string {
	is := Decide(w.Question)
	switch {
	case !slices.Equal(is, w.Findings):
		return fmt.Sprintf("the filters now say %s", Verdict(is))
	case max(w.Rules, Verdict(is)) != w.Decided:
		return fmt.Sprintf("the decision now is %s", max(w.Rules, Verdict(is)))
	}
	return ""
}
