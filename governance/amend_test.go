package governance

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNoAmendmentLoosensTheCore: whatever a sequence of random amendments is, what the genesis rules refuse of the acts
// of the stories and of the table is refused at least as strictly afterwards.
func TestNoAmendmentLoosensTheCore(t *testing.T) {
	t.Parallel()
	var c Compiler
	before := gateOf(t, &c, Genesis())
	var acts []Act
	for _, s := range stories {
		acts = append(acts, s.permitted, s.met)
	}
	for _, a := range Actions() {
		acts = append(acts, Act{Action: a.Name, Rank: Worker, Scope: Scope{Class: Production}})
	}
	blocked := func(v Verdict) bool { return v >= Defer }
	taken, refused := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 20))
		rules := Genesis()
		for range 12 {
			next, err := Amend(rules, randomChange(r, rules))
			if err != nil {
				refused++
				continue
			}
			taken++
			rules = next
		}
		after := gateOf(t, &c, rules)
		for _, a := range acts {
			if was, is := before.Decide(a), after.Decide(a); blocked(was.Verdict) && is.Verdict < was.Verdict {
				t.Fatalf("seed %d: %s was %s and is %s", seed, a.Action, was.Verdict, is.Verdict)
			}
		}
	}
	if taken < 50 || refused < 50 {
		t.Errorf("%d amendments were taken and %d refused: both are to be many", taken, refused)
	}
}

// randomChange drops, supersedes and adds rules, among them such as loosen.
func randomChange(r *rand.Rand, rules []Rule) (ch Change) {
	when := []string{"true", "false", `context.outside`, `effect.risk > 900`}
	for range 1 + r.IntN(2) {
		was := rules[r.IntN(len(rules))]
		if r.IntN(3) == 0 {
			was.ID = "X-" + string(rune('A'+r.IntN(5)))
		}
		switch r.IntN(5) {
		case 0:
			ch.Drop = append(ch.Drop, was.ID)
			continue
		case 1:
			was.When = when[r.IntN(len(when))]
		case 2:
			was.Severity = Severities[r.IntN(len(Severities))]
		case 3:
			was.On = []string{string(Classes[r.IntN(len(Classes))])}
		case 4:
			was.Branch = Legislative
			was.When = when[r.IntN(len(when))]
		}
		if !slices.ContainsFunc(ch.Put, func(o Rule) bool { return o.ID == was.ID }) {
			ch.Put = append(ch.Put, was)
		}
	}
	return ch
}

// TestPacksCompile: each pack leads to a constitution that holds the core, and changing between base packs leaves
// nothing of the other.
func TestPacksCompile(t *testing.T) {
	t.Parallel()
	var c Compiler
	own := Rule{ID: "OWN-1", Branch: Judicial, Severity: Warning, When: "context.first", Reason: "{act} is new"}
	for _, from := range Packs() {
		rules, err := Amend(append(Genesis(), own), from.ChangeTo(Genesis()))
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range Packs() {
			after, err := Amend(rules, to.ChangeTo(rules))
			if err != nil {
				t.Fatalf("%s to %s: %v", from.Name, to.Name, err)
			}
			gateOf(t, &c, after)
			kept := 0
			if from.Name != to.Name && (from.Added || to.Added) {
				kept = len(from.Rules)
			}
			if len(after) != len(Genesis())+1+kept+len(to.Rules) || !to.ChangeTo(after).Empty() {
				t.Errorf("%s to %s: %d rules", from.Name, to.Name, len(after))
			}
		}
	}
}

// TestPacksDecide: what each pack says of some acts.
func TestPacksDecide(t *testing.T) {
	t.Parallel()
	var c Compiler
	gone := Act{Action: "agent.terminate", Rank: Manager, Context: Context{Irreversible: true,
		Clearances: []string{"record", "handover", "risk-register"}}}
	spend := Act{Action: "money.spend", Rank: Chief, Context: Context{Amount: 250_000,
		Clearances: []string{"risk-register"}}}
	leak := Act{Action: "network.egress", Rank: Chief, Context: Context{Outside: true, Data: SecretData,
		Clearances: []string{"data-protection", "security-review", "risk-review"}}}
	hire := Act{Action: "agent.hire", Rank: Chief}
	for _, x := range []struct {
		act  Act
		want [3]Verdict // relaxed, standard, strict
	}{
		{gone, [3]Verdict{Permit, Defer, Defer}},
		{spend, [3]Verdict{Permit, Defer, Defer}},
		{leak, [3]Verdict{Warn, Deny, Deny}},
		{hire, [3]Verdict{Permit, Permit, Defer}},
	} {
		for n, p := range Packs()[:3] {
			rules, err := Amend(Genesis(), p.ChangeTo(Genesis()))
			if err != nil {
				t.Fatal(err)
			}
			x.act.Scope = Scope{Class: p.Environment, HumanApproval: true}
			if d := gateOf(t, &c, rules).Decide(x.act); d.Verdict != x.want[n] {
				t.Errorf("%s: %s is %s, want %s: %v", p.Name, x.act.Action, d.Verdict, x.want[n], spoken(d))
			}
		}
	}
}

// TestNarrowedDecidesAlike: a gate that leaves out what can not speak decides as the whole one, for all values of the
// variables that vary.
func TestNarrowedDecidesAlike(t *testing.T) {
	t.Parallel()
	var c Compiler
	strict, _ := PackOf("strict")
	rules, err := Amend(Genesis(), strict.ChangeTo(Genesis()))
	if err != nil {
		t.Fatal(err)
	}
	whole := gateOf(t, &c, rules)
	varies := []string{"agent", "role", "rank", "env.class", "env.threshold", "clearances", "approvers"}
	for _, a := range Actions() {
		act := Act{Action: a.Name, Rank: Worker}
		narrow := whole.Narrowed(act, func(v string) bool { return slices.Contains(varies, v) })
		if narrow.Len() > whole.Len() || a.Name == "fs.stat" && narrow.Len() > 3 {
			t.Errorf("%s meets %d rules of %d", a.Name, narrow.Len(), whole.Len())
		}
		for _, rank := range []Rank{Worker, Manager, Chief, Board} {
			for _, class := range []EnvironmentClass{Unnamed, Development, Production} {
				for _, clear := range [][]string{nil, {"risk-review", "scan"}} {
					act.Rank, act.Scope.Class, act.Context.Clearances = rank, class, clear
					x, y := whole.Decide(act), narrow.Decide(act)
					if x.Verdict != y.Verdict || x.Reason != y.Reason || !slices.Equal(spoken(x), spoken(y)) {
						t.Fatalf("%s by %s in %q: %s %v, narrowed %s %v", a.Name, rank, class, x.Verdict, spoken(x), y.Verdict, spoken(y))
					}
				}
			}
		}
	}
}
