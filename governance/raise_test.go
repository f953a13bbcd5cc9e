package governance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestTheDocumentedVector: a shell command with an estimated risk of 0.7 has the documented effect.
func TestTheDocumentedVector(t *testing.T) {
	t.Parallel()
	_, effect, _ := Weigh(Act{Action: "execute_shell_command", Rank: Worker, Context: Context{Command: "rm -rf /tmp/build",
		Given: Effect{Risk: 700}}})
	if want := (Effect{700, 500, 300, 800, 600}); effect != want {
		t.Errorf("got %v, want %v", effect, want)
	}
}

// TestEveryRaiseIsExplained: the steps add up to the effect, each begins where the one before ended, and none goes
// down.
func TestEveryRaiseIsExplained(t *testing.T) {
	t.Parallel()
	worst := Context{Given: Effect{Novelty: 450}, Outside: true, First: true, Irreversible: true, Amount: 1_000_000,
		Data: SecretData}
	contexts := []Context{{}, worst, {Data: SubjectData}, {Data: PersonalData}, {Amount: 1}, {Amount: 1_000},
		{Amount: 10_000}, {Amount: 100_000}}
	for _, action := range append(Actions(), Action{Name: "nobody.knows"}) {
		for _, rank := range []Rank{Worker, Nobody} {
			for _, c := range contexts {
				row, effect, steps := Weigh(Act{Action: action.Name, Rank: rank, Context: c})
				var at Effect
				for _, s := range steps {
					if s.From != at[s.Dimension] || s.To <= s.From || s.To > Most || s.Why == "" {
						t.Fatalf("%s: step %+v from %v", action.Name, s, at)
					}
					at[s.Dimension] = s.To
				}
				if at != effect {
					t.Errorf("%s: the steps come to %v, the effect is %v", action.Name, at, effect)
				}
				for d := range effect {
					if effect[d] < max(row.Base[d], c.Given[d]) {
						t.Errorf("%s: %v is below its base %v or what was given", action.Name, effect, row.Base)
					}
				}
			}
		}
	}
	_, _, steps := Weigh(Act{Action: "network.egress", Rank: Worker, Context: Context{Outside: true}})
	var told []string
	for _, s := range steps {
		told = append(told, fmt.Sprintf("%s %s → %s: %s", s.Dimension, s.From, s.To, s.Why))
	}
	want := []string{
		"risk 0 → 0.2: base of egress action network.egress",
		"privacy 0 → 0.2: base of egress action network.egress",
		"security 0 → 0.3: base of egress action network.egress",
		"security 0.3 → 0.5: the target is outside the company",
		"privacy 0.2 → 0.3: the target is outside the company",
	}
	if !slices.Equal(told, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// TestActionsAreRows: every action of the table is named once, has a class that exists and a title.
func TestActionsAreRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range Actions() {
		if seen[a.Name] || a.Title == "" || !slices.Contains(Classes, a.Class) || a.Base == (Effect{}) {
			t.Errorf("%+v", a)
		}
		seen[a.Name] = true
		for d, l := range a.Base {
			if l < 0 || l > Most {
				t.Errorf("%s: %s of %d", a.Name, Dimension(d), l)
			}
		}
	}
}

// TestAPathIsInsideOnlyBelowTheWorkspace also when it goes up on the way.
func TestAPathIsInsideOnlyBelowTheWorkspace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		workspace, path string
		want            bool
	}{
		{"/w/ada", "/w/ada/x.txt", true}, {"/w/ada/", "/w/ada", true}, {"/w/ada", "notes/x", true},
		{"/w/ada", "a/../x", true},
		{"/w/ada", "/w/adam/x", false}, {"/w/ada", "/w/ada/../bob/x", false}, {"/w/ada", "../bob/x", false},
		{"/w/ada", "", false},
		{"", "/w/ada/x", false}, {"", "x", false}, {"/", "/etc/passwd", false}, {"w", "w/x", false}, {"/w/../", "/x", false},
	} {
		if got := (Context{Workspace: c.workspace, Path: c.path}).inside(); got != c.want {
			t.Errorf("%q inside %q: got %t, want %t", c.path, c.workspace, got, c.want)
		}
	}
}
