package testkit

import (
	"github.com/selvage-mesh/selvage/kit"
	"os"
	"path/filepath"
	"testing"

	"github.com/selvage-mesh/selvage/company/core"
)

// A budget stops two agents in the middle of their issues; when it is raised, both go
// on by themselves and end what they were at.
func TestARaisedBudgetLetsTheWorkGoOn(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of, out := b.Company("Acme"), t.TempDir()
	const script = `if [ ! -e $OUT/raised ]; then touch $OUT/$PAPERCLIP_TASK_ID; exec sleep 600; fi
curl -s -X PATCH -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H ` +
		`'Content-Type: application/json' \
 -d '{"status":"done"}' $PAPERCLIP_API_URL/api/issues/$PAPERCLIP_TASK_ID`
	var agents, issues []string
	for _, name := range []string{"Ada", "Bob"} {
		a, err := b.Hire(0, of, name, map[string]any{"command": "/bin/sh", "args": []string{"-c", script},
			"env": map[string]string{"OUT": out}})
		if err != nil {
			t.Fatal(err)
		}
		var i struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Of " + name, "status": "todo",
			"assigneeAgentId": a.ID}, &i)
		agents, issues = append(agents, a.ID), append(issues, i.ID)
	}
	for _, i := range issues {
		b.Until("both are at work", func() bool { _, err := os.Stat(filepath.Join(out, i)); return err == nil })
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/budgets/policies", map[string]any{"scopeType": "company",
		"scopeId": of, "windowKind": "calendar_month_utc", "amount": 10}, nil)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/cost-events", map[string]any{"agentId": agents[0], "provider": "p",
		"model": "m", "costCents": 11, "occurredAt": core.TimeOf(kit.Now(t)).String()}, nil)
	var rows []struct{ ID, Status string }
	b.Until("both are stopped", func() bool {
		b.Must(0, "GET", "/api/companies/"+string(of)+"/live-runs", nil, &rows)
		return len(rows) == 0
	})
	var why struct{ Diagnosis string }
	for _, i := range issues {
		b.Must(0, "GET", "/api/issues/"+i+"/diagnostics/blockers", nil, &why)
		if want := "The issue does not go on: paused by its budget, that of company Acme."; why.Diagnosis != want {
			t.Errorf("meanwhile it says %q, want %q", why.Diagnosis, want)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "raised"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var all struct {
		ActiveIncidents []struct{ ID string }
	}
	b.Must(0, "GET", "/api/companies/"+string(of)+"/budgets/overview", nil, &all)
	if len(all.ActiveIncidents) != 1 {
		t.Fatalf("%d incidents", len(all.ActiveIncidents))
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/budget-incidents/"+all.ActiveIncidents[0].ID+"/resolve",
		map[string]any{"action": "raise_budget_and_resume", "amount": 100}, nil)
	for _, i := range issues {
		var row struct{ Status string }
		b.Until("both are done", func() bool {
			b.Must(0, "GET", "/api/issues/"+i, nil, &row)
			return row.Status == "done"
		})
	}
}
