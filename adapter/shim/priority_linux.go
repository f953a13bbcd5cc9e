package shim

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// nodeNice is what a node asks for where it may: its threads run briefly and
	// often, and what waits for them is the whole mesh.
	nodeNice = -5
	// runNice is what a tree gets: a tenth of what a process with 0 gets beside it.
	// What is nicer already stays so.
	runNice = 10
	// runOOM is added to a tree's score when the machine has no memory left, of 1000:
	// the kernel takes it before the node and what the machine is for otherwise.
	runOOM = 500
	// lowIO is the last of the best-effort class (2) of disk schedulers.
	lowIO = 2<<13 | 7
	// A tree's cgroups together, and the node's, beside each other.
	runWeight, nodeWeight = "20", "200"
	// The kernel takes an autogroup's nice value from anybody but root once in
	// 100 ms on the whole machine: yieldTries with yieldPause between.
	yieldTries = 20
	yieldPause = 130 * time.Millisecond
)

// PreferNode gives the threads of this process, a node, more of the processor
// than others, where that is permitted. What its operator has set is left alone.
func PreferNode() error {
	return renice(func(now int) int {
		if now != 0 {
			return now
		}
		return nodeNice
	})
}

// Yield puts the threads of this process behind nodes.
func Yield() error { return renice(yielded) }

func yielded(now int) int { return max(now, runNice) }

// renice sets the nice value of all threads, which each have their own. Those
// that begin meanwhile have it of the one that started them, so it looks until
// nothing changes.
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

// niceOf is the nice value of a thread; 0 is the calling one.
func niceOf(tid int) (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
	return 20 - n, err // the kernel returns 1 to 40, the highest for -20
}

// yieldThread puts what this thread starts behind the node. Whoever may not, or
// has a kernel without, runs all the same.
func yieldThread() {
	if now, err := niceOf(0); err == nil && yielded(now) != now {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, yielded(now))
	}
	const whoProcess = 1
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, lowIO)
}

// yieldTree does what is set for a process that has begun: it is the first to go
// when there is no memory. Where the kernel shares the processor between sessions
// (autogroup, as on desktops), nice values count within a session only, and a
// tree is one: the session gets one too.
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
