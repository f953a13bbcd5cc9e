package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Stat is one value of one scrape.
type Stat struct {
	Name    string            // "selvage_ledger_entries_total"
	Help    string            // one line
	Labels  map[string]string // the same label names for each Stat with this Name
	Value   float64
	Counter bool // it never decreases; otherwise it is a gauge
}

// metrics are the server's own metrics, in a registry of their own.
type metrics struct {
	handler  http.Handler
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	commands *prometheus.CounterVec
	submit   prometheus.Histogram
	streams  prometheus.Gauge
}

func newMetrics(cfg Config) (*metrics, error) {
	seconds := []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, 1, 3, 10}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "selvage_http_requests_total",
			Help: "Answered HTTP requests."}, []string{"method", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "selvage_http_request_seconds",
			Help: "Time to answer, without streams.", Buckets: seconds}, []string{"method"}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "selvage_commands_total",
			Help: "Commands submitted through this node's API."}, []string{"kind", "outcome"}),
		submit: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "selvage_submit_seconds",
			Help: "Time from submission to receipt.", Buckets: seconds}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "selvage_event_streams",
			Help: "Open event streams and sockets."}),
	}
	registry := prometheus.NewRegistry()
	all := append([]prometheus.Collector{m.requests, m.latency, m.commands, m.submit, m.streams,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}, cfg.Collectors...)
	if len(cfg.Stats) > 0 {
		all = append(all, statsCollector(cfg.Stats))
	}
	var errs []error
	for _, c := range all {
		errs = append(errs, registry.Register(c))
	}
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: RequestTimeout})
	return m, errors.Join(errs...)
}

// answered counts a request. The number of method labels is bounded.
func (m *metrics) answered(r *http.Request, status int, took time.Duration) {
	method := r.Method
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
	if !strings.Contains(r.URL.Path, "/events") {
		m.latency.WithLabelValues(method).Observe(took.Seconds())
	}
}

func (m *metrics) submitted(kind string, r ledger.Receipt, err error, took time.Duration) {
	outcome := "applied"
	switch {
	case err != nil:
		outcome = "unknown"
	case r.Refusal != nil:
		outcome = string(r.Refusal.Code)
	}
	m.commands.WithLabelValues(kind, outcome).Inc()
	m.submit.Observe(took.Seconds())
}

// statsCollector calls Stat functions at each scrape.
type statsCollector []func() []Stat

// Describe sends nothing: the metrics are known at the scrape.
func (c statsCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current values.
func (c statsCollector) Collect(out chan<- prometheus.Metric) {
	for _, f := range c {
		for _, s := range f() {
			kind := prometheus.GaugeValue
			if s.Counter {
				kind = prometheus.CounterValue
			}
			m, err := prometheus.NewConstMetric(prometheus.NewDesc(s.Name, s.Help, nil, s.Labels), kind, s.Value)
			if err != nil {
				m = prometheus.NewInvalidMetric(prometheus.NewDesc(s.Name, s.Help, nil, nil), err)
			}
			out <- m
		}
	}
}
