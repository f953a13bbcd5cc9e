package api

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// team is a company with two agents, a project and a goal; every secret that a
// caller can hand in holds the canary.
type team struct {
	*harness
	company, boss, worker, project, goal, key, token string
}

const canary = "canary-4711-secret"

func newTeam(t *testing.T) *team {
	t.Helper()
	h := &team{harness: newHarness(t)}
	h.company = h.call("POST", "/api/companies", `{"name":"Acme","budgetMonthlyCents":5000}`).want(t, 201, `"budgetMonthlyCents":5000`).field(t, "id")
	in := "/api/companies/" + h.company
	h.boss = h.call("POST", in+"/agents", `{"name":"Ada","role":"ceo","adapterType":"process"}`).want(t, 201, `"status":"idle"`).field(t, "id")
	h.worker = h.call("POST", in+"/agents", `{"name":"Bob Builder","reportsTo":"`+h.boss+`","adapterConfig":{"command":"/bin/sh","args":["-c","MY_TOKEN=`+canary+` run"],
		"env":{"A":"`+canary+`","B":{"type":"plain","value":"`+canary+`"}},"apiKey":"`+canary+`","headers":{"Authorization":"Bearer `+canary+`"}},
		"runtimeConfig":{"heartbeat":{"enabled":false},"webhookSecret":"`+canary+`"},"metadata":{"password":"`+canary+`"}}`).want(t, 201, "").field(t, "id")
	h.goal = h.call("POST", in+"/goals", `{"title":"Ship","level":"company"}`).want(t, 201, `"status":"planned"`).field(t, "id")
	h.project = h.call("POST", in+"/projects", `{"name":"Rig","goalIds":["`+h.goal+`"],"env":{"A":"`+canary+`"},
		"workspace":{"cwd":"/tmp","metadata":{"token":"`+canary+`"}}}`).want(t, 201, `"isPrimary":true`).field(t, "id")
	made := h.call("POST", "/api/agents/"+h.worker+"/keys", `{"name":"k"}`).want(t, 201, `"scope":{"kind":"standard"}`)
	h.key, h.token = made.field(t, "id"), made.field(t, "token")
	return h
}

func (h *team) as() string { return "Authorization: Bearer " + h.token }

func TestNoAnswerShowsASecret(t *testing.T) {
	h := newTeam(t)
	in, agent, project := "/api/companies/"+h.company, "/api/agents/"+h.worker, "/api/projects/"+h.project
	h.call("PATCH", agent, `{"title":"Senior","adapterConfig":{"env":{"A":"`+canary+`2"}}}`).want(t, 200, `"title":"Senior"`)
	for _, c := range [][3]string{
		{"GET", in + "/agents", ""}, {"GET", in + "/agent-configurations", ""}, {"GET", agent, ""}, {"GET", "/api/agents/bob-builder?companyId=" + h.company, ""},
		{"GET", agent + "/configuration", ""}, {"GET", agent + "/config-revisions", ""}, {"PATCH", agent, `{"capabilities":"builds"}`},
		{"POST", agent + "/pause", ""}, {"POST", agent + "/resume", ""}, {"PATCH", agent + "/permissions", `{"canCreateAgents":true,"canAssignTasks":true}`},
		{"PATCH", agent + "/budgets", `{"budgetMonthlyCents":100}`}, {"GET", in + "/projects", ""}, {"GET", project, ""}, {"PATCH", project, `{"status":"planned"}`},
		{"GET", project + "/workspaces", ""}, {"GET", in + "/activity", ""}, {"GET", in + "/audit/agent-actions?actorType=user", ""}, {"GET", agent + "/keys", ""},
		{"GET", in + "/dashboard", ""}, {"GET", in + "/org", ""}, {"GET", in + "/org.svg", ""}, {"GET", "/api/v1/mesh/ledger/entries", ""},
		{"POST", agent + "/terminate", ""}, {"GET", in + "/agents?includeTerminated=true", ""},
	} {
		a := h.call(c[0], c[1], c[2]).want(t, 200, "")
		if strings.Contains(string(a.body), canary) {
			t.Errorf("%s %s shows a secret: %s", c[0], c[1], a.body)
		}
		if strings.Contains(string(a.body), h.token) {
			t.Errorf("%s %s shows the token", c[0], c[1])
		}
	}
	if log := h.log.String(); strings.Contains(log, canary) || strings.Contains(log, h.token) {
		t.Error("a secret is in the log")
	}
}

func TestAHiddenValueThatComesBackIsKept(t *testing.T) {
	h := newTeam(t)
	agent := "/api/agents/" + h.worker
	var shown struct {
		AdapterConfig json.RawMessage `json:"adapterConfig"`
	}
	if err := json.Unmarshal(h.call("GET", agent, "").body, &shown); err != nil {
		t.Fatal(err)
	}
	h.call("PATCH", agent, `{"adapterConfig":`+string(shown.AdapterConfig)+`}`).want(t, 200, "")
	if a := h.call("GET", agent+"/config-revisions", ""); strings.TrimSpace(string(a.body)) != "[]" {
		t.Errorf("sending back what was shown changed the configuration: %s", a.body)
	}
}

func TestAKeyIsShownOnceAndOpensItsOwnCompanyOnly(t *testing.T) {
	h := newTeam(t)
	if len(h.token) != len("pcp_")+48 || !strings.HasPrefix(h.token, "pcp_") {
		t.Errorf("token %q", h.token)
	}
	h.call("GET", "/api/agents/me", "", h.as()).want(t, 200, `"urlKey":"bob-builder"`)
	h.call("GET", "/api/agents/ada", "", h.as()).want(t, 200, h.boss) // a name is looked up at home
	other := h.call("POST", "/api/companies", `{"name":"Other"}`).want(t, 201, "").field(t, "id")
	stranger := h.call("POST", "/api/companies/"+other+"/agents", `{"name":"Zed"}`).want(t, 201, "").field(t, "id")
	goal := h.call("POST", "/api/companies/"+other+"/goals", `{"title":"Theirs"}`).want(t, 201, "").field(t, "id")
	project := h.call("POST", "/api/companies/"+other+"/projects", `{"name":"Theirs"}`).want(t, 201, "").field(t, "id")

	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/api/companies/" + other, "", 403, "Agent key cannot access another company"},
		{"GET", "/api/companies/" + other + "/agents", "", 403, "Agent key cannot access another company"},
		{"GET", "/api/companies/" + strings.ToUpper(other) + "/goals", "", 403, "Agent key cannot access another company"},
		{"GET", "/api/agents/" + stranger, "", 404, "Agent not found"},
		{"PATCH", "/api/agents/" + stranger, `{"title":"x"}`, 404, "Agent not found"},
		{"GET", "/api/goals/" + goal, "", 404, "Goal not found"},
		{"PATCH", "/api/goals/" + goal, `{"title":"x"}`, 404, "Goal not found"},
		{"GET", "/api/projects/" + project, "", 404, "Project not found"},
		{"PATCH", "/api/projects/" + project, `{"name":"x"}`, 404, "Project not found"},
		{"POST", "/api/companies", `{"name":"nope"}`, 403, "Board access required"},
		{"POST", "/api/companies/" + h.company + "/agents", `{"name":"nope"}`, 403, "Board access required"},
		{"POST", "/api/agents/" + h.worker + "/keys", `{"name":"nope"}`, 403, "Board access required"},
		{"POST", "/api/agents/" + h.boss + "/pause", "", 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.boss, `{"title":"x"}`, 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.worker, `{"adapterConfig":{"command":"x"}}`, 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.worker, `{"capabilities":"x"}`, 200, `"capabilities":"x"`},
		{"DELETE", "/api/goals/" + h.goal, "", 403, "Board access required"},
	} {
		h.call(c.method, c.path, c.body, h.as()).want(t, c.status, c.text)
	}
	if list := h.call("GET", "/api/companies", "", h.as()).decode(t).([]any); len(list) != 1 {
		t.Errorf("an agent sees %d companies", len(list))
	}
	h.call("DELETE", "/api/agents/"+h.worker+"/keys/"+h.key, "").want(t, 200, `{"ok":true}`)
	h.call("GET", "/api/agents/me", "", h.as()).want(t, 401, "did not verify")
}

func TestRepeatingTheRequestForAKeyShowsTheSameToken(t *testing.T) {
	h := newTeam(t)
	path := "/api/agents/" + h.worker + "/keys"
	first := h.call("POST", path, `{"name":"again"}`, "Idempotency-Key: k").want(t, 201, "")
	again := h.call("POST", path, `{"name":"again"}`, "Idempotency-Key: k").want(t, 201, "")
	if string(first.body) != string(again.body) {
		t.Errorf("first %s, then %s", first.body, again.body)
	}
	h.call("GET", "/api/agents/me", "", "Authorization: Bearer "+again.field(t, "token")).want(t, 200, h.worker)
}

func TestADeletedCompanyIsGone(t *testing.T) {
	h := newTeam(t)
	one := "/api/companies/" + h.company
	h.call("DELETE", one, "").want(t, 200, `{"ok":true}`)
	for _, path := range []string{one, one + "/agents", "/api/agents/" + h.worker, "/api/goals/" + h.goal, "/api/projects/" + h.project, one + "/activity", one + "/dashboard"} {
		h.call("GET", path, "").want(t, 404, "not found")
	}
	h.call("DELETE", one, "").want(t, 404, "Company not found")
	h.call("DELETE", "/api/companies/nobody", "").want(t, 404, "Company not found")
	h.call("GET", "/api/agents/me", "", h.as()).want(t, 401, "")
	h.call("POST", "/api/v1/mesh/ledger/verify", "").want(t, 200, `"ok":true`)
}

func TestCompanyStatusIsPatched(t *testing.T) {
	h := newTeam(t)
	one := "/api/companies/" + h.company
	for _, status := range []string{"paused", "active", "archived", "active"} {
		h.call("PATCH", one, `{"status":"`+status+`"}`).want(t, 200, `"status":"`+status+`"`)
	}
	h.call("PATCH", one, `{"status":"sold"}`).want(t, 400, "Validation error")
	h.call("PATCH", one+"/branding", `{"color":"red"}`).want(t, 400, "Validation error")
}

func TestActivityIsFilteredAndPaged(t *testing.T) {
	h := newTeam(t)
	in := "/api/companies/" + h.company
	count := func(query string) int {
		return len(h.call("GET", in+"/activity?"+query, "").want(t, 200, "").decode(t).([]any))
	}
	if all, agents := count(""), count("entityType=agent&entityId="+h.worker); agents < 2 || agents >= all {
		t.Errorf("%d lines in all, %d about the agent", all, agents)
	}
	if n := count("action=goal.created"); n != 1 {
		t.Errorf("%d goals were created", n)
	}
	h.call("PATCH", "/api/agents/"+h.worker, `{"capabilities":"x"}`, h.as()).want(t, 200, "")
	h.call("PATCH", "/api/agents/"+h.worker, `{"capabilities":"y"}`, h.as()).want(t, 200, "")
	if n := count("agentId=" + h.worker); n != 2 {
		t.Errorf("%d lines by the agent", n)
	}
	first := h.call("GET", in+"/audit/agent-actions?limit=1", "").want(t, 200, `"accessTier":"full"`)
	second := h.call("GET", in+"/audit/agent-actions?limit=1&cursor="+first.field(t, "nextCursor"), "").want(t, 200, `"agent.updated"`)
	if string(first.body) == string(second.body) {
		t.Error("the second page is the first")
	}
	h.call("GET", in+"/audit/agent-actions?cursor=x", "").want(t, 400, "cursor")
	h.call("POST", in+"/activity", `{"actorId":"me","action":"custom.note","entityType":"company","entityId":"`+h.company+`","details":{"x":1}}`).want(t, 201, `"details":{"x":1}`)
	h.call("POST", in+"/activity", `{"actorId":"me","action":"custom.note","entityType":"company","entityId":"x"}`, h.as()).want(t, 403, "Board access required")
}

func TestTheDrawnOrgChartIsXMLWhateverAgentsAreCalled(t *testing.T) {
	h := newTeam(t)
	in := "/api/companies/" + h.company
	name, _ := json.Marshal(`<script>alert("&")</script>` + strings.Repeat("ü", 30))
	h.call("POST", in+"/agents", `{"name":`+string(name)+`,"reportsTo":"`+h.boss+`"}`).want(t, 201, "")
	a := h.call("GET", in+"/org.svg", "").want(t, 200, "Bob Builder")
	if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "image/svg+xml") {
		t.Errorf("content type %q", got)
	}
	d := xml.NewDecoder(strings.NewReader(string(a.body)))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("a name became an element")
		}
	}
}

// A setting of the wrong type would be kept, shown, and taken for one that is not
// there: a timer that never fires, a bound that does not bind.
func TestAScheduleThatWouldBeIgnoredIsRefused(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	in, agent := "/api/companies/"+h.company, "/api/agents/"+h.worker
	const whole, count = "Invalid input: expected int, received number", "Invalid input: expected number, received string"
	for beat, message := range map[string]string{
		`"every hour"`: "Invalid input: expected object, received string", `[]`: "Invalid input: expected object, received array",
		`{"enabled":"yes"}`: "Invalid input: expected boolean, received string", `{"wakeOnDemand":0}`: "Invalid input: expected boolean, received number",
		`{"skipTimerWhenNoActionableWork":"no"}`: "Invalid input: expected boolean, received string",
		`{"enabled":true,"intervalSec":"60"}`:    count, `{"enabled":true,"intervalSec":60.5}`: whole, `{"intervalSec":1e3}`: whole,
		`{"intervalSec":9223372036854775807}`: whole, `{"intervalSec":-5}`: "Too small: expected number to be",
		`{"maxConcurrentRuns":"3"}`: count, `{"maxConcurrentRuns":2.5}`: whole, `{"maxDailyRuns":-1}`: "Too small: expected number to be",
		`{"maxDailyCostCents":"100"}`: count, `{"maxFruitlessRuns":[]}`: "Invalid input: expected number, received array",
	} {
		runtime := `"runtimeConfig":{"heartbeat":` + beat + `}`
		h.call("POST", in+"/agents", `{"name":"Cy",`+runtime+`}`).want(t, 400, message).want(t, 400, `"path":["runtimeConfig","heartbeat"`)
		h.call("PATCH", agent, `{`+runtime+`}`).want(t, 400, message)
		h.call("POST", in+"/agent-hires", `{"name":"Cy",`+runtime+`}`).want(t, 400, message)
		h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Cy",`+runtime+`}}`).want(t, 400, message).want(t, 400, `"path":["payload","runtimeConfig","heartbeat"`)
		if strings.HasPrefix(beat, "{") {
			h.call("POST", in+"/agents", `{"name":"Cy","adapterConfig":`+beat+`}`).want(t, 400, message).want(t, 400, `"path":["adapterConfig",`)
		}
	}
	// What is clamped, absent or unknown is no fault.
	h.call("PATCH", agent, `{"runtimeConfig":{"heartbeat":{"enabled":null,"intervalSec":0,"maxConcurrentRuns":500,"cooldownSec":"x"}}}`).want(t, 200, `"maxConcurrentRuns":500`)
	h.call("PATCH", agent, `{"runtimeConfig":{"heartbeat":null},"adapterConfig":{"maxConcurrentRuns":-1}}`).want(t, 200, "")
}

// PATCH with a status pauses, lets go on and ends, as the routes do that are for it.
func TestAStatusThatIsPatchedIsTaken(t *testing.T) {
	t.Parallel()
	h := newTeam(t)
	agent := "/api/agents/" + h.worker
	h.call("PATCH", agent, `{"status":"idle"}`).want(t, 200, `"status":"idle"`)
	h.call("PATCH", agent, `{"status":"paused","title":"Rested"}`).want(t, 200, `"pauseReason":"manual"`).want(t, 200, `"title":"Rested"`).want(t, 200, `"status":"paused"`)
	h.call("POST", agent+"/heartbeat/invoke", "").want(t, 409, "Agent is not invokable in its current state")
	h.call("PATCH", agent, `{"status":"paused"}`).want(t, 200, `"status":"paused"`) // a row that is sent back
	h.call("PATCH", agent, `{"status":"active"}`, h.as()).want(t, 403, "Board access required")
	h.call("PATCH", agent, `{"status":"running"}`).want(t, 422, "follows from its runs")
	h.call("PATCH", agent, `{"status":"asleep"}`).want(t, 400, "Invalid option")
	h.call("PATCH", agent, `{"status":"active"}`).want(t, 200, `"status":"idle"`)
	h.call("PATCH", agent, `{"status":"terminated"}`).want(t, 200, `"status":"terminated"`)
	h.call("PATCH", agent, `{"status":"idle"}`).want(t, 409, "Cannot resume terminated agent")
	h.call("GET", "/api/companies/"+h.company+"/activity", "").want(t, 200, "agent.paused").want(t, 200, "agent.resumed").want(t, 200, "agent.terminated")
}

// What no run of an adapter could decode is refused when an agent is made, hired,
// asked for, invited or changed, with the member named; what the adapter does not know
// is taken.
func TestAConfigurationIsOfTheTypesThatItsAdapterTakes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	invite := h.call("POST", in+"/invites", `{"allowedJoinTypes":"both"}`).want(t, 201, "").field(t, "token")
	agent := h.call("POST", in+"/agents", `{"name":"Ada","adapterConfig":{"command":"true","theirs":{"a":1},"sessionKey":5,"args":["a"]}}`).want(t, 201, "").field(t, "id")
	ways := map[string]func(config string) answer{
		"made": func(c string) answer { return h.call("POST", in+"/agents", `{"name":"Bob","adapterConfig":`+c+`}`) },
		"hired": func(c string) answer {
			return h.call("POST", in+"/agent-hires", `{"name":"Bob","adapterConfig":`+c+`}`)
		},
		"changed": func(c string) answer { return h.call("PATCH", "/api/agents/"+agent, `{"adapterConfig":`+c+`}`) },
		"asked for": func(c string) answer {
			return h.call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Bob","adapterConfig":`+c+`}}`)
		},
		"cheap": func(c string) answer {
			return h.call("PATCH", "/api/agents/"+agent, `{"runtimeConfig":{"modelProfiles":{"cheap":{"adapterConfig":`+c+`}}}}`)
		},
		"invited": func(c string) answer {
			return h.call("POST", "/api/invites/"+invite+"/accept", `{"requestType":"agent","agentName":"J","adapterType":"process","agentDefaultsPayload":`+c+`}`)
		},
	}
	for way, do := range ways {
		for field, config := range map[string]string{"timeoutSec": `{"timeoutSec":"x"}`, "env": `{"env":5}`, "cwd": `{"cwd":3}`, "command": `{"command":[]}`, "memoryMb": `{"limits":{"memoryMb":"1"}}`} {
			if a := do(config); a.status != 400 || !names(a.body, field) {
				t.Errorf("%s with %s: %d %s", way, config, a.status, a.body)
			}
		}
		if a := do(`{"theirs":{"timeoutSec":"x"},"timeoutSec":null}`); a.status >= 300 {
			t.Errorf("%s with what nobody knows: %d %s", way, a.status, a.body)
		}
	}
	h.call("PATCH", "/api/agents/"+agent, `{"adapterType":"openclaw_gateway"}`).want(t, 400, `["adapterConfig","sessionKey"]`)
	h.call("PATCH", "/api/agents/"+agent, `{"adapterType":"openclaw_gateway","adapterConfig":{"sessionKey":"x"}}`).want(t, 200, "")
	h.call("PATCH", "/api/agents/"+agent, `{"adapterConfig":{"sessionKey":5}}`).want(t, 400, "sessionKey")
	h.call("PATCH", "/api/agents/"+agent, `{"adapterType":"process","adapterConfig":{"sessionKey":5},"replaceAdapterConfig":true}`).want(t, 200, "")
}
