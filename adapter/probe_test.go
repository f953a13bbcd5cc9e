package adapter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAProbeTellsWhatIsMissing(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"claude", "gemini"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	p := Prober{Environ: []string{"PATH=" + bin}, Has: func(kind string) bool { return kind != "container" },
		Run: func(_ context.Context, path string, _ map[string]string) (string, error) {
			if ran++; strings.HasSuffix(path, "gemini") {
				return "", errors.New("it hangs")
			}
			return "2.1.197 (Claude Code)\nmore\n", nil
		}}
	for _, c := range []struct{ kind, config, verdict, codes string }{
		{"claude_local", ``, "pass", "command_found version"},
		{"claude_local", `{"cwd":"` + dir + `"}`, "pass", "cwd_found command_found version"},
		{"claude_local", `{"cwd":"/nowhere/at/all"}`, "fail", "cwd_missing command_found version"},
		{"claude_local", `{"cwd":"here"}`, "fail", "cwd_not_absolute command_found version"},
		{"claude_local", `{"gateway":false}`, "warn", "command_found version gateway_off"},
		{"claude_local", `{"env":{"PATH":"/nowhere"}}`, "fail", "command_not_found"},
		{"claude_local", `[]`, "fail", "config_malformed"},
		{"codex_local", ``, "fail", "command_not_found"},
		{"gemini_local", ``, "warn", "command_found version_unknown"},
		{"cursor", `{"command":"` + bin + `/claude"}`, "warn", "command_found version key_missing"},
		{"process", ``, "fail", "command_missing"},
		{"process", `{"command":"` + bin + `/claude"}`, "pass", "command_found"},
		{"http", `{"url":"https://example.com/x"}`, "pass", "url_valid"},
		{"http", `{"url":"ws://example.com"}`, "fail", "url_invalid"},
		{"openclaw_gateway", `{"url":"ws://example.com"}`, "pass", "url_valid"},
		{"openclaw_gateway", `{"url":"http://example.com"}`, "fail", "url_invalid"},
		{"wasm", `{"module":"/nowhere.wasm"}`, "fail", "module_missing"},
		{"wasm", `{"module":"asset:1"}`, "pass", "module_named"},
		{"wasm", ``, "pass", "default_agent"},
		{"weftos", `{"base_url":"http://localhost:8080"}`, "pass", "url_valid"},
		{"weftos", `{"baseUrl":"localhost"}`, "fail", "url_invalid"},
		{"weftos", `{"agentId":"Ada"}`, "pass", "this_mesh"},
		{"weftos", ``, "fail", "agent_missing"},
		{"container", ``, "fail", "adapter_missing"},
		{"abacus", ``, "fail", "adapter_missing"},
	} {
		checks := p.Probe(t.Context(), c.kind, []byte(c.config))
		codes := []string{}
		for _, k := range checks {
			codes = append(codes, k.Code)
		}
		if got := strings.Join(codes, " "); got != c.codes || Verdict(checks) != c.verdict {
			t.Errorf("%s %s: %s, %s", c.kind, c.config, Verdict(checks), got)
		}
	}
	if ran != 7 {
		t.Errorf("programs were asked %d times, want 7: none that is not a tool's", ran)
	}
}
