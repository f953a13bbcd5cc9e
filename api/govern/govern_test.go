package govern_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

type answer struct {
	Decision  string   `json:"decision"`
	Reason    string   `json:"reason"`
	Magnitude float64  `json:"effect_magnitude"`
	Evaluated []string `json:"evaluated_rules"`
	Warnings  []string `json:"warnings"`
	Ignored   []string `json:"ignored"`
	Rank      string   `json:"rank"`
	Version   string   `json:"constitution"`
	Chain     *string  `json:"chain_hash"`
	Rules     []struct {
		ID, Branch, Severity, Decision string
	} `json:"rules"`
	Opinions []struct{ Branch, Decision string } `json:"opinions"`
}

// ask asks the gate as the board, or with the header of somebody else.
func ask(t *testing.T, h *apitest.Harness, body string, as ...string) answer {
	t.Helper()
	r := h.Call("POST", "/api/v1/govern", body, as...).Want(t, 200, `"decision"`)
	b, err := json.Marshal(r.Decode(t))
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// The documented request gets the documented decision, reason and vector; with a manager to ask it is escalated.
func TestTheDocumentedRequest(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	const body = `{"action":"execute_shell_command","agent_id":"agent-reviewer","context":{"command":"rm -rf ` +
		`/tmp/build","risk":0.7%s}}`
	h.Call("POST", "/api/v1/govern", fmt.Sprintf(body, "")).Want(t, 200, `"effect_vector":[0.7,0.5,0.3,0.8,0.6]`)
	a := ask(t, h, fmt.Sprintf(body, ""))
	if a.Decision != "deny" || a.Reason != "High-risk shell command requires Manager approval" || a.Magnitude != 1.353 ||
		a.Rank != "worker" || a.Chain == nil {
		t.Errorf("got %+v", a)
	}
	for _, id := range []string{"GOV-001", "GOV-002", "SOP-L006"} {
		if !slices.Contains(a.Evaluated, id) {
			t.Errorf("%s was not asked: %v", id, a.Evaluated)
		}
	}
	if len(a.Opinions) != 3 || a.Opinions[2].Branch != "judicial" || a.Opinions[2].Decision != "deny" ||
		a.Opinions[1].Decision != "permit" {
		t.Errorf("opinions: %+v", a.Opinions)
	}
	if a := ask(t, h, fmt.Sprintf(body, `,"approval_chain":["agent-ceo"]`)); a.Decision != "escalate" {
		t.Errorf("with a manager to ask: %+v", a)
	}
	if a := ask(t, h, fmt.Sprintf(body, `,"clearances":["risk-review"],"reason":"clean"`)); a.Decision != "permit" ||
		len(a.Warnings) != 2 {
		t.Errorf("when the risk was reviewed: %+v", a)
	}
	if a := ask(t, h, `{"action":"fs.stat","agent_id":"agent-reviewer"}`); a.Decision != "permit" || a.Reason != "" ||
		len(a.Rules) != 0 {
		t.Errorf("a look at a file: %+v", a)
	}
}

// The state says what rank an agent has; from an agent nothing is believed that would lower the decision, and of its
// approvers only those count whom it reports to.
func TestAnAgentIsNotBelievedInItsOwnFavour(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	boss := h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Cleo","role":"ceo","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	ada := h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","role":"engineer","reportsTo":"`+boss+`","adapterType":"process","adapterConfig":{"command":"true"}}`).
		Want(t, 201, "").Field(t, "id")
	asAda := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")

	const shell = `{"action":"exec","agent_id":"%s","context":{"environment":"dev","human_approval":true,` +
		`"clearances":["risk-review","security-review"],"workspace":"/","rank":"ceo","approval_chain":["%s"]}}`
	a := ask(t, h, fmt.Sprintf(shell, ada, "board"), asAda)
	want := []string{"context.rank", "context.environment", "context.human_approval", "context.clearances",
		"context.workspace", "context.approval_chain"}
	if a.Decision != "deny" || a.Rank != "worker" || !slices.Equal(a.Ignored, want) {
		t.Errorf("who says that it was approved: %+v", a)
	}
	for _, name := range []string{boss, "Cleo", "cleo"} {
		if a := ask(t, h, fmt.Sprintf(shell, ada, name), asAda); a.Decision != "escalate" || slices.Contains(a.Ignored,
			"context.approval_chain") {
			t.Errorf("with its manager %s to ask: %+v", name, a)
		}
	}
	if a := ask(t, h, fmt.Sprintf(shell, ada, "board")); a.Decision != "permit" || a.Rank != "worker" {
		t.Errorf("a person is believed: %+v", a)
	}

	hire := `{"action":"agent.hire","agent_id":"%s","context":{"company_id":"` + of + `"}}`
	for name, want := range map[string]string{"Ada": "deny", "Cleo": "permit", "Nobody": "deny"} {
		if a := ask(t, h, fmt.Sprintf(hire, name)); a.Decision != want {
			t.Errorf("%s hires: %+v, want %s", name, a, want)
		}
	}
	if a := ask(t, h, fmt.Sprintf(hire, "Nobody")); a.Rank != "" {
		t.Errorf("somebody whom the company does not have: %+v", a)
	}

	// An agent does not borrow the rank of its manager.
	h.Call("POST", "/api/v1/govern", fmt.Sprintf(hire, "Cleo"), asAda).Want(t, 403, `"code":"FORBIDDEN"`)
	asBoss := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+boss+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	if a := ask(t, h, fmt.Sprintf(hire, "Ada"), asBoss); a.Decision != "deny" || a.Rank != "worker" {
		t.Errorf("a manager asks about who reports to it: %+v", a)
	}

	// An ID is that of an agent here, or is said to be of another system.
	const foreign = `{"action":"fs.stat","agent_id":"0193c0de-0000-7000-8000-000000000000","context":{%s}}`
	h.Call("POST", "/api/v1/govern", fmt.Sprintf(foreign, "")).Want(t, 404, `"code":"NOT_FOUND"`)
	if a := ask(t, h, fmt.Sprintf(foreign, `"paperclip_company":"pc-1"`)); a.Decision != "permit" {
		t.Errorf("an agent of another system: %+v", a)
	}
	h.Call("POST", "/api/v1/govern", fmt.Sprintf(foreign, `"paperclip_company":"pc-1"`), asAda).
		Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("POST", "/api/v1/govern",
		`{"action":"exec","agent_id":"`+ada+`","context":{"company_id":"`+h.Company("Third")+`"}}`).
		Want(t, 404, "Agent not found")

	other := h.Company("Other")
	h.Call("POST", "/api/v1/govern", `{"action":"exec","agent_id":"x","context":{"company_id":"`+other+`"}}`, asAda).
		Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("POST", "/api/v1/govern", `{"action":"exec","agent_id":"x","context":{"company_id":"nowhere"}}`).
		Want(t, 404, `"code":"NOT_FOUND"`)
}

// What does not fit is refused in the kernel's form, with the member's name.
func TestBadQuestions(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	for body, want := range map[string]string{
		`{"agent_id":"a"}`: `"code":"INVALID_ACTION"`, `{"action":" ","agent_id":"a"}`: `"code":"INVALID_ACTION"`,
		`{"action":"exec"}`: `"code":"INVALID_AGENT_ID"`, `{"action":"exec","agent_id":7}`: `"code":"INVALID_AGENT_ID"`,
		`{"action":"exec","agent_id":"a","context":{"risk":1.5}}`:         `context.risk: \"1.5\": want a number from 0 to 1`,
		`{"action":"exec","agent_id":"a","context":{"drift":"much"}}`:     `context.drift`,
		`{"action":"exec","agent_id":"a","context":{"environment":"qa"}}`: `"code":"PARSE_ERROR"`,
		`{"action":"exec","agent_id":"a","context":[]}`:                   `"code":"PARSE_ERROR"`,
		`{"action":"exec"`: `"code":"PARSE_ERROR"`,
	} {
		h.Call("POST", "/api/v1/govern", body).Want(t, 400, want)
		h.Call("POST", "/api/v1/govern/explain", body).Want(t, 400, want)
	}
	if a := ask(t, h,
		`{"action":"nobody.knows","agent_id":"a","context":{"risk":"0.05","strange":{"x":[1]}}}`); a.Decision != "deny" {
		t.Errorf("an action that no table names: %+v", a)
	}
	h.Call("POST", "/api/v1/govern", `{"action":"`+strings.Repeat("x", 257)+`","agent_id":"a"}`).
		Want(t, 400, `"code":"INVALID_ACTION"`)
}

// An effect is explained step by step, and the rules are listed with what they read.
func TestEffectsAndRulesAreTold(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	r := h.Call("POST", "/api/v1/govern/explain",
		`{"action":"network.egress","agent_id":"a","context":{"outside":true,"security":0.45}}`)
	r.Want(t, 200, `"effect_vector":[0.2,0,0.3,0,0.65]`)
	r.Want(t, 200, `{"dimension":"security","from":0.3,"to":0.45,"why":"context.security"},`+
		`{"dimension":"security","from":0.45,"to":0.65,"why":"the target is outside the company"}`)
	rules := h.Call("GET", "/api/v1/govern/rules", "").Want(t, 200, `"id":"GOV-001"`).Decode(t).(map[string]any)
	if n := len(rules["rules"].([]any)); n != 22 {
		t.Errorf("%d rules, want 22", n)
	}
	if v := ask(t, h, `{"action":"exec","agent_id":"a"}`).Version; v != rules["constitution"] || len(v) != 64 {
		t.Errorf("decided by %s, the rules are %v", v, rules["constitution"])
	}
}
