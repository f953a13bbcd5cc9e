package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// A place is a string, a time or a piece of JSON in a body, however deep.
type site struct {
	at     []any // its path, as a refusal names it
	shape  shape
	rules  bounds
	around func(any) map[string]any // the body with a value in this place, and what else it takes
}

// places are those of a body's plan; good is a body to begin with.
func (w *town) places(p *plan, good map[string]any) (out []site) {
	var walk func(p *plan, r bounds, at []any, around func(any) map[string]any, inside []*plan)
	walk = func(p *plan, r bounds, at []any, around func(any) map[string]any, inside []*plan) {
		for p.ptr || p.opt {
			p = p.elem
		}
		deeper := func(p *plan, r bounds, step any, around func(any) map[string]any) {
			walk(p, r, append(at[:len(at):len(at)], step), around, inside)
		}
		switch p.shape {
		case isString, isTime, isRaw, isAny:
			out = append(out, site{at, p.shape, r, around})
		case isList:
			deeper(p.elem, r.items(), 0, func(v any) map[string]any { return around([]any{v}) })
		case isMap:
			deeper(p.elem, r.items(), "k", func(v any) map[string]any { return around(map[string]any{"k": v}) })
		case isStruct:
			for _, above := range inside {
				if above == p {
					return
				}
			}
			inside = append(inside[:len(inside):len(inside)], p)
			for _, f := range p.fields {
				deeper(f.plan, f.rules, f.name, func(v any) map[string]any {
					o, _ := w.sample(p, bounds{minLength: -1}, "").(map[string]any)
					if len(at) == 0 {
						for name, v := range good {
							o[name] = v
						}
						o[f.name] = v
						return o
					}
					o[f.name] = v
					return around(o)
				})
			}
		}
	}
	walk(p, bounds{}, nil, nil, nil)
	return out
}

// most is how long the value of a place may be: characters of a string, bytes of JSON.
// Of a string that is one of several, or of a form that has its length, it is 0.
func (p site) most() (n int, bound bool) {
	switch {
	case p.shape == isRaw && p.rules.maxBytes > 0:
		return p.rules.maxBytes, true
	case p.shape == isRaw:
		return MaxRaw, true
	case p.shape == isTime, p.shape == isString && (len(p.rules.enum) > 0 || p.rules.format == "uuid" || p.rules.format == "date-time" || p.rules.pattern != nil && p.rules.maxLength <= 0):
		return 0, true
	}
	return p.rules.maxLength, p.shape == isString && p.rules.maxLength > 0
}

// filled is the body with a text of n of a character in the place.
func (p site) filled(with string, n int) string {
	var v any = strings.Repeat(with, n)
	if t := p.rules.types; p.shape == isRaw && (t == nil || t[0] == "object") {
		v = map[string]any{"a": v}
	} else if p.shape == isRaw && t[0] == "array" {
		v = []any{v}
	}
	b, err := json.Marshal(p.around(v))
	if err != nil {
		panic(err)
	}
	return string(b)
}

// eachPlace calls f for each place of each body in the table of routes.
func eachPlace(t *testing.T, h *harness, w *town, f func(name string, p site, call func(body string) answer, into reflect.Type)) {
	for _, route := range h.Routes() {
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
		if route.Who == Agent {
			headers = append(headers, "Authorization: Bearer "+w.token)
		}
		in := reflect.TypeOf(route.In)
		for _, p := range w.places(planOf(in), good) {
			f(name, p, func(body string) answer { return h.call(route.Method, path, body, headers...) }, in)
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
	h := newHarness(t)
	tried := 0
	eachPlace(t, h, newTown(h, "Long"), func(name string, p site, call func(string) answer, in reflect.Type) {
		most, bound := p.most()
		switch {
		case !bound && name == "PUT /api/issues/{id}/documents/{key}": // a 413 beyond company.MaxDocument
			return
		case !bound:
			t.Errorf("%s: %v may be as long as it likes", name, p.at)
			return
		case most >= MaxBody: // the body ends first
			return
		case most == 0:
			most = 5000
		}
		tried++
		body, at := p.filled("a", most+1), ledgerJSON(p.at)
		a := call(body)
		if a.status == 409 && strings.Contains(string(a.body), "Nobody signs in on this mesh") {
			if err := DecodeBody([]byte(body), reflect.New(in).Interface()); err == nil {
				t.Errorf("%s takes too much at %s", name, at)
			}
			return
		}
		if a.status != 400 || !bytes.Contains(a.body, append([]byte(`"path":`), at...)) {
			t.Errorf("%s with too much at %s answered %d %.300s, want a 400 that names it", name, at, a.status, a.body)
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
	h := newHarness(t)
	tried := 0
	eachPlace(t, h, newTown(h, "Full"), func(name string, p site, call func(string) answer, _ reflect.Type) {
		most, bound := p.most()
		if !bound || most == 0 || most >= MaxBody {
			return
		}
		for _, with := range []string{"a", "語", "\x01"} {
			n := most
			if p.shape == isRaw {
				n = max(0, most-len(`{"a":""}`)) / len(bytes.Trim(ledgerJSON(with), `"`))
			} else if p.rules.maxBytes > 0 {
				n = min(n, p.rules.maxBytes/len(with))
			}
			body := p.filled(with, n)
			if len(body) > MaxBody {
				continue
			}
			tried++
			a := call(body)
			field, _ := p.at[len(p.at)-1].(string)
			for i := len(p.at) - 1; field == "" || field == "k"; i-- {
				field, _ = p.at[i].(string)
			}
			length := strings.Contains(string(a.body), " bytes") || strings.Contains(string(a.body), "longer than") || strings.Contains(string(a.body), "too long")
			length = length && !strings.Contains(string(a.body), "PASSWORD_TOO_LONG") // in the words of the contract
			if a.status >= 500 && a.status != 503 || (a.status == 413 || a.status/100 == 4 && length) && !names(a.body, field) {
				t.Errorf("%s with %d of %q at %v answered %d %.200s", name, n, with, p.at, a.status, a.body)
			}
		}
	})
	if tried < 1500 {
		t.Errorf("only %d bodies were sent", tried)
	}
	for line := range strings.Lines(h.log.String()) {
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
