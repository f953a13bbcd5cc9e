package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/identity"
)

func TestAdaptersSayWhatTheyAre(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	for _, k := range adapter.Kinds() {
		a := h.call("GET", "/api/adapters/"+k.Type, "").want(t, 200, `"integration":"`+string(k.Level)+`"`)
		for _, f := range k.Fields {
			if !strings.Contains(string(a.body), `"key":"`+f.Key+`"`) {
				t.Errorf("%s does not show its field %s", k.Type, f.Key)
			}
		}
		h.call("GET", "/api/adapters/"+k.Type+"/config-schema", "").want(t, 200, `"fields":[`)
		h.call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/models", "").want(t, 200, "[")
		h.call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/model-profiles", "").want(t, 200, "[]")
		h.call("GET", "/api/companies/"+of+"/adapters/"+k.Type+"/detect-model", "").want(t, 200, "null")
		if k.Level != adapter.Minimum && k.Level != adapter.Status && k.Level != adapter.Full {
			t.Errorf("%s has the level %q", k.Type, k.Level)
		}
	}
	h.call("GET", "/api/adapters/abacus", "").want(t, 404, "Unknown adapter type: abacus")
	// Names of the company's upstreams are offered for what goes through the gateway.
	h.call("POST", "/api/companies/"+of+"/model-providers", `{"name":"box","kind":"ollama","baseUrl":"http://127.0.0.1:1/v1","models":[{"name":"local/qwen"},{"name":"claude-*"}]}`).want(t, 201, "")
	h.call("GET", "/api/companies/"+of+"/adapters/opencode_local/models", "").want(t, 200, `"local/qwen"`)
	if a := h.call("GET", "/api/companies/"+of+"/adapters/cursor/models", ""); strings.Contains(string(a.body), "qwen") {
		t.Error("Cursor is offered a model that it can not reach")
	}
}

func TestAnAdapterIsTestedOnItsNodes(t *testing.T) {
	checks, failed := []adapter.Finding{{Code: "command_found", Level: "info"}}, error(nil)
	var asked json.RawMessage
	h := newHarness(t, func(c *Config) {
		c.ProbeAdapter = func(_ context.Context, _ identity.NodeID, _ string, config json.RawMessage) ([]adapter.Finding, error) {
			asked = config
			return checks, failed
		}
	})
	of := h.company("Acme")
	path := "/api/companies/" + of + "/adapters/process/test-environment"
	h.call("POST", path, `{"adapterConfig":{"command":"x"}}`).want(t, 200, `"status":"pass"`)
	if string(asked) != `{"command":"x"}` {
		t.Errorf("the node was asked about %s", asked)
	}
	checks = append(checks, adapter.Finding{Code: "version_unknown", Level: "warn"})
	h.call("POST", path, `{}`).want(t, 200, `"status":"warn"`)
	h.call("POST", "/api/companies/"+of+"/adapters/claude_local/test-environment", `{}`).want(t, 200, `"no_upstream"`)
	failed = errors.New("gone")
	h.call("POST", path, `{}`).want(t, 200, `"status":"fail"`)
	h.call("POST", path, `{"nodeId":"other"}`).want(t, 404, "Node not found")
	h.call("POST", path, `{"nodeId":7}`).want(t, 400, "nodeId")
}
