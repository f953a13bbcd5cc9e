package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestAStepThatTheStateForbidsTellsTheState takes a step that is not allowed in each
// machine of states, and wants a 409 (of approvals the recorded 422) whose details
// tell the present state, and what may follow it where a change of state was asked for.
//
// It would catch a client that is told no and has to guess why.
func TestAStepThatTheStateForbidsTellsTheState(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	in := "/api/companies/" + string(of)
	post := func(path, body string, status int, headers ...string) apitest.Answer {
		t.Helper()
		return h.Call("POST", path, body, headers...).Want(t, status, "")
	}
	id := func(path, body string) string { t.Helper(); return post(path, body, 201).Field(t, "id") }
	hire := func(name string) string { return id(in+"/agents", `{"name":"`+name+`","adapterType":"process"}`) }
	ada, gone, rests := hire("Ada"), hire("Gone"), hire("Rests")
	post("/api/agents/"+gone+"/terminate", "", 200)
	post("/api/agents/"+rests+"/pause", "", 200)
	key := "Authorization: Bearer " + post("/api/agents/"+ada+"/keys", `{"name":"k"}`, 201).Field(t, "token")
	run := h.Running(of, ada)
	asAda := []string{key, "X-Paperclip-Run-Id: " + run}
	h.Call("PATCH", in, `{"requireBoardApprovalForNewAgents":true}`).Want(t, 200, "")
	asked := post(in+"/agent-hires", `{"name":"Asked"}`, 201, asAda...).Decode(t).(map[string]any)
	waits := asked["agent"].(map[string]any)["id"].(string)
	h.Call("PATCH", in, `{"requireBoardApprovalForNewAgents":false}`).Want(t, 200, "")

	issue := func(status string) string {
		return id(in+"/issues", `{"title":"Task `+api.NewID()+`","status":"`+status+`","assigneeAgentId":"`+ada+`"}`)
	}
	backlog, done := issue("backlog"), issue("todo")
	h.Call("PATCH", "/api/issues/"+done, `{"status":"done"}`).Want(t, 200, "")

	approval := func(verb string) string {
		a := id(in+"/approvals", `{"type":"request_board_approval","payload":{"title":"`+verb+`"}}`)
		if verb != "" {
			post("/api/approvals/"+a+"/"+verb, `{}`, 200)
		}
		return "/api/approvals/" + a
	}
	fresh, approved, rejected, revised := approval(""), approval("approve"), approval("reject"),
		approval("request-revision")

	routine := id(in+"/routines", `{"title":"Daily","assigneeAgentId":"`+ada+`"}`)
	hook := post("/api/routines/"+routine+"/triggers", `{"kind":"webhook","signingMode":"none"}`, 201).
		Decode(t).(map[string]any)["trigger"].(map[string]any)
	h.Call("PATCH", "/api/routine-triggers/"+hook["id"].(string), `{"enabled":false}`).Want(t, 200, "")
	archived := id(in+"/routines", `{"title":"Past","assigneeAgentId":"`+ada+`","status":"archived"}`)

	join := func(verb string) (path string, claim string) {
		invite := post(in+"/invites", `{"allowedJoinTypes":"agent"}`, 201)
		a := post("/api/invites/"+invite.Field(t, "token")+"/accept",
			`{"requestType":"agent","agentName":"J`+api.NewID()+`","adapterType":"http"}`, 202)
		path = in + "/join-requests/" + a.Field(t, "id")
		if verb != "" {
			post(path+"/"+verb, `{}`, 200)
		} else {
			path = "/api/invites/" + invite.Field(t, "id") + "/revoke" // what it came from
		}
		return path, a.Field(t, "claimApiKeyPath") + " " + `{"claimSecret":"` + a.Field(t, "claimSecret") + `"}`
	}
	usedInvite, tooSoon := join("")
	letIn, claim := join("approve")
	sentAway, _ := join("reject")
	claimAt, claimBody, _ := strings.Cut(claim, " ")
	soonAt, soonBody, _ := strings.Cut(tooSoon, " ")
	post(claimAt, claimBody, 201)

	ask := func() string {
		return "/api/issues/" + backlog + "/interactions/" + id("/api/issues/"+backlog+"/interactions",
			`{"kind":"request_confirmation","payload":{"version":1,"prompt":"Go on?"}}`)
	}
	said := ask()
	post(said+"/reject", `{"reason":"No"}`, 200)
	hold := "/api/issues/" + backlog + "/tree-holds"
	post(hold, `{"mode":"pause"}`, 200)
	held := apitest.FirstOf(t, h.Call("GET", hold, ""))
	post(hold+"/"+held+"/release", `{}`, 200)

	spender := hire("Spender")
	h.Call("PATCH", "/api/agents/"+spender+"/budgets", `{"budgetMonthlyCents":10}`).Want(t, 200, "")
	post(in+"/cost-events", `{"agentId":"`+spender+`","provider":"p","model":"m","costCents":11,"occurredAt":"`+
		h.Node.Wall().UTC().Format(time.RFC3339)+`"}`, 201)
	incident := ""
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for _, i := range money.OpenIncidents(tx, of, core.TimeOf(h.Node.Wall())) {
			if i.Threshold == "hard" {
				incident = in + "/budget-incidents/" + i.ID + "/resolve"
			}
		}
		return nil
	}); err != nil || incident == "" {
		t.Fatal("no incident", err)
	}
	post(incident, `{"action":"raise_budget_and_resume","amount":1000}`, 200)

	ended := h.Running(of, ada)
	post("/api/heartbeat-runs/"+ended+"/cancel", "", 200)
	other := h.Company("Beta")
	post("/api/companies/"+other+"/archive", "", 200)
	node := string(h.Node.Keys.ID())

	for _, c := range []struct {
		what, method, path, body string
		headers                  []string
		status                   int
		details                  string // what they must hold, as JSON
	}{
		{"agent: terminated, pause", "POST", "/api/agents/" + gone + "/pause", "", nil, 409, `{"agentId":"` + gone +
			`","status":"terminated","requestedStatus":"paused","allowedStatuses":[]}`},
		{"agent: terminated, resume", "POST", "/api/agents/" + gone + "/resume", "", nil, 409,
			`{"status":"terminated","requestedStatus":"idle","allowedStatuses":[]}`},
		{"agent: pending, pause", "POST", "/api/agents/" + waits + "/pause", "", nil, 409,
			`{"status":"pending_approval","requestedStatus":"paused","allowedStatuses":["idle","terminated"]}`},
		{"agent: pending, resume", "POST", "/api/agents/" + waits + "/resume", "", nil, 409,
			`{"status":"pending_approval","allowedStatuses":["idle","terminated"]}`},
		{"agent: running, approve", "POST", "/api/agents/" + ada + "/approve", "", nil, 409,
			`{"status":"running","requestedStatus":"idle","allowedStatuses":["paused","terminated"]}`},
		{"agent: paused, invoke", "POST", "/api/agents/" + rests + "/heartbeat/invoke", "", nil, 409,
			`{"status":"paused","agentId":"` + rests + `"}`},
		{"agent: terminated, key", "POST", "/api/agents/" + gone + "/keys", `{"name":"k"}`, nil, 409,
			`{"status":"terminated"}`},
		{"agent: pending, key", "POST", "/api/agents/" + waits + "/keys", `{"name":"k"}`, nil, 409,
			`{"status":"pending_approval"}`},
		{"agent: terminated, work", "POST", in + "/issues", `{"title":"x","assigneeAgentId":"` + gone + `"}`, nil, 409,
			`{"agentId":"` + gone + `","status":"terminated"}`},
		{"agent: pending, work", "PATCH", "/api/issues/" + backlog, `{"assigneeAgentId":"` + waits + `"}`, nil, 409,
			`{"status":"pending_approval"}`},
		{"agent: terminated, report", "PATCH", "/api/agents/" + ada, `{"reportsTo":"` + gone + `"}`, nil, 409,
			`{"agentId":"` + gone + `","status":"terminated"}`},
		{"agent: terminated, message", "POST", "/api/agents/" + gone + "/messages", `{"type":"x","payload":{}}`, nil, 409,
			`{"status":"terminated"}`},
		{"company: archived, pause", "POST", "/api/companies/" + other + "/pause", "", nil, 409, `{"companyId":"` + other +
			`","status":"archived","requestedStatus":"paused","allowedStatuses":["active"]}`},
		{"issue: by an agent", "PATCH", "/api/issues/" + backlog, `{"status":"done"}`, asAda, 409, `{"issueId":"` + backlog +
			`","status":"backlog","requestedStatus":"done","allowedStatuses":["todo","cancelled"]}`},
		{"issue: by the board", "PATCH", "/api/issues/" + done, `{"status":"in_review"}`, nil, 409,
			`{"status":"done","requestedStatus":"in_review","allowedStatuses":["todo","backlog"]}`},
		{"issue: checkout", "POST", "/api/issues/" + done + "/checkout", `{"agentId":"` + ada +
			`","expectedStatuses":["todo"]}`, asAda, 409, `{"issueId":"` + done + `","status":"done","assigneeAgentId":"` +
			ada + `"}`},
		{"issue: release", "POST", "/api/issues/" + done + "/release", "", nil, 409, `{"issueId":"` + done +
			`","status":"done"}`},
		{"approval: approved, reject", "POST", approved + "/reject", `{}`, nil, 422,
			`{"status":"approved","requestedStatus":"rejected","allowedStatuses":[]}`},
		{"approval: rejected, approve", "POST", rejected + "/approve", `{}`, nil, 422,
			`{"status":"rejected","requestedStatus":"approved","allowedStatuses":[]}`},
		{"approval: revised, revise", "POST", revised + "/request-revision", `{}`, nil, 422,
			`{"status":"revision_requested","requestedStatus":"revision_requested","allowedStatuses":["pending",` +
				`"approved","rejected","cancelled"]}`},
		{"approval: pending, resubmit", "POST", fresh + "/resubmit", `{}`, nil, 422,
			`{"status":"pending","requestedStatus":"pending","allowedStatuses":["revision_requested","approved",` +
				`"rejected","cancelled"]}`},
		{"routine: archived, run", "POST", "/api/routines/" + archived + "/run", `{}`, nil, 409, `{"routineId":"` + archived +
			`","status":"archived"}`},
		{"routine: trigger off, run", "POST", "/api/routines/" + routine + "/run", `{"triggerId":"` + hook["id"].(string) +
			`"}`, nil, 409, `{"triggerId":"` + hook["id"].(string) + `","enabled":false,"status":"active"}`},
		{"routine: trigger off, fire", "POST", "/api/routine-triggers/public/" + hook["publicId"].(string) + "/fire", `{}`,
			nil, 409, `{"enabled":false,"status":"active"}`},
		{"run: over, told of", "POST", "/api/heartbeat-runs/" + ended + "/callback", `{"status":"succeeded"}`, []string{key},
			409, `{"runId":"` + ended + `","status":"cancelled"}`},
		{"run: nothing to retry", "POST", "/api/issues/" + backlog + "/scheduled-retry/retry-now", "", nil, 409,
			`{"issueId":"` + backlog + `","status":"backlog"}`},
		{"join request: rejected, approve", "POST", sentAway + "/approve", `{}`, nil, 409,
			`{"status":"rejected","requestedStatus":"approved","allowedStatuses":[]}`},
		{"join request: approved, reject", "POST", letIn + "/reject", `{}`, nil, 409,
			`{"status":"approved","requestedStatus":"rejected","allowedStatuses":[]}`},
		{"join request: pending, claim", "POST", soonAt, soonBody, nil, 409,
			`{"status":"pending_approval","claimedAt":null}`},
		{"join request: claimed, claim", "POST", claimAt, claimBody, nil, 409, `{"status":"approved"}`},
		{"invite: accepted, revoke", "POST", usedInvite, "", nil, 409,
			`{"status":"accepted","requestedStatus":"revoked","allowedStatuses":[]}`},
		{"interaction: rejected, accept", "POST", said + "/accept", `{}`, nil, 409, `{"status":"rejected"}`},
		{"tree hold: released, release", "POST", hold + "/" + held + "/release", `{}`, nil, 409, `{"holdId":"` + held +
			`","status":"released"}`},
		{"budget incident: resolved, resolve", "POST", incident, `{"action":"keep_paused"}`, nil, 409,
			`{"status":"resolved"}`},
		{"mesh: at work, resume", "POST", "/api/v1/mesh/resume", "", nil, 409, `{"stopped":false}`},
		{"node: at work, uncordon", "POST", "/api/v1/mesh/nodes/" + node + "/uncordon", "", nil, 409, `{"nodeId":"` + node +
			`","cordoned":false}`},
	} {
		a := h.Call(c.method, c.path, c.body, c.headers...)
		var got struct {
			Error   string
			Details map[string]json.RawMessage
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.details), &want); err != nil {
			t.Fatal(c.what, err)
		}
		if err := json.Unmarshal(a.Body, &got); err != nil || a.Status != c.status || got.Error == "" {
			t.Errorf("%s: answered %d %s, want %d", c.what, a.Status, a.Body, c.status)
			continue
		}
		for name, v := range want {
			if string(got.Details[name]) != string(v) {
				t.Errorf("%s: %s of the details is %s, want %s, in %s", c.what, name, got.Details[name], v, a.Body)
			}
		}
	}
}
