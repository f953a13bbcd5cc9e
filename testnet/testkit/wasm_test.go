package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An agent that is a module works on its issue through the node's own API: it
// checks it out, comments on it and closes it, and its log says so.
func TestAnAgentInTheSandbox(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	module := filepath.Join(t.TempDir(), "agent.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", module,
		"github.com/selvage-mesh/selvage/examples/wasm-go")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, said)
	}
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	var agent, issue struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "adapterType": "wasm",
		"adapterConfig": map[string]any{"module": module}}, &agent)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Count", "status": "todo",
		"assigneeAgentId": agent.ID}, &issue)
	b.Until("the issue is done", func() bool {
		var row struct{ Status string }
		b.Must(0, "GET", "/api/issues/"+issue.ID, nil, &row)
		return row.Status == "done"
	})
	var comments []struct{ Body, AuthorAgentID string }
	b.Must(0, "GET", "/api/issues/"+issue.ID+"/comments", nil, &comments)
	if len(comments) != 1 || comments[0].AuthorAgentID != agent.ID ||
		comments[0].Body != `Done in the sandbox: "Count" has 5 letters.` {
		t.Errorf("comments %+v", comments)
	}
	b.Until("the run succeeded", func() bool {
		var runs []struct{ Status string }
		b.Must(0, "GET", "/api/issues/"+issue.ID+"/runs", nil, &runs)
		return len(runs) > 0 && runs[0].Status == "succeeded"
	})
}
