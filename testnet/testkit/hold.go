package testkit

import (
	"context"
	"sync"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// Hold is an adapter whose runs do nothing and go on until they are cancelled,
// or their node may no longer work.
type Hold struct {
	mu   sync.Mutex
	runs map[string]context.CancelFunc
}

// NewHold returns an adapter without runs.
func NewHold() *Hold { return &Hold{runs: map[string]context.CancelFunc{}} }

// Invoke waits for the end.
func (h *Hold) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	mine, cancel := context.WithCancel(ctx)
	defer cancel()
	h.mu.Lock()
	h.runs[inv.Run.ID] = cancel
	h.mu.Unlock()
	<-mine.Done()
	h.mu.Lock()
	delete(h.runs, inv.Run.ID)
	h.mu.Unlock()
	if ctx.Err() != nil {
		return company.Outcome{Status: entity.RunInterrupted, Error: "The node stopped"}
	}
	return company.Outcome{Status: entity.RunCancelled, Error: "Cancelled"}
}

// Status tells whether a run is held.
func (h *Hold) Status(run string) entity.Phase {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs[run] != nil {
		return entity.PhaseExecute
	}
	return ""
}

// Cancel ends a run.
func (h *Hold) Cancel(run, _ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cancel := h.runs[run]; cancel != nil {
		cancel()
	}
}

// end cancels all runs; live counts those that are left.
func (h *Hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cancel := range h.runs {
		cancel()
	}
}

func (h *Hold) live() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}
