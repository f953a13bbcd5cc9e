package spawn

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/kernel"
)

// watch measures what processes use, and holds them to the node's lease, until the host closes. It sleeps while there
// is nothing to watch but runs and services.
func (h *Host) watch() {
	for n := 0; ; n++ {
		h.mu.Lock()
		own := len(h.slots) > 0
		h.mu.Unlock()
		if !own {
			select {
			case <-h.ctx.Done():
				return
			case <-h.busy:
				continue
			}
		}
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(leaseEvery):
		}
		h.holdToLease()
		if n%int(sampleEvery/leaseEvery) == 0 {
			h.measure(sampleEvery / 2)
		}
	}
}

// holdToLease renews the deadlines of processes, and ends them all when the node may no longer act: the
// mesh takes them for lost then. What was declared the leader starts again, here or elsewhere; the rest is over.
func (h *Host) holdToLease() {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.cfg.Authority()
	if until > h.cfg.Clock() {
		for _, l := range h.renewed {
			if l.control != nil {
				l.control.renew(until)
			}
		}
		return
	}
	for _, l := range h.living {
		if l.slot == nil || l.control == nil {
			continue
		}
		l.why, l.slot.fate = cmp.Or(l.why, "the node lost its lease"), removed
		l.control.kill()
	}
	for _, s := range h.slots { // what waits to be started again
		if s.declared == "" && s.pid == 0 && !s.starting {
			h.forget(s)
		}
	}
}

// measure brings the use of all processes up to date, unless it is fresh.
func (h *Host) measure(fresh time.Duration) {
	h.sampling.Lock()
	defer h.sampling.Unlock()
	if time.Since(h.sampled) < fresh {
		return
	}
	h.sampled = time.Now()
	h.samples++
	type one struct {
		l       *living
		control control
		machine int
	}
	var all []one
	var machines []int
	h.mu.Lock()
	for pid, l := range h.living {
		m := 0
		if l.control != nil {
			m = l.control.machine()
		} else if e, ok := h.table.Find(pid); ok {
			m = e.Machine
		}
		if m > 0 {
			machines = append(machines, m)
		}
		all = append(all, one{l, l.control, m})
	}
	h.mu.Unlock()
	own := shim.OwnUse()
	h.table.Used(kernel.KernelPID, kernel.Use{MemoryBytes: own.Memory, CPUTimeMs: own.CPU.Milliseconds()})
	uses := shim.Uses(machines)
	for _, o := range all {
		var use kernel.Use
		measured := false
		if o.control != nil {
			use, measured = o.control.use()
		}
		if u, ok := uses[o.machine]; ok {
			use.MemoryBytes, use.CPUTimeMs, measured = u.Memory, u.CPU.Milliseconds(), true
		}
		if !measured {
			continue
		}
		if o.l.dir != "" && h.samples%diskSamples == 0 {
			o.l.disk = sizeOf(o.l.dir)
		}
		use.DiskBytes = o.l.disk
		if use != o.l.used { // what rests costs the table nothing
			o.l.used = use
			h.table.Used(o.l.pid, use)
		}
	}
}

// sizeOf returns the bytes of the files below a folder, as far as maxFiles.
func sizeOf(dir string) (bytes int64) {
	files := 0
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if files++; files > maxFiles {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// found is called by the table when a process nears a limit or has reached it.
func (h *Host) found(e kernel.Entry, findings []kernel.Finding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range findings {
		if f.Level == kernel.Warning {
			h.event(kernel.LevelWarn, e.PID, "process.limit", "it has used more than 80 %% of what it may: %s", f)
			if h.cfg.Messages != nil {
				h.cfg.Messages.Warned(e.PID, f)
			}
			continue
		}
		l := h.living[e.PID]
		if l == nil {
			return
		}
		h.event(kernel.LevelError, e.PID, "process.limit", "it has used all that it may: %s", f)
		hard := f.Resource == kernel.Memory || f.Resource == kernel.Disk
		if l.slot != nil && l.slot.spec.OnLimit == kernel.SuspendOnLimit && !hard && l.control != nil {
			if err := h.suspend(l); err == nil {
				continue
			}
		}
		l.timeout = f.Resource == kernel.CPUTime
		h.terminate(l, "it passed its limit: "+f.String())
	}
}

// List returns the processes of this node, with what they use now. If all is set, those that
// ended lately are among them.
func (h *Host) List(all bool) []kernel.Entry {
	h.measure(freshFor)
	return h.table.List(all)
}

// Find returns one process with what it uses now.
func (h *Host) Find(pid kernel.PID) (kernel.Entry, bool) {
	h.measure(freshFor)
	return h.table.Find(pid)
}
