package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Duty says that a node takes no new runs: it is cordoned. A draining node also returns
// the runs that it has not started and transfers leadership, so that it can be removed
// when its last run has ended.
type Duty struct {
	Node   string    `cbor:"1,keyasint" json:"nodeId"`
	Drain  bool      `cbor:"2,keyasint,omitempty" json:"drain"`
	Reason string    `cbor:"3,keyasint,omitempty" json:"reason"`
	By     string    `cbor:"4,keyasint" json:"by"`
	At     core.Time `cbor:"5,keyasint" json:"at"`
}

var duties = ledger.NewMeshTable[string, Duty]("node-duty")

// DutyOf returns the duty of a node, if it is cordoned.
func DutyOf(tx *ledger.Tx, node string) (Duty, bool) { return duties.Get(tx, node) }

// Cordon is the payload of node.cordon.
type Cordon struct {
	Node   string `cbor:"1,keyasint"`
	Drain  bool   `cbor:"2,keyasint,omitempty"`
	Reason string `cbor:"3,keyasint,omitempty"`
}

// Uncordon is the payload of node.uncordon.
type Uncordon struct {
	Node string `cbor:"1,keyasint"`
}

const (
	KindNodeCordon   = "node.cordon"
	KindNodeUncordon = "node.uncordon"
)

var dutyKinds = []Kind{
	{Name: KindNodeCordon, From: FromRoster, Weight: Weights.MeshSettings, Target: NodeFirst, Do: ledger.Typed(cordon)},
	{Name: KindNodeUncordon, From: FromRoster, Weight: Weights.MeshSettings, Target: NodeFirst,
		Do: ledger.Typed(uncordon)},
}

func member(tx *ledger.Tx, id string) error {
	if n, ok := ledger.FindNode(tx, identity.NodeID(id)); !ok || !n.Member() {
		return ledger.Refuse(ledger.NotFound, nil, "Node not found")
	}
	return nil
}

func cordon(c *ledger.Context, p Cordon) (any, error) {
	if err := member(c.Tx, p.Node); err != nil {
		return nil, err
	}
	if len(p.Reason) > MaxHaltReason {
		return nil, ledger.Refuse(ledger.Invalid, nil, "reason has more than %d bytes", MaxHaltReason)
	}
	d := Duty{Node: p.Node, Drain: p.Drain, Reason: p.Reason, By: c.Cmd.Actor.ID, At: core.TimeOf(c.Now)}
	duties.Put(c.Tx, p.Node, d)
	c.Record(ledger.Change{Action: "node.cordoned", EntityType: "node", EntityID: p.Node,
		Details: core.Object{}.Bool("drain", p.Drain).Null("reason", p.Reason).Close()})
	return d, nil
}

func uncordon(c *ledger.Context, p Uncordon) (any, error) {
	if err := member(c.Tx, p.Node); err != nil {
		return nil, err
	}
	if _, ok := DutyOf(c.Tx, p.Node); !ok {
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("nodeId", p.Node).Bool("cordoned", false).Close(),
			"The node is not cordoned")
	}
	duties.Delete(c.Tx, p.Node)
	c.Record(ledger.Change{Action: "node.uncordoned", EntityType: "node", EntityID: p.Node})
	return nil, nil
}

// A Placement says why a run went to a node, or why it waits, with the verdict on each
// node that had a lease then.
type Placement struct {
	Run        string        `cbor:"1,keyasint" json:"runId"`
	At         core.Time     `cbor:"2,keyasint" json:"at"`
	Node       core.NullText `cbor:"3,keyasint,omitempty" json:"nodeId"` // the chosen node; "" for none
	Candidates []Candidate   `cbor:"4,keyasint,omitempty" json:"candidates"`
	Omitted    int           `cbor:"5,keyasint,omitempty" json:"omitted"` // candidates beyond MaxCandidates
}

// A Candidate is one node in a [Placement]: either the reason why it was refused, or the
// terms of its score. The lowest score gets the run.
type Candidate struct {
	Node    string        `cbor:"1,keyasint" json:"nodeId"`
	Refusal core.NullText `cbor:"2,keyasint,omitempty" json:"refusal"`
	Score   int64         `cbor:"3,keyasint,omitempty" json:"score"`
	Slots   int64         `cbor:"4,keyasint,omitempty" json:"slots"` // taken slots, in thousandths
	Load    int64         `cbor:"5,keyasint,omitempty" json:"load"`  // of all its processors, in thousandths
	// what the run has on this node: "session", "workspace" or "workspace and session"
	Affinity core.NullText `cbor:"6,keyasint,omitempty" json:"affinity"`
}

// Clone returns a copy that shares nothing with p.
func (p Placement) Clone() Placement {
	p.Candidates = append([]Candidate(nil), p.Candidates...)
	return p
}

const (
	// MaxCandidates bounds the nodes in a placement; the best come first.
	MaxCandidates = 32
	// maxRefusal bounds the reason of a refused node, in bytes.
	maxRefusal = 200
)

var placements = ledger.NewTable[string, Placement]("placement")

// PlacementOf returns the last decision about where a run goes.
func PlacementOf(tx *ledger.Tx, company ledger.CompanyID, run string) (Placement, bool) {
	return placements.Get(tx, company, run)
}

// keepPlacement stores the leader's decision.
func keepPlacement(c *ledger.Context, r entity.Run, p *Placement) {
	if p == nil {
		return
	}
	w := p.Clone()
	w.Run, w.At, w.Node = r.ID, core.TimeOf(c.Now), core.NullText(r.Node)
	if over := len(w.Candidates) - MaxCandidates; over > 0 {
		w.Candidates, w.Omitted = w.Candidates[:MaxCandidates], w.Omitted+over
	}
	for i, one := range w.Candidates {
		if len(one.Refusal) > maxRefusal {
			w.Candidates[i].Refusal = one.Refusal[:maxRefusal]
		}
	}
	placements.Put(c.Tx, r.Company, r.ID, w)
}

// Unplaced is the payload of run.unplaced, by which the leader stores why a run waits,
// again whenever the reasons change.
type Unplaced struct {
	Run string    `cbor:"1,keyasint"`
	Why Placement `cbor:"2,keyasint"`
	// GiveUp ends the run: for some time no present node could take it.
	GiveUp bool `cbor:"3,keyasint,omitempty"`
}

// ErrNoNode is the error code of a run that no node can take.
const ErrNoNode = "no_node"

func unplaced(c *ledger.Context, p Unplaced) (any, error) {
	r, err := RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	if r.Session != 0 || r.Status != entity.RunQueued && r.Status != entity.RunScheduledRetry {
		return nil, ledger.Refuse(ledger.Conflict, r.Standing(), "run %s does not wait for a node", r.ID)
	}
	_, told := PlacementOf(c.Tx, r.Company, r.ID)
	keepPlacement(c, r, &p.Why)
	if p.GiveUp {
		why := "No node can take this run"
		if len(p.Why.Candidates) > 0 {
			why += ": each " + string(p.Why.Candidates[0].Refusal)
			for _, one := range p.Why.Candidates[1:] {
				if one.Refusal != p.Why.Candidates[0].Refusal {
					why = "No node can take this run; see why with: selvage run explain " + r.ID
				}
			}
		}
		return EndRun(c, r, Outcome{Status: entity.RunFailed, ErrorCode: ErrNoNode, Error: why}), nil
	}
	if !told {
		sayWhatIsMissing(c, r)
	}
	c.Record(ledger.Change{Action: "heartbeat.run.waiting", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).Int("candidates", int64(len(p.Why.Candidates))).Close()})
	return nil, nil
}
