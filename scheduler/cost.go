package scheduler

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// interrupted is an outcome of a run that was stopped: what it said and cost
// stays.
func interrupted(out company.Outcome, code, why string) company.Outcome {
	return company.Outcome{Status: entity.RunInterrupted, ErrorCode: code, Error: why,
		Result: out.Result, Stdout: out.Stdout, Stderr: out.Stderr, Usage: out.Usage, Cost: out.Cost}
}

// cost is what is to be booked of what a run told: nothing when its calls were
// paid for at the gateway, since the same money is not booked twice; and with the
// price of the table where the run told only what it used.
func (w *Worker) cost(k *work, told *entity.RunCost) *entity.RunCost {
	paid := w.cfg.Paid != nil && w.cfg.Paid(k.run.ID)
	if told == nil {
		return nil
	}
	if paid {
		w.cfg.Logger.Info("the calls of a run were paid for at the gateway; what it told besides is not booked", "run", k.run.ID)
		return nil
	}
	out := *told
	if !out.Priced && w.cfg.Price != nil {
		_ = view(context.Background(), w.cfg.Node, func(tx *ledger.Tx) error {
			out.Cost, out.Priced = w.cfg.Price(tx, k.run.Company, out)
			return nil
		}) // without an answer it stays without a price
	}
	return &out
}

// tellCost tells what a run cost whose end could not be told, because its session
// was over: money was spent whoever has the run by now. It tries until ctx ends,
// tellCostTries times.
func (w *Worker) tellCost(ctx context.Context, k *work, cost entity.RunCost) {
	w.mu.Lock()
	delete(w.runs, k.run.ID) // it is over, and takes no room
	w.mu.Unlock()
	cmd := nodeCommand(w.cfg.Self, money.KindRunCost, k.run.Company, money.TellCost{Run: k.run.ID, Cost: cost})
	for tries := range tellCostTries {
		attempt, cancel := context.WithTimeout(ctx, submitWait)
		r, err := w.cfg.Node.Submit(attempt, cmd)
		cancel()
		if err == nil {
			if r.Refusal != nil {
				w.cfg.Logger.Warn("what a run cost is not taken", "run", k.run.ID, "reason", r.Refusal.Message)
			}
			return
		}
		select {
		case <-ctx.Done():
			w.cfg.Logger.Warn("what a run cost could not be told", "run", k.run.ID, "error", err)
			return
		case <-time.After(min(retryFirst<<min(tries, 10), tellCostPause)):
		}
	}
	w.cfg.Logger.Warn("what a run cost could not be told", "run", k.run.ID)
}
