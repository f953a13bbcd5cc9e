package testkit

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// gitRepo is a repository with one commit on main.
func gitRepo(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	repo := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"},
			args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return repo
}

type operation struct {
	ID, Phase, Status, Command, Cwd, Error, StdoutExcerpt, StderrExcerpt, LogSha256, HeartbeatRunID string
	ExitCode                                                                                        *int
}

// The commands of a project's workspaces run where its runs do: before the first
// run of each, and when one is closed. What they write is in a log, without
// secrets; what fails ends the run, or keeps the tree.
func TestCommandsOfWorkspaces(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-the-project-4711"
	repo, marks := gitRepo(t), t.TempDir()
	work, folder := working(t.TempDir()), ""
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i > 0 {
			c.Adapters = map[string]scheduler.Adapter{} // it carries out nothing
		} else {
			folder = filepath.Join(c.Dir, "runs")
		}
	})
	of := b.Company("Acme")
	if err := os.MkdirAll(filepath.Join(folder, "another-company"), 0o700); err != nil {
		t.Fatal(err)
	}
	mark := func(name string) string { return filepath.Join(marks, name) }
	setup := `echo "setup $PROJECT_TOKEN in $PWD as ${AGENT_TOKEN-nobody}"; echo "$PROJECT_TOKEN" > ` + mark("setup") +
		`; echo x >> ` + mark("times") + `; sleep 300 & `
	var p struct {
		ID               string
		PrimaryWorkspace struct{ ID string }
	}
	policy := func(more map[string]any) map[string]any {
		strategy := map[string]any{"type": "git_worktree"}
		for k, v := range more {
			strategy[k] = v
		}
		return map[string]any{"enabled": true, "defaultMode": "isolated_workspace", "workspaceStrategy": strategy}
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"env": map[string]any{"PROJECT_TOKEN": canary},
		"executionWorkspacePolicy": policy(
			map[string]any{"provisionCommand": `echo "$PAPERCLIP_WORKSPACE_BRANCH" > provisioned; ls ` + folder +
				` > ` + mark("names") + `; test "$PAPERCLIP_API_KEY" = ""`, "teardownCommand": "cp provisioned " + mark("torn")}),
		"workspace": map[string]any{"name": "main", "cwd": repo, "isPrimary": true, "setupCommand": setup,
			"cleanupCommand": "test -e " + mark("clean")}}, &p)
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh", "args": []string{"-c", "cat provisioned"},
		"env": map[string]any{"AGENT_TOKEN": "of the agent"}})
	if err != nil {
		t.Fatal(err)
	}
	type run struct{ ID, RunID, Status, Error, ErrorCode, StdoutExcerpt string }
	assign := func(title string) (id string) {
		var row struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": title, "status": "todo",
			"projectId": p.ID, "assigneeAgentId": a.ID}, &row)
		return row.ID
	}
	ended := func(issue string) (last run) {
		b.Until("the run of the issue ended", func() bool {
			var runs []run
			b.Must(0, "GET", "/api/issues/"+issue+"/runs", nil, &runs)
			if len(runs) == 0 {
				return false
			}
			b.Must(0, "GET", "/api/heartbeat-runs/"+runs[len(runs)-1].RunID, nil, &last)
			return last.Status != "running" && last.Status != "queued"
		})
		return last
	}
	one := assign("Fix the door")
	if r := ended(one); r.Status != "succeeded" || !strings.Contains(r.StdoutExcerpt, "ACM-1-fix-the-door") {
		t.Fatalf("the run is %+v", r)
	}
	if got := readFile(b, mark("names")); strings.Contains(got, "another-company") {
		t.Errorf("a command of a workspace sees %q of the node's folder of runs", got)
	}
	if got := readFile(b, mark("setup")); got != canary {
		t.Errorf("setup got the project's variable as %q", got)
	}
	type space struct {
		ID, Cwd, Status, CleanupReason string
		Config                         struct{ ProvisionCommand, TeardownCommand, CleanupCommand *string }
	}
	var spaces []space
	b.Must(0, "GET", "/api/companies/"+string(of)+"/execution-workspaces?issueId="+one, nil, &spaces)
	if len(spaces) != 1 || spaces[0].Config.ProvisionCommand == nil || spaces[0].Config.CleanupCommand == nil {
		t.Fatalf("workspaces are %+v", spaces)
	}
	path := "/api/execution-workspaces/" + spaces[0].ID
	operations := func() (ops []operation) {
		b.Must(1, "GET", path+"/workspace-operations", nil, &ops)
		return ops
	}
	ops := operations()
	if len(ops) != 2 || ops[1].Status != "succeeded" || ops[1].Command != setup || ops[1].Cwd != spaces[0].Cwd ||
		ops[1].Phase != "workspace_provision" ||
		ops[1].ExitCode == nil || *ops[1].ExitCode != 0 || len(ops[1].LogSha256) != 64 {
		t.Fatalf("operations are %+v", ops)
	}
	for _, node := range []int{0, 1} {
		var log struct{ OperationID, Content string }
		b.Must(node, "GET", "/api/workspace-operations/"+ops[1].ID+"/log", nil, &log)
		if !strings.Contains(log.Content, "in "+spaces[0].Cwd+" as nobody") || strings.Contains(log.Content, canary) {
			t.Errorf("node %d shows the log %q", node, log.Content)
		}
	}
	if strings.Contains(ops[1].StdoutExcerpt, canary) || !strings.Contains(ops[1].StdoutExcerpt, "setup ***") {
		t.Errorf("the excerpt is %q", ops[1].StdoutExcerpt)
	}
	var ofRun []operation
	b.Must(0, "GET", "/api/heartbeat-runs/"+ops[0].HeartbeatRunID+"/workspace-operations", nil, &ofRun)
	if len(ofRun) != 2 {
		t.Errorf("the run has %d operations, want 2", len(ofRun))
	}
	b.Must(0, "POST", "/api/agents/"+a.ID+"/wakeup", map[string]any{"payload": map[string]any{"issueId": one}}, nil)
	b.Idle()
	if times := readFile(b, mark("times")); times != "x" {
		t.Errorf("the setup ran %d times for one workspace", len(times)/2)
	}

	// Cleanup that fails keeps the tree, and can be tried again.
	state := func() string {
		var now space
		b.Must(0, "GET", path, nil, &now)
		spaces[0] = now
		return spaces[0].Status
	}
	b.Until("the workspace is closed", func() bool {
		var ready struct{ State string }
		b.Must(0, "GET", path+"/close-readiness", nil, &ready)
		if ready.State != "ready" {
			return false
		}
		a, err := b.Ask(0, "PATCH", path, map[string]any{"status": "archived"}, nil)
		if err != nil || a.Status != 200 && a.Status != 409 { // 409: the agent's next run began meanwhile
			t.Fatalf("close the workspace: %d %s, %v", a.Status, a.Body, err)
		}
		return a.Status == 200
	})
	b.Until("cleaning up failed", func() bool { return state() == "cleanup_failed" })
	if _, err := os.Stat(spaces[0].Cwd); err != nil || !strings.Contains(spaces[0].CleanupReason,
		"cleanupCommand failed: it exited with code 1") {
		t.Errorf("tree: %v; reason %q", err, spaces[0].CleanupReason)
	}
	if err := os.WriteFile(mark("clean"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tree := spaces[0].Cwd
	b.Must(0, "PATCH", path, map[string]any{"status": "archived"}, nil)
	b.Until("the tree is gone", func() bool {
		_, err := os.Stat(tree)
		return state() == "archived" && spaces[0].Cwd == "" && os.IsNotExist(err)
	})
	if got := readFile(b, mark("torn")); got != "ACM-1-fix-the-door" {
		t.Errorf("teardown found %q", got)
	}

	// A setup that fails ends the run; one that is in the way of a cancelled run ends.
	b.Must(0, "PATCH", "/api/projects/"+p.ID+"/workspaces/"+p.PrimaryWorkspace.ID,
		map[string]any{"setupCommand": "echo no such thing >&2; exit 7"}, nil)
	if r := ended(assign("Break it")); r.Status != "failed" || r.ErrorCode != "workspace_failed" ||
		!strings.Contains(r.Error, "setupCommand failed: it exited with code 7") {
		t.Errorf("the run is %+v", r)
	}
	b.Idle()
	b.Must(0, "PATCH", "/api/projects/"+p.ID+"/workspaces/"+p.PrimaryWorkspace.ID,
		map[string]any{"setupCommand": "echo $$ > " + mark("pid") + "; sleep 3000"}, nil)
	slow := assign("Wait for it")
	b.Until("the setup began", func() bool { _, err := os.Stat(mark("pid")); return err == nil })
	var runs []run
	b.Must(0, "GET", "/api/issues/"+slow+"/runs", nil, &runs)
	b.Must(0, "POST", "/api/heartbeat-runs/"+runs[len(runs)-1].RunID+"/cancel", nil, nil)
	b.Until("the setup is gone", func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(readFile(b, mark("pid"))))
		return os.IsNotExist(err)
	})
	b.Idle()

	// Agents may say where work lies, and not what a node executes.
	for _, c := range []struct {
		body map[string]any
		want int
	}{
		{map[string]any{"name": "mine", "cwd": "/tmp/x"}, 201},
		{map[string]any{"name": "mine", "cwd": "/tmp/y", "setupCommand": "id"}, 403},
		{map[string]any{"name": "mine", "cwd": "/tmp/z",
			"runtimeConfig": map[string]any{"workspaceRuntime": map[string]any{"services": []any{map[string]any{"name": "x",
				"command": "id"}}}}}, 403},
	} {
		got, err := b.Ask(0, "POST", "/api/projects/"+p.ID+"/workspaces", c.body, nil, a.As()...)
		if err != nil || got.Status != c.want {
			t.Errorf("an agent's %v: %d %s, want %d", c.body, got.Status, got.Body, c.want)
		}
	}
}

// Services that the board declares run on the node that holds the workspace, are
// started again when they end, seen from every node, and gone when they are
// stopped, their workspace is closed, or their node is killed.
func TestServicesOfWorkspaces(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	work := working(t.TempDir())
	b := Mesh(t, 3, func(i int, c *node.Config) {
		if work(i, c); i != 1 {
			c.Adapters = map[string]scheduler.Adapter{}
		}
	})
	of := b.Company("Acme")
	mark := func(name string) string { return filepath.Join(folder, name) }
	var p struct {
		ID               string
		PrimaryWorkspace struct{ ID string }
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	web := "'" + self + "' serve-http"
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"workspace": map[string]any{"name": "main", "cwd": folder, "isPrimary": true,
			"runtimeConfig": map[string]any{"workspaceRuntime": map[string]any{
				"services": []any{
					map[string]any{"name": "Web", "command": "echo $$ >> " + mark("web") + "; exec " + web,
						"port": map[string]any{"type": "auto"}, "readiness": map[string]any{"type": "http", "intervalMs": 100}},
					map[string]any{"name": "Bad", "command": "echo x >> " + mark("bad") + "; exit 3",
						"readiness": map[string]any{"type": "none"}},
				},
				"jobs": []any{map[string]any{"name": "Count", "command": "echo counted $GREETING",
					"env": map[string]any{"GREETING": "hello"}}},
			}}}}, &p)
	type service struct {
		ID, ServiceName, Status, HealthStatus, URL, NodeID, Error, ProviderRef, DesiredState string
		Port                                                                                 int
		Restarts                                                                             int
	}
	type answer struct {
		Workspace struct{ RuntimeServices []service }
		Operation operation
	}
	path := "/api/projects/" + p.ID + "/workspaces/" + p.PrimaryWorkspace.ID
	byName := func(on int) map[string]service {
		var list []struct {
			ID              string
			RuntimeServices []service
		}
		b.Must(on, "GET", "/api/projects/"+p.ID+"/workspaces", nil, &list, b.Seen()...)
		out := map[string]service{}
		for _, s := range list[0].RuntimeServices {
			out[s.ServiceName] = s
		}
		return out
	}
	var got answer
	b.Must(1, "POST", path+"/runtime-services/start", map[string]any{}, &got, b.Seen()...)
	if len(got.Workspace.RuntimeServices) != 2 || got.Operation.Status != "succeeded" {
		t.Fatalf("starting answers %+v", got)
	}
	b.Until("the service is ready", func() bool {
		s := byName(2)["Web"]
		return s.Status == "running" &&
			s.HealthStatus == "healthy"
	})
	one := byName(0)["Web"]
	if one.Port == 0 || one.URL == "" || one.NodeID == "" || readFile(b, mark("web")) != one.ProviderRef {
		t.Errorf("the service is %+v", one)
	}
	b.Until("its log is read from another node", func() bool {
		var log struct{ Content string }
		b.Must(0, "GET", "/api/runtime-services/"+one.ID+"/log", nil, &log, b.Seen()...)
		return strings.Contains(log.Content, "serving")
	})
	// One that ends is started again.
	gone := func(pid string) bool { _, err := os.Stat("/proc/" + pid); return os.IsNotExist(err) }
	if err := exec.Command("kill", "-9", one.ProviderRef).Run(); err != nil {
		t.Fatal(err)
	}
	b.Until("the service runs again", func() bool {
		s := byName(0)["Web"]
		return s.Status == "running" && s.ProviderRef != one.ProviderRef && s.Restarts == 1
	})

	// A command that ends by itself is an operation.
	b.Must(0, "POST", path+"/runtime-commands/run", map[string]any{"workspaceCommandId": "count"}, &got, b.Seen()...)
	if got.Operation.Status != "running" {
		t.Errorf("the command is %+v", got.Operation)
	}
	b.Until("the command has run", func() bool {
		var log struct{ Content string }
		a, err := b.Call(2, "GET", "/api/workspace-operations/"+got.Operation.ID+"/log", nil, &log)
		return err == nil && a.Status == 200 && strings.Contains(log.Content, "counted hello")
	})
	for body, want := range map[string]int{`{"workspaceCommandId":"nothing"}`: 422, `{"serviceIndex":7}`: 422,
		`{"serviceIndex":-1}`: 400, `{"unknown":1}`: 400} {
		var in map[string]any
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		if a, err := b.Ask(0, "POST", path+"/runtime-services/start", in, nil); err != nil || a.Status != want {
			t.Errorf("%s: %d %s, want %d", body, a.Status, a.Body, want)
		}
	}

	// Stopped, nothing is left of it.
	pid := byName(0)["Web"].ProviderRef
	b.Must(2, "POST", path+"/runtime-services/stop", map[string]any{"serviceIndex": 0}, nil, b.Seen()...)
	b.Until("the service is gone", func() bool { return byName(2)["Web"].Status == "stopped" && gone(pid) })
	if s := byName(0)["Bad"]; s.DesiredState != "running" || s.Status == "running" && s.Restarts > 6 {
		t.Errorf("the other service is %+v", s)
	}
	b.Must(2, "POST", path+"/runtime-services/stop", map[string]any{}, nil, b.Seen()...)
	b.Until("all are stopped", func() bool { return byName(2)["Bad"].Status == "stopped" })

	// In the workspace of an issue they end when it is closed; and when their node
	// is killed, at once.
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Look", "status": "todo",
		"projectId": p.ID, "assigneeAgentId": a.ID}, nil, b.Seen()...)
	var spaces []struct {
		ID, Status      string
		RuntimeServices []service
	}
	b.Until("the issue has a workspace", func() bool {
		b.Must(0, "GET", "/api/companies/"+string(of)+"/execution-workspaces", nil, &spaces, b.Seen()...)
		return len(spaces) == 1
	})
	b.Idle()
	path = "/api/execution-workspaces/" + spaces[0].ID
	first := func() (s service) {
		var w struct{ RuntimeServices []service }
		b.Must(0, "GET", path, nil, &w, b.Seen()...)
		if len(w.RuntimeServices) > 0 {
			s = w.RuntimeServices[0]
		}
		return s
	}
	b.Must(0, "POST", path+"/runtime-services/start", map[string]any{"workspaceCommandId": "web"}, nil, b.Seen()...)
	b.Until("the issue's service is ready", func() bool { return first().Status == "running" })
	pid = first().ProviderRef
	// It leads, so that who leads next has not heard of its lease.
	b.Until("the node with the service leads", func() bool {
		_, _ = b.Call(0, "POST", "/api/v1/mesh/raft/transfer", nil, nil)
		return b.Nodes[1].IsLeader()
	})
	b.Kill(1)
	b.Until("the killed node's service is gone", func() bool { return gone(pid) && first().Status == "stopped" })
	b.Restart(1)
	b.Until("it is back with its node", func() bool { return first().Status == "running" })
	pid = first().ProviderRef
	b.Until("the workspace can be closed", func() bool {
		var ready struct{ State string }
		b.Must(0, "GET", path+"/close-readiness", nil, &ready, b.Seen()...)
		return ready.State == "ready"
	})
	b.Must(0, "PATCH", path, map[string]any{"status": "archived"}, nil, b.Seen()...)
	b.Until("the closed workspace's service is gone", func() bool { return gone(pid) && first().Status == "stopped" })
}

// Services end with a pause of their company and with the emergency stop, as runs
// do; the reason is shown, and they begin again afterwards, those that nobody
// stopped meanwhile.
func TestServicesRestWithTheirCompany(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	mark := filepath.Join(folder, "pids")
	var p struct {
		ID               string
		PrimaryWorkspace struct{ ID string }
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"workspace": map[string]any{"name": "main", "cwd": folder, "isPrimary": true,
			"runtimeConfig": map[string]any{"workspaceRuntime": map[string]any{"services": []any{
				map[string]any{"name": "Web", "command": "sleep 3600 & echo $! >> " + mark + "; wait",
					"readiness": map[string]any{"type": "none"}},
			}}}}}, &p)
	path := "/api/projects/" + p.ID + "/workspaces/" + p.PrimaryWorkspace.ID + "/runtime-services/"
	type service struct{ Status, Error, DesiredState, ProviderRef string }
	web := func() service {
		var list []struct{ RuntimeServices []service }
		b.Must(0, "GET", "/api/projects/"+p.ID+"/workspaces", nil, &list, b.Seen()...)
		return list[0].RuntimeServices[0]
	}
	pids := func() []string { return strings.Fields(readFile(b, mark)) }
	lives := func(pid string) bool { _, err := os.Stat("/proc/" + pid); return err == nil }
	b.Must(0, "POST", path+"start", map[string]any{}, nil, b.Seen()...)
	b.Until("the service runs", func() bool { return web().Status == "running" && len(pids()) == 1 })

	company := ledger.CompanyID("/api/companies/" + string(of))
	for n, c := range []struct{ name, rest, wake, says string }{
		{"a pause", string(company) + "/pause", string(company) + "/resume", "company is paused"},
		{"the emergency stop", "/api/v1/mesh/stop", "/api/v1/mesh/resume", "Everything was stopped"},
	} {
		b.Must(0, "POST", c.rest, map[string]any{}, nil, b.Seen()...)
		b.Until("the service has ended with "+c.name, func() bool {
			s := web()
			return s.Status == "stopped" && strings.Contains(s.Error, c.says) && s.DesiredState == "running" && !lives(pids()[n])
		})
		if a, err := b.Ask(0, "POST", path+"start", map[string]any{}, nil); err != nil || a.Status != 409 ||
			!strings.Contains(string(a.Body), c.says) {
			t.Errorf("starting one under %s: %d %s, want 409", c.name, a.Status, a.Body)
		}
		b.Must(0, "POST", c.wake, map[string]any{}, nil, b.Seen()...)
		b.Until("the service runs again after "+c.name, func() bool {
			return web().Status == "running" &&
				len(pids()) == n+2 && web().Error == ""
		})
	}
	b.Must(0, "POST", string(company)+"/pause", map[string]any{}, nil, b.Seen()...)
	b.Must(0, "POST", path+"stop", map[string]any{}, nil, b.Seen()...)
	b.Until("it is stopped for good", func() bool {
		s := web()
		return s.Status == "stopped" && s.DesiredState == "stopped" && !lives(pids()[2])
	})
}
