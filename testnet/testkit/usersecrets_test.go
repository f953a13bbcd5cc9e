package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A variable that refers to a secret of each user gets the value of whoever is
// responsible for the run. Without one the run ends before its command starts, and
// says which variable it is.
func TestRunsGetTheSecretsOfTheirUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Mesh(t, 1, working(dir))
	of, out := b.Company("Acme"), t.TempDir()
	const canary = "userCanary-51c0ffee"
	var def struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/user-secret-definitions", map[string]any{"key": "github",
		"name": "GitHub"}, &def)
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh",
		"args": []string{"-c", `umask 077; echo "it is $TOKEN"; printf %s "$TOKEN" >$OUT/part; mv $OUT/part $OUT/token`},
		"env":  map[string]any{"OUT": out, "TOKEN": map[string]any{"type": "user_secret_ref", "key": "github"}}})
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ ID, Status, ErrorCode, Error string }
	invoke := func() {
		b.Must(0, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &run, Strong...)
		b.Until("the run has ended", func() bool {
			b.Must(0, "GET", "/api/heartbeat-runs/"+run.ID, nil, &run, Strong...)
			return run.Status == "succeeded" || run.Status == "failed"
		})
	}
	invoke()
	if run.Status != "failed" || run.ErrorCode != "configuration_incomplete" || !strings.Contains(run.Error, "TOKEN") {
		t.Errorf("without a value: %+v", run)
	}
	if _, err := os.Stat(filepath.Join(out, "token")); err == nil {
		t.Error("the command ran without its secret")
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/me/user-secrets", map[string]any{"definitionKey": "github",
		"value": canary}, nil)
	invoke()
	if run.Status != "succeeded" {
		t.Fatalf("with a value: %+v", run)
	}
	if got := readFile(b, filepath.Join(out, "token")); got != canary {
		t.Errorf("the run got %q", got)
	}
	var page struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+run.ID+"/log?offset=0", nil, &page, Strong...)
	if strings.Contains(page.Content, canary) || !strings.Contains(page.Content, "it is ") {
		t.Errorf("the log is %q", page.Content)
	}
}
