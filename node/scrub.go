package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
)

const (
	// DefaultScrubEvery is the period in which all of a node's stored data is read once.
	DefaultScrubEvery = 7 * 24 * time.Hour
	// scrubShare is the share of one processor for a scrub, demandedShare for one that
	// somebody requested and waits for.
	scrubShare    = 0.02
	demandedShare = 0.25
	// scrubSlice is how long a scrub works before it rests to keep to its share.
	scrubSlice = 5 * time.Millisecond
	// scrubFirst is the delay after the start: the node has enough work then.
	scrubFirst = 10 * time.Minute
	// maxScrubFound bounds the findings that are kept.
	maxScrubFound = 100
)

// A scrubber reads all of this node's stored data periodically, so that damage is found
// and repaired while other copies exist. Its state is in memory only and starts anew
// with the node.
type scrubber struct {
	wall func() time.Time // this node's clock

	mu     sync.Mutex // guards the fields below
	st     api.ScrubState
	wanted bool          // somebody requested a scrub: start one, or hurry
	wake   chan struct{} // capacity 1
	slice  time.Time     // when the work since the last rest began
}

func newScrubber(every time.Duration, wall func() time.Time) *scrubber {
	if wall == nil {
		wall = time.Now
	}
	s := &scrubber{wall: wall, wake: make(chan struct{}, 1)}
	s.st.EverySeconds, s.st.Found = int64(every/time.Second), []api.ScrubFinding{}
	return s
}

// state returns the progress.
func (s *scrubber) state() api.ScrubState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.st
	st.Found = append([]api.ScrubFinding{}, st.Found...)
	return st
}

// Scrub starts a scrub now, or speeds up the current one, and returns its state.
func (n *Node) Scrub() api.ScrubState {
	n.scrubs.mu.Lock()
	n.scrubs.wanted = true
	n.scrubs.st.Running, n.scrubs.st.Demanded = true, true
	n.scrubs.mu.Unlock()
	kick(n.scrubs.wake)
	return n.scrubs.state()
}

// Scrubbed returns the progress of the scrub and its findings.
func (n *Node) Scrubbed() api.ScrubState { return n.scrubs.state() }

// scrub reads everything once in each period.
func (n *Node) scrub(ctx context.Context) {
	s, every := n.scrubs, n.conf.ScrubEvery
	next := time.Now().Add(min(scrubFirst, max(every, 0)))
	for ctx.Err() == nil {
		var due <-chan time.Time
		if every > 0 {
			due = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-due:
		}
		next = time.Now().Add(every)
		if err := n.scrubOnce(ctx); err != nil && ctx.Err() == nil {
			n.log.Error("scrub: broke off", "error", err)
		}
	}
}

func (n *Node) scrubOnce(ctx context.Context) (err error) {
	s, began := n.scrubs, time.Now()
	storeBytes, err := n.store.ScrubBytes()
	if err != nil {
		return err
	}
	_, blobBytes := n.blobs.Usage()
	s.begin(storeBytes + blobBytes)
	defer func() { s.end(err) }()
	pace := func(bytes, _ int64) error { return s.pace(ctx, bytes, began, n.conf.ScrubEvery) }
	err = n.store.Scrub(ctx, pace, func(d *store.Damage) {
		n.log.Error("scrub: the store is damaged", "error", d)
		s.found(api.ScrubFinding{What: "store", File: d.File, Error: d.Error(), At: s.wall().UTC()})
	})
	if err != nil {
		return err
	}
	return n.blobs.Scrub(ctx, pace, func(d blob.Digest, err error) {
		f := api.ScrubFinding{What: "blob", File: d.String(), Mended: err == nil, At: s.wall().UTC()}
		if err != nil {
			f.Error = err.Error()
			n.log.Error("scrub: a blob is damaged and no peer has a good copy", "digest", d.String(), "error", err)
		}
		s.found(f)
	})
}

func (s *scrubber) begin(total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.st.Running, s.st.Demanded, s.wanted = true, s.wanted, false
	s.st.Began, s.st.Bytes, s.st.TotalBytes, s.st.Error = s.wall().UTC(), 0, total, ""
	s.st.Damaged, s.st.Mended, s.st.Found = 0, 0, []api.ScrubFinding{}
	s.slice = time.Now()
}

func (s *scrubber) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.wall().UTC()
	s.st.Running, s.st.Demanded = s.wanted, s.wanted
	if err != nil {
		s.st.Error = err.Error()
		return
	}
	s.st.Ended, s.st.Rounds = &now, s.st.Rounds+1
}

func (s *scrubber) found(f api.ScrubFinding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st.Damaged++; f.Mended {
		s.st.Mended++
	}
	s.st.AllDamaged++
	if len(s.st.Found) < maxScrubFound {
		s.st.Found = append(s.st.Found, f)
	}
}

// pace counts what was read and rests, so that the work keeps to its share. Unless
// somebody waits, it also spreads the work over the whole period.
func (s *scrubber) pace(ctx context.Context, bytes int64, began time.Time, every time.Duration) error {
	s.mu.Lock()
	s.st.Bytes, s.st.AllBytes = s.st.Bytes+bytes, s.st.AllBytes+bytes
	share, worked := scrubShare, time.Since(s.slice)
	if s.wanted { // requested meanwhile: the current scrub serves it
		s.st.Demanded, s.wanted = true, false
	}
	demanded := s.st.Demanded
	if demanded {
		share = demandedShare
	}
	rest := time.Duration(float64(worked) * (1/share - 1))
	if !demanded && s.st.TotalBytes > 0 {
		rest = max(rest, time.Until(began.Add(time.Duration(float64(every)*float64(s.st.Bytes)/float64(s.st.TotalBytes)))))
	}
	s.mu.Unlock()
	if worked < scrubSlice && demanded {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.wake: // somebody waits now
	case <-time.After(rest):
	}
	s.mu.Lock()
	s.slice = time.Now()
	s.mu.Unlock()
	return ctx.Err()
}

// progress returns the completed share of a scrub.
func progress(s api.ScrubState) float64 {
	if s.TotalBytes == 0 {
		return 0
	}
	return min(float64(s.Bytes)/float64(s.TotalBytes), 1)
}

// ScrubDir reads all data in dir of a node that is not running, as fast as possible. The
// error says why the store can not be opened; blobs are read in any case.
func ScrubDir(ctx context.Context, dir string) (st api.ScrubState, err error) {
	s := newScrubber(0, nil)
	s.begin(0)
	pace := func(bytes, _ int64) error { s.st.Bytes += bytes; return ctx.Err() }
	if _, err := os.Stat(filepath.Join(dir, "store")); err != nil {
		return st, fmt.Errorf("%w: give the data directory of a node with --dir", err)
	}
	err = withStore(dir, false, func(open *store.Store, _ *ledger.Ledger) error {
		return open.Scrub(ctx, pace, func(d *store.Damage) {
			s.found(api.ScrubFinding{What: "store", File: d.File, Error: d.Error(), At: s.wall().UTC()})
		})
	})
	if d, ok := errors.AsType[*store.Damage](err); ok {
		s.found(api.ScrubFinding{What: "store", File: d.File, Error: d.Error(), At: s.wall().UTC()})
		err = nil
	}
	if err == nil {
		err = s.scrubBlobs(ctx, dir, pace)
	}
	s.st.TotalBytes = s.st.Bytes
	s.end(err)
	return s.state(), err
}

// scrubBlobs checks the blobs of a directory. A running node repairs them.
func (s *scrubber) scrubBlobs(ctx context.Context, dir string, pace func(bytes, of int64) error) error {
	k, err := blob.Open(filepath.Join(dir, "blobs"), blob.Config{})
	if err != nil {
		return fmt.Errorf("blobs: %w", err)
	}
	err = k.Scrub(ctx, pace, func(d blob.Digest, err error) {
		s.found(api.ScrubFinding{What: "blob", File: d.String(), Error: fmt.Sprint(err), At: s.wall().UTC()})
	})
	return errors.Join(err, k.Close())
}
