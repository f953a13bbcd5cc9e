package kernel

import (
	"cmp"
	"fmt"
	"slices"
)

// Link links two processes: when one of them crashes, the other is told to end too.
func (t *Table) Link(a, b PID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a == b {
		return errorf(BadRequest, "process %s can not be linked to itself", a)
	}
	for _, p := range []PID{a, b} {
		if _, err := t.find(p); err != nil {
			return err
		}
		if len(t.links[p]) >= maxLinks {
			return errorf(BadRequest, "process %s has %d links, as many as it may have", p, maxLinks)
		}
	}
	if !slices.Contains(t.links[a], b) {
		t.links[a], t.links[b] = append(t.links[a], b), append(t.links[b], a)
	}
	return nil
}

// Unlink ends a link.
func (t *Table) Unlink(a, b PID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlink(a, b)
	t.unlink(b, a)
}

func (t *Table) unlink(from, to PID) {
	left := slices.DeleteFunc(t.links[from], func(p PID) bool { return p == to })
	if t.links[from] = left; len(left) == 0 {
		delete(t.links, from)
	}
}

// Monitor has by told when another process ends. It returns the monitor's name, such as
// "mon-1".
func (t *Table) Monitor(by, of PID) (ref string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range []PID{by, of} {
		if _, err := t.find(p); err != nil {
			return "", err
		}
	}
	if len(t.monitors[of]) >= maxLinks {
		return "", errorf(BadRequest, "process %s has %d monitors, as many as it may have", of, maxLinks)
	}
	t.refs++
	ref = fmt.Sprintf("mon-%d", t.refs)
	t.monitors[of] = append(t.monitors[of], monitor{ref, by})
	return ref, nil
}

// A Watch is a monitor of a process: its name, and whom it watches.
type Watch struct {
	Ref     string `json:"ref"`
	Process PID    `json:"process"`
}

// Watches are the links of a process and its monitors.
type Watches struct {
	Links    []PID
	Monitors []Watch
}

// Watches returns what a process is linked to, and what it monitors, by PID.
func (t *Table) Watches(pid PID) (out Watches) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out.Links = slices.Sorted(slices.Values(t.links[pid]))
	for of, all := range t.monitors {
		for _, m := range all {
			if m.by == pid {
				out.Monitors = append(out.Monitors, Watch{m.ref, of})
			}
		}
	}
	slices.SortFunc(out.Monitors, func(a, b Watch) int { return cmp.Compare(a.Process, b.Process) })
	return out
}

// Demonitor ends a monitor.
func (t *Table) Demonitor(ref string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for of := range t.monitors {
		t.demonitor(of, func(m monitor) bool { return m.ref == ref })
	}
}

func (t *Table) demonitor(of PID, drop func(monitor) bool) {
	left := slices.DeleteFunc(t.monitors[of], drop)
	if t.monitors[of] = left; len(left) == 0 {
		delete(t.monitors, of)
	}
}

// signals returns whom the end of a process is told, and forgets its links and monitors.
// A link carries failures alone, a monitor every end.
func (t *Table) signals(pid PID, x Exit) (out []Signal) {
	for _, to := range t.links[pid] {
		t.unlink(to, pid)
		if x.Failed() {
			out = append(out, Signal{Kind: LinkExit, To: to, From: pid, Exit: x})
		}
	}
	delete(t.links, pid)
	for _, m := range t.monitors[pid] {
		out = append(out, Signal{Kind: MonitorDown, To: m.by, From: pid, Ref: m.ref, Exit: x})
	}
	delete(t.monitors, pid)
	for of := range t.monitors {
		t.demonitor(of, func(m monitor) bool { return m.by == pid })
	}
	return out
}
