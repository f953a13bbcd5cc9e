package governance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// A Variable is something that a predicate reads.
type Variable struct {
	Name     string
	Type     string   // "string", "int", "bool" or "list(string)"
	Branches []Branch // that may read it
	About    string

	size uint64 // most bytes of a string, most members of a list
	// Its value in an act: one of these is set, by the type.
	text   func(*facts) string
	number func(*facts) int64
	truth  func(*facts) bool
	names  func(*facts) []string
}

var everyBranch, executiveOnly = Branches, []Branch{Executive}

func text(name string, of func(*facts) string, size uint64, branches []Branch, about string) Variable {
	return Variable{Name: name, Type: "string", Branches: branches, About: about, size: size, text: of}
}

func number(name string, of func(*facts) int64, about string) Variable {
	return Variable{Name: name, Type: "int", Branches: everyBranch, About: about, number: of}
}

func truth(name string, of func(*facts) bool, about string) Variable {
	return Variable{Name: name, Type: "bool", Branches: everyBranch, About: about, truth: of}
}

func names(name string, of func(*facts) []string, about string) Variable {
	return Variable{Name: name, Type: "list(string)", Branches: everyBranch, About: about, size: MaxNames, names: of}
}

// of returns the value of the variable as CEL reads it.
func (v *Variable) of(f *facts) ref.Val {
	switch {
	case v.text != nil:
		return types.String(v.text(f))
	case v.number != nil:
		return types.Int(v.number(f))
	case v.truth != nil:
		return types.Bool(v.truth(f))
	}
	return types.NewStringList(types.DefaultTypeAdapter, v.names(f))
}

// variables is everything that predicates can read. A name is appended, never changed: rules use it.
var variables = append([]Variable{
	text("action.name", func(f *facts) string { return f.action.Name }, MaxName, everyBranch,
		"the action, such as fs.write_file"),
	text("action.class", func(f *facts) string { return string(f.action.Class) }, MaxName, everyBranch,
		"its class, such as write"),
	text("company", func(f *facts) string { return string(f.act.Company) }, MaxName, everyBranch, "ID of the company"),
	text("agent", func(f *facts) string { return f.act.Agent }, MaxName, executiveOnly, "who acts"),
	text("role", func(f *facts) string { return f.act.Role }, MaxName, executiveOnly, "its role, such as engineer"),
	text("rank", func(f *facts) string { return string(f.act.Rank) }, MaxName, executiveOnly,
		"worker, manager, ceo or board; empty for somebody unknown"),
	number("effect.risk", func(f *facts) int64 { return int64(f.effect[Risk]) }, "0 to 1000"),
	number("effect.fairness", func(f *facts) int64 { return int64(f.effect[Fairness]) }, "0 to 1000"),
	number("effect.privacy", func(f *facts) int64 { return int64(f.effect[Privacy]) }, "0 to 1000"),
	number("effect.novelty", func(f *facts) int64 { return int64(f.effect[Novelty]) }, "0 to 1000"),
	number("effect.security", func(f *facts) int64 { return int64(f.effect[Security]) }, "0 to 1000"),
	number("effect.magnitude", func(f *facts) int64 { return int64(f.magnitude) }, "length of the vector, 0 to 2237"),
	text("env.class", func(f *facts) string { return string(f.act.Scope.Class) }, MaxName, everyBranch,
		"dev, staging, prod, or empty"),
	number("env.threshold", func(f *facts) int64 { return int64(f.act.Scope.Threshold()) },
		"dev 900, staging 600, prod 300, else 700"),
	text("context.command", func(f *facts) string { return f.act.Context.Command }, MaxText, everyBranch, "command line"),
	text("context.path", func(f *facts) string { return f.act.Context.Path }, MaxText, everyBranch, "file"),
	truth("context.inside", func(f *facts) bool { return f.act.Context.inside() },
		"the path is in the agent's own folder"),
	text("context.data", func(f *facts) string { return f.act.Context.Data }, MaxName, everyBranch,
		"public, personal, human-subjects, secret, or empty"),
	text("context.reason", func(f *facts) string { return f.act.Context.Reason }, MaxText, everyBranch, "why it is done"),
	text("context.issue", func(f *facts) string { return f.act.Context.Issue }, MaxName, everyBranch,
		"issue that it serves"),
	text("context.revision", func(f *facts) string { return f.act.Context.Revision }, MaxName, everyBranch,
		"revision of the code that it is about"),
	number("context.amount", func(f *facts) int64 { return f.act.Context.Amount }, "money that it commits, in cents"),
	number("context.drift", func(f *facts) int64 { return int64(f.act.Context.Drift) },
		"distance from what the agent did before, 0 to 1000"),
	truth("context.outside", func(f *facts) bool { return f.act.Context.Outside }, "the target is outside the company"),
	truth("context.first", func(f *facts) bool { return f.act.Context.First }, "the agent does it for the first time"),
	truth("context.irreversible", func(f *facts) bool { return f.act.Context.Irreversible }, "it can not be undone"),
	truth("context.incident", func(f *facts) bool { return f.act.Context.Incident }, "an incident is open"),
	names("clearances", func(f *facts) []string { return f.act.Context.Clearances }, "what was cleared for this act"),
	names("approvers", func(f *facts) []string { return f.act.Context.Approvers }, "who can approve it"),
}, windowed...)

var place = func() map[string]int {
	m := make(map[string]int, len(variables))
	for i, v := range variables {
		m[v.Name] = i
	}
	return m
}()

// Variables returns everything that predicates can read.
func Variables() []Variable { return slices.Clone(variables) }

// facts are the values of the variables for one act. They are made when a predicate first reads them.
type facts struct {
	act       *Act
	action    Action
	effect    Effect
	magnitude Level
	values    []ref.Val                   // that CEL has read
	frame     *interpreter.ExecutionFrame // that the predicates of one decision share; nil until CEL evaluates one
}

// factsOf returns what predicates read; close it afterwards.
func factsOf(a *Act, action Action, effect Effect) *facts {
	return &facts{act: a, action: action, effect: effect, magnitude: effect.Magnitude()}
}

func (f *facts) close() {
	if f.frame != nil {
		f.frame.Close()
	}
}

// shared returns the frame that the predicates of one decision share.
func (f *facts) shared() (frame *interpreter.ExecutionFrame, err error) {
	if f.frame == nil {
		f.frame, err = interpreter.NewExecutionFrame(f)
	}
	return f.frame, err
}

// ResolveName implements [cel.Activation].
func (f *facts) ResolveName(name string) (any, bool) {
	i, ok := place[name]
	if !ok {
		return nil, false
	}
	if f.values == nil {
		f.values = make([]ref.Val, len(variables))
	}
	if f.values[i] == nil {
		f.values[i] = variables[i].of(f)
	}
	return f.values[i], true
}

// Parent implements [cel.Activation].
func (f *facts) Parent() cel.Activation { return nil }

// environments are the languages of the branches: they differ in the variables that are declared.
var environments = sync.OnceValues(func() (map[Branch]*cel.Env, error) {
	celTypes := map[string]*cel.Type{"string": cel.StringType, "int": cel.IntType, "bool": cel.BoolType,
		"list(string)": cel.ListType(cel.StringType)}
	all := map[Branch]*cel.Env{}
	for _, b := range Branches {
		options := []cel.EnvOption{cel.ExpressionNodeLimit(maxNodes), cel.ExpressionNestingDepthLimit(maxDepth),
			cel.ParserExpressionSizeLimit(MaxPredicate),
			cel.ParserRecursionLimit(maxDepth)}
		for _, v := range variables {
			if slices.Contains(v.Branches, b) {
				options = append(options, cel.Variable(v.Name, celTypes[v.Type]))
			}
		}
		env, err := cel.NewEnv(options...)
		if err != nil {
			return nil, fmt.Errorf("CEL environment: %w", err)
		}
		all[b] = env
	}
	return all, nil
})

// A predicate is compiled CEL.
type predicate struct {
	plain   truthOf // the same without CEL; nil where it needs CEL
	program cel.Program
	counted bool     // its cost
	reads   []string // variables, ascending
	// partial evaluates it where the values of some variables are not known.
	partial func() (cel.Program, error)
}

// holds evaluates the predicate.
func (p *predicate) holds(f *facts) (bool, error) {
	if p.plain != nil {
		return p.plain(f), nil
	}
	var input any = f // counting needs a frame of its own
	if !p.counted {
		frame, err := f.shared()
		if err != nil {
			return false, err
		}
		input = frame
	}
	out, _, err := p.program.Eval(input)
	if err != nil {
		return false, err
	}
	answer, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("the answer is not true or false")
	}
	return bool(answer), nil
}

// compile reads a predicate in the language of a branch. It refuses what does not compile, what is not a truth value,
// what uses floating point numbers or times, and what could cost more than [MaxWorstCost].
func compile(branch Branch, when string) (predicate, error) {
	all, err := environments()
	if err != nil {
		return predicate{}, err
	}
	env := all[branch]
	checked, issues := env.Compile(when)
	if err := issues.Err(); err != nil {
		return predicate{}, fmt.Errorf("does not compile for the %s branch: %s", branch, firstLine(err))
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return predicate{}, fmt.Errorf("must be true or false, is %s", checked.OutputType())
	}
	if kind := forbidden(checked.NativeRep()); kind != "" {
		return predicate{},
			fmt.Errorf("uses a value of type %s: rules have whole numbers, texts, truth values and lists", kind)
	}
	estimate, err := env.EstimateCost(checked, sizes{})
	if err != nil {
		return predicate{}, fmt.Errorf("its cost can not be estimated: %s", firstLine(err))
	}
	if estimate.Max > MaxWorstCost {
		return predicate{}, fmt.Errorf("costs up to %d in the worst case, the limit is %d", estimate.Max, MaxWorstCost)
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	counted := estimate.Max > uncountedCost
	if counted {
		options = append(options, cel.CostLimit(MaxCost))
	}
	program, err := env.Program(checked, options...)
	if err != nil {
		return predicate{}, fmt.Errorf("can not be planned: %s", firstLine(err))
	}
	partial := sync.OnceValues(func() (cel.Program, error) {
		return env.Program(checked,
			cel.EvalOptions(cel.OptPartialEval))
	})
	p := predicate{program: program, counted: counted, reads: readsOf(checked.NativeRep()), partial: partial}
	if !counted {
		p.plain = plainOf(checked.NativeRep())
	}
	return p, nil
}

// readsOf returns the variables that an expression names.
func readsOf(a *ast.AST) (out []string) {
	for _, r := range a.ReferenceMap() {
		if _, ok := place[r.Name]; ok {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out) // the order of the map does not show
	return slices.Compact(out)
}

// forbidden returns the name of a type in the expression that rules do not have, or "".
func forbidden(a *ast.AST) string {
	found := ""
	for _, t := range a.TypeMap() {
		switch t.Kind() {
		case types.DoubleKind, types.TimestampKind, types.DurationKind, types.BytesKind:
			found = max(found, t.String()) // the order of the map does not show
		}
	}
	return found
}

// sizes tells the estimate of costs how long the values of variables can be.
type sizes struct{}

func (sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

func (sizes) EstimateSize(n cost.AstNode) *cost.SizeEstimate {
	steps := n.Path()
	items := len(steps) > 0 && steps[len(steps)-1] == "@items"
	if items {
		steps = steps[:len(steps)-1]
	}
	i, ok := place[strings.Join(steps, ".")]
	if !ok || variables[i].size == 0 {
		return nil
	}
	name := cost.RangedSizeEstimate(0, MaxName)
	size := cost.RangedSizeEstimate(0, variables[i].size)
	if items {
		return &name
	}
	if variables[i].Type == "list(string)" {
		size = cost.ListSizeEstimate(size, name)
	}
	return &size
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "ERROR: <input>:"), "\n")
	return line
}
