package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// Output of version 0.61.0.
const (
	begun = `{"type":"init","timestamp":"2026-11-21T15:41:32.635Z",` +
		`"session_id":"e1127d13-4e04-45e8-ba29-f6879ab65594","model":"gemini-2.5-pro"}`
	told = `{"type":"message","timestamp":"2026-11-21T15:41:32.637Z","role":"user","content":"say hello"}`
	one  = `{"type":"message","timestamp":"2026-11-21T15:41:32.825Z","role":"assistant","content":"Hello ","delta":true}`
	two  = `{"type":"message","timestamp":"2026-11-21T15:41:32.825Z","role":"assistant","content":"gemini","delta":true}`
	used = `{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t1","parameters":{}}`
	won  = `{"type":"result","timestamp":"2026-11-21T15:41:33.220Z","status":"success",` +
		`"stats":{"total_tokens":23,"input_tokens":12,"output_tokens":4,"cached":2,"input":10,"duration_ms":585,` +
		`"tool_calls":0}}`
	lost = `{"type":"result","status":"error","error":{"type":"Error","message":"API key not valid"},` +
		`"stats":{"input_tokens":0,"output_tokens":0}}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "gemini-2.5-pro", "gateway": false,
		"env": map[string]any{"GEMINI_API_KEY": "gk-canary-0123456789"}}, clitest.Print(begun, told, one, used,
		one, two, won))
	b.Inv.Instructions = &company.RunInstructions{Entry: "AGENTS.md", Texts: map[string]string{"AGENTS.md": "Be kind."}}
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello gemini" ||
		o.SessionID != "e1127d13-4e04-45e8-ba29-f6879ab65594" ||
		*o.Usage != (entity.Usage{InputTokens: 10, CachedInputTokens: 2, OutputTokens: 11}) {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	if got := strings.Join(c.Args,
		" "); got != "--output-format stream-json --skip-trust --approval-mode yolo --model gemini-2.5-pro" {
		t.Errorf("arguments %q", got)
	}
	if !strings.HasSuffix(c.Env["GEMINI_CLI_HOME"], "/workspaces/agent-1") ||
		c.Env["GEMINI_API_KEY"] != "gk-canary-0123456789" || !strings.Contains(c.Input, "Be kind.") {
		t.Errorf("%q\n%s", c.Env, c.Input)
	}
	if o = b.Again(o); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--resume", o.SessionID) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
}

// By default it calls the gateway, and has no key but the run's token.
func TestItAsksTheGateway(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "local/qwen",
		"env": map[string]any{"GEMINI_API_KEY": "gk-canary-0123456789", "GOOGLE_API_KEY": "gk-canary-1",
			"GOOGLE_GENAI_USE_VERTEXAI": "true"}},
		`cat "$GEMINI_CLI_HOME/.gemini/settings.json" >$at/settings
`+clitest.Print(begun, told, one, two, won))
	if o := b.Invoke(); o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello gemini" {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	if c.Env["GOOGLE_GEMINI_BASE_URL"] != "http://127.0.0.1:3100/llm/gemini" || c.Env["GEMINI_API_KEY"] != clitest.Token ||
		!strings.Contains(c.Env["NO_PROXY"], "127.0.0.1") || !strings.Contains(b.File(0, "settings"), "gemini-api-key") {
		t.Errorf("%q, settings %s", c.Env, b.File(0, "settings"))
	}
	for k, v := range c.Env {
		if strings.Contains(v, "canary") || strings.HasPrefix(k, "GOOGLE_GENAI") {
			t.Errorf("%s=%s is left", k, v)
		}
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	o := clitest.New(t, Tool{}, nil, clitest.Print(begun, lost)+"\nexit 1").Invoke()
	if o.Status != entity.RunFailed || o.ErrorCode != "auth_required" || o.Error != "API key not valid" {
		t.Errorf("%+v", o)
	}
	o = clitest.New(t, Tool{}, nil, "echo 'Please set an Auth method' >&2; exit 41").Invoke()
	if o.Status != entity.RunFailed || o.ErrorCode != "auth_required" ||
		o.Error != "Process exited with code 41: Please set an Auth method" {
		t.Errorf("%+v", o)
	}
	b := clitest.New(t, Tool{}, nil, clitest.Print(begun, one, won))
	first := b.Invoke()
	b.Program("gemini", `case "$*" in *--resume*) echo 'Error resuming session: no such session' >&2; exit 42;; esac
`+clitest.Print(begun, one, won))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(2).Args, "--resume") {
		t.Errorf("%+v", o)
	}
}

// The file of a session that is loaded does not have the name that a new one would have.
func TestASessionIsSetAside(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	chats := filepath.Join(home, "tmp", "project", "chats")
	if err := os.MkdirAll(chats, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(chats, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("session-2026-11-22T05-16-4650e75a.jsonl", "the talk")
	write("session-2026-11-22T05-16-61ce70fc.jsonl", "another")
	setAside(home, "4650e75a-665b-472e-b27d-ae786381247a")
	write("session-2026-11-22T05-16-4650e75a.jsonl", "begun anew")
	setAside(home, "4650e75a-665b-472e-b27d-ae786381247a")
	for _, bad := range []string{"", "4650", "*", "../../../x", "????????-"} {
		setAside(home, bad)
	}
	for name, want := range map[string]string{"session-2026-11-22T05-16-kept-4650e75a.jsonl": "the talk",
		"session-2026-11-22T05-16-4650e75a.jsonl": "begun anew", "session-2026-11-22T05-16-61ce70fc.jsonl": "another"} {
		if b, err := os.ReadFile(filepath.Join(chats, name)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	if all, _ := os.ReadDir(chats); len(all) != 3 {
		t.Errorf("there are %v", all)
	}
}
