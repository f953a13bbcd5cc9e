package testkit

import (
	"encoding/json"
	"fmt"
	"github.com/selvage-mesh/selvage/kit"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
)

// The stories and gates of Paperclip's specification, one test each, over HTTP
// against meshes of real nodes: TestSpec_<section>_<number>_<what>.

// staff hires an agent with a role, a manager ("" for none) and a key.
func (b *Bed) staff(of ledger.CompanyID, name, role, manager string) Agent {
	b.t.Helper()
	body := map[string]any{"name": name, "role": role, "adapterType": "process",
		"adapterConfig": map[string]any{"command": "/bin/true"}}
	if manager != "" {
		body["reportsTo"] = manager
	}
	var row, key struct{ ID, Token string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", body, &row, Strong...)
	b.Must(0, "POST", "/api/agents/"+row.ID+"/keys", map[string]any{"name": "test"}, &key, Strong...)
	return Agent{ID: row.ID, Name: name, KeyID: key.ID, Key: key.Token}
}

// at invokes an agent and gives it back with its run.
func (b *Bed) at(a Agent) Agent {
	b.t.Helper()
	if err := b.Invoke(0, &a); err != nil {
		b.t.Fatal(err)
	}
	return a
}

// fields reads what a path shows.
func (b *Bed) fields(on int, path string, headers ...string) map[string]any {
	b.t.Helper()
	var out map[string]any
	b.Must(on, "GET", path, nil, &out, append(headers, b.Seen()...)...)
	return out
}

// refused wants a status and returns the answer's error.
func (b *Bed) refused(on, status int, method, path string, body any, headers ...string) string {
	b.t.Helper()
	a, err := b.Ask(on, method, path, body, nil, append(headers, b.Seen()...)...)
	var out struct{ Error string }
	if err != nil || a.Status != status || json.Unmarshal(a.Body, &out) != nil || out.Error == "" {
		b.t.Fatalf("%s %s on n%d: %v %d %s, want %d with an error", method, path, on+1, err, a.Status, a.Body, status)
	}
	return out.Error
}

// spend reports a cost in the agent's name, by its own key.
func (b *Bed) spend(on int, of ledger.CompanyID, a Agent, cents int, more ...any) error {
	body := map[string]any{"agentId": a.ID, "provider": "openai", "model": "gpt-5", "inputTokens": 10, "outputTokens": 5,
		"costCents":  cents,
		"occurredAt": kit.Now(b.t).UTC().Format("2006-01-02T15:04:05.000Z")}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	_, err := b.Do(on, "POST", "/api/companies/"+string(of)+"/cost-events", body, nil, a.As(b.Seen()...)...)
	return err
}

// runsOf lists an agent's runs, newest first.
func (b *Bed) runsOf(on int, of ledger.CompanyID, agent string) (rows []struct{ ID, Status, InvocationSource string }) {
	b.t.Helper()
	b.Must(on, "GET", "/api/companies/"+string(of)+"/heartbeat-runs?agentId="+agent, nil, &rows, b.Seen()...)
	return rows
}

// It catches two holders of one issue, and a refusal that does not say who holds it.
func TestSpec_17_2_1_AtomicCheckoutConflict(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 2)
	issue := b.Issue(0, of, "Survey")
	checkout := func(i, on int) (Answer, error) {
		return b.Ask(on, "POST", "/api/issues/"+issue+"/checkout", map[string]any{"agentId": agents[i].ID,
			"expectedStatuses": []string{"todo"}}, nil, agents[i].As(b.Seen()...)...)
	}
	if a, err := checkout(0, 1); err != nil || a.Status != 200 {
		t.Fatal(err, a.Status, string(a.Body))
	}
	if a, err := checkout(1, 2); err != nil || a.Status != 409 || !strings.Contains(string(a.Body), agents[0].Run) {
		t.Errorf("the second checkout: %v %d %s, want 409 with the holder's run", err, a.Status, a.Body)
	}
	if got := b.fields(2, "/api/issues/"+issue); got["assigneeAgentId"] != agents[0].ID ||
		got["checkoutRunId"] != agents[0].Run || got["status"] != "in_progress" {
		t.Errorf("afterwards the issue is %v", got)
	}
	b.Heads()
}

// It catches a hire that works before it was approved, and an approval that does
// not carry out what it approved.
func TestSpec_17_2_2_ApprovalMakesTheAgent(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	ceo := b.at(b.staff(of, "Cleo", "ceo", ""))
	var hire struct{ Agent, Approval struct{ ID, Status string } }
	b.Must(1, "POST", "/api/companies/"+string(of)+"/agent-hires", map[string]any{"name": "Wes", "role": "engineer",
		"adapterType": "process", "reportsTo": ceo.ID}, &hire, ceo.As(b.Seen()...)...)
	if hire.Agent.Status != "pending_approval" || hire.Approval.Status != "pending" {
		t.Fatalf("the hire is %+v", hire)
	}
	b.refused(2, 409, "POST", "/api/agents/"+hire.Agent.ID+"/heartbeat/invoke", map[string]any{})
	b.refused(2, 403, "POST", "/api/approvals/"+hire.Approval.ID+"/approve", map[string]any{}, ceo.As()...)
	b.Must(2, "POST", "/api/approvals/"+hire.Approval.ID+"/approve", map[string]any{}, nil, b.Seen()...)
	for on := range b.Nodes {
		if got := b.fields(on, "/api/agents/"+hire.Agent.ID); got["status"] != "idle" {
			t.Errorf("on n%d the agent is %v after its approval", on+1, got["status"])
		}
	}
	b.refused(0, 422, "POST", "/api/approvals/"+hire.Approval.ID+"/reject", map[string]any{})
}

// It catches an event that a rollup counts twice, not at all, or for the wrong
// agent; the sums come from 60 events that three nodes took at once.
func TestSpec_17_2_3_CostsAddUp(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 3)
	want, total := map[string]float64{}, 0.0
	var wg sync.WaitGroup
	errs := make(chan error, 60)
	for n := range cap(errs) {
		a, cents := agents[n%3], 1+n%7
		want[a.ID] += float64(cents)
		total += float64(cents)
		wg.Go(func() { errs <- b.spend(n%2, of, a, cents, "model", "m"+strconv.Itoa(n%2), "billingCode", "job") })
	}
	wg.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for on := range b.Nodes {
		if got := b.fields(on, "/api/companies/"+string(of)+"/costs/summary"); got["spendCents"] != total {
			t.Errorf("n%d sums up %v, want %v", on+1, got["spendCents"], total)
		}
		var rows []struct {
			AgentID   string
			CostCents float64
		}
		b.Must(on, "GET", "/api/companies/"+string(of)+"/costs/by-agent", nil, &rows, b.Seen()...)
		got := map[string]float64{}
		for _, r := range rows {
			got[r.AgentID] += r.CostCents
		}
		for _, a := range agents {
			if got[a.ID] != want[a.ID] {
				t.Errorf("n%d: %s spent %v, want %v", on+1, a.Name, got[a.ID], want[a.ID])
			}
		}
		if spent := b.fields(on, "/api/agents/"+agents[0].ID)["spentMonthlyCents"]; spent != want[agents[0].ID] {
			t.Errorf("n%d shows %v at the agent, want %v", on+1, spent, want[agents[0].ID])
		}
	}
}

// It catches a paused agent whose program goes on: one that does not heed the
// first signal is killed after its grace.
func TestSpec_17_2_4_PauseEndsARunningProgram(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of, out := b.Company("Acme"), t.TempDir()
	const script = `trap 'echo heard > $OUT/term' TERM; echo $$ > $OUT/part; mv $OUT/part $OUT/pid; while :; do ` +
		`sleep 0.05; done`
	a, err := b.Hire(0, of, "Deaf", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 5,
		"env": map[string]any{"OUT": out}})
	if err != nil {
		t.Fatal(err)
	}
	a = b.at(a)
	pid, err := strconv.Atoi(readFile(b, filepath.Join(out, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "POST", "/api/agents/"+a.ID+"/pause", map[string]any{}, nil, b.Seen()...)
	if got := b.fields(0, "/api/heartbeat-runs/"+a.Run)["status"]; got != "cancelled" {
		t.Errorf("the run of a paused agent is %v, want cancelled", got)
	}
	b.Until("the program is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	if _, err := os.Stat(filepath.Join(out, "term")); err != nil {
		t.Error("the program was killed without having been asked to end")
	}
	b.refused(0, 409, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{})
}

// It catches a gate that lets a CEO start work before its strategy, stays shut
// after it, or work that nobody is woken for.
func TestSpec_17_3_1_BoardHiresCEOApprovesStrategyCEOReceivesWork(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	var hire struct{ Agent struct{ ID, Status string } }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agent-hires", map[string]any{"name": "Cleo", "role": "ceo",
		"adapterType": "process", "adapterConfig": map[string]any{"command": "/bin/true"}}, &hire)
	if hire.Agent.Status != "idle" {
		t.Fatalf("the board's hire is %s", hire.Agent.Status)
	}
	var key struct{ Token string }
	b.Must(1, "POST", "/api/agents/"+hire.Agent.ID+"/keys", map[string]any{"name": "test"}, &key, b.Seen()...)
	ceo := b.at(Agent{ID: hire.Agent.ID, Name: "Cleo", Key: key.Token})
	issues := "/api/companies/" + string(of) + "/issues"
	b.refused(1, 409, "POST", issues, map[string]any{"title": "Go", "status": "todo"}, ceo.As()...)
	var approval struct{ ID, Status string }
	b.Must(1, "POST", "/api/companies/"+string(of)+"/approvals", map[string]any{"type": "approve_ceo_strategy",
		"payload": map[string]any{"plan": "Survey, then build"}}, &approval, ceo.As(b.Seen()...)...)
	b.Must(2, "POST", "/api/approvals/"+approval.ID+"/approve", map[string]any{"decisionNote": "Good"}, nil, b.Seen()...)
	var task struct{ ID, Status string }
	b.Must(2, "POST", issues, map[string]any{"title": "Build it", "status": "todo", "assigneeAgentId": ceo.ID}, &task,
		b.Seen()...)
	b.Until("the CEO is woken for its work", func() bool {
		return slices.ContainsFunc(b.runsOf(0, of, ceo.ID),
			func(r struct{ ID, Status, InvocationSource string }) bool { return r.ID != ceo.Run })
	})
	b.Must(0, "POST", issues, map[string]any{"title": "Go", "status": "todo"}, nil, ceo.As(b.Seen()...)...)
	b.Until("the run that the work woke has it", func() bool {
		row := b.fields(1, "/api/issues/"+task.ID)
		return row["status"] == "in_progress" && row["assigneeAgentId"] == ceo.ID && row["checkoutRunId"] != ceo.Run
	})
}

// It catches a limit that is looked at only when a run starts: the event that
// reaches it stops the agent, and a warning came before.
func TestSpec_17_3_2_CostsReachTheLimitAndPause(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	a := b.Agent(of)
	b.Must(0, "PATCH", "/api/agents/"+a.ID+"/budgets", map[string]any{"budgetMonthlyCents": 100}, nil, b.Seen()...)
	for i, step := range []struct {
		cents     int
		status    string
		incidents int
	}{{79, "running", 0}, {1, "running", 1}, {20, "paused", 2}} {
		if err := b.spend(i, of, a, step.cents); err != nil {
			t.Fatal(err)
		}
		got := b.fields((i+1)%3, "/api/agents/"+a.ID)
		if got["status"] != step.status {
			t.Errorf("after event %d the agent is %v, want %s", i+1, got["status"], step.status)
		}
		var incidents []struct{ ThresholdType string }
		b.Must((i+2)%3, "GET", "/api/companies/"+string(of)+"/budget-incidents", nil, &incidents, b.Seen()...)
		if len(incidents) != step.incidents {
			t.Errorf("after event %d there are %d incidents, want %d: %v", i+1, len(incidents), step.incidents, incidents)
		}
	}
	if got := b.fields(0, "/api/agents/"+a.ID); got["pauseReason"] != "budget" {
		t.Errorf("the agent is paused for %v", got["pauseReason"])
	}
	if got := b.fields(0, "/api/heartbeat-runs/"+a.Run)["status"]; got != "cancelled" {
		t.Errorf("its run is %v", got)
	}
}

// It catches a child that forgets how deep it is, whose costs its chain's code
// does not cover, or a chain without an end.
func TestSpec_17_3_3_DelegationAcrossTeamsCountsItsDepth(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	ceo := b.staff(of, "Cleo", "ceo", "")
	b.Must(0, "PATCH", "/api/companies/"+string(of), map[string]any{"requireBoardApprovalForCeoStrategy": false}, nil,
		b.Seen()...)
	cto, cmo := b.staff(of, "Ted", "cto", ceo.ID), b.staff(of, "Mo", "cmo", ceo.ID)
	eng, writer := b.staff(of, "Eve", "engineer", cto.ID), b.staff(of, "Will", "general", cmo.ID)
	for _, a := range []*Agent{&ceo, &cto, &cmo, &eng, &writer} {
		*a = b.at(*a)
	}
	var top struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Launch", "status": "todo",
		"assigneeAgentId": ceo.ID, "billingCode": "LAUNCH"}, &top, b.Seen()...)
	// From the CEO to one team, down it, and from there across to the other.
	parent := top.ID
	for depth, hop := range []struct{ from, to Agent }{{ceo, cto}, {cto, eng}, {eng, writer}, {writer, cmo}} {
		body := map[string]any{"title": fmt.Sprintf("Hop %d", depth+1), "status": "todo", "parentId": parent,
			"assigneeAgentId": hop.to.ID}
		var row struct {
			ID, BillingCode, AssigneeAgentID, CreatedByAgentID string
			RequestDepth                                       int
		}
		a, err := b.Ask(depth%3, "POST", "/api/companies/"+string(of)+"/issues", body, &row, hop.from.As(b.Seen()...)...)
		if err != nil || a.Status != 201 {
			t.Fatalf("%s delegates to %s: %v %d %s", hop.from.Name, hop.to.Name, err, a.Status, a.Body)
		}
		if row.RequestDepth != depth+1 || row.BillingCode != "LAUNCH" || row.AssigneeAgentID != hop.to.ID ||
			row.CreatedByAgentID != hop.from.ID {
			t.Errorf("%s delegates to %s: %+v, want depth %d and the code of the first", hop.from.Name, hop.to.Name,
				row, depth+1)
		}
		if err := b.spend(depth%3, of, hop.to, 3, "issueId", row.ID); err != nil {
			t.Error(err)
		}
		parent = row.ID
	}
	var codes []struct {
		BillingCode string
		CostCents   int
	}
	b.Must(1, "GET", "/api/companies/"+string(of)+"/costs/by-billing-code", nil, &codes, b.Seen()...)
	if len(codes) != 1 || codes[0].BillingCode != "LAUNCH" || codes[0].CostCents != 12 {
		t.Errorf("the whole chain costs %+v, want 12 under the code of its first", codes)
	}
	chain, _ := b.fields(2, "/api/issues/"+parent)["goalChain"].([]any)
	var root map[string]any
	if n := len(chain); n > 0 {
		root, _ = chain[n-1].(map[string]any)
	}
	if root["level"] != "company" || root["parentId"] != nil {
		t.Errorf("the last hop's chain of goals is %v", chain)
	}
	// Who was given work by another may not cancel it. The hops are checked out by
	// the runs they woke, sooner or later; what waits in the backlog wakes nobody.
	var later struct{ ID string }
	b.Must(1, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Later", "status": "backlog",
		"assigneeAgentId": cmo.ID}, &later, writer.As(b.Seen()...)...)
	b.refused(0, 422, "PATCH", "/api/issues/"+later.ID, map[string]any{"status": "cancelled"}, cmo.As(b.Seen()...)...)
	b.Until("the assignees are woken", func() bool { return len(b.runsOf(1, of, cmo.ID)) > 1 })
}

// It catches a door that is open without a key, with another's key, with a
// revoked one, or into another company.
func TestSpec_17_4_1_AuthBoundary(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of, other := b.Company("Acme"), b.Company("Beta")
	mine, theirs := b.Agent(of), b.Agent(other)
	issue := b.Issue(0, other, "Hidden-canary")
	for on := range b.Nodes {
		b.refused(on, 401, "GET", "/api/agents/me", nil, "Authorization", "Bearer pcp_nobody")
		b.refused(on, 401, "GET", "/api/agents/me", nil, "Authorization", "Bearer "+mine.Key+"x")
		for _, path := range []string{"/api/companies/" + string(other), "/api/companies/" + string(other) + "/issues",
			"/api/issues/" + issue, "/api/agents/" + theirs.ID,
			"/api/heartbeat-runs/" + theirs.Run, "/api/companies/" + string(other) + "/activity", "/api/companies/" +
				string(other) + "/costs/summary"} {
			a, err := b.Ask(on, "GET", path, nil, nil, mine.As(b.Seen()...)...)
			if err != nil || a.Status != 403 && a.Status != 404 || strings.Contains(string(a.Body), "canary") {
				t.Errorf("GET %s of another company on n%d: %v %d %s", path, on+1, err, a.Status, a.Body)
			}
		}
		for _, w := range []struct{ method, path string }{{"POST", "/api/companies"},
			{"PATCH", "/api/companies/" + string(of) + "/budgets"}, {"POST", "/api/agents/" + mine.ID + "/keys"},
			{"POST", "/api/agents/" + mine.ID + "/pause"}, {"POST", "/api/agents/" + mine.ID + "/terminate"}} {
			b.refused(on, 403, w.method, w.path, map[string]any{"name": "x", "budgetMonthlyCents": 5}, mine.As()...)
		}
	}
	b.Must(1, "DELETE", "/api/agents/"+mine.ID+"/keys/"+mine.KeyID, nil, nil, b.Seen()...)
	for on := range b.Nodes {
		b.Until(fmt.Sprintf("n%d has heard that the key is revoked", on+1), func() bool {
			a, err := b.Ask(on, "GET", "/api/agents/me", nil, nil, mine.As()...)
			return err == nil && a.Status == 401
		})
	}
}

// It catches two winners, or none; TestOneOfFiftyWins is its long form.
func TestSpec_17_4_2_CheckoutRace(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 8)
	for round := range 3 {
		race(t, b, agents, b.Issue(round, of, "Race "+strconv.Itoa(round)), round)
	}
}

// It catches an agent over its limit that still takes work or is invoked, and a
// stop that only a restart undoes.
func TestSpec_17_4_3_HardBudgetStop(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	a := b.Agent(of)
	issue := b.Issue(0, of, "More work")
	b.Must(0, "PATCH", "/api/agents/"+a.ID+"/budgets", map[string]any{"budgetMonthlyCents": 10}, nil, b.Seen()...)
	if err := b.spend(1, of, a, 10); err != nil {
		t.Fatal(err)
	}
	for on := range b.Nodes {
		b.refused(on, 409, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{})
		an, err := b.Ask(on, "POST", "/api/issues/"+issue+"/checkout", map[string]any{"agentId": a.ID,
			"expectedStatuses": []string{"todo"}}, nil, a.As(b.Seen()...)...)
		if err != nil || an.Status/100 != 4 {
			t.Errorf("a checkout over the limit, on n%d: %v %d %s", on+1, err, an.Status, an.Body)
		}
	}
	if got := b.fields(1, "/api/issues/"+issue); got["status"] != "todo" || got["checkoutRunId"] != nil {
		t.Errorf("the issue went to the stopped agent: %v", got)
	}
	b.refused(2, 409, "POST", "/api/agents/"+a.ID+"/resume", map[string]any{})
	b.Must(0, "PATCH", "/api/agents/"+a.ID+"/budgets", map[string]any{"budgetMonthlyCents": 1000}, nil, b.Seen()...)
	if b.fields(0, "/api/agents/"+a.ID)["status"] == "paused" {
		b.Must(0, "POST", "/api/agents/"+a.ID+"/resume", map[string]any{}, nil, b.Seen()...)
	}
	b.at(a)
}

// It catches a pause that new wakes get round, and a resume that leaves the agent
// stuck.
func TestSpec_17_4_4_PauseAndResume(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	a := b.Agent(of)
	b.Must(1, "POST", "/api/agents/"+a.ID+"/pause", map[string]any{}, nil, b.Seen()...)
	b.refused(2, 409, "POST", "/api/agents/"+a.ID+"/heartbeat/invoke", map[string]any{})
	before := len(b.runsOf(0, of, a.ID))
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Later", "status": "todo",
		"assigneeAgentId": a.ID}, nil, b.Seen()...)
	if n := len(b.runsOf(1, of, a.ID)); n != before {
		t.Errorf("a paused agent has %d runs more", n-before)
	}
	if got := b.fields(2, "/api/agents/"+a.ID); got["status"] != "paused" || got["pausedAt"] == nil {
		t.Errorf("paused: %v %v", got["status"], got["pausedAt"])
	}
	b.Must(2, "POST", "/api/agents/"+a.ID+"/resume", map[string]any{}, nil, b.Seen()...)
	if got := b.fields(1, "/api/agents/"+a.ID); got["status"] == "paused" || got["pausedAt"] != nil ||
		got["pauseReason"] != nil {
		t.Errorf("resumed: %v", got)
	}
	b.at(Agent{ID: a.ID, Name: a.Name, Key: a.Key})
}

// counts compares what the dashboard says with the lists, on each node.
func (b *Bed) counts(of ledger.CompanyID) {
	b.t.Helper()
	for on := range b.Nodes {
		var dash struct {
			Agents struct{ Active, Running, Paused, Error int }
			Tasks  struct{ Open, InProgress, Blocked, Done int }
			Costs  struct{ MonthSpendCents float64 }
		}
		b.Must(on, "GET", "/api/companies/"+string(of)+"/dashboard", nil, &dash, b.Seen()...)
		var issues, agents []struct{ ID, Status string }
		b.Must(on, "GET", "/api/companies/"+string(of)+"/issues?limit=1000", nil, &issues, b.Seen()...)
		b.Must(on, "GET", "/api/companies/"+string(of)+"/agents", nil, &agents, b.Seen()...)
		n := map[string]int{}
		for _, i := range issues {
			n[i.Status]++
		}
		open := len(issues) - n["done"] - n["cancelled"]
		if got, want := dash.Tasks, (struct{ Open, InProgress, Blocked, Done int }{open, n["in_progress"], n["blocked"],
			n["done"]}); got != want {
			b.t.Errorf("n%d: tasks on the dashboard %+v, in the list %+v", on+1, got, want)
		}
		n = map[string]int{}
		for _, a := range agents {
			n[a.Status]++
		}
		if d := dash.Agents; d.Running != n["running"] || d.Paused != n["paused"] || d.Error != n["error"] {
			b.t.Errorf("n%d: agents on the dashboard %+v, in the list %v", on+1, d, n)
		}
		if got := b.fields(on,
			"/api/companies/"+string(of)+"/costs/summary")["spendCents"]; got != dash.Costs.MonthSpendCents {
			b.t.Errorf("n%d: the dashboard spent %v, the summary %v", on+1, dash.Costs.MonthSpendCents, got)
		}
	}
}

// It catches a figure that is kept beside the rows and comes apart from them.
func TestSpec_17_4_5_DashboardIsConsistent(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 3)
	dice := rand.New(rand.NewPCG(17, 4))
	var issues []string
	for n := range 60 {
		on := n % 3
		switch k := dice.IntN(4); {
		case k == 0 || len(issues) == 0:
			issues = append(issues, b.Issue(on, of, "Task "+strconv.Itoa(n)))
		case k == 1:
			if err := b.spend(on, of, agents[dice.IntN(2)], 1+dice.IntN(9)); err != nil {
				t.Fatal(err)
			}
		default:
			i := issues[dice.IntN(len(issues))]
			// Some of these the rules refuse; then nothing may be counted.
			body := map[string]any{"status": []string{"backlog", "todo", "blocked", "done", "cancelled",
				"in_review"}[dice.IntN(6)]}
			if _, err := b.Ask(on, "PATCH", "/api/issues/"+i, body, nil, b.Seen()...); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Must(0, "POST", "/api/agents/"+agents[2].ID+"/pause", map[string]any{}, nil, b.Seen()...)
	b.Until("the agent is paused", func() bool { return b.fields(0, "/api/agents/"+agents[2].ID)["status"] == "paused" })
	b.counts(of)
}

// It catches rows that two companies share, and a name that only one may have.
func TestSpec_19_1_SeveralCompanies(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	ids := map[string]string{}
	for on, name := range []string{"Acme", "Beta", "Gamma"} {
		var row struct{ ID string }
		b.Must(on, "POST", "/api/companies", map[string]any{"name": name}, &row)
		ids[name] = row.ID
		b.Must(on, "POST", "/api/companies/"+row.ID+"/issues", map[string]any{"title": "Of " + name}, nil, b.Seen()...)
	}
	for on := range b.Nodes {
		var list []struct{ ID, Name string }
		b.Must(on, "GET", "/api/companies", nil, &list, b.Seen()...)
		if len(list) != len(ids) {
			t.Errorf("n%d lists %d companies", on+1, len(list))
		}
		for name, id := range ids {
			var issues []struct{ Title, Identifier string }
			b.Must(on, "GET", "/api/companies/"+id+"/issues", nil, &issues, b.Seen()...)
			if len(issues) != 1 || issues[0].Title != "Of "+name {
				t.Errorf("n%d: %s has %v", on+1, name, issues)
			}
		}
	}
}

// It catches a timer that nobody fires, and a run that nobody carries out. The
// shortest interval is 30 seconds, so -short invokes instead.
func TestSpec_19_2_AnAgentWithAHeartbeat(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	var row struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": "Ada", "role": "engineer",
		"adapterType":   "process",
		"adapterConfig": map[string]any{"command": "/bin/echo", "args": []string{"beat"}},
		"runtimeConfig": map[string]any{"heartbeat": map[string]any{"enabled": true, "intervalSec": 30}}}, &row)
	want := "timer"
	if testing.Short() {
		want = "on_demand"
		b.Must(0, "POST", "/api/agents/"+row.ID+"/heartbeat/invoke", map[string]any{}, nil)
	}
	b.Until("a heartbeat has run", func() bool {
		return slices.ContainsFunc(b.runsOf(0, of, row.ID), func(r struct{ ID, Status, InvocationSource string }) bool {
			return r.Status == "succeeded" && r.InvocationSource == want
		})
	})
}

// It catches a claim that anything but 409 answers when another was first.
func TestSpec_19_3_CheckoutAnswers409OnConcurrentClaims(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 5)
	winner, _ := race(t, b, agents, b.Issue(0, of, "One"), 0)
	t.Logf("%s got it", winner.Name)
}

// It catches a call of an agent's day that needs more than its key.
func TestSpec_19_4_AgentsWorkWithTheirKeysAlone(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	a := b.Agent(of)
	var issue struct{ ID string } // in the backlog, so that it wakes no run that would be first
	b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Survey", "status": "backlog",
		"assigneeAgentId": a.ID}, &issue)
	call := func(on int, method, path string, body any) {
		t.Helper()
		b.Must(on, method, path, body, nil, a.As(b.Seen()...)...)
	}
	call(0, "GET", "/api/agents/me", nil)
	call(1, "GET", "/api/companies/"+string(of)+"/issues?assigneeAgentId="+a.ID, nil)
	call(2, "POST", "/api/issues/"+issue.ID+"/checkout", map[string]any{"agentId": a.ID,
		"expectedStatuses": []string{"backlog"}})
	call(0, "POST", "/api/issues/"+issue.ID+"/comments", map[string]any{"body": "Half way"})
	if err := b.spend(1, of, a, 7, "issueId", issue.ID); err != nil {
		t.Error(err)
	}
	call(2, "PATCH", "/api/issues/"+issue.ID, map[string]any{"status": "done", "comment": "Surveyed"})
	got := b.fields(1, "/api/issues/"+issue.ID)
	var comments []struct{ Body, AuthorAgentID string }
	b.Must(0, "GET", "/api/issues/"+issue.ID+"/comments", nil, &comments, b.Seen()...)
	if got["status"] != "done" || got["completedAt"] == nil || len(comments) != 2 || comments[0].AuthorAgentID != a.ID {
		t.Errorf("after the day: %v, comments %v", got["status"], comments)
	}
}

// It catches a decision that is lost, made twice, or of no effect.
func TestSpec_19_5_BoardDecidesOnHiresAndStrategies(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	for _, verb := range []string{"approve", "reject"} {
		of := b.Company("Acme " + verb)
		ceo := b.at(b.staff(of, "Cleo", "ceo", ""))
		for kind, payload := range map[string]map[string]any{"hire_agent": {"name": "Carl", "role": "engineer",
			"adapterType": "process"}, "approve_ceo_strategy": {"plan": "Conquer gently"}} {
			var a struct{ ID string }
			b.Must(0, "POST", "/api/companies/"+string(of)+"/approvals", map[string]any{"type": kind, "payload": payload}, &a,
				ceo.As(b.Seen()...)...)
			b.Must(1, "POST", "/api/approvals/"+a.ID+"/"+verb, map[string]any{"decisionNote": "Because"}, nil, b.Seen()...)
			got := b.fields(2, "/api/approvals/"+a.ID)
			if got["status"] != map[string]string{"approve": "approved", "reject": "rejected"}[verb] ||
				got["decidedAt"] == nil || got["decisionNote"] != "Because" {
				t.Errorf("%s of %s: %v", verb, kind, got)
			}
		}
		var agents []struct{ Name, Status string }
		b.Must(2, "GET", "/api/companies/"+string(of)+"/agents", nil, &agents, b.Seen()...)
		hired := slices.ContainsFunc(agents, func(a struct{ Name, Status string }) bool {
			return a.Name == "Carl" &&
				a.Status == "idle"
		})
		an, err := b.Ask(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": "Go", "status": "todo"},
			nil, ceo.As(b.Seen()...)...)
		if want := verb == "approve"; err != nil || hired != want || (an.Status == 201) != want {
			t.Errorf("after %s: hired %v, starting work %v %d %s", verb, hired, err, an.Status, an.Body)
		}
	}
}

// It catches a limit of the company that its agents get round.
func TestSpec_19_6_HardLimitPausesAndPreventsInvocations(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	agents := b.Agents(of, 2)
	b.Must(0, "PATCH", "/api/agents/"+agents[0].ID+"/budgets", map[string]any{"budgetMonthlyCents": 50}, nil, b.Seen()...)
	// Many small events from everywhere: the limit is passed once, whoever was first.
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() { _ = b.spend(n%3, of, agents[0], 5) })
	}
	wg.Wait()
	if got := b.fields(1, "/api/agents/"+agents[0].ID); got["status"] != "paused" || got["pauseReason"] != "budget" {
		t.Errorf("at its limit the agent is %v for %v", got["status"], got["pauseReason"])
	}
	for on := range b.Nodes {
		b.refused(on, 409, "POST", "/api/agents/"+agents[0].ID+"/heartbeat/invoke", map[string]any{})
	}
	if got := b.fields(2, "/api/agents/"+agents[1].ID)["status"]; got != "running" {
		t.Errorf("another agent is %v", got)
	}
	var incidents []struct{ ThresholdType string }
	b.Must(0, "GET", "/api/companies/"+string(of)+"/budget-incidents", nil, &incidents, b.Seen()...)
	hard := slices.DeleteFunc(incidents, func(i struct{ ThresholdType string }) bool { return i.ThresholdType != "hard" })
	if len(hard) != 1 {
		t.Errorf("the limit was reached %d times", len(hard))
	}
}

// It catches a dashboard that shows what was there before the last write.
func TestSpec_19_7_DashboardShowsLiveFigures(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	a := b.Agent(of)
	for n := range 6 {
		issue := b.Issue(n%3, of, "Task "+strconv.Itoa(n))
		if n%2 == 0 {
			b.Must(n%3, "PATCH", "/api/issues/"+issue, map[string]any{"status": "done"}, nil, b.Seen()...)
		}
		if err := b.spend(n%3, of, a, 10+n); err != nil {
			t.Fatal(err)
		}
		b.counts(of)
	}
}

// It catches a mutation that the activity log does not know of, or says of
// somebody else. Each step is one mutation and one entry.
func TestSpec_19_8_EveryMutationIsInTheActivityLog(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1)
	w := makeWorld(t, b)
	of := w["companyId"]
	in := "/api/companies/" + of
	type line struct{ Action, ActorType, ActorID, EntityType, EntityID string }
	lines := func() (out []line) {
		b.Must(0, "GET", in+"/activity?limit=500", nil, &out, b.Seen()...)
		return out
	}
	height := func() uint64 { return b.Heads().Height }
	b.Must(0, "POST", "/api/heartbeat-runs/"+w["runId"]+"/cancel", nil, nil)
	b.Idle()
	for _, step := range []struct {
		method, path string
		body         any
	}{
		{"PATCH", in, map[string]any{"description": "Tools"}},
		{"POST", in + "/goals", map[string]any{"title": "Ship"}},
		{"PATCH", "/api/goals/" + w["goals"], map[string]any{"title": "Ship it"}},
		{"POST", in + "/projects", map[string]any{"name": "Rig"}},
		{"PATCH", "/api/projects/" + w["projects"], map[string]any{"name": "Rig two"}},
		{"POST", in + "/labels", map[string]any{"name": "bug", "color": "#ff0000"}},
		{"POST", in + "/issues", map[string]any{"title": "Another"}},
		{"PATCH", "/api/issues/" + w["issues"], map[string]any{"title": "Something else"}},
		{"POST", "/api/issues/" + w["issues"] + "/comments", map[string]any{"body": "Hm"}},
		{"PUT", "/api/issues/" + w["issues"] + "/documents/plan", map[string]any{"title": "Plan", "format": "markdown",
			"body": "One"}},
		{"POST", in + "/agents", map[string]any{"name": "Bob", "role": "engineer", "adapterType": "process"}},
		{"PATCH", "/api/agents/" + w["agentId"], map[string]any{"title": "Surveyor"}},
		{"POST", "/api/agents/" + w["agentId"] + "/pause", map[string]any{}},
		{"POST", "/api/agents/" + w["agentId"] + "/resume", map[string]any{}},
		{"POST", "/api/agents/" + w["agentId"] + "/keys", map[string]any{"name": "more"}},
		{"PATCH", in + "/budgets", map[string]any{"budgetMonthlyCents": 1000}},
		{"POST", in + "/cost-events", map[string]any{"agentId": w["agentId"], "provider": "x", "model": "y", "costCents": 1,
			"occurredAt": "2026-11-21T03:00:00.000Z"}},
		{"POST", in + "/approvals", map[string]any{"type": "request_board_approval",
			"payload": map[string]any{"title": "May I?"}}},
		{"POST", in + "/secrets", map[string]any{"name": "ONE", "value": "canary-value"}},
		{"DELETE", "/api/labels/" + w["labelId"], nil},
		{"DELETE", "/api/issues/" + w["issues"], nil},
		{"POST", "/api/agents/" + w["agentId"] + "/terminate", map[string]any{}},
	} {
		known, before := lines(), height()
		b.Must(0, step.method, step.path, step.body, nil, b.Seen()...)
		if after := height(); after != before+1 {
			t.Errorf("%s %s made %d entries, want one", step.method, step.path, after-before)
		}
		now := lines()
		fresh := now[:max(0, len(now)-len(known))]
		if len(fresh) == 0 {
			t.Errorf("%s %s is not in the activity log", step.method, step.path)
		}
		for _, l := range fresh {
			if l.ActorType != "user" || l.ActorID != "local-board" || l.Action == "" || l.EntityID == "" {
				t.Errorf("%s %s is logged as %+v", step.method, step.path, l)
			}
		}
	}
	if v, err := b.Nodes[0].Ledger().Verify(t.Context(), nil); err != nil {
		t.Errorf("the chain: %v %+v", err, v)
	}
}

// It catches a node that needs a database besides its own directory, to start or
// to find again what it was told; and a driver for one in the program.
func TestSpec_19_9_RunsWithNoExternalDatabase(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	dir := t.TempDir()
	b := Mesh(t, 1, func(_ int, c *node.Config) { c.Dir = filepath.Join(dir, c.Name) })
	of := b.Company("Acme")
	issue := b.Issue(0, of, "Kept")
	b.Restart(0)
	if got := b.fields(0, "/api/issues/"+issue); got["title"] != "Kept" {
		t.Errorf("after the restart: %v", got)
	}
	b.Issue(0, of, "And on")
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("no build information")
	}
	for _, dep := range info.Deps {
		for _, db := range []string{"jackc/pgx", "lib/pq", "go-sql-driver", "sqlite", "mongo-driver", "go-redis"} {
			if strings.Contains(dep.Path, db) {
				t.Errorf("the program has a driver for a database: %s", dep.Path)
			}
		}
	}
}
