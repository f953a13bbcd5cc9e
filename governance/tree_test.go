package governance

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func plant(t *testing.T, more ...Vertex) Tree {
	t.Helper()
	var list []Vertex
	for _, p := range Namespaces {
		list = append(list, Vertex{Path: p, Kind: Namespace})
	}
	tree, err := Plant(append(more, list...))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// The root depends on path, kind and content of each vertex, and on nothing else. Its form is fixed.
func TestTheRootOfTheTree(t *testing.T) {
	t.Parallel()
	tool := Vertex{Path: "/kernel/tools/x", Kind: Tool, Facts: []Fact{{"a", "b"}}}
	app := Vertex{Path: "/apps/y", Kind: App}
	root := plant(t, tool, app).Root()
	if got := hex.EncodeToString(root[:]); got != "0b933298d488bf1dfb2f20edd7aca441863f2380975bfed18a469e2901eaaa15" {
		t.Errorf("the form has changed: %s", got)
	}
	if plant(t, app, tool).Root() != root {
		t.Error("the order of the vertices counts")
	}
	scored := tool
	scored.Score = Fresh
	if plant(t, scored, app).Root() != root {
		t.Error("the score counts")
	}
	seen := map[[32]byte]string{root: "the first"}
	for name, v := range map[string]Vertex{
		"another path":    {Path: "/kernel/tools/z", Kind: Tool, Facts: tool.Facts},
		"another kind":    {Path: tool.Path, Kind: Custom, Facts: tool.Facts},
		"another value":   {Path: tool.Path, Kind: Tool, Facts: []Fact{{"a", "c"}}},
		"a shifted value": {Path: tool.Path, Kind: Tool, Facts: []Fact{{"ab", ""}}},
		"one fact more":   {Path: tool.Path, Kind: Tool, Facts: []Fact{{"a", "b"}, {"c", ""}}},
		"elsewhere":       {Path: "/apps/x", Kind: Tool, Facts: tool.Facts},
	} {
		r := plant(t, v, app).Root()
		if other, twice := seen[r]; twice {
			t.Errorf("%s has the root of %s", name, other)
		}
		seen[r] = name
	}
}

// What lies below a path is listed to a depth, with the number of children.
func TestWhatLiesBelowAPath(t *testing.T) {
	t.Parallel()
	tree := plant(t, Vertex{Path: "/apps/y", Kind: App}, Vertex{Path: "/apps/y/z", Kind: Topic},
		Vertex{Path: "/apps/y-2", Kind: App}, Vertex{Path: "/apps-2", Kind: Namespace})
	told := func(p string, depth int) string {
		var out []string
		for _, b := range tree.At(p, depth) {
			out = append(out, fmt.Sprintf("%s:%d", b.Path, b.Children))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		path  string
		depth int
		want  string
	}{
		{"/apps", 9, "/apps:2 /apps/y:1 /apps/y/z:0 /apps/y-2:0"}, {"/apps", 1, "/apps:2 /apps/y:1 /apps/y-2:0"},
		{"/apps", 0, "/apps:2"},
		{"/apps/y", 1, "/apps/y:1 /apps/y/z:0"}, {"/nowhere", 1, ""}, {"/", 0, "/:6"},
		{"/apps/", 1, "/apps:2 /apps/y:1 /apps/y-2:0"},
	} {
		if got := told(c.path, c.depth); got != c.want {
			t.Errorf("%s to %d: %s, want %s", c.path, c.depth, got, c.want)
		}
	}
	for name, list := range map[string][]Vertex{
		"stands twice": {{Path: "/"}, {Path: "/a"}, {Path: "/a"}}, "no parent": {{Path: "/"}, {Path: "/a/b"}},
		"want a path":   {{Path: "/"}, {Path: "a"}},
		"at most 10000": make([]Vertex, MaxVertices+1),
	} {
		if _, err := Plant(list); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nobody may do anything without a grant; the nearest one decides, and a denial before others on its path. A denial for
// all is a default, from which a grant by name frees.
func TestTheNearestGrantDecides(t *testing.T) {
	t.Parallel()
	grants := []Grant{
		{Path: "/companies/a", Subject: "user:u", Role: TreeAdmin}, {Path: "/companies/a/secrets", Subject: "user:u",
			Deny: true},
		{Path: "/companies/a/secrets/s", Subject: "user:u", Role: TreeViewer}, {Path: "/companies/a", Subject: "*",
			Role: TreeViewer},
		{Path: "/companies/a", Subject: "agent:x", Role: TreeOperator, Delegate: true, Until: 100},
		{Path: "/apps", Subject: "agent:x", Role: TreeOwner}, {Path: "/apps", Subject: "*", Deny: true},
		{Path: "/apps/q", Subject: "agent:x", Role: TreeOwner}, {Path: "/apps/q", Subject: "agent:x", Deny: true},
		{Path: "/apps/r", Subject: "*", Deny: true}, {Path: "/apps/r", Subject: "agent:x", Role: TreeOwner, Implied: true},
		{Path: "/apps/r/s", Subject: "agent:x", Role: TreeOperator, Until: 100},
	}
	for _, c := range []struct {
		who, path, action string
		now               int64
		want              bool
	}{
		{"user:u", "/companies/a/agents/1", "change", 0, true}, {"user:u", "/companies/a/agents/1", "own", 0, false},
		{"user:u", "/companies/a/secrets/t", "read", 0, false},
		{"user:u", "/companies/a/secrets/s", "read", 0, true}, {"user:u", "/companies/a/secrets/s", "use", 0, false},
		{"user:v", "/companies/a", "read", 0, true},
		{"user:v", "/companies/a", "use", 0, false}, {"user:u", "/companies/ab", "read", 0, false},
		{"user:u", "/", "read", 0, false}, {"agent:x", "/companies/a", "use", 99, true},
		{"agent:x", "/companies/a", "use", 100, false}, {"agent:x", "/apps", "own", 0, true},
		{"agent:y", "/apps", "read", 0, false}, {"agent:y", "/apps/q", "read", 0, false},
		{"agent:x", "/apps/q", "read", 0, false}, {"agent:x", "/apps/r", "read", 0, false},
		{"agent:x", "/apps/r/s", "use", 99, true}, {"agent:x", "/apps/r/s", "use", 100, false},
		{"user:u", "/companies/a", "fly", 0, false},
	} {
		if got := Permits(grants, []string{c.who, "*"}, c.path, c.action, c.now).Allowed; got != c.want {
			t.Errorf("%s %s %s: %v", c.who, c.action, c.path, got)
		}
	}
	for _, c := range []struct {
		who  string
		g    Grant
		want bool
	}{
		{"user:u", Grant{Path: "/companies/a", Subject: "user:w", Role: TreeAdmin}, true},
		{"user:u", Grant{Path: "/companies/a", Subject: "user:w", Role: TreeOwner}, false},
		{"user:u", Grant{Path: "/companies/a/secrets", Subject: "user:w", Role: TreeViewer}, false},
		{"user:v", Grant{Path: "/companies/a", Subject: "user:w", Role: TreeViewer}, false},
		{"agent:x", Grant{Path: "/companies/a/agents", Subject: "user:w", Role: TreeOperator, Until: 100}, true},
		{"agent:x", Grant{Path: "/companies/a", Subject: "user:w", Role: TreeOperator}, false},
		{"agent:x", Grant{Path: "/companies/a", Subject: "user:w", Role: TreeAdmin, Until: 50}, false},
		{"agent:x", Grant{Path: "/companies/a", Subject: "user:w", Deny: true, Until: 50}, false},
		{"user:u", Grant{Path: "/companies", Subject: "user:w", Role: TreeViewer}, false},
	} {
		if got := MayGrant(grants, []string{c.who, "*"}, c.g, 0); got != c.want {
			t.Errorf("%s grants %+v: %v", c.who, c.g, got)
		}
	}
}

// An outcome moves a score towards itself, by its weight, and never beyond.
func TestAScoreFollowsOutcomes(t *testing.T) {
	t.Parallel()
	s := Fresh
	good := Score{Most, Most, Most, Most, Most, Most}
	if s = s.Blend(good, 250); s.Trust != 625 || s.Velocity != 625 {
		t.Errorf("after one: %+v", s)
	}
	for range 40 {
		s = s.Blend(good, 250)
	}
	if s.Trust < 990 || s.Trust > Most {
		t.Errorf("after many: %+v", s)
	}
	if s = s.Blend(Score{}, 1000); s != (Score{}) {
		t.Errorf("what counts alone: %+v", s)
	}
}
