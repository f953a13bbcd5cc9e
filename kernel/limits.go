package kernel

import (
	"fmt"
	"time"
)

const (
	// DefaultMaxProcesses bounds the spawned processes of a node. Runs and services are bounded
	// by what admits them (slots, the board) and do not count.
	DefaultMaxProcesses = 64
	// MostProcesses bounds the configured bound, and all entries of the table together.
	MostProcesses = 100_000
	// KeptExits is how many ended processes the table still shows, the newest ones.
	KeptExits = 256
	// maxLinks bounds the links and the monitors of one process.
	maxLinks = 256

	// RestartBudget restarts within RestartWindow are allowed; the next one escalates.
	RestartBudget = 5
	RestartWindow = 60 * time.Second
	// The pause before the n-th restart within the window is FirstBackoff·2^(n−1), at most
	// MostBackoff.
	FirstBackoff = 100 * time.Millisecond
	MostBackoff  = 30 * time.Second

	// WatchdogEvery is how often a node looks for processes that ended unnoticed,
	// ReconcileEvery how often it compares declared and running replicas.
	WatchdogEvery  = 5 * time.Second
	ReconcileEvery = 5 * time.Second

	// warnPercent of a limit is a warning.
	warnPercent = 80
)

// Limits bound what a process may use. 0 is no limit.
type Limits struct {
	MemoryBytes int64 `json:"max_memory_bytes"`
	CPUTimeMs   int64 `json:"max_cpu_time_ms"`
	ToolCalls   int64 `json:"max_tool_calls"`
	Messages    int64 `json:"max_messages"`
	DiskBytes   int64 `json:"max_disk_bytes"`
	CostCents   int64 `json:"max_cost_cents"`
}

// DefaultLimits are the limits of a process that names none. Money has no default: the
// budgets of a company bound it.
func DefaultLimits() Limits {
	return Limits{MemoryBytes: 256 << 20, CPUTimeMs: 300_000, ToolCalls: 1000, Messages: 5000, DiskBytes: 100 << 20}
}

// Validate reports every limit that is below 0.
func (l Limits) Validate() error {
	for _, r := range Resources {
		if n := l.of(r); n < 0 {
			return errorf(BadRequest, "limit %s: %d is below 0; give 0 for no limit", r, n)
		}
	}
	return nil
}

// Within reports whether l allows no more than most does, and the first resource of which
// it allows more.
func (l Limits) Within(most Limits) (Resource, bool) {
	for _, r := range Resources {
		own, bound := l.of(r), most.of(r)
		if bound > 0 && (own == 0 || own > bound) {
			return r, false
		}
	}
	return "", true
}

// Capped returns l with every limit at most that of most.
func (l Limits) Capped(most Limits) Limits {
	for _, r := range Resources {
		if p, bound := l.at(r), most.of(r); bound > 0 && (*p == 0 || *p > bound) {
			*p = bound
		}
	}
	return l
}

// A Resource is something that a process uses and that is limited.
type Resource string

// The resources of a process.
const (
	Memory    Resource = "memory"
	CPUTime   Resource = "cpu_time"
	ToolCalls Resource = "tool_calls"
	Messages  Resource = "messages"
	Disk      Resource = "disk"
	Money     Resource = "money"
)

// Resources are all of them, in the order in which they are checked and shown.
var Resources = []Resource{Memory, CPUTime, ToolCalls, Messages, Disk, Money}

func (l *Limits) at(r Resource) *int64 {
	switch r {
	case Memory:
		return &l.MemoryBytes
	case CPUTime:
		return &l.CPUTimeMs
	case ToolCalls:
		return &l.ToolCalls
	case Messages:
		return &l.Messages
	case Disk:
		return &l.DiskBytes
	default:
		return &l.CostCents
	}
}

func (l Limits) of(r Resource) int64 { return *l.at(r) }

// Use is what a process has used. Memory and disk rise and fall, the rest only rises.
type Use struct {
	MemoryBytes  int64 `json:"memory_bytes"`
	CPUTimeMs    int64 `json:"cpu_time_ms"`
	ToolCalls    int64 `json:"tool_calls"`
	MessagesSent int64 `json:"messages_sent"`
	DiskBytes    int64 `json:"disk_bytes"`
	CostCents    int64 `json:"cost_cents"`
}

// Of returns how much of a resource was used.
func (u Use) Of(r Resource) int64 { return *u.at(r) }

func (u *Use) at(r Resource) *int64 {
	switch r {
	case Memory:
		return &u.MemoryBytes
	case CPUTime:
		return &u.CPUTimeMs
	case ToolCalls:
		return &u.ToolCalls
	case Messages:
		return &u.MessagesSent
	case Disk:
		return &u.DiskBytes
	default:
		return &u.CostCents
	}
}

// A Level says how near a use is to its limit.
type Level int

// The levels: below 80 %, from 80 %, from 100 % of the limit.
const (
	OK Level = iota
	Warning
	Exceeded
)

// A Finding is a resource of which much or all that is allowed has been used.
type Finding struct {
	Resource Resource
	Level    Level
	Used     int64
	Limit    int64
}

// String says the finding in words.
func (f Finding) String() string {
	return fmt.Sprintf("%s: used %d of %d", f.Resource, f.Used, f.Limit)
}

// Check returns what of u is at 80 % of its limit or beyond, in the order of Resources.
func (l Limits) Check(u Use) (out []Finding) {
	for _, r := range Resources {
		most, used := l.of(r), u.Of(r)
		if level := levelOf(used, most); level != OK {
			out = append(out, Finding{r, level, used, most})
		}
	}
	return out
}

func levelOf(used, most int64) Level {
	switch {
	case most <= 0:
		return OK
	case used >= most:
		return Exceeded
	case used >= most-most*(100-warnPercent)/100:
		return Warning
	}
	return OK
}
