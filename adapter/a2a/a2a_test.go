package a2a

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A board is the part of the API that the adapter uses, with one issue.
type board struct {
	mu       sync.Mutex
	status   string
	comment  string
	comments string
	files    int
}

func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer run-token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch {
	case r.Method == "PATCH":
		var in struct{ Status, Comment string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		b.status, b.comment = in.Status, in.Comment
	case strings.HasSuffix(r.URL.Path, "/comments"):
		fmt.Fprint(w, b.comments)
		return
	case strings.HasSuffix(r.URL.Path, "/attachments"):
		b.files++
	}
	fmt.Fprint(w, `{"id":"i-1","title":"Weld","description":"the arm","status":"todo","companyId":"c-1"}`)
}

// outside is an agent that answers messages by what they say.
func outside(t *testing.T, answer func(method string, params map[string]any) string) *httptest.Server {
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer a-token-canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == "GET" {
			fmt.Fprintf(w, `{"name":"Out","supportedInterfaces":[{"url":"grpc://x","protocolBinding":"GRPC",`+
				`"protocolVersion":"1.0"},{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, s.URL+"/rpc")
			return
		}
		var in struct {
			Method string
			Params map[string]any
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,`+answer(in.Method, in.Params)+`}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func invoke(t *testing.T, b *board, config string, resume *entity.TaskSession,
	private ...netip.Prefix) company.Outcome {
	t.Helper()
	a := New(Config{API: func() http.Handler { return b }, Token: func(entity.Run) (string, error) {
		return "run-token",
			nil
	}, Private: private})
	return a.Invoke(t.Context(), company.Invocation{Config: []byte(config), Wake: []byte(`{}`), Resume: resume,
		Run: entity.Run{ID: "run-1", Company: "c-1", Agent: "agent-1", AdapterType: "a2a",
			Context: entity.RunContext{IssueID: "i-1"}},
		Log: func(string, string) {}, Report: func(company.Report) {},
		Authority: func() time.Duration { return shim.BootTime() + time.Hour }})
}

var loopback = netip.MustParsePrefix("127.0.0.0/8")

func TestATaskOutsideIsDone(t *testing.T) {
	var got string
	looks := 0
	s := outside(t, func(method string, params map[string]any) string {
		if method == "SendMessage" {
			b, _ := json.Marshal(params["message"])
			got = string(b)
			return `"result":{"task":{"id":"t-1","contextId":"x","status":{"state":"TASK_STATE_WORKING"}}}`
		}
		if looks++; looks < 2 {
			return `"result":{"id":"t-1","status":{"state":"TASK_STATE_WORKING"}}`
		}
		return `"result":{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},` +
			`"artifacts":[{"parts":[{"text":"It is welded, a-token-canary"},{"raw":"c2V2ZW4=","filename":"a.txt"}]}]}`
	})
	b := &board{}
	o := invoke(t, b, fmt.Sprintf(`{"url":%q,"token":"a-token-canary"}`, s.URL), nil, loopback)
	if o.Status != entity.RunSucceeded || b.status != "done" || b.comment != "It is welded, ***REDACTED***" ||
		b.files != 1 {
		t.Errorf("%+v; the issue is %s with %q and %d files", o, b.status, b.comment, b.files)
	}
	if !strings.Contains(got, `"text":"Weld\n\nthe arm"`) || !strings.Contains(got, `"role":"ROLE_USER"`) {
		t.Errorf("it was sent %s", got)
	}
}

// A task that asks blocks the issue with its question; what people answer goes to the same task.
func TestAQuestionIsAnsweredOnTheSameTask(t *testing.T) {
	var last map[string]any
	s := outside(t, func(method string, params map[string]any) string {
		if method == "SendMessage" {
			last, _ = params["message"].(map[string]any)
		}
		if last["taskId"] == nil {
			return `"result":{"task":{"id":"t-1","contextId":"x","status":{"state":"TASK_STATE_INPUT_REQUIRED",` +
				`"message":{"parts":[{"text":"Which arm?"}]}}}}`
		}
		return `"result":{"message":{"role":"ROLE_AGENT","parts":[{"text":"The left one is welded"}]}}`
	})
	b := &board{comments: `[{"body":"The left one","authorType":"user"},{"body":"Which arm?",` +
		`"authorAgentId":"agent-1"},{"body":"old","authorType":"user"}]`}
	config := fmt.Sprintf(`{"url":%q,"token":"a-token-canary"}`, s.URL)
	o := invoke(t, b, config, nil, loopback)
	if o.Status != entity.RunSucceeded || b.status != "blocked" || b.comment != "Which arm?" || o.SessionID != "t-1" {
		t.Fatalf("%+v; the issue is %s with %q", o, b.status, b.comment)
	}
	o = invoke(t, b, config, &entity.TaskSession{Params: o.SessionParams}, loopback)
	text := fmt.Sprint(last["parts"])
	if o.Status != entity.RunSucceeded || b.status != "done" || b.comment != "The left one is welded" ||
		last["taskId"] != "t-1" || !strings.Contains(text, "The left one") || strings.Contains(text, "old") {
		t.Errorf("%+v; the issue is %s with %q; sent %v", o, b.status, b.comment, last)
	}
}

// What does not fit ends the run with a reason, and shows no secret.
func TestBadAgentsOutside(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"x","supportedInterfaces":[{"url":"http://127.0.0.2:1/",`+
			`"protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	}))
	defer elsewhere.Close()
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"x","url":"http://x/","protocolVersion":"0.3.0"}`)
	}))
	defer old.Close()
	fails := outside(t, func(string, map[string]any) string {
		return `"result":{"task":{"id":"t-1","status":{"state":"TASK_STATE_FAILED",` +
			`"message":{"parts":[{"text":"no weld, a-token-canary"}]}}}}`
	})
	refuses := outside(t, func(string,
		map[string]any) string {
		return `"error":{"code":-32602,"message":"tenant: unknown"}`
	})
	for url, want := range map[string]string{elsewhere.URL: "is not where the card is",
		old.URL: "no interface of version 1.0", fails.URL: "the task is failed: no weld, ***REDACTED***",
		refuses.URL: "-32602: tenant: unknown", "ftp://x": "not http(s)", elsewhere.URL +
			"/x.json?": "is not where the card is"} {
		b := &board{}
		o := invoke(t, b, fmt.Sprintf(`{"url":%q,"token":"a-token-canary"}`, url), nil, loopback)
		if o.Status != entity.RunFailed || !strings.Contains(o.Error, want) || strings.Contains(o.Error, "canary") ||
			b.status != "" {
			t.Errorf("%s: %s %q, the issue is %q; want %q", url, o.Status, o.Error, b.status, want)
		}
	}
	if o := invoke(t, &board{}, fmt.Sprintf(`{"url":%q}`, fails.URL), nil); !strings.Contains(o.Error,
		"private or reserved") {
		t.Errorf("a private address: %+v", o)
	}
}
