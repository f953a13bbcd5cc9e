package testkit

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// The resource tree has one root on all nodes: after changes, after a root was committed on the chain, and on a node
// that starts again.
func TestEveryNodeHasTheSameTree(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	type tree struct {
		Root      string
		Vertices  int
		Unchanged bool
	}
	same := func(when string, committed bool) (at tree) {
		t.Helper()
		b.Until("all nodes have one tree "+when, func() bool {
			at = tree{}
			for on := range b.Nodes {
				var is tree
				b.Must(on, "GET", "/api/v1/tree?path=/companies&depth=4", nil, &is, b.Seen()...)
				if at.Root == "" {
					at = is
				}
				if is != at || is.Root == "" || committed && !is.Unchanged {
					return false
				}
			}
			return true
		})
		return at
	}
	of := b.Company("Acme")
	before := same("with a company", false)
	b.staff(of, "Ada", "pm", "")
	after := same("with an agent", false)
	if after.Root == before.Root || after.Vertices != before.Vertices+1 {
		t.Errorf("an agent more: %+v, before %+v", after, before)
	}
	b.Must(1, "POST", "/api/v1/tree/commit", nil, nil)
	if now := same("on the chain", true); now.Root != after.Root {
		t.Errorf("committed %s, was %s", now.Root, after.Root)
	}
	b.Kill(2)
	b.Restart(2)
	if now := same("after a start", true); now.Root != after.Root {
		t.Errorf("after a start %s, was %s", now.Root, after.Root)
	}
}

// A node whose tree was changed behind its back is told when it starts again: its own root is not the one on the chain,
// so it has the root committed once more, and all nodes compare what they calculated. The node and the others say so in
// doctor and as an event.
func TestADifferingTreeIsTold(t *testing.T) {
	t.Parallel()
	confs := make([]node.Config, 3)
	b := Mesh(t, 3, func(i int, c *node.Config) { confs[i] = *c })
	of := b.Company("Acme")
	var secret struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/secrets", map[string]any{"name": "API_KEY", "value": "v"}, &secret)
	b.Must(0, "POST", "/api/v1/tree/commit", nil, nil)
	sick := (b.Leader() + 1) % 3
	b.Until("the sick node has it", func() bool {
		var tree struct{ Unchanged bool }
		b.Must(sick, "GET", "/api/v1/tree", nil, &tree, b.Seen()...)
		return tree.Unchanged
	})
	check := func(on int, level, text string) bool {
		for _, c := range b.Nodes[on].Doctor(t.Context()) {
			if c.Name == "tree" {
				return c.Level == level && strings.Contains(c.Found, text)
			}
		}
		return false
	}
	if check(sick, "bad", "") {
		t.Fatal("the trees differ before anybody has changed one")
	}
	conf := confs[sick]
	if err := b.Nodes[sick].Close(); err != nil {
		t.Fatal(err)
	}
	forget(t, filepath.Join(conf.Dir, "store"), "/secret/"+secret.ID)
	reopen(t, b, sick, conf)
	b.Until("the sick node says that its tree is another one", func() bool {
		return check(sick, "bad", "this node has another resource tree than most")
	})
	told := false
	for _, e := range b.Nodes[sick].Events().Tail(1000, "") {
		told = told || e.Kind == "tree.differs" && strings.Contains(e.Message, "the resource trees differ at height")
	}
	if !told {
		t.Error("there is no event about it")
	}
	for on := range b.Nodes {
		if on != sick {
			b.Until("another node names it", func() bool {
				return check(on, "bad", "not all nodes have the same resource tree: "+conf.Name+" has ")
			})
		}
	}
}
