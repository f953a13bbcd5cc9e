package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/money"
)

// exchange sends a call and passes the answer on. sent says that the upstream may bill it.
func (c *call) exchange(t target, up dialect, key string, grant money.SpendGrant, m *meter) (sent bool, err error) {
	body, r, bad := c.plan.body(t, up, m.most)
	if bad != nil {
		return false, bad
	}
	o, sent, err := c.open(t, up, key, body, grant.Until, m)
	if err != nil {
		return sent, err
	}
	defer o.close()
	c.w.Header().Set("X-Selvage-Model", t.p.Name+"/"+t.model)
	return true, c.relay(o, r, key, m)
}

// An opened is an answer whose beginning has arrived and is valid.
type opened struct {
	close  func()
	ear    *hearing
	events *stream // of a stream
	first  event   // its first event with data
	heard  heard   // what that says, or the whole answer
	body   []byte  // of an answer in one piece
}

// A failing is one failed attempt.
type failing struct {
	err   *refusal
	again bool          // the same upstream may do better
	sent  bool          // it may bill something
	after time.Duration // as it asks to wait
}

// open calls a target, with retries, until its answer begins.
func (c *call) open(t target, up dialect, key string, body []byte, until time.Time, m *meter) (*opened, bool, error) {
	for n := 1; ; n++ {
		if !until.IsZero() && !c.g.conf.Wall().Before(until) {
			return nil, false, refuse(503, "grant_expired", "The money for this call was set aside too long ago; try again")
		}
		o, f := c.attempt(t, up, key, body, m)
		if f == nil {
			return o, true, nil
		}
		if f.sent || !f.again || n == maxAttempts || c.ctx.Err() != nil {
			return nil, f.sent, f.err
		}
		wait := backoff(n, f.after)
		if c.waited+wait > retryTime {
			return nil, false, f.err
		}
		c.waited += wait
		c.g.conf.Pause(c.ctx, wait)
		if c.ctx.Err() != nil {
			return nil, false, context.Cause(c.ctx)
		}
	}
}

// backoff returns the wait after the n-th attempt, if the upstream asked for a pause of after.
// Callers that were refused at the same time retry at different times: a random part of half a
// step is added to the other half, or to after.
func backoff(n int, after time.Duration) time.Duration {
	half := min(firstWait<<(n-1), maxWait) / 2
	return max(half, min(after, maxWait)) + rand.N(half)
}

var (
	errSlow = refuse(504, "upstream_timeout", "The upstream did not answer in time")
	errIdle = refuse(504, "upstream_stalled", "The upstream stood still in the middle of its answer")
)

// attempt sends a request to a target once. A timer bounds the wait; each piece of the answer
// resets it.
func (c *call) attempt(t target, up dialect, key string, body []byte, m *meter) (*opened, *failing) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	first := c.g.conf.FirstByte
	if !c.plan.stream {
		first *= 2 // all of the answer comes at once
	}
	timer := time.AfterFunc(first, func() { cancel(errSlow) })
	closing := func() { timer.Stop(); cancel(nil) }
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address(t, up, c.plan.stream), bytes.NewReader(body))
	if err != nil {
		closing()
		return nil, &failing{err: refuse(502, "upstream_error", "The upstream's address is not one")}
	}
	c.header(req.Header, t.p, up, key)
	resp, err := c.g.client.Do(req)
	if err != nil {
		defer closing()
		return nil, c.broken(ctx, t, err)
	}
	closing = func() { timer.Stop(); cancel(nil); resp.Body.Close() }
	if resp.StatusCode != http.StatusOK {
		defer closing()
		return nil, c.denied(t, resp, key)
	}
	o := &opened{close: closing, ear: newHearing(up)}
	in := &wound{r: resp.Body, again: func() { timer.Reset(c.g.conf.Idle) }}
	if !c.plan.stream {
		o.body, err = io.ReadAll(io.LimitReader(in, maxAnswer+1))
		if err == nil && len(o.body) > maxAnswer {
			err = errTooLong
		}
		if err == nil {
			o.heard = o.ear.whole(o.body)
		}
		m.count(o.heard.deltas)
		m.learn(o.heard.use)
	} else {
		o.events = newStream(in)
		for err == nil && len(o.first.Data) == 0 {
			o.first, err = o.events.next()
		}
		if err == nil {
			o.heard = o.ear.event(o.first)
		}
	}
	switch {
	case err != nil:
		defer closing()
		return nil, c.broken(ctx, t, errCut{err})
	case o.heard.fault == faultGarbage:
		defer closing()
		return nil, &failing{sent: true, err: refuse(502, "upstream_garbage",
			"The upstream %s sent what is no answer", t.p.Name)}
	case o.heard.fault != "": // it says so itself, before anything else
		defer closing()
		return nil, &failing{again: true, err: refuse(502, "upstream_error", "The upstream %s: %s", t.p.Name,
			hide(o.heard.fault, key))}
	}
	return o, nil
}

// errCut marks an answer that had begun.
type errCut struct{ error }

func (e errCut) Unwrap() error { return e.error }

// broken classifies a failed exchange. If the connection was never made, the call can have cost
// nothing; otherwise it may have.
func (c *call) broken(ctx context.Context, t target, err error) *failing {
	if r, ok := errors.AsType[*refusal](context.Cause(ctx)); ok {
		return &failing{err: r, sent: true}
	}
	if c.ctx.Err() != nil {
		return &failing{err: refuse(499, "client_gone", "The client went away"), sent: true}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &failing{again: true, err: refuse(502, "upstream_unreachable",
			"The upstream %s can not be reached from this node", t.p.Name)}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &failing{again: true, err: refuse(502, "upstream_unreachable", "The upstream %s has no address", t.p.Name)}
	}
	c.g.log.Warn("upstream broke off", "upstream", t.p.Name, "began", errors.As(err, new(errCut)))
	return &failing{sent: true, err: refuse(502, "upstream_broke_off",
		"The upstream %s broke off before it answered", t.p.Name)}
}

// denied classifies an error response. None of them is billed.
func (c *call) denied(t target, resp *http.Response, key string) *failing {
	text := hide(errorText(resp.Body), key)
	say := func(status int, code, format string, args ...any) *refusal {
		return refuse(status, code, format, args...)
	}
	switch s := resp.StatusCode; {
	case s == 401 || s == 403 || s == 402 || s == 407:
		// Its text may quote a part of the key.
		return &failing{err: say(502, "upstream_refused",
			"The upstream %s refused its key or account (%d); the board looks after that", t.p.Name, s)}
	case s == 404 || s == 405:
		return &failing{err: say(404, "model_not_found", "The upstream %s does not know the model %s: %s", t.p.Name,
			t.model, text)}
	case s == 429 || s == 408 || s == 409 || s == 529:
		f := &failing{again: true, after: retryAfter(resp.Header, c.g.conf.Wall()), err: say(429, "upstream_busy",
			"The upstream %s has no room now: %s", t.p.Name, text)}
		f.err.after = int(min(max(f.after, time.Second), time.Minute) / time.Second)
		return f
	case s >= 500 && strings.Contains(text, "too large to process"): // llama.cpp, of a text that its batch can not hold
		return &failing{err: say(413, "upstream_invalid", "%s", text)}
	case s >= 500:
		return &failing{again: true, after: retryAfter(resp.Header, c.g.conf.Wall()), err: say(502, "upstream_error",
			"The upstream %s failed (%d): %s", t.p.Name, s, text)}
	case s == 400 || s == 413 || s == 422:
		return &failing{err: say(s, "upstream_invalid", "%s", text)}
	}
	return &failing{err: say(502, "upstream_error", "The upstream %s answered with status %d", t.p.Name, resp.StatusCode)}
}

// retryAfter reads seconds, milliseconds, or an instant.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("retry-after-ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// errorText returns the error message in an upstream's answer, "" if it is not text.
func errorText(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, maxError))
	var in struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil && len(list) > 0 { // Gemini wraps its errors in a list
		b = list[0]
	}
	if json.Unmarshal(b, &in) != nil {
		return "no reason was given"
	}
	var e upstreamError
	if json.Unmarshal(in.Error, &e) == nil && e.Message != "" {
		return e.Message
	}
	if in.Message != "" {
		return in.Message
	}
	var text string
	if json.Unmarshal(in.Detail, &text) == nil && text != "" {
		return text
	}
	return "no reason was given"
}

// hide redacts a key in an upstream's text and shortens the text.
func hide(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// paths are appended to an upstream's base URL.
var paths = map[dialect]string{chat: "/chat/completions", responses: "/responses", messages: "/v1/messages",
	embeddings: "/embeddings"}

// address returns the URL of a target.
func address(t target, up dialect, stream bool) string {
	if native, ok := googleBase(t.p); ok {
		if up == generate {
			method := ":generateContent"
			if stream {
				method = ":streamGenerateContent?alt=sse"
			}
			return native + "/models/" + url.PathEscape(t.model) + method
		}
		return native + "/openai" + paths[up]
	}
	return t.p.BaseURL + paths[up]
}

// googleBase returns the base URL of an upstream of kind gemini in its own dialect: the address of
// a version of Google's API, without the "/openai" of the other dialect. Another address is of a
// server that supports only the OpenAI dialect.
func googleBase(p money.ModelProvider) (string, bool) {
	base := strings.TrimSuffix(p.BaseURL, "/openai")
	return base, p.Kind == money.ModelGemini && (base != p.BaseURL || strings.HasSuffix(base, "/v1beta") ||
		strings.HasSuffix(base, "/v1alpha"))
}

// header sets the headers of a request to an upstream. Of the client's headers it passes on only
// the beta features in use.
func (c *call) header(h http.Header, p money.ModelProvider, up dialect, key string) {
	setHeader(h, p, key)
	if up == generate && key != "" {
		h.Del("Authorization")
		h.Set("x-goog-api-key", key)
	}
	if c.plan.stream {
		h.Set("Accept", "text/event-stream")
	}
	if p.Kind == money.ModelAnthropic && c.d == messages {
		if beta := betas(c.beta); beta != "" {
			h.Set("anthropic-beta", beta)
		}
	}
}

func setHeader(h http.Header, p money.ModelProvider, key string) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json")
	h.Set("User-Agent", "selvage")
	if p.Kind == money.ModelAnthropic {
		h.Set("anthropic-version", "2023-06-01")
		if key != "" {
			h.Set("x-api-key", key)
		}
		return
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// betas removes the betas that change prices: contexts beyond the listed one, faster tiers,
// tools that run upstream, and tokens of accounts.
func betas(list string) string {
	var keep []string
	for b := range strings.SplitSeq(list, ",") {
		b = strings.TrimSpace(b)
		bad := b == "" || len(b) > 100 || strings.ContainsFunc(b, func(r rune) bool { return r <= ' ' || r > '~' })
		for _, head := range []string{"context-1m", "fast-mode", "web-", "code-execution", "mcp-client", "oauth", "files-api",
			"skills", "compact", "context-management", "advisor"} {
			bad = bad || strings.HasPrefix(b, head)
		}
		if !bad && len(keep) < 32 {
			keep = append(keep, b)
		}
	}
	return strings.Join(keep, ",")
}

// A wound resets a timer with each piece that is read.
type wound struct {
	r     io.Reader
	again func()
}

func (w *wound) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if n > 0 {
		w.again()
	}
	return n, err
}

// write sends bytes to the client without buffering.
func (c *call) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(writeWait))
	if _, err := c.w.Write(b); err != nil {
		return refuse(499, "client_gone", "The client went away")
	}
	if c.plan.stream {
		_ = control.Flush()
	}
	return nil
}

// start writes the headers of an answer.
func (c *call) start(contentType string) {
	h := c.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	c.began = true
}

// relay passes an answer on. r is nil if the answer is not translated.
func (c *call) relay(o *opened, r *request, key string, m *meter) error {
	if !c.plan.stream {
		b := o.body
		if key != "" && bytes.Contains(b, []byte(key)) {
			b = bytes.ReplaceAll(b, []byte(key), []byte("[key]"))
		}
		if r != nil {
			b = newTelling(c.d, r, true, c.g.conf.Wall()).whole(gather(o.heard.deltas), m.settled(c.plan.input, false))
		}
		if c.plan.list {
			b = append(append([]byte("["), b...), ']')
		}
		c.start("application/json")
		return c.write(b)
	}
	c.start("text/event-stream; charset=utf-8")
	var tell telling
	if r != nil {
		tell = newTelling(c.d, r, c.plan.askedUsage, c.g.conf.Wall())
		if err := c.write(tell.begin()); err != nil {
			return err
		}
	}
	e, h := o.first, o.heard
	for {
		m.count(h.deltas)
		m.learn(h.use)
		if err := c.pass(tell, e, h, key); err != nil {
			return err
		}
		if h.fault != "" {
			return refuse(502, "upstream_error", "The upstream broke off: %s", hide(h.fault, key))
		}
		if h.done {
			break
		}
		if m.over() {
			return refuse(502, "output_limit", "The answer is longer than the upstream was asked for; it was cut off")
		}
		var err error
		if e, err = o.events.next(); err != nil {
			if errors.Is(err, io.EOF) && o.ear.ended { // some leave the last word out
				break
			}
			if cause := context.Cause(c.ctx); cause != nil {
				return cause
			}
			return cutShort(err)
		}
		h = o.ear.event(e)
	}
	if tell == nil {
		return nil
	}
	return c.write(tell.end(m.settled(c.plan.input, false)))
}

func cutShort(err error) *refusal {
	if errors.Is(err, context.Canceled) || errors.Is(err, errSlow) { // by the timer, as the call itself goes on
		return errIdle
	}
	return refuse(502, "upstream_broke_off", "The upstream broke off in the middle of its answer")
}

// pass writes one event to the client, unchanged or translated.
func (c *call) pass(tell telling, e event, h heard, key string) error {
	if tell != nil {
		var b []byte
		for _, d := range h.deltas {
			b = append(b, tell.delta(d)...)
		}
		return c.write(b)
	}
	if h.fault != "" || h.bare && !c.plan.askedUsage && c.d == chat {
		return nil
	}
	if key != "" && bytes.Contains(e.Raw, []byte(key)) {
		return c.write(bytes.ReplaceAll(e.Raw, []byte(key), []byte("[key]")))
	}
	return c.write(e.Raw)
}
