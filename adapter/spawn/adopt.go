package spawn

import (
	"cmp"

	"github.com/selvage-mesh/selvage/kernel"
)

// An Adopted is a process that something else on the node runs. A nil one is none.
type Adopted struct {
	h *Host
	l *living
}

// Adopt shows something that runs on this node, a run or a service, as a process. end ends it
// by its own rules. If the table is full the process is not shown, and nil is returned.
func (h *Host) Adopt(e kernel.Entry, end func(why string)) *Adopted {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	if err := h.reserve(); err != nil {
		h.cfg.Logger.Warn("process is not shown", "name", e.Name, "error", err)
		return nil
	}
	e, err := h.table.Adopt(e, h.cfg.Wall())
	if err != nil {
		h.cfg.Logger.Warn("process is not shown", "name", e.Name, "error", err)
		return nil
	}
	l := &living{pid: e.PID, run: e.Run, end: end, done: make(chan struct{})}
	h.living[e.PID] = l
	if l.run != "" {
		h.runs[l.run] = l.pid
	}
	h.event(kernel.LevelInfo, e.PID, "process.spawn", "%s %s began", e.Kind, cmp.Or(e.Name, e.Run))
	return &Adopted{h, l}
}

// PID returns its process ID, 0 for none.
func (a *Adopted) PID() kernel.PID {
	if a == nil {
		return 0
	}
	return a.l.pid
}

// Machine says which process of the operating system it is.
func (a *Adopted) Machine(pid int) {
	if a != nil {
		_ = a.h.table.Change(a.l.pid, func(e *kernel.Entry) { e.Machine = pid }) // it may have ended
	}
}

// Ended ends it.
func (a *Adopted) Ended(x kernel.Exit) {
	if a != nil {
		a.h.over(a.l, x)
	}
}
