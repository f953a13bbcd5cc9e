package adapter

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/live"
)

// A Misfit is a member of an adapterConfig that a run can not decode.
type Misfit struct {
	Path     []string // of the member, such as limits, memoryMb
	Expected string   // string, int, number, boolean, object, or array of one of them
}

// Misfits returns the members of a configuration that the adapter knows and whose type it does
// not accept, without duplicates, in the adapter's order. Members that it does not know are
// ignored, and null counts as absent. A configuration that is no object has none.
func (k Kind) Misfits(config json.RawMessage) (out []Misfit) {
	var members map[string]json.RawMessage
	if json.Unmarshal(config, &members) != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, into := range k.takes {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(into)) {
			if f.Anonymous {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			for _, given := range slices.Sorted(maps.Keys(members)) {
				if name == "-" || name == "" || seen[given] || !strings.EqualFold(given,
					name) { // matched as encoding/json matches names
					continue
				}
				if m, bad := misfit(given, members[given], f.Type); bad {
					seen[given] = true
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// misfit decodes a member as a run does, and returns what does not fit.
func misfit(name string, v json.RawMessage, t reflect.Type) (Misfit, bool) {
	if of := (map[string]json.RawMessage{}); t == reflect.TypeFor[map[string]live.Value]() &&
		json.Unmarshal(v, &of) == nil {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if m, bad := misfit(key, of[key], t.Elem()); bad {
				m.Path = append([]string{name}, m.Path...)
				return m, true
			}
		}
		return Misfit{}, false
	}
	err := json.Unmarshal(v, reflect.New(t).Interface())
	if err == nil {
		return Misfit{}, false
	}
	m := Misfit{Path: []string{name}, Expected: expected(t)}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" && t != reflect.TypeFor[live.Value]() {
		m.Path, m.Expected = append(m.Path, strings.Split(e.Field, ".")...), expected(e.Type)
	}
	return m, true
}

// expected returns the JSON name of a type.
func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array of " + expected(t.Elem()) + "s"
	}
	return "object"
}
