package api

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
)

const canaryKey = "sk-canary-4711-do-not-show"

func TestUpstreamsAndTheirKeys(t *testing.T) {
	h := newHarness(t)
	all := "/api/companies/" + h.company("Acme") + "/model-providers"
	a := h.call("POST", all, `{"name":"claude","kind":"anthropic","apiKey":"`+canaryKey+`","models":[{"name":"tier/strong","as":"claude-opus-4-1"},{"name":"claude-*"}]}`).
		want(t, 201, `"baseUrl":"https://api.anthropic.com"`)
	id := a.field(t, "id")
	h.call("GET", all, "").want(t, 200, `"hasKey":true`)
	h.call("POST", all, `{"name":"claude","kind":"ollama"}`).want(t, 409, "already")
	h.call("POST", all, `{"name":"box","kind":"openai_compatible"}`).want(t, 400, "baseUrl")
	h.call("POST", all, `{"name":"local","kind":"ollama"}`).want(t, 400, "name")
	h.call("POST", all, `{"name":"box","kind":"skynet"}`).want(t, 400, "kind")
	h.call("POST", all, `{"name":"box","kind":"ollama","baseUrl":"http://u:p@127.0.0.1/v1"}`).want(t, 400, "baseUrl")
	h.call("POST", all, `{"name":"box","kind":"ollama"}`).want(t, 201, `"free":true`)
	h.call("PATCH", all+"/"+id, `{"priority":3}`).want(t, 200, `"hasKey":true`)
	// Whoever moves an upstream elsewhere does not take the key along.
	h.call("PATCH", all+"/"+id, `{"baseUrl":"https://evil.example"}`).want(t, 200, `"hasKey":false`)
	h.call("PATCH", all+"/"+id, `{"apiKey":"`+canaryKey+`"}`).want(t, 200, `"hasKey":true`)
	h.call("PATCH", all+"/"+id, `{"apiKey":null}`).want(t, 200, `"hasKey":false`)

	mesh := "/api/instance/model-providers"
	h.call("POST", mesh, `{"name":"shared","kind":"openai","apiKey":"`+canaryKey+`"}`).want(t, 201, `"companyId":null`)
	h.call("GET", mesh, "").want(t, 200, `"name":"shared"`)
	if b := h.call("GET", all, "").body; strings.Contains(string(b), "shared") {
		t.Error("the mesh's upstreams are listed as the company's")
	}
	h.call("DELETE", all+"/"+id, "").want(t, 200, "")
	h.call("DELETE", all+"/"+id, "").want(t, 404, "Model provider not found")
	if strings.Contains(h.log.String(), canaryKey) {
		t.Error("the key is in the log")
	}
}

func TestPricesAreSetPerCompanyAndForTheMesh(t *testing.T) {
	h := newHarness(t)
	all := "/api/companies/" + h.company("Acme") + "/model-prices"
	h.call("PUT", all, `{"model":"gpt-x*","input":300000000,"output":1500000000}`).want(t, 200, `"cacheRead":300000000`)
	h.call("PUT", all, `{"model":"gpt-x*","input":1,"output":2,"cacheRead":0}`).want(t, 200, `"version":2`)
	h.call("PUT", all, `{"model":"gpt-*x","input":1}`).want(t, 400, "model")
	h.call("PUT", all, `{"model":"m","input":-1}`).want(t, 400, "input")
	h.call("PUT", "/api/instance/model-prices", `{"model":"m","input":5}`).want(t, 200, `"version":1`)
	h.call("GET", all, "").want(t, 200, `"version":2`)
	h.call("DELETE", all+"?model=gpt-x*", "").want(t, 200, "")
	h.call("DELETE", all+"?model=gpt-x*", "").want(t, 404, "Model price not found")
}

// Only runs call models: everybody else is refused in the dialect of the path,
// before anything is read.
func TestTheModelGatewayIsForRuns(t *testing.T) {
	h := newHarness(t)
	for path, text := range map[string]string{"/llm/v1/chat/completions": `"code":"no_gateway"`, "/llm/anthropic/v1/messages": `"type":"overloaded_error"`} {
		h.call("POST", path, `{}`).want(t, 503, text)
	}
	h = newHarness(t, func(c *Config) {
		n := c.Node.(*solo)
		g, err := llm.New(llm.Config{View: n.ledger.View, Holds: func() bool { return true }, Self: string(n.keys.ID())})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Close() })
		c.Models = g
	})
	of := h.company("Acme")
	claims := identity.RunClaims{Agent: NewID(), Company: of, Run: NewID()}
	gone, err := identity.MintRunToken(testDataKey, h.node.mesh, claims, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]string{"nobody": "X-Nothing: 1", "a run that is not": "Authorization: Bearer " + gone, "the same in x-api-key": "X-Api-Key: " + gone,
		"an unknown key": "Authorization: Bearer pcp_bogus"} {
		h.call("POST", "/llm/v1/chat/completions", `{"model":"m"}`, header).want(t, 401, `"code":"run_token_needed"`)
		h.call("POST", "/llm/anthropic/v1/messages", `{"model":"m"}`, header).want(t, 401, `"type":"authentication_error"`)
		if strings.Contains(h.log.String(), gone) {
			t.Fatalf("%s: the token is in the log", name)
		}
	}
}

// What is kept of a key opens at its own place only.
func TestTheKeyOfAnUpstreamIsSealedForIt(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	h.call("POST", "/api/companies/"+of+"/model-providers", `{"name":"claude","kind":"anthropic","apiKey":"`+canaryKey+`"}`).want(t, 201, "")
	_ = h.node.ledger.View(func(tx *ledger.Tx) error {
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
