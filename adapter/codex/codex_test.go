package codex

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

// Output of version 0.169.0.
const (
	begun = `{"type":"thread.started","thread_id":"01a1fe9b-e986-7230-869d-3fe77f991275"}`
	hint  = `{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for ` + "`gpt-5`" +
		` not found."}}`
	said = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello codex"}}`
	once = `{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":10,` +
		`"cache_write_input_tokens":0,"output_tokens":9,"reasoning_output_tokens":0}}`
	twice = `{"type":"turn.completed","usage":{"input_tokens":70,"cached_input_tokens":30,` +
		`"cache_write_input_tokens":0,"output_tokens":19,"reasoning_output_tokens":0}}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": `gpt-5"x`, "modelReasoningEffort": "high",
		"extraArgs": []string{"--color", "never"},
		"env":       map[string]any{"OPENAI_API_KEY": "sk-mine-0123456789"}},
		clitest.Print(begun, `{"type":"turn.started"}`, hint,
			said, once))
	b.Inv.Instructions = &company.RunInstructions{Entry: "AGENTS.md", Texts: map[string]string{"AGENTS.md": "Be kind."}}
	b.Inv.Skills = []company.RunSkill{{Name: "knots", Files: map[string]string{"SKILL.md": "Tie them.",
		"references/a.md": "A"}}, {Name: "sails", Files: map[string]string{"SKILL.md": "Set them."}}}
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello codex" ||
		o.SessionID != "01a1fe9b-e986-7230-869d-3fe77f991275" {
		t.Fatalf("%+v\n%s", o, o.Result)
	}
	if *o.Usage != (entity.Usage{InputTokens: 20, CachedInputTokens: 10, OutputTokens: 9}) {
		t.Errorf("used %+v", *o.Usage)
	}
	home := filepath.Join(b.Dir, "workspaces", "agent-1", ".codex")
	c := b.Call(0)
	if c.Args[0] != "exec" || c.Args[1] != "--json" || c.Args[len(c.Args)-1] != "-" || !clitest.Has(c.Args, "-c",
		`model="gpt-5\"x"`) || !clitest.Has(c.Args, "-c", `model_reasoning_effort="high"`) ||
		!clitest.Has(c.Args, "--color", "never", "-") || !clitest.Has(c.Args, "--dangerously-bypass-approvals-and-sandbox") ||
		!clitest.Has(c.Args, "-c",
			`model_providers.selvage={name="Selvage",base_url="http://127.0.0.1:3100/llm/v1",`+
				`env_key="PAPERCLIP_API_KEY",wire_api="responses"}`) {
		t.Errorf("arguments %q", c.Args)
	}
	if c.Env["CODEX_HOME"] != home || c.Env["OPENAI_API_KEY"] != "" || c.Env["PAPERCLIP_API_KEY"] != clitest.Token ||
		strings.Contains(strings.Join(c.Args, " "), clitest.Token) {
		t.Errorf("environment %q", c.Env)
	}
	if !strings.Contains(c.Input, "Be kind.") || !strings.Contains(c.Input, "task-1") {
		t.Errorf("the prompt is %q", c.Input)
	}
	if s, err := os.ReadFile(filepath.Join(home, "skills/knots/references/a.md")); err != nil || string(s) != "A" {
		t.Errorf("the skill is %q, %v", s, err)
	}

	// The next run resumes the session; its usage is only its own; a removed skill is gone.
	b.Program("codex", clitest.Print(begun, said, twice))
	b.Inv.Skills = b.Inv.Skills[1:]
	o = b.Again(o)
	if c := b.Call(1); c.Args[0] != "exec" || c.Args[1] != "resume" || !clitest.Has(c.Args,
		"01a1fe9b-e986-7230-869d-3fe77f991275", "--color", "never", "-") {
		t.Errorf("arguments %q", c.Args)
	}
	if *o.Usage != (entity.Usage{InputTokens: 20, CachedInputTokens: 20, OutputTokens: 10}) {
		t.Errorf("the second run used %+v", *o.Usage)
	}
	if _, err := os.Stat(filepath.Join(home, "skills/knots")); err == nil {
		t.Error("a skill that is not wanted any more is still there")
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, code, message string
		transient             bool
	}{
		"a turn that failed": {clitest.Print(begun, `{"type":"error","message":"Reconnecting... 1/5"}`,
			`{"type":"turn.failed","error":{"message":"unexpected status 402 Payment Required: budget"}}`) + "\nexit 1",
			"budget_refused", "unexpected status 402 Payment Required: budget", false},
		"an upstream that is busy": {clitest.Print(begun,
			`{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 503 Service Unavailable"}}`) +
			"\nexit 1",
			"transient_upstream", "exceeded retry limit, last status: 503 Service Unavailable", true},
		"one that was made up for": {clitest.Print(begun, `{"type":"error","message":"Reconnecting... 1/5"}`, said, once),
			"", "", false},
		"a bad option": {"echo 'error: unexpected argument' >&2; exit 2", "adapter_failed",
			"Process exited with code 2: error: unexpected argument", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := clitest.New(t, Tool{}, nil, c.script).Invoke()
			if (c.code == "") != (o.Status == entity.RunSucceeded) || o.ErrorCode != c.code || o.Error != c.message ||
				o.Transient != c.transient {
				t.Errorf("%s %q %q, transient %t", o.Status, o.ErrorCode, o.Error, o.Transient)
			}
		})
	}
	// If a session no longer exists, a new one is started.
	b := clitest.New(t, Tool{}, nil, clitest.Print(begun, said, once))
	first := b.Invoke()
	b.Program("codex",
		`case "$*" in *resume*) echo 'Error: thread/resume failed: no rollout found for thread id' >&2; exit 1;; esac
`+clitest.Print(begun, said, once))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(2).Args, "resume") {
		t.Errorf("%+v", o)
	}
}
