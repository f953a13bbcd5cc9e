package testkit

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// What an agent had begun ends with what ends its runs, as fast as they do: a tool in
// the sandbox and a command in a workspace, at a pause of the agent or of its company,
// at a hard stop of its budget, and when its run is cancelled. A tool of somebody else
// goes on beside them, until its version is revoked.
func TestAPauseEndsToolsAndCommands(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of, rests, folder := b.Company("Acme"), b.Company("Rests"), t.TempDir()
	for _, c := range []ledger.CompanyID{of, rests} {
		deployEver(t, b, c)
	}
	hire := func(c ledger.CompanyID, name string, run bool) Agent {
		a, err := b.Hire(0, c, name, map[string]any{"command": "/bin/sleep", "args": []string{"300"}})
		if err == nil && run {
			err = b.Invoke(0, &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	cases := []struct {
		name   string
		of     ledger.CompanyID
		reason string
		agent  Agent
		change func(a Agent)
	}{
		{"a pause", of, "agent_paused", hire(of, "Ada", false),
			func(a Agent) { b.Must(0, "POST", "/api/agents/"+a.ID+"/pause", map[string]any{}, nil) }},
		{"a pause of the company", rests, "company_paused", hire(rests, "Bob", false),
			func(Agent) { b.Must(0, "POST", "/api/companies/"+string(rests)+"/pause", map[string]any{}, nil) }},
		{"a hard stop", of, "budget_paused", hire(of, "Cid", false), func(a Agent) {
			b.Must(0, "POST", "/api/companies/"+string(of)+"/budgets/policies", map[string]any{"scopeType": "agent",
				"scopeId": a.ID, "windowKind": "lifetime", "amount": 5}, nil)
			if err := b.spend(0, of, a, 5); err != nil {
				t.Error(err)
			}
		}},
		{"the end of its run", of, "run_over", hire(of, "Dan", true),
			func(a Agent) { b.Must(0, "POST", "/api/heartbeat-runs/"+a.Run+"/cancel", map[string]any{}, nil) }},
		{"a revocation", of, "tool_revoked", hire(of, "Eve", false), func(Agent) {
			b.Must(0, "POST", "/api/companies/"+string(of)+"/tools/ever/versions/1/revoke", map[string]any{}, nil)
		}},
	}
	last := len(cases) - 1
	ends := make([]chan string, len(cases))
	for i, c := range cases {
		ends[i] = make(chan string, 1)
		go func() {
			a, err := b.Call(0, "POST", "/api/companies/"+string(c.of)+"/tools/ever/execute",
				map[string]any{"fuel": 100_000_000_000, "timeoutMs": 300_000}, nil, c.agent.As()...)
			ends[i] <- fmt.Sprint(a.Status, " ", string(a.Body), " ", err)
		}()
	}

	// A command that an agent asked for, and one that a person did.
	pids := folder + "/pids"
	job := func(name string) map[string]any {
		return map[string]any{"name": name, "command": "trap '' TERM; sleep 300 & echo " + name + " $$ $! >>" + pids +
			"; wait; sleep 300"}
	}
	var p, i struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Site",
		"workspace": map[string]any{"name": "main", "cwd": folder, "isPrimary": true,
			"runtimeConfig": map[string]any{"workspaceRuntime": map[string]any{"jobs": []any{job("mine"), job("theirs")}}}}}, &p)
	fay := hire(of, "Fay", false)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Build", "status": "todo",
		"projectId": p.ID, "assigneeAgentId": fay.ID}, &i)
	var spaces []struct{ ID string }
	b.Until("the issue is worked on", func() bool {
		b.Must(0, "GET", "/api/companies/"+string(of)+"/execution-workspaces?issueId="+i.ID, nil, &spaces, b.Seen()...)
		for _, r := range b.runsOf(0, of, fay.ID) {
			if fay.Run = r.ID; r.Status == "running" {
				return len(spaces) == 1
			}
		}
		return false
	})
	commands := "/api/execution-workspaces/" + spaces[0].ID + "/runtime-commands/run"
	b.Must(0, "POST", commands, map[string]any{"workspaceCommandId": "mine"}, nil, fay.As(b.Seen()...)...)
	b.Must(0, "POST", commands, map[string]any{"workspaceCommandId": "theirs"}, nil, b.Seen()...)
	at := map[string][]string{}
	b.Until("both commands are at work", func() bool {
		for line := range strings.Lines(readFile(b, pids)) {
			if f := strings.Fields(line); len(f) == 3 {
				at[f[0]] = f[1:]
			}
		}
		return len(at) == 2
	})
	gone := func(name string) bool {
		for _, pid := range at[name] {
			if _, err := os.Stat("/proc/" + pid); err == nil {
				return false
			}
		}
		return true
	}

	time.Sleep(500 * time.Millisecond)
	for i, c := range cases {
		select {
		case said := <-ends[i]:
			t.Fatalf("%s: the tool ended by itself: %s", c.name, said)
		default:
		}
	}
	told := func(i int) {
		t.Helper()
		c := cases[i]
		select {
		case said := <-ends[i]:
			if !strings.HasPrefix(said, "200 ") || !strings.Contains(said, `"code":"GovernanceDenied"`) ||
				!strings.Contains(said, c.reason) || !strings.Contains(said, `"exitCode":null`) {
				t.Errorf("%s: the tool ended with %s", c.name, said)
			}
		case <-time.After(settle):
			t.Errorf("%s: the tool goes on", c.name)
		}
	}
	for i, c := range cases[:last] {
		c.change(c.agent)
		told(i)
	}
	b.Must(0, "POST", "/api/agents/"+fay.ID+"/pause", map[string]any{}, nil)
	b.Until("the agent's command and its child are gone", func() bool { return gone("mine") })
	if gone("theirs") {
		t.Error("the command that a person asked for ended with the agent's")
	}
	select {
	case said := <-ends[last]:
		t.Errorf("the tool of another agent ended with them: %s", said)
	default:
	}
	cases[last].change(cases[last].agent)
	told(last)
}
