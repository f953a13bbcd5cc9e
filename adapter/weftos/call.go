package weftos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage-mesh/selvage/adapter/inside"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/identity"
)

// A kernelError is a refusal of a kernel, or of this mesh.
type kernelError struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Error_  string `json:"error"`
	of      string // the request
}

func (e *kernelError) Error() string {
	return fmt.Sprintf("%s answered %d: %s", e.of, e.status,
		cut(cmp.Or(e.Message, e.Error_, http.StatusText(e.status)), 2000))
}

// passing reports whether the same request may do later.
func (e *kernelError) passing() bool {
	return e.status == http.StatusTooManyRequests || e.status == http.StatusServiceUnavailable
}

// code is the error code of a run that ends with the refusal.
func (e *kernelError) code() string {
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "auth_required"
	case http.StatusPaymentRequired:
		return "budget_refused"
	}
	return "adapter_failed"
}

// kernel makes a request to the kernel that does the work, and repeats it as its clients do: at once, after 500 ms and
// after 2 s. key makes a repetition the same request.
func (j *job) kernel(ctx context.Context, method, path, key string, in, out any) (err error) {
	retries := defaultRetries
	if j.c.Retries != nil {
		retries = min(max(*j.c.Retries, 0), maxRetries)
	}
	for n := 0; ; n++ {
		if j.base == "" {
			err = j.inside(ctx, method, path, key, in, out)
		} else {
			err = j.outside(ctx, method, path, key, in, out)
		}
		no, refused := errors.AsType[*kernelError](err)
		if err == nil || refused && !no.passing() || errors.Is(err, webcall.ErrPrivate) || n >= retries || ctx.Err() != nil {
			return err
		}
		j.inv.Log("system", "[selvage] "+j.red.Clean(err.Error())+"; it is tried again\n")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryAfter[min(n, len(retryAfter)-1)]):
		}
	}
}

// own makes a request of the agent to its own company.
func (j *job) own(ctx context.Context, method, path string, in, out any) error {
	return j.inside(ctx, method, path, "", in, out)
}

func encoded(in any) ([]byte, error) {
	if in == nil {
		return nil, nil
	}
	return json.Marshal(in)
}

// outside makes one request over the network. Its errors have neither a header nor a query.
func (j *job) outside(ctx context.Context, method, path, key string, in, out any) error {
	body, err := encoded(in)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, j.wait())
	defer done()
	req, err := http.NewRequestWithContext(ctx, method, j.base+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("adapterConfig.baseUrl: the address is malformed")
	}
	head(req, key, body)
	if token := string(cmp.Or(j.c.Token, j.c.Key)); identity.LooksLikeCapToken(token) {
		req.Header.Set("Authorization", "WeftOS-Cap "+token)
	} else if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := j.a.client.Do(req)
	if err != nil {
		if errors.Is(err, webcall.ErrPrivate) {
			return webcall.ErrPrivate
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL
		}
		return errors.New(j.red.Clean("the kernel can not be reached: " + err.Error()))
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil || len(b) > maxAnswer {
		return fmt.Errorf("%s: the answer broke off or is larger than %d bytes", path, maxAnswer)
	}
	return answer(method+" "+path, res.StatusCode, b, out)
}

// inside makes one request of this node, as the run.
func (j *job) inside(ctx context.Context, method, path, key string, in, out any) error {
	body, err := encoded(in)
	if err != nil {
		return err
	}
	c := inside.Caller{API: j.a.cfg.API, Token: j.token, Run: j.inv.Run.ID}
	req, err := c.Request(ctx, method, path, body)
	if err != nil {
		return err
	}
	head(req, key, body)
	status, b, err := c.Do(req, maxAnswer)
	if errors.Is(err, inside.ErrNotReady) {
		return &kernelError{status: http.StatusServiceUnavailable, Message: err.Error(), of: method + " " + path}
	}
	if err != nil {
		return err
	}
	return answer(method+" "+path, status, b, out)
}

func head(req *http.Request, key string, body []byte) {
	req.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
}

func answer(of string, status int, b []byte, out any) error {
	if status/100 != 2 {
		no := &kernelError{}
		_ = json.Unmarshal(b, no) // an answer of another form has its status
		no.status, no.of = status, of
		return no
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s: the answer is not what was asked for", of)
	}
	return nil
}
