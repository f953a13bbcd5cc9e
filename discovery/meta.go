package discovery

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/selvage-mesh/selvage/identity"
)

// Meta is what a node tells all others about itself by gossip. More is to be
// had by asking the node.
type Meta struct {
	Mesh         identity.MeshID
	Node         identity.NodeID
	Capabilities [32]byte // SHA-256 of the node's capability record
	Leaving      bool     // set by Leave: the node goes on purpose
	Incarnation  string   // of its raft server; see ServerID
	HTTP         string   // address of its API, "" when it serves none
	Role         string   // voter, learner, ...
	Zone         string
	Name         string // shown to people
	MeshName     string // shown to people
	Program      string // version of the node's program, "" when it does not tell
	Level        uint8  // newest feature level that the node knows, 0 when it does not tell
}

// ServerID is the node's name in the raft configuration.
func (m Meta) ServerID() string { return string(m.Node) + "/" + m.Incarnation }

// ErrMetaTooLarge says that a node's metadata does not fit a gossip message.
var ErrMetaTooLarge = errors.New("node metadata too large")

// ErrMeta says that bytes are no metadata that this program can read.
var ErrMeta = errors.New("bad node metadata")

const (
	metaVersion = 1
	metaFixed   = 1 + 1 + 16 + 16 + 32
	metaLeaving = 1 << 0
	metaStrings = 6 // that every node tells
)

// MarshalBinary returns the metadata as gossiped, at most MaxMeta bytes:
//
//	offset  bytes  what
//	0       1      version, 1
//	1       1      flags; bit 0: leaving; the others are 0 and ignored
//	2       16     mesh ID
//	18      16     node ID
//	34      32     capability digest
//	66      ...    six strings, each a length byte and that many bytes:
//	               incarnation, HTTP address, role, zone, name, mesh name
//	...     ...    a seventh, unless it is empty and the level is 0: version of the program
//	...     1      unless it is 0: feature level
//
// A reader ignores bytes that follow, and a seventh string that is not whole, so
// that fields can be added under the same version. A reader refuses another
// version; the node is then not seen.
func (m Meta) MarshalBinary() ([]byte, error) {
	b := make([]byte, 2, MaxMeta)
	b[0] = metaVersion
	if m.Leaving {
		b[1] |= metaLeaving
	}
	for _, id := range []string{string(m.Mesh), string(m.Node)} {
		raw, err := hex.DecodeString(id)
		if err != nil || len(raw) != 16 {
			return nil, fmt.Errorf("%w: %q is not an ID", ErrMeta, id)
		}
		b = append(b, raw...)
	}
	b = append(b, m.Capabilities[:]...)
	all := m.strings()
	told := all[:]
	if m.Program == "" && m.Level == 0 {
		told = told[:len(told)-1] // as nodes write it that have none to tell
	}
	for _, s := range told {
		if len(*s.value) > 255 {
			return nil, fmt.Errorf("%w: %s has %d bytes, at most 255", ErrMetaTooLarge, s.name, len(*s.value))
		}
		b = append(append(b, byte(len(*s.value))), *s.value...)
	}
	if m.Level > 0 {
		b = append(b, m.Level)
	}
	if len(b) > MaxMeta {
		return nil, fmt.Errorf("%w: %d bytes, at most %d: shorten the node's name, zone or addresses", ErrMetaTooLarge,
			len(b), MaxMeta)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote; its error is an ErrMeta.
func (m *Meta) UnmarshalBinary(b []byte) error {
	if len(b) < metaFixed {
		return fmt.Errorf("%w: %d bytes", ErrMeta, len(b))
	}
	if len(b) > MaxMeta {
		return fmt.Errorf("%w: %d bytes", ErrMeta, len(b))
	}
	if b[0] != metaVersion {
		return fmt.Errorf("%w: version %d", ErrMeta, b[0])
	}
	got := Meta{
		Leaving: b[1]&metaLeaving != 0,
		Mesh:    identity.MeshID(hex.EncodeToString(b[2:18])),
		Node:    identity.NodeID(hex.EncodeToString(b[18:34])),
	}
	copy(got.Capabilities[:], b[34:metaFixed])
	rest := b[metaFixed:]
	for i, s := range got.strings() {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			if i == metaStrings {
				break
			}
			return fmt.Errorf("%w: ends within the %s", ErrMeta, s.name)
		}
		*s.value, rest = string(rest[1:1+rest[0]]), rest[1+int(rest[0]):]
		if i == metaStrings && len(rest) > 0 {
			got.Level = rest[0]
		}
	}
	*m = got
	return nil
}

type metaString struct {
	name  string
	value *string
}

// strings are the fields of variable length in the order of the format.
func (m *Meta) strings() [metaStrings + 1]metaString {
	return [metaStrings + 1]metaString{
		{"incarnation", &m.Incarnation}, {"HTTP address", &m.HTTP}, {"role", &m.Role},
		{"zone", &m.Zone}, {"name", &m.Name}, {"mesh name", &m.MeshName}, {"program's version", &m.Program},
	}
}
