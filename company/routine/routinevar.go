package routine

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// RoutineVariableTypes lists the types of variables, in the contract's order.
var RoutineVariableTypes = []string{"text", "textarea", "number", "boolean", "select", "date"}

var (
	variableName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}$`)
	placeholder  = regexp.MustCompile(`\{\{\s*([A-Za-z][A-Za-z0-9_]{0,99})\s*\}\}`)
	plainNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$`)
)

// builtinVariables are defined without a declaration: the date and the instant of the run, in
// UTC.
var builtinVariables = []string{"date", "timestamp"}

// MaxVariableValue bounds the text of one value, in bytes.
const MaxVariableValue = 16_000

// checkVariables returns the declared variables of a routine, plus a required text variable
// for each name that its texts use and nobody declared.
func checkVariables(list []RoutineVariable, texts ...string) ([]RoutineVariable, error) {
	bad := func(v RoutineVariable, what string) ([]RoutineVariable, error) {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "Variable %q %s", core.Snippet(v.Name, 100), what)
	}
	out := make([]RoutineVariable, 0, len(list))
	known := func(name string) bool {
		return slices.ContainsFunc(out, func(v RoutineVariable) bool { return v.Name == name })
	}
	for _, v := range list {
		v.Type = cmp.Or(v.Type, "text")
		switch {
		case !variableName.MatchString(v.Name):
			return bad(v, "has a name that is none")
		case known(v.Name):
			return bad(v, "is there twice")
		case !slices.Contains(RoutineVariableTypes, v.Type):
			return bad(v, "has an unknown type")
		case v.Type == "select" && (len(v.Options) == 0 || len(v.Options) > 100):
			return bad(v, "needs 1 to 100 options")
		case v.Type != "select" && len(v.Options) > 0:
			return bad(v, "is no select and has options")
		}
		if string(v.Default) == "null" {
			v.Default = nil
		}
		if len(v.Default) > 0 {
			if _, ok := v.Accept(v.Default); !ok {
				return bad(v, "has a default that does not fit its type")
			}
		}
		out = append(out, v)
	}
	for _, text := range texts {
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			if name := m[1]; !known(name) && !slices.Contains(builtinVariables, name) {
				out = append(out, RoutineVariable{Name: name, Type: "text", Required: true})
			}
			if len(out) > MaxRoutineVariables {
				break
			}
		}
	}
	if len(out) > MaxRoutineVariables {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A routine has at most %d variables", MaxRoutineVariables)
	}
	return out, nil
}

// Accept checks that a value is a scalar of the variable's type, and returns the JSON to
// store. Numbers keep their text.
func (v RoutineVariable) Accept(raw json.RawMessage) (json.RawMessage, bool) {
	value, ok := core.ParseJSON(raw)
	if !ok || len(raw) > MaxVariableValue {
		return nil, false
	}
	text := ""
	switch value := value.(type) {
	case string:
		text = value
	case json.Number:
		text = value.String()
	case bool:
		text = strconv.FormatBool(value)
	default:
		return nil, false
	}
	switch v.Type {
	case "number":
		return json.RawMessage(text), plainNumber.MatchString(text)
	case "boolean":
		return json.RawMessage(text), text == "true" || text == "false"
	case "select":
		return core.AppendJSONString(nil, text), slices.Contains(v.Options, text)
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		return core.AppendJSONString(nil, text), err == nil
	}
	return core.AppendJSONString(nil, text), true
}

// resolve returns a value for each variable: the given one, else the default.
func (r Routine) resolve(given map[string]json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range r.Variables {
		raw, ok := given[v.Name]
		if !ok || len(raw) == 0 || string(raw) == "null" || string(raw) == `""` && v.Required {
			raw = v.Default
		}
		if len(raw) == 0 {
			if v.Required {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "Missing a value for the routine's variable %q", v.Name)
			}
			continue
		}
		value, ok := v.Accept(raw)
		if !ok {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "The value of the routine's variable %q is not a %s",
				v.Name, v.Type)
		}
		out[v.Name], _ = core.ParseJSON(value)
	}
	return out, nil
}

// fill replaces the placeholders of a text by values; one without a value becomes empty.
func fill(text string, values map[string]any, now core.Time) string {
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		name := placeholder.FindStringSubmatch(m)[1]
		switch v := values[name].(type) {
		case string:
			return v
		case json.Number:
			return v.String()
		case bool:
			return strconv.FormatBool(v)
		}
		switch name {
		case "date":
			return now.Std().Format(time.DateOnly)
		case "timestamp":
			return now.String()
		}
		return ""
	})
}

// scalars returns the members of an object that can be values of variables.
func scalars(raw json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	value, _ := core.ParseJSON(raw)
	m, _ := value.(map[string]any)
	for k, v := range m {
		switch v.(type) {
		case string, bool, json.Number:
			out[k] = core.FormatJSON(v)
		}
	}
	return out
}
