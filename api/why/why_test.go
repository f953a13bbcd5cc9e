package why_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/mind"
)

// A story is one chain of causes: an issue, the run on it, the sub-issue that this run
// delegated, the run of that, what it cost, and the budget's stop.
type story struct {
	*apitest.Harness
	t                                            *testing.T
	of, ada, bob                                 string
	asAda, asBob                                 string
	top, run1, sub, run2, cost, incident, ticket string
}

func tell(t *testing.T) *story {
	h := apitest.NewHarness(t)
	s := &story{Harness: h, t: t, of: h.Company("Acme")}
	s.ada, s.bob = h.NewAgent(ledger.CompanyID(s.of), "Ada", "true"), h.NewAgent(ledger.CompanyID(s.of), "Bob", "true")
	in := "/api/companies/" + s.of
	s.top = h.Assign(ledger.CompanyID(s.of), s.ada, "Close the books")
	s.run1 = h.Start(ledger.CompanyID(s.of), s.runOf(s.top))
	s.asAda, s.asBob = s.bear(s.ada), s.bear(s.bob)
	s.sub = h.Call("POST", in+"/issues",
		`{"title":"Count the invoices","parentId":"`+s.top+`","assigneeAgentId":"`+s.bob+`","status":"todo"}`, s.asAda,
		"X-Paperclip-Run-Id: "+s.run1).Want(t, 201, "").Field(t, "id")
	s.ticket = h.Call("GET", "/api/issues/"+s.sub, "").Want(t, 200, "").Field(t, "identifier")
	s.run2 = h.Start(ledger.CompanyID(s.of), s.runOf(s.sub))
	h.Call("PATCH", "/api/agents/"+s.bob+"/budgets", `{"budgetMonthlyCents":10}`).Want(t, 200, "")
	s.cost = h.Call("POST", in+"/cost-events",
		`{"agentId":"`+s.bob+`","issueId":"`+s.sub+`","heartbeatRunId":"`+s.run2+
			`","provider":"openai","model":"gpt-5","costCents":12,"occurredAt":"`+
			h.Node.Wall().UTC().Format(time.RFC3339)+`"}`, s.asBob, "X-Paperclip-Run-Id: "+s.run2).Want(t, 201, "").
		Field(t, "id")
	for _, row := range h.Call("GET", in+"/budgets/overview", "").Want(t, 200, "").
		Decode(t).(map[string]any)["activeIncidents"].([]any) {
		if row := row.(map[string]any); row["thresholdType"] == "hard" {
			s.incident = row["id"].(string)
		}
	}
	if s.incident == "" {
		t.Fatal("the budget did not stop")
	}
	return s
}

func (s *story) bear(agent string) string {
	return "Authorization: Bearer " + s.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`).Want(s.t, 201, "").
		Field(s.t, "token")
}

// runOf returns the run that an issue's assignment woke.
func (s *story) runOf(issue string) string {
	s.t.Helper()
	for _, row := range s.Call("GET", "/api/companies/"+s.of+"/heartbeat-runs", "").Want(s.t, 200, "").
		Decode(s.t).([]any) {
		row := row.(map[string]any)
		if row["contextSnapshot"].(map[string]any)["issueId"] == issue {
			return row["id"].(string)
		}
	}
	s.t.Fatalf("no run for issue %s", issue)
	return ""
}

// walk returns the nodes and the edges, as "from kind to", of an answer.
func (s *story) walk(way, entity string, headers ...string) (nodes, edges []string, whole map[string]any) {
	s.t.Helper()
	whole = s.Call("GET", "/api/v1/"+way+"/"+strings.ReplaceAll(entity, "#", "%23"), "", headers...).
		Want(s.t, 200, `"nodes"`).Decode(s.t).(map[string]any)
	for _, n := range whole["nodes"].([]any) {
		nodes = append(nodes, n.(map[string]any)["id"].(string))
	}
	for _, e := range whole["edges"].([]any) {
		e := e.(map[string]any)
		edges = append(edges, fmt.Sprint(e["from"], " ", e["kind"], " ", e["to"]))
	}
	return nodes, edges, whole
}

func wantAll(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("%s: lacks %s in\n%s", what, w, strings.Join(got, "\n"))
		}
	}
}

// From a budget's stop back to the issue with which all began, each link by its name, and
// the same way forth.
func TestTheChainOfABudgetStop(t *testing.T) {
	t.Parallel()
	s := tell(t)
	links := []string{
		"cost:" + s.cost + " causes incident:" + s.incident,
		"run:" + s.run2 + " causes cost:" + s.cost,
		"issue:" + s.sub + " triggered_by run:" + s.run2,
		"issue:" + s.top + " causes issue:" + s.sub,
		"run:" + s.run1 + " causes issue:" + s.sub,
		"issue:" + s.top + " triggered_by run:" + s.run1,
		"user:local-board causes issue:" + s.top,
	}
	nodes, edges, whole := s.walk("why", "incident:"+s.incident+"?companyId="+s.of)
	_ = nodes
	wantAll(t, "why of the stop", edges, links...)
	if whole["more"] != false || whole["companyId"] != s.of || whole["height"].(float64) == 0 {
		t.Errorf("answered %v", whole)
	}
	_, edges, _ = s.walk("effects", s.top)
	wantAll(t, "effects of the issue", edges, append(links[:6:6], "incident:"+s.incident+" inhibits run:"+s.run2,
		"incident:"+s.incident+" inhibits agent:"+s.bob)...)
	_, edges, _ = s.walk("why", s.run2)
	wantAll(t, "why of the run that was stopped", edges, "incident:"+s.incident+" inhibits run:"+s.run2)
	nodes, _, _ = s.walk("why", s.ticket)
	wantAll(t, "why by an identifier", nodes, "issue:"+s.sub, "issue:"+s.top, "run:"+s.run1)

	way := s.Call("GET", "/api/v1/path?from="+s.top+"&to=incident:"+s.incident, "").Want(t, 200, `"found":true`).
		Decode(t).(map[string]any)
	if way["direction"] != "forward" || len(way["nodes"].([]any)) != len(way["edges"].([]any))+1 {
		t.Errorf("the way there: %v", way)
	}
	back := s.Call("GET", "/api/v1/path?to="+s.top+"&from=incident:"+s.incident+"&companyId="+s.of, "").
		Want(t, 200, `"direction":"back"`).Decode(t).(map[string]any)
	if len(back["nodes"].([]any)) != len(way["nodes"].([]any)) {
		t.Errorf("the way back: %v", back)
	}
	lone := s.IssueOf(ledger.CompanyID(s.of), "Alone")
	s.Call("GET", "/api/v1/path?from="+lone+"&to="+s.cost+"&companyId="+s.of, "").Want(t, 200, `"nodes"`)
}

// Each of the other kinds of edges is made by the command that means it.
func TestEachKindOfEdge(t *testing.T) {
	t.Parallel()
	s := tell(t)
	in := "/api/companies/" + s.of
	comment := s.Call("POST", "/api/issues/"+s.top+"/comments", `{"body":"Where is \u001b[31mthe ledger?"}`).
		Want(t, 201, "").Field(t, "id")
	_, edges, whole := s.walk("effects", "comment:"+comment+"?companyId="+s.of)
	if len(edges) != 1 || !strings.HasPrefix(edges[0], "comment:"+comment+" triggered_by run:") {
		t.Errorf("what a comment led to: %v", edges)
	}
	if label := whole["nodes"].([]any)[0].(map[string]any)["label"]; label != "Where is [31mthe ledger?" {
		t.Errorf("label %q", label)
	}
	blocker := s.IssueOf(ledger.CompanyID(s.of), "Find the key")
	s.Call("PATCH", "/api/issues/"+s.top, `{"status":"blocked","blockedByIssueIds":["`+blocker+`"]}`).Want(t, 200, "")
	_, edges, _ = s.walk("why", s.top)
	wantAll(t, "a blocked issue", edges, "issue:"+blocker+" inhibits issue:"+s.top)
	s.Call("PATCH", "/api/issues/"+blocker, `{"status":"done"}`).Want(t, 200, "")
	_, edges, _ = s.walk("why", s.top)
	wantAll(t, "an issue that was blocked", edges, "issue:"+blocker+" enables issue:"+s.top)
	_, edges, _ = s.walk("effects", blocker)
	memory := ""
	for _, e := range edges {
		if id, ok := strings.CutPrefix(e, "issue:"+blocker+" evidence_for memory:"); ok {
			memory = id
		}
	}
	if memory == "" {
		t.Errorf("a closed issue left no memory: %v", edges)
	}
	_, edges, _ = s.walk("why", memory)
	wantAll(t, "a memory", edges, "issue:"+blocker+" evidence_for memory:"+memory)

	ask := s.Call("POST", in+"/approvals",
		`{"type":"request_board_approval","payload":{"title":"Pay","summary":"Pay Globex"},"issueIds":["`+s.top+`"]}`,
		s.asAda, "X-Paperclip-Run-Id: "+s.run1).Want(t, 201, "").Field(t, "id")
	_, edges, _ = s.walk("why", s.top)
	wantAll(t, "an issue that waits", edges, "approval:"+ask+" inhibits issue:"+s.top)
	s.Call("POST", "/api/approvals/"+ask+"/reject", `{}`).Want(t, 200, "")
	_, edges, _ = s.walk("why", s.top)
	wantAll(t, "an issue that was told no", edges, "approval:"+ask+" contradicts issue:"+s.top,
		"user:local-board contradicts approval:"+ask, "run:"+s.run1+" causes approval:"+ask)

	entries := s.Call("GET", in+"/activity?entityType=issue&entityId="+s.top, "").Want(t, 200, "").Decode(t).([]any)
	height := fmt.Sprint(entries[0].(map[string]any)["height"])
	_, edges, _ = s.walk("why", "#"+height+"?companyId="+s.of)
	if !slices.ContainsFunc(edges, func(e string) bool { return strings.HasSuffix(e, " follows entry:"+height) }) {
		t.Errorf("the entry before: %v", edges)
	}
	_, edges, _ = s.walk("effects", "entry:"+height+"?companyId="+s.of)
	wantAll(t, "what an entry changed", edges, "entry:"+height+" causes issue:"+s.top)
}

// No question reaches into another company, and none shows what another agent keeps to itself.
func TestBoundariesOfTheGraph(t *testing.T) {
	t.Parallel()
	s := tell(t)
	other := s.Company("Globex")
	eve := s.bear(s.NewAgent(ledger.CompanyID(other), "Eve", "true"))
	for _, name := range []string{s.top, s.ticket, s.run1, "issue:" + s.sub, "cost:" + s.cost, "incident:" + s.incident,
		s.ada, "entry:5", "%235"} {
		for _, way := range []string{"why", "effects"} {
			s.Call("GET", "/api/v1/"+way+"/"+name, "", eve).Want(t, 404, "Entity not found")
			s.Call("GET", "/api/v1/"+way+"/"+name+"?companyId="+s.of, "", eve).Want(t, 404, "Entity not found")
			s.Call("GET", "/api/v1/"+way+"/"+name+"?companyId="+other, "").Want(t, 404, "Entity not found")
		}
		s.Call("GET", "/api/v1/path?from="+name+"&to="+s.top, "", eve).Want(t, 404, "Entity not found")
	}
	hidden := s.Call("POST", "/api/v1/memory", `{"text":"Ada keeps this","private":true,"issueId":"`+s.top+`"}`, s.asAda).
		Want(t, 201, "").Field(t, "id")
	shared := s.Call("POST", "/api/v1/memory", `{"text":"All know this","links":["`+hidden+`"]}`, s.asAda).
		Want(t, 201, "").Field(t, "id")
	s.Call("GET", "/api/v1/why/"+hidden, "", s.asBob).Want(t, 404, "Entity not found")
	nodes, _, whole := s.walk("why", shared, s.asBob)
	if slices.Contains(nodes, "memory:"+hidden) || whole["more"] != false {
		t.Errorf("Bob is shown what Ada keeps: %v", nodes)
	}
	for _, as := range []string{s.asAda, ""} {
		heads := []string{as}
		if as == "" {
			heads = nil
		}
		nodes, _, _ = s.walk("why", shared, heads...)
		wantAll(t, "who may", nodes, "memory:"+hidden, "issue:"+s.top)
	}
}

// What is no entity, or no number, is refused by its field.
func TestBadQuestions(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "?companyId=" + of
	issue := h.IssueOf(ledger.CompanyID(of), "One")
	for path, says := range map[string]string{
		"/api/v1/why/" + strings.Repeat("x", 161) + in:  "entity: at most 160 bytes",
		"/api/v1/why/a%00b" + in:                        "entity: give an ID",
		"/api/v1/why/a%20b" + in:                        "entity: give an ID",
		"/api/v1/why/%1b[31m" + in:                      "entity: give an ID",
		"/api/v1/effects/a%2Fb" + in:                    "entity: give an ID",
		"/api/v1/why/" + issue + in + "&depth=deep":     "Invalid depth",
		"/api/v1/why/" + issue + in + "&limit=1e9":      "Invalid limit",
		"/api/v1/path" + in:                             "from: required",
		"/api/v1/path" + in + "&from=" + issue:          "to: required",
		"/api/v1/path" + in + "&from=a%20b&to=" + issue: "from: give an ID",
	} {
		h.Call("GET", path, "").Want(t, 400, says)
	}
	h.Call("GET", "/api/v1/why/nothing", "").Want(t, 404, "Entity not found")
	for _, name := range []string{"nothing", "ACM-999", "lunch:1", "issue:", "issue:..", "entry:0", "entry:-1",
		"entry:99999999999999999999", "%23999999", "user%3A", issue + "x", "comment:" + issue} {
		h.Call("GET", "/api/v1/why/"+name+in, "").Want(t, 404, "Entity not found")
	}
	h.Call("GET", "/api/v1/why/"+issue+in+"&depth=100000&limit=-3", "").Want(t, 200, `"nodes"`) // brought into bounds
	h.Call("GET", "/api/v1/why/"+issue+"?companyId=nonsense", "").Want(t, 404, "Entity not found")
}

// People are told what the mind did, and only of companies that they see; agents are not.
func TestTheMindIsShown(t *testing.T) {
	t.Parallel()
	off := apitest.NewHarness(t)
	off.Call("GET", "/api/v1/mind", "").Want(t, 200, `"state":"off"`)
	var seen, hidden string
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Mind = func() mind.Stat {
			at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
			return mind.Stat{State: "ticking", Leads: true, Ticks: 7, Interval: 50 * time.Millisecond,
				Budget: 15 * time.Millisecond, Waiting: 3, Linked: 2,
				Last: []mind.Impulse{{Kind: mind.Novelty, Company: ledger.CompanyID(seen), Record: "r1", At: at, Until: at},
					{Kind: mind.Belief, Company: ledger.CompanyID(hidden), Record: "r2", At: at, Until: at}},
				Calibration: mind.Calibration{At: at, CPU: 31 * time.Microsecond, Tick: 2 * time.Millisecond}}
		}
	})
	seen, hidden = h.Company("Acme"), "00000000-0000-4000-8000-000000000009"
	a := h.Call("GET", "/api/v1/mind", "").Want(t, 200, `"state":"ticking"`)
	for _, text := range []string{`"count":7`, `"budgetMicros":15000`, `"waiting":3`, `"linked":2`, `"memoryId":"r1"`,
		`"hashMicros":31`, `"tickMicros":2000`} {
		a.Want(t, 200, text)
	}
	if strings.Contains(string(a.Body), "r2") {
		t.Errorf("it tells of a company that the asker does not see: %s", a.Body)
	}
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+h.NewAgent(ledger.CompanyID(seen), "Ada",
		"true")+"/keys", `{"name":"k"}`).Want(t, 201, "").Field(t, "token")
	h.Call("GET", "/api/v1/mind", "", key).Want(t, 403, "Board access required")
}
