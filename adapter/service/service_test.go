package service

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/kernel"
)

var (
	errGone = errors.New("it does not run")
	adder   = service.Service{Name: "adder", Provider: "sums", Probe: "ping", Methods: []service.Method{
		{Name: "add", Params: json.RawMessage(`{"type":"array","items":{"type":"integer"},"minItems":1}`),
			Result: json.RawMessage(`{"type":"integer"}`)}, {Name: "ping"}}}
	one, two = Provider{"n1", 1}, Provider{"n2", 1}
)

// A world is providers that answer as the test says.
type world struct {
	mu    sync.Mutex
	now   time.Time
	reply map[string]func(ctx context.Context) (string, bool, error) // by node
	asked []string
}

func (w *world) registry() *Registry {
	return New(func(ctx context.Context, to kernel.Address, body json.RawMessage) (json.RawMessage, bool, error) {
		w.mu.Lock()
		w.asked = append(w.asked, to.Node)
		f := w.reply[to.Node]
		w.mu.Unlock()
		s, unsent, err := f(ctx)
		return json.RawMessage(s), unsent, err
	}, func() time.Time { return w.now })
}

func answers(s string) func(context.Context) (string, bool, error) {
	return func(context.Context) (string, bool, error) { return s, false, nil }
}

func newWorld() *world {
	return &world{now: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), reply: map[string]func(context.Context) (string,
		bool, error){
		"n1": answers(`{"result":3}`), "n2": answers(`{"result":3}`)}}
}

// Both sides are held to the contract, and calls take turns among providers.
func TestCallsKeepTheContract(t *testing.T) {
	w := newWorld()
	r := w.registry()
	call := func(method, params string) (Answer, error) {
		return r.Call(t.Context(), adder, []Provider{one, two}, method, json.RawMessage(params), 0)
	}
	a, err := call("add", `[1,2]`)
	b, _ := call("add", `[1,2]`)
	if err != nil || string(a.Result) != "3" || a.By == b.By {
		t.Errorf("answered %+v and %+v, %v", a, b, err)
	}
	for _, c := range []struct {
		method, params, reply string
		want                  error
	}{
		{"sub", `[1]`, `{"result":3}`, ErrNoMethod}, {"add", `["x"]`, `{"result":3}`, ErrParams},
		{"add", `[]`, `{"result":3}`, ErrParams},
		{"add", `[1]`, `{"result":"three"}`, ErrContract}, {"add", `[1]`, `3`, ErrContract},
		{"add", `[1]`, `{"error":"too large"}`, ErrRefused},
	} {
		w.reply["n1"], w.reply["n2"] = answers(c.reply), answers(c.reply)
		if _, err := call(c.method, c.params); !errors.Is(err, c.want) {
			t.Errorf("%s %s answered by %s: %v, want %v", c.method, c.params, c.reply, err, c.want)
		}
	}
	if _, err := r.Call(t.Context(), adder, nil, "add", json.RawMessage(`[1]`), 0); !errors.Is(err, ErrNoProvider) {
		t.Errorf("without a provider: %v", err)
	}
}

// A call goes on to another provider only if the first can not have got it, and never waits
// beyond its time.
func TestACallIsMadeOnce(t *testing.T) {
	w := newWorld()
	r := w.registry()
	gone := func(context.Context) (string, bool, error) { return "", true, errGone }
	silent := func(ctx context.Context) (string, bool, error) { <-ctx.Done(); return "", false, ctx.Err() }
	w.reply["n1"] = gone
	for range 2 {
		if a, err := r.Call(t.Context(), adder, []Provider{one, two}, "add", json.RawMessage(`[1]`), 0); err != nil ||
			a.By != two {
			t.Errorf("answered by %+v, %v", a, err)
		}
	}
	w.reply["n1"], w.reply["n2"] = silent, silent
	w.asked = nil
	if _, err := r.Call(t.Context(), adder, []Provider{one, two}, "add", json.RawMessage(`[1]`),
		20*time.Millisecond); !errors.Is(err, ErrTimeout) || len(w.asked) != 1 {
		t.Errorf("a silent one: %v, asked %v", err, w.asked)
	}
}

// Five failures in a row open the breaker; after the pause one call decides; the pause doubles.
// A caller that goes away, and a refusal, are no failures.
func TestTheBreaker(t *testing.T) {
	w := newWorld()
	r := w.registry()
	call := func() error {
		_, err := r.Call(t.Context(), adder, []Provider{one}, "add", json.RawMessage(`[1]`), 0)
		return err
	}
	state := func() State { return r.Standings([]Provider{one})[0].Breaker }
	w.reply["n1"] = answers(`{"error":"no"}`)
	for range 10 {
		_ = call()
	}
	w.reply["n1"] = func(context.Context) (string, bool, error) { return "", true, context.Canceled }
	for range 10 {
		_ = call()
	}
	if state() != Closed {
		t.Fatalf("refusals and callers that went away left it %s", state())
	}
	w.reply["n1"] = func(context.Context) (string, bool, error) { return "", true, errGone }
	for n := range openAfter {
		if state() != Closed {
			t.Fatalf("it is %s after %d failures", state(), n)
		}
		_ = call()
	}
	asked := len(w.asked)
	if err := call(); !errors.Is(err, ErrOpen) || state() != Open || len(w.asked) != asked {
		t.Errorf("%s: %v", state(), err)
	}
	w.now = w.now.Add(firstPause)
	if state() != HalfOpen {
		t.Errorf("after the pause it is %s", state())
	}
	if err := call(); !errors.Is(err, errGone) || state() != Open {
		t.Errorf("the trial: %v, %s", err, state())
	}
	w.now = w.now.Add(firstPause)
	if state() != Open {
		t.Error("the second pause is not longer")
	}
	w.now = w.now.Add(firstPause)
	w.reply["n1"] = answers(`{"result":3}`)
	if err := call(); err != nil || state() != Closed {
		t.Errorf("a good trial: %v, %s", err, state())
	}
}

// Only one call tries a half-open breaker.
func TestOneCallTries(t *testing.T) {
	b := breaker{pause: firstPause}
	now := time.Now()
	if !b.allow(now) || b.allow(now) {
		t.Error("not one call passes")
	}
	b.release()
	if !b.allow(now) {
		t.Error("a call whose caller went away holds the trial for ever")
	}
}

// Three probes that fail in a row make a provider unhealthy, one good one makes it healthy.
func TestProbes(t *testing.T) {
	w := newWorld()
	r := w.registry()
	all := []Provider{one, two}
	health := func() Health { return Overall(r.Standings(all)) }
	if health() != Unknown || Overall(nil) != Unhealthy {
		t.Errorf("before a probe it is %s", health())
	}
	r.Probe(t.Context(), adder, one)
	r.Probe(t.Context(), adder, two)
	if health() != Healthy {
		t.Errorf("after good probes it is %s", health())
	}
	w.reply["n1"] = func(context.Context) (string, bool, error) { return "", true, errGone }
	for n := range SickAfter {
		if sick := r.Probe(t.Context(), adder, one); sick != n+1 {
			t.Errorf("%d probes failed, want %d", sick, n+1)
		}
	}
	if st := r.Standings(all); st[0].Health != Unhealthy || !strings.Contains(st[0].Error, "does not run") ||
		health() != Degraded {
		t.Errorf("%+v, %s", st, health())
	}
	w.reply["n1"] = answers(`{"result":true}`)
	if r.Probe(t.Context(), adder, one) != 0 || health() != Healthy {
		t.Errorf("it works again and is %s", health())
	}
}
