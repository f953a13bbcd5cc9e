package shim

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// nodeNice is the nice value that a node requests, if it may: its threads run briefly and
	// often, and the whole mesh waits for them.
	nodeNice = -5
	// runNice is the nice value of a tree: it gets a tenth of the CPU of a process with 0. A
	// higher value is kept.
	runNice = 10
	// runOOM is added to a tree's out-of-memory score, of 1000: if the machine has no memory
	// left, the kernel kills the tree before the node and other programs.
	runOOM = 500
	// lowIO is the lowest level of the best-effort class (2) of disk schedulers.
	lowIO = 2<<13 | 7
	// The cgroup weights of all trees together, and of the node.
	runWeight, nodeWeight = "20", "200"
	// Without root, an autogroup's nice value can be set once per 100 ms on the whole machine:
	// there are yieldTries attempts with yieldPause between them.
	yieldTries = 20
	yieldPause = 130 * time.Millisecond
)

// PreferNode gives the threads of this process, a node, a higher CPU priority, if that is
// permitted. It does not change a value that the operator has set.
func PreferNode() error {
	return renice(func(now int) int {
		if now != 0 {
			return now
		}
		return nodeNice
	})
}

// Yield gives the threads of this process a lower priority than nodes.
func Yield() error { return renice(yielded) }

func yielded(now int) int { return max(now, runNice) }

// renice sets the nice value of all threads; each has its own. A new thread inherits that of
// the thread that started it, so renice repeats until nothing changes.
func renice(to func(now int) int) error {
	for changed := true; changed; {
		changed = false
		threads, err := readDirNames("/proc/self/task")
		if err != nil {
			return err
		}
		for _, name := range threads {
			tid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			now, err := niceOf(tid)
			if err != nil {
				continue // it is gone
			}
			if want := to(now); want != now {
				if err := unix.Setpriority(unix.PRIO_PROCESS, tid, want); err != nil && !errors.Is(err, unix.ESRCH) {
					return err
				}
				changed = true
			}
		}
	}
	return nil
}

// niceOf returns the nice value of a thread; 0 means the calling one.
func niceOf(tid int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	return 20 - n, err // the kernel returns 1 to 40, the highest for -20
}

// yieldThread lowers the priority of the processes that this thread starts. Errors are ignored:
// the command runs without it.
func yieldThread() {
	if now, err := niceOf(0); err == nil && yielded(now) != now {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, yielded(now))
	}
	const whoProcess = 1
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, lowIO)
}

// yieldTree sets what can only be set for a running process: its out-of-memory score. If the
// kernel shares the CPU between sessions (autogroup, as on desktops), nice values apply only
// within a session. A tree is a session, so the session gets a nice value too.
func yieldTree(pid int) {
	dir := "/proc/" + strconv.Itoa(pid)
	_ = os.WriteFile(dir+"/oom_score_adj", []byte(itoa(runOOM)), 0)
	for range yieldTries {
		err := os.WriteFile(dir+"/autogroup", []byte(itoa(runNice)), 0)
		if !errors.Is(err, unix.EAGAIN) {
			return
		}
		time.Sleep(yieldPause)
	}
}
