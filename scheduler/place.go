package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The terms of a score, in thousandths; the lowest score gets the run. A node without
// a free slot has 1000 for that, one with all processors busy has loadWeight. A
// worktree on the node outweighs all of its slots, a session half of them.
const (
	loadWeight        = 500
	slowWeight        = 200 // of a processor that is twice as slow as the fastest, and the most
	sessionAffinity   = 600
	workspaceAffinity = 1000
)

// A placement assigns one run to one session, or says why no node gets it.
type placement struct {
	company ledger.CompanyID
	run     string
	node    identity.NodeID
	session uint64
	why     company.Placement
	never   bool // no present node will ever take it
	// since is when these reasons were stored for the run, 0 when they were not.
	since core.Time
}

// A bench is a node with its free slots. Its labels are those of the roster, which an
// operator sets; a node can not set its own.
type bench struct {
	Beat
	labels    []string
	busy      int
	untrusted bool
	slow      int64  // how much slower its processor is than the fastest, as a term of a score
	cordoned  string // why it takes no runs
}

// refuses returns why a run may not go to b, "" when it may. It checks the adapter,
// the labels, the machine, free memory and slots, and whether the node may open
// secrets when the run has some; an untrusted node may not. passes reports whether the
// reason may pass without a change of node or agent. wanted reports whether the node
// that the agent asks for is a member of the mesh.
func (b bench) refuses(adapter string, want company.Wish, secrets, wanted bool) (why string, passes bool) {
	lacks := func(want, have []string) string {
		for _, w := range want {
			if !slices.Contains(have, w) {
				return w
			}
		}
		return ""
	}
	switch {
	case b.Slots == 0:
		return "takes no runs now", true
	case want.Node != "" && want.Node != string(b.Node):
		return "the agent wants another node", wanted // the wanted node may come back
	case !slices.Contains(b.Adapters, adapter):
		return fmt.Sprintf("has no adapter %s", adapter), false
	case lacks(want.Labels, b.labels) != "":
		return "lacks label " + lacks(want.Labels, b.labels), false
	case want.OS != "" && want.OS != b.Facts.OS:
		return fmt.Sprintf("runs %s, not %s", cmp.Or(b.Facts.OS, "another system"), want.OS), false
	case want.Arch != "" && want.Arch != b.Facts.Arch:
		return fmt.Sprintf("is %s, not %s", cmp.Or(b.Facts.Arch, "another architecture"), want.Arch), false
	case want.GPU && b.Facts.GPUs == 0 && !slices.Contains(b.labels, "gpu"):
		return "has no GPU", false
	case lacks(want.Programs, b.Facts.Programs) != "":
		return "has no program " + lacks(want.Programs, b.Facts.Programs), false
	case secrets && b.untrusted:
		return "is untrusted, and the run has secrets", false
	case b.cordoned != "":
		return b.cordoned, true
	case want.MemoryMB > 0 && b.Facts.FreeMB < want.MemoryMB:
		return fmt.Sprintf("needs %d MB of free memory", want.MemoryMB), true // free memory changes all the time
	case b.busy >= b.Slots:
		return "all slots are taken", true
	}
	return "", false
}

// score rates b for a run whose session and workspace are on the given nodes.
func (b bench) score(session, workspace string) company.Candidate {
	c := company.Candidate{Node: string(b.Node), Slots: int64(b.busy) * 1000 / int64(max(b.Slots, 1))}
	if b.Facts.CPUs > 0 {
		c.Load = min(b.Facts.Load/b.Facts.CPUs, 1000)
	}
	c.Score = c.Slots + c.Load*loadWeight/1000 + b.slow
	if session == c.Node {
		c.Score, c.Affinity = c.Score-sessionAffinity, "session"
	}
	if workspace == c.Node {
		c.Score, c.Affinity = c.Score-workspaceAffinity, "workspace"
		if session == workspace {
			c.Affinity = "workspace and session"
		}
	}
	return c
}

// choose decides which queued runs go to which nodes: one run of each company in
// turn, beginning after the company last, each on the fitting node with the lowest
// score. It returns the company that it served last, and the runs that have waited
// and fit nowhere. These do not block others.
func choose(tx *ledger.Tx, live []Beat, now core.Time, last ledger.CompanyID) (places, waiting []placement,
	served ledger.CompanyID) {
	queued := entity.QueuedRuns(tx, now, last, placesPerLook, queuedPerCompany)
	if len(queued) == 0 { // the usual case: no need to read the nodes
		return nil, nil, last
	}
	benches := make([]bench, len(live))
	for i, b := range live {
		benches[i] = bench{Beat: b, busy: entity.CountRunsOfSession(tx, b.Session)}
		if n, ok := ledger.FindNode(tx, b.Node); ok {
			benches[i].labels, benches[i].untrusted = n.Labels, n.Has(ledger.LabelUntrusted)
		}
		if d, ok := company.DutyOf(tx, string(b.Node)); ok {
			benches[i].cordoned = "is cordoned"
			if d.Drain {
				benches[i].cordoned = "is being drained"
			}
		}
	}
	rateSpeed(benches)
	var away []company.Candidate // the wanted node may be among these
	for _, n := range ledger.Roster(tx) {
		if n.Member() && !slices.ContainsFunc(live, func(b Beat) bool { return b.Node == n.ID }) {
			away = append(away, company.Candidate{Node: string(n.ID), Refusal: notHeard})
		}
	}
	for _, r := range queued {
		p := placement{company: r.Company, run: r.ID}
		best := p.choose(tx, r, benches, away, now)
		switch {
		case best >= 0:
			benches[best].busy++
			p.node, p.session = benches[best].Node, benches[best].Session
			places = append(places, p)
			last = r.Company
		case now-max(r.CreatedAt, r.ScheduledRetryAt) >= tellWaitAfter:
			waiting = append(waiting, p)
		}
	}
	return places, waiting, last
}

// rateSpeed notes how much slower each processor is than the fastest. Small differences are
// those of the measurement; what was not measured is not slow.
func rateSpeed(benches []bench) {
	const noise = 4 // a quarter of the fastest
	fastest := int64(0)
	for _, b := range benches {
		if t := b.Facts.HashMicros; t > 0 && (fastest == 0 || t < fastest) {
			fastest = t
		}
	}
	for i := range benches {
		if more := benches[i].Facts.HashMicros - fastest; fastest > 0 && more > fastest/noise {
			benches[i].slow = min(more*slowWeight/fastest, slowWeight)
		}
	}
}

// reasons joins the reasons of a placement, for comparison.
func reasons(p company.Placement) (s string) {
	for _, c := range p.Candidates {
		s += c.Node + ":" + string(c.Refusal) + ";"
	}
	return s
}

// notHeard is the reason why a member without a lease gets no run.
const notHeard = "is not heard"

// choose rates all benches for r and returns the index of the best, -1 for none. It
// lists the absent nodes, away, beside them. The access policy of the resource tree may keep
// the agent from a node.
func (p *placement) choose(tx *ledger.Tx, r entity.Run, benches []bench, away []company.Candidate, now core.Time) int {
	adapter, want := company.NeedsOf(tx, r)
	secrets := secret.NeedsSecrets(tx, r)
	session, workspace := place.Affinity(tx, r)
	n, wanted := ledger.FindNode(tx, identity.NodeID(want.Node))
	wanted = wanted && n.Member()
	closed := govern.RunsAt(tx, r.Company, r.Agent, now)
	best, low := -1, int64(0)
	p.never = len(benches) > 0 && len(away) == 0
	p.why.Candidates = slices.Clone(away)
	for i, b := range benches {
		why, passes := b.refuses(adapter, want, secrets, wanted)
		if why == "" {
			why = closed(string(b.Node))
		}
		c := company.Candidate{Node: string(b.Node), Refusal: core.NullText(why)}
		if why == "" || passes {
			p.never = false
		}
		if c.Refusal == "" {
			c = b.score(session, workspace)
			if best < 0 || c.Score < low {
				best, low = i, c.Score
			}
		}
		p.why.Candidates = append(p.why.Candidates, c)
	}
	slices.SortStableFunc(p.why.Candidates, func(a, b company.Candidate) int {
		if (a.Refusal == "") != (b.Refusal == "") {
			return cmp.Compare(a.Refusal, b.Refusal)
		}
		return cmp.Compare(a.Score, b.Score)
	})
	if over := len(p.why.Candidates) - company.MaxCandidates; over > 0 {
		p.why.Candidates, p.why.Omitted = p.why.Candidates[:company.MaxCandidates], over
	}
	if old, ok := company.PlacementOf(tx, r.Company, r.ID); ok && best < 0 && old.Node == "" &&
		old.At >= r.ScheduledRetryAt && reasons(old) == reasons(p.why) {
		p.since = old.At
	}
	return best
}

// placeRuns assigns queued runs to nodes with free slots.
func (l *Leader) placeRuns(ctx context.Context) error {
	live := l.Live()
	if len(live) == 0 {
		return nil
	}
	var places, waiting []placement
	quiet := true
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		if _, halted := entity.Halted(tx); halted {
			quiet = len(company.RunningRuns(tx, 1)) == 0
			return nil
		}
		places, waiting, l.last = choose(tx, live, core.TimeOf(l.cfg.Now()), l.last)
		return nil
	})
	if err != nil {
		return err
	}
	if !quiet {
		_, err := l.submit(ctx, company.KindMeshQuiesce, "", company.Quiesce{})
		return err
	}
	return errors.Join(l.giveUp(ctx, waiting), l.tellWaiting(ctx, waiting), each(places, func(p placement) error {
		_, err := l.submit(ctx, company.KindRunPlace, p.company, company.Place{Run: p.run, Node: string(p.node),
			Session: p.session, Why: &p.why})
		return err
	}))
}

// giveUp ends the runs that no node could take for giveUpAfter, so that a run that
// can never start fails with a reason and its issue goes to the board. The time counts
// from when the reasons were stored, so a change of leader does not restart it. No
// run is given up while a node sends no beats.
func (l *Leader) giveUp(ctx context.Context, waiting []placement) error {
	l.mu.Lock()
	term := l.term
	l.mu.Unlock()
	if l.terms != term {
		l.never, l.terms = nil, term
	}
	now := l.cfg.Clock()
	never := map[string]time.Duration{}
	var over []placement
	for _, p := range waiting {
		if !p.never {
			continue
		}
		since, known := l.never[p.run]
		if !known {
			since = now
		}
		told := p.since != 0 && time.Duration(core.TimeOf(l.cfg.Now())-p.since)*time.Millisecond >= giveUpAfter
		if never[p.run] = since; now-since >= giveUpAfter || told {
			over = append(over, p)
		}
	}
	l.never = never
	return each(over, func(p placement) error {
		_, err := l.submit(ctx, company.KindRunUnplaced, p.company, company.Unplaced{Run: p.run, Why: p.why, GiveUp: true})
		return err
	})
}

// tellWaiting stores why runs wait: for runs that have waited for tellWaitAfter, at
// most waitsPerLook at each look, and again only when the reasons change.
func (l *Leader) tellWaiting(ctx context.Context, waiting []placement) error {
	l.mu.Lock()
	young := l.cfg.Clock()-l.led < l.cfg.Lease // there may be nodes that have not sent a beat yet
	l.mu.Unlock()
	seen := map[string]string{}
	var tell []placement
	for _, p := range waiting {
		if young && slices.ContainsFunc(p.why.Candidates, func(c company.Candidate) bool { return c.Refusal == notHeard }) {
			continue
		}
		why := reasons(p.why)
		old, known := l.said[p.run]
		if seen[p.run] = why; old == why && known || p.since != 0 {
			continue
		}
		if len(tell) == waitsPerLook {
			delete(seen, p.run) // at a later look
			continue
		}
		tell = append(tell, p)
	}
	l.said = seen
	return each(tell, func(p placement) error {
		_, err := l.submit(ctx, company.KindRunUnplaced, p.company, company.Unplaced{Run: p.run, Why: p.why})
		return err
	})
}
