package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// defaultAttention and maxAttention bound a page of the attention feed.
	defaultAttention = 50
	maxAttention     = 100
	// maxAttentionBlocked bounds the blocked issues that are read, the most recently changed
	// first. With more, a person should read the list of issues.
	maxAttentionBlocked = entity.MaxIssueLimit
	// maxAttentionAsked bounds the questions on issues that are read, for the same reason.
	maxAttentionAsked = entity.MaxIssueLimit
	// attentionWaited is how long, in ms, a run must have waited to be listed.
	// maxAttentionWaits bounds the agents that are listed for it.
	attentionWaited   = core.Time(60_000)
	maxAttentionWaits = 50
	// attentionDays is how long an item is kept, in days; nothing is archived yet.
	attentionDays = 30
)

// An AttentionFeed is a page of what needs a person, newest first.
type AttentionFeed struct {
	Company     ledger.CompanyID `json:"companyId"`
	GeneratedAt core.Time        `json:"generatedAt"`
	Total       int              `json:"totalCount"`
	DeskBadge   int              `json:"deskBadgeCount"`
	NextCursor  core.NullText    `json:"nextCursor"`
	Counts      map[string]int   `json:"countsBySourceKind"`
	Items       []attentionItem  `json:"items"`
}

// attentionKinds are the kinds of items, in the contract's order. A kind without a
// source here counts zero.
var attentionKinds = []string{"approval", "decision", "issue_thread_interaction", "join_request", "recovery_action",
	"productivity_review", "blocker_attention",
	"review", "failed_run", "budget_alert", "agent_error_alert"}

// An attentionItem is one thing that needs a person: why, what the person can do, and
// when the item goes away. Keys without a value are null.
type attentionItem struct {
	Company          ledger.CompanyID  `json:"companyId"`
	SourceKind       string            `json:"sourceKind"`
	Subject          attentionSubject  `json:"subject"`
	WhyNow           string            `json:"whyNow"`
	Verbs            []attentionVerb   `json:"decisionVerbs"`
	Inline           bool              `json:"inlineResolvable"`
	EntryRule        string            `json:"entryRule"`
	ExitRule         string            `json:"exitRule"`
	DedupKey         string            `json:"dedupKey"`
	Severity         string            `json:"severity"` // low, medium or high
	ActivityAt       core.Time         `json:"activityAt"`
	CreatedAt        core.Time         `json:"createdAt"`
	UpdatedAt        core.Time         `json:"updatedAt"`
	RelatedIssue     *attentionSubject `json:"relatedIssue"`
	Detail           any               `json:"detail"`
	ID               string            `json:"id"`
	DismissalKey     string            `json:"dismissalKey"`
	Dismissal        *inbox.Dismissal  `json:"dismissal"`
	Project          *struct{}         `json:"project"`
	Workspace        *struct{}         `json:"workspace"`
	ExpiresAt        core.Time         `json:"expiresAt"`
	RuleKey          *string           `json:"ruleKey"`
	OriginAgent      core.NullText     `json:"originAgentName"`
	Queues           []string          `json:"queues"`
	Shelf            bool              `json:"shelf"`
	RetentionDays    int               `json:"retentionDays"`
	Keep             bool              `json:"keep"`
	ArchivedAt       core.Time         `json:"archivedAt"`
	RetentionVersion int               `json:"retentionVersion"`
	DecideBy         core.Time         `json:"decideBy"`
	DecideByWhom     *string           `json:"decideByAttribution"`
	SnoozedUntil     core.Time         `json:"snoozedUntil"`
	TrainingExample  *string           `json:"trainingExampleId"`
	Audience         *string           `json:"resolverAudience"`
	Rank             int               `json:"rank"`
}

// An attentionSubject is what an item is about.
type attentionSubject struct {
	Kind       string           `json:"kind"`
	ID         string           `json:"id"`
	Company    ledger.CompanyID `json:"companyId"`
	Title      string           `json:"title"`
	Identifier core.NullText    `json:"identifier"`
	Status     string           `json:"status"`
	Href       string           `json:"href"`
	Metadata   any              `json:"metadata"`
}

// An attentionVerb is an action that a person can take on an item.
type attentionVerb struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`
}

// attentionDetail holds further members, which depend on the kind of item.
type attentionDetail map[string]any

// An attentionDesk collects the items of one company.
type attentionDesk struct {
	tx    *ledger.Tx
	row   entity.Company
	now   core.Time
	aside map[string]inbox.Dismissal // by dismissalKey
	all   bool                       // include dismissed items
	items []attentionItem
}

// attentionSources add the items of each source.
var attentionSources = []func(*attentionDesk){(*attentionDesk).approvals, (*attentionDesk).interactions,
	(*attentionDesk).budgets, (*attentionDesk).agents, (*attentionDesk).recoveries, (*attentionDesk).blockers,
	(*attentionDesk).joins, (*attentionDesk).waits}

func AttentionRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/companies/{companyId}/attention", Tag: "companies",
		Summary: "List what waits for a person, newest first", Out: AttentionFeed{}, Handle: readAttention,
		Query: []api.Param{{Name: "limit", Type: "integer", Doc: "at most 100, 50 unless given"},
			{Name: "cursor", Doc: "nextCursor of the page before"}, {Name: "activitySince", Doc: "ISO date"},
			{Name: "activityUntil", Doc: "ISO date"},
			{Name: "includeDismissed", Type: "boolean", Doc: "also what the user put aside"}}}}
}

func readAttention(rc *api.Request) (r api.Response, err error) {
	limit, err := rc.QueryInt("limit", defaultAttention, 1, maxAttention)
	if err != nil {
		return r, err
	}
	since, err := rc.QueryTime("activitySince")
	if err != nil {
		return r, err
	}
	until, err := rc.QueryTime("activityUntil")
	if err != nil {
		return r, err
	}
	all, err := rc.QueryBool("includeDismissed")
	if err != nil {
		return r, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		d := attentionDesk{tx: tx, row: row, now: core.TimeOf(rc.Now()), aside: aside(tx, row.ID, rc.Actor.ID), all: all}
		feed, err := d.feed(limit, rc.Query("cursor"), since, until)
		r = api.OK(feed)
		return err
	})
	return r, err
}

// feed collects all items and returns the page that follows the item named by cursor.
func (d *attentionDesk) feed(limit int, cursor string, since, until time.Time) (AttentionFeed, error) {
	for _, add := range attentionSources {
		add(d)
	}
	items := slices.DeleteFunc(d.items, func(i attentionItem) bool {
		return !since.IsZero() && i.ActivityAt < core.TimeOf(since) || !until.IsZero() && i.ActivityAt > core.TimeOf(until)
	})
	slices.SortStableFunc(items, func(a, b attentionItem) int {
		return cmp.Or(cmp.Compare(b.ActivityAt, a.ActivityAt), cmp.Compare(a.ID, b.ID))
	})
	feed := AttentionFeed{Company: d.row.ID, GeneratedAt: d.now, Total: len(items), DeskBadge: len(items),
		Counts: map[string]int{}, Items: []attentionItem{}}
	for _, kind := range attentionKinds {
		feed.Counts[kind] = 0
	}
	for n := range items {
		items[n].Rank = n + 1
		feed.Counts[items[n].SourceKind]++
	}
	from := 0
	if cursor != "" {
		if from = 1 + slices.IndexFunc(items, func(i attentionItem) bool { return i.ID == cursor }); from == 0 {
			return feed, api.Invalid("Invalid cursor")
		}
	}
	page := items[from:min(from+limit, len(items))]
	feed.Items = append(feed.Items, page...)
	if from+limit < len(items) {
		feed.NextCursor = core.NullText(page[len(page)-1].ID)
	}
	return feed, nil
}

// add completes an item from its kind and dedupKey.
func (d *attentionDesk) add(i attentionItem) {
	i.Company, i.Queues, i.RetentionDays, i.RetentionVersion = d.row.ID, []string{}, attentionDays, 1
	i.ID, i.DismissalKey = i.SourceKind+":"+i.DedupKey, "attention:"+i.DedupKey
	if away, ok := d.aside[i.DismissalKey]; ok && away.Holds(i.ActivityAt, d.now) {
		if !d.all {
			return
		}
		i.Dismissal, i.SnoozedUntil = &away, away.SnoozedUntil
	}
	d.items = append(d.items, i)
}

func (d *attentionDesk) href(path string) string { return "/" + d.row.IssuePrefix + "/" + path }

func (d *attentionDesk) issue(i entity.Issue) attentionSubject {
	return attentionSubject{Kind: "issue", ID: i.ID, Company: i.Company, Title: i.Title,
		Identifier: core.NullText(i.Identifier), Status: string(i.Status), Href: d.href("issues/" + i.Identifier),
		Metadata: struct {
			Priority     string        `json:"priority"`
			Agent        core.NullText `json:"assigneeAgentId"`
			User         core.NullText `json:"assigneeUserId"`
			ReviewPolicy core.NullText `json:"reviewPolicy"`
		}{string(i.Priority), core.NullText(i.Assignee), core.NullText(i.AssigneeUser), core.NullText(i.ReviewPolicy)}}
}

// approvals adds the approvals that the board must decide.
func (d *attentionDesk) approvals() {
	for _, a := range money.ApprovalsOf(d.tx, d.row.ID,
		money.ApprovalQuery{Statuses: []money.ApprovalStatus{money.ApprovalPending}, Limit: money.MaxApprovalLimit}) {
		var related *attentionSubject
		first := core.NullText("")
		for i := range money.IssuesOfApproval(d.tx, a.Company, a.ID) {
			related, first = new(d.issue(i)), core.NullText(i.ID)
			break
		}
		origin, _ := entity.AgentLabel(d.tx, a.Company, string(a.RequestedByAgent))
		item := attentionItem{SourceKind: "approval", Inline: true, Severity: "medium", ActivityAt: a.UpdatedAt,
			CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, RelatedIssue: related, OriginAgent: core.NullText(origin),
			Subject: attentionSubject{Kind: "approval", ID: a.ID, Company: a.Company, Title: strings.ReplaceAll(string(a.Type),
				"_", " "), Status: string(a.Status), Href: d.href("approvals/" + a.ID),
				Metadata: struct {
					Type  money.ApprovalType `json:"type"`
					Agent core.NullText      `json:"requestedByAgentId"`
					User  core.NullText      `json:"requestedByUserId"`
					Issue core.NullText      `json:"issueId"`
				}{a.Type, a.RequestedByAgent, a.RequestedByUser, first}},
			WhyNow: "The board has not decided yet.", EntryRule: "approvals.status = 'pending'",
			ExitRule: "The approval is decided.", DedupKey: "approval:" + a.ID,
			Verbs: []attentionVerb{{"approve", "Approve", "Let it happen."}, {"reject", "Reject", "Do not let it happen."},
				{"request_revision", "Request revision", "Send it back to be changed."}},
			Detail: attentionDetail{"kind": "approval", "approvalType": a.Type,
				"summaryExcerpt": core.NullText(excerptOf(a.Payload)), "images": []string{}}}
		if a.Refused != nil {
			item.WhyNow, item.Severity = "It was approved and could not be carried out: "+a.Refused.Error, "high"
		}
		if a.Type == money.ApprovalBudget {
			item.Severity = "high"
		}
		d.add(item)
	}
}

// interactions adds open questions on issues, except those that an agent is to answer.
func (d *attentionDesk) interactions() {
	asked, on := paper.WaitingInteractions(d.tx, d.row.ID, maxAttentionAsked)
	for n, in := range asked {
		issue := d.issue(on[n])
		origin, _ := entity.AgentLabel(d.tx, d.row.ID, string(in.CreatedAgent))
		d.add(attentionItem{SourceKind: "issue_thread_interaction", Inline: true, Severity: "medium",
			ActivityAt: in.UpdatedAt, CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt,
			RelatedIssue: &issue, OriginAgent: core.NullText(origin),
			Subject: attentionSubject{Kind: "interaction", ID: in.ID, Company: d.row.ID, Title: cmp.Or(string(in.Title),
				issue.Title), Identifier: issue.Identifier, Status: in.Status, Href: issue.Href,
				Metadata: struct {
					Kind  string        `json:"kind"`
					Issue string        `json:"issueId"`
					Agent core.NullText `json:"createdByAgentId"`
					User  core.NullText `json:"createdByUserId"`
				}{in.Kind, in.Issue, in.CreatedAgent, in.CreatedUser}},
			WhyNow: askedFor[in.Kind].Description, EntryRule: "issue_thread_interactions.status = 'pending'",
			ExitRule: "It is answered, or withdrawn.", DedupKey: "interaction:" + in.ID,
			Verbs: []attentionVerb{askedFor[in.Kind], {"reject", "Reject", "Say no to it."}},
			Detail: attentionDetail{"kind": "interaction", "interactionKind": in.Kind, "summaryExcerpt": in.Summary,
				"images": []string{}}})
	}
}

// askedFor maps the kind of an interaction to what a person does about it.
var askedFor = map[string]attentionVerb{
	paper.SuggestTasks:    {"accept", "Accept", "Tasks were suggested that nobody has accepted yet."},
	paper.AskQuestions:    {"answer", "Answer", "Questions were asked that nobody has answered yet."},
	paper.Confirmation:    {"accept", "Confirm", "A confirmation was asked for and not given yet."},
	paper.CheckboxConfirm: {"accept", "Confirm", "A choice was asked for and not made yet."},
	paper.ItemVerdicts:    {"judge", "Judge", "Verdicts were asked for and not given yet."},
}

// excerptOf returns a short text from a payload.
func excerptOf(payload json.RawMessage) string {
	var p struct{ Summary, Title, Plan string }
	_ = json.Unmarshal(payload, &p) // a payload of another type has no text
	text := []rune(cmp.Or(p.Summary, p.Plan, p.Title))
	return string(text[:min(len(text), 280)])
}

// budgets adds budget warnings. A hard stop is listed as an approval.
func (d *attentionDesk) budgets() {
	for _, in := range money.OpenIncidents(d.tx, d.row.ID, d.now) {
		if in.Approval != "" {
			continue
		}
		name := money.ScopeName(d.tx, d.row.ID, in.Type, in.Scope)
		d.add(attentionItem{SourceKind: "budget_alert", Severity: "medium", ActivityAt: in.UpdatedAt, CreatedAt: in.CreatedAt,
			UpdatedAt: in.UpdatedAt, DedupKey: "budget:" + in.ID,
			Subject: attentionSubject{Kind: "budget_incident", ID: in.ID, Company: d.row.ID, Title: name, Status: in.Status,
				Href: d.href("costs"),
				Metadata: attentionDetail{"scopeType": in.Type, "scopeId": in.Scope, "amountLimit": in.Limit,
					"amountObserved": in.Observed}},
			WhyNow: "The budget of " + name + " is nearly used up.", EntryRule: "budget_incidents.status = 'open'",
			ExitRule: "The incident is resolved, or its window ends.",
			Verbs: []attentionVerb{{"inspect", "Inspect", "Look at the costs."}, {"raise_budget_and_resume", "Raise",
				"Set a higher limit."}},
			Detail: attentionDetail{"kind": "budget", "thresholdType": in.Threshold, "images": []string{}}})
	}
}

// agents adds the agents whose last run failed.
func (d *attentionDesk) agents() {
	for _, a := range entity.AgentsOf(d.tx, d.row.ID, false) {
		if a.Status != entity.AgentError {
			continue
		}
		at := max(a.UpdatedAt, a.LastHeartbeatAt)
		d.add(attentionItem{SourceKind: "agent_error_alert", Inline: true, Severity: "high", ActivityAt: at,
			CreatedAt: a.CreatedAt, UpdatedAt: at, OriginAgent: core.NullText(a.Name), DedupKey: "agent_error:" + a.ID,
			Subject: attentionSubject{Kind: "agent", ID: a.ID, Company: a.Company, Title: a.Name, Status: string(a.Status),
				Href: d.href("agents/" + a.ID),
				Metadata: struct {
					Role   string        `json:"role"`
					Reason core.NullText `json:"errorReason"`
				}{a.Role, a.ErrorReason}},
			WhyNow: "The agent's last run went wrong.", EntryRule: "agents.status = 'error'",
			ExitRule: "The agent leaves error.",
			Verbs: []attentionVerb{{"inspect", "Inspect", "Look at what went wrong."},
				{"dismiss", "Dismiss", "Take note of it."}},
			Detail: attentionDetail{"kind": "agent_error", "agentName": a.Name, "failureReasonExcerpt": a.ErrorReason,
				"images": []string{}}})
	}
}

// waits adds the agents whose runs wait for something that does not happen by itself.
func (d *attentionDesk) waits() {
	all, why := company.LongWaits(d.tx, d.row.ID, d.now, attentionWaited, maxAttentionWaits)
	for n, r := range all {
		name, _ := entity.AgentLabel(d.tx, d.row.ID, r.Agent)
		item := attentionItem{SourceKind: "waiting_run", Severity: "high", ActivityAt: why[n].Since, CreatedAt: r.CreatedAt,
			UpdatedAt: r.UpdatedAt, OriginAgent: core.NullText(name), DedupKey: "waiting_run:" + r.ID,
			Subject: attentionSubject{Kind: "agent", ID: r.Agent, Company: d.row.ID, Title: name, Status: string(r.Status),
				Href: d.href("agents/" + r.Agent), Metadata: attentionDetail{"runId": r.ID}},
			WhyNow:    "A run of " + name + " waits: " + why[n].Text + ".",
			EntryRule: "a run waits for a minute and no node can take it", ExitRule: "The run begins, or ends.",
			Verbs:  []attentionVerb{{"inspect", "Inspect", string(why[n].Do)}},
			Detail: attentionDetail{"kind": "waiting_run", "runId": r.ID, "reason": why[n].Reason, "images": []string{}}}
		if i, ok := entity.IssueOf(d.tx, d.row.ID, r.Context.IssueID); ok {
			item.RelatedIssue = new(d.issue(i))
		}
		d.add(item)
	}
}

// blockers adds blocked issues: those that a person is to unblock, and those whose
// blockers nobody works on.
func (d *attentionDesk) blockers() {
	blocked := inbox.ListIssues(d.tx, d.row.ID, inbox.IssueQuery{Statuses: []entity.IssueStatus{entity.IssueBlocked},
		Sort: inbox.SortUpdated, Descending: true, Limit: maxAttentionBlocked})
	for _, i := range blocked {
		if i.Recovery != "" {
			continue // listed with its recovery action
		}
		at := cmp.Or(i.BlockedAt, i.UpdatedAt)
		item := attentionItem{SourceKind: "blocker_attention", Severity: "high", ActivityAt: at, CreatedAt: i.CreatedAt,
			UpdatedAt: at, Subject: d.issue(i)}
		if action, ok := humanUnblocks(d.tx, i); ok {
			item := item
			item.WhyNow, item.DedupKey = action, "blocked-owner:"+i.ID+":"+at.String()
			item.EntryRule, item.ExitRule = "a blocked issue names a person to unblock it", "The issue is not blocked any more."
			item.Verbs = []attentionVerb{{"unblock", "Unblock", action},
				{"reassign", "Reassign", "Give the issue to somebody else."}}
			item.Detail = attentionDetail{"kind": "blocker", "blockingIssue": nil, "images": []string{}}
			d.add(item)
		}
		need := entity.AttentionOf(d.tx, i)
		if need.State != "needs_attention" {
			continue
		}
		waits := len(entity.Blocks(d.tx, i))
		var blocking any
		if len(need.Waiting) > 0 {
			blocking = d.issue(need.Waiting[0])
		}
		item.RelatedIssue, item.DedupKey = new(d.issue(i)), "blocker:"+i.ID
		item.WhyNow = "Nobody works on what this issue waits for."
		item.EntryRule, item.ExitRule = "blockerAttention.state = 'needs_attention'",
			"Somebody works on the blockers, or nothing waits for them."
		item.Verbs = []attentionVerb{{"unblock", "Unblock", "Repair or replace what it waits for."},
			{"reassign", "Reassign", "Give the blocker to somebody who works."}, {"nudge", "Nudge", "Wake its owner."}}
		item.Detail = attentionDetail{"kind": "blocker", "blockingIssue": blocking, "blockedTaskCount": waits,
			"images": []string{}}
		d.add(item)
	}
}

// humanUnblocks returns the action of an issue's unblockDescriptor when its owner is not
// an agent of the company.
func humanUnblocks(tx *ledger.Tx, i entity.Issue) (action string, ok bool) {
	var p struct {
		Owner  json.RawMessage `json:"owner"`
		Action string          `json:"action"`
	}
	if len(i.UnblockDescriptor) == 0 || json.Unmarshal(i.UnblockDescriptor, &p) != nil {
		return "", false
	}
	var owner struct {
		Kind  string `json:"kind"`
		Type  string `json:"type"`
		Agent string `json:"agentId"`
	}
	var name string
	if json.Unmarshal(p.Owner, &name) != nil {
		_ = json.Unmarshal(p.Owner, &owner)
	}
	if _, agent := entity.AgentOf(tx, i.Company, cmp.Or(owner.Agent, name)); agent || owner.Kind == "agent" ||
		owner.Type == "agent" || name == "agent" {
		return "", false
	}
	return cmp.Or(p.Action, "Decide how this issue goes on."), true
}

// joins adds requests to join.
func (d *attentionDesk) joins() {
	for _, j := range people.JoinsOf(d.tx, d.row.ID, people.JoinPending, "") {
		who := string(j.AgentName)
		if j.Type == people.JoinHuman {
			who = string(j.Email)
		}
		d.add(attentionItem{SourceKind: "join_request", Inline: true, Severity: "medium", ActivityAt: j.UpdatedAt,
			CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt, DedupKey: "join:" + j.ID,
			Subject: attentionSubject{Kind: "join_request", ID: j.ID, Company: j.Company, Title: who, Status: string(j.Status),
				Href:     d.href("inbox/requests"),
				Metadata: attentionDetail{"requestType": j.Type}},
			WhyNow: who + " asks to join the company.", EntryRule: "join_requests.status = 'pending_approval'",
			ExitRule: "Somebody lets them in or turns them away.",
			Verbs:    []attentionVerb{{"approve", "Approve", "Let them in."}, {"reject", "Reject", "Turn them away."}},
			Detail:   attentionDetail{"kind": "join_request", "requestType": j.Type, "images": []string{}}})
	}
}
