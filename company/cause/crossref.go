package cause

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Structure is what a node stands in. The numbers are part of universal IDs: do not change.
type Structure byte

// The structures.
const (
	Chain     Structure = 1 // entries
	Resources Structure = 2 // agents, projects, goals, routines, people and nodes
	Events    Structure = 3 // the causal graph: issues, runs and what happened in them
	Vectors   Structure = 4 // memories
)

// String is how a structure is named in answers.
func (s Structure) String() string {
	switch s {
	case Chain:
		return "chain"
	case Resources:
		return "resource_tree"
	case Vectors:
		return "index"
	}
	return "causal_graph"
}

// Structure returns where nodes of a type stand.
func (t Type) Structure() Structure {
	switch t {
	case Entry:
		return Chain
	case Agent, Project, Goal, Routine, User, Node, System:
		return Resources
	case Memory:
		return Vectors
	}
	return Events
}

// A UniversalID names a node among all structures of all companies. It is the BLAKE3 hash
// of
//
//	the structure (1), the hash of the company's ID (32),
//	when the node was made: 48 bits of milliseconds, 16 bits of its height (8, little-endian),
//	the hash of "type:id" (32), and of what it is a part: nothing (32 zeros)
type UniversalID [32]byte

// String is the ID in hexadecimal digits.
func (u UniversalID) String() string { return hex.EncodeToString(u[:]) }

// Universal returns the universal ID of a node of a company.
func (p Point) Universal(company ledger.CompanyID) UniversalID {
	of, content := sum([]byte(company)), sum([]byte(p.Ref.String()))
	b := append([]byte{byte(p.Type.Structure())}, of[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.At)<<16|p.Height&0xffff)
	b = append(b, content[:]...)
	return sum(append(b, make([]byte, 32)...))
}

// A CrossRef is an edge between two structures. Like all edges it is read from commands,
// and not stored.
type CrossRef struct {
	From, To Point
	Kind     CrossKind
	At       core.Time
	Height   uint64 // of the entry that says so, 0: unknown
}

// A CrossKind is a type of cross reference. The numbers are those of the specification.
type CrossKind byte

// The types of cross references.
const (
	CrossTriggered  CrossKind = 0x01
	CrossEvidence   CrossKind = 0x02
	CrossElaborates CrossKind = 0x03
	CrossEncoded    CrossKind = 0x09 // what a memory was made of
	crossCustom     CrossKind = 0x80 // and the place of the kind among Kinds
)

// String is how a type is named in answers: the other kinds of edges keep their names.
func (k CrossKind) String() string {
	switch k {
	case CrossTriggered:
		return "triggered_by"
	case CrossEvidence:
		return "evidence_for"
	case CrossElaborates:
		return "elaborates"
	case CrossEncoded:
		return "memory_encoded"
	}
	return string(Kinds[int(k-crossCustom)%len(Kinds)])
}

func crossKind(e Edge) CrossKind {
	switch {
	case e.To.Type == Memory && e.Kind == EvidenceFor:
		return CrossEncoded
	case e.Kind == TriggeredBy:
		return CrossTriggered
	case e.Kind == EvidenceFor:
		return CrossEvidence
	case e.Kind == Follows:
		return CrossElaborates
	}
	for n, k := range Kinds {
		if k == e.Kind {
			return crossCustom + CrossKind(n)
		}
	}
	return crossCustom
}

// CrossRefs returns the cross references among the nodes that a walk found.
func (f Found) CrossRefs() (out []CrossRef) {
	at := map[Ref]Point{}
	for _, p := range f.Points {
		at[p.Ref] = p.Point
	}
	for _, e := range f.Edges {
		from, ok := at[e.From]
		to, there := at[e.To]
		if ok && there && e.From.Type.Structure() != e.To.Type.Structure() {
			out = append(out, CrossRef{from, to, crossKind(e), e.At, e.Height})
		}
	}
	return out
}
