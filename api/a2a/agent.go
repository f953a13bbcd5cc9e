package a2a

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// seen returns the companies that a caller may see.
func seen(tx *ledger.Tx, rc *api.Request) (out []entity.Company) {
	for _, c := range entity.Companies(tx) {
		if rc.Enters(tx, c.ID) {
			out = append(out, c)
		}
	}
	return out
}

// find returns the agent that ref names: its ID, COMPANY.NAME or COMPANY/NAME, or a name or "" where the caller sees
// one company.
func find(tx *ledger.Tx, rc *api.Request, ref string) (entity.Agent, error) {
	if id := strings.ToLower(ref); api.IsUUID(id) {
		a, ok := entity.AgentByID(tx, id)
		if !ok || !api.Seen(tx, rc, a.Company) {
			return a, api.NotFound("Agent not found")
		}
		return a, nil
	}
	var of entity.Company
	all := seen(tx, rc)
	if at := strings.IndexAny(ref, "./"); at > 0 {
		name := ref[:at]
		for _, c := range all {
			if strings.EqualFold(name, string(c.ID)) || strings.EqualFold(name, c.IssuePrefix) {
				of = c
			}
		}
		if of.ID == "" {
			return entity.Agent{}, api.NotFound("Agent not found")
		}
		ref = ref[at+1:]
	} else if len(all) == 1 {
		of = all[0]
	} else if ref != "" {
		return entity.Agent{}, badParams.as("agent %q: a name needs its company: write COMPANY.NAME, or the agent's ID",
			api.Cut(ref, 100))
	} else {
		return entity.Agent{}, badParams.as("tenant: name the agent; the skills of the agent card list them")
	}
	if ref != "" {
		return entity.AgentByRef(tx, of.ID, ref)
	}
	return chief(tx, of)
}

// chief returns who gets a task that names no agent: the company's CEO, or its only agent.
func chief(tx *ledger.Tx, of entity.Company) (entity.Agent, error) {
	var live []entity.Agent
	for _, a := range entity.AgentsOf(tx, of.ID, false) {
		if a.Status == entity.AgentPendingApproval {
			continue
		}
		if a.Role == "ceo" {
			return a, nil
		}
		live = append(live, a)
	}
	if len(live) == 1 {
		return live[0], nil
	}
	return entity.Agent{}, badParams.as("tenant: company %s has %d agents and no CEO; name the agent", of.Name, len(live))
}
