package company

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// An AgentKey lets its bearer act as an agent. The token is made where it is
// asked for and shown once; only its hash is stored.
type AgentKey struct {
	ID              string   `cbor:"1,keyasint" json:"id"`
	Company         string   `cbor:"2,keyasint" json:"-"`
	Agent           string   `cbor:"3,keyasint" json:"-"`
	Name            string   `cbor:"4,keyasint" json:"name"`
	Hash            string   `cbor:"5,keyasint" json:"-"` // SHA-256 of the token, hex
	ResponsibleUser NullText `cbor:"6,keyasint,omitempty" json:"responsibleUserId"`
	CreatedAt       Time     `cbor:"7,keyasint" json:"createdAt"`
	RevokedAt       Time     `cbor:"8,keyasint,omitempty" json:"revokedAt"`
}

// MarshalJSON adds the scope, of which there is one kind.
func (k AgentKey) MarshalJSON() ([]byte, error) {
	return jsonObject{}.str("id", k.ID).str("name", k.Name).raw("scope", json.RawMessage(`{"kind":"standard"}`)).
		null("responsibleUserId", string(k.ResponsibleUser)).time("createdAt", k.CreatedAt).time("revokedAt", k.RevokedAt).close(), nil
}

// Keys that span companies, so that a token is found without knowing whose it is:
//
//	agent-key-token/<hash>    the key's ID; gone when it is revoked
//	agent-key-company/<id>    its company
func tokenKey(hash string) []byte    { return ledger.Key("agent-key-token", hash) }
func keyCompanyKey(id string) []byte { return ledger.Key("agent-key-company", id) }

var (
	agentKeys   = ledger.NewTable[AgentKey]("agent-key").Indexed(keysByAgent, func(k *AgentKey) string { return k.Agent })
	keysByAgent = ledger.NewIndex("agent-key-agent")
)

// MaxAgentKeys bounds the keys of one agent, revoked ones included: the oldest
// revoked one makes room.
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

var keyKinds = []Kind{
	{Name: KindAgentKeyCreate, From: FromBoard, Needs: ConfigureAgents, Traits: EndsKeys, Do: ledger.Typed(createKey)},
	{Name: KindAgentKeyRevoke, From: FromBoard, Needs: ConfigureAgents, Traits: EndsKeys, Do: ledger.Typed(revokeKey)},
}

// KeyByHash returns the key whose token has a SHA-256 (hex), unless it is revoked.
func KeyByHash(tx *ledger.Tx, hash string) (AgentKey, bool) {
	if !isHash(hash) {
		return AgentKey{}, false
	}
	id, ok := tx.Get(tokenKey(hash))
	if !ok {
		return AgentKey{}, false
	}
	k, ok := KeyByID(tx, string(id))
	return k, ok && k.RevokedAt == 0 && k.Hash == hash
}

// KeyByID returns a key, also a revoked one.
func KeyByID(tx *ledger.Tx, id string) (AgentKey, bool) {
	if !isID(id) {
		return AgentKey{}, false
	}
	company, ok := tx.Get(keyCompanyKey(id))
	if !ok {
		return AgentKey{}, false
	}
	return agentKeys.Get(tx, string(company), id)
}

// KeysOf returns an agent's keys, oldest first.
func KeysOf(tx *ledger.Tx, company, agent string) []AgentKey {
	out := []AgentKey{}
	for id := range keysByAgent.IDs(tx, company, agent, false) {
		if k, ok := agentKeys.Get(tx, company, id); ok {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b AgentKey) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

func createKey(c *ledger.Context, p CreateKey) (any, error) {
	a, ok := agents.Get(c.Tx, c.Cmd.Company, p.Agent)
	switch {
	case !ok:
		return nil, errNoAgent()
	case a.Status == AgentTerminated:
		return nil, ledger.Refuse(ledger.Conflict, a.standing(), "Cannot create keys for terminated agents")
	case a.Status == AgentPendingApproval:
		return nil, ledger.Refuse(ledger.Conflict, a.standing(), "Cannot create keys for pending approval agents")
	case !isID(p.ID) || !isHash(p.Hash):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed key")
	case p.Name == "" || len(p.Name) > MaxName:
		return nil, ledger.Refuse(ledger.Invalid, nil, "A key needs a name of at most %d bytes", MaxName)
	case c.Has(keyCompanyKey(p.ID)) || c.Has(tokenKey(p.Hash)):
		return nil, ledger.Refuse(ledger.Conflict, nil, "The key exists already")
	}
	if err := roomForKey(c.Tx, a); err != nil {
		return nil, err
	}
	row, _ := CompanyOf(c.Tx, a.Company)
	k := AgentKey{ID: p.ID, Company: a.Company, Agent: a.ID, Name: p.Name, Hash: p.Hash, ResponsibleUser: row.DefaultResponsibleUser, CreatedAt: TimeOf(c.Now)}
	if isBoard(c) {
		k.ResponsibleUser = NullText(c.Cmd.Actor.ID)
	}
	c.Set(keyCompanyKey(k.ID), []byte(k.Company))
	c.Set(tokenKey(k.Hash), []byte(k.ID))
	agentKeys.Put(c.Tx, k.Company, k.ID, k)
	c.Record(ledger.Change{Action: "agent.key_created", EntityType: "agent", EntityID: a.ID,
		Details: jsonObject{}.str("name", k.Name).str("keyId", k.ID).raw("scope", json.RawMessage(`{"kind":"standard"}`)).
			null("responsibleUserId", string(k.ResponsibleUser)).close()})
	return k, nil
}

// roomForKey drops the oldest revoked key when an agent has as many as are kept.
func roomForKey(tx *ledger.Tx, a Agent) error {
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
	k, ok := agentKeys.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok || k.Agent != p.Agent {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Key not found")
	}
	if k.RevokedAt != 0 {
		return k, nil
	}
	k = revoke(c.Tx, k, TimeOf(c.Now))
	c.Record(ledger.Change{Action: "agent.key_revoked", EntityType: "agent", EntityID: k.Agent, Details: jsonObject{}.str("keyId", k.ID).str("name", k.Name).close()})
	return k, nil
}

func revoke(tx *ledger.Tx, k AgentKey, now Time) AgentKey {
	k.RevokedAt = now
	tx.Delete(tokenKey(k.Hash))
	agentKeys.Put(tx, k.Company, k.ID, k)
	return k
}

func revokeKeysOf(c *ledger.Context, a Agent) {
	for _, k := range KeysOf(c.Tx, a.Company, a.ID) {
		if k.RevokedAt == 0 {
			revoke(c.Tx, k, TimeOf(c.Now))
		}
	}
}

func dropKey(tx *ledger.Tx, k AgentKey) {
	tx.Delete(tokenKey(k.Hash))
	tx.Delete(keyCompanyKey(k.ID))
	agentKeys.Delete(tx, k.Company, k.ID)
}

func dropKeysOf(tx *ledger.Tx, a Agent) {
	for _, k := range KeysOf(tx, a.Company, a.ID) {
		dropKey(tx, k)
	}
}
