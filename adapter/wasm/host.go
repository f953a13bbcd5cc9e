package wasm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/inside"
	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/sandbox"
)

// maxAnswer bounds the part of an API's response that is kept, in bytes.
const maxAnswer = 3 << 20

// maxLogged bounds one line that a guest logs, in bytes.
const maxLogged = 16 << 10

// maxTold bounds the result that a guest reports, in bytes; it is stored in the run's row.
const maxTold = 24 << 10

// A route is a method that makes one API request. Fields of the guest's request that the path
// names are put into the path; the others become the body, or the query of a GET.
type route struct {
	method, path string
	// with is added to the body; {agentId}, {companyId} and {runId} are replaced by the run's.
	with map[string]any
}

// routes are the methods that make API requests, with the rights of the agent.
// docs/sandbox-abi.md documents them for authors of guests.
var routes = map[string]route{
	"issue.list":   {"GET", "/api/companies/{companyId}/issues", nil},
	"issue.get":    {"GET", "/api/issues/{id}", nil},
	"issue.create": {"POST", "/api/companies/{companyId}/issues", nil},
	"issue.checkout": {"POST", "/api/issues/{id}/checkout", map[string]any{"agentId": "{agentId}",
		"expectedStatuses": []string{"todo", "backlog", "blocked", "in_review", "in_progress"}}},
	"issue.release":  {"POST", "/api/issues/{id}/release", nil},
	"issue.update":   {"PATCH", "/api/issues/{id}", nil},
	"comment.list":   {"GET", "/api/issues/{id}/comments", nil},
	"comment.create": {"POST", "/api/issues/{id}/comments", nil},
	"agent.me":       {"GET", "/api/agents/me", nil},
	"cost.report": {"POST", "/api/companies/{companyId}/cost-events", map[string]any{"agentId": "{agentId}",
		"heartbeatRunId": "{runId}"}},
	"model.chat":     {"POST", "/llm/v1/chat/completions", nil},
	"model.messages": {"POST", "/llm/anthropic/v1/messages", nil},
	"model.embed":    {"POST", "/llm/v1/embeddings", nil},
	"model.list":     {"GET", "/llm/v1/models", nil},
	"memory.list":    {"GET", "/api/agents/{agentId}/memory", nil},
	"memory.search":  {"GET", "/api/agents/{agentId}/memory", nil},
	"memory.get":     {"GET", "/api/agents/{agentId}/memory/{key}", nil},
	"memory.put":     {"PUT", "/api/agents/{agentId}/memory/{key}", nil},
	"memory.delete":  {"DELETE", "/api/agents/{agentId}/memory/{key}", nil},
	"record.add":     {"POST", "/api/v1/memory", nil},
	"record.search":  {"POST", "/api/v1/memory/search", nil},
	"record.get":     {"GET", "/api/v1/memory/{id}", nil},
	"record.update":  {"PATCH", "/api/v1/memory/{id}", nil},
	"record.forget":  {"DELETE", "/api/v1/memory/{id}", nil},
	"ipc.send":       {"POST", "/api/agents/{to}/messages", nil},
	"ipc.receive":    {"GET", "/api/agents/{agentId}/messages", nil},
	"ipc.take":       {"POST", "/api/agents/{agentId}/messages/take", nil},
}

// named are the fields of the guest's request that paths of routes may contain.
var named = []string{"id", "key", "to"}

// host returns the granted host functions.
func (r *run) host() sandbox.Host {
	all := sandbox.Host{"log": r.log, "run.context": r.context, "run.result": r.result, "api": r.api}
	for name, to := range routes {
		all[name] = func(ctx context.Context, request json.RawMessage) (any, error) { return r.route(ctx, to, request) }
	}
	if len(r.config.FetchHosts) > 0 {
		all["http.fetch"] = sandbox.Fetch(sandbox.Egress{Hosts: r.config.FetchHosts, Private: r.adapter.cfg.Private,
			Before: r.weighed,
			Seen: func(method, host string, status int) {
				r.inv.Log("system", fmt.Sprintf("[selvage] fetch %s %s %d\n", method, host, status))
			}})
	}
	granted := sandbox.Host{}
	for _, name := range []string{"clock.now", "random"} { // every guest has these unless they are denied here
		if !r.granted(name) {
			granted[name] = nil
		}
	}
	for name, f := range all {
		if r.granted(name) {
			granted[name] = r.acting(f)
		}
	}
	return granted
}

// granted reports whether a method is granted: by name, or by a pattern such as "issue.*".
func (r *run) granted(method string) bool {
	if r.config.Grants == nil {
		return true
	}
	return slices.ContainsFunc(r.config.Grants, func(g string) bool {
		group, all := strings.CutSuffix(g, "*")
		return g == method || all && strings.HasPrefix(method, group)
	})
}

// weighed asks the gate about a request that the agent may make: whether it should. A person permits this request, once
// unless it only reads.
func (r *run) weighed(_ context.Context, method string, to *url.URL, request json.RawMessage) error {
	if r.adapter.cfg.Weigh == nil {
		return nil
	}
	// What a query or a user name says can be secret.
	where := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	l := govern.Local{Action: "network.egress", Agent: r.inv.Run.Agent, Company: r.inv.Run.Company, Run: r.inv.Run.ID,
		Target: govern.HostPath(r.inv.Run.Company, to.Hostname()),
		Known:  governance.Context{Outside: true}, Arguments: govern.ArgumentsOf(request),
		Detail: fmt.Sprintf("%.20s %.400s, request of %d bytes", method, where.String(), len(request)),
		Once:   method != http.MethodGet && method != http.MethodHead}
	if err := r.adapter.cfg.Weigh(l); err != nil {
		return &sandbox.HostError{Code: string(sandbox.GovernanceDenied), Message: err.Error(),
			Reason: string(company.DeniedRule)}
	}
	return nil
}

// acting makes a host function fail when the node may no longer act.
func (r *run) acting(f sandbox.HostFunc) sandbox.HostFunc {
	return func(ctx context.Context, request json.RawMessage) (any, error) {
		if !live.MayAct(r.inv) {
			r.lost()
			return nil, &sandbox.HostError{Code: "Failed", Message: "the node's lease ended"}
		}
		return f(ctx, request)
	}
}

func bad(format string, args ...any) error {
	return &sandbox.HostError{Code: "BadRequest", Message: fmt.Sprintf(format, args...)}
}

// log writes a line into the run's log: {"level", "message"}.
func (r *run) log(_ context.Context, request json.RawMessage) (any, error) {
	var in struct{ Level, Message string }
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, bad("want level and message")
	}
	if in.Level == "" {
		in.Level = "info"
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, in.Level) || len(in.Message) > maxLogged {
		return nil, bad("level is debug, info, warn or error, and the message at most %d bytes", maxLogged)
	}
	text := strings.ToValidUTF8(strings.ReplaceAll(in.Message, "\x00", ""), "\uFFFD")
	r.inv.Log("system", "["+in.Level+"] "+secret.NewRedactor(r.secrets).Clean(text)+"\n")
	return nil, nil
}

// context returns which run this is and why it was started. It contains no secret.
func (r *run) context(context.Context, json.RawMessage) (any, error) {
	wake := r.inv.Wake
	if len(wake) == 0 {
		wake = json.RawMessage("{}")
	}
	c := r.inv.Run.Context
	return map[string]any{"agentId": r.inv.Run.Agent, "agentName": r.inv.AgentName, "companyId": r.inv.Run.Company,
		"runId":  r.inv.Run.ID,
		"taskId": c.TaskID, "wakeReason": c.WakeReason, "wake": wake, "memories": r.inv.Memories}, nil
}

// result stores the run's result: {"result", "score", …}. The last call counts.
func (r *run) result(_ context.Context, request json.RawMessage) (any, error) {
	var in struct {
		Result *string  `json:"result"`
		Score  *float64 `json:"score"`
	}
	if err := json.Unmarshal(request, &in); err != nil || in.Score != nil && !(*in.Score >= 0 && *in.Score <= 1) {
		return nil, bad("result is a text, and score a number from 0 to 1")
	}
	if len(request) > maxTold {
		return nil, bad("what is told of a run has at most %d bytes", maxTold)
	}
	r.told, r.toldResult, r.score = slices.Clone(request), in.Result, in.Score
	return nil, nil
}

// route executes a method that makes an API request.
func (r *run) route(ctx context.Context, to route, request json.RawMessage) (any, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(request, &in); err != nil || in == nil {
		return nil, bad("the request is not an object")
	}
	fill := strings.NewReplacer("{agentId}", r.inv.Run.Agent, "{companyId}", string(r.inv.Run.Company), "{runId}",
		r.inv.Run.ID)
	at := fill.Replace(to.path)
	for _, name := range named {
		if !strings.Contains(to.path, "{"+name+"}") {
			continue
		}
		var v string
		if json.Unmarshal(in[name], &v) != nil || v == "" || v == "." || v == ".." {
			return nil, bad("%s is missing", name)
		}
		delete(in, name)
		at = strings.ReplaceAll(at, "{"+name+"}", url.PathEscape(v))
	}
	for k, v := range to.with {
		if in[k] == nil {
			if s, ok := v.(string); ok {
				v = fill.Replace(s)
			}
			in[k], _ = json.Marshal(v) // strings never fail
		}
	}
	if to.method == http.MethodGet {
		q := url.Values{}
		for k, v := range in {
			var s string
			if json.Unmarshal(v, &s) != nil {
				s = string(v)
			}
			q.Set(k, s)
		}
		if len(q) > 0 {
			at += "?" + q.Encode()
		}
		return r.ask(ctx, to.method, at, nil)
	}
	if to.method == http.MethodDelete {
		return r.ask(ctx, to.method, at, nil)
	}
	body, err := json.Marshal(in)
	if err != nil {
		return nil, bad("the request is not an object")
	}
	return r.ask(ctx, to.method, at, body)
}

// api makes any API request: {"method", "path", "body"}.
func (r *run) api(ctx context.Context, request json.RawMessage) (any, error) {
	var in struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Body   json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(request, &in); err != nil {
		return nil, bad("want method, path and body")
	}
	u, err := url.ParseRequestURI(in.Path)
	if err != nil || u.Host != "" || u.Scheme != "" || path.Clean(u.Path) != u.Path ||
		!strings.HasPrefix(u.Path, "/api/") {
		return nil, bad("path must begin with /api/")
	}
	if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, in.Method) {
		return nil, bad("method is GET, POST, PUT, PATCH or DELETE")
	}
	return r.ask(ctx, in.Method, u.RequestURI(), in.Body)
}

// ask makes a request and returns the response, or its refusal as an error.
func (r *run) ask(ctx context.Context, method, uri string, body []byte) (any, error) {
	res, err := r.request(ctx, method, uri, body)
	if err != nil {
		return nil, err
	}
	b := res.body
	if res.status/100 != 2 {
		return nil, refusal(res.status, b)
	}
	if len(b) == 0 {
		return nil, nil
	}
	if !json.Valid(b) {
		return map[string]any{"text": string(b)}, nil
	}
	return json.RawMessage(b), nil
}

// refusal returns the error that a guest gets for a response that is not 2xx.
func refusal(status int, body []byte) error {
	var said struct {
		Error   any    `json:"error"`
		Code    string `json:"code"`
		Details struct {
			Reason string `json:"reason"`
		} `json:"details"`
	}
	text := http.StatusText(status)
	if json.Unmarshal(body, &said) == nil && said.Error != nil {
		switch e := said.Error.(type) {
		case string:
			text = e
		case map[string]any: // the form that model APIs use
			if m, ok := e["message"].(string); ok {
				text = m
			}
			for _, name := range []string{"type", "code"} {
				if c, ok := e[name].(string); ok && (said.Code == "" || company.IsDenial(c)) {
					said.Code = c
				}
			}
		}
	}
	message := fmt.Sprintf("%d: %s", status, text)
	switch {
	case said.Code == company.GovernanceDenied:
		return &sandbox.HostError{Code: string(sandbox.GovernanceDenied), Message: message, Reason: said.Details.Reason}
	case company.IsDenial(said.Code):
		return &sandbox.HostError{Code: string(sandbox.GovernanceDenied), Message: message, Reason: said.Code}
	}
	code := "Failed"
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		code = "BadRequest"
	case http.StatusUnauthorized, http.StatusForbidden:
		code = "Forbidden"
	case http.StatusNotFound:
		code = "NotFound"
	case http.StatusConflict:
		code = "Conflict"
	case http.StatusPaymentRequired:
		code = "BudgetExceeded"
	case http.StatusTooManyRequests:
		code = "TooMany"
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		code = "Unavailable"
	}
	return &sandbox.HostError{Code: code, Message: message}
}

// An answer is what the node's API said.
type answer struct {
	status int
	body   []byte
}

// request passes a request to the node's own handler.
func (r *run) request(ctx context.Context, method, uri string, body []byte) (*answer, error) {
	return r.requestUpTo(ctx, method, uri, body, maxAnswer)
}

func (r *run) requestUpTo(ctx context.Context, method, uri string, body []byte, most int) (*answer, error) {
	c := inside.Caller{API: r.adapter.cfg.API, Token: r.token, Run: r.inv.Run.ID}
	req, err := c.Request(ctx, method, uri, body)
	if err != nil {
		return nil, bad("the path is malformed")
	}
	if method == http.MethodPost {
		r.posts++
		req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", r.inv.Run.ID, r.posts))
	}
	var a answer
	a.status, a.body, err = c.Do(req, most)
	switch {
	case err == nil:
		return &a, nil
	case errors.Is(err, inside.ErrNotReady):
		return nil, &sandbox.HostError{Code: "Unavailable", Message: err.Error()}
	case errors.Is(err, inside.ErrBroken):
		return nil, &sandbox.HostError{Code: "Failed", Message: err.Error()}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, inside.ErrLarge):
		return nil, &sandbox.HostError{Code: "TooLarge", Message: "the answer is larger than a guest may get"}
	}
	return nil, err
}

// content reads raw bytes from the API.
func (r *run) content(ctx context.Context, uri string) ([]byte, error) {
	res, err := r.requestUpTo(ctx, http.MethodGet, uri, nil, sandbox.DefaultModule+1)
	if err != nil {
		return nil, err
	}
	if res.status != http.StatusOK {
		return nil, refusal(res.status, res.body)
	}
	return res.body, nil
}
