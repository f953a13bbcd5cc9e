package testkit

import (
	"os"
	"strings"
	"testing"
)

// Project env overrides agent env, and what the runtime sets (PAPERCLIP_*) overrides
// both, secret or not.
func TestProjectEnvOverridesAgentEnvAndTheRuntimeBoth(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	var p struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"env": map[string]any{"BOTH": "project", "PROJECTS": "project",
			"PAPERCLIP_RUN_ID": "project", "PAPERCLIP_AGENT_ID": "project", "PAPERCLIP_OWN": "project"}}, &p)
	a, err := b.Hire(0, of, "Ada", map[string]any{"command": "/bin/sh",
		"args": []string{"-c",
			`echo "[$BOTH $AGENTS $PROJECTS $PAPERCLIP_RUN_ID $PAPERCLIP_AGENT_ID $PAPERCLIP_COMPANY_ID $PAPERCLIP_OWN]"`},
		"env": map[string]any{"BOTH": "agent", "AGENTS": "agent", "PAPERCLIP_RUN_ID": "agent",
			"PAPERCLIP_COMPANY_ID": "agent", "PAPERCLIP_API_KEY": "a-key-of-its-own"}})
	if err != nil {
		t.Fatal(err)
	}
	var issue struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Look", "status": "todo",
		"projectId": p.ID, "assigneeAgentId": a.ID}, &issue)
	var run struct{ ID, Status, StdoutExcerpt string }
	b.Until("the run ended", func() bool {
		var runs []struct{ RunID string }
		b.Must(0, "GET", "/api/issues/"+issue.ID+"/runs", nil, &runs)
		if len(runs) == 0 {
			return false
		}
		b.Must(0, "GET", "/api/heartbeat-runs/"+runs[0].RunID, nil, &run)
		return run.Status == "succeeded" || run.Status == "failed"
	})
	if want := "[project agent project " + run.ID + " " + a.ID + " " + string(of) +
		" ]"; !strings.Contains(run.StdoutExcerpt, want) {
		t.Errorf("the run is %s and wrote %q, want %q", run.Status, run.StdoutExcerpt, want)
	}
}

// A command of a workspace that is at work when everything is stopped ends with all
// that it started, and none begins while the stop stands.
func TestAStopEndsCommandsOfWorkspaces(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of, folder := b.Company("Acme"), t.TempDir()
	pids := folder + "/pids"
	var p struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"workspace": map[string]any{"name": "main", "cwd": folder, "isPrimary": true,
			"setupCommand": "trap '' TERM; sleep 300 & echo $$ $! >>" + pids + "; wait; sleep 300"}}, &p)
	a, err := b.Hire(0, of, "Ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Look", "status": "todo",
		"projectId": p.ID, "assigneeAgentId": a.ID}, nil)
	gone := func(pid string) bool { _, err := os.Stat("/proc/" + pid); return os.IsNotExist(err) }
	at := strings.Fields(readFile(b, pids))
	if len(at) != 2 || gone(at[0]) || gone(at[1]) {
		t.Fatalf("the command is not at work: %v", at)
	}
	b.Must(0, "POST", "/api/v1/mesh/stop", map[string]any{}, nil)
	b.Until("the command and its child are gone", func() bool { return gone(at[0]) && gone(at[1]) })
	if got := strings.Fields(readFile(b, pids)); len(got) != 2 {
		t.Errorf("another began during the stop: %v", got)
	}
}
