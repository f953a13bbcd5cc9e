package testkit

import "testing"

// The resource tree has one root on all nodes: after changes, after a root was committed on the chain, and on a node that starts again.
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
