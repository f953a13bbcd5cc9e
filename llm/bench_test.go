package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// BenchmarkOverhead measures what the gateway adds to an upstream that answers at once, over
// real sockets: the same small stream, alternately requested directly and through the gateway.
// A purse on a disk also adds its sync.
func BenchmarkOverhead(b *testing.B) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chatStream)
	}))
	defer up.Close()
	g, err := New(Config{View: func(func(*ledger.Tx) error) error { return nil },
		Holds: func() bool { return true }, Self: "n1",
		Purse: &till{left: core.MaxMoney / 2, uses: map[string][]money.SpendUse{}}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	s := scene{run: entity.Run{ID: "run"}, providers: []money.ModelProvider{provider(money.ModelCompatible, "up", up.URL)},
		companys: []money.ModelPrice{{Model: "*", Input: 1e6, Output: 1e6}}}
	s.providers[0].Sealed = "" // it has no key
	g.look = func(Caller) (scene, error) { return s, nil }
	g.may = func(Caller) error { return nil }
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Serve(w, r,
			Caller{"acme", "ada", "run"})
	}))
	defer gate.Close()
	body := strings.Replace(askStream, `"hi"`, `"`+strings.Repeat("some words ", 400)+`"`, 1)
	client := &http.Client{}
	call := func(url string) time.Duration {
		began := time.Now()
		resp, err := client.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			b.Fatal(resp.Status)
		}
		return time.Since(began)
	}
	var direct, through []time.Duration
	for b.Loop() {
		direct = append(direct, call(up.URL+"/chat/completions"))
		through = append(through, call(gate.URL+"/llm/v1/chat/completions"))
	}
	p50 := func(d []time.Duration) float64 { slices.Sort(d); return float64(d[len(d)/2].Microseconds()) }
	b.ReportMetric(p50(direct), "direct-p50-µs")
	b.ReportMetric(p50(through), "gateway-p50-µs")
	b.ReportMetric(p50(through)-p50(direct), "overhead-p50-µs")
	b.ReportMetric(0, "ns/op")
}
