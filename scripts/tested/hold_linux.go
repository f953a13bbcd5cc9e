package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// grace is for what the command does at its end, which is to print what failed. The outer
	// holder waits longer: the inner one ends what is left in the meantime.
	grace, outerGrace = 5 * time.Second, 20 * time.Second
	// parentEvery is how often a holder looks whether its parent lives. The signal of a parent's
	// death (PR_SET_PDEATHSIG) is one of the death of the thread that forked, which need not be
	// the parent's.
	parentEvery = 100 * time.Millisecond
	// A process in an uninterruptible sleep may take long to end: killWithin bounds the wait.
	killEvery, killWithin = 20 * time.Millisecond, 10 * time.Second
)

// run runs the command until it or the reason for it has ended, and ends what is left.
func (h held) run() int {
	// The mounts of a thread are those of what it starts.
	runtime.LockOSThread()
	// Orphans below this process become its children, in whatever session they are.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "tested: become subreaper:", err)
		return 1
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	detached := signal.Ignored(syscall.SIGHUP) // by nohup
	if !detached {
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a message that nobody reads must not end this
	child, err := h.start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tested:", err)
		h.tidy()
		return 1
	}
	ended, none := make(chan syscall.WaitStatus, 1), make(chan struct{})
	go reap(child, ended, none)
	var (
		asked syscall.Signal // 0: nobody has asked the command to end
		over  <-chan time.Time
		look  = time.NewTicker(parentEvery)
	)
	defer look.Stop()
	end := func(s syscall.Signal) {
		_ = syscall.Kill(child, s) // it may have ended
		if asked == 0 {
			asked, over = s, time.After(h.grace())
		}
	}
	status := syscall.WaitStatus(syscall.SIGKILL) // unless the reaper reports another
wait:
	for {
		select {
		case status = <-ended:
			break wait
		case <-over:
			break wait
		case s := <-signals:
			end(s.(syscall.Signal))
		case <-look.C:
			if asked == 0 && (h.inner || !detached) && os.Getppid() != h.parent {
				if !h.inner {
					fmt.Fprintln(os.Stderr, "tested: what started this has ended, so this ends too (nohup prevents that)")
				}
				end(syscall.SIGTERM)
			}
		}
	}
	killAll(none)
	h.tidy()
	switch {
	case asked != 0 && (status == 0 || status.Signaled()):
		return 128 + int(asked)
	case status.Signaled():
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func (h held) grace() time.Duration {
	if h.inner {
		return grace
	}
	return outerGrace
}

// start starts the command, or, as the outer holder, the inner one: in a session of its own, so
// that no signal to a group or session reaches both.
func (h held) start() (pid int, err error) {
	args := h.command
	path := "/proc/self/exe"
	if h.inner {
		if path, err = exec.LookPath(args[0]); err != nil {
			return 0, err
		}
		privateMounts()
	} else {
		args = append([]string{os.Args[0], "-hold", "-inner", "-parent", strconv.Itoa(os.Getpid()), "-remove", h.remove},
			h.command...)
	}
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setsid: !h.inner}})
}

// privateMounts gives this thread mounts of its own where it may have them, and in them a directory
// of its own for the names of network namespaces: what is mounted below ends with the last process
// there, and a namespace that only a name kept ends with the name.
func privateMounts() {
	const names = "/run/netns" // see ip-netns(8)
	if os.Geteuid() != 0 || os.MkdirAll(names, 0o755) != nil || unix.Unshare(unix.CLONE_NEWNS) != nil ||
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") != nil {
		return
	}
	_ = unix.Mount("none", names, "tmpfs", 0, "mode=755")
}

// reap waits for every child, adopted ones too. It closes none when there is no descendant left: an
// orphan among them would be a child.
func reap(child int, ended chan<- syscall.WaitStatus, none chan<- struct{}) {
	for {
		var w syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &w, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			close(none)
			return
		case pid == child:
			ended <- w
		}
	}
}

// killAll kills every descendant, and again those that they started meanwhile. They are stopped
// before, so that what forks constantly does not escape.
func killAll(none <-chan struct{}) {
	for late := time.After(killWithin); ; {
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range descendants(os.Getpid()) {
				_ = syscall.Kill(pid, s) // it may have ended
			}
		}
		select {
		case <-none:
			return
		case <-late:
			fmt.Fprintln(os.Stderr, "tested: processes that do not end:", descendants(os.Getpid()))
			return
		case <-time.After(killEvery):
		}
	}
}

// descendants returns the processes below pid, parents first.
func descendants(pid int) (below []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		child, _ := strconv.Atoi(strings.Split(path, "/")[2])
		parent := parentOf(child)
		children[parent] = append(children[parent], child)
	}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		below = append(below, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return below
}

// parentOf returns the parent of a process, 0 if there is none or it has ended.
func parentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may contain anything; the state and the parent follow.
	rest := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(rest) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(rest[1])
	return parent
}
