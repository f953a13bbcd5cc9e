package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/ledger/store"
)

var (
	// ErrUpgrade says that the log holds something that a newer version wrote:
	// this node stops applying, keeps serving what it has, and must be upgraded.
	// It never refuses the command, because a newer node would not.
	ErrUpgrade = errors.New("the mesh uses something this version does not know: upgrade this node")
	// ErrClosed is returned by what waits when the ledger is closed.
	ErrClosed = errors.New("ledger is closed")
)

// FeatureLevel is the newest level that this version knows. A change of what a command
// does stands behind a level: a mesh has one, all its nodes act by it, and feature.raise
// (or genesis) switches it on when all know it. A new one gets a constant here, LevelX
// = 2, that says what it changes, and rules ask Features(tx) >= LevelX.
const FeatureLevel = 1

// Config is what a ledger needs. Span and Mux are required.
type Config struct {
	// Span holds the state. No one else writes to it.
	Span *store.Span
	// Mux has the handlers of all kinds but the ledger's own, see [MeshHandlers].
	Mux Mux
	// Authorize decides, inside apply, whether the credential of a command is
	// still valid and whether its actor may ask for it. It is a rule: pure, and a
	// refusal or nil. nil allows everything.
	Authorize func(*Context) error
	// Gate decides, after Authorize and before the handler, whether a command should be
	// carried out. It is a rule like Authorize, but what it writes and records is kept when
	// it refuses: the entry is then denied or, after [Context.Defer], deferred.
	Gate func(*Context) error
	// Prefetch names rows that a command will probably read. They are then read
	// in parallel before the commands are applied one by one. It only makes
	// apply faster: it may name too many or too few. It must be pure.
	Prefetch func(cmd *Command, want func(key []byte))
	// Level is the newest feature level that this node knows; 0 is FeatureLevel.
	Level uint64
	// RowCacheBytes bounds the rows that apply keeps in memory; 0 is
	// DefaultRowCacheBytes. It fills with use.
	RowCacheBytes int
	// DecodedBytes bounds the rows that apply keeps decoded; 0 is DefaultDecodedBytes.
	DecodedBytes int
	// ReadCacheBytes bounds the rows that views share; 0 is DefaultReadCacheBytes.
	ReadCacheBytes int
	// Clock measures how long apply takes, for Stats; nil leaves it out. Nothing
	// else asks it: the mesh's time comes with the batches.
	Clock func() time.Time
	// Logger hears of stops and panics in handlers; nil drops it.
	Logger *slog.Logger
	Faults Faults // tests only
}

// Faults are planted bugs, with which the tests of the whole mesh show that
// their checkers find them. The zero value has none; production code never sets one.
type Faults struct {
	// NoDeduplication carries a sequence out each time that it comes.
	NoDeduplication bool
	// StateAheadOfLog stores an applied index that is one too high, as if the
	// state had been written before the log: after a restart an entry is skipped.
	StateAheadOfLog bool
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	var errs []error
	if c.Span == nil {
		errs = append(errs, errors.New("ledger: no span"))
	}
	if c.Mux == nil {
		errs = append(errs, errors.New("ledger: no handlers"))
	}
	if c.RowCacheBytes < 0 || c.DecodedBytes < 0 || c.ReadCacheBytes < 0 {
		errs = append(errs, errors.New("ledger: negative row cache"))
	}
	for kind := range MeshHandlers() {
		if _, ok := c.Mux[kind]; ok {
			errs = append(errs, fmt.Errorf("ledger: %s is the ledger's own", kind))
		}
	}
	return errors.Join(errs...)
}

// A Ledger is the chain and the state of one node. Applying and restoring is
// for one goroutine at a time; everything else may be called from any.
type Ledger struct {
	span  *store.Span
	mux   Mux
	cfg   Config
	log   *slog.Logger
	stats stats

	apply applier // touched under applying only
	reads *readCache

	// applying is held by ApplyBatch, Restore and Close.
	applying sync.Mutex
	wide     bool // see Widen; read and set under applying
	// readers is held shared while something reads the span, and alone while
	// Restore takes its content away. Reads are short: a page of the feed, a
	// View, or a snapshot that is being streamed.
	readers sync.RWMutex

	mu         sync.Mutex // guards what follows
	pos        Position
	err        error         // ErrUpgrade, or nil
	closed     bool          // after Close
	members    members       // of the roster, as far as they were asked for
	recent     []Entry       // the newest, ending at pos.Height; empty after Restore
	recentSize int           // of these, see Entry.size
	changed    chan struct{} // closed and replaced when one of these moves
}

// A LogEntry is one entry of the raft log. Data is an encoded batch, or nil for
// a configuration or no-op entry, which only moves the applied index.
type LogEntry struct {
	Index, Term uint64
	Data        []byte
}

// Open returns the ledger that the span holds, or an empty one.
func Open(cfg Config) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Level = cmp.Or(cfg.Level, FeatureLevel)
	cfg.RowCacheBytes = cmp.Or(cfg.RowCacheBytes, DefaultRowCacheBytes)
	cfg.DecodedBytes = cmp.Or(cfg.DecodedBytes, DefaultDecodedBytes)
	cfg.ReadCacheBytes = cmp.Or(cfg.ReadCacheBytes, DefaultReadCacheBytes)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Ledger{span: cfg.Span, mux: maps.Clone(cfg.Mux), cfg: cfg, log: cfg.Logger, changed: make(chan struct{})}
	maps.Copy(l.mux, MeshHandlers())
	pos, err := l.load()
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	l.pos = pos
	l.reads = newReadCache(l.room(cfg.ReadCacheBytes))
	l.apply.init(l, pos)
	if l.err, err = l.tooNew(); err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if l.err != nil {
		l.log.Error("ledger: stopped applying", "err", l.err)
	}
	return l, nil
}

// Widen lets what is kept in memory take wideTimes its usual bound, or takes that back:
// while much is written it decides how much.
func (l *Ledger) Widen(wide bool) {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.wide = wide
	l.apply.rows.bound(l.room(l.cfg.RowCacheBytes))
	l.apply.group.cache.bound(l.room(l.cfg.DecodedBytes))
	l.readers.RLock() // Restore makes another cache
	l.reads.bound(l.room(l.cfg.ReadCacheBytes))
	l.readers.RUnlock()
}

// room is what a cache may hold now whose usual bound this is; l.applying is held.
func (l *Ledger) room(bytes int) int {
	if l.wide {
		return wideTimes * bytes
	}
	return bytes
}

// Trim drops the rows and entries that are kept in memory only to be read sooner. A node that
// has little to do calls it, so that its memory goes to others.
func (l *Ledger) Trim() {
	l.applying.Lock()
	l.apply.rows.forget()
	l.apply.group.cache.forget()
	l.applying.Unlock()
	l.readers.RLock() // Restore makes another cache
	l.reads.clear()
	l.readers.RUnlock()
	l.mu.Lock()
	l.recent, l.recentSize = nil, 0 // readers of the feed go on in the store
	l.mu.Unlock()
}

// tooNew returns an error that wraps [ErrUpgrade] when the state is of a level that
// this node does not know.
func (l *Ledger) tooNew() (stop, err error) {
	b, err := l.span.Get(featureRow.Key(theRow))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var row features
	if err == nil {
		err = Unmarshal(b, &row)
	}
	if err != nil {
		return nil, err
	}
	return l.knowsLevel(row.Level), nil
}

func (l *Ledger) load() (Position, error) {
	b, err := l.span.Get(positionKey)
	if errors.Is(err, store.ErrNotFound) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, err
	}
	return decodePosition(b)
}

// Close ends everything that waits, and waits for reads under way. It does not
// close the store. It may be called again.
func (l *Ledger) Close() error {
	l.applying.Lock()
	defer l.applying.Unlock()
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.wake()
	}
	l.mu.Unlock()
	l.readers.Lock() // wait for those who read
	defer l.readers.Unlock()
	return nil
}

// wake tells all who wait; l.mu is held.
func (l *Ledger) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Applied returns the raft index of the last applied entry.
func (l *Ledger) Applied() uint64 { return l.Position().Applied }

// Head returns the height and the hash of the newest entry.
func (l *Ledger) Head() (height uint64, hash Hash) {
	p := l.Position()
	return p.Height, p.Head
}

// Digest returns the running digest of all mutations and the raft index it
// stands at. Two ledgers at the same index have the same digest.
func (l *Ledger) Digest() (digest Hash, index uint64) {
	p := l.Position()
	return p.Digest, p.Applied
}

// Time returns the mesh's clock: the time of the newest batch, or what a
// time.step set it to. Zero before the first batch.
func (l *Ledger) Time() time.Time {
	if ms := l.Position().Time; ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// Position returns how far the ledger has come.
func (l *Ledger) Position() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pos
}

// Err returns an error that wraps [ErrUpgrade] when the ledger stopped
// applying, [ErrClosed] after Close, and nil otherwise.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errLocked()
}

func (l *Ledger) errLocked() error {
	if l.closed {
		return ErrClosed
	}
	return l.err
}

// DigestAt returns the digest at a raft index that is a multiple of
// [DigestEvery]; ok is false when it is not reached yet or no longer kept.
func (l *Ledger) DigestAt(index uint64) (digest Hash, ok bool, err error) {
	l.readers.RLock()
	defer l.readers.RUnlock()
	b, err := l.span.Get(digestKey(index))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Hash{}, false, nil
	case err != nil:
		return Hash{}, false, err
	case len(b) != len(digest):
		return Hash{}, false, errMalformed
	}
	return Hash(b), true, nil
}

// WaitApplied waits until the entry at index is applied. It returns ctx's
// error, or [Ledger.Err] when the ledger will not get there.
func (l *Ledger) WaitApplied(ctx context.Context, index uint64) error {
	for {
		l.mu.Lock()
		applied, err, changed := l.pos.Applied, l.errLocked(), l.changed
		l.mu.Unlock()
		if applied >= index {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// View runs f on the state as of now, which does not change while f runs. f
// must not write, nor call View itself. A failing disk is returned as an error.
func (l *Ledger) View(f func(*Tx) error) (err error) {
	l.readers.RLock()
	defer l.readers.RUnlock()
	at, err := l.appliedOrClosed()
	if err != nil {
		return err
	}
	snap := l.span.Snapshot() // after at was asked for, see readCache
	defer snap.Close()
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(StorageError)
			if !ok {
				panic(r)
			}
			err = failure
		}
	}()
	r := &viewReader{snap, l.reads, at}
	return f(&Tx{base: r, view: r, ro: true})
}

func (l *Ledger) appliedOrClosed() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, ErrClosed
	}
	return l.pos.Applied, nil
}

// Position returns how far the state is that a view sees. In apply there is no
// such thing: it panics there.
func (t *Tx) Position() Position {
	b, ok := t.Get(positionKey)
	if !ok {
		return Position{}
	}
	pos, err := decodePosition(b)
	if err != nil {
		panic(StorageError{Err: err})
	}
	return pos
}

func found(v []byte, err error) ([]byte, bool) {
	if errors.Is(err, store.ErrNotFound) {
		return nil, false
	}
	if err != nil {
		panic(StorageError{Err: err})
	}
	return v, true
}
