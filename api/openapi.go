package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// newOpenAPI returns a document without routes. Schemas come from the types and tags that
// also validate bodies.
func newOpenAPI(version string) *huma.OpenAPI {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.RegisterTypeAlias(reflect.TypeFor[core.Time](), reflect.TypeFor[*time.Time]())
	registry.RegisterTypeAlias(reflect.TypeFor[core.NullText](), reflect.TypeFor[*string]())
	registry.RegisterTypeAlias(reflect.TypeFor[core.Null[ledger.CompanyID]](), reflect.TypeFor[*string]())
	registry.RegisterTypeAlias(rawType, reflect.TypeFor[any]())
	o := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Selvage", Version: version,
			Description: "Companies of AI agents on a mesh of equal nodes. Every node serves all of this."},
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{
			"bearer": {Type: "http", Scheme: "bearer", Description: "An agent's key, or the token of its run."},
			"capability": {Type: "http", Scheme: CapScheme,
				Description: "A capability token, as POST /api/v1/capabilities makes it."},
		}},
	}
	registry.Map()["Error"] = &huma.Schema{Type: huma.TypeObject, Required: []string{"error"},
		Properties: map[string]*huma.Schema{
			"error":   {Type: huma.TypeString, Description: "What went wrong, for people."},
			"code":    {Type: huma.TypeString, Description: "What went wrong, for programs."},
			"details": {Description: "More about it; for a validation error, a list of issues."},
		}}
	return o
}

// schemaName keeps names of generic types readable, and equal names of two rooms distinct.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch pkg := t.PkgPath() + "/"; {
	case strings.Contains(pkg, "/api/"):
		return "Api" + name
	case strings.Contains(pkg, "/company/portable/"):
		return "Portable" + name
	}
	return name
}

// operation describes one route.
func operation(o *huma.OpenAPI, route *Route, all []Route) (op *huma.Operation, err error) {
	defer func() {
		if p := recover(); p != nil { // huma panics on tags that it can not parse
			err = fmt.Errorf("api: describe %s %s: %v", route.Method, route.Path, p)
		}
	}()
	op = &huma.Operation{Method: route.Method, Path: route.Path, Summary: route.Summary, OperationID: operationID(route),
		Responses: map[string]*huma.Response{}}
	if route.NoTool {
		op.Extensions = map[string]any{"x-selvage-no-tool": true}
	}
	if route.Tag != "" {
		op.Tags = []string{route.Tag}
	}
	if route.Who == Any || route.Who == Agent {
		op.Security = []map[string][]string{{"bearer": {}}}
		if route.Who == Any {
			op.Security = append(op.Security, map[string][]string{})
		}
	}
	if route.Capability != "" {
		op.Security = append(op.Security, map[string][]string{"capability": {}})
	}
	before := ""
	for part := range strings.SplitSeq(route.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
			op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true,
				Description: pathDoc(before, name),
				Schema:      &huma.Schema{Type: huma.TypeString}})
			continue
		}
		before = part
	}
	for _, p := range route.Query {
		kind := p.Type
		if kind == "" {
			kind = huma.TypeString
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: p.Name, In: "query", Description: queryDoc(p),
			Schema: &huma.Schema{Type: kind}})
	}
	if route.Method == "POST" {
		op.Parameters = append(op.Parameters, &huma.Param{Name: HeaderIdempotency, In: "header",
			Description: "The same key with the same request gives the first outcome again, for 24 hours.",
			Schema:      &huma.Schema{Type: huma.TypeString, MaxLength: new(maxIdempotencyKey)}})
	}
	registry := o.Components.Schemas
	if route.In != nil {
		t := reflect.TypeOf(route.In)
		// No body is read as {}.
		needed := slices.ContainsFunc(PlanOf(t).Fields, func(f field) bool { return f.Required })
		op.RequestBody = &huma.RequestBody{Required: needed, Content: map[string]*huma.MediaType{
			"application/json": {Schema: bodySchema(registry, t)}}}
		PlanOf(t) // an invalid tag fails at the start
	}
	if route.Takes.Media != "" {
		op.RequestBody = takenBody(route)
	}
	if err := answers(op, registry, route, all); err != nil {
		return nil, err
	}
	return op, nil
}

// takenBody describes a body that the route's handler reads itself.
func takenBody(route *Route) *huma.RequestBody {
	s := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	switch route.Takes.Media {
	case "application/json":
		s = &huma.Schema{Description: "Any JSON.",
			Extensions: map[string]any{"x-selvage-max-bytes": cmp.Or(route.MaxBody, MaxBody)}}
	case formMedia:
		s = &huma.Schema{Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{"file": s}}
		for _, p := range route.Takes.Parts {
			s.Properties[p.Name] = &huma.Schema{Type: huma.TypeString, Description: p.Doc}
		}
	}
	return &huma.RequestBody{Required: route.Takes.Media != "application/json",
		Content: map[string]*huma.MediaType{route.Takes.Media: {Schema: s}}}
}

// answers describes what a route answers.
func answers(op *huma.Operation, registry huma.Registry, route *Route, all []Route) error {
	refused := map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Error"}}}
	op.Responses["default"] = &huma.Response{Description: "Refused or failed", Content: refused}
	if route.Never != 0 {
		op.Responses[strconv.Itoa(route.Never)] = &huma.Response{Description: "Always: there is no answer but a refusal",
			Content: refused}
		return nil
	}
	status := route.Status
	if status == 0 {
		status = 200
	}
	answer := &huma.Response{Description: "Done", Content: map[string]*huma.MediaType{}}
	if slices.Contains(route.Media, "*/*") { // bytes, with range requests
		op.Responses["412"] = &huma.Response{Description: "Changed since"}
		op.Responses["416"] = &huma.Response{Description: "No such part",
			Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	for _, media := range route.Media {
		answer.Content[media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	switch {
	case route.Out != nil:
		answer.Content["application/json"] = &huma.MediaType{Schema: answerSchema(registry, outOf(route, all))}
	case len(route.Media) == 0 && status != http.StatusNoContent:
		return fmt.Errorf("api: describe %s %s: the row does not say what is answered: set Out, Media or Never",
			route.Method, route.Path)
	}
	for _, status := range append(route.Also, status) {
		op.Responses[strconv.Itoa(status)] = answer
	}
	return nil
}

// bodySchema returns the registry's schema of a body. It corrects what huma reads differently,
// also in nested types: which members are required, and that unknown ones are ignored.
func bodySchema(registry huma.Registry, t reflect.Type) *huma.Schema {
	s := embedded(registry, registry.Schema(t, true, ""), t)
	if real := registry.SchemaFromRef(s.Ref); s.Ref != "" && real != nil && PlanOf(t).Shape == isStruct {
		bounded(registry, real, PlanOf(t), map[*plan]bool{})
	}
	return s
}

// embedded adds to a schema, and to those of its members, the members of unexported embedded
// structs, which huma leaves out.
func embedded(registry huma.Registry, s *huma.Schema, t reflect.Type) *huma.Schema {
	return embeddedIn(registry, s, t, map[reflect.Type]bool{})
}

// embeddedIn does this for types that are not in seen: some contain themselves.
func embeddedIn(registry huma.Registry, s *huma.Schema, t reflect.Type, seen map[reflect.Type]bool) *huma.Schema {
	at := s
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t = t.Elem(); at.Items != nil {
			at = at.Items
		}
	}
	if at.Ref != "" {
		at = registry.SchemaFromRef(at.Ref)
	}
	if t.Kind() != reflect.Struct || at == nil || seen[t] {
		return s
	}
	seen[t] = true
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous || f.IsExported() || name != "" || f.Type.Kind() != reflect.Struct {
			if member := at.Properties[name]; member != nil {
				embeddedIn(registry, member, f.Type, seen)
			}
			continue
		}
		inner := embedded(registry, huma.SchemaFromType(registry, f.Type), f.Type)
		for member, schema := range inner.Properties {
			if at.Properties == nil {
				at.Properties = map[string]*huma.Schema{}
			}
			if at.Properties[member] == nil {
				at.Properties[member] = schema
			}
		}
	}
	return s
}

// bounded adds to a body's schema the bounds that the decoder applies without a tag.
func bounded(registry huma.Registry, s *huma.Schema, p *plan, seen map[*plan]bool) {
	if seen[p] {
		return
	}
	seen[p] = true
	s.AdditionalProperties, s.Required = !p.strict, nil
	for _, f := range p.Fields {
		if f.Required {
			s.Required = append(s.Required, f.Name)
		}
		inner, r := f.Plan, f.Rules
		for inner.Ptr || inner.Opt {
			inner = inner.Elem
		}
		if prop := s.Properties[f.Name]; prop != nil {
			prop = boundedValue(registry, prop, inner, r, seen)
			prop.Nullable = false
			if f.Rules.nullable || inner.Shape == isRaw {
				prop = orNull(prop)
			}
			s.Properties[f.Name] = prop
		}
	}
}

func boundedValue(registry huma.Registry, s *huma.Schema, p *plan, r bounds, seen map[*plan]bool) *huma.Schema {
	for p.Ptr || p.Opt {
		p = p.Elem
	}
	switch p.Shape {
	case isRaw, isAny:
		most := MaxRaw
		if r.MaxBytes > 0 {
			most = r.MaxBytes
		}
		s = &huma.Schema{Description: s.Description, Extensions: map[string]any{"x-selvage-max-bytes": most}}
		if r.Types == nil {
			s.Type, s.AdditionalProperties = huma.TypeObject, true
		}
	case isList:
		s.MinLength, s.MaxLength = nil, nil // of the items
		if s.Items != nil {
			s.Items = boundedValue(registry, s.Items, p.Elem, r.Items(), seen)
			s.Items.Nullable = s.Items.Nullable && p.Elem.Shape != isList
		}
	case isMap:
		s.MaxProperties = new(MaxMembers)
	case isString:
		if r.limited && r.MaxLength > 0 && s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" {
			s.MaxLength = new(r.MaxLength)
		}
		if r.MaxBytes > 0 {
			s.Extensions = map[string]any{"x-selvage-max-bytes": r.MaxBytes}
		}
	case isStruct:
		real := s
		if s.Ref != "" {
			real = registry.SchemaFromRef(s.Ref)
		}
		if real != nil {
			bounded(registry, real, p, seen)
		}
	}
	return s
}

// Schema describes an Opt as its value, or null.
func (Opt[T]) Schema(r huma.Registry) *huma.Schema {
	s := *r.Schema(reflect.TypeFor[T](), false, "")
	return orNull(&s)
}

// operationID returns a name from method and path: getApiIssuesById.
func operationID(route *Route) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(route.Method))
	for part := range strings.FieldsFuncSeq(route.Path, func(c rune) bool { return strings.ContainsRune("/-._", c) }) {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			b.WriteString("By")
			part = strings.TrimRight(name, "}")
		}
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func render(o *huma.OpenAPI) ([]byte, error) {
	b, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		return nil, fmt.Errorf("api: describe: %w", err)
	}
	return b, nil
}

// pathDocs describe path parameters by the segment before them.
var pathDocs = map[string]string{
	"companies":        "The company's ID.",
	"issues":           "The issue's ID, or its identifier such as ACM-1.",
	"agents":           "The agent's ID, or its short name within the company.",
	"projects":         "The project's ID, or its short name within the company.",
	"documents":        "The document's key, such as plan.",
	"nodes":            "The node's ID.",
	"runtime-services": "What to do: start, stop or restart.",
}

// pathDoc describes a path parameter by the segment before it.
func pathDoc(before, name string) string {
	if doc, ok := pathDocs[before]; ok {
		return doc
	}
	noun := strings.ReplaceAll(strings.TrimSuffix(before, "s"), "-", " ")
	if n, ok := strings.CutSuffix(noun, "ie"); ok {
		noun = n + "y"
	}
	if lower := strings.ToLower(name); lower == "id" || strings.HasSuffix(name, "Id") {
		return "ID of the " + noun + "."
	}
	return "Which " + noun + ": its " + name + "."
}

// queryDocs describe query parameters that many routes share.
var queryDocs = map[string]string{
	"limit": "At most so many.", "offset": "Leave out so many first.", "cursor": "The nextCursor of the page before.",
	"status": "Only those of these statuses, separated by commas.", "q": "Text to look for.",
	"from": "From this instant on.", "to": "Before this instant.",
}

// queryDoc describes a query parameter; names of IDs and filters explain themselves.
func queryDoc(p Param) string {
	if p.Doc != "" {
		return p.Doc
	}
	if doc, ok := queryDocs[p.Name]; ok {
		return doc
	}
	return "Only what has this " + p.Name + "."
}

// ToolsOf returns the MCP tools of a document.
func ToolsOf(openapi []byte) ([]*mcp.Tool, error) {
	d, err := mcp.Describe(openapi)
	if err != nil {
		return nil, err
	}
	return mcp.Tools(d)
}

// Describe returns the OpenAPI document of routes.
func Describe(version string, routes []Route) ([]byte, error) {
	spec := newOpenAPI(version)
	for i := range routes {
		op, err := operation(spec, &routes[i], routes)
		if err != nil {
			return nil, err
		}
		spec.AddOperation(op)
	}
	return render(spec)
}
