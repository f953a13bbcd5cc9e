package money_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestBookingsAndTheirReports(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of, other := ledger.CompanyID(h.Company("Acme")), h.Company("Other")
	in := "/api/companies/" + string(of)
	agent := h.NewAgent(of, "Ada", "true")
	post := func(body string) apitest.Answer { return h.Call("POST", in+"/finance-events", body) }
	post(`{"eventKind":"platform_fee","biller":"stripe","amountCents":250,"occurredAt":"2026-11-20T12:00:00Z","agentId":"`+
		agent+`","quantity":0,"unit":"request",
		"metadataJson":{"note":"x","apiKey":"canary-of-finance"}}`).Want(t, 201, `"direction":"debit"`)
	post(`{"eventKind":"credit_purchase","direction":"credit","biller":"stripe","amountCents":1000,`+
		`"occurredAt":"2026-11-20T13:00:00Z"}`).Want(t, 201, `"metadataJson":null`)
	post(`{"eventKind":"platform_fee","biller":"openrouter","amountCents":50,"estimated":true,`+
		`"occurredAt":"2026-11-21T13:00:00Z"}`).Want(t, 201, `"estimated":true`)
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{}`, 400},
		{`{"eventKind":"gift","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":-1,"occurredAt":"2026-11-20T12:00:00Z"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"soon"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","metadataJson":[1]}`,
			400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","currency":"EUR"}`,
			422},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","agentId":"` +
			other + `"}`, 404},
	} {
		if a := post(c.body); a.Status != c.status {
			t.Errorf("%s: %d %s, want %d", c.body, a.Status, a.Body, c.status)
		}
	}
	h.Call("POST", "/api/companies/"+other+"/finance-events",
		`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","agentId":"`+
			agent+`"}`).Want(t, 404, "Agent not found")
	get := func(path, want string) string {
		t.Helper()
		a := h.Call("GET", in+path, "").Want(t, 200, want)
		return string(a.Body)
	}
	get("/costs/finance-summary",
		`"debitCents":300,"creditCents":1000,"netCents":-700,"estimatedDebitCents":50,"eventCount":3`)
	get("/costs/finance-summary?from=2026-11-21T00:00:00Z",
		`"debitCents":50,"creditCents":0,"netCents":50,"estimatedDebitCents":50,"eventCount":1`)
	get("/costs/finance-by-biller",
		`{"biller":"stripe","debitCents":250,"creditCents":1000,"netCents":-750,"estimatedDebitCents":0,`+
			`"eventCount":2,"kindCount":2}`)
	get("/costs/finance-by-kind",
		`{"eventKind":"platform_fee","debitCents":300,"creditCents":0,"netCents":300,"estimatedDebitCents":50,`+
			`"eventCount":2,"billerCount":2}`)
	if list := get("/costs/finance-events?limit=1", `"biller":"openrouter"`); strings.Contains(list, "stripe") {
		t.Errorf("more than one: %s", list)
	}
	if list := get("/costs/finance-events", `"note":"x"`); strings.Contains(list, "canary") || !strings.Contains(list,
		`"quantity":0`) {
		t.Errorf("listed %s", list)
	}
	if strings.Contains(h.Log.String()+string(h.Call("GET", "/api/v1/ledger/entries?limit=1000", "").Body), "canary") {
		t.Error("a secret went on")
	}
	h.Call("POST", in+"/budgets/policies",
		`{"scopeType":"agent","scopeId":"`+agent+`","windowKind":"rolling_24h","amount":100}`).
		Want(t, 200, `"windowKind":"rolling_24h"`)
	h.Call("POST", in+"/cost-events",
		`{"agentId":"`+agent+
			`","provider":"p","model":"m","costCents":100,"billingCode":"R&D","occurredAt":"2026-11-20T12:00:00Z"}`).
		Want(t, 201, "")
	get("/costs/by-billing-code", `[{"billingCode":"R&D","costCents":100,`)
	open := h.Call("GET", in+"/budget-incidents?status=open", "").Want(t, 200, `"thresholdType":"hard"`).Decode(t).([]any)
	get("/budget-incidents?status=resolved", `[]`)
	h.Call("GET", in+"/budget-incidents?status=maybe", "").Want(t, 400, "status is open, resolved or dismissed")
	if a := h.Call("POST", in+"/budget-incidents/"+open[0].(map[string]any)["id"].(string)+"/resolve",
		`{"action":"raise_budget_and_resume","amount":500}`); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	get("/budget-incidents?status=resolved", `"status":"resolved"`)
}

// A report by day has a line for each agent, project and model of a day, and adds up to the sum.
func TestCostsByDay(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	ada, bob := h.NewAgent(ledger.CompanyID(of), "Ada", "true"), h.NewAgent(ledger.CompanyID(of), "Bob", "true")
	project := h.Call("POST", in+"/projects", `{"name":"Charts"}`).Field(t, "id")
	for _, c := range []struct{ agent, model, at, cents, more string }{
		{ada, "m1", "2026-11-18T23:59:59Z", "5", ""},
		{ada, "m1", "2026-11-19T00:00:00Z", "10", ""},
		{ada, "m1", "2026-11-19T23:59:59Z", "20", ""},
		{bob, "m1", "2026-11-19T12:00:00Z", "40", `,"projectId":"` + project + `"`},
		{ada, "m2", "2026-11-20T12:00:00Z", "80", ""},
	} {
		h.Call("POST", in+"/cost-events",
			`{"agentId":"`+c.agent+`","provider":"p","model":"`+c.model+`","costCents":`+c.cents+`,"occurredAt":"`+
				c.at+`"`+c.more+`}`).Want(t, 201, "")
	}
	type line struct {
		Date, AgentName, ProjectName, Model string
		CostCents                           int64
	}
	var got []line
	answer := h.Call("GET", in+"/costs/by-day?from=2026-11-19T00:00:00Z&to=2026-11-20T23:59:59Z", "").
		Want(t, 200, `"projectId":null`)
	if err := json.Unmarshal(answer.Body, &got); err != nil {
		t.Fatal(err)
	}
	want := []line{{"2026-11-19", "Bob", "Charts", "m1", 40}, {"2026-11-19", "Ada", "", "m1", 30},
		{"2026-11-20", "Ada", "", "m2", 80}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if rows := h.Call("GET", in+"/costs/by-day?from=2026-11-20T13:00:00Z&to=2026-11-20T23:00:00Z", "").Want(t, 200, "").
		Decode(t).([]any); len(rows) != 0 {
		t.Errorf("hours without a cost have %v", rows)
	}
	h.Call("GET", in+"/costs/by-day?from=2020-01-01T00:00:00Z", "").Want(t, 400, "at most 366 days")
	h.Call("GET", in+"/costs/by-day", "").Want(t, 200, "")
	h.Call("GET", "/api/companies/"+project+"/costs/by-day", "").Want(t, 404, "Company not found")
}
