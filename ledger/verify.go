package ledger

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/selvage-mesh/selvage/identity"
)

// A Broken is what Verify returns for a chain that does not hold.
type Broken struct {
	Height uint64 // the first bad one: nothing from here on is proven
	Index  uint64 // raft index of the batch at fault, 0 when there is none
	Reason string
}

func (e *Broken) Error() string {
	return fmt.Sprintf("the chain is broken at height %d (batch %d): %s", e.Height, e.Index, e.Reason)
}

// Verified says what [Ledger.Verify] has checked.
type Verified struct {
	Position Position
	Entries  uint64
	Batches  uint64
	Commands uint64
	Erased   uint64 // commands whose payload was erased; their hash still stands
}

// Verify checks everything stored from genesis on: that batch records are
// chained and signed by the nodes whose ID the key has, that each payload that
// is there is the one that was signed, that entries are chained and say what
// their batch says, that no sequence was carried out twice, that time and
// heights only rise, and that all ends at the stored position. It reports the
// first bad height as a [*Broken]. It sees the state of one moment and lets
// others work meanwhile, but holds off Restore; progress, when not nil, is
// called now and then.
func (l *Ledger) Verify(ctx context.Context, progress func(Verified)) (v Verified, err error) {
	err = l.View(func(tx *Tx) (err error) {
		defer func() { // what does not even decode
			if r := recover(); r != nil {
				failure, ok := r.(StorageError)
				if !ok {
					panic(r)
				}
				err = failure
			}
		}()
		c := verifier{tx: tx, sessions: map[uint64]*verifiedSession{}, keys: map[identity.NodeID]ed25519.PublicKey{}}
		err = c.run(ctx, progress)
		v = c.v
		return err
	})
	return v, err
}

type verifier struct {
	tx       *Tx
	v        Verified
	batch    Hash // hash of the last record
	index    uint64
	head     Hash
	time     int64
	mesh     identity.MeshID
	sessions map[uint64]*verifiedSession
	keys     map[identity.NodeID]ed25519.PublicKey
}

// verifiedSession remembers which sequences of a session above its mark have an entry.
type verifiedSession struct {
	mark uint64
	seen map[uint64]bool
}

func (c *verifier) broken(format string, args ...any) error {
	return &Broken{Height: c.v.Entries + 1, Index: c.index, Reason: fmt.Sprintf(format, args...)}
}

func (c *verifier) run(ctx context.Context, progress func(Verified)) error {
	posRow, ok := c.tx.Get(positionKey)
	if ok {
		pos, err := decodePosition(posRow)
		if err != nil {
			return c.broken("the position does not decode")
		}
		c.v.Position = pos
	}
	next, stop := iter.Pull2(c.tx.Scan([]byte("!e"), []byte("!f"), false))
	defer stop()
	entryAt, entry, more := next()
	for k, raw := range c.tx.Scan([]byte("!b"), []byte("!c"), false) {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := c.record(k, raw)
		if err != nil {
			return err
		}
		last := int64(-1)
		for more {
			e, err := DecodeEntry(entry)
			if err != nil {
				return c.broken("entry does not decode")
			}
			if e.Index != c.index {
				break
			}
			if int64(e.Position) <= last {
				return c.broken("entries of a batch are out of order")
			}
			last = int64(e.Position)
			if err := c.entry(entryAt, e, rec); err != nil {
				return err
			}
			entryAt, entry, more = next()
		}
		if progress != nil && c.v.Batches%1024 == 0 {
			progress(c.v)
		}
	}
	if more {
		return c.broken("entry of a batch that is not there")
	}
	switch pos := c.v.Position; {
	case pos.Height != c.v.Entries || pos.Head != c.head:
		return c.broken("the chain ends at height %d, the position says %d", c.v.Entries, pos.Height)
	case pos.BatchIndex != c.index || pos.Batch != c.batch:
		return c.broken("the batches end at %d, the position says %d", c.index, pos.BatchIndex)
	case pos.Mesh != c.mesh:
		return c.broken("the position is of mesh %s", pos.Mesh.Short())
	case pos.Applied < c.index || pos.Time < c.time:
		return c.broken("the position is behind the chain")
	}
	return nil
}

// record checks one batch record against the one before, and its batch.
func (c *verifier) record(key, raw []byte) (*Batch, error) {
	rec, err := decodeRecord(raw)
	if err != nil {
		return nil, c.broken("batch record after %d: %v", c.index, err)
	}
	if rec.index <= c.index || string(key) != string(batchKey(rec.index)) {
		return nil, c.broken("batch record %d after %d", rec.index, c.index)
	}
	c.index = rec.index
	b := rec.batch
	if rec.prev != c.batch {
		return nil, c.broken("batch record does not name the one before")
	}
	c.batch = batchHash(raw)
	if c.v.Batches == 0 {
		if b.Session != 0 || b.Commands[0].Kind != KindGenesis {
			return nil, c.broken("the first batch is not genesis")
		}
		c.mesh = b.Mesh
	}
	if b.Mesh != c.mesh {
		return nil, c.broken("batch of mesh %s", b.Mesh.Short())
	}
	if err := c.bodies(&rec); err != nil {
		return nil, err
	}
	if c.v.Batches == 0 && b.Bodies[0] != nil && identity.MeshIDOf(b.Commands[0].Payload) != c.mesh {
		return nil, c.broken("the mesh ID is not that of its genesis")
	}
	key2, err := c.keyOf(b)
	if err != nil {
		return nil, err
	}
	if err := b.Verify(key2); err != nil {
		return nil, c.broken("%v", err)
	}
	c.v.Batches++
	c.v.Commands += uint64(len(b.Commands))
	c.time = max(c.time, b.Time.UnixMilli())
	c.advance(b)
	return b, nil
}

func (c *verifier) bodies(rec *record) error {
	if err := fillBodies(c.tx, rec); err != nil {
		return c.broken("%v", err)
	}
	for i, body := range rec.batch.Bodies {
		switch {
		case body == nil:
			c.v.Erased++
		case sha256.Sum256(body) != rec.batch.hashes[i]:
			return c.broken("payload of command %d is not the one that was signed", i)
		}
	}
	return nil
}

// keyOf returns the key that b was signed with. Who founds an epoch brings its
// key along: if that was refused, the roster never had it.
func (c *verifier) keyOf(b *Batch) (ed25519.PublicKey, error) {
	if isEpoch(b) && b.Bodies[0] != nil {
		var p EpochFound
		if Unmarshal(b.Commands[0].Payload, &p) == nil && len(p.Founder.Key) == ed25519.PublicKeySize &&
			identity.NodeIDOf(p.Founder.Key) == b.Origin {
			return p.Founder.Key, nil
		}
	}
	return c.key(b.Origin)
}

// key returns the roster's key of a node; an ID is the hash of its key, so the
// roster can not be made to lie.
func (c *verifier) key(id identity.NodeID) (ed25519.PublicKey, error) {
	if key, ok := c.keys[id]; ok {
		return key, nil
	}
	n, ok := FindNode(c.tx, id)
	if !ok || identity.NodeIDOf(n.Key) != id {
		return nil, c.broken("batch of node %s, whose key is not in the roster", id.Short())
	}
	c.keys[id] = n.Key
	return n.Key, nil
}

func (c *verifier) advance(b *Batch) {
	if b.Session == 0 {
		return
	}
	s := c.sessions[b.Session]
	if s == nil {
		s = &verifiedSession{seen: map[uint64]bool{}}
		c.sessions[b.Session] = s
	}
	if b.Mark > s.mark {
		for seq := range s.seen {
			if seq < b.Mark {
				delete(s.seen, seq)
			}
		}
		s.mark = b.Mark
	}
}

func (c *verifier) entry(key []byte, e Entry, b *Batch) error {
	if e.Height != c.v.Entries+1 || string(key) != string(entryKey(e.Height)) {
		return c.broken("entry of height %d", e.Height)
	}
	if e.Prev != c.head {
		return c.broken("entry does not name the one before")
	}
	if e.Batch != c.batch || int(e.Position) >= len(b.Commands) {
		return c.broken("entry names another batch")
	}
	cmd := &b.Commands[e.Position]
	if e.Kind != cmd.Kind || e.Company != cmd.Company || e.Actor != cmd.Actor || e.Credential != cmd.Credential ||
		e.Run != cmd.Run || e.PayloadHash != b.hashes[e.Position] {
		return c.broken("entry says something else than its command")
	}
	if ms := e.Time.UnixMilli(); ms < c.time {
		return c.broken("time goes back")
	}
	c.time = e.Time.UnixMilli()
	if b.Session != 0 {
		seq, s := b.First+uint64(e.Position), c.sessions[b.Session]
		if seq < s.mark || s.seen[seq] {
			return c.broken("sequence %d of session %d was carried out twice", seq, b.Session)
		}
		s.seen[seq] = true
	}
	c.v.Entries++
	c.head = e.Hash
	return nil
}

// IsBroken returns what is broken when err says so.
func IsBroken(err error) (*Broken, bool) { return errors.AsType[*Broken](err) }
