package cause

import (
	"encoding/json"
	"strconv"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// types are the nodes that entries call by other words.
var types = map[string]Type{"heartbeat_run": Run, "cost_event": Cost, "budget_incident": Incident, "issue": Issue,
	"approval": Approval, "memory": Memory,
	"agent": Agent, "project": Project, "goal": Goal, "routine": Routine, "wakeup_request": Wakeup}

// commented is the action of a change that is about a comment, and names its issue.
const commented = "issue.comment_added"

// refOf returns the node that a change is about.
func refOf(ch ledger.Change) (Ref, bool) {
	if ch.Action == commented {
		var details struct {
			Comment string `json:"commentId"`
		}
		if json.Unmarshal(ch.Details, &details) == nil && details.Comment != "" {
			return Ref{Comment, details.Comment}, true
		}
	}
	t, ok := types[ch.EntityType]
	return Ref{t, ch.EntityID}, ok && ch.EntityID != ""
}

// By adds an edge from whoever gave a command: the run under which it was given, else its
// actor.
func (b *Bag) By(actor ledger.Actor, run string, e Edge) bool {
	switch {
	case run != "":
		return b.Add(e, Ref{Run, run})
	case actor.Type == "agent":
		return b.Add(e, Ref{Agent, actor.ID})
	case actor.Type == "user":
		return b.Add(e, Ref{User, actor.ID})
	case actor.Type == "node":
		return b.Add(e, Ref{Node, actor.ID})
	case actor.Type == "system":
		return b.Add(e, Ref{System, "system"})
	}
	return true
}

// Did adds an edge from whoever a row names: the run, else the agent, else the user.
func (b *Bag) Did(run, agent, user core.NullText, e Edge) bool {
	switch {
	case run != "":
		return b.Add(e, Ref{Run, string(run)})
	case agent != "":
		return b.Add(e, Ref{Agent, string(agent)})
	}
	return b.Add(e, Ref{User, string(user)})
}

// Made adds who made an entity: the entry that changed it first says so.
func (b *Bag) Made(entityType, id string) {
	e, ok := ledger.FirstActivity(b.Tx, b.Company, entityType, id)
	if !ok {
		return
	}
	b.By(e.Actor, e.Run, Edge{Kind: Causes, Why: e.Kind, Height: e.Height, At: core.TimeOf(e.Time)})
}

// whyMade is the step of a row of which nothing is known but who made it.
func whyMade(entityType string) Step {
	return func(b *Bag, p Point) { b.Made(entityType, p.ID) }
}

// Along returns the changes of the entry that first changed an entity, with that entry.
func (b *Bag) Along(entityType, id string) (e ledger.Entry, ok bool) {
	if e, ok = ledger.FirstActivity(b.Tx, b.Company, entityType, id); ok {
		e, ok = ledger.EntryAt(b.Tx, e.Height)
	}
	return e, ok && e.Company == b.Company
}

func heightOfID(id string) (uint64, bool) {
	n, err := strconv.ParseUint(id, 10, 64)
	return n, err == nil && n > 0
}

// entryOf returns an entry of a company by its height, as an ID has it.
func entryOf(tx *ledger.Tx, company ledger.CompanyID, id string) (ledger.Entry, bool) {
	height, ok := heightOfID(id)
	if !ok {
		return ledger.Entry{}, false
	}
	e, ok := ledger.EntryAt(tx, height)
	return e, ok && e.Company == company
}

func lookEntry(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	e, ok := entryOf(tx, company, id)
	return Point{Status: string(e.Outcome), At: core.TimeOf(e.Time), Height: e.Height}.Named(e.Kind), ok
}

// whyEntry adds who gave the command, and the entry before it about the same thing.
func whyEntry(b *Bag, p Point) {
	e, ok := entryOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	b.By(e.Actor, e.Run, Edge{Kind: Causes, Why: e.Kind, Height: e.Height, At: core.TimeOf(e.Time)})
	if len(e.Changes) == 0 {
		return
	}
	ch := e.Changes[0]
	for _, a := range ledger.Activities(b.Tx, b.Company, ledger.ActivityFilter{EntityType: ch.EntityType,
		EntityID: ch.EntityID, BeforeHeight: e.Height, Limit: 1}) {
		b.Add(Edge{Kind: Follows, Why: "changed the same before", Height: e.Height, At: core.TimeOf(e.Time)},
			Ref{Entry, strconv.FormatUint(a.Height, 10)})
	}
}

// fromEntry adds all that the command changed.
func fromEntry(b *Bag, p Point) {
	e, ok := entryOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	for _, ch := range e.Changes {
		ref, ok := refOf(ch)
		if ok && !b.Add(Edge{Kind: Causes, Why: ch.Action, Height: e.Height, At: core.TimeOf(e.Time)}, ref) {
			return
		}
	}
}
