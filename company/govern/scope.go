package govern

import (
	"cmp"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Place is what holds for acts in the mesh, a company or a project. What is empty is as further out.
type Place struct {
	Class governance.EnvironmentClass `cbor:"1,keyasint,omitempty"`
	Asks  Asking                      `cbor:"2,keyasint,omitempty"`
	Wait  uint64                      `cbor:"3,keyasint,omitempty"` // minutes
}

// Asking says whether a person is asked about what a rule blocks.
type Asking uint8

// Values of Asking.
const (
	AsOutside Asking = iota
	Asks             // it waits for a person; this holds unless a place says otherwise
	AsksNobody
)

// SetPlace is the payload of governance.place. Without a company it is about the mesh.
type SetPlace struct {
	Project string                       `cbor:"1,keyasint,omitempty"` // "": the company itself
	Class   *governance.EnvironmentClass `cbor:"2,keyasint,omitempty"`
	Asks    *Asking                      `cbor:"3,keyasint,omitempty"`
	Wait    *uint64                      `cbor:"4,keyasint,omitempty"`
}

// KindPlace sets the environment of a company, a project or the mesh.
const KindPlace = "governance.place"

// places are kept by the ID of the project, "company" for the company itself.
var places = ledger.NewTable[string, Place]("governance-place")

const ofCompany = "company"

// PlaceOf returns what a company says of itself, or of one of its projects.
func PlaceOf(tx *ledger.Tx, of ledger.CompanyID, project string) Place {
	p, _ := places.Get(tx, of, cmp.Or(project, ofCompany))
	return p
}

// over returns p with what it leaves open from outer.
func (p Place) over(outer Place) Place {
	return Place{cmp.Or(p.Class, outer.Class), cmp.Or(p.Asks, outer.Asks), cmp.Or(p.Wait, outer.Wait)}
}

// placeFor returns what holds for a project, a company or the mesh: the nearest that says something.
func placeFor(tx *ledger.Tx, s Constitution, of ledger.CompanyID, project string) Place {
	p := Place{}
	if s.Places && of != "" {
		if project != "" {
			p = PlaceOf(tx, of, project)
		}
		p = p.over(PlaceOf(tx, of, ""))
	}
	return p.over(s.Mesh)
}

// ScopeOf returns the scope of acts in a project, a company or the mesh.
func ScopeOf(tx *ledger.Tx, s Constitution, of ledger.CompanyID, project string) governance.Scope {
	p := placeFor(tx, s, of, project)
	return governance.Scope{Class: p.Class, HumanApproval: p.Asks != AsksNobody && of != ""}
}

func (p Place) wait() time.Duration {
	if p.Wait == 0 {
		return WaitFor
	}
	return time.Duration(p.Wait) * time.Minute
}

func setPlace(c *ledger.Context, p SetPlace) (any, error) {
	of := c.Cmd.Company
	s, err := InForce(c.Tx)
	if err != nil {
		return nil, errUnreadable(err)
	}
	if p.Project != "" && (of == "" || !entity.ProjectExists(c.Tx, of, p.Project)) {
		return nil, ledger.Refuse(ledger.NotFound, nil, "project: not found")
	}
	place := s.Mesh
	if of != "" {
		place = PlaceOf(c.Tx, of, p.Project)
	}
	core.Assign(&place.Class, p.Class)
	core.Assign(&place.Asks, p.Asks)
	core.Assign(&place.Wait, p.Wait)
	switch err := (governance.Scope{Class: place.Class}).Check(); {
	case err != nil:
		return nil, ledger.Refuse(ledger.Invalid, nil, "environment: want dev, staging or prod, got %.40q",
			string(place.Class))
	case place.Asks > AsksNobody:
		return nil, ledger.Refuse(ledger.Invalid, nil, "humanApproval: want true or false")
	case place.Wait > MaxWaitMinutes:
		return nil, ledger.Refuse(ledger.Invalid, nil, "approvalMinutes: at most %d", MaxWaitMinutes)
	}
	if of == "" {
		s.Mesh = place
	} else {
		places.Put(c.Tx, of, cmp.Or(p.Project, ofCompany), place)
		s.Places = true
	}
	constitutions.Put(c.Tx, now, s)
	entity, id := "company", string(of)
	if p.Project != "" {
		entity, id = "project", p.Project
	}
	if of == "" {
		entity, id = "mesh", string(c.Mesh)
	}
	c.Record(ledger.Change{Action: "governance.place_set", EntityType: entity, EntityID: id,
		Details: core.Object{}.Str("environment", string(place.Class)).Bool("humanApproval",
			place.Asks != AsksNobody).Close()})
	return place, nil
}

func projectDeleted(c *ledger.Context, p entity.Project) {
	if _, ok := places.Get(c.Tx, p.Company, p.ID); ok {
		places.Delete(c.Tx, p.Company, p.ID)
	}
}

var placeKinds = []company.Kind{
	{Name: KindPlace, From: company.FromBoard, Traits: company.LeadersOnly | company.NoWork, Weight: company.Weights.SetUp,
		Do: ledger.Typed(setPlace)},
}
