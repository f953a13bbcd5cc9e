// Package opa compares the gate with Open Policy Agent: the same rules about the same act in one run. It is a module of
// its own, so that OPA is no dependency of the product.
package opa

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/selvage-mesh/selvage/governance"
)

// act has a risk above every rule's limit but a magnitude below the threshold: each rule is asked, and none speaks.
var act = governance.Act{
	Action: "fs.move",
	Agent:  "ada",
	Rank:   governance.Worker,
	Scope:  governance.Scope{Class: governance.Development},
}

// gateOf has n rules of the form of GOV-001.
func gateOf(b *testing.B, n int) *governance.Gate {
	rules := make([]governance.Rule, n)
	for i := range rules {
		rules[i] = governance.Rule{ID: fmt.Sprintf("R-%03d", i), Branch: governance.Branches[i%3],
			Severity: governance.Blocking,
			When:     fmt.Sprintf(`effect.risk >= %d && effect.magnitude > env.threshold && !("risk-review" in clearances)`, i),
			Reason:   "no"}
	}
	g, err := new(governance.Compiler).Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// queryOf has the same rules in Rego: each adds itself to the set of those that speak.
func queryOf(b *testing.B, n int) rego.PreparedEvalQuery {
	var text strings.Builder
	text.WriteString("package gate\n\n")
	for i := range n {
		fmt.Fprintf(&text,
			"deny contains \"R-%03d\" if {\n\tinput.effect.risk >= %d\n\tinput.effect.magnitude > "+
				"input.env.threshold\n\tnot \"risk-review\" in input.clearances\n}\n\n", i, i)
	}
	q, err := rego.New(rego.Query("data.gate.deny"), rego.Module("gate.rego", text.String())).
		PrepareForEval(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// input is what OPA gets of the act: what the gate calculates from it.
func input() map[string]any {
	_, effect, _ := governance.Weigh(act)
	return map[string]any{
		"effect": map[string]any{"risk": int(effect[governance.Risk]), "magnitude": int(effect.Magnitude())},
		"env":    map[string]any{"threshold": int(act.Scope.Threshold())}, "clearances": []any{"record"}}
}

func BenchmarkBesideOPA(b *testing.B) {
	for _, n := range []int{1, 100} {
		g, q := gateOf(b, n), queryOf(b, n)
		b.Run(fmt.Sprintf("rules=%d/gate", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := g.Decide(act); d.Verdict != governance.Permit || len(d.Evaluated()) != n {
					b.Fatal(d.Verdict, d.Reason)
				}
			}
		})
		b.Run(fmt.Sprintf("rules=%d/opa", n), func(b *testing.B) {
			b.ReportAllocs()
			given := input()
			for b.Loop() {
				rs, err := q.Eval(b.Context(), rego.EvalInput(given))
				if err != nil || len(rs) != 1 || len(rs[0].Expressions[0].Value.([]any)) != 0 {
					b.Fatal(rs, err)
				}
			}
		})
	}
}
