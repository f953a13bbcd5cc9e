package run

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// The kernel's API executes a task in one call: it creates an issue for the agent,
// waits, and answers with the result. An execution is that issue.

const (
	// DefaultExecuteWait is the time for which clients of the kernel wait. A caller may ask
	// for up to MaxExecuteWait.
	DefaultExecuteWait = 30 * time.Second
	MaxExecuteWait     = 10 * time.Minute
	// executeLook is the polling interval of a waiting request.
	executeLook = 100 * time.Millisecond
	// executeSettle bounds the delay until a run's costs are recorded: calls are batched
	// before they are committed.
	executeSettle = 600 * time.Millisecond
	// executeSlack is how many ms before its run's start a cost event may be dated: clocks
	// differ, and some agents report whole seconds.
	executeSlack = 60_000
	// maxTask bounds a task, maxTaskContext its context, in bytes. Both are put into the
	// description of an issue.
	maxTask        = 100_000
	maxTaskContext = 64 << 10
	// maxExecuteTitle bounds the title derived from a task, in runes.
	maxExecuteTitle = 200
	// maxSpentEvents bounds the cost events that one answer adds up.
	maxSpentEvents = 10_000
)

func ExecuteRoutes() []api.Route {
	tag := "kernel"
	return []api.Route{
		{Method: "POST", Path: "/api/v1/execute", Kernel: true, Capability: "execute", Once: true, Tag: tag,
			Summary: "Have an agent do a task and wait for what came of it", In: executeBody{}, Out: execution{},
			Also:    []int{202},
			Timeout: MaxExecuteWait + api.RequestTimeout, Handle: executeTask},
		{Method: "GET", Path: "/api/v1/executions/{id}", Kernel: true, Capability: "execute", Tag: tag,
			Summary: "Read what came of a task", Out: execution{}, Also: []int{202}, Handle: readExecution},
		{Method: "GET", Path: "/api/v1/health", Kernel: true, Tag: tag, Summary: "Tell that the kernel's API answers",
			Who: api.Public, Out: kernelHealth{}, Handle: func(rc *api.Request) (api.Response, error) {
				s := rc.Server
				return api.OK(kernelHealth{"ok", s.Cfg.Version, int64(s.Cfg.Wall().Sub(s.Started).Seconds())}), nil
			}},
	}
}

type kernelHealth struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Uptime  int64  `json:"uptime_secs"`
}

type executeBody struct {
	Agent   string          `json:"agent_id" minLength:"1" maxLength:"200" doc:"ID of the agent, or its name within context.company_id"`
	Task    string          `json:"task" minLength:"1" maxLength:"100000"`
	Context json.RawMessage `json:"context,omitempty" doc:"an object; company_id is read, and budget_remaining_usd as the most that the task may cost; all of it is handed on"`
	Wait    *int64          `json:"timeout_ms,omitempty" minimum:"0" maximum:"600000" doc:"how long to wait; 30000 unless given, 0 for not at all, at most 600000"`
}

// An execution is the answer about a task. Status is queued, running, waiting (not done,
// and nobody works on it: see the issue), succeeded, failed or cancelled. Score is 0 to
// 1: the run's own score if it has one, else 1 when the issue is done or in review, 0.5
// when only the run succeeded, and 0.
type execution struct {
	Result    *string          `json:"result"`
	Score     float64          `json:"score"`
	Tokens    int64            `json:"tokens_used"`
	ChainHash *string          `json:"chain_hash"` // of the entry that closed the last run
	ID        string           `json:"execution_id"`
	Status    string           `json:"status"`
	Company   ledger.CompanyID `json:"company_id"`
	Agent     string           `json:"agent_id"`
	Issue     string           `json:"issue_id"`
	Run       *string          `json:"run_id"` // the last run
	Runs      int              `json:"runs"`
	Node      *string          `json:"node_id"`
	Model     *string          `json:"model"`
	Cost      *float64         `json:"cost_usd"`
	Duration  *int64           `json:"duration_ms"` // from the first run's start to the last one's end
	Error     *string          `json:"error,omitempty"`
	Code      *string          `json:"code,omitempty"`                 // BUDGET_EXHAUSTED when the budget stopped it
	Budget    *float64         `json:"budget_remaining_usd,omitempty"` // of the given budget, if there was one
	URL       string           `json:"url"`

	settled bool // no further change is expected
}

// kernelError is a refusal in the form of the kernel's API, {code, message}, with error
// added for clients of the other routes.
func kernelError(status int, code, message string) api.Response {
	return api.Reply(status, map[string]string{"code": code, "message": message, "error": message})
}

// kernelBadBody refuses an invalid body and names the field.
func kernelBadBody(err error) (api.Response, error) {
	status, body, failure := api.AnswerOf(err)
	if failure {
		return api.Response{}, err
	}
	code, details := "PARSE_ERROR", string(body.Details)
	switch {
	case strings.Contains(details, `"agent_id"`):
		code = "INVALID_AGENT_ID"
	case strings.Contains(details, `"task"`):
		code = "INVALID_TASK"
	}
	out := map[string]any{"code": code, "message": body.Error, "error": body.Error}
	if len(body.Details) > 0 {
		out["details"] = body.Details
	}
	return api.Reply(status, out), nil
}

func executeTask(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[executeBody](rc)
	if err != nil {
		return kernelBadBody(err)
	}
	var about struct {
		Company ledger.CompanyID `json:"company_id"`
		Budget  *float64         `json:"budget_remaining_usd"`
	}
	if len(in.Context) > 0 && json.Unmarshal(in.Context, &about) != nil || len(in.Context) > maxTaskContext {
		return kernelError(http.StatusBadRequest, "PARSE_ERROR", "context is not an object that fits"), nil
	}
	task := strings.TrimSpace(in.Task)
	switch {
	case task == "" || len(task) > maxTask || strings.ContainsRune(task, 0):
		return kernelError(http.StatusBadRequest, "INVALID_TASK", "task is missing, or longer than an issue may be"), nil
	case about.Budget != nil && api.MoneyOf(*about.Budget) <= 0:
		return kernelError(http.StatusPaymentRequired, "BUDGET_EXHAUSTED",
			"context.budget_remaining_usd leaves nothing to spend"), nil
	}
	agent, err := executor(rc, in.Agent, about.Company)
	if err != nil {
		if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Code == ledger.Unprocessable {
			return kernelError(http.StatusBadRequest, "INVALID_AGENT_ID",
				"agent_id is a name: context.company_id says of which company"), nil
		}
		return api.Response{}, err
	}
	if err := rc.Granted(agent.Company, agent.ID, in.Agent); err != nil {
		return api.Response{}, err
	}
	issue, no, err := taskIssue(rc, agent, task, in.Context, about.Budget)
	if err != nil || issue == "" {
		return no, err
	}
	wait := DefaultExecuteWait
	if in.Wait != nil {
		wait = time.Duration(*in.Wait) * time.Millisecond
	}
	return awaitExecution(s, rc, agent.Company, issue, wait)
}

// executor finds the agent that is to execute the task.
func executor(rc *api.Request, ref string, of ledger.CompanyID) (a entity.Agent, err error) {
	if rc.IsAgent() {
		of = rc.Company
	}
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if of == "" && !api.IsUUID(ref) {
			if all := entity.Companies(tx); len(all) == 1 {
				of = all[0].ID
			}
		}
		if a, err = entity.AgentByRef(tx, of, ref); err == nil && !api.Seen(tx, rc, a.Company) {
			err = api.NotFound("Agent not found")
		}
		return err
	})
	return a, err
}

// taskIssue creates the task's issue through the public route, as the caller of this
// request, so that the same rules apply.
func taskIssue(rc *api.Request, a entity.Agent, task string, context json.RawMessage, budget *float64) (id string,
	no api.Response, err error) {
	title, _, _ := strings.Cut(task, "\n")
	if r := []rune(strings.TrimSpace(title)); len(r) > maxExecuteTitle {
		title = string(r[:maxExecuteTitle-1]) + "…"
	}
	text := task
	if len(context) > 0 {
		var b bytes.Buffer
		if json.Indent(&b, context, "", "  ") == nil {
			text += "\n\nContext:\n\n```json\n" + b.String() + "\n```"
		}
	}
	fields := map[string]any{"title": strings.TrimSpace(title), "description": text, "assigneeAgentId": a.ID,
		"status":     "todo",
		"originKind": "execute", "allowDuplicate": true}
	if budget != nil {
		fields["allowanceUsd"] = min(*budget, dollars(money.MaxAllowance))
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return "", no, err
	}
	w := rc.Inside(http.MethodPost, "/api/companies/"+string(a.Company)+"/issues", "application/json", body)
	var said struct {
		ID    string `json:"id"`
		Error string `json:"error"`
		Code  string `json:"code"`
	}
	if err := json.Unmarshal(w.Body, &said); err != nil {
		return "", no, errors.New("execute: the answer of POST issues does not decode")
	}
	if w.Status/100 != 2 {
		refusal := api.KernelBodyOf(w.Status, api.ErrorBody{Code: said.Code, Error: said.Error})
		no = kernelError(w.Status, refusal.Code, refusal.Message)
		if after := w.Header.Get("Retry-After"); after != "" {
			no.Header = http.Header{"Retry-After": {after}}
		}
		return "", no, nil
	}
	return said.ID, no, nil
}

// awaitExecution answers when the work has ended, or with 202 when the wait has.
func awaitExecution(s *api.Server, rc *api.Request, of ledger.CompanyID, issue string,
	wait time.Duration) (api.Response, error) {
	select {
	case s.Executing <- struct{}{}:
		defer func() { <-s.Executing }()
	default:
		wait = 0
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	look := time.NewTicker(executeLook)
	defer look.Stop()
	for {
		var e execution
		err := rc.View(func(tx *ledger.Tx) (err error) {
			e, err = taskOf(tx, of, issue, rc.Now())
			return err
		})
		if err != nil {
			return api.Response{}, err
		}
		if e.settled {
			return api.OK(e), nil
		}
		if e.Status == "waiting" && e.Runs == 0 {
			return api.Reply(http.StatusAccepted, e), nil // no run will start
		}
		select {
		case <-over.C:
			return api.Reply(http.StatusAccepted, e), nil
		case <-rc.Context().Done():
			return api.Response{}, rc.Context().Err()
		case <-look.C:
		}
	}
}

func readExecution(rc *api.Request) (api.Response, error) {
	var e execution
	err := rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err == nil {
			err = rc.Granted(i.Company, i.Assignee)
		}
		if err == nil {
			e, err = taskOf(tx, i.Company, i.ID, rc.Now())
		}
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	if !e.settled {
		return api.Reply(http.StatusAccepted, e), nil
	}
	return api.OK(e), nil
}

// taskOf reads the state of the work on an issue.
func taskOf(tx *ledger.Tx, of ledger.CompanyID, issue string, now time.Time) (execution, error) {
	i, ok := entity.IssueOf(tx, of, issue)
	if !ok {
		return execution{}, api.NotFound("Execution not found")
	}
	e := execution{ID: i.ID, Issue: i.ID, Company: of, Agent: i.Assignee, Status: "waiting",
		URL: "/api/v1/executions/" + i.ID}
	var last, first entity.Run
	if a, ok := money.AllowanceOf(tx, i); ok {
		e.Budget = new(dollars(max(a.Limit-a.Spent, 0)))
	}
	live, runs := false, map[string]bool{}
	for r := range entity.RunsOfIssue(tx, of, issue) {
		if e.Runs++; e.Runs == 1 {
			last = r
		}
		first, runs[r.ID] = r, true
		live = live || r.Status.Live()
	}
	if e.Runs == 0 {
		return e, nil
	}
	e.Run, e.Agent = &last.ID, last.Agent
	if last.Node != "" {
		e.Node = &last.Node
	}
	e.spent(tx, first, runs)
	if live {
		e.Status = "queued"
		if last.Status == entity.RunRunning {
			e.Status = "running"
		}
		return e, nil
	}
	e.settled = now.Sub(last.FinishedAt.Std()) >= executeSettle
	switch last.Status {
	case entity.RunSucceeded:
		e.Status, e.Score = "succeeded", 0.5
		if i.Status == entity.IssueDone || i.Status == entity.IssueInReview {
			e.Score = 1
		}
	case entity.RunCancelled:
		e.Status = "cancelled"
	default:
		e.Status = "failed"
	}
	if last.Error != "" {
		e.Error = new(string(last.Error))
	}
	if first.StartedAt > 0 {
		e.Duration = new(int64(last.FinishedAt - first.StartedAt))
	}
	if c, ok := ledger.EntryAt(tx, last.Closed); ok && last.Closed > 0 {
		e.ChainHash = new(hex.EncodeToString(c.Hash[:]))
	}
	var told struct {
		Score  *float64 `json:"score"`
		Result *string  `json:"result"`
		Denied string   `json:"deniedBy"`
	}
	err := json.Unmarshal(last.ResultJSON, &told)
	if e.Status != "succeeded" && (last.ErrorCode == "budget_refused" || err == nil &&
		told.Denied == string(company.DeniedBudget)) {
		e.Code = new(api.KernelCodes[http.StatusPaymentRequired])
	}
	if err == nil && e.Status == "succeeded" {
		if told.Score != nil && *told.Score >= 0 && *told.Score <= 1 {
			e.Score = *told.Score
		}
		e.Result = told.Result
	}
	if e.Result == nil {
		e.Result = api.WordsOf(tx, i, last)
	}
	return e, nil
}

// spent adds up the costs of the issue's runs since the first one started. The model is
// the one with the most tokens.
func (e *execution) spent(tx *ledger.Tx, first entity.Run, runs map[string]bool) {
	var cost core.Money
	n, of, most := 0, map[string]int64{}, int64(-1)
	for c := range money.CostsOfAgentSince(tx, e.Company, e.Agent, first.CreatedAt-executeSlack) {
		if n++; n > maxSpentEvents {
			break
		}
		if !runs[string(c.Run)] {
			continue
		}
		cost = cost.Plus(c.Cost)
		tokens := c.InputTokens + c.CachedInputTokens + c.OutputTokens
		e.Tokens += tokens
		if of[c.Model] += tokens; of[c.Model] > most {
			e.Model, most = new(c.Model), of[c.Model]
		}
	}
	e.Cost = new(dollars(cost))
}

func dollars(m core.Money) float64 { return float64(m) / float64(core.Cent) / 100 }
