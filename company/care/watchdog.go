package care

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Watchdog is an agent that watches an issue and everything below it. It is woken when one
// of them stops and needs a decision, and makes sure that somebody decides. An issue has at
// most one.
type Watchdog struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue        string           `cbor:"3,keyasint" json:"issueId"`
	Agent        string           `cbor:"4,keyasint" json:"watchdogAgentId"`
	Instructions core.NullText    `cbor:"5,keyasint,omitempty" json:"instructions"`
	Status       string           `cbor:"6,keyasint" json:"status"` // always active: a removed one is deleted
	Wakes        int64            `cbor:"7,keyasint,omitempty" json:"triggerCount"`
	LastWakeAt   core.Time        `cbor:"8,keyasint,omitempty" json:"lastTriggeredAt"`
	ByAgent      core.NullText    `cbor:"9,keyasint,omitempty" json:"createdByAgentId"`
	ByUser       core.NullText    `cbor:"10,keyasint,omitempty" json:"createdByUserId"`
	CreatedAt    core.Time        `cbor:"11,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"12,keyasint" json:"updatedAt"`
}

const (
	// MaxWatchdogText bounds instructions, in bytes: each wake carries them.
	MaxWatchdogText = 4 << 10
	// MaxWatched bounds the issues that one agent watches: one command removes them with it.
	MaxWatched = 200
)

// Watchdogs are keyed by their issue.
var (
	Watchdogs = ledger.NewTable[string, Watchdog]("watchdog").
			Beside(ledger.Indexed(watchdogsByAgent, func(w *Watchdog) string { return w.Agent }))
	watchdogsByAgent = ledger.NewIndex[string, string]("watchdog-agent")
)

// SetWatchdog is the payload of watchdog.set. Nil Instructions keep the present ones.
type SetWatchdog struct {
	ID           string  `cbor:"1,keyasint"` // of a new one
	Issue        string  `cbor:"2,keyasint"`
	Agent        string  `cbor:"3,keyasint"`
	Instructions *string `cbor:"4,keyasint,omitempty"`
}

// RemoveWatchdog is the payload of watchdog.remove.
type RemoveWatchdog struct {
	Issue string `cbor:"1,keyasint"`
}

// DecideWatch is the payload of run.watch: a decision about a run that has been silent for
// long.
type DecideWatch struct {
	ID       string    `cbor:"1,keyasint"`
	Run      string    `cbor:"2,keyasint"`
	Decision string    `cbor:"3,keyasint"` // snooze, continue or dismissed_false_positive
	Until    core.Time `cbor:"4,keyasint,omitempty"`
	Reason   string    `cbor:"5,keyasint,omitempty"`
	Issue    string    `cbor:"6,keyasint,omitempty"` // the issue of the investigation
}

const (
	KindWatchdogSet    = "watchdog.set"
	KindWatchdogRemove = "watchdog.remove"
	KindRunWatch       = "run.watch"
)

var watchdogKinds = []company.Kind{
	{Name: KindWatchdogSet, From: company.FromBoard | company.FromAgent, Traits: company.Importable,
		Weight: company.Weights.Task, Do: ledger.Typed(setWatchdog)},
	{Name: KindWatchdogRemove, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Task,
		Do: ledger.Typed(removeWatchdog)},
	{Name: KindRunWatch, From: company.FromBoard | company.FromAgent, Weight: company.Weights.Task,
		Do: ledger.Typed(decideWatch)},
}

// WatchdogOf returns the watchdog of an issue.
func WatchdogOf(tx *ledger.Tx, company ledger.CompanyID, issue string) (Watchdog, bool) {
	return Watchdogs.Get(tx, company, issue)
}

// setWatchdog makes an agent watch an issue. The board may name any agent, an agent itself or
// one that it manages, on an issue that it may change.
func setWatchdog(c *ledger.Context, p SetWatchdog) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := company.MayUpdate(c, i); err != nil {
		return nil, err
	}
	if err := entity.Assignable(c.Tx, i.Company, p.Agent); err != nil {
		return nil, err
	}
	if by := c.Cmd.Actor.ID; core.IsAgent(c) && by != p.Agent && !entity.Manages(c.Tx, i.Company, by, p.Agent) {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "An agent may name itself, or an agent that it manages")
	}
	if p.Instructions != nil && len(*p.Instructions) > MaxWatchdogText {
		return nil, ledger.Refuse(ledger.Invalid, nil, "instructions is longer than %d bytes", MaxWatchdogText)
	}
	w, there := Watchdogs.Get(c.Tx, i.Company, i.ID)
	if !there {
		w = Watchdog{ID: p.ID, Company: i.Company, Issue: i.ID, Status: "active", CreatedAt: core.TimeOf(c.Now)}
		w.ByAgent, w.ByUser = core.ActedBy(c)
	}
	if w.Agent != p.Agent {
		n := 0
		for range watchdogsByAgent.IDs(c.Tx, i.Company, p.Agent, false) {
			if n++; n >= MaxWatched {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "An agent can watch at most %d issues", MaxWatched)
			}
		}
	}
	w.Agent, w.UpdatedAt = p.Agent, core.TimeOf(c.Now)
	if p.Instructions != nil {
		w.Instructions = core.NullText(*p.Instructions)
	}
	Watchdogs.Put(c.Tx, i.Company, i.ID, w)
	company.AddExtra(c.Tx, i.Company, i.ID, company.HasWatchdog)
	action := "issue.watchdog_updated"
	if !there {
		action = "issue.watchdog_created"
	}
	c.Record(ledger.Change{Action: action, EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("watchdogAgentId", w.Agent).Close()})
	return w, nil
}

func removeWatchdog(c *ledger.Context, p RemoveWatchdog) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := company.MayUpdate(c, i); err != nil {
		return nil, err
	}
	w, ok := Watchdogs.Get(c.Tx, i.Company, i.ID)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Issue watchdog not found")
	}
	dropWatchdog(c.Tx, i)
	c.Record(ledger.Change{Action: "issue.watchdog_removed", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("watchdogAgentId", w.Agent).Close()})
	return w, nil
}

// dropWatchdog removes the watchdog of an issue.
func dropWatchdog(tx *ledger.Tx, i entity.Issue) {
	Watchdogs.Delete(tx, i.Company, i.ID)
}

// dropWatchdogsOf removes all watchdogs of an agent.
func dropWatchdogsOf(tx *ledger.Tx, a entity.Agent) {
	for id := range watchdogsByAgent.IDs(tx, a.Company, a.ID, false) {
		Watchdogs.Delete(tx, a.Company, id)
	}
}

// alarm wakes the watchdog of an issue that stopped, or of one above it. An agent is not woken
// because of its own runs.
func alarm(c *ledger.Context, i entity.Issue, r entity.Run, kind string) {
	at, ok := i, true
	for n := 0; ok && n <= entity.MaxIssueDepth; n++ {
		if w, found := Watchdogs.Get(c.Tx, i.Company, at.ID); found && w.Agent != r.Agent {
			if a, there := entity.Wakeable(c.Tx, i.Company, w.Agent); there {
				order := ledger.Order(c.Height)
				res, err := company.WakeAgent(c, a, entity.Wake{Agent: a.ID, Source: entity.WakeAutomation, TriggerDetail: "system",
					Reason: "issue_watchdog", Issue: at.ID, From: "issue.watchdog",
					Responsible: at.ResponsibleUser, Payload: core.Object{}.Str("issueId", at.ID).Str("stalledIssueId", i.ID).
							Str("stalledIssueIdentifier", i.Identifier).
							Str("kind", kind).Str("runId", r.ID).Null("instructions", string(w.Instructions)).Close(),
					Wakeup: core.DerivedID("watchdog-wake", at.ID, i.ID, order), Run: core.DerivedID("watchdog-run", at.ID,
						i.ID, order)})
				if err == nil && res.Status != entity.WakeSkipped {
					w.Wakes++
					w.LastWakeAt = core.TimeOf(c.Now)
					Watchdogs.Put(c.Tx, i.Company, at.ID, w)
				}
			}
		}
		if at.Parent == "" {
			return
		}
		at, ok = entity.IssueTable.Get(c.Tx, i.Company, at.Parent)
	}
}

// decideWatch stores a decision about a silent run.
func decideWatch(c *ledger.Context, p DecideWatch) (any, error) {
	r, err := company.RunFor(c, p.Run)
	if err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	switch {
	case core.IsAgent(c) && !entity.RunAlive(c.Tx, r.Company, c.Cmd.Run, c.Cmd.Actor.ID):
		return nil, entity.RefuseRunContext()
	case core.IsAgent(c) && (r.Agent == c.Cmd.Actor.ID || !watches(c.Tx, r, c.Cmd.Actor.ID)):
		return nil, ledger.Refuse(ledger.Forbidden, nil,
			"Only the board, the manager of the run's agent, or the watchdog of its issue decides about a run")
	case r.Status != entity.RunRunning:
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("runId", r.ID).Str("status", string(r.Status)).Close(),
			"Only a running run is watched")
	case len(p.Reason) > MaxWatchdogText:
		return nil, ledger.Refuse(ledger.Invalid, nil, "reason is longer than %d bytes", MaxWatchdogText)
	case p.Issue != "" && !c.Has(entity.IssueTable.Key(r.Company, p.Issue)):
		return nil, ledger.Refuse(ledger.NotFound, nil, "Evaluation issue not found")
	}
	switch p.Decision {
	case "snooze":
		if p.Until <= now {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "snoozedUntil must be in the future")
		}
	case "continue", "dismissed_false_positive":
		p.Until = 0
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "unknown decision %q", p.Decision)
	}
	d := entity.WatchDecision{ID: p.ID, Company: r.Company, Run: r.ID, Decision: p.Decision, Until: p.Until,
		Reason: core.NullText(p.Reason), Issue: core.NullText(p.Issue),
		ByRun: core.NullText(c.Cmd.Run), CreatedAt: now}
	d.ByAgent, d.ByUser = core.ActedBy(c)
	r.Watch = &d
	entity.RunTable.Put(c.Tx, r.Company, r.ID, r)
	c.Record(ledger.Change{Action: "heartbeat.watchdog_decision_recorded", EntityType: "heartbeat_run", EntityID: r.ID,
		Details: core.Object{}.Str("agentId", r.Agent).Str("decision", p.Decision).Time("snoozedUntil", p.Until).
			Null("reason", core.Snippet(p.Reason, 200)).Close()})
	return d, nil
}

// watches reports whether an agent may decide about the runs of another.
func watches(tx *ledger.Tx, r entity.Run, agent string) bool {
	if entity.Manages(tx, r.Company, agent, r.Agent) {
		return true
	}
	_, ok := WatchedBy(tx, r, agent)
	return ok
}

// WatchedBy returns the issue that an agent watches: that of a run, or the nearest above it.
func WatchedBy(tx *ledger.Tx, r entity.Run, agent string) (entity.Issue, bool) {
	at, ok := entity.IssueTable.Get(tx, r.Company, r.Context.IssueID)
	for n := 0; ok && n <= entity.MaxIssueDepth; n++ {
		if w, found := Watchdogs.Get(tx, r.Company, at.ID); found && w.Agent == agent {
			return at, true
		}
		at, ok = entity.IssueTable.Get(tx, r.Company, at.Parent)
	}
	return entity.Issue{}, false
}
