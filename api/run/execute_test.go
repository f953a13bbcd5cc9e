package run_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/run"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A task passes through issue, scheduler and adapter. The answer has the result and
// names the chain entry that closed it.
func TestExecuteRunsATask(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of, now := ledger.CompanyID(h.Company("Kernel")), h.Node.Wall().UTC().Format(time.RFC3339)
	const curl = `curl -sf -X POST -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: ` +
		`$PAPERCLIP_RUN_ID" -H 'Content-Type: application/json'`
	// It first requests an embedding, which is only a part of its costs.
	good := h.NewAgent(of, "Reviewer",
		curl+` -d '{"agentId":"'$PAPERCLIP_AGENT_ID'","heartbeatRunId":"'$PAPERCLIP_RUN_ID'","provider":"local",`+
			`"model":"embed","inputTokens":7,"costCents":0,"occurredAt":"`+now+`"}' `+
			`$PAPERCLIP_API_URL/api/companies/$PAPERCLIP_COMPANY_ID/cost-events >/dev/null
`+curl+` -d '{"agentId":"'$PAPERCLIP_AGENT_ID'","heartbeatRunId":"'$PAPERCLIP_RUN_ID'","provider":"local",`+
			`"model":"small","inputTokens":1000,"outputTokens":234,"costCents":3,"occurredAt":"`+now+`"}' `+
			`$PAPERCLIP_API_URL/api/companies/$PAPERCLIP_COMPANY_ID/cost-events >/dev/null
curl -sf -X PATCH -H "Authorization: Bearer $PAPERCLIP_API_KEY" -H "X-Paperclip-Run-Id: $PAPERCLIP_RUN_ID" -H `+
			`'Content-Type: application/json' -d '{"status":"done","comment":"Found 2 potential issues"}' `+
			`$PAPERCLIP_API_URL/api/issues/$PAPERCLIP_TASK_ID >/dev/null`)
	bad := h.NewAgent(of, "Faulty", "echo broken; exit 3")
	slow := h.NewAgent(of, "Slow", "sleep 100")

	a := h.Call("POST", "/api/v1/execute",
		`{"agent_id":"reviewer","task":"Review PR #42\nfor security issues","context":{"company_id":"`+string(of)+
			`","pr_number":42,"budget_remaining_usd":1.5}}`).
		Want(t, 200, `"result":"Found 2 potential issues"`).Want(t, 200, `"score":1,`).Want(t, 200, `"tokens_used":1241`).
		Want(t, 200, `"cost_usd":0.03`).
		Want(t, 200, `"model":"small"`).Want(t, 200, `"status":"succeeded"`)
	id, theRun := a.Field(t, "execution_id"), a.Field(t, "run_id")
	hash := a.Field(t, "chain_hash")
	found := ""
	_ = h.Node.Ledger.View(func(tx *ledger.Tx) error {
		height, _ := h.Node.Ledger.Head()
		for ; height > 0; height-- {
			if e, ok := ledger.EntryAt(tx, height); ok && hex.EncodeToString(e.Hash[:]) == hash {
				found = e.Kind
			}
		}
		return nil
	})
	if found != "run.finish" {
		t.Errorf("chain_hash is of an entry %q", found)
	}
	h.Call("GET", "/api/v1/executions/"+id, "").Want(t, 200, `"chain_hash":"`+hash+`"`)
	h.Call("GET", "/api/heartbeat-runs/"+theRun, "").Want(t, 200, `"status":"succeeded"`)
	h.Call("GET", "/api/issues/"+id, "").Want(t, 200, `"title":"Review PR #42"`).Want(t, 200, `pr_number`)

	h.Call("POST", "/api/v1/execute", `{"agent_id":"`+bad+`","task":"Fail"}`).Want(t, 200, `"status":"failed"`).
		Want(t, 200, `"score":0,`).Want(t, 200, `"result":"broken\n"`)
	wait := h.Call("POST", "/api/v1/execute", `{"agent_id":"`+slow+`","task":"Sleep","timeout_ms":50}`).
		Want(t, 202, `"chain_hash":null`).Field(t, "url")
	h.Call("GET", wait, "").Want(t, 202, `"result":null`)

	// An agent's key may do what the agent may; another company's agent is not found.
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+slow+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	h.Call("POST", "/api/v1/execute", `{"agent_id":"reviewer","task":"Again"}`, key).
		Want(t, 401, `"message":"Agent run id required"`)
	live := ""
	h.Until("the slow one to run", func(tx *ledger.Tx) bool {
		for _, r := range entity.LiveRunsOfAgent(tx, of, slow) {
			live = r.ID
			return r.Status == entity.RunRunning
		}
		return false
	})
	h.Call("POST", "/api/v1/execute", `{"agent_id":"reviewer","task":"Again"}`, key, "X-Paperclip-Run-Id: "+live).
		Want(t, 200, `"status":"succeeded"`)
	other := ledger.CompanyID(h.Company("Other"))
	theirs := h.NewAgent(other, "Theirs", "true")
	h.Call("POST", "/api/v1/execute", `{"agent_id":"`+theirs+`","task":"Spy"}`, key, "X-Paperclip-Run-Id: "+live).
		Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("GET", "/api/v1/executions/"+id, "", "Authorization: Bearer nobody").Want(t, 401, `"code":"UNAUTHORIZED"`)
	h.Call("GET", "/api/v1/health", "").Want(t, 200, `"status":"ok"`)
	_ = good

	for _, c := range []struct {
		body, code string
		status     int
	}{
		{`{`, "PARSE_ERROR", 400},
		{`{"task":"x"}`, "INVALID_AGENT_ID", 400},
		{`{"agent_id":"reviewer","task":"x"}`, "INVALID_AGENT_ID", 400}, // the company is ambiguous
		{`{"agent_id":"` + good + `","task":" "}`, "INVALID_TASK", 400},
		{`{"agent_id":"` + good + `","task":"` + strings.Repeat("x", run.MaxTask+1) + `"}`, "INVALID_TASK", 400},
		{`{"agent_id":"` + good + `","task":"x","context":[]}`, "PARSE_ERROR", 400},
		{`{"agent_id":"` + good + `","task":"x","timeout_ms":-1}`, "PARSE_ERROR", 400},
		{`{"agent_id":"` + good + `","task":"x","context":{"budget_remaining_usd":0}}`, "BUDGET_EXHAUSTED", 402},
		{`{"agent_id":"00000000-0000-4000-8000-000000000000","task":"x"}`, "NOT_FOUND", 404},
		{`{"agent_id":"` + good + `","task":"x","timeout_ms":600001}`, "PARSE_ERROR", 400},
		{`{"agent_id":"` + good + `","task":"x","timeout_ms":"soon"}`, "PARSE_ERROR", 400},
		{`{"agent_id":7,"task":"x"}`, "INVALID_AGENT_ID", 400},
		{`{"agent_id":"` + good + `","task":["x"]}`, "INVALID_TASK", 400},
		{`{"agent_id":"` + good + `","task":"x\u0000"}`, "INVALID_TASK", 400},
		{`{"agent_id":"` + strings.Repeat("x", 201) + `","task":"x"}`, "INVALID_AGENT_ID", 400},
		{`{"agent_id":"` + good + `","task":"x","context":{"a":"` + strings.Repeat("x", run.MaxTaskContext) + `"}}`,
			"PARSE_ERROR", 400},
		{`{"agent_id":"` + good + `","task":"x","context":{"company_id":7}}`, "PARSE_ERROR", 400},
	} {
		h.Call("POST", "/api/v1/execute", c.body).Want(t, c.status, `"code":"`+c.code+`"`).Want(t, c.status, `"message":"`)
	}
	// Unauthenticated requests and unknown rows are refused in the same form.
	h.Call("POST", "/api/v1/execute", `{}`, "Authorization: Bearer nobody").Want(t, 401, `"code":"UNAUTHORIZED"`).
		Want(t, 401, `"message":"`)
	h.Call("GET", "/api/v1/executions/00000000-0000-4000-8000-000000000000", "").Want(t, 404, `"code":"NOT_FOUND"`).
		Want(t, 404, `"message":"`)
	h.Call("GET", "/api/v1/executions/junk", "").Want(t, 404, `"code":"NOT_FOUND"`)
}
