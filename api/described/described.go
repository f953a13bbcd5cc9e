// Package described holds what a node answers, and takes, to what the description of the API says of it, in tests.
package described

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/selvage-mesh/selvage/api/routes"
)

// A document is the description of the API, against which answers are checked.
type document struct {
	mux      *http.ServeMux
	paths    map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex
	schemas  map[string]*jsonschema.Schema
	passed   map[passed]bool // what was held to its schema before: a flood is answered in the same words again and again
}

// passed is a text that its schema allows, by its hash: some are as long as a list may be.
type passed struct {
	pointer string
	body    [sha256.Size]byte
}

// mostPassed is how many texts are remembered.
const mostPassed = 1 << 14

// The description has its named schemas, and the schema of each body, as a document of their own: the
// compiler copies all that it knows of a document whenever it is asked for a place in it that no keyword
// names, and the description has two thousand.
const (
	namedURL = "mem:///named.json"
	bodyURL  = "mem:///body.json?"
)

// described is made once: all servers of a program describe the same.
var described = sync.OnceValues(func() (*document, error) {
	b, err := routes.Describe("test")
	if err != nil {
		return nil, err
	}
	b = bytes.ReplaceAll(b, []byte(`"#/components/schemas/`), []byte(`"`+namedURL+`#/$defs/`))
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	components, _ := doc.(map[string]any)["components"].(map[string]any)
	d := &document{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{},
		passed: map[passed]bool{}}
	d.paths, _ = doc.(map[string]any)["paths"].(map[string]any)
	for path, ops := range d.paths {
		for method := range ops.(map[string]any) {
			d.mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	d.compiler.DefaultDraft(jsonschema.Draft2020) // what OpenAPI 3.1 speaks
	return d, d.compiler.AddResource(namedURL, map[string]any{"$defs": components["schemas"]})
})

// operationOf returns the method and path of the operation that a request is for, ""
// where none is described.
func operationOf(method, target string) (d *document, pattern string, err error) {
	if d, err = described(); err != nil {
		return nil, "", err
	}
	at, err := url.ParseRequestURI(target)
	if err != nil || at.Path != path.Clean(at.Path) {
		return d, "", nil // nobody answers it as a route: a path that is not clean is sent to the one that is
	}
	_, pattern = d.mux.Handler(&http.Request{Method: method, URL: at, Host: "test"})
	return d, pattern, nil
}

// Differs says how an exchange differs from what the description of the API says of it: the
// answer, and the JSON body where it was taken; nil where both agree.
func Differs(req *http.Request, sent []byte, status int, header http.Header, answer []byte) error {
	target := req.URL.RequestURI()
	if err := Untrue(req.Method, target, status, header, answer); err != nil {
		return fmt.Errorf("%s %s answered %d %s, which is not what the description of the API says: %w", req.Method, target,
			status, answer, err)
	}
	plain := len(sent) == 0 || strings.HasPrefix(req.Header.Get("Content-Type"), "application/json")
	if status >= http.StatusMultipleChoices || !plain {
		return nil
	}
	if err := Taken(req.Method, target, sent); err != nil {
		return fmt.Errorf("%s %s took %s, which the description of the API forbids: %w", req.Method, target, sent, err)
	}
	return nil
}

// Untrue says how an answer differs from what the description of the API says of it;
// nil for one that agrees, or whose path is not described.
func Untrue(method, target string, status int, header http.Header, body []byte) error {
	d, pattern, err := operationOf(method, target)
	if err != nil || pattern == "" {
		return err
	}
	op, err := d.answer(pattern, status)
	if err != nil || op == "" {
		return err
	}
	media, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	return d.check(op, media, body)
}

// Taken says how a body that was taken differs from what the description says of it.
func Taken(method, target string, body []byte) error {
	d, pattern, err := operationOf(method, target)
	if err != nil || pattern == "" {
		return err
	}
	method, path, _ := strings.Cut(pattern, " ")
	op, _ := d.paths[path].(map[string]any)[strings.ToLower(method)].(map[string]any)
	if op["requestBody"] == nil {
		return nil
	}
	pointer := "/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/requestBody"
	if len(bytes.TrimSpace(body)) == 0 {
		if needed, _ := op["requestBody"].(map[string]any)["required"].(bool); needed {
			return fmt.Errorf("%s: there is no body", pointer)
		}
		return nil
	}
	return d.valid(pointer, body)
}

// answer is where the description has the answer of a status, as a JSON pointer.
func (d *document) answer(pattern string, status int) (pointer string, err error) {
	method, path, _ := strings.Cut(pattern, " ")
	op, _ := d.paths[path].(map[string]any)[strings.ToLower(method)].(map[string]any)
	answers, _ := op["responses"].(map[string]any)
	named := strconv.Itoa(status)
	if answers[named] == nil {
		if status < 400 {
			return "", fmt.Errorf("%s answers %d, of which the description says nothing", pattern, status)
		}
		named = "default"
	}
	return "/paths/" + escaped(path) + "/" + strings.ToLower(method) + "/responses/" + named, nil
}

// What a step of a JSON pointer writes in another way.
var escapes, unescapes = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// escaped is a path as a step of a JSON pointer.
func escaped(path string) string { return escapes.Replace(path) }

func (d *document) check(pointer, media string, body []byte) error {
	content, _ := d.at(pointer)["content"].(map[string]any)
	switch {
	case len(body) == 0:
		if content["application/json"] != nil {
			return fmt.Errorf("%s: the answer has no body", pointer)
		}
		return nil
	case content[media] == nil && content["*/*"] != nil:
		return nil
	case content[media] == nil:
		return fmt.Errorf("%s: the description has no %q", pointer, media)
	case media != "application/json":
		return nil
	}
	return d.valid(pointer, body)
}

// at is what the description has at a JSON pointer.
func (d *document) at(pointer string) map[string]any {
	said := map[string]any{"paths": d.paths}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		said, _ = said[unescapes.Replace(part)].(map[string]any)
	}
	return said
}

// valid holds a JSON text to the schema of an answer or a body.
func (d *document) valid(pointer string, body []byte) error {
	text := passed{pointer, sha256.Sum256(body)}
	d.mu.Lock()
	before := d.passed[text]
	d.mu.Unlock()
	if before {
		return nil
	}
	schema, err := d.schema(pointer + "/content/application~1json/schema")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	if err := schema.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.passed) >= mostPassed {
		clear(d.passed)
	}
	d.passed[text] = true
	return nil
}

func (d *document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.schemas[pointer]; s != nil {
		return s, nil
	}
	said := d.at(pointer)
	if said == nil {
		return nil, fmt.Errorf("the description has no schema at %s", pointer)
	}
	at := bodyURL + url.QueryEscape(pointer)
	if err := d.compiler.AddResource(at, said); err != nil {
		return nil, err
	}
	s, err := d.compiler.Compile(at)
	if err != nil {
		return nil, err
	}
	d.schemas[pointer] = s
	return s, nil
}
