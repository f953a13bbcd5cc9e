package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// A place is a string, a time or a piece of JSON in a body, however deep.
type site struct {
	at     []any // its path, as a refusal names it
	shape  api.Shape
	rules  api.Bounds
	around func(any) map[string]any // the body with a value in this place, and what else it takes
}

// places are those of a body's plan; good is a body to begin with.
func (w *town) places(p *api.Plan, good map[string]any) (out []site) {
	var walk func(p *api.Plan, r api.Bounds, at []any, around func(any) map[string]any, inside []*api.Plan)
	walk = func(p *api.Plan, r api.Bounds, at []any, around func(any) map[string]any, inside []*api.Plan) {
		for p.Ptr || p.Opt {
			p = p.Elem
		}
		deeper := func(p *api.Plan, r api.Bounds, step any, around func(any) map[string]any) {
			walk(p, r, append(at[:len(at):len(at)], step), around, inside)
		}
		switch p.Shape {
		case api.IsString, api.IsTime, api.IsRaw, api.IsAny:
			out = append(out, site{at, p.Shape, r, around})
		case api.IsList:
			deeper(p.Elem, r.Items(), 0, func(v any) map[string]any { return around([]any{v}) })
		case api.IsMap:
			deeper(p.Elem, r.Items(), "k", func(v any) map[string]any { return around(map[string]any{"k": v}) })
		case api.IsStruct:
			for _, above := range inside {
				if above == p {
					return
				}
			}
			inside = append(inside[:len(inside):len(inside)], p)
			for _, f := range p.Fields {
				deeper(f.Plan, f.Rules, f.Name, func(v any) map[string]any {
					o, _ := w.sample(p, api.Bounds{MinLength: -1}, "").(map[string]any)
					if len(at) == 0 {
						for name, v := range good {
							o[name] = v
						}
						o[f.Name] = v
						return o
					}
					o[f.Name] = v
					return around(o)
				})
			}
		}
	}
	walk(p, api.Bounds{}, nil, nil, nil)
	return out
}

// most is how long the value of a place may be: characters of a string, bytes of JSON.
// Of a string that is one of several, or of a form that has its length, it is 0.
func (p site) most() (n int, bound bool) {
	switch {
	case p.shape == api.IsRaw && p.rules.MaxBytes > 0:
		return p.rules.MaxBytes, true
	case p.shape == api.IsRaw:
		return api.MaxRaw, true
	case p.shape == api.IsTime, p.shape == api.IsString && (len(p.rules.Enum) > 0 || p.rules.Format == "uuid" ||
		p.rules.Format == "date-time" || p.rules.Pattern != nil && p.rules.MaxLength <= 0):
		return 0, true
	}
	return p.rules.MaxLength, p.shape == api.IsString && p.rules.MaxLength > 0
}

// filled is the body with a text of n of a character in the place.
func (p site) filled(with string, n int) string {
	var v any = strings.Repeat(with, n)
	if t := p.rules.Types; p.shape == api.IsRaw && (t == nil || t[0] == "object") {
		v = map[string]any{"a": v}
	} else if p.shape == api.IsRaw && t[0] == "array" {
		v = []any{v}
	}
	b, err := json.Marshal(p.around(v))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// eachPlace calls f for each place of each body in the table of routes.
func eachPlace(t *testing.T, h *apitest.Harness, w *town,
	f func(name string, p site, call func(body string) apitest.Answer, into reflect.Type)) {
	// What exports a company goes first, before all that is sent has filled it.
	all := slices.Clone(h.Routes())
	slices.SortStableFunc(all, func(a, b api.Route) int {
		return strings.Count(b.Path, "/export") - strings.Count(a.Path, "/export")
	})
	for _, route := range all {
		if route.In == nil || route.Method == "GET" || changesAll(route) {
			continue
		}
		name := route.Method + " " + route.Path
		path, _ := w.path(route)
		var good map[string]any
		if err := json.Unmarshal([]byte(w.body(route)), &good); err != nil {
			t.Fatal(name, err)
		}
		var headers []string
		if route.Who == api.Agent {
			headers = append(headers, "Authorization: Bearer "+w.token)
		}
		in := reflect.TypeOf(route.In)
		for _, p := range w.places(api.PlanOf(in), good) {
			f(name, p, func(body string) apitest.Answer { return h.Call(route.Method, path, body, headers...) }, in)
		}
	}
}

// TestEveryStringOfEveryBodyHasALength goes through the whole table of routes and, in
// each body, through every string, time and piece of JSON at whatever depth: a value
// that is too long is a 400 that names its place.
//
// It would catch a field below the first level without a bound, a handler that reads a
// body past its type, and a refusal that leaves the caller to search.
func TestEveryStringOfEveryBodyHasALength(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	tried := 0
	eachPlace(t, h, newTown(h, "Long"), func(name string, p site, call func(string) apitest.Answer, in reflect.Type) {
		most, bound := p.most()
		switch {
		case !bound && name == "PUT /api/issues/{id}/documents/{key}": // a 413 beyond company.MaxDocument
			return
		case !bound:
			t.Errorf("%s: %v may be as long as it likes", name, p.at)
			return
		case most >= api.MaxBody: // the body ends first
			return
		case most == 0:
			most = 5000
		}
		tried++
		body, at := p.filled("a", most+1), ledgerJSON(p.at)
		a := call(body)
		if a.Status == 409 && strings.Contains(string(a.Body), "Nobody signs in on this mesh") {
			if err := api.DecodeBody([]byte(body), reflect.New(in).Interface()); err == nil {
				t.Errorf("%s takes too much at %s", name, at)
			}
			return
		}
		if a.Status != 400 || !bytes.Contains(a.Body, append([]byte(`"path":`), at...)) {
			t.Errorf("%s with too much at %s answered %d %.300s, want a 400 that names it", name, at, a.Status, a.Body)
		}
	})
	if tried < 800 {
		t.Errorf("only %d places were tried", tried)
	}
}

// TestWhatABodyMayHoldTheRulesMayHoldToo sends, in each place, as much as its bound
// lets through, of characters that are one byte, three, and six in JSON: nothing
// breaks, and whatever says no for the length names the field.
//
// It would catch a bound of the rules below that of the body, which answers too late to
// know the field, and a line of the log that has no room for what it tells.
func TestWhatABodyMayHoldTheRulesMayHoldToo(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	tried := 0
	eachPlace(t, h, newTown(h, "Full"), func(name string, p site, call func(string) apitest.Answer, _ reflect.Type) {
		most, bound := p.most()
		if !bound || most == 0 || most >= api.MaxBody {
			return
		}
		for _, with := range []string{"a", "語", "\x01"} {
			n := most
			if p.shape == api.IsRaw {
				n = max(0, most-len(`{"a":""}`)) / len(bytes.Trim(ledgerJSON(with), `"`))
			} else if p.rules.MaxBytes > 0 {
				n = min(n, p.rules.MaxBytes/len(with))
			}
			body := p.filled(with, n)
			if len(body) > api.MaxBody {
				continue
			}
			tried++
			a := call(body)
			field, _ := p.at[len(p.at)-1].(string)
			for i := len(p.at) - 1; field == "" || field == "k"; i-- {
				field, _ = p.at[i].(string)
			}
			length := strings.Contains(string(a.Body), " bytes") || strings.Contains(string(a.Body), "longer than") ||
				strings.Contains(string(a.Body), "too long")
			length = length && !strings.Contains(string(a.Body), "PASSWORD_TOO_LONG") // in the words of the contract
			if a.Status >= 500 && a.Status != 503 || (a.Status == 413 || a.Status/100 == 4 && length) &&
				!apitest.Names(a.Body, field) {
				t.Errorf("%s with %d of %q at %v answered %d %.200s", name, n, with, p.at, a.Status, a.Body)
			}
		}
	})
	if tried < 1500 {
		t.Errorf("only %d bodies were sent", tried)
	}
	for line := range strings.Lines(h.Log.String()) {
		if strings.Contains(line, "panicked") {
			t.Errorf("logged: %.400s", line)
		}
	}
}

func ledgerJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(v, err))
	}
	return b
}
