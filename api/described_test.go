package api_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// A description is what the tests read of the OpenAPI document.
type description struct {
	Paths      map[string]map[string]operation `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Parameters []struct {
		Name   string  `json:"name"`
		In     string  `json:"in"`
		Schema *schema `json:"schema"`
	} `json:"parameters"`
	Body struct {
		Content struct {
			JSON struct {
				Schema *schema `json:"schema"`
			} `json:"application/json"`
		} `json:"content"`
	} `json:"requestBody"`
}

type schema struct {
	Ref        string             `json:"$ref"`
	AnyOf      []*schema          `json:"anyOf"` // a value, or null
	Type       types              `json:"type"`
	Format     string             `json:"format"`
	Pattern    string             `json:"pattern"`
	Enum       []any              `json:"enum"`
	MaxLength  *int               `json:"maxLength"`
	MinLength  *int               `json:"minLength"`
	MaxItems   *int               `json:"maxItems"`
	MinItems   *int               `json:"minItems"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	Items      *schema            `json:"items"`
	Properties map[string]*schema `json:"properties"`
	MaxMembers *int               `json:"maxProperties"`
	MaxBytes   int                `json:"x-selvage-max-bytes"`
}

// types are the JSON types of a schema, joined by commas: "string,null".
type types string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = types(one)
		return nil
	}
	var many []string
	err := json.Unmarshal(b, &many)
	*t = types(strings.Join(many, ","))
	return err
}

func (t types) has(name string) bool { return slices.Contains(strings.Split(string(t), ","), name) }

// documentOf returns the OpenAPI document of a server.
func documentOf(t *testing.T, s *api.Server) []byte {
	t.Helper()
	doc, err := s.Openapi()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func (f *flood) describe() (d description) {
	f.t.Helper()
	if err := json.Unmarshal(documentOf(f.t, f.Server), &d); err != nil {
		f.t.Fatal(err)
	}
	return d
}

func (d description) resolve(s *schema) *schema {
	for s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	if len(s.AnyOf) > 0 {
		one := *d.resolve(s.AnyOf[0])
		one.Type += ",null"
		return &one
	}
	return s
}

// endless reports whether a value may be of any length.
func (s *schema) endless(d description) bool {
	s = d.resolve(s)
	switch {
	case s.MaxBytes > 0, s.MaxMembers != nil:
		return false
	case s.Type.has("string"):
		return s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" && s.Pattern == ""
	case s.Type.has("array"):
		return s.MaxItems == nil || s.Items.endless(d)
	case s.Type == "", s.Type.has("object") && len(s.Properties) == 0:
		return true
	}
	for _, p := range s.Properties {
		if p.endless(d) {
			return true
		}
	}
	return false
}

// wrong are values, as JSON, that a schema does not allow.
func wrong(d description, s *schema) (out []string) {
	if s.Type == "" {
		if s.MaxBytes > 0 {
			out = append(out, `{"a":"`+strings.Repeat("a", s.MaxBytes)+`"}`)
		}
		return out
	}
	for kind, v := range map[string]string{"string": `"x"`, "boolean": `true`, "array": `[]`, "object": `{}`,
		"null": `null`} {
		if !s.Type.has(kind) {
			out = append(out, v)
		}
	}
	if !s.Type.has("integer") && !s.Type.has("number") {
		out = append(out, `7`, `-1e300`)
	}
	switch {
	case s.Type.has("string"):
		if len(s.Enum) > 0 {
			out = append(out, `"no-such-thing"`, `""`)
		}
		switch s.Format {
		case "uuid":
			out = append(out, `"not-a-uuid"`, `"00000000-0000-4000-8000-00000000000g"`, `"`+strings.Repeat("a", 5000)+`"`)
		case "date-time":
			out = append(out, `"noon"`, `"2026-13-45T00:00:00Z"`, `"`+strings.Repeat("2", 5000)+`"`)
		}
		if s.MaxLength != nil {
			out = append(out, `"`+strings.Repeat("a", *s.MaxLength+1)+`"`)
		}
		if s.MinLength != nil && *s.MinLength > 0 {
			out = append(out, `"`+strings.Repeat("a", *s.MinLength-1)+`"`)
		}
	case s.Type.has("integer"):
		out = append(out, `1.5`, `1e300`, `-1e300`, `9007199254740993`)
		fallthrough
	case s.Type.has("number"):
		out = append(out, `1e999`)
		if s.Minimum != nil {
			out = append(out, strconv.FormatFloat(*s.Minimum-1, 'f', -1, 64))
		}
		if s.Maximum != nil {
			out = append(out, strconv.FormatFloat(*s.Maximum+1, 'f', -1, 64))
		}
	case s.Type.has("array"):
		if s.MaxItems != nil {
			out = append(out, "["+strings.Repeat(`"00000000-0000-4000-8000-000000000000",`,
				*s.MaxItems)+`"00000000-0000-4000-8000-000000000000"]`)
		}
		for _, v := range wrong(d, d.resolve(s.Items)) {
			if v != "null" {
				out = append(out, "["+v+"]")
			}
		}
	case s.Type.has("object") && s.MaxBytes > 0:
		out = append(out, `{"a":"`+strings.Repeat("a", s.MaxBytes)+`"}`)
	}
	return out
}

// packed is zeros, packed.
func packed(how string, n int64) []byte {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if how == "deflate" {
		w, _ = flate.NewWriter(&b, flate.BestSpeed)
	}
	if _, err := io.CopyN(w, apitest.Zeros{}, n); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
