package govern

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/ledger"
)

// permitRoutes ask for permits, show and use them.
func permitRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern/permits"
	return []api.Route{
		{Method: "GET", Path: at, Kernel: true, Tag: tag, Summary: "List permits of a company, those that end last first",
			Query: permitQuery, Out: []permit{}, Handle: listPermits},
		{Method: "POST", Path: at, Kernel: true, Capability: "govern", Once: true, Tag: tag, Status: 201,
			Summary: "Ask for a permit for one act: granted at once, put before a person, or 403",
			In:      permitBody{}, Out: permit{}, Handle: askPermit},
		api.Read(api.Route{Path: at + "/{id}", Kernel: true, Tag: tag,
			Summary: "Show a permit, with a signed token while it holds"}, readPermit),
		{Method: "POST", Path: at + "/{id}/revoke", Kernel: true, Tag: tag, Summary: "End a permit at once", Out: permit{},
			Who: api.Board, Handle: revokePermit},
		{Method: "POST", Path: "/api/v1/govern/use", Kernel: true, Capability: "govern", Once: true, Tag: tag,
			Summary: "Check that a permit is for an act, and use it: one that holds once is used up on all nodes",
			In:      useBody{}, Out: permit{}, Handle: usePermit},
		{Method: "POST", Path: "/api/v1/govern/verify", Kernel: true, Capability: "govern", Tag: tag,
			Summary: "Check the signature of a permit token or an attestation, and whether the permit holds; nothing is used",
			In:      verifyBody{}, Out: tokenCheck{}, Handle: verify},
	}
}

var permitQuery = []api.Param{{Name: "companyId", Doc: "all that the caller sees unless given"},
	{Name: "agentId", Doc: "who acts"},
	{Name: "status", Doc: "granted, used, expired, revoked or rejected; several with commas"},
	{Name: "limit", Doc: "100 unless given, at most 1000", Type: "integer"}}

type (
	permitBody struct {
		Action    string          `json:"action" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256" doc:"what is to be done; a command needs no permit"`
		Agent     string          `json:"agent_id" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256" doc:"an agent of this mesh by ID, or by name within context.company_id"`
		Arguments json.RawMessage `json:"arguments,omitempty" doc:"of the act, as JSON: the permit is for these alone"`
		Hash      string          `json:"arguments_sha256,omitempty" maxLength:"64" doc:"their SHA-256 in hex, in place of arguments"`
		Once      bool            `json:"once,omitempty" doc:"it holds once; always so where the act is irreversible"`
		Seconds   int64           `json:"ttl_seconds,omitempty" minimum:"1" maximum:"86400" doc:"an hour unless given"`
		Detail    string          `json:"detail,omitempty" maxLength:"500" maxBytes:"500" doc:"what a person who is asked sees of the arguments"`
		Context   contextBody     `json:"context,omitempty"`
	}
	useBody struct {
		Token     string          `json:"token" minLength:"1" maxLength:"8192" maxBytes:"8192" doc:"permit1.…"`
		Action    string          `json:"action" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256"`
		Agent     string          `json:"agent_id" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256" doc:"ID of the agent that acts"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Hash      string          `json:"arguments_sha256,omitempty" maxLength:"64"`
	}
	verifyBody struct {
		Token string `json:"token" minLength:"1" maxLength:"8192" maxBytes:"8192" doc:"permit1.… or attest1.…"`
	}
	permit struct {
		ID        *string    `json:"id"` // null: nothing is granted yet
		Company   string     `json:"companyId"`
		Status    string     `json:"status"` // granted, waiting, used, expired, revoked or rejected
		Agent     string     `json:"agent_id"`
		Action    string     `json:"action"`
		Arguments string     `json:"arguments_sha256"`
		Once      bool       `json:"once"`
		Approval  *string    `json:"approvalId"` // that it waits for, or was granted by
		Rules     []string   `json:"rules"`      // that a person has overruled, or that block it
		Reason    *string    `json:"reason"`     // why it waits
		Version   uint64     `json:"constitution"`
		Height    *uint64    `json:"height"` // of the entry that granted it
		At        *core.Time `json:"grantedAt"`
		Until     *core.Time `json:"until"`
		Uses      uint64     `json:"uses"`
		UsedAt    *core.Time `json:"usedAt"`
		UsedBy    *string    `json:"usedBy"`
		Token     *string    `json:"token"` // while it holds
	}
	tokenCheck struct {
		Kind      string    `json:"kind"`   // permit or attestation
		Valid     bool      `json:"valid"`  // a member has signed it; a permit also holds now
		Status    *string   `json:"status"` // of the permit
		Node      string    `json:"nodeId"`
		Company   *string   `json:"companyId"`
		Agent     string    `json:"agent_id"`
		Action    string    `json:"action"`
		Arguments *string   `json:"arguments_sha256"` // of an attestation: of the question
		Permit    *string   `json:"permitId"`
		Once      bool      `json:"once"`
		Decision  string    `json:"decision"`
		Rules     []string  `json:"rules"`
		Vector    []float64 `json:"effect_vector"`
		Version   string    `json:"constitution"`
		Height    uint64    `json:"height"`
		ChainHash *string   `json:"chain_hash"`
		// OnChain: the entry at the height has that hash, on this node; null: the token names none, or the node is behind.
		OnChain *bool      `json:"onChain"`
		At      core.Time  `json:"at"`
		Until   *core.Time `json:"until"`
	}
)

// argumentsOf returns the name of arguments that are given as such, or by their hash.
func argumentsOf(raw json.RawMessage, hash string) (string, error) {
	hash = strings.ToLower(hash)
	switch {
	case hash == "":
		return govern.ArgumentsOf(raw), nil
	case len(raw) > 0:
		return "", api.Invalid("arguments: give them or arguments_sha256, not both")
	case !core.IsHash(hash):
		return "", api.Invalid("arguments_sha256: want 64 hexadecimal digits")
	}
	return hash, nil
}

func permitShape(rc *api.Request, tx *ledger.Tx, p govern.Permit, token bool) (permit, error) {
	now := core.TimeOf(rc.Now())
	out := permit{ID: &p.ID, Company: string(p.Company), Status: p.Status(now), Agent: p.Act.Agent, Action: p.Act.Action,
		Arguments: p.Arguments, Once: p.Once, Rules: append([]string{}, p.Rules...), Version: p.Version, Height: &p.Height,
		At: &p.At, Until: &p.Until, Uses: p.Uses, UsedBy: orNull(p.UsedBy)}
	if p.Approved || p.Rejected {
		out.Approval = &p.ID
	}
	if p.Uses > 0 {
		out.UsedAt = &p.UsedAt
	}
	if sign := rc.Server.Cfg.Sign; token && sign != nil && out.Status == govern.PermitGranted {
		s, err := govern.VersionOf(tx, p.Version)
		if err != nil {
			return out, err
		}
		out.Token = new(p.Statement(string(rc.Server.Cfg.Mesh), s.Hash).Signed(string(rc.Server.Cfg.NodeID), sign))
	}
	return out, nil
}

func askPermit(rc *api.Request) (api.Response, error) {
	in, err := api.Body[permitBody](rc)
	if err != nil {
		return badBody(err)
	}
	arguments, err := argumentsOf(in.Arguments, in.Hash)
	if err != nil {
		return api.Response{}, err
	}
	act, _, no, err := actOf(rc, askBody{in.Action, in.Agent, in.Context})
	if err != nil || no.Body != nil {
		return no, err
	}
	if act.Company == "" || !api.IsUUID(act.Agent) {
		return api.Response{},
			api.NotFound("agent_id: no agent of this mesh: give its ID, or its name with context.company_id")
	}
	ask := govern.AskPermit{ID: api.NewID(), Agent: act.Agent, Action: act.Action, Arguments: arguments, Once: in.Once,
		Seconds: uint64(in.Seconds), Known: act.Context, Run: rc.Run, Detail: in.Detail}
	a, err := api.Do[govern.PermitAnswer](rc, govern.KindPermit, act.Company, ask)
	if err != nil {
		return api.Response{}, err
	}
	switch a.Status {
	case govern.PermitDenied:
		return api.Response{}, a.Refusal()
	case govern.PermitWaits:
		return api.Reply(201, permit{Company: string(act.Company), Status: a.Status, Agent: act.Agent, Action: act.Action,
			Arguments: arguments, Once: in.Once, Approval: &a.Approval, Rules: []string{a.Voice.Rule}, Reason: &a.Reason,
			Version: a.Version}), nil
	}
	out, err := showPermit(rc, act.Company, a.Permit, true)
	return api.Reply(201, out), err
}

func showPermit(rc *api.Request, of ledger.CompanyID, id string, token bool) (out permit, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		p, ok := govern.PermitOf(tx, of, id)
		if !ok {
			return errNoPermit()
		}
		out, err = permitShape(rc, tx, p, token)
		return err
	})
	return out, err
}

func errNoPermit() error { return api.NotFound("Permit not found") }

// findPermit returns a permit that the caller sees: an agent sees its own.
func findPermit(tx *ledger.Tx, rc *api.Request, id string) (govern.Permit, error) {
	for _, of := range seen(tx, rc, "") {
		if of == "" {
			continue
		}
		if p, ok := govern.PermitOf(tx, of, strings.ToLower(id)); ok && (!rc.IsAgent() || p.Act.Agent == rc.Actor.ID) {
			return p, nil
		}
	}
	return govern.Permit{}, errNoPermit()
}

func readPermit(tx *ledger.Tx, rc *api.Request) (permit, error) {
	p, err := findPermit(tx, rc, rc.Path("id"))
	if err != nil {
		return permit{}, err
	}
	return permitShape(rc, tx, p, true)
}

func listPermits(rc *api.Request) (api.Response, error) {
	of, err := rc.QueryUUID("companyId")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 100, 1, govern.MaxListed)
	if err != nil {
		return api.Response{}, err
	}
	wanted, agent := rc.QueryList("status"), strings.TrimSpace(rc.Query("agentId"))
	for _, s := range wanted {
		switch s {
		case "granted", "used", "expired", "revoked", "rejected":
		default:
			return api.Response{}, api.Invalid(
				"Invalid status: want granted, used, expired, revoked or rejected, got %.40q", s)
		}
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]permit, error) {
		list := seen(tx, rc, of)
		if of != "" && len(list) == 0 {
			return nil, api.NotFound("Company not found")
		}
		out, now := []permit{}, core.TimeOf(rc.Now())
		for _, of := range list {
			if of == "" {
				continue
			}
			for p := range govern.Permits(tx, of) {
				if rc.IsAgent() && p.Act.Agent != rc.Actor.ID || agent != "" && p.Act.Agent != agent ||
					len(wanted) > 0 && !slices.Contains(wanted, p.Status(now)) {
					continue
				}
				shape, err := permitShape(rc, tx, p, false)
				if err != nil {
					return nil, err
				}
				if out = append(out, shape); len(out) == limit {
					return out, nil
				}
			}
		}
		return out, nil
	})
}

func revokePermit(rc *api.Request) (api.Response, error) {
	var p govern.Permit
	err := rc.View(func(tx *ledger.Tx) (err error) {
		p, err = findPermit(tx, rc, rc.Path("id"))
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(govern.KindPermitRevoke, p.Company, govern.EndPermit{Permit: p.ID}); err != nil {
		return api.Response{}, err
	}
	out, err := showPermit(rc, p.Company, p.ID, false)
	return api.OK(out), err
}

// usePermit is for whoever carries out acts of agents: a server of tools, another system.
func usePermit(rc *api.Request) (api.Response, error) {
	in, err := api.Body[useBody](rc)
	if err != nil {
		return badBody(err)
	}
	arguments, err := argumentsOf(in.Arguments, in.Hash)
	if err != nil {
		return api.Response{}, err
	}
	var s govern.Statement
	err = rc.View(func(tx *ledger.Tx) error {
		if s, err = govern.OpenToken(tx, string(rc.Server.Cfg.Mesh), in.Token); err != nil {
			return err
		}
		if s.Permit == "" {
			return api.Invalid("token: it is an attestation; want a permit, permit1.…")
		}
		if _, err := findPermit(tx, rc, s.Permit); err != nil {
			return err
		}
		return rc.Granted(s.Company, s.Agent)
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(govern.KindPermitUse, s.Company, govern.UsePermit{Permit: s.Permit,
		Agent: strings.ToLower(in.Agent), Action: in.Action, Arguments: arguments}); err != nil {
		return api.Response{}, err
	}
	out, err := showPermit(rc, s.Company, s.Permit, false)
	return api.OK(out), err
}

func verify(rc *api.Request) (api.Response, error) {
	in, err := api.Body[verifyBody](rc)
	if err != nil {
		return badBody(err)
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (tokenCheck, error) {
		s, err := govern.OpenToken(tx, string(rc.Server.Cfg.Mesh), in.Token)
		if err != nil {
			return tokenCheck{}, err
		}
		out := tokenCheck{Kind: "attestation", Valid: true, Node: s.Node, Company: orNull(s.Company), Agent: s.Agent,
			Action: s.Action, Arguments: orNull(s.Arguments), Permit: orNull(s.Permit), Once: s.Once, Decision: s.Decision,
			Rules: append([]string{}, s.Rules...), Vector: []float64{}, Version: s.Laws, Height: s.Height,
			ChainHash: orNull(s.Chain), At: core.Time(s.At)}
		for _, l := range s.Effect {
			out.Vector = append(out.Vector, float64(l)/1000)
		}
		if e, ok := ledger.EntryAt(tx, s.Height); ok && s.Chain != "" {
			out.OnChain = new(hex.EncodeToString(e.Hash[:]) == s.Chain)
			out.Valid = *out.OnChain
		}
		if s.Permit != "" {
			out.Kind, out.Until = "permit", new(core.Time(s.Until))
			p, err := findPermit(tx, rc, s.Permit)
			if err != nil {
				return tokenCheck{}, err
			}
			out.Status = new(p.Status(core.TimeOf(rc.Now())))
			out.Valid = *out.Status == govern.PermitGranted
		}
		return out, nil
	})
}
