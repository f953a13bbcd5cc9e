package governance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"cel.dev/cel-go/common/types"
)

// What is evaluated without CEL comes to what CEL says: random expressions over random acts.
func TestPlainPredicatesAgreeWithCEL(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range 1_500 {
		when := randomTruth(r, 3)
		p, err := compile(Executive, when)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if p.counted {
			continue // CEL counts its cost
		}
		if p.plain == nil {
			t.Fatalf("%s: is left to CEL", when)
		}
		for range 8 {
			a := randomAct(r)
			action, effect, _ := Weigh(a)
			f := factsOf(&a, action, effect)
			frame, err := f.shared()
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := p.program.Eval(frame)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			got := p.plain(f)
			if types.Bool(got) != want {
				t.Fatalf("%s: got %v, CEL says %v of %+v", when, got, want, a)
			}
			if got {
				held++
			}
			f.close()
		}
	}
	if held < 1_000 {
		t.Errorf("only %d were true: the test says little", held)
	}
}

// The rules of the program need no CEL when they are asked.
func TestRulesOfTheProgramArePlain(t *testing.T) {
	t.Parallel()
	rules := Genesis()
	for _, p := range Packs() {
		rules = append(rules, p.Rules...)
	}
	for _, r := range rules {
		if p, err := compile(r.Branch, r.When); err != nil || p.plain == nil {
			t.Errorf("%s: %s: %v", r.ID, r.When, err)
		}
	}
}

// What can err, or has a cost that counts, is left to CEL.
func TestOnlyPlainPredicatesLeaveCEL(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		`context.amount + 1 > 5`, `clearances.exists(c, c == agent)`, `agent.matches("a+")`, `approvers.size() > 2`,
		`(effect.risk > 5 ? agent : role) == "x"`,
		`context.outside == context.first`, `clearances == ["a"]`, `agent in [role, "x"]`, `effect.risk in [1, 2]`,
	} {
		if p, err := compile(Executive, when); err != nil || p.plain != nil {
			t.Errorf("%s: plain %v, %v", when, p.plain != nil, err)
		}
	}
}

var someTexts = []string{"", "a", "dev", "worker", "exec", "rm -rf /", "secret", "é"}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

func randomTruth(r *rand.Rand, depth int) string {
	if depth > 0 && r.IntN(3) > 0 {
		switch r.IntN(3) {
		case 0:
			return "!(" + randomTruth(r, depth-1) + ")"
		case 1:
			return "(" + randomTruth(r, depth-1) + " && " + randomTruth(r, depth-1) + ")"
		}
		return "(" + randomTruth(r, depth-1) + " || " + randomTruth(r, depth-1) + ")"
	}
	operator := pick(r, []string{"==", "!=", "<", "<=", ">", ">="})
	switch r.IntN(6) {
	case 0:
		return pick(r, []string{"true", "false", "context.outside", "context.first", "context.inside"})
	case 1:
		return fmt.Sprintf("%s %s %s", randomNumber(r), operator, randomNumber(r))
	case 2:
		return fmt.Sprintf("%s %s %s", randomText(r), operator, randomText(r))
	case 3:
		return fmt.Sprintf("%s.%s(%s)", randomText(r), pick(r, []string{"contains", "startsWith", "endsWith"}), randomText(r))
	case 4:
		return fmt.Sprintf("%s in [%q, %q]", randomText(r), pick(r, someTexts), pick(r, someTexts))
	}
	return fmt.Sprintf("%s in %s", randomText(r), pick(r, []string{"clearances", "approvers"}))
}

func randomNumber(r *rand.Rand) string {
	return pick(r, []string{"effect.risk", "effect.magnitude", "env.threshold", "context.amount", "context.drift",
		"hour.count", "day.amount", fmt.Sprint(r.IntN(1_000)), "0", "-5"})
}

func randomText(r *rand.Rand) string {
	return pick(r, []string{"action.name", "env.class", "role", "rank", "context.data", "agent",
		fmt.Sprintf("%q", pick(r, someTexts))})
}

func randomAct(r *rand.Rand) Act {
	return Act{Action: pick(r, actions).Name, Agent: pick(r, someTexts), Role: pick(r, someTexts),
		Rank:  pick(r, []Rank{Worker, Manager, Chief, Board, Nobody}),
		Scope: Scope{Class: pick(r, []EnvironmentClass{Development, Staging, Production, Unnamed})},
		Context: Context{Path: pick(r, []string{"", "/home/a/x", "../x"}), Workspace: "/home/a",
			Data:   pick(r, []string{"", PersonalData, SecretData}),
			Amount: r.Int64N(2_000), Drift: Level(r.IntN(1_001)), Outside: r.IntN(2) == 0, First: r.IntN(2) == 0,
			Past:       pick(r, []*Past{nil, {Hour: Done{Count: 40}, DayAll: Done{Amount: 500}}}),
			Clearances: []string{pick(r, someTexts), "record"}, Approvers: []string{pick(r, someTexts)}}}
}
