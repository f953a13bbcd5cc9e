package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/sandbox"
)

const token = "canary-token-0123456789"

// A desk is a fake of the node's API: it has one issue and records requests.
type desk struct {
	mu     sync.Mutex // guards the fields below
	asked  []string
	log    bytes.Buffer
	status string
	module []byte
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	d.asked = append(d.asked, r.Method+" "+r.RequestURI+" "+string(body))
	if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("X-Paperclip-Run-Id") != "run-1" ||
		r.Method == "POST" && r.Header.Get("Idempotency-Key") == "" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if d.status == "denied" {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"error":"The issue's tree is on hold","code":"issue_tree_held"}`)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /api/companies/company-1/issues":
		fmt.Fprint(w, `[{"id":"i/1","identifier":"ACM-1","title":"Say \"hi\"","status":"todo"}]`)
	case "GET /api/attachments/a1/content":
		w.Write(d.module)
	case "POST /api/issues/i/1/checkout":
		if d.status == "held" {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error":"held by another"}`)
		}
	case "PATCH /api/issues/i/1":
		d.status = "done"
	}
}

func (d *desk) invocation(config string) company.Invocation {
	return company.Invocation{Config: []byte(config), AgentName: "Ada", Wake: []byte(`{"wakeReason":"test"}`),
		Secrets: []string{"canary-secret-42"},
		Run:     entity.Run{ID: "run-1", Company: "company-1", Agent: "agent-1", AdapterType: "wasm"},
		Log: func(stream, text string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			fmt.Fprintf(&d.log, "%s: %s", stream, text)
		},
		Report: func(company.Report) {}, Authority: func() time.Duration { return shim.BootTime() + time.Hour }}
}

// compiled is the cache of compiled modules that all tests share, as a node's runs do:
// compiling the guests takes longer than all that they do.
var compiled string

func TestMain(m *testing.M) {
	var err error
	if compiled, err = os.MkdirTemp("", "wasm-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(compiled)
	os.Exit(code)
}

func open(t *testing.T, d *desk) *Adapter {
	t.Helper()
	e, err := sandbox.Open(sandbox.Config{Dir: compiled})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	a, err := New(Config{Engine: e, API: func() http.Handler { return d }, Token: func(entity.Run) (string,
		error) {
		return token, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// build builds a guest of Go from source.
func build(t *testing.T, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	out := filepath.Join(t.TempDir(), "agent.wasm")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, said)
	}
	return out
}

// worked checks what an example agent did through the API.
func worked(t *testing.T, d *desk, o company.Outcome, log string) {
	t.Helper()
	if o.Status != entity.RunSucceeded || *o.Stdout != "closed 1 issue(s)\n" || d.status != "done" {
		t.Errorf("it ended with %+v, the issue is %q; stderr %q", o, d.status, *o.Stderr)
	}
	asked := strings.Join(d.asked, "\n")
	for _, want := range []string{"GET /api/companies/company-1/issues?assigneeAgentId=agent-1&status=todo%2Cin_progress ",
		`POST /api/issues/i%2F1/checkout {"agentId":"agent-1","expectedStatuses":`,
		`POST /api/issues/i%2F1/comments {"body":"Done in the sandbox`, `PATCH /api/issues/i%2F1 {"status":"done"}`} {
		if !strings.Contains(asked, want) {
			t.Errorf("nobody asked %s; they asked\n%s", want, asked)
		}
	}
	if got := d.log.String(); !strings.Contains(got, log) || !strings.Contains(got, "stdout: closed 1 issue(s)\n") {
		t.Errorf("the log is %s", got)
	}
}

func TestTheExampleInGo(t *testing.T) {
	d := &desk{}
	a := open(t, d)
	o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":%q}`,
		build(t, "github.com/selvage-mesh/selvage/examples/wasm-go"))))
	worked(t, d, o, "system: [info] working on ACM-1\n")
	var result struct {
		StopReason string
		FuelUsed   int64
		MemoryPeak int64
	}
	if err := json.Unmarshal(o.Result, &result); err != nil || result.StopReason != "completed" ||
		result.FuelUsed < 1_000_000 || result.MemoryPeak < 1<<20 {
		t.Errorf("the result is %s, %v", o.Result, err)
	}
}

// buildRust builds a guest of examples/wasm-rust; what says which.
func buildRust(t *testing.T, what ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	dir := t.TempDir()
	cmd := exec.Command("cargo", append([]string{"build", "--release", "--offline", "--target", "wasm32-wasip1",
		"--target-dir", dir}, what...)...)
	cmd.Dir = "../../examples/wasm-rust"
	if said, err := cmd.CombinedOutput(); err != nil {
		if _, no := exec.Command("cargo", "--version").Output(); no == nil {
			if at, _ := exec.Command("rustc", "--print", "target-libdir", "--target", "wasm32-wasip1").Output(); len(at) > 0 {
				if _, no := os.Stat(strings.TrimSpace(string(at))); no == nil {
					t.Fatalf("build the guest: %v\n%s", err, said)
				}
			}
		}
		t.Skipf("no Rust for wasm32-wasip1 here: %v\n%s", err, said)
	}
	if len(what) == 2 {
		return filepath.Join(dir, "wasm32-wasip1/release/examples", what[1]+".wasm")
	}
	return filepath.Join(dir, "wasm32-wasip1/release/wasm-rust.wasm")
}

func TestTheExampleInRust(t *testing.T) {
	t.Parallel()
	d := &desk{}
	a := open(t, d)
	o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":%q,"fuel":1000000}`, buildRust(t))))
	worked(t, d, o, "system: [selvage] module ")
}

// A module may be an attachment, and must have the configured hash.
func TestAModuleOfTheCompany(t *testing.T) {
	d := &desk{}
	var err error
	if d.module, err = os.ReadFile(build(t, "./testdata/guest")); err != nil {
		t.Fatal(err)
	}
	a := open(t, d)
	if o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":"attachment:a1","sha256":%q,"args":["say","hello"]}`,
		sum(d.module)))); o.Status != entity.RunSucceeded || *o.Stdout != "hello\n" {
		t.Errorf("it ended with %+v", o)
	}
	if o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":"attachment:a1","sha256":%q}`,
		sum(nil)))); o.Status != entity.RunFailed || !strings.Contains(o.Error, "SHA-256") {
		t.Errorf("it ended with %+v", o)
	}
}

func TestHowARunEnds(t *testing.T) {
	path := build(t, "./testdata/guest")
	d := &desk{}
	a := open(t, d)
	config := func(more string) string { return fmt.Sprintf(`{"module":%q%s}`, path, more) }
	for _, test := range []struct {
		config, status, code, err string
	}{
		{config(`,"args":["say","x"]`), "succeeded", "", ""},
		{config(`,"args":["exit"]`), "failed", "adapter_failed", "exited with code 4"},
		{config(`,"args":["spin"],"timeoutSec":0.2,"fuel":1000000000000`), "timed_out", "timeout", "Timed out after 200ms"},
		{config(`,"args":["spin"],"fuel":1000000`), "failed", "adapter_failed", "FuelExhausted"},
		{config(`,"args":["ask","issue.list"],"grants":["log"]`), "failed", "adapter_failed", "exited with code 5"},
		{config(`,"args":["ask","issue.list"],"grants":["issue.*"]`), "succeeded", "", ""},
		{config(`,"args":["ask","http.fetch"]`), "failed", "adapter_failed", "exited with code 5"},
		{config(`,"args":["ask","shell"]`), "failed", "adapter_failed", "exited with code 5"},
		{config(`,"memoryMb":-1`), "failed", "adapter_failed", "limits"},
		{config(`,"memoryMb":1`), "failed", "adapter_failed", "MemoryLimitExceeded"},
		{`[]`, "failed", "adapter_failed", "malformed"},
		{`{"module":"relative.wasm"}`, "failed", "adapter_failed", "not absolute"},
		{`{"module":"/nonexistent/x.wasm"}`, "failed", "adapter_failed", "no such file"},
		{`{"module":"/dev/zero"}`, "failed", "adapter_failed", "not a file"},
	} {
		o := a.Invoke(t.Context(), d.invocation(test.config))
		if string(o.Status) != test.status || o.ErrorCode != test.code || !strings.Contains(o.Error, test.err) {
			t.Errorf("%.200s: it ended with %s %s %q", test.config, o.Status, o.ErrorCode, o.Error)
		}
	}
}

// A denial by governance has its code and its reason at each of the node's interfaces; a
// refusal of the request itself by a rule does not.
func TestWhatGovernanceDenies(t *testing.T) {
	for _, c := range []struct {
		status             int
		body, code, reason string
	}{
		{409, `{"error":"Everything is stopped","code":"GovernanceDenied","details":{"code":"GovernanceDenied",` +
			`"reason":"mesh_stopped"}}`, "GovernanceDenied", "mesh_stopped"},
		{409, `{"error":"The issue's tree is on hold","code":"issue_tree_held","details":{"reason":"lunch"}}`,
			"GovernanceDenied", "issue_tree_held"},
		{409, `{"error":"A CEO only drafts","code":"ceo_strategy_required"}`, "GovernanceDenied", "ceo_strategy_required"},
		{403, `{"error":"Not your turn","code":"execution_stage_participant_required"}`, "GovernanceDenied",
			"execution_stage_participant_required"},
		{402, `{"error":{"message":"stopped","type":"budget_error","code":"budget_paused"}}`, "GovernanceDenied",
			"budget_paused"},
		{402, `{"error":{"message":"stopped","type":"mesh_stopped","code":null}}`, "GovernanceDenied", "mesh_stopped"},
		{402, `{"error":{"message":"too dear","type":"budget_error","code":"budget_exceeded"}}`, "BudgetExceeded", ""},
		{409, `{"error":"held by another"}`, "Conflict", ""},
		{403, `{"error":"Forbidden","code":"permission"}`, "Forbidden", ""},
		{502, `no JSON`, "Unavailable", ""},
	} {
		var e *sandbox.HostError
		if !errors.As(refusal(c.status, []byte(c.body)), &e) || e.Code != c.code || e.Reason != c.reason ||
			!strings.HasPrefix(e.Message, fmt.Sprint(c.status)) {
			t.Errorf("%d %s: %+v", c.status, c.body, e)
		}
	}
	// A guest gets the denial.
	d := &desk{status: "denied"}
	a := open(t, d)
	o := a.Invoke(t.Context(), d.invocation(fmt.Sprintf(`{"module":%q,"args":["ask","issue.checkout","{\"id\":\"i1\"}"]}`,
		build(t, "./testdata/guest"))))
	if o.Status != entity.RunFailed || !strings.Contains(*o.Stderr, `GovernanceDenied`) {
		t.Errorf("it ended with %s, %s", o.Status, *o.Stderr)
	}
}

// spinner writes a module that loops without end: (func (export "_start") (loop (br 0))).
func spinner(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spin.wasm")
	module := "\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
		"\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b"
	if err := os.WriteFile(path, []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whoever ends a run ends it at once, and its status says who did.
func TestARunIsEnded(t *testing.T) {
	verbs, path := []string{`["spin"]`}, ""
	if testing.Short() { // under the race detector a guest of Go takes ten times as long to compile
		path = spinner(t)
	} else {
		verbs, path = append(verbs, `["sleep"]`), build(t, "./testdata/guest")
	}
	d := &desk{}
	a := open(t, d)
	for _, args := range verbs {
		inv := d.invocation(fmt.Sprintf(`{"module":%q,"args":%s,"fuel":1000000000000}`, path, args))
		go func() {
			for a.Status("run-1") == "" {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
			a.Cancel("run-1", "")
		}()
		if o := a.Invoke(t.Context(), inv); o.Status != entity.RunCancelled || o.ErrorCode != "cancelled" {
			t.Errorf("%s: cancelled, it ended with %+v", args, o)
		}
		inv.Authority = func() time.Duration { return shim.BootTime() - 1 }
		if o := a.Invoke(t.Context(), inv); o.Status != entity.RunInterrupted || o.ErrorCode != "node_lost" {
			t.Errorf("%s: without a lease it ended with %+v", args, o)
		}
		inv.Authority = func() time.Duration { return shim.BootTime() + time.Hour }
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		o := a.Invoke(ctx, inv)
		cancel()
		if o.Status != entity.RunInterrupted {
			t.Errorf("%s: with its node it ended with %+v", args, o)
		}
	}
	if a.Status("run-1") != "" {
		t.Error("a run that ended is at work")
	}
}

// Neither the token nor a secret is shown, whatever the guest writes.
func TestSecretsStayInside(t *testing.T) {
	d := &desk{}
	a := open(t, d)
	path := build(t, "./testdata/guest")
	o := a.Invoke(t.Context(),
		d.invocation(fmt.Sprintf(`{"module":%q,"args":["env"],"env":{"KEY":{"type":"secret_ref",`+
			`"value":"canary-secret-42"},"PAPERCLIP_API_KEY":"x","WHO":"ada"}}`, path)))
	if o.Status != entity.RunSucceeded || !strings.Contains(*o.Stdout, "WHO=ada\n") || !strings.Contains(*o.Stdout,
		"PAPERCLIP_RUN_ID=run-1\n") {
		t.Errorf("it ended with %+v: %s", o, *o.Stdout)
	}
	for _, text := range []string{*o.Stdout, *o.Stderr, o.Error, string(o.Result), d.log.String()} {
		if strings.Contains(text, "canary") || strings.Contains(text, "PAPERCLIP_API_KEY") {
			t.Errorf("a secret is in %s", text)
		}
	}
}

// A guest gets refusals of the API with a code; paths outside the API are not requested.
func TestTheAPI(t *testing.T) {
	d := &desk{status: "held"}
	a := open(t, d)
	r := &run{adapter: a, inv: d.invocation(`{}`), token: token}
	host := r.host()
	ask := func(method, request string) (any, error) { return host[method](t.Context(), []byte(request)) }
	var no *sandbox.HostError
	if _, err := ask("issue.checkout", `{"id":"i/1"}`); !errors.As(err, &no) || no.Code != "Conflict" ||
		!strings.Contains(no.Message, "held by another") {
		t.Errorf("checkout returned %v", err)
	}
	for _, bad := range []string{`{"method":"GET","path":"/metrics"}`, `{"method":"GET","path":"/api/../metrics"}`,
		`{"method":"GET","path":"//other/api/x"}`, `{"method":"GET","path":"http://other/api/x"}`,
		`{"method":"TRACE","path":"/api/health"}`, `{"method":"GET\r\nX: y","path":"/api/health"}`, `[]`} {
		before := len(d.asked)
		if _, err := ask("api", bad); !errors.As(err, &no) || no.Code != "BadRequest" || len(d.asked) != before {
			t.Errorf("%s returned %v", bad, err)
		}
	}
	if _, err := ask("api", `{"method":"POST","path":"/api/x?y=1","body":{"a":1}}`); err != nil ||
		d.asked[len(d.asked)-1] != `POST /api/x?y=1 {"a":1}` {
		t.Errorf("api returned %v", err)
	}
	for _, bad := range []string{`{}`, `{"id":""}`, `{"id":".."}`, `{"id":7}`, `[]`, `null`} {
		if _, err := ask("issue.get", bad); !errors.As(err, &no) || no.Code != "BadRequest" {
			t.Errorf("%s returned %v", bad, err)
		}
	}
	if _, err := ask("issue.get", `{"id":"../agents/me"}`); err != nil ||
		d.asked[len(d.asked)-1] != "GET /api/issues/..%2Fagents%2Fme " {
		t.Errorf("issue.get returned %v, asked %s", err, d.asked[len(d.asked)-1])
	}
	if _, err := ask("log", `{"level":"loud"}`); err == nil {
		t.Error("a level that is none was logged")
	}
}
