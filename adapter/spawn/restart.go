package spawn

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// act does what the supervisor decided about the end of a slot's process. h.mu is held.
func (h *Host) act(s *slot, d kernel.Decision) {
	for _, group := range d.Escalated {
		h.event(kernel.LevelError, 0, "process.escalated", "group %s: %s", group, d.Why)
	}
	var ends []<-chan struct{}
	stop := func(name string, f fate) {
		other := h.slots[name]
		if other == nil {
			return
		}
		other.fate = f
		if l := h.living[other.pid]; l != nil && other.pid != 0 {
			h.terminate(l, "its supervisor stopped it")
			ends = append(ends, l.done)
		}
	}
	for _, name := range d.GaveUp {
		stop(name, removed)
		if other := h.slots[name]; other != nil {
			h.event(kernel.LevelError, 0, "process.gave_up", "%s is not started again: %s", other.spec.Name, d.Why)
			if other.declared != "" {
				h.gaveUp[name] = Fate{ID: other.declared, Replica: other.replica, Generation: other.generation, State: Failed,
					Restarts: other.restarts, Error: cmp.Or(d.Why+"; the last exit: "+other.last.Message, d.Why)}
			}
			if other.pid == 0 {
				delete(h.slots, name)
			}
		}
	}
	if len(d.Start) == 0 {
		if len(d.GaveUp) == 0 { // its strategy does not start it again
			if s.declared != "" {
				h.gaveUp[s.name] = Fate{ID: s.declared, Replica: s.replica, Generation: s.generation, State: Ended,
					Restarts: s.restarts, Exit: s.last.Code, Error: s.last.Message}
			}
			delete(h.slots, s.name)
		}
		return
	}
	for _, name := range d.Stop {
		stop(name, replaced)
	}
	h.event(kernel.LevelWarn, 0, "process.restart", "%s is started again in %s", strings.Join(h.namesOf(d.Start),
		", "), d.Pause)
	h.wg.Go(func() { h.restart(d, ends) })
}

func (h *Host) namesOf(slots []string) (names []string) {
	for _, name := range slots {
		if s := h.slots[name]; s != nil {
			names = append(names, s.spec.Name)
		}
	}
	return names
}

// restart waits until what had to stop has, and until the time has come, and starts slots.
func (h *Host) restart(d kernel.Decision, ends []<-chan struct{}) {
	for _, end := range ends {
		select {
		case <-end:
		case <-h.ctx.Done():
			return
		}
	}
	pause := time.NewTimer(d.At.Sub(h.cfg.Wall()))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-h.ctx.Done():
		return
	}
	for _, name := range d.Start {
		h.startAgain(name)
	}
}

// startAgain starts a slot that has no process. A start that fails counts as an end.
func (h *Host) startAgain(name string) {
	h.mu.Lock()
	s := h.slots[name]
	if s == nil || s.pid != 0 || s.starting || s.fate == removed || h.closed {
		h.mu.Unlock()
		return
	}
	s.restarts++
	s.starting = true
	l, err := h.enter(s)
	if err != nil {
		s.starting = false
		s.last = kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Crash, Message: err.Error()}
		h.act(s, h.sup.Ended(name, s.last, h.cfg.Wall()))
		h.mu.Unlock()
		h.tell()
		return
	}
	h.mu.Unlock()
	if err := h.begin(h.ctx, s, l); err != nil {
		h.unstarted(s, l, err)
	}
}

// unstarted is called when a process of a slot could not be started. What the gate denied is
// not tried again: it would say the same.
func (h *Host) unstarted(s *slot, l *living, err error) {
	if errors.As(err, &denied{}) {
		h.mu.Lock()
		s.fate = removed
		if s.declared != "" {
			h.gaveUp[s.name] = Fate{ID: s.declared, Replica: s.replica, Generation: s.generation, State: Failed,
				Restarts: s.restarts, Error: err.Error()}
		}
		h.mu.Unlock()
	}
	h.over(l, kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Crash, Message: err.Error()})
}

// linked ends a process because one that it is linked to has crashed.
func (h *Host) linked(sig kernel.Signal) {
	if h.cfg.Messages != nil {
		h.cfg.Messages.Watched(sig)
	}
	if sig.Kind != kernel.LinkExit {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.living[sig.To]; l != nil {
		h.terminate(l, fmt.Sprintf("process %s, to which it is linked, crashed: %s", sig.From,
			cmp.Or(sig.Exit.Message, string(sig.Exit.Reason))))
	}
}
