package govern

import (
	"slices"
	"sync"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Tally counts what somebody did, for rules about rates and sums. It has the last hour in spans of five minutes and
// the last day in spans of an hour. A span that the window cuts counts whole: an act is never forgotten early, at most
// one span late.
type Tally struct {
	Hour []Span `cbor:"1,keyasint,omitempty"` // oldest first
	Day  []Span `cbor:"2,keyasint,omitempty"`
}

// A Span is what was done in a part of a window.
type Span struct {
	At      int64           `cbor:"1,keyasint"` // number of the span since 1970
	Done    governance.Done `cbor:"2,keyasint"`
	Refused int64           `cbor:"3,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with t.
func (t Tally) Clone() Tally { return Tally{slices.Clone(t.Hour), slices.Clone(t.Day)} }

// add returns spans with more in the one of now, and without those that have left the window of length spans.
func add(spans []Span, now, length int64, more Span) []Span {
	spans = slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.At < now-length })
	// The leader's clock may step back: what is later than now counts in the newest span.
	if n := len(spans); n == 0 || spans[n-1].At < now {
		spans = append(spans, Span{At: now})
	}
	last := &spans[len(spans)-1]
	last.Done.Count += more.Done.Count
	last.Done.Amount = min(last.Done.Amount+more.Done.Amount, maxSum)
	last.Done.Risk += more.Done.Risk
	last.Refused += more.Refused
	return spans
}

func sum(spans []Span, now, length int64) (out Span) {
	for _, s := range spans {
		if s.At >= now-length {
			out.Done.Count += s.Done.Count
			out.Done.Amount = min(out.Done.Amount+s.Done.Amount, maxSum)
			out.Done.Risk += s.Done.Risk
			out.Refused += s.Refused
		}
	}
	return out
}

func hourSpan(at core.Time) int64 { return int64(at) / (hourMs / hourSpans) }
func daySpan(at core.Time) int64  { return int64(at) / hourMs }

// With returns the tally with one act more.
func (t Tally) With(at core.Time, more Span) Tally {
	return Tally{add(t.Hour, hourSpan(at), hourSpans, more), add(t.Day, daySpan(at), daySpans, more)}
}

func (t Tally) hour(at core.Time) Span { return sum(t.Hour, hourSpan(at), hourSpans) }
func (t Tally) day(at core.Time) Span  { return sum(t.Day, daySpan(at), daySpans) }

// Tallies are what of the past concerns one act: four counters.
type Tallies struct {
	Own, Agent, Same, Company Tally // of the actor and action, the actor, the company and action, the company
}

// Past returns what rules read of them.
func (t Tallies) Past(at core.Time) *governance.Past {
	hour := t.Agent.hour(at)
	return &governance.Past{Hour: t.Own.hour(at).Done, Day: t.Own.day(at).Done, HourAll: hour.Done,
		DayAll:  t.Agent.day(at).Done,
		Company: t.Same.hour(at).Done, DayOf: t.Company.day(at).Done, Refused: hour.Refused}
}

// With returns them with an act that was decided.
func (t Tallies) With(at core.Time, said governance.Verdict, effect governance.Effect, amount int64) Tallies {
	if said == governance.Deny || said == governance.Defer {
		t.Agent = t.Agent.With(at, Span{Refused: 1})
		return t
	}
	more := Span{Done: governance.Done{Count: 1, Amount: amount, Risk: int64(effect[governance.Risk])}}
	return Tallies{t.Own.With(at, more), t.Agent.With(at, more), t.Same.With(at, more), t.Company.With(at, more)}
}

// tallies are rows of a company: those of the last tallyKinds actions and of everything, by who acts. An actor has one
// row, and so has the company. What no company does is not counted.
var tallies = ledger.NewTable[string, actorTally]("governance-tally")

// An actorTally is everything that is counted of one actor, or of a company under the key "company".
type actorTally struct {
	All     Tally         `cbor:"1,keyasint"`
	Actions []actionTally `cbor:"2,keyasint,omitempty"` // by the time of the last act, oldest first
}

type actionTally struct {
	Action string `cbor:"1,keyasint"`
	Tally  Tally  `cbor:"2,keyasint"`
}

// Clone returns a copy that shares no memory with a.
func (a actorTally) Clone() actorTally {
	a.All, a.Actions = a.All.Clone(), slices.Clone(a.Actions)
	for i := range a.Actions {
		a.Actions[i].Tally = a.Actions[i].Tally.Clone()
	}
	return a
}

func (a actorTally) of(action string) Tally {
	for _, t := range a.Actions {
		if t.Action == action {
			return t.Tally
		}
	}
	return Tally{}
}

// put stores the tally of an action as the newest. The one that was not used longest goes when there are too many.
func (a *actorTally) put(action string, t Tally) {
	a.Actions = slices.DeleteFunc(slices.Clone(a.Actions), func(t actionTally) bool { return t.Action == action })
	if len(a.Actions) >= maxTallied {
		a.Actions = a.Actions[1:]
	}
	a.Actions = append(a.Actions, actionTally{action, t})
}

func tallyKey(actor ledger.Actor) string { return actor.Type + "." + actor.ID }

// talliesOf returns what concerns an act of an actor and its company.
func talliesOf(own, all actorTally, action string) Tallies {
	return Tallies{own.of(action), own.All, all.of(action), all.All}
}

// counted returns both with an act more.
func (t Tallies) counted(own, all actorTally, act governance.Act, at core.Time, said governance.Verdict,
	effect governance.Effect) (actorTally, actorTally) {
	now := t.With(at, said, effect, act.Context.Amount)
	own.All, all.All = now.Agent, now.Company
	if said == governance.Permit || said == governance.Warn {
		own.put(act.Action, now.Own)
		all.put(act.Action, now.Same)
	}
	return own, all
}

// counted returns what was counted for an act of an actor.
func counted(tx *ledger.Tx, of ledger.CompanyID, actor ledger.Actor, action string) Tallies {
	if of == "" {
		return Tallies{}
	}
	own, _ := tallies.Get(tx, of, tallyKey(actor))
	all, _ := tallies.Get(tx, of, ofCompany)
	return talliesOf(own, all, action)
}

// count stores that an act was decided.
func count(c *ledger.Context, actor ledger.Actor, act governance.Act, said governance.Verdict,
	effect governance.Effect) {
	if act.Company == "" {
		return
	}
	own, _ := tallies.Get(c.Tx, act.Company, tallyKey(actor))
	all, _ := tallies.Get(c.Tx, act.Company, ofCompany)
	own, all = talliesOf(own, all, act.Action).counted(own, all, act, core.TimeOf(c.Now), said, effect)
	tallies.Put(c.Tx, act.Company, tallyKey(actor), own)
	tallies.Put(c.Tx, act.Company, ofCompany, all)
}

// A Counter counts acts at one node, for rules about rates and sums. It is memory of the node: a node that starts again
// has counted nothing, and acts of an agent on two nodes are counted apart.
type Counter struct {
	mu sync.Mutex
	by map[string]actorTally // by company and agent; guarded by mu
}

// weigh decides about an act with what was counted, and counts it. One act at a time, so that two do not both see room
// for one.
func (n *Counter) weigh(act governance.Act, at core.Time,
	decide func(governance.Act) governance.Decision) (governance.Act, governance.Decision) {
	n.mu.Lock()
	defer n.mu.Unlock()
	agent, of := string(act.Company)+"/"+act.Agent, string(act.Company) // two keys, also for an act without an agent
	own, all := n.by[agent], n.by[of]
	was := talliesOf(own, all, act.Action)
	act.Context.Past = was.Past(at)
	said := decide(act)
	own, all = was.counted(own, all, act, at, said.Verdict, said.Effect)
	if n.by == nil {
		n.by = map[string]actorTally{}
	}
	n.by[agent], n.by[of] = own, all
	for key, t := range n.by { // whoever did nothing for a day goes first, else anybody
		if len(n.by) <= maxCounted {
			break
		}
		if key != agent && key != of && (t.All.day(at) == Span{} || len(n.by) > maxCounted+2) {
			delete(n.by, key)
		}
	}
	return act, said
}

func agentDeleted(c *ledger.Context, a entity.Agent) {
	if c.Tx.Has(profiles.Key(a.Company, a.ID)) {
		profiles.Delete(c.Tx, a.Company, a.ID)
	}
	if key := "agent." + a.ID; c.Tx.Has(tallies.Key(a.Company, key)) {
		tallies.Delete(c.Tx, a.Company, key)
	}
}
