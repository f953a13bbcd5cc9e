package governance

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A Compiler makes gates of rules and keeps the predicates that it has compiled. Several goroutines may use it.
type Compiler struct {
	mu       sync.Mutex
	compiled map[source]predicate // guarded by mu
}

// A source is the text of a predicate and the language that it is in.
type source struct {
	branch Branch
	when   string
}

// Compile makes a gate of a constitution's rules, or reports everything that is wrong with them.
func (c *Compiler) Compile(rules []Rule) (*Gate, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("a constitution has at most %d rules, this one has %d", MaxRules, len(rules))
	}
	g := &Gate{on: map[string][]int{}}
	var wrong []error
	for _, r := range rules {
		if err := r.Check(); err != nil {
			wrong = append(wrong, err)
			continue
		}
		p, err := c.predicate(r.Branch, r.When)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("rule %s: when: %w", r.ID, err))
			continue
		}
		r.On = slices.Clone(r.On)
		reason := strings.Split(r.Reason, "{act}")
		reason[0] = sentence(reason[0])
		g.rules = append(g.rules, compiledRule{r, p, reason})
	}
	slices.SortStableFunc(g.rules, func(a, b compiledRule) int {
		return cmp.Or(cmp.Compare(slices.Index(Branches, a.Branch), slices.Index(Branches, b.Branch)),
			strings.Compare(a.ID, b.ID))
	})
	seen := map[string]bool{}
	for i, r := range g.rules {
		if seen[r.ID] {
			wrong = append(wrong, fmt.Errorf("rule %s: id: there is another rule with it", r.ID))
		}
		seen[r.ID] = true
		if len(r.On) == 0 {
			g.all = append(g.all, i)
		}
		for _, on := range r.On {
			if list := g.on[on]; len(list) == 0 || list[len(list)-1] != i {
				g.on[on] = append(list, i)
			}
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	g.version = versionOf(g.rules)
	return g, nil
}

func (c *Compiler) predicate(branch Branch, when string) (predicate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := source{branch, when}
	if p, ok := c.compiled[key]; ok {
		return p, nil
	}
	p, err := compile(branch, when)
	if err != nil {
		return predicate{}, err
	}
	if c.compiled == nil || len(c.compiled) >= maxCached {
		c.compiled = map[source]predicate{}
	}
	c.compiled[key] = p
	return p, nil
}

// A Gate is a compiled constitution. It does not change, and several goroutines may use it.
type Gate struct {
	rules   []compiledRule   // by branch, then ID
	all     []int            // rules that are about every action, ascending
	on      map[string][]int // by action or class, ascending
	version string
}

type compiledRule struct {
	Rule
	predicate
	reason []string // the parts between which the action's title stands
}

// Rules returns the rules by branch and ID.
func (g *Gate) Rules() []Rule {
	out := make([]Rule, len(g.rules))
	for i, r := range g.rules {
		out[i] = r.Rule
	}
	return out
}

// Version names the rules: the SHA-256, in hexadecimal digits, of the rules by branch and ID. Of each rule these texts
// follow each other, with the length in bytes as 8 bytes (big endian) before each: ID, title, branch, severity,
// predicate, reason, reference, and then its actions and classes with their number, as 8 bytes, before them. Gates of
// the same version decide alike on nodes of the same feature level.
func (g *Gate) Version() string { return g.version }

func versionOf(rules []compiledRule) string {
	h := sha256.New()
	number := func(n int) { h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	for _, r := range rules {
		for _, s := range []string{r.ID, r.Title, string(r.Branch), string(r.Severity), r.When, r.Reason, r.Reference} {
			number(len(s))
			h.Write([]byte(s))
		}
		number(len(r.On))
		for _, s := range r.On {
			number(len(s))
			h.Write([]byte(s))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A Decision is the gate's answer, with everything that led to it.
type Decision struct {
	Verdict   Verdict
	Reason    string
	Action    Action
	Effect    Effect
	Steps     []Step
	Threshold Level
	Opinions  []Opinion // of the branches that have a rule for the action, in the order of [Branches]
}

// An Opinion is what one branch says, from its own rules alone.
type Opinion struct {
	Branch    Branch
	Verdict   Verdict
	Evaluated []string // IDs of its rules for the action
	Spoken    []Voice  // those whose predicate was true, or could not be decided
}

// A Voice is one rule that speaks.
type Voice struct {
	Rule     string
	Title    string
	Severity Severity
	Verdict  Verdict
	Reason   string
	Failed   bool // its predicate could not be decided: the act is denied
}

// Evaluated returns the IDs of all rules that were asked, in the order of the opinions.
func (d Decision) Evaluated() []string {
	n := 0
	for _, o := range d.Opinions {
		n += len(o.Evaluated)
	}
	ids := make([]string, 0, n)
	for _, o := range d.Opinions {
		ids = append(ids, o.Evaluated...)
	}
	return ids
}

// Decide weighs an act, asks each branch, and answers the strictest opinion.
func (g *Gate) Decide(a Act) Decision {
	d := Decision{Threshold: a.Scope.Threshold()}
	if err := a.Check(); err != nil {
		d.Verdict, d.Reason = Deny, "the act can not be judged: "+err.Error()
		return d
	}
	d.Action, d.Effect, d.Steps = Weigh(a)
	f := factsOf(&a, d.Action, d.Effect)
	defer f.close()
	spoken := -1
	// The rules come by branch, so that all opinions share one list.
	d.Opinions = make([]Opinion, 0, len(Branches))
	asked := make([]string, 0, len(g.all)+len(g.on[string(d.Action.Class)])+len(g.on[d.Action.Name]))
	for i := range g.about(d.Action) {
		r := &g.rules[i]
		o := opinionOf(&d, r.Branch)
		asked = append(asked, r.ID)
		o.Evaluated = asked[len(asked)-len(o.Evaluated)-1 : len(asked) : len(asked)]
		holds, err := r.holds(f)
		if !holds && err == nil {
			continue
		}
		v := r.speak(f, err)
		o.Spoken = append(o.Spoken, v)
		o.Verdict = max(o.Verdict, v.Verdict)
		if weight := int(v.Verdict)*len(Severities) + slices.Index(Severities, v.Severity); weight > spoken {
			spoken, d.Reason = weight, v.Reason
		}
		d.Verdict = max(d.Verdict, v.Verdict)
	}
	return d
}

// opinionOf returns the opinion of a branch, which rules come in the order of.
func opinionOf(d *Decision, b Branch) *Opinion {
	if n := len(d.Opinions); n == 0 || d.Opinions[n-1].Branch != b {
		d.Opinions = append(d.Opinions, Opinion{Branch: b})
	}
	return &d.Opinions[len(d.Opinions)-1]
}

// about yields the rules for an action once each, ascending: those for everything, its class and its name.
func (g *Gate) about(a Action) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		lists := [3][]int{g.all, g.on[string(a.Class)], g.on[a.Name]}
		for {
			next := -1
			for _, l := range lists {
				if len(l) > 0 && (next < 0 || l[0] < next) {
					next = l[0]
				}
			}
			if next < 0 || !yield(next) {
				return
			}
			for i, l := range lists {
				if len(l) > 0 && l[0] == next {
					lists[i] = l[1:]
				}
			}
		}
	}
}

// speak returns what a rule says whose predicate is true, or can not be decided.
func (r *compiledRule) speak(f *facts, err error) Voice {
	v := Voice{Rule: r.ID, Title: r.Title, Severity: r.Severity}
	if err != nil {
		v.Verdict, v.Failed = Deny, true
		v.Reason = fmt.Sprintf("rule %s could not be decided: %s", r.ID, firstLine(err))
		return v
	}
	v.Verdict = r.verdict(f.act)
	v.Reason = r.told(f.action.Title)
	return v
}

// told returns the reason for an action with a title, as a sentence.
func (r *compiledRule) told(title string) string {
	if len(r.reason) == 1 {
		return r.reason[0]
	}
	if r.reason[0] != "" {
		return strings.Join(r.reason, title)
	}
	return sentence(title) + strings.Join(r.reason[1:], title)
}

// verdict is what it means that the rule speaks. A person can lift what blocks, where there is one to ask, and has
// lifted what a person does; nobody lifts what is critical.
func (r *compiledRule) verdict(a *Act) Verdict {
	switch r.Severity {
	case Advisory:
		return Permit
	case Warning:
		return Warn
	case Blocking:
		if a.Context.Approved {
			return Warn
		}
		if len(a.Context.Approvers) > 0 || a.Scope.HumanApproval {
			return Defer
		}
	}
	return Deny
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
