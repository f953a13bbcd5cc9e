package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// WorkerConfig is what a [Worker] needs. All functions except SessionOver are required.
type WorkerConfig struct {
	Node Node
	Self identity.NodeID
	// Session returns the session under which this node submits, 0 when it has none.
	Session func() uint64
	// SessionOver is called when the leader says that a session is over, so that the node
	// opens a new one. Optional.
	SessionOver func(session uint64)
	// KeepAlive sends the beat to the leader ([Leader.KeepAlive]) and returns the length of
	// the granted lease; 0 is the usual length. errors.Is must find
	// ErrSessionOver in its error.
	KeepAlive func(context.Context, Beat) (time.Duration, error)
	Adapters  map[string]Adapter // by type, such as "process"
	Slots     int                // runs at the same time; default DefaultSlots, at most MaxSlots
	Facts     func() Facts       // called for each beat, so it must be cheap; nil: unknown
	// OpenLog opens the log of a run. LogRef names it for readers.
	OpenLog func(ref string) (Log, error)
	LogRef  func(company ledger.CompanyID, agent, run string) string
	// Folder creates and prepares the workspace of a run, and returns a note for the log.
	// nil: runs work in the directories of their agents. Its error fails the run. ctx ends
	// when the run is cancelled. The invocation has no Folder yet.
	Folder func(ctx context.Context, inv company.Invocation) (folder *entity.RunFolder, note string, err error)
	// Secrets returns adapterConfig with secret references replaced by their values, and
	// these values. An error names what is missing, never a value, and the run does not
	// begin. nil: there are no secrets.
	Secrets func(ctx context.Context, run entity.Run, config json.RawMessage) (resolved json.RawMessage,
		values []string, err error)
	// Price returns the cost of a run that reported usage only; ok is false when there is
	// no price. nil: there are no prices.
	Price func(tx *ledger.Tx, company ledger.CompanyID, told entity.RunCost) (cost core.Money, ok bool)
	// Paid reports whether this node's gateway paid for calls of the run, and forgets it.
	// It is called after the run has ended. nil: there is no gateway.
	Paid func(run string) bool
	// Refused reports whether a budget refused a call of the run at this node's gateway. If
	// such a run failed, it failed for lack of money. It is called once a run.
	Refused func(run string) bool
	// Decisions closes the log of what the gate permitted during a run, and describes it; nil: there is none. It is called
	// when every process of the run is gone.
	Decisions func(run entity.Run) *entity.DecisionLog
	// Skills returns the skills for a run of an agent; nil: runs get no skills.
	Skills func(tx *ledger.Tx, company ledger.CompanyID, agent string) []company.RunSkill
	// Memories returns what the company remembers about a run's issue, quoted; nil: runs are
	// told nothing of it.
	Memories func(ctx context.Context, r entity.Run) string
	// Track is told of a run that its adapter is about to execute. It returns what is called
	// with the ID of the run's process, if it has one, and with its end. nil: nobody is told.
	Track func(inv company.Invocation) (began func(pid int64), ended func(company.Outcome))

	Lease  time.Duration    // the usual length; default DefaultLease; equal on all nodes of a mesh
	Margin time.Duration    // see limits.go; default DefaultMargin, less than Lease
	Clock  Clock            // the boot-time clock
	Wall   func() time.Time // this node's clock, by which leases are shown; default time.Now
	// Late returns the node's delay at the moment; leases grow with it. Why returns why
	// the node did not run since a reading of the clock, "" when it ran. nil: no delay.
	Late   func() time.Duration
	Why    func(since time.Duration) string
	Logger *slog.Logger // default: discard
}

// Validate reports every problem of the configuration.
func (c WorkerConfig) Validate() error {
	var errs []error
	for name, missing := range map[string]bool{"Node": c.Node == nil, "Session": c.Session == nil,
		"KeepAlive": c.KeepAlive == nil,
		"OpenLog":   c.OpenLog == nil, "LogRef": c.LogRef == nil, "Clock": c.Clock == nil} {
		if missing {
			errs = append(errs, fmt.Errorf("worker: %s is required", name))
		}
	}
	if c.Slots < 0 || c.Slots > MaxSlots {
		errs = append(errs, fmt.Errorf("worker: %d slots, want 1 to %d", c.Slots, MaxSlots))
	}
	if cmp.Or(c.Margin, DefaultMargin) >= cmp.Or(c.Lease, DefaultLease) {
		errs = append(errs, errors.New("worker: the margin must be less than the lease"))
	}
	return errors.Join(errs...)
}

// A Worker executes the runs that are placed on its node. Run's goroutine decides;
// each run has a goroutine of its own.
type Worker struct {
	cfg   WorkerConfig
	wake  *signal
	lease *tenure

	mu       sync.Mutex // guards what follows
	runs     map[string]*work
	draining bool   // takes no new runs
	lapses   uint64 // how often the lease ended under runs
}

// work is one run on this node.
type work struct {
	run     entity.Run // as it was placed
	session uint64
	adapter Adapter
	kill    context.CancelFunc // stops Invoke at once
	lapsed  bool               // the lease ended while it ran
	why     string             // the reason
	back    bool               // returned to the queue because the node drains
	prepare context.CancelFunc // cancels the preparation of its folder; nil before and after
}

// cancel asks a run to end, whatever it is doing.
func (k *work) cancel(why string) {
	if k.prepare != nil {
		k.prepare()
	}
	if k.adapter != nil {
		k.adapter.Cancel(k.run.ID, why)
	}
}

// NewWorker returns a worker that does nothing until [Worker.Run].
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Slots = cmp.Or(cfg.Slots, DefaultSlots)
	cfg.Lease = cmp.Or(cfg.Lease, DefaultLease)
	cfg.Margin = cmp.Or(cfg.Margin, DefaultMargin)
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Worker{cfg: cfg, wake: newSignal(), lease: &tenure{clock: cfg.Clock}, runs: map[string]*work{}}, nil
}

// Running returns the IDs of the runs that run here, sorted.
func (w *Worker) Running() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.runs))
}

// Lapses returns how often this node's lease ended while it had runs.
func (w *Worker) Lapses() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lapses
}

// Holds reports whether this node may act for runs now.
func (w *Worker) Holds() bool { return w.lease.holds(w.cfg.Session()) }

func (w *Worker) beat(session uint64) Beat {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return Beat{Node: w.cfg.Self, Session: session}
	}
	b := Beat{Node: w.cfg.Self, Session: session, Adapters: slices.Sorted(maps.Keys(w.cfg.Adapters)), Slots: w.cfg.Slots}
	if w.cfg.Facts != nil {
		b.Facts = w.cfg.Facts()
	}
	late := w.late()
	b.Late = late.Milliseconds()
	if want := wantedLease(w.cfg.Lease, late, w.lease.slow()); want > w.cfg.Lease {
		b.Want = want.Milliseconds()
	}
	return b
}

// Run works until ctx ends. Then it stops its runs, reports their ends while the lease
// lasts, and returns the error of ctx when no process is left.
func (w *Worker) Run(ctx context.Context) error {
	// Runs and their last reports continue for a moment after ctx. The lease is renewed
	// until they are done.
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	var runs, rest sync.WaitGroup
	defer rest.Wait()
	defer stop()
	rest.Go(func() { w.keepLease(last) })
	rest.Go(func() {
		follow(ctx, w.cfg.Node, w.cfg.Logger, w.wake.set, func(ledger.Entry) { w.wake.set() })
	})
	for w.wake.wait(ctx, untilLook()) {
		w.enforce()
		w.look(ctx, last, &runs)
	}
	defer time.AfterFunc(min(stopWait, w.cfg.Lease), stop).Stop()
	w.drain(last)
	runs.Wait()
	return ctx.Err()
}

// drain tells the leader to place no more runs here, so that what stops now does not
// come back, and stops all runs.
func (w *Worker) drain(ctx context.Context) {
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	if session := w.cfg.Session(); session != 0 {
		ctx, cancel := context.WithTimeout(ctx, w.cfg.Lease/keepAliveDivisor)
		_, _ = w.cfg.KeepAlive(ctx, w.beat(session)) // optional: without it the lease expires
		cancel()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.runs {
		k.kill()
	}
}

// enforce stops every run for which this node may no longer act.
func (w *Worker) enforce() {
	session := w.cfg.Session()
	w.mu.Lock()
	defer w.mu.Unlock()
	lapsed := false
	for _, k := range w.runs {
		if k.session != session || !w.lease.holds(k.session) {
			if !k.lapsed {
				lapsed = true
				k.why = w.lapseReason()
				w.cfg.Logger.Warn("lease ended; stopping run", "run", k.run.ID, "reason", k.why)
			}
			k.lapsed = true
			k.kill()
		}
	}
	if lapsed {
		w.lapses++
	}
}

// look compares the runs placed on this node with the runs that run here.
func (w *Worker) look(ctx, last context.Context, runs *sync.WaitGroup) {
	session := w.cfg.Session()
	if !w.lease.holds(session) {
		return
	}
	var placed []entity.Run
	drain := false
	err := view(ctx, w.cfg.Node, func(tx *ledger.Tx) error {
		placed = entity.RunsOfSession(tx, session)
		d, _ := company.DutyOf(tx, string(w.cfg.Self))
		drain = d.Drain
		return nil
	})
	if err != nil {
		w.cfg.Logger.Debug("placed runs can not be read", "error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, k := range w.runs {
		if !slices.ContainsFunc(placed, func(r entity.Run) bool { return r.ID == id }) {
			k.cancel("the run is gone") // its company was deleted, or it was closed
		}
	}
	for _, r := range placed {
		k, here := w.runs[r.ID]
		switch {
		case here && !r.Status.Live():
			// Repeated at every look, because the run may not have begun at the first.
			k.cancel(string(r.Error))
		case here:
		case len(w.runs) >= w.cfg.Slots && r.Status == entity.RunQueued && !drain:
			// No free slot: the run waits.
		default:
			ctx, kill := context.WithCancel(last)
			k := &work{run: r, session: session, adapter: w.cfg.Adapters[r.AdapterType], kill: kill, back: drain &&
				r.Status == entity.RunQueued}
			w.runs[r.ID] = k
			runs.Go(func() {
				defer func() {
					kill()
					w.mu.Lock()
					delete(w.runs, r.ID)
					w.mu.Unlock()
					w.wake.set()
				}()
				w.carryOut(ctx, last, k)
			})
		}
	}
}

// submit submits a command about a run. It retries while the outcome is unknown and
// the run's session is this node's.
func (w *Worker) submit(ctx context.Context, k *work, kind string, payload any) (ledger.Receipt, error) {
	cmd := nodeCommand(w.cfg.Self, kind, k.run.Company, payload)
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		attempt, cancel := context.WithTimeout(ctx, submitWait)
		r, err := w.cfg.Node.Submit(attempt, cmd)
		cancel()
		if err == nil {
			return r, nil
		}
		if s := w.cfg.Session(); s != k.session && s != 0 {
			return ledger.Receipt{}, ErrSessionOver
		}
		select {
		case <-ctx.Done():
			return ledger.Receipt{}, err
		case <-time.After(pause):
		}
	}
}

// carryOut executes one run from start to last report. ctx ends when the run must stop
// at once, last when reports are no longer accepted.
func (w *Worker) carryOut(ctx, last context.Context, k *work) {
	log := w.cfg.Logger.With("run", k.run.ID, "agent", k.run.Agent)
	if k.run.Status != entity.RunQueued {
		// The run was ended before it began here, or this worker lost track of it.
		w.finish(last, k, company.Finish{Run: k.run.ID, Outcome: company.Outcome{Status: entity.RunInterrupted,
			ErrorCode: "process_lost", Error: "The node lost track of this run"}})
		return
	}
	if k.back {
		_, _ = w.submit(ctx, k, company.KindRunReturn,
			company.Return{Run: k.run.ID, Reason: "the node drains"}) // an unknown outcome is checked at the next look
		return
	}
	if r, ok := k.adapter.(Readier); ok {
		r.Ready()
	}
	ref := w.cfg.LogRef(k.run.Company, k.run.Agent, k.run.ID)
	now := w.cfg.Wall()
	r, err := w.submit(ctx, k, company.KindRunStart, company.Start{Run: k.run.ID, LogStore: "local_file", LogRef: ref,
		LeaseUntil: core.TimeOf(now.Add(w.lease.end(k.session) - w.cfg.Clock()))})
	if err != nil || r.Refusal != nil {
		return // an unknown start is checked at the next look
	}
	var run entity.Run
	if err := ledger.Unmarshal(r.Value, &run); err != nil {
		log.Error("answer to run.start does not decode", "error", err)
		return
	}
	if run.Status != entity.RunRunning {
		return // the reason for the run no longer holds
	}
	w.mu.Lock()
	k.run, k.adapter = run, w.cfg.Adapters[run.AdapterType]
	w.mu.Unlock()
	out, digest, rest := w.invoke(ctx, last, k, ref, r.Index)
	w.mu.Lock()
	if !k.lapsed && out.Status == entity.RunInterrupted && ctx.Err() == nil {
		k.lapsed, k.why = true, w.lapseReason() // its shim noticed before the node did
	}
	lapsed := k.lapsed
	w.mu.Unlock()
	out.Cost = w.cost(k, out.Cost)
	if w.cfg.Refused != nil && w.cfg.Refused(k.run.ID) && out.Status == entity.RunFailed {
		out.ErrorCode, out.Transient = "budget_refused", false
	}
	switch {
	case lapsed:
		out = interrupted(out, "node_lost", "The node lost its lease and stopped this run: "+k.why)
	case ctx.Err() != nil && out.Status != entity.RunSucceeded:
		out = interrupted(out, "node_stopped", "The node was stopped")
	}
	var decided *entity.DecisionLog
	if w.cfg.Decisions != nil {
		decided = w.cfg.Decisions(run)
	}
	w.finish(last, k, company.Finish{Run: run.ID, Outcome: out, LogBytes: new(digest.Bytes), LogSHA256: digest.SHA256,
		Decisions: decided,
		Output:    outputMark(digest), PID: rest.PID, Group: rest.Group, Events: rest.Events, Place: rest.Place})
}

// reason returns what is wrong with a file, without its name.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// folder prepares the workspace of a run. It returns early when the run is cancelled.
func (w *Worker) folder(ctx context.Context, k *work, inv company.Invocation) (*entity.RunFolder, string, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	set := func(f context.CancelFunc) {
		w.mu.Lock()
		defer w.mu.Unlock()
		k.prepare = f
	}
	set(stop)
	defer set(nil)
	return w.cfg.Folder(ctx, inv)
}

// LeaseLength returns the length of the last granted lease, 0 before the first.
func (w *Worker) LeaseLength() time.Duration { return w.lease.lasts() }

// Authority returns the reading of the clock until which this node may act, 0 when it
// may not. Every process that it started must be gone by then.
func (w *Worker) Authority() time.Duration { return w.lease.end(w.cfg.Session()) }

// tellLoss reports, in the node's next session, why a run was lost whose end could not
// be reported because its session was over. It tries tellLossTries times: the report
// is only a reason.
func (w *Worker) tellLoss(ctx context.Context, k *work) {
	cmd := nodeCommand(w.cfg.Self, company.KindRunLost, k.run.Company, company.TellLoss{Run: k.run.ID, Why: k.why})
	for tries := range tellLossTries {
		attempt, cancel := context.WithTimeout(ctx, submitWait)
		r, err := w.cfg.Node.Submit(attempt, cmd)
		cancel()
		if err == nil && r.Refusal == nil {
			return
		}
		w.cfg.Logger.Debug("why a run was lost could not be told", "run", k.run.ID, "error", err, "refusal", r.Refusal)
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(retryFirst<<tries, retryMost)):
		}
	}
}

func outputMark(d company.LogDigest) *entity.OutputMark {
	if d.Seq == 0 {
		return nil
	}
	return &entity.OutputMark{At: core.TimeOf(d.At), Seq: d.Seq, Stream: d.Stream, Bytes: d.Bytes}
}

func (w *Worker) finish(ctx context.Context, k *work, f company.Finish) {
	r, err := w.submit(ctx, k, company.KindRunFinish, f)
	switch {
	case err != nil:
		w.cfg.Logger.Warn("outcome of run could not be told", "run", k.run.ID, "error", err)
	case r.Refusal != nil:
		w.cfg.Logger.Info("outcome of run came too late", "run", k.run.ID, "reason", r.Refusal.Message)
	}
	if err == nil && r.Refusal == nil {
		return
	}
	if k.why != "" {
		w.tellLoss(ctx, k)
	}
	if f.Outcome.Cost != nil {
		w.tellCost(ctx, k, *f.Outcome.Cost)
	}
}

// invoke calls the adapter for a run, with the state of its start: the start was
// answered before this node had applied it. It returns the outcome, what the log holds,
// and what was not reported yet.
func (w *Worker) invoke(ctx, last context.Context, k *work, ref string, start uint64) (out company.Outcome,
	digest company.LogDigest, rest company.Report) {
	failed := func(code, format string, args ...any) company.Outcome {
		return company.Outcome{Status: entity.RunFailed, ErrorCode: code, Error: fmt.Sprintf(format, args...)}
	}
	log, err := w.cfg.OpenLog(ref)
	if err != nil {
		return failed("adapter_failed", "The run's log could not be opened: %v", err), digest, rest
	}
	defer func() {
		if digest, err = log.Close(); err != nil {
			w.cfg.Logger.Warn("run log is incomplete", "run", k.run.ID, "error", err)
			// A run without a log does not fail, but its events say that the log is incomplete.
			rest.Events = append(rest.Events, company.ReportEvent{Type: "run.log.incomplete", Level: "warn",
				Message: "The run's log is incomplete: " + reason(err)})
		}
	}()
	inv := company.Invocation{Run: k.run, Log: log.Write,
		Authority: func() time.Duration { return w.lease.end(k.session) }}
	_, err = w.cfg.Node.View(ctx, ledger.Read{AtLeast: start}, func(tx *ledger.Tx) error {
		name, config, ok := entity.ConfigForRun(tx, k.run)
		if !ok {
			return errors.New("the agent is gone")
		}
		inv.AgentName, inv.Config = name, config
		inv.Instructions = skill.InstructionsFor(tx, k.run.Company, k.run.Agent)
		if w.cfg.Skills != nil {
			inv.Skills = w.cfg.Skills(tx, k.run.Company, k.run.Agent)
		}
		if s, ok := entity.SessionFor(tx, k.run); ok {
			inv.Resume = &s
		}
		inv.Wake, err = company.WakeOf(tx, k.run, core.TimeOf(w.cfg.Wall()))
		return err
	})
	if err != nil {
		return failed("adapter_failed", "The agent could not be read: %v", err), digest, rest
	}
	if w.cfg.Memories != nil {
		inv.Memories = w.cfg.Memories(ctx, k.run)
	}
	if w.cfg.Secrets != nil {
		if inv.Config, inv.Secrets, err = w.cfg.Secrets(ctx, k.run, inv.Config); err != nil {
			return failed("configuration_incomplete", "configuration incomplete: %v", err), digest, rest
		}
	}
	clean := newCleaner(inv.Secrets, log.Write)
	inv.Log = clean.log
	if w.cfg.Folder != nil && k.run.ExecutionWorkspace != "" {
		var note string
		inv.Folder, note, err = w.folder(ctx, k, inv)
		if err != nil {
			return failed("workspace_failed", "The run's workspace could not be made: %v", err), digest, rest
		}
		if note != "" {
			inv.Log("system", "[selvage] "+note+"\n")
		}
	}
	if k.adapter == nil {
		return failed("adapter_missing", "This node has no adapter %q", k.run.AdapterType), digest, rest
	}
	reports := newReporter(w, k, log)
	began, ended := func(int64) {}, func(company.Outcome) {}
	if w.cfg.Track != nil {
		began, ended = w.cfg.Track(inv)
	}
	inv.Report = func(r company.Report) {
		if r.PID != 0 {
			began(r.PID)
		}
		reports.add(clean.whole.CleanReport(r))
	}
	reporting, stop := context.WithCancel(last)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reports.run(reporting)
	}()
	out = clean.whole.CleanOutcome(k.adapter.Invoke(ctx, inv))
	ended(out)
	clean.flush()
	stop()
	<-done
	rest, _ = reports.take(-1)
	return out, digest, rest
}
