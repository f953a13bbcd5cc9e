package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

type opening struct {
	session uint64
	refusal *ledger.Refusal
	err     error
}

// Session returns the session under which commands are sent, opening one if
// there is none. It may end at any time.
func (p *Proposer) Session(ctx context.Context) (uint64, error) {
	for {
		ask := make(chan uint64, 1)
		select {
		case p.wants <- ask:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-p.ctx.Done():
			return 0, ErrClosed
		}
		select {
		case id := <-ask:
			if id != 0 {
				return id, nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-p.ctx.Done():
			return 0, ErrClosed
		}
		if err := sleep(ctx, maxBackoff); err != nil { // it was refused
			return 0, err
		}
	}
}

// open begins to open a session, unless that is under way.
func (p *Proposer) open() {
	if p.opens {
		return
	}
	p.opens = true
	cmd := p.cfg.OpenSession()
	bytes := ledger.EncodeBatch(p.cfg.Mesh(), p.cfg.Node, 0, 0, 0, []ledger.Command{cmd}, p.cfg.Sign)
	p.wg.Go(func() {
		// The command carries a nonce, so repeating it opens one session only.
		began := time.Now()
		for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
			result, err := p.attempt(bytes)
			if err == nil {
				p.opened <- openedBy(result)
				return
			}
			if errors.Is(err, ErrRefused) || errors.Is(err, ErrClosed) || errors.Is(err, store.ErrDiskFull) ||
				errors.Is(err, ErrNoQuorum) && time.Since(began) >= leastPatience || sleep(p.ctx, wait) != nil {
				p.opened <- opening{err: err}
				return
			}
		}
	})
}

func openedBy(result []byte) opening {
	rs, err := ledger.DecodeReceipts(result)
	switch {
	case err != nil:
		return opening{err: err}
	case len(rs) != 1:
		return opening{err: fmt.Errorf("%w: %d of them for the opening of a session", ledger.ErrReceipts, len(rs))}
	case rs[0].Refusal != nil:
		return opening{refusal: rs[0].Refusal}
	}
	var s ledger.Session // the receipt's own height is another when the opening was repeated
	if err := ledger.Unmarshal(rs[0].Value, &s); err != nil {
		return opening{err: fmt.Errorf("opening of a session: %w", err)}
	}
	return opening{session: s.ID}
}

// take goes on with a session, or gives everybody who waits the reason why
// there is none: their commands were not sent.
func (p *Proposer) take(o opening) {
	p.opens = false
	p.session, p.next = o.session, 1
	for _, ask := range p.askers {
		ask <- o.session
	}
	p.askers = nil
	if o.session != 0 {
		p.stats.sessions.Add(1)
		return
	}
	if !errors.Is(o.err, ErrNoQuorum) { // of that others have told
		p.log.Warn("consensus: no session", "refusal", o.refusal, "err", o.err)
	}
	for _, it := range p.pending {
		it.done <- outcome{receipt: ledger.Receipt{Refusal: o.refusal}, err: o.err}
	}
	p.pending = nil
}
