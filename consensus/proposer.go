package consensus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// ProposerConfig says who proposes, and how. All fields but Logger are required.
type ProposerConfig struct {
	Node identity.NodeID
	// Mesh is asked for each batch: a node that has just joined learns it late.
	Mesh func() identity.MeshID
	// Sign is identity.Keys.Sign of the node.
	Sign func(domain string, msg []byte) []byte
	// Propose is Consensus.Propose.
	Propose func(ctx context.Context, batch []byte) (result []byte, index uint64, err error)
	// OpenSession makes the command that opens a session, with a nonce of its own.
	OpenSession func() ledger.Command
	Logger      *slog.Logger
}

// A Proposer brings the commands of one node into the log. It gathers commands
// while an earlier batch is in flight, signs a batch once, and gives each
// command exactly one final outcome, also when leaders die between commit and
// answer: every command has a sequence in a session, a batch whose outcome is
// unknown is sent again as it is, and the ledger gives a sequence its first
// outcome again.
//
// One goroutine (run) owns the session, the sequences and what is in flight;
// one goroutine for each batch in flight sends it.
type Proposer struct {
	cfg    ProposerConfig
	log    *slog.Logger
	queue  chan *item
	wants  chan chan uint64 // callers of Session
	done   chan *batch
	opened chan opening

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // held by Submit while it enqueues, so that Close misses nothing
	closed bool

	stats proposerCounters

	// Touched by run alone.
	session uint64
	next    uint64 // the next sequence
	flight  []*batch
	pending []*item // taken from the queue, not yet sent
	askers  []chan uint64
	opens   bool      // a session is being opened
	expects int       // callers that the next batch waits for
	until   time.Time // for how long
}

type proposerCounters struct {
	commands, batches, resent, sessions, unknown, busy atomic.Uint64
}

// ProposerStats are the counters of a Proposer since it was made.
type ProposerStats struct {
	Queued            int
	Commands, Batches uint64 // sent
	Resent            uint64 // attempts after the first
	Sessions          uint64 // opened
	Unknown           uint64 // commands whose caller left without an outcome
	Busy              uint64 // commands refused because the queue was full
}

// An item is a command that waits for its outcome.
type item struct {
	cmd   ledger.Command
	size  int
	state atomic.Int32 // itemQueued, itemSent or itemGone
	tries int          // sessions that ended under it
	done  chan outcome // has room for the one outcome
}

const (
	itemQueued = iota // nobody has seen it but this Proposer
	itemSent          // it is in a batch
	itemGone          // its caller has left
)

type outcome struct {
	receipt ledger.Receipt
	err     error
}

// maxSessions bounds how often a command is moved to a new session.
const maxSessions = 3

// A batch is commands under consecutive sequences. Once made it does not change.
type batch struct {
	bytes   []byte
	session uint64
	first   uint64
	items   []*item
	sentAt  time.Time

	// Set by the goroutine that sends it, read by run after it is done.
	receipts []ledger.Receipt
	err      error
	maybe    bool // an attempt before the last had an unknown outcome
}

// NewProposer returns a running Proposer.
func NewProposer(cfg ProposerConfig) *Proposer {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Proposer{
		cfg:    cfg,
		log:    cfg.Logger,
		queue:  make(chan *item, maxQueue),
		wants:  make(chan chan uint64),
		done:   make(chan *batch, maxBatches),
		opened: make(chan opening, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.run)
	return p
}

// Submit has cmd carried out and returns what became of it; a refusal is part
// of the receipt. An empty salt is filled in.
//
// Errors: ErrBusy when the queue is full, store.ErrDiskFull, ErrNoQuorum, ErrRefused,
// ErrClosed, and the cause of ctx when it ended before the command was sent: in
// all these cases the command was certainly not carried out. ErrOutcomeUnknown,
// joined with the cause of ctx, when it ended later: the command may have been
// carried out, or may still be.
func (p *Proposer) Submit(ctx context.Context, cmd ledger.Command) (ledger.Receipt, error) {
	if err := cmd.Check(); err != nil {
		if f, ok := errors.AsType[*ledger.Refusal](err); ok {
			return ledger.Receipt{Refusal: f}, nil
		}
		return ledger.Receipt{}, err
	}
	if cmd.Salt == [16]byte{} {
		_, _ = rand.Read(cmd.Salt[:]) // never fails
	}
	it := &item{cmd: cmd, size: cmd.Size(), done: make(chan outcome, 1)}
	if err := p.enqueue(it); err != nil {
		return ledger.Receipt{}, err
	}
	select {
	case o := <-it.done:
		return o.receipt, o.err
	case <-ctx.Done():
	}
	if it.state.CompareAndSwap(itemQueued, itemGone) {
		return ledger.Receipt{}, ended(ctx)
	}
	select {
	case o := <-it.done: // it came at the same moment
		return o.receipt, o.err
	default:
	}
	it.state.Store(itemGone)
	p.stats.unknown.Add(1)
	return ledger.Receipt{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ended(ctx))
}

func (p *Proposer) enqueue(it *item) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	select {
	case p.queue <- it:
		return nil
	default:
		p.stats.busy.Add(1)
		return ErrBusy
	}
}

// Stats returns the counters as of now.
func (p *Proposer) Stats() ProposerStats {
	s := &p.stats
	return ProposerStats{
		Queued: len(p.queue), Commands: s.commands.Load(), Batches: s.batches.Load(), Resent: s.resent.Load(),
		Sessions: s.sessions.Load(), Unknown: s.unknown.Load(), Busy: s.busy.Load(),
	}
}

// Close ends all waiting Submits, with ErrClosed or ErrOutcomeUnknown, and waits
// for its goroutines.
func (p *Proposer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
	return nil
}

// run is the one goroutine that decides what is sent when.
func (p *Proposer) run() {
	defer p.drain()
	late := time.NewTimer(0)
	defer late.Stop()
	for {
		p.fill()
		queue := p.queue
		switch {
		case p.gathers():
			late.Reset(time.Until(p.until))
		case len(p.pending) > 0 || !p.room(late):
			queue = nil // what waits must go first
		}
		select {
		case it := <-queue:
			p.pending = append(p.pending, it)
		case b := <-p.done:
			p.land(b)
		case o := <-p.opened:
			p.take(o)
		case ask := <-p.wants:
			if p.session != 0 {
				ask <- p.session
				continue
			}
			p.askers = append(p.askers, ask)
			p.open()
		case <-late.C:
		case <-p.ctx.Done():
			return
		}
	}
}

// gathers tells whether the next batch waits for more callers: those who have
// just been answered and soon ask again. It waits as long as the last batch took at
// most; a single caller waits for nobody.
func (p *Proposer) gathers() bool {
	return len(p.flight) == 0 && len(p.pending) > 0 && len(p.pending)+len(p.queue) < p.expects && time.Now().
		Before(p.until)
}

// room tells whether another batch may go out now; if only time is missing, it
// sets the timer.
func (p *Proposer) room(late *time.Timer) bool {
	switch n := len(p.flight); {
	case n == 0:
		return true
	case n >= maxBatches || p.outstanding() >= ledger.MaxOutstanding:
		return false
	default:
		wait := lateAfter - time.Since(p.flight[n-1].sentAt)
		if wait > 0 {
			late.Reset(wait)
		}
		return wait <= 0
	}
}

// outstanding is how many sequences from the lowest unanswered one are taken.
func (p *Proposer) outstanding() int { return int(p.next - p.mark()) }

// mark is the lowest sequence that is still unanswered.
func (p *Proposer) mark() uint64 {
	m := p.next
	for _, b := range p.flight {
		if b.session == p.session {
			m = min(m, b.first)
		}
	}
	return m
}

// fill sends a batch of what waits, if it may.
func (p *Proposer) fill() {
	if len(p.pending) == 0 || !p.mayFill() {
		return
	}
	if p.session == 0 {
		p.open()
		return
	}
	most := min(ledger.MaxBatchCommands, ledger.MaxOutstanding-p.outstanding())
	var items []*item
	size := ledger.MaxBatchBytes - batchMargin
	for len(items) < most {
		if len(p.pending) == 0 {
			select {
			case it := <-p.queue:
				p.pending = append(p.pending, it)
			default:
			}
			if len(p.pending) == 0 {
				break
			}
		}
		it := p.pending[0]
		if it.size > size && len(items) > 0 {
			break
		}
		p.pending = p.pending[1:]
		if !it.state.CompareAndSwap(itemQueued, itemSent) {
			continue // its caller has left
		}
		size -= it.size
		items = append(items, it)
	}
	if len(items) > 0 {
		p.send(items)
	}
}

func (p *Proposer) mayFill() bool {
	n := len(p.flight)
	return n == 0 && !p.gathers() || 0 < n && n < maxBatches && p.outstanding() < ledger.MaxOutstanding &&
		time.Since(p.flight[n-1].sentAt) >= lateAfter
}

// send signs a batch and starts sending it.
func (p *Proposer) send(items []*item) {
	cmds := make([]ledger.Command, len(items))
	for i, it := range items {
		cmds[i] = it.cmd
	}
	b := &batch{session: p.session, first: p.next, items: items, sentAt: time.Now()}
	b.bytes = ledger.EncodeBatch(p.cfg.Mesh(), p.cfg.Node, b.session, b.first, p.mark(), cmds, p.cfg.Sign)
	p.next += uint64(len(items))
	p.flight = append(p.flight, b)
	p.stats.batches.Add(1)
	p.stats.commands.Add(uint64(len(items)))
	p.wg.Go(func() {
		p.bring(b)
		p.done <- b // has room for all in flight
	})
}

// bring sends a batch until its outcome is final or nobody waits for it.
func (p *Proposer) bring(b *batch) {
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		var result []byte
		result, b.err = p.attempt(b.bytes)
		if b.err == nil {
			if b.receipts, b.err = ledger.DecodeReceipts(result); b.err == nil && len(b.receipts) == len(b.items) {
				return
			}
			// It was carried out, and what it gave can not be read.
			p.log.Error("consensus: result of a batch is malformed", "err", b.err, "receipts", len(b.receipts))
			b.receipts, b.err, b.maybe = nil, ErrOutcomeUnknown, true
			return
		}
		switch {
		case errors.Is(b.err, ErrOutcomeUnknown):
			b.maybe = true
		case errors.Is(b.err, ErrRefused), errors.Is(b.err, ErrClosed):
			return
		case errors.Is(b.err, store.ErrDiskFull) && !b.maybe:
			return
		case errors.Is(b.err, ErrNoQuorum) && !b.maybe && time.Since(b.sentAt) >= leastPatience:
			return
		}
		if b.abandoned() || sleep(p.ctx, wait) != nil {
			return
		}
		p.stats.resent.Add(1)
	}
}

func (p *Proposer) attempt(bytes []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, attemptTimeout)
	defer cancel()
	result, _, err := p.cfg.Propose(ctx, bytes)
	return result, err
}

// abandoned tells whether all callers have left.
func (b *batch) abandoned() bool {
	for _, it := range b.items {
		if it.state.Load() != itemGone {
			return false
		}
	}
	return true
}

// land gives the commands of a batch that is done their outcomes.
func (p *Proposer) land(b *batch) {
	for i, f := range p.flight {
		if f == b {
			p.flight = append(p.flight[:i:i], p.flight[i+1:]...)
			break
		}
	}
	if now := time.Now(); len(p.flight) == 0 {
		p.expects = len(b.items) + len(p.pending) + len(p.queue)
		p.until = now.Add(min(now.Sub(b.sentAt), roundWait))
	}
	if b.err != nil {
		err := b.err
		if b.maybe && !errors.Is(err, ErrOutcomeUnknown) {
			err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
		for _, it := range b.items {
			it.done <- outcome{err: err}
		}
		return
	}
	var again []*item
	for i, it := range b.items {
		r := b.receipts[i]
		switch p.judge(b, it, r) {
		case final:
			it.done <- outcome{receipt: r}
		case lost:
			p.stats.unknown.Add(1)
			it.done <- outcome{err: fmt.Errorf("%w: %s", ErrOutcomeUnknown, r.Refusal.Message)}
		case repeat:
			it.tries++
			if it.state.CompareAndSwap(itemSent, itemQueued) {
				again = append(again, it)
			}
		}
	}
	if len(again) > 0 {
		p.pending = append(again, p.pending...)
	}
}

type verdict int

const (
	final  verdict = iota // the receipt is the command's outcome
	lost                  // the outcome can no longer be found out
	repeat                // certainly not carried out: goes into a new session
)

// judge tells what a receipt means for its command. The ledger's refusals of a
// whole sequence are not outcomes: if an earlier attempt may have been carried
// out, what became of it is forgotten with the session.
func (p *Proposer) judge(b *batch, it *item, r ledger.Receipt) verdict {
	if r.Refusal == nil {
		return final
	}
	switch r.Refusal.ErrCode {
	case ledger.ErrCodeSessionEnded, ledger.ErrCodeNoSession:
		if b.session == p.session {
			p.session = 0
		}
		switch {
		case b.maybe:
			return lost
		case it.tries+1 >= maxSessions:
			return final
		}
		return repeat
	case ledger.ErrCodeBelowMark:
		return lost
	case ledger.ErrCodeNodeRevoked:
		if b.maybe {
			return lost
		}
	}
	return final
}

// drain answers everyone who still waits when the Proposer is closed.
func (p *Proposer) drain() {
	for _, it := range p.pending {
		it.done <- outcome{err: ErrClosed}
	}
	for {
		select {
		case it := <-p.queue:
			it.done <- outcome{err: ErrClosed}
			continue
		default:
		}
		break
	}
	for len(p.flight) > 0 {
		b := <-p.done
		if b.err != nil && b.err != ErrClosed {
			b.maybe = b.maybe || errors.Is(b.err, ErrOutcomeUnknown)
		}
		p.land(b)
	}
	for _, it := range p.pending { // from a session that ended at the same time
		select {
		case it.done <- outcome{err: ErrClosed}:
		default:
		}
	}
}
