package api

import (
	"strings"
	"testing"
)

func TestBookingsAndTheirReports(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of, other := h.company("Acme"), h.company("Other")
	in := "/api/companies/" + of
	agent := h.newAgent(of, "Ada", "true")
	post := func(body string) answer { return h.call("POST", in+"/finance-events", body) }
	post(`{"eventKind":"platform_fee","biller":"stripe","amountCents":250,"occurredAt":"2026-11-20T12:00:00Z","agentId":"`+agent+`","quantity":0,"unit":"request",
		"metadataJson":{"note":"x","apiKey":"canary-of-finance"}}`).want(t, 201, `"direction":"debit"`)
	post(`{"eventKind":"credit_purchase","direction":"credit","biller":"stripe","amountCents":1000,"occurredAt":"2026-11-20T13:00:00Z"}`).want(t, 201, `"metadataJson":null`)
	post(`{"eventKind":"platform_fee","biller":"openrouter","amountCents":50,"estimated":true,"occurredAt":"2026-11-21T13:00:00Z"}`).want(t, 201, `"estimated":true`)
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{}`, 400},
		{`{"eventKind":"gift","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":-1,"occurredAt":"2026-11-20T12:00:00Z"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"soon"}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","metadataJson":[1]}`, 400},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","currency":"EUR"}`, 422},
		{`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","agentId":"` + other + `"}`, 404},
	} {
		if a := post(c.body); a.status != c.status {
			t.Errorf("%s: %d %s, want %d", c.body, a.status, a.body, c.status)
		}
	}
	h.call("POST", "/api/companies/"+other+"/finance-events", `{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"2026-11-20T12:00:00Z","agentId":"`+agent+`"}`).want(t, 404, "")
	get := func(path, want string) string {
		t.Helper()
		a := h.call("GET", in+path, "").want(t, 200, want)
		return string(a.body)
	}
	get("/costs/finance-summary", `"debitCents":300,"creditCents":1000,"netCents":-700,"estimatedDebitCents":50,"eventCount":3`)
	get("/costs/finance-summary?from=2026-11-21T00:00:00Z", `"debitCents":50,"creditCents":0,"netCents":50,"estimatedDebitCents":50,"eventCount":1`)
	get("/costs/finance-by-biller", `{"biller":"stripe","debitCents":250,"creditCents":1000,"netCents":-750,"estimatedDebitCents":0,"eventCount":2,"kindCount":2}`)
	get("/costs/finance-by-kind", `{"eventKind":"platform_fee","debitCents":300,"creditCents":0,"netCents":300,"estimatedDebitCents":50,"eventCount":2,"billerCount":2}`)
	if list := get("/costs/finance-events?limit=1", `"biller":"openrouter"`); strings.Contains(list, "stripe") {
		t.Errorf("more than one: %s", list)
	}
	if list := get("/costs/finance-events", `"note":"x"`); strings.Contains(list, "canary") || !strings.Contains(list, `"quantity":0`) {
		t.Errorf("listed %s", list)
	}
	if strings.Contains(h.log.String()+string(h.call("GET", "/api/v1/ledger/entries?limit=1000", "").body), "canary") {
		t.Error("a secret went on")
	}
	h.call("POST", in+"/budgets/policies", `{"scopeType":"agent","scopeId":"`+agent+`","windowKind":"rolling_24h","amount":100}`).want(t, 200, `"windowKind":"rolling_24h"`)
	h.call("POST", in+"/cost-events", `{"agentId":"`+agent+`","provider":"p","model":"m","costCents":100,"billingCode":"R&D","occurredAt":"2026-11-20T12:00:00Z"}`).want(t, 201, "")
	get("/costs/by-billing-code", `[{"billingCode":"R&D","costCents":100,`)
	open := h.call("GET", in+"/budget-incidents?status=open", "").want(t, 200, `"thresholdType":"hard"`).decode(t).([]any)
	get("/budget-incidents?status=resolved", `[]`)
	h.call("GET", in+"/budget-incidents?status=maybe", "").want(t, 400, "")
	if a := h.call("POST", in+"/budget-incidents/"+open[0].(map[string]any)["id"].(string)+"/resolve", `{"action":"raise_budget_and_resume","amount":500}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	get("/budget-incidents?status=resolved", `"status":"resolved"`)
}
