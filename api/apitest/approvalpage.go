package apitest

import (
	"net/http/httptest"
	"net/url"
	"strings"
)

// Form sends a form as a browser does.
func (h *Harness) Form(path string, fields url.Values, headers ...string) Answer {
	h.T.Helper()
	req := httptest.NewRequest("POST", path, strings.NewReader(fields.Encode()))
	req.Host = "127.0.0.1:3100"
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.Server.ServeHTTP(w, req)
	return Answer{Status: w.Code, Body: w.Body.Bytes(), Header: w.Header()}
}
