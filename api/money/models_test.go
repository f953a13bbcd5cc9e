package money_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
)

const canaryKey = "sk-canary-4711-do-not-show"

func TestUpstreamsAndTheirKeys(t *testing.T) {
	h := apitest.NewHarness(t)
	all := "/api/companies/" + h.Company("Acme") + "/model-providers"
	a := h.Call("POST", all,
		`{"name":"claude","kind":"anthropic","apiKey":"`+canaryKey+
			`","models":[{"name":"tier/strong","as":"claude-opus-4-1"},{"name":"claude-*"}]}`).
		Want(t, 201, `"baseUrl":"https://api.anthropic.com"`)
	id := a.Field(t, "id")
	h.Call("GET", all, "").Want(t, 200, `"hasKey":true`)
	h.Call("POST", all, `{"name":"claude","kind":"ollama"}`).Want(t, 409, "already")
	h.Call("POST", all, `{"name":"box","kind":"openai_compatible"}`).Want(t, 400, "baseUrl")
	h.Call("POST", all, `{"name":"local","kind":"ollama"}`).Want(t, 400, "name")
	h.Call("POST", all, `{"name":"box","kind":"skynet"}`).Want(t, 400, "kind")
	h.Call("POST", all, `{"name":"box","kind":"ollama","baseUrl":"http://u:p@127.0.0.1/v1"}`).Want(t, 400, "baseUrl")
	h.Call("POST", all, `{"name":"box","kind":"ollama"}`).Want(t, 201, `"free":true`)
	h.Call("PATCH", all+"/"+id, `{"priority":3}`).Want(t, 200, `"hasKey":true`)
	// Whoever moves an upstream elsewhere does not take the key along.
	h.Call("PATCH", all+"/"+id, `{"baseUrl":"https://evil.example"}`).Want(t, 200, `"hasKey":false`)
	h.Call("PATCH", all+"/"+id, `{"apiKey":"`+canaryKey+`"}`).Want(t, 200, `"hasKey":true`)
	h.Call("PATCH", all+"/"+id, `{"apiKey":null}`).Want(t, 200, `"hasKey":false`)

	mesh := "/api/instance/model-providers"
	h.Call("POST", mesh, `{"name":"shared","kind":"openai","apiKey":"`+canaryKey+`"}`).Want(t, 201, `"companyId":null`)
	h.Call("GET", mesh, "").Want(t, 200, `"name":"shared"`)
	if b := h.Call("GET", all, "").Body; strings.Contains(string(b), "shared") {
		t.Error("the mesh's upstreams are listed as the company's")
	}
	h.Call("DELETE", all+"/"+id, "").Want(t, 200, "")
	h.Call("DELETE", all+"/"+id, "").Want(t, 404, "Model provider not found")
	if strings.Contains(h.Log.String(), canaryKey) {
		t.Error("the key is in the log")
	}
}

// A key of the node's own environment is kept sealed, for its vendor's address alone.
func TestAKeyOfTheEnvironmentIsKept(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Variable = func(name string) string {
			return map[string]string{"OPENAI_API_KEY": canaryKey, "PATH": "/bin", "ANTHROPIC_API_KEY": canaryKey,
				"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/proxy"}[name]
		}
	})
	const all, from = "/api/instance/model-providers", "/api/instance/model-providers/from-environment"
	h.Call("POST", from, `{"variable":"GEMINI_API_KEY"}`).Want(t, 404, "GEMINI_API_KEY")
	h.Call("POST", from, `{"variable":"ANTHROPIC_API_KEY"}`).Want(t, 201, `"baseUrl":"http://127.0.0.1:9/proxy"`)
	h.Call("POST", from, `{"variable":"PATH"}`).Want(t, 400, "variable")
	h.Call("POST", from, `{"variable":"OPENAI_API_KEY","baseUrl":"https://evil.example"}`)
	if b := h.Call("GET", all, "").Body; strings.Contains(string(b), "evil") {
		t.Errorf("the key goes where its vendor is not: %s", b)
	}
	h.Call("POST", from, `{"variable":"OPENAI_API_KEY","name":"mine"}`).
		Want(t, 201, `"baseUrl":"https://api.openai.com/v1"`).Want(t, 201, `"hasKey":true`)
	if b := string(h.Call("GET", all, "").Body); strings.Contains(b, canaryKey) || strings.Contains(h.Log.String(),
		canaryKey) {
		t.Error("the key is shown")
	}
}

func TestPricesAreSetPerCompanyAndForTheMesh(t *testing.T) {
	h := apitest.NewHarness(t)
	all := "/api/companies/" + h.Company("Acme") + "/model-prices"
	h.Call("PUT", all, `{"model":"gpt-x*","input":300000000,"output":1500000000}`).Want(t, 200, `"cacheRead":300000000`)
	h.Call("PUT", all, `{"model":"gpt-x*","input":1,"output":2,"cacheRead":0}`).Want(t, 200, `"version":2`)
	h.Call("PUT", all, `{"model":"gpt-*x","input":1}`).Want(t, 400, "model")
	h.Call("PUT", all, `{"model":"m","input":-1}`).Want(t, 400, "input")
	h.Call("PUT", "/api/instance/model-prices", `{"model":"m","input":5}`).Want(t, 200, `"version":1`)
	h.Call("GET", all, "").Want(t, 200, `"version":2`)
	h.Call("DELETE", all+"?model=gpt-x*", "").Want(t, 200, "")
	h.Call("DELETE", all+"?model=gpt-x*", "").Want(t, 404, "Model price not found")
}

// Only runs call models: everybody else is refused in the dialect of the path,
// before anything is read.
func TestTheModelGatewayIsForRuns(t *testing.T) {
	h := apitest.NewHarness(t)
	for path, text := range map[string]string{"/llm/v1/chat/completions": `"code":"no_gateway"`,
		"/llm/anthropic/v1/messages": `"type":"overloaded_error"`} {
		h.Call("POST", path, `{}`).Want(t, 503, text)
	}
	h = apitest.NewHarness(t, func(c *api.Config) {
		n := c.Node.(*apitest.Solo)
		g, err := llm.New(llm.Config{View: n.Ledger.View, Holds: func() bool { return true }, Self: string(n.Keys.ID())})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		c.Models = g
	})
	of := h.Company("Acme")
	claims := identity.RunClaims{Agent: api.NewID(), Company: of, Run: api.NewID()}
	gone, err := identity.MintRunToken(apitest.TestDataKey, h.Node.Mesh, claims, h.Node.Wall())
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{"nobody": "X-Nothing: 1", "a run that is not": "Authorization: Bearer " +
		gone, "the same in x-api-key": "X-Api-Key: " + gone,
		"an unknown key": "Authorization: Bearer pcp_bogus"} {
		h.Call("POST", "/llm/v1/chat/completions", `{"model":"m"}`, header).Want(t, 401, `"code":"run_token_needed"`)
		h.Call("POST", "/llm/anthropic/v1/messages", `{"model":"m"}`, header).Want(t, 401, `"type":"authentication_error"`)
		if strings.Contains(h.Log.String(), gone) {
			t.Fatalf("%s: the token is in the log", name)
		}
	}
}

// What is kept of a key opens at its own place only.
func TestTheKeyOfAnUpstreamIsSealedForIt(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	h.Call("POST", "/api/companies/"+of+"/model-providers",
		`{"name":"claude","kind":"anthropic","apiKey":"`+canaryKey+`"}`).Want(t, 201, "")
	_ = h.Node.Ledger.View(func(tx *ledger.Tx) error {
		rows := 0
		for _, v := range tx.Prefix(nil) {
			rows++
			if strings.Contains(string(v), canaryKey) {
				t.Error("the key is in the state in the clear")
			}
		}
		if rows == 0 {
			t.Error("nothing was looked at")
		}
		return nil
	})
}
