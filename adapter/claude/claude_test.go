package claude

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

// Output of version 2.1.197, shortened.
const (
	begun = `{"type":"system","subtype":"init","cwd":"/w","session_id":"34afb3d5-07bb-4152-8480-4e1ee0532b7d",` +
		`"tools":["Bash"],"model":"claude-sonnet-4-5","permissionMode":"default"}`
	said = `{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text",` +
		`"text":"Hello"}]},"parent_tool_use_id":null,"session_id":"34afb3d5-07bb-4152-8480-4e1ee0532b7d"}`
	won = `{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"num_turns":2,` +
		`"result":"Hello there","session_id":"34afb3d5-07bb-4152-8480-4e1ee0532b7d","total_cost_usd":0.00018,` +
		`"usage":{"input_tokens":25,"cache_creation_input_tokens":5,"cache_read_input_tokens":70,"output_tokens":7}}`
	gone = `{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"x",` +
		`"total_cost_usd":0,"errors":["No conversation found with session ID: x"]}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "claude-sonnet-4-5", "effort": "high", "maxTurnsPerRun": 7,
		"chrome":         true,
		"promptTemplate": "You are {{agent.id}}, task {{context.taskId}}.", "extraArgs": []string{"--betas", "x"},
		"graceSec": 1,
		"env":      map[string]any{"ANTHROPIC_API_KEY": "sk-mine-0123456789", "MINE": "1"}}, clitest.Print(begun, said, won))
	b.Inv.Instructions = &company.RunInstructions{Entry: "AGENTS.md", Texts: map[string]string{"AGENTS.md": "Be kind."}}
	b.Inv.Skills = []company.RunSkill{{Name: "knots", Files: map[string]string{"SKILL.md": "Tie them."}}}
	// The skills are checked while the program runs: they are deleted with the run.
	b.Program("claude",
		`for a in "$@"; do test -d "$a/.claude/skills" && cat $a/.claude/skills/*/SKILL.md >>$at/skill; test -f `+
			`"$a" && cat "$a" >>$at/skill; done
`+clitest.Print(begun, said, won))
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello there" ||
		o.SessionID != "34afb3d5-07bb-4152-8480-4e1ee0532b7d" {
		t.Fatalf("%+v\n%s", o, o.Result)
	}
	if *o.Usage != (entity.Usage{InputTokens: 30, OutputTokens: 7, CachedInputTokens: 70}) ||
		!strings.Contains(string(o.Result), `"reportedCostUsd":0.00018`) {
		t.Errorf("usage %+v, result %s", *o.Usage, o.Result)
	}
	c := b.Call(0)
	for _, want := range [][]string{{"--print", "-", "--output-format", "stream-json", "--verbose"},
		{"--model", "claude-sonnet-4-5"}, {"--effort", "high"},
		{"--max-turns", "7"}, {"--chrome"}, {"--betas", "x"}} {
		if !clitest.Has(c.Args, want...) {
			t.Errorf("arguments %q lack %q", c.Args, want)
		}
	}
	if clitest.Has(c.Args, "--resume") || clitest.Has(c.Args, "--dangerously-skip-permissions") == (os.Geteuid() == 0) {
		t.Errorf("arguments %q", c.Args)
	}
	for k, want := range map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:3100/llm/anthropic",
		"ANTHROPIC_AUTH_TOKEN": clitest.Token, "ANTHROPIC_API_KEY": "",
		"MINE": "1", "AWS_SECRET": "", "CLAUDE_CONFIG_DIR": filepath.Join(b.Dir, "workspaces", "agent-1", ".claude"),
		"PAPERCLIP_TASK_ID":  "task-1",
		"CLAUDE_CODE_TMPDIR": c.Env["TMPDIR"]} {
		if c.Env[k] != want || want == "" && k == "CLAUDE_CODE_TMPDIR" {
			t.Errorf("%s is %q, want %q", k, c.Env[k], want)
		}
	}
	if !strings.Contains(c.Input, "You are agent-1, task task-1.") || !strings.Contains(c.Input, "issue_commented") {
		t.Errorf("the prompt is %q", c.Input)
	}
	if got := b.File(0, "skill"); got != "Be kind.Tie them." {
		t.Errorf("instructions and skills are %q", got)
	}
	if strings.Contains(b.Log("stdout")+string(o.Result), clitest.Token) {
		t.Error("the token shows")
	}
}

func TestItGoesOnWithItsSession(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, nil, clitest.Print(begun, said, won))
	first := b.Invoke()
	if o := b.Again(first); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--resume", first.SessionID) ||
		!strings.Contains(string(o.Result), `"resumed":true`) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
	// If a session no longer exists, a new one is started, once.
	b.Program("claude", `case "$*" in *--resume*) echo '`+gone+`'; exit 1;; esac
`+clitest.Print(begun, said, won))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(3).Args, "--resume") {
		t.Errorf("%+v %q", o, b.Call(3).Args)
	}
	// A session of another node, or of another folder, is not resumed.
	for _, params := range []string{`{"sessionId":"s","cwd":"/","placeId":"elsewhere"}`,
		strings.Replace(string(first.SessionParams), `"cwd":"`, `"cwd":"/other`, 1), `{}`} {
		first.SessionParams = []byte(params)
		if b.Again(first); clitest.Has(b.Call(4).Args, "--resume") {
			t.Errorf("%s: %q", params, b.Call(4).Args)
		}
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	result := func(s string) string { return clitest.Print(begun, `{"type":"result",`+s+`}`) }
	for name, c := range map[string]struct {
		script, code, message string
		transient             bool
	}{
		"nothing printed": {"echo hm >&2; exit 3", "adapter_failed", "Process exited with code 3: hm", false},
		"garbage":         {"head -c 100000 /dev/urandom", "adapter_failed", "The agent ended without a result", false},
		"no last event":   {clitest.Print(begun, said), "adapter_failed", "The agent ended without a result", false},
		"out of turns": {result(`"subtype":"error_max_turns","is_error":true`), "max_turns",
			"The agent used all its turns", false},
		"no connection": {
			result(`"subtype":"success","is_error":true,"result":"API Error: Unable to connect to API (ConnectionRefused)"`),
			"transient_upstream", "API Error: Unable to connect to API (ConnectionRefused)", true},
		"overloaded": {result(`"subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"`),
			"transient_upstream", "Overloaded", true},
		"no money": {result(`"subtype":"success","is_error":true,"api_error_status":402,"result":"budget"`),
			"budget_refused", "budget", false},
		"not signed in": {result(`"subtype":"success","is_error":true,"result":"Not logged in · Please run /login"`),
			"auth_required", "Not logged in · Please run /login", false},
		"a line without end": {"printf '%s' '" + strings.Repeat("x", 5000) + "'; echo; echo '" + won + "'; exit 0",
			"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clitest.New(t, Tool{}, nil, c.script)
			o := b.Invoke()
			if (c.code == "") != (o.Status == entity.RunSucceeded) || o.ErrorCode != c.code || o.Error != c.message ||
				o.Transient != c.transient {
				t.Errorf("%s %q %q, transient %t", o.Status, o.ErrorCode, o.Error, o.Transient)
			}
		})
	}
}

func TestForeignModelsDoItsSideWorkToo(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "local/qwen"}, clitest.Print(begun, won))
	b.Invoke()
	if c := b.Call(0); c.Env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] != "local/qwen" {
		t.Error("side work goes to a model that this mesh may not have")
	}
	// Without the gateway it uses its own sign-in.
	b = clitest.New(t, Tool{}, map[string]any{"gateway": false,
		"env": map[string]any{"ANTHROPIC_API_KEY": "sk-mine-0123456789"}}, clitest.Print(begun, won))
	b.Invoke()
	if c := b.Call(0); c.Env["ANTHROPIC_API_KEY"] != "sk-mine-0123456789" || c.Env["ANTHROPIC_BASE_URL"] != "" {
		t.Errorf("%q", c.Env)
	}
}

// The cost of a run that bypassed the gateway is reported with its outcome; otherwise the
// gateway accounts for it.
func TestWhatItCostIsTold(t *testing.T) {
	t.Parallel()
	usage := entity.Usage{InputTokens: 30, OutputTokens: 7, CachedInputTokens: 70}
	for name, c := range map[string]struct {
		config map[string]any
		script string
		want   *entity.RunCost
	}{
		"through the gateway": {nil, clitest.Print(begun, won), nil},
		"with a key of its own": {map[string]any{"gateway": false}, clitest.Print(begun, won),
			&entity.RunCost{Provider: "anthropic", Model: "claude-sonnet-4-5", BillingType: "metered_api", Usage: usage,
				Cost: 18_000, Priced: true}},
		"under a plan": {map[string]any{"gateway": false},
			clitest.Print(strings.Replace(begun, `"tools"`, `"apiKeySource":"none","tools"`, 1), won),
			&entity.RunCost{Provider: "anthropic", Model: "claude-sonnet-4-5", BillingType: "subscription_included",
				Usage: usage, Priced: true}},
		"a cost that is none": {map[string]any{"gateway": false, "model": "claude-opus-4-1"},
			clitest.Print(strings.Replace(won, "0.00018", "-3", 1)),
			&entity.RunCost{Provider: "anthropic", Model: "claude-opus-4-1", BillingType: "metered_api", Usage: usage}},
		"a cost beyond all bounds": {map[string]any{"gateway": false},
			clitest.Print(begun, strings.Replace(won, "0.00018", "1e300", 1)),
			&entity.RunCost{Provider: "anthropic", Model: "claude-sonnet-4-5", BillingType: "metered_api", Usage: usage}},
		"one that failed": {map[string]any{"gateway": false}, clitest.Print(begun, won) + "\nexit 4",
			&entity.RunCost{Provider: "anthropic", Model: "claude-sonnet-4-5", BillingType: "metered_api", Usage: usage,
				Cost: 18_000, Priced: true}},
		"nothing told": {map[string]any{"gateway": false}, "exit 3", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := clitest.New(t, Tool{}, c.config, c.script).Invoke()
			if (o.Cost == nil) != (c.want == nil) || o.Cost != nil && *o.Cost != *c.want {
				t.Errorf("%+v, want %+v", o.Cost, c.want)
			}
		})
	}
}
