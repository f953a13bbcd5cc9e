package weftos_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

type treeView struct {
	Root      string
	Vertices  int
	Unchanged bool
	Nodes     []struct {
		Path, Kind string
		Children   int
		Hash       string `json:"merkle_hash"`
		Metadata   map[string]string
		Scoring    map[string]float64
	}
	Committed *struct {
		Root   string
		Height uint64
	}
}

func lookAt(t *testing.T, h *apitest.Harness, query string, as ...string) (v treeView) {
	t.Helper()
	if err := json.Unmarshal(h.Call("GET", "/api/v1/tree"+query, "", as...).Want(t, 200, `"root"`).Body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v treeView) paths() string {
	var out []string
	for _, n := range v.Nodes {
		out = append(out, n.Path)
	}
	return strings.Join(out, " ")
}

// Companies, agents, nodes, tools and secrets stand in the tree, by name only; its root follows them and is committed.
func TestTheResourceTree(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	before := lookAt(t, h, "")
	if got := before.paths(); got != "/ /apps /companies /environments /kernel /network" || before.Committed != nil ||
		len(before.Root) != 64 || before.Nodes[0].Hash != before.Root {
		t.Errorf("the bare tree: %s, %+v", got, before)
	}
	of := h.Company("Acme")
	ada := h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	secret := h.Call("POST", "/api/companies/"+of+"/secrets", `{"name":"Mail key","value":"s3cr3t-value"}`).
		Want(t, 201, "").Field(t, "id")
	v := lookAt(t, h, "?path=/companies/"+of+"&depth=2")
	if v.Root == before.Root {
		t.Error("the root does not follow a new agent")
	}
	at := "/companies/" + of
	if want := strings.Join([]string{at, at + "/agents", at + "/agents/" + ada, at + "/environments", at + "/hosts",
		at + "/models", at + "/secrets", at + "/secrets/" + secret, at + "/tools"}, " "); v.paths() != want {
		t.Errorf("got %s, want %s", v.paths(), want)
	}
	whole := h.Call("GET", "/api/v1/tree?depth=16", "").Want(t, 200, `"name":"Mail key"`).
		Want(t, 200, `"path":"/kernel/tools/filesystem/fs.stat"`).
		Want(t, 200, `"path":"/network/peers/`+string(h.Node.Keys.ID())+`"`)
	if strings.Contains(string(whole.Body), "s3cr3t") {
		t.Error("the tree has the value of a secret")
	}
	if a := v.Nodes[2]; a.Kind != "agent" || a.Metadata["name"] != "Ada" || a.Scoring["trust"] != 0.5 ||
		len(a.Scoring) != 6 {
		t.Errorf("the agent is shown as %+v", a)
	}
	c := h.Call("POST", "/api/v1/tree/commit", "").Want(t, 200, `"root":"`+v.Root+`"`)
	if v := lookAt(t, h, ""); !v.Unchanged || v.Committed.Root != v.Root ||
		fmt.Sprint(v.Committed.Height) != c.Field(t, "height") {
		t.Errorf("after the commitment: %+v", v)
	}
	h.Call("PATCH", "/api/agents/"+ada, `{"title":"Smith"}`).Want(t, 200, "")
	if v := lookAt(t, h, ""); !v.Unchanged {
		t.Error("a title is part of the root")
	}
	h.Call("PATCH", "/api/agents/"+ada, `{"role":"qa"}`).Want(t, 200, "")
	if v := lookAt(t, h, ""); v.Unchanged || v.Committed == nil {
		t.Error("a role is no part of the root")
	}
	h.Call("GET", "/api/v1/tree?path=/nowhere", "").Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("GET", "/api/v1/tree?path=apps", "").Want(t, 400, "path: ")
	h.Call("GET", "/api/v1/tree?path=/apps/../kernel", "").Want(t, 400, "path: ")
	h.Call("GET", "/api/v1/tree?depth=x", "").Want(t, 400, "depth")
}

// Who has no grant sees nothing; the nearest grant decides, and who was given a grant to hand on may hand on as much.
func TestAccessToTheTree(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	agent := func(of, name string) (id, as string) {
		id = h.Call("POST", "/api/companies/"+of+"/agents",
			`{"name":"`+name+`","role":"engineer","adapterType":"process","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
			Field(t, "id")
		return id, "Authorization: Bearer " + h.Call("POST", "/api/agents/"+id+"/keys", `{"name":"k"}`).Want(t, 201, "").
			Field(t, "token")
	}
	acme, bee := h.Company("Acme"), h.Company("Bee")
	ada, asAda := agent(acme, "Ada")
	bob, asBob := agent(bee, "Bob")
	if got := lookAt(t, h, "?path=/companies", asAda).paths(); got != "/companies /companies/"+acme {
		t.Errorf("an agent sees %s", got)
	}
	h.Call("GET", "/api/v1/tree?path=/companies/"+bee, "", asAda).Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("GET", "/api/v1/tree?path=/network", "", asAda).Want(t, 404, `"code":"NOT_FOUND"`)
	grant := func(path, subject, rest string, as ...string) apitest.Answer {
		return h.Call("POST", "/api/v1/tree/grants", fmt.Sprintf(`{"path":%q,"subject":%q%s}`, path, subject, rest), as...)
	}
	access := func(path, action string, as ...string) apitest.Answer {
		return h.Call("GET", "/api/v1/tree/access?path="+path+"&action="+action, "", as...)
	}
	access("/companies/"+bee, "read", asAda).Want(t, 200, `"allowed":false,"reason":"no grant on`)
	grant("/companies/"+bee, "agent:"+ada, `,"role":"operator","delegate":true`, asAda).Want(t, 403, `"code":"FORBIDDEN"`)
	grant("/companies/"+bee, "agent:"+ada, `,"role":"operator","delegate":true`).Want(t, 201, `"by":"user:local-board"`)
	access("/companies/"+bee+"/agents", "use", asAda).
		Want(t, 200, `"allowed":true,"reason":"operator of /companies/`+bee+`"`)
	access("/companies/"+bee, "change", asAda).Want(t, 200, `"allowed":false`)
	h.Call("GET", "/api/v1/tree?path=/companies/"+bee, "", asAda).Want(t, 200, `"name":"Bee"`)
	grant("/companies/"+bee+"/secrets", "*", `,"deny":true`).Want(t, 201, `"role":null`)
	access("/companies/"+bee+"/secrets", "read", asAda).Want(t, 200, `"allowed":false,"reason":"denied on`)
	access("/companies/"+bee+"/secrets", "read").Want(t, 200, `"allowed":false`) // the nearest decides, whoever it is

	grant("/companies/"+bee+"/agents", "agent:"+bob, `,"role":"admin"`, asAda).Want(t, 403, `"code":"FORBIDDEN"`)
	grant("/companies/"+bee+"/agents", "agent:"+bob, `,"role":"operator"`, asAda).Want(t, 201, `"by":"agent:`+ada+`"`)
	access("/companies/"+bee+"/agents", "use", asBob).Want(t, 200, `"allowed":true`)
	h.Call("DELETE", "/api/v1/tree/grants?path=/companies/"+bee+"&subject=agent:"+ada, "", asBob).
		Want(t, 403, `"code":"FORBIDDEN"`)
	h.Call("DELETE", "/api/v1/tree/grants?path=/companies/"+bee+"&subject=agent:"+ada, "").
		Want(t, 200, `"role":"operator"`)
	access("/companies/"+bee, "read", asAda).Want(t, 200, `"allowed":false`)
	h.Call("DELETE", "/api/v1/tree/grants?path=/companies/"+bee+"&subject=agent:"+ada, "").
		Want(t, 404, `"code":"NOT_FOUND"`)
	h.Call("DELETE", "/api/v1/tree/grants?path=/companies/"+bee+"/secrets&subject=*", "").Want(t, 200, `"deny":true`)
	h.Call("GET", "/api/v1/tree/grants?path=/companies", "").Want(t, 200, `"subject":"agent:`+bob+`"`)

	for body, want := range map[string]string{
		`{"path":"/nowhere","subject":"*","role":"viewer"}`: "no /nowhere",
		`{"path":"apps","subject":"*","role":"viewer"}`:     "path: ",
		`{"path":"/apps","subject":"x","role":"viewer"}`:    "subject: ",
		`{"path":"/apps","subject":"*"}`:                    "role: ", `{"path":"/apps","subject":"*","role":"king"}`: "role",
		`{"path":"/apps","subject":"*","deny":true,"role":"viewer"}`:                    "deny: ",
		`{"path":"/apps","subject":"*","role":"viewer","until":"2001-01-01T00:00:00Z"}`: "until: ",
	} {
		status := 400
		if strings.HasPrefix(want, "no /") {
			status = 404
		}
		h.Call("POST", "/api/v1/tree/grants", body).Want(t, status, want)
	}
}
