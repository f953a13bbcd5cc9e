package governance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
)

// cleared are the papers with which code goes the usual way.
func cleared(more ...string) Context {
	return Context{Revision: "4f1c2aa", Issue: "ACM-7", Clearances: append([]string{"scan", "release-plan"}, more...)}
}

func with(c Context, change func(*Context)) Context {
	change(&c)
	return c
}

// stories are, for each rule, an act that is permitted and a neighbour of it that meets the rule.
var stories = []struct {
	rule          string
	permitted     Act
	met           Act
	want, without Verdict
}{
	{"GOV-001", Act{Action: "fs.write_file", Rank: Worker, Scope: Scope{Class: Development},
		Context: Context{Workspace: "/w", Path: "/w/a"}},
		Act{Action: "fs.write_file", Rank: Worker, Scope: Scope{Class: Production}, Context: Context{Workspace: "/w",
			Path: "/w/a"}}, Deny, Permit},
	{"GOV-002", Act{Action: "node.admit", Rank: Board, Scope: Scope{Class: Development}},
		Act{Action: "node.admit", Rank: Board, Scope: Scope{Class: Development}, Context: Context{Outside: true}},
		Deny, Permit},
	{"GOV-003", Act{Action: "model.call", Rank: Worker}, Act{Action: "model.call", Rank: Worker,
		Context: Context{Data: PersonalData}}, Warn, Permit},
	{"GOV-004", Act{Action: "model.call", Rank: Worker}, Act{Action: "model.call", Rank: Worker,
		Context: Context{First: true}}, Permit, Permit},
	{"GOV-005", Act{Action: "fs.write_file", Rank: Worker, Context: Context{Workspace: "/w/ada", Path: "/w/ada/x"}},
		Act{Action: "fs.write_file", Rank: Worker, Context: Context{Workspace: "/w/ada", Path: "/w/ada/../bob/x"}},
		Warn, Permit},
	{"GOV-006", Act{Action: "agent.hire", Rank: Manager}, Act{Action: "agent.hire", Rank: Worker}, Deny, Permit},
	{"GOV-007", Act{Action: "ipc.send", Rank: Worker}, Act{Action: "ipc.send", Rank: Worker,
		Context: Context{Outside: true}}, Permit, Permit},

	{"SOP-L001", Act{Action: "fs.exists", Rank: Worker, Context: Context{Data: PublicData, Reason: "survey"}},
		Act{Action: "fs.exists", Rank: Worker, Context: Context{Data: SubjectData, Reason: "survey"}}, Deny, Warn},
	{"SOP-L002", Act{Action: "code.change", Rank: Worker, Context: cleared()},
		Act{Action: "code.change", Rank: Worker, Context: with(cleared(), func(c *Context) { c.Revision = "" })},
		Warn, Permit},
	{"SOP-L003", Act{Action: "code.change", Rank: Worker, Context: cleared()},
		Act{Action: "code.change", Rank: Worker, Context: with(cleared(), func(c *Context) { c.Issue = "" })}, Warn, Permit},
	{"SOP-L004", Act{Action: "release.publish", Rank: Worker, Context: cleared()},
		Act{Action: "release.publish", Rank: Worker, Context: with(cleared(), func(c *Context) { c.Clearances = nil })},
		Permit, Permit},
	{"SOP-L005", Act{Action: "network.egress", Rank: Worker},
		Act{Action: "network.egress", Rank: Worker, Context: Context{Outside: true, Data: PersonalData}}, Deny, Warn},
	{"SOP-L006", Act{Action: "agent.stop", Rank: Worker}, Act{Action: "agent.stop", Rank: Worker,
		Context: Context{Given: Effect{Risk: 500}}}, Warn, Permit},

	{"SOP-E001", Act{Action: "code.change", Rank: Worker, Context: cleared()},
		Act{Action: "code.change", Rank: Worker, Context: with(cleared(), func(c *Context) { c.Clearances = nil })},
		Warn, Permit},
	{"SOP-E002", Act{Action: "deploy", Rank: Chief, Scope: Scope{Class: Production}, Context: cleared("risk-review")},
		Act{Action: "deploy", Rank: Worker, Scope: Scope{Class: Production}, Context: cleared("risk-review")}, Deny, Permit},
	{"SOP-E003", Act{Action: "settings.change", Rank: Worker}, Act{Action: "settings.change", Rank: Worker,
		Context: Context{Incident: true}}, Warn, Permit},
	{"SOP-E004", Act{Action: "agent.terminate", Rank: Worker, Context: Context{Clearances: []string{"handover"}}},
		Act{Action: "agent.terminate", Rank: Worker}, Permit, Permit},
	{"SOP-E005", Act{Action: "model.call", Rank: Worker, Context: Context{Amount: 9_999}},
		Act{Action: "model.call", Rank: Worker, Context: Context{Amount: 10_000}}, Permit, Permit},

	{"SOP-J001", Act{Action: "agent.resume", Rank: Worker, Context: Context{Given: Effect{Fairness: 600}, Reason: "idle"}},
		Act{Action: "agent.resume", Rank: Worker, Context: Context{Given: Effect{Fairness: 650}, Reason: "idle"}},
		Deny, Permit},
	{"SOP-J002", Act{Action: "agent.resume", Rank: Worker, Context: Context{Given: Effect{Fairness: 400}, Reason: "idle"}},
		Act{Action: "agent.resume", Rank: Worker, Context: Context{Given: Effect{Fairness: 400}}}, Warn, Permit},
	{"SOP-J003", Act{Action: "agent.send", Rank: Worker, Context: Context{Drift: 299}},
		Act{Action: "agent.send", Rank: Worker, Context: Context{Drift: 300}}, Warn, Permit},
	{"SOP-J004", Act{Action: "agent.send", Rank: Worker, Context: Context{Irreversible: true,
		Clearances: []string{"record"}}},
		Act{Action: "agent.send", Rank: Worker, Context: Context{Irreversible: true}}, Permit, Permit},
}

// TestEachGenesisRuleDecides: without the rule, the same act comes to the milder verdict; an advisory rule is the
// only one that speaks.
func TestEachGenesisRuleDecides(t *testing.T) {
	t.Parallel()
	var c Compiler
	whole := gateOf(t, &c, Genesis())
	told := map[string]bool{}
	for _, s := range stories {
		told[s.rule] = true
		others := slices.DeleteFunc(Genesis(), func(r Rule) bool { return r.ID == s.rule })
		rest := gateOf(t, &c, others)
		if d := whole.Decide(s.permitted); d.Verdict != Permit || len(spoken(d)) != 0 {
			t.Errorf("%s: its permitted act comes to %s, %v spoke: %s", s.rule, d.Verdict, spoken(d), d.Reason)
		}
		met, without := whole.Decide(s.met), rest.Decide(s.met)
		if met.Verdict != s.want || !slices.Contains(spoken(met), s.rule) {
			t.Errorf("%s: its act comes to %s, want %s; %v spoke", s.rule, met.Verdict, s.want, spoken(met))
		}
		if without.Verdict != s.without || slices.Contains(spoken(without), s.rule) {
			t.Errorf("%s: without it the act comes to %s, want %s; %v spoke", s.rule, without.Verdict, s.without,
				spoken(without))
		}
		if s.want == s.without && len(spoken(met)) != 1 {
			t.Errorf("%s is to be the only one that speaks: %v", s.rule, spoken(met))
		}
	}
	for _, r := range Genesis() {
		if !told[r.ID] {
			t.Errorf("%s has no story", r.ID)
		}
	}
}

// TestGenesisIsTheKnownSet: 22 rules, of each branch and severity as many as the published rows have.
func TestGenesisIsTheKnownSet(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, r := range Genesis() {
		count[string(r.Branch)]++
		count[string(r.Severity)]++
	}
	for name, want := range map[string]int{"legislative": 8, "executive": 7, "judicial": 7, "blocking": 7, "warning": 9,
		"advisory": 6, "critical": 0} {
		if count[name] != want {
			t.Errorf("%d %s rules, want %d", count[name], name, want)
		}
	}
}

func gateOf(t testing.TB, c *Compiler, rules []Rule) *Gate {
	t.Helper()
	g, err := c.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func spoken(d Decision) []string {
	ids := []string{}
	for _, o := range d.Opinions {
		for _, v := range o.Spoken {
			ids = append(ids, v.Rule)
		}
	}
	return ids
}

// TestDecisionsArePinned: what the genesis rules say of every action, in each environment, for a worker that says
// nothing more. A change of this file changes how meshes decide.
func TestDecisionsArePinned(t *testing.T) {
	t.Parallel()
	g := genesisGate(t)
	var lines strings.Builder
	fmt.Fprintf(&lines, "version %s\n", g.Version())
	for _, a := range append(Actions(), Action{Name: "nobody.knows"}) {
		for _, class := range []EnvironmentClass{Unnamed, Development, Staging, Production} {
			d := g.Decide(Act{Action: a.Name, Rank: Worker, Scope: Scope{Class: class}})
			fmt.Fprintf(&lines, "%-22s %-8s %-7s %s %s\n", a.Name, class, d.Verdict, d.Effect, strings.Join(spoken(d), " "))
		}
	}
	kit.Golden(t, "genesis.txt", lines.String())
}
