package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// nodes are servers that give predefined answers, one after another.
type nodes struct {
	mu   sync.Mutex
	seen []string // "node method path key"
	urls []string
}

func newNodes(t *testing.T, handlers ...http.HandlerFunc) *nodes {
	n := &nodes{}
	for i, h := range handlers {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.mu.Lock()
			n.seen = append(n.seen, fmt.Sprintf("%d %s %s %s", i, r.Method, r.URL.Path, r.Header.Get("Idempotency-Key")))
			n.mu.Unlock()
			h(w, r)
		}))
		t.Cleanup(s.Close)
		n.urls = append(n.urls, s.URL)
	}
	return n
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Selvage-Height", "42")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func open(t *testing.T, urls ...string) *Client {
	t.Helper()
	c, err := New(Config{Nodes: urls, Attempts: 4})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPostMovesOnUnderTheSameKey(t *testing.T) {
	n := newNodes(t, answer(503, `{"error":"not now","code":"outcome_unknown"}`), answer(201, `{"id":"x"}`))
	c := open(t, "http://127.0.0.1:1", n.urls[0], n.urls[1])
	var out struct{ ID string }
	if err := c.Post(t.Context(), "/api/companies", map[string]string{"name": "a"}, &out); err != nil || out.ID != "x" {
		t.Fatalf("answer %+v, %v", out, err)
	}
	if len(n.seen) != 2 || n.seen[0][1:] != n.seen[1][1:] || len(n.seen[0]) < len("0 POST /api/companies ")+16 {
		t.Errorf("requests %q, want the same one with a key at two nodes", n.seen)
	}
	if c.Height() != 42 {
		t.Errorf("height %d, want that of the answer", c.Height())
	}
	if err := c.Get(t.Context(), "/api/companies", nil); err != nil || n.seen[2][0] != '1' {
		t.Errorf("%v, %q: want the next call at the node that answered", err, n.seen)
	}
}

func TestWhatIsNotSafeIsNotRepeated(t *testing.T) {
	n := newNodes(t, answer(503, `{"error":"not known","code":"outcome_unknown"}`), answer(200, `{}`))
	if err := open(t, n.urls...).Patch(t.Context(), "/api/issues/1", map[string]string{}, nil); err == nil ||
		len(n.seen) != 1 {
		t.Errorf("%v after %q", err, n.seen)
	}
	n = newNodes(t, answer(503, `{"error":"not now","code":"no_leader"}`), answer(200, `{}`))
	if err := open(t, n.urls...).Patch(t.Context(), "/api/issues/1", map[string]string{}, nil); err != nil ||
		len(n.seen) != 2 {
		t.Errorf("%v after %q", err, n.seen)
	}
}

func TestANoIsAnErrorWithItsBody(t *testing.T) {
	n := newNodes(t, answer(409, `{"error":"Issue checkout conflict","details":{"status":"in_progress"}}`))
	err := open(t, n.urls...).Post(t.Context(), "/api/issues/1/checkout", nil, nil)
	no, ok := errors.AsType[*Error](err)
	if !ok || no.Status != 409 || no.Message != "Issue checkout conflict" ||
		string(no.Details) != `{"status":"in_progress"}` || len(n.seen) != 1 {
		t.Errorf("%#v after %q", err, n.seen)
	}
}

func TestACallEndsWithItsContextAndItsAttempts(t *testing.T) {
	c := open(t, "http://127.0.0.1:1")
	if err := c.Get(t.Context(), "/api/health", nil); err == nil {
		t.Error("nobody listens, and yet there is an answer")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if err := c.Get(ctx, "/api/health", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's error", err)
	}
}

func TestFollowResumesAtAnotherNode(t *testing.T) {
	stream := func(id int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if got, want := r.Header.Get("Last-Event-ID"), fmt.Sprint(id-1); got != want {
				http.Error(w, `{"error":"resumed at `+got+`"}`, 400)
				return
			}
			fmt.Fprintf(w, "retry: 1000\n\nevent: activity.logged\ndata: {\"id\":%d}\n\nid: %d\nevent: "+
				"activity.logged\ndata: {\"id\":%d}\n\n", id, id, id)
		}
	}
	n := newNodes(t, stream(6), stream(7), stream(8))
	var got []uint64
	end := errors.New("enough")
	err := open(t, n.urls...).Follow(t.Context(), "c", 5, func(e Event) error {
		if got = append(got, e.ID); len(got) == 6 {
			return end
		}
		return nil
	})
	if err != end || !slices.Equal(got, []uint64{6, 6, 7, 7, 8, 8}) {
		t.Errorf("followed %v, %v", got, err)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, bad := range [][]string{nil, {""}, {"http://"}, {"://x"}} {
		if _, err := New(Config{Nodes: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	c := open(t, "127.0.0.1:3100", "http://localhost:3101/api/")
	if c.cfg.Nodes[0] != "http://127.0.0.1:3100" || c.cfg.Nodes[1] != "http://localhost:3101" {
		t.Errorf("nodes %q", c.cfg.Nodes)
	}
}

// An impatient client fails after one try if its only address does not answer. With
// another address it goes on.
func TestImpatienceIsForWhoIsNotThere(t *testing.T) {
	tried := 0
	count := http.DefaultTransport.(*http.Transport).Clone()
	count.DialContext = func(context.Context, string, string) (net.Conn, error) {
		tried++
		return nil, &net.OpError{Op: "dial", Err: errors.New("nobody")}
	}
	for _, c := range []struct {
		nodes     []string
		impatient bool
		tries     int
	}{{[]string{"http://n1"}, true, 1}, {[]string{"http://n1"}, false, 3}, {[]string{"http://n1", "http://n2"}, true, 3}} {
		tried = 0
		cl, err := New(Config{Nodes: c.nodes, Impatient: c.impatient, Attempts: 3, HTTP: &http.Client{Transport: count}})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), "/api/health", nil); err == nil || tried != c.tries {
			t.Errorf("%+v: %d tries, %v", c, tried, err)
		}
	}
}

// An answer of a node that is cut off says which node it is and how old its state is.
// The client does not retry it, and a later try that was not executed does not hide an
// earlier one that may have been.
func TestANodeThatIsCutOffIsHeardOnce(t *testing.T) {
	lost := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Selvage-Quorum", "lost")
			w.Header().Set("X-Selvage-Age", "12000")
			w.Header().Set("X-Selvage-Node-Name", "box%20one")
			h(w, r)
		}
	}
	none := answer(503, `{"error":"No quorum. Nothing was changed; try again","code":"no_quorum"}`)
	n := newNodes(t, lost(none), answer(200, `{}`))
	var told []Standing
	ask := func(impatient bool, urls ...string) *Client {
		c, err := New(Config{Nodes: urls, Attempts: 3, Impatient: impatient,
			CutOff: func(s Standing) { told = append(told, s) }})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if err := ask(true, n.urls[0]).Patch(t.Context(), "/api/issues/1", nil, nil); err == nil || len(n.seen) != 1 {
		t.Errorf("%v after %q", err, n.seen)
	}
	if err := ask(true, n.urls...).Patch(t.Context(), "/api/issues/1", nil, nil); err != nil || len(n.seen) != 3 {
		t.Errorf("%v after %q: another node may have a quorum", err, n.seen)
	}
	n = newNodes(t, lost(answer(200, `[]`)))
	if err := ask(true, n.urls[0]).Get(t.Context(), "/api/companies", nil); err != nil || len(told) != 1 ||
		told[0] != (Standing{"box one", 12 * time.Second}) {
		t.Errorf("told %v, %v", told, err)
	}
	n = newNodes(t, answer(503, `{"error":"not known","code":"outcome_unknown"}`), none)
	err := ask(false, n.urls...).Post(t.Context(), "/api/companies", nil, nil)
	if no, ok := errors.AsType[*Error](err); !ok || no.Code != "outcome_unknown" {
		t.Errorf("%v, want an unknown outcome", err)
	}
}
