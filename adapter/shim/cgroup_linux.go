package shim

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupRoot is the mount point of version 2 on every system without version 1.
const cgroupRoot = "/sys/fs/cgroup"

// A cgroup is the cgroup of one process tree. nil means that there is none.
type cgroup struct {
	path string
	dir  *os.File
}

// newCgroup makes a cgroup below parent for the tree of this process.
func newCgroup(parent string, l Limits) (*cgroup, error) {
	path := filepath.Join(parent, strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(path, 0o700); errors.Is(err, os.ErrExist) {
		_ = unix.Rmdir(path) // left by an earlier process with our PID
		err = os.Mkdir(path, 0o700)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	g := &cgroup{path: path}
	for _, set := range l.cgroupFiles() {
		if err := os.WriteFile(filepath.Join(path, set.name), []byte(set.value), 0); err != nil && !set.optional {
			_ = unix.Rmdir(path)
			return nil, err
		}
	}
	var err error
	if g.dir, err = os.Open(path); err != nil {
		_ = unix.Rmdir(path)
		return nil, err
	}
	return g, nil
}

// weigh gives all trees together a smaller share of CPU and disk than the node, and all trees
// equal shares, for the controllers that exist.
func weigh(own, node, runs string, has []string) {
	for _, c := range []string{"cpu", "io"} {
		if !slices.Contains(has, c) {
			continue
		}
		for _, dir := range []string{own, runs} {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o600)
		}
		_ = os.WriteFile(filepath.Join(node, c+".weight"), []byte(nodeWeight), 0o600)
		_ = os.WriteFile(filepath.Join(runs, c+".weight"), []byte(runWeight), 0o600)
	}
}

type cgroupFile struct {
	name, value string
	optional    bool // not every kernel has it
}

func (l Limits) cgroupFiles() (out []cgroupFile) {
	if l.MemoryMB > 0 {
		out = append(out, cgroupFile{"memory.max", itoa(l.MemoryMB << 20), false},
			cgroupFile{"memory.swap.max", "0", true}, cgroupFile{"memory.oom.group", "1", true})
	}
	if n := cmp.Or(l.Tasks, l.Processes); n > 0 {
		out = append(out, cgroupFile{"pids.max", itoa(n), false})
	}
	return out
}

// kill kills all processes in the cgroup, also those that have left their parents.
func (g *cgroup) kill() {
	if g != nil {
		_ = os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0) // since Linux 5.14
	}
}

// outOfMemory reports whether the kernel killed a process because of memory.max.
func (g *cgroup) outOfMemory() bool {
	if g == nil {
		return false
	}
	b, _ := os.ReadFile(filepath.Join(g.path, "memory.events"))
	for line := range bytes.Lines(b) {
		if n, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			return !bytes.Equal(bytes.TrimSpace(n), []byte("0"))
		}
	}
	return false
}

// remove deletes the cgroup; its processes have ended, or are about to.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	g.dir.Close()
	for range killRounds {
		if err := unix.Rmdir(g.path); err != unix.EBUSY {
			return
		}
		time.Sleep(killPause)
	}
}

// OpenCgroup prepares cgroups for the trees of this node. It moves the node into a cgroup below
// its own, next to which those of the trees are made, and removes those that an earlier
// process of the node left. dir is for [Floor]. If the node has no cgroup that it may divide,
// dir is "" and why says what is missing.
func OpenCgroup() (dir, why string) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "this system has no cgroups"
	}
	own := ""
	for line := range strings.Lines(string(b)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = p
		}
	}
	if own == "" {
		return "", "this system has no cgroups of version 2"
	}
	return openCgroup(filepath.Join(cgroupRoot, own), strconv.Itoa(os.Getpid()), delegated)
}

// delegated reports whether systemd, if it is running, has delegated a cgroup to us.
func delegated(path string) bool {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return true
	}
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		var v [1]byte
		if n, err := unix.Getxattr(path, name, v[:]); err == nil && n == 1 && v[0] == '1' {
			return true
		}
	}
	return false
}

func openCgroup(own, pid string, ours func(string) bool) (dir, why string) {
	has, err := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		return "", "this system has no cgroups of version 2 at " + own
	}
	for _, need := range []string{"memory", "pids"} {
		if !slices.Contains(strings.Fields(string(has)), need) {
			return "", "the node's cgroup has no controller " + need
		}
	}
	if !ours(own) {
		return "", "the node's cgroup is not delegated to it: set Delegate=yes in its unit"
	}
	procs, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
	if err != nil {
		return "", "the node's cgroup can not be read"
	}
	for _, p := range strings.Fields(string(procs)) {
		if p != pid {
			return "", "the node shares its cgroup with other processes"
		}
	}
	node, runs := filepath.Join(own, "node"), filepath.Join(own, "runs")
	put := func(file, text string) {
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
	}
	for _, d := range []string{node, runs} {
		if e := os.Mkdir(d, 0o700); e != nil && !errors.Is(e, os.ErrExist) && err == nil {
			err = e
		}
	}
	put(filepath.Join(node, "cgroup.procs"), pid)
	put(filepath.Join(own, "cgroup.subtree_control"), "+memory +pids")
	put(filepath.Join(runs, "cgroup.subtree_control"), "+memory +pids")
	if err != nil {
		return "", "the node may not divide its cgroup: " + err.Error()
	}
	weigh(own, node, runs, strings.Fields(string(has)))
	left, _ := os.ReadDir(runs)
	for _, e := range left {
		if e.IsDir() {
			_ = os.WriteFile(filepath.Join(runs, e.Name(), "cgroup.kill"), []byte("1"), 0)
			_ = unix.Rmdir(filepath.Join(runs, e.Name())) // a later start removes those that are still in use
		}
	}
	return runs, ""
}
