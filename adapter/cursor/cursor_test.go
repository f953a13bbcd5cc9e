package cursor

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// Output as documented by Cursor.
const (
	begun = `{"type":"system","subtype":"init","apiKeySource":"env","cwd":"/w",` +
		`"session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff","model":"Claude 4 Sonnet","permissionMode":"default"}`
	told = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"say hello"}]},` +
		`"session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff"}`
	said = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I'll say it"}]},` +
		`"session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff"}`
	tool = `{"type":"tool_call","subtype":"completed","call_id":"t1",` +
		`"tool_call":{"readToolCall":{"args":{"path":"a"}}},"session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff"}`
	won = `{"type":"result","subtype":"success","duration_ms":5234,"duration_api_ms":5234,"is_error":false,` +
		`"result":"Hello cursor","session_id":"c6b62c6f-7ead-4fd6-9922-e952131177ff","usage":{"inputTokens":11,` +
		`"outputTokens":3,"cacheReadTokens":5,"cacheWriteTokens":2}}`
)

func TestItIsStartedAsItsManualSays(t *testing.T) {
	t.Parallel()
	b := clitest.New(t, Tool{}, map[string]any{"model": "sonnet-4",
		"env": map[string]any{"CURSOR_API_KEY": "ck-canary-0123456789"}}, clitest.Print(begun, told, said, tool, won))
	o := b.Invoke()
	if o.Status != entity.RunSucceeded || clitest.Summary(o) != "Hello cursor" ||
		o.SessionID != "c6b62c6f-7ead-4fd6-9922-e952131177ff" ||
		*o.Usage != (entity.Usage{InputTokens: 13, CachedInputTokens: 5, OutputTokens: 3}) {
		t.Fatalf("%+v %s", o, o.Result)
	}
	c := b.Call(0)
	if !clitest.Has(c.Args, "--print", "--output-format", "stream-json", "--workspace", c.Dir, "--trust", "--force",
		"--model", "sonnet-4") || c.Env["CURSOR_API_KEY"] != "ck-canary-0123456789" {
		t.Errorf("arguments %q", c.Args)
	}
	if o = b.Again(o); o.Status != entity.RunSucceeded || !clitest.Has(b.Call(1).Args, "--resume", o.SessionID) {
		t.Errorf("%+v %q", o, b.Call(1).Args)
	}
}

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	o := clitest.New(t, Tool{}, nil,
		"echo 'Error: Authentication required. Please run agent login first' >&2; exit 1").Invoke()
	if o.Status != entity.RunFailed || o.ErrorCode != "auth_required" || !strings.Contains(o.Error,
		"Authentication required") {
		t.Errorf("%+v", o)
	}
	if o := clitest.New(t, Tool{}, nil, clitest.Print(begun, said)).Invoke(); o.Status != entity.RunFailed ||
		o.Error != "The agent ended without a result" {
		t.Errorf("%+v", o)
	}
	b := clitest.New(t, Tool{}, nil, clitest.Print(begun, won))
	first := b.Invoke()
	b.Program("cursor-agent", `case "$*" in *--resume*) echo 'Chat not found' >&2; exit 1;; esac
`+clitest.Print(begun, won))
	if o := b.Again(first); o.Status != entity.RunSucceeded || clitest.Has(b.Call(2).Args, "--resume") {
		t.Errorf("%+v", o)
	}
}
