package cause

import (
	"strings"
	"unicode"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Type is a type of node. The words are part of the API: do not rename.
type Type string

// The types of nodes.
const (
	Issue       Type = "issue"
	Run         Type = "run"
	Comment     Type = "comment"
	Wakeup      Type = "wakeup"
	Cost        Type = "cost"
	Incident    Type = "incident" // a budget's threshold was crossed
	Approval    Type = "approval"
	Interaction Type = "interaction"
	Decision    Type = "decision" // of a review stage: <issue>.<height>
	Memory      Type = "memory"
	Agent       Type = "agent"
	Project     Type = "project"
	Goal        Type = "goal"
	Routine     Type = "routine"
	User        Type = "user"
	Node        Type = "node" // of the mesh
	System      Type = "system"
	Entry       Type = "entry" // one applied command, by its height
)

// Types lists all types, in the order in which a bare ID is looked up.
var Types = []Type{Issue, Run, Comment, Memory, Agent, Cost, Approval, Incident, Interaction, Wakeup, Routine, Project,
	Goal, Decision, Entry, User, Node, System}

// Valid reports whether t is a type.
func (t Type) Valid() bool {
	for _, known := range Types {
		if t == known {
			return true
		}
	}
	return false
}

// A Kind is a type of edge. An edge leads from the cause to the effect. The words are part
// of the API: do not rename.
type Kind string

// The kinds of edges.
const (
	Causes      Kind = "causes"       // the effect was made by the cause, or under it
	Inhibits    Kind = "inhibits"     // the cause stops the effect
	Correlates  Kind = "correlates"   // both are alike; neither made the other
	Enables     Kind = "enables"      // the effect was possible because of the cause
	Follows     Kind = "follows"      // the effect came next
	Contradicts Kind = "contradicts"  // the cause says no to the effect
	TriggeredBy Kind = "triggered_by" // the cause started the effect
	EvidenceFor Kind = "evidence_for" // the effect rests on the cause
)

// Kinds lists all kinds.
var Kinds = []Kind{Causes, Inhibits, Correlates, Enables, Follows, Contradicts, TriggeredBy, EvidenceFor}

// A Ref names a node within a company.
type Ref struct {
	Type Type   `json:"type"`
	ID   string `json:"id"`
}

// String returns "type:id".
func (r Ref) String() string { return string(r.Type) + ":" + r.ID }

// ParseRef reads "type:id"; ok is false for anything else.
func ParseRef(s string) (Ref, bool) {
	t, id, ok := strings.Cut(s, ":")
	r := Ref{Type(strings.ToLower(t)), id}
	return r, ok && r.Type.Valid() && plain(id)
}

// plain reports whether s may be an ID: it goes into keys.
func plain(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '.', c == ':', c == '@', c == '+':
		default:
			return false
		}
	}
	return true
}

// A Point is a node of the graph. Label and Status are what a person calls it; a label may
// be text that somebody wrote, cut short.
type Point struct {
	Ref
	Label  string
	Status string
	At     core.Time // 0: unknown
	Height uint64    // of the entry that made it, 0: unknown
	Reader string    // the one agent that may read it, "": everybody in the company
}

// Named returns p with a label, which is cut to one short line.
func (p Point) Named(parts ...string) Point {
	line := strings.Join(strings.Fields(strings.Map(printable, strings.ToValidUTF8(strings.Join(parts, " "), "�"))), " ")
	if p.Label = core.Snippet(line, maxLabel); p.Label != line {
		p.Label += "…"
	}
	return p
}

// printable drops control characters, which a terminal would obey.
func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case unicode.IsControl(r):
		return -1
	}
	return r
}

// An Edge leads from a cause to its effect.
type Edge struct {
	From, To Ref
	Kind     Kind
	Why      string    // what happened, in a few words: "woke by a comment"
	Height   uint64    // of the entry that says so, 0: unknown
	At       core.Time // 0: unknown
	Weight   int64     // thousandths; 1000 is a fact, less is a likeness that was measured
}

// A Look returns a node of a company; ok is false when there is none.
type Look func(tx *ledger.Tx, company ledger.CompanyID, id string) (p Point, ok bool)

// A Step adds the edges of a node in one direction to a bag.
type Step func(b *Bag, p Point)

// A Part is what one room knows of the graph. One room alone looks a type up; several may
// add edges to it.
type Part struct {
	Nodes           map[Type]Look
	Causes, Effects map[Type]Step
}

// A Graph is all parts, in the order in which their edges are told.
type Graph []Part

// A Bag gathers the edges of one node in one direction.
type Bag struct {
	Tx      *ledger.Tx
	Company ledger.CompanyID
	of      Ref
	back    bool // towards causes
	most    int
	reads   int
	edges   []Edge
	more    bool
}

// Add adds an edge between the node and other, unless other is nothing. It returns whether
// there is room for more.
func (b *Bag) Add(e Edge, other Ref) bool {
	if other.ID == "" || other == b.of {
		return true
	}
	if len(b.edges) >= b.most {
		b.more = true
		return false
	}
	e.From, e.To = b.of, other
	if b.back {
		e.From, e.To = other, b.of
	}
	if e.Weight == 0 {
		e.Weight = 1000
	}
	for _, old := range b.edges {
		if old.From == e.From && old.To == e.To && old.Kind == e.Kind {
			return true // the same said twice
		}
	}
	b.edges = append(b.edges, e)
	return true
}

// Read counts a row that is read to look for edges. It returns whether one more may be.
func (b *Bag) Read() bool {
	if b.reads++; b.reads > maxReads {
		b.more = true
		return false
	}
	return true
}

// Look returns the node that a reference names.
func (g Graph) Look(tx *ledger.Tx, company ledger.CompanyID, r Ref) (Point, bool) {
	if company == "" || !plain(r.ID) {
		return Point{}, false
	}
	for _, part := range g {
		if look := part.Nodes[r.Type]; look != nil {
			p, ok := look(tx, company, r.ID)
			p.Ref = r
			return p, ok
		}
	}
	return Point{}, false
}

// Find returns the node of a company that a name means to a reader, the board when reader
// is "": "type:id", an ID alone, an identifier such as ACM-7, or #12 for the entry at a
// height.
func (g Graph) Find(tx *ledger.Tx, company ledger.CompanyID, reader, name string) (Point, bool) {
	refs := make([]Ref, 0, len(Types))
	if r, ok := ParseRef(name); ok {
		refs = append(refs, r)
	} else if height, ok := strings.CutPrefix(name, "#"); ok {
		refs = append(refs, Ref{Entry, height})
	} else {
		for _, t := range Types {
			if t != Entry && t != User && t != Node && t != System {
				refs = append(refs, Ref{t, name})
			}
		}
	}
	for _, r := range refs {
		if r.Type == Issue {
			r.ID = issueID(tx, company, r.ID)
		}
		if r.Type == Entry {
			r.ID = strings.TrimLeft(r.ID, "0")
		}
		if p, ok := g.Look(tx, company, r); ok && p.readable(reader) {
			return p, true
		}
	}
	return Point{}, false
}

func (p Point) readable(reader string) bool {
	return p.Reader == "" || reader == "" || p.Reader == reader
}

// edges returns the edges of a node in one direction, and whether there are more.
func (g Graph) edges(tx *ledger.Tx, company ledger.CompanyID, p Point, back bool, most int) ([]Edge, bool) {
	b := Bag{Tx: tx, Company: company, of: p.Ref, back: back, most: most}
	for _, part := range g {
		steps := part.Effects
		if back {
			steps = part.Causes
		}
		if step := steps[p.Type]; step != nil && !b.more {
			step(&b, p)
		}
	}
	return b.edges, b.more
}
