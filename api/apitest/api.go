package apitest

import "net/http/httptest"

// Serve runs the harness behind a real listener.
func (h *Harness) Serve() *httptest.Server {
	h.T.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = h.HTTP()
	s.Start()
	h.T.Cleanup(func() {
		h.Close()
		s.Close()
	})
	return s
}
