// Package process runs agents that are commands: any program that reads its
// environment and calls the HTTP API with its run's token.
//
// The command gets an empty standard input, the environment of the contract, a scratch
// directory that is deleted afterwards, and a timeout: after timeoutSec its whole process
// tree gets TERM, and after graceSec more KILL. It runs under a shim (see adapter/shim), so
// no process of a run is left when the run is over or when the node has lost its authority.
// Output is not parsed: a process reports its actions and cost through the API.
package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
)

const (
	// DefaultTimeout and DefaultGrace are the contract's.
	DefaultTimeout = 900 * time.Second
	DefaultGrace   = 15 * time.Second
	// MaxTimeout bounds every run, also one without a timeout.
	MaxTimeout = 24 * time.Hour
	// MaxGrace bounds the grace time of a run.
	MaxGrace = 5 * time.Minute
	// RenewEvery is how often the shim's deadline is set to the end of the node's lease.
	RenewEvery = 250 * time.Millisecond
	// readSize bounds one read of the output, in bytes.
	readSize = 16 << 10
	// drainWait bounds the wait for output after the tree is gone.
	drainWait = 2 * time.Second
	// scratchMarker is the file that marks a scratch directory.
	scratchMarker = ".paperclip-run-scratch.json"
	// maxShownArgs bounds the arguments in a run's events, in bytes.
	maxShownArgs = 8 << 10
)

// Config is what the adapter needs. All but Logger are required.
type Config struct {
	Shim       []string // command line that starts a shim, such as {"/proc/self/exe", "run-shim"}
	MemoryMB   int64    // of the machine, in MiB; 0: not known
	Dir        string   // holds workspaces/<agent> and scratch/<run>; it is created
	APIURL     string   // where this node's API answers, such as http://127.0.0.1:3100
	ListenHost string
	ListenPort string
	// Token returns the token with which the run may use the API.
	Token func(entity.Run) (string, error)
	// Environ is the node's environment as "K=V"; runs get the variables in baseNames.
	Environ []string
	Logger  *slog.Logger // default: discard
}

// An Adapter runs commands. It is safe for concurrent use.
type Adapter struct {
	cfg   Config
	shims *shim.Launcher
	live.Runs
}

// New returns an adapter. It deletes scratch directories that an earlier process of the node
// left.
func New(cfg Config) (*Adapter, error) {
	switch {
	case len(cfg.Shim) == 0:
		return nil, errors.New("process adapter: no run shim")
	case cfg.Dir == "" || !filepath.IsAbs(cfg.Dir):
		return nil, errors.New("process adapter: an absolute directory is required")
	case cfg.Token == nil:
		return nil, errors.New("process adapter: no source of run tokens")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.RemoveAll(filepath.Join(cfg.Dir, "scratch")); err != nil {
		return nil, fmt.Errorf("process adapter: %w", err)
	}
	for _, d := range []string{"scratch", "workspaces"} {
		if err := os.MkdirAll(filepath.Join(cfg.Dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("process adapter: %w", err)
		}
	}
	return &Adapter{cfg: cfg, shims: shim.NewLauncher(cfg.Shim)}, nil
}

// Ready says that a run will be invoked soon, so that a shim is started ahead.
func (a *Adapter) Ready() { a.shims.Ready() }

// Close ends the shim that waits for the next run.
func (a *Adapter) Close() { a.shims.Close() }

// Invoke runs the agent's command and returns when its whole process tree has ended.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return failure("The agent's adapterConfig is malformed: %v", err)
	}
	if c.Command == "" {
		return failure("Process adapter missing command")
	}
	return a.carry(ctx, inv, c, func(Place) (Job, error) {
		return Job{Command: c.Command, Args: c.Args, Confine: true, plain: true}, nil
	})
}

// carry prepares the run's folders and variables, starts the job that plan returns, and
// returns when its whole process tree has ended.
func (a *Adapter) carry(ctx context.Context, inv company.Invocation, c config,
	plan func(Place) (Job, error)) company.Outcome {
	cancel := make(chan struct{}) // closed to cancel: TERM to the tree, KILL after its grace
	defer a.Begin(inv.Run.ID, sync.OnceFunc(func() { close(cancel) }))()
	if err := c.check(); err != nil {
		return failure("%v", err)
	}
	token, err := a.cfg.Token(inv.Run)
	if err != nil {
		return failure("No token could be made for the run: %v", err)
	}
	home := filepath.Join(a.cfg.Dir, "workspaces", filepath.Base(inv.Run.Agent))
	scratch, err := os.MkdirTemp(filepath.Join(a.cfg.Dir, "scratch"), "run-"+filepath.Base(inv.Run.ID)+"-")
	if err == nil {
		err = os.MkdirAll(home, 0o700)
	}
	if err != nil {
		return failure("No directory could be made for the run: %v", err)
	}
	defer func() {
		err := os.RemoveAll(scratch)
		inv.Report(event("lifecycle", "run scratch cleaned", map[string]any{"dir": scratch, "removed": err == nil}))
	}()
	env, secrets := a.environment(inv, c, token, home, scratch)
	dir, source := cmp.Or(c.Dir, home), "agent_home"
	if c.Dir != "" {
		source = "adapter_config"
	}
	// A worktree isolates the run from others, so it overrides the configuration; a shared
	// folder is only a default.
	if f := inv.Folder; f != nil && (c.Dir == "" || f.Worktree != "") {
		dir, source = f.Dir, f.Source
	}
	env["PAPERCLIP_WORKSPACE_CWD"], env["PAPERCLIP_WORKSPACE_SOURCE"] = dir, source
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return failure("The run's working directory %q (%s) is not a directory of this node; create it, or name another",
			dir, source)
	}
	if err := os.WriteFile(filepath.Join(scratch, scratchMarker), fmt.Appendf(nil, "{\"runId\":%q}\n", inv.Run.ID),
		0o600); err != nil {
		return failure("No directory could be made for the run: %v", err)
	}
	if err := layOut(inv.Instructions, scratch, env); err != nil {
		return failure("The agent's instructions could not be written: %v", err)
	}
	job, err := plan(Place{Dir: dir, Home: home, Scratch: scratch, Env: env, Token: token, APIURL: a.cfg.APIURL})
	if err != nil {
		return refused(err)
	}
	secrets = append(secrets, job.apply(env)...)
	if c.confines(job) {
		keepCaches(env, home)
	}
	path, ok := lookPath(job.Command, dir, env["PATH"])
	if !ok {
		return failure("Failed to start command %q: no such program in %q", job.Command, env["PATH"])
	}
	env["PAPERCLIP_RESOLVED_COMMAND"] = path
	place := entity.RunPlace{Dir: dir, Home: home, Scratch: scratch, Source: source}
	inv.Report(company.Report{Place: &place})
	red := secret.NewRedactor(secrets)
	inv.Report(event("adapter.invoke", "adapter invocation", map[string]any{"adapterType": inv.Run.AdapterType,
		"command": job.Command,
		"cwd":     dir, "commandArgs": shownArgs(red, job.Args), "env": shown(env, c)}))
	if source == "agent_home" {
		inv.Log("system", "[selvage] no working directory is configured; using the agent's workspace "+home+"\n")
	}
	spec := shim.Spec{Path: path, Args: append([]string{job.Command}, job.Args...), Dir: dir, Env: list(env),
		Deadline: inv.Authority()}
	c.hold(&spec, inv, job, home, scratch)
	spec.Limits = c.Limits.of(!job.plain, a.cfg.MemoryMB)
	if spec.Deadline <= shim.BootTime() {
		return late()
	}
	return a.watch(ctx, inv, c, job, cancel, spec, secrets)
}

// watch starts the command and waits for its end.
func (a *Adapter) watch(ctx context.Context, inv company.Invocation, c config, job Job, cancel <-chan struct{},
	spec shim.Spec, secrets []string) company.Outcome {
	p, err := Begin(spec, func(spec shim.Spec, stdout, stderr *os.File) (*shim.Process, error) {
		return job.start(a.shims, spec, stdout, stderr)
	})
	if errors.Is(err, shim.ErrLate) {
		return late()
	}
	if err != nil {
		return failure("Failed to start command %q: %v", job.Command, err)
	}
	inv.Report(company.Report{PID: int64(p.PID), Group: int64(p.Group)})
	for _, note := range p.Notes {
		if note == shim.NoCgroup && c.Limits.MemoryMB == nil {
			continue // no memory limit was configured
		}
		inv.Log("system", "[selvage] "+note+"\n")
	}
	p.follow(quietly(job.Quiet, inv.Log), inv.Log, secrets, job.Hear)
	limit, source := c.timeout()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	renew := time.NewTicker(RenewEvery)
	defer renew.Stop()
	done := ctx.Done()
	timedOut, cancelled, killed, worked := false, false, false, false
	overAt := job.Over
	var e Ending
	for over := false; !over; {
		select {
		case e = <-p.Ended():
			over = true
		case <-renew.C:
			p.Renew(inv.Authority())
		case <-timeout.C:
			if !cancelled {
				timedOut = true
				p.Terminate(c.grace())
			}
		case <-cancel:
			cancel = nil
			if !timedOut {
				cancelled = true
				if job.Stop == nil {
					p.Terminate(c.grace())
					break
				}
				polite := time.AfterFunc(min(job.Stop(), c.grace()), func() { p.Terminate(c.grace()) })
				defer polite.Stop()
			}
		case <-overAt:
			overAt, worked = nil, true
			late := time.AfterFunc(drainWait, func() { p.Terminate(min(c.grace(), drainWait)) })
			defer late.Stop()
		case <-done:
			done, killed = nil, true
			p.Kill()
		}
	}
	out, errOut := p.Output()
	o := company.Outcome{Stdout: &out, Stderr: &errOut, Signal: e.Exit.Signal}
	if e.Err == nil && e.Exit.Signal == "" {
		o.ExitCode = new(e.Exit.Code)
	}
	stop := ""
	switch {
	case e.Err != nil:
		o.Status, o.ErrorCode, o.Error, stop = entity.RunFailed, "process_lost", "The run's process was lost: "+e.Err.Error(),
			"process_lost"
	case killed, e.Exit.Killed == "deadline", e.Exit.Killed == "pipe":
		o.Status, o.ErrorCode, o.Error, stop = entity.RunInterrupted, "node_lost", "The node stopped the run", "interrupted"
	case timedOut:
		o.Status, o.ErrorCode, stop = entity.RunTimedOut, "timeout", "timeout"
		o.Error = fmt.Sprintf("Timed out after %ds", int(limit.Round(time.Second)/time.Second))
		o.ExitCode = nil
	case tooMuch(e.Exit.Killed, spec.Limits) != "":
		o.Status, o.ErrorCode, o.Error, stop = entity.RunFailed, "adapter_failed", tooMuch(e.Exit.Killed, spec.Limits),
			e.Exit.Killed+"_limit"
	case cancelled:
		o.Status, o.ErrorCode, o.Error, stop = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case worked && e.Exit.Killed != "": // the work was done, but the command had to be ended
		o.Status, stop = entity.RunSucceeded, "completed"
	case e.Exit.Signal != "":
		o.Status, o.ErrorCode, o.Error, stop = entity.RunFailed, "adapter_failed", "Process was ended by "+e.Exit.Signal,
			"adapter_failed"
	case e.Exit.Code != 0:
		o.Status, o.ErrorCode, stop = entity.RunFailed, "adapter_failed", "adapter_failed"
		o.Error = fmt.Sprintf("Process exited with code %d", e.Exit.Code)
	default:
		o.Status, stop = entity.RunSucceeded, "completed"
	}
	o.Result = result(out, errOut, stop, timedOut, source, limit)
	return o
}

// result returns resultJson. It shortens the excerpts until it fits.
func result(stdout, stderr, stop string, timedOut bool, source string, limit time.Duration) json.RawMessage {
	for {
		b, err := json.Marshal(map[string]any{
			"stdout": stdout, "stderr": stderr, "stopReason": stop, "timeoutFired": timedOut, "timeoutSource": source,
			"timeoutConfigured": source == "config", "effectiveTimeoutSec": int64(limit.Round(time.Second) / time.Second),
		})
		if err == nil && len(b) <= company.MaxResult {
			return b
		}
		stdout, stderr = half(stdout), half(stderr)
	}
}

// half returns the second half of s.
func half(s string) string { return strings.ToValidUTF8(s[len(s)-len(s)/2:], "") }

// follow copies an output into the run's log with secrets redacted, and returns the end of
// the text when the stream ends.
func follow(r *os.File, stream string, log func(stream, text string), secrets []string,
	hear func([]byte)) <-chan string {
	done := make(chan string, 1)
	go func() {
		red, end := secret.NewRedactor(secrets), &tail{max: entity.MaxExcerpt}
		tell := func(s string) {
			if s != "" {
				log(stream, s)
				end.add(s)
			}
		}
		buf := make([]byte, readSize)
		for {
			n, err := r.Read(buf)
			if hear != nil && n > 0 {
				hear(buf[:n])
			}
			tell(red.Next(string(buf[:n])))
			if err != nil {
				tell(red.Rest())
				done <- end.text()
				return
			}
		}
	}()
	return done
}

// quietly returns log, or a function that does nothing.
func quietly(quiet bool, log func(stream, text string)) func(stream, text string) {
	if quiet {
		return func(string, string) {}
	}
	return log
}

func failure(format string, args ...any) company.Outcome {
	return company.Outcome{Status: entity.RunFailed, ErrorCode: "adapter_failed", Error: fmt.Sprintf(format, args...),
		Result: result("", "", "adapter_failed", false, "default", DefaultTimeout)}
}

// late returns the outcome of a run whose node's lease ended before it started.
func late() company.Outcome { return interrupted("The node's lease ended before the run began") }

func interrupted(why string) company.Outcome {
	return company.Outcome{Status: entity.RunInterrupted, ErrorCode: "node_lost", Error: why}
}

func event(kind, message string, payload map[string]any) company.Report {
	b, err := json.Marshal(payload)
	if err != nil {
		b = nil // strings and numbers always encode
	}
	return company.Report{Events: []company.ReportEvent{{Type: kind, Level: "info", Message: message, Payload: b}}}
}

// shownArgs returns the arguments with secrets redacted and long ones shortened.
func shownArgs(red *secret.Redactor, args []string) []string {
	out, n := []string{}, 0
	for _, arg := range args {
		if n += len(arg); n > maxShownArgs {
			return append(out, "…")
		}
		out = append(out, red.Clean(arg))
	}
	return out
}

func list(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
