package core

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/selvage-mesh/selvage/ledger"
)

// JSON values that rules only store or read stay raw. Where rules compute with them, numbers
// stay text (json.Number): replicated state has no floats.

// ParseJSON decodes one JSON value: nil, bool, json.Number, string, []any or
// map[string]any.
func ParseJSON(b []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return v, true
}

// FormatJSON encodes a result of ParseJSON with sorted keys.
func FormatJSON(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("company: " + err.Error()) // only results of ParseJSON come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// CheckObject checks that b is a JSON object of at most limit bytes and returns it in
// canonical form. It returns nil for null and for nothing.
func CheckObject(field string, b []byte, limit int) (json.RawMessage, error) {
	if len(b) == 0 || string(b) == "null" {
		return nil, nil
	}
	if len(b) > limit {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "%s is longer than %d bytes", field, limit)
	}
	v, ok := ParseJSON(b)
	if _, is := v.(map[string]any); !ok || !is {
		return nil, ledger.Refuse(ledger.Invalid, nil, "%s is not a JSON object", field)
	}
	return FormatJSON(v), nil
}

// MergeObjects merges the keys of patch into base; both are objects.
func MergeObjects(base, patch json.RawMessage) json.RawMessage {
	out := map[string]any{}
	for _, b := range []json.RawMessage{base, patch} {
		v, _ := ParseJSON(b)
		m, _ := v.(map[string]any)
		for k, v := range m {
			out[k] = v
		}
	}
	return FormatJSON(out)
}

// OrNull returns b, or the JSON null when it is empty.
func OrNull(b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return json.RawMessage("null")
	}
	return b
}

// HasRoom refuses one more row when a company has most rows already.
func HasRoom[ID ~string, T any](rows iter.Seq2[ID, T], most int, what string) error {
	n := 0
	for range rows {
		if n++; n >= most {
			return ledger.Refuse(ledger.Conflict, nil, "The company has %d %s already", most, what)
		}
	}
	return nil
}

// AppendJSONString appends s as a JSON string.
func AppendJSONString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			q, err := json.Marshal(s)
			if err != nil {
				panic("company: a string does not encode: " + err.Error()) // strings always encode
			}
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
