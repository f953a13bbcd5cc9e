package api

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/ledger"
)

// Answers are described as encoding/json writes them. huma reads their types differently: a
// nil pointer to a struct is null, members of embedded structs have their JSON names and not
// their Go names, and a type that encodes itself is whatever it writes.

// written describes the types that encode themselves as several kinds of value.
var written = map[reflect.Type]*huma.Schema{
	reflect.TypeFor[core.Percent](): {Type: huma.TypeNumber},
	reflect.TypeFor[portable.File](): {Description: "A text, or an object with encoding base64, data and contentType.",
		AnyOf: []*huma.Schema{
			{Type: huma.TypeString}, {Type: huma.TypeObject, AdditionalProperties: true}}},
}

// Either is the Out of a route with answers of several types: a zero value of each.
type Either []any

// SameAs is the Out of a route that answers what GET of another path does.
type SameAs string

// outOf is what a route answers, among all routes.
func outOf(route *Route, all []Route) any {
	if of, ok := route.Out.(SameAs); ok {
		for n := range all {
			if all[n].Method == "GET" && all[n].Path == string(of) {
				return all[n].Out
			}
		}
		panic("no route GET " + string(of))
	}
	return route.Out
}

// answerSchema describes the values of an answer.
func answerSchema(registry huma.Registry, out any) *huma.Schema {
	if several, ok := out.(Either); ok {
		s := &huma.Schema{}
		for _, one := range several {
			s.AnyOf = append(s.AnyOf, answerSchema(registry, one))
		}
		return s
	}
	t := reflect.TypeOf(out)
	s := asWritten(registry, registry.Schema(t, true, ""), t, map[reflect.Type]bool{})
	if t.Kind() == reflect.Pointer {
		return orNull(s)
	}
	return s
}

// orNull returns the schema of s or null.
func orNull(s *huma.Schema) *huma.Schema {
	switch {
	case s.Ref != "":
		return &huma.Schema{Description: s.Description, AnyOf: []*huma.Schema{{Ref: s.Ref}, {Type: "null"}}}
	case s.Type != "" && s.Type != "null":
		s.Nullable = true
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
			s.Enum = append(s.Enum, nil)
		}
	}
	return s
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	provider  = reflect.TypeFor[huma.SchemaProvider]()
	aliased   = []reflect.Type{reflect.TypeFor[core.Time](), reflect.TypeFor[core.NullText](),
		reflect.TypeFor[core.Null[ledger.CompanyID]](), rawType, reflect.TypeFor[time.Time]()}
)

// asWritten corrects the schema of t, and of what t contains, and returns it. Types in seen
// are described already: some contain themselves.
func asWritten(registry huma.Registry, s *huma.Schema, t reflect.Type, seen map[reflect.Type]bool) *huma.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(aliased, t) || t.Implements(provider) || s == nil {
		return s
	}
	real := s
	if s.Ref != "" {
		real = registry.SchemaFromRef(s.Ref)
	}
	if t.Implements(marshaler) {
		if real != nil {
			*real = *schemaOfMarshaler(t)
		}
		return s
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Type == huma.TypeArray {
			s.Nullable = false // see filled
		}
		if s.Items != nil {
			s.Items = asWritten(registry, s.Items, t.Elem(), seen)
			if t.Elem().Kind() == reflect.Pointer {
				s.Items = orNull(s.Items)
			}
		}
	case reflect.Map:
		if inner, ok := s.AdditionalProperties.(*huma.Schema); ok {
			s.AdditionalProperties = asWritten(registry, inner, t.Elem(), seen)
		}
	case reflect.Struct:
		if real != nil && !seen[t] {
			seen[t] = true
			membersAsWritten(registry, real, t, seen)
		}
	}
	return s
}

// schemaOfMarshaler describes what a type that encodes itself writes: always the same kind
// of value, unless it is in written.
func schemaOfMarshaler(t reflect.Type) *huma.Schema {
	if s := written[t]; s != nil {
		return s
	}
	b, err := json.Marshal(reflect.Zero(t).Interface())
	var v any
	if err != nil || json.Unmarshal(b, &v) != nil {
		return &huma.Schema{}
	}
	switch v := v.(type) {
	case nil:
		return &huma.Schema{Type: "null"}
	case bool:
		return &huma.Schema{Type: huma.TypeBoolean}
	case float64:
		return &huma.Schema{Type: huma.TypeInteger}
	case string:
		s := &huma.Schema{Type: huma.TypeString}
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			s.Format = "date-time"
		}
		return s
	case []any:
		return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{}}
	}
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// An inlined is a struct whose members are those of another. One behind a pointer may be absent,
// and its members with it.
type inlined struct {
	of     reflect.Type
	absent bool
}

// membersAsWritten describes the members of a struct by the rules of encoding/json: among
// several with one name the outermost counts.
func membersAsWritten(registry huma.Registry, s *huma.Schema, t reflect.Type, seen map[reflect.Type]bool) {
	known := map[string]bool{}
	level := []inlined{{of: t}}
	for len(level) > 0 {
		var deeper []inlined
		var here []string
		for _, e := range level {
			for f := range e.of.Fields() {
				name, how, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.Tag.Get("json") == "-" {
					continue
				}
				if inner := structOf(f.Type); f.Anonymous && name == "" && inner != nil {
					deeper = append(deeper, inlined{of: inner, absent: e.absent || f.Type.Kind() == reflect.Pointer})
					continue
				}
				if !f.IsExported() {
					continue
				}
				if name == "" {
					name = f.Name
				}
				if known[name] {
					continue
				}
				here = append(here, name)
				member(registry, s, t, f, name, strings.Contains(how, "omit"), seen)
				if e.absent {
					s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
				}
			}
		}
		for _, name := range here {
			known[name] = true
		}
		level = deeper
	}
	slices.Sort(s.Required)
	s.Required = slices.Compact(s.Required)
	for name := range s.Properties {
		if !known[name] {
			delete(s.Properties, name)
			s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
		}
	}
}

// structOf returns the struct whose members an embedded field contributes, nil when the field
// is a member itself.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(marshaler) {
		return nil
	}
	return t
}

// member describes one member of a struct.
func member(registry huma.Registry, s *huma.Schema, of reflect.Type, f reflect.StructField, name string, omitted bool,
	seen map[reflect.Type]bool) {
	if s.Properties == nil {
		s.Properties = map[string]*huma.Schema{}
	}
	// huma knows members by their Go names: its entry under this name may be another member, or
	// an empty struct that it took for an object.
	m := huma.SchemaFromField(registry, f, of.Name()+f.Name+"Struct")
	if m == nil {
		m = &huma.Schema{}
	}
	m = asWritten(registry, m, f.Type, seen)
	if f.Tag.Get("nullable") == "true" {
		m = orNull(m)
	}
	if kind := f.Type.Kind(); m.Nullable || !omitted && (kind == reflect.Pointer || kind == reflect.Map) {
		m = orNull(m)
	}
	if omitted && f.Type.Kind() == reflect.Pointer {
		m.Nullable = false
	}
	s.Properties[name] = m
	switch required := slices.Contains(s.Required, name); {
	case !omitted && !required:
		s.Required = append(s.Required, name)
	case omitted && required:
		s.Required = slices.DeleteFunc(s.Required, func(r string) bool { return r == name })
	}
}
