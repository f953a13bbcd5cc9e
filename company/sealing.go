package company

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rows of the kernel with sealed values or references to secrets: agents, with their
// revisions, and projects.

// envsKernel lists the variables of agents and projects.
func envsKernel(tx *ledger.Tx, company ledger.CompanyID) (out []EnvUse) {
	for _, a := range entity.AgentTable.All(tx, company) {
		if !strings.Contains(string(a.AdapterConfig), `"secret_ref"`) {
			continue
		}
		label := a.Name
		if a.Title != "" {
			label += " (" + string(a.Title) + ")"
		}
		out = append(out, EnvUse{conceal.EnvOf(a.AdapterConfig), conceal.SecretTarget{Type: "agent", ID: a.ID, Label: label,
			Href: "/agents/" + a.URLKey(), Status: string(a.Status)}, a.UpdatedAt})
	}
	for _, p := range entity.ProjectTable.All(tx, company) {
		out = append(out, EnvUse{p.Env, conceal.SecretTarget{Type: "project", ID: p.ID, Label: p.Name, Href: "/projects/" +
			cmp.Or(core.URLKey(p.Name), p.ID), Status: string(p.Status)}, p.UpdatedAt})
	}
	return out
}

// sealedKernel lists the agents, with their revisions, and the projects of a company.
func sealedKernel(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
	if company == "" {
		return nil
	}
	for _, a := range entity.AgentTable.All(tx, company) {
		o := conceal.SealedConfig{Type: "agent", ID: a.ID, Owner: a.ID}
		o.Collect("adapterConfig", a.AdapterConfig)
		o.Collect("runtimeConfig", a.RuntimeConfig)
		o.Collect("metadata", a.Metadata)
		for _, v := range tx.Prefix(entity.Revisions.Key(company, a.ID+".")) {
			r := core.DecodeRow[entity.Revision](v)
			o.Collect("", r.Before)
			o.Collect("", r.After)
		}
		out = append(out, o)
	}
	for _, p := range entity.ProjectTable.All(tx, company) {
		o := conceal.SealedConfig{Type: "project", ID: p.ID, Owner: p.ID}
		o.Collect("env", p.Env)
		out = append(out, o)
	}
	return out
}

func resealAgent(c *ledger.Context, p conceal.Reseal) error {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return entity.ErrNoAgent()
	}
	for _, config := range []*json.RawMessage{&a.AdapterConfig, &a.RuntimeConfig, &a.Metadata} {
		*config = p.Config(*config)
	}
	entity.AgentTable.Put(c.Tx, a.Company, a.ID, a)
	for _, k := range revisionRows(c.Tx, a) { // at most MaxRevisions
		v, _ := c.Tx.Get(k)
		r := core.DecodeRow[entity.Revision](v)
		r.Before, r.After = p.Config(r.Before), p.Config(r.After)
		c.Set(k, ledger.Marshal(r))
	}
	return nil
}

func resealProject(c *ledger.Context, p conceal.Reseal) error {
	pr, ok := entity.ProjectTable.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return entity.ErrNoProject()
	}
	pr.Env = p.Config(pr.Env)
	entity.ProjectTable.Put(c.Tx, pr.Company, pr.ID, pr)
	return nil
}
