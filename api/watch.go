package api

import (
	"context"
	"net/http"
)

// A Watch checks from time to time that the reader of a stream is still permitted: a credential can be revoked, and a
// person be removed from the company, while the stream is open.
type Watch struct {
	rc  *Request
	gen uint64 // generation of cached keys at the last check
}

// NewWatch begins to watch the caller of a request.
func NewWatch(rc *Request) Watch { return Watch{rc, rc.Server.Keys.Generation()} }

// Holds checks again when a credential may have been revoked since the last check, and always if must is set.
func (w *Watch) Holds(ctx context.Context, must bool) bool {
	s := w.rc.Server
	gen := s.Keys.Generation()
	if gen == w.gen && !must {
		return true
	}
	w.gen = gen
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	again := &Request{HTTP: w.rc.HTTP.WithContext(ctx), ID: w.rc.ID, Server: s, Route: w.rc.Route, W: w.rc.W}
	err := again.Open()
	status, _, _ := AnswerOf(err)
	return err == nil && again.Actor == w.rc.Actor || err != nil && status >= http.StatusInternalServerError
}
