package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

// nullStays are the members, by route, for which null is taken and not shown as
// nothing, or is refused otherwise; with the reason.
var nullStays = map[string]string{
	"PUT /api/v1/govern/filters minCut": "a 400: the company is " +
		"in the query; null is as absent, and the limit stays",
	"PUT /api/v1/govern/filters maxShift": "likewise",
	"PUT /api/v1/govern/filters floor":    "likewise",
	"PUT /api/v1/cron/{name} payload": "null is JSON, and " +
		"published as such",
	"PUT /api/v1/declared-processes/{name} agency": "the usual; the answer " +
		"has the limits alone",
	"PUT /api/v1/declared-processes/{name} capabilities":         "likewise",
	"POST /api/companies/{companyId}/skills/{skillId}/fork slug": "the next that is free",
	"POST /api/companies defaultResponsibleUserId": "nobody; without it, " +
		"who makes the company",
	"POST /api/board-api-keys expiresAt": "never; without it, " +
		"after a while",
	"PUT /api/issues/{id}/documents/{key} baseRevisionId": "a 409: there is a " +
		"document, and the change is made on top of it",
	"PATCH /api/instance/model-providers/{id} secretId": "secrets are of " +
		"companies: there is none that it could name",
	"PATCH /api/issues/{id} inheritExecutionWorkspaceFromIssueId": "from nobody; what was " +
		"inherited is in executionWorkspaceId",
	"PATCH /api/issues/{id} onBehalfOfUserId": "whom a comment of the " +
		"same body is made for: nobody",
	"PATCH /api/routines/{id} baseRevisionId": "what the change is " +
		"made on top of: whatever is there",
	"PUT /api/issues/{id}/documents/{key} changeSummary": "of the new revision, " +
		"which the answer does not show",
	"PATCH /api/execution-workspaces/{id} metadata": "the configuration is " +
		"shown in it, and stays",
	"PATCH /api/issues/{id} assigneeAgentId": "a 422: an issue in " +
		"progress needs an assignee",
	"PATCH /api/routines/{id} assigneeAgentId": "a 422: an active " +
		"routine needs an assignee",
	"PATCH /api/companies/{companyId}/members/{memberId} membershipRole":                 "a 409: the last owner",
	"PATCH /api/companies/{companyId}/members/{memberId}/role-and-grants membershipRole": "a 409: the last owner",
	"PATCH /api/auth/profile image": "a 409: nobody signs " +
		"in on this mesh",
	"PATCH /api/companies/{companyId}/model-providers/{id} apiKey": "a key is never shown; see hasKey",
	"PATCH /api/instance/model-providers/{id} apiKey":              "a key is never shown; see hasKey",
	"PATCH /api/agents/{id}/instructions-bundle rootPath": "the folder that the instructions are in " +
		"when none is named",
}

// TestNullClearsOrIsRefused goes through the whole table of routes and, in each body that
// changes something, gives every member a value and then null: the answer shows that it
// is cleared, or a 400 or 422 names it. A body that makes something gets for null what it
// gets for nothing.
//
// It would catch a member whose null is taken and ignored.
func TestNullClearsOrIsRefused(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	w := newTown(h, "Null")
	in := "/api/companies/" + w.of
	w.values["instance/model-providers"] = h.Call("POST", "/api/instance/model-providers",
		`{"name":"null","kind":"anthropic","apiKey":"k"}`).Want(t, 201, "").Field(t, "id")
	boss := h.Call("POST", in+"/agents", `{"name":"Boss"}`).Want(t, 201, "").Field(t, "id")
	goal := h.Call("POST", in+"/goals", `{"title":"Above"}`).Want(t, 201, "").Field(t, "id")
	above := h.Call("POST", in+"/issues", `{"title":"Above"}`).Want(t, 201, "").Field(t, "id")
	folder := w.values["companies/folders"]
	some := map[string]any{ // values that the tags do not say
		"reportsTo": boss, "PATCH /api/goals/{id} parentId": goal, "parentId": above, "parentIssueId": above,
		"folderId": folder, "targetDate": "2026-12-31", "path": "/srv/x",
		"runtimeServiceId": w.values["runtime-services"], "logoAssetId": w.values["assets"],
		"defaultResponsibleUserId": api.LocalBoard, "assigneeUserId": api.LocalBoard,
		"executionWorkspaceId":                        w.values["execution-workspaces"],
		"PATCH /api/issues/{id} projectWorkspaceId":   w.values["projects/workspaces"],
		"PATCH /api/agents/{id} defaultEnvironmentId": w.values["environments"],
		"PATCH /api/v1/memory/{id} projectId":         w.values["projects"],
		"PATCH /api/v1/memory/{id} expiresAt":         "2999-01-01T00:00:00Z",
	}
	tried := 0
	for _, route := range h.Routes() {
		if route.In == nil || route.Method == "GET" || changesAll(route) {
			continue
		}
		p := api.PlanOf(reflect.TypeOf(route.In))
		var headers []string
		if route.Who == api.Agent {
			headers = append(headers, "Authorization: Bearer "+w.token)
		}
		path, _ := w.path(route)
		for _, f := range p.Fields {
			name := fmt.Sprintf("%s %s %s", route.Method, route.Path, f.Name)
			// send gives the member values, and says how the last is answered and what is
			// there then.
			send := func(v ...any) (a apitest.Answer, there any) {
				var o map[string]any
				if err := json.Unmarshal([]byte(w.body(route)), &o); err != nil {
					t.Fatal(err)
				}
				if len(v) > 0 {
					o[f.Name] = v[0]
				}
				if _, ok := o["baseRevisionId"]; ok && (len(v) == 0 || f.Name != "baseRevisionId") {
					o["baseRevisionId"] = h.Call("GET", path, "").Field(t, "latestRevisionId")
				}
				a = h.Call(route.Method, path, string(ledgerJSON(o)), headers...)
				var row map[string]any
				if a.Status < 300 && json.Unmarshal(a.Body, &row) == nil {
					there = row[f.Name]
				}
				return a, there
			}
			made := route.Method == "POST"
			var first apitest.Answer
			var before any
			if value, ok := some[name]; made {
				first, before = send()
			} else if ok {
				first, before = send(value)
			} else if value, ok = some[f.Name]; ok {
				first, before = send(value)
			} else {
				first, before = send(w.filled(f))
			}
			a, after := send(nil)
			tried++
			switch {
			case (a.Status == 400 || a.Status == 422) && apitest.Names(a.Body, f.Name) || nullStays[name] != "":
			case made:
				if a.Status < 300 && first.Status < 300 && string(ledgerJSON(before)) != string(ledgerJSON(after)) {
					t.Errorf("%s is %s with null and %s without", name, ledgerJSON(after), ledgerJSON(before))
				}
			case a.Status >= 300 || !nothing(after):
				t.Errorf("%s: null answered %d %.200s", name, a.Status, a.Body)
			case nothing(before) && first.Status != 400 && first.Status != 422: // refused, so that it is never there
				t.Errorf("%s: nothing shows what null did; before, the answer was %d %.200s", name, first.Status, first.Body)
			}
		}
	}
	if tried < 700 {
		t.Errorf("only %d members were tried", tried)
	}
}

// nothing reports whether a value says nothing.
func nothing(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || v == "" || v == 0.0 || v == false
}

// filled is a value of a member that says something.
func (w *town) filled(f api.Field) any {
	switch v := w.sample(f.Plan, f.Rules, f.Name).(type) {
	case map[string]any:
		if len(v) == 0 {
			return map[string]any{"A": "b"}
		}
		return v
	case []any:
		if len(v) == 0 && f.Plan.Expected() == "array" {
			return []any{"x"}
		}
		return v
	case float64:
		return v + 1
	case int:
		return v + 1
	default:
		return v
	}
}

// A schedule has an expression and a time zone, a webhook a way of signing and a
// window; neither can be without, nor have what is the other's.
func TestTriggersKeepWhatTheyGoBy(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	agent := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada"}`).Want(t, 201, "").Field(t, "id")
	routine := h.Call("POST", "/api/companies/"+of+"/routines", `{"title":"Daily","assigneeAgentId":"`+agent+`"}`).
		Want(t, 201, "").Field(t, "id")
	make := func(body string) string {
		made := h.Call("POST", "/api/routines/"+routine+"/triggers", body).Want(t, 201, "").Decode(t).(map[string]any)
		return "/api/routine-triggers/" + made["trigger"].(map[string]any)["id"].(string)
	}
	schedule, webhook := make(`{"kind":"schedule","cronExpression":"0 9 * * *","timezone":null,"signingMode":null}`),
		make(`{"kind":"webhook","replayWindowSec":null}`)
	for _, c := range []struct {
		trigger, body, field string
		status               int
	}{
		{schedule, `{"cronExpression":null}`, "cronExpression", 400}, {schedule, `{"timezone":null}`, "timezone", 400},
		{schedule, `{"signingMode":"none"}`, "signingMode", 422},
		{schedule, `{"replayWindowSec":60}`, "replayWindowSec", 422},
		{schedule, `{"signingMode":null,"replayWindowSec":null,"timezone":"Europe/Berlin"}`, "", 200},
		{webhook, `{"signingMode":null}`, "signingMode", 400}, {webhook, `{"replayWindowSec":null}`, "replayWindowSec", 400},
		{webhook, `{"cronExpression":"0 9 * * *"}`, "cronExpression", 422},
		{webhook, `{"timezone":"UTC"}`, "timezone", 422},
		{webhook, `{"cronExpression":null,"timezone":null,"replayWindowSec":60}`, "", 200},
	} {
		if a := h.Call("PATCH", c.trigger, c.body); a.Status != c.status || c.field != "" && !apitest.Names(a.Body, c.field) {
			t.Errorf("%s answered %d %s, want %d", c.body, a.Status, a.Body, c.status)
		}
	}
	h.Call("POST", "/api/routines/"+routine+"/triggers", `{"kind":"api","timezone":"UTC"}`).Want(t, 422, "timezone")
}

// What only another keeper of secrets has a use for is refused, not forgotten.
func TestNothingOfASecretIsForgotten(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	w := newTown(h, "Acme")
	in := "/api/companies/" + w.of
	mine := in + "/me/user-secrets/" + w.values["companies/me/user-secrets"]
	const reference, metadata = "Provider local_encrypted does not support external references",
		"providerMetadata: provider local_encrypted keeps none"
	for _, c := range [][4]string{
		{"POST", in + "/secrets", `{"name":"y","value":"v","providerVersionRef":"3"}`, reference},
		{"POST", "/api/secrets/" + w.values["secrets"] + "/rotate", `{"value":"v","providerVersionRef":"3"}`, reference},
		{"PATCH", mine, `{"value":"v","providerVersionRef":"3"}`, reference},
		{"POST", mine + "/rotate", `{"value":"v","providerVersionRef":"3"}`, reference},
		{"PATCH", in + "/user-secret-definitions/" + w.values["companies/user-secret-definitions"],
			`{"providerMetadata":{"a":1}}`, metadata},
	} {
		h.Call(c[0], c[1], c[2]).Want(t, 422, c[3])
	}
	h.Call("PATCH", mine, `{"value":null}`).Want(t, 400, "value")
}
