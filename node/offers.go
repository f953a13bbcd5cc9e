package node

import (
	"context"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/identity"
)

// offersWait bounds looking what a node offers, there and back, an answer of a model
// server included.
const offersWait = 25 * time.Second

// offers looks on a node what it offers to agents.
func (n *Node) offers(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error) {
	return n.offersQuestion().put(ctx, n, on, look)
}

func (n *Node) offersQuestion() question[adapter.Look, []adapter.Offer] {
	return question[adapter.Look, []adapter.Offer]{ipcOffers, ipcOffered, offersWait, n.offersHere}
}

func (n *Node) offersHere(ctx context.Context, look adapter.Look) []adapter.Offer {
	environ := os.Environ()
	return adapter.Prober{Environ: environ, Has: n.work.runs}.Offers(ctx, adapter.ModelServers(environ), look)
}
