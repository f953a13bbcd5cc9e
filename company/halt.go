package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// MaxHaltReason bounds the reason of a stop, in bytes.
const MaxHaltReason = 1 << 10

// StopAll is the payload of mesh.stop, which cancels running runs and blocks new ones.
// The leader's mesh.quiesce cancels those beyond the bound of one command.
type StopAll struct {
	Reason string `cbor:"1,keyasint,omitempty"`
}

// ResumeAll is the payload of mesh.resume.
type ResumeAll struct{}

// Quiesce is the payload of mesh.quiesce, by which the leader continues a stop.
type Quiesce struct{}

// Stopped is the answer of these commands: how many runs they cancelled, and whether
// more are left.
type Stopped struct {
	Cancelled int  `cbor:"1,keyasint,omitempty" json:"cancelled"`
	More      bool `cbor:"2,keyasint,omitempty" json:"more"`
}

const (
	KindMeshStop    = "mesh.stop"
	KindMeshResume  = "mesh.resume"
	KindMeshQuiesce = "mesh.quiesce"
)

var haltKinds = []Kind{
	{Name: KindMeshStop, From: FromBoard, Weight: Weights.Halting, Do: ledger.Typed(stopAll)},
	{Name: KindMeshResume, From: FromBoard, Weight: Weights.MeshSettings, Do: ledger.Typed(resumeAll)},
	{Name: KindMeshQuiesce, From: FromNode, Weight: Weights.ByNodes, Do: ledger.Typed(quiesce)},
}

func stopAll(c *ledger.Context, p StopAll) (any, error) {
	if len(p.Reason) > MaxHaltReason {
		return nil, ledger.Refuse(ledger.Invalid, nil, "reason has more than %d bytes", MaxHaltReason)
	}
	if _, ok := entity.Halted(c.Tx); !ok {
		entity.Halts.Put(c.Tx, entity.AllHalted, entity.Halt{By: c.Cmd.Actor.ID, Reason: p.Reason, At: core.TimeOf(c.Now)})
	}
	out := cancelEverywhere(c)
	c.Record(ledger.Change{Action: "mesh.stopped", EntityType: "mesh", EntityID: entity.AllHalted,
		Details: core.Object{}.Null("reason", p.Reason).Int("runs", int64(out.Cancelled)).Close()})
	return out, nil
}

func resumeAll(c *ledger.Context, _ ResumeAll) (any, error) {
	if _, ok := entity.Halted(c.Tx); !ok {
		return nil, ledger.Refuse(ledger.Conflict, []byte(`{"stopped":false}`), "The mesh is not stopped")
	}
	entity.Halts.Delete(c.Tx, entity.AllHalted)
	c.Record(ledger.Change{Action: "mesh.resumed", EntityType: "mesh", EntityID: entity.AllHalted})
	return Stopped{}, nil
}

func quiesce(c *ledger.Context, _ Quiesce) (any, error) {
	if _, ok := entity.Halted(c.Tx); !ok {
		return nil, ledger.Refuse(ledger.Conflict, []byte(`{"stopped":false}`), "The mesh is not stopped")
	}
	out := cancelEverywhere(c)
	if out.Cancelled > 0 {
		c.Record(ledger.Change{Action: "mesh.quiesced", EntityType: "mesh", EntityID: entity.AllHalted,
			Details: core.Object{}.Int("runs", int64(out.Cancelled)).Close()})
	}
	return out, nil
}

// RunningRuns returns up to limit running runs of all companies.
func RunningRuns(tx *ledger.Tx, limit int) (out []entity.Run) {
	prefix := ledger.Key("sched", "session", "")
	for k, company := range tx.Prefix(prefix) {
		_, id, _ := strings.Cut(string(k[len(prefix):]), "/")
		if r, ok := entity.RunTable.Get(tx, ledger.CompanyID(company), id); ok && r.Status == entity.RunRunning {
			if out = append(out, r); len(out) == limit {
				break
			}
		}
	}
	return out
}

func cancelEverywhere(c *ledger.Context) (out Stopped) {
	all := RunningRuns(c.Tx, MaxStoppedRuns+1)
	for _, r := range all[:min(len(all), MaxStoppedRuns)] {
		DenyLive(c, r, DeniedMeshStopped, "Cancelled: everything was stopped")
		out.Cancelled++
	}
	out.More = len(all) > MaxStoppedRuns
	return out
}
