package opencode

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// Output of version 1.18.33.
const (
	step = `{"type":"step_start","timestamp":1795275612715,"sessionID":"ses_e013c3b4fffej50M1XDT1mo4nO",` +
		`"part":{"id":"prt_1","type":"step-start"}}`
	text = `{"type":"text","timestamp":1795275612718,"sessionID":"ses_e013c3b4fffej50M1XDT1mo4nO",` +
		`"part":{"id":"prt_2","type":"text","text":"Hello chat","time":{"start":1,"end":2}}}`
	done = `{"type":"step_finish","timestamp":1795275612718,"sessionID":"ses_e013c3b4fffej50M1XDT1mo4nO",` +
		`"part":{"id":"prt_3","reason":"stop","type":"step-finish","tokens":{"total":14,"input":11,"output":3,` +
		`"reasoning":1,"cache":{"write":2,"read":5}},"cost":0.25}}`
	bad = `{"type":"error","timestamp":1,"sessionID":"ses_e013c3b4fffej50M1XDT1mo4nO","error":{"name":"APIError",` +
		`"data":{"message":"Payment Required","statusCode":402}}}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "local/qwen", "effort": "high"}, clitest.Print(step, text, done,
		step, text, done))
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello chat" ||
		o.SessionID != "ses_e013c3b4fffej50M1XDT1mo4nO" ||
		*o.Usage != (entity.Usage{InputTokens: 26, CachedInputTokens: 10, OutputTokens: 8}) ||
		!strings.Contains(string(o.Result), `"reportedCostUsd":0.5`) {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	if got := strings.Join(c.Args, " "); got != "run --format json --model selvage/local/qwen --variant high" {
		t.Errorf("arguments %q", got)
	}
	config := c.Env["OPENCODE_CONFIG_CONTENT"]
	if !strings.Contains(config, `"baseURL":"http://127.0.0.1:3100/llm/v1"`) || !strings.Contains(config,
		`"apiKey":"{env:PAPERCLIP_API_KEY}"`) || strings.Contains(config, clitest.Token) ||
		!strings.HasSuffix(c.Env["XDG_DATA_HOME"], "/workspaces/agent-1/.opencode/data") {
		t.Errorf("%q", c.Env)
	}
	if o = b.Again(o); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--session", o.SessionID) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	config := map[string]any{"model": "m"}
	if o := clitest.New(t, Tool{}, config, clitest.Print(step, bad)).Invoke(); o.Status != entity.RunFailed ||
		o.ErrorCode != "budget_refused" || o.Error != "Payment Required" {
		t.Errorf("%+v", o)
	}
	if o := clitest.New(t, Tool{}, nil, clitest.Print(step)).Invoke(); o.Status != entity.RunFailed ||
		o.ErrorCode != "configuration_incomplete" {
		t.Errorf("without a model: %+v", o)
	}
	b := clitest.New(t, Tool{}, config, clitest.Print(step, text, done))
	first := b.Invoke()
	b.Program("opencode", `case "$*" in *--session*) echo 'Error: Session not found' >&2; exit 1;; esac
`+clitest.Print(step, text, done))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(2).Args, "--session") {
		t.Errorf("%+v", o)
	}
}
