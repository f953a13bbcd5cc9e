package testkit

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// working are meshes whose agents are real processes.
func working(dir string) func(int, *node.Config) {
	return func(i int, c *node.Config) {
		c.Adapters, c.Shim = nil, shimtest.Command
		c.Dir = filepath.Join(dir, c.Name)
	}
}

// readFile waits for a file that a child writes.
func readFile(b *Bed, path string) (text string) {
	b.t.Helper()
	b.Until(path+" is written", func() bool {
		raw, err := os.ReadFile(path)
		text = strings.TrimSpace(string(raw))
		return err == nil && text != ""
	})
	return text
}

// A run's log is readable through every node while the run goes on, and its token
// speaks on every node until the run ends, and on none after.
func TestRunIsEverywhere(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3, working(t.TempDir()))
	of, out := b.Company("Acme"), t.TempDir()
	const script = `umask 077; printf %s "$PAPERCLIP_API_KEY" > $OUT/part; mv $OUT/part $OUT/token
i=0; while [ $i -lt 5000 ]; do i=$((i+1)); echo "line $i of the run"; sleep 0.02; done`
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1,
		"env": map[string]any{"OUT": out}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Invoke(1, &a); err != nil {
		t.Fatal(err)
	}
	token := readFile(b, filepath.Join(out, "token"))

	type page struct {
		Content    string
		NextOffset *int64
	}
	// Each node reads on from where the one before it stopped.
	whole := ""
	for turn := range 6 {
		on := turn % 3
		before := len(whole)
		b.Until(fmt.Sprintf("the log grows on n%d", on+1), func() bool {
			var p page
			an, err := b.Ask(on, "GET", fmt.Sprintf("/api/heartbeat-runs/%s/log?offset=%d&limitBytes=4096", a.Run, len(whole)),
				nil, &p, Strong...)
			if err != nil || an.Status != 200 && an.Status != 404 {
				t.Fatalf("log on n%d: %v %d %s", on+1, err, an.Status, an.Body)
			}
			whole += p.Content
			return len(whole) > before
		})
	}
	var run struct{ Status, NodeID string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+a.Run, nil, &run, Strong...)
	if run.Status != "running" {
		t.Fatalf("the run is %s while its log was read, want running", run.Status)
	}
	// The stream of each node tells what is written as it is written.
	height, _ := b.Nodes[0].Ledger().Head()
	for on := range b.Nodes {
		ctx, cancel := context.WithTimeout(t.Context(), settle)
		lines := 0
		err := follow(ctx, b, on, of, height, func(f frame) bool {
			if strings.Contains(f.data, "heartbeat.run.log") && strings.Contains(f.data, a.Run) && strings.Contains(f.data,
				"of the run") {
				lines++
			}
			return lines < 3
		})
		if cancel(); err != nil || lines < 3 {
			t.Errorf("the stream of n%d tells %d pieces of the log, %v", on+1, lines, err)
		}
	}
	for on := range b.Nodes {
		var me struct{ ID string }
		b.Must(on, "GET", "/api/agents/me", nil, &me, "Authorization", "Bearer "+token)
		if me.ID != a.ID {
			t.Errorf("the run's token speaks for %q on n%d, want %q", me.ID, on+1, a.ID)
		}
	}

	b.Must(2, "POST", "/api/heartbeat-runs/"+a.Run+"/cancel", nil, nil, Strong...)
	b.Until("the run has ended", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+a.Run, nil, &run, Strong...)
		return run.Status == "cancelled"
	})
	b.Idle()
	b.Heads()
	for on := range b.Nodes {
		got, err := b.Call(on, "GET", "/api/agents/me", nil, nil, "Authorization", "Bearer "+token)
		if err != nil || got.Status != 401 {
			t.Errorf("the token of a run that ended, on n%d: %v %d %s, want 401", on+1, err, got.Status, got.Body)
		}
		got, err = b.Call(on, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Late"}, nil,
			"Authorization", "Bearer "+token)
		if err != nil || got.Status != 401 {
			t.Errorf("a write with the token of a run that ended, on n%d: %v %d %s, want 401", on+1, err, got.Status, got.Body)
		}
	}
	// All nodes have the same log in the end, and what was read on the way is its beginning.
	logs := make([]string, len(b.Nodes))
	for on := range b.Nodes {
		for offset := int64(0); ; {
			var p page
			b.Must(on, "GET", fmt.Sprintf("/api/heartbeat-runs/%s/log?offset=%d", a.Run, offset), nil, &p)
			logs[on] += p.Content
			if p.NextOffset == nil {
				break
			}
			offset = *p.NextOffset
		}
		if logs[on] != logs[0] {
			t.Errorf("n%d and n1 have different logs of %d and %d bytes", on+1, len(logs[on]), len(logs[0]))
		}
	}
	if !strings.HasPrefix(logs[0], whole) || !strings.Contains(whole, "line 1 of the run") {
		t.Errorf("what was read on the way is not the beginning of the log:\n%.2000s\n--- the log:\n%.2000s", whole, logs[0])
	}
}

// canaries are secrets of every kind, by what they are.
type canaries map[string]string

func (c canaries) look(t *testing.T, where, text string) {
	t.Helper()
	for what, secret := range c {
		if secret == "" {
			t.Fatalf("no canary for the %s", what)
		}
		if at := strings.Index(text, secret); at >= 0 {
			before := text[max(0, at-200):at]
			t.Errorf("%s shows the %s, after: …%s", where, what, before)
			delete(c, what) // once is enough
		}
	}
}

// No secret is in a log line, an answer to a GET, a command line, what a run
// wrote, or on a disk.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	b := Mesh(t, 3, working(dir))
	w := makeWorldOf(t, b, b.Company("Acme"))
	of := w["companyId"]
	secrets := canaries{}
	env := map[string]any{"OUT": out}
	script := "umask 077\n"
	for i, name := range []string{"OPENAI_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY",
		"AWS_ACCESS_KEY_ID", "GPG_PASSPHRASE",
		"SESSION_COOKIE", "SLACK_WEBHOOK_URL", "SERVICE_JWT", "DATABASE_CONNECTION_STRING"} {
		value := fmt.Sprintf("canary-%d-of-env-%x", i, time.Now().UnixNano())
		secrets["variable "+name] = value
		switch i % 3 {
		case 0:
			env[name] = value
		case 1:
			env[name] = map[string]any{"type": "plain", "value": value}
		case 2:
			var s struct{ ID string }
			b.Must(i%len(b.Nodes), "POST", "/api/companies/"+of+"/secrets",
				map[string]any{"name": name, "value": "canary-before-" + value}, &s)
			secrets["first value of "+name] = "canary-before-" + value
			b.Must((i+1)%len(b.Nodes), "POST", "/api/secrets/"+s.ID+"/rotate", map[string]any{"value": value}, nil, Strong...)
			env[name] = map[string]any{"type": "secret_ref", "secretId": s.ID, "version": "latest"}
			w["secretId"] = s.ID
		}
		script += fmt.Sprintf("echo \"%s is $%s\"; echo \"$%s\" >&2; printf 'in two: %%s' \"${%s%%??????}\"; "+
			"sleep 0.05; printf '%%s\\n' \"${%s#\"${%s%%??????}\"}\"\n", name, name, name, name, name, name)
	}
	script += `echo "token $PAPERCLIP_API_KEY"; env; printf %s "$PAPERCLIP_API_KEY" > $OUT/part; mv $OUT/part $OUT/token
while [ ! -e $OUT/go ]; do sleep 0.05; done; echo "$PAPERCLIP_API_KEY" >&2; exit 3`
	a, err := b.Hire(0, ledger.CompanyID(of), "Loud", map[string]any{"command": "/bin/sh", "args": []string{"-c", script},
		"env": env})
	if err != nil {
		t.Fatal(err)
	}
	secrets["agent key"] = a.Key
	var join struct{ Token string }
	b.Must(1, "POST", "/api/v1/mesh/tokens", map[string]any{}, &join)
	secrets["join token"] = join.Token
	if err := b.Invoke(1, &a); err != nil {
		t.Fatal(err)
	}
	secrets["run token"] = readFile(b, filepath.Join(out, "token"))
	w["agents"], w["agentId"], w["runId"], w["keyId"] = a.ID, a.ID, a.Run, a.KeyID

	// Use them, and misuse them: errors are where secrets leak.
	for on := range b.Nodes {
		for _, bearer := range []string{secrets["agent key"], secrets["run token"], secrets["join token"],
			secrets["run token"] + "x"} {
			if _, err := b.Call(on, "GET", "/api/agents/me", nil, nil, "Authorization", "Bearer "+bearer); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Call(on, "POST", "/api/companies", []byte(`{"name":`), nil, "Authorization",
				"Bearer "+bearer); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Call(on, "GET", "/api/companies/"+of+"/events/ws?token="+bearer, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Must(2, "PATCH", "/api/agents/"+a.ID, map[string]any{"title": "Louder", "adapterConfig": map[string]any{
		"command": "/bin/sh", "args": []string{"-c", script}, "env": env}}, nil, Strong...)

	crawl := func(when string) {
		t.Helper()
		for on := range b.Nodes {
			for _, r := range allRoutes(t, b) {
				if r.Method != "GET" || strings.Contains(r.Path, "/events") && (strings.HasPrefix(r.Path, "/api/companies") ||
					strings.HasPrefix(r.Path, "/api/v1/topics") || strings.HasPrefix(r.Path, "/api/v1/ipc")) { // streams do not end
					continue
				}
				path := w.fill(r.Path, "")
				if strings.HasSuffix(path, "/search") {
					path += "?q=canary"
				}
				if strings.HasSuffix(path, "/ledger/entries") {
					path += "?limit=1000"
				}
				for _, as := range [][]string{nil, a.As()} {
					got, err := b.Call(on, "GET", path, nil, nil, as...)
					if err != nil {
						t.Fatal(err)
					}
					secrets.look(t, fmt.Sprintf("GET %s on n%d (%s)", r.Path, on+1, when), string(got.Body)+fmt.Sprint(got.Header))
				}
			}
			got := b.Must(on, "GET", "/metrics", nil, nil)
			secrets.look(t, "/metrics", string(got.Body))
			var p struct{ Content string }
			b.Must(on, "GET", "/api/heartbeat-runs/"+a.Run+"/log", nil, &p)
			secrets.look(t, "the run's log", p.Content)
			if !strings.Contains(p.Content, "DB_PASSWORD is ") {
				t.Errorf("the run's log is not there: %q", p.Content)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			frames := 0
			_ = follow(ctx, b, on, ledger.CompanyID(of), 0, func(f frame) bool { // it ends a moment after the first
				if frames++; frames == 1 {
					time.AfterFunc(300*time.Millisecond, cancel)
				}
				secrets.look(t, "the stream of events", f.data)
				return true
			})
			cancel()
			if frames == 0 {
				t.Error("no events were told")
			}
		}
	}
	crawl("while it runs")
	children := 0
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range entries {
		line, err := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline"))
		if err != nil {
			continue // no process, or it is gone
		}
		if strings.Contains(string(line), out) || strings.Contains(string(line), "run-shim") || strings.Contains(string(line),
			"$PAPERCLIP_API_KEY") {
			children++
		}
		secrets.look(t, "the command line of process "+p.Name(), string(line))
	}
	if children < 2 {
		t.Errorf("%d command lines of shims and children were found, want at least 2", children)
	}

	if err := os.WriteFile(filepath.Join(out, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Until("the run has failed", func() bool {
		var run struct{ Status string }
		b.Must(0, "GET", "/api/heartbeat-runs/"+a.Run, nil, &run, Strong...)
		return run.Status == "failed"
	})
	b.Idle()
	b.Heads()
	crawl("after it")
	for i, l := range b.Logs {
		text := l.String()
		if !strings.Contains(text, "request") {
			t.Errorf("n%d has logged nothing", i+1)
		}
		secrets.look(t, fmt.Sprintf("the log of n%d", i+1), text)
	}

	var uses []struct{ HeartbeatRunID, Outcome string }
	b.Must(0, "GET", "/api/secrets/"+w["secretId"]+"/access-events", nil, &uses, Strong...)
	if len(uses) != 1 || uses[0].HeartbeatRunID != a.Run || uses[0].Outcome != "success" {
		t.Errorf("the uses of a secret are %+v", uses)
	}

	// Nothing of it is on a disk as it is: not in the log, the state, the run's own log.
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // nodes at work take files away
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		files++
		secrets.look(t, strings.TrimPrefix(path, dir), string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 9 {
		t.Errorf("%d files were looked at, want some of each node", files)
	}
}
