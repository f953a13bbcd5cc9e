package testkit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An agent's run delegates a sub-issue, its assignment wakes another agent, and what that
// run costs stops the agent at its budget: each node names every link of the chain, and all
// answer the same.
func TestEveryNodeSaysWhyABudgetStopped(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	ada := b.at(b.staff(of, "Ada", "pm", ""))
	bob := b.staff(of, "Bob", "engineer", "")
	top := b.Issue(1, of, "Close the books")
	var sub struct{ ID, Identifier string }
	b.Must(1, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Count the invoices",
		"parentId": top, "assigneeAgentId": bob.ID, "status": "todo"}, &sub, ada.As(b.Seen()...)...)
	b.Until("the assignment wakes Bob", func() bool {
		for _, r := range b.runsOf(2, of, bob.ID) {
			bob.Run = r.ID
			return r.Status == "running"
		}
		return false
	})
	b.Must(0, "PATCH", "/api/agents/"+bob.ID+"/budgets", map[string]any{"budgetMonthlyCents": 10}, nil)
	if err := b.spend(2, of, bob, 12, "heartbeatRunId", bob.Run, "issueId", sub.ID); err != nil {
		t.Fatal(err)
	}
	var incident, approval string
	for _, row := range b.fields(1, "/api/companies/"+string(of)+"/budgets/overview")["activeIncidents"].([]any) {
		if row := row.(map[string]any); row["thresholdType"] == "hard" {
			incident, approval = row["id"].(string), fmt.Sprint(row["approvalId"])
		}
	}
	var told []string
	b.Until("all nodes tell the same story", func() bool {
		told = b.edgesOf(0, "/api/v1/why/run:"+bob.Run)
		for on := range b.Nodes {
			if !slices.Equal(told, b.edgesOf(on, "/api/v1/why/run:"+bob.Run)) {
				return false
			}
		}
		return true
	})
	cost := ""
	for _, e := range told {
		if from, ok := strings.CutSuffix(e, " causes incident:"+incident); ok {
			cost = from
		}
	}
	for _, link := range []string{
		"incident:" + incident + " inhibits run:" + bob.Run, // the stop
		"issue:" + sub.ID + " triggered_by run:" + bob.Run,  // the wake
		"issue:" + top + " causes issue:" + sub.ID,          // the delegation
		"run:" + ada.Run + " causes issue:" + sub.ID,
		"user:local-board causes run:" + ada.Run,
		"run:" + bob.Run + " causes " + cost,
		"issue:" + sub.ID + " enables " + cost,
	} {
		if !slices.Contains(told, link) {
			t.Errorf("the story lacks %s in\n%s", link, strings.Join(told, "\n"))
		}
	}
	for on := range b.Nodes {
		after := b.edgesOf(on, "/api/v1/effects/"+sub.Identifier)
		for _, link := range []string{"incident:" + incident + " inhibits agent:" + bob.ID, "incident:" + incident +
			" triggered_by approval:" + approval} {
			if !slices.Contains(after, link) {
				t.Errorf("n%d: effects lack %s in\n%s", on+1, link, strings.Join(after, "\n"))
			}
		}
		if way := b.fields(on, "/api/v1/path?from="+top+"&to=approval:"+approval); way["direction"] != "forward" {
			t.Errorf("n%d: from the issue to the question for more money: %v", on+1, way)
		}
	}
}

// edgesOf reads the edges of a walk, as "from kind to".
func (b *Bed) edgesOf(on int, path string) (edges []string) {
	b.t.Helper()
	for _, e := range b.fields(on, path)["edges"].([]any) {
		e := e.(map[string]any)
		edges = append(edges, fmt.Sprint(e["from"], " ", e["kind"], " ", e["to"]))
	}
	return edges
}
