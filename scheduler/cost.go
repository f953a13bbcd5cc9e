package scheduler

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// interrupted returns out as the outcome of a run that was stopped. It keeps the
// reported summary and cost.
func interrupted(out company.Outcome, code, why string) company.Outcome {
	return company.Outcome{Status: entity.RunInterrupted, ErrorCode: code, Error: why,
		Result: out.Result, Stdout: out.Stdout, Stderr: out.Stderr, Usage: out.Usage, Cost: out.Cost}
}

// cost returns what to book for the cost that a run reported: nothing when the
// gateway has paid for its calls, because that money is booked already; with the
// price of the price table when the run reported usage only.
func (w *Worker) cost(k *work, told *entity.RunCost) *entity.RunCost {
	paid := w.cfg.Paid != nil && w.cfg.Paid(k.run.ID)
	if told == nil {
		return nil
	}
	if paid {
		w.cfg.Logger.Info("the calls of a run were paid for at the gateway; what it told besides is not booked",
			"run", k.run.ID)
		return nil
	}
	out := *told
	if !out.Priced && w.cfg.Price != nil {
		_ = view(context.Background(), w.cfg.Node, func(tx *ledger.Tx) error {
			out.Cost, out.Priced = w.cfg.Price(tx, k.run.Company, out)
			return nil
		}) // without a price the usage is booked alone
	}
	return &out
}

// tellCost reports the cost of a run whose end could not be reported because the
// session was over. The money was spent, whoever has the run now. It retries until
// ctx ends, at most tellCostTries times.
func (w *Worker) tellCost(ctx context.Context, k *work, cost entity.RunCost) {
	w.mu.Lock()
	delete(w.runs, k.run.ID) // the run has ended and frees its slot
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
