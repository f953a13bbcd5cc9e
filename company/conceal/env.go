package conceal

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// How configurations hold values: in the clear, sealed, or as a reference to a secret.

// A Binding is one variable of an env: where its value comes from.
type Binding struct {
	Name    string // of the variable
	Plain   string // the value, when Secret and User are ""
	Sealed  bool   // Plain is sealed text
	Hidden  bool   // the value is missing: the client sent only its mark
	Secret  string // ID
	Version int    // 0: the latest
	User    string // key of a user's secret
}

// maxVariable bounds the name of a variable, in bytes.
const maxVariable = 256

// Bindings reads an env object. It refuses a malformed reference and names the variable.
func Bindings(env json.RawMessage) ([]Binding, error) {
	v, _ := core.ParseJSON(env)
	m, _ := v.(map[string]any)
	out := make([]Binding, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b, err := BindingOf(k, m[k])
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func BindingOf(name string, v any) (Binding, error) {
	b := Binding{Name: name}
	bad := func(why string) (Binding, error) {
		return b, ledger.Refuse(ledger.Invalid, nil, "env.%s: %s", name, why)
	}
	if name == "" || len(name) > maxVariable || strings.ContainsAny(name, "=\x00\n") {
		name = core.Snippet(name, 40)
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
			if b.Secret = strings.ToLower(id); !core.IsID(b.Secret) {
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
			if CheckSecretKey(key) != nil {
				return bad("key names no user secret")
			}
			b.User = key
			return b, nil
		}
	}
	return bad("a text, or a binding of type plain, secret_ref or user_secret_ref, is needed")
}

// EnvOf returns the env of an adapterConfig, nil when there is none.
func EnvOf(config json.RawMessage) json.RawMessage {
	v, _ := core.ParseJSON(config)
	m, _ := v.(map[string]any)
	env, ok := m["env"].(map[string]any)
	if !ok {
		return nil
	}
	return core.FormatJSON(env)
}

// WithEnv returns an adapterConfig with env in place of its variables.
func WithEnv(config json.RawMessage, env map[string]string) json.RawMessage {
	v, _ := core.ParseJSON(config)
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	vars := make(map[string]any, len(env))
	for k, v := range env {
		vars[k] = v
	}
	m["env"] = vars
	return core.FormatJSON(m)
}

// A SecretTarget is what a binding belongs to, as people see it.
type SecretTarget struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Label  string `json:"label"`
	Href   string `json:"href"`
	Status string `json:"status"`
}

// MaxRunSecrets bounds the secrets that one run uses, and that one env names.
const MaxRunSecrets = 200

// CheckSecretKey refuses a malformed key.
func CheckSecretKey(key string) error {
	if key == "" || len(key) > MaxSecretKey || slices.ContainsFunc([]byte(key), func(c byte) bool { return !KeyByte(c) }) {
		return ledger.Refuse(ledger.Invalid, nil, "key: 1 to %d letters, digits, dots, dashes and underscores are needed",
			MaxSecretKey)
	}
	return nil
}

func KeyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

const (
	// MaxSecretKey bounds the key of a secret.
	MaxSecretKey = 120
	// MaxSecretValue bounds a value, in bytes. sealOverhead is more than what sealing adds.
	MaxSecretValue = 64 << 10
	sealOverhead   = 128
)
