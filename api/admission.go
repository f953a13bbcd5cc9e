package api

import (
	"net/http"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// admissionRoutes are about who becomes a member, and about the keys that members share.
func admissionRoutes() []Route {
	return []Route{
		{Method: "GET", Path: "/api/v1/mesh/requests", Tag: "mesh", Summary: "List the nodes that ask to be let in", Who: Admin, Out: []joinRequest{}, Handle: listJoinRequests},
		{Method: "POST", Path: "/api/v1/mesh/requests/{code}/approve", Once: true, Tag: "mesh", Summary: "Let in the node that shows this code", Who: Admin, Out: member{}, Handle: approveJoin},
		{Method: "POST", Path: "/api/v1/mesh/requests/{code}/reject", Once: true, Tag: "mesh", Summary: "Send away the node that shows this code", Who: Admin, Status: 204, Handle: rejectJoin},
		{Method: "POST", Path: "/api/v1/mesh/owner-keys", Once: true, Limited: true, Tag: "mesh", Summary: "Add an owner key, by which nodes join by themselves; its text is shown once", Who: Admin, Status: 201,
			NoTool: true, In: addOwnerKey{}, Out: ownerKey{}, Handle: tellOwnerKey},
		{Method: "GET", Path: "/api/v1/mesh/keys", Tag: "mesh", Summary: "Tell of which epoch the mesh's keys are", Who: Admin, Out: meshKeys{}, Handle: readMeshKeys},
		{Method: "POST", Path: "/api/v1/mesh/keys/rotate", Once: true, Limited: true, Tag: "mesh", Summary: "Draw new keys for the mesh", Who: Admin, Out: meshKeys{}, Handle: rotateMeshKeys},
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

func listJoinRequests(rc *Request) (Response, error) {
	s := rc.server
	if s.cfg.Joins == nil {
		return Response{}, errNotHere
	}
	out := []joinRequest{}
	for _, r := range s.cfg.Joins.JoinRequests(rc.Context()) {
		out = append(out, joinRequest{r.Code, r.Node, r.Name, orEmpty(r.Labels), r.Address, core.Time(r.Asked), core.Time(r.Until)})
	}
	return OK(out), nil
}

func (s *Server) joinCode(rc *Request) (string, error) {
	code, ok := identity.ParseJoinCode(rc.Path("code"))
	switch {
	case !ok:
		return "", Invalid("A code has six digits and letters, such as K7Q-3MX")
	case s.cfg.Joins == nil:
		return "", errNotHere
	}
	return code, nil
}

func approveJoin(rc *Request) (Response, error) {
	s := rc.server
	code, err := s.joinCode(rc)
	if err != nil {
		return Response{}, err
	}
	id, err := s.cfg.Joins.Approve(rc.Context(), rc.Actor, rc.Credential, code)
	if err != nil {
		return Response{}, err
	}
	var out member
	err = rc.View(func(tx *ledger.Tx) error {
		n, ok := ledger.FindNode(tx, id)
		if !ok { // this node has not heard of it yet
			n = ledger.Node{ID: id}
		}
		out = s.memberOf(n).onDuty(tx)
		return nil
	})
	return OK(out), err
}

func rejectJoin(rc *Request) (Response, error) {
	s := rc.server
	code, err := s.joinCode(rc)
	if err != nil {
		return Response{}, err
	}
	if !s.cfg.Joins.Refuse(rc.Context(), code) {
		return Response{}, NotFound("No node waits with the code " + code)
	}
	return Response{Status: http.StatusNoContent}, nil
}

type addOwnerKey struct {
	Key  string `json:"ownerKey,omitempty" maxLength:"128" doc:"the text of an owner key that is there; without it a new one is drawn"`
	Note string `json:"note,omitempty" maxLength:"100"`
}

type ownerKey struct {
	Key string `json:"ownerKey"`
}

func tellOwnerKey(rc *Request) (Response, error) {
	s := rc.server
	in, err := Body[addOwnerKey](rc)
	if err != nil {
		return Response{}, err
	}
	if s.cfg.Joins == nil {
		return Response{}, errNotHere
	}
	if in.Key != "" {
		if _, err := identity.DecodeOwnerKey(in.Key); err != nil {
			return Response{}, Invalid("%s", err)
		}
	}
	text, err := s.cfg.Joins.AddOwner(rc.Context(), rc.Actor, rc.Credential, in.Key, in.Note)
	return OK(ownerKey{text}), err
}

type meshKeys struct {
	Epoch     uint64    `json:"epoch"`
	RotatedAt core.Time `json:"rotatedAt"`
	Height    uint64    `json:"height"`
	Wanted    bool      `json:"rotationWanted"` // a node was revoked, and they are about to be replaced
}

func readMeshKeys(rc *Request) (Response, error) {
	var out meshKeys
	err := rc.View(func(tx *ledger.Tx) error {
		k := ledger.CurrentKeys(tx)
		out = meshKeys{k.Epoch, core.TimeOf(ledger.KeysSince(tx)), k.RotatedAt, k.Wanted}
		return nil
	})
	return OK(out), err
}

func rotateMeshKeys(rc *Request) (Response, error) {
	s := rc.server
	if s.cfg.Joins == nil {
		return Response{}, errNotHere
	}
	if err := s.cfg.Joins.RotateKeys(rc.Context(), rc.Actor, rc.Credential); err != nil {
		return Response{}, err
	}
	return readMeshKeys(rc)
}
