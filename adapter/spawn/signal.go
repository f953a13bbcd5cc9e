package spawn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/kernel"
)

// Signals are those that a process can be sent, without SIG.
var Signals = []string{"TERM", "KILL", "STOP", "CONT", "INT", "HUP", "QUIT", "USR1", "USR2"}

// ParseSignal reads a signal, such as TERM or SIGTERM or 9; "" is TERM.
func ParseSignal(s string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(cmp.Or(s, "TERM")), "SIG")
	if i := slices.Index([]string{"1", "2", "3", "9", "15"}, name); i >= 0 {
		name = []string{"HUP", "INT", "QUIT", "KILL", "TERM"}[i]
	}
	if !slices.Contains(Signals, name) {
		return "", kernel.Errorf(kernel.BadRequest, "signal %q: give one of %s", s, strings.Join(Signals, ", "))
	}
	return name, nil
}

// Signal sends a signal to a process that this host started: TERM and KILL end it, STOP and
// CONT suspend and resume it, others are for the program. A run or a service is ended by its
// own rules and is refused here.
func (h *Host) Signal(pid kernel.PID, signal string) error {
	signal, err := ParseSignal(signal)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.table.Find(pid)
	switch l := h.living[pid]; {
	case !ok:
		return kernel.Errorf(kernel.ProcessNotFound, "process %s: there is none on this node", pid)
	case pid == kernel.KernelPID:
		return kernel.Errorf(kernel.CapabilityDenied, "process 0 is the node itself: stop the node to end it")
	case l == nil:
		return kernel.Errorf(kernel.InvalidStateTransition, "process %s has ended, with exit code %d", pid, e.Exit.Code)
	case l.end != nil:
		return kernel.Errorf(kernel.InvalidStateTransition, "process %s is a %s, which ends by its own rules", pid, e.Kind)
	case l.control == nil:
		if signal == "TERM" || signal == "KILL" {
			l.why = "it was sent " + signal
			return nil
		}
		return kernel.Errorf(kernel.InvalidStateTransition, "process %s is %s", pid, e.State)
	case signal == "TERM":
		h.terminate(l, "it was sent TERM")
		return nil
	case signal == "KILL":
		l.why = cmp.Or(l.why, "it was sent KILL")
		l.control.kill()
		return nil
	case signal == "STOP":
		return h.suspend(l)
	case signal == "CONT":
		return h.resume(l, e)
	default:
		return l.control.signal("SIG" + signal)
	}
}

// suspend stops a process until it is resumed. h.mu is held.
func (h *Host) suspend(l *living) error {
	if err := h.table.Set(l.pid, kernel.Suspended); err != nil {
		return err
	}
	if err := l.control.signal("SIGSTOP"); err != nil {
		return err
	}
	h.event(kernel.LevelInfo, l.pid, "process.suspend", "suspended")
	return nil
}

// resume lets a suspended process go on, unless it is still at a limit. h.mu is held.
func (h *Host) resume(l *living, e kernel.Entry) error {
	for _, f := range e.Capabilities.Limits.Check(e.Use) {
		if f.Level == kernel.Exceeded {
			return kernel.Errorf(kernel.ResourceLimitExceeded,
				"process %s is at its limit of %s: raise the limit first (elevate), or end it", l.pid, f)
		}
	}
	if err := h.table.Set(l.pid, kernel.Running); err != nil {
		return err
	}
	if err := l.control.signal("SIGCONT"); err != nil {
		return err
	}
	h.event(kernel.LevelInfo, l.pid, "process.resume", "resumed")
	return nil
}
