// Package container runs agents in containers, by podman or docker, with the engine's limits,
// and without a network unless one is configured.
//
// adapterConfig is
//
//	image        as the engine names it (required)
//	command      program in the image; default: the image's own
//	args, env    as for a process
//	cwd          folder of the node that is /work in the container; default: the agent's
//	             own folder, or the workspace of the run
//	mounts       [{"source": "/abs", "target": "/abs", "readOnly": true}]
//	limits       {"memoryMb": 512, "processes": 512, "cpus": 0, "openFiles": 0}
//	network      none (default), host or bridge
//	user         uid or uid:gid; default: the image's own
//	readOnly     true: the image's files can not be written; /tmp always can
//	pull         missing (default), never or always
//	timeoutSec, graceSec  as for a process
//
// The API of the node and its model gateway are a unix socket in the container,
// SELVAGE_API_SOCKET. Every request over it is authenticated as the run's agent, whatever
// the request says. With network host, PAPERCLIP_API_URL is the node's own address; with the
// others it has a host name for requests over the socket.
//
// The engine's client runs under a shim. When the run is over, or its node loses its
// authority or is killed, the container is removed: by the node, by the shim, or at the
// node's next start, which finds it by its label.
package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter/live"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

const (
	// DefaultMemoryMB and DefaultProcesses are the limits of a container without
	// configured ones.
	DefaultMemoryMB  = 512
	DefaultProcesses = 512
	// maxMounts bounds the configured mounts of a container.
	maxMounts = 32
	// engineWait bounds one call of the engine, other than the one that runs the agent.
	engineWait = 20 * time.Second

	// LabelNode and labelRun label every container that we start. Sweep removes those of
	// the node that no run has.
	LabelNode, labelRun = "selvage.node", "selvage.run"
	// Paths of the run's folders in the container.
	workAt, homeAt, scratchAt, socketAt = "/work", "/home/agent", "/scratch", "/run/selvage"
)

// Config is what the adapter needs. All but Private and Logger are required.
type Config struct {
	Engine []string // command line of podman or docker, from Find
	Node   string   // this node, for the label
	Shim   []string // command line that starts a shim
	Dir    string   // of the process adapter: holds workspaces/<agent> and scratch/<run>
	// Private returns the folders that must not be mounted: those of this node and of other
	// nodes on the machine. It is called for each run.
	Private func() []string
	Process *process.Adapter
	API     func() http.Handler // serves requests as the node does; nil while the node opens
	Token   func(entity.Run) (string, error)
	Environ []string     // the node's environment as "K=V"; the engine gets the variables that it reads
	Logger  *slog.Logger // default: discard
}

// An Adapter runs containers. It is safe for concurrent use.
type Adapter struct {
	cfg Config
	live.Runs
}

// Find returns the engine of this machine: podman, which needs no daemon, or else docker; nil
// if there is neither.
func Find() []string {
	for _, name := range []string{"podman", "docker"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}
		}
	}
	return nil
}

// New returns an adapter. Sweep removes containers that an earlier process left.
func New(cfg Config) (*Adapter, error) {
	switch {
	case len(cfg.Engine) == 0 || !filepath.IsAbs(cfg.Engine[0]):
		return nil, errors.New("container adapter: no engine, by its absolute path")
	case cfg.Node == "" || len(cfg.Shim) == 0 || cfg.Process == nil || cfg.API == nil || cfg.Token == nil ||
		cfg.Private == nil || !filepath.IsAbs(cfg.Dir):
		return nil, errors.New("container adapter: node, shim, directory, private folders, process adapter, API and " +
			"tokens are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Adapter{cfg: cfg}, nil
}

// ProcessPrefix begins the names of containers that are no runs: room spawn has them, and sweeps them.
const ProcessPrefix = namePrefix + "process-"

// Sweep removes containers of this node that belong to no running run.
func (a *Adapter) Sweep(ctx context.Context) error {
	out, err := a.engine(ctx, "ps", "-a", "--filter", "label="+LabelNode+"="+a.cfg.Node, "--format", "{{.Names}}")
	if err != nil {
		return err
	}
	var left []string
	for name := range strings.FieldsSeq(out) {
		if id, ours := strings.CutPrefix(name, namePrefix); ours && !strings.HasPrefix(name,
			ProcessPrefix) && a.Status(id) == "" {
			left = append(left, name)
		}
	}
	for _, name := range left {
		if _, e := a.engine(ctx, "rm", "-f", name); e != nil {
			err = errors.Join(err, e)
		}
		a.cfg.Logger.Info("removed a container that was left over", "name", name)
	}
	return err
}

const namePrefix = "selvage-"

func nameOf(id string) string { return namePrefix + filepath.Base(id) }

// engine calls the engine and returns its output.
func (a *Adapter) engine(ctx context.Context, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, engineWait)
	defer stop()
	argv := append(slices.Clone(a.cfg.Engine), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.WaitDelay = a.environ(), time.Second
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(argv[0]), args[0], err,
			strings.TrimSpace(end(wrong.String(), 500)))
	}
	return said.String(), nil
}

func (a *Adapter) environ() []string { return Environ(a.cfg.Environ) }

// Environ returns those of a node's variables that an engine reads.
func Environ(environ []string) (out []string) {
	for _, kv := range environ {
		k, _, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS",
			"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}, k) ||
			strings.HasPrefix(k, "XDG_") || strings.HasPrefix(k, "DOCKER_") || strings.HasPrefix(k, "CONTAINER") {
			out = append(out, kv)
		}
	}
	return out
}

// Invoke runs the agent's container and returns when it has ended.
func (a *Adapter) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	// closed to cancel: TERM to the first process, and the end of the container after its grace
	cancel := make(chan struct{})
	defer a.Begin(inv.Run.ID, sync.OnceFunc(func() { close(cancel) }))()
	var c config
	if err := json.Unmarshal(inv.Config, &c); err != nil {
		return process.Failure("The agent's adapterConfig is malformed: %v", err)
	}
	if err := c.check(); err != nil {
		return process.Failure("%v", err)
	}
	token, err := a.cfg.Token(inv.Run)
	if err != nil {
		return process.Failure("No token could be made for the run: %v", err)
	}
	if _, err := a.engine(ctx, "version"); err != nil {
		o := process.Failure("Containers are unavailable on this node: %v", err)
		o.ErrorCode = "container_unavailable"
		return o
	}
	home := filepath.Join(a.cfg.Dir, "workspaces", filepath.Base(inv.Run.Agent))
	scratch, err := os.MkdirTemp(filepath.Join(a.cfg.Dir, "scratch"), "run-"+filepath.Base(inv.Run.ID)+"-")
	for _, d := range []string{home, filepath.Join(scratch, "own"), filepath.Join(scratch, "tmp")} {
		if err == nil {
			err = os.MkdirAll(d, 0o700)
		}
	}
	if err != nil {
		return process.Failure("No directory could be made for the run: %v", err)
	}
	defer os.RemoveAll(scratch)
	s := stage{adapter: a, inv: inv, config: c, token: token, home: home, scratch: filepath.Join(scratch, "tmp"),
		own: filepath.Join(scratch, "own")}
	if err := s.set(); err != nil {
		return process.Failure("%v", err)
	}
	gate, err := OpenGate(s.own, a.cfg.API, token, map[string]string{"X-Paperclip-Run-Id": inv.Run.ID},
		func() bool { return live.MayAct(inv) })
	if err != nil {
		return process.Failure("No socket could be made for the run: %v", err)
	}
	defer gate.Close()
	inv.Report(company.Report{Place: &entity.RunPlace{Dir: s.dir, Home: home, Scratch: s.scratch, Source: s.source}})
	return a.watch(ctx, cancel, s)
}

// watch starts the container and waits for its end.
func (a *Adapter) watch(ctx context.Context, cancel <-chan struct{}, s stage) company.Outcome {
	inv, c, name := s.inv, s.config, nameOf(s.inv.Run.ID)
	spec := shim.Spec{Path: a.cfg.Engine[0], Args: append(slices.Clone(a.cfg.Engine), s.args()...), Dir: "/",
		Env: a.environ(), Deadline: inv.Authority(),
		Tool: true, Last: append(slices.Clone(a.cfg.Engine), "rm", "-f", name)}
	if spec.Deadline <= shim.BootTime() {
		return process.Late()
	}
	p, err := process.Begin(spec, func(spec shim.Spec, stdout, stderr *os.File) (*shim.Process, error) {
		return shim.Start(a.cfg.Shim, spec, stdout, stderr)
	})
	if errors.Is(err, shim.ErrLate) {
		return process.Late()
	}
	if err != nil {
		return process.Failure("Failed to start the container engine: %v", err)
	}
	inv.Report(company.Report{PID: int64(p.PID), Group: int64(p.Group)})
	p.Follow(inv.Log, s.secrets)
	limit, source := c.timeout()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	renew := time.NewTicker(process.RenewEvery)
	defer renew.Stop()
	var over <-chan time.Time
	ask := func() {
		if _, err := a.engine(ctx, "kill", "--signal", "TERM", name); err != nil {
			a.cfg.Logger.Debug("container could not be told to end", "name", name, "error", err)
		}
		over = time.After(c.grace())
	}
	done := ctx.Done()
	var e ending
	for wait := true; wait; {
		select {
		case e.Ending = <-p.Ended():
			wait = false
		case <-renew.C:
			p.Renew(inv.Authority())
		case <-timeout.C:
			if e.timedOut = !e.cancelled; e.timedOut {
				ask()
			}
		case <-cancel:
			cancel = nil
			if e.cancelled = !e.timedOut; e.cancelled {
				ask()
			}
		case <-over:
			over = nil
			p.Kill()
		case <-done:
			done, e.killed = nil, true
			p.Kill()
		}
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), engineWait)
	defer stop()
	if e.Exit.Code == 137 && !e.timedOut && !e.cancelled && !e.killed {
		oom, _ := a.engine(last, "inspect", "--format", "{{.State.OOMKilled}}", name)
		e.memory = strings.TrimSpace(oom) == "true"
	}
	if _, err := a.engine(last, "rm", "-f", name); err != nil && !strings.Contains(strings.ToLower(err.Error()),
		"no such container") {
		a.cfg.Logger.Warn("container could not be removed", "name", name, "error", err)
	}
	out, errOut := p.Output()
	o, reason := e.outcome(c, limit, errOut)
	o.Stdout, o.Stderr = &out, &errOut
	o.Result = process.Result(out, errOut, reason, e.timedOut, source, limit)
	return o
}

// An ending is how a container's engine ended, and why.
type ending struct {
	process.Ending
	timedOut, cancelled, killed bool // what the node did
	memory                      bool // the container used more memory than it may
}

// outcome says what an ending means for the run, and the reason in its result. errOut is what
// the engine and the container wrote to the standard error.
func (e ending) outcome(c config, limit time.Duration, errOut string) (o company.Outcome, reason string) {
	o.Signal = e.Exit.Signal
	if e.Err == nil && e.Exit.Signal == "" {
		o.ExitCode = new(e.Exit.Code)
	}
	reason = "adapter_failed"
	o.Status, o.ErrorCode = entity.RunFailed, "adapter_failed"
	switch {
	case e.Err != nil:
		o.ErrorCode, o.Error, reason = "process_lost", "The container's engine was lost: "+e.Err.Error(), "process_lost"
	case e.killed, e.Exit.Killed == "deadline", e.Exit.Killed == "pipe":
		o.Status, o.ErrorCode, o.Error, reason = entity.RunInterrupted, "node_lost", "The node stopped the run", "interrupted"
	case e.timedOut:
		o.Status, o.ErrorCode, reason, o.ExitCode = entity.RunTimedOut, "timeout", "timeout", nil
		o.Error = fmt.Sprintf("Timed out after %ds", int(limit.Round(time.Second)/time.Second))
	case e.cancelled:
		o.Status, o.ErrorCode, o.Error, reason = entity.RunCancelled, "cancelled", "Cancelled", "cancelled"
	case e.memory:
		o.Error, reason = fmt.Sprintf("The container used more than %d MiB of memory", c.memory()), "memory_limit"
	case e.Exit.Signal != "":
		o.Error = "The container's engine was ended by " + e.Exit.Signal
	case e.Exit.Code == 125:
		o.ErrorCode, o.Error = "container_failed", "The container could not be run: "+end(strings.TrimSpace(errOut), 1000)
	case e.Exit.Code == 137 && c.memory() > 0: // an engine does not always report why
		o.Error = fmt.Sprintf("The container was killed (code 137), as happens above its limit of %d MiB of memory",
			c.memory())
	case e.Exit.Code == 126, e.Exit.Code == 127:
		o.Error = fmt.Sprintf("The container's command could not be started (code %d): %s", e.Exit.Code,
			end(strings.TrimSpace(errOut), 1000))
	case e.Exit.Code != 0:
		o.Error = fmt.Sprintf("The container exited with code %d", e.Exit.Code)
	default:
		o.Status, o.ErrorCode, reason = entity.RunSucceeded, "", "completed"
	}
	return o, reason
}

// end returns up to n bytes from the end of s.
func end(s string, n int) string { return strings.ToValidUTF8(s[max(0, len(s)-n):], "") }

// A stage is one container before it is started.
type stage struct {
	adapter *Adapter
	inv     company.Invocation
	config  config
	token   string
	secrets []string

	home, scratch, own string // own holds the socket and the variables
	dir, source        string // /work
	binds              []mount
}

// set prepares the folders, writes the variables, and logs the invocation.
func (s *stage) set() error {
	c, f := s.config, s.inv.Folder
	s.dir, s.source = cmp.Or(c.Dir, s.home), "agent_home"
	if c.Dir != "" {
		s.source = "adapter_config"
	}
	made, private := []string{s.home, s.scratch}, s.adapter.cfg.Private()
	if f != nil && (c.Dir == "" || f.Worktree != "") {
		s.dir, s.source = f.Dir, f.Source
		if f.Worktree != "" {
			made = append(made, f.Dir)
		}
	}
	s.binds = append([]mount{{s.dir, workAt, false}, {s.home, homeAt, false}, {s.scratch, scratchAt, false}}, c.Mounts...)
	for i, m := range s.binds {
		real, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return fmt.Errorf("the folder %s is not on this node", m.Source)
		}
		if strings.ContainsAny(real, ",\"\n\r") {
			return fmt.Errorf("the folder %q has a name that no engine takes", real)
		}
		if holds(private, real) && !slices.Contains(made, m.Source) {
			return fmt.Errorf("the folder %s holds files of this node, or of another on this machine, and is not given to "+
				"containers", m.Source)
		}
		s.binds[i].Source = real
	}
	env := s.adapter.cfg.Process.Variables(s.inside(), s.token, homeAt, scratchAt)
	for k, v := range c.Env {
		if k == "" || strings.ContainsAny(k, "= \t\r\n\x00#") || strings.HasPrefix(k, "PAPERCLIP_") {
			continue
		}
		env[k] = string(v)
	}
	env["PAPERCLIP_WORKSPACE_CWD"] = workAt
	env[SocketEnv] = SocketPath
	if c.network() != "host" {
		env["PAPERCLIP_API_URL"], env["PAPERCLIP_RUNTIME_API_URL"] = SocketURL, SocketURL
	}
	s.secrets = append(slices.Clone(s.inv.Secrets), s.token)
	var file strings.Builder
	for _, k := range slices.Sorted(maps.Keys(env)) {
		v := env[k]
		if strings.ContainsAny(v, "\n\r\x00") {
			return fmt.Errorf("the variable %s has more than one line, which engines do not take", k)
		}
		if process.Sensitive(k) && v != "" {
			s.secrets = append(s.secrets, v)
		}
		file.WriteString(k + "=" + v + "\n")
	}
	if err := os.WriteFile(filepath.Join(s.own, "env"), []byte(file.String()), 0o600); err != nil {
		return err
	}
	note, _ := json.Marshal(map[string]any{"adapterType": s.inv.Run.AdapterType, "image": c.Image, "command": c.Command,
		"cwd":     s.dir,
		"network": c.network(), "limits": map[string]any{"memoryMb": c.memory(), "processes": c.processes(),
			"cpus": c.Limits.CPUs}}) // never fails
	s.inv.Report(company.Report{Events: []company.ReportEvent{{Type: "adapter.invoke", Level: "info",
		Message: "adapter invocation", Payload: note}}})
	return nil
}

// inside returns the invocation with the folders' paths in the container.
func (s *stage) inside() company.Invocation {
	inv := s.inv
	if inv.Folder != nil {
		f := *inv.Folder
		f.Dir = workAt
		if f.Worktree != "" {
			f.Worktree = workAt
		}
		inv.Folder = &f
	}
	return inv
}

// holds reports whether a folder is one of private, contains one, or is in one.
func holds(private []string, dir string) bool {
	return slices.ContainsFunc(private, func(p string) bool {
		p, err := filepath.EvalSymlinks(p)
		in := func(x, y string) bool { return x == y || y == "/" || strings.HasPrefix(x, y+"/") }
		return err == nil && (in(dir, p) || in(p, dir))
	})
}

// args returns the engine's command line. It contains no variable and no secret.
func (s *stage) args() []string {
	c := s.config
	args := []string{"run", "--name", nameOf(s.inv.Run.ID), "--label", LabelNode + "=" + s.adapter.cfg.Node, "--label",
		labelRun + "=" + s.inv.Run.ID,
		"--pull", cmp.Or(c.Pull, "missing"), "--cap-drop", "all", "--security-opt", "no-new-privileges", "--security-opt",
		"label=disable",
		"--network", c.network(), "--tmpfs", "/tmp", "--workdir", workAt, "--env-file", filepath.Join(s.own, "env"),
		"--mount", GateMount(s.own)}
	for _, m := range s.binds {
		b := "type=bind,source=" + m.Source + ",target=" + m.Target
		if m.ReadOnly {
			b += ",readonly"
		}
		args = append(args, "--mount", b)
	}
	if n := c.memory(); n > 0 {
		args = append(args, "--memory", fmt.Sprint(n)+"m", "--memory-swap", fmt.Sprint(n)+"m")
	}
	if n := c.processes(); n > 0 {
		args = append(args, "--pids-limit", fmt.Sprint(n))
	}
	if n := c.Limits.CPUs; n > 0 {
		args = append(args, "--cpus", fmt.Sprintf("%.3f", n))
	}
	files, processes := most()
	if n := c.Limits.OpenFiles; n > 0 && (files == 0 || n < files) {
		files = n
	}
	for name, n := range map[string]int64{"nofile": files, "nproc": processes} {
		if n > 0 {
			args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", name, n, n))
		}
	}
	if c.ReadOnly == nil || *c.ReadOnly {
		args = append(args, "--read-only")
	}
	if c.User != "" {
		args = append(args, "--user", c.User)
	}
	if c.Command != "" {
		args = append(args, "--entrypoint", c.Command)
	}
	return append(append(args, c.Image), c.Args...)
}
