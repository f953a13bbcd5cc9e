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

// leaseSteps are the possible lease lengths, as multiples of the usual length. Few
// steps mean few commands.
var leaseSteps = []int64{1, 2, 3, maxLeaseTimes}

const (
	// When a node's beats take less than a twelfth of a lease, its own delay included,
	// the usual length leaves room for an election. Above that the lease grows to
	// wantTimes the duration of a beat: it must survive one lost beat, one answered
	// beat and an election whose time-out has grown too.
	calmPart  = 12
	wantTimes = 3
	// A beat waits for a processor about lateTimes: on the node, on the leader, and on
	// the voters that confirm the leader.
	lateTimes = 4
)

// wantedLease returns the lease that a node asks for, given its delay and the duration of its beats.
func wantedLease(usual, late, trip time.Duration) time.Duration {
	need := lateTimes*late + trip
	if need <= usual/calmPart {
		return usual
	}
	return stepped(usual, usual+wantTimes*need)
}

// stepped returns the shortest possible length that is at least want.
func stepped(usual, want time.Duration) time.Duration {
	for _, n := range leaseSteps {
		if usual*time.Duration(n) >= want {
			return usual * time.Duration(n)
		}
	}
	return usual * maxLeaseTimes
}

// boundOf returns the longest lease that any leader may have granted to a session.
func (l *Leader) boundOf(s ledger.Session) time.Duration {
	return max(l.cfg.Lease, time.Duration(s.Lease)*time.Millisecond)
}

// length returns the lease that a beat of g gets, by the session's row as it was read. l.mu is held.
func (l *Leader) length(g *lease) time.Duration {
	if g.row.Leased != g.mark || g.mark == (ledger.LeaseMark{}) {
		return l.cfg.Lease // another leader wrote the row, or it is about to change
	}
	return min(g.want, l.boundOf(g.row))
}

// setLeases submits the commands that make leases longer or shorter.
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

// change returns the new length for the row of a lease, if it should change. l.mu is
// held. It decides once for each beat, because the effect of its last decision is
// known only with the next beat.
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
		return bound, true // the row already says so; from now on it is this leader's mark
	}
	return 0, false
}
