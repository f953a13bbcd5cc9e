package mind

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// A Stat says what a mind did since its node started.
type Stat struct {
	State     string // off, resting, or ticking
	Leads     bool
	Ticks     uint64
	Interval  time.Duration
	Budget    time.Duration
	Mean, Max time.Duration // that a tick computed
	Cut       uint64        // ticks that stopped early, at their budget
	Drifts    uint64        // times that the interval changed

	Sensed, Embedded, Searched, Linked, Commits, Confirmed uint64
	Waiting                                                int // impulses
	Room                                                   int
	Dropped, Expired, Acknowledged                         uint64
	Last                                                   []Impulse
	Calibration                                            Calibration
}

// Stat returns what the mind did so far.
func (m *Mind) Stat() Stat {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stat
	s.State, s.Leads, s.Interval, s.Budget = "resting", m.led, m.interval, budget(m.interval)
	if m.led && (len(m.changed) > 0 || len(m.queue.list) > 0) {
		s.State = "ticking"
	}
	if s.Ticks > 0 {
		s.Mean = m.computed / time.Duration(s.Ticks)
	}
	q := m.queue
	s.Waiting, s.Room, s.Dropped, s.Expired, s.Acknowledged, s.Last = len(q.list), maxImpulses, q.dropped, q.expired,
		q.done, slices.Clone(q.last)
	s.Calibration = m.calibrate
	return s
}

func budget(interval time.Duration) time.Duration { return interval * BudgetRatio / 1000 }

// next is the interval after a tick that computed for so long.
func next(interval, took time.Duration) time.Duration {
	switch b := budget(interval); {
	case took*1000 > b*overrun:
		interval = interval * 11 / 10
	case took*1000 < b*idle:
		interval = interval * 9 / 10
	}
	return min(max(interval, fastestInterval), slowestInterval)
}

// A thought is what a tick found in one company.
type thought struct {
	link     memory.Link
	impulses []Impulse
	at       position
}

// tick takes the five steps once: sense, embed and search and update record by record, and
// commit. Only the first four count against the budget: a commit waits, and computes
// nothing.
func (m *Mind) tick(ctx context.Context) {
	began := m.cfg.Clock()
	m.mu.Lock()
	deadline := began.Add(budget(m.interval))
	m.mu.Unlock()
	thoughts, left := map[ledger.CompanyID]*thought{}, false
	err := m.cfg.View(func(tx *ledger.Tx) error {
		impulses := m.sense(tx, began)
		for n, i := range impulses {
			if n > 0 && m.cfg.Clock().After(deadline) {
				m.putBack(impulses[n:], true)
				return nil
			}
			t := thoughts[i.Company]
			if t == nil {
				t = &thought{at: m.position(i.Company), link: memory.Link{After: memory.LinkingOf(tx, i.Company).Through}}
				thoughts[i.Company] = t
			}
			if !m.think(tx, i, t, began) {
				m.putBack(impulses[n:], false)
				left = true
				return nil
			}
		}
		return nil
	})
	took := m.cfg.Clock().Sub(began)
	m.account(took)
	for _, of := range sorted(thoughts) {
		if !m.commit(ctx, of, thoughts[of]) {
			left = true
		}
	}
	m.mu.Lock()
	m.trouble = left || err != nil
	m.mu.Unlock()
}

func sorted(thoughts map[ledger.CompanyID]*thought) (out []ledger.CompanyID) {
	for of := range thoughts {
		out = append(out, of)
	}
	slices.Sort(out)
	return out
}

func (m *Mind) account(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stat.Ticks++
	m.computed += took
	m.stat.Max = max(m.stat.Max, took)
	if to := next(m.interval, took); to != m.interval {
		m.interval = to
		m.stat.Drifts++
	}
}

func (m *Mind) position(of ledger.CompanyID) position {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at[of]
}

func (m *Mind) putBack(list []Impulse, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.back(list)
	if cut {
		m.stat.Cut++
	}
}

// sense makes impulses of what changed, and takes some from the queue.
func (m *Mind) sense(tx *ledger.Tx, now time.Time) []Impulse {
	m.mu.Lock()
	defer m.mu.Unlock()
	for of := range m.changed {
		if len(m.queue.list) >= maxDrained {
			break // the others wait for the next tick
		}
		at := m.at[of]
		if !at.known {
			at = position{through: memory.LinkingOf(tx, of).Through, known: true}
		}
		more := m.look(tx, of, &at, now)
		m.at[of] = at
		if !more {
			delete(m.changed, of)
		}
	}
	out := m.queue.drain(maxDrained, now)
	m.stat.Sensed += uint64(len(out))
	return out
}

// look makes impulses of a company's changes, and reports whether there are more.
func (m *Mind) look(tx *ledger.Tx, of ledger.CompanyID, at *position, now time.Time) (more bool) {
	count := memory.CountOf(tx, of).Changes
	if at.through == count && !at.scans {
		return false
	}
	var ids []string
	kind := Kind("")
	if !at.scans {
		list, upTo, ok := memory.ChangesAfter(tx, of, at.through, maxDrained)
		if !ok {
			m.queue.push(Impulse{Kind: Coherence, From: Ledger, To: Index, Company: of, Change: count}, now)
			at.scans, at.scan, at.through = true, "", count
		} else {
			ids, at.through = list, upTo
			more = upTo < count
		}
	}
	if at.scans {
		memory.After(tx, of, at.scan, func(r memory.Record) bool {
			ids, at.scan = append(ids, r.ID), r.ID
			return len(ids) < maxDrained
		})
		at.scans = len(ids) == maxDrained
		more = true
	}
	for _, id := range ids {
		r, ok := memory.Of(tx, of, id)
		if !ok {
			continue // forgotten since
		}
		switch kind = Novelty; {
		case r.Model != "":
			kind = Refined
		case r.UpdatedAt != r.CreatedAt:
			kind = Belief
		}
		m.queue.push(Impulse{Kind: kind, From: Index, To: Causal, Company: of, Record: id, Change: at.through}, now)
	}
	return more
}

// think embeds the record of an impulse, searches what is near to it, and decides which
// links follow. It returns false when it can not be done now.
func (m *Mind) think(tx *ledger.Tx, i Impulse, t *thought, now time.Time) bool {
	t.impulses = append(t.impulses, i)
	if i.Record == "" {
		return true
	}
	r, ok := memory.Of(tx, i.Company, i.Record)
	if !ok {
		return true // forgotten since
	}
	v := r.Vector
	if r.Model == "" {
		if v, ok = index.Embed(r.Text); !ok {
			return true
		}
	}
	s := index.Search{Vector: v.Unpack(), Model: string(r.Model), By: index.ByVectors, Limit: nearest + 1,
		Now: now.UnixMilli()}
	if r.Model == "" {
		s.Model = index.Lexical
	}
	if r.Private {
		s.Filter.Reader = string(r.Agent)
	}
	found, ready, err := m.cfg.Search(tx, i.Company, s)
	if err != nil || !ready {
		t.impulses = t.impulses[:len(t.impulses)-1]
		return err != nil // a record that can not be searched for is passed over
	}
	n := uint64(0)
	for _, hit := range found.Results {
		weight := int64(math.Round(float64(hit.Cosine) * 1000))
		if other := hit.ID.String(); other != r.ID && weight >= memory.LeastLike && n < nearest {
			t.link.Pairs = append(t.link.Pairs, memory.Pair{A: r.ID, B: other, Weight: min(weight, 1000)})
			n++
		}
	}
	if i.Kind != Novelty && memory.Likes(tx, i.Company, r.ID) > 0 {
		t.link.Renewed = append(t.link.Renewed, r.ID)
	}
	m.mu.Lock()
	m.stat.Embedded, m.stat.Searched = m.stat.Embedded+1, m.stat.Searched+1
	m.mu.Unlock()
	return true
}

// commit gives the command of a company, if there is something to say.
func (m *Mind) commit(ctx context.Context, of ledger.CompanyID, t *thought) bool {
	if len(t.link.Pairs)+len(t.link.Renewed) > 0 {
		m.mu.Lock()
		t.link.Through = max(t.link.After, m.settled(of, t))
		m.mu.Unlock()
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		err := m.cfg.Commit(ctx, of, t.link)
		cancel()
		if err != nil {
			m.log.Debug("links were not committed", "company", of, "error", err)
			m.mu.Lock()
			m.queue.back(t.impulses)
			m.mu.Unlock()
			return false
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range t.impulses {
		m.queue.acknowledge(i)
	}
	if n := len(t.link.Pairs); n+len(t.link.Renewed) > 0 {
		m.stat.Linked += uint64(n)
		m.stat.Commits++
	}
	return true
}

// settled is up to which change nothing of a company waits any more. The caller holds mu.
func (m *Mind) settled(of ledger.CompanyID, t *thought) uint64 {
	at := m.at[of]
	if at.scans {
		return t.link.After
	}
	for _, i := range m.queue.list {
		if i.Company == of {
			return t.link.After // some of it waits: it would be missed if this node died now
		}
	}
	return at.through
}
