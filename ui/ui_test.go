package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// What is embedded was built from what lies in web: whoever changed one without the other
// finds out without Node.
func TestThePagesAreBuiltFromTheirSources(t *testing.T) {
	got, err := dist.ReadFile("dist/" + sourcesFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Sources(os.DirFS("web"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(got)) != want {
		t.Errorf("ui/dist was built from other sources (%s) than ui/web has (%s): run make ui",
			strings.TrimSpace(string(got)), want)
	}
}

func served(t *testing.T, cfg Config) func(target string, header ...string) *http.Response {
	t.Helper()
	h, err := Handler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return func(target string, header ...string) *http.Response {
		r := httptest.NewRequest("GET", target, nil)
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each address of the page answers the index, with a policy that lets nothing in from
// elsewhere, no inline script or style, and no frame around it.
func TestEveryAddressIsThePage(t *testing.T) {
	get := served(t, Config{Mesh: "m", Name: "n1", Peers: func() []string {
		return []string{"https://10.0.0.2:3100/x",
			"ftp://a", "https://b;script-src *"}
	}})
	for _, at := range []string{"/", "/ACM/issues/ACM-7", "/mesh/nodes", "/index.html", "/assets/../secret", "/SOURCES"} {
		res := get(at)
		page := text(t, res)
		if res.StatusCode != 200 || !strings.Contains(page, `<div id="root">`) {
			t.Errorf("%s: %d %.80s", at, res.StatusCode, page)
		}
		policy := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';",
			"frame-ancestors 'none'", "connect-src 'self' https://10.0.0.2:3100;"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %s", at, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy %q is lax", at, policy)
		}
		if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", at, got)
		}
		if inline := regexp.MustCompile(`<script(>|[^>]*[^"]>)[^<]|<style|\son\w+=`).FindString(page); inline != "" {
			t.Errorf("%s: inline %q", at, inline)
		}
	}
	if p := served(t, Config{})("http://127.0.0.1:3100/").Header.Get("Content-Security-Policy"); !strings.Contains(p,
		"http://127.0.0.1:*") {
		t.Errorf("a page of this machine may not look for its other nodes: %q", p)
	}
}

// What the index names is there, packed or plain as the caller takes it, and for good.
func TestAssetsArePackedAndImmutable(t *testing.T) {
	get := served(t, Config{})
	names := regexp.MustCompile(`/assets/[^"]+`).FindAllString(text(t, get("/")), -1)
	if len(names) < 2 {
		t.Fatalf("the index names %v", names)
	}
	for _, name := range names {
		packed, plain := get(name, "Accept-Encoding", "br, gzip"), get(name)
		if packed.StatusCode != 200 || !strings.Contains(packed.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", name, packed.StatusCode, packed.Header)
		}
		want := "gzip"
		if path.Ext(name) == ".woff2" {
			want = ""
		}
		if got := packed.Header.Get("Content-Encoding"); got != want || plain.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: encodings %q and %q", name, got, plain.Header.Get("Content-Encoding"))
		}
		if want == "gzip" && len(text(t, plain)) <= len(text(t, packed)) {
			t.Errorf("%s is not smaller when packed", name)
		}
		if again := get(name, "If-None-Match", packed.Header.Get("ETag"), "Accept-Encoding",
			"gzip"); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d for who has it", name, again.StatusCode)
		}
	}
	for _, missing := range []string{"/assets/", "/assets", "/assets/none.js", "/assets/index.js.map"} {
		if res := get(missing); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", missing, res.StatusCode)
		}
	}
	if get("/", "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding") != "" {
		t.Error("gzip was sent to who refuses it")
	}
}

// A page of another node may read which mesh this is, by a digest that does not tell the ID.
func TestTheBeatTellsTheMeshByADigest(t *testing.T) {
	ready := true
	get := served(t, Config{Mesh: "a8baafca", Name: "n1", Ready: func() bool { return ready }})
	res := get("/board.json")
	body := text(t, res)
	if res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(body,
		`"name":"n1"`) || strings.Contains(body, "a8baafca") {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	if other := text(t, served(t, Config{Mesh: "other", Name: "n1"})("/board.json")); other == body {
		t.Error("two meshes have the same digest")
	}
	ready = false
	if res := get("/board.json"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a node without a quorum answers %d", res.StatusCode)
	}
}

func TestOnlyReadsAreServed(t *testing.T) {
	h, err := Handler(Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if _, err := serve(Config{}, fstest.MapFS{"dist/assets/a.js.gz": {}}); err == nil {
		t.Error("pages without an index are served")
	}
}
