// Package spawn holds the processes of one node: it starts native commands, modules and
// containers, supervises them, ends what passes its limits, and shows runs and services
// beside them.
//
// The rules are those of package kernel. A native command runs under a run shim, a container
// under the engine's client under a shim, so that nothing outlives the node. All have the node's
// lease as their deadline, as runs have: they are gone before the mesh takes them for lost, and
// before the leader starts what was declared (see [Host.Ensure]) elsewhere.
package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// sampleEvery is how often the use of processes is measured, diskSamples how many
	// measurements lie between two looks at their folders, and maxFiles what such a look counts.
	sampleEvery = time.Second
	diskSamples = 5
	maxFiles    = 20_000
	// freshFor is how old a measurement may be that is shown.
	freshFor = 200 * time.Millisecond
	// leaseEvery is how often the deadlines of processes are set to the end of the lease.
	leaseEvery = 250 * time.Millisecond
	// leaseWait is how long a start waits for a lease, leasePoll lies between two looks.
	leaseWait = 15 * time.Second
	leasePoll = 20 * time.Millisecond
	// termGrace is the time between TERM and KILL.
	termGrace = 5 * time.Second
	// closeWait bounds the end of all processes when the node stops: who got KILL is gone within the 2 s. What ends at
	// TERM, also a suspended one, is not waited for longer.
	closeWait = termGrace + 2*time.Second
	// startWait bounds one start: a module is fetched and compiled, an image is there already or
	// is pulled.
	startWait = 2 * time.Minute
	// pidBlock is how many PIDs are reserved on disk at once.
	pidBlock = 1000
	// maxSocketPath is what the address of a socket in a file has room for on all systems, in bytes.
	maxSocketPath = 103
)

// A Log takes the output of one process.
type Log interface {
	Write(stream, text string)
	End()
}

// Config is what a host needs. Node, Dir, Events, Module and OpenLog are required.
type Config struct {
	Node    string // its name, for addresses that processes are told
	Dir     string // absolute; holds a folder for each process. It is created, and old folders are deleted
	Shim    []string
	Environ []string            // the node's environment as "K=V"
	APIURL  string              // told to processes
	API     func() http.Handler // of this node, for what has no network; nil: it has no socket
	Engine  []string            // command line of podman or docker; nil: there is none
	Label   string              // of containers: the node's ID
	Sandbox *sandbox.Engine
	// Module reads a module that the mesh stores.
	Module func(ctx context.Context, sha256 string, size int64) ([]byte, error)
	// OpenLog begins the log of a process.
	OpenLog func(kernel.PID) (Log, error)
	// Authority returns the boot-clock time until which processes may run here, Clock
	// reads that clock.
	Authority func() time.Duration
	Clock     func() time.Duration
	Wall      func() time.Time // this node's clock; default time.Now
	// Weigh asks the gate before a process starts that nobody has just asked for: one that is
	// declared, and each that is started again; an error is why it does not start. nil: all may.
	Weigh    func(kernel.Entry) error
	Messages Messages // of the processes; nil: they send and receive none
	Max      int      // spawned processes at once; default kernel.DefaultMaxProcesses
	Budget   kernel.Budget
	Events   *kernel.EventLog
	Logger   *slog.Logger // default: discard
}

// Messages are what carries messages between processes. Its methods do not wait for the host.
type Messages interface {
	// Token returns the token by which a process is known to the API of its node.
	Token(kernel.PID) string
	// Calls are what a module may ask for, about its messages.
	Calls(kernel.PID) sandbox.Host
	// Attend has wake called when a process may have a message, which [Messages.Next] takes: its
	// envelope in JSON, and done to say that it was handled. wake neither waits nor locks a host.
	Attend(pid kernel.PID, wake func()) error
	Next(kernel.PID) (body []byte, done func() error, ok bool)
	// Ended says that a process reads no more.
	Ended(kernel.PID)
	// Watched tells a process that another one has ended, and Warned that it has used much of what
	// it may.
	Watched(kernel.Signal)
	Warned(kernel.PID, kernel.Finding)
}

// A Host holds the processes of a node. It is safe for concurrent use.
type Host struct {
	cfg   Config
	table *kernel.Table
	ctx   context.Context // ends when the host closes
	stop  context.CancelFunc
	wg    sync.WaitGroup
	busy  chan struct{} // there may be something to watch
	rota  *kernel.Rota[*actor]
	warm  warmth
	// callers are the goroutines that call actors. While there is none to call there is none.
	callers sync.WaitGroup

	mu       sync.Mutex // guards what follows
	closed   bool
	sup      *kernel.Supervisor
	slots    map[string]*slot
	living   map[kernel.PID]*living
	renewed  map[kernel.PID]*living // those under a shim, which holds a deadline
	reserved kernel.PID
	gaveUp   map[string]Fate       // declared replicas that are not started again, by slot
	runs     map[string]kernel.PID // processes of the runs that are adopted
	changed  chan struct{}         // closed at a change of a declared replica, and replaced

	sampling sync.Mutex // held during a measurement
	sampled  time.Time
	samples  int
}

// A slot is what the supervisor starts again: a process and those that replace it.
type slot struct {
	name       string
	spec       kernel.Spec
	declared   string // the ID of a declaration; "": none
	replica    int
	generation uint64
	caps       *kernel.Capabilities // of the first process, for those that replace it
	app        string               // that of the first process
	elevated   *elevated            // nil: caps has no end
	restarts   int
	pid        kernel.PID // of the living process; 0: there is none
	starting   bool
	fate       fate
	last       kernel.Exit
}

// A fate says what happens to a slot when its process has ended.
type fate int

const (
	supervised fate = iota // the supervisor decides
	replaced               // it was stopped to be started again
	removed                // it is not started again
)

// living is a process that has not ended.
type living struct {
	run     string // of an agent; "": it is none
	spent   int64  // micro-cents, of a run
	pid     kernel.PID
	slot    *slot            // nil: it was adopted
	control control          // nil while it starts, and for adopted ones
	end     func(why string) // of adopted ones
	why     string           // why the kernel ends it
	kept    *keptLog         // nil: the log keeps everything
	timeout bool
	dir     string
	disk    int64
	used    kernel.Use    // as the table has it, by Host.sampling
	done    chan struct{} // closed when it has ended
}

// control is a running process of a backend.
type control interface {
	wait() kernel.Exit // until it has ended
	terminate(grace time.Duration)
	kill()
	signal(name string) error
	renew(until time.Duration)
	machine() int // process ID in the operating system, 0: none
	use() (kernel.Use, bool)
}

// Open returns a host with a table of its own.
func Open(cfg Config) (*Host, error) {
	if cfg.Node == "" || !filepath.IsAbs(cfg.Dir) || cfg.Events == nil || cfg.Module == nil || cfg.OpenLog == nil {
		return nil, errors.New("spawn: node, an absolute directory, an event log, modules and logs are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	h := &Host{cfg: cfg, sup: kernel.NewSupervisor(cfg.Budget), slots: map[string]*slot{}, runs: map[string]kernel.PID{},
		living: map[kernel.PID]*living{}, renewed: map[kernel.PID]*living{},
		gaveUp: map[string]Fate{}, changed: make(chan struct{}), busy: make(chan struct{}, 1),
		rota: kernel.NewRota[*actor](mostCalls)}
	first, err := h.firstPID()
	if err != nil {
		return nil, err
	}
	h.reserved = first
	h.table = kernel.NewTable(kernel.TableConfig{Max: cfg.Max, First: first, Found: h.found}, h.cfg.Wall())
	_ = h.table.Change(kernel.KernelPID, func(e *kernel.Entry) { e.Name, e.Machine = "kernel", os.Getpid() }) // it lives
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.wg.Go(h.watch)
	if len(cfg.Engine) > 0 && cfg.Engine[0] != "none" {
		h.wg.Go(func() { h.sweepBoxes(first) })
	}
	return h, nil
}

// Table returns the host's table.
func (h *Host) Table() *kernel.Table { return h.table }

// pidFile has the first PID that no process of this node has had.
const pidFile = "next-pid"

// firstPID reads which PIDs are new, and deletes the folders of earlier processes.
func (h *Host) firstPID() (kernel.PID, error) {
	names, err := os.ReadDir(h.cfg.Dir)
	if err != nil {
		return 0, fmt.Errorf("processes: %w", err)
	}
	first := kernel.PID(1)
	for _, n := range names {
		path := filepath.Join(h.cfg.Dir, n.Name())
		if n.Name() != pidFile {
			if err := os.RemoveAll(path); err != nil {
				return 0, fmt.Errorf("processes: %w", err)
			}
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return 0, fmt.Errorf("processes: %w", err)
		}
		n, err := parsePIDs(b)
		if err != nil { // a node starts fewer processes than one a second
			n = uint64(h.cfg.Wall().Unix())
			h.event(kernel.LevelWarn, kernel.KernelPID, "process.ids", "%s is damaged: process IDs go on at %d", pidFile, n)
		}
		first = max(first, kernel.PID(n))
	}
	return first, nil
}

// formatPIDs writes a number and the checksum by which damage is found.
func formatPIDs(n uint64) []byte {
	text := strconv.FormatUint(n, 10)
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// parsePIDs reads what formatPIDs wrote.
func parsePIDs(b []byte) (uint64, error) {
	text, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseUint(text, 10, 62)
	if err == nil && string(formatPIDs(n)) != string(b) {
		err = errors.New("the checksum is wrong")
	}
	return n, err
}

// reserve makes sure on disk that the next PID is never given again. h.mu is held.
func (h *Host) reserve() error {
	if h.table.Next() < h.reserved {
		return nil
	}
	until := h.table.Next() + pidBlock
	tmp := filepath.Join(h.cfg.Dir, pidFile+".new")
	if err := os.WriteFile(tmp, formatPIDs(uint64(until)), 0o600); err != nil {
		return fmt.Errorf("reserve process IDs: %w", err)
	}
	if err := os.Rename(tmp, filepath.Join(h.cfg.Dir, pidFile)); err != nil {
		return fmt.Errorf("reserve process IDs: %w", err)
	}
	h.reserved = until
	return nil
}

// event writes a line about a process into the kernel's log.
func (h *Host) event(level kernel.EventLevel, pid kernel.PID, kind, format string, args ...any) {
	h.cfg.Events.Add(kernel.Event{Level: level, PID: &pid, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// Spawn starts a process that is not declared: it ends with the node, or with its lease. It returns
// when the process runs, or has failed to start.
func (h *Host) Spawn(ctx context.Context, spec kernel.Spec) (kernel.Entry, error) {
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return kernel.Entry{}, err
	}
	if !h.holds(ctx) {
		return kernel.Entry{}, kernel.Errorf(kernel.SpawnFailed,
			"the node has no lease of the mesh now, and starts nothing until it hears its leader again")
	}
	h.mu.Lock()
	s := &slot{name: "spawned-" + h.table.Next().String(), spec: spec, starting: true}
	l, err := h.enter(s)
	h.mu.Unlock()
	if err != nil {
		return kernel.Entry{}, err
	}
	if err := h.begin(ctx, s, l); err != nil {
		h.mu.Lock()
		s.fate = removed
		h.mu.Unlock()
		h.over(l, kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Crash, Message: err.Error()})
		return kernel.Entry{}, err
	}
	e, _ := h.table.Find(l.pid)
	return e, nil
}

// holds waits until the node has a lease: one that has just begun gets its first.
func (h *Host) holds(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseWait)
	defer cancel()
	for h.cfg.Authority() <= h.cfg.Clock() {
		select {
		case <-time.After(leasePoll):
		case <-ctx.Done():
			return false
		case <-h.ctx.Done():
			return false
		}
	}
	return true
}

// enter gives a slot a new process in the table, and makes the slot known. h.mu is held.
func (h *Host) enter(s *slot) (*living, error) {
	if h.closed {
		return nil, kernel.Errorf(kernel.SpawnFailed, "the node is stopping")
	}
	if err := h.reserve(); err != nil {
		return nil, err
	}
	e := kernel.Entry{Parent: s.spec.Parent, Kind: s.spec.Backend, Name: s.spec.Name, Role: s.spec.Role,
		Group: s.spec.Group, Agency: s.spec.Agency, Company: s.spec.Company, App: cmp.Or(s.app, s.spec.App),
		By: s.spec.By, Declared: s.declared, Replica: s.replica, Restarts: s.restarts}
	caps := s.spec.Capabilities
	if s.caps != nil {
		caps = s.caps
		if p, ok := h.table.Find(e.Parent); !ok || !p.State.Live() {
			e.Parent = kernel.KernelPID // the parent has ended, and gave these capabilities before
		}
	}
	e, err := h.table.Spawn(e, caps, h.cfg.Wall())
	if err != nil {
		return nil, err
	}
	s.caps, s.app, s.pid, s.fate = &e.Capabilities, e.App, e.PID, supervised
	l := &living{pid: e.PID, slot: s, done: make(chan struct{})}
	h.living[e.PID], h.slots[s.name] = l, s
	if s.spec.Backend != kernel.KindWasm {
		l.dir = filepath.Join(h.cfg.Dir, e.PID.String())
		h.renewed[e.PID] = l
	}
	select {
	case h.busy <- struct{}{}:
	default:
	}
	h.sup.Add(kernel.Child{Name: s.name, Group: s.spec.Group, Strategy: s.spec.Restart})
	return l, nil
}

// begin starts the process of a slot that has entered the table.
func (h *Host) begin(ctx context.Context, s *slot, l *living) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	c, err := h.permitted(ctx, s, l)
	h.mu.Lock()
	s.starting = false
	if err == nil && (l.why != "" || h.closed) {
		c.kill() // it was ended while it started
	}
	l.control = c
	h.mu.Unlock()
	if err != nil {
		return err
	}
	_ = h.table.Change(l.pid, func(e *kernel.Entry) { e.Machine = c.machine() })
	_ = h.table.Set(l.pid, kernel.Running)
	h.event(kernel.LevelInfo, l.pid, "process.spawn", "%s %s began", s.spec.Backend, s.spec.Name)
	if s.spec.TimeMs > 0 {
		h.wg.Go(func() { h.endLate(l, time.Duration(s.spec.TimeMs)*time.Millisecond) })
	}
	if a, ok := c.(*actor); ok {
		a.watched(func(x kernel.Exit) { h.over(l, x) })
	} else {
		h.wg.Go(func() { h.over(l, c.wait()) })
	}
	if s.declared != "" {
		h.tell()
	}
	return nil
}

// endLate ends a process whose time is over.
func (h *Host) endLate(l *living, after time.Duration) {
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case <-late.C:
	case <-l.done:
		return
	case <-h.ctx.Done():
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.why == "" {
		l.timeout = true
		h.event(kernel.LevelError, l.pid, "process.limit", "it ran for %s, all the time that it has", after)
	}
	h.terminate(l, fmt.Sprintf("it passed its limit: it ran longer than %s", after))
}

// permitted starts a process if the gate lets it. Where a person has just asked for it, the
// command of that has passed the gate.
func (h *Host) permitted(ctx context.Context, s *slot, l *living) (control, error) {
	if h.cfg.Weigh != nil && (s.declared != "" || s.restarts > 0) {
		e, _ := h.table.Find(l.pid)
		if err := h.cfg.Weigh(e); err != nil {
			h.event(kernel.LevelError, l.pid, "process.denied", "%s does not start: %v", e.Name, err)
			return nil, denied{err}
		}
	}
	return h.start(ctx, s, l)
}

// A denied is the error of a start that the gate does not permit.
type denied struct{ error }

// over is called when a process has ended.
func (h *Host) over(l *living, x kernel.Exit) {
	h.mu.Lock()
	select {
	case <-l.done:
		h.mu.Unlock()
		return
	default:
	}
	if l.why != "" {
		x.Reason, x.Message = kernel.Killed, l.why
		if l.timeout {
			x.Reason = kernel.Timeout
		}
	}
	if l.kept != nil && x.Failed() {
		x.Message = strings.TrimSuffix(cmp.Or(x.Message, fmt.Sprintf("exit code %d", x.Code))+": "+l.kept.tail(), ": ")
	}
	signals, err := h.table.Exit(l.pid, x, h.cfg.Wall())
	if err != nil {
		h.cfg.Logger.Warn("process ended twice", "pid", l.pid, "error", err)
	}
	delete(h.living, l.pid)
	delete(h.renewed, l.pid)
	if l.run != "" && h.runs[l.run] == l.pid {
		delete(h.runs, l.run)
	}
	close(l.done)
	level := kernel.LevelInfo
	if x.Failed() {
		level = kernel.LevelWarn
	}
	h.event(level, l.pid, "process.exit", "ended with exit code %d: %s", x.Code, cmp.Or(x.Message, string(x.Reason)))
	if l.dir != "" {
		if err := os.RemoveAll(l.dir); err != nil {
			h.cfg.Logger.Warn("folder of a process is left", "pid", l.pid, "error", err)
		}
	}
	if s := l.slot; s != nil {
		s.pid, s.last, s.starting = 0, x, false
		switch {
		case h.closed || s.fate == removed:
			h.forget(s)
		case s.fate == supervised:
			h.act(s, h.sup.Ended(s.name, x, h.cfg.Wall()))
		}
	}
	h.mu.Unlock()
	if h.cfg.Messages != nil {
		h.cfg.Messages.Ended(l.pid)
	}
	for _, sig := range signals {
		h.linked(sig)
	}
	h.tell()
}

// forget removes a slot. h.mu is held.
func (h *Host) forget(s *slot) {
	h.sup.Remove(s.name)
	delete(h.slots, s.name)
}

// terminate ends a process, with a grace. h.mu is held.
func (h *Host) terminate(l *living, why string) {
	l.why = cmp.Or(l.why, why)
	switch {
	case l.end != nil:
		go l.end(l.why) // it may wait for this host
	case l.control != nil:
		if e, _ := h.table.Find(l.pid); e.State == kernel.Running || e.State == kernel.Suspended {
			_ = h.table.Set(l.pid, kernel.Stopping)
		}
		l.control.terminate(termGrace)
	}
}

// Close ends all processes and waits for them.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	var ends []<-chan struct{}
	for _, l := range h.living {
		if l.slot != nil {
			h.terminate(l, "the node stops")
			ends = append(ends, l.done)
		}
	}
	h.mu.Unlock()
	late := time.NewTimer(closeWait)
	defer late.Stop()
	for i, end := range ends {
		select {
		case <-end:
		case <-late.C: // the shims kill what is left when this process ends
			h.stop()
			left := 0
			for _, end := range ends[i:] {
				select {
				case <-end:
				default:
					left++
				}
			}
			return fmt.Errorf("%d of %d processes did not end within %s", left, len(ends), closeWait)
		}
	}
	h.stop()
	h.wg.Wait()
	h.callers.Wait()
	return nil
}
