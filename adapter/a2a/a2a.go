// Package a2a runs agents outside the mesh that speak the Agent2Agent protocol 1.0: the run's issue is a task there,
// and what comes of it is written on the issue.
//
// adapterConfig is {"url", "tenant", "token", "headers", "message", "timeoutSec" (900)}. url is the address of the
// agent, or of its card. The agent's own interface must be at the same scheme and host as the card, so that a card can
// not send the token elsewhere. message is the first message, with {{issue.title}}, {{issue.description}} and the
// placeholders of other adapters filled in; unless given it is the issue's title and description.
//
// A task that wants to know something blocks the issue with its question. The next run sends what people commented on
// the issue since to the same task. Addresses that are not public are refused as by the http adapter.
package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
)

const (
	// DefaultTimeout is how long a run waits for its task, MaxTimeout the most that it may.
	DefaultTimeout = 15 * time.Minute
	MaxTimeout     = 24 * time.Hour
	// callTimeout bounds one request. A server that does not answer at once may hold message/send until the task is over,
	// so that one has the run's own time.
	callTimeout = 30 * time.Second
	// firstLook and lastLook are the waits between looks at a task; each is half as long again as the one before.
	firstLook = 250 * time.Millisecond
	lastLook  = 5 * time.Second
	// maxLost bounds the looks in a row that fail.
	maxLost = 5
	// maxCard and maxAnswer bound what is read, maxComment what is written on an issue.
	maxCard    = 1 << 20
	maxAnswer  = 16 << 20
	maxComment = 150_000
	// maxFiles bounds the files of a task that are attached to the issue, maxFile each of them.
	maxFiles = 16
	maxFile  = 8 << 20
	// maxHeaders bounds the configured headers.
	maxHeaders = 64
)

// Config is what the adapter needs.
type Config struct {
	// API is the node's own handler, nil while it opens, and Token the token of a run for it.
	API   func() http.Handler
	Token func(entity.Run) (string, error)
	// Private lists networks that are not public but may be called.
	Private []netip.Prefix
	Logger  *slog.Logger // default: discard
}

// An Adapter gives runs to agents outside. It is safe for concurrent use.
type Adapter struct {
	cfg       Config
	client    *http.Client
	live.Runs // cancelling a run cancels its task
}

// New returns an adapter.
func New(cfg Config) *Adapter {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Adapter{cfg: cfg, client: webcall.Client(cfg.Private, callTimeout)}
}

// config is the adapterConfig.
type config struct {
	URL     string                `json:"url"`
	Tenant  string                `json:"tenant"`
	Token   live.Value            `json:"token"`
	Headers map[string]live.Value `json:"headers"`
	Message string                `json:"message"`
	Timeout float64               `json:"timeoutSec"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

// secrets returns the values of the configuration that must not be shown.
func (c config) secrets() (out []string) {
	if c.Token != "" {
		out = append(out, string(c.Token))
	}
	for _, v := range c.Headers {
		if len(v) >= 8 {
			out = append(out, string(v))
		}
		if _, bare, ok := strings.Cut(string(v), " "); ok && len(bare) >= 8 {
			out = append(out, bare)
		}
	}
	return out
}

func (c config) timeout() time.Duration {
	if c.Timeout <= 0 {
		return DefaultTimeout
	}
	return time.Duration(min(c.Timeout, MaxTimeout.Seconds()) * float64(time.Second))
}

// session is what the next run on the same issue needs.
type session struct {
	Task    string `json:"taskId"`
	Context string `json:"contextId"`
	State   string `json:"state"`
}

// A run is one invocation.
type run struct {
	a     *Adapter
	inv   company.Invocation
	conf  config
	red   *secret.Redactor
	token string // for the node's own API
	peer  peer
}

// Invoke gives the run's issue to the agent outside, waits, and writes on the issue what came of it.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) (out company.Outcome) {
	r := &run{a: a, inv: inv}
	if err := json.Unmarshal(inv.Config, &r.conf); err != nil {
		return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed",
			Error: "The agent's adapterConfig is malformed"}
	}
	whole := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cancelled, late, lost := errors.New("cancelled"), errors.New("timeout"), errors.New("the node may not act any more")
	defer a.Begin(inv.Run.ID, func() { stop(cancelled) })()
	limit := r.conf.timeout()
	defer time.AfterFunc(limit, func() { stop(late) }).Stop()
	defer live.Watch(ctx, inv, func() { stop(lost) })()
	if !live.MayAct(inv) {
		stop(lost)
	}
	var err error
	if r.token, err = a.cfg.Token(inv.Run); err != nil {
		return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed",
			Error: "A2A adapter: no token could be made for the run"}
	}
	r.red = secret.NewRedactor(append(append([]string{r.token}, inv.Secrets...), r.conf.secrets()...))
	t, err := r.work(ctx)
	text := r.red.Clean(t.words())
	empty := ""
	out.Stdout, out.Stderr = &text, &empty
	if len(text) > entity.MaxExcerpt {
		*out.Stdout = strings.ToValidUTF8(text[:entity.MaxExcerpt], "")
	}
	stopReason := "completed"
	switch cause := context.Cause(ctx); {
	case err == nil:
		out.Status = entity.RunSucceeded
	case errors.Is(cause, cancelled):
		r.cancelTask(whole, t)
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case errors.Is(cause, late):
		r.cancelTask(whole, t)
		out.Status, out.ErrorCode, stopReason = entity.RunTimedOut, "timeout", "timeout"
		out.Error = fmt.Sprintf("Timed out after %v", limit)
	case errors.Is(cause, lost), whole.Err() != nil:
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunInterrupted, "node_lost", "The node stopped the run",
			"interrupted"
	default:
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunFailed, "adapter_failed", r.red.Clean(err.Error()),
			"adapter_failed"
	}
	if t.ID != "" {
		out.SessionID = t.ID
		out.SessionParams, _ = json.Marshal(session{t.ID, t.Context, t.Status.State}) // strings can be encoded
	}
	out.Result, _ = json.Marshal(map[string]any{"stopReason": stopReason, "taskId": t.ID, "taskState": t.Status.State,
		"result": text[:min(len(text), 4000)]}) // likewise
	return out
}

// work does the run's work. The task that it returns is what is known of it, also with an error.
func (r *run) work(ctx context.Context) (t task, err error) {
	issue := r.inv.Run.Context.Issue()
	if issue == "" {
		r.inv.Log("system", "[selvage] the run is about no issue: there is nothing to give to the agent outside\n")
		return t, nil
	}
	i, err := r.take(ctx, issue)
	if err != nil || i.over() {
		return t, err
	}
	if err := r.connect(ctx); err != nil {
		return t, err
	}
	if t, err = r.send(ctx, i); err != nil {
		return t, err
	}
	if t, err = r.await(ctx, t); err != nil {
		return t, err
	}
	return t, r.leave(ctx, i, t)
}

// send sends the issue, or what was said about it since, to the agent.
func (r *run) send(ctx context.Context, i issue) (task, error) {
	m := message{ID: r.inv.Run.ID, Role: "ROLE_USER"}
	var was session
	if s := r.inv.Resume; s != nil && len(s.Params) > 0 {
		_ = json.Unmarshal(s.Params, &was) // one that is malformed begins afresh
	}
	text := ""
	if was.Task != "" {
		m.Context = was.Context
		if !over(was.State) {
			m.Task = was.Task
		}
		comments, err := r.comments(ctx, i)
		if err != nil {
			return task{}, err
		}
		text = comments
	}
	if text == "" && m.Task != "" { // nothing new was said: the task may go on by itself
		t := task{ID: was.Task, Context: was.Context}
		return r.get(ctx, t)
	}
	if text == "" {
		text = i.Title + "\n\n" + i.Description
		if r.conf.Message != "" {
			text = strings.NewReplacer("{{issue.title}}", i.Title, "{{issue.description}}", i.Description,
				"{{issue.identifier}}", i.Identifier).Replace(r.inv.Fill().Replace(r.conf.Message))
		}
	}
	text = strings.TrimSpace(text)
	m.Parts = []part{{Text: &text}}
	return r.sendMessage(ctx, m)
}

// await looks at a task until it rests.
func (r *run) await(ctx context.Context, t task) (task, error) {
	wait, lost, told := firstLook, 0, ""
	for {
		if t.Status.State != told {
			told = t.Status.State
			r.inv.Log("system", "[selvage] task "+clip(t.ID, 100)+": "+word(told)+"\n")
		}
		if over(told) || interrupted(told) {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return t, context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(wait*3/2, lastLook)
		next, err := r.get(ctx, t)
		switch {
		case err == nil:
			t, lost = next, 0
		case ctx.Err() != nil:
			return t, context.Cause(ctx)
		default:
			if lost++; lost == maxLost {
				return t, err
			}
		}
	}
}

// leave writes on the issue what came of its task.
func (r *run) leave(ctx context.Context, i issue, t task) error {
	text := r.red.Clean(t.words())
	switch {
	case t.Status.State == "TASK_STATE_COMPLETED":
		if err := r.attach(ctx, i, t); err != nil {
			return err
		}
		if text == "" {
			text = "Done. The agent outside said nothing about it."
		}
		return r.update(ctx, i, "done", text)
	case interrupted(t.Status.State):
		if text == "" {
			text = "The agent outside wants to know something, and does not say what."
		}
		return r.update(ctx, i, "blocked", text)
	}
	return fmt.Errorf("A2A adapter: the task is %s: %s", word(t.Status.State), clip(text, 1000))
}

func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
