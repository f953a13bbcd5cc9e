package governance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A ResourceKind says what a vertex of the resource tree is.
type ResourceKind string

// The kinds of resources.
const (
	Namespace   ResourceKind = "namespace"
	Service     ResourceKind = "service"
	AgentVertex ResourceKind = "agent"
	Device      ResourceKind = "device" // a node of the mesh
	Topic       ResourceKind = "topic"
	Container   ResourceKind = "container"
	App         ResourceKind = "app"
	Tool        ResourceKind = "tool"
	Environment ResourceKind = "environment"
	Custom      ResourceKind = "custom" // what it is, its metadata says
)

// ResourceKinds lists all kinds.
var ResourceKinds = []ResourceKind{Namespace, Service, AgentVertex, Device, Topic, Container, App, Tool,
	Environment, Custom}

// Namespaces are the vertices that every tree has.
var Namespaces = []string{"/", "/apps", "/companies", "/environments", "/kernel", "/kernel/agents", "/kernel/processes",
	"/kernel/services",
	"/kernel/tools", "/network", "/network/hosts", "/network/models", "/network/peers"}

// A Fact is one member of a vertex's content.
type Fact struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A Vertex is one resource: where it stands, what it is, and its content.
type Vertex struct {
	Path  string
	Kind  ResourceKind
	Facts []Fact // sorted by key
	Score Score  // not part of the root: it follows from runs, which the chain has
}

// A Tree is all resources, by path. It is a value: nobody changes it.
type Tree struct {
	list   []Vertex
	hashes [][32]byte // of the vertex and everything below it
}

const (
	// MaxVertices bounds a tree: its root is calculated within one command.
	MaxVertices = 10_000
	// MaxTreeDepth bounds the parts of a path, maxTreePath its bytes.
	MaxTreeDepth = 16
	maxTreePath  = 1024
)

// CheckPath refuses what is not the path of a resource: absolute, clean, and of bounded length.
func CheckPath(p string) error {
	switch {
	case p == "" || p[0] != '/' || path.Clean(p) != p || strings.ContainsRune(p, 0):
		return fmt.Errorf("path: %q: want a path such as /companies, from / on and without a / at its end", p)
	case len(p) > maxTreePath || strings.Count(p, "/") > MaxTreeDepth:
		return fmt.Errorf("path: at most %d bytes and %d parts", maxTreePath, MaxTreeDepth)
	}
	return nil
}

// Plant makes a tree of vertices in any order. Every vertex but "/" needs its parent.
func Plant(list []Vertex) (Tree, error) {
	if len(list) > MaxVertices {
		return Tree{}, fmt.Errorf("the resource tree has %d vertices, at most %d", len(list), MaxVertices)
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Vertex) int { return comparePaths(a.Path, b.Path) })
	t := Tree{list: list, hashes: make([][32]byte, len(list))}
	for i, v := range list {
		if err := CheckPath(v.Path); err != nil {
			return Tree{}, err
		}
		if i > 0 && list[i-1].Path == v.Path {
			return Tree{}, fmt.Errorf("path: %s stands twice in the resource tree", v.Path)
		}
		if _, ok := t.find(path.Dir(v.Path)); !ok || i == 0 && v.Path != "/" {
			return Tree{}, fmt.Errorf("path: %s has no parent in the resource tree", v.Path)
		}
	}
	for i := len(list) - 1; i >= 0; i-- { // what is below a vertex follows it
		t.hashes[i] = t.hash(i)
	}
	return t, nil
}

// comparePaths orders paths so that everything below a vertex follows it directly.
func comparePaths(a, b string) int {
	return bytes.Compare([]byte(strings.ReplaceAll(strings.TrimSuffix(a, "/"), "/", "\x00")),
		[]byte(strings.ReplaceAll(strings.TrimSuffix(b, "/"), "/", "\x00")))
}

func (t Tree) find(p string) (int, bool) {
	return slices.BinarySearchFunc(t.list, p, func(v Vertex, p string) int { return comparePaths(v.Path, p) })
}

// end returns the index after everything below vertex i.
func (t Tree) end(i int) int {
	for j := i + 1; j < len(t.list); j++ {
		if !Below(t.list[j].Path, t.list[i].Path) {
			return j
		}
	}
	return len(t.list)
}

// Below reports whether a path is another one, or lies below it.
func Below(p, of string) bool {
	return of == "/" || p == of || strings.HasPrefix(p, of+"/")
}

// treeDomain separates these hashes from others.
const treeDomain = "selvage/tree/v1"

// hash is SHA-256 over, each with its length as 4 bytes (big-endian): "selvage/tree/v1", path, kind; the number of
// facts, and key and value of each; the number of children, and the hash of each, in the order of their paths. A reader
// that does not know a kind or a fact hashes it all the same.
func (t Tree) hash(i int) [32]byte {
	v, b := t.list[i], []byte(nil)
	part := func(s string) { b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	part(treeDomain)
	part(v.Path)
	part(string(v.Kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(v.Facts)))
	for _, f := range v.Facts {
		part(f.Key)
		part(f.Value)
	}
	var children [][32]byte
	for j, end := i+1, t.end(i); j < end; j = t.end(j) {
		children = append(children, t.hashes[j])
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(children)))
	for _, h := range children {
		part(string(h[:]))
	}
	return sha256.Sum256(b)
}

// Root returns the hash over all of the tree.
func (t Tree) Root() [32]byte {
	if len(t.list) == 0 {
		return [32]byte{}
	}
	return t.hashes[0]
}

// Len returns the number of vertices.
func (t Tree) Len() int { return len(t.list) }

// A Branching is a vertex with its hash, and how many children it has.
type Branching struct {
	Vertex
	Hash     [32]byte
	Children int
}

// At returns the vertex at a path and what lies below it, at most depth levels; nothing when there is none.
func (t Tree) At(p string, depth int) (out []Branching) {
	i, ok := t.find(p)
	if !ok {
		return nil
	}
	levels := func(q string) int { return strings.Count(strings.TrimSuffix(q, "/"), "/") }
	for j := i; j < t.end(i); j++ {
		if levels(t.list[j].Path)-levels(p) > depth {
			continue
		}
		n := 0
		for k, end := j+1, t.end(j); k < end; k = t.end(k) {
			n++
		}
		out = append(out, Branching{t.list[j], t.hashes[j], n})
	}
	return out
}

// A Score says how a resource has done, in six dimensions from 0 to 1.
type Score struct {
	Trust       Level // it did what it was allowed to
	Performance Level // how good its results were
	Difficulty  Level // how hard its tasks were
	Reward      Level // how much came of it
	Reliability Level // it ended as it should
	Velocity    Level // how fast it was
}

// Fresh is the score of who has done nothing yet.
var Fresh = Score{Most / 2, Most / 2, Most / 2, Most / 2, Most / 2, Most / 2}

// Blend returns the score after one more outcome, which counts alpha thousandths; the past counts the rest.
func (s Score) Blend(outcome Score, alpha int64) Score {
	mix := func(was, now Level) Level { return (was*Level(1000-alpha) + now*Level(alpha) + 500) / 1000 }
	return Score{mix(s.Trust, outcome.Trust), mix(s.Performance, outcome.Performance),
		mix(s.Difficulty, outcome.Difficulty),
		mix(s.Reward, outcome.Reward), mix(s.Reliability, outcome.Reliability), mix(s.Velocity, outcome.Velocity)}
}

// A TreeRole is what a grant gives on a path and everything below it: each role has what the ones before it have.
type TreeRole string

// The roles.
const (
	TreeViewer   TreeRole = "viewer"   // read
	TreeOperator TreeRole = "operator" // use
	TreeAdmin    TreeRole = "admin"    // change, and decide who may
	TreeOwner    TreeRole = "owner"    // all of it
)

// TreeRoles lists the roles, the weakest first. TreeActions are what each one adds.
var (
	TreeRoles   = []TreeRole{TreeViewer, TreeOperator, TreeAdmin, TreeOwner}
	TreeActions = []string{"read", "use", "change", "own"}
)

// A Grant says what somebody may do on a path and below it. Deny takes away everything.
type Grant struct {
	Path     string   `cbor:"1,keyasint"`
	Subject  string   `cbor:"2,keyasint"` // agent:ID, user:ID, company:ID for everybody of a company, or * for all
	Role     TreeRole `cbor:"3,keyasint,omitempty"`
	Deny     bool     `cbor:"4,keyasint,omitempty"`
	Delegate bool     `cbor:"5,keyasint,omitempty"` // who has it may grant as much to others, on the path or below it
	Until    int64    `cbor:"6,keyasint,omitempty"` // ms since 1970 at which it ends; 0: never
	// Implied: nobody made it, it follows from who the subject is.
	Implied bool `cbor:"7,keyasint,omitempty"`
}

// Access is a decision about an action on a path.
type Access struct {
	Allowed bool
	By      *Grant // that decided; nil: none did, and so it is denied
}

// Permits says whether somebody, who has the names of subjects, may do an action on a path. The nearest grant at the
// path or above it decides. Of several on the same path it is a denial by name, else the strongest; a denial for * is a
// default there, from which those are free whom another grant on the path names. Without a grant nobody may do
// anything.
func Permits(grants []Grant, subjects []string, p, action string, now int64) Access {
	need := slices.Index(TreeActions, action)
	if need < 0 || CheckPath(p) != nil {
		return Access{}
	}
	for at := p; ; at = path.Dir(at) {
		if by := deciding(grants, subjects, at, now); by != nil {
			return Access{!by.Deny && slices.Index(TreeRoles, by.Role) >= need, by}
		}
		if at == "/" {
			return Access{}
		}
	}
}

// deciding returns the grant that decides among those of one path.
func deciding(grants []Grant, subjects []string, at string, now int64) (by *Grant) {
	var closed *Grant
	named := false
	for i := range grants {
		g := &grants[i]
		if g.Path != at || g.Until != 0 && g.Until <= now || !slices.Contains(subjects, g.Subject) {
			continue
		}
		switch {
		case g.Deny && g.Subject != "*":
			return g
		case g.Deny:
			closed = g
			continue
		case g.Subject != "*" && !g.Implied:
			named = true
		}
		if by == nil || slices.Index(TreeRoles, g.Role) > slices.Index(TreeRoles, by.Role) {
			by = g
		}
	}
	if closed != nil && !named {
		return closed
	}
	return by
}

// Needed returns what who acts has to have on the path that an action of a class is about.
func Needed(c Class) string {
	switch c {
	case Read:
		return "read"
	case Remove, Install, Deploy, Release, Elevate, Admit, Configure, Decommission:
		return "change"
	}
	return "use"
}

// MayGrant says whether who has the names of subjects may make a grant. Admins and owners of the path may grant
// what they have themselves; others need a grant that may be delegated, which the new one can not exceed in role,
// place or time.
func MayGrant(grants []Grant, subjects []string, g Grant, now int64) bool {
	by := Permits(grants, subjects, g.Path, "read", now).By
	if by == nil || by.Deny {
		return false
	}
	rank := func(r TreeRole) int { return slices.Index(TreeRoles, r) }
	if rank(g.Role) > rank(by.Role) || by.Until != 0 && (g.Until == 0 || g.Until > by.Until) {
		return false
	}
	return rank(by.Role) >= rank(TreeAdmin) || by.Delegate && !g.Deny
}
