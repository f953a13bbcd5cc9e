package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/described"
)

const (
	floodPeak = 384 << 20
	floodRest = 64 << 20
)

// A flood sends what no client should, and looks at each answer.
type flood struct {
	*apitest.Harness
	t      *testing.T
	town   *town
	url    string
	client *http.Client
	sent   int
	shown  int
}

func newFlood(t *testing.T) *flood {
	h := apitest.NewHarness(t)
	s := h.Serve()
	return &flood{Harness: h, t: t, town: newTown(h, "Flooded"), url: s.URL,
		client: &http.Client{Timeout: apitest.FloodPatience, Transport: &http.Transport{MaxIdleConnsPerHost: 8,
			DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// fail counts, so that one cause does not fill the screen.
func (f *flood) fail(format string, args ...any) {
	f.t.Helper()
	if f.shown++; f.shown <= 40 {
		f.t.Errorf(format, args...)
	} else {
		f.t.Fail()
	}
}

// send sends a request and fails the test when the answer is a failure (5xx but for a queue
// that is full or a state that is not there yet) or not what the description of the API says.
func (f *flood) send(method, path, body string, headers ...string) apitest.Answer {
	f.t.Helper()
	f.sent++
	u, err := url.Parse(f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	u.Opaque = path // as it is, also what a URL should not hold
	req := &http.Request{Method: method, URL: u, Host: u.Host, Header: http.Header{}, Body: http.NoBody}
	if body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	res, err := f.client.Do(req.WithContext(f.t.Context()))
	if err != nil {
		f.fail("%s %.200s %.60q: %v", method, path, body, err)
		return apitest.Answer{}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil && method != "HEAD" {
		f.fail("%s %.200s %.60q: %v", method, path, body, err)
	}
	a := apitest.Answer{Status: res.StatusCode, Header: res.Header, Body: b}
	if a.Status >= 500 && !(a.Status == 503 && a.Header.Get("Retry-After") != "") {
		f.fail("%s %.200s %.200q %q answered %d %.200s", method, path, body, headers, a.Status, a.Body)
	}
	if method != "HEAD" {
		if err := described.Untrue(method, path, a.Status, a.Header, a.Body); err != nil {
			f.fail("%s %.200s %.200q %q answered %d %.200s, which is not what the description of the API says: %v", method,
				path, body, headers, a.Status, a.Body, err)
		}
	}
	return a
}

// refused wants a 4xx.
func (f *flood) refused(method, path, body string, headers ...string) apitest.Answer {
	f.t.Helper()
	a := f.send(method, path, body, headers...)
	if a.Status != 0 && a.Status < 400 {
		f.fail("%s %.200s %.200q %q answered %d %.200s, want a refusal", method, path, body, headers, a.Status, a.Body)
	}
	return a
}

// streams are routes whose answer does not end.
func streams(r api.Route) bool { return strings.Contains(r.Path, "/events") && r.Method == "GET" }

// changesAll are routes that end what the flood stands on, or more than it.
func changesAll(r api.Route) bool {
	switch r.Method + " " + r.Path {
	case "POST /api/v1/mesh/leave", "POST /api/v1/mesh/nodes/{id}/revoke", "POST /api/v1/mesh/nodes/{id}/cordon",
		"POST /api/v1/mesh/stop", "DELETE /api/companies/{companyId}":
		return true
	}
	return false
}

// oddIDs stand where an ID, a key or a name is expected.
var oddIDs = []string{
	"not-a-uuid", "-1", "0", "1e309", "9999999999999999999999", "%00", "a%00b", "%ff%fe", "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
	"..%5c..%5cwindows",
	"%27%20OR%201%3D1--", "%7B%7D", "null", "undefined", "%F0%9F%98%80", "%E2%80%AE", "%0d%0aSet-Cookie:%20x",
	strings.Repeat("a", 5000),
	"00000000-0000-0000-0000-000000000000", "00000000-0000-4000-8000-00000000000g", "%20", "%25%25", "__proto__",
	"c%2Fissue",
}

// brokenBodies are no JSON objects.
var brokenBodies = map[string]string{
	"cut off":       `{"title":"x"`,
	"trailing":      `{"title":"x"} {}`,
	"a comma":       `{"title":"x",}`,
	"single quotes": `{'title':'x'}`,
	"deep arrays":   strings.Repeat("[", 100_000),
	"deep objects":  strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
	"deep, in raw":  `{"payload":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`,
	"twice":         `{"title":"x","title":"y"}`,
	"not UTF-8":     "{\"title\":\"\xff\xfe\"}",
	"a NUL":         "{\"title\":\"x\x00\"}",
	"a bare NUL":    "\x00",
	"an array":      `[]`,
	"a string":      `"x"`,
	"a number":      `7`,
	"a huge number": `{"title":1e999999}`,
	"many members":  `{` + strings.Repeat(`"aaaaaaaa":1,`, 50_000) + `"b":1}`,
	"a byte order":  "\ufeff{}",
	"not JSON":      "<xml/>",
	"a form":        "title=x&status=todo",
	"NaN":           `{"title":NaN}`,
	"a lone escape": `{"title":"\u12"}`,
	"half a pair":   `{"title":"\ud800"`,
	"control":       "{\"title\":\"a\nb\"}",
	"comments":      `{/* x */"title":"x"}`,
}

func TestFloodOfBadInput(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the peak is that of a heap collected as often as usual
	f := newFlood(t)
	doc := f.describe()
	f.send("GET", "/api/companies", "") // the schemas that answers are held to are read once
	runtime.GC()
	var base, now runtime.MemStats
	runtime.ReadMemStats(&base)
	var peak atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var m runtime.MemStats
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	f.oddPaths()
	f.town = newTown(f.Harness, "Flooded")
	if !testing.Short() { // nine requests of ten
		f.oddBodies(doc)
		f.town = newTown(f.Harness, "Flooded")
		f.oddFields(doc)
		f.town = newTown(f.Harness, "Flooded")
		f.oddQueries(doc)
		f.town = newTown(f.Harness, "Flooded")
	}
	f.oddHeaders()
	f.town = newTown(f.Harness, "Flooded")
	f.bigThings()
	close(stop)
	<-stopped
	f.client.CloseIdleConnections()
	f.stillWell()
	f.Log.Reset() // the test's own, not the server's
	runtime.GC()
	runtime.ReadMemStats(&now)
	t.Logf("%d requests; heap %d MB before, %d MB at most, %d MB after", f.sent, base.HeapAlloc>>20, peak.Load()>>20,
		now.HeapAlloc>>20)
	if peak.Load() > base.HeapAlloc+floodPeak {
		t.Errorf("the heap grew by %d MB, want at most %d", (peak.Load()-base.HeapAlloc)>>20, floodPeak>>20)
	}
	if now.HeapAlloc > base.HeapAlloc+floodRest {
		t.Errorf("%d MB of heap stay, want at most %d", (now.HeapAlloc-base.HeapAlloc)>>20, floodRest>>20)
	}
}

// stillWell wants a server that serves, and a log without a failure.
func (f *flood) stillWell() {
	f.t.Helper()
	f.send("POST", "/api/companies/"+f.town.of+"/issues", `{"title":"After the flood"}`).Want(f.t, 201, "After the flood")
	f.send("GET", "/api/companies/"+f.town.of+"/issues", "").Want(f.t, 200, "After the flood")
	n := 0
	for line := range strings.Lines(f.Log.String()) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, "panicked") || strings.Contains(line,
			"http: panic") {
			if n++; n <= 10 {
				f.t.Errorf("logged: %.600s", line)
			}
		}
	}
}

// oddPaths puts odd IDs in each place of each route.
func (f *flood) oddPaths() {
	f.t.Helper()
	for _, r := range f.Routes() {
		if streams(r) || changesAll(r) {
			continue
		}
		pattern := strings.Split(strings.TrimPrefix(r.Path, "/"), "/")
		whole, _ := f.town.path(r)
		whole, query, _ := strings.Cut(whole, "?")
		for i, part := range pattern {
			if !strings.HasPrefix(part, "{") {
				continue
			}
			for _, id := range oddIDs {
				if r.Path == "/api/v1/mesh/ledger/entries/{height}" && id == "0" {
					continue
				}
				parts := strings.Split(strings.TrimPrefix(whole, "/"), "/")
				parts[i] = id
				path := "/" + strings.Join(parts, "/")
				if query != "" {
					path += "?" + query
				}
				a := f.send(r.Method, path, f.town.body(r))
				if a.Status < 400 && !lenient[r.Method+" "+r.Path] {
					f.fail("%s %s took %.40q for %s: %d %.200s", r.Method, r.Path, id, part, a.Status, a.Body)
				}
			}
		}
	}
	for _, path := range []string{"/../../etc/passwd", "/api/../../etc/passwd", "/api/%2e%2e/%2e%2e/etc/passwd",
		"/api//companies//x", "/api/companies/" + f.town.of + "/issues/%00",
		"/api/companies/..;/x", "/%", "/%zz", "/" + strings.Repeat("a/", 8000), "/" + strings.Repeat("a", 40_000), "*",
		"/metrics/../api"} {
		for _, method := range []string{"GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"} {
			if a := f.send(method, path, ""); strings.Contains(string(a.Body), "root:") {
				f.fail("%s %s reads a file", method, path)
			}
		}
	}
}

// lenient are routes whose value may be anything.
var lenient = map[string]bool{
	"PUT /api/agents/{id}/memory/{key}": true, "GET /api/agents/{id}/memory/{key}": true,
	"DELETE /api/agents/{id}/memory/{key}": true, // a key is a text of the agent's own
	"PUT /api/v1/cron/{name}":              true, "GET /api/v1/cron/{name}": true, "DELETE /api/v1/cron/{name}": true,
	"POST /api/v1/cron/{name}/pause": true, "POST /api/v1/cron/{name}/resume": true, "POST /api/v1/cron/{name}/run": true,
	"PUT /api/v1/services/{name}": true, "GET /api/v1/services/{name}": true, "DELETE /api/v1/services/{name}": true,
	"POST /api/v1/services/{name}/call": true, "GET /api/v1/services/{name}/health": true,
	// Topics, subscriptions, cron jobs and declared processes have names that people choose.
	"PUT /api/v1/declared-processes/{name}": true, "GET /api/v1/declared-processes/{name}": true,
	"DELETE /api/v1/declared-processes/{name}":          true,
	"GET /api/v1/topics/{topic}":                        true,
	"PUT /api/v1/topics/{topic}":                        true,
	"DELETE /api/v1/topics/{topic}":                     true,
	"POST /api/v1/topics/{topic}":                       true,
	"PUT /api/v1/subscriptions/{subscription}":          true,
	"DELETE /api/v1/subscriptions/{subscription}":       true,
	"GET /api/v1/subscriptions/{subscription}/messages": true,
	"POST /api/v1/subscriptions/{subscription}/ack":     true,
}

// oddBodies sends each route that takes a body what is none.
func (f *flood) oddBodies(doc description) {
	f.t.Helper()
	for _, r := range f.Routes() {
		if r.Method == "GET" || r.Method == "DELETE" || changesAll(r) {
			continue
		}
		if r.In == nil {
			f.town = newTown(f.Harness, "Flooded") // it may end what it is about
		}
		path, _ := f.town.path(r)
		for _, what := range slices.Sorted(maps.Keys(brokenBodies)) {
			a := f.send(r.Method, path, brokenBodies[what])
			if r.In != nil && (a.Status < 400 || a.Status >= 500) && what != "twice" && what != "a huge number" &&
				what != "many members" && what != "deep, in raw" {
				f.fail("%s %s took a body that is %s: %d %.200s", r.Method, r.Path, what, a.Status, a.Body)
			}
			if r.In != nil && what == "twice" && a.Status < 400 {
				f.fail("%s %s took a key twice: %d %.200s", r.Method, r.Path, a.Status, a.Body)
			}
		}
		if r.In == nil {
			continue
		}
		good := f.town.body(r)
		for _, ct := range []string{"text/plain", "application/xml", "multipart/form-data; boundary=x",
			"application/x-www-form-urlencoded", "application/json; charset=", "\x01", strings.Repeat("a/", 4000)} {
			if ct == "\x01" {
				continue // no client sends it
			}
			f.refused(r.Method, path, good, "Content-Type: "+ct)
		}
		for _, coding := range []string{"gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip"} {
			f.refused(r.Method, path, good, "Content-Encoding: "+coding)
			f.refused(r.Method, path, string(bombs[coding]), "Content-Encoding: "+coding)
		}
	}
}

// oddFields gives every field that the description declares values of other
// types, and such as its rules refuse; each has a greatest length.
func (f *flood) oddFields(doc description) {
	f.t.Helper()
	fields := 0
	for _, r := range f.Routes() {
		op := doc.Paths[r.Path][strings.ToLower(r.Method)]
		if op.Body.Content.JSON.Schema == nil || changesAll(r) {
			continue
		}
		path, _ := f.town.path(r)
		schema := doc.resolve(op.Body.Content.JSON.Schema)
		for name, s := range schema.Properties {
			s = doc.resolve(s)
			fields++
			for _, bad := range wrong(doc, s) {
				var body map[string]json.RawMessage
				if err := json.Unmarshal([]byte(f.town.body(r)), &body); err != nil {
					f.t.Fatal(err)
				}
				body[name] = json.RawMessage(bad)
				b, err := json.Marshal(body)
				if err != nil {
					f.t.Fatalf("%s: %v", bad, err)
				}
				var headers []string
				if r.Who == api.Agent {
					headers = append(headers, "Authorization: Bearer "+f.town.token)
				}
				a := f.send(r.Method, path, string(b), headers...)
				if a.Status == 409 && strings.Contains(string(a.Body), "Nobody signs in on this mesh") {
					continue
				}
				if a.Status != 400 && a.Status != 413 {
					f.fail("%s %s with %s %.60s answered %d %.200s, want a 400", r.Method, r.Path, name, bad, a.Status, a.Body)
				} else if a.Status == 400 && !apitest.Names(a.Body, name) {
					f.fail("%s %s with %s %.60s answered %.300s, which does not name it", r.Method, r.Path, name, bad, a.Body)
				}
			}
			// 413 beyond company.MaxDocument
			if s.endless(doc) && r.Method+r.Path+" "+name != "PUT/api/issues/{id}/documents/{key} body" {
				f.fail("%s %s: %s may be as long as it likes", r.Method, r.Path, name)
			}
		}
	}
	if fields < 400 {
		f.t.Errorf("only %d fields were found in the description", fields)
	}
}

// oddQueries gives every query parameter what it can not be.
func (f *flood) oddQueries(doc description) {
	f.t.Helper()
	odd := []string{"-1", "0", "1e99", "99999999999999999999999", "-99999999999999999999999", "abc", "%00", "%ff", "%zz",
		"%F0%9F%98%80", "%27%3B--", "NaN", "[]", "2026-13-45", "0001-01-01", "9999-12-31T23:59:60Z",
		strings.Repeat("a", 10_000), strings.Repeat("a,", 5_000), "../../etc/passwd"}
	for _, r := range f.Routes() {
		if changesAll(r) || r.Method != "GET" {
			continue
		}
		path, _ := f.town.path(r)
		path, fixed, _ := strings.Cut(path, "?")
		params := map[string]string{}
		for _, p := range doc.Paths[r.Path]["get"].Parameters {
			if p.In == "query" {
				params[p.Name] = string(p.Schema.Type)
			}
		}
		for _, p := range []string{"limit", "offset", "cursor", "order", "read"} {
			if _, ok := params[p]; !ok {
				params[p] = ""
			}
		}
		for p, kind := range params {
			if streams(r) && p != "after" {
				continue
			}
			for _, v := range odd {
				if streams(r) && (v == "0" || strings.HasSuffix(v, "99")) {
					continue // a height
				}
				a := f.send(r.Method, path+"?"+fixed+"&"+p+"="+v, "")
				if strings.Contains(kind, "integer") && a.Status < 400 && (v == "abc" || v == "NaN" || v == "[]" || v == "1e99") {
					f.fail("GET %s took %q for the number %s: %d", r.Path, v, p, a.Status)
				}
			}
		}
		if !streams(r) {
			f.send(r.Method, path+"?"+strings.Repeat("a=b&", 5_000), "")
			f.send(r.Method, path+"?;;;&&&===&limit&limit=&limit=1&limit=2", "")
		}
	}
}

// oddHeaders are credentials, keys and heights that no client made.
func (f *flood) oddHeaders() {
	f.t.Helper()
	in := "/api/companies/" + f.town.of
	for _, h := range []string{"Authorization: Bearer", "Authorization: Basic Og==", "Authorization: Bearer " +
		strings.Repeat("a", 20_000), "Authorization: Bearer a b c", "Authorization: Bearer pcp_board_x",
		"Authorization: Bearer eyJhbGciOiJub25lIn0.e30.", "X-Paperclip-Run-Id: ../x", "X-Paperclip-Run-Id: " +
			strings.Repeat("a", 10_000), "X-Selvage-Height: -1", "X-Selvage-Height: 1e9",
		"X-Selvage-Read: linear", "Host: evil.example", "Host: 10.0.0.1:80", "Origin: https://evil.example",
		"Sec-Fetch-Site: cross-site", "Idempotency-Key: " + strings.Repeat("k", 256), "Idempotency-Key: \x80"} {
		f.refused("POST", in+"/issues", `{"title":"odd"}`, h)
	}
	for _, h := range []string{"X-Request-Id: " + strings.Repeat("x", 5000), "Accept: " + strings.Repeat("a/b,", 5000),
		"Range: bytes=0-1,2-3,4-5,-9999999999999", "If-Match: *", "Last-Event-ID: x", "Cookie: " + strings.Repeat("a=b; ",
			2000), "Connection: upgrade"} {
		f.send("GET", in+"/issues", "", h)
	}
	f.refused("GET", in+"/events", "", "Last-Event-ID: x")
	f.refused("GET", in+"/events/ws", "") // no upgrade
	f.refused("GET", in+"/events/ws", "", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 1",
		"Sec-WebSocket-Key: x")
}

// bigThings are bodies beyond every bound, at each route that takes one.
func (f *flood) bigThings() {
	f.t.Helper()
	big := `{"title":"` + strings.Repeat("a", api.MaxBody) + `"}`
	for _, r := range f.Routes() {
		if r.Method == "GET" || r.Method == "DELETE" || changesAll(r) || r.MaxBody > api.MaxBody {
			continue
		}
		path, _ := f.town.path(r)
		a := f.send(r.Method, path, big)
		if r.In != nil && a.Status != 413 && a.Status != 400 && a.Status != 0 && a.Status/100 != 4 {
			f.fail("%s %s took %d bytes: %d %.200s", r.Method, r.Path, len(big), a.Status, a.Body)
		}
	}
}

// bombs are bodies that grow when they are unpacked.
var bombs = func() map[string][]byte {
	out := map[string][]byte{}
	gz, fl := packed("gzip", 32<<20), packed("deflate", 32<<20)
	out["gzip"], out["deflate"], out["gzip, gzip"], out["identity, gzip"] = gz, fl, gz, gz
	out["br"], out["zstd"] = []byte{0x8b, 0xff, 0xff, 0x7f}, []byte{0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff}
	return out
}()

var _ = fmt.Sprint
