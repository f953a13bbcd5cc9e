package purse

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// Run sends settlements to the mesh, and returns money that is not needed, until ctx ends; it
// returns ctx's error.
func (p *Purse) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		p.retire()
		p.tell(ctx, func(*stock) bool { return true })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C: // for what grew old, and what could not be told before
			continue
		case <-p.more:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(gather):
		}
	}
}

// retire closes the stocks from which nothing will be granted any more.
func (p *Purse) retire() {
	session, now := p.cfg.Session(), p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stocks {
		if s.made && (s.session != session || !now.Before(s.until) || now.Sub(s.used) > p.cfg.Idle && len(s.under) == 0) {
			s.closing = true
		}
	}
}

// giveBack settles all stocks of a company without calls in progress and returns the rest of
// their money, so that other calls can reserve it. It reports whether there was any.
func (p *Purse) giveBack(ctx context.Context, of ledger.CompanyID) bool {
	p.mu.Lock()
	found := false
	for _, s := range p.stocks {
		if s.of.company == of && s.made && !s.unsure && len(s.under) == 0 && s.left > 0 {
			s.closing, found = true, true
		}
	}
	p.mu.Unlock()
	if found {
		p.tell(ctx, func(s *stock) bool { return s.of.company == of })
	}
	return found
}

// tell sends once what there is to send about the stocks that which selects.
func (p *Purse) tell(ctx context.Context, which func(*stock) bool) {
	var wg sync.WaitGroup
	room := make(chan struct{}, tellAtOnce)
	now := p.cfg.Now()
	p.mu.Lock()
	var due []*stock
	for _, s := range p.stocks {
		if which(s) && s.due(now) {
			s.telling = true
			due = append(due, s)
		}
	}
	p.mu.Unlock()
	for _, s := range due {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			p.tellOf(ctx, s)
		})
	}
	wg.Wait()
}

// due reports whether there is something to send about s now; p.mu is held.
func (s *stock) due(now time.Time) bool {
	if s.telling || now.Before(s.quiet) {
		return false
	}
	return len(s.ended) > 0 || s.closing && len(s.under) == 0 && !s.unsure || s.unsure && !s.sunk
}

// tellOf sends settlements of one stock, in several commands if they do not fit one.
func (p *Purse) tellOf(ctx context.Context, s *stock) {
	for {
		p.mu.Lock()
		calls := s.ended[:min(len(s.ended), money.MaxSettledEvents)]
		whole := len(calls) == len(s.ended) && len(s.under) == 0
		say := money.Settle{Reservation: s.id, Calls: calls, Close: s.closing && whole && !s.unsure, Uncertain: s.unsure}
		p.mu.Unlock()
		r, err := p.submit(ctx, money.KindBudgetSettle, s.of.company, say)
		var told money.Reservation
		if err == nil && r.Refusal == nil {
			err = ledger.Unmarshal(r.Value, &told)
		}
		p.mu.Lock()
		switch {
		case err != nil, r.Refusal != nil && !final(r.Refusal):
			s.pause = min(max(2*s.pause, pauseFirst), pauseMost)
			s.quiet = p.cfg.Now().Add(s.pause)
			if r.Refusal != nil {
				err = r.Refusal
			}
			if !errors.Is(err, context.Canceled) {
				p.cfg.Log.Warn("what was spent could not be told yet", "reservation", s.id, "calls", len(s.ended), "error", err)
			}
			s.telling = false
			p.mu.Unlock()
			return
		case r.Refusal != nil:
			if len(calls) > 0 {
				p.cfg.Log.Error("what was spent is not taken", "reservation", s.id, "calls", len(calls), "reason",
					r.Refusal.Message)
			}
			s.ended, s.closing = s.ended[len(calls):], true
			if len(s.ended)+len(s.under) == 0 {
				p.drop(s)
			}
		default:
			s.pause = 0
			p.forget(s, calls)
			s.ended = s.ended[len(calls):]
			if say.Uncertain {
				s.sunk = true
			}
			if say.Close || told.Status != money.ReservationOpen && len(s.ended)+len(s.under) == 0 || s.sunk &&
				len(s.ended)+len(s.under) == 0 {
				p.drop(s) // a person has to end what it is unsure of
			}
		}
		p.tidy()
		again := p.stocks[s.id] == s && len(s.ended) > 0 && r.Refusal == nil
		s.telling = again
		p.mu.Unlock()
		if !again {
			return
		}
	}
}

// forget notes that calls were settled; p.mu is held.
func (p *Purse) forget(s *stock, calls []money.Metered) {
	if len(calls) == 0 {
		return
	}
	ids := make([]string, len(calls))
	for i, m := range calls {
		ids[i] = m.Event.ID
	}
	if err := p.journal.write(note{Kind: noteTold, Reservation: s.id, Calls: ids}, false); err != nil {
		p.cfg.Log.Warn("a settlement could not be noted", "reservation", s.id, "error",
			err) // it is sent twice, and booked once
	}
}

// tidy rewrites the journal if it has grown; p.mu is held.
func (p *Purse) tidy() {
	if p.journal.size < maxJournal && p.journal.broken == nil {
		return
	}
	if err := p.journal.rewrite(p.stocks, false); err != nil {
		p.cfg.Log.Warn("the purse's journal could not be written anew", "error", err)
	}
}

// final reports whether a refused settlement will always be refused: the reservation or its
// company is deleted, or the command is invalid.
func final(r *ledger.Refusal) bool {
	switch r.Code {
	case ledger.NotFound, ledger.Conflict, ledger.Invalid, ledger.Forbidden:
		return true
	}
	return false
}

// Close stops granting, sends for a short time what there is to send, and closes the journal.
// Calls still in progress are settled in full after the next start.
func (p *Purse) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	for _, s := range p.stocks {
		s.closing, s.quiet = true, time.Time{}
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	p.tell(ctx, func(*stock) bool { return true })
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.journal.rewrite(p.stocks, true), p.journal.close())
}
