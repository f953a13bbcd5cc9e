package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Purse reserves and settles the money of calls.
type Purse interface {
	// Reserve reserves the worst-case cost of a call. A *ledger.Refusal says that there is not
	// enough money; any other error, that this is unknown now.
	Reserve(ctx context.Context, ask money.SpendAsk) (money.SpendGrant, error)
	// Settle reports the cost of a call; it is called once for each grant.
	Settle(ctx context.Context, g money.SpendGrant, use money.SpendUse) error
}

// Config is what a gateway needs. View, Holds and Self are required.
type Config struct {
	// View runs f on this node's state.
	View func(f func(*ledger.Tx) error) error
	// Holds reports whether this node may act for its runs now.
	Holds func() bool
	// Self is this node's ID.
	Self string
	// Purse pays for calls. nil: every call is refused.
	Purse Purse
	// Weigh asks the gate whether a call should be made; a *ledger.Refusal says no. nil: every call should.
	Weigh func(govern.Local) error
	// Spent is told what a call has cost the run that made it. Optional.
	Spent func(run string, cost core.Money)
	// Mesh is bound into sealed keys; Open decrypts them, nil on a node without a data key.
	Mesh string
	Open func(tx *ledger.Tx, aad, sealed []byte) ([]byte, error)
	// Note records that a run used a secret of its company. Optional.
	Note func(ctx context.Context, run entity.Run, use secret.SecretUse) error

	// FirstByte and Idle bound the waits for an upstream; default 5 and 2 minutes.
	FirstByte, Idle time.Duration
	// Pause waits between attempts; the default sleeps. For tests.
	Pause func(ctx context.Context, d time.Duration)
	// Wall is this node's clock, whose time answers have; default time.Now.
	Wall   func() time.Time
	Logger *slog.Logger // default: discards
}

// A Gateway serves the model calls of the runs of one node. Make one with [New];
// a goroutine watches the calls until Close.
type Gateway struct {
	conf   Config
	log    *slog.Logger
	client *http.Client
	slots  chan struct{} // one token a call
	stop   context.CancelFunc
	alive  context.Context // until Close
	wg     sync.WaitGroup

	// What is known of the mesh; methods of the gateway, but for tests.
	look  func(Caller) (scene, error)
	sight func(Caller) (scene, error) // of a call without a run
	may   func(Caller) error
	keyOf func(ctx context.Context, p money.ModelProvider, run entity.Run) (string, error)

	mu     sync.Mutex // guards what follows
	calls  map[*call]struct{}
	busy   chan struct{}   // has a token when a call may have begun
	noted  map[string]bool // uses of secrets that were noted, see firstUse
	models map[string]modelList
}

// New returns a gateway; the caller closes it.
func New(conf Config) (*Gateway, error) {
	if conf.View == nil || conf.Holds == nil || conf.Self == "" {
		return nil, errors.New("llm: View, Holds and Self are required")
	}
	conf.FirstByte, conf.Idle = cmp.Or(conf.FirstByte, defaultFirstByte), cmp.Or(conf.Idle, defaultIdle)
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	if conf.Pause == nil {
		conf.Pause = pause
	}
	if conf.Wall == nil {
		conf.Wall = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &Gateway{conf: conf, log: conf.Logger, slots: make(chan struct{}, maxCalls), stop: stop, alive: ctx,
		calls: map[*call]struct{}{}, busy: make(chan struct{}, 1), noted: map[string]bool{}, models: map[string]modelList{},
		client: &http.Client{
			Transport: &http.Transport{
				DialContext:         (&net.Dialer{Timeout: dialWait, KeepAlive: 30 * time.Second}).DialContext,
				TLSHandshakeTimeout: dialWait, ForceAttemptHTTP2: true, DisableCompression: true,
				MaxIdleConns: maxCalls, MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
				MaxResponseHeaderBytes: maxError,
			},
			// A redirect target would be sent the key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	g.look, g.sight, g.may, g.keyOf = g.readScene, g.readSight, g.checkRun, g.openKey
	g.wg.Go(func() { g.watch(ctx) })
	return g, nil
}

// Close ends and settles all calls, and waits until they are.
func (g *Gateway) Close() error {
	g.stop()
	g.wg.Wait()
	g.client.CloseIdleConnections()
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// watch ends calls whose runs have ended, or whose node may no longer act. It sleeps while
// there are no calls.
func (g *Gateway) watch(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-g.busy:
		}
		for pause(ctx, lookEvery); ctx.Err() == nil; pause(ctx, lookEvery) {
			calls := g.open()
			if len(calls) == 0 {
				break
			}
			for _, c := range calls {
				if err := g.may(c.who); err != nil {
					c.cancel(err)
				}
			}
		}
	}
	for _, c := range g.open() {
		c.cancel(refuse(503, "closing", "The node is closing"))
	}
}

func (g *Gateway) open() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*call, 0, len(g.calls))
	for c := range g.calls {
		out = append(out, c)
	}
	return out
}

// Refuse answers a request without a valid caller, in the dialect of its path.
func Refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	writeRefusal(w, dialectOf(r.URL.Path), &refusal{status: status, code: code, message: message})
}

func dialectOf(path string) dialect {
	switch {
	case strings.HasPrefix(path, "/llm/anthropic"):
		return messages
	case strings.HasPrefix(path, "/llm/gemini"):
		return generate
	case strings.HasSuffix(path, "/responses"):
		return responses
	case strings.HasSuffix(path, "/embeddings"):
		return embeddings
	}
	return chat
}

func writeRefusal(w http.ResponseWriter, d dialect, err error) {
	r := asRefusal(err)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if r.after > 0 {
		h.Set("Retry-After", strconv.Itoa(r.after))
	} else if r.status == 503 || r.status == 429 {
		h.Set("Retry-After", "1")
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(writeWait))
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body(d))
}

// asRefusal converts any error to an answer.
func asRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if l, ok := errors.AsType[*ledger.Refusal](err); ok {
		r := refuse(402, cmp.Or(l.ErrCode, "budget_refused"), "%s", l.Message)
		if l.ErrCode == "run_not_running" || l.ErrCode == "agent_stopped" || l.ErrCode == company.GovernanceDenied {
			r.status = 403
		}
		if len(l.Detail) > 0 {
			r.detail = l.Detail
		}
		return r
	}
	return refuse(503, "unavailable", "The call can not be made now; try again")
}

// Serve answers one request below /llm. The caller's token has been checked.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, who Caller) {
	d := dialectOf(r.URL.Path)
	path := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/llm"), "/")
	if rest, ok := strings.CutPrefix(path, "/gemini"); ok {
		g.serveGenerate(w, r, who, rest)
		return
	}
	switch r.Method + " " + path {
	case "POST /v1/chat/completions", "POST /v1/responses", "POST /v1/embeddings", "POST /anthropic/v1/messages":
		g.serveCall(w, r, who, d, nil)
	case "POST /anthropic/v1/messages/count_tokens":
		g.serveCount(w, r, who)
	case "GET /v1/models", "GET /anthropic/v1/models":
		g.serveModels(w, r, who, d)
	case "HEAD /anthropic", "HEAD /v1", "GET /anthropic", "GET /v1":
		w.WriteHeader(http.StatusOK) // clients look whether anybody is here
	default:
		if id, ok := strings.CutPrefix(path, "/v1/models/"); ok && r.Method == "GET" {
			g.serveModel(w, r, who, d, id)
			return
		}
		writeRefusal(w, d, refuse(404, "not_found", "The model gateway has no %s %s", r.Method, r.URL.Path))
	}
}

// readBody reads a request's body and keeps the connection usable.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyWait))
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = control.SetReadDeadline(time.Time{})
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, refuse(413, "too_large", "A request has at most %d bytes", maxBody)
	}
	if err != nil {
		return nil, invalid("The request broke off")
	}
	return b, nil
}

// A call is one model request in progress.
type call struct {
	g      *Gateway
	who    Caller
	d      dialect // of the client
	plan   *plan
	body   []byte // that the gate weighs; nil: the node calls for itself
	scene  scene
	w      http.ResponseWriter
	ctx    context.Context // ends with the client, its run, or its time
	cancel context.CancelCauseFunc
	beta   string        // anthropic-beta of the client
	waited time.Duration // between attempts
	began  bool          // bytes went to the client
}

// serveCall serves one model request. shape completes its body where the dialect has parts of
// the request in the path.
func (g *Gateway) serveCall(w http.ResponseWriter, r *http.Request, who Caller, d dialect,
	shape func([]byte) ([]byte, *refusal)) {
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	default:
		writeRefusal(w, d, refuse(503, "overloaded", "This node makes %d model calls at once already; try again", maxCalls))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		writeRefusal(w, d, err)
		return
	}
	if shape != nil {
		var bad *refusal
		if body, bad = shape(body); bad != nil {
			writeRefusal(w, d, bad)
			return
		}
	}
	p, bad := planOf(d, body)
	if bad != nil {
		writeRefusal(w, d, bad)
		return
	}
	ctx, done := context.WithTimeoutCause(r.Context(), maxCall, refuse(504, "timeout", "A call takes at most %s", maxCall))
	defer done()
	c := &call{g: g, who: who, d: d, plan: p, body: body, w: w, beta: strings.Join(r.Header.Values("anthropic-beta"), ",")}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	g.mu.Lock()
	g.calls[c] = struct{}{}
	select {
	case g.busy <- struct{}{}:
	default:
	}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.calls, c)
		g.mu.Unlock()
	}()
	if c.scene, err = g.look(who); err == nil {
		err = c.do()
	}
	switch {
	case err == nil || r.Context().Err() != nil: // done, or nobody is left to tell
	case c.began:
		_ = c.write(asRefusal(err).event(d))
	default:
		writeRefusal(w, d, err)
	}
}

// weigh asks the gate about a call of a run to one upstream. What a person permits is this call with this body.
func (c *call) weigh(t target) error {
	if c.g.conf.Weigh == nil || c.body == nil {
		return nil
	}
	return c.g.conf.Weigh(govern.Local{Action: "model.call", Agent: c.who.Agent, Company: c.who.Company, Run: c.who.Run,
		Target: govern.ModelPath(c.who.Company, t.p.Name, t.model), Arguments: govern.ArgumentsOf(c.body),
		Detail: fmt.Sprintf("model %.200q, %d bytes of messages and settings", c.plan.model, len(c.body))})
}

// do calls the targets in order until one answers. Where the access policy of the resource tree keeps the agent from
// one, the next is asked; what a rule says holds for all.
func (c *call) do() error {
	targets := c.scene.targetsOf(c.plan.model)
	if len(targets) == 0 {
		return refuse(404, "model_not_found", "No upstream on this node answers to the model %q", c.plan.model)
	}
	var last error
	for _, t := range targets {
		err := c.weigh(t)
		next := govern.DeniedByAccess(err)
		if err == nil {
			next, err = c.ask(t)
		}
		if err == nil {
			return nil
		}
		if c.began || !next || c.ctx.Err() != nil {
			return c.reason(err)
		}
		c.g.log.Debug("upstream could not answer", "upstream", t.p.Name, "model", t.model, "reason", asRefusal(err).code)
		if last == nil || asRefusal(last).status == 404 {
			last = err
		}
	}
	return last
}

// reason returns why the call ended: the cause of a cancellation, not the error that it caused.
func (c *call) reason(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		if r, ok := errors.AsType[*refusal](cause); ok {
			return r
		}
	}
	return err
}

// ask calls one target: reserve, send, pass on the answer, settle. next says that another
// target may be tried instead.
func (c *call) ask(t target) (next bool, err error) {
	up, ok := speaks(t.p, c.d)
	if !ok {
		return true, refuse(404, "model_not_found", "The upstream %s has no %s", t.p.Name, c.d)
	}
	price, ok := priceOf(t.p, t.model, c.scene.companys, c.scene.everyone)
	if !ok {
		return true, refuse(402, "no_price",
			"The price of the model %s of %s is not known; the board sets it with: selvage model price set", t.model, t.p.Name)
	}
	key, err := c.g.keyOf(c.ctx, t.p, c.scene.run)
	if err != nil {
		c.g.log.Warn("key of an upstream", "upstream", t.p.Name, "error", err)
		return true, refuse(503, "no_key",
			"The upstream %s can not be asked from this node: its key is not to be had here", t.p.Name)
	}
	if c.g.conf.Purse == nil {
		return false, refuse(503, "no_purse", "This node has nothing to pay with")
	}
	in := worstInput(c.plan.input, price, c.plan.long)
	ask := money.SpendAsk{Company: c.who.Company, Agent: c.who.Agent, Run: c.who.Run, Issue: c.scene.issue,
		Project: c.scene.project,
		Goal:    c.scene.goal, BillingCode: c.scene.code, Want: in.Plus(times(c.plan.max*c.plan.choices, price.Output)),
		Least: in.Plus(times(c.plan.least*c.plan.choices, price.Output)), Provider: string(t.p.Kind), Model: t.model}
	grant, err := c.g.conf.Purse.Reserve(c.ctx, ask)
	if err != nil {
		if _, no := errors.AsType[*ledger.Refusal](err); !no {
			c.g.log.Warn("money for a call could not be reserved", "error", err)
		}
		return false, err
	}
	m := &meter{most: min(c.plan.max*c.plan.choices, affordable(grant.Amount-in, price.Output))}
	use := money.SpendUse{Provider: string(t.p.Kind), Biller: t.p.Name, Model: t.model, Unsent: true}
	defer func() { // once for each grant, whatever happens
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), settleWait)
		defer cancel()
		if p := recover(); p != nil {
			use.Unsent, use.Cost = false, grant.Amount
			_ = c.g.conf.Purse.Settle(ctx, grant, use)
			panic(p)
		}
		if e := c.g.conf.Purse.Settle(ctx, grant, use); e != nil {
			c.g.log.Error("call could not be settled", "grant", grant.ID, "error", e)
		}
		if c.g.conf.Spent != nil {
			c.g.conf.Spent(c.who.Run, use.Cost)
		}
	}()
	sent, err := c.exchange(t, up, key, grant, m)
	if sent {
		u := m.settled(c.plan.input, hidesThinking(t.p, t.model))
		use.Unsent, use.InputTokens, use.CachedInputTokens, use.OutputTokens = false, u.input+u.cacheWrite+u.long,
			u.cacheRead, u.output
		use.Cost = m.charge(u, t.p, price)
	}
	switch r, ok := errors.AsType[*refusal](err); {
	case ok && (r.code == "upstream_invalid" || r.status == 499):
		return false, err // another one would say the same
	}
	return err != nil, err
}
