package governance

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
)

// Narrowed returns a gate for acts that differ from a only in the variables for which varies is true. It leaves out the
// rules that are silent in each such act: those about other actions, and those whose predicate is false whatever these
// variables are. It decides such acts as g does, and an opinion is missing only where a branch has no rule left.
func (g *Gate) Narrowed(a Act, varies func(variable string) bool) *Gate {
	action, effect, _ := Weigh(a)
	f := factsOf(&a, action, effect)
	var unknown []*cel.AttributePatternType
	for _, v := range variables {
		if varies(v.Name) {
			unknown = append(unknown, cel.AttributePattern(v.Name))
		}
	}
	out := &Gate{on: map[string][]int{}, version: g.version}
	known, err := cel.PartialVars(f, unknown...)
	for i := range g.about(action) {
		if r := g.rules[i]; err != nil || !r.silent(known) {
			out.all = append(out.all, len(out.rules))
			out.rules = append(out.rules, r)
		}
	}
	return out
}

// silent reports whether the predicate is false whatever the unknown variables are. What can not be said counts as no.
func (p predicate) silent(known cel.PartialActivation) bool {
	program, err := p.partial()
	if err != nil {
		return false
	}
	out, _, err := program.Eval(known)
	return err == nil && out == types.False
}

// Branches lists the branches that have a rule in the gate, in their order.
func (g *Gate) Branches() (out []Branch) {
	for i := range g.rules {
		if b := g.rules[i].Branch; !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// Reads reports whether a rule reads a variable.
func (g *Gate) Reads(variable string) bool {
	return slices.ContainsFunc(g.rules, func(r compiledRule) bool { return slices.Contains(r.reads, variable) })
}

// Len returns the number of rules.
func (g *Gate) Len() int { return len(g.rules) }
