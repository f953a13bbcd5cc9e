package main

import (
	"fmt"
	"strings"
	"testing"
)

// Timer runs without work are listed as one line, however many there were. A run that
// wrote something, failed or had an issue has its own line, and --all lists every run.
func TestIdleTimersAreFolded(t *testing.T) {
	run := func(n int, agent, source, status, liveness, issue string) string {
		return fmt.Sprintf(`{"id": "r%d", "agentId": %q, "status": %q, "invocationSource": %q, "livenessState": `+
			`%q, "contextSnapshot": {"issueId": %q}, "createdAt": "2020-01-01T00:00:00Z"}`, n, agent, status,
			source, liveness, issue)
	}
	idle := func(n int, agent string) string { return run(n, agent, "timer", "succeeded", "empty_response", "") }
	answering(t, map[string]string{
		"GET /api/companies":          oneCompany,
		"GET /api/companies/c/agents": `[{"id": "a", "name": "Ada"}, {"id": "b", "name": "Bob"}]`,
		"GET /api/v1/mesh/members":    `[]`,
		"GET /api/companies/c/heartbeat-runs": "[" + strings.Join([]string{
			idle(1, "a"), idle(2, "a"), idle(3, "a"), idle(4, "b"), run(5, "b", "timer", "succeeded", "advanced", ""),
			run(6, "b", "timer", "failed", "failed", ""), idle(7, "b"), run(8, "b", "timer", "succeeded", "empty_response", "i"),
			idle(9, "b"), idle(10, "b"),
		}, ",") + "]",
	})
	var shown []string
	status, out, talk := told(t, "run", "list")
	for line := range strings.Lines(out) {
		shown = append(shown, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"RUN AGENT STATUS SOURCE NODE CREATED WHY",
		"r1 Ada succeeded timer - 2020-01-01 3 timers that did nothing (--all lists them)",
		"r4 Bob succeeded timer - 2020-01-01 -",
		"r5 Bob succeeded timer - 2020-01-01 -",
		"r6 Bob failed timer - 2020-01-01 -",
		"r7 Bob succeeded timer - 2020-01-01 -",
		"r8 Bob succeeded timer - 2020-01-01 -",
		"r9 Bob succeeded timer - 2020-01-01 2 timers that did nothing (--all lists them)",
	}
	if got := strings.Join(shown, "\n"); status != 0 || got != strings.Join(want, "\n") {
		t.Errorf("run list ended with %d: %s%s, want\n%s", status, got, talk, strings.Join(want, "\n"))
	}
	if _, out, _ := told(t, "run", "list", "--all"); strings.Count(out, "\n") != 11 {
		t.Errorf("run list --all lists\n%s", out)
	}
}
