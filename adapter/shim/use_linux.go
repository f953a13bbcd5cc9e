package shim

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of times in /proc, the same on every Linux.
const ticksPerSecond = 100

// SignalNumber returns the number of a signal such as "SIGSEGV", 0 if there is none.
func SignalNumber(name string) int { return int(unix.SignalNum(name)) }

// Uses returns what the trees of commands use, by the PIDs of [Started]. A tree that has ended
// is absent. It reads one file per process of the machine, and one more per process of a tree.
func Uses(commands []int) map[int]Use {
	if len(commands) == 0 {
		return nil
	}
	names, err := readDirNames("/proc")
	if err != nil {
		return nil
	}
	all, below := map[int]procStat{}, map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
			below[s.parent] = append(below[s.parent], pid)
		}
	}
	out := map[int]Use{}
	for _, command := range commands {
		own, ok := all[command]
		if !ok {
			continue
		}
		var u Use
		root := []int{command}
		if shim := all[own.parent]; shim.comm == shimName { // it has adopted what the command left, and reaped some
			root = below[own.parent]
			u.CPU = shim.reaped
		}
		for queue := append([]int(nil), root...); len(queue) > 0; queue = queue[1:] {
			s := all[queue[0]]
			u.Memory, u.CPU, u.Processes = u.Memory+memoryOf(queue[0]), u.CPU+s.own+s.reaped, u.Processes+1
			queue = append(queue, below[queue[0]]...)
		}
		out[command] = u
	}
	return out
}

// OwnUse returns what this process uses, without the trees that it started.
func OwnUse() Use {
	s, _ := readStat(os.Getpid())
	return Use{Memory: memoryOf(os.Getpid()), CPU: s.own, Processes: 1}
}

// A procStat is what /proc/PID/stat says about a process: the times that it took itself, and
// those of its children that it has waited for.
type procStat struct {
	parent      int
	comm        string
	own, reaped time.Duration
}

// memoryOf returns the bytes that a process has in memory and shares with no other, as
// "size resident shared …" in pages tells.
func memoryOf(pid int) int64 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	f := bytes.Fields(b)
	if len(f) < 3 {
		return 0 // it has ended
	}
	resident, _ := strconv.ParseInt(string(f[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(f[2]), 10, 64)
	return max(0, resident-shared) * int64(os.Getpagesize())
}

// readStat reads "pid (name) state ppid …"; see proc(5) for the fields.
func readStat(pid int) (s procStat, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return s, false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return s, false
	}
	s.comm = string(b[open+1 : end])
	f := bytes.Fields(b[end+1:]) // f[0] is field 3, the state
	if len(f) < 15 {
		return s, false
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(f[field-3]), 10, 64)
		return n
	}
	ticks := func(a, b int) time.Duration {
		return time.Duration(number(a)+number(b)) * time.Second / ticksPerSecond
	}
	s.parent = int(number(4))
	s.own, s.reaped = ticks(14, 15), ticks(16, 17)
	return s, true
}
