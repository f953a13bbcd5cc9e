package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Revision is one change of an agent's configuration. It keeps what may be
// shown: secrets are replaced, so a revision can not bring them back.
type Revision struct {
	ID         string          `cbor:"1,keyasint" json:"id"`
	Company    string          `cbor:"2,keyasint" json:"companyId"`
	Agent      string          `cbor:"3,keyasint" json:"agentId"`
	ByAgent    NullText        `cbor:"4,keyasint,omitempty" json:"createdByAgentId"`
	ByUser     NullText        `cbor:"5,keyasint,omitempty" json:"createdByUserId"`
	Source     string          `cbor:"6,keyasint" json:"source"`
	RolledBack NullText        `cbor:"7,keyasint,omitempty" json:"rolledBackFromRevisionId"`
	Changed    []string        `cbor:"8,keyasint" json:"changedKeys"`
	Before     json.RawMessage `cbor:"9,keyasint" json:"beforeConfig"`
	After      json.RawMessage `cbor:"10,keyasint" json:"afterConfig"`
	CreatedAt  Time            `cbor:"11,keyasint" json:"createdAt"`
}

// revisions are kept by <agent>.<height>, oldest first.
var revisions = ledger.NewTable[Revision]("agent-revision")

// MaxRevisions bounds the revisions that are kept of an agent.
const MaxRevisions = 50

// revisionKeys are the keys of a configuration in the order in which changes
// name them.
var revisionKeys = []string{"name", "role", "title", "icon", "reportsTo", "capabilities", "adapterType", "adapterConfig", "runtimeConfig",
	"defaultEnvironmentId", "budgetMonthlyCents", "metadata"}

// configOf returns what a revision keeps of an agent, by key.
func configOf(tx *ledger.Tx, a Agent, now Time) map[string]json.RawMessage {
	text := func(s string) json.RawMessage { return AppendJSONString(nil, s) }
	orNothing := func(s NullText) json.RawMessage {
		if s == "" {
			return json.RawMessage("null")
		}
		return text(string(s))
	}
	limit, _ := AgentBudget(tx, a.Company, a.ID, now)
	budget, _ := limit.MarshalJSON() // never fails
	return map[string]json.RawMessage{
		"name": text(a.Name), "role": text(a.Role), "title": orNothing(a.Title), "icon": orNothing(a.Icon), "reportsTo": orNothing(a.ReportsTo),
		"capabilities": orNothing(a.Capabilities), "adapterType": text(a.AdapterType), "adapterConfig": a.AdapterConfig,
		"runtimeConfig": a.RuntimeConfig, "defaultEnvironmentId": orNothing(a.DefaultEnvironment), "budgetMonthlyCents": budget, "metadata": orNull(a.Metadata),
	}
}

// shown is a configuration as it may be shown.
func shownConfig(config map[string]json.RawMessage) json.RawMessage {
	o := jsonObject{}
	for _, k := range revisionKeys {
		v := config[k]
		if (k == "adapterConfig" || k == "runtimeConfig" || k == "metadata") && string(v) != "null" {
			v = RedactConfig(v)
		}
		o = o.raw(k, v)
	}
	return o.close()
}

// keepRevision stores what changed from before to after and returns the keys;
// nothing is stored when nothing changed.
func keepRevision(c *ledger.Context, a Agent, before, after map[string]json.RawMessage) []string {
	changed := []string{}
	for _, k := range revisionKeys {
		if string(before[k]) != string(after[k]) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return changed
	}
	r := Revision{ID: derivedID("agent-revision", a.ID, ledger.Order(c.Height)), Company: a.Company, Agent: a.ID, Source: "patch",
		Changed: slices.Clone(changed), Before: shownConfig(before), After: shownConfig(after), CreatedAt: TimeOf(c.Now)}
	if isAgent(c) {
		r.ByAgent = NullText(c.Cmd.Actor.ID)
	} else {
		r.ByUser = NullText(c.Cmd.Actor.ID)
	}
	revisions.Put(c.Tx, a.Company, a.ID+"."+ledger.Order(c.Height), r)
	keys := revisionRows(c.Tx, a)
	for len(keys) > MaxRevisions {
		c.Delete(keys[0])
		keys = keys[1:]
	}
	return changed
}

func revisionRows(tx *ledger.Tx, a Agent) (keys [][]byte) {
	for k := range tx.Prefix(revisions.Key(a.Company, a.ID+".")) {
		keys = append(keys, slices.Clone(k))
	}
	return keys
}

func dropRevisions(tx *ledger.Tx, a Agent) {
	for _, k := range revisionRows(tx, a) {
		tx.Delete(k)
	}
}

// RevisionsOf returns the changes of an agent's configuration, newest first.
func RevisionsOf(tx *ledger.Tx, company, agent string) []Revision {
	out := []Revision{}
	for _, v := range tx.Prefix(revisions.Key(company, agent+".")) {
		out = append(out, decodeRow[Revision](v))
	}
	slices.Reverse(out)
	return out
}
