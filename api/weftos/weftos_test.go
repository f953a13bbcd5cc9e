package weftos_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// finish returns the script of an agent that ends its issue with a comment and tells what it cost.
func finish(h *apitest.Harness) string {
	return `curl -sf -X POST -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: ` +
		`$PAPERCLIP_RUN_ID" -H 'Content-Type: application/json' -d '{"agentId":"'$PAPERCLIP_AGENT_ID'",` +
		`"heartbeatRunId":"'$PAPERCLIP_RUN_ID'","provider":"local","model":"small","inputTokens":40,"outputTokens":2,` +
		`"costCents":3,"occurredAt":"` + h.Node.Wall().UTC().Format(time.RFC3339) + `"}' ` +
		`$PAPERCLIP_API_URL/api/companies/$PAPERCLIP_COMPANY_ID/cost-events >/dev/null
curl -sf -X PATCH -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H ` +
		`'Content-Type: application/json' -d '{"status":"done","comment":"Found 2 potential issues"}' ` +
		`$PAPERCLIP_API_URL/api/issues/$PAPERCLIP_TASK_ID >/dev/null`
}

// hand makes an agent that hands its work on, gives it an issue, and waits until the issue has a status.
func hand(t *testing.T, h *apitest.Harness, of ledger.CompanyID, name, config, title, status string) entity.Issue {
	t.Helper()
	a := h.Call("POST", "/api/companies/"+string(of)+"/agents",
		fmt.Sprintf(`{"name":%q,"role":"engineer","adapterType":"weftos","adapterConfig":%s}`, name, config)).
		Want(t, 201, "").Field(t, "id")
	id := h.Call("POST", "/api/companies/"+string(of)+"/issues",
		fmt.Sprintf(`{"title":%q,"assigneeAgentId":%q,"status":"todo"}`, title, a)).Want(t, 201, "").Field(t, "id")
	var i entity.Issue
	h.Until(name+"'s issue to be "+status, func(tx *ledger.Tx) bool {
		i, _ = entity.IssueOf(tx, of, id)
		over := false
		for r := range entity.RunsOfIssue(tx, of, id) {
			if over = !r.Status.Live(); r.Status == entity.RunFailed {
				t.Fatalf("%s: %s", r.Error, r.ResultJSON)
			}
		}
		return over && string(i.Status) == status
	})
	return i
}

// A task of one mesh is done by an agent of another, with a capability token; the gate there is asked first. What it
// used is booked on the agent that handed it on.
func TestATaskIsHandedToAnotherMesh(t *testing.T) {
	near, far := apitest.NewWorkingHarness(t), apitest.NewWorkingHarness(t)
	there := ledger.CompanyID(far.Company("Far"))
	reviewer := far.NewAgent(there, "Reviewer", finish(far))
	token := far.Call("POST", "/api/v1/capabilities", `{"capabilities":["govern","execute"],"agent_id":"`+reviewer+`"}`).
		Want(t, 201, `"scheme":"WeftOS-Cap"`).Field(t, "token")
	here := ledger.CompanyID(near.Company("Near"))
	config := fmt.Sprintf(`{"base_url":%q,"token":%q,"agentId":%q,"model":"local/llama3.1"}`, far.Web, token, reviewer)
	i := hand(t, near, here, "Hand", config, "Review PR #42", "done")
	near.Call("GET", "/api/issues/"+i.ID+"/comments", "").Want(t, 200, "Found 2 potential issues")
	near.Call("GET", "/api/companies/"+string(here)+"/costs/summary", "").Want(t, 200, `"spendCents":3`)
	far.Call("GET", "/api/companies/"+string(there)+"/issues", "").Want(t, 200, `local/llama3.1`)
	list := near.Call("GET", "/api/companies/"+string(here)+"/heartbeat-runs", "").Decode(t).([]any)
	runs := near.Call("GET", "/api/heartbeat-runs/"+list[0].(map[string]any)["id"].(string), "").
		Want(t, 200, `"decision":"permit"`)
	if strings.Contains(string(runs.Body), token) || strings.Contains(near.Log.String(), token) {
		t.Error("the token is in a run or a log")
	}

	// A token for another agent is refused, and the run says so.
	other := far.NewAgent(there, "Other", "true")
	a := near.Call("POST", "/api/companies/"+string(here)+"/agents",
		fmt.Sprintf(`{"name":"Wrong","role":"engineer","adapterType":"weftos","adapterConfig":{"baseUrl":%q,`+
			`"token":%q,"agentId":%q}}`, far.Web, token, other)).Want(t, 201, "").Field(t, "id")
	id := near.Call("POST", "/api/companies/"+string(here)+"/issues",
		fmt.Sprintf(`{"title":"Spy","assigneeAgentId":%q,"status":"todo"}`, a)).Want(t, 201, "").Field(t, "id")
	near.Until("the run to fail", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, here, id) {
			return r.ErrorCode == "auth_required" && strings.Contains(string(r.Error), "another agent")
		}
		return false
	})
}

// An agent hands its work to one of its own mesh as itself: without a token, with the rights of its run. Work that
// goes in a circle ends.
func TestATaskIsHandedOnWithinTheMesh(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	h.NewAgent(of, "Doer", finish(h))
	i := hand(t, h, of, "Lead", `{"agentId":"Doer"}`, "Do it", "done")
	h.Call("GET", "/api/issues/"+i.ID+"/comments", "").Want(t, 200, "Found 2 potential issues")
	h.Call("GET", "/api/companies/"+string(of)+"/costs/summary", "").Want(t, 200, `"spendCents":3`) // once, on who did it
	loop := `{"title":"Round and round","description":"Context:\n\n` + "```json\\n{\\n  \\\"weftos_hops\\\": 8\\n}\\n```" +
		`","assigneeAgentId":%q,"status":"todo"}`
	lead := h.Call("GET", "/api/companies/"+string(of)+"/agents", "").Decode(t).([]any)
	for _, a := range lead {
		if a := a.(map[string]any); a["name"] == "Lead" {
			id := h.Call("POST", "/api/companies/"+string(of)+"/issues", fmt.Sprintf(loop, a["id"])).Want(t, 201, "").
				Field(t, "id")
			h.Until("the circle to end", func(tx *ledger.Tx) bool {
				i, _ := entity.IssueOf(tx, of, id)
				return i.Status == entity.IssueBlocked
			})
			h.Call("GET", "/api/issues/"+id+"/comments", "").Want(t, 200, "handed on 8 times")
		}
	}
}

// A capability token does what it grants, where it grants it, until its credential ends.
func TestACapabilityTokenGrantsWhatItSays(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	agent := func(name string) string {
		return h.Call("POST", "/api/companies/"+of+"/agents",
			`{"name":"`+name+`","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
			Field(t, "id")
	}
	ada, bob := agent("Ada"), agent("Bob")
	mint := func(body string, as ...string) string {
		return "Authorization: WeftOS-Cap " + h.Call("POST", "/api/v1/capabilities", body, as...).
			Want(t, 201, `"token":"cap1.`).Field(t, "token")
	}
	ask := func(who string) string { return `{"action":"fs.stat","agent_id":"` + who + `"}` }
	govern := mint(`{"capabilities":["govern"],"agent_id":"Ada","company_id":"` + of + `"}`)
	h.Call("POST", "/api/v1/govern", ask(ada), govern).Want(t, 200, `"decision":"permit"`)
	h.Call("POST", "/api/v1/govern", ask(bob), govern).Want(t, 403, `"code":"FORBIDDEN"`)
	h.Call("POST", "/api/v1/execute", `{"agent_id":"`+ada+`","task":"x"}`, govern).Want(t, 403, "it grants govern")
	h.Call("GET", "/api/companies", "", govern).Want(t, 403, "does not grant this")
	h.Call("POST", "/api/v1/capabilities", `{"capabilities":["execute"]}`, govern).Want(t, 403, "does not grant this")
	h.Call("POST", "/api/v1/govern", ask(ada), govern+"x").Want(t, 401, `"code":"UNAUTHORIZED"`)
	h.Call("POST", "/api/v1/govern", ask(ada), "Authorization: WeftOS-Cap admin").Want(t, 401, `"code":"UNAUTHORIZED"`)
	h.Call("POST", "/api/v1/execute", `{"agent_id":"`+ada+`","task":"x","timeout_ms":0}`,
		mint(`{"capabilities":["execute"]}`)).Want(t, 202, `"agent_id":"`+ada+`"`)

	// It ends with the key that it was made with, and an agent's is for its own company.
	key := h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "")
	asAda := "Authorization: Bearer " + key.Field(t, "token")
	own := mint(`{"capabilities":["govern"],"ttl_seconds":60}`, asAda)
	h.Call("POST", "/api/v1/govern", ask(ada), own).Want(t, 200, `"decision":"permit"`)
	h.Call("POST", "/api/v1/govern", ask(bob), own).Want(t, 403, "an agent asks about itself")
	h.Call("POST", "/api/v1/capabilities", `{"capabilities":["govern"],"company_id":"`+h.Company("Other")+`"}`, asAda).
		Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("DELETE", "/api/agents/"+ada+"/keys/"+key.Field(t, "id"), "").Want(t, 200, "")
	h.Call("POST", "/api/v1/govern", ask(ada), own).Want(t, 401, `"code":"UNAUTHORIZED"`)

	for body, code := range map[string]string{`{}`: "capabilities", `{"capabilities":["admin"]}`: "capabilities",
		`{"capabilities":["govern"],"ttl_seconds":86401}`: "ttl_seconds",
		`{"capabilities":["govern"],"ttl_seconds":0}`:     "ttl_seconds",
		`{"capabilities":["govern"],"company_id":"x"}`:    "company_id"} {
		h.Call("POST", "/api/v1/capabilities", body).Want(t, 400, code)
	}
	h.Call("POST", "/api/v1/capabilities",
		`{"capabilities":["govern"],"agent_id":"00000000-0000-4000-8000-000000000000"}`).Want(t, 404, `"code":"NOT_FOUND"`)
}

// The documented request is answered with the members of both published forms, each of its type.
func TestTheGateAnswersBothForms(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	a := h.Call("POST", "/api/v1/govern",
		`{"action":"execute_shell_command","agent_id":"agent-reviewer","context":{"command":"rm -rf /tmp/build",`+
			`"risk":0.7}}`).Want(t, 200, "")
	var got struct {
		Decision    string
		Reason      string
		Vector      json.RawMessage `json:"effect_vector"`
		Magnitude   float64         `json:"effect_magnitude"`
		Rules       []string        `json:"evaluated_rules"`
		Attestation *string
		Chain       *string `json:"chain_hash"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(a.Body, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"decision", "reason", "effect_vector", "chain_hash", "attestation", "evaluated_rules",
		"effect_magnitude"} {
		if _, ok := members[name]; !ok {
			t.Errorf("the answer lacks %s: %s", name, a.Body)
		}
	}
	if got.Decision != "deny" || got.Reason != "High-risk shell command requires Manager approval" ||
		string(got.Vector) != "[0.7,0.5,0.3,0.8,0.6]" ||
		got.Magnitude != 1.353 || len(got.Rules) == 0 {
		t.Errorf("got %s", a.Body)
	}
}
