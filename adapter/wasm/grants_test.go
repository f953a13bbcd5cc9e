package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/sandbox"
)

// Every host function does what it says if it is granted, and is denied to a guest without the
// grant: for guests built with both kits.
func TestEachFunctionIsGrantedOrDenied(t *testing.T) {
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		eachFunction(t, build(t, "./testdata/guest"), "ask")
	})
	t.Run("Rust", func(t *testing.T) {
		t.Parallel()
		eachFunction(t, buildRust(t, "--example", "ask"))
	})
}

// The data of the machine's other nodes, registered ones and those next to this one, is not
// given to a module, nor is a folder that contains it or lies in it. The guest of eachFunction
// calls the method and the request in its last two arguments.
func TestFilesOfOtherNodes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nodes tell where their data lies on Linux")
	}
	dir := t.TempDir()
	own, beside, far, open := filepath.Join(dir, "own"), filepath.Join(dir, "beside"),
		filepath.Join(t.TempDir(), "far"), t.TempDir()
	floor := shim.Floor{Hide: []string{own}, Nodes: filepath.Join(dir, "nodes")}
	for _, d := range []string{own, beside, far} {
		if err := os.MkdirAll(filepath.Join(d, "runs"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "identity.key"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := shim.Register(floor.Nodes, far); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(far, filepath.Join(open, "way")); err != nil {
		t.Fatal(err)
	}
	for at, refused := range map[string]bool{open: false, own: true, beside: true, far: true,
		filepath.Join(far, "runs"): true, filepath.Dir(far): true,
		filepath.Join(open, "way"): true, filepath.Join(open, "way", "runs"): true, floor.Nodes: true} {
		r := &run{adapter: &Adapter{cfg: Config{Hide: floor.Hidden}}, config: config{Dirs: []string{at + ":/d:ro"}}}
		dirs, err := r.dirs()
		for _, d := range dirs {
			d.Root.Close()
		}
		if refused && (err == nil || !strings.Contains(err.Error(), "of another on this machine")) || !refused && err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func eachFunction(t *testing.T, path string, first ...string) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "there") }))
	defer web.Close()
	d := &desk{}
	a := open(t, d)
	a.cfg.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	host := strings.TrimPrefix(web.URL, "http://")
	tried := map[string]bool{}
	for _, test := range []struct{ method, request, asks string }{
		{"log", `{"level":"info","message":"hello from inside"}`, ""},
		{"clock.now", `{}`, ""},
		{"random", `{"bytes":8}`, ""},
		{"run.context", `{}`, ""},
		{"run.result", `{"result":"done","score":0.5}`, ""},
		{"api", `{"method":"GET","path":"/api/health"}`, "GET /api/health "},
		{"issue.list", `{"status":"todo"}`, "GET /api/companies/company-1/issues?status=todo "},
		{"issue.get", `{"id":"i1"}`, "GET /api/issues/i1 "},
		{"issue.create", `{"title":"x"}`, `POST /api/companies/company-1/issues {"title":"x"}`},
		{"issue.checkout", `{"id":"i1"}`, `POST /api/issues/i1/checkout {"agentId":"agent-1"`},
		{"issue.release", `{"id":"i1"}`, "POST /api/issues/i1/release {}"},
		{"issue.update", `{"id":"i1","status":"done"}`, `PATCH /api/issues/i1 {"status":"done"}`},
		{"comment.list", `{"id":"i1"}`, "GET /api/issues/i1/comments "},
		{"comment.create", `{"id":"i1","body":"hi"}`, `POST /api/issues/i1/comments {"body":"hi"}`},
		{"agent.me", `{}`, "GET /api/agents/me "},
		{"cost.report", `{"costCents":1}`,
			`POST /api/companies/company-1/cost-events {"agentId":"agent-1","costCents":1,"heartbeatRunId":"run-1"}`},
		{"model.chat", `{"model":"m"}`, `POST /llm/v1/chat/completions {"model":"m"}`},
		{"model.messages", `{"model":"m"}`, `POST /llm/anthropic/v1/messages {"model":"m"}`},
		{"model.embed", `{"model":"m"}`, `POST /llm/v1/embeddings {"model":"m"}`},
		{"model.list", `{}`, "GET /llm/v1/models "},
		{"memory.list", `{}`, "GET /api/agents/agent-1/memory "},
		{"memory.search", `{"q":"blue arm"}`, "GET /api/agents/agent-1/memory?q=blue+arm "},
		{"memory.get", `{"key":"a.b"}`, "GET /api/agents/agent-1/memory/a.b "},
		{"memory.put", `{"key":"a/../b","value":"x"}`, `PUT /api/agents/agent-1/memory/a%2F..%2Fb {"value":"x"}`},
		{"memory.delete", `{"key":"a"}`, "DELETE /api/agents/agent-1/memory/a "},
		{"record.add", `{"text":"blue arm"}`, `POST /api/v1/memory {"text":"blue arm"}`},
		{"record.search", `{"query":"blue"}`, `POST /api/v1/memory/search {"query":"blue"}`},
		{"record.get", `{"id":"m1"}`, "GET /api/v1/memory/m1 "},
		{"record.update", `{"id":"m1","text":"red arm"}`, `PATCH /api/v1/memory/m1 {"text":"red arm"}`},
		{"record.forget", `{"id":"m1"}`, "DELETE /api/v1/memory/m1 "},
		{"ipc.send", `{"to":"agent-2","type":"note","payload":{"a":1}}`,
			`POST /api/agents/agent-2/messages {"payload":{"a":1},"type":"note"}`},
		{"ipc.receive", `{"limit":5}`, "GET /api/agents/agent-1/messages?limit=5 "},
		{"ipc.take", `{"ids":["m1"]}`, `POST /api/agents/agent-1/messages/take {"ids":["m1"]}`},
		{"http.fetch", fmt.Sprintf(`{"url":%q}`, web.URL), ""},
	} {
		tried[test.method] = true
		for _, grants := range []string{`["` + test.method + `"]`, `["something.else"]`} {
			d.asked = nil
			args, _ := json.Marshal(append(slices.Clone(first), test.method, test.request))
			o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":%q,"args":%s,"grants":%s,"fetchHosts":[%q]}`, path,
				args, grants, host)))
			asked := strings.Join(d.asked, "\n")
			if strings.Contains(grants, test.method) {
				if o.Status != entity.RunSucceeded || !strings.Contains(asked, test.asks) {
					t.Errorf("%s, granted: it ended with %s %s %s, and asked %q", test.method, o.Status, o.Error, *o.Stderr, asked)
				}
			} else if o.Status != entity.RunFailed || !strings.Contains(*o.Stderr, "HostCallDenied") || asked != "" {
				t.Errorf("%s, not granted: it ended with %s %s, and asked %q", test.method, o.Status, *o.Stderr, asked)
			}
		}
	}
	r := &run{adapter: a, inv: d.invocation(`{}`), token: token, config: config{FetchHosts: []string{"x"}}}
	for method := range r.host() {
		if !tried[method] {
			t.Errorf("%s was not tried", method)
		}
	}
	if !strings.Contains(d.log.String(), "[info] hello from inside") || !strings.Contains(d.log.String(),
		"fetch GET "+host+" 200") {
		t.Errorf("the log is %s", d.log.String())
	}
}

// docs/sandbox-abi.md lists exactly the functions that exist, and the codes with which the
// sandbox ends a call.
func TestTheListOfFunctionsIsWhole(t *testing.T) {
	b, err := os.ReadFile("../../docs/sandbox-abi.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	r := &run{adapter: &Adapter{}, config: config{FetchHosts: []string{"x"}}}
	there := []string{"clock.now", "random"} // provided by the sandbox itself
	for method := range r.host() {
		there = append(there, method)
	}
	_, agents, _ := strings.Cut(doc, "\n## Agents\n")
	agents, _, _ = strings.Cut(agents, "\n## Processes\n") // which are no agents
	said := []string{}
	for line := range strings.Lines(agents) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z]+(?:\\.[a-z]+)?)`").FindAllStringSubmatch(cells[1], -1) {
			said = append(said, m[1])
		}
	}
	for _, m := range []string{"clock.now", "random"} {
		if strings.Contains(doc, "Every program may ask `clock.now` (") && strings.Contains(doc, " and `random` (") {
			said = append(said, m)
		}
	}
	slices.Sort(there)
	slices.Sort(said)
	if !slices.Equal(there, said) {
		t.Errorf("there is %q, and the document has %q", there, said)
	}
	for _, code := range []sandbox.Code{sandbox.RuntimeUnavailable, sandbox.ModuleTooLarge, sandbox.InvalidModule,
		sandbox.CompilationFailed, sandbox.FuelExhausted, sandbox.MemoryLimitExceeded,
		sandbox.ExecutionTimeout, sandbox.HostCallDenied, sandbox.WasmTrap, sandbox.GovernanceDenied, sandbox.Cancelled} {
		if !strings.Contains(doc, "`"+string(code)+"`") {
			t.Errorf("the document has no %s", code)
		}
	}
}

// Only hosts of the list can be fetched from, and no private address.
func TestFetchesOfAnAgent(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Error("it was asked") }))
	defer web.Close()
	d := &desk{}
	a := open(t, d)
	for host, want := range map[string]string{"example.com": "not on the list",
		strings.TrimPrefix(web.URL, "http://"): "private"} {
		r := &run{adapter: a, inv: d.invocation(`{}`), token: token, config: config{FetchHosts: []string{host}}}
		_, err := r.host()["http.fetch"](t.Context(), json.RawMessage(fmt.Sprintf(`{"url":%q}`, web.URL)))
		var no *sandbox.HostError
		if !errors.As(err, &no) || no.Code != "HostCallDenied" || !strings.Contains(no.Message, want) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// An agent can access the configured directories, read-only ones only to read, and no files of
// its node.
func TestFilesOfAnAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a guest")
	}
	d := &desk{}
	a := open(t, d)
	data, books := t.TempDir(), t.TempDir()
	a.cfg.Home, a.cfg.Hide = filepath.Join(data, "runs", "workspaces"), shim.Floor{Hide: []string{data}}.Hidden
	for at, text := range map[string]string{data + "/key": "canary-key", books + "/b.txt": "a book", a.cfg.Home +
		"/agent-1/own.txt": "mine", a.cfg.Home + "/agent-2/own.txt": "canary-other"} {
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(data, filepath.Join(books, "way")); err != nil {
		t.Fatal(err)
	}
	path := build(t, "./testdata/guest")
	run := func(dirs []string, at ...string) company.Outcome {
		args, _ := json.Marshal(append([]string{"files"}, at...))
		list, _ := json.Marshal(dirs)
		return a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":%q,"args":%s,"dirs":%s}`, path, args, list)))
	}
	o := run([]string{":/home", books + ":/books:ro"}, "/home/own.txt", "/books/b.txt", "/books/way/key",
		"/home/../agent-2/own.txt", data+"/key")
	lines := strings.Split(strings.TrimSpace(*o.Stdout), "\n")
	if o.Status != entity.RunSucceeded || len(lines) != 5 || lines[0] != `/home/own.txt "mine" <nil>` ||
		!strings.Contains(lines[1], `"a book" open /books/b.txt.new: Read-only`) ||
		slices.ContainsFunc(lines[2:], func(l string) bool { return strings.HasSuffix(l, "<nil>") }) ||
		strings.Contains(*o.Stdout, "canary") {
		t.Errorf("it ended with %s %s and saw %q", o.Status, o.Error, lines)
	}
	if b, err := os.ReadFile(a.cfg.Home + "/agent-1/own.txt.new"); err != nil || string(b) != "mine" {
		t.Errorf("the agent's file is %q, %v", b, err)
	}
	if o := run(nil, "/home/own.txt"); strings.Contains(*o.Stdout, "mine") {
		t.Errorf("without a directory it saw %q", *o.Stdout)
	}
	for spec, want := range map[string]string{data + ":/d": "files of this node", filepath.Dir(data) +
		":/d": "files of this node", books + "/way:/d": "files of this node", filepath.Join(data, "runs") +
		":/d": "files of this node",
		"books:/d": "not absolute", books: "is not HOST:GUEST", books + ":/a/../b": "clean absolute path",
		books + "/none:/d": "not on this node", books + ":/d:rw": "is not HOST:GUEST"} {
		if o := run([]string{spec}, "/d/key"); o.Status != entity.RunFailed || !strings.Contains(o.Error, want) {
			t.Errorf("%s: it ended with %s %q", spec, o.Status, o.Error)
		}
	}
}
