package inside

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestCalls(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/none":
		case "/broken":
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(r.Header.Get("Authorization") + "," + r.Header.Get("X-Paperclip-Run-Id")))
		}
	})
	c := Caller{API: func() http.Handler { return h }, Token: "t", Run: "r"}
	over, end := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	end(stopped)
	for _, test := range []struct {
		name, path string
		of         Caller
		ctx        context.Context
		most       int
		status     int
		body       string
		err        error
	}{
		{"an answer", "/a?b=c", c, t.Context(), 100, 201, "Bearer t,r", nil},
		{"nothing written", "/none", c, t.Context(), 100, 200, "", nil},
		{"too large", "/a", c, t.Context(), 3, 0, "", ErrLarge},
		{"broken off", "/broken", c, t.Context(), 100, 0, "", ErrBroken},
		{"over", "/a", c, over, 100, 0, "", stopped},
		{"no API yet", "/a", Caller{}, t.Context(), 100, 0, "", ErrNotReady},
	} {
		req, err := test.of.Request(test.ctx, http.MethodPost, test.path, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		status, body, err := test.of.Do(req, test.most)
		if status != test.status || string(body) != test.body || !errors.Is(err, test.err) {
			t.Errorf("%s: %d %q %v, want %d %q %v", test.name, status, body, err, test.status, test.body, test.err)
		}
	}
	if _, err := c.Request(t.Context(), "GET", "/%zz", nil); err == nil || !strings.Contains(err.Error(), "zz") {
		t.Errorf("a malformed path: %v", err)
	}
}
