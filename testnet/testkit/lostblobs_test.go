package testkit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// A node whose folder of files is lost gets its copies back, of attachments and of
// the logs of runs: one that was off meanwhile, and one that is at work.
func TestANodeThatLostItsFilesGetsThemBack(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != 0 {
			c.Adapters = map[string]scheduler.Adapter{}
		}
		c.Dir = filepath.Join(dir, c.Name)
		c.Blobs = node.Blobs{Every: 100 * time.Millisecond, Gone: time.Minute, Grace: time.Hour}
		c.Blobs.Store.Reserve = 1
	})
	of := b.Company("Acme")
	issue := b.Issue(0, of, "Keep this")
	want := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	body, contentType := form(t, "file.bin", want)
	var at attachment
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues/"+issue+"/attachments", body, &at, "Content-Type", contentType,
		"X-Selvage-Read", "strong")
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh",
		"args": []string{"-c", "echo what was to be kept; exit 0"}})
	if err != nil {
		t.Fatal(err)
	}
	var run struct{ ID, Status, LogSha256, LogKeptAt string }
	b.Must(0, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{}, &run, Strong...)
	b.Until("the log is kept", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+run.ID, nil, &run, Strong...)
		return run.Status == "succeeded" && run.LogKeptAt != ""
	})
	files := func(name string) bool {
		for _, sum := range []string{at.SHA256, run.LogSha256} {
			if _, err := os.Stat(filepath.Join(dir, name, "blobs", sum[:2], sum)); err != nil {
				return false
			}
		}
		return true
	}
	b.Until("all nodes have both", func() bool { return files("n1") && files("n2") && files("n3") })

	b.Kill(1)
	if err := os.RemoveAll(filepath.Join(dir, "n2", "blobs")); err != nil {
		t.Fatal(err)
	}
	b.Restart(1)
	b.Until("the node that was started again has both", func() bool { return files("n2") })

	b.Until("the files are gone", func() bool {
		return os.RemoveAll(filepath.Join(dir, "n3",
			"blobs")) == nil
	}) // it may write one meanwhile
	b.Until("the node that is at work has both", func() bool { return files("n3") })
	for on := range b.Nodes {
		if got := b.Must(on, "GET", "/api/attachments/"+at.ID+"/content", nil, nil,
			b.Seen()...); !bytes.Equal(got.Body, want) {
			t.Errorf("n%d gives %d bytes, not the file", on+1, len(got.Body))
		}
	}
}
