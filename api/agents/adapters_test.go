package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/identity"
)

func TestAdaptersSayWhatTheyAre(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	for _, k := range adapter.Kinds() {
		a := h.Call("GET", "/api/adapters/"+k.Type, "").Want(t, 200, `"integration":"`+string(k.Level)+`"`)
		for _, f := range k.Fields {
			if !strings.Contains(string(a.Body), `"key":"`+f.Key+`"`) {
				t.Errorf("%s does not show its field %s", k.Type, f.Key)
			}
		}
		h.Call("GET", "/api/adapters/"+k.Type+"/config-schema", "").Want(t, 200, `"fields":[`)
		h.Call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/models", "").Want(t, 200, "[")
		h.Call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/model-profiles", "").Want(t, 200, "[]")
		h.Call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/detect-model", "").Want(t, 200, "null")
		if k.Level != adapter.Minimum && k.Level != adapter.Status && k.Level != adapter.Full {
			t.Errorf("%s has the level %q", k.Type, k.Level)
		}
	}
	h.Call("GET", "/api/adapters/abacus", "").Want(t, 404, "Unknown adapter type: abacus")
	// Adapters behind the gateway are offered the models of the company's upstreams.
	h.Call("POST", "/api/companies/"+of+"/model-providers",
		`{"name":"box","kind":"ollama","baseUrl":"http://127.0.0.1:1/v1","models":[{"name":"local/qwen"},`+
			`{"name":"claude-*"}]}`).Want(t, 201, "")
	h.Call("GET", "/api/companies/"+of+"/adapters/opencode_local/models", "").Want(t, 200, `"local/qwen"`)
	if a := h.Call("GET", "/api/companies/"+of+"/adapters/cursor/models", ""); strings.Contains(string(a.Body), "qwen") {
		t.Error("Cursor is offered a model that it can not reach")
	}
}

func TestAnAdapterIsTestedOnItsNodes(t *testing.T) {
	checks, failed := []adapter.Finding{{Code: "command_found", Level: "info"}}, error(nil)
	var asked json.RawMessage
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.ProbeAdapter = func(_ context.Context, _ identity.NodeID, _ string,
			config json.RawMessage) ([]adapter.Finding, error) {
			asked = config
			return checks, failed
		}
	})
	of := h.Company("Acme")
	path := "/api/companies/" + of + "/adapters/process/test-environment"
	h.Call("POST", path, `{"adapterConfig":{"command":"x"}}`).Want(t, 200, `"status":"pass"`)
	if string(asked) != `{"command":"x"}` {
		t.Errorf("the node was asked about %s", asked)
	}
	checks = append(checks, adapter.Finding{Code: "version_unknown", Level: "warn"})
	h.Call("POST", path, `{}`).Want(t, 200, `"status":"warn"`)
	h.Call("POST", "/api/companies/"+of+"/adapters/claude_local/test-environment", `{}`).Want(t, 200, `"no_upstream"`)
	h.Call("POST", "/api/instance/model-providers",
		`{"name":"all","kind":"ollama","baseUrl":"http://127.0.0.1:1/v1","models":[{"name":"local/shared"}]}`).
		Want(t, 201, "")
	if a := h.Call("POST", "/api/companies/"+of+"/adapters/claude_local/test-environment",
		`{}`); strings.Contains(string(a.Body), "no_upstream") {
		t.Errorf("the mesh has an upstream for all companies: %s", a.Body)
	}
	h.Call("GET", "/api/companies/"+of+"/adapters/opencode_local/models", "").Want(t, 200, `"local/shared"`)
	failed = errors.New("gone")
	h.Call("POST", path, `{}`).Want(t, 200, `"status":"fail"`)
	h.Call("POST", path, `{"nodeId":"other"}`).Want(t, 404, "Node not found")
	h.Call("POST", path, `{"nodeId":7}`).Want(t, 400, "nodeId")
}
