// Package weftos serves what clients of the WeftOS kernel's API know: capability tokens, and views of companies
// in its types.
package weftos

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const tag = "kernel"

// CapabilityRoutes makes capability tokens. They are not stored: each ends at its time, or with the credential that
// it was made with.
func CapabilityRoutes() []api.Route {
	return []api.Route{{Method: "POST", Path: "/api/v1/capabilities", Kernel: true, Limited: true, Once: true,
		NoTool: true, Tag: tag, Status: 201,
		Summary: "Make a capability token: it may do a part of what the caller may, until its time is up",
		In:      capabilityBody{}, Out: capability{}, Handle: makeCapability}}
}

type capabilityBody struct {
	Capabilities []string         `json:"capabilities" minItems:"1" maxItems:"8" enum:"execute,govern" doc:"execute: give tasks and read what came of them; govern: ask the gate"`
	Agent        string           `json:"agent_id,omitempty" trim:"true" maxLength:"256" maxBytes:"256" doc:"the only agent that it is for, as execute and govern take it; any unless given"`
	Company      ledger.CompanyID `json:"company_id,omitempty" format:"uuid" doc:"the only company that it is for; any unless given"`
	Life         *int64           `json:"ttl_seconds,omitempty" minimum:"1" maximum:"86400" doc:"3600 unless given"`
}

type capability struct {
	Token        string            `json:"token"`  // shown once
	Scheme       string            `json:"scheme"` // Authorization: <scheme> <token>
	ID           string            `json:"id"`
	Capabilities []string          `json:"capabilities"`
	Agent        *string           `json:"agent_id"`
	Company      *ledger.CompanyID `json:"company_id"`
	ExpiresAt    core.Time         `json:"expires_at"`
}

func makeCapability(rc *api.Request) (api.Response, error) {
	in, err := api.Body[capabilityBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	keys := rc.Server.Cfg.DataKeys
	if keys == nil || len(keys()) == 0 {
		return api.Response{}, api.Unavailable("This node does not have the key that signs capability tokens; use another " +
			"node")
	}
	slices.Sort(in.Capabilities)
	c := identity.CapClaims{ID: api.NewID(), Capabilities: slices.Compact(in.Capabilities),
		Company:   strings.ToLower(string(in.Company)),
		ActorType: rc.Actor.Type, Actor: rc.Actor.ID, CredKind: rc.Credential.Kind, CredID: rc.Credential.ID}
	if rc.IsAgent() {
		if c.Company != "" && c.Company != string(rc.Company) {
			return api.Response{}, api.NotFound("Company not found")
		}
		c.Company = string(rc.Company)
	}
	if err := rc.View(func(tx *ledger.Tx) error { return bind(tx, rc, &c, in.Agent) }); err != nil {
		return api.Response{}, err
	}
	life := identity.DefaultCapLife
	if in.Life != nil {
		life = time.Duration(*in.Life) * time.Second
	}
	token, c, err := identity.MintCapToken(keys()[0], rc.Server.Cfg.Mesh, c, rc.Now(), life)
	if err != nil {
		return api.Response{}, err
	}
	out := capability{Token: token, Scheme: api.CapScheme, ID: c.ID, Capabilities: c.Capabilities,
		ExpiresAt: core.TimeOf(time.Unix(c.ExpiresAt, 0))}
	if c.Agent != "" {
		out.Agent = &c.Agent
	}
	if c.Company != "" {
		out.Company = new(ledger.CompanyID(c.Company))
	}
	return api.OK(out), nil
}

// bind finds the agent that a token is for. A name that the mesh does not know stays: the gate is also asked about
// agents of other systems.
func bind(tx *ledger.Tx, rc *api.Request, c *identity.CapClaims, ref string) error {
	of := ledger.CompanyID(c.Company)
	if of != "" && !api.Seen(tx, rc, of) {
		return api.NotFound("Company not found")
	}
	c.Agent = ref
	if ref == "" || of == "" && !api.IsUUID(ref) {
		return nil
	}
	a, err := entity.AgentByRef(tx, of, ref)
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && no.Code == ledger.NotFound && !api.IsUUID(ref) {
		return nil
	}
	if err == nil && (!api.Seen(tx, rc, a.Company) || of != "" && a.Company != of) {
		err = entity.ErrNoAgent()
	}
	if err != nil {
		return err
	}
	c.Agent, c.Company = a.ID, string(a.Company)
	return nil
}
