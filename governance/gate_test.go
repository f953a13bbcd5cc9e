package governance

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/kit"
)

var shellCommand = Act{Action: "execute_shell_command", Agent: "agent-reviewer", Rank: Worker,
	Context: Context{Command: "rm -rf /tmp/build", Given: Effect{Risk: 700}}}

func genesisGate(t testing.TB) *Gate {
	t.Helper()
	return gateOf(t, new(Compiler), Genesis())
}

// TestTheDocumentedDecision: denied for a worker, put before a manager where one can approve.
func TestTheDocumentedDecision(t *testing.T) {
	t.Parallel()
	g := genesisGate(t)
	d := g.Decide(shellCommand)
	if want := "High-risk shell command requires Manager approval"; d.Verdict != Deny || d.Reason != want {
		t.Errorf("got %s (%s), want %s (%s)", d.Verdict, d.Reason, Deny, want)
	}
	asked := shellCommand
	asked.Context.Approvers = []string{"agent-ceo"}
	if d := g.Decide(asked); d.Verdict != Defer {
		t.Errorf("with a manager to ask: got %s, want %s", d.Verdict, Defer)
	}
	human := shellCommand
	human.Scope.HumanApproval = true
	if d := g.Decide(human); d.Verdict != Defer {
		t.Errorf("where people approve: got %s, want %s", d.Verdict, Defer)
	}
	reviewed := shellCommand
	reviewed.Context.Clearances = []string{"risk-review"}
	if d := g.Decide(reviewed); d.Verdict != Warn {
		t.Errorf("when its risk was reviewed: got %s (%s), want %s", d.Verdict, d.Reason, Warn)
	}
}

// TestTheStrictestOpinionStands: whatever the others say, and whoever would approve.
func TestTheStrictestOpinionStands(t *testing.T) {
	t.Parallel()
	rule := func(id string, b Branch, s Severity, when string) Rule {
		return Rule{ID: id, Branch: b, Severity: s, When: when, Reason: id + " spoke"}
	}
	var c Compiler
	for _, b := range Branches {
		rules := []Rule{rule("CORE", b, Critical, "true")}
		for _, other := range Branches {
			rules = append(rules, rule("W-"+strings.ToUpper(string(other)), other, Warning, "true"),
				rule("B-"+strings.ToUpper(string(other)), other, Blocking, "true"))
		}
		d := gateOf(t, &c, rules).Decide(Act{Action: "model.call", Rank: Board, Scope: Scope{HumanApproval: true},
			Context: Context{Approvers: []string{"board"}, Clearances: []string{"everything"}}})
		if d.Verdict != Deny || d.Reason != "CORE spoke" {
			t.Errorf("a critical no of the %s branch: got %s (%s)", b, d.Verdict, d.Reason)
		}
		for _, o := range d.Opinions {
			want := Defer
			if o.Branch == b {
				want = Deny
			}
			if o.Verdict != want {
				t.Errorf("the %s opinion is %s, want %s: each branch decides for itself", o.Branch, o.Verdict, want)
			}
		}
	}
}

// TestBranchesReadWhatIsTheirs: only the executive sees who acts.
func TestBranchesReadWhatIsTheirs(t *testing.T) {
	t.Parallel()
	for _, when := range []string{`agent == "ada"`, `role == "engineer"`, `rank == "worker"`} {
		for _, b := range Branches {
			_, err := compile(b, when)
			if (err == nil) != (b == Executive) {
				t.Errorf("%s in the %s branch: %v", when, b, err)
			}
		}
	}
}

// TestRulesThatAreRefused: each is told with its ID and what is wrong.
func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	good := Rule{ID: "X-1", Branch: Judicial, Severity: Warning, When: "true", Reason: "no"}
	for name, c := range map[string]struct {
		change func(*Rule)
		want   string
	}{
		"syntax":         {func(r *Rule) { r.When = "effect.risk >" }, "does not compile"},
		"unknown field":  {func(r *Rule) { r.When = "context.budget > 1" }, "undeclared reference"},
		"unknown word":   {func(r *Rule) { r.When = "risk > 1" }, "undeclared reference"},
		"no truth value": {func(r *Rule) { r.When = "effect.risk" }, "must be true or false, is int"},
		"dynamic":        {func(r *Rule) { r.When = "dyn(true)" }, "must be true or false, is dyn"},
		"floating point": {func(r *Rule) { r.When = "double(effect.risk) > 0.5" }, "uses a value of type double"},
		"time": {func(r *Rule) { r.When = `timestamp("2026-01-01T00:00:00Z") < timestamp("2027-01-01T00:00:00Z")` },
			"uses a value of type"},
		"mixed types": {func(r *Rule) { r.When = `effect.risk == "high"` }, "no matching overload"},
		"worst cost": {func(r *Rule) { r.When = "approvers.all(a, clearances.all(b, context.command.contains(a + b)))" },
			"in the worst case"},
		"too long": {func(r *Rule) { r.When = strings.Repeat("true || ", MaxPredicate/8) + "true" },
			"at most 2048 bytes"},
		"too deep": {func(r *Rule) { r.When = strings.Repeat("!(", 200) + "true" + strings.Repeat(")", 200) },
			"does not compile"},
		"empty":           {func(r *Rule) { r.When = "" }, "when: required"},
		"bad ID":          {func(r *Rule) { r.ID = "x 1" }, "id: want capital letters"},
		"bad branch":      {func(r *Rule) { r.Branch = "royal" }, "branch: want one of"},
		"bad severity":    {func(r *Rule) { r.Severity = "fatal" }, "severity: want one of"},
		"no reason":       {func(r *Rule) { r.Reason = "" }, "reason: required"},
		"too many things": {func(r *Rule) { r.On = make([]string, MaxOn+1) }, "at most 100 actions"},
	} {
		r := good
		c.change(&r)
		_, err := new(Compiler).Compile([]Rule{r})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := new(Compiler).Compile([]Rule{good, good}); err == nil || !strings.Contains(err.Error(), "another rule") {
		t.Errorf("the same ID twice: %v", err)
	}
	if _, err := new(Compiler).Compile(make([]Rule, MaxRules+1)); err == nil {
		t.Error("more rules than fit compile")
	}
	if _, err := new(Compiler).Compile([]Rule{good}); err != nil {
		t.Error(err)
	}
}

// TestWhatCanNotBeDecidedIsDenied: a rule that errs, one that costs too much, and an act out of bounds.
func TestWhatCanNotBeDecidedIsDenied(t *testing.T) {
	t.Parallel()
	many := make([]string, MaxNames)
	for i := range many {
		many[i] = fmt.Sprintf("%0*d", MaxName, i)
	}
	rule := Rule{ID: "BAD", Branch: Legislative, Severity: Advisory, Reason: "no"}
	for _, c := range []struct {
		when, want string
		act        Act
	}{
		{"1000 / effect.fairness > 5", "division by zero", Act{Action: "model.call", Rank: Worker}},
		{"context.amount * 10000000000 > 1", "overflow", Act{Action: "model.call", Rank: Worker,
			Context: Context{Amount: MaxAmount}}},
		{`clearances[0] == "a"`, "index out of bounds", Act{Action: "model.call", Rank: Worker}},
		{"approvers.exists(a, clearances.exists(b, a == b + '!'))", "cost limit exceeded",
			Act{Action: "model.call", Rank: Worker, Context: Context{Approvers: many, Clearances: many}}},
	} {
		rule.When = c.when
		d := gateOf(t, new(Compiler), []Rule{rule}).Decide(c.act)
		if d.Verdict != Deny || !strings.Contains(d.Reason, "rule BAD could not be decided") ||
			!strings.Contains(d.Reason, c.want) {
			t.Errorf("%s: got %s (%s), want deny with %q", c.when, d.Verdict, d.Reason, c.want)
		}
	}
	g := genesisGate(t)
	for name, a := range map[string]Act{
		"no action":        {Rank: Worker},
		"long command":     {Action: "exec", Context: Context{Command: strings.Repeat("x", MaxText+1)}},
		"not UTF-8":        {Action: "exec", Context: Context{Path: "\xff"}},
		"many clearances":  {Action: "exec", Context: Context{Clearances: make([]string, MaxNames+1)}},
		"level":            {Action: "exec", Context: Context{Given: Effect{1001}}},
		"negative level":   {Action: "exec", Context: Context{Given: Effect{0, -1}}},
		"negative amount":  {Action: "exec", Context: Context{Amount: -1}},
		"drift":            {Action: "exec", Context: Context{Drift: 1001}},
		"environment":      {Action: "exec", Scope: Scope{Class: "production"}},
		"long agent":       {Action: "exec", Agent: strings.Repeat("a", MaxName+1)},
		"long clearance":   {Action: "exec", Context: Context{Clearances: []string{strings.Repeat("a", MaxName+1)}}},
		"amount too large": {Action: "exec", Context: Context{Amount: MaxAmount + 1}},
	} {
		if d := g.Decide(a); d.Verdict != Deny || !strings.Contains(d.Reason, "can not be judged") {
			t.Errorf("%s: got %s (%s)", name, d.Verdict, d.Reason)
		}
	}
}

// TestEveryBranchThatHasARuleIsHeard: rules for everything, a class, a name and several of them, asked once each.
func TestEveryBranchThatHasARuleIsHeard(t *testing.T) {
	t.Parallel()
	chance, c := kit.Rand(t), new(Compiler)
	targets := []string{"", "model.call", "exec", "nobody.knows"}
	for _, class := range Classes {
		targets = append(targets, string(class))
	}
	for range 50 {
		var rules []Rule
		for i := range 1 + chance.IntN(20) {
			r := Rule{ID: fmt.Sprintf("R-%02d", i), Branch: Branches[chance.IntN(3)], Severity: Severities[chance.IntN(4)],
				When: "effect.risk >= 0", Reason: "no"}
			for range chance.IntN(4) {
				if on := targets[chance.IntN(len(targets))]; on != "" {
					r.On = append(r.On, on)
				}
			}
			rules = append(rules, r)
		}
		chance.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		g := gateOf(t, c, rules)
		for _, a := range append(Actions(), Action{Name: "nobody.knows", Class: Other}) {
			want := map[Branch][]string{}
			for _, r := range rules {
				if len(r.On) == 0 || slices.Contains(r.On, a.Name) || slices.Contains(r.On, string(a.Class)) {
					want[r.Branch] = append(want[r.Branch], r.ID)
				}
			}
			got := map[Branch][]string{}
			for _, o := range g.Decide(Act{Action: a.Name, Rank: Worker}).Opinions {
				got[o.Branch] = o.Evaluated
			}
			for _, ids := range want {
				slices.Sort(ids)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: asked %v, want %v", a.Name, got, want)
			}
		}
	}
}

// TestOrderAndCompanyOfRulesDoNotMatter: rules in any order, and a gate that was compiled anew, decide alike.
func TestOrderAndCompanyOfRulesDoNotMatter(t *testing.T) {
	t.Parallel()
	chance := kit.Rand(t)
	first := genesisGate(t)
	for range 5 {
		rules := Genesis()
		chance.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		again := gateOf(t, new(Compiler), rules)
		for _, a := range Actions() {
			act := Act{Action: a.Name, Rank: Worker, Scope: Scope{Class: Production}, Context: Context{Outside: true,
				First: true, Amount: 20_000}}
			if got, want := again.Decide(act), first.Decide(act); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: got %+v, want %+v", a.Name, got, want)
			}
		}
	}
}

// TestEveryPartOfARuleIsInTheVersion: two constitutions that differ anywhere have different versions.
func TestEveryPartOfARuleIsInTheVersion(t *testing.T) {
	t.Parallel()
	c := new(Compiler)
	seen := map[string]bool{genesisGate(t).Version(): true}
	for i, change := range []func(*Rule){
		func(r *Rule) { r.ID = "GOV-999" }, func(r *Rule) { r.Title += "x" },
		func(r *Rule) { r.Branch = Executive }, func(r *Rule) { r.Severity = Critical },
		func(r *Rule) { r.When = "true" }, func(r *Rule) { r.Reason += "x" }, func(r *Rule) { r.Reference += "x" },
		func(r *Rule) { r.On = []string{"read"} }, func(r *Rule) { r.On = []string{"re", "ad"} },
		func(r *Rule) { r.Title, r.Reference = r.Title[:1], r.Title[1:]+r.Reference },
	} {
		rules := Genesis()
		change(&rules[0])
		v := gateOf(t, c, rules).Version()
		if seen[v] {
			t.Errorf("change %d has the version of another constitution", i)
		}
		seen[v] = true
	}
}

// TestTenThousandRules compile, and one more is refused above.
func TestTenThousandRules(t *testing.T) {
	t.Parallel()
	rules := make([]Rule, MaxRules)
	for i := range rules {
		rules[i] = Rule{ID: fmt.Sprintf("R-%d", i), Branch: Executive, Severity: Warning, On: []string{"deploy"},
			When: "effect.risk > 900", Reason: "no"}
	}
	rules[5_000].When = "effect.risk > 300"
	d := gateOf(t, new(Compiler), rules).Decide(Act{Action: "deploy", Rank: Worker})
	if got := spoken(d); len(d.Evaluated()) != MaxRules || !slices.Equal(got, []string{"R-5000"}) {
		t.Errorf("%d rules were asked, %v spoke", len(d.Evaluated()), got)
	}
}

// FuzzDecide: any act gets a decision that is its strictest opinion, the same one each time.
func FuzzDecide(f *testing.F) {
	f.Add("exec", "ada", "worker", "prod", "/w/x", "personal", int64(12), 700, uint8(5))
	f.Add("", "", "", "", "", "", int64(-1), -1, uint8(0))
	g := genesisGate(f)
	f.Fuzz(func(t *testing.T, action, agent, rank, class, path, data string, amount int64, level int, flags uint8) {
		on := func(bit int) bool { return flags>>bit&1 == 1 }
		a := Act{Action: action, Agent: agent, Rank: Rank(rank), Scope: Scope{Class: EnvironmentClass(class),
			HumanApproval: on(0)},
			Context: Context{Path: path, Workspace: "/w", Data: data, Amount: amount, Given: Effect{Level(level)},
				Outside: on(1), First: on(2), Irreversible: on(3), Incident: on(4)}}
		d := g.Decide(a)
		strictest := Permit
		for _, o := range d.Opinions {
			strictest = max(strictest, o.Verdict)
		}
		if a.Check() != nil {
			strictest = Deny
		}
		if d.Verdict != strictest || (d.Verdict != Permit && d.Reason == "") {
			t.Fatalf("%+v: %s (%s), the strictest opinion is %s", a, d.Verdict, d.Reason, strictest)
		}
		if again := g.Decide(a); !reflect.DeepEqual(again, d) {
			t.Fatalf("decided twice: %+v and %+v", d, again)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			rules := make([]Rule, n)
			for i := range rules {
				when := fmt.Sprintf(`effect.risk >= %d && effect.magnitude > env.threshold`, 701+i)
				rules[i] = Rule{ID: fmt.Sprintf("R-%03d", i), Branch: Branches[i%3], Severity: Blocking, When: when, Reason: "no"}
			}
			g := gateOf(b, new(Compiler), rules)
			b.ReportAllocs()
			for b.Loop() {
				g.Decide(shellCommand)
			}
		})
	}
	b.Run("genesis", func(b *testing.B) {
		g := genesisGate(b)
		b.ReportAllocs()
		for b.Loop() {
			g.Decide(shellCommand)
		}
	})
}
