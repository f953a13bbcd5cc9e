package apitest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/adapter/weftos"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// A gate holds back the placing of runs while it is closed, so that a story can
// say when its runs go on.
type gate struct {
	*Solo
	Shut sync.RWMutex // write-locked while closed
}

func (g *gate) Submit(ctx context.Context, c ledger.Command) (ledger.Receipt, error) {
	if c.Kind == "run.place" {
		g.Shut.RLock()
		defer g.Shut.RUnlock()
	}
	return g.Solo.Submit(ctx, c)
}

// patientLease outlasts a machine that is busy with floods under the race detector.
const patientLease = 2 * time.Minute

// NewWorkingHarness is a harness whose node really schedules and carries out
// runs: a leader, a worker, the adapter for processes and its logs.
func NewWorkingHarness(t testing.TB) *Harness {
	t.Helper()
	return NewWorkingHarnessOn(t, NewSolo(t))
}

// NewWorkingHarnessOn is [NewWorkingHarness] on a node.
func NewWorkingHarnessOn(t testing.TB, n *Solo) *Harness {
	t.Helper()
	dir := t.TempDir()
	logs, err := runlog.Open(dir+"/logs", runlog.Config{Wall: n.Wall})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHarnessOn(t, n, func(c *api.Config) {
		c.RunLog = func(_ context.Context, r entity.Run, offset, limit int64) (runlog.Chunk, error) {
			return logs.Read(string(r.LogRef), offset, limit)
		}
	})
	web := httptest.NewServer(h)
	h.Web = web.URL
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(web.URL, "http://"))
	token := func(r entity.Run) (string, error) {
		claims := identity.RunClaims{Agent: r.Agent, Company: string(r.Company), Adapter: r.AdapterType, Run: r.ID,
			Responsible: string(r.ResponsibleUser)}
		return identity.MintRunToken(TestDataKey, h.Node.Mesh, claims, n.Wall())
	}
	kernel := weftos.New(weftos.Config{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		API: func() http.Handler { return h }, Token: token})
	p, err := process.New(process.Config{Shim: shimtest.Command, Dir: dir + "/runs", APIURL: web.URL, ListenHost: host,
		ListenPort: port,
		Token:      token, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	self := h.Node.Keys.ID()
	h.Gate = &gate{Solo: h.Node}
	lead := scheduler.NewLeader(scheduler.LeaderConfig{Node: h.Gate, Self: self, Clock: shim.BootTime, Now: n.Wall,
		Lease: patientLease, Verify: func(context.Context) error { return nil }})
	work, err := scheduler.NewWorker(scheduler.WorkerConfig{Node: h.Node, Self: self, Clock: shim.BootTime, Wall: n.Wall,
		Lease: patientLease, Slots: 16,
		Session: func() uint64 { return h.Node.Sess }, KeepAlive: lead.KeepAlive,
		Adapters: map[string]scheduler.Adapter{"process": p, "http": webcall.New(webcall.Config{}), "weftos": kernel},
		LogRef:   runlog.Ref,
		OpenLog:  func(ref string) (scheduler.Log, error) { return logs.Create(ref) },
		Secrets: func(_ context.Context, r entity.Run, config json.RawMessage) (json.RawMessage, []string, error) {
			var got secret.Resolution
			err := h.Node.Ledger.View(func(tx *ledger.Tx) (err error) {
				got, err = secret.Resolve(tx, string(h.Node.Mesh), r, config, func(aad, sealed []byte) ([]byte,
					error) {
					return identity.Open(TestDataKey, aad, sealed)
				})
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
		h.Gate.Shut.TryLock() // whoever waits at it goes on
		h.Gate.Shut.Unlock()
		cancel()
		wg.Wait()
		web.Close()
		logs.Close()
	})
	return h
}

// Patience bounds every wait for what comes about by itself; the machine may be
// small and busy.
const Patience = 2 * time.Minute

// Until waits for ok to hold of the node's state.
func (h *Harness) Until(what string, ok func(*ledger.Tx) bool) {
	h.T.Helper()
	Patient.Until(h.T, what, func() (held bool) {
		_, err := h.Node.View(h.T.Context(), ledger.Read{Mode: ledger.ReadStale},
			func(tx *ledger.Tx) error { held = ok(tx); return nil })
		if err != nil {
			h.T.Fatal(err)
		}
		return held
	})
}

// During opens a closed gate while f runs.
func (h *Harness) During(f func()) {
	h.Gate.Shut.Unlock()
	defer h.Gate.Shut.Lock()
	f()
}

// Rest waits until no run is queued or at work any more, but for those of the
// agents that never end by themselves.
func (h *Harness) Rest() {
	h.T.Helper()
	h.Until("all runs to end", func(tx *ledger.Tx) bool {
		for _, c := range entity.Companies(tx) {
			for _, r := range entity.LiveRunsOf(tx, c.ID) {
				if a, ok := entity.AgentByID(tx, r.Agent); ok && a.Name != "Sleepy" {
					return false
				}
			}
		}
		return true
	})
}
