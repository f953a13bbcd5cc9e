package shim

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often a tree without a cgroup is checked: often enough that a fork bomb
// does not fill the machine's process table, and rarely enough to cost little.
const watchEvery = 250 * time.Millisecond

type rlimit struct {
	name     string
	resource int
	most     uint64
}

// soft is the soft limit, at which the program is signalled, if that is below the hard one.
func (l rlimit) soft() uint64 {
	if l.resource == unix.RLIMIT_CPU {
		return max(l.most, 1) - 1 // SIGXCPU, and KILL a second later
	}
	return l.most
}

func (l Limits) wantsCgroup() bool { return l.MemoryMB > 0 || l.Processes > 0 }

// rlimits returns the limits that the kernel enforces for each process.
func (l Limits) rlimits(inCgroup bool) []rlimit {
	out := []rlimit{{"core", unix.RLIMIT_CORE, 0}}
	add := func(name string, resource int, n, unit int64) {
		if n > 0 {
			out = append(out, rlimit{name, resource, uint64(min(n, math.MaxInt64/unit) * unit)})
		}
	}
	add("openFiles", unix.RLIMIT_NOFILE, l.OpenFiles, 1)
	add("fileMb", unix.RLIMIT_FSIZE, l.FileMB, 1<<20)
	if l.CPUSec > 0 {
		add("cpuSec", unix.RLIMIT_CPU, l.CPUSec+1, 1)
	}
	if !inCgroup {
		add("memoryMb", unix.RLIMIT_DATA, l.MemoryMB, 1<<20)
	}
	return out
}

// A watch checks a tree without a cgroup every watchEvery. If no process has started on the
// machine since the last full check, and the tree uses less than half of its memory, three of
// four checks are a single read.
type watch struct {
	limits  Limits
	pid     int      // the tree is below it
	newest  *os.File // its last field is the number of the newest process; nil if the file does not exist
	seen    string   // that number at the last full check
	skipped int
	calm    bool
}

const skipAtMost = 3

func newWatch(l Limits, pid int) *watch {
	f, _ := os.Open("/proc/loadavg")
	return &watch{limits: l, pid: pid, newest: f}
}

// exceeded returns the limit that the tree exceeds, "" for none.
func (w *watch) exceeded() string {
	newest := w.begun()
	if w.calm && newest != "" && newest == w.seen && w.skipped < skipAtMost {
		w.skipped++
		return ""
	}
	w.seen, w.skipped = newest, 0
	var why string
	why, w.calm = w.limits.exceeded(w.pid)
	return why
}

// begun returns the number of the machine's newest process or thread, "" if it can not be
// read.
func (w *watch) begun() string {
	if w.newest == nil {
		return ""
	}
	var b [128]byte
	n, _ := w.newest.ReadAt(b[:], 0)
	fields := bytes.Fields(b[:n])
	if len(fields) != 5 {
		return ""
	}
	return string(fields[4])
}

// exceeded returns the limit that the tree below pid exceeds, "" for none. calm says that the
// tree is far below its memory limit.
func (l Limits) exceeded(pid int) (why string, calm bool) {
	pids := treeOf(pid)
	if l.Processes > 0 && int64(len(pids)) > l.Processes {
		return "processes", false
	}
	if l.MemoryMB <= 0 {
		return "", true
	}
	used, limit := kilobytes(pids, "status", "RssAnon:", "RssShmem:"), l.MemoryMB<<10
	if used <= limit {
		return "", used <= limit/2
	}
	// Shared memory was counted once per process; the exact number costs more.
	if exact := kilobytes(pids, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); exact > 0 && exact <= limit {
		return "", false
	}
	return "memory", false
}

// treeOf returns the processes below pid. It reads the list of children of each process in
// the tree; if the kernel has no such lists, it reads all processes.
func treeOf(pid int) []int {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		return descendants(pid)
	}
	var out []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		tasks := "/proc/" + strconv.Itoa(queue[0]) + "/task"
		threads, _ := readDirNames(tasks)
		for _, t := range threads {
			b, _ := os.ReadFile(tasks + "/" + t + "/children")
			for f := range strings.FieldsSeq(string(b)) {
				if child, err := strconv.Atoi(f); err == nil {
					out, queue = append(out, child), append(queue, child)
				}
			}
		}
	}
	return out
}

// kilobytes returns the sum of the fields of a /proc file over all processes.
func kilobytes(pids []int, file string, names ...string) (sum int64) {
	for _, pid := range pids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
		if err != nil {
			continue // it is gone
		}
		for line := range bytes.Lines(b) {
			for _, name := range names {
				if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
					n, _ := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
					sum += n
				}
			}
		}
	}
	return sum
}
