package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/kernel"
)

const (
	// engineWait bounds one call of the engine.
	engineWait = 20 * time.Second
	// findTries bounds how often the engine is asked for the process of a container that starts,
	// findPause lies between two of them.
	findTries = 20
	findPause = 250 * time.Millisecond
)

// box is a container, under the engine's client, under a shim.
type box struct {
	*native
	h    *Host
	name string
	dir  string       // of the socket
	root atomic.Int64 // process ID of the container's first process, once it is known
}

func (h *Host) startContainer(spec kernel.Spec, e kernel.Entry, log Log, dir string) (control, error) {
	if len(h.cfg.Engine) == 0 || h.cfg.Engine[0] == "none" || len(h.cfg.Shim) == 0 {
		return nil, kernel.Errorf(kernel.BackendNotAvailable, "container: this node has no podman or docker")
	}
	b := &box{h: h, name: h.boxPrefix() + e.PID.String(), dir: dir}
	vars := h.environ(spec, e, map[string]string{})
	gate, err := h.gate(dir, vars[tokenEnv])
	if err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "the socket of the container: %v", err)
	}
	if gate != nil {
		vars[container.SocketEnv], vars["SELVAGE_API_URL"] = container.SocketPath, container.SocketURL
	}
	sh := shim.Spec{Path: h.cfg.Engine[0], Args: append(slices.Clone(h.cfg.Engine), b.args(spec, e, vars)...), Dir: "/",
		Deadline: h.deadline(), Tool: true,
		Env: append(container.Environ(h.cfg.Environ), process.List(vars)...), Last: append(slices.Clone(h.cfg.Engine), "rm",
			"-f", b.name)}
	n, err := h.underShim(sh, log, spec, vars[tokenEnv])
	if err != nil {
		return nil, errors.Join(err, closeGate(gate))
	}
	n.gate = gate
	b.native = n
	go b.find()
	return b, nil
}

// args are those of the engine. Values of variables are in the client's environment, not on
// its command line.
func (b *box) args(spec kernel.Spec, e kernel.Entry, vars map[string]string) []string {
	l := e.Capabilities.Limits
	tmp := "/tmp:rw,mode=1777"
	if l.DiskBytes > 0 { // it is all that the container can write to
		tmp += fmt.Sprintf(",size=%d", max(l.DiskBytes, 4<<10))
	}
	out := []string{"run", "--rm", "--name", b.name, "--label", container.LabelNode + "=" + b.h.cfg.Label, "--read-only",
		"--tmpfs", tmp, "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--pids-limit", strconv.Itoa(process.PlainProcesses)}
	out = append(out, container.Ulimits()...)
	if vars[container.SocketEnv] != "" {
		out = append(out, "--mount", container.GateMount(b.dir), "--security-opt", "label=disable")
	}
	if !e.Capabilities.CanNetwork {
		out = append(out, "--network", "none")
	}
	if l.MemoryBytes > 0 {
		most := strconv.FormatInt(max(l.MemoryBytes, 6<<20), 10) // engines take no less
		out = append(out, "--memory", most, "--memory-swap", most)
	}
	if l.CPUTimeMs > 0 {
		out = append(out, "--ulimit", fmt.Sprintf("cpu=%d", (l.CPUTimeMs+999)/1000))
	}
	for _, kv := range process.List(vars) {
		k, _, _ := strings.Cut(kv, "=")
		out = append(out, "--env", k)
	}
	return append(append(out, spec.Image), spec.Command...)
}

// boxPrefix begins the names of this node's containers; a PID follows.
func (h *Host) boxPrefix() string {
	return fmt.Sprintf("%s%.8s-", container.ProcessPrefix, h.cfg.Label)
}

// sweepBoxes removes the containers that an earlier life of this node left: those of PIDs before first.
func (h *Host) sweepBoxes(first kernel.PID) {
	out, err := h.engine(h.ctx, "ps", "-a", "--filter", "label="+container.LabelNode+"="+h.cfg.Label, "--format",
		"{{.Names}}")
	if err != nil {
		if h.ctx.Err() == nil {
			h.cfg.Logger.Info("containers that were left over can not be looked for", "error", err)
		}
		return
	}
	for name := range strings.FieldsSeq(out) {
		pid, ours := strings.CutPrefix(name, h.boxPrefix())
		if n, err := strconv.ParseUint(pid, 10, 62); !ours || err != nil || kernel.PID(n) >= first {
			continue
		}
		if _, err := h.engine(h.ctx, "rm", "-f", name); err != nil {
			h.event(kernel.LevelError, kernel.KernelPID, "process.left",
				"the container %s of an earlier life can not be removed: %v", name, err)
			continue
		}
		h.event(kernel.LevelWarn, kernel.KernelPID, "process.left",
			"the container %s of an earlier life of this node was removed", name)
	}
}

// engine calls the engine about this container.
func (b *box) engine(args ...string) (string, error) {
	return b.h.engine(context.Background(), args...)
}

// engine calls the engine.
func (h *Host) engine(ctx context.Context, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, engineWait)
	defer stop()
	argv := append(slices.Clone(h.cfg.Engine), args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.WaitDelay = container.Environ(h.cfg.Environ), time.Second
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %.300s", filepath.Base(argv[0]), args[0], err, strings.TrimSpace(wrong.String()))
	}
	return strings.TrimSpace(said.String()), nil
}

// find asks for the container's first process, whose tree is what it uses.
func (b *box) find() {
	for range findTries {
		if out, err := b.engine("inspect", "--format", "{{.State.Pid}}", b.name); err == nil {
			if pid, _ := strconv.ParseInt(out, 10, 32); pid > 0 {
				b.root.Store(pid)
				return
			}
		}
		time.Sleep(findPause)
	}
}

func (b *box) machine() int { return int(b.root.Load()) }

func (b *box) wait() kernel.Exit {
	x := b.native.wait()
	_, _ = b.engine("rm", "-f", b.name) // usually gone already
	switch {
	case x.Code == 125:
		x.Message = "the container could not be run; see its log"
	case x.Code == 137:
		x = kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed,
			Message: "the container was killed, as happens above its limit of memory or processor time"}
	}
	return x
}

func (b *box) terminate(grace time.Duration) {
	go func() {
		_, _ = b.engine("unpause", b.name) // what is paused would not end
		_, _ = b.engine("kill", "--signal", "TERM", b.name)
		time.AfterFunc(grace, b.kill)
	}()
}

func (b *box) signal(name string) error {
	args := []string{"kill", "--signal", name, b.name}
	switch name {
	case "SIGSTOP":
		args = []string{"pause", b.name}
	case "SIGCONT":
		args = []string{"unpause", b.name}
	}
	_, err := b.engine(args...)
	return err
}
