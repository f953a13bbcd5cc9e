package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
)

// routes is the table that a node serves.
func allRoutes(t *testing.T, b *Bed) []api.Route {
	t.Helper()
	s, ok := b.Nodes[0].API().(*api.Server)
	if !ok {
		t.Fatalf("the API is a %T", b.Nodes[0].API())
	}
	return s.Routes()
}

// A world is one of everything that a path can name.
type world map[string]string

// makeWorld fills a company with one row of each noun.
func makeWorld(t *testing.T, b *Bed) world {
	t.Helper()
	w := makeWorldOf(t, b, b.Company("Acme"))
	a := b.Agent(ledger.CompanyID(w["companyId"]))
	w["agents"], w["agentId"], w["runId"], w["keyId"] = a.ID, a.ID, a.Run, a.KeyID
	return w
}

// makeWorldOf leaves the agent and its run to the caller.
func makeWorldOf(t *testing.T, b *Bed, of ledger.CompanyID) world {
	t.Helper()
	w := world{"companyId": string(of)}
	w["issues"] = b.Issue(0, ledger.CompanyID(w["companyId"]), "Something")
	of = ledger.CompanyID("/api/companies/" + string(of))
	for _, m := range []struct {
		name, path string
		body       map[string]any
	}{
		{"goals", string(of) + "/goals", map[string]any{"title": "Goal"}},
		{"projects", string(of) + "/projects", map[string]any{"name": "Project"}},
		{"labelId", string(of) + "/labels", map[string]any{"name": "label", "color": "#112233"}},
		{"commentId", "/api/issues/" + w["issues"] + "/comments", map[string]any{"body": "A comment"}},
	} {
		var row struct{ ID string }
		b.Must(0, "POST", m.path, m.body, &row, Strong...)
		w[m.name] = row.ID
	}
	w["height"] = "3"
	return w
}

const nobody = "00000000-0000-4000-8000-000000000000"

// fill puts IDs into a pattern: those of the world, or what other gives.
func (w world) fill(pattern, other string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if !strings.HasPrefix(p, "{") {
			continue
		}
		name := strings.Trim(p, "{}.")
		if name == "id" {
			name = parts[i-1]
		}
		switch id := w[name]; {
		case other != "":
			parts[i] = other
		case id != "":
			parts[i] = id
		default:
			parts[i] = nobody
		}
	}
	return strings.Join(parts, "/")
}

// bodies are requests that nobody should send.
func bodies() map[string][]byte {
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	return map[string][]byte{
		"empty": {}, "cut": []byte(`{"name":`), "null": []byte("null"), "list": []byte("[]"), "text": []byte(`"x"`),
		"number":     []byte("12"),
		"two values": []byte("{} {}"), "trailing": []byte(`{}x`), "not UTF-8": []byte("{\"name\":\"\xff\xfe\"}"),
		"NUL":            []byte("{\"name\":\"\x00\"}"),
		"lone surrogate": []byte(`{"name":"\ud800"}`), "duplicate": []byte(`{"name":"a","name":"b","title":"a","title":"b"}`),
		"duplicate by case": []byte(`{"name":"a","NAME":"b"}`), "unknown": []byte(`{"nobodyKnowsThis":1}`),
		"deep":      []byte(deep),
		"deep list": []byte(strings.Repeat("[", 100_000)), "huge number": []byte(`{"budgetMonthlyCents":1e999999999}`),
		"oversized":      bytes.Repeat([]byte(" "), api.MaxBody+1),
		"oversized text": []byte(`{"name":"` + strings.Repeat("a", api.MaxBody) + `"}`),
		"proto":          []byte(`{"__proto__":{"a":1},"constructor":{}}`), "BOM": []byte("\xef\xbb\xbf{}"),
	}
}

// values are of every type, so that each is wrong for some field.
var values = []string{`null`, `true`, `-1`, `0`, `1.5`, `9223372036854775808`, `1e400`, `""`, `"x"`, `"\u0000"`,
	`"\u202e\ud83d\ude00"`,
	`"` + nobody + `"`, `[]`, `[null]`, `[[[]]]`, `["x","x"]`, `{}`, `{"x":{"y":[1]}}`,
	`"` + strings.Repeat("é", 3000) + `"`}

// fields are the members that a body of the type has.
func fields(v any) (names []string) {
	typ := reflect.TypeOf(v)
	if typ == nil || typ.Kind() != reflect.Struct {
		return nil
	}
	for f := range typ.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// valid is a body of the type that gets past the required fields, mostly.
func valid(v any, w world) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range fields(v) {
		switch name {
		case "name", "title", "body", "action", "entityType", "entityId", "provider", "model", "color", "biller":
			out[name] = json.RawMessage(`"A name"`)
		case "agentId":
			out[name] = json.RawMessage(`"` + w["agentId"] + `"`)
		case "expectedStatuses":
			out[name] = json.RawMessage(`["todo"]`)
		}
	}
	if _, ok := out["color"]; ok {
		out["color"] = json.RawMessage(`"#112233"`)
	}
	return out
}

// Whatever is sent to whichever route: the answer is a reason, never a failure,
// and the nodes agree afterwards.
func TestGarbageNeverFails(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	w := makeWorld(t, b)
	all := slices.Clone(allRoutes(t, b))
	// What ends things comes last, so that the rest meets living ones.
	final := func(r api.Route) bool {
		return strings.HasSuffix(r.Path, "/archive") || strings.HasSuffix(r.Path, "/terminate") || strings.HasSuffix(r.Path,
			"/pause") ||
			strings.HasSuffix(r.Path, "/cancel") || r.Path == "/api/companies/{companyId}"
	}
	slices.SortStableFunc(all, func(a, b api.Route) int {
		switch x, y := final(a), final(b); {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	})
	type shot struct {
		name, path string
		body       []byte
		headers    []string
	}
	sent, codes := 0, map[int]int{}
	var mu sync.Mutex
	for at, r := range all {
		if r.Method != "POST" && r.Method != "PATCH" && r.Method != "PUT" {
			continue
		}
		if strings.HasSuffix(r.Path, "/mesh/leave") {
			continue // it takes no body, and the node would go
		}
		path := w.fill(r.Path, "")
		var shots []shot
		for name, body := range bodies() {
			shots = append(shots, shot{name, path, body, nil})
		}
		for _, name := range fields(r.In) {
			for _, v := range values {
				o := valid(r.In, w)
				o[name] = json.RawMessage(v)
				text := []byte("{")
				for k, v := range o { // by hand: the values need not be what Go would write
					text = fmt.Appendf(text, "%q:%s,", k, v)
				}
				text[len(text)-1] = '}'
				shots = append(shots, shot{name + "=" + v[:min(len(v), 20)], path, text, nil})
			}
		}
		good, _ := json.Marshal(valid(r.In, w))
		for _, other := range []string{nobody, "x", "%00", "%ff%fe", "..%2f..", strings.Repeat("a", 4000), "%F0%9F%98%80",
			strings.ToUpper(nobody)} {
			shots = append(shots, shot{"path " + other[:min(len(other), 12)], w.fill(r.Path, other), good, nil})
		}
		for _, h := range [][]string{{"Content-Type", "text/plain"}, {"Content-Type", "application/json; charset=utf-16"},
			{"Content-Encoding", "gzip"},
			{"Authorization", "Bearer"}, {"Authorization", "Bearer x"}, {"Authorization", "Bearer a.b.c"},
			{"Authorization", "Basic eDp4"},
			{"Authorization", "Bearer eyJhbGciOiJub25lIn0.e30."}, {"X-Selvage-Read", "sometimes"}, {"X-Selvage-Height", "-1"},
			{"X-Selvage-Height", "x"},
			{"X-Paperclip-Run-Id", "x"}, {"Idempotency-Key", strings.Repeat("k", 300)}, {"Origin", "https://example.com"}} {
			shots = append(shots, shot{"header " + h[0] + ": " + h[1][:min(len(h[1]), 20)], path, good, h})
		}
		var wg sync.WaitGroup
		work := make(chan shot)
		for on := range b.Nodes {
			for range 2 {
				wg.Go(func() {
					for s := range work {
						a, err := b.Call(on, r.Method, s.path, s.body, nil, s.headers...)
						if err != nil {
							// The server may close on who sends too much before all is read.
							if len(s.body) <= api.MaxBody {
								t.Errorf("%s %s, %s: %v", r.Method, r.Path, s.name, err)
							}
							continue
						}
						mu.Lock()
						sent++
						codes[a.Status]++
						mu.Unlock()
						if a.Status >= 500 && a.Status != http.StatusServiceUnavailable {
							t.Errorf("%s %s, %s on n%d: %d %s", r.Method, r.Path, s.name, on+1, a.Status, a.Body)
						}
						var reason struct{ Error string }
						if a.Status >= 400 && (json.Unmarshal(a.Body, &reason) != nil || reason.Error == "") {
							t.Errorf("%s %s, %s: %d without a reason: %s", r.Method, r.Path, s.name, a.Status, a.Body)
						}
					}
				})
			}
		}
		for n, s := range shots {
			// under the race detector one in five of each route, which costs six times the work
			if !testing.Short() || (n+at)%5 == 0 {
				work <- s
			}
		}
		close(work)
		wg.Wait()
	}
	// Questions may be garbage too.
	for _, r := range all {
		if r.Method != "GET" || strings.Contains(r.Path, "/events") {
			continue
		}
		for _, other := range []string{"", nobody, "x", "%00", strings.Repeat("a", 4000)} {
			for _, v := range []string{"", "-1", "x", "%00", "99999999999999999999", "NaN", strings.Repeat("9", 500)} {
				q := url.Values{}
				for _, p := range r.Query {
					q.Set(p.Name, v)
				}
				query := strings.ReplaceAll(q.Encode(), "%2500", "%00")
				a, err := b.Call(sent%3, "GET", w.fill(r.Path, other)+"?"+query, nil, nil)
				sent++
				codes[a.Status]++
				if err != nil || a.Status >= 500 && a.Status != http.StatusServiceUnavailable {
					t.Errorf("GET %s with %q and %q: %v %d %s", r.Path, other, v, err, a.Status, a.Body)
				}
				if len(r.Query) == 0 {
					break
				}
			}
		}
	}
	t.Logf("%d requests: %v", sent, codes)
	b.Heads()
	if codes[http.StatusServiceUnavailable] > sent/10 { // a busy machine may be without a leader for a moment
		t.Errorf("%d of %d were answered 503", codes[http.StatusServiceUnavailable], sent)
	}
}
