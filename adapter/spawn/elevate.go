package spawn

import (
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// MostElevated bounds how long an elevation with an end lasts.
const MostElevated = 24 * time.Hour

// elevated is an elevation that ends: what the process had before, and what takes it back.
type elevated struct {
	before kernel.Capabilities
	end    *time.Timer
}

// Elevate gives a process, and those that replace it, other capabilities: for lasting, or where
// that is 0 for as long as it lives. Whoever calls it has asked the gate. Another elevation takes
// the place of the one before; when it ends, what the process had before the first is in force.
// Limits that the operating system holds (memory, of a native command or a container) and the use
// of the network stay as they were at the start.
func (h *Host) Elevate(pid kernel.PID, caps kernel.Capabilities, lasting time.Duration) (kernel.Entry, error) {
	if err := caps.Limits.Validate(); err != nil {
		return kernel.Entry{}, err
	}
	if lasting < 0 || lasting > MostElevated {
		return kernel.Entry{}, kernel.Errorf(kernel.BadRequest, "seconds: an elevation ends after %d at most",
			int(MostElevated.Seconds()))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.living[pid]
	if l == nil || l.slot == nil {
		return kernel.Entry{}, kernel.Errorf(kernel.ProcessNotFound,
			"process %s: this node spawned none of this ID that still runs", pid)
	}
	old, _ := h.table.Find(pid)
	if err := h.table.Change(pid, func(e *kernel.Entry) { e.Capabilities = caps }); err != nil {
		return kernel.Entry{}, err
	}
	s, before, until := l.slot, old.Capabilities, ""
	if s.elevated != nil {
		s.elevated.end.Stop()
		before, s.elevated = s.elevated.before, nil
	}
	if s.caps = &caps; lasting > 0 {
		by := &elevated{before: before}
		by.end = time.AfterFunc(lasting, func() { h.lower(s, by) })
		s.elevated = by
		until = ", for " + lasting.String()
	}
	h.event(kernel.LevelWarn, pid, "capability.elevate", "its capabilities were changed%s", until)
	e, _ := h.table.Find(pid)
	return e, nil
}

// lower ends an elevation whose time is over, unless another took its place.
func (h *Host) lower(s *slot, by *elevated) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.elevated != by {
		return
	}
	s.elevated, s.caps = nil, &by.before
	if h.table.Change(s.pid, func(e *kernel.Entry) { e.Capabilities = by.before }) == nil {
		h.event(kernel.LevelWarn, s.pid, "capability.revoked", "the time of its elevation is over")
	}
}
