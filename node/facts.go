package node

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/mind"
	"github.com/selvage-mesh/selvage/scheduler"
)

// factsEvery bounds the age of the load that a node reports, programsEvery the age of
// its list of programs.
const (
	factsEvery    = 5 * time.Second
	programsEvery = time.Minute
	// handOnEvery is how often a leader checks whether it is being drained.
	handOnEvery = 2 * time.Second
)

// facts are what this node reports about itself to the leader.
type facts struct {
	mu       sync.Mutex // guards the fields below
	now      scheduler.Facts
	looked   time.Time
	searched time.Time
}

// look returns the facts, refreshed if they are too old.
func (f *facts) look() scheduler.Facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) > factsEvery {
		f.looked = now
		f.now.OS, f.now.Arch, f.now.CPUs = runtime.GOOS, runtime.GOARCH, int64(runtime.NumCPU())
		f.now.MemoryMB, f.now.FreeMB = memory()
		f.now.Load = load()
		if now.Sub(f.searched) > programsEvery {
			f.searched = now
			f.now.GPUs, f.now.Programs = gpus(), programs(company.CommandLines())
		}
	}
	out := f.now
	out.Programs = slices.Clone(out.Programs)
	return out
}

// measured notes what was measured of this node.
func (f *facts) measured(c mind.Calibration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.HashMicros, f.now.SyncMicros, f.now.SearchMicros, f.now.TickMicros = c.CPU.Microseconds(), c.Sync.Microseconds(),
		c.Search.Microseconds(), c.Tick.Microseconds()
}

// memory reads the machine's memory, in MB; 0 if the system does not report it.
func memory() (all, free int64) {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(b) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			all = kb >> 10
		case "MemAvailable:":
			free = kb >> 10
		}
	}
	return all, free
}

// load reads the load average of the last minute, in thousandths of a processor.
func load() int64 {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || v < 0 {
		return 0
	}
	return int64(v * 1000)
}

// gpus counts the device files of GPU drivers.
func gpus() int64 {
	n, _ := filepath.Glob("/dev/nvidia[0-9]*")
	a, _ := filepath.Glob("/dev/dri/renderD*")
	return int64(max(len(n), len(a)))
}

// programs returns those of names that are on the PATH.
func programs(names []string) (out []string) {
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// handOn transfers leadership to another node, if there is one, when this node is being
// drained.
func (n *Node) handOn() {
	if !n.consensus.IsLeader() {
		return
	}
	drain := false
	_ = n.ledger.View(func(tx *ledger.Tx) error {
		d, _ := company.DutyOf(tx, string(n.ID()))
		drain = d.Drain
		return nil
	})
	if !drain {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, keepAliveTimeout)
	defer cancel()
	if err := n.consensus.TransferLeadership(ctx); err != nil {
		n.log.Debug("leadership was not handed on", "error", err)
	}
}
