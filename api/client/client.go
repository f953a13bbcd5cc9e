// Package client is a small Go client of the API: it moves on to another node when one
// is gone, repeats what is safe to repeat, and reads its own writes.
package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultAttempts is enough for an election: each node is tried a few times.
	DefaultAttempts = 12
	// firstWait is the wait between rounds over the nodes; it doubles up to maxWait.
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
	// maxAnswer bounds what is read of an answer, in bytes; lists have at most 1,000 rows.
	maxAnswer = 64 << 20
	// maxForeign bounds what an error repeats of a refusal that is not in the API's format,
	// in bytes.
	maxForeign = 200
	// maxEvent bounds one line of an event stream, in bytes.
	maxEvent = 1 << 20
	// DefaultTimeout bounds one attempt; the server gives up after 15 s.
	DefaultTimeout = 20 * time.Second
)

// Config names the nodes and the credential of a client.
type Config struct {
	// Nodes are base URLs such as "http://127.0.0.1:3100"; at least one. The
	// client stays with one until it fails.
	Nodes []string
	// Token is a bearer token: a key of an agent or of the board, or a run's token. Without
	// it, and without a session, a node in local_trusted mode takes the caller for the
	// board.
	Token string
	// Session is the token of a sign-in, as [Client.SignIn] returns it. It is ignored if
	// there is a Token.
	Session string
	// Trust says which certificates are accepted as the nodes'. It is ignored if HTTP is
	// set.
	Trust Trust
	// Run is the heartbeat run under which an agent with a key makes its calls.
	Run string
	// Read is "", "default", "strong" or "stale".
	Read string
	// CutOff is called with each answer of a node that hears no leader, before the answer is
	// returned.
	CutOff func(Standing)
	// Attempts bounds the tries of one call on all nodes together. Default: DefaultAttempts.
	Attempts int
	// Impatient fails at once if the only node can not be reached, because a person waits. A
	// node that answers "not now" is still retried.
	Impatient bool
	// HTTP sends the requests. The default has DefaultTimeout.
	HTTP *http.Client
}

// A Client may be used by several goroutines. It remembers the highest state that an
// answer reflected, and asks each node for at least that.
type Client struct {
	cfg    Config
	http   *http.Client
	stream *http.Client  // without a time-out
	height atomic.Uint64 // raft index

	mu sync.Mutex // guards at
	at int        // index into Nodes
}

// A Standing is what a node that hears no leader reports with its answer.
type Standing struct {
	Node string        // its name
	Age  time.Duration // since it last knew that its state was current
}

// An Error is a refusal by the API.
type Error struct {
	Status    int             `json:"-"`
	Message   string          `json:"error"`
	Code      string          `json:"code,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"`
	RequestID string          `json:"-"` // for searching the node's log
	CutOff    bool            `json:"-"` // the node hears no leader
}

func (e *Error) Error() string {
	s := e.Message
	if len(e.Details) > 0 && e.Message == "Validation error" {
		s += ": " + string(e.Details)
	}
	if e.Status >= 500 {
		s += " (request " + e.RequestID + ")"
	}
	return s
}

// New returns a client. An address without a scheme uses http.
func New(cfg Config) (*Client, error) {
	if len(cfg.Nodes) == 0 {
		return nil, errors.New("client: no node to ask")
	}
	nodes := make([]string, len(cfg.Nodes))
	for i, n := range cfg.Nodes {
		if !strings.Contains(n, "://") {
			n = "http://" + n
		}
		u, err := url.Parse(n)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("client: %q is not the address of a node", cfg.Nodes[i])
		}
		nodes[i] = strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/api")
	}
	cfg.Nodes = nodes
	if cfg.Attempts <= 0 {
		cfg.Attempts = DefaultAttempts
	}
	c := &Client{cfg: cfg, http: cfg.HTTP}
	if c.http == nil {
		transport, err := cfg.Trust.Transport()
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		c.http = &http.Client{Timeout: DefaultTimeout, Transport: transport}
	}
	c.stream = &http.Client{Transport: c.http.Transport}
	return c, nil
}

// Height returns the raft index that the newest answer reflected. Pass it to
// [Client.Since] of another client to read what this one wrote.
func (c *Client) Height() uint64 { return c.height.Load() }

// Since makes later reads reflect at least the given height.
func (c *Client) Since(height uint64) {
	for {
		have := c.height.Load()
		if height <= have || c.height.CompareAndSwap(have, height) {
			return
		}
	}
}

// Get reads path into out, a pointer or nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, nil, out)
}

// Post sends in as JSON. It has its own Idempotency-Key, so that it takes effect once
// even if it is sent several times.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.Do(ctx, http.MethodPost, path, in, out)
}

// Patch sends in as JSON. Like Put and Delete it is retried only if the answer says that
// nothing was done.
func (c *Client) Patch(ctx context.Context, path string, in, out any) error {
	return c.Do(ctx, http.MethodPatch, path, in, out)
}

// Put sends in as JSON.
func (c *Client) Put(ctx context.Context, path string, in, out any) error {
	return c.Do(ctx, http.MethodPut, path, in, out)
}

// Delete deletes what is at path.
func (c *Client) Delete(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodDelete, path, nil, out)
}

// Do makes a call and decodes the answer into out: a pointer, a *[]byte for the raw
// bytes, or nil. Path begins with "/". A refusal is an [*Error]; other errors mean that
// no node answered.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	b, err := c.Raw(ctx, method, path, in)
	if err != nil {
		return err
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("answer of %s %s: %w", method, path, err)
	}
	return nil
}

// Raw makes a call and returns the bytes of the answer.
func (c *Client) Raw(ctx context.Context, method, path string, in any) ([]byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("body of %s %s: %w", method, path, err)
		}
	}
	key := ""
	if method == http.MethodPost {
		key = newKey()
	}
	var last error
	maybe := false
	for try := range c.cfg.Attempts {
		if err := c.pause(ctx, try); err != nil {
			return nil, errors.Join(last, err)
		}
		node := c.node()
		b, status, err := c.once(ctx, node, method, path, body, key)
		if err == nil {
			return b, nil
		}
		if last = err; ctx.Err() != nil || !c.again(method, key, status, err) {
			return nil, afterUnknown(maybe, err)
		}
		maybe = maybe || method != http.MethodGet && unsure(status, err)
		c.leave(node)
	}
	return nil, afterUnknown(maybe, last)
}

// unsure reports whether a failed call may have been executed.
func unsure(status int, err error) bool {
	no, ok := errors.AsType[*Error](err)
	return status == 0 && !notSent(err) || ok && (no.Code == "outcome_unknown" || no.Code == "timeout")
}

// afterUnknown marks a later "nothing was changed" as uncertain if an earlier try of the
// same call may have been executed.
func afterUnknown(maybe bool, err error) error {
	if no, ok := errors.AsType[*Error](err); ok && maybe && no.Code == "no_quorum" {
		no.Code, no.Message = "outcome_unknown",
			"It is not known whether this was done: an earlier try may have been carried out. Now: "+no.Message
	}
	return err
}

// again reports whether a failed call may be retried: it did not reach a node, it is a
// read, it has a key, or a node answered "not now" and that it did nothing.
func (c *Client) again(method, key string, status int, err error) bool {
	safe := method == http.MethodGet || method == http.MethodHead || key != ""
	if status == 0 {
		if notSent(err) {
			return !c.cfg.Impatient || len(c.cfg.Nodes) > 1
		}
		return safe
	}
	if status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
		return false
	}
	no, _ := errors.AsType[*Error](err)
	if no != nil && no.CutOff && no.Code != "behind" && c.cfg.Impatient && len(c.cfg.Nodes) == 1 {
		return false // the node has already waited for a leader
	}
	return safe || no != nil && no.Code == "no_quorum" || no != nil && (no.Code == "no_leader" || no.Code == "busy")
}

// once makes one request. Status is 0 if there was no answer.
func (c *Client) once(ctx context.Context, node, method, path string, body []byte, key string) (b []byte, status int,
	err error) {
	req, err := c.request(ctx, node, method, path, body)
	if err != nil {
		return nil, 0, err
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("answer of %s %s: %w", method, path, err)
	case len(b) > maxAnswer:
		return nil, resp.StatusCode, fmt.Errorf("answer of %s %s is larger than %d bytes", method, path, maxAnswer)
	case resp.StatusCode >= 400:
		return nil, resp.StatusCode, refusal(resp, b)
	}
	if h, err := strconv.ParseUint(resp.Header.Get("X-Selvage-Height"), 10, 64); err == nil {
		c.Since(h)
	}
	if c.cfg.CutOff != nil && cutOff(resp) {
		age, _ := strconv.ParseInt(resp.Header.Get("X-Selvage-Age"), 10, 64)
		name, err := url.PathUnescape(resp.Header.Get("X-Selvage-Node-Name"))
		if err != nil || name == "" {
			name = resp.Header.Get("X-Selvage-Node")
		}
		c.cfg.CutOff(Standing{name, time.Duration(age) * time.Millisecond})
	}
	return b, resp.StatusCode, nil
}

func (c *Client) request(ctx context.Context, node, method, path string, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, node+path, r)
	if err != nil {
		return nil, err
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if body != nil {
		set("Content-Type", "application/json")
	}
	switch {
	case c.cfg.Token != "":
		set("Authorization", "Bearer "+c.cfg.Token)
	case c.cfg.Session != "":
		set("Cookie", sessionCookie+"="+c.cfg.Session)
		set("Origin", node) // a node accepts changes from its own pages only
	}
	set("X-Paperclip-Run-Id", c.cfg.Run)
	set("X-Selvage-Read", c.cfg.Read)
	if h := c.height.Load(); h > 0 && c.cfg.Read != "stale" {
		set("X-Selvage-Height", strconv.FormatUint(h, 10))
	}
	return req, nil
}

func refusal(resp *http.Response, b []byte) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), CutOff: cutOff(resp)}
	_ = json.Unmarshal(b, e)
	if e.Message == "" { // from something between the node and this client
		e.Message = resp.Status
		if text := strings.Join(strings.Fields(string(b)), " "); text != "" {
			e.Message += ": " + text[:min(len(text), maxForeign)]
		}
	}
	return e
}

func cutOff(resp *http.Response) bool { return resp.Header.Get("X-Selvage-Quorum") == "lost" }

// node returns the current node.
func (c *Client) node() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg.Nodes[c.at]
}

// leave moves on to the next node, unless another goroutine already has.
func (c *Client) leave(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Nodes[c.at] == node {
		c.at = (c.at + 1) % len(c.cfg.Nodes)
	}
}

// pause waits before a try, except before the first one at each node.
func (c *Client) pause(ctx context.Context, try int) error {
	if try < len(c.cfg.Nodes) {
		return ctx.Err()
	}
	wait := min(firstWait<<min(try-len(c.cfg.Nodes), 8), maxWait)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// notSent reports whether a request certainly did not reach a node.
func notSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func newKey() string {
	var b [16]byte
	rand.Read(b[:])
	return "go-" + hex.EncodeToString(b[:])
}

// An Event is a change in a company.
type Event struct {
	ID        uint64          `json:"id"` // height; all changes of one command share it
	Company   string          `json:"companyId"`
	Type      string          `json:"type"`
	CreatedAt string          `json:"createdAt"`
	Payload   json.RawMessage `json:"payload"`
}

// Follow calls f with the events of a company above height after (0: from the beginning)
// until ctx ends or f returns an error, which Follow returns. When a node fails it
// resumes at another one. If f has received only a part of a command's events, all of
// them are repeated.
func (c *Client) Follow(ctx context.Context, company string, after uint64, f func(Event) error) error {
	return c.Stream(ctx, "/api/companies/"+url.PathEscape(company)+"/events", after, func(data []byte) error {
		var ev Event
		if err := json.Unmarshal(data, &ev); err != nil {
			return fmt.Errorf("event: %w", err)
		}
		return f(ev)
	})
}

// Stream calls f with the data of each server-sent event of a path, above a height. It
// resumes on any node after a stream that broke, until ctx ends or f returns an error, which
// it returns.
func (c *Client) Stream(ctx context.Context, path string, after uint64, f func(data []byte) error) error {
	for try := 0; ; try++ {
		node := c.node()
		progress, err := c.streamOnce(ctx, node, path, &after, f)
		if stop, ok := errors.AsType[stopped](err); ok {
			return stop.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if no, ok := errors.AsType[*Error](err); ok && no.Status < 500 {
			return err
		}
		if progress {
			try = 0
		}
		if try >= c.cfg.Attempts {
			return err
		}
		c.leave(node)
		if err := c.pause(ctx, try); err != nil {
			return err
		}
	}
}

// stopped wraps the error that f of Follow returned.
type stopped struct{ error }

func (c *Client) streamOnce(ctx context.Context, node, path string, after *uint64,
	f func(data []byte) error) (progress bool, err error) {
	req, err := c.request(ctx, node, http.MethodGet, path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Last-Event-ID", strconv.FormatUint(*after, 10))
	resp, err := c.stream.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
		return false, refusal(resp, b)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxEvent)
	whole, data := uint64(0), []byte(nil)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			whole, _ = strconv.ParseUint(value, 10, 64)
		case name == "data":
			data = []byte(value)
		case lines.Text() == "" && data != nil:
			err := f(data)
			data, progress = nil, true
			if err != nil {
				return progress, stopped{err}
			}
			*after = max(*after, whole)
		}
	}
	return progress, errors.Join(lines.Err(), io.ErrUnexpectedEOF)
}
