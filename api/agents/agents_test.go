package agents_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestNoAnswerShowsASecret(t *testing.T) {
	h := apitest.NewTeam(t)
	in, agent, project := "/api/companies/"+string(h.Company), "/api/agents/"+h.Worker, "/api/projects/"+h.Project
	h.Call("PATCH", agent, `{"title":"Senior","adapterConfig":{"env":{"A":"`+apitest.Canary+`2"}}}`).
		Want(t, 200, `"title":"Senior"`)
	for _, c := range [][3]string{
		{"GET", in + "/agents", ""}, {"GET", in + "/agent-configurations", ""}, {"GET", agent, ""},
		{"GET", "/api/agents/bob-builder?companyId=" + string(h.Company), ""},
		{"GET", agent + "/configuration", ""}, {"GET", agent + "/config-revisions", ""},
		{"PATCH", agent, `{"capabilities":"builds"}`},
		{"POST", agent + "/pause", ""}, {"POST", agent + "/resume", ""}, {"PATCH", agent + "/permissions",
			`{"canCreateAgents":true,"canAssignTasks":true}`},
		{"PATCH", agent + "/budgets", `{"budgetMonthlyCents":100}`}, {"GET", in + "/projects", ""}, {"GET", project, ""},
		{"PATCH", project, `{"status":"planned"}`},
		{"GET", project + "/workspaces", ""}, {"GET", in + "/activity", ""},
		{"GET", in + "/audit/agent-actions?actorType=user", ""}, {"GET", agent + "/keys", ""},
		{"GET", in + "/dashboard", ""}, {"GET", in + "/org", ""}, {"GET", in + "/org.svg", ""},
		{"GET", "/api/v1/mesh/ledger/entries", ""},
		{"POST", agent + "/terminate", ""}, {"GET", in + "/agents?includeTerminated=true", ""},
	} {
		a := h.Call(c[0], c[1], c[2]).Want(t, 200, "")
		if strings.Contains(string(a.Body), apitest.Canary) {
			t.Errorf("%s %s shows a secret: %s", c[0], c[1], a.Body)
		}
		if strings.Contains(string(a.Body), h.Token) {
			t.Errorf("%s %s shows the token", c[0], c[1])
		}
	}
	if log := h.Log.String(); strings.Contains(log, apitest.Canary) || strings.Contains(log, h.Token) {
		t.Error("a secret is in the log")
	}
}

func TestAHiddenValueThatComesBackIsKept(t *testing.T) {
	h := apitest.NewTeam(t)
	agent := "/api/agents/" + h.Worker
	var shown struct {
		AdapterConfig json.RawMessage `json:"adapterConfig"`
	}
	if err := json.Unmarshal(h.Call("GET", agent, "").Body, &shown); err != nil {
		t.Fatal(err)
	}
	h.Call("PATCH", agent, `{"adapterConfig":`+string(shown.AdapterConfig)+`}`).Want(t, 200, "")
	if a := h.Call("GET", agent+"/config-revisions", ""); strings.TrimSpace(string(a.Body)) != "[]" {
		t.Errorf("sending back what was shown changed the configuration: %s", a.Body)
	}
}

func TestAKeyIsShownOnceAndOpensItsOwnCompanyOnly(t *testing.T) {
	h := apitest.NewTeam(t)
	if len(h.Token) != len("pcp_")+48 || !strings.HasPrefix(h.Token, "pcp_") {
		t.Errorf("token %q", h.Token)
	}
	h.Call("GET", "/api/agents/me", "", h.As()).Want(t, 200, `"urlKey":"bob-builder"`)
	h.Call("GET", "/api/agents/ada", "", h.As()).Want(t, 200, h.Boss) // a name is resolved in the caller's company
	other := h.Call("POST", "/api/companies", `{"name":"Other"}`).Want(t, 201, "").Field(t, "id")
	stranger := h.Call("POST", "/api/companies/"+other+"/agents", `{"name":"Zed"}`).Want(t, 201, "").Field(t, "id")
	goal := h.Call("POST", "/api/companies/"+other+"/goals", `{"title":"Theirs"}`).Want(t, 201, "").Field(t, "id")
	project := h.Call("POST", "/api/companies/"+other+"/projects", `{"name":"Theirs"}`).Want(t, 201, "").Field(t, "id")

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
		{"POST", "/api/companies/" + string(h.Company) + "/agents", `{"name":"nope"}`, 403, "Board access required"},
		{"POST", "/api/agents/" + h.Worker + "/keys", `{"name":"nope"}`, 403, "Board access required"},
		{"POST", "/api/agents/" + h.Boss + "/pause", "", 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.Boss, `{"title":"x"}`, 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.Worker, `{"adapterConfig":{"command":"x"}}`, 403, "Board access required"},
		{"PATCH", "/api/agents/" + h.Worker, `{"capabilities":"x"}`, 200, `"capabilities":"x"`},
		{"DELETE", "/api/goals/" + h.Goal, "", 403, "Board access required"},
	} {
		h.Call(c.method, c.path, c.body, h.As()).Want(t, c.status, c.text)
	}
	if list := h.Call("GET", "/api/companies", "", h.As()).Decode(t).([]any); len(list) != 1 {
		t.Errorf("an agent sees %d companies", len(list))
	}
	h.Call("DELETE", "/api/agents/"+h.Worker+"/keys/"+h.Key, "").Want(t, 200, `{"ok":true}`)
	h.Call("GET", "/api/agents/me", "", h.As()).Want(t, 401, "did not verify")
}

func TestRepeatingTheRequestForAKeyShowsTheSameToken(t *testing.T) {
	h := apitest.NewTeam(t)
	path := "/api/agents/" + h.Worker + "/keys"
	first := h.Call("POST", path, `{"name":"again"}`, "Idempotency-Key: k").Want(t, 201, "")
	again := h.Call("POST", path, `{"name":"again"}`, "Idempotency-Key: k").Want(t, 201, "")
	if string(first.Body) != string(again.Body) {
		t.Errorf("first %s, then %s", first.Body, again.Body)
	}
	h.Call("GET", "/api/agents/me", "", "Authorization: Bearer "+again.Field(t, "token")).Want(t, 200, h.Worker)
}

func TestADeletedCompanyIsGone(t *testing.T) {
	h := apitest.NewTeam(t)
	one := "/api/companies/" + string(h.Company)
	h.Call("DELETE", one, "").Want(t, 200, `{"ok":true}`)
	for _, path := range []string{one, one + "/agents", "/api/agents/" + h.Worker, "/api/goals/" + h.Goal,
		"/api/projects/" + h.Project, one + "/activity", one + "/dashboard"} {
		h.Call("GET", path, "").Want(t, 404, "not found")
	}
	h.Call("DELETE", one, "").Want(t, 404, "Company not found")
	h.Call("DELETE", "/api/companies/nobody", "").Want(t, 404, "Company not found")
	h.Call("GET", "/api/agents/me", "", h.As()).
		Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")
	h.Call("POST", "/api/v1/mesh/ledger/verify", "").Want(t, 200, `"ok":true`)
}

func TestCompanyStatusIsPatched(t *testing.T) {
	h := apitest.NewTeam(t)
	one := "/api/companies/" + string(h.Company)
	for _, status := range []string{"paused", "active", "archived", "active"} {
		h.Call("PATCH", one, `{"status":"`+status+`"}`).Want(t, 200, `"status":"`+status+`"`)
	}
	h.Call("PATCH", one, `{"status":"sold"}`).Want(t, 400, "Validation error")
	h.Call("PATCH", one+"/branding", `{"color":"red"}`).Want(t, 400, "Validation error")
}

func TestActivityIsFilteredAndPaged(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	count := func(query string) int {
		return len(h.Call("GET", in+"/activity?"+query, "").Want(t, 200, "").Decode(t).([]any))
	}
	if all, agents := count(""), count("entityType=agent&entityId="+h.Worker); agents < 2 || agents >= all {
		t.Errorf("%d lines in all, %d about the agent", all, agents)
	}
	if n := count("action=goal.created"); n != 1 {
		t.Errorf("%d goals were created", n)
	}
	h.Call("PATCH", "/api/agents/"+h.Worker, `{"capabilities":"x"}`, h.As()).Want(t, 200, "")
	h.Call("PATCH", "/api/agents/"+h.Worker, `{"capabilities":"y"}`, h.As()).Want(t, 200, "")
	if n := count("agentId=" + h.Worker); n != 2 {
		t.Errorf("%d lines by the agent", n)
	}
	first := h.Call("GET", in+"/audit/agent-actions?limit=1", "").Want(t, 200, `"accessTier":"full"`)
	second := h.Call("GET", in+"/audit/agent-actions?limit=1&cursor="+first.Field(t, "nextCursor"), "").
		Want(t, 200, `"agent.updated"`)
	if string(first.Body) == string(second.Body) {
		t.Error("the second page is the first")
	}
	h.Call("GET", in+"/audit/agent-actions?cursor=x", "").Want(t, 400, "cursor")
	h.Call("POST", in+"/activity",
		`{"actorId":"me","action":"custom.note","entityType":"company","entityId":"`+string(h.Company)+
			`","details":{"x":1}}`).Want(t, 201, `"details":{"x":1}`)
	h.Call("POST", in+"/activity", `{"actorId":"me","action":"custom.note","entityType":"company","entityId":"x"}`,
		h.As()).Want(t, 403, "Board access required")
}

func TestTheDrawnOrgChartIsXMLWhateverAgentsAreCalled(t *testing.T) {
	h := apitest.NewTeam(t)
	in := "/api/companies/" + string(h.Company)
	name, _ := json.Marshal(`<script>alert("&")</script>` + strings.Repeat("ü", 30))
	h.Call("POST", in+"/agents", `{"name":`+string(name)+`,"reportsTo":"`+h.Boss+`"}`).Want(t, 201, "")
	a := h.Call("GET", in+"/org.svg", "").Want(t, 200, "Bob Builder")
	if got := a.Header.Get("Content-Type"); !strings.HasPrefix(got, "image/svg+xml") {
		t.Errorf("content type %q", got)
	}
	d := xml.NewDecoder(strings.NewReader(string(a.Body)))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, a.Body)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("a name became an element")
		}
	}
}

// A setting of the wrong type would be stored and shown but count as absent: a timer
// that never fires, a limit without effect.
func TestAScheduleThatWouldBeIgnoredIsRefused(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	in, agent := "/api/companies/"+string(h.Company), "/api/agents/"+h.Worker
	const whole, count = "Invalid input: expected int, received number", "Invalid input: expected number, received string"
	for beat, message := range map[string]string{
		`"every hour"`:                           "Invalid input: expected object, received string",
		`[]`:                                     "Invalid input: expected object, received array",
		`{"enabled":"yes"}`:                      "Invalid input: expected boolean, received string",
		`{"wakeOnDemand":0}`:                     "Invalid input: expected boolean, received number",
		`{"skipTimerWhenNoActionableWork":"no"}`: "Invalid input: expected boolean, received string",
		`{"enabled":true,"intervalSec":"60"}`:    count, `{"enabled":true,"intervalSec":60.5}`: whole,
		`{"intervalSec":1e3}`:                 whole,
		`{"intervalSec":9223372036854775807}`: whole, `{"intervalSec":-5}`: "Too small: expected number to be",
		`{"maxConcurrentRuns":"3"}`: count, `{"maxConcurrentRuns":2.5}`: whole,
		`{"maxDailyRuns":-1}`:         "Too small: expected number to be",
		`{"maxDailyCostCents":"100"}`: count, `{"maxFruitlessRuns":[]}`: "Invalid input: expected number, received array",
	} {
		runtime := `"runtimeConfig":{"heartbeat":` + beat + `}`
		h.Call("POST", in+"/agents", `{"name":"Cy",`+runtime+`}`).Want(t, 400, message).
			Want(t, 400, `"path":["runtimeConfig","heartbeat"`)
		h.Call("PATCH", agent, `{`+runtime+`}`).Want(t, 400, message)
		h.Call("POST", in+"/agent-hires", `{"name":"Cy",`+runtime+`}`).Want(t, 400, message)
		h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Cy",`+runtime+`}}`).Want(t, 400, message).
			Want(t, 400, `"path":["payload","runtimeConfig","heartbeat"`)
		if strings.HasPrefix(beat, "{") {
			h.Call("POST", in+"/agents", `{"name":"Cy","adapterConfig":`+beat+`}`).Want(t, 400, message).
				Want(t, 400, `"path":["adapterConfig",`)
		}
	}
	// Clamped, absent and unknown settings are accepted.
	h.Call("PATCH", agent,
		`{"runtimeConfig":{"heartbeat":{"enabled":null,"intervalSec":0,"maxConcurrentRuns":500,"cooldownSec":"x"}}}`).
		Want(t, 200, `"maxConcurrentRuns":500`)
	h.Call("PATCH", agent, `{"runtimeConfig":{"heartbeat":null},"adapterConfig":{"maxConcurrentRuns":-1}}`).
		Want(t, 200, "")
}

// PATCH with a status pauses, resumes and terminates, as the routes for that do.
func TestAStatusThatIsPatchedIsTaken(t *testing.T) {
	t.Parallel()
	h := apitest.NewTeam(t)
	agent := "/api/agents/" + h.Worker
	h.Call("PATCH", agent, `{"status":"idle"}`).Want(t, 200, `"status":"idle"`)
	h.Call("PATCH", agent, `{"status":"paused","title":"Rested"}`).Want(t, 200, `"pauseReason":"manual"`).
		Want(t, 200, `"title":"Rested"`).Want(t, 200, `"status":"paused"`)
	h.Call("POST", agent+"/heartbeat/invoke", "").Want(t, 409, "Agent is not invokable in its current state")
	h.Call("PATCH", agent, `{"status":"paused"}`).Want(t, 200, `"status":"paused"`) // a client sends the row back
	h.Call("PATCH", agent, `{"status":"active"}`, h.As()).Want(t, 403, "Board access required")
	h.Call("PATCH", agent, `{"status":"running"}`).Want(t, 422, "follows from its runs")
	h.Call("PATCH", agent, `{"status":"asleep"}`).Want(t, 400, "Invalid option")
	h.Call("PATCH", agent, `{"status":"active"}`).Want(t, 200, `"status":"idle"`)
	h.Call("PATCH", agent, `{"status":"terminated"}`).Want(t, 200, `"status":"terminated"`)
	h.Call("PATCH", agent, `{"status":"idle"}`).Want(t, 409, "Cannot resume terminated agent")
	h.Call("GET", "/api/companies/"+string(h.Company)+"/activity", "").Want(t, 200, "agent.paused").
		Want(t, 200, "agent.resumed").Want(t, 200, "agent.terminated")
}

// A configuration that the adapter could not decode is refused when an agent is created,
// hired, requested, invited or changed. The refusal names the member. Members that the
// adapter does not know are accepted.
func TestAConfigurationIsOfTheTypesThatItsAdapterTakes(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	invite := h.Call("POST", in+"/invites", `{"allowedJoinTypes":"both"}`).Want(t, 201, "").Field(t, "token")
	agent := h.Call("POST", in+"/agents",
		`{"name":"Ada","adapterConfig":{"command":"true","theirs":{"a":1},"sessionKey":5,"args":["a"]}}`).Want(t, 201, "").
		Field(t, "id")
	ways := map[string]func(config string) apitest.Answer{
		"made": func(c string) apitest.Answer {
			return h.Call("POST", in+"/agents", `{"name":"Bob","adapterConfig":`+c+`}`)
		},
		"hired": func(c string) apitest.Answer {
			return h.Call("POST", in+"/agent-hires", `{"name":"Bob","adapterConfig":`+c+`}`)
		},
		"changed": func(c string) apitest.Answer { return h.Call("PATCH", "/api/agents/"+agent, `{"adapterConfig":`+c+`}`) },
		"asked for": func(c string) apitest.Answer {
			return h.Call("POST", in+"/approvals", `{"type":"hire_agent","payload":{"name":"Bob","adapterConfig":`+c+`}}`)
		},
		"cheap": func(c string) apitest.Answer {
			return h.Call("PATCH", "/api/agents/"+agent, `{"runtimeConfig":{"modelProfiles":{"cheap":{"adapterConfig":`+c+`}}}}`)
		},
		"invited": func(c string) apitest.Answer {
			return h.Call("POST", "/api/invites/"+invite+"/accept",
				`{"requestType":"agent","agentName":"J","adapterType":"process","agentDefaultsPayload":`+c+`}`)
		},
	}
	for way, do := range ways {
		for field, config := range map[string]string{"timeoutSec": `{"timeoutSec":"x"}`, "env": `{"env":5}`,
			"cwd": `{"cwd":3}`, "command": `{"command":[]}`, "memoryMb": `{"limits":{"memoryMb":"1"}}`} {
			if a := do(config); a.Status != 400 || !apitest.Names(a.Body, field) {
				t.Errorf("%s with %s: %d %s", way, config, a.Status, a.Body)
			}
		}
		if a := do(`{"theirs":{"timeoutSec":"x"},"timeoutSec":null}`); a.Status >= 300 {
			t.Errorf("%s with what nobody knows: %d %s", way, a.Status, a.Body)
		}
	}
	h.Call("PATCH", "/api/agents/"+agent, `{"adapterType":"openclaw_gateway"}`).
		Want(t, 400, `["adapterConfig","sessionKey"]`)
	h.Call("PATCH", "/api/agents/"+agent, `{"adapterType":"openclaw_gateway","adapterConfig":{"sessionKey":"x"}}`).
		Want(t, 200, "")
	h.Call("PATCH", "/api/agents/"+agent, `{"adapterConfig":{"sessionKey":5}}`).Want(t, 400, "sessionKey")
	h.Call("PATCH", "/api/agents/"+agent,
		`{"adapterType":"process","adapterConfig":{"sessionKey":5},"replaceAdapterConfig":true}`).Want(t, 200, "")
}
