package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// A batch record is what the state keeps of a committed batch:
//
//	version 0x01
//	hash of the record before (32), zero for the first
//	raft index (8), raft term (8)
//	the batch (see [Batch]) with empty bodies
//
// under "!b" ‖ index, and its hash is SHA-256("selvage/batch-record/v1" ‖ those
// bytes). So everything in a batch is chained, the leader's time and refused
// commands too. The bodies lie under c/<company>/~payload/<index> (m/~payload
// without a company), where they can be erased:
//
//	version 0x01, then for each: uvarint position in the batch, bytes body
//
// in the order of positions.
const (
	recordVersion = 1
	recordDomain  = "selvage/batch-record/v1"
	recordFixed   = 1 + 32 + 8 + 8
	bodiesVersion = 1
	payloadTable  = "~payload"
)

func batchRecord(prev Hash, e LogEntry, b *Batch) []byte {
	n := recordFixed + batchFixedBytes + 8*len(b.Headers)
	for _, h := range b.Headers {
		n += len(h)
	}
	rec := append(make([]byte, 0, n), recordVersion)
	rec = append(rec, prev[:]...)
	rec = binary.BigEndian.AppendUint64(rec, e.Index)
	rec = binary.BigEndian.AppendUint64(rec, e.Term)
	return appendSkeleton(rec, e.Data, b)
}

func batchHash(record []byte) (h Hash) {
	x := sha256.New()
	x.Write([]byte(recordDomain))
	x.Write(record)
	x.Sum(h[:0])
	return h
}

type record struct {
	prev        Hash
	index, term uint64
	batch       *Batch
}

func decodeRecord(b []byte) (record, error) {
	p := parser{b: b}
	if p.byte() != recordVersion {
		return record{}, errNewer
	}
	r := record{prev: p.hash(), index: p.uint64(), term: p.uint64()}
	if p.bad {
		return record{}, errMalformed
	}
	var err error
	r.batch, err = DecodeBatch(p.b)
	return r, err
}

func payloadKey(company CompanyID, index uint64) []byte {
	if company == "" {
		return Key("m", payloadTable, Order(index))
	}
	return Key("c", string(company), payloadTable, Order(index))
}

// encodeBodies returns the row of the bodies of one company's commands in bt.
func encodeBodies(bt *Batch, company CompanyID) []byte {
	n := 1
	for i := range bt.Bodies {
		n += len(bt.Bodies[i]) + 6
	}
	b := append(make([]byte, 0, n), bodiesVersion)
	for i, body := range bt.Bodies {
		if bt.Commands[i].Company == company && body != nil {
			b = appendBytes(binary.AppendUvarint(b, uint64(i)), body)
		}
	}
	return b
}

// readBodies puts the bodies of one row where they belong in bt.
func readBodies(b []byte, bt *Batch, company CompanyID) error {
	p := parser{b: b}
	if p.byte() != bodiesVersion {
		return errors.New("payloads of another version")
	}
	next := uint64(0)
	for len(p.b) > 0 && !p.bad {
		at := p.uvarint()
		body := p.bytes()
		if p.bad || at < next || at >= uint64(len(bt.Bodies)) || len(body) < saltBytes || bt.Commands[at].Company != company {
			return errors.New("malformed payloads")
		}
		bt.Bodies[at] = body
		copy(bt.Commands[at].Salt[:], body)
		bt.Commands[at].Payload = body[saltBytes:]
		next = at + 1
	}
	if p.bad {
		return errors.New("malformed payloads")
	}
	return nil
}

// ErasePayloads removes stored payloads of a company, with their salts, from
// the state of all nodes: at most limit batches at a time. It returns whether
// there are more. The chain stays valid: it holds only the hashes. A handler
// calls it; deleting a company goes on by follow-up commands.
func ErasePayloads(tx *Tx, company CompanyID, limit int) (more bool) {
	prefix := Key("c", string(company), payloadTable, "")
	n := 0
	for k := range tx.Prefix(prefix) {
		if n == limit {
			return true
		}
		n++
		tx.Delete(k)
	}
	return false
}

// ErasePayload removes the stored payload of the command behind one entry.
func ErasePayload(tx *Tx, e Entry) {
	eraseBody(tx, payloadKey(e.Company, e.Index), func(at uint64, _ []byte) bool { return at == uint64(e.Position) })
}

// EraseBody removes the stored payload of a command with this salt (see [Context.Salt])
// from the batch at a raft index. A handler calls it for what must be forgotten; the chain
// keeps the hash.
func EraseBody(tx *Tx, company CompanyID, index uint64, salt [16]byte) {
	for _, of := range []CompanyID{company, ""} {
		eraseBody(tx, payloadKey(of, index), func(_ uint64, body []byte) bool { return bytes.HasPrefix(body, salt[:]) })
	}
}

// eraseBody removes the bodies that match from one row of payloads.
func eraseBody(tx *Tx, key []byte, match func(at uint64, body []byte) bool) {
	b, ok := tx.Get(key)
	if !ok {
		return
	}
	p := parser{b: b}
	out, erased := []byte{p.byte()}, false
	for len(p.b) > 0 && !p.bad {
		at := p.uvarint()
		body := p.bytes()
		if match(at, body) {
			erased = true
			continue
		}
		out = appendBytes(binary.AppendUvarint(out, at), body)
	}
	if !p.bad && erased {
		tx.Set(key, out)
	}
}
