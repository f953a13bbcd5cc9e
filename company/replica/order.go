package replica

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Order is the payload of process.spawn, process.elevate and process.kill: what a person
// has a node do. The node does it after the command; what came of it is in the node's own log.
type Order struct {
	Node    string `cbor:"1,keyasint"`
	PID     uint64 `cbor:"2,keyasint,omitempty"` // 0: of the new process
	Name    string `cbor:"3,keyasint,omitempty"`
	Backend string `cbor:"4,keyasint,omitempty"`
	Signal  string `cbor:"5,keyasint,omitempty"`
	Why     string `cbor:"6,keyasint,omitempty"`
	Seconds uint64 `cbor:"7,keyasint,omitempty"` // that an elevation lasts; 0: as long as the process lives
}

// order leaves a line of what a node is to do. That it passed the gate is all it is for.
func order(c *ledger.Context, p Order) (any, error) {
	if n, ok := ledger.FindNode(c.Tx, identity.NodeID(p.Node)); !ok || !n.Member() {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Node not found")
	}
	if len(p.Name) > maxLabel || len(p.Backend) > maxLabel || len(p.Signal) > maxLabel || len(p.Why) > 2*maxWhy {
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed order about a process")
	}
	_, verb, _ := strings.Cut(c.Cmd.Kind, ".")
	details := core.Object{}.Uint("pid", p.PID).Null("name", p.Name).Null("backend", p.Backend).Null("signal", p.Signal).
		Null("reason", p.Why)
	if p.Seconds > 0 {
		details = details.Uint("seconds", p.Seconds)
	}
	c.Record(ledger.Change{Action: "process." + verb + "_ordered", EntityType: "node", EntityID: p.Node,
		Details: details.Close()})
	return nil, nil
}
