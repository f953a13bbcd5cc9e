package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/adapter/spawn"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// processWait bounds a question about processes, there and back: a module is fetched and
	// compiled, or an image is pulled, before a process runs.
	processWait = 2*time.Minute + 10*time.Second
	// replicasEvery is how often a node with declared processes compares them with the state;
	// a change is looked at once it is heard of.
	replicasEvery = 2 * beat
	// reportWait bounds the report about one replica, handBackWait giving back all of them.
	reportWait   = 5 * time.Second
	handBackWait = 2 * time.Second
)

// openHost opens the processes of this node.
func (n *Node) openHost(dir string) (err error) {
	engine := n.conf.Containers
	if len(engine) == 0 {
		engine = container.Find()
	}
	conf := spawn.Config{
		Node: n.Name(), Label: string(n.ID()), Dir: filepath.Join(dir, "processes"), Shim: n.conf.Shim, Environ: os.Environ(),
		APIURL: n.LocalURL(), API: n.handler, Engine: engine,
		Sandbox: n.work.sandbox, Module: n.module, Max: n.conf.MaxProcesses, Events: n.events, Logger: n.log,
		Clock: n.conf.Clock, Wall: n.conf.Wall,
		Authority: func() time.Duration {
			if n.work.worker == nil {
				return 0
			}
			return n.work.worker.Authority()
		},
		OpenLog: func(pid kernel.PID) (spawn.Log, error) {
			w, err := n.work.logs.Create(api.ProcessLogRef(pid))
			return processWriter{w}, err
		},
	}
	conf.Weigh = n.mayStart
	if n.work.post, err = n.openPost(dir); err != nil {
		return err
	}
	conf.Messages = n.work.post
	n.work.services = calls.New(n.askService, n.conf.Wall)
	if n.work.host, err = spawn.Open(conf); err != nil {
		return errors.Join(err, n.work.post.Close())
	}
	n.work.post.Start(n.work.host.Table(), n.work.host.Signal)
	return nil
}

// mayStart asks before a start that nobody has just asked for: the access policy, whether the person who wants the
// process may have it on this node, and then the constitution.
func (n *Node) mayStart(e kernel.Entry) error {
	why := ""
	err := n.ledger.View(func(tx *ledger.Tx) error {
		why = govern.PersonAt(tx, e.By, core.TimeOf(n.conf.Wall()))(string(n.ID()))
		return nil
	})
	if err != nil {
		return errors.Join(errNotWeighed, err)
	}
	if why != "" {
		return fmt.Errorf("denied by the access policy of the resource tree: %s. Who may change this path can grant it: "+
			"selvage tree grant", why)
	}
	return n.Weigh(govern.Local{Action: replica.KindSpawn, Board: true})
}

// Host returns what holds the processes of this node.
func (n *Node) Host() *spawn.Host { return n.work.host }

// askService sends a call of a service to a process of the mesh, as this node's kernel.
func (n *Node) askService(ctx context.Context, to kernel.Address, body json.RawMessage) (reply json.RawMessage,
	unsent bool, err error) {
	e, _ := n.work.post.Table().Find(kernel.KernelPID)
	return n.work.post.AskService(ctx, e, to, "", body)
}

// registered are the services of the mesh, for messages to them.
type registered struct{ n *Node }

func (r registered) find(company, name string) (s service.Service, all []calls.Provider, known bool) {
	_ = r.n.ledger.View(func(tx *ledger.Tx) error {
		if strings.Contains(name, "/") {
			s, known = service.Of(tx, ledger.CompanyID(company), name)
		} else {
			s, known = service.Named(tx, name)
		}
		if known {
			all = calls.ProvidersOf(tx, s)
		}
		return nil
	})
	return s, all, known
}

// Providers returns the processes that provide a service and whose breakers let calls pass.
func (r registered) Providers(company, name string) (out []kernel.Address, known bool) {
	_, all, known := r.find(company, name)
	for _, p := range r.n.work.services.Callable(all) {
		out = append(out, p.Address())
	}
	return out, known
}

// Call calls a method of a service as the process for which ask sends.
func (r registered) Call(ctx context.Context, company, node, name, method string, params json.RawMessage,
	ask courier.Ask) (json.RawMessage, kernel.Address, error) {
	s, all, _ := r.find(company, name)
	all = slices.DeleteFunc(all, func(p calls.Provider) bool { return node != "" && p.Node != node })
	a, err := r.n.work.services.CallBy(ctx, calls.Ask(ask), s, all, method, params, calls.MaxTimeout)
	if err == nil {
		return a.Result, a.By.Address(), nil
	}
	failed, isFailure := errors.AsType[*post.Failure](err)
	for _, one := range []struct {
		of     error
		reason post.Reason
	}{{calls.ErrRefused, post.Refused}, {calls.ErrContract, post.Broken}, {calls.ErrTimeout, post.Timeout},
		{calls.ErrOpen, post.CircuitOpen}, {calls.ErrNoProvider, post.TargetNotFound}} {
		if errors.Is(err, one.of) {
			return nil, kernel.Address{}, post.Fail(one.reason, "%v", err)
		}
	}
	if isFailure {
		return nil, kernel.Address{}, failed
	}
	if errors.Is(err, calls.ErrNoMethod) || errors.Is(err, calls.ErrParams) {
		err = kernel.Errorf(kernel.BadRequest, "%v", err)
	}
	return nil, kernel.Address{}, err
}

// probeServices probes the providers that run on this node, until ctx ends. One that fails
// again and again is ended, so that its supervisor starts it again.
func (n *Node) probeServices(ctx context.Context) {
	type one struct {
		of service.Service
		at calls.Provider
	}
	every(ctx, calls.ProbeEvery, func() {
		var all []one
		_ = n.ledger.View(func(tx *ledger.Tx) error {
			for _, s := range service.All(tx) {
				d, _ := replica.Named(tx, s.Provider)
				for _, r := range d.Replicas {
					if s.Probe != "" && r.Node == string(n.ID()) && r.State == replica.Running && r.PID != 0 {
						all = append(all, one{s, calls.Provider{Node: r.Node, PID: r.PID}})
					}
				}
			}
			return nil
		})
		for _, o := range all {
			if sick := n.work.services.Probe(ctx, o.of, o.at); sick == calls.SickAfter && ctx.Err() == nil {
				pid := kernel.PID(o.at.PID)
				n.events.Add(kernel.Event{Level: kernel.LevelError, PID: &pid, Kind: "service.unhealthy",
					Message: fmt.Sprintf("it provides %s and failed %d probes in a row: it is ended, and started again by its "+
						"supervisor", o.of.Name, sick)})
				if err := n.work.host.Signal(pid, "TERM"); err != nil {
					n.log.Debug("an unhealthy provider could not be ended", "pid", pid, "error", err)
				}
			}
		}
	})
}

// nodeNamed finds the ID of a member by its ID or name.
func (n *Node) nodeNamed(ref string) (string, error) {
	var found []string
	for id, m := range n.roster.all() {
		switch {
		case !m.Member():
		case string(id) == ref:
			return ref, nil
		case m.Name == ref || id.Short() == ref:
			found = append(found, string(id))
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("node %q: no member has this name or ID", ref)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("node %q: %d nodes have this name; give the ID", ref, len(found))
}

// A processWriter is the log of a process.
type processWriter struct{ *runlog.Writer }

// End closes the log; what could not be written is missing from it.
func (w processWriter) End() { _, _ = w.Close() }

// module reads a module that the mesh stores.
func (n *Node) module(ctx context.Context, sha256 string, size int64) ([]byte, error) {
	d, err := blob.ParseDigest(sha256)
	if err != nil {
		return nil, err
	}
	c, err := n.blobs.Read(ctx, blob.Reference{Digest: d, Size: size})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return io.ReadAll(io.LimitReader(c, sandbox.DefaultModule+1))
}

// track shows a run as a process while its adapter executes it.
func (n *Node) track(inv company.Invocation) (began func(int64), ended func(company.Outcome)) {
	var config struct {
		Limits struct {
			MemoryMB int64 `json:"memoryMb"`
			CPUSec   int64 `json:"cpuSec"`
			Calls    int64 `json:"toolCalls"`
			Cents    int64 `json:"costCents"`
		} `json:"limits"`
	}
	_ = json.Unmarshal(inv.Config, &config) // other adapters have other limits
	r := inv.Run
	of := ""
	err := n.ledger.View(func(tx *ledger.Tx) error {
		of = app.OfAgent(tx, r.Company, r.Agent)
		return nil
	})
	if err != nil {
		n.log.Warn("the app of a run is not shown", "run", r.ID, "error", err)
	}
	shown := n.work.host.Adopt(kernel.Entry{Kind: kernel.KindRun, Name: inv.AgentName, Company: string(r.Company),
		App: of, Agent: r.Agent, Run: r.ID, Adapter: r.AdapterType,
		Capabilities: kernel.Capabilities{CanIPC: true, CanExecTools: true, Scope: kernel.Scope{Kind: kernel.ScopeAll},
			Limits: kernel.Limits{MemoryBytes: config.Limits.MemoryMB << 20, CPUTimeMs: config.Limits.CPUSec * 1000,
				ToolCalls: config.Limits.Calls, CostCents: config.Limits.Cents}}},
		func(why string) { n.cancelRun(r, why) })
	return func(pid int64) { shown.Machine(int(pid)) }, func(o company.Outcome) {
		x := kernel.Exit{Reason: kernel.Normal, Message: o.Error}
		switch o.Status {
		case entity.RunSucceeded:
		case entity.RunTimedOut:
			x.Code, x.Reason = kernel.ExitForced, kernel.Timeout
		case entity.RunCancelled, entity.RunInterrupted:
			x.Code, x.Reason = kernel.ExitForced, kernel.Killed
		default:
			x.Code, x.Reason = 1, kernel.Crash
		}
		if o.ExitCode != nil {
			x.Code = *o.ExitCode
		}
		shown.Ended(x)
	}
}

// chargeTool counts a call of a tool on the process of a run.
func (n *Node) chargeTool(run string) error {
	if n.work.host == nil {
		return nil
	}
	if err := n.work.host.ChargeRun(run, kernel.ToolCalls, 1); err != nil {
		return ledger.Refuse(ledger.Forbidden, nil,
			"%s: limits.toolCalls of the agent's configuration says how many a run may make", err.Error())
	}
	return nil
}

// cancelRun cancels a run whose process has passed a limit.
func (n *Node) cancelRun(r entity.Run, why string) {
	ctx, cancel := context.WithTimeout(n.ctx, submitTimeout)
	defer cancel()
	if err := n.carryOut(ctx, n.command(company.KindRunCancel, r.Company, company.Cancel{Run: r.ID})); err != nil {
		n.log.Warn("a run that passed a limit could not be cancelled", "run", r.ID, "why", why, "error", err)
	}
}

// keepProcesses makes the declared processes of this node what the state says, until ctx ends.
func (n *Node) keepProcesses(ctx context.Context) {
	for {
		changed := n.work.host.Changed()
		n.lookAtReplicas(ctx)
		again := kernel.ReconcileEvery
		if len(n.work.host.Fates()) > 0 {
			again = replicasEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-n.replicaNews:
		case <-time.After(again):
		}
	}
}

// concernsReplicas reports whether a kind of command may change which declared processes a
// node has to run.
func concernsReplicas(kind string) bool {
	return strings.HasPrefix(kind, "process.") || strings.HasPrefix(kind, "app.") ||
		strings.HasPrefix(kind, "mesh.") || strings.HasPrefix(kind, "session.") || kind == company.KindNodeLost
}

// A told is how a replica stands in the state.
type told struct {
	generation uint64
	session    uint64
	replica.Replica
}

// lookAtReplicas starts and ends declared processes, and reports how they stand.
func (n *Node) lookAtReplicas(ctx context.Context) {
	session := n.session()
	var wanted []spawn.Wanted
	stand := map[string]told{}
	halted := false
	err := n.ledger.View(func(tx *ledger.Tx) error {
		_, halted = entity.Halted(tx)
		for _, d := range replica.All(tx) {
			for i, r := range d.Replicas {
				if r.Node != string(n.ID()) || r.Session != session || session == 0 {
					continue
				}
				stand[fmt.Sprint(d.ID, i)] = told{d.Generation, r.Session, r}
				if r.Over() || halted {
					continue
				}
				w := spawn.Wanted{ID: d.ID, Replica: i, Generation: d.Generation}
				if err := json.Unmarshal(d.Spec, &w.Spec); err != nil {
					w.Spec = kernel.Spec{} // the host says what is missing
				}
				w.Spec.By, w.Spec.App = d.By, cmp.Or(w.Spec.App, app.OfProcess(tx, ledger.CompanyID(w.Spec.Company), d.Name))
				wanted = append(wanted, w)
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	n.work.host.Ensure(wanted)
	if halted {
		n.work.host.EndSpawned("everything was stopped")
		return
	}
	for _, f := range n.work.host.Fates() {
		t, ok := stand[fmt.Sprint(f.ID, f.Replica)]
		if !ok || t.generation != f.Generation || t.Over() || t.State == f.State && t.PID == uint64(f.PID) &&
			t.Restarts == int64(f.Restarts) {
			continue
		}
		n.reportReplica(ctx, f, t.session)
	}
}

// reportReplica says how a replica stands. What fails is said again at the next look.
func (n *Node) reportReplica(ctx context.Context, f spawn.Fate, session uint64) {
	ctx, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	err := n.carryOut(ctx, n.command(replica.KindReport, "", replica.Report{ID: f.ID, Replica: int64(f.Replica),
		Generation: f.Generation, Session: session,
		State: f.State, PID: uint64(f.PID), Restarts: int64(f.Restarts), Exit: int64(f.Exit), Error: f.Error}))
	if err != nil {
		n.log.Debug("how a declared process stands could not be told", "process", f.ID, "error", err)
	}
}

// handBackReplicas gives the replicas of a node that stops back, so that others start them at
// once. Otherwise they wait for the end of the node's lease.
func (n *Node) handBackReplicas() {
	fates := n.work.host.Fates()
	session := n.session()
	if len(fates) == 0 || session == 0 || n.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, handBackWait)
	defer cancel()
	n.work.host.Ensure(nil)
	for _, f := range fates {
		if f.State == spawn.Running || f.State == spawn.Starting {
			f.State, f.Error = replica.Waiting, "its node was stopped"
			n.reportReplica(ctx, f, session)
		}
	}
}

// processes asks a node about its processes.
func (n *Node) processes(ctx context.Context, on identity.NodeID, ask api.ProcessAsk) (api.ProcessAnswer, error) {
	return n.processQuestion().put(ctx, n, on, ask)
}

func (n *Node) processQuestion() question[api.ProcessAsk, api.ProcessAnswer] {
	return question[api.ProcessAsk, api.ProcessAnswer]{ipcProcess, ipcProcesses, processWait, n.processesHere}
}

// processesHere answers a question about the processes of this node.
func (n *Node) processesHere(ctx context.Context, ask api.ProcessAsk) (out api.ProcessAnswer) {
	h := n.work.host
	if h == nil { // others ask as soon as this node is a member
		return api.ProcessAnswer{Kind: kernel.SpawnFailed, Error: "the node is booting"}
	}
	one := func(e kernel.Entry) { out.Entries = []kernel.Entry{e} }
	var err error
	switch ask.Op {
	case api.ProcessList:
		all := h.List(ask.All)
		all = slices.DeleteFunc(all, func(e kernel.Entry) bool { return ask.More && e.PID <= ask.PID })
		out.More = len(all) > api.ProcessPage
		out.Entries = all[:min(len(all), api.ProcessPage)]
	case api.ProcessFind:
		e, ok := h.Find(ask.PID)
		if one(e); !ok {
			err = kernel.Errorf(kernel.ProcessNotFound, "process %s: there is none on this node", ask.PID)
		}
	case api.ProcessNamed:
		all := n.work.post.Named(ask.Name)
		out.Entries = all[:min(len(all), api.ProcessPage)]
	case api.ProcessSpawn:
		var e kernel.Entry
		e, err = h.Spawn(ctx, cmp.Or(ask.Spec, &kernel.Spec{}).WithDefaults())
		one(e)
	case api.ProcessSignal:
		if err = h.Signal(ask.PID, ask.Signal); err == nil {
			e, _ := h.Find(ask.PID)
			one(e)
		}
	case api.ProcessElevate:
		var e kernel.Entry
		e, err = h.Elevate(ask.PID, *cmp.Or(ask.Capabilities, &kernel.Capabilities{}),
			time.Duration(min(ask.Seconds, math.MaxInt32))*time.Second)
		one(e)
	case api.ProcessEvents:
		out.Events = n.events.Tail(ask.Tail, ask.Level)
	default:
		err = kernel.Errorf(kernel.BadRequest, "this node does not know the question %q about processes", ask.Op)
	}
	if err != nil {
		out.Kind, out.Error = kernel.KindOf(err), err.Error()
		var joined interface{ Unwrap() []error }
		if errors.As(err, &joined) {
			out.Kind = kernel.BadRequest
		}
		out.Entries = nil
	}
	return out
}
