package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary plays four parts: the tests, the shim, a node that starts a
// shim and can be stopped or killed, and a program that calls a server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "run-shim":
			os.Exit(Main(os.Args[2:]))
		case "play-node":
			os.Exit(playNode(os.Args[2], os.Args[3]))
		case "call":
			os.Exit(call(os.Args[2], os.Args[3]))
		case "send":
			send(os.Args[2], os.Args[3])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var self = []string{"/proc/self/exe", "run-shim"}

// tree is a shell script that starts one plain child, one in a session of its
// own and one double-forked orphan, writes all PIDs to $PIDS, and waits.
const tree = `
echo $$ >> $PIDS
sh -c 'echo $$ >> $PIDS; exec sleep 100' &
setsid sh -c 'echo $$ >> $PIDS; trap "" TERM; sleep 100; sleep 100' &
sh -c 'setsid sh -c "echo \$\$ >> $PIDS; exec sleep 100" & exit 0'
while [ $(wc -l < $PIDS) -lt 4 ]; do sleep 0.02; done
echo ready
wait
`

func script(t *testing.T, text string) (Spec, string) {
	t.Helper()
	pids := filepath.Join(t.TempDir(), "pids")
	return Spec{Path: "/bin/sh", Args: []string{"sh", "-c", text}, Dir: "/",
		Env: []string{"PATH=" + os.Getenv("PATH"), "PIDS=" + pids}}, pids
}

// start runs spec and returns the process and its output.
func start(t *testing.T, spec Spec) (*Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Cleanup(func() { r.Close() })
	p, err := Start(self, spec, w, w)
	if err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(r)
}

func wait(t *testing.T, p *Process) Exit {
	t.Helper()
	e, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantReady(t *testing.T, r *bufio.Reader) {
	t.Helper()
	if line, err := r.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
}

// wantGone fails unless the four processes of the tree are gone within d.
func wantGone(t *testing.T, pids string, d time.Duration) {
	t.Helper()
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(b))
	if len(lines) != 4 {
		t.Fatalf("tree of %d processes, want 4", len(lines))
	}
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		left := 0
		for _, l := range lines {
			pid, _ := strconv.Atoi(l)
			if alive(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d processes live after %v", left, len(lines), d)
		}
	}
}

// alive reports whether a process exists. A process whose first thread has ended keeps its
// files until its last thread ends.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && (len(threads) > 1 || !strings.Contains(string(b), ") Z "))
}

func TestExitCodeAndOutputComeThrough(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "cat; echo out; echo err >&2; exit 7")
	p, out := start(t, spec)
	if e := wait(t, p); e != (Exit{Code: 7}) {
		t.Errorf("exit %+v, want code 7", e)
	}
	all, _ := io.ReadAll(out)
	if string(all) != "out\nerr\n" {
		t.Errorf("output %q", all)
	}
}

func TestAChildThatIsKilledReportsItsSignal(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "kill -SEGV $$")
	p, _ := start(t, spec)
	if e := wait(t, p); e.Signal != "SIGSEGV" || e.Killed != "" {
		t.Errorf("exit %+v, want SIGSEGV", e)
	}
}

func TestWhatCanNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := Start(self, Spec{Path: "/nonexistent/program", Args: []string{"x"}, Dir: "/"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/program: no such file") {
		t.Errorf("error %v", err)
	}
}

// The child sees its own environment only, a closed standard input, no
// descriptor of ours, default signals, and can gain no privileges.
func TestTheChildInheritsNothing(t *testing.T) {
	t.Parallel()
	spec, _ := script(t,
		`env | cut -d= -f1 | sort | tr '\n' ' '; grep -E '^(NoNewPrivs|SigIgn)' /proc/$$/status; exec ls /proc/self/fd`)
	p, out := start(t, spec)
	wait(t, p)
	all, _ := io.ReadAll(out)
	got := string(all)
	for _, want := range []string{"PATH PIDS PWD ", "SigIgn:\t0000000000000000\n", "NoNewPrivs:\t1\n0\n1\n2\n3\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("child saw %q, want %q in it", got, want)
		}
	}
	if !strings.HasSuffix(got, "\n3\n") { // 3 is the directory that ls itself reads
		t.Errorf("child has more than its three descriptors: %q", got)
	}
}

// Processes that the command leaves behind when it exits are killed too.
func TestNothingOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	spec, pids := script(t, strings.Replace(tree, "\nwait\n", "\nexit 3\n", 1))
	p, out := start(t, spec)
	wantReady(t, out)
	if e := wait(t, p); e != (Exit{Code: 3}) {
		t.Errorf("exit %+v, want code 3", e)
	}
	wantGone(t, pids, 0)
}

func TestTerminateGivesGraceThenKillsTheTree(t *testing.T) {
	t.Parallel()
	spec, pids := script(t, "trap '' TERM;"+tree+"wait\nwait\nsleep 100\n")
	p, out := start(t, spec)
	wantReady(t, out)
	began := time.Now()
	p.Terminate(300 * time.Millisecond)
	e := wait(t, p)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("killed after %v, before its grace", took)
	}
	if e.Signal != "SIGKILL" || e.Killed != "terminate" {
		t.Errorf("exit %+v", e)
	}
	wantGone(t, pids, 0)
}

func TestTerminateReachesADefaultHandler(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "echo ready; exec sleep 100")
	p, out := start(t, spec)
	wantReady(t, out)
	p.Terminate(10 * time.Second)
	if e := wait(t, p); e.Signal != "SIGTERM" || e.Killed != "terminate" {
		t.Errorf("exit %+v, want SIGTERM", e)
	}
}

// A command that reaches the shim after its deadline is not started: on a busy machine a lease
// may end between the decision and the shim.
func TestNothingBeginsAfterItsDeadline(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	for _, start := range []func(Spec, *os.File) (*Process, error){
		func(s Spec, w *os.File) (*Process, error) { return Start(self, s, w, w) },
		func(s Spec, w *os.File) (*Process, error) {
			l := NewLauncher(self)
			defer l.Close()
			return l.Start(s, nil, w, w)
		},
	} {
		spec, _ := script(t, "echo began >> "+mark)
		spec.Deadline = BootTime()
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if p, err := start(spec, null); err == nil {
			wait(t, p)
			t.Error("it began")
		} else if !errors.Is(err, ErrLate) || !strings.Contains(err.Error(), "lease ended") {
			t.Error(err)
		}
		if b, err := os.ReadFile(mark); err == nil {
			t.Errorf("it left %q", b)
		}
	}
}

func TestTheDeadlineKillsUnlessItIsExtended(t *testing.T) {
	t.Parallel()
	spec, pids := script(t, tree)
	spec.Deadline = BootTime() + 10*time.Second
	p, out := start(t, spec)
	wantReady(t, out)
	p.Extend(BootTime() + 300*time.Millisecond)
	if e := wait(t, p); e.Killed != "deadline" {
		t.Errorf("exit %+v, want a deadline", e)
	}
	wantGone(t, pids, 0)
}

// When the shim itself is killed, the command dies with it.
func TestTheCommandDiesWithItsShim(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "echo ready; exec sleep 100")
	p, out := start(t, spec)
	wantReady(t, out)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err == nil {
		t.Error("the loss of the shim went unnoticed")
	}
	for end := time.Now().Add(time.Minute); alive(p.PID); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command outlived its shim")
		}
	}
}

// playNode starts the tree with a deadline of lease, says "ready" and extends
// the deadline as a node would, for ever.
func playNode(pids, lease string) int {
	d, err := time.ParseDuration(lease)
	if err != nil {
		return 2
	}
	spec := Spec{Path: "/bin/sh", Args: []string{"sh", "-c", tree}, Dir: "/",
		Env: []string{"PATH=" + os.Getenv("PATH"), "PIDS=" + pids}, Deadline: BootTime() + d}
	p, err := Start(self, spec, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for range time.Tick(d / 10) {
		p.Extend(BootTime() + d)
	}
	return 0
}

func node(t *testing.T, lease time.Duration) (*exec.Cmd, string) {
	t.Helper()
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(os.Args[0], "play-node", pids, lease.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	wantReady(t, bufio.NewReader(out))
	return cmd, pids
}

func TestAKilledNodeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cmd, pids := node(t, time.Minute)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids, 20*time.Second) // long before its lease ends
}

// A stopped node keeps its pipes open but no longer extends the deadline: its tree is killed
// before its lease ends.
func TestAStoppedNodeLosesItsTreeWithItsLease(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second // on a busy machine a node may not run for seconds
	cmd, pids := node(t, lease)
	time.Sleep(lease + lease/5) // it stays alive while the deadline is extended
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(pids)
	for _, l := range strings.Fields(string(b)) {
		if pid, _ := strconv.Atoi(l); !alive(pid) {
			t.Fatalf("process %d died under a live lease", pid)
		}
	}
	wantGone(t, pids, time.Minute)
}

func TestByHandItRefuses(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(os.Args[0], "run-shim").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not by hand") {
		t.Errorf("%q, %v", out, err)
	}
}

// A command with its own standard input reads it to its end, and its tree is controlled like
// any other.
func TestACommandReadsItsInput(t *testing.T) {
	t.Parallel()
	spec, _ := script(t, "tr a-z A-Z; echo done")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outR.Close()
	p, err := NewLauncher(self).Start(spec, r, outW, outW)
	r.Close()
	outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	got, err := io.ReadAll(outR)
	exit, waitErr := p.Wait()
	if err != nil || waitErr != nil || string(got) != "HELLO\ndone\n" || exit.Code != 0 {
		t.Errorf("%q %+v %v %v", got, exit, err, waitErr)
	}
}

// A waiting shim takes the next command, is replaced by another, and ends with its launcher. A
// waiting shim that was killed is replaced too.
func TestALauncherHasAShimReady(t *testing.T) {
	t.Parallel()
	l := NewLauncher(self)
	defer l.Close()
	run := func() (parent int) {
		t.Helper()
		spec, _ := script(t, "echo $PPID")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		p, err := l.Start(spec, nil, w, w)
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		out, _ := io.ReadAll(r)
		if e := wait(t, p); e != (Exit{}) {
			t.Fatalf("exit %+v", e)
		}
		parent, err = strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		return parent
	}
	spare := func() int {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			l.mu.Lock()
			p := l.spare
			l.mu.Unlock()
			if p != nil {
				return p.cmd.Process.Pid
			}
		}
		t.Fatal("no shim is ready after a minute")
		return 0
	}
	l.Ready()
	first := spare()
	if got := run(); got != first {
		t.Errorf("the command ran under %d, want the shim %d that was ready", got, first)
	}
	second := spare()
	if second == first {
		t.Error("a shim was used twice")
	}
	if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for alive(second) {
		time.Sleep(time.Millisecond)
	}
	if got := run(); got == second {
		t.Error("a dead shim started something")
	}
	last := spare()
	l.Close()
	for end := time.Now().Add(time.Minute); alive(last); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shim that nobody took outlived its launcher")
		}
	}
}
