package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Results of a raft entry are its receipts, in the order of its commands:
//
//	version 0x01
//	uvarint n
//	n times: flags (1), uvarint raft index, uvarint height (with hasHeight),
//	         bytes value (with hasValue),
//	         bytes code, bytes message, bytes code of the error body,
//	         bytes detail (with hasDetail), all four only with refused
//
// They are also what a session keeps of its outcomes. Readers refuse other
// versions and flags.
const (
	receiptVersion = 1

	hasHeight    = 1 << 0
	hasValue     = 1 << 1
	refused      = 1 << 2
	hasDetail    = 1 << 3
	receiptFlags = hasHeight | hasValue | refused | hasDetail
)

// ErrReceipts says that bytes are not encoded receipts.
var ErrReceipts = errors.New("malformed receipts")

// EncodeReceipts encodes the receipts of one raft entry.
func EncodeReceipts(rs []Receipt) []byte {
	n := 2 + binary.MaxVarintLen32
	for i := range rs {
		n += 32 + len(rs[i].Value)
	}
	b := binary.AppendUvarint(append(make([]byte, 0, n), receiptVersion), uint64(len(rs)))
	for i := range rs {
		b = appendReceipt(b, &rs[i])
	}
	return b
}

func appendReceipt(b []byte, r *Receipt) []byte {
	var flags byte
	if r.Height != 0 {
		flags |= hasHeight
	}
	if r.Value != nil {
		flags |= hasValue
	}
	if r.Refusal != nil {
		flags |= refused
		if r.Refusal.Detail != nil {
			flags |= hasDetail
		}
	}
	b = binary.AppendUvarint(append(b, flags), r.Index)
	if r.Height != 0 {
		b = binary.AppendUvarint(b, r.Height)
	}
	if r.Value != nil {
		b = appendBytes(b, r.Value)
	}
	if f := r.Refusal; f != nil {
		b = appendBytes(b, f.Code)
		b = appendBytes(b, f.Message)
		b = appendBytes(b, f.ErrCode)
		if f.Detail != nil {
			b = appendBytes(b, f.Detail)
		}
	}
	return b
}

// DecodeReceipts reads the result of a raft entry. The receipts refer to b.
// Errors wrap [ErrReceipts].
func DecodeReceipts(b []byte) ([]Receipt, error) {
	p := parser{b: b}
	if v := p.byte(); v != receiptVersion {
		return nil, fmt.Errorf("%w: version %d", ErrReceipts, v)
	}
	n := p.uvarint()
	if n > MaxBatchCommands {
		return nil, fmt.Errorf("%w: %d of them", ErrReceipts, n)
	}
	rs := make([]Receipt, n)
	for i := range rs {
		p.receipt(&rs[i])
	}
	if !p.done() {
		return nil, ErrReceipts
	}
	return rs, nil
}

func (p *parser) receipt(r *Receipt) {
	flags := p.byte()
	r.Index = p.uvarint()
	if flags&hasHeight != 0 {
		if r.Height = p.uvarint(); r.Height == 0 {
			p.bad = true
		}
	}
	if flags&hasValue != 0 {
		r.Value = p.bytes()
	}
	if flags&refused != 0 {
		r.Refusal = &Refusal{Code: Code(p.string()), Message: p.string(), ErrCode: p.string()}
		if flags&hasDetail != 0 {
			r.Refusal.Detail = p.bytes()
		}
	}
	if flags&^byte(receiptFlags) != 0 || flags&(refused|hasDetail) == hasDetail {
		p.bad = true
	}
}
