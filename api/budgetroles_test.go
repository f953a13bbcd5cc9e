package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// Where people sign in, a budget is set and raised by every member who is more than
// a viewer, as on the server of the contract; by nobody from outside the company, and
// by no agent for itself, also not by one that configures its own row.
func TestWhoRaisesABudget(t *testing.T) {
	t.Parallel()
	h := apitest.Peopled(t)
	admin := h.Admin()
	of := ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme"}`, admin, apitest.OwnOrigin).Want(t, 201, "").
		Field(t, "id"))
	in := "/api/companies/" + string(of)
	agent := h.Call("POST", in+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`, admin,
		apitest.OwnOrigin).Want(t, 201, "").Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"k"}`, admin,
		apitest.OwnOrigin).Want(t, 201, "").Field(t, "token")
	stranger, _ := h.SignUp("Stranger")
	type asker struct {
		name, header string
		status       int
		says         string
	}
	askers := []asker{{"admin of the instance", admin, 200, ""},
		{"stranger", stranger, 403, "User does not have access to this company"},
		{"nobody", "", 401, "Board authentication required"}, {"agent", key, 403, "Board access required"}}
	for _, r := range people.MemberRoles {
		cookie, _ := h.Join(of, admin, string(r), r)
		a := asker{string(r), cookie, 200, ""}
		if r == people.RoleViewer {
			a.status, a.says = 403, "Viewer access is read-only"
		}
		askers = append(askers, a)
	}
	for _, a := range askers {
		headers := []string{apitest.OwnOrigin}
		if a.header != "" {
			headers = append(headers, a.header)
		}
		for _, c := range []struct{ method, path, body string }{
			{"PATCH", in + "/budgets", `{"budgetMonthlyCents":5000}`},
			{"PATCH", "/api/agents/" + agent + "/budgets", `{"budgetMonthlyCents":4000}`},
			{"POST", in + "/budgets/policies", `{"scopeType":"agent","scopeId":"` + agent + `","amount":4500}`},
		} {
			status, says := a.status, a.says
			if a.name == "stranger" && c.path == "/api/agents/"+agent+"/budgets" {
				status, says = 404, "Agent not found" // who may not look into a company does not learn what is in it
			}
			if got := h.Call(c.method, c.path, c.body, headers...); got.Status != status ||
				!strings.Contains(string(got.Body), says) {
				t.Errorf("%s: %s %s is answered %d %s, want %d %s", a.name, c.method, c.path, got.Status, got.Body, status, says)
			}
		}
		// Raising what stopped somebody is a decision of the same people.
		status, says := a.status, a.says
		if status == 200 {
			status, says = 404, "Budget incident not found"
		}
		h.Call("POST", in+"/budget-incidents/"+api.NewID()+"/resolve", `{"action":"raise_budget_and_resume","amount":9000}`,
			headers...).Want(t, status, says)
	}
}
