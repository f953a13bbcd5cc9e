package scheduler

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// # How long a lease is
//
// A lease is LeaderConfig.Lease (6 s). A node that runs late, or whose beats take
// long, asks for more with its beat, up to maxLeaseTimes of it (30 s), in steps
// (leaseSteps). What keeps a run from outliving its lease, whatever the lengths:
//
//  1. The answer to a beat says how long the lease is. The node counts that length,
//     less a margin that is the same part of each length, from *before it sent* the
//     beat; the leader counts the same length from granting, which is later.
//     expiry never goes back, so what was granted longer before is waited for too.
//  2. The leader that granted is gone: the next one waits. What it must wait for a
//     session is the longest lease that any leader before it may have granted. That
//     is a row of the state ([ledger.Session].Lease, the usual length at least),
//     because a leader grants more than the usual length only when its own command
//     session.lease has said so: the row's mark is the one that it gave last. A
//     leader serves only when it has applied all that was committed before its
//     term, so it sees the row; and a grant needs a check of leadership that began
//     after the beat came, so whoever granted did so to a beat that was sent before
//     the next leader was elected. From then on the next one counts.
//  3. A row is lowered only when nothing longer is left to wait for: when all that
//     was granted to the session ends within the new length from now (expiry, which
//     begins, when a leader begins, with a full lease by the row). Whoever is elected
//     after the lowering waits the new length, from a later moment. And from the
//     moment at which a leader gives the command until it is applied, it grants the
//     usual length only, because its mark is not the row's.
//  4. A leader that was deposed and does not know grants nothing (2), but may have a
//     command on its way. Marks grow with the term, and by the count within one
//     process: one that is not after the row's is refused. So when a new leader has
//     said how long a lease may be, no earlier leader's command lowers it. Before
//     that the new leader grants the usual length only, and what is lowered then was
//     safe by the books of a leader that knew all grants that there had been.
//  5. A raise that comes late makes somebody wait longer, and that is all.
//
// An answer without a length is the usual one.
const maxLeaseTimes = 5

// leaseSteps are the lengths that there are, in times of the usual one: each
// change is a command.
var leaseSteps = []int64{1, 2, 3, maxLeaseTimes}

const (
	// A node whose beats come and go within a twelfth of a lease, its own lateness
	// included, has room for an election in between with the usual length. Above
	// that a lease grows by wantTimes what a beat takes: it has to hold one that is
	// lost, one that is answered, and an election whose time-out has grown as well.
	calmPart  = 12
	wantTimes = 3
	// A beat waits for a processor about lateTimes: at the node, at the leader, and
	// at those who confirm that it leads.
	lateTimes = 4
)

// wantedLease is what a node asks for that runs late, and whose beats take long.
func wantedLease(usual, late, trip time.Duration) time.Duration {
	need := lateTimes*late + trip
	if need <= usual/calmPart {
		return usual
	}
	return stepped(usual, usual+wantTimes*need)
}

// stepped is the shortest length that there is for what is wanted.
func stepped(usual, want time.Duration) time.Duration {
	for _, n := range leaseSteps {
		if usual*time.Duration(n) >= want {
			return usual * time.Duration(n)
		}
	}
	return usual * maxLeaseTimes
}

// boundOf is the longest lease that anybody may have granted a session.
func (l *Leader) boundOf(s ledger.Session) time.Duration {
	return max(l.cfg.Lease, time.Duration(s.Lease)*time.Millisecond)
}

// length is what a beat of g is granted, as the session's row was read; l.mu is held.
func (l *Leader) length(g *lease) time.Duration {
	if g.row.Leased != g.mark || g.mark == (ledger.LeaseMark{}) {
		return l.cfg.Lease // the row is another leader's, or about to change
	}
	return min(g.want, l.boundOf(g.row))
}

// setLeases gives the commands by which leases become longer or shorter.
func (l *Leader) setLeases(ctx context.Context) error {
	var due []ledger.SessionLease
	l.mu.Lock()
	now := l.cfg.Clock()
	for session, g := range l.leases {
		if to, change := l.change(g, now); change {
			l.marks++
			g.mark, g.told = ledger.LeaseMark{Term: l.raftTerm, Count: l.marks}, false
			due = append(due, ledger.SessionLease{Session: session, Lease: to.Milliseconds(), Mark: g.mark})
		}
	}
	l.mu.Unlock()
	slices.SortFunc(due, func(a, b ledger.SessionLease) int { return cmp.Compare(a.Session, b.Session) })
	return each(due, func(p ledger.SessionLease) error {
		_, err := l.submit(ctx, ledger.KindSessionLease, "", p)
		return err
	})
}

// change says what the row of a lease should become, if anything; l.mu is held. It
// decides once for each beat: what it decided on the row before, and what became of
// that, is not known sooner.
func (l *Leader) change(g *lease, now time.Duration) (to time.Duration, change bool) {
	if !g.heard || g.lost || !g.told || l.raftTerm == 0 {
		return 0, false
	}
	bound, ours := l.boundOf(g.row), g.mark == g.row.Leased && g.mark != (ledger.LeaseMark{})
	switch {
	case g.want > bound:
		return g.want, true
	case g.want < bound && g.expiry <= now+g.want:
		return g.want, true
	case g.want > l.cfg.Lease && !ours:
		return bound, true // it is so already; from here on this leader's word
	}
	return 0, false
}
