package scheduler

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/ledger"
)

// A node that refuses a replica does so for good. So the one that the access policy closes is chosen only when every
// other has lost its session: a leader that has just begun has heard of few nodes.
func TestAClosedNodeIsTheLastChoice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := found(t, 3)
		defer m.close()
		shut, open, other := m.nodes[0], m.nodes[1], m.nodes[2]
		m.must(board("resource_tree.grant", "", rules.SaveTreeGrant{Path: core.NodePath(string(shut.id())),
			Subject: "user:local-board", Deny: true}))
		id := uuid("declared", 1)
		m.must(board(replica.KindDeclare, "", replica.Declare{ID: id, Name: "web", Replicas: 1,
			Spec: json.RawMessage(`{"command":["sleep","9"]}`)}))
		beat := func(p *peer) Beat {
			return Beat{Node: p.id(), Session: p.session, Slots: 1, Adapters: []string{"process"}}
		}
		goes := func(live ...Beat) (to []string) {
			t.Helper()
			if err := m.Ledger.View(func(tx *ledger.Tx) error {
				for _, move := range placeReplicas(tx, live, core.TimeOf(time.Now())) {
					to = append(to, move.Node)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return to
		}
		if to := goes(beat(shut)); to != nil {
			t.Errorf("while two open nodes have a session it goes to %v", to)
		}
		if to := goes(beat(shut), beat(other)); !slices.Equal(to, []string{string(other.id())}) {
			t.Errorf("with an open node it goes to %v", to)
		}
		for _, p := range []*peer{open, other} {
			m.must(board(ledger.KindNodeRevoke, "", ledger.NodeRevoke{Node: p.id()}))
		}
		if to := goes(beat(shut)); !slices.Equal(to, []string{string(shut.id())}) {
			t.Errorf("with no other node it goes to %v", to)
		}
	})
}
