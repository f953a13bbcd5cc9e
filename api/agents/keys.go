package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// newKey is the body that makes an API key for an agent.
type newKey struct {
	Name  string    `json:"name,omitempty" minLength:"1" maxLength:"200" maxBytes:"500" default:"default"`
	Scope *keyScope `json:"scope,omitempty"`
}

// A keyScope says what a key may be used for. There is one kind.
type keyScope struct {
	Kind string `json:"kind" enum:"standard"`
}

// A madeKey is a new key with its token, which is shown only once.
type madeKey struct {
	ID              string          `json:"id"`
	Name            string          `json:"name"`
	Scope           json.RawMessage `json:"scope"`
	ResponsibleUser core.NullText   `json:"responsibleUserId"`
	Token           string          `json:"token"`
	CreatedAt       core.Time       `json:"createdAt"`
}

func KeyRoutes() []api.Route {
	const tag, all = "agents", "/api/agents/{id}/keys"
	return []api.Route{
		api.Show(api.Route{Path: all, Tag: tag, Summary: "List an agent's API keys", Query: api.ByName(), Who: api.Board},
			api.AgentIn, func(tx *ledger.Tx, a entity.Agent) []people.AgentKey { return people.KeysOf(tx, a.Company, a.ID) }),
		{Method: "POST", Path: all, Limited: true, Tag: tag, Summary: "Make an API key; its token is shown once",
			Query: api.ByName(), Who: api.Board, In: newKey{}, Out: madeKey{}, Status: 201, Handle: createKey},
		api.Tell(api.Route{Path: all + "/{keyId}", Limited: true, Tag: tag, Summary: "Revoke an API key",
			Query: api.ByName(), Who: api.Board}, people.KindAgentKeyRevoke, agentAt,
			func(rc *api.Request, agent string) people.RevokeKey {
				return people.RevokeKey{ID: api.PathID(rc, "keyId"), Agent: agent}
			}),
	}
}

func createKey(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newKey](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := api.FindAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	token := api.TokenPrefix + hex.EncodeToString(rc.Secret("agent-key", api.TokenBytes))
	hash := sha256.Sum256([]byte(token))
	k, err := api.Do[people.AgentKey](rc, people.KindAgentKeyCreate, a.Company, people.CreateKey{ID: api.NewID(),
		Agent: a.ID, Name: in.Name, Hash: hex.EncodeToString(hash[:])})
	if err != nil {
		return api.Response{}, err
	}
	if k.Hash != hex.EncodeToString(hash[:]) {
		// A repetition whose token can not be derived again, because the mesh's key has changed.
		return api.Response{}, api.Conflict("The key was made by an earlier request; its token can not be shown again",
			map[string]string{"keyId": k.ID})
	}
	rc.SetHeader("Cache-Control", "no-store")
	return api.OK(madeKey{k.ID, k.Name, json.RawMessage(`{"kind":"standard"}`), k.ResponsibleUser, token,
		k.CreatedAt}), nil
}
