package company

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// hire creates an agent by command.
func (d *desk) hire(t testing.TB, name, boss string) string {
	t.Helper()
	id := d.id()
	d.must(t, board, "agent.create", SaveAgent{ID: id, Name: &name, ReportsTo: &boss}, nil)
	return id
}

func TestAgentStatusFollowsTheTable(t *testing.T) {
	t.Parallel()
	const no = ""
	for _, c := range []struct {
		from, pause, resume AgentStatus
		pauseText, text     string
	}{
		{from: AgentIdle, pause: AgentPaused, resume: AgentIdle},
		{from: AgentActive, pause: AgentPaused, resume: AgentIdle},
		{from: AgentRunning, pause: AgentPaused, resume: AgentRunning},
		{from: AgentError, pause: AgentPaused, resume: AgentIdle},
		{from: AgentPaused, pause: AgentPaused, resume: AgentIdle},
		{from: AgentPendingApproval, pause: no, pauseText: "Pending approval agents cannot be paused", text: "Pending approval agents cannot be activated directly"},
		{from: AgentTerminated, pause: no, pauseText: "Cannot pause terminated agent", text: "Cannot resume terminated agent"},
	} {
		a := Agent{Status: c.from}
		if got, err := a.Pause("manual", 9); c.pause == no {
			wantRefusal(t, err, ledger.Conflict, c.pauseText)
		} else if err != nil || got.Status != c.pause || got.PauseReason != "manual" {
			t.Errorf("pause from %s: %s for %q, %v", c.from, got.Status, got.PauseReason, err)
		}
		if got, err := a.Resume(9); c.resume == no {
			wantRefusal(t, err, ledger.Conflict, c.text)
		} else if err != nil || got.Status != c.resume || got.PauseReason != "" || got.PausedAt != 0 {
			t.Errorf("resume from %s: %+v, %v", c.from, got, err)
		}
		if got := a.Terminate(9); got.Status != AgentTerminated {
			t.Errorf("terminate from %s: %s", c.from, got.Status)
		}
	}
}

func TestAPersonsPauseOutlastsTheBudgets(t *testing.T) {
	t.Parallel()
	a, _ := Agent{Status: AgentIdle}.Pause(pausedForBudget, 1)
	if a, _ = a.Pause("manual", 2); a.PauseReason != "manual" {
		t.Errorf("a person paused it, the reason is %s", a.PauseReason)
	}
	if a, _ = a.Pause(pausedForBudget, 3); a.PauseReason != "manual" {
		t.Errorf("the budget took over a person's pause")
	}
}

func TestNobodyLeadsWhoLeadsThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hire(t, "Ada", "")
	bob := d.hire(t, "Bob", ada)
	cy := d.hire(t, "Cy", bob)
	const cycle = "Reporting relationship would create cycle"
	for _, boss := range []string{ada, bob, cy} {
		wantRefusal(t, d.do(board, "agent.update", SaveAgent{ID: ada, ReportsTo: &boss}, nil), ledger.Unprocessable, cycle)
	}
	nobody := d.id()
	wantRefusal(t, d.do(board, "agent.update", SaveAgent{ID: cy, ReportsTo: &nobody}, nil), ledger.NotFound, "Manager not found")
	name := "Stranger"
	wantRefusal(t, d.do(board, "agent.create", SaveAgent{ID: d.id(), Name: &name, ReportsTo: &nobody}, nil), ledger.NotFound, "Manager not found")

	home := d.company
	d.found(t, "Beta")
	stranger := d.hire(t, "Zed", "")
	d.company = home
	wantRefusal(t, d.do(board, "agent.update", SaveAgent{ID: cy, ReportsTo: &stranger}, nil), ledger.Unprocessable, "Manager must belong to same company")

	d.must(t, board, "agent.update", SaveAgent{ID: cy, ReportsTo: &ada}, nil)
	d.must(t, board, "agent.update", SaveAgent{ID: bob, ReportsTo: &cy}, nil)
	org := Org(d.tx, d.company)
	if len(org) != 1 || org[0].ID != ada || len(org[0].Reports) != 1 || org[0].Reports[0].ID != cy || org[0].Reports[0].Reports[0].ID != bob {
		b, _ := json.Marshal(org)
		t.Errorf("org chart %s", b)
	}
	a, _ := AgentOf(d.tx, d.company, bob)
	if chain := ChainOfCommand(d.tx, a); len(chain) != 2 || chain[0].ID != cy || chain[1].ID != ada {
		t.Errorf("chain of command %+v", chain)
	}
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: cy}, nil)
	if h := OrgHealthOf(d.tx, a); h.Status != "invalid" || h.FirstInvalid == nil || h.FirstInvalid.ID != cy || h.Guidance == "" {
		t.Errorf("below a manager who is gone the chain is %+v", h)
	}
	wantRefusal(t, d.do(board, "agent.update", SaveAgent{ID: ada, ReportsTo: &cy}, nil), ledger.Conflict, "Cannot report to terminated agents")
}

func TestTheChainOfManagersIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	boss := ""
	for range MaxOrgDepth {
		boss = d.hire(t, "Link", boss)
	}
	name := "One more"
	wantRefusal(t, d.do(board, "agent.create", SaveAgent{ID: d.id(), Name: &name, ReportsTo: &boss}, nil), ledger.Unprocessable, "")
}

func TestAgentsAreFoundByIDAndByName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.hire(t, "Bob Builder", "")
	second := d.hire(t, "bob builder", "")
	if a, _ := AgentOf(d.tx, d.company, second); a.Name != "bob builder 2" {
		t.Errorf("the second of a name is called %q", a.Name)
	}
	for _, ref := range []string{bob, strings.ToUpper(bob), "bob-builder", "Bob Builder"} {
		if a, err := AgentByRef(d.tx, d.company, ref); err != nil || a.ID != bob {
			t.Errorf("%q finds %s, %v", ref, a.ID, err)
		}
	}
	_, err := AgentByRef(d.tx, "", "bob-builder")
	wantRefusal(t, err, ledger.Unprocessable, "Agent shortname lookup requires companyId query parameter")
	_, err = AgentByRef(d.tx, d.company, "nobody")
	wantRefusal(t, err, ledger.NotFound, "Agent not found")
	taken := "Bob  BUILDER"
	wantRefusal(t, d.do(board, "agent.update", SaveAgent{ID: second, Name: &taken}, nil), ledger.Conflict, "Agent shortname 'bob-builder' is already in use in this company")
	d.must(t, board, "agent.terminate", ChangeAgent{Agent: bob}, nil)
	d.must(t, board, "agent.update", SaveAgent{ID: second, Name: &taken}, nil)
	if a, err := AgentByRef(d.tx, d.company, "bob-builder"); err != nil || a.ID != second {
		t.Errorf("the name of an agent that is gone leads to %s, %v", a.ID, err)
	}
}

func TestMalformedAgentsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ok, none, wizard, odd := "X", "", "wizard", "does_not_exist"
	for _, c := range []struct {
		p    SaveAgent
		code ledger.Code
		text string
	}{
		{SaveAgent{Name: &none}, ledger.Invalid, ""},
		{SaveAgent{Name: &ok, Role: &wizard}, ledger.Invalid, ""},
		{SaveAgent{Name: &ok, ContextMode: &odd}, ledger.Invalid, "contextMode is thin or fat"},
		{SaveAgent{Name: &ok, AdapterType: &odd}, ledger.Unprocessable, "Unknown adapter type: does_not_exist"},
		{SaveAgent{Name: &ok, AdapterConfig: []byte(`[1]`)}, ledger.Invalid, ""},
		{SaveAgent{Name: &ok, AdapterConfig: []byte(`{"a":"` + strings.Repeat("x", MaxConfig) + `"}`)}, ledger.TooLarge, ""},
		{SaveAgent{Name: &ok, RuntimeConfig: []byte(`{"heartbeat":{"enabled":true,"intervalSec":29}}`)}, ledger.Invalid, "heartbeat.intervalSec must be at least 30"},
		{SaveAgent{Name: &ok, AdapterConfig: []byte(`{"enabled":true,"intervalSec":29}`)}, ledger.Invalid, "heartbeat.intervalSec must be at least 30"},
	} {
		c.p.ID = d.id()
		wantRefusal(t, d.do(board, "agent.create", c.p, nil), c.code, c.text)
	}
	for _, kind := range AdapterTypes {
		d.must(t, board, "agent.create", SaveAgent{ID: d.id(), Name: &ok, AdapterType: &kind}, nil)
	}
	id := d.hire(t, "twice", "")
	wantRefusal(t, d.do(board, "agent.create", SaveAgent{ID: id, Name: &ok}, nil), ledger.Conflict, "")
	strict := true
	d.found(t, "Strict")
	d.must(t, board, "company.update", SaveCompany{RequireHireApproval: &strict}, nil)
	wantRefusal(t, d.do(board, "agent.create", SaveAgent{ID: d.id(), Name: &ok}, nil), ledger.Conflict,
		"Direct agent creation requires board approval. Use POST /api/companies/:companyId/agent-hires to create a pending hire approval.")
}

func TestAnAgentMayDescribeItselfAndNothingMore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.hire(t, "Ada", ""), d.hire(t, "Bob", "")
	text, cents, yes := "x", Cents(1), true
	d.must(t, as{agent: ada}, "agent.update", SaveAgent{ID: ada, Capabilities: &text, Title: &text}, nil)
	for _, p := range []SaveAgent{
		{ID: bob, Title: &text}, {ID: ada, Name: &text}, {ID: ada, Role: &text}, {ID: ada, ReportsTo: &bob}, {ID: ada, AdapterType: &text},
		{ID: ada, AdapterConfig: []byte(`{"command":"/bin/sh"}`)}, {ID: ada, RuntimeConfig: []byte(`{}`)}, {ID: ada, Budget: &cents},
		{ID: ada, Permissions: &Grant{CreateAgents: &yes}}, {ID: ada, ReplaceAdapterConfig: true}, {ID: ada, ContextMode: &text},
	} {
		wantRefusal(t, d.do(as{agent: ada}, "agent.update", p, nil), ledger.Forbidden, "Board access required")
	}
}

func TestDeletingAnAgentFreesItsWorkAndLiftsItsReports(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.hire(t, "Ada", "")
	bob := d.hire(t, "Bob", ada)
	cy := d.hire(t, "Cy", bob)
	d.must(t, board, "agent_key.create", CreateKey{ID: d.id(), Agent: bob, Name: "k", Hash: strings.Repeat("cd", 32)}, nil)
	run := d.run(bob)
	i := d.issue(t, CreateIssue{Status: IssueTodo, Assignee: bob})
	d.must(t, as{bob, run}, "issue.checkout", CheckOutIssue{Issue: i.ID, Agent: bob, Expected: []IssueStatus{IssueTodo}}, nil)
	d.must(t, board, "agent.delete", ChangeAgent{Agent: bob}, nil)

	if i = d.load(i.ID); i.Status != IssueTodo || i.Assignee != "" || i.Held() {
		t.Errorf("its issue is %s, of %q, held %t", i.Status, i.Assignee, i.Held())
	}
	if r, _ := RunOf(d.tx, d.company, run); r.Status != RunCancelled {
		t.Errorf("its run is %s", r.Status)
	}
	if a, _ := AgentOf(d.tx, d.company, cy); string(a.ReportsTo) != ada {
		t.Errorf("its report reports to %q", a.ReportsTo)
	}
	if _, ok := AgentByID(d.tx, bob); ok {
		t.Error("it is still found")
	}
	if _, ok := KeyByHash(d.tx, strings.Repeat("cd", 32)); ok {
		t.Error("its key still holds")
	}
	if _, err := AgentByRef(d.tx, d.company, "bob"); err == nil {
		t.Error("its name still leads somewhere")
	}
}

func TestResumingAnAgentOverItsBudgetNamesTheLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.hire(t, "Bob", "")
	d.must(t, board, "budget.set", SetBudget{Type: ScopeAgent, Scope: bob, Amount: Cents(10)}, nil)
	if err := d.cost(board, bob, 10); err != nil {
		t.Fatal(err)
	}
	r := wantRefusal(t, d.do(board, "agent.resume", ChangeAgent{Agent: bob}, nil), ledger.Conflict, "Agent is paused because its budget hard-stop was reached.")
	if got := detail(t, r); got["scopeId"] != bob || got["amountLimit"] != 10.0 {
		t.Errorf("details %v", got)
	}
	more := Cents(20)
	d.must(t, board, "agent.update", SaveAgent{ID: bob, Budget: &more}, nil)
	if a, _ := AgentOf(d.tx, d.company, bob); a.Status != AgentIdle {
		t.Errorf("after raising the limit it is %s", a.Status)
	}
}

func TestConfigurationsAreMergedAndRevised(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	name, http, title := "Bob", "http", "Senior"
	bob := d.id()
	key := d.secret(t, "KEY")
	config := func() string { a, _ := AgentOf(d.tx, d.company, bob); return string(a.AdapterConfig) }
	d.must(t, board, "agent.create", SaveAgent{ID: bob, Name: &name, AdapterConfig: []byte(`{"command":"/bin/sh","env":{"KEY":"canary-1","REF":{"type":"secret_ref","secretId":"` + key + `"}}}`)}, nil)

	// What was shown comes back, with one variable changed and one added.
	shown := RedactConfig([]byte(config()))
	var m map[string]any
	if err := json.Unmarshal(shown, &m); err != nil {
		t.Fatal(err)
	}
	m["timeoutSec"] = 20
	m["env"].(map[string]any)["NEW"] = "canary-2"
	sent, _ := json.Marshal(m)
	d.must(t, board, "agent.update", SaveAgent{ID: bob, AdapterConfig: sent}, nil)
	want := `{"command":"/bin/sh","env":{"KEY":"canary-1","NEW":"canary-2","REF":{"projectionAllowlistKey":null,"projectionClass":"unclassified","secretId":"` + key + `","type":"secret_ref","version":"latest"}},"timeoutSec":20}`
	if config() != want {
		t.Errorf("config %s, want %s", config(), want)
	}
	d.must(t, board, "agent.update", SaveAgent{ID: bob, Title: &title}, nil)
	d.must(t, board, "agent.update", SaveAgent{ID: bob, Title: &title}, nil) // changes nothing
	d.must(t, board, "agent.update", SaveAgent{ID: bob, AdapterType: &http, AdapterConfig: []byte(`{"url":"http://x"}`)}, nil)
	if config() != `{"url":"http://x"}` {
		t.Errorf("a change of the adapter kept %s", config())
	}
	d.must(t, board, "agent.update", SaveAgent{ID: bob, AdapterConfig: []byte(`{"method":"POST"}`), ReplaceAdapterConfig: true}, nil)
	if config() != `{"method":"POST"}` {
		t.Errorf("a replacement kept %s", config())
	}
	list := RevisionsOf(d.tx, d.company, bob)
	var changed [][]string
	for _, r := range list {
		changed = append(changed, r.Changed)
	}
	if want := [][]string{{"adapterConfig"}, {"adapterType", "adapterConfig"}, {"title"}, {"adapterConfig"}}; !reflect.DeepEqual(changed, want) {
		t.Errorf("revisions changed %v, want %v", changed, want)
	}
	b, _ := json.Marshal(list)
	if strings.Contains(string(b), "canary") {
		t.Errorf("a revision holds a secret: %s", b)
	}
	for range MaxRevisions {
		next := title + "+"
		title = next
		d.must(t, board, "agent.update", SaveAgent{ID: bob, Title: &next}, nil)
	}
	if n := len(RevisionsOf(d.tx, d.company, bob)); n != MaxRevisions {
		t.Errorf("%d revisions are kept, want %d", n, MaxRevisions)
	}
}

// The specification has the schedule in adapterConfig, the contract in
// runtimeConfig.heartbeat: a new agent beats by either, and the second counts.
func TestASchedulePutInEitherPlaceIsKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, c := range map[string]struct {
		adapter, runtime string
		every            int64 // 0: none
		runs             int
	}{
		"nothing":      {`{}`, ``, 0, DefaultConcurrentRuns},
		"adapter":      {`{"enabled":true,"intervalSec":60,"maxConcurrentRuns":3}`, ``, 60, 3},
		"adapter, off": {`{"enabled":false,"intervalSec":60}`, ``, 0, DefaultConcurrentRuns},
		"runtime":      {`{}`, `{"heartbeat":{"enabled":true,"intervalSec":90,"maxConcurrentRuns":500}}`, 90, MaxConcurrentRuns},
		"both":         {`{"enabled":true,"intervalSec":60}`, `{"heartbeat":{"enabled":false}}`, 0, DefaultConcurrentRuns},
	} {
		id := d.id()
		p := SaveAgent{ID: id, Name: &name, AdapterConfig: []byte(c.adapter)}
		if c.runtime != "" {
			p.RuntimeConfig = []byte(c.runtime)
		}
		d.must(t, board, "agent.create", p, nil)
		a, _ := wakeable(d.tx, d.company, id)
		timer, beats := TimerOf(d.tx, d.company, id)
		if beats != (c.every > 0) || a.policy().MaxConcurrentRuns != c.runs || beats && (a.policy().IntervalSec != c.every || timer.DueAt > TimeOf(d.now)+Time(c.every*1000)) {
			t.Errorf("%s: beats %v, %+v", name, beats, a.policy())
		}
	}
}
