package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// HeaderTool names the tool that makes a request, so that the node records which tools
// an agent used.
const HeaderTool = "X-Selvage-Tool"

const (
	headerRun  = "X-Paperclip-Run-Id"
	noCompany  = "companyId is required: give it, or set PAPERCLIP_COMPANY_ID"
	noWorkshop = "This issue has no execution workspace now"
)

// A Caller makes HTTP calls for one client of the tools.
type Caller struct {
	// Transport sends the requests. Redirects are not followed.
	Transport http.RoundTripper
	Base      string // URL of the API without /api, such as http://127.0.0.1:3100
	Key       string // bearer token; "" sends none
	Company   string // default for companyId
	Agent     string // default for agentId
	Run       string // heartbeat run under which the calls are made
	Remote    string // client address, for calls within the process
}

// A refused is an answer of the API with an error status.
type refused struct {
	Text   string          `json:"error"`
	Status int             `json:"status"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`
	plain  bool            // reported as a plain answer, not as an error
}

func (e *refused) Error() string { return e.Text }

// call makes one request for a tool and returns the JSON of the answer; text is returned
// as a JSON string. path must be escaped and begin with /api/.
func (c *Caller) call(ctx context.Context, tool, method, path string, body []byte) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Base, "/")+path, r)
	if err != nil {
		return nil, badArgument{"The path can not be called"}
	}
	req.Header.Set("Accept", "application/json")
	if tool != "" {
		req.Header.Set(HeaderTool, tool)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if c.Run != "" {
		req.Header.Set(headerRun, c.Run)
	}
	req.RemoteAddr = c.Remote
	res, err := c.Transport.RoundTrip(req)
	shown := strings.TrimPrefix(path, "/api")
	if err != nil {
		return nil, fmt.Errorf("%s %s: no answer from the API: %w", method, shown, err)
	}
	defer res.Body.Close()
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		return nil, badArgument{fmt.Sprintf("%s %s is a stream; tools answer once", method, shown)}
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s: the answer broke off: %w", method, shown, err)
	case len(b) > maxAnswer:
		return nil, badArgument{fmt.Sprintf("The answer of %s %s is larger than %d MiB; ask for less, with limit or filters",
			method, shown, maxAnswer>>20)}
	}
	value := json.RawMessage(bytes.TrimSpace(b))
	switch {
	case len(value) == 0:
		value = json.RawMessage("null")
	case strings.HasPrefix(media, "text/"):
		value = encode(string(b))
	case !json.Valid(value):
		return nil, badArgument{fmt.Sprintf("%s %s answers %s, which is not JSON", method, shown, cmp.Or(media, "bytes"))}
	}
	if res.StatusCode/100 != 2 {
		return nil, &refused{fmt.Sprintf("%s %s failed with %d: %s", method, shown, res.StatusCode,
			messageOf(value, res.StatusCode)),
			res.StatusCode, method, shown, value, strings.HasPrefix(tool, ofContract)}
	}
	return value, nil
}

func messageOf(body json.RawMessage, status int) string {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return e.Error
	}
	return http.StatusText(status)
}

// call makes the request or requests of a tool.
func (t *Tool) call(ctx context.Context, c *Caller, args Arguments) (json.RawMessage, error) {
	if err := t.check(args); err != nil {
		return nil, err
	}
	if t.run != nil {
		return t.run(ctx, c, t, args)
	}
	path, err := t.path(ctx, c, args)
	if err != nil {
		return nil, err
	}
	body, err := t.body(args)
	if err != nil {
		return nil, err
	}
	return c.call(ctx, t.Name, t.Method, path, body)
}

// path fills the arguments into the route and its query.
func (t *Tool) path(ctx context.Context, c *Caller, args Arguments) (string, error) {
	path, query := t.Path, url.Values{}
	for _, a := range t.Args {
		value := args.text(a.Name)
		switch a.In {
		case "path":
			if value == "" && a.Name == "companyId" {
				if err := c.learn(ctx); err != nil {
					return "", err
				}
				value = c.Company
			}
			if value == "." || value == ".." || value == "" {
				return "", badArgument{fmt.Sprintf("%s can not be %q", a.Name, value)}
			}
			path = strings.Replace(path, "{"+a.Name+"}", url.PathEscape(value), 1)
			path = strings.Replace(path, "{"+a.Name+"...}", escapeEach(value), 1)
		case "query":
			if value != "" {
				query.Set(a.Name, value)
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// escapeEach escapes each segment of a value.
func escapeEach(value string) string {
	parts := strings.Split(value, "/")
	for i, p := range parts {
		if p == "." || p == ".." {
			p = "_"
		}
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// body returns the JSON body, nil if the call has none.
func (t *Tool) body(args Arguments) ([]byte, error) {
	if t.Method == "GET" {
		return nil, nil
	}
	body, some := map[string]any{}, false
	for name, v := range t.fixed {
		body[name], some = v, true
	}
	for _, a := range t.Args {
		if a.In != "body" || len(args[a.Name]) == 0 {
			continue
		}
		if a.whole {
			return args[a.Name], nil
		}
		body[a.Name], some = args[a.Name], true
	}
	if !some && t.Method == "DELETE" {
		return nil, nil
	}
	return json.Marshal(body)
}

// learn asks the API for the caller's company and agent, if they are not known.
func (c *Caller) learn(ctx context.Context) error {
	if c.Company != "" {
		return nil
	}
	if c.Key == "" {
		return badArgument{noCompany}
	}
	b, err := c.call(ctx, "", "GET", "/api/agents/me", nil)
	if err != nil {
		if _, ok := errors.AsType[*refused](err); ok {
			return badArgument{noCompany}
		}
		return err
	}
	var me struct {
		ID      string `json:"id"`
		Company string `json:"companyId"`
	}
	if json.Unmarshal(b, &me) != nil || me.Company == "" {
		return badArgument{noCompany}
	}
	c.Company, c.Agent = me.Company, cmp.Or(c.Agent, me.ID)
	return nil
}

func checkout(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	agent := args.text("agentId")
	if agent == "" && c.Agent == "" && c.learn(ctx) != nil {
		return nil, badArgument{"agentId is required: give it, or set PAPERCLIP_AGENT_ID"}
	}
	body := map[string]any{"agentId": cmp.Or(agent, c.Agent), "expectedStatuses": []string{"todo", "backlog", "blocked"}}
	if len(args["expectedStatuses"]) > 0 {
		body["expectedStatuses"] = args["expectedStatuses"]
	}
	path, err := t.path(ctx, c, args)
	if err != nil {
		return nil, err
	}
	return c.call(ctx, t.Name, t.Method, path, encode(body))
}

func decide(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	action, ok := map[string]string{"approve": "approve", "reject": "reject", "requestRevision": "request-revision",
		"resubmit": "resubmit"}[args.text("action")]
	if !ok {
		return nil, badArgument{"action is one of approve, reject, requestRevision and resubmit"}
	}
	body := map[string]any{}
	if note := args["decisionNote"]; len(note) > 0 && action != "resubmit" {
		body["decisionNote"] = note
	}
	if payload := args.text("payloadJson"); payload != "" && action == "resubmit" {
		if !json.Valid([]byte(payload)) {
			return nil, badArgument{"payloadJson is not JSON"}
		}
		body["payload"] = json.RawMessage(payload)
	}
	return c.call(ctx, t.Name, t.Method, "/api/approvals/"+url.PathEscape(args.text("approvalId"))+"/"+action,
		encode(body))
}

// apiRequest makes any request below /api.
func apiRequest(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	path, err := apiPath(args.text("path"))
	if err != nil {
		return nil, err
	}
	method := args.text("method")
	switch method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		return nil, badArgument{"method is one of GET, POST, PUT, PATCH and DELETE"}
	}
	var body []byte
	if text := args.text("jsonBody"); text != "" {
		if !json.Valid([]byte(text)) {
			return nil, badArgument{"jsonBody is not JSON"}
		}
		body = []byte(text)
	}
	return c.call(ctx, t.Name, method, path, body)
}

// apiPath refuses paths outside the API: with a host, not below /api, or with "..", also
// escaped.
func apiPath(path string) (string, error) {
	bad := badArgument{"path must start with / and be relative to /api, and must not contain '..'"}
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\#") {
		return "", bad
	}
	u, err := url.ParseRequestURI(path)
	if err != nil || u.Host != "" || u.Scheme != "" || strings.ContainsAny(u.Path, "\\\x00") {
		return "", bad
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if part == ".." || part == "." {
			return "", bad
		}
	}
	out := u.EscapedPath()
	if out != "/api" && !strings.HasPrefix(out, "/api/") {
		out = "/api" + out
	}
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out, nil
}

// A workshop is the part of an issue's execution workspace that tools use.
type workshop struct {
	ID       string            `json:"id"`
	Services []json.RawMessage `json:"runtimeServices"`
}

// contextOf reads the heartbeat context of an issue and its workspace, which may be
// null.
func contextOf(ctx context.Context, c *Caller, t *Tool, args Arguments) (whole, workspace json.RawMessage, w workshop,
	err error) {
	whole, err = c.call(ctx, t.Name, "GET", "/api/issues/"+url.PathEscape(args.text("issueId"))+"/heartbeat-context", nil)
	if err != nil {
		return nil, nil, w, err
	}
	var in struct {
		Workspace json.RawMessage `json:"currentExecutionWorkspace"`
	}
	if err := json.Unmarshal(whole, &in); err != nil {
		return nil, nil, w, fmt.Errorf("heartbeat context: %w", err)
	}
	if workspace = in.Workspace; len(workspace) == 0 {
		workspace = json.RawMessage("null")
	}
	if err := json.Unmarshal(workspace, &w); err != nil {
		return nil, nil, w, fmt.Errorf("execution workspace: %w", err)
	}
	if w.Services == nil {
		w.Services = []json.RawMessage{}
	}
	return whole, workspace, w, nil
}

func workspaceRuntime(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	whole, workspace, w, err := contextOf(ctx, c, t, args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Context   json.RawMessage   `json:"context"`
		Workspace json.RawMessage   `json:"workspace"`
		Services  []json.RawMessage `json:"runtimeServices"`
	}{whole, workspace, w.Services})
}

func controlServices(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	action := args.text("action")
	if action != "start" && action != "stop" && action != "restart" {
		return nil, badArgument{"action is one of start, stop and restart"}
	}
	_, _, w, err := contextOf(ctx, c, t, args)
	if err != nil {
		return nil, err
	}
	if w.ID == "" {
		return nil, badArgument{noWorkshop}
	}
	body := map[string]any{}
	for _, name := range []string{"workspaceCommandId", "runtimeServiceId", "serviceIndex"} {
		if len(args[name]) > 0 {
			body[name] = args[name]
		}
	}
	return c.call(ctx, t.Name, t.Method, "/api/execution-workspaces/"+url.PathEscape(w.ID)+"/runtime-services/"+action,
		encode(body))
}

func waitForService(ctx context.Context, c *Caller, t *Tool, args Arguments) (json.RawMessage, error) {
	wait := defaultWait
	if text := args.text("timeoutSeconds"); text != "" {
		var seconds int
		if json.Unmarshal([]byte(text), &seconds) != nil || seconds <= 0 || time.Duration(seconds)*time.Second > maxWait {
			return nil, badArgument{fmt.Sprintf("timeoutSeconds is a whole number from 1 to %d", maxWait/time.Second)}
		}
		wait = time.Duration(seconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		_, workspace, w, err := contextOf(ctx, c, t, args)
		if err != nil {
			return nil, err
		}
		if w.ID == "" {
			return nil, badArgument{noWorkshop}
		}
		if service := w.ready(args.text("runtimeServiceId"), args.text("serviceName")); service != nil {
			return json.Marshal(struct {
				Workspace json.RawMessage `json:"workspace"`
				Service   json.RawMessage `json:"service"`
			}{workspace, service})
		}
		select {
		case <-ctx.Done():
			return nil, badArgument{fmt.Sprintf("No such service ran within %s", wait)}
		case <-time.After(waitEvery):
		}
	}
}

// ready returns the running service with an ID or name, unless it is unhealthy. Without
// either it returns the first one.
func (w workshop) ready(id, name string) json.RawMessage {
	for _, b := range w.Services {
		var s struct {
			ID     string `json:"id"`
			Name   string `json:"serviceName"`
			Status string `json:"status"`
			Health string `json:"healthStatus"`
		}
		if json.Unmarshal(b, &s) != nil || id != "" && s.ID != id || name != "" && s.Name != name {
			continue
		}
		if s.Status == "running" && s.Health != "unhealthy" {
			return b
		}
	}
	return nil
}
