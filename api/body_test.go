package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

type sample struct {
	Title    string            `json:"title" minLength:"1" maxLength:"5"`
	Level    string            `json:"level,omitempty" enum:"company,team"`
	Agent    *string           `json:"agentId" format:"uuid"`
	Statuses []string          `json:"statuses,omitempty" enum:"todo,done" minItems:"1"`
	Cents    int64             `json:"cents,omitempty" minimum:"0"`
	Share    float64           `json:"share,omitempty" maximum:"1"`
	Parent   api.Opt[string]   `json:"parentId" format:"uuid"`
	On       bool              `json:"on,omitempty"`
	At       core.Time         `json:"at,omitempty"`
	Raw      json.RawMessage   `json:"raw,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Inner    inner             `json:"inner,omitzero"`
	Kind     string            `json:"kind,omitempty" default:"plain"`
	Note     string            `json:"note,omitempty" maxLength:"4" maxBytes:"6"`
}

type inner struct {
	_    struct{} `additionalProperties:"false"`
	Name string   `json:"name" trim:"true" minLength:"1"`
}

// The issues are those that the contract's clients read, to the letter.
func TestBodiesAreRefusedInTheContractsWords(t *testing.T) {
	const required = `{"title":"x",`
	for body, want := range map[string]string{
		`{}`: `[{"expected":"string","code":"invalid_type","path":["title"],` +
			`"message":"Invalid input: expected string, received undefined"}]`,
		`[]`: `[{"expected":"object","code":"invalid_type","path":[],` +
			`"message":"Invalid input: expected object, received array"}]`,
		`{"title":null}`: `[{"expected":"string","code":"invalid_type","path":["title"],` +
			`"message":"Invalid input: expected string, received null"}]`,
		`{"title":7}`: `[{"expected":"string","code":"invalid_type","path":["title"],` +
			`"message":"Invalid input: expected string, received number"}]`,
		`{"title":""}`: `[{"origin":"string","code":"too_small","minimum":1,"inclusive":true,` +
			`"path":["title"],"message":"Too small: expected string to have >=1 characters"}]`,
		`{"title":"123456"}`: `[{"origin":"string","code":"too_big","maximum":5,"inclusive":true,` +
			`"path":["title"],"message":"Too big: expected string to have <=5 characters"}]`,
		required + `"note":"語語語"}`: `[{"origin":"string","code":"too_big","maximum":6,"inclusive":true,` +
			`"path":["note"],"message":"Too big: expected string to have <=6 bytes"}]`,
		required + `"note":"語語語語語"}`: `[{"origin":"string","code":"too_big","maximum":4,` +
			`"inclusive":true,"path":["note"],"message":"Too big: expected string to have <=4 characters"}]`,
		required + `"level":"galaxy"}`: `[{"code":"invalid_value","values":["company","team"],"path":["level"],` +
			`"message":"Invalid option: expected one of \"company\"|\"team\""}]`,
		required + `"level":null}`: `[{"code":"invalid_value","values":["company","team"],"path":["level"],` +
			`"message":"Invalid option: expected one of \"company\"|\"team\""}]`,
		required + `"agentId":"nope"}`: `[{"origin":"string","code":"invalid_format","format":"guid","pattern":"` +
			strings.ReplaceAll(api.GuidPattern, `\`, `\\`) + `","path":["agentId"],"message":"Invalid GUID"}]`,
		required + `"statuses":["todo","x"]}`: `[{"code":"invalid_value","values":["todo","done"],` +
			`"path":["statuses",1],"message":"Invalid option: expected one of \"todo\"|\"done\""}]`,
		required + `"statuses":[]}`: `[{"origin":"array","code":"too_small","minimum":1,"inclusive":true,` +
			`"path":["statuses"],"message":"Too small: expected array to have >=1 items"}]`,
		required + `"cents":-1}`: `[{"origin":"number","code":"too_small","minimum":0,"inclusive":true,` +
			`"path":["cents"],"message":"Too small: expected number to be >=0"}]`,
		required + `"cents":1.5}`: `[{"expected":"int","code":"invalid_type","format":"safeint","path":["cents"],` +
			`"message":"Invalid input: expected int, received number"}]`,
		required + `"env":[]}`: `[{"expected":"record","code":"invalid_type","path":["env"],"message":"Invalid ` +
			`input: expected record, received array"}]`,
		required + `"inner":{"name":" ","x":1}}`: `[{"origin":"string","code":"too_small","minimum":1,` +
			`"inclusive":true,"path":["inner","name"],"message":"Too small: expected string to have >=1 characters"},` +
			`{"code":"unrecognized_keys","keys":["x"],"path":["inner"],"message":"Unrecognized key: \"x\""}]`,
		`{"on":1,"at":"noon"}`: `[{"expected":"string","code":"invalid_type","path":["title"],"message":"Invalid ` +
			`input: expected string, received undefined"},` +
			`{"expected":"boolean","code":"invalid_type","path":["on"],"message":"Invalid input: expected ` +
			`boolean, received number"},` +
			`{"origin":"string","code":"invalid_format","format":"datetime","path":["at"],"message":"Invalid ISO datetime"}]`,
	} {
		var v sample
		err := api.DecodeBody([]byte(body), &v)
		r, ok := errors.AsType[*ledger.Refusal](err)
		if !ok || r.Message != "Validation error" {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var got, wanted any
		_ = json.Unmarshal(r.Detail, &got)
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s:\n got %s\nwant %s", body, r.Detail, want)
		}
	}
}

func TestBodiesAreDecoded(t *testing.T) {
	id := "00000000-0000-4000-8000-00000000000A"
	var v sample
	err := api.DecodeBody(
		[]byte(` {"title":"a\u00e9","agentId":null,"parentId":null,"cents":12e2,"share":0.5,"on":true,`+
			`"at":"2026-11-21T03:06:12.922Z",
		"raw":{"a":[1,"}"]},"env":{"A":"b"},"statuses":["done"],"inner":{"name":" x "},"unknown":[{}]} `), &v)
	if err != nil {
		t.Fatal(err)
	}
	if v.Title != "aé" || v.Agent != nil || !v.Parent.Set || !v.Parent.Null || v.Cents != 1200 ||
		v.Share != 0.5 || !v.On ||
		v.At.String() != "2026-11-21T03:06:12.922Z" || string(v.Raw) != `{"a":[1,"}"]}` || v.Env["A"] != "b" ||
		v.Inner.Name != "x" || v.Kind != "plain" {
		t.Errorf("decoded %+v", v)
	}
	v = sample{}
	if err := api.DecodeBody([]byte(`{"title":"x","agentId":"`+id+`","parentId":"`+id+`","kind":"odd"}`),
		&v); err != nil || *v.Agent != id || v.Parent.Value != id || v.Kind != "odd" {
		t.Errorf("decoded %+v, %v", v, err)
	}
	if v.Parent.Pointer() == nil || (api.Opt[string]{}).Pointer() != nil || (api.Opt[string]{Set: true, Null: true}).
		Or("other") != "other" {
		t.Error("Opt mixes up absent, null and given")
	}
}

// What the decoder accepts, encoding/json accepts too, and reads the same.
func FuzzDecodeBody(f *testing.F) {
	for _, s := range []string{`{}`, `{"title":"x"}`, `{"title":"x","cents":9e99}`, `{"a":1,"a":2}`, `{"title":"\ud800"}`,
		`{"inner":{"name":"x"}}`,
		`[[[[`, `{"title":"x","raw":{"a":"\"}"}}`, `null`, ` {"title" : "x" , "statuses":["todo"] } `, "{\"title\":\"\xff\"}",
		`{"title":"x","env":{"a":"b","a":"c"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		var v sample
		err := api.DecodeBody(b, &v)
		if err != nil {
			if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Code != ledger.Invalid || !json.Valid(r.Detail) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		var std struct {
			Title string          `json:"title"`
			Raw   json.RawMessage `json:"raw"`
		}
		if !json.Valid(b) {
			t.Fatalf("%q is accepted", b)
		}
		if json.Unmarshal(b, &std) == nil && !strings.Contains(strings.ToLower(string(b)), `\u`) &&
			strings.Count(strings.ToLower(string(b)), `"title"`) == 1 && std.Title != v.Title {
			t.Fatalf("%q: title %q, encoding/json reads %q", b, v.Title, std.Title)
		}
	})
}

func BenchmarkDecodeCheckout(b *testing.B) {
	type checkout struct {
		Agent    string   `json:"agentId" format:"uuid"`
		Expected []string `json:"expectedStatuses" enum:"backlog,todo,in_progress,in_review,done,blocked,cancelled" minItems:"1"`
	}
	body := []byte(`{"agentId":"a2c723cf-8ef3-4bb1-9755-0e3b8d72bd35","expectedStatuses":["todo","backlog",` +
		`"blocked","in_review"]}`)
	for b.Loop() {
		var v checkout
		if err := api.DecodeBody(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServeHealth(b *testing.B) {
	h := apitest.NewHarness(b)
	for b.Loop() {
		h.Call("GET", "/healthz", "")
	}
}
