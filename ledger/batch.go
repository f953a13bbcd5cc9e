package ledger

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/identity"
)

// Hash is a SHA-256 or SHAKE-256 digest of 32 bytes.
type Hash = [32]byte

// A Batch is what one raft entry carries: commands of one session of one node,
// signed once by that node, stamped with the time by the leader. Its bytes are
//
//	"slb" version 0x01          4
//	time, ms since 1970         8   stamped by the leader, not signed
//	mesh ID                    16
//	origin node ID             16
//	session                     8   0 only for genesis and the opening of a session
//	first sequence              8   command i has sequence first+i
//	mark                        8   the lowest sequence still unanswered at the origin
//	number of commands          4   1 … MaxBatchCommands
//	signature                  64
//	per command: header length 4, header, body length 4, body
//
// all integers big endian. A header is a deterministic CBOR map of the
// command's fields but payload and salt (see [Command]); the body is
// salt (16) ‖ payload, and is empty once the payload was erased. The signature
// is the origin's, in domain "selvage/batch/v1", over
//
//	mesh ID ‖ session ‖ first ‖ mark ‖ root
//
// where root is the RFC 6962 Merkle tree hash whose leaves are the command
// digests, and a command's digest is SHA-256 of its header bytes; so erasing a
// body leaves the signature valid.
//
// Readers refuse malformed bytes. Another version or an unknown header field
// means that a newer node wrote it: the ledger then stops, see [ErrUpgrade].
type Batch struct {
	Time     time.Time // UTC, whole milliseconds; zero before the leader stamps it
	Mesh     identity.MeshID
	Origin   identity.NodeID
	Session  uint64
	First    uint64
	Mark     uint64
	Commands []Command

	Signature []byte
	Headers   [][]byte // header bytes as stored
	Bodies    [][]byte // salt ‖ payload as stored, nil when erased
	hashes    []Hash   // payload hash as named by the header
}

const (
	batchVersion    = 1
	batchMagic      = "slb\x01"
	batchDomain     = "selvage/batch/v1"
	batchTimeAt     = 4
	batchFixedBytes = 4 + 8 + 16 + 16 + 8 + 8 + 8 + 4 + ed25519.SignatureSize
	saltBytes       = 16
)

// ErrBatch says that bytes are not a batch, or one that breaks a limit.
var ErrBatch = errors.New("malformed batch")

// Check reports what is wrong with c as a whole: limits and forms that hold for
// commands of every kind. Whoever takes a command in calls it; EncodeBatch
// panics on a command that does not pass.
func (c *Command) Check() error {
	switch {
	case c.Kind == "" || len(c.Kind) > maxNameBytes || !utf8.ValidString(c.Kind):
		return Refuse(Invalid, nil, "a command's kind has 1 to %d bytes", maxNameBytes)
	case !validKeyPart(string(c.Company)):
		return Refuse(Invalid, nil, "malformed company ID")
	case len(c.Payload) > MaxPayload:
		return Refuse(TooLarge, nil, "a command's payload has at most %d bytes", MaxPayload)
	case len(c.IdempotencyKey) > MaxIdempotencyKey:
		return Refuse(Invalid, nil, "an Idempotency-Key has at most %d bytes", MaxIdempotencyKey)
	case c.IdempotencyKey == "" && c.RequestDigest != Hash{}:
		return Refuse(Invalid, nil, "a request digest needs an idempotency key")
	}
	for _, s := range []string{c.Actor.Type, c.Actor.ID, c.Credential.Kind, c.Credential.ID, c.Run, c.IdempotencyKey} {
		if len(s) > MaxIdempotencyKey || !utf8.ValidString(s) {
			return Refuse(Invalid, nil, "malformed command header")
		}
	}
	return nil
}

// Size returns an upper bound of what c takes in a batch, for filling one.
func (c *Command) Size() int {
	const overhead = 8 + saltBytes + 2*(2+sha256.Size) + 10*6
	return overhead + len(c.Kind) + len(c.Company) + len(c.Actor.Type) + len(c.Actor.ID) +
		len(c.Credential.Kind) + len(c.Credential.ID) + len(c.Run) + len(c.IdempotencyKey) + len(c.Payload)
}

// validKeyPart reports whether s may be part of a key: it is "" or has up to 64
// letters, digits, '-', '_', '.' and ':'.
func validKeyPart(s string) bool {
	if len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c == '-' || c == '_' || c == '.' || c == ':') {
			return false
		}
	}
	return true
}

// EncodeBatch encodes and signs a batch; sign is [identity.Keys.Sign] of the
// origin. Times are stamped later by [StampBatch]. It panics when there are no
// or too many commands, or one that does not pass [Command.Check]; the caller
// fills batches by [Command.Size] and keeps them below [MaxBatchBytes].
func EncodeBatch(mesh identity.MeshID, origin identity.NodeID, session, first, mark uint64, cmds []Command,
	sign func(domain string, msg []byte) []byte) []byte {
	if len(cmds) == 0 || len(cmds) > MaxBatchCommands {
		panic(fmt.Sprintf("ledger: a batch of %d commands", len(cmds)))
	}
	n := batchFixedBytes
	for i := range cmds {
		if err := cmds[i].Check(); err != nil {
			panic(fmt.Sprintf("ledger: command %s: %v", cmds[i].Kind, err))
		}
		n += cmds[i].Size()
	}
	b := make([]byte, batchFixedBytes, n)
	copy(b, batchMagic)
	meshID, originID := rawID(string(mesh)), rawID(string(origin))
	copy(b[12:], meshID[:])
	copy(b[28:], originID[:])
	binary.BigEndian.PutUint64(b[44:], session)
	binary.BigEndian.PutUint64(b[52:], first)
	binary.BigEndian.PutUint64(b[60:], mark)
	binary.BigEndian.PutUint32(b[68:], uint32(len(cmds)))
	leaves := make([]Hash, len(cmds))
	for i := range cmds {
		at := len(b)
		b = appendHeader(append(b, 0, 0, 0, 0), &cmds[i])
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
		leaves[i] = sha256.Sum256(b[at+4:])
		b = binary.BigEndian.AppendUint32(b, uint32(saltBytes+len(cmds[i].Payload)))
		b = append(b, cmds[i].Salt[:]...)
		b = append(b, cmds[i].Payload...)
	}
	copy(b[72:batchFixedBytes], sign(batchDomain, batchSigned(b, merkleRoot(leaves))))
	return b
}

// batchSigned returns the message that the origin signs; b is the batch.
func batchSigned(b []byte, root Hash) []byte {
	msg := make([]byte, 0, 16+3*8+len(root))
	msg = append(msg, b[12:28]...)
	msg = append(msg, b[44:68]...)
	return append(msg, root[:]...)
}

// StampBatch writes the leader's time into an encoded batch, in place.
func StampBatch(b []byte, at time.Time) {
	binary.BigEndian.PutUint64(b[batchTimeAt:], uint64(at.UnixMilli()))
}

// BatchOrigin returns the raw ID of the node that made an encoded batch, zero
// bytes when it is too short.
func BatchOrigin(b []byte) (id [16]byte) {
	if len(b) >= batchFixedBytes {
		copy(id[:], b[28:])
	}
	return id
}

// rawID returns the 16 bytes of a NodeID or MeshID; a malformed one is zero,
// which is nobody's.
func rawID(id string) (b [16]byte) {
	if len(id) == 2*len(b) {
		if _, err := hex.Decode(b[:], []byte(id)); err != nil {
			return [16]byte{}
		}
	}
	return b
}

// DecodeBatch reads a batch without checking its signature. The result refers
// to b. Errors wrap [ErrBatch], or [ErrUpgrade] when a newer version wrote b.
func DecodeBatch(b []byte) (*Batch, error) {
	bt, err := decodeBatch(b)
	switch {
	case errors.Is(err, errNewer):
		return nil, fmt.Errorf("%w: batch %w", ErrUpgrade, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBatch, err)
	}
	return bt, nil
}

func decodeBatch(b []byte) (*Batch, error) {
	p := parser{b: b}
	magic := p.take(4)
	if p.bad || string(magic[:3]) != batchMagic[:3] {
		return nil, errors.New("not a batch")
	}
	if magic[3] != batchVersion {
		return nil, errNewer
	}
	ms := p.uint64()
	mesh, origin := p.id(), p.id()
	bt := &Batch{
		Mesh:    identity.MeshID(hex.EncodeToString(mesh[:])),
		Origin:  identity.NodeID(hex.EncodeToString(origin[:])),
		Session: p.uint64(),
		First:   p.uint64(),
		Mark:    p.uint64(),
	}
	n := p.uint32()
	bt.Signature = p.take(ed25519.SignatureSize)
	switch {
	case p.bad:
		return nil, errors.New("cut short")
	case ms > maxMillis:
		return nil, errors.New("time out of range")
	case n == 0 || n > MaxBatchCommands:
		return nil, errors.New("number of commands out of range")
	case bt.Session == 0 && (n != 1 || bt.First != 0 || bt.Mark != 0):
		return nil, errors.New("a batch without a session has one command")
	case bt.Session != 0 && (bt.First < bt.Mark || bt.First-bt.Mark > MaxOutstanding-uint64(n)):
		return nil, errors.New("sequences outside of the window")
	}
	if ms != 0 {
		bt.Time = time.UnixMilli(int64(ms)).UTC()
	}
	bt.Commands = make([]Command, n)
	bt.Headers = make([][]byte, n)
	bt.Bodies = make([][]byte, n)
	bt.hashes = make([]Hash, n)
	for i := range bt.Commands {
		bt.Headers[i] = p.take(uint64(p.uint32()))
		bt.Bodies[i] = p.take(uint64(p.uint32()))
		if p.bad {
			return nil, errors.New("cut short")
		}
		c := &bt.Commands[i]
		hash, err := parseHeader(bt.Headers[i], c)
		if err != nil {
			return nil, fmt.Errorf("header of command %d: %w", i, err)
		}
		bt.hashes[i] = hash
		switch body := bt.Bodies[i]; {
		case len(body) == 0:
			bt.Bodies[i] = nil
		case len(body) < saltBytes || len(body) > saltBytes+MaxPayload:
			return nil, fmt.Errorf("body of command %d has %d bytes", i, len(body))
		default:
			copy(c.Salt[:], body)
			c.Payload = body[saltBytes:]
		}
	}
	if !p.done() {
		return nil, errors.New("bytes after the last command")
	}
	return bt, nil
}

// Verify checks the origin's signature, that origin is the ID of key, and that
// each body that is present is the one whose hash its header names. Errors wrap
// [ErrBatch].
func (b *Batch) Verify(key ed25519.PublicKey) error {
	if identity.NodeIDOf(key) != b.Origin {
		return fmt.Errorf("%w: key of another node than %s", ErrBatch, b.Origin.Short())
	}
	leaves := make([]Hash, len(b.Headers))
	for i, h := range b.Headers {
		leaves[i] = sha256.Sum256(h)
	}
	for i, body := range b.Bodies {
		if body != nil && sha256.Sum256(body) != b.hashes[i] {
			return fmt.Errorf("%w: payload %d is not the one that its header names", ErrBatch, i)
		}
	}
	mesh := rawID(string(b.Mesh))
	msg := append(make([]byte, 0, 16+3*8+sha256.Size), mesh[:]...)
	for _, n := range []uint64{b.Session, b.First, b.Mark} {
		msg = binary.BigEndian.AppendUint64(msg, n)
	}
	root := merkleRoot(leaves)
	if !identity.Verify(key, batchDomain, append(msg, root[:]...), b.Signature) {
		return fmt.Errorf("%w: signature of node %s does not verify", ErrBatch, b.Origin.Short())
	}
	return nil
}

// Digest returns the digest of command i, SHA-256 of its header bytes.
func (b *Batch) Digest(i int) Hash { return sha256.Sum256(b.Headers[i]) }

// PayloadHash returns SHA-256(salt ‖ payload) of command i as its header names it.
func (b *Batch) PayloadHash(i int) Hash { return b.hashes[i] }

// merkleRoot is the Merkle tree hash of RFC 6962 §2.1. It reuses leaves.
func merkleRoot(leaves []Hash) Hash {
	var buf [1 + 2*sha256.Size]byte
	for i := range leaves {
		buf[0] = 0
		copy(buf[1:], leaves[i][:])
		leaves[i] = sha256.Sum256(buf[:1+sha256.Size])
	}
	// Pairing neighbours and carrying an odd last one up gives the same tree as
	// splitting at the largest power of two.
	for n := len(leaves); n > 1; n = (n + 1) / 2 {
		for i := 0; i < n/2; i++ {
			buf[0] = 1
			copy(buf[1:], leaves[2*i][:])
			copy(buf[1+sha256.Size:], leaves[2*i+1][:])
			leaves[i] = sha256.Sum256(buf[:])
		}
		if n%2 == 1 {
			leaves[n/2] = leaves[n-1]
		}
	}
	return leaves[0]
}

// The fields of a command header. Persisted: do not renumber. A field that is
// empty is left out; 1, 3, 4 and 6 are always there.
const (
	headerKind        = 1 // text
	headerCompany     = 2 // text
	headerActor       = 3 // map {1: type, 2: ID}
	headerCredential  = 4 // map {1: kind, 2: ID}
	headerRun         = 5 // text
	headerPayloadHash = 6 // 32 bytes, SHA-256(salt ‖ payload)
	headerIdempotency = 7 // text
	headerRequest     = 8 // 32 bytes, with 7
	headerFields      = 8
)

func appendHeader(b []byte, c *Command) []byte {
	fields := uint64(4)
	for _, s := range []string{string(c.Company), c.Run} {
		if s != "" {
			fields++
		}
	}
	if c.IdempotencyKey != "" {
		fields += 2
	}
	b = appendCBORHead(b, cborMap, fields)
	b = appendCBORText(b, headerKind, c.Kind)
	if c.Company != "" {
		b = appendCBORText(b, headerCompany, string(c.Company))
	}
	b = append(b, headerActor, cborMap|2)
	b = appendCBORText(b, 1, c.Actor.Type)
	b = appendCBORText(b, 2, c.Actor.ID)
	b = append(b, headerCredential, cborMap|2)
	b = appendCBORText(b, 1, c.Credential.Kind)
	b = appendCBORText(b, 2, c.Credential.ID)
	if c.Run != "" {
		b = appendCBORText(b, headerRun, c.Run)
	}
	h := sha256.New()
	h.Write(c.Salt[:])
	h.Write(c.Payload)
	var sum Hash
	b = appendCBORBytes(b, headerPayloadHash, h.Sum(sum[:0]))
	if c.IdempotencyKey != "" {
		b = appendCBORText(b, headerIdempotency, c.IdempotencyKey)
		b = appendCBORBytes(b, headerRequest, c.RequestDigest[:])
	}
	return b
}

// parseHeader reads a header into c and returns the payload hash it names.
func parseHeader(b []byte, c *Command) (payload Hash, err error) {
	p := headerParser{parser{b: b}, string(b)}
	fields := p.cborHead(cborMap)
	seen, last := 0, uint64(0)
	for range min(fields, headerFields+1) {
		key := p.cborHead(cborUint)
		if p.bad || key <= last {
			return payload, errMalformed
		}
		last = key
		seen |= 1 << min(key, headerFields+1)
		switch key {
		case headerKind:
			c.Kind = p.text()
		case headerCompany:
			c.Company = CompanyID(p.text())
		case headerActor:
			c.Actor.Type, c.Actor.ID = p.pair()
		case headerCredential:
			c.Credential.Kind, c.Credential.ID = p.pair()
		case headerRun:
			c.Run = p.text()
		case headerPayloadHash:
			p.sum(&payload)
		case headerIdempotency:
			c.IdempotencyKey = p.text()
		case headerRequest:
			p.sum(&c.RequestDigest)
		default:
			return payload, errNewer
		}
		if p.bad {
			return payload, errMalformed
		}
	}
	const always = 1<<headerKind | 1<<headerActor | 1<<headerCredential | 1<<headerPayloadHash
	const idempotent = 1<<headerIdempotency | 1<<headerRequest
	switch both := seen & idempotent; {
	case !p.done(), seen&always != always, both != 0 && both != idempotent,
		seen&(1<<headerCompany) != 0 && c.Company == "",
		seen&(1<<headerRun) != 0 && c.Run == "",
		both != 0 && c.IdempotencyKey == "",
		c.Check() != nil:
		return payload, errMalformed
	}
	return payload, nil
}

// headerParser hands out strings that share the one copy of the header.
type headerParser struct {
	parser
	s string
}

func (p *headerParser) text() string {
	n := p.cborHead(cborText)
	at := len(p.s) - len(p.b)
	if p.take(n) == nil && p.bad {
		return ""
	}
	return p.s[at : at+int(n)]
}

func (p *headerParser) pair() (first, second string) {
	if p.cborHead(cborMap) != 2 || p.cborHead(cborUint) != 1 {
		p.bad = true
		return "", ""
	}
	first = p.text()
	if p.cborHead(cborUint) != 2 {
		p.bad = true
	}
	return first, p.text()
}

func (p *headerParser) sum(h *Hash) {
	if p.cborHead(cborBytes) != uint64(len(h)) {
		p.bad = true
		return
	}
	copy(h[:], p.take(uint64(len(h))))
}

// appendSkeleton appends the encoded batch data without bodies.
func appendSkeleton(out, data []byte, bt *Batch) []byte {
	out = append(out, data[:batchFixedBytes]...)
	for _, h := range bt.Headers {
		out = binary.BigEndian.AppendUint32(out, uint32(len(h)))
		out = append(out, h...)
		out = append(out, 0, 0, 0, 0)
	}
	return out
}

// Encode returns the bytes of the batch, with the bodies that are present.
func (b *Batch) Encode() []byte {
	out := make([]byte, batchFixedBytes)
	copy(out, batchMagic)
	if !b.Time.IsZero() {
		StampBatch(out, b.Time)
	}
	mesh, origin := rawID(string(b.Mesh)), rawID(string(b.Origin))
	copy(out[12:], mesh[:])
	copy(out[28:], origin[:])
	binary.BigEndian.PutUint64(out[44:], b.Session)
	binary.BigEndian.PutUint64(out[52:], b.First)
	binary.BigEndian.PutUint64(out[60:], b.Mark)
	binary.BigEndian.PutUint32(out[68:], uint32(len(b.Headers)))
	copy(out[72:batchFixedBytes], b.Signature)
	for i, h := range b.Headers {
		out = binary.BigEndian.AppendUint32(out, uint32(len(h)))
		out = append(out, h...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(b.Bodies[i])))
		out = append(out, b.Bodies[i]...)
	}
	return out
}

// String tells a batch in one line, for logs.
func (b *Batch) String() string {
	kinds := make([]string, 0, 3)
	for i := range b.Commands[:min(3, len(b.Commands))] {
		kinds = append(kinds, b.Commands[i].Kind)
	}
	return fmt.Sprintf("batch of %d from %s, session %d, sequences from %d: %s",
		len(b.Commands), b.Origin.Short(), b.Session, b.First, strings.Join(kinds, ", "))
}
