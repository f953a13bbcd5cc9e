package govern

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Constitution is one version of the constitution. Its rules are the genesis rules, superseded and extended by the
// rows of [rules] that belong to the version.
type Constitution struct {
	Version   uint64       `cbor:"1,keyasint"`           // 1: the genesis
	Hash      string       `cbor:"2,keyasint"`           // of its rules, see [governance.Gate.Version]
	Height    uint64       `cbor:"3,keyasint,omitempty"` // in force from that entry on
	At        core.Time    `cbor:"4,keyasint,omitempty"`
	Amendment string       `cbor:"5,keyasint,omitempty"` // that made it
	Keys      []SigningKey `cbor:"6,keyasint,omitempty"` // of the board
	Threshold int          `cbor:"7,keyasint,omitempty"` // of the keys have to sign; 0: more than half
	Pack      string       `cbor:"8,keyasint,omitempty"` // that was applied last
	Places    bool         `cbor:"9,keyasint,omitempty"` // a company or project has an environment of its own
	Mesh      Place        `cbor:"10,keyasint"`          // what holds where no company or project says otherwise
	// Filters: a company has chosen the second backend. Else no act looks for it.
	Filters bool `cbor:"20,keyasint,omitempty"`
	// Elevations: an agent has been elevated. Else no act looks for it.
	Elevations bool `cbor:"21,keyasint,omitempty"`
	// Policies: somebody has made a grant in the resource tree. Else no act looks for one.
	Policies bool `cbor:"22,keyasint,omitempty"`
	// PolicyOf has a bit for each company with a grant, see policyBit; 0 where it is not known.
	PolicyOf uint64 `cbor:"23,keyasint,omitempty"`
}

// beside reports whether something may be asked beside the rules.
func (s Constitution) beside() bool { return s.Filters }

// Clone returns a copy that shares no memory with s, for the ledger's cache of decoded rows.
func (s Constitution) Clone() Constitution {
	s.Keys = slices.Clone(s.Keys)
	return s
}

// A rule row is a rule that an amendment put, for the versions that have it.
type ruleRow struct {
	Rule  governance.Rule `cbor:"1,keyasint"`
	From  uint64          `cbor:"2,keyasint"`
	Until uint64          `cbor:"3,keyasint,omitempty"` // the first version without it; 0: none yet
}

// Clone returns a copy that shares no memory with r.
func (r ruleRow) Clone() ruleRow {
	r.Rule.On = slices.Clone(r.Rule.On)
	return r
}

// Rows of the mesh:
//
//	constitution/now            the version in force
//	constitution/<version>      each version, as it came into force
//	constitution-rule/<version>.<ID>  added rules, by the version that has them first
var (
	constitutions = ledger.NewMeshTable[string, Constitution]("constitution")
	rules         = ledger.NewMeshTable[string, ruleRow]("constitution-rule")
)

const now = "now"

// genesis is the constitution that every mesh begins with. Compiling it can not fail: a test does it.
var genesis = sync.OnceValues(func() (Constitution, error) {
	g, err := new(governance.Compiler).Compile(governance.Genesis())
	if err != nil {
		return Constitution{}, err
	}
	return Constitution{Version: 1, Hash: g.Version()}, nil
})

// InForce returns the constitution in force.
func InForce(tx *ledger.Tx) (Constitution, error) {
	if s := constitutions.Look(tx, now); s != nil {
		return *s, nil
	}
	return genesis()
}

// VersionOf returns one version of the constitution, 0 for the one in force.
func VersionOf(tx *ledger.Tx, version uint64) (Constitution, error) {
	s, err := InForce(tx)
	if err != nil || version == 0 || version == s.Version {
		return s, err
	}
	if s, ok := constitutions.Get(tx, ledger.Order(version)); ok {
		return s, nil
	}
	if version == 1 {
		return genesis()
	}
	return s, ledger.Refuse(ledger.NotFound, nil, "version: there is no version %d of the constitution, the newest is %d",
		version, s.Version)
}

// RulesOf returns the rules of a version: the genesis rules in their order, then the added ones.
func RulesOf(tx *ledger.Tx, version uint64) []governance.Rule {
	out := governance.Genesis()
	if version <= 1 {
		return out
	}
	for key, r := range rules.All(tx) {
		if r.From > version || r.Until != 0 && r.Until <= version {
			continue
		}
		id := key[strings.IndexByte(key, '.')+1:]
		if i := slices.IndexFunc(out, func(o governance.Rule) bool { return o.ID == id }); i >= 0 {
			out[i] = r.Rule
		} else {
			out = append(out, r.Rule)
		}
	}
	return out
}

// A Gate is a compiled constitution, and what of it concerns each kind of command.
type Gate struct {
	*governance.Gate
	past  bool // a rule reads what was done before
	mu    sync.Mutex
	kinds map[string]*kindGate // guarded by mu
}

// A kindGate has the rules that can speak about a kind of command.
type kindGate struct {
	gate *governance.Gate
	// high: the kind can be of high risk, so that also a permit is stored.
	high, rank bool
	past       bool // a rule reads what was done before: acts of the kind are counted
}

// gates keeps the gates of the newest constitutions, by hash. They are a function of the hash.
var gates = struct {
	sync.Mutex
	governance.Compiler
	byHash map[string]*Gate
}{byHash: map[string]*Gate{}}

// GateOf returns the gate of a constitution.
func GateOf(tx *ledger.Tx, s Constitution) (*Gate, error) {
	gates.Lock()
	g := gates.byHash[s.Hash]
	gates.Unlock()
	if g != nil {
		return g, nil
	}
	compiled, err := gates.Compile(RulesOf(tx, s.Version))
	if err != nil {
		return nil, fmt.Errorf("constitution %d: %w", s.Version, err)
	}
	if compiled.Version() != s.Hash {
		return nil, fmt.Errorf("constitution %d: its rules have the hash %s, want %s", s.Version, compiled.Version(), s.Hash)
	}
	g = NewGate(compiled)
	gates.Lock()
	defer gates.Unlock()
	if len(gates.byHash) >= maxGates {
		clear(gates.byHash)
	}
	gates.byHash[s.Hash] = g
	return g, nil
}

// always differ between commands of one kind. A kind whose payload says more differs also in its effect and context.
var always = []string{"company", "agent", "role", "rank", "env.class", "env.threshold", "context.issue",
	"context.reason", "clearances", "approvers"}

// of returns what of the gate concerns a kind of command.
func (g *Gate) of(k company.Kind) *kindGate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if found := g.kinds[k.Name]; found != nil {
		return found
	}
	act := actOfKind(k)
	_, effect, _ := governance.Weigh(act)
	narrow := g.Narrowed(act, func(variable string) bool {
		return slices.Contains(always, variable) || governance.Windowed(variable) || k.Weight.Facts != nil &&
			!strings.HasPrefix(variable, "action.")
	})
	out := &kindGate{gate: narrow, rank: narrow.Reads("rank"), past: narrow.ReadsPast(), high: k.Weight.Facts != nil ||
		effect[governance.Risk] >= HighRisk}
	g.kinds[k.Name] = out
	return out
}

// RulesFor returns the rules that can speak about commands of a kind; none where the gate does not weigh them.
func (g *Gate) RulesFor(k company.Kind) []governance.Rule {
	if k.Weight.Free != "" {
		return nil
	}
	return g.of(k).gate.Rules()
}

// NewGate returns a gate of rules that are in no state, to look at what they would do.
func NewGate(g *governance.Gate) *Gate {
	return &Gate{Gate: g, past: g.ReadsPast(), kinds: map[string]*kindGate{}}
}
