package govern

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Elevation gives an agent clearances until its end. Rules read them as they read others: what they would let wait
// without the clearance, they permit with it. The gate decides whether there is one, and usually asks a person.
type Elevation struct {
	ID         string           `cbor:"1,keyasint"`
	Company    ledger.CompanyID `cbor:"2,keyasint"`
	Agent      string           `cbor:"3,keyasint"`
	Clearances []string         `cbor:"4,keyasint"`
	Reason     string           `cbor:"5,keyasint,omitempty"`
	By         string           `cbor:"6,keyasint"` // who asked
	Height     uint64           `cbor:"7,keyasint"` // in force from that entry on
	At         core.Time        `cbor:"8,keyasint"`
	Until      core.Time        `cbor:"9,keyasint"`
	// the last entry for which it is in force; 0: only Until ends it
	Last      uint64    `cbor:"10,keyasint,omitempty"`
	RevokedAt core.Time `cbor:"11,keyasint,omitempty"`
	RevokedBy string    `cbor:"12,keyasint,omitempty"`
}

// Status says whether the elevation is in force at a time and height: in_force, ended or revoked.
func (e Elevation) Status(at core.Time, height uint64) string {
	switch {
	case e.RevokedAt > 0:
		return "revoked"
	case at >= e.Until || e.Last > 0 && height > e.Last:
		return "ended"
	}
	return ElevationInForce
}

// ElevationInForce is the status of an elevation that counts.
const ElevationInForce = "in_force"

// elevated has the elevations of an agent, in the order in which they came into force.
type elevated struct {
	List []Elevation `cbor:"1,keyasint"`
}

// Clone returns a copy that shares no memory with e.
func (e elevated) Clone() elevated {
	e.List = slices.Clone(e.List)
	for i := range e.List {
		e.List[i].Clearances = slices.Clone(e.List[i].Clearances)
	}
	return e
}

// elevations are rows of a company, by agent.
var elevations = ledger.NewTable[string, elevated]("governance-elevation")

// Elevate is the payload of elevation.request. The gate weighs the command: where a rule lets it wait, the elevation
// comes into force when a person approves it, and lasts from then.
type Elevate struct {
	ID         string   `cbor:"1,keyasint"`
	Agent      string   `cbor:"2,keyasint"`
	Clearances []string `cbor:"3,keyasint"`
	Seconds    uint64   `cbor:"4,keyasint,omitempty"` // 0: [ElevateFor]
	Entries    uint64   `cbor:"5,keyasint,omitempty"` // of the chain; 0: only time ends it
	Reason     string   `cbor:"6,keyasint,omitempty"`
}

// EndElevation is the payload of elevation.revoke.
type EndElevation struct {
	Agent string `cbor:"1,keyasint"`
	ID    string `cbor:"2,keyasint"`
}

// Kinds of commands about elevations.
const (
	KindElevate         = "elevation.request"
	KindElevationRevoke = "elevation.revoke"
)

var elevationKinds = []company.Kind{
	{Name: KindElevate, From: company.FromBoard | company.FromAgent, Traits: company.NoWork,
		Weight: company.Weights.Elevating.With(func(cmd *ledger.Command, known *governance.Context) {
			var p Elevate
			if ledger.Unmarshal(cmd.Payload, &p) == nil && len(p.Reason) <= MaxDetail {
				known.Reason = p.Reason
			}
		}), Do: ledger.Typed(elevate)},
	{Name: KindElevationRevoke, From: company.FromBoard, Traits: company.NoWork, Weight: company.Weights.Halting,
		Do: ledger.Typed(revokeElevation)},
}

// clearedFor lists the clearances that an agent has for a time.
func clearedFor(tx *ledger.Tx, s Constitution, of ledger.CompanyID, agent string, when moment) (out []string) {
	if !s.Elevations || when.at == 0 {
		return nil
	}
	row := elevations.Look(tx, of, agent)
	if row == nil {
		return nil
	}
	for _, e := range row.List {
		if e.Status(when.at, when.height) != ElevationInForce {
			continue
		}
		for _, name := range e.Clearances {
			if !slices.Contains(out, name) && len(out) < governance.MaxNames/2 {
				out = append(out, name)
			}
		}
	}
	return out
}

// Elevations yields the elevations of a company, by agent.
func Elevations(tx *ledger.Tx, of ledger.CompanyID) iter.Seq[Elevation] {
	return func(yield func(Elevation) bool) {
		for _, row := range elevations.All(tx, of) {
			for _, e := range row.List {
				if !yield(e) {
					return
				}
			}
		}
	}
}

func elevate(c *ledger.Context, p Elevate) (any, error) {
	of, at := c.Cmd.Company, core.TimeOf(c.Now)
	if p.Seconds == 0 {
		p.Seconds = uint64(ElevateFor / time.Second)
	}
	switch {
	case !core.IsID(p.ID):
		return nil, ledger.Refuse(ledger.Invalid, nil, "id: want a UUID")
	case len(p.Clearances) == 0 || len(p.Clearances) > MaxCleared:
		return nil, ledger.Refuse(ledger.Invalid, nil, "clearances: want 1 to %d", MaxCleared)
	case p.Seconds > uint64(MaxElevateFor/time.Second):
		return nil, ledger.Refuse(ledger.Invalid, nil, "seconds: at most %d", uint64(MaxElevateFor/time.Second))
	case len(p.Reason) > MaxDetail:
		return nil, ledger.Refuse(ledger.Invalid, nil, "reason: at most %d bytes", MaxDetail)
	case core.IsAgent(c) && p.Agent != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "agentId: an agent asks for itself")
	case entity.AgentTable.Look(c.Tx, of, p.Agent) == nil:
		return nil, entity.ErrNoAgent()
	}
	for _, name := range p.Clearances {
		if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return nil, ledger.Refuse(ledger.Invalid, nil,
				"clearances: want names of small letters, digits and hyphens, at most 64, such as deploy; got %.40q", name)
		}
	}
	row, _ := elevations.Get(c.Tx, of, p.Agent)
	row = row.Clone()
	if len(row.List) >= MaxElevations {
		row.List = slices.DeleteFunc(row.List, func(e Elevation) bool { return e.Status(at, c.Height) != ElevationInForce })
	}
	if len(row.List) >= MaxElevations {
		return nil, ledger.Refuse(ledger.TooMany, nil, "The agent has %d elevations in force; revoke one first",
			MaxElevations)
	}
	e := Elevation{ID: p.ID, Company: of, Agent: p.Agent, Clearances: p.Clearances, Reason: p.Reason, By: c.Cmd.Actor.ID,
		Height: c.Height, At: at, Until: at + core.Time(p.Seconds*1000)}
	if p.Entries > 0 {
		e.Last = c.Height + p.Entries
	}
	row.List = append(row.List, e)
	elevations.Put(c.Tx, of, p.Agent, row)
	s, err := InForce(c.Tx)
	if err != nil {
		return nil, errUnreadable(err)
	}
	if !s.Elevations {
		s.Elevations = true
		constitutions.Put(c.Tx, now, s)
	}
	recordElevation(c, "capability.elevated", e)
	return e, nil
}

func revokeElevation(c *ledger.Context, p EndElevation) (any, error) {
	row, ok := elevations.Get(c.Tx, c.Cmd.Company, p.Agent)
	i := slices.IndexFunc(row.List, func(e Elevation) bool { return e.ID == p.ID })
	if !ok || i < 0 {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Elevation not found")
	}
	at := core.TimeOf(c.Now)
	if status := row.List[i].Status(at, c.Height); status != ElevationInForce {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The elevation is not in force any more: it is %s", status)
	}
	row = row.Clone()
	row.List[i].RevokedAt, row.List[i].RevokedBy = at, c.Cmd.Actor.ID
	elevations.Put(c.Tx, c.Cmd.Company, p.Agent, row)
	recordElevation(c, "capability.revoked", row.List[i])
	return row.List[i], nil
}

func recordElevation(c *ledger.Context, action string, e Elevation) {
	c.Record(ledger.Change{Action: action, EntityType: "elevation", EntityID: e.ID,
		Details: core.Object{}.Str("agentId", e.Agent).List("clearances", e.Clearances).Time("until", e.Until).Close()})
}

func elevationsGone(c *ledger.Context, a entity.Agent) {
	if c.Tx.Has(elevations.Key(a.Company, a.ID)) {
		elevations.Delete(c.Tx, a.Company, a.ID)
	}
}
