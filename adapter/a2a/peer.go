package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/webcall"
)

const (
	cardPath = "/.well-known/agent-card.json"
	version  = "1.0"
)

// A peer is an agent outside: where it is reached, and how.
type peer struct {
	url    string
	rest   bool // the HTTP+JSON binding, not JSON-RPC
	tenant string
}

// What is read of the protocol's objects.
type (
	part struct {
		Text     *string         `json:"text,omitempty"`
		Raw      []byte          `json:"raw,omitempty"`
		URL      string          `json:"url,omitempty"`
		Data     json.RawMessage `json:"data,omitempty"`
		Filename string          `json:"filename,omitempty"`
		Type     string          `json:"mediaType,omitempty"`
	}
	message struct {
		ID      string `json:"messageId"`
		Context string `json:"contextId,omitempty"`
		Task    string `json:"taskId,omitempty"`
		Role    string `json:"role"`
		Parts   []part `json:"parts"`
	}
	artifact struct {
		Name  string `json:"name"`
		Parts []part `json:"parts"`
	}
	task struct {
		ID      string `json:"id"`
		Context string `json:"contextId"`
		Status  struct {
			State   string   `json:"state"`
			Message *message `json:"message"`
		} `json:"status"`
		Artifacts []artifact `json:"artifacts"`
	}
)

// over reports whether nothing more becomes of a task in a state, interrupted whether it waits for somebody.
func over(state string) bool {
	switch state {
	case "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED":
		return true
	}
	return false
}

func interrupted(state string) bool {
	return state == "TASK_STATE_INPUT_REQUIRED" || state == "TASK_STATE_AUTH_REQUIRED"
}

// word returns a state in words.
func word(state string) string {
	return clip(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(state, "TASK_STATE_")), "_", " "), 40)
}

// words returns what a task says in text: its artifacts when it is done, else its status.
func (t task) words() string {
	var all []string
	add := func(parts []part) {
		for _, p := range parts {
			switch {
			case p.Text != nil:
				all = append(all, *p.Text)
			case len(p.Data) > 0:
				all = append(all, "```json\n"+string(p.Data)+"\n```")
			case p.URL != "":
				all = append(all, strings.TrimSpace(p.Filename+" "+p.URL))
			}
		}
	}
	if t.Status.State == "TASK_STATE_COMPLETED" {
		for _, a := range t.Artifacts {
			add(a.Parts)
		}
	}
	if len(all) == 0 && t.Status.Message != nil {
		add(t.Status.Message.Parts)
	}
	return clip(strings.ReplaceAll(strings.ToValidUTF8(strings.Join(all, "\n\n"), "\uFFFD"), "\x00", ""), maxComment)
}

// connect reads the agent's card and chooses how it is called.
func (r *run) connect(ctx context.Context) error {
	at, err := url.Parse(r.conf.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return errors.New("A2A adapter: url is missing or not http(s)")
	}
	if len(r.conf.Headers) > maxHeaders {
		return fmt.Errorf("A2A adapter: headers has more than %d members", maxHeaders)
	}
	if !strings.HasSuffix(at.Path, ".json") {
		at.Path = strings.TrimSuffix(at.Path, "/") + cardPath
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b, err := r.do(ctx, http.MethodGet, at.String(), nil, maxCard)
	if err != nil {
		return fmt.Errorf("A2A adapter: the agent card: %w", err)
	}
	var card struct {
		Name       string `json:"name"`
		Interfaces []struct {
			URL     string `json:"url"`
			Binding string `json:"protocolBinding"`
			Tenant  string `json:"tenant"`
			Version string `json:"protocolVersion"`
		} `json:"supportedInterfaces"`
	}
	if err := json.Unmarshal(b, &card); err != nil {
		return errors.New("A2A adapter: the agent card is not JSON of version 1.0")
	}
	for _, i := range card.Interfaces {
		to, err := url.Parse(i.URL)
		fits := err == nil && (i.Version == "" || i.Version == "1" || strings.HasPrefix(i.Version, "1.")) &&
			(i.Binding == "JSONRPC" || i.Binding == "HTTP+JSON")
		switch {
		case !fits:
			continue
		case to.Scheme != at.Scheme || to.Host != at.Host:
			return fmt.Errorf("A2A adapter: the agent card leads to %s://%s, which is not where the card is; set url to an "+
				"address there", clip(to.Scheme, 10), clip(to.Host, 200))
		}
		r.peer = peer{url: i.URL, rest: i.Binding == "HTTP+JSON", tenant: cmp.Or(r.conf.Tenant, i.Tenant)}
		r.inv.Log("system", "[selvage] agent "+clip(card.Name, 100)+" at "+at.Scheme+"://"+at.Host+"\n")
		return nil
	}
	return errors.New("A2A adapter: the agent card names no interface of version 1.0 with JSONRPC or HTTP+JSON")
}

// do makes one request. Its error has neither the query nor a header, because they may be secret.
func (r *run) do(ctx context.Context, method, to string, body any, most int64) ([]byte, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, to, content)
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	req.Header.Set("Accept", "application/json, application/a2a+json")
	req.Header.Set("A2A-Version", version)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range r.conf.Headers {
		if strings.EqualFold(k, "Host") {
			return nil, errors.New("headers may not set Host")
		}
		req.Header.Set(k, string(v))
	}
	if r.conf.Token != "" {
		req.Header.Set("Authorization", "Bearer "+string(r.conf.Token))
	}
	res, err := r.a.client.Do(req)
	if err != nil {
		if errors.Is(err, webcall.ErrPrivate) {
			return nil, webcall.ErrPrivate
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case err != nil:
		return nil, errors.New("the answer broke off")
	case int64(len(b)) > most:
		return nil, fmt.Errorf("the answer has more than %d bytes", most)
	case res.StatusCode/100 != 2:
		var no struct {
			Error json.RawMessage `json:"error"`
		}
		said := ""
		if json.Unmarshal(b, &no) == nil {
			var why struct {
				Message string `json:"message"`
			}
			_ = json.Unmarshal(no.Error, &why)
			said = why.Message
		}
		return nil, fmt.Errorf("the agent answered %d %s", res.StatusCode, clip(said, 300))
	}
	return b, nil
}

// call calls a method of the protocol by the binding that was chosen.
func (r *run) call(ctx context.Context, method, verb, path string, params map[string]any, out any) error {
	if r.peer.tenant != "" {
		params["tenant"] = r.peer.tenant
	}
	if r.peer.rest {
		to := strings.TrimSuffix(r.peer.url, "/")
		if r.peer.tenant != "" {
			to += "/" + url.PathEscape(r.peer.tenant)
		}
		var body any = params
		if verb == http.MethodGet {
			body = nil
		}
		b, err := r.do(ctx, verb, to+path, body, maxAnswer)
		if err != nil {
			return fmt.Errorf("A2A adapter: %s: %w", method, err)
		}
		return decode(method, b, out)
	}
	b, err := r.do(ctx, http.MethodPost, r.peer.url, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method,
		"params": params}, maxAnswer)
	if err != nil {
		return fmt.Errorf("A2A adapter: %s: %w", method, err)
	}
	var said struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := decode(method, b, &said); err != nil {
		return err
	}
	if said.Error != nil {
		return fmt.Errorf("A2A adapter: %s: the agent refused with %d: %s", method, said.Error.Code,
			clip(said.Error.Message, 500))
	}
	return decode(method, said.Result, out)
}

func decode(method string, b []byte, out any) error {
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("A2A adapter: the answer of %s is not that of version 1.0", method)
	}
	return nil
}

// sendMessage sends a message. A server that answers with a message instead of a task is done.
func (r *run) sendMessage(ctx context.Context, m message) (t task, err error) {
	var said struct {
		Task    *task    `json:"task"`
		Message *message `json:"message"`
	}
	params := map[string]any{"message": m, "configuration": map[string]any{"returnImmediately": true,
		"acceptedOutputModes": []string{"text/plain", "text/markdown", "application/json"}}}
	if err := r.call(ctx, "SendMessage", http.MethodPost, "/message:send", params, &said); err != nil {
		return t, err
	}
	switch {
	case said.Task != nil && said.Task.ID != "":
		return *said.Task, nil
	case said.Message != nil:
		t.Context, t.Status.State, t.Status.Message = said.Message.Context, "TASK_STATE_COMPLETED", said.Message
		return t, nil
	}
	return t, errors.New("A2A adapter: the agent answered with neither a task nor a message")
}

// get reads a task.
func (r *run) get(ctx context.Context, t task) (next task, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err = r.call(ctx, "GetTask", http.MethodGet, "/tasks/"+url.PathEscape(t.ID), map[string]any{"id": t.ID}, &next)
	if err == nil && next.ID != t.ID {
		err = errors.New("A2A adapter: GetTask answered with another task")
	}
	return next, err
}

// cancelTimeout bounds telling an agent that its task is cancelled.
const cancelTimeout = 5 * time.Second

// cancelTask tells the agent that its task is cancelled; whether it heeds that is its own matter.
func (r *run) cancelTask(ctx context.Context, t task) {
	if t.ID == "" || over(t.Status.State) || r.peer.url == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer cancel()
	var next task
	if err := r.call(ctx, "CancelTask", http.MethodPost, "/tasks/"+url.PathEscape(t.ID)+":cancel",
		map[string]any{"id": t.ID}, &next); err != nil {
		r.inv.Log("system", "[selvage] "+r.red.Clean(err.Error())+"\n")
	}
}
