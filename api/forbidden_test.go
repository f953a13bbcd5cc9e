package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
)

// What the description of the API forbids is refused: requests without the body that
// they need, lists that are too long, settings that nobody knows.
func TestWhatIsForbiddenIsRefused(t *testing.T) {
	t.Parallel()
	f := newFlood(t)
	var doc struct {
		Paths map[string]map[string]struct {
			Body *struct{ Required bool } `json:"requestBody"`
		}
	}
	if err := json.Unmarshal(documentOf(t, f.Server), &doc); err != nil {
		t.Fatal(err)
	}
	needed := 0
	for _, r := range f.Routes() {
		body := doc.Paths[r.Path][strings.ToLower(r.Method)].Body
		if body == nil || !body.Required {
			continue
		}
		needed++
		path, _ := f.town.path(r)
		var headers []string
		if r.Who == api.Agent {
			headers = append(headers, "Authorization: Bearer "+f.town.token)
		}
		for _, without := range []string{"", "{}"} {
			f.refused(r.Method, path, without, headers...)
		}
	}
	if needed < 90 {
		t.Errorf("%d operations need a body", needed)
	}
	h := f.Harness
	long := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + "]" }
	agent := "/api/agents/" + f.town.agent
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", "/api/v1/mesh/owner-keys", `{"ownerKey":1}`, `"path":["ownerKey"]`},
		{"PUT", "/api/sidebar-preferences/me", "", `"path":["orderedIds"]`},
		{"POST", "/api/companies/" + f.town.of + "/agents", `{"name":"A","adapterType":"process","desiredSkills":` +
			long(201) + `}`, `"path":["desiredSkills"]`},
		{"POST", agent + "/skills/sync", `{"desiredSkills":` + long(101) + `}`, `"path":["desiredSkills"]`},
		{"PATCH", "/api/instance/settings/general", `{"nothing":1}`, `"keys":["nothing"]`},
		{"PATCH", "/api/instance/settings/general", `{"runLogRetention":{"days":1,"maxBytes":1,"weeks":1}}`,
			`"keys":["weeks"]`},
		{"PATCH", "/api/instance/settings/general", `{"runEventRetention":{"days":1,"weeks":1}}`, `"keys":["weeks"]`},
		{"PATCH", "/api/instance/settings/general",
			`{"backupRetention":{"dailyDays":1,"weeklyWeeks":1,"monthlyMonths":1,"yearly":1}}`, `"keys":["yearly"]`},
		{"PATCH", "/api/instance/settings/general", `{"runEventRetention":{"days":0}}`,
			`"path":["runEventRetention","days"]`},
		{"PATCH", "/api/instance/settings", `{"nothing":1}`, `"keys":["nothing"]`},
		{"PATCH", "/api/instance/settings/experimental", `{"enableNothing":true}`, `"keys":["enableNothing"]`},
	} {
		h.Call(c.method, c.path, c.body).Want(t, 400, c.says)
	}
	// A body of which every member may be left out may be left out: the description says so.
	for path, method := range map[string]string{"/api/v1/mesh/tokens": "post", "/api/v1/mesh/owner-keys": "post",
		"/api/instance/settings/general": "patch"} {
		if body := doc.Paths[path][method].Body; body == nil || body.Required {
			t.Errorf("%s %s: its body is described as %+v", method, path, body)
		}
	}
	h.Call("POST", "/api/v1/mesh/tokens", "").
		Want(t, 503, "This node does not do that now") // the body was taken; a node alone has no tokens
	h.Call("PATCH", "/api/instance/settings/general", "").Want(t, 200, `"backupRetention"`)
}
