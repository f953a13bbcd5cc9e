package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These tests run scripts/test in a tree that has nothing but this script, with the test binary in place
// of each program that it starts. What that does is told by the environment.
const (
	treeEnv  = "SELVAGE_TESTED_TREE"  // directory of what the stages tell
	failsEnv = "SELVAGE_TESTED_FAILS" // name of the stage that fails
	hangsEnv = "SELVAGE_TESTED_HANGS" // all go tests hang
)

// A stage of scripts/test is known by what it is called with.
type stage struct{ name, calledWith string }

// stages are those of a run without the race detector, and raced those that it adds.
var (
	stages = []stage{
		{"other days", "./scripts/dates"}, // first: it is called with a path, which may have the name of another
		{"installs", "clients models system board"},
		{"commands", "./cmd/node"},
		{"programs of others", "./testnet/clients"},
		{"readme", "readme"},
		{"nodes as programs", "./testnet/board "},
		{"agents of others", "./testnet/agents"},
		{"rooms", "./company/rules"},
		{"meshes of processes", "-parallel 3"},
		{"releases", "-timeout 30m"},
		{"simulation", "-v -timeout 60m ./testnet/sim"},
	}
	raced = []stage{
		{"simulation, raced", "-run TestMeshUnderFaults"},
		{"order and ledger, raced", "./ledger/..."},
		{"node and adapters, raced", "./transport"},
		{"api, raced", "-run FloodOfC"},
		{"meshes, raced", "-run OneOfFifty"},
	}
)

// playTool plays a program that scripts/test starts.
func playTool(name string, args []string) int {
	line := name + " " + strings.Join(args, " ")
	switch {
	case name == "go" && slices.Contains(args, "build"): // tested, which the test binary is
		exe, _ := os.Executable()
		if err := os.Symlink(exe, args[slices.Index(args, "-o")+1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case name == "go" && args[0] == "list":
		fmt.Println("m/testnet/sim")
		if slices.Contains(args, "./...") {
			fmt.Println("m/api")
		}
		return 0
	case name == "git" && args[0] == "grep":
		fmt.Println("adapter/a/a.go")
		return 0
	case name == "git":
		fmt.Println("api/api_test.go")
		return 0
	}
	all := append(slices.Clone(stages), raced...)
	i := slices.IndexFunc(all, func(s stage) bool { return strings.Contains(line, s.calledWith) })
	if i < 0 {
		fmt.Fprintln(os.Stderr, "no stage is called with", line)
		return 1
	}
	return playStage(all[i].name, name == "go" && args[0] == "test")
}

// playStage plays one stage, which leaves a daemon behind.
func playStage(name string, isGo bool) int {
	dir := os.Getenv(treeEnv)
	tell(dir, "ran "+name, "yes")
	fails := os.Getenv(failsEnv) == name
	said := "ok  \tm/" + name + "\t0.1s"
	if err := self("play-parent", dir).Run(); err != nil {
		said, fails = err.Error(), true
	}
	if isGo && os.Getenv(hangsEnv) != "" {
		if os.Geteuid() == 0 { // it may have none where namespaces are not allowed
			_ = exec.Command("ip", "netns", "add", namespace(os.Getenv(markEnv), name)).Run()
		}
		tell(dir, "hangs "+name, "yes")
		time.Sleep(asleep)
	}
	if fails {
		said = "    x_test.go:1: " + name + " is broken"
	}
	say := func(action, test, output string) {
		b, _ := json.Marshal(event{Action: action, Package: "m/" + name, Test: test, Output: output})
		fmt.Println(string(b))
	}
	switch {
	case !isGo:
		fmt.Println(said)
	case fails:
		say("output", "TestIt", said+"\n")
		say("fail", "TestIt", "")
		say("fail", "", "")
	default:
		say("output", "", said+"\n")
		say("pass", "", "")
	}
	if fails {
		return 1
	}
	return 0
}

// namespace names the network namespace that a stage of a test adds.
func namespace(mark, stage string) string {
	return "selvage-tested-" + mark + "-" + strings.ReplaceAll(stage, " ", "-")
}

// A tree is one in which scripts/test runs.
type tree struct {
	t               *testing.T
	dir, temp, mark string
	cmd             *exec.Cmd
	out             bytes.Buffer
}

// newTree makes a tree; its command is scripts/test.
func newTree(t *testing.T, env ...string) *tree {
	t.Helper()
	x := &tree{t: t, dir: t.TempDir(), temp: t.TempDir(), mark: mark(t)}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"scripts", "bin", "told", "api", "deploy/edge"} {
		if err := os.MkdirAll(filepath.Join(x.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"test", "held"} {
		b, err := os.ReadFile(filepath.Join("..", script))
		if err == nil {
			err = os.WriteFile(filepath.Join(x.dir, "scripts", script), b, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, played := range []string{"bin/go", "bin/git", "bin/make", "scripts/readme"} {
		if err := os.Symlink(exe, filepath.Join(x.dir, played)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(x.dir, "api/api_test.go"), []byte("func TestStream() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.cmd = exec.Command("scripts/test")
	x.cmd.Dir, x.cmd.Stdout, x.cmd.Stderr = x.dir, &x.out, &x.out
	// Of the variables that say how the stages run, none are those under which this test runs.
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "CI", "SELVAGE_CI", "RACE", "SELVAGE_STAGES", "SELVAGE_FAILED":
		default:
			x.cmd.Env = append(x.cmd.Env, kv)
		}
	}
	x.cmd.Env = append(x.cmd.Env, "PATH="+filepath.Join(x.dir, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+x.temp, "CC=true",
		markEnv+"="+x.mark, treeEnv+"="+filepath.Join(x.dir, "told"))
	x.cmd.Env = append(x.cmd.Env, env...)
	return x
}

// ends waits for the run and returns what it printed, and the lines of that.
func (x *tree) ends(want int) (string, []string) {
	x.t.Helper()
	_ = x.cmd.Wait() // its status says more
	said := x.out.String()
	if got := status(x.cmd); got != want {
		x.t.Errorf("status %d, want %d:\n%s", got, want, said)
	}
	wantNothing(x.t, x.mark, filepath.Join(x.dir, "told"))
	if left, _ := filepath.Glob(filepath.Join(x.temp, "*")); len(left) > 0 {
		x.t.Errorf("files are left: %v", left)
	}
	return said, strings.Split(strings.TrimSpace(said), "\n")
}

func (x *tree) start() {
	x.t.Helper()
	if err := x.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
}

// Where all stages pass the last lines are those of go test, and what the stages left is ended.
func TestARunInWhichAllPass(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	x.start()
	said, lines := x.ends(0)
	for _, s := range stages {
		if !strings.Contains(said, "ok  \tm/"+s.name+"\t") || !strings.Contains(said, "  "+s.name+"\n") {
			t.Errorf("%s did not run or has no line in the table of times:\n%s", s.name, said)
		}
	}
	if got, want := lines[len(lines)-1], "ok  \tm/simulation\t0.1s"; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
}

// Whichever stage fails, all the others run and say how they ended, and the last lines say which one
// failed and why.
func TestOneFailedStageEndsNoOther(t *testing.T) {
	t.Parallel()
	all := append(slices.Clone(stages), raced...)
	for _, failing := range all {
		t.Run(failing.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t, "RACE=1", failsEnv+"="+failing.name)
			x.start()
			said, lines := x.ends(1)
			for _, s := range all {
				if s != failing && !strings.Contains(said, "ok  \tm/"+s.name+"\t") {
					t.Errorf("%s did not run or did not say so:\n%s", s.name, said)
				}
			}
			want := []string{"FAIL, these stages:", "  " + failing.name}
			if got := lines[len(lines)-2:]; !slices.Equal(got, want) {
				t.Errorf("the last lines are %q, want %q", got, want)
			}
			why := strings.LastIndex(said, "x_test.go:1: "+failing.name+" is broken")
			if why < strings.LastIndex(said, "ok  \tm/") {
				t.Errorf("why it failed is not said at the end:\n%s", said)
			}
		})
	}
}

// A run that is aborted leaves no process, port, file or network namespace, whichever process
// of it is killed.
func TestAnAbortedRunLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		abort func(t *testing.T, x *tree)
		want  int
	}{
		{"by SIGTERM", func(t *testing.T, x *tree) { kill(t, x.cmd.Process.Pid, syscall.SIGTERM) }, 143},
		{"by SIGINT", func(t *testing.T, x *tree) { kill(t, x.cmd.Process.Pid, syscall.SIGINT) }, 130},
		{"by SIGKILL", func(t *testing.T, x *tree) { kill(t, x.cmd.Process.Pid, syscall.SIGKILL) }, 137},
		{"by SIGKILL of the inner holder", func(t *testing.T, x *tree) {
			kill(t, find(t, x.mark, isInner), syscall.SIGKILL)
		}, 137},
		{"by SIGKILL of the script", func(t *testing.T, x *tree) {
			inner := find(t, x.mark, isInner)
			script := func(pid int) bool { // its rows have the same command line
				return parentOf(pid) == inner && strings.Contains(marked(x.mark)[pid], "scripts/test -held")
			}
			below := descendants(inner)
			kill(t, below[slices.IndexFunc(below, script)], syscall.SIGKILL)
		}, 137},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newTree(t, hangsEnv+"=1")
			x.start()
			told := filepath.Join(x.dir, "told")
			hang := []string{"commands", "nodes as programs", "rooms", "simulation"} // the first of each row
			for _, s := range hang {
				if err := wait(s+" hangs", func() bool {
					_, err := os.Stat(filepath.Join(told, "hangs "+s))
					return err == nil
				}); err != nil {
					t.Fatalf("%v\n%s", err, x.out.String())
				}
			}
			c.abort(t, x)
			x.ends(c.want)
			for _, s := range hang {
				if _, err := os.Lstat(filepath.Join("/run/netns", namespace(x.mark, s))); err == nil {
					t.Errorf("the network namespace of %s is left", s)
				}
			}
		})
	}
}
