// Package wasm runs agents that are WebAssembly modules: in a sandbox inside the node, with
// the run's own token and no other access to the machine.
//
// adapterConfig is
//
//	module       a path on the node, or attachment:ID or asset:ID, which the
//	             agent must be allowed to read; default: the agent of
//	             examples/agent, which is embedded in the program
//	sha256       of the module, in hex; a module with another hash is not run
//	args, env    as for a process
//	fuel         units; DefaultFuel
//	memoryMb     16
//	timeoutSec   900
//	hostCalls    10000
//	grants       methods that it may call, such as ["issue.*", "log"]; default: all
//	             but http.fetch
//	fetchHosts   hosts that http.fetch may reach, such as ["example.com", "*.example.org"]
//	dirs         directories that it can access, as HOST:GUEST or HOST:GUEST:ro; HOST is an
//	             absolute path on the node, or empty for the agent's permanent folder
//
// A method makes a request to the node's own HTTP API with the run's token, which is served
// within the process: the rules are those of any agent.
package wasm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// DefaultFuel is the fuel of a run: a Go program uses two million units to start, and this
	// is about ten seconds of work.
	DefaultFuel = 10_000_000_000
	// maxOutput bounds a run's output in its log, in bytes.
	maxOutput = 4 << 20
	// maxGrants bounds grants and fetchHosts, each.
	maxGrants = 256
	// maxDirs bounds the directories of a module.
	maxDirs = 16
)

// Config is what the adapter needs. Engine, API and Token are required.
type Config struct {
	Engine *sandbox.Engine
	// API serves requests as the node does; nil while the node opens.
	API func() http.Handler
	// Token returns the token with which the run may use the API.
	Token func(entity.Run) (string, error)
	// Private lists networks that are not public but may be fetched from.
	Private []netip.Prefix
	// Home has a permanent folder for each agent whose configuration asks for one. Default: no
	// agent has one.
	Home string
	// Hide returns the directories that no module can access, except Home: those of this node
	// and of other nodes on the machine. It is called for each run; nil: none.
	Hide func() []string
	// Weigh asks the gate whether a request to the network should be made; nil: each should.
	Weigh  func(govern.Local) error
	Logger *slog.Logger // default: discard
}

// An Adapter runs modules. It is safe for concurrent use.
type Adapter struct {
	cfg       Config
	live.Runs // cancelling a run stops its guest at once
}

// New returns an adapter.
func New(cfg Config) (*Adapter, error) {
	if cfg.Engine == nil || cfg.API == nil || cfg.Token == nil {
		return nil, errors.New("wasm adapter: a sandbox, an API and a source of run tokens are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Adapter{cfg: cfg}, nil
}

// Reasons why a run was ended from outside.
var (
	errCancelled = errors.New("cancelled")
	errNoLease   = errors.New("the node's lease ended")
)

// config is the adapterConfig of a module.
type config struct {
	Module     string                `json:"module"`
	SHA256     string                `json:"sha256"`
	Args       []string              `json:"args"`
	Env        map[string]live.Value `json:"env"`
	Fuel       int64                 `json:"fuel"`
	MemoryMB   int64                 `json:"memoryMb"`
	Timeout    *float64              `json:"timeoutSec"`
	HostCalls  int                   `json:"hostCalls"`
	Grants     []string              `json:"grants"`
	FetchHosts []string              `json:"fetchHosts"`
	Dirs       []string              `json:"dirs"`
}

// Settings returns a zero value of what adapterConfig is decoded into.
func Settings() any { return config{} }

func (c config) check() error {
	switch {
	case c.Fuel < 0 || c.MemoryMB < 0 || c.MemoryMB > sandbox.MaxMemory>>20 || c.HostCalls < 0:
		return fmt.Errorf("WASM adapter limits must not be negative, and memoryMb at most %d", sandbox.MaxMemory>>20)
	case len(c.Grants) > maxGrants || len(c.FetchHosts) > maxGrants:
		return fmt.Errorf("WASM adapter has more than %d grants", maxGrants)
	case len(c.Dirs) > maxDirs:
		return fmt.Errorf("WASM adapter has more than %d dirs", maxDirs)
	}
	return nil
}

// Invoke runs the agent's module and returns when it has ended.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return failure("The agent's adapterConfig is malformed: %v", err)
	}
	if err := c.check(); err != nil {
		return failure("%v", err)
	}
	token, err := a.cfg.Token(inv.Run)
	if err != nil {
		return failure("No token could be made for the run: %v", err)
	}
	whole := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer a.Begin(inv.Run.ID, func() { stop(errCancelled) })()
	lost := func() { stop(errNoLease) }
	defer live.Watch(ctx, inv, lost)()

	r := &run{adapter: a, inv: inv, config: c, token: token, lost: lost, secrets: c.secrets(inv, token)}
	limit, source := process.Timeout(c.Timeout)
	res, err := r.run(ctx, limit)
	if err != nil {
		if errors.Is(err, errNoLease) {
			lost()
		}
		if ctx.Err() == nil {
			return failure("%s", secret.NewRedactor(r.secrets).Clean(err.Error()))
		}
		res.Error = &sandbox.Error{Code: sandbox.Cancelled}
	}
	return r.outcome(res, context.Cause(ctx), whole.Err() != nil, limit, source)
}

// secrets returns the values to redact in the run's output.
func (c config) secrets(inv company.Invocation, token string) []string {
	return append(slices.Clone(inv.Secrets), token)
}

// A run is one invocation.
type run struct {
	adapter *Adapter
	inv     company.Invocation
	config  config
	token   string
	lost    func() // ends the run when its node may no longer act
	secrets []string
	posts   int // number of requests so far that change something

	told       json.RawMessage // from run.result
	toldResult *string
	score      *float64
}

func (r *run) run(ctx context.Context, limit time.Duration) (sandbox.Result, error) {
	wasm, err := r.module(ctx)
	if err != nil {
		return sandbox.Result{}, err
	}
	note, _ := json.Marshal(map[string]any{"adapterType": r.inv.Run.AdapterType, "module": r.config.Module,
		"sha256": sum(wasm), "bytes": len(wasm)}) // never fails
	r.inv.Report(company.Report{Events: []company.ReportEvent{{Type: "adapter.invoke", Level: "info",
		Message: "adapter invocation", Payload: note}}})
	r.inv.Log("system", fmt.Sprintf("[selvage] module %s, %d bytes\n", sum(wasm)[:12], len(wasm)))
	m, err := r.adapter.cfg.Engine.Load(ctx, wasm)
	if err != nil {
		if bad, ok := errors.AsType[*sandbox.Error](err); ok {
			return sandbox.Result{Error: bad}, nil
		}
		return sandbox.Result{}, err
	}
	defer m.Close()
	out, errs := r.stream("stdout"), r.stream("stderr")
	defer errs.rest()
	defer out.rest()
	if !live.MayAct(r.inv) {
		return sandbox.Result{}, errNoLease
	}
	dirs, err := r.dirs()
	if err != nil {
		return sandbox.Result{}, err
	}
	defer func() {
		for _, d := range dirs {
			d.Root.Close()
		}
	}()
	return m.Run(ctx, sandbox.Call{
		Dirs: dirs,
		Args: append([]string{filepath.Base(r.config.Module)}, r.config.Args...), Env: r.environment(), Stdout: out,
		Stderr: errs, Host: r.host(),
		Limits: sandbox.Limits{Fuel: cmp.Or(r.config.Fuel, DefaultFuel), Memory: r.config.MemoryMB << 20, Time: limit,
			HostCalls: r.config.HostCalls, Output: maxOutput},
	}), nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// module reads the configured module.
func (r *run) module(ctx context.Context) (wasm []byte, err error) {
	kind, id, _ := strings.Cut(r.config.Module, ":")
	switch kind {
	case "":
		r.config.Module = "default agent"
		wasm, err = defaultAgent()
	case "attachment", "asset":
		wasm, err = r.content(ctx, "/api/"+kind+"s/"+id+"/content")
	default:
		wasm, err = read(r.config.Module)
	}
	if err != nil {
		return nil, fmt.Errorf("WASM adapter module can not be read: %w", err)
	}
	if want := r.config.SHA256; want != "" && !strings.EqualFold(want, sum(wasm)) {
		return nil, fmt.Errorf("WASM adapter module has SHA-256 %s, not %s", sum(wasm), want)
	}
	return wasm, nil
}

func read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("its path is not absolute")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	return io.ReadAll(io.LimitReader(f, sandbox.DefaultModule+1))
}

// environment returns the guest's environment: its configuration and its identity. It does not
// contain the token, which the host keeps.
func (r *run) environment() []string {
	env := map[string]string{}
	for k, v := range r.config.Env {
		if k != "" && !strings.ContainsAny(k, "=\x00") && !strings.HasPrefix(k, "PAPERCLIP_") {
			env[k] = strings.ReplaceAll(string(v), "\x00", "")
		}
	}
	run := r.inv.Run
	for k, v := range map[string]string{"PAPERCLIP_AGENT_ID": run.Agent, "PAPERCLIP_COMPANY_ID": string(run.Company),
		"PAPERCLIP_RUN_ID":  run.ID,
		"PAPERCLIP_TASK_ID": run.Context.TaskID, "PAPERCLIP_WAKE_REASON": run.Context.WakeReason} {
		if v != "" {
			env[k] = v
		}
	}
	list := make([]string, 0, len(env))
	for k, v := range env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// A logged is an output that is written to the run's log with secrets redacted; its end is kept.
type logged struct {
	r    *run
	name string
	red  *secret.Redactor
}

func (r *run) stream(name string) *logged {
	return &logged{r: r, name: name, red: secret.NewRedactor(r.secrets)}
}

func (l *logged) tell(s string) {
	if s != "" {
		l.r.inv.Log(l.name, s)
	}
}

func (l *logged) Write(p []byte) (int, error) {
	l.tell(l.red.Next(string(p)))
	return len(p), nil
}

func (l *logged) rest() { l.tell(l.red.Rest()) }

// outcome returns how the run ended.
func (r *run) outcome(res sandbox.Result, cause error, stopped bool, limit time.Duration,
	source string) company.Outcome {
	red := secret.NewRedactor(r.secrets)
	out, errs := end(red.Clean(res.Stdout)), end(red.Clean(res.Stderr))
	o := company.Outcome{Stdout: &out, Stderr: &errs, ExitCode: res.ExitCode}
	stop := "adapter_failed"
	o.Status, o.ErrorCode = entity.RunFailed, "adapter_failed"
	switch bad := res.Error; {
	case bad == nil && *res.ExitCode == 0:
		o.Status, o.ErrorCode, stop = entity.RunSucceeded, "", "completed"
	case bad == nil:
		o.Error = fmt.Sprintf("The module exited with code %d", *res.ExitCode)
	case bad.Code == sandbox.Cancelled && errors.Is(cause, errCancelled):
		o.Status, o.ErrorCode, o.Error, stop = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case bad.Code == sandbox.Cancelled && (stopped || errors.Is(cause, errNoLease)):
		o.Status, o.ErrorCode, o.Error, stop = entity.RunInterrupted, "node_lost", "The node stopped the run", "interrupted"
	case bad.Code == sandbox.ExecutionTimeout:
		o.Status, o.ErrorCode, stop = entity.RunTimedOut, "timeout", "timeout"
		o.Error = fmt.Sprintf("Timed out after %v", limit)
	default:
		o.Error = red.Clean(bad.Error())
	}
	code := sandbox.Code("")
	if res.Error != nil {
		code = res.Error.Code
	}
	of := map[string]any{"stopReason": stop, "timeoutFired": stop == "timeout", "timeoutSource": source,
		"timeoutConfigured":  source == "config",
		"effectiveTimeoutMs": limit.Milliseconds(), "effectiveTimeoutSec": int64(limit.Seconds()),
		"fuelUsed": res.FuelUsed, "memoryPeak": res.MemoryPeak, "durationMs": res.DurationMs, "sandboxError": code}
	if told := red.Clean(string(r.told)); r.told != nil && json.Valid([]byte(told)) {
		of["told"] = json.RawMessage(told)
	}
	if r.toldResult != nil {
		of["result"] = red.Clean(*r.toldResult)
	}
	if r.score != nil {
		of["score"] = *r.score
	}
	o.Result, _ = json.Marshal(of) // never fails
	return o
}

// end returns the end of an output, as much as a run's row keeps.
func end(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s[max(0, len(s)-entity.MaxExcerpt):], "\x00", ""), "\uFFFD")
}

func failure(format string, args ...any) company.Outcome {
	return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed", Error: fmt.Sprintf(format, args...)}
}
