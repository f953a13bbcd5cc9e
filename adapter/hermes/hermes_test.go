package hermes

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

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "local/qwen", "toolsets": "terminal,file", "maxTurnsPerRun": 5},
		clitest.Print("Hello from Hermes.", "It is done.", "", "session_id: 20261121_154100_ab12cd",
			"tokens: 150 input, 42 output"))
	b.Inv.Skills = []company.RunSkill{{Name: "knots", Files: map[string]string{"SKILL.md": "Tie them."}}}
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello from Hermes.\nIt is done." ||
		o.SessionID != "20261121_154100_ab12cd" ||
		*o.Usage != (entity.Usage{InputTokens: 150, OutputTokens: 42}) {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	home := filepath.Join(b.Dir, "workspaces", "agent-1", ".hermes")
	if !clitest.Has(c.Args[:3], "chat", "-Q", "-q") || !strings.Contains(c.Args[3], "task-1") || !clitest.Has(c.Args[4:],
		"-m", "local/qwen", "--provider", "custom", "-t", "terminal,file", "--max-turns", "5", "--yolo") ||
		c.Env["HERMES_HOME"] != home || c.Env["OPENAI_BASE_URL"] != "http://127.0.0.1:3100/llm/v1" ||
		c.Env["OPENAI_API_KEY"] != clitest.Token {
		t.Errorf("arguments %q", c.Args)
	}
	if s, err := os.ReadFile(filepath.Join(home, "config.yaml")); err != nil || !strings.Contains(string(s),
		"${PAPERCLIP_API_KEY}") || strings.Contains(string(s), clitest.Token) {
		t.Errorf("%s %v", s, err)
	}
	if s, err := os.ReadFile(filepath.Join(home, "skills/knots/SKILL.md")); err != nil || string(s) != "Tie them." {
		t.Errorf("%s %v", s, err)
	}
	if o = b.Again(o); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--resume", o.SessionID) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	config := map[string]any{"model": "m"}
	// The session may be printed to standard error.
	if o := clitest.New(t, Tool{}, config, "echo Done.; echo 'session_id: s1' >&2").
		Invoke(); o.Status != entity.RunSucceeded || o.SessionID != "s1" || clitest.Summary(o) != "Done." {
		t.Errorf("%+v", o)
	}
	if o := clitest.New(t, Tool{}, config, "exit 0").Invoke(); o.Status != entity.RunFailed ||
		o.Error != "The agent ended without a result" {
		t.Errorf("%+v", o)
	}
	b := clitest.New(t, Tool{}, config, clitest.Print("Done.", "session_id: s1"))
	first := b.Invoke()
	b.Program("hermes", `case "$*" in *--resume*) echo 'Session not found: s1' >&2; exit 1;; esac
`+clitest.Print("Done.", "session_id: s2"))
	if o := b.Again(first); o.Status != entity.RunSucceeded || o.SessionID != "s2" {
		t.Errorf("%+v", o)
	}
	b = clitest.New(t, Tool{}, map[string]any{"model": "m", "promptTemplate": strings.Repeat("x", maxPrompt)}, "exit 0")
	if o := b.Invoke(); o.Status != entity.RunFailed || o.ErrorCode != "configuration_incomplete" {
		t.Errorf("%+v", o)
	}
}
