package adapter

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/entity"
)

// Values that a run of an adapter could not decode are found without a run; members that the
// adapter does not know are accepted.
func TestMisfitsAreWhatNoRunCouldDecode(t *testing.T) {
	t.Parallel()
	for _, kind := range entity.AdapterTypes {
		k, ok := Find(kind)
		if !ok || len(k.takes) == 0 {
			t.Fatalf("%s: nothing says what it takes", kind)
		}
		if bad := k.Misfits(
			[]byte(`{"theirs":{"a":[1]},"timeoutSec":null,"env":{"A":"b","B":{"type":"secret_ref","secretId":"x",` +
				`"version":3}}}`)); len(bad) > 0 {
			t.Errorf("%s refuses what it does not know: %v", kind, bad)
		}
		for _, f := range k.Fields { // each field of the form is known, with the form's type
			good := map[string]string{"text": `"x"`, "textarea": `"x"`, "select": `"x"`, "number": `3`, "toggle": `true`,
				"list": `["x"]`}[f.Type]
			if f.Key == "env" || f.Key == "headers" {
				good = `{"A":"b"}`
			}
			if bad := k.Misfits(fmt.Appendf(nil, `{%q:%s}`, f.Key, good)); len(bad) > 0 {
				t.Errorf("%s: %s of type %s is refused: %v", kind, f.Key, f.Type, bad)
			}
			if bad := k.Misfits(fmt.Appendf(nil, `{%q:[{}]}`, f.Key)); len(bad) != 1 && f.Key != "payloadTemplate" {
				t.Errorf("%s: %s may be anything", kind, f.Key)
			}
		}
	}
	for _, c := range [][3]string{
		{"process", `{"timeoutSec":"x","env":5,"cwd":3,"command":[],"args":"a b"}`,
			"command string, args array of strings, cwd string, env object, timeoutSec number"},
		{"process", `{"env":{"A":{"value":3},"B":4}}`, "env.A string"}, {"process", `{"limits":{"memoryMb":"1"}}`,
			"limits.memoryMb int"}, {"process", `{"Command":1}`, "Command string"},
		{"claude_local", `{"maxTurnsPerRun":2.5,"chrome":1,"extraArgs":[1],"model":{}}`,
			"model string, maxTurnsPerRun int, extraArgs array of strings, chrome boolean"},
		{"codex_local", `{"search":"yes"}`, "search boolean"}, {"acp", `{"permissions":[]}`, "permissions string"},
		{"pi_local", `{"thinking":1}`, "thinking string"},
		{"http", `{"url":1,"timeoutMs":"1","headers":{"A":1},"callback":"no"}`,
			"url string, headers.A string, timeoutMs int, callback boolean"},
		{"openclaw_gateway", `{"authToken":5,"disableDeviceAuth":"x"}`, "authToken string, disableDeviceAuth boolean"},
		{"wasm", `{"fuel":"x","grants":"all"}`, "fuel int, grants array of strings"},
		{"container", `{"image":1,"mounts":[{"source":1}]}`, "image string, mounts.source string"},
		{"wasm", `{"command":5}`, ""}, {"process", `[]`, ""},
	} {
		k, _ := Find(c[0])
		var got []string
		for _, m := range k.Misfits([]byte(c[1])) {
			got = append(got, strings.Join(m.Path, ".")+" "+m.Expected)
		}
		if want := strings.Split(c[2], ", "); c[2] == "" && len(got) > 0 || c[2] != "" && !slices.Equal(got, want) {
			t.Errorf("%s %s: %q, want %q", c[0], c[1], got, want)
		}
	}
}
