package governance

import (
	"fmt"
	"testing"
)

// BenchmarkBesideToolkit has rules of one comparison each, as testdata/toolkit/toolkit.py has, which measures the agent
// governance toolkit with them: testdata/toolkit/measure runs both in turns. Every rule is asked and none speaks.
func BenchmarkBesideToolkit(b *testing.B) {
	act := Act{Action: "fs.move", Agent: "ada", Rank: Worker, Scope: Scope{Class: Development}}
	for _, n := range []int{1, 100} {
		rules := make([]Rule, n)
		for i := range rules {
			rules[i] = Rule{ID: fmt.Sprintf("R-%03d", i), Branch: Branches[i%3], Severity: Critical,
				When: fmt.Sprintf("effect.risk > %d", 700+i), Reason: "no"}
		}
		g, err := new(Compiler).Compile(rules)
		if err != nil {
			b.Fatal(err)
		}
		worse := act
		worse.Context.Given[Risk] = 950
		if g.Decide(worse).Verdict != Deny {
			b.Fatal("the rules do not decide as they should")
		}
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := g.Decide(act); d.Verdict != Permit || len(d.Evaluated()) != n {
					b.Fatal(d.Verdict, d.Reason)
				}
			}
		})
	}
}
