package testkit

import (
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// The checks of this package see what they look for: a node that answers strong
// reads from its own state is found out, though it is right most of the time.
func TestStaleStrongReadIsSeen(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3, func(_ int, c *node.Config) { c.Faults.Consensus.StaleStrongRead = true })
	var of struct{ ID string }
	b.Must(0, "POST", "/api/companies", map[string]any{"name": "Acme"}, &of)
	for range 500 {
		var row struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+of.ID+"/goals", map[string]any{"title": "A goal"}, &row,
			"X-Selvage-Read", "stale")
		for on := 1; on < 3; on++ {
			if a, err := b.Call(on, "GET", "/api/goals/"+row.ID, nil, nil, Strong...); err == nil && a.Status == 404 {
				return
			}
		}
	}
	t.Error("500 strong reads that were none were all right")
}
