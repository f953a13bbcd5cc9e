package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company/entity"
)

// held returns a bed whose node has a key in its data directory.
func held(t *testing.T, config any) (b *bed, data string) {
	t.Helper()
	b = newBed(t, config)
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "key"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.cfg.Dir = filepath.Join(data, "runs")
	for _, d := range []string{"scratch", "workspaces/other"} {
		if err := os.MkdirAll(filepath.Join(b.cfg.Dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.shims = shim.NewLauncher(append(b.cfg.Shim, shim.Floor{Hide: []string{data}}.Args()...))
	t.Cleanup(b.shims.Close)
	return b, data
}

func needLandlock(t *testing.T, b *bed) {
	t.Helper()
	if o := b.invoke(); o.Status != entity.RunSucceeded || strings.Contains(b.wrote("system"), "no Landlock") {
		t.Skip("this kernel has no Landlock")
	}
}

// An agent's command can not read its node's key, can write where it works, and finds in its
// log what it was refused.
func TestARunReachesItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	needLandlock(t, newBed(t, sh("true")))
	home, err := os.UserHomeDir()
	if err != nil || strings.HasPrefix(home, "/tmp/") {
		t.Skip("a home that is not below /tmp, where every run may write, is needed")
	}
	project, err := os.MkdirTemp(home, "selvage-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(project) })
	script := `cat "$DATA/key" "$AGENT_HOME/../../../key" && echo READ; echo x > "$PROJECT/new" && echo WROTE; ` +
		`ls "$DATA/runs/workspaces/other" > /dev/null; echo x > "$DATA/runs/workspaces/other/x" && echo WROTE
echo x > "$DATA/key" && echo WROTE
echo own > own && cat own && echo scratch > "$TMPDIR/x" && cat "$TMPDIR/x" && cat "$AGENT_HOME/own"`
	b, data := held(t, nil)
	for _, c := range []struct {
		name string
		more []any
		want string
	}{
		{"by default", nil, "own\nscratch\nown\n"},
		{"a folder more", []any{"writable", []string{project}}, "WROTE\nown\nscratch\nown\n"},
		{"open, but for the node's files", []any{"landlock", false}, "WROTE\nown\nscratch\nown\n"},
	} {
		fresh, _ := held(t, sh(script, append(c.more, "env", map[string]string{"DATA": data, "PROJECT": project})...))
		b.inv.Config, b.log = fresh.inv.Config, map[string]string{}
		if o := b.invoke(); o.Status != entity.RunSucceeded || b.wrote("stdout") != c.want {
			t.Errorf("%s: %s %s, wrote %q, %q", c.name, o.Status, o.Error, b.wrote("stdout"), b.wrote("stderr"))
		}
		<-b.pid
	}
	if got, _ := os.ReadFile(filepath.Join(data, "key")); string(got) != "canary" {
		t.Errorf("the key is %q", got)
	}
}

func TestARunGetsNoMoreThanItsLimits(t *testing.T) {
	t.Parallel()
	b := newBed(t, sh(`for i in 1 2 3 4 5 6 7 8; do sleep 100 & done; wait`, "limits", map[string]int{"processes": 5}))
	o := b.invoke()
	if o.Status != entity.RunFailed || !strings.HasPrefix(o.Error, "It had more than 5 processes; limits.processes") ||
		fields(t, o.Result)["stopReason"] != "processes_limit" {
		t.Errorf("outcome %+v", o)
	}
	b = newBed(t, sh(`ulimit -n; exec head -c 2000000 /dev/zero > "$TMPDIR/big"`, "limits", map[string]int{"openFiles": 40,
		"fileMb": 1}))
	if o := b.invoke(); o.Signal != "SIGXFSZ" && *o.ExitCode == 0 || b.wrote("stdout") != "40\n" {
		t.Errorf("outcome %+v, wrote %q", o, b.wrote("stdout"))
	}
	for _, bad := range []map[string]any{{"limits": map[string]int{"memoryMb": -1}}, {"writable": []string{"relative"}},
		{"hidden": slices.Repeat([]string{"/x"}, maxPaths+1)}} {
		bad["command"] = "true"
		if o := newBed(t, bad).invoke(); o.Status != entity.RunFailed || !strings.Contains(o.Error, "adapterConfig") {
			t.Errorf("%v: %+v", bad, o)
		}
	}
}

// Without configured limits and without a cgroup, a command that uses too much is stopped: by
// its processes, by its memory, in whichever process, and by the size of a file. A normal
// command stays below, and 0 removes a limit.
func TestARunThatSaysNothingIsBounded(t *testing.T) {
	t.Parallel()
	const (
		forks = `i=0; while [ $i -lt 300 ]; do sleep 100 & i=$((i+1)); done; wait`
		whole = `head -c 700000000 /dev/zero | tail -c 600000000 | wc -c`
		parts = `for i in 1 2 3 4 5 6; do sh -c 'head -c 110000000 /dev/zero | tail -c 100000000 | { sleep 100; ` +
			`cat; }' & done; wait`
		file = `trap "" XFSZ; head -c 300000000 /dev/zero > "$TMPDIR/big"; wc -c < "$TMPDIR/big"`
		few  = `i=0; while [ $i -lt 100 ]; do sleep 1 & i=$((i+1)); done; head -c 250000000 /dev/zero | tail -c ` +
			`200000000 | wc -c; head -c 200000000 /dev/zero > "$TMPDIR/big"; wc -c < "$TMPDIR/big"; wait`
	)
	for _, c := range []struct {
		name, script string
		more         []any
		ended        string // text in the outcome, "" for success
		out, not     string // text that its output contains, and text that it does not
	}{
		{name: "300 forks", script: forks, ended: "It had more than 256 processes"},
		{name: "600 MB in one process", script: whole, not: "600000000"},
		{name: "600 MB in six", script: parts, ended: "more than 512 MiB of memory"},
		{name: "a file of 300 MB", script: file, out: "268435456\n"},
		{name: "less of each", script: few, out: "200000000\n200000000\n"},
		{name: "no limit", script: file, more: []any{"limits", map[string]int{"processes": 0, "memoryMb": 0, "fileMb": 0}},
			out: "300000000\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, sh(c.script, c.more...))
			o := b.invoke()
			if c.ended != "" && (o.Status != entity.RunFailed || !strings.Contains(o.Error, c.ended)) {
				t.Errorf("it ended %s: %q, want %q", o.Status, o.Error, c.ended)
			}
			if wrote := b.wrote("stdout"); c.out != "" && wrote != c.out || c.not != "" && strings.Contains(wrote, c.not) {
				t.Errorf("it wrote %q, %q and ended %s %s", wrote, b.wrote("stderr"), o.Status, o.Error)
			}
		})
	}
}

// The limits of each kind of command, on machines of all sizes.
func TestLimitsByDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool              bool
		machine           int64
		memory, processes int64
	}{{false, 0, 512, 256}, {false, 512, 256, 256}, {false, 64_000, 512, 256}, {true, 0, 1024, 1024},
		{true, 1024, 1024, 1024}, {true, 64_000, 32_000, 1024}} {
		if l := (limits{}).of(c.tool, c.machine); l.MemoryMB != c.memory || l.Processes != c.processes ||
			l.Tasks != c.processes*tasksEach || l.FileMB == 0 {
			t.Errorf("tool %t on %d MiB: %+v", c.tool, c.machine, l)
		}
	}
	said := limits{MemoryMB: new(int64(0)), Processes: new(int64(7)), FileMB: new(int64(1))}.of(true, 1024)
	if said != (shim.Limits{Processes: 7, FileMB: 1}) {
		t.Errorf("what is configured became %+v", said)
	}
}

// A worktree's repository can be written, so that commits work; a .git file that a run wrote
// gives no access.
func TestRepositoryOfAWorktree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repo, tree, evil := filepath.Join(dir, "repo"), filepath.Join(dir, "tree"), filepath.Join(dir, "evil")
	cmd := exec.Command("sh", "-c",
		`git init -q repo && cd repo && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m one && `+
			`git worktree add -q ../tree
mkdir -p ../evil/worktrees && ln -s "$PWD/.git/worktrees/tree" ../evil/worktrees/tree`)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := repositoryOf(tree); got != filepath.Join(repo, ".git") {
		t.Errorf("got %q", got)
	}
	for _, at := range []string{filepath.Join(evil, "worktrees", "tree"), "/etc", "/etc/worktrees/x", "relative"} {
		if err := os.WriteFile(filepath.Join(evil, ".git"), []byte("gitdir: "+at+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := repositoryOf(evil); got != "" {
			t.Errorf("%s: got %q", at, got)
		}
	}
}

// The caches of a confined command are in its agent's folder. A command that is not confined,
// or that configures a cache, keeps it there.
func TestCachesLieWithTheAgent(t *testing.T) {
	t.Parallel()
	script := `for d in "$XDG_CACHE_HOME" "$GOMODCACHE" "$npm_config_cache" "$CARGO_HOME"; do echo ` +
		`"${d#$AGENT_HOME/}"; done; [ -z "$XDG_CACHE_HOME" ] || mkdir -p "$XDG_CACHE_HOME"`
	for _, c := range []struct {
		more []any
		want string
	}{
		{nil, ".cache\n.cache/go-mod\n.cache/npm\n.cache/cargo\n"},
		{[]any{"env", map[string]string{"GOMODCACHE": "/mine"}}, ".cache\n/mine\n.cache/npm\n.cache/cargo\n"},
		{[]any{"landlock", false}, "\n\n\n\n"},
	} {
		b := newBed(t, sh(script, c.more...))
		if o := b.invoke(); o.Status != entity.RunSucceeded || b.wrote("stdout") != c.want {
			t.Errorf("%v: %s %s, wrote %q, want %q", c.more, o.Status, o.Error, b.wrote("stdout"), c.want)
		}
	}
}
