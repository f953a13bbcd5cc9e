package node

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxProgram bounds the announced version of the program, in bytes: gossip has little
// room.
const maxProgram = 64

func shortVersion(v string) string { return v[:min(len(v), maxProgram)] }

// program returns the version of a live member's program, "" if unknown.
func (n *Node) program(id identity.NodeID) string {
	if id == n.ID() {
		return shortVersion(n.conf.Version)
	}
	if n.discovery == nil {
		return ""
	}
	if m, ok := n.discovery.Member(id); ok && m.State == discovery.Live {
		return m.Meta.Program
	}
	return ""
}

// levelToRaise returns the feature level that all nodes know and that the mesh does not
// have yet, 0 for none. It waits for a voter that is not alive, because its program may
// be older and would stop at an unknown level. A non-voter that is away does stop then
// if it is older, and says that it must be upgraded.
func (n *Node) levelToRaise() uint64 {
	var now uint64
	if err := n.ledger.View(func(tx *ledger.Tx) error { now = ledger.Features(tx); return nil }); err != nil ||
		now >= n.conf.Level {
		return 0
	}
	votes := map[identity.NodeID]bool{}
	for _, s := range n.consensus.Servers() {
		votes[s.Node] = votes[s.Node] || s.Voter
	}
	var known []uint64
	for id, m := range n.roster.all() {
		switch {
		case !m.Member() || id == n.ID():
		case n.alive(id): // discovery has heard it
			about, _ := n.discovery.Member(id)
			known = append(known, uint64(about.Meta.Level))
		case votes[id]:
			known = append(known, 0)
		}
	}
	return commonLevel(now, n.conf.Level, known)
}

// commonLevel returns the newest level that this node and the others know, or 0 if that
// is not above the mesh's. A node that reports no level has 1.
func commonLevel(now, own uint64, others []uint64) uint64 {
	for _, level := range others {
		own = min(own, max(level, 1))
	}
	if own <= now {
		return 0
	}
	return own
}

// versions compares the programs of the live members.
func (f *findings) versions(n *Node) {
	runs := map[string]string{}
	for id, m := range n.roster.all() {
		if m.Member() && n.alive(id) {
			runs[cmp.Or(m.Name, id.Short())+" ("+id.Short()+")"] = n.program(id)
		}
	}
	f.compareVersions(runs)
}

// compareVersions compares the version that each node runs; "" is a program too old to
// report one.
func (f *findings) compareVersions(runs map[string]string) {
	by := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(runs)) {
		v := cmp.Or(runs[node], "a version that is not told")
		by[v] = append(by[v], node)
	}
	if len(by) == 1 {
		for v := range by {
			f.add("versions", mesh.CheckOK, "all run "+v, "")
		}
		return
	}
	var found []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		found = append(found, v+": "+strings.Join(by[v], ", "))
	}
	f.add("versions", mesh.CheckWarn, "the nodes run different versions: "+strings.Join(found, "; "),
		"finish the upgrade, one node after the other: selvage drain NODE, install the newer program there, start it, "+
			"wait until selvage doctor there is content, selvage undrain NODE")
}
