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

// watchEvery is how often a tree without a cgroup is looked at: often enough
// that a fork bomb does not fill the machine's table of processes, seldom enough
// to cost nothing.
const watchEvery = 250 * time.Millisecond

type rlimit struct {
	name     string
	resource int
	most     uint64
}

// soft is where the program is told, if that is below the end.
func (l rlimit) soft() uint64 {
	if l.resource == unix.RLIMIT_CPU {
		return max(l.most, 1) - 1 // SIGXCPU, and KILL a second later
	}
	return l.most
}

func (l Limits) wantsCgroup() bool { return l.MemoryMB > 0 || l.Processes > 0 }

// rlimits are what the kernel holds for each process.
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

// A watch looks at a tree that has no cgroup, each watchEvery. Where no process
// has begun on the whole machine since the last look, and the tree has less than
// half of its memory, three looks of four are one read.
type watch struct {
	limits  Limits
	pid     int      // the tree is below it
	newest  *os.File // whose last field is the number of the newest process, nil if there is none
	seen    string   // that number at the last whole look
	skipped int
	calm    bool
}

const skipAtMost = 3

func newWatch(l Limits, pid int) *watch {
	f, _ := os.Open("/proc/loadavg")
	return &watch{limits: l, pid: pid, newest: f}
}

// exceeded says which limit the tree is above, "" for none.
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

// begun is the number of the machine's newest process or thread, "" if it is not
// to be had.
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

// exceeded says which limit the tree below pid is above, "" for none, and whether
// it is far from that of its memory.
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
	// What processes share was counted for each; the exact number costs more.
	if exact := kilobytes(pids, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:"); exact > 0 && exact <= limit {
		return "", false
	}
	return "memory", false
}

// treeOf lists the processes below pid by their parents' lists, which costs by
// the size of the tree, and where the kernel keeps none by looking at them all.
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

// kilobytes sums fields of a file of each process.
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
