package ipc_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
)

// Topics are published, listed, read from a height, followed, and read by a subscription
// that remembers.
func TestTopics(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	h.Call("POST", "/api/v1/topics/build.done", `{"text":"green"}`).Want(t, 201, `"topic":"build.done"`)
	second := h.Call("POST", "/api/v1/topics/build.late", `{"payload":{"ok": true}}`).Want(t, 201, "").Field(t, "height")
	h.Call("POST", "/api/v1/topics/a%2Fb", `{"payload":"text"}`).Want(t, 201, `"topic":"a/b"`)
	h.Call("GET", "/api/v1/topics", "").Want(t, 200, `"topic":"a/b"`)
	got := h.Call("GET", "/api/v1/topics?pattern=build.*&from=0&limit=1", "").Want(t, 200, `"payload":"green"`)
	if strings.Contains(string(got.Body), `{"ok":true}`) || !strings.Contains(string(got.Body), `"more":true`) {
		t.Errorf("a page of one has %s", got.Body)
	}
	h.Call("GET", "/api/v1/topics?pattern=build.*&from="+second, "").Want(t, 200, `"payload":{"ok":true}`)
	h.Call("GET", "/api/v1/topics/a%2Fb", "").Want(t, 200, `"text":"text"`)
	h.Call("PUT", "/api/v1/topics/build.done", `{"messages":5}`).Want(t, 200, `"messages":5`)

	h.Call("PUT", "/api/v1/subscriptions/ci", `{"pattern":"build.*","from":0}`).Want(t, 200, `"position":0`)
	h.Call("GET", "/api/v1/subscriptions/ci/messages", "").Want(t, 200, `"payload":"green"`)
	h.Call("POST", "/api/v1/subscriptions/ci/ack", `{"height":`+second+`}`).Want(t, 200, `"position":`+second)
	h.Call("GET", "/api/v1/subscriptions/ci/messages", "").Want(t, 200, `"messages":[]`)
	h.Call("GET", "/api/v1/subscriptions", "").Want(t, 200, `"pattern":"build.*"`)
	h.Call("DELETE", "/api/v1/subscriptions/ci", "").Want(t, 200, `"deleted":true`)
	h.Call("DELETE", "/api/v1/subscriptions/ci", "").Want(t, 404, "Subscription not found")

	of := h.Company("Acme")
	h.Call("GET", "/api/v1/topics?companyId="+of, "").Want(t, 200, `"topics":[]`)
	h.Call("POST", "/api/v1/topics/own?companyId="+of, `{"text":"x"}`).Want(t, 201, `"number":1`)
	h.Call("GET", "/api/v1/topics?companyId="+of, "").Want(t, 200, `"topic":"own"`)

	h.Call("POST", "/api/v1/topics/a.*", `{"text":"x"}`).Want(t, 400, "topic: ")
	h.Call("POST", "/api/v1/topics/a", `{}`).Want(t, 400, "text or payload: give one of them")
	h.Call("POST", "/api/v1/topics/a", `{"text":"x","payload":1}`).Want(t, 400, "text or payload: give one of them")
	h.Call("GET", "/api/v1/topics?pattern=a..b", "").Want(t, 400, "pattern: ")
	h.Call("DELETE", "/api/v1/topics/none", "").Want(t, 404, "Topic not found")
	h.Call("DELETE", "/api/v1/topics/build.done", "").Want(t, 200, `"deleted":true`)
}

// A stream begins with what is kept, goes on with what is published, and resumes above an ID.
func TestTopicsAreFollowed(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	server := h.Serve()
	defer server.Close()
	h.Call("POST", "/api/v1/topics/a.x", `{"text":"one"}`).Want(t, 201, "")
	h.Call("POST", "/api/v1/topics/b", `{"text":"no"}`).Want(t, 201, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(path, last, accept string) *bufio.Scanner {
		req, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("answered %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
		}
		return bufio.NewScanner(resp.Body)
	}
	next := func(s *bufio.Scanner) (id, data string) {
		for s.Scan() {
			name, value, _ := strings.Cut(s.Text(), ": ")
			switch name {
			case "id":
				id = value
			case "data":
				return id, value
			}
		}
		t.Fatalf("the stream ended: %v", s.Err())
		return "", ""
	}
	s := open("/api/v1/topics/a.*/events?from=0", "", "*/*")
	first, data := next(s)
	if !strings.Contains(data, `"text":"one"`) {
		t.Errorf("the first event is %s", data)
	}
	h.Call("POST", "/api/v1/topics/b", `{"text":"no"}`).Want(t, 201, "")
	h.Call("POST", "/api/v1/topics/a.y", `{"text":"two"}`).Want(t, 201, "")
	if _, data := next(s); !strings.Contains(data, `"text":"two"`) {
		t.Errorf("the second event is %s", data)
	}
	if _, data := next(open("/api/v1/topics?pattern=a.*", first, "text/event-stream")); !strings.Contains(data,
		`"text":"two"`) {
		t.Errorf("a stream above %s begins with %s", first, data)
	}
}
