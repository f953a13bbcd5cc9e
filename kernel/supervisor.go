package kernel

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Strategy says what is started again when a supervised process ends.
type Strategy string

// The strategies. The first three start again after every end.
const (
	OneForOne  Strategy = "one_for_one"  // the process that ended
	OneForAll  Strategy = "one_for_all"  // every process of its group
	RestForOne Strategy = "rest_for_one" // it, and those that were started after it
	Permanent  Strategy = "permanent"    // nothing: what ended stays ended
	Transient  Strategy = "transient"    // the process, if it failed
)

// Strategies are all of them.
var Strategies = []Strategy{OneForOne, OneForAll, RestForOne, Permanent, Transient}

// ParseStrategy reads a strategy; "always", "on-failure" and "never" are other words for
// one_for_one, transient and permanent.
func ParseStrategy(s string) (Strategy, error) {
	switch s {
	case "always":
		return OneForOne, nil
	case "on-failure":
		return Transient, nil
	case "never":
		return Permanent, nil
	}
	if v := Strategy(strings.ReplaceAll(s, "-", "_")); slices.Contains(Strategies, v) {
		return v, nil
	}
	return "", errorf(BadRequest,
		"restart strategy %q: give one_for_one (always), one_for_all, rest_for_one, transient (on-failure) or "+
			"permanent (never)", s)
}

// A Child is what a supervisor starts again. Names are unique in a supervisor.
type Child struct {
	Name     string
	Group    string // such as "web" or "app/web"; the group "app" is above "app/web"
	Strategy Strategy
}

// Budget bounds how often a group is started again. Zero values are the defaults.
type Budget struct {
	Restarts int           // RestartBudget
	Window   time.Duration // RestartWindow
}

// A Decision says what is to be done about the end of a process: stop some others, the last
// one first, then start some at the given time, in their order. If GaveUp is not empty,
// these were given up: they are stopped too, and are not started again.
type Decision struct {
	Stop   []string
	Start  []string
	At     time.Time
	Pause  time.Duration // between the end and At
	GaveUp []string
	Why    string // of GaveUp, and of an escalation
	// Escalated names the groups whose budget was spent, the lowest first.
	Escalated []string
}

// A Supervisor decides what is started again, and when. It is a value without a clock and
// belongs to one goroutine. A node has ten thousand children, and all of them may end at once, so
// no step looks through those of other groups.
type Supervisor struct {
	budget   Budget
	children map[string]*member
	groups   map[string][]*member // of each group and of the groups below it, by order
	added    uint64
	restarts map[string][]time.Time // of each group, within the window
}

// A member is a child and its place among those that were added.
type member struct {
	Child
	order uint64
}

// NewSupervisor returns a supervisor without children.
func NewSupervisor(b Budget) *Supervisor {
	b.Restarts, b.Window = cmp.Or(b.Restarts, RestartBudget), cmp.Or(b.Window, RestartWindow)
	return &Supervisor{budget: b, children: map[string]*member{}, groups: map[string][]*member{},
		restarts: map[string][]time.Time{}}
}

// Add adds a child, or replaces the one of its name in its place.
func (s *Supervisor) Add(c Child) {
	c.Group = cmp.Or(c.Group, c.Name)
	c.Strategy = cmp.Or(c.Strategy, OneForOne)
	m := &member{Child: c}
	if was, ok := s.children[c.Name]; ok {
		m.order = was.order
		s.leave(was)
	} else {
		s.added++
		m.order = s.added
	}
	s.children[c.Name] = m
	for group := range upward(c.Group) {
		at, _ := place(s.groups[group], m.order)
		s.groups[group] = slices.Insert(s.groups[group], at, m)
	}
}

// Remove forgets a child, and the restarts of its group if it was the last one of it.
func (s *Supervisor) Remove(name string) {
	m, ok := s.children[name]
	if !ok {
		return
	}
	delete(s.children, name)
	s.leave(m)
	if len(s.groups[m.Group]) == 0 {
		delete(s.restarts, m.Group)
	}
}

// leave takes a child out of its groups.
func (s *Supervisor) leave(m *member) {
	for group := range upward(m.Group) {
		of := s.groups[group]
		if at, ok := place(of, m.order); ok {
			of = slices.Delete(of, at, at+1)
		}
		if s.groups[group] = of; len(of) == 0 {
			delete(s.groups, group)
		}
	}
}

// place finds the child of an order, or where it would be.
func place(of []*member, order uint64) (int, bool) {
	return slices.BinarySearchFunc(of, order, func(m *member, order uint64) int { return cmp.Compare(m.order, order) })
}

// upward yields a group and those above it.
func upward(group string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := len(group); at >= 0; at = strings.LastIndexByte(group, '/') {
			if group = group[:at]; !yield(group) {
				return
			}
		}
	}
}

// Children returns the children in their order.
func (s *Supervisor) Children() (out []Child) {
	all := slices.SortedFunc(maps.Values(s.children), func(a, b *member) int { return cmp.Compare(a.order, b.order) })
	for _, m := range all {
		out = append(out, m.Child)
	}
	return out
}

// below returns the names of the children of a group and of the groups below it.
func (s *Supervisor) below(group string) (names []string) {
	for _, m := range s.groups[group] {
		names = append(names, m.Name)
	}
	return names
}

// Backoff is the pause before the n-th restart in a row, from 1.
func Backoff(n int) time.Duration {
	d := FirstBackoff
	for ; n > 1 && d < MostBackoff; n-- {
		d *= 2
	}
	return min(d, MostBackoff)
}

// Ended decides about the end of a child at now.
func (s *Supervisor) Ended(name string, x Exit, now time.Time) Decision {
	c, ok := s.children[name]
	if !ok {
		return Decision{}
	}
	if c.Strategy == Permanent || c.Strategy == Transient && !x.Failed() {
		s.Remove(name)
		return Decision{}
	}
	var start []string
	switch c.Strategy {
	case OneForAll:
		start = s.below(c.Group)
	case RestForOne:
		for _, other := range s.groups[c.Group] {
			if other.Group == c.Group && other.order >= c.order {
				start = append(start, other.Name)
			}
		}
	default:
		start = []string{name}
	}
	return s.restart(c.Group, name, start, now)
}

// restart starts children of a group again, or escalates to the group above when the
// group's budget is spent.
func (s *Supervisor) restart(group, name string, start []string, now time.Time) (d Decision) {
	for {
		spent := slices.DeleteFunc(s.restarts[group], func(at time.Time) bool { return now.Sub(at) >= s.budget.Window })
		s.restarts[group] = spent
		if len(spent) < s.budget.Restarts {
			s.restarts[group] = append(spent, now)
			d.Pause = Backoff(len(spent) + 1)
			d.At, d.Start = now.Add(d.Pause), start
			d.Stop = without(start, name)
			return d
		}
		d.Escalated = append(d.Escalated, group)
		d.Why = fmt.Sprintf("%d restarts of %s within %s: as many as are allowed", len(spent), group, s.budget.Window)
		delete(s.restarts, group)
		above := strings.LastIndexByte(group, '/')
		if above < 0 {
			d.GaveUp = s.below(group)
			d.Stop = without(d.GaveUp, name)
			for _, n := range d.GaveUp {
				s.Remove(n)
			}
			return d
		}
		start = s.below(group) // as a whole, as one child of the group above
		group = group[:above]
	}
}

// without returns names in the reverse order, without one.
func without(names []string, name string) (out []string) {
	for _, n := range slices.Backward(names) {
		if n != name {
			out = append(out, n)
		}
	}
	return out
}
