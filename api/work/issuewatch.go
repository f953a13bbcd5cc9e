package work

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about an issue's watchdog and monitor, and about comments queued for its
// agent.
type (
	watchdogBody struct {
		Agent        string          `json:"agentId" format:"uuid"`
		Instructions api.Opt[string] `json:"instructions" maxLength:"4000" maxBytes:"4096"`
	}
	watchDecisionBody struct {
		Decision string             `json:"decision" enum:"snooze,continue,dismissed_false_positive"`
		Issue    api.Opt[string]    `json:"evaluationIssueId" format:"uuid"`
		Reason   api.Opt[string]    `json:"reason" maxLength:"4000"`
		Until    api.Opt[core.Time] `json:"snoozedUntil"`
	}
	queueBody struct {
		Queue    string `json:"queueId" minLength:"1" maxLength:"36"`
		Revision string `json:"revision" minLength:"1" maxLength:"64"`
	}
	queueEditBody struct {
		queueBody
		Body string `json:"body" minLength:"1" maxLength:"200000" maxBytes:"200000"`
	}
	queueOrderBody struct {
		queueBody
		Order []string `json:"orderedCommentIds" minLength:"1" maxLength:"36" maxItems:"50"`
	}
	queueTargetBody struct {
		queueBody
		Target api.Opt[string] `json:"targetRunId" minLength:"1" maxLength:"36"`
	}
)

// A commentQueue holds the comments that an issue's agent has not received yet. queueId
// is null when there are none.
type commentQueue struct {
	Issue    string           `json:"issueId"`
	ID       core.NullText    `json:"queueId"`
	State    core.NullText    `json:"state"` // deferred: the run that delivers it waits
	Target   core.NullText    `json:"targetRunId"`
	Revision string           `json:"revision"`
	Protocol string           `json:"protocol"`
	Entries  []entity.Comment `json:"entries"`
}

func IssueWatchRoutes() []api.Route {
	const tag, issue = "issues", "/api/issues/{id}"
	const queue = issue + "/queued-comments"
	return []api.Route{
		api.Show(api.Route{Path: issue + "/watchdog", Tag: tag, Summary: "Tell which agent looks after an issue, or null"},
			api.FindIssue, watchdogOf),
		api.Change[care.Watchdog](api.Route{Method: "PUT", Path: issue + "/watchdog", Tag: tag,
			Summary: "Have an agent look after an issue and all below it"}, care.KindWatchdogSet, api.LocateIssue,
			func(_ *api.Request, issue string, in watchdogBody) (care.SetWatchdog, error) {
				p := care.SetWatchdog{ID: api.NewID(), Issue: issue, Agent: strings.ToLower(in.Agent)}
				if in.Instructions.Set {
					p.Instructions = new(in.Instructions.Or(""))
				}
				return p, nil
			}),
		api.Remove[care.Watchdog](api.Route{Path: issue + "/watchdog", Tag: tag,
			Summary: "Have nobody look after an issue"}, care.KindWatchdogRemove, api.LocateIssue,
			func(_ *api.Request, issue string) care.RemoveWatchdog { return care.RemoveWatchdog{Issue: issue} }),
		api.Tell(api.Route{Method: "POST", Path: issue + "/monitor/check-now", Tag: tag,
			Summary: "Wake an issue's agent for what its monitor waits for"}, care.KindIssueMonitor, api.LocateIssue,
			func(_ *api.Request, issue string) care.CheckMonitor { return care.CheckMonitor{Issue: issue} }),
		{Method: "POST", Path: issue + "/scheduled-retry/retry-now", Tag: tag,
			Summary: "Try again now what would be tried again later", Out: retriedNow{}, Handle: retryNow},
		api.Change[entity.WatchDecision](api.Route{Method: "POST", Path: "/api/heartbeat-runs/{runId}/watchdog-decisions",
			Tag: "runs", Summary: "Say what to think of a run that is silent"}, care.KindRunWatch, api.RunAt,
			func(_ *api.Request, run string, in watchDecisionBody) (care.DecideWatch, error) {
				return care.DecideWatch{ID: api.NewID(), Run: run, Decision: in.Decision, Until: in.Until.Or(0),
					Reason: in.Reason.Or(""), Issue: strings.ToLower(in.Issue.Or(""))}, nil
			}),
		api.Show(api.Route{Path: queue, Tag: tag, Summary: "List the comments that an issue's agent will be told of next"},
			api.FindIssue, queueOf),
		{Method: "PATCH", Path: queue + "/{commentId}", Tag: tag, Summary: "Change a comment that was not told yet",
			Who: api.Board, In: queueEditBody{}, Out: commentQueue{}, Handle: editQueued},
		{Method: "DELETE", Path: queue + "/{commentId}", Tag: tag, Summary: "Take back a comment that was not told yet",
			Who: api.Board, In: queueBody{}, Out: commentQueue{}, Handle: dropQueued},
		{Method: "PUT", Path: queue + "/order", Tag: tag, Summary: "Order the comments that were not told yet",
			Who: api.Board, In: queueOrderBody{}, Out: commentQueue{}, Handle: orderQueue},
		{Method: "POST", Path: queue + "/interrupt", Tag: tag,
			Summary: "End the run at work, so that the waiting comments are told now", Who: api.Board, In: queueTargetBody{},
			Out: commentQueue{}, Handle: interruptForQueue},
		{Method: "POST", Path: queue + "/{commentId}/steer", Tag: tag,
			Summary: "Tell a waiting comment to the run at work; no adapter here takes one in", Who: api.Board,
			In: queueTargetBody{}, Never: http.StatusConflict, Handle: steerQueued},
	}
}

func watchdogOf(tx *ledger.Tx, i entity.Issue) *care.Watchdog {
	if w, ok := care.WatchdogOf(tx, i.Company, i.ID); ok {
		return &w
	}
	return nil
}

// retriedNow describes the answer of retryNow, which is written by hand.
type retriedNow struct {
	OK    bool       `json:"ok"`
	Issue string     `json:"issueId"`
	Retry issueRetry `json:"scheduledRetry"`
}

func retryNow(rc *api.Request) (api.Response, error) {
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[entity.Run](rc, company.KindRunRetryNow, of, company.RetryNow{Issue: issue})
	if err != nil {
		return api.Response{}, err
	}
	return readyJSON(core.Object{}.Bool("ok", true).Str("issueId", issue).Raw("scheduledRetry", retryRow(r).Close()).
		Close()), nil
}

func queueOf(tx *ledger.Tx, i entity.Issue) commentQueue {
	out := commentQueue{Issue: i.ID, Protocol: "legacy", Entries: []entity.Comment{}}
	q, ok := company.QueueOf(tx, i)
	if out.Target, out.Revision = core.NullText(q.Target), q.Revision(); ok {
		out.ID, out.State, out.Entries = core.NullText(q.Run.ID), "deferred", q.Entries
	}
	return out
}

func (b queueBody) change(issue string) company.ChangeQueue {
	return company.ChangeQueue{Issue: issue, Queue: strings.ToLower(b.Queue), Revision: b.Revision}
}

// changeQueue makes one change to an issue's queue and answers the resulting queue.
func changeQueue[T any](rc *api.Request, kind string,
	make func(in T, issue string) company.ChangeQueue) (api.Response, error) {
	in, err := api.Body[T](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := make(in, issue)
	p.Comment = strings.ToLower(rc.Path("commentId"))
	if _, err := rc.Submit(kind, of, p); err != nil {
		return api.Response{}, err
	}
	return api.Showing(rc, api.FindIssue, queueOf)
}

func editQueued(rc *api.Request) (api.Response, error) {
	return changeQueue(rc, company.KindQueueEdit, func(in queueEditBody, issue string) company.ChangeQueue {
		p := in.change(issue)
		p.Body = in.Body
		return p
	})
}

func dropQueued(rc *api.Request) (api.Response, error) {
	return changeQueue(rc, company.KindQueueDrop,
		func(in queueBody, issue string) company.ChangeQueue { return in.change(issue) })
}

func orderQueue(rc *api.Request) (api.Response, error) {
	return changeQueue(rc, company.KindQueueOrder, func(in queueOrderBody, issue string) company.ChangeQueue {
		p := in.change(issue)
		for _, id := range in.Order {
			p.Order = append(p.Order, strings.ToLower(id))
		}
		return p
	})
}

func interruptForQueue(rc *api.Request) (api.Response, error) {
	return changeQueue(rc, company.KindQueueInterrupt, func(in queueTargetBody, issue string) company.ChangeQueue {
		p := in.change(issue)
		p.Target = strings.ToLower(in.Target.Or(""))
		return p
	})
}

// steerQueued always refuses: no adapter accepts input while it runs.
func steerQueued(rc *api.Request) (api.Response, error) {
	in, err := api.Body[queueTargetBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Response{}, api.Conflict("Comments can not be told to a run that is at work; interrupt it instead",
		map[string]string{"companyId": string(of), "issueId": issue, "queueId": in.Queue, "protocol": "legacy"})
}

// createTop is the body of an issue that is created through the company's route.
type createTop struct {
	createIssue
	Discovery api.Opt[discoveryBody] `json:"watchdogDiscovery" doc:"by an agent at work as a watchdog: the issue is about a fault that it came upon, not a part of what it looks after"`
}

// discoveryBody is a watchdog's report of a fault.
type discoveryBody struct {
	Kind     string          `json:"kind" enum:"product_bug,platform_bug"`
	Evidence api.Opt[string] `json:"evidenceMarkdown" maxLength:"20000" maxBytes:"20000"`
}

// originDiscovery is the origin of an issue that a watchdog created for a fault.
const originDiscovery = "task_watchdog_product_bug"

// apply turns p into an issue about a fault found by the request's run, which watches
// another issue. The new issue is outside the watched tree. Its text and origin name the
// watched issue; project, goal and billing code default to those of the watched issue.
func (d discoveryBody) apply(rc *api.Request, of ledger.CompanyID, p company.CreateIssue,
	child bool) (company.CreateIssue, error) {
	if child {
		return p, api.Unprocessable("What a watchdog came upon is no part of an issue; make it with POST "+
			"/api/companies/{companyId}/issues", nil)
	}
	var watched entity.Issue
	var prefix string
	err := rc.View(func(tx *ledger.Tx) error {
		r, ok := entity.RunOf(tx, of, rc.Run)
		if ok = ok && rc.IsAgent() && r.Agent == rc.Actor.ID; ok {
			watched, ok = care.WatchedBy(tx, r, r.Agent)
		}
		if !ok {
			return ledger.Refuse(ledger.Forbidden, nil,
				"watchdogDiscovery is for an agent in a run for an issue that it looks after; make the issue without it")
		}
		row, _ := entity.CompanyOf(tx, of)
		prefix = row.IssuePrefix
		return nil
	})
	if err != nil {
		return p, err
	}
	text := "## Found by a watchdog\n\n- Kind: " + d.Kind + "\n- While it looked after [" + watched.Identifier + "](" +
		issuePage(prefix, watched) + ")\n- Run: " + rc.Run
	if e := strings.TrimSpace(d.Evidence.Or("")); e != "" {
		text += "\n\n" + e
	}
	if p.Description != "" {
		text = p.Description + "\n\n" + text
	}
	if len(text) > entity.MaxText {
		return p, ledger.Refuse(ledger.TooLarge, nil, "description and evidenceMarkdown have more than %d bytes together",
			entity.MaxText)
	}
	p.Description, p.Parent, p.BlockParent = text, "", false
	p.OriginKind, p.OriginID, p.OriginRun, p.OriginFingerprint = originDiscovery, watched.ID, rc.Run,
		originDiscovery+":"+watched.ID+":"+rc.Run
	p.Project, p.Goal, p.BillingCode = cmp.Or(p.Project, watched.Project), cmp.Or(p.Goal, watched.Goal),
		cmp.Or(p.BillingCode, watched.BillingCode)
	return p, nil
}
