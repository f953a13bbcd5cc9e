package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
)

// A recorder records the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach what is below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// A buffer is reused with its encoder, so that an answer costs one allocation.
type buffer struct {
	b   bytes.Buffer
	enc *json.Encoder
}

var buffers = sync.Pool{New: func() any {
	b := new(buffer)
	b.enc = json.NewEncoder(&b.b)
	b.enc.SetEscapeHTML(false)
	return b
}}

const headerRequestID = "X-Request-Id"

type idKey struct{}

func IdOf(r *http.Request) string {
	id, _ := r.Context().Value(idKey{}).(string)
	return id
}

// requestID returns the caller's ID if it is harmless, otherwise a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	if len(id) > 0 && len(id) <= maxRequestID && harmless(id) {
		return id
	}
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// harmless reports whether s has only letters, digits and a few punctuation marks.
func harmless(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// pathOf returns the path for a log line, without the query, which may hold tokens.
func pathOf(r *http.Request) string { return Cut(withoutTokens(r.URL.Path), 256) }

func stack() string { return string(bytes.TrimSpace(debug.Stack())) }

func levelOf(status int) slog.Level {
	switch {
	case status >= 500:
		return slog.LevelWarn
	case status >= 400:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Within bounds ctx by the server's life.
func (s *Server) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.Ctx, cancel)
	return ctx, func() { stop(); cancel() }
}
