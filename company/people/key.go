package people

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An AgentKey lets its bearer act as an agent. The token is shown once; only its hash is
// stored.
type AgentKey struct {
	ID              string           `cbor:"1,keyasint" json:"id"`
	Company         ledger.CompanyID `cbor:"2,keyasint" json:"-"`
	Agent           string           `cbor:"3,keyasint" json:"-"`
	Name            string           `cbor:"4,keyasint" json:"name"`
	Scope           StandardScope    `cbor:"-" json:"scope"`
	Hash            string           `cbor:"5,keyasint" json:"-"` // SHA-256 of the token, hex
	ResponsibleUser core.NullText    `cbor:"6,keyasint,omitempty" json:"responsibleUserId"`
	CreatedAt       core.Time        `cbor:"7,keyasint" json:"createdAt"`
	RevokedAt       core.Time        `cbor:"8,keyasint,omitempty" json:"revokedAt"`
}

// A StandardScope is the scope of a key. There is only one kind.
type StandardScope struct{}

// MarshalJSON implements json.Marshaler.
func (StandardScope) MarshalJSON() ([]byte, error) { return []byte(`{"kind":"standard"}`), nil }

// Keys outside companies, so that a token is found without knowing its company:
//
//	agent-key-token/<hash>    the key's ID; deleted when the key is revoked
//	agent-key-company/<id>    its company
func TokenKey(hash string) []byte    { return ledger.Key("agent-key-token", hash) }
func KeyCompanyKey(id string) []byte { return ledger.Key("agent-key-company", id) }

var (
	AgentKeys = ledger.NewTable[string, AgentKey]("agent-key").
			Beside(ledger.Indexed(keysByAgent, func(k *AgentKey) string { return k.Agent }))
	keysByAgent = ledger.NewIndex[string, string]("agent-key-agent")
)

// MaxAgentKeys bounds the keys of one agent, revoked ones included. At the bound, the oldest
// revoked key is deleted.
const MaxAgentKeys = 50

// CreateKey is the payload of agent_key.create. Hash is the SHA-256 of the
// token, in hex.
type CreateKey struct {
	ID    string `cbor:"1,keyasint"`
	Agent string `cbor:"2,keyasint"`
	Name  string `cbor:"3,keyasint"`
	Hash  string `cbor:"4,keyasint"`
}

// RevokeKey is the payload of agent_key.revoke.
type RevokeKey struct {
	ID    string `cbor:"1,keyasint"`
	Agent string `cbor:"2,keyasint"`
}

const (
	KindAgentKeyCreate = "agent_key.create"
	KindAgentKeyRevoke = "agent_key.revoke"
)

var keyKinds = []company.Kind{
	{Name: KindAgentKeyCreate, From: company.FromBoard, Needs: entity.ConfigureAgents, Traits: company.EndsKeys,
		Weight: company.Weights.Empowering, Do: ledger.Typed(createKey)},
	{Name: KindAgentKeyRevoke, From: company.FromBoard, Needs: entity.ConfigureAgents, Traits: company.EndsKeys,
		Weight: company.Weights.Halting, Do: ledger.Typed(revokeKey)},
}

// KeyByHash returns the key whose token has the SHA-256 hash (hex), unless it is revoked.
func KeyByHash(tx *ledger.Tx, hash string) (AgentKey, bool) {
	if !core.IsHash(hash) {
		return AgentKey{}, false
	}
	id, ok := tx.Get(TokenKey(hash))
	if !ok {
		return AgentKey{}, false
	}
	k, ok := KeyByID(tx, string(id))
	return k, ok && k.RevokedAt == 0 && k.Hash == hash
}

// KeyByID returns a key, revoked or not.
func KeyByID(tx *ledger.Tx, id string) (AgentKey, bool) {
	if !core.IsID(id) {
		return AgentKey{}, false
	}
	company, ok := tx.Get(KeyCompanyKey(id))
	if !ok {
		return AgentKey{}, false
	}
	return AgentKeys.Get(tx, ledger.CompanyID(company), id)
}

// KeysOf returns an agent's keys, oldest first.
func KeysOf(tx *ledger.Tx, company ledger.CompanyID, agent string) []AgentKey {
	out := []AgentKey{}
	for id := range keysByAgent.IDs(tx, company, agent, false) {
		if k, ok := AgentKeys.Get(tx, company, id); ok {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b AgentKey) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

func createKey(c *ledger.Context, p CreateKey) (any, error) {
	a, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	switch {
	case !ok:
		return nil, entity.ErrNoAgent()
	case a.Status == entity.AgentTerminated:
		return nil, ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot create keys for terminated agents")
	case a.Status == entity.AgentPendingApproval:
		return nil, ledger.Refuse(ledger.Conflict, a.Standing(), "Cannot create keys for pending approval agents")
	case !core.IsID(p.ID) || !core.IsHash(p.Hash):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed key")
	case p.Name == "" || len(p.Name) > entity.MaxName:
		return nil, ledger.Refuse(ledger.Invalid, nil, "A key needs a name of at most %d bytes", entity.MaxName)
	case c.Has(KeyCompanyKey(p.ID)) || c.Has(TokenKey(p.Hash)):
		return nil, ledger.Refuse(ledger.Conflict, nil, "The key exists already")
	}
	if err := roomForKey(c.Tx, a); err != nil {
		return nil, err
	}
	row, _ := entity.CompanyOf(c.Tx, a.Company)
	k := AgentKey{ID: p.ID, Company: a.Company, Agent: a.ID, Name: p.Name, Hash: p.Hash,
		ResponsibleUser: row.DefaultResponsibleUser, CreatedAt: core.TimeOf(c.Now)}
	if core.IsBoard(c) {
		k.ResponsibleUser = core.NullText(c.Cmd.Actor.ID)
	}
	c.Set(KeyCompanyKey(k.ID), []byte(k.Company))
	c.Set(TokenKey(k.Hash), []byte(k.ID))
	AgentKeys.Put(c.Tx, k.Company, k.ID, k)
	c.Record(ledger.Change{Action: "agent.key_created", EntityType: "agent", EntityID: a.ID,
		Details: core.Object{}.Str("name", k.Name).Str("keyId", k.ID).Raw("scope", json.RawMessage(`{"kind":"standard"}`)).
			Null("responsibleUserId", string(k.ResponsibleUser)).Close()})
	return k, nil
}

// roomForKey deletes the oldest revoked key if the agent is at the bound.
func roomForKey(tx *ledger.Tx, a entity.Agent) error {
	keys := KeysOf(tx, a.Company, a.ID)
	if len(keys) < MaxAgentKeys {
		return nil
	}
	for _, k := range keys {
		if k.RevokedAt != 0 {
			dropKey(tx, k)
			return nil
		}
	}
	return ledger.Refuse(ledger.Conflict, nil, "The agent has %d keys already; revoke one", MaxAgentKeys)
}

func revokeKey(c *ledger.Context, p RevokeKey) (any, error) {
	k, ok := AgentKeys.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok || k.Agent != p.Agent {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Key not found")
	}
	if k.RevokedAt != 0 {
		return k, nil
	}
	k = revoke(c.Tx, k, core.TimeOf(c.Now))
	c.Record(ledger.Change{Action: "agent.key_revoked", EntityType: "agent", EntityID: k.Agent,
		Details: core.Object{}.Str("keyId", k.ID).Str("name", k.Name).Close()})
	return k, nil
}

func revoke(tx *ledger.Tx, k AgentKey, now core.Time) AgentKey {
	k.RevokedAt = now
	tx.Delete(TokenKey(k.Hash))
	AgentKeys.Put(tx, k.Company, k.ID, k)
	return k
}

func revokeKeysOf(c *ledger.Context, a entity.Agent) {
	for _, k := range KeysOf(c.Tx, a.Company, a.ID) {
		if k.RevokedAt == 0 {
			revoke(c.Tx, k, core.TimeOf(c.Now))
		}
	}
}

func dropKey(tx *ledger.Tx, k AgentKey) {
	tx.Delete(TokenKey(k.Hash))
	tx.Delete(KeyCompanyKey(k.ID))
	AgentKeys.Delete(tx, k.Company, k.ID)
}

func dropKeysOf(tx *ledger.Tx, a entity.Agent) {
	for _, k := range KeysOf(tx, a.Company, a.ID) {
		dropKey(tx, k)
	}
}
