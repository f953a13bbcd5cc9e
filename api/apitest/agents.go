package apitest

import (
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// Team is a company with two agents, a project and a goal; every secret that a
// caller can hand in holds the canary.
type Team struct {
	*Harness
	Company                                 ledger.CompanyID
	Boss, Worker, Project, Goal, Key, Token string
}

const Canary = "canary-4711-secret"

func NewTeam(t *testing.T) *Team {
	t.Helper()
	h := &Team{Harness: NewHarness(t)}
	h.Company = ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme","budgetMonthlyCents":5000}`).
		Want(t, 201, `"budgetMonthlyCents":5000`).Field(t, "id"))
	in := "/api/companies/" + string(h.Company)
	h.Boss = h.Call("POST", in+"/agents", `{"name":"Ada","role":"ceo","adapterType":"process"}`).
		Want(t, 201, `"status":"idle"`).Field(t, "id")
	h.Worker = h.Call("POST", in+"/agents",
		`{"name":"Bob Builder","reportsTo":"`+h.Boss+
			`","adapterConfig":{"command":"/bin/sh","args":["-c","MY_TOKEN=`+Canary+` run"],
		"env":{"A":"`+Canary+`","B":{"type":"plain","value":"`+Canary+`"}},"apiKey":"`+Canary+
			`","headers":{"Authorization":"Bearer `+Canary+`"}},
		"runtimeConfig":{"heartbeat":{"enabled":false},"webhookSecret":"`+Canary+`"},"metadata":{"password":"`+Canary+`"}}`).
		Want(t, 201, "").Field(t, "id")
	h.Goal = h.Call("POST", in+"/goals", `{"title":"Ship","level":"company"}`).Want(t, 201, `"status":"planned"`).
		Field(t, "id")
	h.Project = h.Call("POST", in+"/projects", `{"name":"Rig","goalIds":["`+h.Goal+`"],"env":{"A":"`+Canary+`"},
		"workspace":{"cwd":"/tmp","metadata":{"token":"`+Canary+`"}}}`).Want(t, 201, `"isPrimary":true`).Field(t, "id")
	made := h.Call("POST", "/api/agents/"+h.Worker+"/keys", `{"name":"k"}`).Want(t, 201, `"scope":{"kind":"standard"}`)
	h.Key, h.Token = made.Field(t, "id"), made.Field(t, "token")
	return h
}

func (h *Team) As() string { return "Authorization: Bearer " + h.Token }
