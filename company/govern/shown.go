package govern

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"unicode"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxShown bounds what is shown of a payload, in bytes, and maxShownItems the items of a list in it. maxShownDepth
	// is deeper than any payload.
	maxShown      = 32 << 10
	maxShownItems = 50
	maxShownDepth = 12
)

// ShownWaiting returns the payload of an approval with what the command that waits says, so that nobody approves a
// hash: the members of its payload that are not empty, without secrets. It is for the board: a command may have what
// other agents must not see. Other approvals it returns as they are.
func ShownWaiting(tx *ledger.Tx, of ledger.CompanyID, approval string, payload json.RawMessage) json.RawMessage {
	w, ok := waitings.Get(tx, of, approval)
	if !ok || w.Act != nil {
		return payload
	}
	k, _ := company.KindOf(w.Kind)
	var o, command map[string]json.RawMessage
	if k.Do == nil || json.Unmarshal(payload, &o) != nil || json.Unmarshal(o["command"], &command) != nil {
		return payload
	}
	said := ShownPayload(ledger.Payload(k.Do, &ledger.Command{Kind: w.Kind, Payload: w.Payload}))
	if said == nil {
		return payload
	}
	command["payload"] = said
	b, err := json.Marshal(command)
	if err != nil {
		return payload
	}
	o["command"] = b
	if b, err = json.Marshal(o); err != nil {
		return payload
	}
	return b
}

// ShownPayload returns a payload of a command as a JSON object that people read, without secrets; nil for what is no
// struct, or too large.
func ShownPayload(p any) json.RawMessage {
	v := reflect.ValueOf(p)
	if v.Kind() != reflect.Struct {
		return nil
	}
	b, err := json.Marshal(plainStruct(v, maxShownDepth))
	if err != nil {
		return nil
	}
	if b = conceal.RedactConfig(b); len(b) > maxShown {
		return nil
	}
	return b
}

// plain returns a value as JSON has it: structs by the names of their members without those that are empty, bytes by
// their number. nil: it is empty.
func plain(v reflect.Value, depth int) any {
	if !v.IsValid() || depth == 0 {
		return nil
	}
	if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		if e := v.Elem(); e.IsZero() && e.Kind() != reflect.Struct { // it is set to nothing
			return e.Interface()
		}
		return plain(v.Elem(), depth)
	}
	if v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case json.RawMessage:
		value, ok := core.ParseJSON(x)
		if !ok {
			return fmt.Sprintf("%d bytes", len(x))
		}
		return value
	case []byte:
		return fmt.Sprintf("%d bytes", len(x))
	case json.Marshaler:
		var out any
		if b, err := x.MarshalJSON(); err == nil && json.Unmarshal(b, &out) == nil {
			return out
		}
		return nil
	case encoding.TextMarshaler:
		b, _ := x.MarshalText() // what has no text is shown as empty
		return string(b)
	}
	switch v.Kind() {
	case reflect.Struct:
		return plainStruct(v, depth)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return fmt.Sprintf("%d bytes", v.Len())
		}
		out := []any{}
		for i := range min(v.Len(), maxShownItems) {
			out = append(out, plain(v.Index(i), depth-1))
		}
		if v.Len() > maxShownItems {
			out = append(out, fmt.Sprintf("and %d more", v.Len()-maxShownItems))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for i := v.MapRange(); i.Next(); {
			out[fmt.Sprint(i.Key().Interface())] = plain(i.Value(), depth-1)
		}
		return out
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128, reflect.Float32,
		reflect.Float64:
		return nil // no payload has them
	}
	return v.Interface()
}

func plainStruct(v reflect.Value, depth int) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		value := plain(v.Field(i), depth-1)
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
		case f.Anonymous && isMap:
			maps.Copy(out, inner)
		default:
			out[memberName(f)] = value
		}
	}
	return out
}

// memberName is the name of a field in JSON: its tag's, or its own with a small first letter.
func memberName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
		return name
	}
	letters := []rune(f.Name)
	for i, r := range letters {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(r)
	}
	return string(letters)
}
