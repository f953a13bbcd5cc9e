// Package conceal hides secrets: values that are sealed in place, variables that refer to
// secrets, and redaction of what is shown.
package conceal

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Configurations are stored with sealed secrets. In place of a plain value of env, or of a
// text under the name of a secret, they have
//
//	{"$sealed": "<base64 of the result of identity.Seal>"}
//
// The API seals before it makes a command; the executing node opens just before a run
// starts. A sealed value opens at its own place only, see ValueAAD.
const SealedKey = "$sealed"

// A SealFunc seals the plain value at a path of a configuration of owner (an agent, a
// project or a routine) and returns it as text.
type SealFunc func(owner, path, plain string) (string, error)

// A Sealable payload holds values that must not be in a command in the clear.
type Sealable interface {
	// Sealed returns the payload with these values sealed. It refuses a value that is already
	// sealed, because only the API seals.
	Sealed(seal SealFunc) (any, error)
}

// ValueAAD binds a sealed value to its place: it opens nowhere else.
func ValueAAD(mesh string, company ledger.CompanyID, owner, path string) []byte {
	return aad("selvage/value/v1", mesh, string(company), owner, path)
}

// SecretAAD binds a sealed version of a secret to its place.
func SecretAAD(mesh string, company ledger.CompanyID, secret string, version int) []byte {
	return aad("selvage/secret/v1", mesh, string(company), secret, strconv.Itoa(version))
}

// aad joins parts so that no two lists of them give the same bytes.
func aad(parts ...string) (out []byte) {
	for _, p := range parts {
		out = strconv.AppendInt(out, int64(len(p)), 10)
		out = append(append(out, ':'), p...)
	}
	return out
}

// SealEnv seals the plain values of an env of owner. The rules refuse an env that is not an
// object; it is returned as it is.
func SealEnv(env json.RawMessage, owner string, seal SealFunc) (json.RawMessage, error) {
	v, ok := core.ParseJSON(env)
	m, is := v.(map[string]any)
	if !ok || !is {
		return env, nil
	}
	out, err := (&sealing{seal: func(path, plain string) (string, error) { return seal(owner, path, plain) }}).
		env(m, "env")
	if err != nil {
		return nil, err
	}
	return core.FormatJSON(out), nil
}

func SealPayload(payload json.RawMessage, owner string, seal SealFunc) (json.RawMessage, error) {
	return SealConfig(payload, "payload", func(path, plain string) (string, error) {
		return seal(owner, strings.TrimPrefix(path, "payload."), plain)
	})
}

// SealConfig seals the texts of a configuration that RedactConfig would hide. The rules
// refuse a configuration that is not an object; it is returned as it is.
func SealConfig(config json.RawMessage, path string, seal func(path, plain string) (string,
	error)) (json.RawMessage, error) {
	v, ok := core.ParseJSON(config)
	if _, is := v.(map[string]any); !ok || !is {
		return config, nil
	}
	s := sealing{seal: seal}
	out, err := s.value(v, path)
	if err != nil || s.n == 0 {
		return config, err
	}
	return core.FormatJSON(out), nil
}

// sealing walks a configuration.
type sealing struct {
	seal func(path, plain string) (string, error)
	n    int
}

func errSealedInput(path string) error {
	return ledger.Refuse(ledger.Invalid, nil, "%s: the key %s is not for clients", path, SealedKey)
}

func (s *sealing) value(v any, path string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v[SealedKey]; ok {
			return nil, errSealedInput(path)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			at, e := path+"."+k, error(nil)
			env, isMap := v[k].(map[string]any)
			switch {
			case isMap && k == "env":
				v[k], e = s.env(env, at)
			case SecretName(k):
				v[k], e = s.secret(v[k], at)
			default:
				v[k], e = s.value(v[k], at)
			}
			if e != nil {
				return nil, e
			}
		}
	case []any:
		for i := range v {
			var err error
			if v[i], err = s.value(v[i], path+"."+strconv.Itoa(i)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (s *sealing) env(env map[string]any, path string) (map[string]any, error) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		at := path + "." + k
		switch v := env[k].(type) {
		case string:
			sealed, err := s.text(v, at)
			if err != nil {
				return nil, err
			}
			env[k] = sealed
		case map[string]any:
			if _, ok := v[SealedKey]; ok {
				return nil, errSealedInput(at)
			}
			plain, ok := v["value"].(string)
			if kind, set := v["type"]; !ok || set && kind != "plain" || plain == Redacted {
				continue // a reference, a value that stays, or one that the rules refuse
			}
			sealed, err := s.text(plain, at)
			if err != nil {
				return nil, err
			}
			env[k] = sealed
		}
	}
	return env, nil
}

func (s *sealing) secret(v any, path string) (any, error) {
	switch v := v.(type) {
	case string:
		return s.text(v, path)
	case map[string]any:
		if _, ok := v[SealedKey]; ok {
			return nil, errSealedInput(path)
		}
		if isReference(v) {
			return v, nil
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			var err error
			if v[k], err = s.secret(v[k], path+"."+k); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			var err error
			if v[i], err = s.secret(v[i], path+"."+strconv.Itoa(i)); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// text seals one value. The mark of a hidden value stays: it means "keep the value".
func (s *sealing) text(plain, path string) (any, error) {
	if plain == Redacted {
		return plain, nil
	}
	sealed, err := s.seal(path, plain)
	if err != nil {
		return nil, err
	}
	s.n++
	return map[string]any{SealedKey: sealed}, nil
}

// sealedText returns the sealed text of v, if v is a sealed value.
func sealedText(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	s, ok := m[SealedKey].(string)
	return s, ok
}

func isReference(m map[string]any) bool {
	return m["type"] == "secret_ref" || m["type"] == "user_secret_ref"
}

// OpenConfig returns a configuration with its sealed values in the clear, for the node that
// executes a run. root is the path under which it was sealed: "adapterConfig",
// "runtimeConfig", "metadata", or "env" for a project or routine.
func OpenConfig(config json.RawMessage, root string, open func(path, sealed string) (string,
	error)) (json.RawMessage, error) {
	if !strings.Contains(string(config), SealedKey) {
		return config, nil
	}
	v, ok := core.ParseJSON(config)
	if !ok {
		return config, nil
	}
	v, err := mapSealed(v, root, func(path, sealed string) (any, error) { return open(path, sealed) })
	if err != nil {
		return nil, err
	}
	return core.FormatJSON(v), nil
}

// mapSealed replaces each sealed value in v.
func mapSealed(v any, path string, f func(path, sealed string) (any, error)) (any, error) {
	if sealed, ok := sealedText(v); ok {
		return f(path, sealed)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			next, err := mapSealed(v[k], path+"."+k, f)
			if err != nil {
				return nil, err
			}
			v[k] = next
		}
	case []any:
		for i := range v {
			next, err := mapSealed(v[i], path+"."+strconv.Itoa(i), f)
			if err != nil {
				return nil, err
			}
			v[i] = next
		}
	}
	return v, nil
}

// A SealedConfig is a row with sealed values and their paths: an agent or a routine with
// its revisions, a project, a trigger of a routine, an upstream, a pending approval with
// its draft, a request to join.
//
// Owner is the row for which its values open: itself, or the agent made from it.
type SealedConfig struct {
	Type, ID, Owner string
	Values          []SealedValue
}

// AAD returns the bytes that bind one of its values to its place.
func (o SealedConfig) AAD(mesh string, company ledger.CompanyID, v SealedValue) []byte {
	if o.Type == "routine_trigger" {
		return TriggerAAD(mesh, company, o.ID)
	}
	return ValueAAD(mesh, company, o.Owner, v.Path)
}

// A SealedValue is a sealed text and its path.
type SealedValue struct{ Path, Sealed string }

// Collect adds the sealed values of a configuration; root is the path of the whole.
func (o *SealedConfig) Collect(root string, config json.RawMessage) {
	if !strings.Contains(string(config), SealedKey) {
		return
	}
	v, _ := core.ParseJSON(config)
	_, _ = mapSealed(v, root, func(path, sealed string) (any, error) { // never fails
		if v := (SealedValue{strings.TrimPrefix(path, "."), sealed}); !slices.Contains(o.Values,
			v) { // revisions repeat values
			o.Values = append(o.Values, v)
		}
		return nil, nil
	})
}

// TriggerAAD binds the sealed secret of a trigger to its place.
func TriggerAAD(mesh string, company ledger.CompanyID, trigger string) []byte {
	return []byte("selvage/routine-trigger/v1/" + mesh + "/" + string(company) + "/" + trigger)
}

// Reseal is the payload of secret.reseal: values sealed with the current data key, in place
// of those sealed with an earlier one.
type Reseal struct {
	Type    string   `cbor:"1,keyasint"` // secret, agent, project, routine or model_provider
	ID      string   `cbor:"2,keyasint"`
	Version int      `cbor:"3,keyasint,omitempty"` // of a secret
	Old     []string `cbor:"4,keyasint"`           // as configurations store them, in base64
	New     []string `cbor:"5,keyasint"`
}

// Sealed returns the one new value of a row that holds bytes.
func (p Reseal) Sealed() ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(p.New[0])
	if err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed sealed value")
	}
	return b, CheckSealed(b)
}

// Config returns a configuration with the new sealed texts in place of the old ones. A value
// that changed in between stays.
func (p Reseal) Config(config json.RawMessage) json.RawMessage {
	if len(config) == 0 {
		return config
	}
	v, ok := core.ParseJSON(config)
	if !ok {
		return config
	}
	v, _ = mapSealed(v, "", func(_, sealed string) (any, error) { // never fails
		if i := slices.Index(p.Old, sealed); i >= 0 {
			sealed = p.New[i]
		}
		return map[string]any{SealedKey: sealed}, nil
	})
	return core.FormatJSON(v)
}

func CheckSealed(sealed []byte) error {
	switch {
	case len(sealed) == 0:
		return ledger.Refuse(ledger.Invalid, nil, "A secret needs a value")
	case len(sealed) > MaxSecretValue+sealOverhead:
		return ledger.Refuse(ledger.TooLarge, nil, "A secret's value is at most %d bytes long", MaxSecretValue)
	}
	return nil
}
