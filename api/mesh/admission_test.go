package mesh_test

import (
	"context"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// joins simulates a node with one waiting join request.
type joins struct {
	waiting  []api.JoinRequest
	approved string
	by       ledger.Actor
	rotated  int
	owner    string
}

func (j *joins) JoinRequests(context.Context) []api.JoinRequest { return j.waiting }

func (j *joins) Approve(_ context.Context, by ledger.Actor, _ ledger.Credential, code string) (identity.NodeID, error) {
	if len(j.waiting) == 0 || j.waiting[0].Code != code {
		return "", ledger.Refuse(ledger.NotFound, nil, "No node waits with the code %s", code)
	}
	j.approved, j.by = code, by
	return j.waiting[0].Node, nil
}

func (j *joins) Refuse(_ context.Context, code string) bool {
	ok := len(j.waiting) > 0 && j.waiting[0].Code == code
	if ok {
		j.waiting = nil
	}
	return ok
}

func (j *joins) AddOwner(_ context.Context, _ ledger.Actor, _ ledger.Credential, text, _ string) (string, error) {
	if text == "" {
		text = identity.EncodeOwnerKey(identity.OwnerKey{1})
	}
	j.owner = text
	return text, nil
}

func (j *joins) RotateKeys(context.Context, ledger.Actor, ledger.Credential) error {
	j.rotated++
	return nil
}

func TestAdmissionRoutes(t *testing.T) {
	j := &joins{waiting: []api.JoinRequest{{Code: "K7Q-3MX", Node: "0123456789abcdef0123456789abcdef", Name: "box",
		Address: "192.0.2.7", Asked: 1000, Until: 601_000}}}
	h := apitest.NewHarness(t, func(c *api.Config) { c.Joins = j })
	const requests = "/api/v1/mesh/requests"
	h.Call("GET", requests, "").Want(t, 200,
		`"code":"K7Q-3MX","nodeId":"0123456789abcdef0123456789abcdef","name":"box","labels":[],"address":"192.0.2.7",`+
			`"askedAt":"1970-01-01T00:00:01.000Z","expiresAt":"1970-01-01T00:10:01.000Z"`)
	h.Call("POST", requests+"/nonsense/approve", "{}").Want(t, 400, "six digits and letters")
	h.Call("POST", requests+"/AAA-AAA/approve", "{}").Want(t, 404, "AAA-AAA")
	h.Call("POST", requests+"/k7q3mx/approve", "{}").
		Want(t, 200, string(j.waiting[0].Node)) // in the form in which people type it
	if j.approved != "K7Q-3MX" || j.by.Type != "user" {
		t.Errorf("approved %q by %+v", j.approved, j.by)
	}
	h.Call("POST", requests+"/AAA-AAA/reject", "{}").Want(t, 404, "No node waits with the code AAA-AAA")
	h.Call("POST", requests+"/K7Q-3MX/reject", "{}").Want(t, 204, "")
	if k := h.Call("POST", "/api/v1/mesh/owner-keys", "{}").Want(t, 201, "selvage-owner-").
		Field(t, "ownerKey"); k != j.owner {
		t.Error("the owner key is not the one that was drawn")
	}
	h.Call("POST", "/api/v1/mesh/owner-keys", `{"ownerKey":"selvage-owner-nonsense"}`).Want(t, 400, "cut short")
	h.Call("GET", "/api/v1/mesh/keys", "").Want(t, 200, `"epoch":1,"rotatedAt":"2`)
	h.Call("POST", "/api/v1/mesh/keys/rotate", "{}").Want(t, 200, `"epoch":1`)
	if j.rotated != 1 {
		t.Error("the keys were not rotated")
	}
	for _, r := range []string{"GET " + requests, "POST " + requests + "/K7Q-3MX/approve", "POST " + requests +
		"/K7Q-3MX/reject", "POST /api/v1/mesh/owner-keys", "POST /api/v1/mesh/keys/rotate"} {
		method, path, _ := strings.Cut(r, " ")
		body := ""
		if method == "POST" {
			body = "{}"
		}
		if a := h.Call(method, path, body, "Authorization: Bearer pcp_nobody"); a.Status != 401 && a.Status != 403 {
			t.Errorf("%s by a stranger: %d %s", r, a.Status, a.Body)
		}
	}
}

// Revoking a node lists what it could read: names without values.
func TestRevokedNodesSecretsAreListed(t *testing.T) {
	h := apitest.NewHarness(t)
	board, local := ledger.Actor{Type: "user", ID: people.LocalBoard}, ledger.Credential{Kind: "local"}
	of := h.Company("Acme")
	h.Call("POST", "/api/companies/"+of+"/secrets", `{"name":"Deploy key","key":"deploy","value":"canary-5d1f"}`).
		Want(t, 201, "")
	h.SubmitAs(board, local, ledger.KindTokenCreate, "", ledger.TokenCreate{ID: "tok", Sealed: []byte("s"), Uses: 1,
		TTL: 60_000})
	for i, labels := range [][]string{nil, {ledger.LabelUntrusted}} {
		k := identity.Derive([32]byte{byte(i + 1)})
		h.SubmitAs(board, local, ledger.KindNodeAdmit, "", ledger.NodeAdmit{Node: ledger.NewNode{Key: k.Public(), Name: "box",
			Labels:   labels,
			SealCert: k.Certificate(identity.ForSeal).Encode()}})
		a := h.Call("POST", "/api/v1/mesh/nodes/"+string(k.ID())+"/revoke", "{}").Want(t, 200, `"status":"revoked"`)
		want := `"exposedTotal":2`
		if labels != nil {
			want = `"exposed":[],"exposedTotal":0`
		}
		if s := string(a.Body); !strings.Contains(s, want) || strings.Contains(s, "canary") || labels == nil &&
			(!strings.Contains(s, `"company":"Acme"`) || !strings.Contains(s, `"name":"Deploy key"`) || !strings.Contains(s,
				`"type":"join_token"`)) {
			t.Errorf("labels %v: %s", labels, s)
		}
	}
}
