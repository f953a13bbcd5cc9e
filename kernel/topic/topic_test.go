package topic

import (
	"strings"
	"testing"
)

func TestNamesAndPatterns(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"build": true, "build.done": true, "orders/eu/created": true, "a:b@c=d-e_f": true,
		strings.Repeat("a.", MaxLevels-1) + "a": true,
		"":                                      false, ".": false, "a.": false, ".a": false, "a..b": false, "a b": false,
		"*": false, "a.*": false, "ä": false,
		"a\n":                                 false,
		strings.Repeat("a.", MaxLevels) + "a": false, strings.Repeat("a", MaxName+1): false,
	} {
		if err := Check(name); (err == nil) != ok {
			t.Errorf("Check(%q) = %v", name, err)
		}
	}
	for pattern, ok := range map[string]bool{
		"build": true, "*": true, "a.*.b": true, "+/b": true, "**": true, "#": true, "a.>": true, "a/**": true,
		"a.**.b": false, "#.a": false, "a*": false, "": false, "a.>.b": false,
	} {
		if err := CheckPattern(pattern); (err == nil) != ok {
			t.Errorf("CheckPattern(%q) = %v", pattern, err)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "A", false}, {"a", "a.b", false}, {"a.b", "a", false}, {"a.b", "a/b", false},
		{"*", "a", true}, {"*", "a.b", false}, {"+.b", "a.b", true}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false},
		{"a.*", "a", false},
		{"*.b", "a/b", true}, {"a.*.c", "a.b.c", true}, {"a.*.c", "a.b.d", false},
		{"**", "a", true}, {"#", "a/b/c", true}, {"a.**", "a.b.c", true}, {"a.>", "a.b", true}, {"a.**", "a", false},
		{"a.**", "b.c", false},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a.*", "a.b")
	f.Add("a.**", "a/b/c")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if CheckPattern(pattern) != nil || Check(name) != nil {
			return
		}
		if Match("**", name) != true || !Match(name, name) {
			t.Errorf("%q does not match itself, or not all", name)
		}
		if got := Match(pattern, name); !IsPattern(pattern) && got != (pattern == name) {
			t.Errorf("Match(%q, %q) = %v", pattern, name, got)
		}
	})
}
