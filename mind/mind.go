package mind

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// Config is what a Mind needs.
type Config struct {
	// View runs f on this node's state, Entries yields its entries above a height, Head is
	// the newest one.
	View    func(f func(*ledger.Tx) error) error
	Entries func(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
	Head    func() uint64
	// Companies lists all companies.
	Companies func(tx *ledger.Tx) []ledger.CompanyID
	// Leads reports whether this node is the leader: only then is anything done.
	Leads func() bool
	// Search searches what a company remembers; ready is false while not all is indexed.
	Search func(tx *ledger.Tx, company ledger.CompanyID, s index.Search) (found index.Found, ready bool, err error)
	// Commit gives a command.
	Commit func(ctx context.Context, company ledger.CompanyID, p memory.Link) error
	// Interval is between two ticks at the beginning; default: 50 ms.
	Interval time.Duration
	// Clock is what ticks are measured by, and impulses age by; default: time.Now.
	Clock  func() time.Time
	Logger *slog.Logger
}

// A Mind is the tick of one node.
type Mind struct {
	cfg  Config
	log  *slog.Logger
	wake chan struct{}

	mu        sync.Mutex // guards what follows
	changed   map[ledger.CompanyID]bool
	led       bool
	queue     queue
	at        map[ledger.CompanyID]position // by company
	stat      Stat
	computed  time.Duration // of all ticks
	interval  time.Duration
	trouble   bool // the last tick could not go on
	calibrate Calibration
}

// A position is how far this node looked at a company's changes.
type position struct {
	through uint64 // changes that became impulses
	known   bool
	scan    string // the last record that a look at the whole company came to
	scans   bool
}

// New returns a Mind that does nothing until Run.
func New(cfg Config) *Mind {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	return &Mind{cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1), changed: map[ledger.CompanyID]bool{},
		at:       map[ledger.CompanyID]position{},
		interval: min(max(cmp.Or(cfg.Interval, usualInterval), fastestInterval), slowestInterval)}
}

// Run ticks whenever there is something to think about, until ctx ends.
func (m *Mind) Run(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { m.follow(ctx) })
	for {
		if !m.busy() {
			select {
			case <-ctx.Done():
				return
			case <-m.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.pause()):
		}
		m.tick(ctx)
	}
}

// follow hears from the feed which companies changed.
func (m *Mind) follow(ctx context.Context) {
	after := m.cfg.Head()
	m.hear(ledger.Entry{})
	for ctx.Err() == nil {
		for e, err := range m.cfg.Entries(ctx, after) {
			if err != nil {
				break
			}
			after = e.Height
			m.hear(e)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// hear notes an entry. A node that becomes the leader looks at all companies once, from
// where the state says that the leader before it was.
func (m *Mind) hear(e ledger.Entry) {
	leads := m.cfg.Leads()
	m.mu.Lock()
	took := leads && !m.led
	if !leads && m.led {
		m.changed, m.at, m.queue.list = map[ledger.CompanyID]bool{}, map[ledger.CompanyID]position{}, nil
	}
	m.led = leads
	if leads && e.Company != "" && len(m.changed) < maxCompanies {
		m.changed[e.Company] = true
	}
	if leads && e.Kind == memory.KindLink {
		m.stat.Confirmed++
	}
	m.mu.Unlock()
	if took {
		_ = m.cfg.View(func(tx *ledger.Tx) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, of := range m.cfg.Companies(tx) {
				if len(m.changed) < maxCompanies && memory.CountOf(tx, of).Changes > 0 {
					m.changed[of] = true
				}
			}
			return nil
		})
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// busy reports whether there is something to do.
func (m *Mind) busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.led && (len(m.changed) > 0 || len(m.queue.list) > 0)
}

// pause is how long to wait for the next tick.
func (m *Mind) pause() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble {
		return retryAfter
	}
	return m.interval
}

// Calibrated notes what was measured of this node, and ticks at the interval that follows.
func (m *Mind) Calibrated(c Calibration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calibrate = c
	m.interval = min(max(c.Interval, fastestInterval), slowestInterval)
}
