package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	// ErrLocked is returned by [Open] when another process, or another Store of
	// this one, has the directory open.
	ErrLocked = errors.New("data directory is in use by another process")
	// ErrDiskFull is returned by [Store.Writable] and [Span.Commit] while the
	// free space is below the reserve.
	ErrDiskFull = errors.New("disk is full")
	// ErrNotFound is returned by Get for an absent key.
	ErrNotFound = errors.New("key not found")
	// ErrClosed is returned for what is asked after Close.
	ErrClosed = errors.New("store is closed")
)

// A Failure is what iterations panic with when the disk fails.
type Failure struct{ Err error }

func (e Failure) Error() string { return "storage: " + e.Err.Error() }
func (e Failure) Unwrap() error { return e.Err }

// formatVersion is the format of the files. At least FormatWALSyncChunks is
// needed: log chunks with the synced offset tell a torn tail from corruption.
// It may only be raised, and then old programs no longer open the directory.
const formatVersion = pebble.FormatTableFormatV6

// Options say how to open a store. The zero value is right for a server.
type Options struct {
	// FS is the file system; nil is the operating system's. Tests pass
	// vfs.NewMem or vfs.NewCrashableMem.
	FS vfs.FS
	// Small chooses the profile for boards with little memory and slow cards.
	Small bool
	// CacheBytes and MemTableBytes override the profile.
	CacheBytes    int64
	MemTableBytes uint64
	// ReserveBytes is the free space below which new work is refused; 0 is the
	// profile's, which leaves the raft log minutes to be truncated.
	ReserveBytes uint64
	// SlowAfter is when a disk operation under way counts as slow.
	SlowAfter time.Duration
	// OnSlowDisk hears of an operation that has taken longer than SlowAfter and
	// is still under way, about every two seconds. It must neither block nor
	// touch the disk.
	OnSlowDisk func(SlowDisk)
	// OnDamage hears of damage that is met while the store is open, once for each
	// read that meets it. It must neither block nor touch the store.
	OnDamage func(*Damage)
	// Salvage opens a store whose logs or manifest hold less than was synced, with
	// what can be read. Only for a person who has nothing better: see [Damage].
	Salvage bool
	// OnFatal hears of an error after which the database can not go on, before
	// the process panics. It may end the process or the goroutine itself.
	OnFatal func(error)
	// Logger takes the database's own messages; nil drops them.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	cache, mem, reserve := int64(DefaultCacheBytes), uint64(DefaultMemTableBytes), uint64(DefaultReserveBytes)
	if o.Small {
		cache, mem, reserve = SmallCacheBytes, SmallMemTableBytes, SmallReserveBytes
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, cache)
	o.MemTableBytes = cmp.Or(o.MemTableBytes, mem)
	o.ReserveBytes = cmp.Or(o.ReserveBytes, reserve)
	o.SlowAfter = cmp.Or(o.SlowAfter, DefaultSlowAfter)
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A SlowDisk is a disk operation that is taking too long.
type SlowDisk struct {
	File string
	Op   string
	For  time.Duration // how long so far
}

// A Store is one open database. It may be used by several goroutines. It
// starts only Pebble's own goroutines, which Close stops.
type Store struct {
	dir   string
	opts  Options
	fs    vfs.FS // as Pebble sees it
	db    any    // *pebble.DB, see [db]
	cache any    // *pebble.Cache, see [cache]
	lock  *pebble.Lock
	stop  func() error // ends the health checks
	space *space
	mark  *mark
	syncs atomic.Uint64 // fsyncs of the write-ahead log

	filled   atomic.Int64 // bytes that were written since the memtable was flushed early
	wide     atomic.Bool
	widening sync.Mutex // guards narrow, and changes of wide
	narrow   func()     // gives the block cache what it may take when wide; nil while it may

	closed   atomic.Bool
	closing  sync.Once
	closeErr error
}

// Open opens or creates the database in dir. It returns [ErrLocked] when dir
// is open elsewhere, and a [Damage] when the files do not hold what was synced.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{dir: dir, opts: o}
	if err := o.FS.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	lock, err := pebble.LockDirectory(dir, o.FS)
	switch {
	case err == nil:
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES), err.Error() == "lock held by current process":
		return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
	default:
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	s.lock = lock
	s.space = newSpace(o.FS, dir, o.ReserveBytes, o.Logger)
	checked, closer := vfs.WithDiskHealthChecks(o.FS, o.SlowAfter, nil, s.slow)
	s.stop = closer.Close
	s.fs = &storeFS{FS: vfs.OnDiskFull(checked, s.space.giveUpBallast), store: s}
	s.cache = pebble.NewCache(s.cacheBytes() + s.wideBytes())
	s.narrow = cache(s).Reserve(int(s.wideBytes()))
	defer cache(s).Unref() // the database holds it
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.stop(), lock.Close())
	}
	s.space.measure(true)
	return s, nil
}

// open checks the files against their mark and opens the database.
func (s *Store) open() (err error) {
	if err := s.clearStaging(); err != nil {
		return fmt.Errorf("clear staging: %w", err)
	}
	before, known, err := s.checkMark()
	if err != nil {
		return fmt.Errorf("open %s: %w", s.dir, err)
	}
	s.mark = newMark(s.fs, s.dir, before, s.opts.Logger)
	if known {
		if err := s.mark.begin(); err != nil {
			return err
		}
	}
	if s.db, err = openPebble(s); err != nil {
		if d := openDamage(err); d != nil {
			err = d
		}
		return errors.Join(fmt.Errorf("open %s: %w", s.dir, err), s.mark.close())
	}
	if err := s.startMark(known); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", s.dir, err), db(s).Close(), s.mark.close())
	}
	return nil
}

// checkMark returns the note that the store goes on from and whether it has one,
// and a [Damage] when the files hold less than it says. A store without a note
// has none yet, or has lost it: see startMark.
func (s *Store) checkMark() (n note, known bool, err error) {
	n, err = readMark(s.fs, s.dir)
	known = err == nil
	if known {
		err = n.check(s.fs, s.dir)
	} else if d, ok := errors.AsType[*Damage](err); errors.Is(err, fs.ErrNotExist) || ok && d.Kind == DamageMark {
		err = nil // the power may have gone while it was made: see startMark
	}
	if err == nil {
		err = s.checkMarker(known)
	}
	if err != nil && s.opts.Salvage {
		s.opts.Logger.Warn("store: opened in spite of damage", "err", err)
		return note{head: n.head}, known, nil
	}
	return n, known, err
}

// checkMarker returns a [Damage] when the file that names the manifest is gone:
// Pebble would begin an empty database beside the tables.
func (s *Store) checkMarker(known bool) error {
	desc, err := pebble.Peek(s.dir, s.fs)
	if err != nil || desc.Exists {
		return nil // openPebble returns the error
	}
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	if known || slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") }) {
		return &Damage{File: "marker.manifest", Kind: DamageLost}
	}
	return nil
}

// startMark notes in the database that it has a mark from now on. A database that
// says so already and comes without a mark has lost it.
func (s *Store) startMark(known bool) error {
	_, closer, err := db(s).Get(markKey)
	had := err == nil
	switch {
	case had:
		err = closer.Close()
	case errors.Is(err, pebble.ErrNotFound):
		err = nil
	}
	if err != nil {
		return s.damaged(err)
	}
	if had && !known && !s.opts.Salvage {
		return &Damage{File: markFile, Kind: DamageMark}
	}
	if !known {
		if err := s.mark.begin(); err != nil {
			return err
		}
	}
	if had {
		return nil
	}
	if err := db(s).Set(markKey, nil, pebble.Sync); err != nil {
		return err
	}
	s.mark.put(Head{})
	return nil
}

// Pebble's types stand in no type and no method of this package: the compiler makes the methods of
// generic types that an imported type is made of anew in each package that imports it, and Pebble's are
// 733 functions, for each of our hundred packages.

func db(s *Store) *pebble.DB { return s.db.(*pebble.DB) }

func cache(s *Store) *pebble.Cache { return s.cache.(*pebble.Cache) }

// openPebble opens the database. Its OPTIONS are only for people and for checks
// that a store of ours always passes, so wrong ones are dropped; it writes new
// ones. It panics on some kinds of damage.
func openPebble(s *Store) (db *pebble.DB, err error) {
	opts := pebbleOptions(s)
	switch desc, err := pebble.Peek(s.dir, s.fs); {
	case err != nil && strings.Contains(err.Error(), "format major version"):
		return nil, fmt.Errorf("%w (%w)", errNewer, err)
	case err != nil:
		return nil, err
	case desc.OptionsFilename != "":
		if err := dropWrongOptions(s, opts, desc.OptionsFilename); err != nil {
			return nil, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, &Damage{Kind: DamageContent, Err: fmt.Errorf("%v", p)}
		}
	}()
	return pebble.Open(s.dir, opts)
}

func dropWrongOptions(s *Store, opts *pebble.Options, path string) error {
	f, err := s.fs.Open(path)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxOptionsBytes))
	if err := f.Close(); err != nil {
		return err
	}
	if err == nil {
		ours := opts.Clone()
		ours.EnsureDefaults()
		err = ours.CheckCompatibility(s.dir, string(text))
	}
	if err == nil && !strings.HasPrefix(string(text), "[Version]") {
		err = errors.New("not a list of options")
	}
	if err == nil {
		return nil
	}
	s.opts.Logger.Warn("store: wrong options are dropped, new ones are written", "file", s.fs.PathBase(path), "err", err)
	return s.fs.Remove(path)
}

// cacheBytes is the size of Pebble's cache, which takes the memtables' room from it:
// one is filled, and one is flushed now and then.
func (s *Store) cacheBytes() int64 { return s.opts.CacheBytes + int64(s.opts.MemTableBytes)*3/2 }

// wideBytes is what the cache may take on top while the store is wide.
func (s *Store) wideBytes() int64 { return wideTimes * s.opts.CacheBytes }

// Widen lets the block cache take more and memtables fill, or takes that back: while
// much is written it is these that decide how much.
func (s *Store) Widen(wide bool) {
	s.widening.Lock()
	defer s.widening.Unlock()
	switch {
	case s.closed.Load():
	case wide && s.narrow != nil:
		s.narrow()
		s.narrow = nil
		s.wide.Store(true)
	case !wide && s.narrow == nil:
		s.narrow = cache(s).Reserve(int(s.wideBytes()))
		s.wide.Store(false)
		s.filled.Store(earlyFlushBytes)
	}
}

// fill counts what was written, and flushes the memtable when it is enough for a store
// that is not wide.
func (s *Store) fill(bytes int) error {
	if s.wide.Load() || s.opts.MemTableBytes <= earlyFlushBytes || s.filled.Add(int64(bytes)) < earlyFlushBytes {
		return nil
	}
	s.filled.Store(0)
	_, err := db(s).AsyncFlush()
	return err
}

// Trim empties the block cache. A store that has little to do reads from the
// system's cache for a while then.
func (s *Store) Trim() {
	if !s.closed.Load() {
		cache(s).Reserve(int(s.cacheBytes() + s.wideBytes()))()
	}
}

func pebbleOptions(s *Store) *pebble.Options {
	o := &pebble.Options{
		FS:                          s.fs,
		Lock:                        s.lock,
		FormatMajorVersion:          formatVersion,
		Cache:                       cache(s),
		MemTableSize:                s.opts.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		MaxOpenFiles:                maxOpenFiles,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      &logger{log: s.opts.Logger, onFatal: s.opts.OnFatal},
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) {
				s.opts.Logger.Error("store: background work failed", "err", err)
				s.damaged(err)
			},
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				s.tell(&Damage{File: s.fs.PathBase(i.Path), Kind: DamageContent, Err: i.Details})
			},
			WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
				s.opts.Logger.Warn("store: writers held up", "reason", i.Reason)
			},
		},
	}
	if s.opts.Small {
		o.MaxOpenFiles = smallMaxOpen
		o.CompactionConcurrencyRange = func() (int, int) { return 1, 1 }
	}
	o.Experimental.FileCacheShards = 1 // fewer idle goroutines; a node opens few tables
	for i := range o.Levels {
		// Half of the reads of apply ask for keys that are not there yet.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		if i < rawLevels {
			// What is soon compacted again is not worth a compressor's time.
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		} else {
			o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
		}
	}
	return o
}

func (s *Store) slow(i vfs.DiskSlowInfo) {
	s.opts.Logger.Warn("store: disk is slow", "op", i.OpType.String(), "file", s.fs.PathBase(i.Path), "for", i.Duration)
	if s.opts.OnSlowDisk != nil {
		s.opts.OnSlowDisk(SlowDisk{File: s.fs.PathBase(i.Path), Op: i.OpType.String(), For: i.Duration})
	}
}

// damaged returns err, as a [Damage] when it is one, after OnDamage heard of it.
func (s *Store) damaged(err error) error {
	d := damageOf(err)
	if d == nil {
		return err
	}
	s.tell(d)
	return d
}

func (s *Store) tell(d *Damage) {
	if s.opts.OnDamage != nil {
		s.opts.OnDamage(d)
	}
}

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Syncs returns how often the write-ahead log was synced to the disk since Open.
func (s *Store) Syncs() uint64 { return s.syncs.Load() }

// Writable returns an error that wraps [ErrDiskFull] while the free space is
// below the reserve, and nil otherwise. Whoever takes in new work asks it
// first; work that was taken in may then go on within the reserve.
func (s *Store) Writable() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.space.writable()
}

// Close flushes nothing that is not needed: what was committed is in the log.
// All iterations and snapshots must have ended. It may be called again.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed.Store(true)
		s.closeErr = errors.Join(db(s).Close(), s.mark.close(), s.stop(), s.lock.Close())
	})
	return s.closeErr
}

// logger hands Pebble's messages to slog and never returns from Fatalf, as
// Pebble requires.
type logger struct {
	log     *slog.Logger
	onFatal func(error)
}

func (l *logger) Infof(format string, args ...any) {
	l.log.Debug("store: " + fmt.Sprintf(format, args...))
}

func (l *logger) Errorf(format string, args ...any) {
	l.log.Error("store: " + fmt.Sprintf(format, args...))
}

func (l *logger) Fatalf(format string, args ...any) {
	err := Failure{fmt.Errorf(format, args...)}
	l.log.Error("store: fatal", "err", err)
	if l.onFatal != nil {
		l.onFatal(err)
	}
	panic(err)
}
