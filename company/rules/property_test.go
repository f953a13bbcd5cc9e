package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestEachBranchIsHeard: under random constitutions, a command of each kind that is weighed meets exactly the rules
// that are about it, and its decision has the opinion of each branch that has one. Rules only warn, so that each
// decision is kept and can be looked at.
func TestEachBranchIsHeard(t *testing.T) {
	t.Parallel()
	weighed := 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 20))
		s := newStory(t, map[string]int{})
		kinds := company.Kinds()
		var added []governance.Rule
		for n := range 12 {
			x := governance.Rule{ID: fmt.Sprintf("P-%d", n), Branch: governance.Branches[r.IntN(3)],
				Severity: governance.Warning,
				When:     []string{"true", "effect.risk >= 0", `company != "x"`, `context.amount >= 0`}[r.IntN(4)],
				Reason:   "{act} is noted"}
			for range r.IntN(3) {
				x.On = append(x.On, kinds[r.IntN(len(kinds))].Name, string(governance.Classes[r.IntN(len(governance.Classes))]))
			}
			added = append(added, x)
		}
		enact(s, govern.Draft{Change: governance.Change{Put: added}})
		ada := s.Hired("Ada")
		for _, k := range kinds {
			for _, by := range []ledger.Actor{{Type: "user", ID: "local-board"}, {Type: "agent", ID: ada}} {
				var want, heard []string
				var branches []governance.Branch
				for _, x := range added {
					if len(x.On) == 0 || slices.Contains(x.On, k.Name) || slices.Contains(x.On, string(k.Weight.Class)) {
						want = append(want, x.ID)
						branches = append(branches, x.Branch)
					}
				}
				c := s.Context(companytest.Board, k.Name, nil)
				c.Cmd.Actor, c.Tx = by, s.Tx.Child()
				err := govern.Weigh(c)
				if k.Weight.Free != "" {
					if err != nil {
						t.Fatalf("seed %d: %s is not weighed and refused: %v", seed, k.Name, err)
					}
					continue
				}
				var d govern.Decision
				for x := range govern.Decisions(c.Tx, c.Cmd.Company, govern.Query{Action: k.Name, Limit: 1}) {
					d = x
				}
				for _, v := range d.Said.Voices {
					if slices.ContainsFunc(added, func(x governance.Rule) bool { return x.ID == v.Rule }) {
						heard = append(heard, v.Rule)
					}
				}
				slices.Sort(want)
				slices.Sort(heard)
				if !slices.Equal(want, heard) {
					t.Fatalf("seed %d: %s by %s heard %v, want %v", seed, k.Name, by.Type, heard, want)
				}
				for _, b := range branches {
					if !slices.ContainsFunc(d.Said.Opinions, func(o govern.Opinion) bool {
						return o.Branch == b && o.Verdict >= governance.Warn
					}) {
						t.Fatalf("seed %d: %s by %s has no opinion of the %s branch", seed, k.Name, by.Type, b)
					}
				}
				weighed++
			}
		}
	}
	if weighed < 500 {
		t.Errorf("only %d commands were weighed", weighed)
	}
}

// TestNoPathLoosensTheCore: whatever amendments are proposed, signed and enacted by commands, with packs among them,
// the genesis rules that can stop an act stay, in their branch and at least as severe, and what they refused is
// refused.
func TestNoPathLoosensTheCore(t *testing.T) {
	t.Parallel()
	taken, refused := 0, 0
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 21))
		d := companytest.NewDesk(t)
		before := gateInForce(t, d)
		for range 10 {
			s, _ := govern.InForce(d.Tx)
			draft := govern.Draft{Title: "x", Base: s.Version, Change: randomDraft(r, govern.RulesOf(d.Tx, s.Version))}
			if r.IntN(4) == 0 {
				packs := governance.Packs()
				draft.Change = packs[r.IntN(len(packs))].ChangeTo(govern.RulesOf(d.Tx, s.Version))
			}
			var a govern.Amendment
			err := d.Do(companytest.Board, govern.KindPropose, draft, &a)
			if err == nil {
				err = d.Do(companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, nil)
			}
			if err == nil {
				err = d.Do(companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, nil)
			}
			if err != nil {
				refused++
				continue
			}
			taken++
		}
		s, err := govern.InForce(d.Tx)
		if err != nil {
			t.Fatal(err)
		}
		now := govern.RulesOf(d.Tx, s.Version)
		for _, was := range governance.Genesis() {
			i := slices.IndexFunc(now, func(x governance.Rule) bool { return x.ID == was.ID })
			if i < 0 || now[i].Branch != was.Branch || slices.Index(governance.Severities, now[i].Severity) <
				slices.Index(governance.Severities, was.Severity) || was.Core() && now[i].When != was.When {
				t.Fatalf("seed %d: %s is gone or milder after %d amendments", seed, was.ID, s.Version-1)
			}
		}
		after := gateInForce(t, d)
		for _, a := range governance.Actions() {
			for _, rank := range []governance.Rank{governance.Worker, governance.Manager, governance.Nobody} {
				act := governance.Act{Action: a.Name, Rank: rank, Scope: governance.Scope{Class: governance.Production}}
				if was, is := before.Decide(act), after.Decide(act); was.Verdict >= governance.Defer && is.Verdict < was.Verdict {
					t.Fatalf("seed %d: %s was %s and is %s", seed, a.Name, was.Verdict, is.Verdict)
				}
			}
		}
	}
	if taken < 15 || refused < 15 {
		t.Errorf("%d amendments were taken and %d refused: both are to be many", taken, refused)
	}
}

func gateInForce(t *testing.T, d *companytest.Desk) *govern.Gate {
	t.Helper()
	s, err := govern.InForce(d.Tx)
	if err != nil {
		t.Fatal(err)
	}
	g, err := govern.GateOf(d.Tx, s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// randomDraft drops, supersedes or adds a rule, as often as not one that loosens.
func randomDraft(r *rand.Rand, now []governance.Rule) (ch governance.Change) {
	was := now[r.IntN(len(now))]
	switch r.IntN(6) {
	case 0:
		ch.Drop = []string{was.ID}
		return ch
	case 1:
		was.When = []string{"false", "context.outside", "effect.risk > 990"}[r.IntN(3)]
	case 2:
		was.Severity = governance.Severities[r.IntN(len(governance.Severities))]
	case 3:
		was.On = []string{string(governance.Classes[r.IntN(len(governance.Classes))])}
	case 4:
		was.Branch = governance.Branches[r.IntN(len(governance.Branches))]
	case 5:
		was = governance.Rule{ID: fmt.Sprintf("Q-%d", r.IntN(4)), Branch: governance.Judicial, Severity: governance.Warning,
			When: "effect.risk > 100", Reason: "{act} is noted"}
	}
	ch.Put = []governance.Rule{was}
	return ch
}
