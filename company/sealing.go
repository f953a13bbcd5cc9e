package company

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// What the kernel has that is sealed, or refers to secrets: agents with their revisions,
// and projects.

// envsKernel are the variables of agents and projects.
func envsKernel(tx *ledger.Tx, company string) (out []EnvUse) {
	for _, a := range agents.All(tx, company) {
		if !strings.Contains(string(a.AdapterConfig), `"secret_ref"`) {
			continue
		}
		label := a.Name
		if a.Title != "" {
			label += " (" + string(a.Title) + ")"
		}
		out = append(out, EnvUse{EnvOf(a.AdapterConfig), SecretTarget{"agent", a.ID, label, "/agents/" + a.URLKey(), string(a.Status)}, a.UpdatedAt})
	}
	for _, p := range projects.All(tx, company) {
		out = append(out, EnvUse{p.Env, SecretTarget{"project", p.ID, p.Name, "/projects/" + cmp.Or(URLKey(p.Name), p.ID), string(p.Status)}, p.UpdatedAt})
	}
	return out
}

// Sealed seals the configurations of an agent.
func (p SaveAgent) Sealed(seal SealFunc) (any, error) {
	for _, f := range []struct {
		name   string
		config *json.RawMessage
	}{{"adapterConfig", &p.AdapterConfig}, {"runtimeConfig", &p.RuntimeConfig}, {"metadata", &p.Metadata}} {
		var err error
		if *f.config, err = sealConfig(*f.config, f.name, func(path, plain string) (string, error) { return seal(p.ID, path, plain) }); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Sealed seals the variables of a project.
func (s SaveProject) Sealed(seal SealFunc) (any, error) {
	var err error
	s.Env, err = sealEnv(s.Env, s.ID, seal)
	return s, err
}

// sealedKernel are the agents, with their revisions, and projects of a company.
func sealedKernel(tx *ledger.Tx, company string) (out []SealedConfig) {
	if company == "" {
		return nil
	}
	for _, a := range agents.All(tx, company) {
		o := SealedConfig{Type: "agent", ID: a.ID, Owner: a.ID}
		o.collect("adapterConfig", a.AdapterConfig)
		o.collect("runtimeConfig", a.RuntimeConfig)
		o.collect("metadata", a.Metadata)
		for _, v := range tx.Prefix(revisions.Key(company, a.ID+".")) {
			r := decodeRow[Revision](v)
			o.collect("", r.Before)
			o.collect("", r.After)
		}
		out = append(out, o)
	}
	for _, p := range projects.All(tx, company) {
		o := SealedConfig{Type: "project", ID: p.ID, Owner: p.ID}
		o.collect("env", p.Env)
		out = append(out, o)
	}
	return out
}

func resealAgent(c *ledger.Context, p Reseal) error {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return errNoAgent()
	}
	for _, config := range []*json.RawMessage{&a.AdapterConfig, &a.RuntimeConfig, &a.Metadata} {
		*config = p.config(*config)
	}
	agents.Put(c.Tx, a.Company, a.ID, a)
	for _, k := range revisionRows(c.Tx, a) { // MaxRevisions at most
		v, _ := c.Tx.Get(k)
		r := decodeRow[Revision](v)
		r.Before, r.After = p.config(r.Before), p.config(r.After)
		c.Set(k, ledger.Marshal(r))
	}
	return nil
}

func resealProject(c *ledger.Context, p Reseal) error {
	pr, ok := projects.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return errNoProject()
	}
	pr.Env = p.config(pr.Env)
	projects.Put(c.Tx, pr.Company, pr.ID, pr)
	return nil
}
