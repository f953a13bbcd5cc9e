package shim

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// runs runs a script under a floor and returns its output and exit.
func runs(t *testing.T, f Floor, spec Spec) (string, Exit, *Process) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Start(append(slices.Clone(self), f.Args()...), spec, w, w)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(r)
	return string(all), wait(t, p), p
}

func needLandlock(t *testing.T) {
	t.Helper()
	if landlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
}

// house makes a home with a project, and a node's data directory with a key and an agent's
// workspace.
func house(t *testing.T) (home, data, work string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data = filepath.Join(home, ".selvage")
	work = filepath.Join(data, "runs", "workspaces", "agent")
	for _, d := range []string{filepath.Join(home, "project"), work, filepath.Join(data, "store")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(data, "key"), filepath.Join(data, "store", "state"),
		filepath.Join(home, "project", "main.c")} {
		if err := os.WriteFile(f, []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(data, "key"), filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	return home, data, work
}

// What no tree of a node can access, even without its own guard.
func TestTheNodesFilesAreOutOfReach(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	home, data, work := house(t)
	spec, _ := script(t, `
for f in $DATA/key $DATA/store/state $HOME/link /proc/self/cwd/../../../key; do cat $f && echo READ $f; done
echo x > $DATA/key && echo WROTE; echo x >> $DATA/store/state && echo WROTE; rm -f $DATA/key; rm -rf `+
		`$DATA/store; mkdir $DATA/new && echo MADE
ln $DATA/key $WORK/key && echo LINKED; mv $DATA/key $WORK/key && echo MOVED; truncate -s 0 $DATA/key && echo CUT
ln -s $DATA/key $WORK/soft; cat $WORK/soft
cat $HOME/project/main.c > $WORK/copy && echo kept > $HOME/project/new && cat $WORK/copy $HOME/project/new`)
	spec.Env = append(spec.Env, "DATA="+data, "WORK="+work, "HOME="+home)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{filepath.Join(data, "runs")}}
	out, _, p := runs(t, Floor{Hide: []string{data}}, spec)
	for _, no := range []string{"READ", "WROTE", "MADE", "LINKED", "MOVED", "CUT"} {
		if strings.Contains(out, no) {
			t.Errorf("the child did what it may not: %s", out)
		}
	}
	if strings.Count(out, "canary") != 1 || !strings.HasSuffix(out, "canarykept\n") {
		t.Errorf("the child saw %q", out)
	}
	for _, f := range []string{"key", "store/state"} {
		if b, err := os.ReadFile(filepath.Join(data, f)); string(b) != "canary" {
			t.Errorf("%s is %q, %v", f, b, err)
		}
	}
	if len(p.Notes) > 0 {
		t.Errorf("notes %q", p.Notes)
	}
}

// The names of hidden files can not be listed either, if the node may give its runs their own
// view of the files. Folders in Show stay accessible, and nothing changes outside the run.
func TestHiddenNamesAreNotListed(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may")
	}
	home, data, work := house(t)
	other := filepath.Join(data, "runs", "workspaces", "another")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	spec, _ := script(t,
		`find $DATA -mindepth 1 | sort; ls $HOME/project; ls / > /dev/null && echo LISTED; echo x > new; mkdir `+
			`$DATA/made $DATA/runs/workspaces/another 2> /dev/null; umount $DATA 2> /dev/null && echo UNCOVERED`)
	spec.Env = append(spec.Env, "DATA="+data, "HOME="+home)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{work}}
	out, _, _ := runs(t, Floor{Hide: []string{data}}, spec)
	want := strings.Join([]string{data + "/runs", data + "/runs/workspaces", work, "main.c", "LISTED", ""}, "\n")
	if strings.Contains(out, "Operation not permitted") || out != want {
		t.Errorf("the child saw %q, want %q", out, want)
	}
	for _, there := range []string{filepath.Join(work, "new"), other, filepath.Join(data, "key")} {
		if _, err := os.Stat(there); err != nil {
			t.Error(err)
		}
	}
}

// The data of the machine's other nodes can not be accessed either: of a registered node, of an
// unregistered one next to this node, and of one that registered after a shim was ready. A
// registration of a folder of another user, or of no node's data, hides nothing.
func TestTheFilesOfOtherNodesAreOutOfReach(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	home, data, work := house(t)
	nodes := filepath.Join(home, "nodes")
	node := func(at string) string {
		dir := filepath.Join(home, at)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	beside, far, late := node(".selvage-n2"), node("far/away/data"), node("late/data")
	for _, dir := range []string{data, far, filepath.Join(home, "project"), filepath.Join(home, "gone")} {
		if err := Register(nodes, dir); err != nil {
			t.Fatal(err)
		}
	}
	const text = `for d in $DATA $BESIDE $FAR $LATE; do cat $d/identity.key $d/key && echo READ $d; done; rm ` +
		`$NODES/* && echo REMOVED; echo x > $NODES/x && echo WROTE; cat $HOME/project/main.c; echo x > ` +
		`$HOME/project/new && cat $HOME/project/new`
	spec, _ := script(t, text)
	spec.Env = append(spec.Env, "DATA="+data, "BESIDE="+beside, "FAR="+far, "LATE="+late, "NODES="+nodes, "HOME="+home)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{work}}
	f := Floor{Hide: []string{data}, Nodes: nodes}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := launch(append(slices.Clone(self), f.Args()...), false)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // its rules may or may not be ready by then
	if err := Register(nodes, late); err != nil {
		t.Fatal(err)
	}
	if p, err = p.begin(spec, nil, w, nil); err != nil {
		t.Fatal(err)
	}
	w.Close()
	all, _ := io.ReadAll(r)
	wait(t, p)
	if got := string(all); got != "canaryx\n" {
		t.Errorf("the child saw %q", got)
	}
	told, err := readDirNames(nodes)
	if err != nil || len(told) != 4 { // the entry of the deleted directory was removed
		t.Errorf("told are %q, %v", told, err)
	}
}

// With Confine a child writes only where it may, and can read the rest.
func TestAChildWritesOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	home, data, work := house(t)
	spec, _ := script(t, `
for d in $HOME $HOME/project / /etc /usr/bin /var $DATA; do echo x > $d/selvage-test && echo WROTE $d; mkdir `+
		`$d/selvage-test && echo MADE $d; done
echo x >> $HOME/project/main.c && echo WROTE; mv $HOME/project/main.c . && echo MOVED; chmod +x $0
cat $DATA/key && echo READ
echo a > a && mkdir b && mv a b/a && cat b/a && cat $HOME/project/main.c && echo > /dev/null && head -c1 `+
		`/dev/zero | wc -c`)
	spec.Env = append(spec.Env, "DATA="+data, "WORK="+work, "HOME="+home)
	spec.Dir = work
	spec.Guard = &Guard{Confine: true, Show: []string{work}, Write: []string{work, filepath.Join(home, "not-there")}}
	out, _, _ := runs(t, Floor{Hide: []string{data}}, spec)
	for _, no := range []string{"READ", "WROTE", "MADE", "MOVED"} {
		if strings.Contains(out, no) {
			t.Errorf("the child did what it may not: %s", out)
		}
	}
	if !strings.HasSuffix(out, "a\ncanary1\n") {
		t.Errorf("the child saw %q", out)
	}
}

// A child can not signal, trace or inspect processes outside its tree.
func TestAChildReachesNoOtherProcess(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	_, data, work := house(t)
	other := exec.Command("sleep", "100")
	other.Env = []string{"SECRET=canary"}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	spec, _ := script(t,
		`cat /proc/$OTHER/environ && echo READ; readlink /proc/$OTHER/fd/0 && echo LISTED; cat `+
			`/proc/$OTHER/root$DATA/key && echo READ
kill -KILL $OTHER && echo KILLED; sleep 100 & kill -TERM $! && wait $!; echo own $?`)
	spec.Env = append(spec.Env, fmt.Sprintf("OTHER=%d", other.Process.Pid), "DATA="+data)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{work}}
	out, _, _ := runs(t, Floor{Hide: []string{data}}, spec)
	for _, no := range []string{"READ", "LISTED", "canary"} {
		if strings.Contains(out, no) {
			t.Errorf("the child did what it may not: %s", out)
		}
	}
	if landlockABI() >= 6 && (strings.Contains(out, "KILLED") || !alive(other.Process.Pid)) {
		t.Errorf("the child killed a process outside: %s", out)
	}
	if !strings.HasSuffix(out, "own 143\n") {
		t.Errorf("the child could not end its own: %q", out)
	}
}

// Root can not use its other ways to access files.
func TestRootGainsNothing(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	_, data, work := house(t)
	spec, _ := script(t,
		`mount --bind $DATA $PWD && echo MOUNTED; mount -t tmpfs none $PWD && echo MOUNTED; mknod disk b 8 0 && echo MADE
unshare -m true && echo UNSHARED; head -c1 /dev/mem && echo READ; for d in /dev/?d[a-z] /dev/nvme?n?; do head `+
			`-c1 $d && echo READ; done
grep CapBnd /proc/self/status`)
	spec.Env = append(spec.Env, "DATA="+data)
	spec.Dir = work
	spec.Guard = &Guard{Show: []string{work}}
	out, _, _ := runs(t, Floor{Hide: []string{data}}, spec)
	for _, no := range []string{"MOUNTED", "MADE", "UNSHARED", "READ"} {
		if strings.Contains(out, no) {
			t.Errorf("the child did what it may not: %s", out)
		}
	}
}

func TestLimitsOfEachProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec, _ := script(t, `head -c 3000000 /dev/zero > big; wc -c < big
i=0; while [ $i -lt 40 ]; do eval "exec $((i+10))< /dev/null" 2>/dev/null || break; i=$((i+1)); done; echo open `+
		`$(ulimit -n)
ulimit -n 1000 2>/dev/null && echo RAISED
ulimit -c; sh -c 'while :; do :; done'; echo spun $?`)
	spec.Path, spec.Args[0] = "/bin/bash", "bash"
	spec.Dir = dir
	spec.Limits = Limits{FileMB: 1, OpenFiles: 32, CPUSec: 1}
	out, e, _ := runs(t, Floor{}, spec)
	for _, want := range []string{"1048576\n", "open 32\n", "\n0\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the child saw %q, want %q in it", out, want)
		}
	}
	if strings.Contains(out, "RAISED") || !strings.Contains(out, "spun 152") && e.Signal == "" { // SIGXCPU
		t.Errorf("the child saw %q and ended %+v", out, e)
	}
}

// The kernel refuses one process more memory than its tree may have.
func TestAProcessGetsNoMoreMemory(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, `head -c 200000000 /dev/zero | tail -c 150000000 | wc -c; echo over`)
	spec.Limits = Limits{MemoryMB: 64}
	out, e, _ := runs(t, Floor{}, spec)
	if strings.Contains(out, "150000000") || e != (Exit{}) && e.Killed != "memory" {
		t.Errorf("output %q, exit %+v", out, e)
	}
}

// Many processes that are each below the limit are stopped if their sum is above it.
func TestATreeGetsNoMoreMemory(t *testing.T) {
	t.Parallel()
	spec, pids := script(t,
		`for i in 1 2 3 4; do sh -c 'echo $$ >> $PIDS; while [ $(wc -l <$PIDS) -lt 4 ]; do sleep .01; done; `+
			`x=$(head -c 20000000 /dev/zero | tr "\0" x); sleep 100' & done; wait`)
	spec.Limits = Limits{MemoryMB: 64}
	_, e, _ := runs(t, Floor{}, spec)
	if e.Killed != "memory" {
		t.Errorf("exit %+v, want it killed for its memory", e)
	}
	wantGone(t, pids, 0)
}

func TestAForkBombIsPutOut(t *testing.T) {
	t.Parallel()
	spec, pids := script(t,
		`for i in 1 2 3 4; do setsid sh -c 'echo $$ >> $PIDS; while [ $(wc -l <$PIDS) -lt 4 ]; do sleep .01; done
		for j in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait' & done; wait`)
	spec.Limits = Limits{Processes: 20}
	_, e, _ := runs(t, Floor{}, spec)
	if e.Killed != "processes" {
		t.Errorf("exit %+v, want it killed for its processes", e)
	}
	wantGone(t, pids, 0)
}

// The files that a kernel would read, written to a folder that is not a cgroup.
func TestWhatACgroupIsTold(t *testing.T) {
	t.Parallel()
	put := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	yes := func(string) bool { return true }
	for _, c := range []struct {
		has, procs, why string
		ours            bool
	}{
		{"cpu memory pids", "42\n", "", true},
		{"cpu pids", "42\n", "no controller memory", true},
		{"memory pids", "42\n43\n", "shares its cgroup", true},
		{"memory pids", "42\n", "Delegate=yes", false},
	} {
		own := t.TempDir()
		put(filepath.Join(own, "cgroup.controllers"), c.has)
		put(filepath.Join(own, "cgroup.procs"), c.procs)
		dir, why := openCgroup(own, "42", func(s string) bool { return c.ours && yes(s) })
		if (dir == "") != (c.why != "") || !strings.Contains(why, c.why) {
			t.Errorf("%+v: %q, %q", c, dir, why)
		}
		if c.why != "" {
			continue
		}
		if b, _ := os.ReadFile(filepath.Join(own, "node", "cgroup.procs")); string(b) != "42" {
			t.Errorf("the node was not moved: %q", b)
		}
		g, err := newCgroup(dir, Limits{MemoryMB: 2, Processes: 7})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"memory.max": "2097152", "pids.max": "7", "memory.swap.max": "0"} {
			if b, _ := os.ReadFile(filepath.Join(g.path, name)); string(b) != want {
				t.Errorf("%s is %q, want %q", name, b, want)
			}
		}
		put(filepath.Join(g.path, "memory.events"), "low 0\noom 1\noom_kill 1\n")
		if !g.outOfMemory() {
			t.Error("a kill for memory went unnoticed")
		}
	}
	if _, why := openCgroup(t.TempDir(), "42", yes); why == "" {
		t.Error("a folder without controllers was taken for a cgroup")
	}
}

// A plan allows everything next to what is hidden, and no folder above it.
func TestPlanOfAGuard(t *testing.T) {
	t.Parallel()
	home, data, work := house(t)
	plan := func(g Guard) (map[string]uint64, []string) {
		out := map[string]uint64{}
		grants, notes := g.plan(list)
		for _, p := range grants {
			out[p.path] |= p.rights
		}
		return out, notes
	}
	got, notes := plan(Guard{Hide: []string{data}, Show: []string{work}, Confine: true,
		Write: []string{home, work, filepath.Join(data, "store")}})
	for path, want := range map[string]uint64{
		"/": readDir, "/usr": toRead, "/etc": toRead, "/dev": 0, "/dev/null": toWrite, "/dev/mem": 0, home: 0, data: 0,
		filepath.Join(data, "runs"): 0, filepath.Join(data, "store"): 0, work: toWrite,
		filepath.Join(home, "project"): toWrite, filepath.Join(home, "link"): 0,
	} {
		if got[path] != want {
			t.Errorf("%s: rights %x, want %x", path, got[path], want)
		}
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "makes no new files") || !strings.Contains(notes[1],
		"not open to the run") {
		t.Errorf("notes %q", notes)
	}
	for path := range got {
		if within(data, path) && got[path]&^readDir != 0 {
			t.Errorf("%s, above what is hidden, has rights %x", path, got[path])
		}
	}
}

// Rules that were prepared have the effect of rules made at the last moment: files that were
// added or replaced since are accessible, files that must be hidden now are not.
func TestRulesThatAreReady(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	type files struct{ home, data, old, fresh string }
	for _, c := range []struct {
		name  string
		since func(f files) error
		hide  func(f files) []string
		serve bool // the rules may be used
		read  map[string]bool
	}{
		{"as it was", func(files) error { return nil }, nil, true, map[string]bool{"old": true, "data": false}},
		{"a new file", func(f files) error { return os.WriteFile(f.fresh, []byte("x"), 0o600) }, nil, true,
			map[string]bool{"old": true, "fresh": true, "data": false}},
		{"another file of a name", func(f files) error {
			if err := os.Rename(f.old, f.fresh); err != nil {
				return err
			}
			return os.WriteFile(f.old, []byte("x"), 0o600)
		}, nil, true, map[string]bool{"old": true, "fresh": true}},
		{"a file less", func(f files) error { return os.Rename(f.old, filepath.Join(f.data, "moved")) }, nil, false,
			map[string]bool{"moved": false}},
		{"more is hidden", func(files) error { return nil }, func(f files) []string { return []string{f.old} }, false,
			map[string]bool{"old": false, "data": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			f := files{home: filepath.Join(dir, "home")}
			f.data, f.old, f.fresh = filepath.Join(f.home, "data"), filepath.Join(f.home, "old"), filepath.Join(f.home, "fresh")
			if err := cmp.Or(os.MkdirAll(f.data, 0o700), os.WriteFile(f.old, []byte("x"), 0o600),
				os.WriteFile(filepath.Join(f.data, "key"), []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			long := time.Now().Add(-time.Hour)
			if err := os.Chtimes(f.home, long, long); err != nil {
				t.Fatal(err)
			}
			g := Guard{Hide: []string{f.data}, Confine: true, Write: []string{f.home}}
			serves := func(r *ruleset) bool {
				plan, _ := g.plan(r.list)
				return r.within(plan)
			}
			// Deletions by others in the folders above can make prepared rules unusable.
			ready := prepare(g)
			for n := 0; ready != nil && !serves(ready); n++ {
				if n == 1000 {
					t.Fatal("the rules never serve")
				}
				ready.close()
				ready = prepare(g)
			}
			if ready == nil {
				t.Fatal("nothing was prepared")
			}
			defer ready.close()
			if err := c.since(f); err != nil {
				t.Fatal(err)
			}
			if c.hide != nil {
				g.Hide = append(g.Hide, c.hide(f)...)
			}
			if !c.serve && serves(ready) {
				t.Error("the rules would serve")
			}
			paths := map[string]string{"old": f.old, "fresh": f.fresh, "data": filepath.Join(f.data, "key"),
				"moved": filepath.Join(f.data, "moved")}
			read, failed := map[string]error{}, make(chan error, 1)
			go func() { // the thread ends with its restrictions
				runtime.LockOSThread()
				if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
					failed <- err
					return
				}
				_, err := restrict(g, ready)
				for name := range c.read {
					fd, err := unix.Open(paths[name], unix.O_RDWR|unix.O_CLOEXEC, 0)
					if read[name] = err; err == nil {
						unix.Close(fd)
					}
				}
				failed <- err
			}()
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			for name, want := range c.read {
				if got := read[name]; (got == nil) != want || !want && got != unix.EACCES {
					t.Errorf("%s: %v, reachable should be %v", name, got, want)
				}
			}
		})
	}
}

func TestAFloorComesThroughTheCommandLine(t *testing.T) {
	t.Parallel()
	f := Floor{Hide: []string{"/a", "/b"}, Cgroup: "/sys/fs/cgroup/x", Nodes: "/run/nodes"}
	if got := floorOf(f.Args()); fmt.Sprint(got) != fmt.Sprint(f) {
		t.Errorf("got %+v, want %+v", got, f)
	}
	if got := floorOf([]string{"--new", "x", "--hide"}); len(got.Hide) > 0 {
		t.Errorf("got %+v of nonsense", got)
	}
}

// An idle tree is checked rarely while no process starts on the machine, and at the next look
// when one does.
func TestATreeAtRestIsLookedAtSeldom(t *testing.T) {
	t.Parallel()
	for _, begins := range []bool{false, true} {
		cmd := exec.Command("sh", "-c",
			`read go; for i in 1 2 3; do sleep 100 & p="$p $!"; done; echo begun; read go; kill $p`)
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		newest, err := os.Create(filepath.Join(t.TempDir(), "loadavg"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(newest, "0.00 0.00 0.00 1/99 1001\n")
		w := newWatch(Limits{MemoryMB: 1 << 20, Processes: 2}, cmd.Process.Pid)
		if w.begun() == "" {
			t.Error("the number of the newest process is not to be had")
		}
		w.newest.Close()
		w.newest = newest
		if why := w.exceeded(); why != "" {
			t.Fatalf("a tree of one exceeds its %s", why)
		}
		fmt.Fprintln(in, "go")
		if _, err := out.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		looks := 1
		if begins {
			newest.WriteAt([]byte("0.00 0.00 0.00 1/99 1004\n"), 0)
		}
		for ; w.exceeded() == "" && looks < 100; looks++ {
		}
		if want := map[bool]int{false: skipAtMost + 1, true: 1}[begins]; looks != want {
			t.Errorf("something begins: %v; seen at look %d, want %d", begins, looks, want)
		}
		fmt.Fprintln(in, "go")
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		newest.Close()
	}
}
