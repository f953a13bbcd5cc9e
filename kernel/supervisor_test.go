package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func supervised(strategy Strategy, names ...string) *Supervisor {
	s := NewSupervisor(Budget{})
	for _, n := range names {
		s.Add(Child{Name: n, Group: "g", Strategy: strategy})
	}
	return s
}

// What each strategy starts again after the second of three children ended.
func TestStrategies(t *testing.T) {
	crash, over := ExitOf(1, ""), ExitOf(0, "")
	for _, c := range []struct {
		strategy    Strategy
		exit        Exit
		stop, start string
		left        int
	}{
		{OneForOne, crash, "[]", "[b]", 3},
		{OneForOne, over, "[]", "[b]", 3},
		{OneForAll, crash, "[c a]", "[a b c]", 3},
		{RestForOne, crash, "[c]", "[b c]", 3},
		{Permanent, crash, "[]", "[]", 2},
		{Transient, crash, "[]", "[b]", 3},
		{Transient, over, "[]", "[]", 2},
		{Transient, Exit{0, Killed, ""}, "[]", "[b]", 3},
	} {
		s := supervised(c.strategy, "a", "b", "c")
		d := s.Ended("b", c.exit, start)
		if fmt.Sprint(d.Stop) != c.stop || fmt.Sprint(d.Start) != c.start || len(s.Children()) != c.left {
			t.Errorf("%s after %+v: stops %v and starts %v, %d are left; want %s, %s, %d", c.strategy, c.exit, d.Stop, d.Start,
				len(s.Children()), c.stop, c.start, c.left)
		}
	}
	if d := supervised(OneForOne, "a").Ended("other", crash, start); d.Start != nil {
		t.Errorf("a stranger is started: %+v", d)
	}
}

func TestBackoffDoublesTo30Seconds(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond,
		5: 1600 * time.Millisecond, 9: 25600 * time.Millisecond, 10: 30 * time.Second, 1000: 30 * time.Second} {
		if got := Backoff(n); got != want {
			t.Errorf("before restart %d: %s, want %s", n, got, want)
		}
	}
}

// A child that crashes at once is started 5 times, after growing pauses, and then given up:
// it ends after 3.1 s of virtual time, not in a busy loop.
func TestCrashLoopEndsInTheBudget(t *testing.T) {
	s, now := supervised(OneForOne, "a", "b"), start
	for n := 1; n <= RestartBudget; n++ {
		d := s.Ended("a", ExitOf(1, ""), now)
		if d.Pause != Backoff(n) || !d.At.Equal(now.Add(d.Pause)) || len(d.Start) != 1 {
			t.Fatalf("restart %d: %+v", n, d)
		}
		now = d.At
	}
	d := s.Ended("a", ExitOf(1, ""), now)
	if !slices.Equal(d.GaveUp, []string{"a", "b"}) || !slices.Equal(d.Stop, []string{"b"}) || len(d.Start) != 0 ||
		d.Why == "" {
		t.Errorf("after the budget: %+v", d)
	}
	if took := now.Sub(start); took != 3100*time.Millisecond {
		t.Errorf("it took %s, want 3.1s", took)
	}
}

// Restarts count for a minute: a child that crashes every 13 seconds is started for ever.
func TestSlowCrashesAreForgotten(t *testing.T) {
	s, now := supervised(OneForOne, "a"), start
	for range 1000 {
		now = now.Add(13 * time.Second)
		if d := s.Ended("a", ExitOf(1, ""), now); len(d.Start) != 1 || d.Pause > Backoff(RestartBudget) {
			t.Fatalf("at %s: %+v", now.Sub(start), d)
		}
	}
	if n := len(s.restarts["g"]); n > RestartBudget {
		t.Errorf("%d restarts are remembered", n)
	}
}

// A spent budget is a failure of the whole group, which the group above may start again.
func TestEscalation(t *testing.T) {
	s, now := NewSupervisor(Budget{}), start
	for _, c := range []Child{{"db", "app", OneForOne}, {"web1", "app/web", OneForOne}, {"web2", "app/web", OneForOne},
		{"else", "other", OneForOne}} {
		s.Add(c)
	}
	escalations, ends := 0, 0
	for {
		d := s.Ended("web1", ExitOf(1, ""), now)
		ends++
		if len(d.GaveUp) > 0 {
			if !slices.Equal(d.GaveUp, []string{"db", "web1", "web2"}) || !slices.Equal(d.Escalated,
				[]string{"app/web", "app"}) {
				t.Errorf("given up: %+v", d)
			}
			break
		}
		if len(d.Escalated) > 0 {
			escalations++
			if !slices.Equal(d.Start, []string{"web1", "web2"}) || !slices.Equal(d.Stop, []string{"web2"}) {
				t.Errorf("escalated: %+v", d)
			}
		}
		now = d.At
	}
	if escalations != RestartBudget || ends != (RestartBudget+1)*(RestartBudget+1) {
		t.Errorf("%d escalations and %d ends, want %d and %d", escalations, ends, RestartBudget,
			(RestartBudget+1)*(RestartBudget+1))
	}
	if left := s.Children(); len(left) != 1 || left[0].Name != "else" {
		t.Errorf("left are %+v", left)
	}
}

// In every random history no group is started more than the budget within any window, every
// start waits, and what was given up is never started.
func TestRandomHistoriesStayInTheBudget(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, now := NewSupervisor(Budget{}), start
		groups := map[string]string{}
		for i := range 2 + r.IntN(6) {
			c := Child{Name: fmt.Sprint("c", i), Group: []string{"x", "y", "x/z"}[r.IntN(3)],
				Strategy: Strategies[r.IntN(len(Strategies))]}
			groups[c.Name] = c.Group
			s.Add(c)
		}
		gone := map[string]bool{}
		starts := map[string][]time.Time{} // by the group whose budget paid
		for range 300 {
			names := s.Children()
			if len(names) == 0 {
				break
			}
			now = now.Add(time.Duration(r.IntN(8000)) * time.Millisecond)
			name := names[r.IntN(len(names))].Name
			d := s.Ended(name, ExitOf(r.IntN(2), ""), now)
			for _, n := range d.GaveUp {
				gone[n] = true
			}
			for _, n := range d.Start {
				if gone[n] {
					t.Fatalf("seed %d: %s was given up and is started", seed, n)
				}
			}
			if len(d.Start) == 0 {
				continue
			}
			if !d.At.After(now) || d.Pause < FirstBackoff {
				t.Fatalf("seed %d: started without a pause: %+v", seed, d)
			}
			payer := groups[name]
			if len(d.Escalated) > 0 {
				payer = "x"
			}
			starts[payer] = append(starts[payer], now)
			if n := len(starts[payer]); n > RestartBudget && now.Sub(starts[payer][n-RestartBudget-1]) < RestartWindow &&
				len(d.Escalated) == 0 && payer != "x/z" {
				t.Fatalf("seed %d: group %s was started %d times within %s", seed, payer, RestartBudget+1,
					now.Sub(starts[payer][n-RestartBudget-1]))
			}
		}
	}
}

func TestStrategiesAreRead(t *testing.T) {
	for text, want := range map[string]Strategy{"always": OneForOne, "on-failure": Transient, "never": Permanent,
		"one-for-all": OneForAll, "rest_for_one": RestForOne} {
		if got, err := ParseStrategy(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	if _, err := ParseStrategy("sometimes"); err == nil {
		t.Error("sometimes was read")
	}
}

// After any adding, moving to another group and removing, a group has those children in their order that a look
// through all of them finds, and what is empty is forgotten.
func TestGroupsAreWhatAllChildrenSay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	groups := []string{"a", "a/b", "a/b/c", "a/bc", "d", ""}
	s := NewSupervisor(Budget{})
	for step := range 5000 {
		name := fmt.Sprint("p", random.IntN(40))
		if random.IntN(3) == 0 || step > 4900 {
			s.Remove(name)
		} else {
			s.Add(Child{Name: name, Group: groups[random.IntN(len(groups))]})
		}
		for _, g := range append(groups[:5:5], name) {
			var want []string
			for _, c := range s.Children() {
				if c.Group == g || strings.HasPrefix(c.Group, g+"/") {
					want = append(want, c.Name)
				}
			}
			if got := s.below(g); !slices.Equal(got, want) {
				t.Fatalf("step %d: group %q has %v, want %v", step, g, got, want)
			}
		}
	}
	for _, c := range s.Children() {
		s.Remove(c.Name)
	}
	if len(s.children)+len(s.groups) != 0 {
		t.Errorf("without children there are %v and %v", s.children, s.groups)
	}
}
