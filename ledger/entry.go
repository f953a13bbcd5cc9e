package ledger

import (
	"crypto/sha3"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// An Outcome says what became of the command of an entry. Persisted: do not rename.
type Outcome string

const (
	Applied  Outcome = "applied"
	Denied   Outcome = "denied"   // a refusal with code forbidden
	Deferred Outcome = "deferred" // waits for an approval
)

// An Entry is one link of the chain: a command that was applied, denied or
// deferred. Other refusals change nothing and are counted, not entered. Its
// bytes are
//
//	version 0x01
//	height (8), time in ms since 1970 (8), hash of the entry before (32)
//	raft index (8) and position (4) of the command, hash of the batch record (32)
//	SHA-256(salt ‖ payload) (32)
//	bytes: kind, company, actor type, actor ID, credential kind, credential ID,
//	       run, outcome, reason (of a denial)
//	uvarint number of changes; each: bytes action, entity type, entity ID, details
//
// and its hash, which the next entry names, is
//
//	SHAKE-256(bytes("selvage/entry/v1") ‖ those bytes), 32 bytes long
//
// where bytes is a uvarint length and the bytes. Sign and hash what is stored:
// a node that meets another version can check the chain (the hash does not
// depend on the form) but not tell what the entry says.
type Entry struct {
	Height      uint64
	Time        time.Time // UTC, whole milliseconds
	Prev        Hash      // hash of the entry before; zero at height 1
	Index       uint64    // raft index of the batch
	Position    uint32    // of the command in the batch
	Batch       Hash      // hash of the batch record, see batchRecord
	PayloadHash Hash      // SHA-256(salt ‖ payload)
	Kind        string
	Company     CompanyID
	Actor       Actor
	Credential  Credential
	Run         string
	Outcome     Outcome
	Reason      string // why it was denied
	Changes     []Change

	Hash Hash // of the entry itself; computed, not stored
}

// size is about what an entry takes in memory, in bytes.
func (e *Entry) size() int {
	n := entryOverhead + len(e.Kind) + len(e.Company) + len(e.Run) + len(e.Reason)
	for i := range e.Changes {
		c := &e.Changes[i]
		n += changeOverhead + len(c.Action) + len(c.EntityType) + len(c.EntityID) + len(c.Details)
	}
	return n
}

const (
	entryVersion = 1
	entryDomain  = "selvage/entry/v1"
)

// ErrEntry says that bytes are not an entry of this version.
var ErrEntry = errors.New("malformed entry")

// AppendEntry appends the bytes of e to b.
func AppendEntry(b []byte, e *Entry) []byte {
	b = append(b, entryVersion)
	b = binary.BigEndian.AppendUint64(b, e.Height)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time.UnixMilli()))
	b = append(b, e.Prev[:]...)
	b = binary.BigEndian.AppendUint64(b, e.Index)
	b = binary.BigEndian.AppendUint32(b, e.Position)
	b = append(b, e.Batch[:]...)
	b = append(b, e.PayloadHash[:]...)
	b = appendBytes(b, e.Kind)
	b = appendBytes(b, e.Company)
	b = appendBytes(b, e.Actor.Type)
	b = appendBytes(b, e.Actor.ID)
	b = appendBytes(b, e.Credential.Kind)
	b = appendBytes(b, e.Credential.ID)
	b = appendBytes(b, e.Run)
	b = appendBytes(b, e.Outcome)
	b = appendBytes(b, e.Reason)
	b = binary.AppendUvarint(b, uint64(len(e.Changes)))
	for i := range e.Changes {
		ch := &e.Changes[i]
		b = appendBytes(b, ch.Action)
		b = appendBytes(b, ch.EntityType)
		b = appendBytes(b, ch.EntityID)
		b = appendBytes(b, ch.Details)
	}
	return b
}

// prevIn returns the hash of the entry before from an entry's bytes.
func prevIn(b []byte) (h Hash, ok bool) {
	const at = 1 + 8 + 8 // version, height, time
	if len(b) < at+len(h) || b[0] != entryVersion {
		return h, false
	}
	copy(h[:], b[at:])
	return h, true
}

// EntryHash returns the hash of an entry's bytes.
func EntryHash(b []byte) (h Hash) {
	x := sha3.NewSHAKE256()
	var prefix [1 + len(entryDomain)]byte
	prefix[0] = byte(len(entryDomain))
	copy(prefix[1:], entryDomain)
	x.Write(prefix[:])
	x.Write(b)
	x.Read(h[:])
	return h
}

// DecodeEntry reads the bytes of an entry and computes its hash. Errors wrap [ErrEntry].
func DecodeEntry(b []byte) (Entry, error) {
	e, err := decodeEntry(b, nil)
	if err == nil {
		e.Hash = EntryHash(b)
	}
	return e, err
}

// decodeEntry reads an entry without its hash. Changes that skip, which may be nil,
// says of an entity are left empty.
func decodeEntry(b []byte, skip func(entityType, entityID []byte) bool) (Entry, error) {
	p := parser{b: b}
	if v := p.byte(); v != entryVersion {
		return Entry{}, fmt.Errorf("%w: version %d", ErrEntry, v)
	}
	e := Entry{Height: p.uint64()}
	ms := p.uint64()
	if ms > maxMillis {
		return Entry{}, fmt.Errorf("%w: time out of range", ErrEntry)
	}
	e.Time = time.UnixMilli(int64(ms)).UTC()
	e.Prev, e.Index, e.Position, e.Batch, e.PayloadHash = p.hash(), p.uint64(), p.uint32(), p.hash(), p.hash()
	e.Kind, e.Company = p.string(), CompanyID(p.string())
	e.Actor = Actor{p.string(), p.string()}
	e.Credential = Credential{p.string(), p.string()}
	e.Run, e.Outcome, e.Reason = p.string(), Outcome(p.string()), p.string()
	n := p.uvarint()
	if n > MaxChanges {
		return Entry{}, fmt.Errorf("%w: %d changes", ErrEntry, n)
	}
	if n > 0 {
		e.Changes = make([]Change, n)
	}
	for i := range e.Changes {
		action, kind, id, details := p.bytes(), p.bytes(), p.bytes(), p.bytes()
		if skip != nil && skip(kind, id) {
			continue
		}
		e.Changes[i] = Change{Action: string(action), EntityType: string(kind), EntityID: string(id)}
		if len(details) > 0 {
			e.Changes[i].Details = append([]byte(nil), details...)
		}
	}
	if !p.done() {
		return Entry{}, ErrEntry
	}
	return e, nil
}
