package apitest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// Hook makes a routine with a webhook and returns the path to fire it, its
// trigger's ID and its secret.
func (h *Harness) Hook(t *testing.T, mode string) (path, trigger, secret string) {
	t.Helper()
	of := ledger.CompanyID(h.Company("Acme " + mode))
	agent := h.NewAgent(of, "Ada", "true")
	r := h.Call("POST", "/api/companies/"+string(of)+"/routines",
		`{"title":"Look at {{what}}","assigneeAgentId":"`+agent+`","concurrencyPolicy":"always_enqueue"}`)
	if r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	r = h.Call("POST", "/api/routines/"+r.Field(t, "id")+"/triggers", `{"kind":"webhook","signingMode":"`+mode+`"}`)
	if r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	var made routine.TriggerAnswer
	if err := json.Unmarshal(r.Body, &made); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(h.Log.String(), made.Secret.Secret) {
		t.Error("the secret is in the log")
	}
	_, path, _ = strings.Cut(made.Secret.URL, "/api/")
	return "/api/" + path, made.Trigger.ID, made.Secret.Secret
}
