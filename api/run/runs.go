// Package run is the routes about runs: their logs and traces, tasks that are executed
// while the caller waits, and why something does not go on.
package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// maxRunList bounds one list of runs, maxRunEvents one page of events.
	maxRunList   = 1000
	maxRunEvents = 1000
)

// wakeBody is the body of a wake.
type wakeBody struct {
	Source         string                   `json:"source,omitempty" enum:"timer,assignment,on_demand,automation"`
	TriggerDetail  string                   `json:"triggerDetail,omitempty" enum:"manual,ping,callback,system"`
	Reason         api.Opt[string]          `json:"reason" maxLength:"2000"`
	Payload        api.Opt[json.RawMessage] `json:"payload" maxBytes:"16000"`
	IdempotencyKey api.Opt[string]          `json:"idempotencyKey" maxLength:"255"`
	Fresh          api.Opt[bool]            `json:"forceFreshSession"`
}

// resetBody is the body of a session reset.
type resetBody struct {
	TaskKey api.Opt[string] `json:"taskKey" minLength:"1" maxLength:"200"`
}

func RunRoutes() []api.Route {
	limit := api.Param{Name: "limit", Type: "integer", Doc: "at most so many"}
	return []api.Route{
		{Method: "POST", Path: "/api/agents/{id}/heartbeat/invoke", Tag: "agents", Summary: "Invoke an agent now", Out: woken,
			Status: 202, Handle: invokeHeartbeat},
		{Method: "POST", Path: "/api/agents/{id}/wakeup", Tag: "agents", Summary: "Wake an agent for a reason",
			In: wakeBody{}, Out: woken, Status: 202, Handle: wakeAgent},
		api.Show(api.Route{Path: "/api/agents/{id}/wakeups", Tag: "agents",
			Summary: "List the latest wakeup requests of an agent"}, findRunAgent,
			func(tx *ledger.Tx, a entity.Agent) []entity.Wakeup { return entity.WakeupsOf(tx, a.Company, a.ID) }),
		api.Show(api.Route{Path: "/api/agents/{id}/runtime-state", Tag: "agents",
			Summary: "Read what an agent's runs added up to"}, findRunAgent,
			func(tx *ledger.Tx, a entity.Agent) entity.RuntimeState {
				return entity.RuntimeStateOf(tx, a.Company, a.ID)
			}),
		api.Change[entity.RuntimeState](api.Route{Method: "POST", Path: "/api/agents/{id}/runtime-state/reset-session",
			Tag: "agents", Summary: "Forget what the next run would resume from"}, company.KindAgentResetSession,
			locateRunAgent, func(_ *api.Request, agent string, in resetBody) (company.ResetSession, error) {
				return company.ResetSession{Agent: agent, TaskKey: in.TaskKey.Or("")}, nil
			}),
		api.Show(api.Route{Path: "/api/agents/{id}/task-sessions", Tag: "agents",
			Summary: "List an agent's sessions by task"}, findRunAgent,
			func(tx *ledger.Tx, a entity.Agent) []entity.TaskSession {
				return entity.TaskSessionsOf(tx, a.Company, a.ID)
			}),
		{Method: "GET", Path: "/api/companies/{companyId}/heartbeat-runs", Tag: "runs",
			Summary: "List runs, the newest first", Out: []runListItem{}, Handle: listRuns,
			Query: []api.Param{{Name: "agentId", Doc: "only runs of this agent"},
				{Name: "issueId", Doc: "only runs that were woken for this issue"},
				{Name: "status", Doc: "statuses, separated by commas"}, limit}},
		{Method: "GET", Path: "/api/companies/{companyId}/live-runs", Tag: "runs", Summary: "List queued and running runs",
			Out: []liveRun{}, Handle: listLiveRuns,
			Query: []api.Param{{Name: "minCount", Type: "integer",
				Doc: "filled up with the latest ended runs to so many"}, limit}},
		api.ShowNow(api.Route{Path: "/api/heartbeat-runs/{runId}", Tag: "runs", Summary: "Read a run"}, api.FindRun,
			viewRun),
		{Method: "POST", Path: "/api/heartbeat-runs/{runId}/callback", Tag: "runs",
			Summary: "Tell how the run of an agent behind a URL ended", Who: api.Agent, In: callbackBody{},
			Out: company.Callback{}, NoTool: true, Handle: callBack},
		{Method: "POST", Path: "/api/heartbeat-runs/{runId}/cancel", Tag: "runs", Summary: "Cancel a run", Who: api.Board,
			Out: runRow{}, Handle: cancelRun},
		{Method: "GET", Path: "/api/heartbeat-runs/{runId}/events", Tag: "runs", Summary: "List the events of a run",
			Out: []entity.RunEvent{}, Handle: listRunEvents,
			Query: []api.Param{{Name: "afterSeq", Type: "integer", Doc: "only events after this one"}, limit}},
		{Method: "GET", Path: "/api/heartbeat-runs/{runId}/log", Tag: "runs",
			Summary: "Read the log of a run, also while it grows", Out: runLogPage{}, Handle: readRunLog,
			Query: []api.Param{{Name: "offset", Type: "integer", Doc: "byte to begin at"}, {Name: "limitBytes", Type: "integer",
				Doc: "at most so many bytes, up to 256000"}, {Name: "decisions", Type: "boolean",
				Doc: "the decision log: what the gate permitted at the run's node"}}},
		api.Show(api.Route{Path: "/api/heartbeat-runs/{runId}/issues", Tag: "runs",
			Summary: "List the issues that a run is about"}, api.FindRun, runIssues),
		api.ShowNow(api.Route{Path: "/api/issues/{id}/runs", Tag: "runs",
			Summary: "List the runs for an issue, the newest first"}, api.FindIssue, issueRuns),
		api.ShowNow(api.Route{Path: "/api/issues/{id}/live-runs", Tag: "runs",
			Summary: "List the queued and running runs for an issue"}, api.FindIssue, issueLiveRuns),
		api.ShowNow(api.Route{Path: "/api/issues/{id}/active-run", Tag: "runs",
			Summary: "Read the run at work on an issue, or null"}, api.FindIssue, activeRun),
	}
}

// findRunAgent returns the agent that the path names. An agent sees only its own
// company.
func findRunAgent(tx *ledger.Tx, rc *api.Request) (entity.Agent, error) {
	a, ok := entity.AgentByID(tx, strings.ToLower(rc.Path("id")))
	if !ok || !api.Seen(tx, rc, a.Company) {
		return a, api.NotFound("Agent not found")
	}
	return a, nil
}

// locateRunAgent returns the company and ID of the agent that a command is about.
var locateRunAgent = api.Located(findRunAgent,
	func(a entity.Agent) (ledger.CompanyID, string) { return a.Company, a.ID })

// A skippedWake is the answer to a wake that creates no run.
type skippedWake struct {
	Status entity.WakeStatus `json:"status"`
	Reason string            `json:"reason"`
}

// woken are the answers to a wake.
var woken = api.Either{entity.Run{}, skippedWake{}}

func wake(rc *api.Request, of ledger.CompanyID, w entity.Wake) (api.Response, error) {
	w.Wakeup, w.Run = api.NewID(), api.NewID()
	res, err := api.Do[entity.WakeResult](rc, company.KindAgentWake, of, w)
	if err != nil {
		return api.Response{}, err
	}
	if res.Run == nil {
		return api.OK(skippedWake{res.Status, res.Reason}), nil
	}
	return api.OK(res.Run), nil
}

func invokeHeartbeat(rc *api.Request) (api.Response, error) {
	if _, err := api.Body[struct{}](rc); err != nil {
		return api.Response{}, err
	}
	of, agent, err := locateRunAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	return wake(rc, of, entity.Wake{Agent: agent, Source: entity.WakeOnDemand, TriggerDetail: "manual"})
}

func wakeAgent(rc *api.Request) (api.Response, error) {
	in, err := api.Body[wakeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := api.RawBounds(in.Payload.Or(nil)); err != nil {
		return api.Response{}, err
	}
	of, agent, err := locateRunAgent(rc)
	if err != nil {
		return api.Response{}, err
	}
	w := entity.Wake{Agent: agent, Source: entity.WakeSource(cmp.Or(in.Source, string(entity.WakeOnDemand))),
		TriggerDetail: cmp.Or(in.TriggerDetail, "manual"), Reason: in.Reason.Or(""), IdempotencyKey: in.IdempotencyKey.Or(""),
		Fresh: new(in.Fresh.Or(false)), Payload: in.Payload.Or(nil)}
	var about map[string]json.RawMessage
	if w.Payload != nil && json.Unmarshal(w.Payload, &about) != nil {
		return api.Response{}, api.ValidationError(api.Issue{Code: "invalid_type", Path: []any{"payload"},
			Message: "Invalid input: expected record"})
	}
	id := func(name string) string {
		var v string
		if json.Unmarshal(about[name], &v) != nil || !api.IsUUID(v) {
			return "" // not an ID of ours
		}
		return strings.ToLower(v)
	}
	w.Issue, w.Comment, w.Approval = cmp.Or(id("issueId"), id("taskId")), id("commentId"), id("approvalId")
	return wake(rc, of, w)
}

func listRuns(rc *api.Request) (api.Response, error) {
	of := api.CompanyID(rc)
	limit, err := rc.QueryInt("limit", 200, 1, maxRunList)
	if err != nil {
		return api.Response{}, err
	}
	agent, err := rc.QueryUUID("agentId")
	if err != nil {
		return api.Response{}, err
	}
	issue, err := rc.QueryUUID("issueId")
	if err != nil {
		return api.Response{}, err
	}
	statuses := rc.QueryList("status")
	for _, s := range statuses {
		if !slices.Contains(entity.RunStatuses, entity.RunStatus(s)) {
			return api.Response{}, api.Invalid("Invalid status: %s is none of %v", api.Cut(s, 64), entity.RunStatuses)
		}
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]runListItem, error) {
		if !entity.CompanyExists(tx, of) {
			return nil, api.NotFound("Company not found")
		}
		all := entity.RunsOf(tx, of)
		switch {
		case issue != "":
			all = entity.RunsOfIssue(tx, of, issue)
		case agent != "":
			all = entity.RunsOfAgent(tx, of, agent)
		case len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s string) bool { return !entity.RunStatus(s).Live() }):
			live := entity.LiveRunsOf(tx, of) // few, wherever they are among the ended runs
			slices.Reverse(live)              // newest first
			all = slices.Values(live)
		}
		out := []runListItem{}
		for r := range all {
			if agent != "" && r.Agent != agent || len(statuses) > 0 && !slices.Contains(statuses, string(r.Status)) {
				continue
			}
			item := listItem(r)
			item.Waiting = waitOf(tx, r, core.TimeOf(rc.Now()))
			if out = append(out, item); len(out) == limit {
				break
			}
		}
		return out, nil
	})
}

func listLiveRuns(rc *api.Request) (api.Response, error) {
	of := api.CompanyID(rc)
	limit, err := rc.QueryInt("limit", 50, 1, maxRunList)
	if err != nil {
		return api.Response{}, err
	}
	least, err := rc.QueryInt("minCount", 0, 0, maxRunList)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]liveRun, error) {
		if !entity.CompanyExists(tx, of) {
			return nil, api.NotFound("Company not found")
		}
		out := []liveRun{}
		live := entity.LiveRunsOf(tx, of)
		slices.Reverse(live) // newest first
		for _, r := range live[:min(len(live), limit)] {
			out = append(out, liveView(tx, r, core.TimeOf(rc.Now())))
		}
		if len(out) < least {
			for r := range entity.RunsOf(tx, of) {
				if len(out) >= min(least, limit) {
					break
				}
				if !r.Status.Live() {
					out = append(out, liveView(tx, r, core.TimeOf(rc.Now())))
				}
			}
		}
		return out, nil
	})
}

func cancelRun(rc *api.Request) (api.Response, error) {
	of, run, err := api.RunAt(rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[entity.Run](rc, company.KindRunCancel, of, company.Cancel{Run: run})
	return api.OK(rowOf(r)), err
}

func listRunEvents(rc *api.Request) (api.Response, error) {
	after, err := rc.QueryInt64("afterSeq", 0, 0, 1<<40)
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 200, 1, maxRunEvents)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]entity.RunEvent, error) {
		r, err := api.FindRun(tx, rc)
		if err != nil {
			return nil, err
		}
		return entity.EventsOf(tx, r.Company, r.ID, after, limit), nil
	})
}

func readRunLog(rc *api.Request) (api.Response, error) {
	s := rc.Server
	offset, err := rc.QueryInt64("offset", 0, 0, 1<<40)
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limitBytes", runlog.MaxRead, 1, runlog.MaxRead)
	if err != nil {
		return api.Response{}, err
	}
	decisions, err := rc.QueryBool("decisions")
	if err != nil {
		return api.Response{}, err
	}
	var r entity.Run
	err = rc.View(func(tx *ledger.Tx) (err error) {
		r, err = api.FindRun(tx, rc)
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	if r.LogRef == "" || s.Cfg.RunLog == nil {
		return api.Response{}, api.NotFound("Run log not found")
	}
	if decisions { // it is read as the log of the output: from its node, or from who keeps it
		r.LogStore, r.LogRef, r.LogKeptAt = "local_file", core.NullText(runlog.DecisionsRef(r.Company, r.Agent, r.ID)), 0
		if d := r.Decisions; d != nil {
			r.LogKeptAt, r.LogBytes, r.LogSHA256 = d.KeptAt, &d.Bytes, core.NullText(d.SHA256)
		}
	}
	chunk, err := s.Cfg.RunLog(rc.HTTP.Context(), r, offset, int64(limit))
	switch {
	case errors.Is(err, runlog.ErrNoLog) &&
		r.Status.Live(): // its node opens the log when it learns that the run has started
	case errors.Is(err, runlog.ErrNoLog):
		return api.Response{}, api.NotFound("Run log not found")
	case err != nil:
		return api.Response{}, api.Unavailable("The node that has this run's log does not answer; try again")
	}
	page := runLogPage{Run: r.ID, Store: r.LogStore, Ref: r.LogRef, Content: string(chunk.Content)}
	if next := offset + int64(len(chunk.Content)); next < chunk.Size {
		page.Next = &next
	}
	return api.OK(page), nil
}

func runIssues(tx *ledger.Tx, r entity.Run) []runIssue {
	out := []runIssue{}
	add := func(i entity.Issue) {
		if !slices.ContainsFunc(out, func(o runIssue) bool { return o.ID == i.ID }) {
			out = append(out, runIssue{i.ID, i.Identifier, i.Title, i.Status, i.Priority})
		}
	}
	if i, ok := entity.IssueOf(tx, r.Company, r.Context.IssueID); ok {
		add(i)
	}
	for i := range entity.IssuesHeldBy(tx, r.Company, r.ID) {
		add(i)
	}
	return out
}

func issueRuns(tx *ledger.Tx, i entity.Issue, now core.Time) []issueRun {
	out := []issueRun{}
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if out = append(out, issueRunView(tx, r, now)); len(out) == maxRunList {
			break
		}
	}
	return out
}

func issueLiveRuns(tx *ledger.Tx, i entity.Issue, now core.Time) []liveRun {
	out := []liveRun{}
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if r.Status.Live() {
			out = append(out, liveView(tx, r, now))
		}
	}
	return out
}

func activeRun(tx *ledger.Tx, i entity.Issue, now core.Time) *liveRun {
	for r := range entity.RunsOfIssue(tx, i.Company, i.ID) {
		if r.Status == entity.RunRunning || r.ID == i.CheckoutRun {
			return new(liveView(tx, r, now))
		}
	}
	return nil
}
