package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// timelineWindow is the default window of a timeline, maxTimelineWindow the longest.
	timelineWindow    = 7 * 24 * time.Hour
	maxTimelineWindow = 92 * 24 * time.Hour
	// maxTimelineIssues, maxTimelineRuns and maxTimelineEvents bound one page.
	maxTimelineIssues = 200
	maxTimelineRuns   = 2_000
	maxTimelineEvents = 2_000
)

// A timeline shows who worked on what, and when.
type timeline struct {
	Actors []timelineActor `json:"actors"`
	Spans  []timelineSpan  `json:"spans"`
	Events []timelineEvent `json:"events"`
	Edges  []timelineEdge  `json:"edges"`
	Page   struct {
		Limit  int  `json:"limit"`
		Offset int  `json:"offset"`
		Total  int  `json:"totalIssues"`
		More   bool `json:"hasMore"`
	} `json:"pagination"`
	Window struct {
		From   core.Time `json:"from"`
		To     core.Time `json:"to"`
		Capped bool      `json:"capped"`
	} `json:"window"`
}

type timelineActor struct {
	ID     string        `json:"id"` // "agent:<id>", "user:<id>", "system:<name>"
	Type   string        `json:"type"`
	Name   string        `json:"name"`
	Avatar core.NullText `json:"avatar"`
}

type timelineSpan struct {
	Actor        string            `json:"actorId"`
	Lane         entity.WakeSource `json:"laneHint"`
	Run          string            `json:"runId"`
	Issue        string            `json:"issueId"`
	Identifier   string            `json:"issueIdentifier"`
	Title        string            `json:"issueTitle"`
	Start        core.Time         `json:"start"`
	End          core.Time         `json:"end"`
	Status       entity.RunStatus  `json:"status"`
	RetryOf      core.NullText     `json:"retryOfRunId"`
	Continuation int               `json:"continuationAttempt"`
	Source       entity.WakeSource `json:"invocationSource"`
	Usage        json.RawMessage   `json:"usage"`
}

type timelineEvent struct {
	Actor string    `json:"actorId"`
	Kind  string    `json:"kind"` // created, commented, approved
	Issue string    `json:"issueId"`
	At    core.Time `json:"at"`
}

type timelineEdge struct {
	From  string    `json:"fromActorId"`
	To    string    `json:"toActorId"`
	Issue string    `json:"issueId"`
	At    core.Time `json:"at"`
	Kind  string    `json:"kind"` // assignment or delegation
}

func TimelineRoutes() []api.Route {
	return []api.Route{{Method: "GET", Path: "/api/companies/{companyId}/timeline", Tag: "companies",
		Summary: "Show who worked on what, when", Out: timeline{}, Handle: readTimeline,
		Query: []api.Param{{Name: "from", Type: "string", Doc: "ISO time; seven days before to, at most 92"},
			{Name: "to", Type: "string", Doc: "ISO time; now"},
			{Name: "limit", Type: "integer", Doc: "issues of a page, at most 200"}, {Name: "offset", Type: "integer"}}}}
}

func readTimeline(rc *api.Request) (r api.Response, err error) {
	var v timeline
	from, err := rc.QueryTime("from")
	if err != nil {
		return r, err
	}
	to, err := rc.QueryTime("to")
	if err != nil {
		return r, err
	}
	if to.IsZero() {
		to = rc.Now()
	}
	if from.IsZero() {
		from = to.Add(-timelineWindow)
	}
	if from.After(to) {
		return r, api.Invalid("Invalid window: from is after to")
	}
	if to.Sub(from) > maxTimelineWindow {
		from, v.Window.Capped = to.Add(-maxTimelineWindow), true
	}
	v.Window.From, v.Window.To = core.TimeOf(from), core.TimeOf(to)
	if v.Page.Limit, err = rc.QueryInt("limit", maxTimelineIssues, 1, maxTimelineIssues); err != nil {
		return r, err
	}
	if v.Page.Offset, err = rc.QueryInt("offset", 0, 0, 1<<31-1); err != nil {
		return r, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		v.fill(tx, row.ID, from, to)
		r = api.OK(v)
		return nil
	})
	return r, err
}

// fill collects the issues with events in the window, and these events.
func (v *timeline) fill(tx *ledger.Tx, of ledger.CompanyID, from, to time.Time) {
	begin, end := core.TimeOf(from), core.TimeOf(to)
	v.Actors, v.Spans, v.Events, v.Edges = []timelineActor{}, []timelineSpan{}, []timelineEvent{}, []timelineEdge{}
	q := inbox.IssueQuery{UpdatedSince: begin, Limit: v.Page.Limit, Offset: v.Page.Offset}
	v.Page.Total = inbox.CountMatching(tx, of, q)
	page := inbox.ListIssues(tx, of, q)
	v.Page.More = v.Page.Offset+len(page) < v.Page.Total
	shown := map[string]entity.Issue{}
	seen := map[string]bool{}
	actor := func(kind, id string) string {
		key := kind + ":" + id
		if !seen[key] {
			seen[key] = true
			a := timelineActor{ID: key, Type: kind, Name: "System"}
			switch kind {
			case "agent":
				a.Name = "Agent"
				if row, ok := entity.AgentByID(tx, id); ok {
					a.Name, a.Avatar = row.Name, row.Icon
				}
			case "user":
				a.Name = "Board"
			}
			v.Actors = append(v.Actors, a)
		}
		return key
	}
	for _, i := range page {
		shown[i.ID] = i
		n := 0
		for run := range entity.RunsOfIssue(tx, of, i.ID) {
			if n++; n > maxTimelineRuns || len(v.Spans) >= maxTimelineRuns || run.CreatedAt < begin {
				break
			}
			if run.StartedAt == 0 || run.StartedAt > end {
				continue
			}
			v.Spans = append(v.Spans, timelineSpan{Actor: actor("agent", run.Agent), Lane: run.Source, Run: run.ID, Issue: i.ID,
				Identifier: i.Identifier, Title: i.Title,
				Start: run.StartedAt, End: run.FinishedAt, Status: run.Status, RetryOf: run.RetryOf,
				Continuation: run.ContinuationAttempt, Source: run.Source, Usage: run.UsageJSON})
		}
		if i.Assignee != "" && i.CreatedAt >= begin && i.CreatedAt <= end {
			e := timelineEdge{To: actor("agent", i.Assignee), Issue: i.ID, At: i.CreatedAt, Kind: "assignment"}
			switch {
			case i.CreatedUser != "":
				e.From = actor("user", i.CreatedUser)
			case i.CreatedAgent != "" && i.CreatedAgent != i.Assignee:
				e.From, e.Kind = actor("agent", i.CreatedAgent), "delegation"
			}
			if e.From != "" {
				v.Edges = append(v.Edges, e)
			}
		}
	}
	f := ledger.ActivityFilter{EntityType: "issue", From: from, To: to, Limit: maxTimelineEvents}
	for _, a := range api.Logged(tx, of, f) {
		kind := map[string]string{"issue.created": "created", "issue.child_created": "created",
			"issue.comment_added":               "commented",
			"issue.thread_interaction_accepted": "approved", "issue.thread_interaction_answered": "approved"}[a.Action]
		issue := a.EntityID
		if a.Action == "issue.child_created" {
			var of struct {
				ID string `json:"childId"`
			}
			if json.Unmarshal(a.Details, &of) == nil && of.ID != "" {
				issue = of.ID
			}
		}
		if _, ok := shown[issue]; kind != "" && ok {
			by, _ := entity.DoneBy(a.Actor, a.Run, a.Change)
			v.Events = append(v.Events, timelineEvent{Actor: actor(by.Type, by.ID), Kind: kind, Issue: issue,
				At: core.TimeOf(a.At)})
		}
	}
	slices.SortStableFunc(v.Spans, func(a, b timelineSpan) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(v.Events, func(a, b timelineEvent) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(v.Edges, func(a, b timelineEdge) int { return cmp.Compare(a.At, b.At) })
}
