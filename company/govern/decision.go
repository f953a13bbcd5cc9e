package govern

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Decision is one decision of the gate that is kept: a denial, a deferral, a warning, or a permit of high risk. It
// has everything that led to it, so that every node can decide again.
type Decision struct {
	ID      string           `cbor:"1,keyasint"`
	Company ledger.CompanyID `cbor:"2,keyasint,omitempty"`
	Height  uint64           `cbor:"3,keyasint"`
	At      core.Time        `cbor:"4,keyasint"`
	Act     governance.Act   `cbor:"5,keyasint"`
	Kind    string           `cbor:"6,keyasint,omitempty"` // of the command; "": an act at a node
	Version uint64           `cbor:"7,keyasint"`           // of the constitution that decided
	Said    Said             `cbor:"8,keyasint"`
	Run     string           `cbor:"9,keyasint,omitempty"`
	Node    string           `cbor:"10,keyasint,omitempty"` // where a local act was weighed
	// Count is the number of identical denials that it stands for, LastAt the time of the last one.
	Count    uint64    `cbor:"11,keyasint"`
	LastAt   core.Time `cbor:"12,keyasint"`
	Approval string    `cbor:"13,keyasint,omitempty"` // that the command waits for, or was approved by
	Answer   string    `cbor:"14,keyasint,omitempty"` // of the person: approved, rejected, lapsed
	Actor    string    `cbor:"15,keyasint,omitempty"` // "agent" or "user"
	// Beside is what was asked beside the rules, nil for nothing.
	Beside *Beside `cbor:"20,keyasint,omitempty"`
}

// Said is what a gate says to an act. Replaying a decision gives the same bytes.
type Said struct {
	Verdict   governance.Verdict `cbor:"1,keyasint"`
	Reason    string             `cbor:"2,keyasint,omitempty"`
	Effect    governance.Effect  `cbor:"3,keyasint"`
	Threshold governance.Level   `cbor:"4,keyasint"`
	Asked     []string           `cbor:"5,keyasint,omitempty"` // IDs of the rules that were asked
	Opinions  []Opinion          `cbor:"6,keyasint,omitempty"`
	Voices    []Voice            `cbor:"7,keyasint,omitempty"`
}

// An Opinion is what one branch says.
type Opinion struct {
	Branch  governance.Branch  `cbor:"1,keyasint"`
	Verdict governance.Verdict `cbor:"2,keyasint"`
	Rules   int                `cbor:"3,keyasint"` // that were asked
}

// A Voice is a rule that speaks.
type Voice struct {
	Rule     string              `cbor:"1,keyasint"`
	Title    string              `cbor:"2,keyasint,omitempty"`
	Branch   governance.Branch   `cbor:"3,keyasint"`
	Severity governance.Severity `cbor:"4,keyasint"`
	Verdict  governance.Verdict  `cbor:"5,keyasint"`
	Reason   string              `cbor:"6,keyasint,omitempty"`
	Failed   bool                `cbor:"7,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with d.
func (d Decision) Clone() Decision {
	d.Act.Context.Clearances, d.Act.Context.Approvers = slices.Clone(d.Act.Context.Clearances),
		slices.Clone(d.Act.Context.Approvers)
	d.Beside = d.Beside.clone()
	d.Act.Row, d.Act.Context.Past = core.CloneOf(d.Act.Row), core.CloneOf(d.Act.Context.Past)
	d.Said.Asked, d.Said.Opinions, d.Said.Voices = slices.Clone(d.Said.Asked), slices.Clone(d.Said.Opinions),
		slices.Clone(d.Said.Voices)
	return d
}

// A kept row counts the decisions that are kept of a company.
type kept struct {
	Count uint64 `cbor:"1,keyasint"`
}

// A denial row says which decision an identical denial is counted in.
type denial struct {
	Key   string    `cbor:"1,keyasint"` // of the decision
	Run   string    `cbor:"2,keyasint,omitempty"`
	Rule  string    `cbor:"3,keyasint,omitempty"`
	First core.Time `cbor:"4,keyasint"`
}

// Rows of a company, or of the mesh for what no company does:
//
//	decision/<height>.<number>  decisions, oldest first
//	decision-count/all          how many there are
//	decision-same/<hash>        the newest denial of an actor and action
var (
	decisions     = ledger.NewTable[string, Decision]("decision")
	counts        = ledger.NewTable[string, kept]("decision-count")
	denials       = ledger.NewTable[string, denial]("decision-same")
	meshDecisions = ledger.NewMeshTable[string, Decision]("decision")
	meshCounts    = ledger.NewMeshTable[string, kept]("decision-count")
	meshDenials   = ledger.NewMeshTable[string, denial]("decision-same")
)

const all = "all"

// SaidBy returns what a gate says to an act.
func SaidBy(g *governance.Gate, act governance.Act) Said { return saidOf(g.Decide(act)) }

func saidOf(d governance.Decision) Said {
	s := Said{Verdict: d.Verdict, Reason: d.Reason, Effect: d.Effect, Threshold: d.Threshold, Asked: d.Evaluated()}
	n := 0
	for _, o := range d.Opinions {
		n += len(o.Spoken)
	}
	s.Opinions, s.Voices = make([]Opinion, 0, len(d.Opinions)), make([]Voice, 0, n)
	for _, o := range d.Opinions {
		s.Opinions = append(s.Opinions, Opinion{o.Branch, o.Verdict, len(o.Evaluated)})
		for _, v := range o.Spoken {
			s.Voices = append(s.Voices, Voice{v.Rule, v.Title, o.Branch, v.Severity, v.Verdict, v.Reason, v.Failed})
		}
	}
	return s
}

func decisionOf(c *ledger.Context, act governance.Act, said governance.Decision, s Constitution) Decision {
	at := core.TimeOf(c.Now)
	return Decision{ID: strconv.FormatUint(c.Height, 10), Company: act.Company, Height: c.Height, At: at, Act: act,
		Version: s.Version, Said: saidOf(said),
		Run: c.Cmd.Run, Count: 1, LastAt: at, Actor: c.Cmd.Actor.Type}
}

// key returns the key of a decision: in the order of heights.
func keyOf(id string) (string, bool) {
	height, number, _ := strings.Cut(id, "-")
	h, err := strconv.ParseUint(height, 10, 64)
	n, err2 := strconv.ParseUint(cmp.Or(number, "0"), 10, 16)
	if err != nil || err2 != nil {
		return "", false
	}
	return fmt.Sprintf("%s.%04x", ledger.Order(h), n), true
}

// strictest returns the voice whose reason is that of the decision.
func (d Decision) strictest() Voice {
	for _, v := range d.Said.Voices {
		if v.Verdict == d.Said.Verdict && v.Reason == d.Said.Reason {
			return v
		}
	}
	return Voice{}
}

// store stores a new decision. Where there are too many, the oldest goes.
func store(tx *ledger.Tx, d Decision) {
	key, _ := keyOf(d.ID)
	n := kept{}
	if d.Company == "" {
		n, _ = meshCounts.Get(tx, all)
	} else {
		n, _ = counts.Get(tx, d.Company, all)
	}
	if n.Count++; n.Count > MaxDecisions {
		for old := range keysOf(tx, d.Company, false) {
			tx.Delete(old)
			n.Count--
			break
		}
	}
	if d.Company == "" {
		meshCounts.Put(tx, all, n)
		meshDecisions.Put(tx, key, d)
		return
	}
	counts.Put(tx, d.Company, all, n)
	decisions.Put(tx, d.Company, key, d)
}

// update stores a decision that is there.
func update(tx *ledger.Tx, d Decision) {
	key, _ := keyOf(d.ID)
	if d.Company == "" {
		meshDecisions.Put(tx, key, d)
		return
	}
	decisions.Put(tx, d.Company, key, d)
}

// keysOf yields the keys of decisions of a company, or of the mesh.
func keysOf(tx *ledger.Tx, of ledger.CompanyID, newest bool) iter.Seq2[[]byte, []byte] {
	prefix := meshDecisions.Key("")
	if of != "" {
		prefix = decisions.Key(of, "")
	}
	return tx.Scan(prefix, ledger.PrefixEnd(prefix), newest)
}

// sameDenial counts a denial, or a decision of a node, in an identical one of the last minute, if there is one.
func sameDenial(c *ledger.Context, d Decision) (Decision, bool) {
	sum := sha256.Sum256([]byte(d.Actor + "\x00" + d.Act.Agent + "\x00" + d.Act.Action))
	id, key := hex.EncodeToString(sum[:16]), ""
	next := denial{Run: d.Run, Rule: d.Said.Verdict.String() + " " + d.strictest().Rule, First: d.At}
	if v := d.strictest(); v.Branch == governance.Accessing { // its reason says which path
		next.Rule += " " + v.Reason
	}
	next.Key, _ = keyOf(d.ID)
	var was denial
	if d.Company == "" {
		was, _ = meshDenials.Get(c.Tx, id)
	} else {
		was, _ = denials.Get(c.Tx, d.Company, id)
	}
	if was.Key != "" && was.Run == next.Run && was.Rule == next.Rule &&
		d.At < was.First+core.Time(SameWithin.Milliseconds()) {
		key = was.Key
	}
	if same, ok := byKey(c.Tx, d.Company, key); ok && same.Version == d.Version {
		same.Count += d.Count
		same.LastAt = d.At
		update(c.Tx, same)
		return same, true
	}
	if d.Company == "" {
		meshDenials.Put(c.Tx, id, next)
	} else {
		denials.Put(c.Tx, d.Company, id, next)
	}
	return d, false
}

func byKey(tx *ledger.Tx, of ledger.CompanyID, key string) (Decision, bool) {
	if key == "" {
		return Decision{}, false
	}
	if of == "" {
		return meshDecisions.Get(tx, key)
	}
	return decisions.Get(tx, of, key)
}

// DecisionOf returns a decision of a company, or of the mesh for "".
func DecisionOf(tx *ledger.Tx, of ledger.CompanyID, id string) (Decision, bool) {
	key, ok := keyOf(id)
	if !ok {
		return Decision{}, false
	}
	return byKey(tx, of, key)
}

// A Query selects decisions of one company, or of the mesh; what is empty selects all.
type Query struct {
	Verdicts []governance.Verdict
	Agent    string
	Action   string
	Rule     string
	Run      string
	Version  uint64
	Since    core.Time
	Limit    int // at most MaxReviewed
}

// Decisions yields decisions that q selects, newest first.
func Decisions(tx *ledger.Tx, of ledger.CompanyID, q Query) iter.Seq[Decision] {
	return func(yield func(Decision) bool) {
		n := 0
		for _, row := range keysOf(tx, of, true) {
			d := core.DecodeRow[Decision](row)
			if d.At < q.Since {
				return
			}
			if !q.selects(d) {
				continue
			}
			if n++; !yield(d) || n == q.Limit {
				return
			}
		}
	}
}

func (q Query) selects(d Decision) bool {
	return (len(q.Verdicts) == 0 || slices.Contains(q.Verdicts, d.Said.Verdict)) &&
		(q.Agent == "" || q.Agent == d.Act.Agent) &&
		(q.Action == "" || q.Action == d.Act.Action) && (q.Run == "" || q.Run == d.Run) &&
		(q.Version == 0 || q.Version == d.Version) &&
		(q.Rule == "" || slices.ContainsFunc(d.Said.Voices, func(v Voice) bool { return v.Rule == q.Rule }))
}

// Again decides what a decision was about under a gate.
func (d Decision) Again(g *Gate) Said {
	gate := g.Gate
	if k, ok := company.KindOf(d.Kind); ok && d.Kind != "" && k.Weight.Free == "" {
		gate = g.of(k).gate
	}
	return saidOf(d.Beside.Hear(gate.Decide(d.Act)))
}

// Equal reports whether two answers are the same, bit for bit: whether they are stored as the same bytes, where an
// empty list is as none. TestEqualAnswersAreTheSameBytes holds it to that.
func (s Said) Equal(o Said) bool {
	return s.Verdict == o.Verdict && s.Reason == o.Reason && s.Effect == o.Effect && s.Threshold == o.Threshold &&
		slices.Equal(s.Asked, o.Asked) && slices.Equal(s.Opinions, o.Opinions) && slices.Equal(s.Voices, o.Voices)
}
