package scheduler

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

// adapterOf is the adapter that a node has where it can start a process of a kind.
var adapterOf = map[kernel.Kind]string{kernel.KindNative: "process", kernel.KindWasm: "wasm",
	kernel.KindContainer: "container"}

// placeReplicas gives each replica of a declared process that has no node, or whose node is
// lost or drained, to the fitting node with the fewest replicas.
func (l *Leader) placeReplicas(ctx context.Context) error {
	live := l.Live()
	var moves []replica.Place
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		moves = placeReplicas(tx, live, core.TimeOf(l.cfg.Now()))
		return nil
	})
	for _, m := range moves {
		if err != nil {
			break
		}
		_, err = l.submit(ctx, replica.KindPlace, "", m)
	}
	return err
}

// A host is a node that may run replicas.
type host struct {
	Beat
	node     ledger.Node
	cordoned bool
	drains   bool
	replicas int // of all declarations
}

// placeReplicas decides which replicas go where. A node that the access policy closes to the person who declared a
// process comes after all others: it refuses the start, and the replica says why. As that is for good, it is not chosen
// while a node that is open may only not have been heard yet, as by a leader that has just begun.
func placeReplicas(tx *ledger.Tx, live []Beat, now core.Time) (moves []replica.Place) {
	all := replica.All(tx)
	if _, halted := entity.Halted(tx); halted || len(all) == 0 {
		return nil
	}
	hosts := make([]host, 0, len(live))
	for _, b := range live {
		n, ok := ledger.FindNode(tx, b.Node)
		if !ok || !n.Member() {
			continue
		}
		h := hostOf(tx, n)
		h.Beat = b
		for _, d := range all {
			for _, r := range d.Replicas {
				if r.Session == b.Session && !r.Over() {
					h.replicas++
				}
			}
		}
		hosts = append(hosts, h)
	}
	for _, d := range all {
		var spec kernel.Spec
		if json.Unmarshal(d.Spec, &spec) != nil {
			continue // its nodes say so
		}
		spec = spec.WithDefaults()
		closed := govern.PersonAt(tx, d.By, now)
		own := map[uint64]int{} // replicas of this declaration by session
		for _, r := range d.Replicas {
			own[r.Session]++
		}
		for i, r := range d.Replicas {
			at := slices.IndexFunc(hosts, func(h host) bool { return h.Session == r.Session })
			settled := r.Session != 0 && replica.SessionOpen(tx, r) && !(at >= 0 && hosts[at].drains)
			if r.Over() || settled || len(moves) == placesPerLook {
				continue
			}
			best, least := -1, [3]int{}
			for n, h := range hosts {
				if n == at && hosts[at].drains || !h.fits(d, spec) {
					continue
				}
				has := [3]int{0, own[h.Session], h.replicas}
				if closed(string(h.Node)) != "" {
					has[0] = 1
				}
				if best < 0 || slices.Compare(has[:], least[:]) < 0 {
					best, least = n, has
				}
			}
			open := func(h host) bool { return h.may(d) && closed(string(h.node.ID)) == "" }
			if best < 0 || least[0] > 0 && slices.ContainsFunc(silentHosts(tx, hosts), open) {
				continue
			}
			to := &hosts[best]
			to.replicas++
			own[to.Session]++
			own[r.Session]--
			moves = append(moves, replica.Place{ID: d.ID, Replica: int64(i), Node: string(to.Node), Session: to.Session})
		}
	}
	return moves
}

func hostOf(tx *ledger.Tx, n ledger.Node) host {
	d, ok := company.DutyOf(tx, string(n.ID))
	return host{node: n, cordoned: ok, drains: ok && d.Drain}
}

// silentHosts returns the nodes with a session that are none of hosts.
func silentHosts(tx *ledger.Tx, hosts []host) (silent []host) {
	for _, s := range ledger.OpenSessions(tx) {
		if slices.ContainsFunc(hosts, func(h host) bool { return h.node.ID == s.Node }) {
			continue
		}
		if n, ok := ledger.FindNode(tx, s.Node); ok && n.Member() {
			silent = append(silent, hostOf(tx, n))
		}
	}
	return silent
}

// fits reports whether a node may run a replica, and can.
func (h host) fits(d replica.Declared, spec kernel.Spec) bool {
	return h.Slots > 0 && h.may(d) && slices.Contains(h.Adapters, adapterOf[spec.Backend])
}

// may reports whether a node may run a replica as far as the mesh knows it.
func (h host) may(d replica.Declared) bool {
	lacks := func(l string) bool { return !slices.Contains(h.node.Labels, l) }
	return !h.cordoned && !h.node.Has(ledger.LabelUntrusted) && (d.Node == "" || d.Node == string(h.node.ID)) &&
		!slices.ContainsFunc(d.Labels, lacks)
}
