//go:build cgroup

// These tests need their own version 2 cgroup. deploy/edge runs them in a service of a machine
// that it boots.

package shim

import (
	"path/filepath"
	"strings"
	"testing"
)

// In a real cgroup, a tree gets no more memory and processes than its limits allow, and leaves
// no cgroup behind.
func TestACgroupHoldsTheTree(t *testing.T) {
	dir, why := OpenCgroup()
	if dir == "" {
		t.Fatal("no cgroup to divide: " + why)
	}
	spec, _ := script(t, `x=$(head -c 200000000 /dev/zero | tr "\0" x); echo over`)
	spec.Limits = Limits{MemoryMB: 64, Processes: 20}
	out, e, p := runs(t, Floor{Cgroup: dir}, spec)
	if e.Killed != "memory" || strings.Contains(out, "over") || len(p.Notes) > 0 {
		t.Errorf("output %q, exit %+v, notes %q", out, e, p.Notes)
	}
	spec, _ = script(t, `i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done; echo all`)
	spec.Limits = Limits{Processes: 20}
	if out, _, _ := runs(t, Floor{Cgroup: dir}, spec); strings.Contains(out, "all") {
		t.Errorf("more processes than the cgroup takes: %q", out)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}
