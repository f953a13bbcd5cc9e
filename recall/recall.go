// Package recall keeps, on each node, an index of what companies remember in step with the
// state, and searches in it.
//
// The state is the truth. An index hears from it which records changed, and is built anew
// when it is too far behind; a search first catches up with the state that it reads. While
// an index is built, searches find what is in it already and say how far it is.
package recall

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	company "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/memory"
)

const (
	// MaxHeld bounds the records in the indexes of all companies on one node: about 2 KB
	// each. What was not searched for the longest time goes, and is built again when it is.
	MaxHeld = 400_000
	// MaxHeldSmall is that of a machine with little memory.
	MaxHeldSmall = 40_000
	// inline is how many records a search takes in by itself, before it answers; more are
	// left to Run.
	inline = 1000
	// chunk is how many records are taken in while searches of the company wait for
	// nothing longer.
	chunk = 250
	// linkChunk is how many vectors go into a graph at once.
	linkChunk = 32
	// settle is how long Run waits after a change for others to come.
	settle = 100 * time.Millisecond
)

// Config is what a Recall needs.
type Config struct {
	// View runs f on this node's state, Entries yields its entries above a height, Head is
	// the newest one.
	View    func(f func(*ledger.Tx) error) error
	Entries func(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
	Head    func() uint64
	// Companies lists all companies.
	Companies func(tx *ledger.Tx) []ledger.CompanyID
	// Dir is where saved graphs are, "" for none.
	Dir string
	// Embedder has a model embed; its zero value: none does.
	Embedder Embedder
	// MaxHeld bounds the records of all indexes; default: MaxHeld.
	MaxHeld int
	// GraphFrom is from how many vectors of a company on a graph is kept; default:
	// [memory.Exact].
	GraphFrom int
	Logger    *slog.Logger
}

// A Recall has the indexes of a node.
type Recall struct {
	cfg   Config
	log   *slog.Logger
	embed embedding

	mu    sync.Mutex // guards what follows
	held  map[ledger.CompanyID]*shelf
	asks  uint64
	dirty map[ledger.CompanyID]bool
	wake  chan struct{}

	dies func(step string) bool // in a test: whether the node dies after a step of saving a graph
}

// A shelf is the index of one company.
type shelf struct {
	company ledger.CompanyID
	c       *memory.Collection
	used    uint64 // by Recall.mu: the number of the last search

	mu     sync.Mutex // held by whoever takes changes in; guards what follows
	whole  bool       // every record was taken in once
	cursor string     // the last record that was taken in, before it is whole
	since  uint64     // changes that are taken in
	last   string     // the record of the last of them
	saved  uint64     // since, when the graph was saved

	at  sync.Mutex // guards progress
	far Progress
}

// Progress says how much of a company is in the index.
type Progress struct {
	Done, Of int64
	Ready    bool // all of it
}

// New returns a Recall without any index.
func New(cfg Config) *Recall {
	cfg.MaxHeld, cfg.GraphFrom = cmp.Or(cfg.MaxHeld, MaxHeld), cmp.Or(cfg.GraphFrom, memory.Exact)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Recall{cfg: cfg, log: cfg.Logger, embed: newEmbedding(), held: map[ledger.CompanyID]*shelf{},
		dirty: map[ledger.CompanyID]bool{}, wake: make(chan struct{}, 1),
		dies: func(string) bool { return false }}
}

// Search searches what a company remembers, as tx has it. Whoever shows the results looks
// them up in tx: what was forgotten a moment ago may still be among them.
func (r *Recall) Search(tx *ledger.Tx, of ledger.CompanyID, s memory.Search) (memory.Found, Progress, error) {
	sh := r.shelf(of, true)
	if sh.mu.TryLock() { // else somebody takes changes in just now
		if sh.take(tx, inline) {
			r.mark(of)
		}
		sh.mu.Unlock()
	}
	found, err := sh.c.Search(s)
	return found, sh.progress(), err
}

// Stat says how big the index of a company is.
func (r *Recall) Stat(of ledger.CompanyID) (memory.Stat, Progress) {
	sh := r.shelf(of, false)
	return sh.c.Stat(), sh.progress()
}

func (r *Recall) shelf(of ledger.CompanyID, asked bool) *shelf {
	r.mu.Lock()
	defer r.mu.Unlock()
	sh := r.held[of]
	if sh == nil {
		sh = &shelf{company: of, c: memory.NewCollection()}
		sh.c.GraphFrom(r.cfg.GraphFrom)
		r.held[of] = sh
	}
	if asked {
		r.asks++
		sh.used = r.asks
	}
	return sh
}

// mark has Run look at a company.
func (r *Recall) mark(of ledger.CompanyID) {
	r.mu.Lock()
	r.dirty[of] = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (sh *shelf) progress() Progress {
	sh.at.Lock()
	defer sh.at.Unlock()
	return sh.far
}

func (sh *shelf) tell(done, of int64, ready bool) {
	sh.at.Lock()
	defer sh.at.Unlock()
	sh.far = Progress{Done: done, Of: of, Ready: ready}
}

// take takes at most limit changes in, and reports whether there are more. The caller
// holds mu.
func (sh *shelf) take(tx *ledger.Tx, limit int) (more bool) {
	count := company.CountOf(tx, sh.company)
	if !sh.whole {
		if more = sh.build(tx, count, limit); more {
			return true
		}
	}
	ids, upTo, ok := company.ChangedSince(tx, sh.company, sh.since, sh.last, limit)
	switch {
	case !ok && sh.since > count.Changes && sh.since-count.Changes < company.MaxChanges:
		return false // tx is older than the index; a state that was set back differs in what comes next
	case !ok:
		sh.whole, sh.cursor = false, ""
		return sh.take(tx, limit)
	}
	for _, id := range ids {
		sh.refresh(tx, id)
		sh.last = id
	}
	sh.since = upTo
	more = upTo < count.Changes
	sh.tell(count.Records, count.Records, !more)
	return more
}

// build takes all records in, at most limit in one call, and then takes out what is no
// record any more.
func (sh *shelf) build(tx *ledger.Tx, count company.Count, limit int) (more bool) {
	if sh.cursor == "" {
		sh.since, sh.last = count.Changes, company.LastChanged(tx, sh.company)
	}
	n := 0
	company.After(tx, sh.company, sh.cursor, func(row company.Record) bool {
		if n == limit {
			more = true
			return false
		}
		n++
		sh.cursor = row.ID
		sh.put(row)
		return true
	})
	if more {
		sh.tell(int64(sh.c.Len()), count.Records, false)
		return true
	}
	sh.c.Each(func(id memory.ID) {
		if _, ok := company.Of(tx, sh.company, id.String()); !ok {
			sh.c.Remove(id)
		}
	})
	sh.whole = true
	return false
}

// refresh takes in what became of a record.
func (sh *shelf) refresh(tx *ledger.Tx, id string) {
	if row, ok := company.Of(tx, sh.company, id); ok {
		sh.put(row)
	} else if id, ok := memory.ParseID(id); ok {
		sh.c.Remove(id)
	}
}

// put enters a record. Beside the vector that it may have it gets the one that follows from
// its text: what can not be compared by a model is compared by words.
func (sh *shelf) put(row company.Record) {
	d, ok := row.Doc()
	if !ok {
		return
	}
	d.Words, _ = memory.Embed(d.Text)
	// A vector that does not fit is left out: the rules let none in, and words are found.
	_ = sh.c.Put(d)
}

// Run builds the indexes of all companies and keeps them up until ctx ends.
func (r *Recall) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	from := r.cfg.Head()
	following.Go(func() { r.follow(ctx, from) })
	if r.cfg.Embedder.Embed != nil {
		following.Go(func() { r.embedAll(ctx) })
	}
	err := r.cfg.View(func(tx *ledger.Tx) error {
		for _, of := range r.cfg.Companies(tx) {
			if company.CountOf(tx, of).Records > 0 {
				r.mark(of)
			}
		}
		return nil
	})
	if err != nil {
		r.log.Warn("memories can not be read", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
		r.mu.Lock()
		dirty := r.dirty
		r.dirty = map[ledger.CompanyID]bool{}
		r.mu.Unlock()
		for of := range dirty {
			if err := r.keep(ctx, of); err != nil && ctx.Err() == nil {
				r.log.Warn("the index of memories fell behind", "company", of, "error", err)
			}
		}
		r.makeRoom()
		r.embed.stir()
	}
}

// follow marks the companies that entries are about. It is at work again after an error:
// indexes catch up by the state, not by what is heard here.
func (r *Recall) follow(ctx context.Context, after uint64) {
	for ctx.Err() == nil {
		for e, err := range r.cfg.Entries(ctx, after) {
			if err != nil {
				break
			}
			after = e.Height
			if e.Company != "" {
				r.mark(e.Company)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// keep brings the index of a company up to date.
func (r *Recall) keep(ctx context.Context, of ledger.CompanyID) error {
	r.mu.Lock()
	_, held := r.held[of]
	r.mu.Unlock()
	there := int64(0)
	if err := r.cfg.View(func(tx *ledger.Tx) error { there = company.CountOf(tx, of).Records; return nil }); err != nil {
		return err
	}
	if !held && (there == 0 || r.full(there)) {
		return nil
	}
	sh := r.shelf(of, false)
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		sh.mu.Lock()
		err := r.cfg.View(func(tx *ledger.Tx) error {
			more = sh.take(tx, chunk)
			return nil
		})
		sh.mu.Unlock()
		if err != nil {
			return fmt.Errorf("read memories: %w", err)
		}
	}
	if !held {
		r.loadGraphs(sh)
	}
	before := sh.linked()
	for sh.c.Link(linkChunk) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	r.saveGraphs(sh, sh.linked() != before)
	return nil
}

// linked is how many vectors are in graphs.
func (sh *shelf) linked() (n int) {
	for _, m := range sh.c.Stat().Models {
		n += m.Linked
	}
	return n
}

// full reports whether another index of so many records would be too much.
func (r *Recall) full(records int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := records
	for _, sh := range r.held {
		sum += int64(sh.c.Len())
	}
	return sum > int64(r.cfg.MaxHeld)
}

// makeRoom lets the indexes go that were not searched for the longest time, until what is
// held is within its bound.
func (r *Recall) makeRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	var all []*shelf
	for _, sh := range r.held {
		sum += sh.c.Len()
		all = append(all, sh)
	}
	slices.SortFunc(all, func(a, b *shelf) int {
		return cmp.Or(cmp.Compare(a.used, b.used),
			cmp.Compare(a.company, b.company))
	})
	for _, sh := range all {
		if sum <= r.cfg.MaxHeld || len(r.held) == 1 {
			return
		}
		sum -= sh.c.Len()
		delete(r.held, sh.company)
	}
}
