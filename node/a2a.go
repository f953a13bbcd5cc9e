package node

import (
	"context"

	"github.com/selvage-mesh/selvage/api/a2a"
	"github.com/selvage-mesh/selvage/ledger"
)

// openPusher starts to tell webhooks how their tasks go, while this node leads.
func (n *Node) openPusher(context.Context) error {
	p := a2a.NewPusher(a2a.PusherConfig{View: n.ledger.View, Entries: n.ledger.Entries,
		Head: func() uint64 { return n.ledger.Position().Height }, Leads: n.IsLeader,
		Submit: func(ctx context.Context, kind string, of ledger.CompanyID, payload any) error {
			return n.carryOut(ctx, n.command(kind, of, payload))
		},
		Unseal: n.unseal, Mesh: string(n.Mesh()), Private: n.conf.Private, Logger: n.log})
	n.spawn(p.Run)
	return nil
}
