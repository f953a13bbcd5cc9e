package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// MaxRevisions bounds the stored revisions of an agent.
const MaxRevisions = 50

// revisionKeys are the keys of a configuration, in the order in which changes list them.
var revisionKeys = []string{"name", "role", "title", "icon", "reportsTo", "capabilities", "adapterType",
	"adapterConfig", "runtimeConfig",
	"defaultEnvironmentId", "budgetMonthlyCents", "metadata", "contextMode"}

// ConfigOf returns the part of an agent that revisions store, by key.
func ConfigOf(tx *ledger.Tx, a entity.Agent, now core.Time) map[string]json.RawMessage {
	text := func(s string) json.RawMessage { return core.AppendJSONString(nil, s) }
	orNothing := func(s core.NullText) json.RawMessage {
		if s == "" {
			return json.RawMessage("null")
		}
		return text(string(s))
	}
	limit := Ask.Limit(tx, a.Company, a.ID, now)
	budget, _ := limit.MarshalJSON() // never fails
	return map[string]json.RawMessage{
		"name": text(a.Name), "role": text(a.Role), "title": orNothing(a.Title), "icon": orNothing(a.Icon),
		"reportsTo":    orNothing(a.ReportsTo),
		"capabilities": orNothing(a.Capabilities), "adapterType": text(a.AdapterType), "adapterConfig": a.AdapterConfig,
		"runtimeConfig": a.RuntimeConfig, "defaultEnvironmentId": orNothing(a.DefaultEnvironment),
		"budgetMonthlyCents": budget, "metadata": core.OrNull(a.Metadata),
		"contextMode": text(a.Mode()),
	}
}

// kept returns a configuration in the form that a revision stores.
func kept(config map[string]json.RawMessage) json.RawMessage {
	o := core.Object{}
	for _, k := range revisionKeys {
		o = o.Raw(k, config[k])
	}
	return o.Close()
}

// A RevisionOrigin says how a revision came about: by a change, or by a rollback to an
// earlier revision.
type RevisionOrigin struct {
	revision string // ID of the earlier one
}

// KeepRevision stores the changes from before to after and returns their keys. Without
// changes it stores nothing.
func KeepRevision(c *ledger.Context, a entity.Agent, before, after map[string]json.RawMessage,
	from RevisionOrigin) []string {
	changed := []string{}
	for _, k := range revisionKeys {
		if string(before[k]) != string(after[k]) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return changed
	}
	r := entity.Revision{ID: core.DerivedID("agent-revision", a.ID, ledger.Order(c.Height)), Company: a.Company,
		Agent: a.ID, Source: "patch",
		Changed: slices.Clone(changed), Before: kept(before), After: kept(after), CreatedAt: core.TimeOf(c.Now)}
	if from.revision != "" {
		r.Source, r.RolledBack = "rollback", core.NullText(from.revision)
	}
	if core.IsAgent(c) {
		r.ByAgent = core.NullText(c.Cmd.Actor.ID)
	} else {
		r.ByUser = core.NullText(c.Cmd.Actor.ID)
	}
	entity.Revisions.Put(c.Tx, a.Company, a.ID+"."+ledger.Order(c.Height), r)
	keys := revisionRows(c.Tx, a)
	for len(keys) > MaxRevisions {
		c.Delete(keys[0])
		keys = keys[1:]
	}
	return changed
}

// RollbackAgent is the payload of agent.rollback.
type RollbackAgent struct {
	Agent    string `cbor:"1,keyasint"`
	Revision string `cbor:"2,keyasint"` // ID
}

// rollbackAgent restores the configuration of an agent as it was after a revision.
// References to secrets are restored unchecked; a reference to a deleted secret stops the
// agent's runs until it is corrected.
func rollbackAgent(c *ledger.Context, p RollbackAgent) (any, error) {
	old, ok := entity.AgentTable.Get(c.Tx, c.Cmd.Company, p.Agent)
	if !ok {
		return nil, entity.ErrNoAgent()
	}
	if old.Status == entity.AgentTerminated {
		return nil, ledger.Refuse(ledger.Conflict, old.Standing(), "Cannot change terminated agent")
	}
	for _, v := range c.Prefix(entity.Revisions.Key(old.Company, old.ID+".")) {
		r := core.DecodeRow[entity.Revision](v)
		if r.ID != p.Revision {
			continue
		}
		s, err := restored(c.Tx, r, old, core.TimeOf(c.Now))
		if err != nil {
			return nil, err
		}
		return changeAgent(c, old, s, RevisionOrigin{r.ID})
	}
	return nil, errNoRevision()
}

func errNoRevision() error { return ledger.Refuse(ledger.NotFound, nil, "Revision not found") }

// restored returns the change that gives a the configuration after r.
func restored(tx *ledger.Tx, r entity.Revision, a entity.Agent, now core.Time) (p entity.SaveAgent, err error) {
	var d entity.HireDraft
	if err := json.Unmarshal(r.After, &d); err != nil || d.Name == nil || d.Role == nil || d.AdapterType == nil {
		return p, ledger.Refuse(ledger.Unprocessable, nil, "The revision can not be restored")
	}
	text := func(s *string) *string {
		if s == nil {
			s = new("")
		}
		return s
	}
	if d.ReportsTo != nil {
		if m, ok := entity.AgentTable.Get(tx, a.Company, *d.ReportsTo); !ok || m.Status == entity.AgentTerminated {
			return p, ledger.Refuse(ledger.Unprocessable, nil, "The manager of that revision is gone")
		}
	}
	p = entity.SaveAgent{ID: a.ID, Name: d.Name, Role: d.Role, Title: text(d.Title), Icon: text(d.Icon),
		ReportsTo: text(d.ReportsTo), Capabilities: text(d.Capabilities),
		AdapterType: d.AdapterType, AdapterConfig: d.AdapterConfig, RuntimeConfig: d.RuntimeConfig,
		DefaultEnvironment: text(d.DefaultEnvironment),
		Metadata:           core.OrNull(d.Metadata), ContextMode: d.ContextMode, ReplaceAdapterConfig: true}
	if d.BudgetMonthlyCents != nil {
		if limit := Ask.Limit(tx, a.Company, a.ID, now); limit != core.Cents(*d.BudgetMonthlyCents) {
			p.Budget = new(core.Cents(*d.BudgetMonthlyCents))
		}
	}
	return p, nil
}

func revisionRows(tx *ledger.Tx, a entity.Agent) (keys [][]byte) {
	for k := range tx.Prefix(entity.Revisions.Key(a.Company, a.ID+".")) {
		keys = append(keys, slices.Clone(k))
	}
	return keys
}

func dropRevisions(tx *ledger.Tx, a entity.Agent) {
	for _, k := range revisionRows(tx, a) {
		tx.Delete(k)
	}
}
