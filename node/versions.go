package node

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
)

// maxProgram bounds what a node tells others of its program's version, in bytes:
// gossip has little room.
const maxProgram = 64

func shortVersion(v string) string { return v[:min(len(v), maxProgram)] }

// program is the version of a live member's program, "" when it is not known.
func (n *Node) program(id identity.NodeID) string {
	if id == n.ID() {
		return shortVersion(n.conf.Version)
	}
	if m, ok := n.discovery.Member(id); ok && m.State == discovery.Live {
		return m.Meta.Program
	}
	return ""
}

// versions compares the programs of the members that live.
func (f *findings) versions(n *Node) {
	runs := map[string]string{}
	for id, m := range n.roster.all() {
		if m.Member() && n.alive(id) {
			runs[cmp.Or(m.Name, id.Short())+" ("+id.Short()+")"] = n.program(id)
		}
	}
	f.compareVersions(runs)
}

// compareVersions takes the version that each node runs, "" for one that does
// not tell it: a program from before nodes did.
func (f *findings) compareVersions(runs map[string]string) {
	by := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(runs)) {
		v := cmp.Or(runs[node], "a version that is not told")
		by[v] = append(by[v], node)
	}
	if len(by) == 1 {
		for v := range by {
			f.add("versions", api.CheckOK, "all run "+v, "")
		}
		return
	}
	var found []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		found = append(found, v+": "+strings.Join(by[v], ", "))
	}
	f.add("versions", api.CheckWarn, "the nodes run different versions: "+strings.Join(found, "; "),
		"finish the upgrade, one node after the other: selvage drain NODE, install the newer program there, start it, wait until selvage doctor there is content, selvage undrain NODE")
}
