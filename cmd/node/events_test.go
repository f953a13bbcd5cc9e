package main

import "testing"

// Events are sentences for people, in which agents have names.
func TestEventsAreReadable(t *testing.T) {
	t.Parallel()
	names := map[string]string{"b": "Bob"}
	for payload, want := range map[string]string{
		`{"actorType": "user", "actorId": "ann", "action": "issue.updated", "entityType": "issue", "entityId": "7", "runId": null}`: "user ann issue.updated issue 7",
		`{"agentId": "b", "runId": "9", "status": "running", "error": null}`:                                                        "Bob running run 9",
		`{"agentId": "c", "runId": "9", "chunk": "two\nlines"}`:                                                                     "c two lines run 9",
		`{}`:       "",
		`"moon"`:   `"moon"`,
		`nonsense`: "nonsense",
	} {
		if got := happened([]byte(payload), names); got != want {
			t.Errorf("%s reads %q, want %q", payload, got, want)
		}
	}
}
