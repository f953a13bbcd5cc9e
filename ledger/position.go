package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/selvage-mesh/selvage/identity"
)

// A Position says how far a ledger has come. It is stored beside the state, in
// the same write, under "!pos":
//
//	version 0x01 | applied (8) | height (8) | head (32) | last batch index (8) |
//	last batch hash (32) | time ms (8) | digest (32) | mesh ID (16)
type Position struct {
	Applied    uint64          // raft index of the last applied entry
	Height     uint64          // of the newest entry of the chain
	Head       Hash            // hash of the newest entry
	BatchIndex uint64          // raft index of the newest batch record
	Batch      Hash            // hash of the newest batch record
	Time       int64           // the mesh's clock, ms since 1970
	Digest     Hash            // running digest of all mutations
	Mesh       identity.MeshID // "" before genesis
}

const (
	positionVersion = 1
	positionBytes   = 1 + 8 + 8 + 32 + 8 + 32 + 8 + 32 + 16
)

func (p *Position) encode() []byte {
	b := append(make([]byte, 0, positionBytes), positionVersion)
	b = binary.BigEndian.AppendUint64(b, p.Applied)
	b = binary.BigEndian.AppendUint64(b, p.Height)
	b = append(b, p.Head[:]...)
	b = binary.BigEndian.AppendUint64(b, p.BatchIndex)
	b = append(b, p.Batch[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Time))
	b = append(b, p.Digest[:]...)
	mesh := rawID(string(p.Mesh))
	return append(b, mesh[:]...)
}

func decodePosition(b []byte) (Position, error) {
	p := parser{b: b}
	if v := p.byte(); v != positionVersion {
		return Position{}, fmt.Errorf("position of version %d", v)
	}
	pos := Position{Applied: p.uint64(), Height: p.uint64(), Head: p.hash(), BatchIndex: p.uint64(), Batch: p.hash(),
		Time: int64(p.uint64()), Digest: p.hash()}
	if mesh := p.id(); mesh != [16]byte{} {
		pos.Mesh = identity.MeshID(fmt.Sprintf("%x", mesh))
	}
	if !p.done() {
		return Position{}, errors.New("malformed position")
	}
	return pos, nil
}

// Keys that begin with '!' are the ledger's own: position, batch records,
// entries and digests. They are written beside the overlay, so rules can not
// read them: what they would see depends on how entries were grouped.
const internalPrefix = '!'

var positionKey = []byte("!pos")

func entryKey(height uint64) []byte { return orderedKey("!e", height) }
func batchKey(index uint64) []byte  { return orderedKey("!b", index) }
func digestKey(index uint64) []byte { return orderedKey("!d", index) }

func orderedKey(prefix string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, len(prefix)+8), prefix...), n)
}
