package shim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is a command under a shim, seen from the node.
type Process struct {
	Started

	cmd     *exec.Cmd
	control *os.File
	status  *os.File
	mu      sync.Mutex // guards control, so that frames do not interleave
}

// Start starts argv (such as {"/proc/self/exe", "run-shim"}) as a shim and spec under it. The
// command's output goes to stdout and stderr; the caller opens them, and closes them after
// Start returns. After an error nothing runs.
func Start(argv []string, spec Spec, stdout, stderr *os.File) (*Process, error) {
	p, err := launch(argv, spec.Tool)
	if err != nil {
		return nil, err
	}
	return p.begin(spec, nil, stdout, stderr)
}

// launch starts a shim that waits for its specification. A shim for a tool has the node's
// privileges and no others, see apart.
func launch(argv []string, tool bool) (*Process, error) {
	if len(argv) == 0 {
		return nil, errors.New("no run shim is configured")
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "orders")
	defer theirs.Close()
	_ = unix.SetNonblock(ends[0], true) // so that Close ends a blocked write
	control := os.NewFile(uintptr(ends[0]), "orders")
	statusR, statusW, err := os.Pipe()
	if err != nil {
		control.Close()
		return nil, err
	}
	defer statusW.Close()
	sys := &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() != 0 && !tool {
		if why := whyNotApart(argv); why == "" {
			sys = apart()
		} else {
			argv = append(slices.Clone(argv), notApart, why)
		}
	}
	p := &Process{control: control, status: statusR, cmd: &exec.Cmd{
		Path: argv[0], Args: argv,
		Env:   []string{"GOMAXPROCS=1", "GOMEMLIMIT=32MiB"}, // the shim itself needs nothing of ours
		Stdin: theirs, ExtraFiles: []*os.File{statusW},
		SysProcAttr: sys,
	}}
	if err := p.cmd.Start(); err != nil {
		control.Close()
		statusR.Close()
		return nil, fmt.Errorf("start run shim: %w", err)
	}
	return p, nil
}

// errNoShim says that a shim ended before it was sent a command, so that another one may be
// used. After it was sent one, the command may have run.
var errNoShim = errors.New("the run shim is gone")

// begin starts spec under a waiting shim. A nil file is an empty one.
func (p *Process) begin(spec Spec, stdin, stdout, stderr *os.File) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, p.abandon(err)
	}
	defer null.Close()
	var files []int
	for _, f := range []*os.File{stdin, stdout, stderr} {
		files = append(files, int(cmp.Or(f, null).Fd()))
	}
	if err := p.send(order{Spec: &spec}, files...); err != nil {
		return nil, p.abandon(fmt.Errorf("instruct run shim: %w", err))
	}
	var first report
	if err := readFrame(p.status, &first); err != nil {
		return nil, p.abandon(fmt.Errorf("run shim ended before it started anything: %w", err))
	}
	switch {
	case first.Late:
		return nil, p.abandon(ErrLate)
	case first.Started == nil:
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

// Extend moves the tree's deadline to the boot-clock time at. Errors mean that the shim is
// gone, which Wait reports.
func (p *Process) Extend(at time.Duration) { _ = p.send(order{Deadline: at}) }

// Terminate asks the tree to end and kills it after grace.
func (p *Process) Terminate(grace time.Duration) {
	_ = p.send(order{Terminate: new(grace.Milliseconds())})
}

// Kill kills the tree at once.
func (p *Process) Kill() { _ = p.send(order{Kill: true}) }

// Signal sends a signal to the command, by its name such as "SIGHUP". SIGSTOP and SIGCONT go
// to the whole tree.
func (p *Process) Signal(name string) { _ = p.send(order{Signal: name}) }

// Wait waits until the whole tree has ended and returns how the command ended. An error means
// that the shim itself was killed; Wait has then killed the command's process group.
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

// send writes a frame; files are sent with its first byte.
func (p *Process) send(o order, files ...int) error {
	b, err := frame(o)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(files) > 0 {
		conn, err := p.control.SyscallConn()
		if err != nil {
			return err
		}
		n := 0
		if e := conn.Write(func(fd uintptr) bool {
			n, err = unix.SendmsgN(int(fd), b, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL)
			return err != unix.EAGAIN
		}); e != nil || err != nil {
			return fmt.Errorf("%w: %w", errNoShim, cmp.Or(e, err))
		}
		if b = b[n:]; len(b) == 0 {
			return nil
		}
	}
	_, err = p.control.Write(b)
	return err
}
