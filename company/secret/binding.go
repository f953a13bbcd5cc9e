// Package secret is values that configurations refer to and that are never shown: secrets
// with their versions, users' own secrets, and the resolved values of a run.
package secret

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// bindEnv checks the env of a configuration, and returns it with references completed. It
// does not look up a reference that the old env has: if the secret is deleted, the run fails
// with an error that says so.
func bindEnv(tx *ledger.Tx, company ledger.CompanyID, env, old json.RawMessage) (json.RawMessage, error) {
	v, _ := core.ParseJSON(env)
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return env, nil
	}
	before, _ := conceal.Bindings(old)
	refs := 0
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b, err := conceal.BindingOf(k, m[k])
		if err != nil {
			return nil, err
		}
		if b.Secret == "" && b.User == "" {
			continue
		}
		if refs++; refs > conceal.MaxRunSecrets {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "At most %d variables may refer to secrets",
				conceal.MaxRunSecrets)
		}
		ref := m[k].(map[string]any)
		known := slices.ContainsFunc(before, func(o conceal.Binding) bool {
			return o.Secret == b.Secret && o.User == b.User && o.Version == b.Version
		})
		if b.Secret != "" {
			s, ok := SecretOf(tx, company, b.Secret)
			switch {
			case known:
			case !ok && core.OwnerOf(tx, b.Secret) != "":
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "Secret must belong to same company")
			case !ok || s.Scope != "company":
				return nil, errNoSecret()
			case b.Version > s.Latest:
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "env.%s: the secret has no version %d", k, b.Version)
			}
			ref["secretId"] = b.Secret
			if b.Version == 0 {
				ref["version"] = "latest"
			}
		} else if _, ok := UserSecretDefinitionByKey(tx, company, b.User); !ok && !known {
			return nil, errNoDefinition()
		}
		if _, ok := ref["projectionClass"]; !ok {
			ref["projectionClass"] = "unclassified"
		}
		if _, ok := ref["projectionAllowlistKey"]; !ok {
			ref["projectionAllowlistKey"] = nil
		}
	}
	return core.FormatJSON(m), nil
}

// bindConfig applies bindEnv to the env of an adapterConfig.
func bindConfig(tx *ledger.Tx, company ledger.CompanyID, config, old json.RawMessage) (json.RawMessage, error) {
	v, _ := core.ParseJSON(config)
	m, _ := v.(map[string]any)
	if m["env"] == nil {
		return config, nil
	}
	if _, ok := m["env"].(map[string]any); !ok {
		return nil, ledger.Refuse(ledger.Invalid, nil, "adapterConfig.env is not an object")
	}
	env, err := bindEnv(tx, company, core.FormatJSON(m["env"]), conceal.EnvOf(old))
	if err != nil {
		return nil, err
	}
	m["env"], _ = core.ParseJSON(env)
	return core.FormatJSON(m), nil
}

// NeedsSecrets reports whether a run needs the mesh's data key: variables of its agent, its
// project or its routine are sealed, or refer to secrets.
func NeedsSecrets(tx *ledger.Tx, r entity.Run) bool {
	a, _ := entity.AgentTable.Get(tx, r.Company, r.Agent)
	p, _ := ProjectOfRun(tx, r)
	ro, _ := routineOfRun(tx, r)
	for _, b := range []json.RawMessage{a.AdapterConfig, p.Env, ro.Env} {
		if s := string(b); strings.Contains(s, conceal.SealedKey) || strings.Contains(s, `secret_ref"`) {
			return true
		}
	}
	return false
}

// ProjectOfRun returns the project of the issue that a run is for.
func ProjectOfRun(tx *ledger.Tx, r entity.Run) (entity.Project, bool) {
	i, ok := issueOfRun(tx, r)
	if !ok || i.Project == "" {
		return entity.Project{}, false
	}
	return entity.ProjectTable.Get(tx, r.Company, i.Project)
}

// routineOfRun returns the variables of the routine that made the issue of a run. They do not
// apply to child issues.
func routineOfRun(tx *ledger.Tx, r entity.Run) (company.EnvUse, bool) {
	i, ok := issueOfRun(tx, r)
	if !ok {
		return company.EnvUse{}, false
	}
	return company.Ask.Routines.Env(tx, i)
}

func issueOfRun(tx *ledger.Tx, r entity.Run) (entity.Issue, bool) {
	if !core.IsID(r.Context.IssueID) {
		return entity.Issue{}, false
	}
	return entity.IssueTable.Get(tx, r.Company, r.Context.IssueID)
}

// A SecretBinding is a variable that refers to a secret, and the owner of the variable.
type SecretBinding struct {
	ID            string               `json:"id"`
	Company       ledger.CompanyID     `json:"companyId"`
	Secret        string               `json:"secretId"`
	TargetType    string               `json:"targetType"` // agent, project or routine
	TargetID      string               `json:"targetId"`
	Path          string               `json:"configPath"`
	Version       any                  `json:"versionSelector"` // "latest" or a number
	Required      bool                 `json:"required"`
	Label         core.NullText        `json:"label"`
	Class         string               `json:"projectionClass"`
	AllowlistKey  core.NullText        `json:"projectionAllowlistKey"`
	CreatedAt     core.Time            `json:"createdAt"`
	UpdatedAt     core.Time            `json:"updatedAt"`
	BindingTarget conceal.SecretTarget `json:"target"`
}

// SecretUsage returns all variables of a company that refer to secrets.
func SecretUsage(tx *ledger.Tx, of ledger.CompanyID) []SecretBinding {
	out := []SecretBinding{}
	add := func(env json.RawMessage, target conceal.SecretTarget, at core.Time) {
		if !strings.Contains(string(env), `"secret_ref"`) {
			return
		}
		list, err := conceal.Bindings(env)
		if err != nil {
			return
		}
		for _, b := range list {
			if b.Secret == "" {
				continue
			}
			s := SecretBinding{ID: core.DerivedID("secret-binding", target.ID, b.Name), Company: of, Secret: b.Secret,
				TargetType: target.Type, TargetID: target.ID,
				Path: "env." + b.Name, Version: "latest", Required: true, Class: "unclassified", CreatedAt: at, UpdatedAt: at,
				BindingTarget: target}
			if b.Version != 0 {
				s.Version = b.Version
			}
			out = append(out, s)
		}
	}
	for _, e := range company.Envs(tx, of) {
		add(e.Env, e.Of, e.At)
	}
	return out
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{Kinds: slices.Concat(secretKinds, userSecretKinds), Secrets: bindings{}}

// bindings implements the hook by which the kernel asks about secrets.
type bindings struct{}

func (bindings) BindEnv(tx *ledger.Tx, company ledger.CompanyID, env, old json.RawMessage) (json.RawMessage, error) {
	return bindEnv(tx, company, env, old)
}

func (bindings) BindConfig(tx *ledger.Tx, company ledger.CompanyID, config,
	old json.RawMessage) (json.RawMessage, error) {
	return bindConfig(tx, company, config, old)
}

func (bindings) Known(tx *ledger.Tx, company ledger.CompanyID, id string) (shared, ok bool) {
	s, ok := SecretOf(tx, company, id)
	return ok && s.Scope == "company", ok
}
