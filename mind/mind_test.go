package mind

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
	"github.com/selvage-mesh/selvage/recall"
)

// A lab is a company in memory with a mind that looks at it, one tick at a time.
type lab struct {
	t *testing.T
	*companytest.Desk
	m       *Mind
	leads   bool
	refuse  error
	ready   bool
	commits []memory.Link
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, Desk: companytest.NewDesk(t), leads: true, ready: true}
	view := func(f func(*ledger.Tx) error) error { return f(l.Tx) }
	r := recall.New(recall.Config{View: view})
	now := l.Now // time stands still: no tick is too slow
	l.m = New(Config{View: view, Clock: func() time.Time { return now }, Leads: func() bool { return l.leads },
		Head: func() uint64 { return 0 },
		Entries: func(context.Context, uint64) iter.Seq2[ledger.Entry, error] {
			return func(func(ledger.Entry, error) bool) {}
		},
		Companies: func(*ledger.Tx) []ledger.CompanyID { return []ledger.CompanyID{l.Company} },
		Search: func(tx *ledger.Tx, of ledger.CompanyID, s index.Search) (index.Found, bool, error) {
			found, _, err := r.Search(tx, of, s)
			return found, l.ready, err
		},
		Commit: func(_ context.Context, of ledger.CompanyID, p memory.Link) error {
			if l.refuse != nil {
				return l.refuse
			}
			l.commits = append(l.commits, p)
			c := l.Context(companytest.Board, memory.KindLink, p)
			c.Cmd.Actor = ledger.Actor{Type: "node", ID: "n1"}
			c.Tx = l.Tx.Child()
			if _, err := l.Mux[memory.KindLink](c); err != nil {
				return err
			}
			c.Tx.Merge()
			return nil
		}})
	return l
}

func (l *lab) remember(text string, change ...func(*memory.Save)) string {
	l.t.Helper()
	p := memory.Save{ID: l.ID(), Text: &text}
	for _, f := range change {
		f(&p)
	}
	l.Must(l.t, companytest.Board, memory.KindAdd, p, nil)
	return p.ID
}

// settle ticks until there is nothing to do.
func (l *lab) settle() {
	l.t.Helper()
	l.m.hear(ledger.Entry{Company: l.Company})
	for range 100 {
		if !l.m.busy() {
			return
		}
		l.m.tick(l.t.Context())
	}
	l.t.Fatal("the mind does not come to rest")
}

// Records that say nearly the same are linked once, by one command, in both directions;
// others are not. What is forgotten is linked to nothing.
func TestLikesAreLinked(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.remember("Globex pays its invoices late, at the end of the quarter")
	b := l.remember("Globex pays its invoices late, at the end of each quarter")
	c := l.remember("The oven is cleaned on Fridays")
	l.settle()
	if memory.Likes(l.Tx, l.Company, a) != 1 || memory.Likes(l.Tx, l.Company, b) != 1 ||
		memory.Likes(l.Tx, l.Company, c) != 0 {
		t.Errorf("likes of %d, %d and %d", memory.Likes(l.Tx, l.Company, a), memory.Likes(l.Tx, l.Company, b),
			memory.Likes(l.Tx, l.Company, c))
	}
	s := l.m.Stat()
	if len(l.commits) != 1 || s.Sensed != 3 || s.Searched != 3 || s.Acknowledged != 3 || s.Commits != 1 ||
		s.State != "resting" || len(s.Last) != 3 || s.Last[0].Kind != Novelty {
		t.Errorf("commits %v, %+v", l.commits, s)
	}
	if at := memory.LinkingOf(l.Tx, l.Company); at.Through != 3 || at.Pairs == 0 {
		t.Errorf("looked at %+v", at)
	}
	l.Must(t, companytest.Board, memory.KindUpdate, memory.Save{ID: b, Text: new("Nothing of the kind")}, nil)
	l.settle()
	if n := memory.Likes(l.Tx, l.Company, a); n != 0 {
		t.Errorf("a record that says something else now has %d likes", n)
	}
	d := l.remember("Globex pays its invoices late, at the end of the quarter!")
	l.settle()
	l.Must(t, companytest.Board, memory.KindForget, memory.Forget{IDs: []string{d}}, nil)
	if memory.Likes(l.Tx, l.Company, a)+memory.Likes(l.Tx, l.Company, d) != 0 {
		t.Error("a forgotten record is linked")
	}
}

// What an agent keeps to itself is compared with what that agent reads.
func TestPrivateRecordsAreComparedByTheirReader(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ada, bob := l.Agent("Ada"), l.Agent("Bob")
	mine := func(agent string) func(*memory.Save) {
		return func(p *memory.Save) { p.Agent, p.Private = agent, new(true) }
	}
	a := l.remember("the key is under the blue mat", mine(ada))
	b := l.remember("the key is under the blue mat", mine(bob))
	l.settle()
	if n := memory.Likes(l.Tx, l.Company, a) + memory.Likes(l.Tx, l.Company, b); n != 0 {
		t.Errorf("what two agents keep is linked: %d", n)
	}
}

// Only the leader's mind does anything. A commit that fails is tried again, an index that is
// built is waited for, and the next leader goes on where the state says.
func TestOnlyTheLeaderCommits(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.leads = false
	a := l.remember("Deployments are frozen on Fridays")
	l.remember("Deployments are frozen on Fridays.")
	l.settle()
	if s := l.m.Stat(); len(l.commits) != 0 || s.Ticks != 0 {
		t.Fatalf("a follower thought: %+v", s)
	}
	l.leads, l.ready = true, false
	l.m.hear(ledger.Entry{})
	l.m.tick(t.Context())
	if s := l.m.Stat(); s.Waiting != 2 || l.m.pause() != retryAfter {
		t.Errorf("while the index is built: %+v", s)
	}
	l.ready, l.refuse = true, errors.New("no quorum")
	l.m.tick(t.Context())
	if s := l.m.Stat(); s.Waiting != 2 || s.Commits != 0 || l.m.pause() != retryAfter {
		t.Errorf("without a quorum: %+v", s)
	}
	l.refuse = nil
	l.settle()
	if memory.Likes(l.Tx, l.Company, a) != 1 || l.m.pause() != l.m.Stat().Interval {
		t.Errorf("afterwards: %+v", l.m.Stat())
	}
	next := newLab(t)
	next.Desk = l.Desk
	next.settle()
	if s := next.m.Stat(); s.Sensed != 0 || len(next.commits) != 0 {
		t.Errorf("the next leader began anew: %+v", s)
	}
}

// More changes than are kept are not told one by one: the whole company is looked at. No
// tick takes more than its share, and the queue has its bound.
func TestManyChangesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.remember("the same again and again")
	for n := range memory.MaxChanges + 10 {
		l.Must(t, companytest.Board, memory.KindUpdate, memory.Save{ID: first, Importance: new(int64(n % 1000))}, nil)
	}
	for n := range 200 {
		l.remember(fmt.Sprint("record ", n, " ", strings.Repeat(string(rune('a'+n%26)), 8)))
	}
	l.m.hear(ledger.Entry{Company: l.Company})
	for l.m.busy() {
		before := l.m.Stat()
		l.m.tick(t.Context())
		if s := l.m.Stat(); s.Sensed-before.Sensed > maxDrained || s.Waiting > maxImpulses {
			t.Fatalf("one tick: %+v after %+v", s, before)
		}
	}
	if s := l.m.Stat(); s.Dropped != 0 || s.Searched < 201 {
		t.Errorf("%+v", s)
	}
	q := queue{}
	now := time.Unix(1, 0)
	for range maxImpulses {
		q.push(Impulse{}, now)
	}
	if q.push(Impulse{}, now) || q.dropped != 1 {
		t.Error("the queue has no bound")
	}
	if got := q.drain(10, now.Add(impulseLife)); len(got) != 0 || q.expired != maxImpulses {
		t.Errorf("%d old impulses were taken, %d had expired", len(got), q.expired)
	}
}

// The interval follows what ticks compute, between its bounds, and so does calibration.
func TestTheIntervalKeepsTheBudget(t *testing.T) {
	t.Parallel()
	at := usualInterval
	for range 100 {
		at = next(at, at)
	}
	if at != slowestInterval {
		t.Errorf("ticks that take too long come every %s", at)
	}
	for range 100 {
		at = next(at, 0)
	}
	if at != fastestInterval {
		t.Errorf("ticks that take nothing come every %s", at)
	}
	if at := next(usualInterval, budget(usualInterval)); at != usualInterval {
		t.Errorf("ticks that keep their budget come every %s", at)
	}
	for p95, want := range map[time.Duration]time.Duration{0: 10 * time.Microsecond,
		3 * time.Microsecond: 10 * time.Microsecond, 4 * time.Microsecond: 50 * time.Microsecond,
		15 * time.Millisecond: 50 * time.Millisecond, time.Minute: time.Second} {
		if got := bandOf(p95); got != want {
			t.Errorf("band of %s is %s, want %s", p95, got, want)
		}
	}
	c, err := Calibrate(t.Context(), time.Millisecond, time.Now)
	if err != nil || c.CPU <= 0 || c.Search <= 0 || c.Tick < c.Median || c.Interval < fastestInterval ||
		c.Sync != time.Millisecond {
		t.Errorf("%+v, %v", c, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Calibrate(gone, 0, time.Now); !errors.Is(err, context.Canceled) {
		t.Errorf("a measurement that was stopped: %v", err)
	}
}

// Without anything new there is no tick, however long it lasts.
func TestAMindRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.m.Run(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if s := l.m.Stat(); s.Ticks != 0 || s.State != "resting" {
			t.Errorf("an hour of nothing: %+v", s)
		}
		cancel()
		<-done
	})
}
