// Package weftos runs agents behind the WeftOS kernel's API: for each task it asks POST /api/v1/govern whether the
// task should be done, and has POST /api/v1/execute do it, on another mesh or on this one.
//
// adapterConfig is {"baseUrl" (also "base_url"; this mesh unless given), "token" (also "apiKey"), "agentId" (the agent
// there; its own name unless given), "companyId", "model", "governanceEnabled" (true), "retries" (2), "timeoutMs"
// (30000: one request), "timeoutSec" (900: the whole run)}. A token that begins with cap1. is sent as "WeftOS-Cap",
// others as "Bearer". Addresses that are not public are refused unless the operator lists them.
//
// A run without an issue works on the agent's open issues, oldest first. A task that the gate denies, or hands to a
// person, makes the issue blocked with the reason. The answer becomes a comment, and the issue is done.
package weftos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
)

const (
	// DefaultRequest is the time limit of one request to the kernel, maxRequest its bound.
	DefaultRequest = 30 * time.Second
	maxRequest     = 10 * time.Minute
	// defaultRetries is how often a request is repeated after 429, 503 or no answer; maxRetries is its bound.
	defaultRetries = 2
	maxRetries     = 5
	// lookEvery is how often an unfinished execution is looked at.
	lookEvery = 500 * time.Millisecond
	// maxTasks bounds the issues of one run.
	maxTasks = 10
	// maxAnswer bounds an answer in bytes, maxResult the part of a result that becomes a comment.
	maxAnswer = 4 << 20
	maxResult = 48 << 10
	// maxTask bounds the text of a task, in bytes: the kernel takes no more.
	maxTask = 100_000
	// MaxHops bounds how often a task is handed on from mesh to mesh, so that two agents can not hand it to each
	// other for ever.
	MaxHops = 8
)

// retryAfter are the waits before the first repetition and the next ones.
var retryAfter = []time.Duration{0, 500 * time.Millisecond, 2 * time.Second}

// Config is what the adapter needs; its zero value works, but for agents of this mesh.
type Config struct {
	// Private lists networks that are not public but may be called.
	Private []netip.Prefix
	// API serves this node's own API; nil while it opens. Token makes a run's token.
	API   func() http.Handler
	Token func(entity.Run) (string, error)
}

// An Adapter has tasks done by kernels. It is safe for concurrent use.
type Adapter struct {
	cfg       Config
	client    *http.Client
	live.Runs // cancelling a run aborts its request
}

// New returns an adapter.
func New(cfg Config) *Adapter {
	return &Adapter{cfg: cfg, client: webcall.Client(cfg.Private, DefaultRequest)}
}

// config is the adapterConfig, with the names of both published forms.
type config struct {
	Base    string     `json:"baseUrl"`
	BaseOld string     `json:"base_url"`
	Token   live.Value `json:"token"`
	Key     live.Value `json:"apiKey"`
	Agent   string     `json:"agentId"`
	Company string     `json:"companyId"`
	Model   string     `json:"model"`
	Govern  *bool      `json:"governanceEnabled"`
	Retries *int       `json:"retries"`
	Request int64      `json:"timeoutMs"`
	Timeout *float64   `json:"timeoutSec"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

// Invoke works on the run's issue, or on the agent's open issues.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return process.Failure("The agent's adapterConfig is malformed")
	}
	bound, ctx, over := process.Within(ctx, &a.Runs, inv, c.Timeout)
	defer over()
	j, err := a.job(inv, c)
	if err == nil {
		err = j.run(ctx)
	}
	out := company.Outcome{Usage: j.usage(), Cost: j.cost(c)}
	return bound.Ended(out, j.red.Clean(j.said.String()), err, j.red, func(out *company.Outcome) {
		if no, ok := errors.AsType[*kernelError](err); ok {
			out.ErrorCode, out.Transient = no.code(), no.passing()
		}
	}, map[string]any{"tasks": j.done})
}

// A job is the work of one run, in one goroutine.
type job struct {
	a     *Adapter
	inv   company.Invocation
	c     config
	base  string // "": this mesh
	token string // of the run, for the agent's own company
	red   *secret.Redactor
	said  strings.Builder
	done  []task
	spent float64
	model string
	used  int64
}

// A task is what came of one issue.
type task struct {
	Issue     string  `json:"issueId"`
	Decision  string  `json:"decision,omitempty"`
	Execution string  `json:"executionId,omitempty"`
	Status    string  `json:"status"`
	Score     float64 `json:"score"`
	ChainHash string  `json:"chainHash,omitempty"`
}

func (a *Adapter) job(inv company.Invocation, c config) (j *job, err error) {
	j = &job{a: a, inv: inv, c: c, base: strings.TrimSuffix(cmp.Or(c.Base, c.BaseOld), "/")}
	if a.cfg.Token != nil {
		j.token, err = a.cfg.Token(inv.Run)
	}
	j.red = secret.NewRedactor(append([]string{string(c.Token), string(c.Key), j.token}, inv.Secrets...))
	if err != nil || j.token == "" {
		return j, errors.New("no token could be made for the run")
	}
	if j.base == "" {
		if name := strings.ToLower(c.Agent); name == "" || name == strings.ToLower(inv.AgentName) || name == inv.Run.Agent {
			return j, errors.New("adapterConfig.agentId: name the agent of this mesh that does the work, or give baseUrl of " +
				"another mesh")
		}
		return j, nil
	}
	if u, err := url.Parse(j.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return j, errors.New("adapterConfig.baseUrl: give an address that begins with http:// or https://")
	}
	return j, nil
}

// usage tells the tokens as input: the kernel does not say of which kind they are.
func (j *job) usage() *entity.Usage {
	if j.used == 0 {
		return nil
	}
	return &entity.Usage{InputTokens: j.used}
}

// cost is what another mesh spent. What this mesh spent is booked on the agent that did the work.
func (j *job) cost(c config) *entity.RunCost {
	if j.base == "" || j.used == 0 && j.spent == 0 {
		return nil
	}
	return &entity.RunCost{Provider: "weftos", Model: cmp.Or(j.model, c.Model), Usage: entity.Usage{InputTokens: j.used},
		Cost: core.Money(j.spent * 100 * float64(core.Cent)), Priced: true}
}

func (j *job) run(ctx context.Context) error {
	issues, err := j.issues(ctx)
	if err != nil {
		return err
	}
	if len(issues) == 0 {
		j.tell("no issue waits")
	}
	for _, i := range issues {
		if err := j.work(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	if j.said.Len()+len(line) < maxResult {
		j.said.WriteString(line)
	}
	j.inv.Log("stdout", j.red.Clean(line))
}

// An issue is what the adapter reads of one.
type issue struct {
	ID          string  `json:"id"`
	Identifier  string  `json:"identifier"`
	Title       string  `json:"title"`
	Description *string `json:"description"`
	Status      string  `json:"status"`
}

// issues returns what the run is to work on.
func (j *job) issues(ctx context.Context) (out []issue, err error) {
	c := j.inv.Run.Context
	if id := cmp.Or(c.IssueID, c.TaskID); id != "" {
		out = make([]issue, 1)
		return out, j.own(ctx, "GET", "/api/issues/"+id, nil, &out[0])
	}
	var inbox []struct{ ID, Status string }
	if err := j.own(ctx, "GET", "/api/agents/me/inbox-lite", nil, &inbox); err != nil {
		return nil, err
	}
	for _, row := range inbox {
		if len(out) == maxTasks || row.Status != "todo" && row.Status != "in_progress" {
			continue
		}
		var i issue
		if err := j.own(ctx, "GET", "/api/issues/"+row.ID, nil, &i); err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// work has one issue done. Only what stops the whole run is an error.
func (j *job) work(ctx context.Context, i issue) error {
	if !j.inv.Run.Context.CheckedOut || i.Status != "in_progress" {
		err := j.own(ctx, "POST", "/api/issues/"+i.ID+"/checkout", map[string]any{"agentId": j.inv.Run.Agent,
			"expectedStatuses": []string{"todo", "backlog", "in_progress"}}, nil)
		if no, ok := errors.AsType[*kernelError](err); ok && no.status == http.StatusConflict {
			j.tell("%s: somebody else has it", i.Identifier)
			return nil
		}
		if err != nil {
			return err
		}
	}
	t := task{Issue: i.ID, Status: "refused"}
	defer func() { j.done = append(j.done, t) }()
	hops := HopsIn(i.text())
	if hops >= MaxHops {
		return j.block(ctx, i, fmt.Sprintf("this task was handed on %d times, which is the most; an agent that hands work "+
			"on has to end at one that does it", hops))
	}
	about := map[string]any{"paperclip_company": string(j.inv.Run.Company), "paperclip_heartbeat_seq": j.inv.Run.ID,
		"source": "paperclip", "weftos_hops": hops + 1}
	if j.c.Company != "" {
		about["company_id"] = j.c.Company
	}
	if j.c.Model != "" {
		about["model"] = j.c.Model
	}
	if j.c.Govern == nil || *j.c.Govern {
		why, err := j.govern(ctx, i, &t)
		if err != nil {
			return err
		}
		if why != "" {
			return j.block(ctx, i, why)
		}
	}
	e, err := j.execute(ctx, i, about)
	if err != nil {
		return err
	}
	t.Execution, t.Status, t.Score, t.ChainHash = e.ID, e.Status, e.Score, deref(e.ChainHash)
	j.used, j.model = j.used+max(e.Tokens, 0), cmp.Or(deref(e.Model), j.model)
	if e.Cost != nil && *e.Cost > 0 && *e.Cost < 1e9 {
		j.spent += *e.Cost
	}
	result := cut(j.red.Clean(deref(e.Result)), maxResult)
	if e.Status != "succeeded" {
		return j.block(ctx, i, cmp.Or(cut(j.red.Clean(deref(e.Error)), 2000), result,
			"the kernel answered that the task "+e.Status))
	}
	j.tell("%s: done, score %.2f, %d tokens", i.Identifier, e.Score, e.Tokens)
	return j.own(ctx, "PATCH", "/api/issues/"+i.ID, map[string]any{"status": "done",
		"comment": cmp.Or(result, "Done.")}, nil)
}

// block hands an issue back for a person.
func (j *job) block(ctx context.Context, i issue, why string) error {
	j.tell("%s: blocked: %s", i.Identifier, why)
	return j.own(ctx, "PATCH", "/api/issues/"+i.ID, map[string]any{"status": "blocked", "comment": why,
		"unblockDescriptor": map[string]string{"owner": "board", "action": cut(why, 500)}}, nil)
}

// govern asks the gate about a task, and returns why it should not be done; "": it may.
func (j *job) govern(ctx context.Context, i issue, t *task) (why string, err error) {
	about := map[string]any{"paperclip_company": string(j.inv.Run.Company), "paperclip_heartbeat_seq": j.inv.Run.ID,
		"source": "paperclip",
		"issue":  cmp.Or(i.Identifier, i.ID), "reason": cut(i.Title, 4096)}
	if j.base == "" {
		delete(about, "paperclip_company")
	}
	if j.c.Company != "" {
		about["company_id"] = j.c.Company
	}
	who := j.agent()
	if j.base == "" {
		who = j.inv.Run.Agent // an agent asks about itself
	}
	var d struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	}
	if err := j.kernel(ctx, "POST", "/api/v1/govern", "", map[string]any{"action": "execute_task", "agent_id": who,
		"context": about}, &d); err != nil {
		return "", err
	}
	t.Decision = d.Decision
	switch reason := cut(j.red.Clean(d.Reason), 2000); d.Decision {
	case "permit":
		return "", nil
	case "deny":
		return cmp.Or("The gate denies this task: "+reason, "The gate denies this task"), nil
	case "escalate":
		return "The gate asks a person to approve this task: " + reason, nil
	}
	return "", fmt.Errorf("the kernel's decision is %q; permit, deny and escalate are known", cut(d.Decision, 40))
}

// An execution is what the kernel answers about a task.
type execution struct {
	Result    *string  `json:"result"`
	Score     float64  `json:"score"`
	Tokens    int64    `json:"tokens_used"`
	ChainHash *string  `json:"chain_hash"`
	ID        string   `json:"execution_id"`
	Status    string   `json:"status"`
	Model     *string  `json:"model"`
	Cost      *float64 `json:"cost_usd"`
	Error     *string  `json:"error"`
}

// execute has a task done and waits until it is. The key makes that a repetition is the same task.
func (j *job) execute(ctx context.Context, i issue, about map[string]any) (e execution, err error) {
	wait := j.wait() - j.wait()/10
	key := j.inv.Run.ID + "-" + i.ID
	body := map[string]any{"agent_id": j.agent(), "task": cut(i.text(), maxTask), "context": about,
		"timeout_ms": wait.Milliseconds()}
	if err := j.kernel(ctx, "POST", "/api/v1/execute", key, body, &e); err != nil {
		return e, err
	}
	for e.Status == "queued" || e.Status == "running" || e.Status == "waiting" {
		select {
		case <-ctx.Done():
			return e, context.Cause(ctx)
		case <-time.After(lookEvery):
		}
		if err := j.kernel(ctx, "GET", "/api/v1/executions/"+url.PathEscape(e.ID), "", nil, &e); err != nil {
			return e, err
		}
	}
	if e.Status == "" { // a kernel of the published form answers when it is done
		e.Status = "succeeded"
	}
	return e, nil
}

func (j *job) agent() string { return cmp.Or(j.c.Agent, j.inv.AgentName) }

func (j *job) wait() time.Duration {
	if j.c.Request <= 0 {
		return DefaultRequest
	}
	return min(time.Duration(min(j.c.Request, maxRequest.Milliseconds()))*time.Millisecond, maxRequest)
}

// text is the issue as a task.
func (i issue) text() string {
	if d := deref(i.Description); d != "" {
		return i.Title + "\n\n" + d
	}
	return i.Title
}

// HopsIn returns how often a task was handed on: the kernel writes the context of a task into its text, as JSON.
func HopsIn(text string) (hops int) {
	for line := range strings.Lines(text) {
		v, ok := strings.CutPrefix(strings.TrimSpace(line), `"weftos_hops": `)
		n := 0
		if _, err := fmt.Sscanf(v, "%d", &n); ok && err == nil {
			hops = max(hops, n)
		}
	}
	return hops
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// cut shortens a text to at most n bytes, at a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "…"
}
