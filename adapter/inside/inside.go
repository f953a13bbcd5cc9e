// Package inside calls the API of the node that a run is on, as the run's agent and within
// the process: no address, no connection.
package inside

import (
	"bytes"
	"context"
	"errors"
	"net/http"
)

var (
	// ErrNotReady: the node has no API yet.
	ErrNotReady = errors.New("the node is not ready")
	// ErrLarge: the answer is larger than the caller takes.
	ErrLarge = errors.New("the answer is too large")
	// ErrBroken: the handler gave up its answer.
	ErrBroken = errors.New("the answer broke off")
)

// A Caller is a run: the token of its agent, and its ID.
type Caller struct {
	API        func() http.Handler // nil, or returns nil, while the node starts
	Token, Run string
}

// Request returns a request of the run. path has the query.
func (c Caller) Request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.RequestURI, req.RemoteAddr = path, "127.0.0.1:0"
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("X-Paperclip-Run-Id", c.Run)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Do serves a request and returns its status and at most so many bytes of body. Once the
// request's context is over, that is the error.
func (c Caller) Do(req *http.Request, most int) (status int, body []byte, err error) {
	var h http.Handler
	if c.API != nil {
		h = c.API()
	}
	if h == nil {
		return 0, nil, ErrNotReady
	}
	w := &answer{header: http.Header{}, most: most}
	err = serve(h, w, req)
	switch {
	case err != nil:
		return 0, nil, err
	case req.Context().Err() != nil:
		return 0, nil, context.Cause(req.Context())
	case w.large:
		return 0, nil, ErrLarge
	case w.status == 0:
		w.status = http.StatusOK
	}
	return w.status, w.body.Bytes(), nil
}

// serve serves a request. A handler that gives up the answer fails only this request.
func serve(h http.Handler, w http.ResponseWriter, req *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); !ok || !errors.Is(e, http.ErrAbortHandler) {
				panic(p)
			}
			err = ErrBroken
		}
	}()
	h.ServeHTTP(w, req)
	return nil
}

// An answer is a response written within this process.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	most   int
	large  bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > a.most {
		a.large = true
		return 0, ErrLarge
	}
	return a.body.Write(p)
}
