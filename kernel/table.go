package kernel

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Kind is what a process is made of.
type Kind string

// The kinds of processes.
const (
	KindKernel    Kind = "kernel"  // the node itself, PID 0
	KindRun       Kind = "run"     // a run of a company's agent
	KindService   Kind = "service" // a service of a workspace
	KindNative    Kind = "native"  // a command of the machine
	KindWasm      Kind = "wasm"    // a module in the sandbox
	KindContainer Kind = "container"
)

// An Entry is one process in the table. The zero values of Role and Capabilities mean
// RoleCustom and no capability.
type Entry struct {
	PID          PID
	Parent       PID
	Kind         Kind
	Name         string
	Company      string
	App          string // the name of the app that it is part of; "": none
	Agent        string
	Run          string
	Adapter      string
	By           string // the ID of the person who asked for it, or declared it; "": nobody did
	Declared     string // the ID of its declaration; "": it was not declared
	Replica      int    // its number among the replicas of the declaration
	Role         Role
	Group        string // of the supervisor
	Agency       Agency
	Capabilities Capabilities
	State        State
	Use          Use
	Machine      int // its process ID in the operating system, 0: it has none
	Restarts     int // of what it replaces, so far
	StartedAt    time.Time
	EndedAt      time.Time
	Exit         *Exit // once State is Exited
}

// A SignalKind says what a signal tells.
type SignalKind string

// The signals that the end of a process causes.
const (
	LinkExit    SignalKind = "link_exit"
	MonitorDown SignalKind = "monitor_down"
)

// A Signal tells a process that another one has ended.
type Signal struct {
	Kind SignalKind
	To   PID
	From PID
	Ref  string // of MonitorDown: the monitor's
	Exit Exit
}

// TableConfig configures a [Table]. Zero values are the defaults.
type TableConfig struct {
	Max   int // spawned processes at once; DefaultMaxProcesses
	First PID // PIDs begin here; 1
	// Found is called with what reached 80 or 100 % of its limit, each time once. It may call
	// the table. nil: nobody is told.
	Found func(Entry, []Finding)
}

// A Table holds the processes of one node. It is safe for concurrent use.
type Table struct {
	max   int
	found func(Entry, []Finding)

	// mu guards what follows. Each message looks several processes up, most of them at once.
	mu       sync.RWMutex
	next     PID
	live     map[PID]*Entry
	spawned  int         // live entries that count against max
	children map[PID]int // how many live ones a process has spawned, or that were adopted, without the node itself
	exits    []PID       // of ended ones that are still shown, the oldest first
	ended    map[PID]*Entry
	links    map[PID][]PID
	monitors map[PID][]monitor // by the process that is watched
	refs     uint64
	begun    uint64 // processes since the start, without the node itself
	crashed  uint64 // those of them that ended by a crash
}

type monitor struct {
	ref string
	by  PID
}

// NewTable returns a table with the kernel's own process, which started at now.
func NewTable(c TableConfig, now time.Time) *Table {
	t := &Table{max: cmp.Or(c.Max, DefaultMaxProcesses), found: c.Found, next: max(c.First, 1), live: map[PID]*Entry{},
		children: map[PID]int{}, ended: map[PID]*Entry{},
		links: map[PID][]PID{}, monitors: map[PID][]monitor{}}
	all := Capabilities{CanSpawn: true, CanIPC: true, CanExecTools: true, CanNetwork: true, Scope: Scope{Kind: ScopeAll}}
	t.live[KernelPID] = &Entry{PID: KernelPID, Kind: KindKernel, Name: "kernel", Role: RoleRoot,
		Agency:       Agency{AllowedRoles: everyRole},
		Capabilities: all, State: Running, StartedAt: now}
	return t
}

var everyRole = []Role{RoleRoot, RoleSupervisor, RoleService, RoleWorker, RoleUser, RoleCustom}

// Spawn adds a process that begins at now, in the state Starting. A nil caps means the
// default capabilities, as far as the parent may give them; others are refused where they
// exceed what the parent may give.
func (t *Table) Spawn(e Entry, caps *Capabilities, now time.Time) (Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spawned >= t.max {
		return Entry{}, errorf(ProcessTableFull,
			"this node has %d processes, as many as it may have: end some, or start it with a higher --max-processes", t.max)
	}
	parent, ok := t.live[e.Parent]
	if !ok || !parent.State.Live() {
		return Entry{}, errorf(ProcessNotFound, "parent %s: no such process runs on this node", e.Parent)
	}
	e.Role = cmp.Or(e.Role, RoleCustom)
	e.App = cmp.Or(e.App, parent.App) // what a part of an app spawns is part of it too
	if err := parent.maySpawn(e.Role, t.children[e.Parent]); err != nil {
		return Entry{}, err
	}
	ceiling := parent.ceiling()
	switch {
	case caps == nil:
		e.Capabilities = DefaultCapabilities().Capped(ceiling)
	default:
		if err := caps.Limits.Validate(); err != nil {
			return Entry{}, err
		}
		if err := caps.Within(ceiling); err != nil {
			return Entry{}, err
		}
		e.Capabilities = *caps
	}
	t.spawned++
	return *t.add(e, Starting, now), nil
}

// Adopt adds a process that something else on the node has admitted and bounds: a run or a
// service. It is Running at once.
func (t *Table) Adopt(e Entry, now time.Time) (Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.live) >= MostProcesses {
		return Entry{}, errorf(ProcessTableFull, "this node has %d processes, as many as a table holds", MostProcesses)
	}
	e.Role = cmp.Or(e.Role, RoleWorker)
	return *t.add(e, Running, now), nil
}

func (t *Table) add(e Entry, s State, now time.Time) *Entry {
	e.PID, e.State, e.StartedAt = t.next, s, now
	t.next++
	t.begun++
	t.live[e.PID] = &e
	t.children[e.Parent]++
	return &e
}

// counted reports whether an entry counts against the table's bound.
func (e Entry) counted() bool {
	return e.Kind != KindKernel && e.Kind != KindRun && e.Kind != KindService
}

// Set changes the state of a process. Use Exit to end it.
func (t *Table) Set(pid PID, s State) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(pid)
	if err != nil {
		return err
	}
	if s == Exited {
		return errorf(InvalidStateTransition, "process %s ends with an exit code alone", pid)
	}
	e.State, err = e.State.Next(s)
	return err
}

// Change lets f change the entry of a living process; state, PID, parent and exit stay.
func (t *Table) Change(pid PID, f func(*Entry)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(pid)
	if err != nil {
		return err
	}
	was := *e
	f(e)
	e.PID, e.Parent, e.State, e.Kind, e.Exit = was.PID, was.Parent, was.State, was.Kind, was.Exit
	return nil
}

// Used notes what a process has used of memory, processor time and disk, as measured from
// outside.
func (t *Table) Used(pid PID, u Use) {
	t.use(pid, func(own *Use) {
		own.MemoryBytes, own.CPUTimeMs, own.DiskBytes = u.MemoryBytes, u.CPUTimeMs, u.DiskBytes
	})
}

// Charge notes that a process is about to use n more of a resource that is counted: tool
// calls, messages, money. It refuses with ResourceLimitExceeded, and notes nothing, if that
// would pass the limit.
func (t *Table) Charge(pid PID, r Resource, n int64) (err error) {
	charged := t.use(pid, func(own *Use) {
		limits := t.live[pid].Capabilities.Limits
		if most, used := limits.of(r), own.Of(r); most > 0 && used+n > most {
			err = errorf(ResourceLimitExceeded, "process %s has used %d of %d: %s", pid, used, most, r)
			return
		}
		*own.at(r) += n
	})
	if !charged {
		return errorf(ProcessNotFound, "process %s: no such process runs on this node", pid)
	}
	return err
}

func (t *Table) use(pid PID, change func(*Use)) bool {
	t.mu.Lock()
	e, ok := t.live[pid]
	if !ok {
		t.mu.Unlock()
		return false
	}
	before := e.Capabilities.Limits.Check(e.Use)
	change(&e.Use)
	var news []Finding
	for _, f := range e.Capabilities.Limits.Check(e.Use) {
		if !slices.ContainsFunc(before, func(b Finding) bool { return b.Resource == f.Resource && b.Level >= f.Level }) {
			news = append(news, f)
		}
	}
	now := *e
	t.mu.Unlock()
	if len(news) > 0 && t.found != nil {
		t.found(now, news)
	}
	return true
}

// Exit ends a process, and returns the signals to those that are linked to it or watch it.
func (t *Table) Exit(pid PID, x Exit, now time.Time) ([]Signal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(pid)
	if err != nil {
		return nil, err
	}
	if pid == KernelPID {
		return nil, errorf(InvalidStateTransition, "process 0 is the node itself: stop the node to end it")
	}
	e.State, e.EndedAt, e.Exit = Exited, now, &x
	if x.Reason == Crash {
		t.crashed++
	}
	delete(t.live, pid)
	if t.children[e.Parent]--; t.children[e.Parent] == 0 {
		delete(t.children, e.Parent)
	}
	if e.counted() {
		t.spawned--
	}
	if len(t.exits) == KeptExits {
		delete(t.ended, t.exits[0])
		t.exits = t.exits[1:]
	}
	t.exits, t.ended[pid] = append(t.exits, pid), e
	return t.signals(pid, x), nil
}

// find returns the entry of a living process.
func (t *Table) find(pid PID) (*Entry, error) {
	if e, ok := t.live[pid]; ok {
		return e, nil
	}
	if e, ok := t.ended[pid]; ok {
		return nil, errorf(InvalidStateTransition, "process %s has ended, with exit code %d", pid, e.Exit.Code)
	}
	return nil, errorf(ProcessNotFound, "process %s: there is none on this node", pid)
}

// Find returns a process, also one that has ended lately.
func (t *Table) Find(pid PID) (Entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e, ok := t.live[pid]; ok {
		return *e, true
	}
	if e, ok := t.ended[pid]; ok {
		return *e, true
	}
	return Entry{}, false
}

// Receives reports whether a process lives and may have messages.
func (t *Table) Receives(pid PID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.live[pid]
	return ok && e.Capabilities.CanIPC
}

// Select returns the living processes that match, by PID. match does not call the table.
func (t *Table) Select(match func(*Entry) bool) (out []Entry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.live {
		if match(e) {
			out = append(out, *e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// List returns the living processes by PID, and those that ended lately if all is set.
func (t *Table) List(all bool) []Entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]Entry, 0, len(t.live))
	for _, e := range t.live {
		out = append(out, *e)
	}
	if all {
		for _, e := range t.ended {
			out = append(out, *e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// Figures count the processes of a table, without the node itself.
type Figures struct {
	Begun, Crashed uint64 // since the start
	Live, Services int    // now
}

// Figures returns how many processes there are and were.
func (t *Table) Figures() Figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := Figures{Begun: t.begun, Crashed: t.crashed, Live: len(t.live) - 1}
	for _, e := range t.live {
		if e.Role == RoleService || e.Kind == KindService {
			f.Services++
		}
	}
	return f
}

// Next returns the PID that the next process gets.
func (t *Table) Next() PID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.next
}
