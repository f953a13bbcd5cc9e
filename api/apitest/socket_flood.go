package apitest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
)

// ShortServe serves the harness with time-outs that a test can wait for, and a
// bound on connections that it can reach.
func (h *Harness) ShortServe(most int) *httptest.Server {
	h.T.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = h.HTTP()
	s.Config.ReadHeaderTimeout, s.Config.IdleTimeout, s.Config.ReadTimeout = 500*time.Millisecond, 500*time.Millisecond,
		2*time.Second
	s.Config.ConnState = api.NewConns(most).State
	s.Start()
	h.T.Cleanup(func() {
		h.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// AfterFlood wants a server that serves, and no failure in its log.
func (h *Harness) AfterFlood(url string, of ledger.CompanyID) {
	h.T.Helper()
	c := &http.Client{Timeout: FloodPatience}
	defer c.CloseIdleConnections()
	res, err := c.Get(url + "/api/companies/" + string(of))
	if err != nil {
		h.T.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		h.T.Errorf("afterwards: %s", res.Status)
	}
	if log := h.Log.String(); strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, "panic") {
		h.T.Errorf("logged: %.2000s", log)
	}
}
