package filters

import (
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/governance"
)

// The filters, by the names under which they speak.
const (
	Structure = "FILTER-STRUCTURE"
	Shift     = "FILTER-SHIFT"
	Evidence  = "FILTER-EVIDENCE"
)

// Names lists the filters in the order in which they are asked.
var Names = []string{Structure, Shift, Evidence}

// Limits are what a company sets for the filters.
type Limits struct {
	// MinCut is the authority that has to reach an agent. A manager who works gives 1, one who is paused or in error 0.4.
	MinCut governance.Level `cbor:"1,keyasint"`
	// MaxShift is how far behaviour may move before a person is asked.
	MaxShift governance.Level `cbor:"2,keyasint"`
	// Below Permit the evidence waits for a person, below Deny it denies. Both are powers of two: -4 stands for 1:16.
	Permit int64 `cbor:"3,keyasint"`
	Deny   int64 `cbor:"4,keyasint"`
	// Floor is the magnitude below which an act passes: so that an agent whose acts wait can still say why.
	Floor governance.Level `cbor:"5,keyasint"`
}

// Default returns the limits that hold unless a company says otherwise. docs/governance.md has the false alarms that
// they give.
func Default() Limits { return Limits{MinCut: 300, MaxShift: 750, Permit: -6, Deny: -12, Floor: 100} }

// Check refuses limits that can not be.
func (l Limits) Check() error {
	switch {
	case l.MinCut < 0 || l.MinCut > governance.Most:
		return fmt.Errorf("minCut: must be from 0 to 1")
	case l.MaxShift < 0 || l.MaxShift > governance.Most:
		return fmt.Errorf("maxShift: must be from 0 to 1")
	case l.Floor < 0 || l.Floor > governance.Most:
		return fmt.Errorf("floor: must be from 0 to 1")
	case l.Permit > 0 || l.Permit < minEvidence/Scale:
		return fmt.Errorf("permitEvidence: a power of two from %d to 0", minEvidence/Scale)
	case l.Deny > l.Permit || l.Deny < minEvidence/Scale:
		return fmt.Errorf("denyEvidence: a power of two from %d to permitEvidence", minEvidence/Scale)
	}
	return nil
}

// A Question is an act with everything that the filters read.
type Question struct {
	Agent     string           `cbor:"1,keyasint"`
	Action    string           `cbor:"2,keyasint"`
	Class     governance.Class `cbor:"3,keyasint"`
	Magnitude governance.Level `cbor:"4,keyasint"`
	Edges     []Edge           `cbor:"5,keyasint,omitempty"`
	Profile   Profile          `cbor:"6,keyasint"` // before the act
	Limits    Limits           `cbor:"7,keyasint"`
	// Asks is what it means that a person has to approve: defer, deny where nobody can be asked, or warn where it was
	// approved.
	Asks governance.Verdict `cbor:"8,keyasint"`
}

// Clone returns a copy that shares no memory with q.
func (q Question) Clone() Question {
	q.Edges, q.Profile = slices.Clone(q.Edges), q.Profile.Clone()
	return q
}

// Bin returns the bin of the act.
func (q Question) Bin() uint8 { return BinOf(q.Class, q.Magnitude) }

// Asked reports whether the filters are asked about the act.
func (q Question) Asked() bool { return q.Magnitude >= q.Limits.Floor }

// A Finding is what one filter measured and says.
type Finding struct {
	Filter  string             `cbor:"1,keyasint"`
	Verdict governance.Verdict `cbor:"2,keyasint"`
	Value   int64              `cbor:"3,keyasint"` // thousandths, or a logarithm in 1024ths
	Limit   int64              `cbor:"4,keyasint"`
	Reason  string             `cbor:"5,keyasint"`
}

// Decide asks the three filters, and returns what each of them measured. Nothing is returned for an act below the
// floor.
func Decide(q Question) []Finding {
	if !q.Asked() {
		return nil
	}
	if err := CheckEdges(q.Edges); err != nil {
		return []Finding{{Filter: Structure, Verdict: governance.Deny, Reason: "The graph can not be judged: " + err.Error()}}
	}
	return []Finding{q.structure(), q.shift(), q.evidence()}
}

func (q Question) structure() Finding {
	cut := MinCut(q.Edges, q.Agent)
	f := Finding{Filter: Structure, Value: int64(cut), Limit: int64(q.Limits.MinCut),
		Reason: fmt.Sprintf("The authority that reaches the agent from the board is %s, wanted %s", cut, q.Limits.MinCut)}
	if cut < q.Limits.MinCut {
		f.Verdict = governance.Deny
	}
	return f
}

func (q Question) shift() Finding {
	shift, known, part := q.Profile.Shift(q.Bin())
	f := Finding{Filter: Shift, Value: int64(shift), Limit: int64(q.Limits.MaxShift)}
	switch {
	case !known:
		f.Reason = fmt.Sprintf("The agent has too little past to compare with: %d acts of %d", q.Profile.Acts, MinPast+Window)
	case shift > q.Limits.MaxShift && part:
		f.Verdict = q.Asks
		f.Reason = fmt.Sprintf("The agent's last %d acts differ from its past by %s, at most %s, and this act is part of it",
			Window, shift, q.Limits.MaxShift)
	default:
		f.Reason = fmt.Sprintf("The agent's last %d acts differ from its past by %s, at most %s", Window, shift,
			q.Limits.MaxShift)
	}
	return f
}

func (q Question) evidence() Finding {
	e := q.Profile.Evidence
	f := Finding{Filter: Evidence, Value: e, Limit: q.Limits.Permit * Scale,
		Reason: fmt.Sprintf("The evidence for the agent is 2^%s, wanted 2^%d", power(e), q.Limits.Permit)}
	switch {
	case e < q.Limits.Deny*Scale:
		f.Verdict, f.Limit = governance.Deny, q.Limits.Deny*Scale
		f.Reason = fmt.Sprintf("The evidence for the agent is 2^%s: below 2^%d its acts are denied", power(e), q.Limits.Deny)
	case e < q.Limits.Permit*Scale:
		f.Verdict = q.Asks
		f.Reason = fmt.Sprintf("The evidence for the agent is 2^%s: below 2^%d a person is asked", power(e), q.Limits.Permit)
	}
	return f
}

// power shows a logarithm with one decimal, cut towards zero.
func power(e int64) string {
	sign, tenths := "", e*10/Scale
	if e < 0 {
		sign, tenths = "-", -e*10/Scale
	}
	return fmt.Sprintf("%s%d.%d", sign, tenths/10, tenths%10)
}

// Verdict returns the strictest of findings.
func Verdict(list []Finding) (v governance.Verdict) {
	for _, f := range list {
		v = max(v, f.Verdict)
	}
	return v
}

// Titles of the filters.
var titles = map[string]string{Structure: "line of authority", Shift: "shift of behaviour", Evidence: "evidence"}

// Hear returns a decision with the opinion of the filters, which is what [Decide] found.
func (q *Question) Hear(d governance.Decision, found []Finding) governance.Decision {
	if q == nil || !q.Asked() {
		return d
	}
	var spoken []governance.Voice
	for _, f := range found {
		if f.Verdict == governance.Permit {
			continue
		}
		severity := governance.Critical
		if f.Verdict == q.Asks {
			severity = governance.Blocking
		}
		spoken = append(spoken,
			governance.Voice{Rule: f.Filter, Title: titles[f.Filter], Severity: severity, Verdict: f.Verdict, Reason: f.Reason})
	}
	return d.Heard(governance.Filtering, Names, spoken...)
}
