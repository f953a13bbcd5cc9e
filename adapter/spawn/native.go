package spawn

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/kernel"
)

// start starts what a slot's specification says.
func (h *Host) start(ctx context.Context, s *slot, l *living) (control, error) {
	e, _ := h.table.Find(l.pid)
	log, err := h.cfg.OpenLog(l.pid)
	if err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "the log of the process could not be opened: %v", err)
	}
	if s.spec.OutputBytes > 0 {
		l.kept = &keptLog{Log: log, left: s.spec.OutputBytes}
		log = l.kept
	}
	var c control
	switch s.spec.Backend {
	case kernel.KindWasm:
		c, err = h.startWasm(ctx, l, s.spec, e, log)
	case kernel.KindContainer:
		c, err = h.startContainer(s.spec, e, log, l.dir)
	default:
		c, err = h.startNative(s.spec, e, log, l.dir)
	}
	if err != nil {
		log.End()
		return nil, err
	}
	return c, nil
}

// tokenEnv is the variable by which a process shows its node who it is; the command line reads
// it too.
const tokenEnv = "SELVAGE_API_KEY"

// environ returns the variables of a process: the node's own that everything gets, those of
// its specification, and which process it is.
func (h *Host) environ(spec kernel.Spec, e kernel.Entry, base map[string]string) map[string]string {
	for k, v := range spec.Env {
		base[k] = v
	}
	base["SELVAGE_PID"] = kernel.Address{Node: h.cfg.Node, PID: e.PID}.String()
	base["SELVAGE_NODE"] = h.cfg.Node
	if h.cfg.APIURL != "" {
		base["SELVAGE_API_URL"] = h.cfg.APIURL
	}
	if h.cfg.Messages != nil && spec.Env[tokenEnv] == "" {
		base[tokenEnv] = h.cfg.Messages.Token(e.PID)
	}
	return base
}

// limitsOf returns what the operating system holds a tree to.
func limitsOf(l kernel.Limits) shim.Limits {
	up := func(n, unit int64) int64 { return (n + unit - 1) / unit }
	return shim.Limits{MemoryMB: up(l.MemoryBytes, 1<<20), CPUSec: up(l.CPUTimeMs, 1000), FileMB: up(l.DiskBytes, 1<<20),
		Processes: process.PlainProcesses}
}

func (h *Host) startNative(spec kernel.Spec, e kernel.Entry, log Log, dir string) (control, error) {
	if len(h.cfg.Shim) == 0 {
		return nil, kernel.Errorf(kernel.BackendNotAvailable, "native: this node starts no commands")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "folder of the process: %v", err)
	}
	work := dir
	if spec.Dir != "" {
		work = spec.Dir
	}
	if st, err := os.Stat(work); err != nil || !st.IsDir() {
		return nil, kernel.Errorf(kernel.SpawnFailed, "dir %s: not a directory of this node", work)
	}
	env := h.environ(spec, e, process.BaseEnv(h.cfg.Environ))
	path, ok := process.LookPath(spec.Command[0], work, env["PATH"])
	if !ok {
		return nil, kernel.Errorf(kernel.SpawnFailed, "command %q: no such program in %q on this node", spec.Command[0],
			env["PATH"])
	}
	sh := shim.Spec{Path: path, Args: spec.Command, Dir: work, Env: process.List(env), Deadline: h.deadline(),
		Limits: limitsOf(e.Capabilities.Limits),
		Guard:  &shim.Guard{Confine: true, Show: []string{dir}, Write: append([]string{dir, work}, shim.Temporary...)}}
	var gate *container.Gate
	if !e.Capabilities.CanNetwork {
		sh.Guard.HoldNet, sh.Guard.Port = true, h.apiPort()
		if path := container.SocketIn(dir); len(path) <= maxSocketPath {
			var err error
			if gate, err = h.gate(dir, env[tokenEnv]); err != nil {
				return nil, kernel.Errorf(kernel.SpawnFailed, "the socket of the process: %v", err)
			}
			if sh.Guard.Socket = gate != nil; gate != nil {
				env[container.SocketEnv] = path
				sh.Env = process.List(env)
			}
		}
	}
	if spec.OnLimit == kernel.SuspendOnLimit {
		sh.Limits.CPUSec = 0 // the system would end it
	}
	n, err := h.underShim(sh, log, spec, env[tokenEnv])
	if err != nil {
		return nil, errors.Join(err, closeGate(gate))
	}
	n.gate = gate
	return n, nil
}

// deadline is until when a process that begins may run unless it is renewed.
func (h *Host) deadline() time.Duration { return max(h.cfg.Authority(), 1) } // 0 would be none

// gate makes the socket by which a process asks the API of its node, as itself and while the lease lasts: nil if
// there is no API.
func (h *Host) gate(dir, token string) (*container.Gate, error) {
	if h.cfg.API == nil || h.cfg.Messages == nil {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return container.OpenGate(dir, h.cfg.API, token, nil, func() bool { return h.cfg.Authority() > h.cfg.Clock() })
}

func closeGate(g *container.Gate) error {
	if g == nil {
		return nil
	}
	return g.Close()
}

// apiPort returns the port of the node's API, 0 for none.
func (h *Host) apiPort() uint16 {
	u, err := url.Parse(h.cfg.APIURL)
	if err != nil {
		return 0
	}
	port, _ := strconv.ParseUint(u.Port(), 10, 16) // 0 where there is none
	return uint16(port)
}

// underShim starts a command under a shim.
func (h *Host) underShim(sh shim.Spec, log Log, spec kernel.Spec, token string) (*native, error) {
	p, err := process.Begin(sh, func(sh shim.Spec, stdout, stderr *os.File) (*shim.Process, error) {
		return shim.Start(h.cfg.Shim, sh, stdout, stderr)
	})
	if err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "%s could not be started: %v", filepath.Base(sh.Path), err)
	}
	for _, note := range p.Notes {
		log.Write("system", "[selvage] "+note+"\n")
	}
	secrets := process.SecretsOf(spec.Env)
	if token != "" {
		secrets = append(secrets, token)
	}
	p.Follow(log.Write, secrets)
	return &native{child: p, log: log, limits: sh.Limits}, nil
}

// native is a command under a shim.
type native struct {
	child  *process.Child
	log    Log
	limits shim.Limits
	gate   *container.Gate // nil: it has none
}

func (n *native) machine() int                  { return n.child.PID }
func (n *native) terminate(grace time.Duration) { n.child.Terminate(grace) }
func (n *native) kill()                         { n.child.Kill() }
func (n *native) renew(until time.Duration)     { n.child.Renew(until) }
func (n *native) use() (kernel.Use, bool)       { return kernel.Use{}, false }
func (n *native) signal(name string) error      { n.child.Signal(name); return nil }

func (n *native) wait() kernel.Exit {
	e := <-n.child.Ended()
	n.child.Output()
	_ = closeGate(n.gate) // its folder is deleted next
	n.log.End()
	return exitOf(e, n.limits)
}

// exitOf says how a command ended.
func exitOf(e process.Ending, limits shim.Limits) kernel.Exit {
	x := e.Exit
	switch {
	case e.Err != nil:
		return kernel.Exit{Code: kernel.ExitReaped, Reason: kernel.Killed, Message: "its shim was lost: " + e.Err.Error()}
	case x.Killed == "memory":
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed,
			Message: fmt.Sprintf("it passed its limit: its processes together used more than %d MiB of memory", limits.MemoryMB)}
	case x.Killed == "processes":
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed,
			Message: fmt.Sprintf("it had more than %d processes", limits.Processes)}
	case x.Killed == "deadline" || x.Killed == "pipe":
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed,
			Message: "the node could not answer for it any longer"}
	case x.Signal == "SIGXCPU":
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Timeout,
			Message: fmt.Sprintf("it passed its limit: more than %d s of processor time", limits.CPUSec)}
	case x.Signal != "" && x.Killed != "":
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed, Message: "ended by " + x.Signal}
	case x.Signal != "":
		why := "ended by " + x.Signal
		// The system refuses more memory than the limit, and few programs survive that: they do not tell.
		if limits.MemoryMB > 0 && slices.Contains([]string{"SIGSEGV", "SIGABRT", "SIGBUS"}, x.Signal) {
			why += fmt.Sprintf(", as programs are that get no more memory: its limit is %d MiB", limits.MemoryMB)
		}
		return kernel.Exit{Code: 128 + shim.SignalNumber(x.Signal), Reason: kernel.Crash, Message: why}
	}
	return kernel.ExitOf(x.Code, "")
}
