package testkit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/container/containertest"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/plugin"
)

const talkImage = "localhost/selvage-talk-test:1"

// talk builds examples/talk, for this machine or as a module.
func talk(t *testing.T, out string, more ...string) {
	t.Helper()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "github.com/selvage-mesh/selvage/examples/talk")
	build.Env = append(append(os.Environ(), "CGO_ENABLED=0"), more...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, said)
	}
}

// talkBoxes makes an image of a program, and returns the engine; nil where no container can be run.
func talkBoxes(t *testing.T, program string) []string {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	engine, why := containertest.Image(t, talkImage, "talk", b)
	if engine == nil {
		t.Log("without containers:", why)
	}
	return engine
}

// uploaded stores a module, and returns its hash and size.
func uploaded(b *Bed, file string) (sum string, size int64) {
	b.t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, _ := form.CreateFormFile("file", "talk.wasm")
	_, _ = part.Write(module)
	_ = form.Close() // into memory
	req, err := http.NewRequestWithContext(b.t.Context(), "POST", b.URL(0, "/api/v1/modules"), &body)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	var m struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	}
	if err := json.Unmarshal(said, &m); err != nil || m.SHA256 == "" {
		b.t.Fatalf("store the module: %d %s", res.StatusCode, said)
	}
	return m.SHA256, m.Size
}

// saidBy returns what a process wrote.
func saidBy(b *Bed, process string) (out string) {
	b.t.Helper()
	var page struct{ Content string }
	b.Must(0, "GET", "/api/v1/processes/"+process+"/log", nil, &page)
	for line := range strings.Lines(page.Content) {
		var l struct{ Chunk string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			b.t.Fatal(err)
		}
		out += l.Chunk
	}
	return out
}

// The example talks: a command, a module and a container, on two nodes, each as the one that answers and
// as the one that asks. As services of an app, a module and a container answer calls, and as a tool of an
// app a module and a method of a service do. The module is a program of Go: what a call may use by default is enough
// for one.
func TestModulesAndContainersTalk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	native, module := filepath.Join(dir, "talk"), filepath.Join(dir, "talk.wasm")
	talk(t, native)
	talk(t, module, "GOOS=wasip1", "GOARCH=wasm")
	engine := talkBoxes(t, native)
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		work(i, c)
		c.Containers = engine
	})
	sum, size := uploaded(b, module)
	kinds := map[string]map[string]any{"native": {"command": []string{native}},
		"wasm": {"backend": "wasm", "module": sum, "module_bytes": size, "command": []string{}}}
	if engine != nil {
		kinds["container"] = map[string]any{"image": talkImage, "command": []string{"/talk"}}
	}
	spawn := func(on int, kind, name string, args ...string) (address string) {
		body := map[string]any{"name": name, "node": b.Nodes[on].Name()}
		for k, v := range kinds[kind] {
			body[k] = v
		}
		body["command"] = append(slices.Clone(body["command"].([]string)), args...)
		var p struct{ Address string }
		b.Must(on, "POST", "/api/v1/processes", body, &p)
		return p.Address
	}
	for kind := range kinds {
		spawn(1, kind, "greeter-"+kind, "answer")
	}
	for asks := range kinds {
		for answers := range kinds {
			who := spawn(0, asks, "asker", "ask", "name:greeter-"+answers, "hello")
			what := asks + " asks " + answers
			said := ""
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(what, "and says:", said)
				}
			})
			b.Until(what, func() bool {
				said = saidBy(b, who)
				if strings.Contains(said, "talk:") {
					t.Fatalf("%s: %s", what, said)
				}
				return strings.Contains(said, "HELLO by n2:")
			})
		}
	}

	of := b.Company("Acme")
	at := "/api/companies/" + string(of)
	say := []any{map[string]any{"name": "say"}}
	services := []any{map[string]any{"name": "wasm", "module": "talk.wasm", "args": []string{"answer"}, "methods": say}}
	if engine != nil {
		services = append(services,
			map[string]any{"name": "container", "image": talkImage, "args": []string{"/talk", "answer"}, "methods": say})
	}
	tools := []any{map[string]any{"name": "repeat", "about": "Says what it is told", "module": "talk.wasm"},
		map[string]any{"name": "say", "about": "Says by whom", "service": "wasm", "method": "say"}}
	manifest, err := json.Marshal(map[string]any{"name": "talks", "version": "1.0.0", "description": "Talks",
		"capabilities": map[string]any{"shell": true}, "services": services, "tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := plugin.Pack(plugin.Files{"selvage-app.json": manifest, "talk.wasm": wasm},
		ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "POST", at+"/apps", map[string]any{"archive": base64.StdEncoding.EncodeToString(archive),
		"grant": []string{"shell"}}, nil)
	for _, s := range services {
		name := s.(map[string]any)["name"].(string)
		b.Until("service talks/"+name+" answers", func() bool {
			var r struct{ Result, By string }
			_, err := b.Ask(1, "POST", at+"/services/talks/"+name+"/call", map[string]any{"method": "say",
				"params": []int{1, 2}, "timeoutMs": 20_000}, &r)
			return err == nil && r.Result == "say([1,2]) by "+r.By
		})
	}
	for tool, want := range map[string]string{"repeat": `{"word":"hello"}`, "say": `"say({\"word\":\"hello\"}) by n`} {
		var r struct{ Stdout string }
		b.Must(1, "POST", at+"/tools/talks%2F"+tool+"/execute", map[string]any{"input": map[string]any{"word": "hello"}}, &r)
		if !strings.HasPrefix(r.Stdout, want) {
			t.Errorf("tool talks/%s says %s, want %s", tool, r.Stdout, want)
		}
	}
}
