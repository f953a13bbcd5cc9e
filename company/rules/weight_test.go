package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// Each kind has a weight: an effect that the gate weighs, or the reason why it is not weighed. What only nodes give is
// not weighed, and what agents give is, unless it reports, is nothing by itself, or its handler weighs what it asks
// about.
func TestEveryKindHasAWeight(t *testing.T) {
	t.Parallel()
	reports := []string{"cost.report", "tool.trace", "run.callback", "part.put", govern.KindPermit, govern.KindPermitUse}
	for _, k := range company.Kinds() {
		w := k.Weight
		switch {
		case w.Free == "" && (w.Class == "" || w.Effect == governance.Effect{}):
			t.Errorf("%s: its row has no weight: add Weight, see company/weight.go", k.Name)
		case w.Free != "" && (w.Class != "" || w.Effect != governance.Effect{}):
			t.Errorf("%s: is weighed and is not", k.Name)
		case k.From == company.FromNode && w.Free == "":
			t.Errorf("%s: only nodes give it, and the gate does not weigh nodes", k.Name)
		case k.From&company.FromAgent != 0 && w.Free != "" && !slices.Contains(reports, k.Name):
			t.Errorf("%s: agents give it, and it is not weighed", k.Name)
		}
		if row, ok := governance.ActionOf(k.Name); ok && w.Free == "" && (row.Class != w.Class || row.Base != w.Effect) {
			t.Errorf("%s: the table of actions says %s %s, the row of the kind %s %s", k.Name, row.Class, row.Base,
				w.Class, w.Effect)
		}
	}
}

// TestFewRulesMeetACheckout: the gate asks at most three rules about a checkout, with the genesis rules and with each
// pack, and a branch that has a rule for a kind is asked about it.
func TestFewRulesMeetACheckout(t *testing.T) {
	t.Parallel()
	for _, p := range governance.Packs() {
		rules, err := governance.Amend(governance.Genesis(), p.ChangeTo(governance.Genesis()))
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := new(governance.Compiler).Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{company.KindIssueCheckout, company.KindIssueRelease, company.KindCommentCreate} {
			k, _ := company.KindOf(name)
			if list := govern.NewGate(compiled).RulesFor(k); len(list) > 3 {
				t.Errorf("%s: %s meets %d rules: %v", p.Name, name, len(list), list)
			}
		}
	}
}

// TestNothingPassesWithoutTheGate: with a critical rule of each branch about everything, no kind that is weighed
// reaches its handler, whoever gives it, and each branch has its say.
func TestNothingPassesWithoutTheGate(t *testing.T) {
	t.Parallel()
	s := newStory(t, map[string]int{})
	var put []governance.Rule
	for n, b := range governance.Branches {
		put = append(put, governance.Rule{ID: "T-" + string(rune('A'+n)), Branch: b, Severity: governance.Critical,
			When: "true", Reason: "{act} is out"})
	}
	enact(s, govern.Draft{Change: governance.Change{Put: put}})
	ada := s.Hired("Ada")
	for _, k := range company.Kinds() {
		for _, by := range []ledger.Actor{{Type: "user", ID: "local-board"}, {Type: "agent", ID: ada},
			{Type: "node", ID: s.node}, {Type: "system", ID: s.node}} {
			c := s.Context(companytest.Board, k.Name, nil)
			c.Cmd.Actor, c.Tx = by, s.Tx.Child()
			err := govern.Weigh(c)
			weighed := k.Weight.Free == "" && (by.Type == "user" || by.Type == "agent")
			if weighed != (err != nil) {
				t.Errorf("%s by %s: weighed %v, refused with %v", k.Name, by.Type, weighed, err)
			}
			if err == nil {
				continue
			}
			for d := range govern.Decisions(c.Tx, c.Cmd.Company, govern.Query{Limit: 1}) {
				if d.Act.Action != k.Name || len(d.Said.Opinions) != len(governance.Branches) || len(d.Said.Voices) < len(put) {
					t.Errorf("%s by %s: decided %+v", k.Name, by.Type, d.Said)
				}
			}
			if !strings.Contains(err.Error(), "is out") {
				t.Errorf("%s by %s: %v", k.Name, by.Type, err)
			}
		}
	}
}

// enact proposes, signs and enacts an amendment by the board, which has no signing keys.
func enact(s *storyteller, d govern.Draft) {
	s.t.Helper()
	var a govern.Amendment
	s.by(companytest.Board, govern.KindPropose, d, "governance.proposed", &a)
	s.by(companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, "governance.signed")
	s.by(companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, "governance.amended")
}
