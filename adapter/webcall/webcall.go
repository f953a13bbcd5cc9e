// Package webcall runs agents behind a URL: one HTTP request invokes an agent, and its
// response ends the run.
//
// adapterConfig is {"url", "method" (POST), "headers", "timeoutMs" (15000),
// "payloadTemplate", "callback", "callbackTimeoutSec" (900), "callbackUrl"}. The body is the
// template with {{agent.id}}, {{run.id}} and {{company.id}} replaced, plus agentId, runId and
// context. A response of 2xx is a success. With callback true the response does not end the
// run: the body has callback {"url", "token"}, and the run continues until its agent posts
// the outcome there, with the token as bearer. callbackUrl is the API address that the agent
// can reach, if that is not this node's own.
//
// A configuration must not give an agent access to addresses that only the node can reach.
// So addresses that are not public are refused when the connection is made, after names are
// resolved, unless the operator lists them. No proxy is used and no redirect followed.
package webcall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// DefaultTimeout is the timeout of one call, MaxTimeout its bound.
	DefaultTimeout = 15 * time.Second
	MaxTimeout     = 10 * time.Minute
	// DefaultCallback is the timeout of a callback, MaxCallback its bound; lookEvery is how
	// often the run checks for it.
	DefaultCallback = 15 * time.Minute
	MaxCallback     = 24 * time.Hour
	lookEvery       = 200 * time.Millisecond
	// maxAnswer bounds the part of a response that is kept, maxHeaders the headers sent.
	maxAnswer  = entity.MaxExcerpt
	maxHeaders = 64
)

// ErrPrivate refuses an address that is not public.
var ErrPrivate = errors.New("HTTP adapter endpoint URL cannot target private or reserved network addresses")

// Config is what the adapter needs; its zero value works.
type Config struct {
	// Private lists networks that are not public but may be called.
	Private []netip.Prefix
	// For agents that call back: the run's token, the address of this node's API, and the
	// outcome that was posted for a run. Without them no agent can call back.
	Token  func(entity.Run) (string, error)
	APIURL string
	Told   func(entity.Run) (company.Callback, bool)
	Logger *slog.Logger // default: discard
}

// An Adapter calls URLs. It is safe for concurrent use.
type Adapter struct {
	cfg       Config
	client    *http.Client
	live.Runs // cancelling a run aborts its call
}

// New returns an adapter.
func New(cfg Config) *Adapter {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Adapter{cfg: cfg, client: Client(cfg.Private, DefaultTimeout)}
}

// Client returns a client for addresses that are public or in private. It has a connection of
// its own for each call, for which it waits no longer than dial, and follows no redirect.
func Client(private []netip.Prefix, dial time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dial, Control: Guard(private)}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			TLSHandshakeTimeout: dial, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the target of a redirect was not configured
		},
	}
}

// Guard returns a [net.Dialer] Control function that refuses addresses that are neither public
// nor in private.
func Guard(private []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error { return mayReach(private, address) }
}

// mayReach refuses a dialled address that is neither public nor in private.
func mayReach(private []netip.Prefix, address string) error {
	if !sandbox.MayReach(address, private) {
		return ErrPrivate
	}
	return nil
}

// config is the adapterConfig of a call.
type config struct {
	URL      string                `json:"url"`
	Method   string                `json:"method"`
	Headers  map[string]live.Value `json:"headers"`
	Timeout  int64                 `json:"timeoutMs"`
	Template json.RawMessage       `json:"payloadTemplate"`
	Callback bool                  `json:"callback"`
	Wait     float64               `json:"callbackTimeoutSec"`
	Base     string                `json:"callbackUrl"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

// wait returns the timeout of a callback.
func (c config) wait() time.Duration {
	if c.Wait <= 0 {
		return DefaultCallback
	}
	return time.Duration(min(c.Wait, MaxCallback.Seconds()) * float64(time.Second))
}

// secrets returns values of the configuration to redact in the response although they are not
// stored as secrets: headers whose names suggest a secret, with and without their scheme, the
// password in the URL, and query parameters with such names.
func (c config) secrets() (out []string) {
	for k, v := range c.Headers {
		if !process.Sensitive(k) {
			continue
		}
		out = append(out, string(v))
		if _, bare, ok := strings.Cut(string(v), " "); ok {
			out = append(out, bare)
		}
	}
	if to, err := url.Parse(c.URL); err == nil {
		if password, ok := to.User.Password(); ok {
			out = append(out, password)
		}
		for k, list := range to.Query() {
			if process.Sensitive(k) {
				out = append(out, list...)
			}
		}
	}
	return out
}

// Invoke makes the call and waits for the response, or the callback.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed",
			Error: "The agent's adapterConfig is malformed"}
	}
	limit, source := DefaultTimeout, "default"
	if c.Timeout > 0 {
		limit, source = min(time.Duration(min(c.Timeout, MaxTimeout.Milliseconds()))*time.Millisecond, MaxTimeout), "config"
	}
	whole := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cancelled := errors.New("cancelled")
	defer a.Begin(inv.Run.ID, func() { stop(cancelled) })()
	late := errors.New("timeout")
	timer := time.AfterFunc(limit, func() { stop(late) }) // for the response; reset for a callback
	defer timer.Stop()
	// The watch lasts until the whole body has arrived, which may take any time.
	lost := errors.New("the node may not act any more")
	defer live.Watch(ctx, inv, func() { stop(lost) })()
	if !live.MayAct(inv) {
		stop(lost)
	}
	back, token, err := a.back(inv, c)
	if err != nil {
		return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed", Error: err.Error()}
	}
	red := secret.NewRedactor(slices.Concat(inv.Secrets, c.secrets(), []string{token}))
	out, answer, err := a.call(ctx, inv, c, back, red)
	var told *company.Callback
	if err == nil && back != nil {
		if limit = c.wait(); timer.Stop() {
			timer.Reset(limit)
		}
		inv.Log("system", "[selvage] accepted; waiting for the callback\n")
		told, err = a.await(ctx, inv.Run)
	}
	if told != nil {
		out.Status, out.Usage = told.Status, told.Usage
		if told.Status != entity.RunSucceeded {
			err = errors.New(red.Clean(cmp.Or(told.Error, "The agent told that it failed")))
		}
	}
	stopReason := "completed"
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(cause, cancelled):
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case errors.Is(cause, late):
		out.Status, out.ErrorCode, stopReason = entity.RunTimedOut, "timeout", "timeout"
		out.Error = fmt.Sprintf("Timed out after %v", limit)
	case errors.Is(cause, lost), whole.Err() != nil:
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunInterrupted, "node_lost", "The node stopped the run",
			"interrupted"
	default:
		out.Status, out.ErrorCode, out.Error, stopReason = entity.RunFailed, "adapter_failed", err.Error(), "adapter_failed"
	}
	empty := ""
	out.Stdout, out.Stderr = &answer, &empty
	result := map[string]any{"stopReason": stopReason, "timeoutFired": stopReason == "timeout", "timeoutSource": source,
		"timeoutConfigured": source == "config", "effectiveTimeoutMs": limit.Milliseconds(),
		"effectiveTimeoutSec": int64(limit.Seconds())}
	if told != nil {
		result["calledBack"], result["summary"] = true, red.Clean(told.Summary)
		if b := red.CleanJSON(told.Result); len(b) > 0 {
			result["result"] = b
		}
	}
	out.Result, _ = json.Marshal(result) // never fails
	return out
}

// back returns where the agent has to call back, nil if it has not to.
func (a *Adapter) back(inv company.Invocation, c config) (back map[string]string, token string, err error) {
	if !c.Callback {
		return nil, "", nil
	}
	if a.cfg.Token == nil || a.cfg.Told == nil {
		return nil, "", errors.New("HTTP adapter: agents can not call back to this node")
	}
	base, err := url.Parse(cmp.Or(c.Base, a.cfg.APIURL))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, "", errors.New("HTTP adapter callbackUrl is not http(s)")
	}
	if token, err = a.cfg.Token(inv.Run); err != nil {
		return nil, "", errors.New("HTTP adapter: no token could be made for the run")
	}
	return map[string]string{"url": strings.TrimSuffix(base.String(), "/") + "/api/heartbeat-runs/" + inv.Run.ID +
		"/callback", "token": token}, token, nil
}

// await waits until the outcome of a run is posted.
func (a *Adapter) await(ctx context.Context, run entity.Run) (*company.Callback, error) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		if told, ok := a.cfg.Told(run); ok {
			return &told, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-t.C:
		}
	}
}

// call sends the request. Its error contains neither the query nor a header, because they may
// be secret.
func (a *Adapter) call(ctx context.Context, inv company.Invocation, c config, back map[string]string,
	red *secret.Redactor) (out company.Outcome, answer string, err error) {
	to, err := url.Parse(c.URL)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return out, "", errors.New("HTTP adapter endpoint URL is missing or not http(s)")
	}
	body, err := payload(inv, c.Template, back)
	if err != nil {
		return out, "", err
	}
	req, err := http.NewRequestWithContext(ctx, strings.ToUpper(cmp.Or(c.Method, "POST")), to.String(),
		bytes.NewReader(body))
	if err != nil {
		return out, "", errors.New("HTTP adapter method is not one")
	}
	req.Header.Set("Content-Type", "application/json")
	if len(c.Headers) > maxHeaders {
		return out, "", fmt.Errorf("HTTP adapter has more than %d headers", maxHeaders)
	}
	for k, v := range c.Headers {
		if strings.EqualFold(k, "Host") {
			return out, "", errors.New("HTTP adapter may not set the Host header")
		}
		req.Header.Set(k, string(v))
	}
	inv.Log("system", "[selvage] "+req.Method+" "+to.Scheme+"://"+to.Host+"\n")
	note, _ := json.Marshal(map[string]any{"adapterType": inv.Run.AdapterType, "method": req.Method,
		"host": to.Host}) // never fails
	inv.Report(company.Report{Events: []company.ReportEvent{{Type: "adapter.invoke", Level: "info",
		Message: "adapter invocation", Payload: note}}})
	res, err := a.client.Do(req)
	if err != nil {
		if errors.Is(err, ErrPrivate) {
			return out, "", ErrPrivate
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL
		}
		return out, "", errors.New(red.Clean("HTTP adapter request failed: " + err.Error()))
	}
	defer res.Body.Close()
	kept, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	answer = strings.ToValidUTF8(strings.ReplaceAll(string(kept), "\x00", ""), "\uFFFD")
	answer = red.Clean(answer)
	if err != nil {
		return out, answer, errors.New("HTTP adapter answer broke off")
	}
	if answer != "" {
		inv.Log("stdout", answer)
	}
	if res.StatusCode/100 != 2 {
		return out, answer, fmt.Errorf("HTTP adapter endpoint answered %d", res.StatusCode)
	}
	out.Status = entity.RunSucceeded
	return out, answer, nil
}

// payload returns the template with placeholders replaced, plus the members that every agent
// gets.
func payload(inv company.Invocation, template json.RawMessage, back map[string]string) ([]byte, error) {
	body := map[string]any{}
	if len(template) > 0 && string(template) != "null" {
		d := json.NewDecoder(bytes.NewReader(template))
		d.UseNumber() // keeps numbers as they were written
		if err := d.Decode(&body); err != nil || body == nil {
			return nil, errors.New("HTTP adapter payloadTemplate is not an object")
		}
	}
	body, _ = filled(body, inv.Fill()).(map[string]any)
	body["agentId"], body["runId"], body["context"] = inv.Run.Agent, inv.Run.ID, json.RawMessage(inv.Wake)
	if back != nil {
		body["callback"] = back
	}
	return json.Marshal(body)
}

func filled(v any, fill *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return fill.Replace(v)
	case []any:
		for i := range v {
			v[i] = filled(v[i], fill)
		}
	case map[string]any:
		for k := range v {
			v[k] = filled(v[k], fill)
		}
	}
	return v
}
