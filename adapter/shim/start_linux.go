package shim

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Process is a command under a shim, seen from the node.
type Process struct {
	Started

	cmd     *exec.Cmd
	control *os.File
	status  *os.File
	mu      sync.Mutex // guards control against interleaved frames
}

// Start starts argv (such as {"/proc/self/exe", "run-shim"}) as a shim and spec
// under it. The command's output goes to stdout and stderr, which the caller
// opened and closes after Start returned. An error means that nothing runs.
func Start(argv []string, spec Spec, stdout, stderr *os.File) (*Process, error) {
	return StartWith(argv, spec, nil, stdout, stderr)
}

// StartWith is Start with a standard input for the command, which the caller
// opened and closes as it does the output; nil: it is empty.
func StartWith(argv []string, spec Spec, stdin, stdout, stderr *os.File) (*Process, error) {
	if len(argv) == 0 {
		return nil, errors.New("no run shim is configured")
	}
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer controlR.Close()
	statusR, statusW, err := os.Pipe()
	if err != nil {
		controlW.Close()
		return nil, err
	}
	defer statusW.Close()
	extra := []*os.File{statusW}
	if spec.Input = stdin != nil; spec.Input {
		extra = append(extra, stdin)
	}
	p := &Process{control: controlW, status: statusR, cmd: &exec.Cmd{
		Path: argv[0], Args: argv,
		Env:   []string{"GOMAXPROCS=1", "GOMEMLIMIT=32MiB"}, // the shim itself needs nothing of ours
		Stdin: controlR, Stdout: stdout, Stderr: stderr,
		ExtraFiles:  extra,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	if err := p.cmd.Start(); err != nil {
		controlW.Close()
		statusR.Close()
		return nil, fmt.Errorf("start run shim: %w", err)
	}
	statusW.Close()
	if err := p.send(order{Spec: &spec}); err != nil {
		return nil, p.abandon(fmt.Errorf("instruct run shim: %w", err))
	}
	var first report
	if err := readFrame(statusR, &first); err != nil {
		return nil, p.abandon(fmt.Errorf("run shim ended before it started anything: %w", err))
	}
	if first.Started == nil {
		return nil, p.abandon(errors.New(first.Failed))
	}
	p.Started = *first.Started
	return p, nil
}

func (p *Process) abandon(err error) error {
	p.control.Close()
	p.status.Close()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	return err
}

// Extend lets the tree live until the boot-time clock reads at. Errors mean
// that the shim is gone, which Wait tells.
func (p *Process) Extend(at time.Duration) { _ = p.send(order{Deadline: at}) }

// Terminate asks the tree to end and kills it after grace.
func (p *Process) Terminate(grace time.Duration) {
	_ = p.send(order{Terminate: new(grace.Milliseconds())})
}

// Kill kills the tree at once.
func (p *Process) Kill() { _ = p.send(order{Kill: true}) }

// Wait waits until the whole tree is gone and tells how the command ended. An
// error means that the shim itself was killed; the command's process group was
// then killed from here.
func (p *Process) Wait() (Exit, error) {
	var last report
	err := readFrame(p.status, &last)
	if err == nil && last.Exited == nil {
		err = errors.New("unexpected message")
	}
	p.mu.Lock()
	p.control.Close()
	p.mu.Unlock()
	p.status.Close()
	if err != nil {
		_ = syscall.Kill(-p.Group, syscall.SIGKILL)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		return Exit{}, fmt.Errorf("run shim was lost: %w", err)
	}
	_ = p.cmd.Wait()
	return *last.Exited, nil
}

func (p *Process) send(o order) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return writeFrame(p.control, o)
}
