package shim

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The command of a tree, and what it starts, have a lower priority than the node. The shim
// itself does not, because it has to kill in time.
func TestATreeStandsBehindItsNode(t *testing.T) {
	t.Parallel()
	spec, _ := script(t,
		`nice; sh -c nice; while [ "$(cat /proc/self/oom_score_adj)" -lt 500 ]; do sleep 0.05; done; cat `+
			`/proc/self/oom_score_adj
cut -d' ' -f19 /proc/$PPID/stat
[ ! -e /proc/$$/autogroup ] || while ! grep -q 'nice 10$' /proc/$$/autogroup; do sleep 0.05; done; echo grouped`)
	out, exit, _ := runs(t, Floor{}, spec)
	own, err := niceOf(0)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{strconv.Itoa(max(own, 10)), strconv.Itoa(max(own, 10)), "500", strconv.Itoa(own),
		"grouped", ""}, "\n")
	if out != want {
		t.Errorf("got %q, want %q: %+v", out, want, exit)
	}
}

// The container engine's client, and what it starts, too have a lower priority.
func TestAToolStandsBehindItsNode(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "nice")
	spec.Tool = true
	out, _, _ := runs(t, Floor{}, spec)
	own, _ := niceOf(0)
	if strings.TrimSpace(out) != strconv.Itoa(max(own, 10)) {
		t.Errorf("got %q beside a node with %d", out, own)
	}
}

// A higher nice value is kept.
func TestTheNiceValueOfATree(t *testing.T) {
	t.Parallel()
	for now, want := range map[int]int{-5: 10, 0: 10, 10: 10, 15: 15} {
		if got := yielded(now); got != want {
			t.Errorf("a tree of a node with %d gets %d, want %d", now, got, want)
		}
	}
}

// If a node may divide CPU and disk, all trees together get less than the node. A missing
// controller is skipped.
func TestTheWeightsOfCgroups(t *testing.T) {
	t.Parallel()
	own := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "cpu memory pids", "cgroup.procs": "42\n"} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, why := openCgroup(own, "42", func(string) bool { return true })
	if why != "" {
		t.Fatal(why)
	}
	read := func(path string) string { b, _ := os.ReadFile(path); return string(b) }
	if got := read(filepath.Join(own, "node", "cpu.weight")) + " " +
		read(filepath.Join(dir, "cpu.weight")); got != "200 20" {
		t.Errorf("weights %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "io.weight")); err == nil {
		t.Error("a weight was written for a controller that is not there")
	}
	if got := read(filepath.Join(own,
		"cgroup.subtree_control")); got != "+cpu" { // in a real cgroup file, the values written add up
		t.Errorf("the last controller was %q", got)
	}
}
