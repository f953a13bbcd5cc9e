package company

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Binding is one variable of an env: where its value comes from.
type Binding struct {
	Name    string // of the variable
	Plain   string // the value, when Secret and User are ""
	Sealed  bool   // Plain is sealed text
	Hidden  bool   // a value that is not there: only its mark was ever given
	Secret  string // ID
	Version int    // 0: the latest
	User    string // key of a user's secret
}

// maxVariable bounds the name of a variable, in bytes.
const maxVariable = 256

// Bindings reads an env object. References that are malformed are refused with
// the variable named.
func Bindings(env json.RawMessage) ([]Binding, error) {
	v, _ := parseJSON(env)
	m, _ := v.(map[string]any)
	out := make([]Binding, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b, err := bindingOf(k, m[k])
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func bindingOf(name string, v any) (Binding, error) {
	b := Binding{Name: name}
	bad := func(why string) (Binding, error) {
		return b, ledger.Refuse(ledger.Invalid, nil, "env.%s: %s", name, why)
	}
	if name == "" || len(name) > maxVariable || strings.ContainsAny(name, "=\x00\n") {
		name = snippet(name, 40)
		return bad("no name of a variable")
	}
	if s, ok := sealedText(v); ok {
		b.Plain, b.Sealed = s, true
		return b, nil
	}
	switch v := v.(type) {
	case string:
		b.Plain, b.Hidden = v, v == Redacted
		return b, nil
	case map[string]any:
		switch v["type"] {
		case "plain", nil:
			s, ok := v["value"].(string)
			if !ok {
				return bad("a plain binding needs a value, which is a text")
			}
			b.Plain, b.Hidden = s, s == Redacted
			return b, nil
		case "secret_ref":
			id, _ := v["secretId"].(string)
			if b.Secret = strings.ToLower(id); !isID(b.Secret) {
				return bad("secretId is no UUID")
			}
			switch version := v["version"].(type) {
			case nil:
			case string:
				if version != "latest" {
					return bad(`version is "latest" or a number from 1`)
				}
			case json.Number:
				n, err := strconv.Atoi(version.String())
				if err != nil || n < 1 {
					return bad(`version is "latest" or a number from 1`)
				}
				b.Version = n
			default:
				return bad(`version is "latest" or a number from 1`)
			}
			return b, nil
		case "user_secret_ref":
			key, _ := v["key"].(string)
			if checkSecretKey(key) != nil {
				return bad("key names no user secret")
			}
			b.User = key
			return b, nil
		}
	}
	return bad("a text, or a binding of type plain, secret_ref or user_secret_ref, is needed")
}

// bindEnv checks the env of a configuration as it was given, and returns it
// with references completed. A reference that was there before is not looked
// up again: its secret may be gone, the run will say so.
func bindEnv(tx *ledger.Tx, company string, env, old json.RawMessage) (json.RawMessage, error) {
	v, _ := parseJSON(env)
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		return env, nil
	}
	before, _ := Bindings(old)
	refs := 0
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b, err := bindingOf(k, m[k])
		if err != nil {
			return nil, err
		}
		if b.Secret == "" && b.User == "" {
			continue
		}
		if refs++; refs > MaxRunSecrets {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "At most %d variables may refer to secrets", MaxRunSecrets)
		}
		ref := m[k].(map[string]any)
		known := slices.ContainsFunc(before, func(o Binding) bool { return o.Secret == b.Secret && o.User == b.User && o.Version == b.Version })
		if b.Secret != "" {
			s, ok := SecretOf(tx, company, b.Secret)
			switch {
			case known:
			case !ok && OwnerOf(tx, b.Secret) != "":
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
	return formatJSON(m), nil
}

// EnvOf returns the env of an adapterConfig, nil when there is none.
func EnvOf(config json.RawMessage) json.RawMessage {
	v, _ := parseJSON(config)
	m, _ := v.(map[string]any)
	env, ok := m["env"].(map[string]any)
	if !ok {
		return nil
	}
	return formatJSON(env)
}

// WithEnv returns an adapterConfig with other variables.
func WithEnv(config json.RawMessage, env map[string]string) json.RawMessage {
	v, _ := parseJSON(config)
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	vars := make(map[string]any, len(env))
	for k, v := range env {
		vars[k] = v
	}
	m["env"] = vars
	return formatJSON(m)
}

// bindConfig is bindEnv on the env of an adapterConfig.
func bindConfig(tx *ledger.Tx, company string, config, old json.RawMessage) (json.RawMessage, error) {
	v, _ := parseJSON(config)
	m, _ := v.(map[string]any)
	if m["env"] == nil {
		return config, nil
	}
	if _, ok := m["env"].(map[string]any); !ok {
		return nil, ledger.Refuse(ledger.Invalid, nil, "adapterConfig.env is not an object")
	}
	env, err := bindEnv(tx, company, formatJSON(m["env"]), EnvOf(old))
	if err != nil {
		return nil, err
	}
	m["env"], _ = parseJSON(env)
	return formatJSON(m), nil
}

// NeedsSecrets reports whether a run of the agent needs the mesh's data key:
// its own variables or those of the run's project or routine are sealed, or
// refer to secrets.
func NeedsSecrets(tx *ledger.Tx, r Run) bool {
	a, _ := agents.Get(tx, r.Company, r.Agent)
	p, _ := ProjectOfRun(tx, r)
	ro, _ := RoutineOfRun(tx, r)
	for _, b := range []json.RawMessage{a.AdapterConfig, p.Env, ro.Env} {
		if s := string(b); strings.Contains(s, sealedKey) || strings.Contains(s, `secret_ref"`) {
			return true
		}
	}
	return false
}

// ProjectOfRun returns the project whose issue a run is for.
func ProjectOfRun(tx *ledger.Tx, r Run) (Project, bool) {
	i, ok := issueOfRun(tx, r)
	if !ok || i.Project == "" {
		return Project{}, false
	}
	return projects.Get(tx, r.Company, string(i.Project))
}

// RoutineOfRun returns the routine that made the issue a run is for. Issues
// below that one are not the routine's.
func RoutineOfRun(tx *ledger.Tx, r Run) (Routine, bool) {
	i, ok := issueOfRun(tx, r)
	if !ok || i.OriginKind != OriginRoutine || !isID(i.OriginID) {
		return Routine{}, false
	}
	return routines.Get(tx, r.Company, i.OriginID)
}

func issueOfRun(tx *ledger.Tx, r Run) (Issue, bool) {
	if !isID(r.Context.IssueID) {
		return Issue{}, false
	}
	return issues.Get(tx, r.Company, r.Context.IssueID)
}

// A SecretBinding is a variable that refers to a secret, and whose it is.
type SecretBinding struct {
	ID            string       `json:"id"`
	Company       string       `json:"companyId"`
	Secret        string       `json:"secretId"`
	TargetType    string       `json:"targetType"` // agent, project or routine
	TargetID      string       `json:"targetId"`
	Path          string       `json:"configPath"`
	Version       any          `json:"versionSelector"` // "latest" or a number
	Required      bool         `json:"required"`
	Label         NullText     `json:"label"`
	Class         string       `json:"projectionClass"`
	AllowlistKey  NullText     `json:"projectionAllowlistKey"`
	CreatedAt     Time         `json:"createdAt"`
	UpdatedAt     Time         `json:"updatedAt"`
	BindingTarget SecretTarget `json:"target"`
}

// A SecretTarget is what a binding belongs to, as people know it.
type SecretTarget struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Label  string `json:"label"`
	Href   string `json:"href"`
	Status string `json:"status"`
}

// SecretUsage returns the variables of company that refer to secrets.
func SecretUsage(tx *ledger.Tx, company string) []SecretBinding {
	out := []SecretBinding{}
	add := func(env json.RawMessage, target SecretTarget, at Time) {
		if !strings.Contains(string(env), `"secret_ref"`) {
			return
		}
		list, err := Bindings(env)
		if err != nil {
			return
		}
		for _, b := range list {
			if b.Secret == "" {
				continue
			}
			s := SecretBinding{ID: derivedID("secret-binding", target.ID, b.Name), Company: company, Secret: b.Secret, TargetType: target.Type, TargetID: target.ID,
				Path: "env." + b.Name, Version: "latest", Required: true, Class: "unclassified", CreatedAt: at, UpdatedAt: at, BindingTarget: target}
			if b.Version != 0 {
				s.Version = b.Version
			}
			out = append(out, s)
		}
	}
	for _, a := range agents.All(tx, company) {
		if !strings.Contains(string(a.AdapterConfig), `"secret_ref"`) {
			continue
		}
		label := a.Name
		if a.Title != "" {
			label += " (" + string(a.Title) + ")"
		}
		add(EnvOf(a.AdapterConfig), SecretTarget{"agent", a.ID, label, "/agents/" + a.URLKey(), string(a.Status)}, a.UpdatedAt)
	}
	for _, p := range projects.All(tx, company) {
		add(p.Env, SecretTarget{"project", p.ID, p.Name, "/projects/" + cmp.Or(URLKey(p.Name), p.ID), string(p.Status)}, p.UpdatedAt)
	}
	for _, r := range routines.All(tx, company) {
		add(r.Env, SecretTarget{"routine", r.ID, r.Title, "/routines/" + r.ID, string(r.Status)}, r.UpdatedAt)
	}
	return out
}

// secretRules are what secrets add to the kernel.
var secretRules = Rules{Kinds: slices.Concat(secretKinds, userSecretKinds), Secrets: bindings{}}

// bindings answers what the kernel asks of secrets.
type bindings struct{}

func (bindings) BindEnv(tx *ledger.Tx, company string, env, old json.RawMessage) (json.RawMessage, error) {
	return bindEnv(tx, company, env, old)
}

func (bindings) BindConfig(tx *ledger.Tx, company string, config, old json.RawMessage) (json.RawMessage, error) {
	return bindConfig(tx, company, config, old)
}
