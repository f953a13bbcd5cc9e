package govern

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Review says what a draft would have decided of the last acts: the commands of the chain, and the decisions that are
// kept. A command of the chain is weighed with what the state says now of who gave it; a kept decision has its facts.
type Review struct {
	Considered int
	Decided    [4]int       // by verdict, under the draft
	Stricter   int          // acts that the draft would have decided more strictly
	Milder     int          // and less strictly
	Examples   []Difference // the newest that differ, at most maxExamples
}

// A Difference is an act that a draft decides otherwise.
type Difference struct {
	Of      string // ID of a decision, or height of an entry
	Company ledger.CompanyID
	Action  string
	Agent   string
	At      core.Time
	Was, Is governance.Verdict
	Rule    string
	Reason  string
}

const maxExamples = 20

// ReviewOf looks what a draft would have decided of the last acts that seen lets pass.
func ReviewOf(tx *ledger.Tx, d Draft, last int, companies []ledger.CompanyID) (Review, error) {
	out := Review{}
	s, err := InForce(tx)
	if err != nil {
		return out, err
	}
	before, err := GateOf(tx, s)
	if err != nil {
		return out, err
	}
	after, err := d.Leads(tx, s)
	if err != nil {
		return out, err
	}
	next := s
	core.Assign(&next.Mesh.Class, d.Environment)
	kept := map[uint64]bool{}
	for _, of := range companies {
		for x := range Decisions(tx, of, Query{Limit: last}) {
			if out.Considered == last {
				break
			}
			kept[x.Height] = true
			act := x
			act.Act.Scope = ScopeOf(tx, next, x.Company, "")
			out.count(Difference{Of: x.ID, Company: x.Company, Action: x.Act.Action, Agent: x.Act.Agent, At: x.At,
				Was: x.Said.Verdict}, act.Again(after))
		}
	}
	for h := newest(tx); h > 0 && out.Considered < last; h-- {
		e, ok := ledger.EntryAt(tx, h)
		if !ok {
			break
		}
		k, known := company.KindOf(e.Kind)
		if !known || kept[h] || e.Outcome != ledger.Applied || k.Weight.Free != "" || e.Actor.Type != "user" &&
			e.Actor.Type != "agent" || !slices.Contains(companies, e.Company) {
			continue
		}
		cmd := ledger.Command{Kind: e.Kind, Company: e.Company, Actor: e.Actor, Run: e.Run}
		was := SaidBy(before.of(k).gate, actOf(tx, &cmd, k, s, true, moment{}))
		out.count(Difference{Of: strconv.FormatUint(h, 10), Company: e.Company, Action: e.Kind, Agent: e.Actor.ID,
			At: core.TimeOf(e.Time), Was: was.Verdict},
			SaidBy(after.of(k).gate, actOf(tx, &cmd, k, next, true, moment{})))
	}
	return out, nil
}

func (r *Review) count(x Difference, is Said) {
	r.Considered++
	r.Decided[is.Verdict]++
	x.Is, x.Reason = is.Verdict, is.Reason
	switch {
	case x.Is == x.Was:
		return
	case x.Is > x.Was:
		r.Stricter++
	default:
		r.Milder++
	}
	x.Rule = Decision{Said: is}.strictest().Rule
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, x)
	}
}

// Summary says in one sentence what a draft would have done.
func (r Review) Summary() string {
	text := fmt.Sprintf("would have denied %d of %d, deferred %d, and warned about %d", r.Decided[governance.Deny],
		r.Considered, r.Decided[governance.Defer], r.Decided[governance.Warn])
	if r.Stricter+r.Milder == 0 {
		return text + "; that is what was decided of each"
	}
	text += fmt.Sprintf("; %d more strictly than it was decided, %d less", r.Stricter, r.Milder)
	for n, x := range r.Examples {
		if n == 0 {
			text += ": "
		}
		if n == 3 {
			return text + ", …"
		}
		if n > 0 {
			text += ", "
		}
		text += x.Action + " (" + x.Was.String() + " → " + x.Is.String() + ")"
	}
	return text
}

// newest returns the height of the newest entry.
func newest(tx *ledger.Tx) uint64 {
	has := func(h uint64) bool { _, ok := ledger.EntryAt(tx, h); return ok }
	low, high := uint64(0), uint64(1)
	for has(high) {
		low, high = high, 2*high
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; has(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
