package api

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Inner is the answer of a route to a call from within the process.
type Inner struct {
	Status int
	Header http.Header
	Body   []byte
}

// Inside calls a route as the caller of rc, so that the same rules apply as to a request of their own. Later reads of
// rc reflect what the route wrote. The Idempotency-Key of rc goes with the first such call only.
func (rc *Request) Inside(method, path, contentType string, body []byte) Inner {
	r := rc.HTTP.Clone(rc.Within())
	target, err := url.Parse(path)
	if err != nil {
		return Inner{Status: http.StatusBadRequest}
	}
	r.Method, r.URL = method, target
	r.RequestURI, r.Pattern = path, ""
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Del("Content-Encoding")
	if rc.Submits > 0 {
		r.Header.Del(HeaderIdempotency)
	}
	w := &kept{header: http.Header{}}
	rc.Server.Mux.ServeHTTP(w, r)
	if w.status/100 == 2 && method != http.MethodGet {
		rc.Submits++ // later reads must reflect what was written
		if rc.Read.Mode == ledger.ReadStale {
			rc.Read.Mode = ledger.ReadDefault
		}
		if at, err := strconv.ParseUint(w.header.Get(HeaderHeight), 10, 64); err == nil {
			rc.Index = max(rc.Index, at)
		}
	}
	return Inner{w.status, w.header, w.body.Bytes()}
}

// kept records an answer within the process.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *kept) Header() http.Header { return k.header }

func (k *kept) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

func (k *kept) Write(b []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(b)
}

// WordsOf returns the agent's answer: its last comment on the issue, else the end of its
// run's output.
func WordsOf(tx *ledger.Tx, i entity.Issue, r entity.Run) *string {
	comments, err := entity.CommentsOf(tx, i, entity.CommentQuery{Limit: 20})
	if err == nil {
		for _, c := range comments {
			if string(c.AuthorAgent) == r.Agent {
				return &c.Body
			}
		}
	}
	if r.StdoutExcerpt != nil && *r.StdoutExcerpt != "" {
		return r.StdoutExcerpt
	}
	return nil
}
