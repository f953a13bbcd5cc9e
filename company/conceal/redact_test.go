package conceal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
)

func TestRedactConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"env":{"A":"canary","B":{"type":"plain","value":"canary"},"C":5}}`,
			`{"env":{"A":{"type":"plain","value":"***REDACTED***"},"B":{"type":"plain","value":"***REDACTED***"},` +
				`"C":{"type":"plain","value":"***REDACTED***"}}}`},
		{`{"env":{"R":{"type":"secret_ref","secretId":"id","version":"latest"}}}`,
			`{"env":{"R":{"secretId":"id","type":"secret_ref","version":"latest"}}}`},
		{`{"apiKey":"canary","api_key":"canary","Authorization":"Basic canary",` +
			`"headers":{"X-Auth-Token":"canary","Accept":"json"}}`,
			`{"Authorization":"***REDACTED***","apiKey":"***REDACTED***","api_key":"***REDACTED***",` +
				`"headers":{"Accept":"json","X-Auth-Token":"***REDACTED***"}}`},
		{`{"password":{"value":["canary",{"deep":"canary"}],"on":true}}`,
			`{"password":{"on":true,"value":["***REDACTED***",{"deep":"***REDACTED***"}]}}`},
		{`{"maxTokens":4096,"nested":[{"env":{"X":"canary"}}]}`,
			`{"maxTokens":4096,"nested":[{"env":{"X":{"type":"plain","value":"***REDACTED***"}}}]}`},
		{`{"args":["-c","curl -H 'Authorization: Bearer canary-canary' x; MY_API_KEY=canary run"]}`,
			`{"args":["-c","curl -H 'Authorization: Bearer ***REDACTED***' x; MY_API_KEY=***REDACTED*** run"]}`},
		{`{"args":["s/\\(API_KEY=.\\{20\\}\\).*/\\1.../'; echo"]}`, `{"args":["s/\\(API_KEY=***REDACTED***'; echo"]}`},
		{`{"note":"use sk-canary12345 or ghp_canary12345"}`, `{"note":"use ***REDACTED*** or ***REDACTED***"}`},
		{`{"big":12345678901234567890,"f":1.50}`, `{"big":12345678901234567890,"f":1.50}`},
		{`null`, `{}`}, {`[1]`, `{}`}, {``, `{}`}, {`{`, `{}`},
	} {
		got := string(conceal.RedactConfig([]byte(c.in)))
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
		if again := string(conceal.RedactConfig([]byte(got))); again != got {
			t.Errorf("redacted twice: %s, then %s", got, again)
		}
	}
	if got := string(conceal.RedactEnv(json.RawMessage(`{"A":"canary"}`))); strings.Contains(got, "canary") {
		t.Errorf("env shows %s", got)
	}
	if got := string(conceal.RedactEnv(nil)); got != "null" {
		t.Errorf("no env is %s", got)
	}
}

func FuzzRedactConfig(f *testing.F) {
	f.Add([]byte(`{"env":{"A":"canary-secret"}}`))
	f.Add([]byte(`{"a":{"env":{"A":{"type":"plain","value":"canary-secret"}}},"token":["canary-secret"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := conceal.RedactConfig(b)
		if !json.Valid(out) {
			t.Fatalf("%q is not JSON", out)
		}
		if kept := conceal.KeepHidden(out, b); !json.Valid(kept) {
			t.Fatalf("%q is not JSON", kept)
		}
	})
}

func TestJSONOfRowsHoldsNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, row := range []any{
		entity.Agent{AdapterConfig: []byte(`{"a":"canary"}`), RuntimeConfig: []byte(`{"a":"canary"}`),
			Metadata: []byte(`{"a":"canary"}`)},
		entity.Project{Env: []byte(`{"a":"canary"}`)}, people.AgentKey{Hash: "canary"},
	} {
		b, err := json.Marshal(row)
		if err != nil || strings.Contains(string(b), "canary") {
			t.Errorf("%T is %s, %v", row, b, err)
		}
	}
}
