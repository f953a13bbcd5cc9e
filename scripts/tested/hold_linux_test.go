package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// markEnv is in the environment of all that one test starts: what of it is alive is found by it.
	markEnv = "SELVAGE_TESTED_MARK"
	// within bounds what takes a moment, on a machine that has much else to do. What a failed test
	// leaves behind ends by itself after asleep.
	within, asleep = time.Minute, 5 * time.Minute
)

// The test binary also plays the program itself and all that it and scripts/test start.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "tested":
		main()
		os.Exit(0)
	case "go", "git", "make", "readme":
		os.Exit(playTool(name, os.Args[1:]))
	}
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "play-") {
		os.Exit(play(os.Args[1], os.Args[2], os.Args[3:]))
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // what is started here is not under nohup
	os.Exit(m.Run())
}

// play is a part that the test binary plays; dir is where it says what the test needs to know.
func play(part, dir string, args []string) int {
	switch part {
	case "play-command":
		return playCommand(dir, args[0])
	case "play-starter": // of a holder
		if len(args) > 1 { // as under nohup
			signal.Ignore(syscall.SIGHUP)
		}
		if err := holder(dir, args[0]).Run(); err != nil {
			return 1
		}
	case "play-parent": // of the daemon, which is an orphan in a session of its own
		if err := self("play-daemon", dir).Start(); err != nil {
			return 1
		}
	case "play-daemon":
		playDaemon(dir)
	}
	return 0
}

// self is the test binary as something else, in a session of its own. Nobody waits for its output.
func self(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// playDaemon listens on a port below those of outgoing connections and above those of testnets,
// and takes no signal that asks it to end.
func playDaemon(dir string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	for {
		port := 32_000 + rand.IntN(768)
		if _, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			tell(dir, "port-"+strconv.Itoa(os.Getpid()), strconv.Itoa(port))
			time.Sleep(asleep)
			return
		}
	}
}

// leaveDaemon starts a daemon and returns when it listens.
func leaveDaemon(dir string) error {
	before := len(ports(dir))
	if err := self("play-parent", dir).Run(); err != nil {
		return err
	}
	return wait("a daemon listens", func() bool { return len(ports(dir)) > before })
}

// playCommand is what a holder runs.
func playCommand(dir, how string) int {
	asked := make(chan os.Signal, 1)
	if how == "tidies" {
		signal.Notify(asked, syscall.SIGTERM)
	}
	if err := leaveDaemon(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	tell(dir, "command", strconv.Itoa(os.Getpid()))
	switch how {
	case "fails":
		return 3
	case "hangs":
		time.Sleep(asleep)
	case "tidies":
		<-asked
		tell(dir, "tidied", "")
	case "goes on":
		if wait("the test says more", func() bool { return told(dir, "more") != "" }) == nil {
			tell(dir, "went on", "yes")
		}
	}
	return 0
}

// holder is a holder of a command that ends, or does not, as how says.
func holder(dir, how string) *exec.Cmd {
	exe, _ := os.Executable()
	return &exec.Cmd{Path: exe, Args: []string{"tested", "-hold", "-remove", filepath.Join(dir, "gone"), exe,
		"play-command", dir, how}, Stdout: os.Stdout, Stderr: os.Stderr}
}

// tell writes what told reads: all of it or nothing.
func tell(dir, name, text string) {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		panic(err)
	}
}

func told(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// ports are those that daemons said they listen on.
func ports(dir string) (all []string) {
	said, _ := filepath.Glob(filepath.Join(dir, "port-*[0-9]"))
	for _, s := range said {
		all = append(all, told(dir, filepath.Base(s)))
	}
	return all
}

func wait(what string, until func() bool) error {
	for end := time.Now().Add(within); !until(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return errors.New("timed out waiting until " + what)
		}
	}
	return nil
}

// marked are the processes of this test, with their command lines.
func marked(mark string) map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		if env, _ := os.ReadFile(f); slices.Contains(strings.Split(string(env), "\x00"), markEnv+"="+mark) {
			pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return found
}

// find returns the process of this test whose command line matches.
func find(t *testing.T, mark string, is func(line string) bool) int {
	t.Helper()
	for pid, line := range marked(mark) {
		if is(line) {
			return pid
		}
	}
	t.Fatalf("no such process among %v", marked(mark))
	return 0
}

func isInner(line string) bool { return strings.Contains(line, " -inner ") }

// mark returns the mark of a test, and has ended at its end what is left under it.
func mark(t *testing.T) string {
	m := strconv.FormatUint(rand.Uint64(), 36)
	t.Cleanup(func() {
		for pid := range marked(m) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return m
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// wantNothing fails if something of a test is left: a process, a port.
func wantNothing(t *testing.T, mark, dir string) {
	t.Helper()
	if err := wait("nothing is left", func() bool { return len(marked(mark)) == 0 }); err != nil {
		t.Errorf("%v: %v", err, marked(mark))
	}
	all := ports(dir)
	if len(all) == 0 {
		t.Error("no daemon was started")
	}
	for _, port := range all { // a daemon of another test may have it now, for a moment
		free := func() bool {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
			if err == nil {
				l.Close()
			}
			return err == nil
		}
		if err := wait("port "+port+" is free", free); err != nil {
			t.Error(err)
		}
	}
}

// status is how a command ended, as a shell has it.
func status(cmd *exec.Cmd) int {
	w := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if w.Signaled() {
		return 128 + int(w.Signal())
	}
	return w.ExitStatus()
}

// A held command leaves nothing behind, not even a daemon that has left its parent, group and
// session and ignores signals: however it ends, its holders or what started them.
func TestNothingOutlivesAHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, how string
		then      func(t *testing.T, outer, inner, command int)
		want      int
	}{
		{name: "the command ends well", how: "ends", want: 0},
		{name: "the command fails", how: "fails", want: 3},
		{name: "the command is killed", how: "hangs", want: 137,
			then: func(t *testing.T, _, _, command int) { kill(t, command, syscall.SIGKILL) }},
		{name: "SIGTERM", how: "hangs", want: 143,
			then: func(t *testing.T, outer, _, _ int) { kill(t, outer, syscall.SIGTERM) }},
		{name: "SIGINT", how: "hangs", want: 130,
			then: func(t *testing.T, outer, _, _ int) { kill(t, outer, syscall.SIGINT) }},
		{name: "SIGHUP", how: "hangs", want: 129,
			then: func(t *testing.T, outer, _, _ int) { kill(t, outer, syscall.SIGHUP) }},
		{name: "SIGTERM to a command that tidies up", how: "tidies", want: 143,
			then: func(t *testing.T, outer, _, _ int) { kill(t, outer, syscall.SIGTERM) }},
		{name: "the outer holder is killed", how: "hangs", want: 137,
			then: func(t *testing.T, outer, _, _ int) { kill(t, outer, syscall.SIGKILL) }},
		{name: "the inner holder is killed", how: "hangs", want: 137,
			then: func(t *testing.T, _, inner, _ int) { kill(t, inner, syscall.SIGKILL) }},
		{name: "the group of the outer holder is killed", how: "hangs", want: 137,
			then: func(t *testing.T, outer, _, _ int) { kill(t, -outer, syscall.SIGKILL) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, mark := t.TempDir(), mark(t)
			if err := os.Mkdir(filepath.Join(dir, "gone"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := holder(dir, c.how)
			cmd.Env = append(os.Environ(), markEnv+"="+mark)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.then != nil {
				if err := wait("the command runs", func() bool { return told(dir, "command") != "" }); err != nil {
					t.Fatal(err)
				}
				command, _ := strconv.Atoi(told(dir, "command"))
				c.then(t, cmd.Process.Pid, find(t, mark, isInner), command)
			}
			_ = cmd.Wait() // its status says more
			if got := status(cmd); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
			wantNothing(t, mark, dir)
			if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
				t.Error("the directory to remove is still there")
			}
			if _, err := os.Stat(filepath.Join(dir, "tidied")); (err == nil) != (c.how == "tidies") {
				t.Errorf("the command tidied up: %t", err == nil)
			}
		})
	}
}

// What whoever was killed had started with a holder ends. Only nohup prevents that.
func TestAHolderEndsWithWhatStartedIt(t *testing.T) {
	t.Parallel()
	for _, nohup := range []bool{false, true} {
		t.Run(fmt.Sprintf("nohup %t", nohup), func(t *testing.T) {
			t.Parallel()
			dir, mark := t.TempDir(), mark(t)
			args := []string{"play-starter", dir, "goes on"}
			if nohup {
				args = append(args, "nohup")
			}
			starter := self(args...)
			starter.Env = append(os.Environ(), markEnv+"="+mark)
			if err := starter.Start(); err != nil {
				t.Fatal(err)
			}
			if err := wait("the command runs", func() bool { return told(dir, "command") != "" }); err != nil {
				t.Fatal(err)
			}
			kill(t, starter.Process.Pid, syscall.SIGKILL)
			_ = starter.Wait()
			if nohup {
				time.Sleep(3 * parentEvery) // a holder that looked would have seen it
				tell(dir, "more", "yes")
			}
			wantNothing(t, mark, dir)
			if got := told(dir, "went on") != ""; got != nohup {
				t.Errorf("the command went on: %t", got)
			}
		})
	}
}
