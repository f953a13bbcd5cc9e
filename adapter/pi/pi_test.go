package pi

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// Output of version 0.73.1, shortened.
const (
	begun = `{"type":"session","version":3,"id":"01a1fec4-9cb5-77c9-ac83-e07189ef4a63",` +
		`"timestamp":"2026-11-21T15:41:00.470Z","cwd":"/w"}`
	told = `{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"say hello"}]}}`
	said = `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Hello chat"}],` +
		`"api":"openai-completions","provider":"selvage","model":"local/qwen","usage":{"input":11,"output":3,` +
		`"cacheRead":5,"cacheWrite":2,"totalTokens":14,"cost":{"total":0.25}},"stopReason":"stop"}}`
	bad = `{"type":"message_end","message":{"role":"assistant","content":[],"model":"local/qwen",` +
		`"usage":{"input":0,"output":0},"stopReason":"error","errorMessage":"402 Payment Required"}}`
	over = `{"type":"agent_end","messages":[]}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	script := clitest.Print(begun, `{"type":"agent_start"}`, told, said, said, over)
	b := clitest.New(t, Tool{}, map[string]any{"model": "local/qwen", "thinking": "low"}, script)
	b.Program("pi", "cat $PI_CODING_AGENT_DIR/models.json >$at/models\n"+script)
	b.Inv.Skills = []company.RunSkill{{Name: "knots", Files: map[string]string{"SKILL.md": "Tie them."}}}
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello chat" ||
		o.SessionID != "01a1fec4-9cb5-77c9-ac83-e07189ef4a63" ||
		*o.Usage != (entity.Usage{InputTokens: 26, CachedInputTokens: 10, OutputTokens: 6}) {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	if !clitest.Has(c.Args, "--mode", "json", "-p", "--offline", "--session-dir") || !clitest.Has(c.Args, "--provider",
		"selvage", "--model", "local/qwen", "--thinking", "low", "--skill") {
		t.Errorf("arguments %q", c.Args)
	}
	if got := b.File(0, "models"); !strings.Contains(got, `"apiKey":"PAPERCLIP_API_KEY"`) || !strings.Contains(got,
		`"baseUrl":"http://127.0.0.1:3100/llm/v1"`) || strings.Contains(got, clitest.Token) {
		t.Errorf("models %s", got)
	}
	if o = b.Again(o); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--session", o.SessionID) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	config := map[string]any{"model": "m"}
	if o := clitest.New(t, Tool{}, config, clitest.Print(begun, bad, over)).Invoke(); o.Status != entity.RunFailed ||
		o.ErrorCode != "budget_refused" || o.Error != "402 Payment Required" {
		t.Errorf("%+v", o)
	}
	b := clitest.New(t, Tool{}, config, clitest.Print(begun, said, over))
	first := b.Invoke()
	b.Program("pi", `case " $* " in *" --session "*) echo 'No session found' >&2; exit 1;; esac
`+clitest.Print(begun, said, over))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(2).Args, "--session") {
		t.Errorf("%+v", o)
	}
}
