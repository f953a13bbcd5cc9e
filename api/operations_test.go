package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/routes"
)

// Each operation of the description says what it takes and what it answers: an answer has a type, or media
// types that are not JSON, or there is none because the operation always refuses, which is then said. A
// body that a handler reads itself is described, too.
func TestEveryOperationSaysWhatItTakesAndAnswers(t *testing.T) {
	b, err := routes.Describe("test")
	if err != nil {
		t.Fatal(err)
	}
	type content map[string]struct {
		Schema map[string]any `json:"schema"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Body      *struct{ Content content } `json:"requestBody"`
			Responses map[string]struct{ Content content }
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	// says reports whether a schema allows less than any value.
	says := func(s map[string]any) bool {
		return slices.ContainsFunc([]string{"$ref", "type", "anyOf", "oneOf", "allOf", "enum"},
			func(k string) bool { return s[k] != nil })
	}
	answered, refused := 0, 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			name, done := strings.ToUpper(method)+" "+path, false
			for status, r := range op.Responses {
				if status == "default" || status > "399" {
					continue
				}
				done = true
				if len(r.Content) == 0 && status != "204" {
					t.Errorf("%s: %s has no content", name, status)
				}
				for media, c := range r.Content {
					if !says(c.Schema) {
						t.Errorf("%s: %s is any %s", name, status, media)
					}
				}
			}
			if done {
				answered++
			} else if refused++; len(op.Responses) < 2 {
				t.Errorf("%s: it has no answer, and does not say by which status it refuses", name)
			}
			if op.Body == nil {
				continue
			}
			for media, c := range op.Body.Content {
				if !says(c.Schema) && !strings.HasSuffix(path, "/fire") { // a webhook takes any JSON
					t.Errorf("%s: its body is any %s", name, media)
				}
			}
		}
	}
	if answered < 500 || refused > 20 {
		t.Errorf("%d operations have an answer, %d always refuse", answered, refused)
	}
	for _, upload := range []string{"/api/companies/{companyId}/logo", "/api/companies/{companyId}/assets/images",
		"/api/companies/{companyId}/tools",
		"/api/companies/{companyId}/issues/{id}/attachments"} {
		if b := doc.Paths[upload]["post"].Body; b == nil || b.Content["multipart/form-data"].Schema == nil {
			t.Errorf("POST %s: the form is not described", upload)
		}
	}
}
