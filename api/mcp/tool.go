package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Tool is one tool: the HTTP call that it makes, and its description.
type Tool struct {
	Name        string
	Description string
	Group       string // noun of the route, for picks; "" if it has none
	Method      string // of the call; "" if the arguments choose it
	Path        string // of the route, {name} is an argument; "" if the arguments choose it
	Args        []Arg
	Schema      json.RawMessage // JSON schema of the arguments
	ReadOnly    bool            // its calls change nothing

	// run makes the calls of a tool that is not a single call of Method and Path.
	run runner
	// fixed are members of the body besides the arguments.
	fixed map[string]any
	// finds marks the tools that find and call others.
	finds bool
}

// A runner makes the calls of a tool with several calls, or with arguments that are not
// those of the route. It returns the tool's answer.
type runner func(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error)

// An Arg is one argument of a tool.
type Arg struct {
	Name     string
	In       string // "path", "query" or "body"
	Required bool
	whole    bool // the argument is the whole body
}

// Arguments are a client's arguments of a tool, by name.
type Arguments map[string]json.RawMessage

// text returns an argument as text; numbers and booleans as JSON.
func (a Arguments) text(name string) string {
	b := bytes.TrimSpace(a[name])
	if len(b) == 0 || string(b) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}

// A badArgument says what is wrong with a client's arguments.
type badArgument struct{ text string }

func (e badArgument) Error() string { return e.text }

func (t *Tool) check(args Arguments) error {
	for _, a := range t.Args {
		if a.Required && args.text(a.Name) == "" {
			return badArgument{fmt.Sprintf("Invalid arguments for tool %s: %s is required", t.Name, a.Name)}
		}
	}
	return nil
}

// ofContract is the prefix of the names of the contract's tools, and of no others.
const ofContract = "paperclip"

// Tools returns all tools of a description, by name: the contract's, one for each other
// route, and two that find and call the others.
func Tools(d *Description) ([]*Tool, error) {
	byName, called := map[string]*Tool{}, map[string]bool{}
	for _, s := range contract {
		t, err := s.tool(d)
		if err != nil {
			return nil, err
		}
		byName[t.Name] = t
		called[t.Method+" "+shapeOf(t.Path)] = true
	}
	for _, o := range d.Operations {
		if o.NoTool || !strings.HasPrefix(o.Path, "/api/") || called[o.Method+" "+shapeOf(o.Path)] {
			continue
		}
		t, err := d.toolOf(o)
		if err != nil {
			return nil, err
		}
		if _, taken := byName[t.Name]; taken { // such as GET /x/{id}/y beside GET /x/y
			t.Name = shorten("selvage" + strings.ToUpper(o.ID[:1]) + o.ID[1:])
		}
		byName[t.Name] = t
	}
	found := sorted(byName)
	for _, t := range finders(found) {
		byName[t.Name] = t
	}
	return sorted(byName), nil
}

func sorted(byName map[string]*Tool) []*Tool {
	tools := make([]*Tool, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		tools = append(tools, byName[name])
	}
	return tools
}

// toolOf returns the tool of a route that no tool of the contract calls.
func (d *Description) toolOf(o Operation) (*Tool, error) {
	t := &Tool{Name: shorten(nameOf(o)), Group: o.Group, Method: o.Method, Path: o.Path, ReadOnly: o.Method == "GET",
		Description: fmt.Sprintf("%s (%s %s)", o.Summary, o.Method, o.Path)}
	properties := map[string]json.RawMessage{}
	for _, p := range o.Params {
		t.Args = append(t.Args, Arg{Name: p.Name, In: p.In, Required: p.In == "path" && p.Name != "companyId"})
		properties[p.Name] = encode(map[string]any{"type": p.Kind.Type, "description": p.Doc})
	}
	t.addBody(o, properties)
	return t, t.seal(d, properties)
}

// addBody adds the members of a route's body to the arguments. A body that is not an
// object, or has a member with a parameter's name, becomes the argument "body".
func (t *Tool) addBody(o Operation, properties map[string]json.RawMessage) {
	switch {
	case o.Method == "GET" || o.Method == "DELETE" && o.Body == nil:
		return
	case o.Body == nil || len(o.Body.Properties) == 0 || clash(o.Body.Properties, properties):
		t.Args = append(t.Args, Arg{Name: "body", In: "body", whole: true})
		properties["body"] = encode(map[string]any{"type": "object", "description": "The JSON body of the request."})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(o.Body.Properties)) {
		t.Args = append(t.Args, Arg{Name: name, In: "body", Required: slices.Contains(o.Body.Required, name)})
		properties[name] = o.Body.Properties[name]
	}
}

func clash(a, b map[string]json.RawMessage) bool {
	for name := range a {
		if _, ok := b[name]; ok {
			return true
		}
	}
	return false
}

// seal writes the schema.
func (t *Tool) seal(d *Description, properties map[string]json.RawMessage) error {
	properties, defs := d.definitions(properties)
	schema := map[string]any{"type": "object", "properties": properties}
	var required []string
	for _, a := range t.Args {
		if a.Required {
			required = append(required, a.Name)
		}
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	if len(defs) > 0 {
		schema["$defs"] = defs
	}
	b, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("mcp: schema of %s: %w", t.Name, err)
	}
	t.Schema = b
	return nil
}

// nameOf derives a name from method and path: GET /api/issues/{id}/runs is
// selvageGetIssuesRuns, GET /api/goals/{id} is selvageGetGoalsById.
func nameOf(o Operation) string {
	var b strings.Builder
	b.WriteString("selvage" + o.Method[:1] + strings.ToLower(o.Method[1:]))
	parts := strings.Split(strings.TrimPrefix(o.Path, "/api/"), "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			if i == len(parts)-1 {
				name = strings.TrimSuffix(strings.TrimRight(name, "}"), "...")
				b.WriteString("By" + strings.ToUpper(name[:1]) + name[1:])
			}
			continue
		}
		for word := range strings.FieldsFuncSeq(part, func(c rune) bool { return c == '-' || c == '.' || c == '_' }) {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// shorten cuts a name to maxToolName; the last six characters then distinguish long
// names.
func shorten(name string) string {
	if len(name) <= maxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxToolName-6] + hex.EncodeToString(sum[:3])
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: %v does not encode: %v", v, err)) // such maps can be encoded
	}
	return b
}
