package cause

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Work is what the rows of the kernel know: issues, comments, wakes, runs and agents.
var Work = Part{
	Nodes: map[Type]Look{
		Issue: lookIssue, Run: lookRun, Comment: lookComment, Wakeup: lookWakeup, Agent: lookAgent, Project: lookProject,
		Goal: lookGoal,
		User: lookActor, Node: lookActor, System: lookActor, Entry: lookEntry,
	},
	Causes: map[Type]Step{
		Issue: whyIssue, Run: whyRun, Comment: whyComment, Wakeup: whyWakeup, Agent: whyMade("agent"),
		Project: whyMade("project"), Goal: whyMade("goal"), Entry: whyEntry,
	},
	Effects: map[Type]Step{
		Issue: fromIssue, Run: fromRun, Comment: fromComment, Wakeup: fromWakeup, Agent: fromAgent, Entry: fromEntry,
	},
}

// recent bounds the newest runs or changes that are told of something that has many.
const recent = 20

// issueID returns the ID of a company's issue by ID or identifier, or name itself.
func issueID(tx *ledger.Tx, company ledger.CompanyID, name string) string {
	if i, ok := entity.FindIssue(tx, name); ok && i.Company == company {
		return i.ID
	}
	return name
}

func lookIssue(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	i, ok := entity.IssueOf(tx, company, id)
	return Point{Status: string(i.Status), At: i.CreatedAt}.Named(i.Identifier, i.Title), ok
}

func lookRun(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	r, ok := entity.RunOf(tx, company, id)
	if !ok {
		return Point{}, false
	}
	a, _ := entity.AgentOf(tx, company, r.Agent)
	return Point{Status: string(r.Status), At: r.CreatedAt, Height: r.Queue}.Named(a.Name), true
}

func lookComment(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	cm, ok := commentOf(tx, company, id)
	if !ok {
		return Point{}, false
	}
	status := ""
	if cm.DeletedAt != 0 {
		status = "deleted"
	}
	return Point{Status: status, At: cm.CreatedAt, Height: cm.Height}.Named(cm.Body), true
}

// commentOf returns a comment by its ID alone.
func commentOf(tx *ledger.Tx, company ledger.CompanyID, id string) (entity.Comment, bool) {
	at, ok := tx.Get(entity.CommentAtKey(company, id))
	if !ok {
		return entity.Comment{}, false
	}
	cm, ok := entity.Comments.Get(tx, company, string(at))
	if parts := strings.Split(string(at), "."); len(parts) == 3 {
		cm.Height = fromOrder(parts[1])
	}
	return cm, ok
}

// fromOrder reads what [ledger.Order] wrote.
func fromOrder(s string) (n uint64) {
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		}
	}
	return n
}

func lookWakeup(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	u, ok := entity.Wakeups.Get(tx, company, id)
	return Point{Status: string(u.Status), At: u.RequestedAt}.Named(string(u.Source), string(u.Reason)), ok
}

func lookAgent(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	a, ok := entity.AgentOf(tx, company, id)
	return Point{Status: string(a.Status), At: a.CreatedAt}.Named(a.Name), ok
}

func lookProject(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	p, ok := entity.ProjectTable.Get(tx, company, id)
	return Point{At: p.CreatedAt}.Named(p.Name), ok
}

func lookGoal(tx *ledger.Tx, company ledger.CompanyID, id string) (Point, bool) {
	g, ok := entity.Goals.Get(tx, company, id)
	return Point{At: g.CreatedAt}.Named(g.Title), ok
}

// lookActor returns what has no row in the company: who gave a command.
func lookActor(_ *ledger.Tx, _ ledger.CompanyID, id string) (Point, bool) {
	return Point{}.Named(id), true
}

func whyIssue(b *Bag, p Point) {
	i, ok := entity.IssueOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	b.Made("issue", i.ID)
	b.Add(Edge{Kind: Causes, Why: "delegated", At: i.CreatedAt}, Ref{Issue, i.Parent})
	b.Add(Edge{Kind: TriggeredBy, Why: "made by a run"}, Ref{Run, i.OriginRun})
	if i.OriginKind == entity.OriginRoutine {
		b.Add(Edge{Kind: TriggeredBy, Why: "made by a routine", At: i.CreatedAt}, Ref{Routine, i.OriginID})
	}
	for _, id := range i.BlockedBy {
		blocker, ok := entity.IssueOf(b.Tx, b.Company, id)
		switch {
		case !ok:
		case blocker.Status.Terminal():
			b.Add(Edge{Kind: Enables, Why: "was waited for", At: blocker.UpdatedAt}, Ref{Issue, id})
		default:
			b.Add(Edge{Kind: Inhibits, Why: "is waited for"}, Ref{Issue, id})
		}
	}
	b.Add(Edge{Kind: Causes, Why: "works on it", Height: i.Fence}, Ref{Run, i.CheckoutRun})
	for _, a := range ledger.Activities(b.Tx, b.Company, ledger.ActivityFilter{EntityType: "issue", EntityID: i.ID,
		Limit: recent}) {
		if !b.Read() {
			return
		}
		if a.Action == commented {
			continue
		}
		b.By(a.Actor, a.Run, Edge{Kind: Causes, Why: a.Action, Height: a.Height, At: core.TimeOf(a.At)})
	}
}

func fromIssue(b *Bag, p Point) {
	i, ok := entity.IssueOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	for child := range entity.ChildrenOf(b.Tx, b.Company, i.ID) {
		if !b.Read() || !b.Add(Edge{Kind: Causes, Why: "delegated", At: child.CreatedAt}, Ref{Issue, child.ID}) {
			return
		}
	}
	for id := range entity.IssuesByBlocker.IDs(b.Tx, b.Company, i.ID, false) {
		e := Edge{Kind: Inhibits, Why: "is waited for"}
		if i.Status.Terminal() {
			e = Edge{Kind: Enables, Why: "was waited for", At: i.UpdatedAt}
		}
		if !b.Read() || !b.Add(e, Ref{Issue, id}) {
			return
		}
	}
	for r := range entity.RunsOfIssue(b.Tx, b.Company, i.ID) {
		if !b.Read() || !b.Add(runOnIssue(r), Ref{Run, r.ID}) {
			return
		}
	}
	prefix := entity.Comments.Key(b.Company, i.ID+".")
	for k := range b.Tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		parts := strings.Split(string(k[len(prefix):]), ".")
		if len(parts) != 2 || !b.Read() || !b.Add(Edge{Kind: Follows, Why: "said on it", Height: fromOrder(parts[0])},
			Ref{Comment, parts[1]}) {
			return
		}
	}
}

// runOnIssue is the edge from an issue to a run that was woken for it.
func runOnIssue(r entity.Run) Edge {
	e := Edge{Kind: Enables, Why: "is what it works on", Height: r.Queue, At: r.CreatedAt}
	if r.Source == entity.WakeAssignment {
		e.Kind, e.Why = TriggeredBy, "woke by its assignment"
	}
	return e
}

func whyRun(b *Bag, p Point) {
	r, ok := entity.RunOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	woke := Edge{Kind: TriggeredBy, Height: r.Queue, At: r.CreatedAt}
	if before, ok := entity.RunOf(b.Tx, b.Company, string(r.RetryOf)); ok {
		e := Edge{Kind: TriggeredBy, Why: "tried again", Height: r.Queue, At: r.CreatedAt}
		if before.Status == entity.RunSucceeded {
			e.Kind, e.Why = Follows, "went on"
		}
		b.Add(e, Ref{Run, before.ID})
	}
	for _, id := range r.Context.CommentIDs {
		woke.Why = "woke by a comment"
		b.Add(woke, Ref{Comment, id})
	}
	woke.Why = "woke by a decision"
	b.Add(woke, Ref{Approval, r.Context.ApprovalID})
	woke.Why = "woke by this request"
	b.Add(woke, Ref{Wakeup, string(r.WakeupRequest)})
	b.Add(runOnIssue(r), Ref{Issue, r.Context.Issue()})
	if r.Source == entity.WakeTimer {
		woke.Why = "woke by its timer"
		b.Add(woke, Ref{Agent, r.Agent})
	}
	if e, ok := ledger.EntryAt(b.Tx, r.Queue); ok && e.Company == b.Company {
		b.By(e.Actor, e.Run, Edge{Kind: Causes, Why: e.Kind, Height: e.Height, At: core.TimeOf(e.Time)})
	}
	whyEnded(b, r)
}

// whyEnded adds what stopped a run: the entry that ended it has it among its changes.
func whyEnded(b *Bag, r entity.Run) {
	if r.Status != entity.RunCancelled || r.Closed == 0 {
		return
	}
	e, ok := ledger.EntryAt(b.Tx, r.Closed)
	if !ok || e.Company != b.Company {
		return
	}
	before := len(b.edges)
	stop := Edge{Kind: Inhibits, Why: "stopped it", Height: e.Height, At: core.TimeOf(e.Time)}
	for _, ch := range e.Changes {
		if ch.EntityType == "budget_incident" {
			b.Add(stop, Ref{Incident, ch.EntityID})
		}
	}
	if len(b.edges) > before {
		return
	}
	stop.Why = e.Kind
	b.By(e.Actor, e.Run, stop)
}

func fromRun(b *Bag, p Point) {
	r, ok := entity.RunOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	next := Edge{Kind: TriggeredBy, Why: "tried again"}
	if r.Status == entity.RunSucceeded {
		next.Kind, next.Why = Follows, "went on"
	}
	b.Add(next, Ref{Run, entity.SuccessorOf(b.Tx, r)})
	for id := range entity.IssuesByRun.IDs(b.Tx, b.Company, r.ID, false) {
		b.Add(Edge{Kind: Causes, Why: "works on it"}, Ref{Issue, id})
	}
	if r.StartedAt == 0 {
		return
	}
	f := ledger.ActivityFilter{Actor: ledger.Actor{Type: "agent", ID: r.Agent}, Run: r.ID, From: r.StartedAt.Std(),
		Limit: maxReads}
	if r.FinishedAt != 0 {
		f.To = r.FinishedAt.Std()
	}
	list := ledger.Activities(b.Tx, b.Company, f)
	for _, a := range slices.Backward(list) {
		ref, ok := refOf(a.Change)
		if ok && (!b.Read() || !b.Add(Edge{Kind: Causes, Why: a.Action, Height: a.Height, At: core.TimeOf(a.At)}, ref)) {
			return
		}
	}
}

func whyComment(b *Bag, p Point) {
	cm, ok := commentOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	wrote := Edge{Kind: Causes, Why: "wrote it", Height: cm.Height, At: cm.CreatedAt}
	b.Did(cm.Run, cm.AuthorAgent, cm.AuthorUser, wrote)
	b.Add(Edge{Kind: Follows, Why: "said on it", Height: cm.Height, At: cm.CreatedAt}, Ref{Issue, cm.Issue})
}

func fromComment(b *Bag, p Point) {
	cm, ok := commentOf(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	for r := range entity.RunsOfIssue(b.Tx, b.Company, cm.Issue) {
		if r.CreatedAt < cm.CreatedAt || !b.Read() {
			return // runs are yielded newest first
		}
		if slices.Contains(r.Context.CommentIDs, cm.ID) {
			b.Add(Edge{Kind: TriggeredBy, Why: "woke by a comment", Height: r.Queue, At: r.CreatedAt}, Ref{Run, r.ID})
		}
	}
}

func whyWakeup(b *Bag, p Point) {
	u, ok := entity.Wakeups.Get(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	asked := Edge{Kind: Causes, Why: "asked for it", At: u.RequestedAt}
	b.By(ledger.Actor{Type: string(u.ActorType), ID: string(u.ActorID)}, "", asked)
	if r, ok := entity.RunOf(b.Tx, b.Company, string(u.Run)); ok && string(r.WakeupRequest) == u.ID {
		b.Add(Edge{Kind: TriggeredBy, Why: string(u.Reason), Height: r.Queue, At: u.RequestedAt},
			Ref{Issue, r.Context.Issue()})
	}
}

func fromWakeup(b *Bag, p Point) {
	u, ok := entity.Wakeups.Get(b.Tx, b.Company, p.ID)
	if !ok {
		return
	}
	e := Edge{Kind: TriggeredBy, Why: "woke by this request", At: u.RequestedAt}
	if u.Status == entity.WakeCoalesced {
		e.Kind, e.Why = Follows, "joined it"
	}
	b.Add(e, Ref{Run, string(u.Run)})
}

func fromAgent(b *Bag, p Point) {
	n := 0
	for r := range entity.RunsOfAgent(b.Tx, b.Company, p.ID) {
		if n++; n > recent {
			b.more = true
			return
		}
		if r.Source == entity.WakeTimer {
			b.Add(Edge{Kind: TriggeredBy, Why: "woke by its timer", Height: r.Queue, At: r.CreatedAt}, Ref{Run, r.ID})
		}
	}
}
