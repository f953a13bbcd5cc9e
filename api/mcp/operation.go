package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An Operation is a route in the API's own description.
type Operation struct {
	Method, Path string
	ID           string // operationId
	Summary      string
	Group        string  // the first of its tags
	Params       []Param // of the path and the query, in order
	Body         *Schema // of the JSON body; nil for no body or any body
	NoTool       bool    // not offered as a tool: a stream, a file
}

// A Param is a parameter of the path or the query.
type Param struct {
	Name string `json:"name"`
	In   string `json:"in"` // "path" or "query"; others are left out
	Doc  string `json:"description"`
	Kind struct {
		Type string `json:"type"`
	} `json:"schema"`
}

// A Schema is the part of a JSON schema that tools use.
type Schema struct {
	Ref        string                     `json:"$ref,omitempty"`
	Type       json.RawMessage            `json:"type,omitempty"` // a name or a list of names
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Required   []string                   `json:"required,omitempty"`
}

// A Description is the part of an OpenAPI 3.1 document that tools use.
type Description struct {
	Operations []Operation // by path and method
	schemas    map[string]json.RawMessage
}

const schemaRef = "#/components/schemas/"

// Describe reads an OpenAPI document.
func Describe(openapi []byte) (*Description, error) {
	var doc struct {
		Paths map[string]map[string]struct {
			ID      string   `json:"operationId"`
			Summary string   `json:"summary"`
			Tags    []string `json:"tags"`
			Params  []Param  `json:"parameters"`
			NoTool  bool     `json:"x-selvage-no-tool"`
			Body    struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		return nil, fmt.Errorf("mcp: OpenAPI document: %w", err)
	}
	d := &Description{schemas: doc.Components.Schemas}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			op := Operation{Method: strings.ToUpper(method), Path: path, ID: o.ID, Summary: o.Summary, NoTool: o.NoTool}
			if len(o.Tags) > 0 {
				op.Group = o.Tags[0]
			}
			for _, p := range o.Params {
				if p.In == "path" || p.In == "query" {
					op.Params = append(op.Params, p)
				}
			}
			if body, ok := o.Body.Content["application/json"]; ok {
				s, err := d.resolve(body.Schema)
				if err != nil {
					return nil, fmt.Errorf("mcp: body of %s %s: %w", op.Method, path, err)
				}
				op.Body = &s
			}
			d.Operations = append(d.Operations, op)
		}
	}
	return d, nil
}

// resolve decodes a schema and follows one reference.
func (d *Description) resolve(b json.RawMessage) (s Schema, err error) {
	if len(b) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, err
	}
	if name, ok := strings.CutPrefix(s.Ref, schemaRef); ok {
		err = json.Unmarshal(d.schemas[name], &s)
	}
	return s, err
}

// Find returns the operation of a route. The names of path parameters are ignored.
func (d *Description) Find(method, path string) (Operation, bool) {
	want := shapeOf(path)
	for _, o := range d.Operations {
		if o.Method == method && shapeOf(o.Path) == want {
			return o, true
		}
	}
	return Operation{}, false
}

// shapeOf returns a path without the names of its parameters.
func shapeOf(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// definitions collects the schemas that properties refer to, and redirects the
// references to "$defs" of the tool's own schema.
func (d *Description) definitions(properties map[string]json.RawMessage) (map[string]json.RawMessage,
	map[string]json.RawMessage) {
	defs := map[string]json.RawMessage{}
	var rewrite func(b json.RawMessage) json.RawMessage
	rewrite = func(b json.RawMessage) json.RawMessage {
		text := string(b)
		if !strings.Contains(text, schemaRef) {
			return b
		}
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, schemaRef)
			if !ok {
				break
			}
			name, tail, _ := strings.Cut(after, `"`)
			rest = tail
			if _, known := defs[name]; !known {
				defs[name] = json.RawMessage("{}") // ends the recursion into a schema that contains itself
				defs[name] = rewrite(json.RawMessage(cmp.Or(string(d.schemas[name]), "{}")))
			}
		}
		return json.RawMessage(strings.ReplaceAll(text, schemaRef, "#/$defs/"))
	}
	out := make(map[string]json.RawMessage, len(properties))
	for name, p := range properties {
		out[name] = rewrite(p)
	}
	return out, defs
}
