package govern

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/ledger"
)

// elevationRoutes give agents clearances for a time.
func elevationRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern/elevations"
	return []api.Route{
		{Method: "GET", Path: at, Kernel: true, Tag: tag, Summary: "List elevations of agents, by agent", Out: []elevation{},
			Query: []api.Param{{Name: "companyId", Doc: "all that the caller sees unless given"},
				{Name: "status", Doc: "in_force, ended or revoked"}}, Handle: listElevations},
		{Method: "POST", Path: at, Kernel: true, Once: true, Tag: tag, Status: 201,
			Summary: "Ask for clearances of an agent for a time; 409 with approvalId when it waits for a person",
			In:      elevationBody{}, Out: elevation{}, Handle: elevate},
		{Method: "POST", Path: at + "/{id}/revoke", Kernel: true, Tag: tag, Summary: "End an elevation at once",
			Out: elevation{}, Who: api.Board, Handle: revokeElevation},
	}
}

type (
	elevationBody struct {
		Agent      string   `json:"agentId" minLength:"1" maxLength:"36" doc:"its ID; an agent asks for itself"`
		Clearances []string `json:"clearances" minItems:"1" maxItems:"8" maxLength:"64" doc:"that rules read, such as deploy or risk-review"`
		Seconds    int64    `json:"seconds,omitempty" minimum:"1" maximum:"86400" doc:"900 unless given"`
		Entries    int64    `json:"entries,omitempty" minimum:"1" maximum:"1000000" doc:"it also ends after so many entries of the chain"`
		Reason     string   `json:"reason,omitempty" maxLength:"500" maxBytes:"500" doc:"what a person who is asked sees"`
	}
	elevation struct {
		ID         string     `json:"id"`
		Company    string     `json:"companyId"`
		Agent      string     `json:"agentId"`
		Status     string     `json:"status"` // in_force, ended or revoked
		Clearances []string   `json:"clearances"`
		Reason     *string    `json:"reason"`
		By         string     `json:"requestedBy"`
		Height     uint64     `json:"height"`
		At         core.Time  `json:"inForceSince"`
		Until      core.Time  `json:"until"`
		Last       *uint64    `json:"lastHeight"` // null: only time ends it
		RevokedAt  *core.Time `json:"revokedAt"`
		RevokedBy  *string    `json:"revokedBy"`
	}
)

func elevationShape(e govern.Elevation, height uint64, now core.Time) elevation {
	out := elevation{ID: e.ID, Company: string(e.Company), Agent: e.Agent, Clearances: append([]string{}, e.Clearances...),
		Status: e.Status(now, height), Reason: orNull(e.Reason), By: e.By, Height: e.Height, At: e.At,
		Until: e.Until, RevokedBy: orNull(e.RevokedBy)}
	if e.Last > 0 {
		out.Last = &e.Last
	}
	if e.RevokedAt > 0 {
		out.RevokedAt = &e.RevokedAt
	}
	return out
}

func listElevations(rc *api.Request) (api.Response, error) {
	of, err := rc.QueryUUID("companyId")
	if err != nil {
		return api.Response{}, err
	}
	status := rc.Query("status")
	switch status {
	case "", "in_force", "ended", "revoked":
	default:
		return api.Response{}, api.Invalid("Invalid status: want in_force, ended or revoked, got %.40q", status)
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]elevation, error) {
		list := seen(tx, rc, of)
		if of != "" && len(list) == 0 {
			return nil, api.NotFound("Company not found")
		}
		out := []elevation{}
		for _, of := range list {
			if of == "" {
				continue
			}
			for e := range govern.Elevations(tx, of) {
				shape := elevationShape(e, tx.Position().Height, core.TimeOf(rc.Now()))
				if status != "" && shape.Status != status {
					continue
				}
				if out = append(out, shape); len(out) == govern.MaxListed {
					return out, nil
				}
			}
		}
		return out, nil
	})
}

func elevate(rc *api.Request) (api.Response, error) {
	in, err := api.Body[elevationBody](rc)
	if err != nil {
		return badBody(err)
	}
	var a entity.Agent
	err = rc.View(func(tx *ledger.Tx) error {
		a, err = entity.AgentByRef(tx, rc.Company, strings.ToLower(in.Agent))
		if err == nil && !api.Seen(tx, rc, a.Company) {
			err = entity.ErrNoAgent()
		}
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	e, err := api.Do[govern.Elevation](rc, govern.KindElevate, a.Company, govern.Elevate{ID: api.NewID(), Agent: a.ID,
		Clearances: in.Clearances, Seconds: uint64(in.Seconds), Entries: uint64(in.Entries), Reason: in.Reason})
	if err != nil {
		return api.Response{}, err
	}
	return api.Reply(201, elevationShape(e, e.Height, core.TimeOf(rc.Now()))), nil
}

func revokeElevation(rc *api.Request) (api.Response, error) {
	var found *govern.Elevation
	err := rc.View(func(tx *ledger.Tx) error {
		for _, of := range seen(tx, rc, "") {
			if of == "" {
				continue
			}
			for e := range govern.Elevations(tx, of) {
				if e.ID == strings.ToLower(rc.Path("id")) {
					found = &e
					return nil
				}
			}
		}
		return api.NotFound("Elevation not found")
	})
	if err != nil {
		return api.Response{}, err
	}
	e, err := api.Do[govern.Elevation](rc, govern.KindElevationRevoke, found.Company,
		govern.EndElevation{Agent: found.Agent, ID: found.ID})
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(elevationShape(e, e.Height, core.TimeOf(rc.Now()))), nil
}
