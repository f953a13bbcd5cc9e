package sim

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger"
)

// A world is the company that clients and agents work in, and what they did.
//
// The board's clients check some issues out for some agents and give them back;
// what they see of that is a history for Porcupine. Other agents work by runs on
// issues of their own: these come to hold locks under runs, to end without
// giving them back, to be cut off, and to write on when they may not.
type world struct {
	m       *Mesh
	ctx     context.Context // of everything that runs do
	company ledger.CompanyID
	owners  []string // agents for whom the board checks out
	issues  []string // that it checks out
	workers []worker // agents with runs
	jobs    []string // issues that those work on

	wg    sync.WaitGroup // what runs leave behind
	start time.Time

	mu      sync.Mutex // guards what follows
	last    time.Duration
	history []porcupine.Operation
	known   int       // operations whose outcome a client learned
	unknown int       // operations whose outcome it did not
	landed  []receipt // what was acknowledged as carried out
	runs    int       // that an adapter began
}

// A worker is an agent with a key.
type worker struct{ agent, key string }

// A receipt is an acknowledgement: the command has to be in the chain.
type receipt struct {
	ledger.Receipt
	kind    string
	payload ledger.Hash
	at      time.Duration
}

// found makes the company in which all happens.
func (w *world) found(ctx context.Context) error {
	w.ctx, w.company, w.start = ctx, ledger.CompanyID(uuid.NewString()), time.Now()
	if err := w.must(ctx, "company.create", entity.SaveCompany{ID: w.company, Name: new("Sim")}); err != nil {
		return err
	}
	agent := func(name string) (string, error) {
		id := uuid.NewString()
		return id, w.must(ctx, "agent.create", entity.SaveAgent{ID: id, Name: &name, AdapterType: new("process"),
			AdapterConfig: json.RawMessage(`{"command":"work"}`)})
	}
	for i := range 4 {
		id, err := agent(fmt.Sprint("Owner ", i))
		if err != nil {
			return err
		}
		w.owners = append(w.owners, id)
	}
	for i := range 3 {
		id, err := agent(fmt.Sprint("Worker ", i))
		if err != nil {
			return err
		}
		hash := sha256.Sum256([]byte(id))
		w.workers = append(w.workers, worker{id, uuid.NewString()})
		err = w.must(ctx, "agent_key.create", people.CreateKey{ID: w.workers[i].key, Agent: id, Name: "sim",
			Hash: hex.EncodeToString(hash[:])})
		if err != nil {
			return err
		}
	}
	for i := range 12 {
		id := uuid.NewString()
		if err := w.must(ctx, "issue.create", company.CreateIssue{ID: id, Title: fmt.Sprint("Issue ", i),
			Status: "todo"}); err != nil {
			return err
		}
		if i < 8 {
			w.issues = append(w.issues, id)
		} else {
			w.jobs = append(w.jobs, id)
		}
	}
	return nil
}

// now is the time since the start; no two moments are the same, as virtual ones
// are when little happens in between.
func (w *world) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = max(w.last+1, time.Since(w.start))
	return w.last
}

func (w *world) command(kind string, payload any) ledger.Command {
	c := ledger.Command{Kind: kind, Company: w.company, Payload: ledger.Marshal(payload),
		Actor: ledger.Actor{Type: "user", ID: "local-board"}, Credential: ledger.Credential{Kind: "local"}}
	rand.Read(c.Salt[:])
	return c
}

// under is a command of an agent, in a run.
func (w *world) under(by worker, run, kind string, payload any) ledger.Command {
	c := w.command(kind, payload)
	c.Actor, c.Credential, c.Run = ledger.Actor{Type: "agent", ID: by.agent}, ledger.Credential{Kind: "agent_key",
		ID: by.key}, run
	return c
}

func (w *world) must(ctx context.Context, kind string, payload any) error {
	r, err := w.m.Peers[0].Up().Submit(ctx, w.command(kind, payload))
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// patience is how long a client waits for an outcome: longer than an election,
// shorter than many partitions.
const patience = 4 * time.Second

// errUnsaid is the outcome of a command of which its client knows that it was
// not carried out.
var errUnsaid = errors.New("not carried out")

// submit carries out a command and keeps what was acknowledged. Its error is
// errUnsaid when the command certainly did nothing, and another when the client
// did not learn what became of it.
func (w *world) submit(ctx context.Context, l *Life, cmd ledger.Command) (ledger.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := l.Submit(ctx, cmd)
	if l.Dead() {
		err = fmt.Errorf("%w: the node crashed", consensus.ErrOutcomeUnknown)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, consensus.ErrOutcomeUnknown):
		w.unknown++
		return r, err
	case err != nil:
		return r, errUnsaid
	}
	w.known++
	if r.Refusal == nil {
		w.landed = append(w.landed, receipt{r, cmd.Kind, sha256.Sum256(append(cmd.Salt[:], cmd.Payload...)),
			time.Since(w.start)})
	}
	return r, nil
}

// acknowledged is how many operations had an outcome that their client learned.
func (w *world) acknowledged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known
}

// anyone picks a machine that is up, nil when it picked one that is not.
func (w *world) anyone(rng *mrand.Rand) *Life { return w.m.Peers[rng.IntN(len(w.m.Peers))].Up() }

// client operates on random issues through random nodes until it is told to stop.
func (w *world) client(ctx context.Context, id int, rng *mrand.Rand) {
	for ctx.Err() == nil {
		if l := w.anyone(rng); l != nil {
			w.operate(id, l, input{
				kind:  []string{"checkout", "checkout", "release", "release", "read"}[rng.IntN(5)],
				issue: w.issues[rng.IntN(len(w.issues))], agent: w.owners[rng.IntN(len(w.owners))],
			})
		}
		if sleep(ctx, time.Duration(rng.IntN(250))*time.Millisecond) != nil {
			return
		}
	}
}

// operate does one operation of a client and notes what the client saw.
func (w *world) operate(client int, l *Life, in input) output {
	call := w.now()
	var out output
	switch in.kind {
	case "checkout":
		out = w.ask(l, "issue.checkout", company.CheckOutIssue{Issue: in.issue, Agent: in.agent,
			Expected: []entity.IssueStatus{"todo", "backlog", "blocked", "in_review"}})
	case "release":
		out = w.ask(l, "issue.release", company.ReleaseIssue{Issue: in.issue})
	case "read":
		out = w.read(l, in.issue)
	}
	ret := w.now()
	switch {
	case out.kind == "nothing", out.kind == "unknown" && in.kind == "read":
		return out // told nothing, changed nothing
	case out.kind == "unknown":
		ret = 1 << 60 // open: it may still take effect
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call),
		Return: int64(ret)})
	return out
}

func (w *world) ask(l *Life, kind string, payload any) output {
	r, err := w.submit(w.ctx, l, w.command(kind, payload))
	switch {
	case errors.Is(err, errUnsaid):
		return output{kind: "nothing"}
	case err != nil:
		return output{kind: "unknown"}
	case r.Refusal == nil:
		return output{kind: "ok"}
	}
	var holder struct {
		Assignee string `json:"assigneeAgentId"`
	}
	_ = json.Unmarshal(r.Refusal.Detail, &holder)
	return output{kind: "conflict", owner: holder.Assignee}
}

// read is a strong read of who has an issue.
func (w *world) read(l *Life, issue string) (out output) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	out.kind = "unknown"
	_, err := l.View(ctx, ledger.Read{Mode: ledger.ReadStrong}, func(tx *ledger.Tx) error {
		if i, ok := entity.IssueOf(tx, w.company, issue); ok {
			out = output{"ok", i.Assignee}
		}
		return nil
	})
	if err != nil || l.Dead() {
		return output{kind: "unknown"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known++
	return out
}

// wake asks for a run of a worker.
func (w *world) wake(l *Life, by worker) (run string, err error) {
	run = uuid.NewString()
	r, err := w.submit(w.ctx, l, w.command("agent.wake", entity.Wake{Agent: by.agent, Source: entity.WakeOnDemand,
		TriggerDetail: "manual", Wakeup: uuid.NewString(), Run: run}))
	if err == nil {
		err = r.Err()
	}
	return run, err
}

// waker wakes workers until it is told to stop, so that runs are always about.
func (w *world) waker(ctx context.Context, rng *mrand.Rand) {
	for sleep(ctx, time.Duration(200+rng.IntN(800))*time.Millisecond) == nil {
		if l := w.anyone(rng); l != nil {
			_, _ = w.wake(l, w.workers[rng.IntN(len(w.workers))])
		}
	}
}

// An agents is the adapter that carries out the runs placed on one node.
type agents struct {
	w     *world
	mu    sync.Mutex // guards what follows
	stops map[string]context.CancelFunc
	rng   *mrand.Rand
}

func newAgents(w *world, seed uint64) *agents {
	return &agents{w: w, stops: map[string]context.CancelFunc{}, rng: mrand.New(mrand.NewPCG(seed, 0xa9e))}
}

func (a *agents) Status(string) entity.Phase { return entity.PhaseExecute }

func (a *agents) Cancel(run, _ string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stop := a.stops[run]; stop != nil {
		stop()
	}
}

// Invoke plays an agent: it checks issues out under its run, writes to them,
// gives back some, and ends. Now and then something of it goes on behind its
// back, as a child that nobody could kill, and writes again.
func (a *agents) Invoke(ctx context.Context, inv company.Invocation) company.Outcome {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.mu.Lock()
	a.stops[inv.Run.ID] = stop
	rng := mrand.New(mrand.NewPCG(a.rng.Uint64(), 1))
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.stops, inv.Run.ID)
	}()
	w := a.w
	w.mu.Lock()
	w.runs++
	w.mu.Unlock()
	me := w.workerOf(inv.Run.Agent)
	for range 1 + rng.IntN(2) {
		job := w.jobs[rng.IntN(len(w.jobs))]
		if l := w.anyone(rng); l != nil {
			r, err := w.submit(ctx, l, w.under(me, inv.Run.ID, "issue.checkout", company.CheckOutIssue{Issue: job,
				Agent:    me.agent,
				Expected: []entity.IssueStatus{"todo", "backlog", "blocked", "in_review"}}))
			if err == nil && r.Refusal == nil {
				w.write(ctx, l, me, inv.Run.ID, job)
			}
		}
		if sleep(ctx, time.Duration(rng.IntN(1500))*time.Millisecond) != nil {
			break
		}
		if l := w.anyone(rng); l != nil {
			w.write(ctx, l, me, inv.Run.ID, job)
			if rng.IntN(3) > 0 {
				_, _ = w.submit(ctx, l, w.under(me, inv.Run.ID, "issue.release", company.ReleaseIssue{Issue: job}))
			}
		}
		if rng.IntN(2) == 0 {
			w.haunt(rng.Uint64(), me, inv.Run.ID, job)
		}
	}
	if ctx.Err() != nil {
		return company.Outcome{Status: entity.RunCancelled, ErrorCode: "cancelled", Error: "stopped"}
	}
	return company.Outcome{Status: entity.RunSucceeded}
}

func (w *world) workerOf(agent string) worker {
	for _, k := range w.workers {
		if k.agent == agent {
			return k
		}
	}
	panic("a run of " + agent)
}

func (w *world) write(ctx context.Context, l *Life, by worker, run, job string) {
	title := "Job " + uuid.NewString()
	_, _ = w.submit(ctx, l, w.under(by, run, "issue.update", company.UpdateIssue{Issue: job, Title: &title}))
}

// haunt writes some time later, most likely when the run is over.
func (w *world) haunt(seed uint64, by worker, run, job string) {
	w.wg.Go(func() {
		rng := mrand.New(mrand.NewPCG(seed, 1))
		if sleep(w.ctx, time.Duration(500+rng.IntN(4000))*time.Millisecond) != nil {
			return
		}
		if l := w.anyone(rng); l != nil {
			w.write(w.ctx, l, by, run, job)
		}
	})
}
