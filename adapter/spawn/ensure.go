package spawn

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/selvage-mesh/selvage/kernel"
)

// A Wanted is a replica of a declaration that this node has to run.
type Wanted struct {
	ID         string // of the declaration
	Replica    int
	Generation uint64 // counts the changes of the declaration
	Spec       kernel.Spec
}

func (w Wanted) slot() string { return fmt.Sprintf("declared-%s-%d", w.ID, w.Replica) }

// The states of a replica on its node.
const (
	Running  = "running"
	Starting = "starting"
	Failed   = "failed" // its restarts are spent, or it can not be started
	Ended    = "ended"  // it has done its work: its strategy does not start it again
)

// A Fate is how a declared replica stands on this node.
type Fate struct {
	ID         string
	Replica    int
	Generation uint64
	State      string
	PID        kernel.PID
	Restarts   int
	Exit       int
	Error      string
}

// Ensure makes the declared processes of this node what wanted says: it starts what is
// missing, and ends what is not wanted, or is of an earlier generation. It does not wait for
// either: call it again after [Host.Changed].
func (h *Host) Ensure(wanted []Wanted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	by := map[string]Wanted{}
	for _, w := range wanted {
		by[w.slot()] = w
	}
	for name, s := range h.slots {
		if w, ok := by[name]; s.declared == "" || ok && w.Generation == s.generation {
			continue
		}
		s.fate = removed
		if l := h.living[s.pid]; s.pid != 0 && l != nil {
			h.terminate(l, "it is not wanted on this node any more")
		} else if !s.starting {
			h.forget(s)
		}
	}
	for name, f := range h.gaveUp {
		if w, ok := by[name]; !ok || w.Generation != f.Generation {
			delete(h.gaveUp, name)
		}
	}
	for name, w := range by {
		if _, over := h.gaveUp[name]; over || h.slots[name] != nil || h.cfg.Authority() <= h.cfg.Clock() {
			continue
		}
		s := &slot{name: name, spec: w.Spec.WithDefaults().LongLived(), declared: w.ID, replica: w.Replica,
			generation: w.Generation, starting: true}
		if err := s.spec.Validate(); err != nil {
			h.gaveUp[name] = Fate{ID: w.ID, Replica: w.Replica, Generation: w.Generation, State: Failed, Error: err.Error()}
			continue
		}
		l, err := h.enter(s)
		if err != nil {
			h.gaveUp[name] = Fate{ID: w.ID, Replica: w.Replica, Generation: w.Generation, State: Failed, Error: err.Error()}
			continue
		}
		h.wg.Go(func() {
			if err := h.begin(h.ctx, s, l); err != nil {
				h.unstarted(s, l, err)
			}
		})
	}
}

// Fates returns how the declared replicas of this node stand, ordered.
func (h *Host) Fates() (out []Fate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.gaveUp {
		out = append(out, f)
	}
	for _, s := range h.slots {
		if s.declared == "" || s.fate == removed {
			continue
		}
		f := Fate{ID: s.declared, Replica: s.replica, Generation: s.generation, State: Starting, PID: s.pid,
			Restarts: s.restarts}
		if l := h.living[s.pid]; s.pid != 0 && l != nil && l.control != nil {
			f.State = Running
		} else if s.restarts > 0 || s.last.Message != "" {
			f.Error = s.last.Message
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fate) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Replica, b.Replica)) })
	return out
}

// Changed returns a channel that is closed when a process began or ended after the call.
func (h *Host) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *Host) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// EndSpawned ends all processes that this host started and that were not declared.
func (h *Host) EndSpawned(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.slots {
		if s.declared != "" || s.fate == removed {
			continue
		}
		s.fate = removed
		if l := h.living[s.pid]; s.pid != 0 && l != nil {
			h.terminate(l, why)
		} else if !s.starting {
			h.forget(s)
		}
	}
}
