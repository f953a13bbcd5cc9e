package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// space watches the free space of the file system that holds the store. It has
// no goroutine: whoever writes, or asks whether it may, measures when the last
// reading is old, and while the disk is full sooner.
//
// There are three lines. Below the reserve no new work is taken in. Below half
// of it the raft log takes no more entries either; votes and the state of what
// is already in the log still go through. When a write nevertheless meets a
// full disk, the ballast file is removed and the write is repeated once.
type space struct {
	fs      vfs.FS // unwrapped: removing the ballast must not wait for itself
	dir     string
	reserve uint64
	log     *slog.Logger

	mu      sync.Mutex // guards what follows
	known   bool       // the file system can tell its free space
	free    uint64
	at      time.Time
	written int64 // since the last reading
	full    bool
	ballast bool
}

func newSpace(fs vfs.FS, dir string, reserve uint64, log *slog.Logger) *space {
	sp := &space{fs: fs, dir: dir, reserve: reserve, log: log}
	_, err := fs.Stat(sp.ballastPath())
	sp.ballast = err == nil
	return sp
}

func (sp *space) ballastPath() string { return sp.fs.PathJoin(sp.dir, "BALLAST") }

// measure takes a reading when the last one is old, or always when forced.
func (sp *space) measure(force bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.measureLocked(force)
}

func (sp *space) measureLocked(force bool) {
	now, every := time.Now(), measureEvery
	if sp.full {
		every = lookEvery
	}
	if !force && sp.written < measureBytes && now.Sub(sp.at) < every {
		return
	}
	sp.at, sp.written = now, 0
	usage, err := sp.fs.GetDiskUsage(sp.dir)
	if err != nil {
		if !errors.Is(err, vfs.ErrUnsupported) {
			sp.log.Warn("store: free space unknown", "err", err)
		}
		sp.known, sp.full = false, false
		return
	}
	sp.known, sp.free = true, usage.AvailBytes
	switch {
	case sp.free < sp.reserve && !sp.full:
		sp.full = true
		sp.log.Error("store: disk is full, new work is refused", "free", sp.free, "reserve", sp.reserve)
	case sp.full && sp.free >= sp.reserve+sp.reserve/8: // a margin, so that it does not flap
		sp.full = false
		sp.log.Info("store: disk has room again", "free", sp.free)
	}
	if !sp.full && !sp.ballast && sp.free >= sp.reserve+2*ballastBytes {
		if err := sp.makeBallast(); err != nil {
			sp.log.Warn("store: no ballast", "err", err)
		}
	}
}

func (sp *space) makeBallast() (err error) {
	f, err := sp.fs.Create(sp.ballastPath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zeros := make([]byte, 1<<20)
	for range ballastBytes / len(zeros) {
		if _, err := f.Write(zeros); err != nil {
			return errors.Join(err, sp.fs.Remove(sp.ballastPath()))
		}
	}
	sp.ballast = true
	return nil
}

// giveUpBallast is called when a write met a full disk, before it is repeated.
func (sp *space) giveUpBallast() {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.full, sp.known, sp.free, sp.at = true, true, 0, time.Now()
	if !sp.ballast {
		return
	}
	sp.ballast = false
	if err := sp.fs.Remove(sp.ballastPath()); err != nil {
		sp.log.Error("store: remove ballast", "err", err)
		return
	}
	sp.log.Error("store: a write met a full disk, the ballast was given up")
}

func (sp *space) writable() error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.measureLocked(false)
	if sp.full {
		return fmt.Errorf("%w: %d MiB free, %d MiB are kept in reserve", ErrDiskFull, sp.free>>20, sp.reserve>>20)
	}
	return nil
}

// admit counts n bytes about to be written and refuses a synced commit when
// the reserve is used up.
func (sp *space) admit(n int, sync bool) error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.written += int64(n)
	sp.measureLocked(false)
	if sync && sp.known && sp.free < sp.reserve/2 && n > smallCommitBytes {
		return fmt.Errorf("%w: %d MiB free, the reserve for the log is used up", ErrDiskFull, sp.free>>20)
	}
	return nil
}

func (sp *space) freeBytes() (uint64, bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.free, sp.known
}
