package scheduler

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A placement gives one run to one session.
type placement struct {
	company, run string
	node         identity.NodeID
	session      uint64
}

// A bench is a node with the room that is left on it.
type bench struct {
	Beat
	busy      int
	untrusted bool
}

// fits reports whether a run may go to b: adapter, labels, room, and the mesh's
// data key when the run has secrets, which an untrusted node does not hold.
func (b bench) fits(adapter string, want company.Wish, secrets bool) bool {
	if secrets && b.untrusted {
		return false
	}
	if b.busy >= b.Slots || !slices.Contains(b.Adapters, adapter) || want.Node != "" && want.Node != string(b.Node) {
		return false
	}
	return !slices.ContainsFunc(want.Labels, func(l string) bool { return !slices.Contains(b.Labels, l) })
}

// choose decides which queued runs go where: one of each company in turn,
// beginning after the company that was served last, each to the fitting node
// with the smallest share of its slots taken. It returns the company served
// last. A run that fits nowhere now does not hold up others.
func choose(tx *ledger.Tx, live []Beat, now company.Time, last string) ([]placement, string) {
	queued := company.QueuedRuns(tx, now, last, placesPerLook, queuedPerCompany)
	if len(queued) == 0 {
		return nil, last
	}
	benches := make([]bench, len(live))
	for i, b := range live {
		benches[i] = bench{Beat: b, busy: company.CountRunsOfSession(tx, b.Session)}
		if n, ok := ledger.FindNode(tx, b.Node); ok {
			benches[i].untrusted = n.Has(ledger.LabelUntrusted)
		}
	}
	var out []placement
	room := map[string]int{} // by agent
	for _, r := range queued {
		if _, ok := room[r.Agent]; !ok {
			room[r.Agent] = company.RoomForRuns(tx, r.Company, r.Agent)
		}
		if room[r.Agent] <= 0 {
			continue
		}
		adapter, want := company.NeedsOf(tx, r)
		secrets := company.NeedsSecrets(tx, r)
		best := -1
		for i, b := range benches {
			if b.fits(adapter, want, secrets) && (best < 0 || b.busy*benches[best].Slots < benches[best].busy*b.Slots) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		benches[best].busy++
		room[r.Agent]--
		out = append(out, placement{r.Company, r.ID, benches[best].Node, benches[best].Session})
		last = r.Company
	}
	return out, last
}
