package money

import (
	"fmt"

	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// causes is what the rows of this room know of the causal graph.
var causes = cause.Part{
	Nodes: map[cause.Type]cause.Look{cause.Cost: lookCost, cause.Incident: lookIncident, cause.Approval: lookApproval},
	Causes: map[cause.Type]cause.Step{cause.Cost: whyCost, cause.Incident: whyIncident, cause.Approval: whyApproval,
		cause.Agent: whyHired,
		cause.Issue: approvalsOn},
	Effects: map[cause.Type]cause.Step{cause.Cost: fromCost, cause.Incident: fromIncident, cause.Approval: fromApproval,
		cause.Run: costsOfRun},
}

// CostOf returns a cost event by its ID.
func CostOf(tx *ledger.Tx, company ledger.CompanyID, id string) (CostEvent, bool) {
	row, ok := tx.Get(CostIDKey(company, id))
	if !ok {
		return CostEvent{}, false
	}
	return CostEvents.Get(tx, company, string(row))
}

func lookCost(tx *ledger.Tx, company ledger.CompanyID, id string) (cause.Point, bool) {
	e, ok := CostOf(tx, company, id)
	return cause.Point{Status: e.CostStatus, At: e.OccurredAt}.Named(amount(e.Cost), e.Model), ok
}

// amount writes money as a person reads it, in the currency's unit.
func amount(m core.Money) string {
	cents := m.Cents()
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}

func lookIncident(tx *ledger.Tx, company ledger.CompanyID, id string) (cause.Point, bool) {
	in, ok := Incident(tx, company, id)
	if !ok {
		return cause.Point{}, false
	}
	text := "warning:"
	if in.Threshold == "hard" {
		text = "budget stop:"
	}
	return cause.Point{Status: in.Status, At: in.CreatedAt}.Named(text, amount(in.Observed), "of", amount(in.Limit),
		"for the", string(in.Type), ScopeName(tx, company, in.Type, in.Scope)), true
}

func lookApproval(tx *ledger.Tx, company ledger.CompanyID, id string) (cause.Point, bool) {
	a, ok := Approvals.Get(tx, company, id)
	return cause.Point{Status: string(a.Status), At: a.CreatedAt, Height: a.Height}.Named(string(a.Type)), ok
}

func whyCost(b *cause.Bag, p cause.Point) {
	e, ok := CostOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	spent := cause.Edge{Kind: cause.Causes, Why: "spent it", At: e.OccurredAt}
	if first, ok := ledger.FirstActivity(b.Tx, b.Company, "cost_event", e.ID); ok {
		spent.Height = first.Height
	}
	if e.Run != "" {
		b.Add(spent, cause.Ref{Type: cause.Run, ID: string(e.Run)})
	} else {
		b.Add(spent, cause.Ref{Type: cause.Agent, ID: e.Agent})
	}
	b.Add(cause.Edge{Kind: cause.Enables, Why: "is what it was for", At: e.OccurredAt},
		cause.Ref{Type: cause.Issue, ID: string(e.Issue)})
}

// fromCost adds the thresholds that a cost crossed: its entry has them.
func fromCost(b *cause.Bag, p cause.Point) {
	e, ok := b.Along("cost_event", p.ID)
	if !ok {
		return
	}
	for _, ch := range e.Changes {
		if ch.EntityType == "budget_incident" {
			b.Add(cause.Edge{Kind: cause.Causes, Why: "crossed the limit", Height: e.Height, At: core.TimeOf(e.Time)},
				cause.Ref{Type: cause.Incident, ID: ch.EntityID})
		}
	}
}

// costsOfRun adds what a run spent.
func costsOfRun(b *cause.Bag, p cause.Point) {
	r, ok := entity.RunOf(b.Tx, b.Company, p.ID)
	if !ok || r.StartedAt == 0 {
		return
	}
	for e := range CostsOfAgentSince(b.Tx, b.Company, r.Agent, r.StartedAt) {
		if !b.Read() {
			return
		}
		if string(e.Run) == r.ID && !b.Add(cause.Edge{Kind: cause.Causes, Why: "spent it", At: e.OccurredAt},
			cause.Ref{Type: cause.Cost, ID: e.ID}) {
			return
		}
	}
}

// whyIncident adds what crossed the threshold: a cost, or else whoever gave the command
// that lowered the limit.
func whyIncident(b *cause.Bag, p cause.Point) {
	e, ok := b.Along("budget_incident", p.ID)
	if !ok {
		return
	}
	crossed := cause.Edge{Kind: cause.Causes, Why: "crossed the limit", Height: e.Height, At: core.TimeOf(e.Time)}
	found := false
	for _, ch := range e.Changes {
		if ch.EntityType == "cost_event" {
			found = true
			b.Add(crossed, cause.Ref{Type: cause.Cost, ID: ch.EntityID})
		}
	}
	if !found {
		crossed.Why = e.Kind
		b.By(e.Actor, e.Run, crossed)
	}
}

// fromIncident adds what a budget's stop did: the scope that it paused, the runs that it
// ended, and the approval that it asks for.
func fromIncident(b *cause.Bag, p cause.Point) {
	in, ok := Incident(b.Tx, b.Company, p.ID)
	if !ok || in.Threshold != "hard" {
		return
	}
	e, ok := b.Along("budget_incident", p.ID)
	if !ok {
		return
	}
	stopped := cause.Edge{Kind: cause.Inhibits, Why: "stopped it", Height: e.Height, At: core.TimeOf(e.Time)}
	for _, ch := range e.Changes {
		if ch.EntityType != "heartbeat_run" || !b.Read() {
			continue
		}
		if r, ok := entity.RunOf(b.Tx, b.Company, ch.EntityID); ok && r.Closed == e.Height &&
			r.Status == entity.RunCancelled {
			b.Add(stopped, cause.Ref{Type: cause.Run, ID: r.ID})
		}
	}
	stopped.Why = "paused it"
	switch in.Type {
	case entity.ScopeAgent:
		b.Add(stopped, cause.Ref{Type: cause.Agent, ID: in.Scope})
	case entity.ScopeProject:
		b.Add(stopped, cause.Ref{Type: cause.Project, ID: in.Scope})
	}
	b.Add(cause.Edge{Kind: cause.TriggeredBy, Why: "asks to go on", Height: e.Height, At: in.CreatedAt},
		cause.Ref{Type: cause.Approval, ID: in.Approval})
}

func whyApproval(b *cause.Bag, p cause.Point) {
	a, ok := Approvals.Get(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	if a.Incident != "" {
		b.Add(cause.Edge{Kind: cause.TriggeredBy, Why: "asks to go on", Height: a.Height, At: a.CreatedAt},
			cause.Ref{Type: cause.Incident, ID: string(a.Incident)})
	} else if e, ok := ledger.EntryAt(b.Tx, a.Height); ok && e.Company == b.Company {
		b.By(e.Actor, e.Run, cause.Edge{Kind: cause.Causes, Why: "asked for it", Height: a.Height, At: a.CreatedAt})
	}
	said := cause.Edge{Kind: cause.Enables, Why: "approved it", At: a.DecidedAt}
	if a.Status == ApprovalRejected {
		said.Kind, said.Why = cause.Contradicts, "rejected it"
	}
	b.Add(said, cause.Ref{Type: cause.User, ID: string(a.DecidedByUser)})
}

// fromApproval adds what a decision led to: the agent that was hired, and the runs that it
// woke.
func fromApproval(b *cause.Bag, p cause.Point) {
	a, ok := Approvals.Get(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	b.Add(a.verdict("hired"), cause.Ref{Type: cause.Agent, ID: string(a.Agent)})
	for i := range IssuesOfApproval(b.Tx, b.Company, a.ID) {
		if !b.Read() || !b.Add(a.verdict(string(a.Status)), cause.Ref{Type: cause.Issue, ID: i.ID}) {
			return
		}
	}
	if a.DecidedAt == 0 || a.RequestedByAgent == "" {
		return
	}
	for r := range entity.RunsOfAgent(b.Tx, b.Company, string(a.RequestedByAgent)) {
		if r.CreatedAt < a.DecidedAt || !b.Read() {
			return // newest first
		}
		if r.Context.ApprovalID == a.ID {
			b.Add(cause.Edge{Kind: cause.TriggeredBy, Why: "woke by a decision", Height: r.Queue, At: r.CreatedAt},
				cause.Ref{Type: cause.Run, ID: r.ID})
		}
	}
}

// verdict is the edge from an approval to what waits for it.
func (a Approval) verdict(why string) cause.Edge {
	switch a.Status {
	case ApprovalApproved:
		return cause.Edge{Kind: cause.Enables, Why: why, At: a.DecidedAt}
	case ApprovalRejected:
		return cause.Edge{Kind: cause.Contradicts, Why: "rejected", At: a.DecidedAt}
	}
	return cause.Edge{Kind: cause.Inhibits, Why: "is waited for", At: a.CreatedAt}
}

// whyHired adds the approval that an agent was hired with.
func whyHired(b *cause.Bag, p cause.Point) {
	for ref := range hireApprovals.IDs(b.Tx, b.Company, p.ID, false) {
		if a, ok := Approvals.Get(b.Tx, b.Company, ref); !ok || !b.Add(a.verdict("hired"), cause.Ref{Type: cause.Approval,
			ID: a.ID}) {
			return
		}
	}
}

// approvalsOn adds the approvals that an issue waited for, or waits for.
func approvalsOn(b *cause.Bag, p cause.Point) {
	for ref := range approvalsByIssue.IDs(b.Tx, b.Company, p.ID, false) {
		a, ok := Approvals.Get(b.Tx, b.Company, IDOfRef(ref))
		if ok && (!b.Read() || !b.Add(a.verdict(string(a.Status)), cause.Ref{Type: cause.Approval, ID: a.ID})) {
			return
		}
	}
}
