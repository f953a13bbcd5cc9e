package main

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Events are printed as sentences with agents' names.
func TestEventsAreReadable(t *testing.T) {
	t.Parallel()
	names := map[string]string{"b": "Bob"}
	for payload, want := range map[string]string{
		`{"actorType": "user", "actorId": "ann", "action": "issue.updated", "entityType": "issue", "entityId": ` +
			`"7", "runId": null}`: "user ann issue.updated issue 7",
		`{"agentId": "b", "runId": "9", "status": "running", "error": null}`: "Bob running run 9",
		`{"agentId": "c", "runId": "9", "chunk": "two\nlines"}`:              "c two lines run 9",
		`{}`:       "",
		`"moon"`:   `"moon"`,
		`nonsense`: "nonsense",
	} {
		if got := happened([]byte(payload), names); got != want {
			t.Errorf("%s reads %q, want %q", payload, got, want)
		}
	}
}

// A line of the log says in a few words what was done: the tools that were called, or a
// new state.
func TestDetailsAreTold(t *testing.T) {
	t.Parallel()
	for details, want := range map[string]string{
		`{"calls": [{"tool": "paperclipMe", "status": 200}, {"tool": "paperclipCreateIssue", "status": 401}], ` +
			`"omitted": 3}`: "paperclipMe 200, paperclipCreateIssue 401, 3 more",
		`{"identifier": "ACM-8", "status": "blocked", "changes": {"status": {"from": "todo", "to": "blocked"}, ` +
			`"statusVersion": {"from": 1, "to": 2}, "x": {"from": {}, "to": 2}}}`: "ACM-8 status todo → blocked",
		`{"name": "Tok", "version": 2}`: "Tok",
		`null`:                          "",
	} {
		var o any
		if err := json.Unmarshal([]byte(details), &o); err != nil {
			t.Fatal(err)
		}
		if got := cli.InShort(o); got != want {
			t.Errorf("%s tells %q, want %q", details, got, want)
		}
	}
}
