package skill

import (
	"testing"

	"github.com/selvage-mesh/selvage/governance"
)

// At the gate, every tool has a base effect that is not below the catalogue's.
func TestTheGateKnowsTheCatalogue(t *testing.T) {
	t.Parallel()
	for _, tool := range Catalogue() {
		action, known := governance.ActionOf(tool.GateAction)
		e := tool.Effect
		want := governance.Effect{governance.Level(e.Risk), governance.Level(e.Fairness), governance.Level(e.Privacy),
			governance.Level(e.Novelty), governance.Level(e.Security)}
		if !known || action.Name != tool.Name {
			t.Errorf("%s: the gate knows it as %q (%t)", tool.Name, action.Name, known)
		}
		for d, level := range want {
			if action.Base[d] < level {
				t.Errorf("%s: %s is %s at the gate, %s in the catalogue", tool.Name, governance.Dimension(d), action.Base[d], level)
			}
		}
	}
}
