package testkit

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// After the mesh has a new data key, all that was sealed with the one before is
// sealed anew, wherever it lies, and nothing is lost of it.
func TestEverythingIsSealedAnew(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	of := b.Company("Acme")
	in := "/api/companies/" + string(of)
	env := map[string]any{"TOKEN": "canary-value"}
	var row struct {
		ID, Token string
		Agent     struct{ ID string }
	}
	b.Must(0, "POST", in+"/secrets", map[string]any{"name": "one", "value": "canary-value"}, &row)
	b.Must(0, "POST", "/api/secrets/"+row.ID+"/rotate", map[string]any{"value": "canary-again"}, nil)
	ada, err := b.Hire(0, of, "Ada", map[string]any{"command": "/bin/true", "env": env})
	if err != nil {
		t.Fatal(err)
	}
	b.Must(0, "PATCH", "/api/agents/"+ada.ID,
		map[string]any{"adapterConfig": map[string]any{"env": map[string]any{"TOKEN": "canary-newer"}}}, nil)
	b.Must(0, "POST", in+"/projects", map[string]any{"name": "P", "env": env}, nil)
	b.Must(0, "POST", in+"/routines", map[string]any{"title": "R", "assigneeAgentId": ada.ID, "env": env}, &row)
	b.Must(0, "POST", "/api/routines/"+row.ID+"/triggers", map[string]any{"kind": "webhook", "signingMode": "bearer"}, nil)
	b.Must(0, "POST", in+"/approvals", map[string]any{"type": "hire_agent", "payload": map[string]any{"name": "Bob",
		"adapterType":   "process",
		"adapterConfig": map[string]any{"command": "/bin/true", "env": env}}}, nil)
	b.Must(0, "POST", in+"/invites", map[string]any{"allowedJoinTypes": "both"}, &row)
	b.Must(0, "POST", "/api/invites/"+row.Token+"/accept", map[string]any{"requestType": "agent", "agentName": "J",
		"adapterType":          "http",
		"agentDefaultsPayload": map[string]any{"url": "http://127.0.0.1:9/x", "env": env}}, nil)
	b.Must(0, "POST", in+"/model-providers", map[string]any{"name": "claude", "kind": "anthropic",
		"apiKey": "canary-value"}, nil)

	// sealed tells with which keys what is sealed, by kind.
	sealed := func() map[string]map[identity.DataKeyID]int {
		out := map[string]map[identity.DataKeyID]int{}
		note := func(kind string, b []byte) {
			id, err := identity.SealedWith(b)
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if out[kind] == nil {
				out[kind] = map[identity.DataKeyID]int{}
			}
			out[kind][id]++
		}
		if err := b.Nodes[0].Ledger().View(func(tx *ledger.Tx) error {
			for v := range secret.SecretVersions(tx, of) {
				note("secret", v.Sealed)
			}
			for _, o := range company.SealedConfigs(tx, of) {
				for _, v := range o.Values {
					raw, err := base64.StdEncoding.DecodeString(v.Sealed)
					if err != nil {
						t.Fatal(err)
					}
					note(o.Type, raw)
				}
			}
			// What no list knows would stay behind.
			listed := 0
			for _, kinds := range out {
				for _, n := range kinds {
					listed += n
				}
			}
			if listed == 0 {
				t.Error("nothing is sealed")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.Heads()
	before := sealed()
	for _, kind := range []string{"secret", "agent", "project", "routine", "routine_trigger", "approval", "join_request",
		"model_provider"} {
		if len(before[kind]) != 1 {
			t.Errorf("%s: sealed with %d keys before, want 1", kind, len(before[kind]))
		}
	}
	was := slices.Collect(maps.Keys(before["secret"]))[0]
	id := b.Nodes[2].ID()
	b.dead[b.Nodes[2]] = true // it stops by itself
	b.Must(0, "POST", "/api/v1/mesh/nodes/"+string(id)+"/revoke", map[string]any{}, nil, Strong...)
	b.Until("all is sealed with the new key", func() bool {
		for _, keys := range sealed() {
			if keys[was] > 0 {
				return false
			}
		}
		return true
	})
	after := sealed()
	for kind, keys := range before {
		if len(after[kind]) != 1 || after[kind][slices.Collect(maps.Keys(after[kind]))[0]] != keys[was] {
			t.Errorf("%s: %d values before, %v after", kind, keys[was], after[kind])
		}
	}
	if bytes.Contains([]byte(b.Logs[0].String()+b.Logs[1].String()), []byte("canary-")) {
		t.Error("a value is in the log")
	}
	b.Must(0, "GET", in+"/approvals", nil, nil)
}
