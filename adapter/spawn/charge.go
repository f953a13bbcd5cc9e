package spawn

import "github.com/selvage-mesh/selvage/kernel"

// microCents are the smallest amounts of money: as many make a cent.
const microCents = 1_000_000

// ChargeRun notes that a run of this node is about to use n more of a resource. It refuses if
// that would pass the limit of its process. Runs of other nodes are charged there.
func (h *Host) ChargeRun(run string, r kernel.Resource, n int64) error {
	if pid, ok := h.ofRun(run); ok {
		return h.table.Charge(pid, r, n)
	}
	return nil
}

// Spent notes what a call of a model has cost a run of this node, in micro-cents. Whole cents
// count, once they are full.
func (h *Host) Spent(run string, cost int64) {
	h.mu.Lock()
	l := h.living[h.runs[run]]
	if l == nil || cost <= 0 {
		h.mu.Unlock()
		return
	}
	before := l.spent / microCents
	l.spent += cost
	cents := l.spent/microCents - before
	h.mu.Unlock()
	if cents > 0 {
		h.table.Note(l.pid, kernel.Money, cents)
	}
}

func (h *Host) ofRun(run string) (kernel.PID, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pid, ok := h.runs[run]
	return pid, ok
}
