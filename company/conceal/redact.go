package conceal

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
)

// Redacted replaces a secret that is not shown. Sent back in a change it means "keep the
// value".
const Redacted = "***REDACTED***"

// secretName matches names whose values must not be shown.
var secretName = regexp.MustCompile(
	`(?i)(api[-_]?key|access[-_]?key|private[-_]?key|token|secret|passw(or)?d|` +
		`passphrase|authorization|credential|cookie|jwt|connection[-_]?string|webhook[-_]?url)`)

// harmless matches names that only look like those of secrets: counts and limits.
var harmless = regexp.MustCompile(`(?i)(tokens|tokenlimit|token_limit|tokencount|secretid|secret_id|secret_ref)$`)

// SecretName reports whether a value with that name must not be shown.
func SecretName(name string) bool { return secretName.MatchString(name) && !harmless.MatchString(name) }

// RedactConfig returns a configuration that can be shown: plain values of env, values
// under names of secrets, and credentials inside texts are replaced. References to stored
// secrets stay.
func RedactConfig(config json.RawMessage) json.RawMessage {
	v, ok := core.ParseJSON(config)
	if !ok {
		return json.RawMessage("{}")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return json.RawMessage("{}")
	}
	return core.FormatJSON(redactObject(m))
}

// RedactEnv returns an env object that can be shown; null for none.
func RedactEnv(env json.RawMessage) json.RawMessage {
	v, _ := core.ParseJSON(env)
	m, ok := v.(map[string]any)
	if !ok {
		return json.RawMessage("null")
	}
	return core.FormatJSON(redactEnv(m))
}

func redactObject(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		env, isMap := v.(map[string]any)
		switch {
		case isMap && k == "env":
			out[k] = redactEnv(env)
		case SecretName(k):
			out[k] = redactSecret(v)
		default:
			out[k] = redactValue(v)
		}
	}
	return out
}

// redactEnv hides the value of every variable that is not a reference.
func redactEnv(env map[string]any) map[string]any {
	out := make(map[string]any, len(env))
	for k, v := range env {
		if m, ok := v.(map[string]any); ok && isReference(m) {
			out[k] = redactValue(v)
			continue
		}
		out[k] = map[string]any{"type": "plain", "value": Redacted}
	}
	return out
}

// redactSecret hides a value under the name of a secret, whatever its type.
func redactSecret(v any) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case map[string]any:
		if _, ok := sealedText(v); ok {
			return Redacted
		}
		if isReference(v) {
			return redactValue(v)
		}
		out := make(map[string]any, len(v))
		for k, v := range v {
			out[k] = redactSecret(v)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, v := range v {
			out[i] = redactSecret(v)
		}
		return out
	}
	return Redacted
}

func redactValue(v any) any {
	switch v := v.(type) {
	case string:
		return RedactText(v)
	case map[string]any:
		if _, ok := sealedText(v); ok {
			return Redacted
		}
		return redactObject(v)
	case []any:
		out := make([]any, len(v))
		for i, v := range v {
			out[i] = redactValue(v)
		}
		return out
	}
	return v
}

// unredact restores what a client did not change: where next has the mark of a hidden
// value, it takes the value of old from the same place. A text that was shown with a
// hidden part, and is sent back as shown, is restored too.
func unredact(next, old any) any {
	switch n := next.(type) {
	case string:
		// A number under the name of a secret is also shown as the mark.
		_, sealed := sealedText(old)
		if _, number := old.(json.Number); n == Redacted && (sealed || number) {
			return old
		}
		if o, ok := old.(string); ok && strings.Contains(n, Redacted) && (n == Redacted || n == RedactText(o)) {
			return o
		}
	case map[string]any:
		o, _ := old.(map[string]any)
		for k, v := range n {
			// A variable that was set as a text, or is sealed, is shown as an object.
			_, sealed := sealedText(o[k])
			if _, text := o[k].(string); text || sealed {
				if m, is := v.(map[string]any); is && m["type"] == "plain" && m["value"] == Redacted {
					n[k] = o[k]
					continue
				}
			}
			n[k] = unredact(v, o[k])
		}
	case []any:
		o, _ := old.([]any)
		for i := range n {
			if i < len(o) {
				n[i] = unredact(n[i], o[i])
			}
		}
	}
	return next
}

// KeepHidden is unredact on JSON text.
func KeepHidden(next, old json.RawMessage) json.RawMessage {
	if !strings.Contains(string(next), Redacted) {
		return next
	}
	n, ok := core.ParseJSON(next)
	if !ok {
		return next
	}
	o, _ := core.ParseJSON(old)
	return core.FormatJSON(unredact(n, o))
}
