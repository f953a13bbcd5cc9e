package governance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Change is what an amendment does to the rules. A rule with an ID that is there supersedes the other.
type Change struct {
	Put  []Rule   `cbor:"1,keyasint,omitempty"`
	Drop []string `cbor:"2,keyasint,omitempty"` // IDs
}

// Empty reports whether a change does nothing.
func (c Change) Empty() bool { return len(c.Put) == 0 && len(c.Drop) == 0 }

// Core reports whether a rule of the genesis is of the core: it can stop an act.
func (r Rule) Core() bool { return r.Severity == Blocking || r.Severity == Critical }

// Amend applies a change to rules that stem from the genesis rules, and refuses what the amendment rule does not allow.
// The amendment rule is anchored in the program, as the genesis rules are:
//
//   - a genesis rule is never dropped;
//   - it is superseded only by a rule of the same branch that is at least as severe;
//   - where it is of the core, the other also has the same predicate, about the same actions;
//   - added rules are superseded and dropped freely.
//
// The strictest opinion is the decision, so an added rule never permits what another one refuses.
func Amend(rules []Rule, ch Change) ([]Rule, error) {
	var wrong []error
	out := slices.Clone(rules)
	for _, id := range ch.Drop {
		i := indexOf(out, id)
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Errorf("drop %.64s: there is no such rule", id))
		case genesisRule(id) != nil:
			wrong = append(wrong, fmt.Errorf("drop %s: a genesis rule stays; supersede it by one that is not looser", id))
		default:
			out = slices.Delete(out, i, i+1)
		}
	}
	put := map[string]bool{}
	for _, r := range ch.Put {
		if put[r.ID] {
			wrong = append(wrong, fmt.Errorf("rule %.64s: is there twice", r.ID))
		}
		put[r.ID] = true
		if err := cmp.Or(r.Check(), mayReplace(r)); err != nil {
			wrong = append(wrong, err)
			continue
		}
		if i := indexOf(out, r.ID); i >= 0 {
			out[i] = r
		} else {
			out = append(out, r)
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if err := HoldsCore(out); err != nil {
		return nil, err
	}
	return out, nil
}

func indexOf(rules []Rule, id string) int {
	return slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
}

var genesisByID = func() map[string]Rule {
	m := map[string]Rule{}
	for _, r := range Genesis() {
		m[r.ID] = r
	}
	return m
}()

func genesisRule(id string) *Rule {
	if r, ok := genesisByID[id]; ok {
		return &r
	}
	return nil
}

// mayReplace refuses a rule that is looser than the genesis rule with its ID.
func mayReplace(r Rule) error {
	was := genesisRule(r.ID)
	if was == nil {
		return nil
	}
	switch {
	case r.Branch != was.Branch:
		return fmt.Errorf("rule %s: branch: a genesis rule stays with the %s branch", r.ID, was.Branch)
	case slices.Index(Severities, r.Severity) < slices.Index(Severities, was.Severity):
		return fmt.Errorf("rule %s: severity: a genesis rule is not loosened from %s to %s", r.ID, was.Severity, r.Severity)
	case was.Core() && strings.TrimSpace(r.When) != was.When:
		return fmt.Errorf("rule %s: when: the predicate of a core rule does not change; add another rule", r.ID)
	case was.Core() && !slices.Equal(r.On, was.On):
		return fmt.Errorf("rule %s: on: a core rule stays about the same actions; add another rule", r.ID)
	}
	return nil
}

// HoldsCore reports what is missing of the genesis rules in a constitution, or is looser in it.
func HoldsCore(rules []Rule) error {
	for _, was := range Genesis() {
		i := indexOf(rules, was.ID)
		if i < 0 {
			return fmt.Errorf("rule %s: a genesis rule is missing", was.ID)
		}
		if err := mayReplace(rules[i]); err != nil {
			return err
		}
	}
	return nil
}
