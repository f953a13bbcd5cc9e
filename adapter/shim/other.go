//go:build !linux

package shim

import (
	"errors"
	"net/netip"
	"os"
	"time"
)

// Main refuses: killing a whole process tree needs Linux (subreaper, boot-time clock).
func Main([]string) int {
	os.Stderr.WriteString("run-shim needs Linux\n")
	return 2
}

// A Process is a command under a shim, seen from the node.
type Process struct{ Started }

// Start refuses: agents with local processes run on Linux nodes only.
func Start([]string, Spec, *os.File, *os.File) (*Process, error) {
	return nil, errors.New("local processes need a Linux node")
}

// A Launcher starts nothing.
type Launcher struct{}

// NewLauncher returns a launcher that refuses.
func NewLauncher([]string) *Launcher { return &Launcher{} }

// Ready does nothing.
func (*Launcher) Ready() {}

// Start refuses, as the function does.
func (*Launcher) Start(Spec, *os.File, *os.File, *os.File) (*Process, error) {
	return nil, errors.New("local processes need a Linux node")
}

// Close does nothing.
func (*Launcher) Close() {}

// Extend does nothing; there is no process.
func (p *Process) Extend(time.Duration) {}

// Terminate does nothing; there is no process.
func (p *Process) Terminate(time.Duration) {}

// Kill does nothing; there is no process.
func (p *Process) Kill() {}

// Signal does nothing; there is no process.
func (p *Process) Signal(string) {}

// Wait refuses.
func (p *Process) Wait() (Exit, error) { return Exit{}, errors.New("no process") }

// BootTime reads the monotonic clock of this process.
func BootTime() time.Duration { return time.Since(bootBase) }

var bootBase = time.Now()

// OwnUse returns nothing.
func OwnUse() Use { return Use{} }

// SignalNumber returns 0.
func SignalNumber(string) int { return 0 }

// Uses returns nothing: there are no local processes.
func Uses([]int) map[int]Use { return nil }

// OpenCgroup says that there are none.
func OpenCgroup() (dir, why string) { return "", "cgroups need Linux" }

// Hidden returns the folders that the floor hides, and the data of nodes next to them.
func (f Floor) Hidden() []string { return append(f.beside(), f.Hide...) }

// FromRun returns false: there are no local processes of runs.
func FromRun(client, server netip.AddrPort) (bool, error) { return false, nil }

// NodesDir returns "": nodes do not register.
func NodesDir(runtime, home string) string { return "" }

// Register does nothing: there are no local processes of runs.
func Register(nodes, dir string) error { return nil }

// PreferNode returns an error: on this system a nice value belongs to a whole process, and
// raising the priority requires root.
func PreferNode() error { return errors.New("only on Linux") }

// Yield does nothing.
func Yield() error { return nil }
