package mesh

import (
	"net/http"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// AdmissionRoutes admit new members and manage the keys that members share.
func AdmissionRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/v1/mesh/requests", Tag: "mesh", Summary: "List the nodes that ask to be let in",
			Who: api.Admin, Out: []joinRequest{}, Handle: listJoinRequests},
		{Method: "POST", Path: "/api/v1/mesh/requests/{code}/approve", Once: true, Tag: "mesh",
			Summary: "Let in the node that shows this code", Who: api.Admin, Out: member{}, Handle: approveJoin},
		{Method: "POST", Path: "/api/v1/mesh/requests/{code}/reject", Once: true, Tag: "mesh",
			Summary: "Send away the node that shows this code", Who: api.Admin, Status: 204, Handle: rejectJoin},
		{Method: "POST", Path: "/api/v1/mesh/owner-keys", Once: true, Limited: true, Tag: "mesh",
			Summary: "Add an owner key, by which nodes join by themselves; its text is shown once", Who: api.Admin, Status: 201,
			NoTool: true, In: addOwnerKey{}, Out: ownerKey{}, Handle: tellOwnerKey},
		api.Read(api.Route{Path: "/api/v1/mesh/keys", Tag: "mesh", Summary: "Tell of which epoch the mesh's keys are",
			Who: api.Admin}, readMeshKeys),
		{Method: "POST", Path: "/api/v1/mesh/keys/rotate", Once: true, Limited: true, Tag: "mesh",
			Summary: "Draw new keys for the mesh", Who: api.Admin, Out: meshKeys{}, Handle: rotateMeshKeys},
	}
}

type joinRequest struct {
	Code      string          `json:"code"`
	NodeID    identity.NodeID `json:"nodeId"`
	Name      string          `json:"name"`
	Labels    []string        `json:"labels"`
	Address   string          `json:"address"`
	AskedAt   core.Time       `json:"askedAt"`
	ExpiresAt core.Time       `json:"expiresAt"`
}

func listJoinRequests(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Joins == nil {
		return api.Response{}, errNotHere
	}
	out := []joinRequest{}
	for _, r := range s.Cfg.Joins.JoinRequests(rc.Context()) {
		out = append(out, joinRequest{r.Code, r.Node, r.Name, orEmpty(r.Labels), r.Address, core.Time(r.Asked),
			core.Time(r.Until)})
	}
	return api.OK(out), nil
}

func joinCode(s *api.Server, rc *api.Request) (string, error) {
	code, ok := identity.ParseJoinCode(rc.Path("code"))
	switch {
	case !ok:
		return "", api.Invalid("A code has six digits and letters, such as K7Q-3MX")
	case s.Cfg.Joins == nil:
		return "", errNotHere
	}
	return code, nil
}

func approveJoin(rc *api.Request) (api.Response, error) {
	s := rc.Server
	code, err := joinCode(s, rc)
	if err != nil {
		return api.Response{}, err
	}
	id, err := s.Cfg.Joins.Approve(rc.Context(), rc.Actor, rc.Credential, code)
	if err != nil {
		return api.Response{}, err
	}
	var out member
	err = rc.View(func(tx *ledger.Tx) error {
		n, ok := ledger.FindNode(tx, id)
		if !ok { // this node has not applied it yet
			n = ledger.Node{ID: id}
		}
		out = memberOf(s, n).onDuty(tx)
		return nil
	})
	return api.OK(out), err
}

func rejectJoin(rc *api.Request) (api.Response, error) {
	s := rc.Server
	code, err := joinCode(s, rc)
	if err != nil {
		return api.Response{}, err
	}
	if !s.Cfg.Joins.Refuse(rc.Context(), code) {
		return api.Response{}, api.NotFound("No node waits with the code " + code)
	}
	return api.Response{Status: http.StatusNoContent}, nil
}

type addOwnerKey struct {
	Key  string `json:"ownerKey,omitempty" maxLength:"128" doc:"the text of an owner key that is there; without it a new one is drawn"`
	Note string `json:"note,omitempty" maxLength:"100"`
}

type ownerKey struct {
	Key string `json:"ownerKey"`
}

func tellOwnerKey(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[addOwnerKey](rc)
	if err != nil {
		return api.Response{}, err
	}
	if s.Cfg.Joins == nil {
		return api.Response{}, errNotHere
	}
	if in.Key != "" {
		if _, err := identity.DecodeOwnerKey(in.Key); err != nil {
			return api.Response{}, api.Invalid("%s", err)
		}
	}
	text, err := s.Cfg.Joins.AddOwner(rc.Context(), rc.Actor, rc.Credential, in.Key, in.Note)
	return api.OK(ownerKey{text}), err
}

type meshKeys struct {
	Epoch     uint64    `json:"epoch"`
	RotatedAt core.Time `json:"rotatedAt"`
	Height    uint64    `json:"height"`
	Wanted    bool      `json:"rotationWanted"` // a node was revoked, and the keys will be replaced
}

func readMeshKeys(tx *ledger.Tx, _ *api.Request) (meshKeys, error) {
	k := ledger.CurrentKeys(tx)
	return meshKeys{k.Epoch, core.TimeOf(ledger.KeysSince(tx)), k.RotatedAt, k.Wanted}, nil
}

func rotateMeshKeys(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Joins == nil {
		return api.Response{}, errNotHere
	}
	if err := s.Cfg.Joins.RotateKeys(rc.Context(), rc.Actor, rc.Credential); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (meshKeys, error) { return readMeshKeys(tx, rc) })
}
