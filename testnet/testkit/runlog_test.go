package testkit

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// The log of a run that is over outlives the node that carried it out.
func TestLogsOutliveTheirNode(t *testing.T) {
	t.Parallel()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != 2 {
			c.Adapters = map[string]scheduler.Adapter{}
		}
	})
	of := b.Company("Acme")
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh",
		"args": []string{"-c", "echo what was to be kept; exit 0"}})
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ ID, Status, LogSha256, LogKeptAt string }
	b.Must(0, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &run)
	b.Until("the log is kept", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+run.ID, nil, &run)
		return run.Status == "succeeded" && run.LogKeptAt != ""
	})
	b.Kill(2)
	for on := range 2 {
		b.Until("the log is read without its node", func() bool {
			var log struct{ Content string }
			got, err := b.Call(on, "GET", "/api/heartbeat-runs/"+run.ID+"/log", nil, &log)
			return err == nil && got.Status == 200 && strings.Contains(log.Content, "what was to be kept") &&
				fmt.Sprintf("%x", sha256.Sum256([]byte(log.Content))) == run.LogSha256 // as the command that closed the run has it
		})
	}
	var part struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+run.ID+"/log?offset=5&limitBytes=7", nil, &part)
	if len(part.Content) != 7 {
		t.Errorf("a piece of it is %q", part.Content)
	}
	// The settings of the mesh say how much is kept; what is more is given up.
	b.Must(0, "PATCH", "/api/instance/settings/general", map[string]any{"runLogRetention": map[string]any{"days": 30,
		"maxBytes": 5}}, nil)
	b.Until("the log is given up", func() bool {
		got, err := b.Call(0, "GET", "/api/heartbeat-runs/"+run.ID, nil, nil)
		return err == nil && got.Status == 200 && !strings.Contains(string(got.Body), "logKeptAt")
	})
	for on := range 2 {
		b.Until("nobody has the log", func() bool {
			got, err := b.Call(on, "GET", "/api/heartbeat-runs/"+run.ID+"/log", nil, nil)
			return err == nil && !strings.Contains(string(got.Body), "what was to be kept")
		})
	}
}
