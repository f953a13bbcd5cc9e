package company_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestAgentStatusFollowsTheTable(t *testing.T) {
	t.Parallel()
	const no = ""
	for _, c := range []struct {
		from, pause, resume entity.AgentStatus
		pauseText, text     string
	}{
		{from: entity.AgentIdle, pause: entity.AgentPaused, resume: entity.AgentIdle},
		{from: entity.AgentActive, pause: entity.AgentPaused, resume: entity.AgentIdle},
		{from: entity.AgentRunning, pause: entity.AgentPaused, resume: entity.AgentRunning},
		{from: entity.AgentError, pause: entity.AgentPaused, resume: entity.AgentIdle},
		{from: entity.AgentPaused, pause: entity.AgentPaused, resume: entity.AgentIdle},
		{from: entity.AgentPendingApproval, pause: no, pauseText: "Pending approval agents cannot be paused",
			text: "Pending approval agents cannot be activated directly"},
		{from: entity.AgentTerminated, pause: no, pauseText: "Cannot pause terminated agent",
			text: "Cannot resume terminated agent"},
	} {
		a := entity.Agent{Status: c.from}
		if got, err := a.Pause("manual", 9); c.pause == no {
			companytest.WantRefusal(t, err, ledger.Conflict, c.pauseText)
		} else if err != nil || got.Status != c.pause || got.PauseReason != "manual" {
			t.Errorf("pause from %s: %s for %q, %v", c.from, got.Status, got.PauseReason, err)
		}
		if got, err := a.Resume(9); c.resume == no {
			companytest.WantRefusal(t, err, ledger.Conflict, c.text)
		} else if err != nil || got.Status != c.resume || got.PauseReason != "" || got.PausedAt != 0 {
			t.Errorf("resume from %s: %+v, %v", c.from, got, err)
		}
		if got := a.Terminate(9); got.Status != entity.AgentTerminated {
			t.Errorf("terminate from %s: %s", c.from, got.Status)
		}
	}
}

func TestAPersonsPauseOutlastsTheBudgets(t *testing.T) {
	t.Parallel()
	a, _ := entity.Agent{Status: entity.AgentIdle}.Pause(entity.PausedForBudget, 1)
	if a, _ = a.Pause("manual", 2); a.PauseReason != "manual" {
		t.Errorf("a person paused it, the reason is %s", a.PauseReason)
	}
	if a, _ = a.Pause(entity.PausedForBudget, 3); a.PauseReason != "manual" {
		t.Errorf("the budget took over a person's pause")
	}
}

func TestNobodyLeadsWhoLeadsThem(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	bob := d.Hire(t, "Bob", ada)
	cy := d.Hire(t, "Cy", bob)
	const cycle = "Reporting relationship would create cycle"
	for _, boss := range []string{ada, bob, cy} {
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent.update", entity.SaveAgent{ID: ada, ReportsTo: &boss}, nil),
			ledger.Unprocessable, cycle)
	}
	nobody := d.ID()
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.update", entity.SaveAgent{ID: cy, ReportsTo: &nobody}, nil),
		ledger.NotFound, "Manager not found")
	name := "Stranger"
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", entity.SaveAgent{ID: d.ID(), Name: &name,
		ReportsTo: &nobody}, nil), ledger.NotFound, "Manager not found")

	home := d.Company
	d.Found(t, "Beta")
	stranger := d.Hire(t, "Zed", "")
	d.Company = home
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.update", entity.SaveAgent{ID: cy, ReportsTo: &stranger},
		nil), ledger.Unprocessable, "Manager must belong to same company")

	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: cy, ReportsTo: &ada}, nil)
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, ReportsTo: &cy}, nil)
	org := people.Org(d.Tx, d.Company)
	if len(org) != 1 || org[0].ID != ada || len(org[0].Reports) != 1 || org[0].Reports[0].ID != cy ||
		org[0].Reports[0].Reports[0].ID != bob {
		b, _ := json.Marshal(org)
		t.Errorf("org chart %s", b)
	}
	a, _ := entity.AgentOf(d.Tx, d.Company, bob)
	if chain := people.ChainOfCommand(d.Tx, a); len(chain) != 2 || chain[0].ID != cy || chain[1].ID != ada {
		t.Errorf("chain of command %+v", chain)
	}
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: cy}, nil)
	if h := people.OrgHealthOf(d.Tx, a); h.Status != "invalid" || h.FirstInvalid == nil || h.FirstInvalid.ID != cy ||
		h.Guidance == "" {
		t.Errorf("below a manager who is gone the chain is %+v", h)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.update", entity.SaveAgent{ID: ada, ReportsTo: &cy}, nil),
		ledger.Conflict, "Cannot report to terminated agents")
}

func TestTheChainOfManagersIsBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	boss := ""
	for range entity.MaxOrgDepth {
		boss = d.Hire(t, "Link", boss)
	}
	name := "One more"
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", entity.SaveAgent{ID: d.ID(), Name: &name,
		ReportsTo: &boss}, nil), ledger.Unprocessable, "Reporting chains are at most 64 long")
}

func TestAgentsAreFoundByIDAndByName(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	bob := d.Hire(t, "Bob Builder", "")
	second := d.Hire(t, "bob builder", "")
	if a, _ := entity.AgentOf(d.Tx, d.Company, second); a.Name != "bob builder 2" {
		t.Errorf("the second of a name is called %q", a.Name)
	}
	for _, ref := range []string{bob, strings.ToUpper(bob), "bob-builder", "Bob Builder"} {
		if a, err := entity.AgentByRef(d.Tx, d.Company, ref); err != nil || a.ID != bob {
			t.Errorf("%q finds %s, %v", ref, a.ID, err)
		}
	}
	_, err := entity.AgentByRef(d.Tx, "", "bob-builder")
	companytest.WantRefusal(t, err, ledger.Unprocessable, "Agent shortname lookup requires companyId query parameter")
	_, err = entity.AgentByRef(d.Tx, d.Company, "nobody")
	companytest.WantRefusal(t, err, ledger.NotFound, "Agent not found")
	taken := "Bob  BUILDER"
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.update", entity.SaveAgent{ID: second, Name: &taken}, nil),
		ledger.Conflict, "Agent shortname 'bob-builder' is already in use in this company")
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: bob}, nil)
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: second, Name: &taken}, nil)
	if a, err := entity.AgentByRef(d.Tx, d.Company, "bob-builder"); err != nil || a.ID != second {
		t.Errorf("the name of an agent that is gone leads to %s, %v", a.ID, err)
	}
}

func TestMalformedAgentsAreRefused(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ok, none, wizard, odd := "X", "", "wizard", "does_not_exist"
	for _, c := range []struct {
		p    entity.SaveAgent
		code ledger.Code
		text string
	}{
		{entity.SaveAgent{Name: &none}, ledger.Invalid, "An agent needs a name"},
		{entity.SaveAgent{Name: &ok, Role: &wizard}, ledger.Invalid, "Unknown role: wizard"},
		{entity.SaveAgent{Name: &ok, ContextMode: &odd}, ledger.Invalid, "contextMode is thin or fat"},
		{entity.SaveAgent{Name: &ok, AdapterType: &odd}, ledger.Unprocessable, "Unknown adapter type: does_not_exist"},
		{entity.SaveAgent{Name: &ok, AdapterConfig: []byte(`[1]`)}, ledger.Invalid, "adapterConfig is not a JSON object"},
		{entity.SaveAgent{Name: &ok, AdapterConfig: []byte(`{"a":"` + strings.Repeat("x", entity.MaxConfig) + `"}`)},
			ledger.TooLarge, "adapterConfig is longer than 65536 bytes"},
		{entity.SaveAgent{Name: &ok, RuntimeConfig: []byte(`{"heartbeat":{"enabled":true,"intervalSec":29}}`)},
			ledger.Invalid, "heartbeat.intervalSec must be at least 30"},
		{entity.SaveAgent{Name: &ok, AdapterConfig: []byte(`{"enabled":true,"intervalSec":29}`)}, ledger.Invalid,
			"heartbeat.intervalSec must be at least 30"},
	} {
		c.p.ID = d.ID()
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", c.p, nil), c.code, c.text)
	}
	for _, kind := range entity.AdapterTypes {
		d.Must(t, companytest.Board, "agent.create", entity.SaveAgent{ID: d.ID(), Name: &ok, AdapterType: &kind}, nil)
	}
	id := d.Hire(t, "twice", "")
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", entity.SaveAgent{ID: id, Name: &ok}, nil),
		ledger.Conflict, "ID "+string(id)+" is in use")
	strict := true
	d.Found(t, "Strict")
	d.Must(t, companytest.Board, "company.update", entity.SaveCompany{RequireHireApproval: &strict}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", entity.SaveAgent{ID: d.ID(), Name: &ok}, nil),
		ledger.Conflict,
		"Direct agent creation requires board approval. Use POST /api/companies/:companyId/agent-hires to create "+
			"a pending hire approval.")
}

func TestAnAgentMayDescribeItselfAndNothingMore(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Hire(t, "Ada", ""), d.Hire(t, "Bob", "")
	text, cents, yes := "x", core.Cents(1), true
	d.Must(t, companytest.As{Agent: ada}, "agent.update", entity.SaveAgent{ID: ada, Capabilities: &text,
		Title: &text}, nil)
	for _, p := range []entity.SaveAgent{
		{ID: bob, Title: &text}, {ID: ada, Name: &text}, {ID: ada, Role: &text}, {ID: ada, ReportsTo: &bob},
		{ID: ada, AdapterType: &text},
		{ID: ada, AdapterConfig: []byte(`{"command":"/bin/sh"}`)}, {ID: ada, RuntimeConfig: []byte(`{}`)},
		{ID: ada, Budget: &cents},
		{ID: ada, Permissions: &entity.Grant{CreateAgents: &yes}}, {ID: ada, ReplaceAdapterConfig: true},
		{ID: ada, ContextMode: &text},
	} {
		companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada}, "agent.update", p, nil), ledger.Forbidden,
			"Board access required")
	}
}

func TestDeletingAnAgentFreesItsWorkAndLiftsItsReports(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	bob := d.Hire(t, "Bob", ada)
	cy := d.Hire(t, "Cy", bob)
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: bob, Name: "k",
		Hash: strings.Repeat("cd", 32)}, nil)
	run := d.Run(bob)
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo, Assignee: bob})
	d.Must(t, companytest.As{Agent: bob, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID, Agent: bob,
		Expected: []entity.IssueStatus{entity.IssueTodo}}, nil)
	d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: bob}, nil)

	if i = d.Load(i.ID); i.Status != entity.IssueTodo || i.Assignee != "" || i.Held() {
		t.Errorf("its issue is %s, of %q, held %t", i.Status, i.Assignee, i.Held())
	}
	if r, _ := entity.RunOf(d.Tx, d.Company, run); r.Status != entity.RunCancelled {
		t.Errorf("its run is %s", r.Status)
	}
	if a, _ := entity.AgentOf(d.Tx, d.Company, cy); string(a.ReportsTo) != ada {
		t.Errorf("its report reports to %q", a.ReportsTo)
	}
	if _, ok := entity.AgentByID(d.Tx, bob); ok {
		t.Error("it is still found")
	}
	if _, ok := people.KeyByHash(d.Tx, strings.Repeat("cd", 32)); ok {
		t.Error("its key still holds")
	}
	if _, err := entity.AgentByRef(d.Tx, d.Company, "bob"); err == nil {
		t.Error("its name still leads somewhere")
	}
}

func TestResumingAnAgentOverItsBudgetNamesTheLimit(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	bob := d.Hire(t, "Bob", "")
	d.Must(t, companytest.Board, "budget.set", money.SetBudget{Type: entity.ScopeAgent, Scope: bob,
		Amount: core.Cents(10)}, nil)
	if err := d.Cost(companytest.Board, bob, 10); err != nil {
		t.Fatal(err)
	}
	r := companytest.WantRefusal(t, d.Do(companytest.Board, "agent.resume", company.ChangeAgent{Agent: bob}, nil),
		ledger.Conflict, "Agent is paused because its budget hard-stop was reached.")
	if got := companytest.Detail(t, r); got["scopeId"] != bob || got["amountLimit"] != 10.0 {
		t.Errorf("details %v", got)
	}
	more := core.Cents(20)
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, Budget: &more}, nil)
	if a, _ := entity.AgentOf(d.Tx, d.Company, bob); a.Status != entity.AgentIdle {
		t.Errorf("after raising the limit it is %s", a.Status)
	}
}

func TestConfigurationsAreMergedAndRevised(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	name, http, title := "Bob", "http", "Senior"
	bob := d.ID()
	key := d.Secret(t, "KEY")
	config := func() string { a, _ := entity.AgentOf(d.Tx, d.Company, bob); return string(a.AdapterConfig) }
	d.Must(t, companytest.Board, "agent.create", entity.SaveAgent{ID: bob, Name: &name,
		AdapterConfig: []byte(`{"command":"/bin/sh","env":{"KEY":"canary-1","REF":{"type":"secret_ref","secretId":"` + key +
			`"}}}`)}, nil)

	// What was shown comes back, with one variable changed and one added.
	shown := conceal.RedactConfig([]byte(config()))
	var m map[string]any
	if err := json.Unmarshal(shown, &m); err != nil {
		t.Fatal(err)
	}
	m["timeoutSec"] = 20
	m["env"].(map[string]any)["NEW"] = "canary-2"
	sent, _ := json.Marshal(m)
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, AdapterConfig: sent}, nil)
	want := `{"command":"/bin/sh","env":{"KEY":"canary-1","NEW":"canary-2","REF":{"projectionAllowlistKey":null,` +
		`"projectionClass":"unclassified","secretId":"` + key + `","type":"secret_ref","version":"latest"}},"timeoutSec":20}`
	if config() != want {
		t.Errorf("config %s, want %s", config(), want)
	}
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, Title: &title}, nil)
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, Title: &title}, nil) // changes nothing
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, AdapterType: &http,
		AdapterConfig: []byte(`{"url":"http://x"}`)}, nil)
	if config() != `{"url":"http://x"}` {
		t.Errorf("a change of the adapter kept %s", config())
	}
	d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, AdapterConfig: []byte(`{"method":"POST"}`),
		ReplaceAdapterConfig: true}, nil)
	if config() != `{"method":"POST"}` {
		t.Errorf("a replacement kept %s", config())
	}
	list := entity.RevisionsOf(d.Tx, d.Company, bob)
	var changed [][]string
	for _, r := range list {
		changed = append(changed, r.Changed)
	}
	if want := [][]string{{"adapterConfig"}, {"adapterType", "adapterConfig"}, {"title"},
		{"adapterConfig"}}; !reflect.DeepEqual(changed, want) {
		t.Errorf("revisions changed %v, want %v", changed, want)
	}
	b, _ := json.Marshal(list)
	if strings.Contains(string(b), "canary") {
		t.Errorf("a revision holds a secret: %s", b)
	}
	for range company.MaxRevisions {
		next := title + "+"
		title = next
		d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: bob, Title: &next}, nil)
	}
	if n := len(entity.RevisionsOf(d.Tx, d.Company, bob)); n != company.MaxRevisions {
		t.Errorf("%d revisions are kept, want %d", n, company.MaxRevisions)
	}
}

// The specification has the schedule in adapterConfig, the contract in
// runtimeConfig.heartbeat: a new agent beats by either, and the second counts.
func TestASchedulePutInEitherPlaceIsKept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	for name, c := range map[string]struct {
		adapter, runtime string
		every            int64 // 0: none
		runs             int
	}{
		"nothing":      {`{}`, ``, 0, entity.DefaultConcurrentRuns},
		"adapter":      {`{"enabled":true,"intervalSec":60,"maxConcurrentRuns":3}`, ``, 60, 3},
		"adapter, off": {`{"enabled":false,"intervalSec":60}`, ``, 0, entity.DefaultConcurrentRuns},
		"runtime": {`{}`, `{"heartbeat":{"enabled":true,"intervalSec":90,"maxConcurrentRuns":500}}`, 90,
			entity.MaxConcurrentRuns},
		"both": {`{"enabled":true,"intervalSec":60}`, `{"heartbeat":{"enabled":false}}`, 0,
			entity.DefaultConcurrentRuns},
	} {
		id := d.ID()
		p := entity.SaveAgent{ID: id, Name: &name, AdapterConfig: []byte(c.adapter)}
		if c.runtime != "" {
			p.RuntimeConfig = []byte(c.runtime)
		}
		d.Must(t, companytest.Board, "agent.create", p, nil)
		a, _ := entity.Wakeable(d.Tx, d.Company, id)
		timer, beats := entity.TimerOf(d.Tx, d.Company, id)
		if beats != (c.every > 0) || a.Policy().MaxConcurrentRuns != c.runs || beats && (a.Policy().IntervalSec != c.every ||
			timer.DueAt > core.TimeOf(d.Now)+core.Time(c.every*1000)) {
			t.Errorf("%s: beats %v, %+v", name, beats, a.Policy())
		}
	}
}
