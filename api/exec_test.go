package api

import (
	"context"
	"encoding/json"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// The test binary is the shim of its runs too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run-shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// A gate holds back the placing of runs while it is closed, so that a story can
// say when its runs go on.
type gate struct {
	*solo
	shut sync.RWMutex // write-locked while closed
}

func (g *gate) Submit(ctx context.Context, c ledger.Command) (ledger.Receipt, error) {
	if c.Kind == "run.place" {
		g.shut.RLock()
		defer g.shut.RUnlock()
	}
	return g.solo.Submit(ctx, c)
}

// patientLease outlasts a machine that is busy with floods under the race detector.
const patientLease = 2 * time.Minute

// newWorkingHarness is a harness whose node really schedules and carries out
// runs: a leader, a worker, the adapter for processes and its logs.
func newWorkingHarness(t testing.TB) *harness {
	t.Helper()
	dir := t.TempDir()
	logs, err := runlog.Open(dir+"/logs", runlog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, func(c *Config) {
		c.RunLog = func(_ context.Context, r company.Run, offset, limit int64) (runlog.Chunk, error) {
			return logs.Read(string(r.LogRef), offset, limit)
		}
	})
	web := httptest.NewServer(h)
	h.web = web.URL
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	p, err := process.New(process.Config{Shim: []string{"/proc/self/exe", "run-shim"}, Dir: dir + "/runs", APIURL: web.URL, ListenHost: host, ListenPort: port,
		Token: func(r company.Run) (string, error) {
			claims := identity.RunClaims{Agent: r.Agent, Company: r.Company, Adapter: "process", Run: r.ID, Responsible: string(r.ResponsibleUser)}
			return identity.MintRunToken(testDataKey, h.node.mesh, claims, time.Now())
		}, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	self := h.node.keys.ID()
	h.gate = &gate{solo: h.node}
	lead := scheduler.NewLeader(scheduler.LeaderConfig{Node: h.gate, Self: self, Clock: shim.BootTime, Lease: patientLease, Verify: func(context.Context) error { return nil }})
	work, err := scheduler.NewWorker(scheduler.WorkerConfig{Node: h.node, Self: self, Clock: shim.BootTime, Lease: patientLease, Slots: 16,
		Session: func() uint64 { return h.node.sess }, KeepAlive: lead.KeepAlive,
		Adapters: map[string]scheduler.Adapter{"process": p, "http": webcall.New(webcall.Config{})}, LogRef: runlog.Ref,
		OpenLog: func(ref string) (scheduler.Log, error) { return logs.Create(ref) },
		Secrets: func(_ context.Context, r company.Run, config json.RawMessage) (json.RawMessage, []string, error) {
			var got secret.Resolution
			err := h.node.ledger.View(func(tx *ledger.Tx) (err error) {
				got, err = secret.Resolve(tx, string(h.node.mesh), r, config, func(aad, sealed []byte) ([]byte, error) { return identity.Open(testDataKey, aad, sealed) })
				return err
			})
			return got.Config, got.Values, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = lead.Run(ctx) })
	wg.Go(func() { _ = work.Run(ctx) })
	lead.Lead(true)
	t.Cleanup(func() {
		h.gate.shut.TryLock() // whoever waits at it goes on
		h.gate.shut.Unlock()
		cancel()
		wg.Wait()
		web.Close()
		logs.Close()
	})
	return h
}

// patience bounds every wait for what comes about by itself; the machine may be
// small and busy.
const patience = 2 * time.Minute

// until waits for ok to hold of the node's state.
func (h *harness) until(what string, ok func(*ledger.Tx) bool) {
	h.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		held := false
		_, err := h.node.View(h.t.Context(), ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error { held = ok(tx); return nil })
		if err != nil {
			h.t.Fatal(err)
		}
		if held {
			return
		}
		if time.Since(begun) > patience {
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// during opens a closed gate while f runs.
func (h *harness) during(f func()) {
	h.gate.shut.Unlock()
	defer h.gate.shut.Lock()
	f()
}

// rest waits until no run is queued or at work any more, but for those of the
// agents that never end by themselves.
func (h *harness) rest() {
	h.t.Helper()
	h.until("all runs to end", func(tx *ledger.Tx) bool {
		for _, c := range company.Companies(tx) {
			for _, r := range company.LiveRunsOf(tx, c.ID) {
				if a, ok := company.AgentByID(tx, r.Agent); ok && a.Name != "Sleepy" {
					return false
				}
			}
		}
		return true
	})
}
