package apitest

import (
	"bytes"
	"net/http/httptest"
)

// Send sends a body that is no JSON.
func (h *Harness) Send(method, path, contentType string, body []byte) Answer {
	h.T.Helper()
	req := httptest.NewRequest(method, path, bytes.NewReader(body))
	req.Host = "127.0.0.1:3100"
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.Server.ServeHTTP(w, req)
	return Answer{Status: w.Code, Body: w.Body.Bytes(), Header: w.Header()}
}
