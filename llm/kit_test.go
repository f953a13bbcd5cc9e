package llm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// A till is a purse with a fixed amount of money that records all calls.
type till struct {
	mu     sync.Mutex
	left   core.Money
	refuse error
	asks   []money.SpendAsk
	grants []money.SpendGrant
	uses   map[string][]money.SpendUse
}

func (p *till) Reserve(_ context.Context, ask money.SpendAsk) (money.SpendGrant, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asks = append(p.asks, ask)
	if p.refuse != nil {
		return money.SpendGrant{}, p.refuse
	}
	least := ask.Least
	if least == 0 {
		least = ask.Want
	}
	if least > p.left {
		r := ledger.Refuse(ledger.Conflict, []byte(`{"scopeType":"agent"}`),
			"Agent is paused because its budget hard-stop was reached.").(*ledger.Refusal)
		r.ErrCode = "budget_exceeded"
		return money.SpendGrant{}, r
	}
	g := money.SpendGrant{ID: fmt.Sprint("g", len(p.grants)), Amount: min(ask.Want, p.left), Until: time.Now().
		Add(time.Minute), Ask: ask}
	p.left -= g.Amount
	p.grants = append(p.grants, g)
	return g, nil
}

func (p *till) Settle(ctx context.Context, g money.SpendGrant, use money.SpendUse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.uses[g.ID] = append(p.uses[g.ID], use)
	if !use.Unsent {
		p.left += g.Amount - min(use.Cost, g.Amount)
	} else {
		p.left += g.Amount
	}
	return nil
}

// An upstream is a fake upstream that replays bytes.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	heads  []http.Header
	paths  []string
}

func (u *upstream) asked() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.bodies)
}

func (u *upstream) body(n int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bodies[n]
}

// newUpstream answers the n-th request, from 0, with answer.
func newUpstream(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		n := len(u.bodies)
		u.bodies, u.heads, u.paths = append(u.bodies, string(b)), append(u.heads, r.Header.Clone()),
			append(u.paths, r.URL.Path)
		u.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(func() { u.CloseClientConnections(); u.Close() })
	return u
}

func replay(contentType, body string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

func sse(body string) func(int, http.ResponseWriter, *http.Request) {
	return replay("text/event-stream", body)
}

const canary = "sk-canary-4711"

// A bench is a gateway with its upstreams, a purse, and one run.
type bench struct {
	*Gateway
	till  *till
	log   *bytes.Buffer
	scene scene
	ended atomic.Bool
	t     *testing.T
}

// dear returns a price that makes sums easy: 1 cent per input token, 2 per output token.
func dear(model string) money.ModelPrice {
	return money.ModelPrice{Model: model, Input: 1e12, Output: 2e12, CacheRead: 1e11, CacheWrite: 1e12}
}

func newBench(t *testing.T, providers ...money.ModelProvider) *bench {
	t.Helper()
	b := &bench{till: &till{left: core.MaxMoney / 2, uses: map[string][]money.SpendUse{}}, log: &bytes.Buffer{}, t: t}
	b.scene = scene{run: entity.Run{ID: "run"}, project: "proj", issue: "issue", code: "R&D", providers: providers,
		companys: []money.ModelPrice{dear("*")}}
	var mu sync.Mutex
	var err error
	b.Gateway, err = New(Config{View: func(func(*ledger.Tx) error) error { return nil },
		Holds: func() bool { return true }, Self: "n1", Purse: b.till,
		FirstByte: time.Minute, Idle: time.Minute, Pause: func(context.Context, time.Duration) {},
		Logger: slog.New(slog.NewTextHandler(locked{&mu, b.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	b.look = func(Caller) (scene, error) {
		if b.ended.Load() {
			return scene{}, errEnded
		}
		return b.scene, nil
	}
	b.may = func(Caller) error {
		if b.ended.Load() {
			return errEnded
		}
		return nil
	}
	b.keyOf = func(context.Context, money.ModelProvider, entity.Run) (string, error) { return canary, nil }
	t.Cleanup(func() {
		b.Close()
		b.settledOnce()
		if strings.Contains(b.log.String(), canary) {
			t.Error("the key of an upstream is in the log")
		}
	})
	return b
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// settledOnce checks that each grant was settled once.
func (b *bench) settledOnce() {
	b.t.Helper()
	b.till.mu.Lock()
	defer b.till.mu.Unlock()
	for _, g := range b.till.grants {
		if n := len(b.till.uses[g.ID]); n != 1 {
			b.t.Errorf("grant %s was settled %d times", g.ID, n)
		}
	}
}

// use returns what the n-th grant was settled by.
func (b *bench) use(n int) money.SpendUse {
	b.t.Helper()
	b.till.mu.Lock()
	defer b.till.mu.Unlock()
	u := b.till.uses[fmt.Sprint("g", n)]
	if len(u) != 1 {
		b.t.Fatalf("grant %d was settled %d times", n, len(u))
	}
	return u[0]
}

// post sends a request through real HTTP, so that flushing and cancelling are real.
func (b *bench) post(path, body string, headers ...string) (int, string) {
	b.t.Helper()
	status, out, err := b.try(context.Background(), path, body, headers...)
	if err != nil && status == 0 {
		b.t.Fatal(err)
	}
	if strings.Contains(out, canary) {
		b.t.Errorf("the key of an upstream is in an answer: %s", out)
	}
	return status, out
}

func (b *bench) try(ctx context.Context, path, body string, headers ...string) (int, string, error) {
	return b.hear(ctx, path, body, func(string) {}, headers...)
}

// hear is try for a caller who looks at what has come so far whenever more does.
func (b *bench) hear(ctx context.Context, path, body string, look func(soFar string), headers ...string) (int,
	string, error) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.Serve(w, r, Caller{"acme", "ada", "run"})
	}))
	defer s.Close()
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/llm"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	var out strings.Builder
	for part := make([]byte, 4<<10); err == nil; look(out.String()) {
		var n int
		n, err = resp.Body.Read(part)
		out.Write(part[:n])
	}
	if err == io.EOF {
		err = nil
	}
	return resp.StatusCode, out.String(), err
}

func provider(kind money.ModelKind, name, url string) money.ModelProvider {
	return money.ModelProvider{ID: name, Name: name, Kind: kind, BaseURL: url, Sealed: "x",
		Models: []money.ModelRoute{{Name: "*"}}}
}

func wantText(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in:\n%s", w, got)
		}
	}
}
