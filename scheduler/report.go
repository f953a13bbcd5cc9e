package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A reporter submits a run's progress as commands, one at a time. Progress within
// reportGather is one report.
type reporter struct {
	w    *Worker
	k    *work
	log  Log
	more *signal

	mu      sync.Mutex // guards pending
	pending company.Report
	dirty   bool
}

func newReporter(w *Worker, k *work, log Log) *reporter {
	return &reporter{w: w, k: k, log: log, more: newSignal(), pending: company.Report{Run: k.run.ID}}
}

// add merges a report into the next one. Events beyond pendingEvents are dropped.
func (p *reporter) add(r company.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirty = true
	if r.Phase != "" {
		p.pending.Phase = r.Phase
	}
	if r.PID != 0 {
		p.pending.PID, p.pending.Group = r.PID, r.Group
	}
	if r.Place != nil {
		p.pending.Place = r.Place
	}
	p.pending.Events = append(p.pending.Events, r.Events[:min(len(r.Events), pendingEvents-len(p.pending.Events))]...)
	p.more.set()
}

// take returns the next report, with the size of the log, if there is anything to report.
func (p *reporter) take(seq int64) (company.Report, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.log.Digest()
	if !p.dirty && d.Seq == seq {
		return company.Report{}, false
	}
	r := p.pending
	r.Output = outputMark(d)
	p.pending, p.dirty = company.Report{Run: p.k.run.ID}, false
	return r, true
}

// run submits reports until ctx ends. What is left then belongs to the command that
// closes the run, so a short run needs no report.
func (p *reporter) run(ctx context.Context) {
	p.add(company.Report{Phase: entity.PhaseExecute})
	var seq int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.more.raised:
		case <-time.After(reportEvery):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportGather):
		}
		r, ok := p.take(seq)
		if !ok {
			continue
		}
		if r.Output != nil {
			seq = r.Output.Seq
		}
		attempt, cancel := context.WithTimeout(ctx, submitWait)
		_, err := p.w.cfg.Node.Submit(attempt, nodeCommand(p.w.cfg.Self, company.KindRunReport, p.k.run.Company, r))
		cancel()
		if err != nil {
			p.add(r) // progress may be reported twice, but is never dropped
		}
	}
}
