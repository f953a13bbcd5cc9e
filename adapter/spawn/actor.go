package spawn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/sandbox"
)

const (
	// handler is what a module exports that is called for each message, see docs/sandbox-abi.md.
	handler = "on_message"
	// mostCalls bounds the handlers that are in a call at once. Most of them wait for answers: the
	// sandbox bounds how many execute. It is what their stacks cost, 20 KiB each.
	mostCalls = 256
	// mostTurn is how many messages one handles before others have their turn.
	mostTurn = 16
	// mostCall bounds one call, what it waits for included.
	mostCall = time.Minute
	// mostWarm and warmBytes bound the instances that stay between calls, and their memories. The
	// others are taken to rest, those first that were called the longest ago: to wake one takes
	// less than 0.1 ms.
	mostWarm  = 64
	warmBytes = 64 << 20
)

// An actor is a module that is called for each message. Between calls it has no stack and no
// goroutine, and before the first it has no instance. Its turn says who may call it: whoever does
// owns instance and rested.
type actor struct {
	h      *Host
	l      *living
	spec   kernel.Spec
	module *sandbox.Module
	log    Log
	turn   kernel.Turn[*actor]
	meter  sandbox.Meter

	instance *sandbox.Instance
	rested   *sandbox.Rested
	spent    atomic.Int64 // fuel of the calls that are over
	memory   atomic.Int64 // linear, after the last call

	mu     sync.Mutex // guards what follows
	cancel context.CancelFunc
	killed bool
	exit   *kernel.Exit
	over   func(kernel.Exit) // nil: nobody waits for its end yet
}

// watched has over called when the actor has ended, and begins to call it.
func (a *actor) watched(over func(kernel.Exit)) {
	a.mu.Lock()
	a.over = over
	x := a.exit
	a.mu.Unlock()
	if x != nil {
		over(*x)
		return
	}
	if a.h.cfg.Messages != nil {
		_ = a.h.cfg.Messages.Attend(a.l.pid, a.wake) // one that may not receive is never called
	}
}

// wake is called when the actor may have a message. It neither waits nor locks the host.
func (a *actor) wake() {
	if a.h.rota.Wake(&a.turn) {
		a.h.callers.Go(a.h.callInTurn)
	}
}

// callInTurn calls those whose turn it is until there are none.
func (h *Host) callInTurn() {
	for t := h.rota.Next(); t != nil; t = h.rota.Next() {
		t.Of.handleSome()
		h.release(t)
		h.cool()
	}
}

// release ends the turn of one that was called or taken to rest.
func (h *Host) release(t *kernel.Turn[*actor]) {
	if !t.Of.warm() {
		h.warm.drop(t.Of)
	} else {
		h.warm.put(t.Of)
	}
	ended, begin := h.rota.Done(t)
	if ended {
		t.Of.clear()
	}
	if begin {
		h.callers.Go(h.callInTurn)
	}
}

// cool takes to rest what is more than stays.
func (h *Host) cool() {
	for a := h.warm.excess(); a != nil; a = h.warm.excess() {
		if !h.rota.Claim(&a.turn) {
			continue // it is called, and comes back
		}
		if a.instance != nil {
			if s, ok := a.instance.Rest(); ok {
				a.instance, a.rested = nil, s
			}
		}
		restLog(a.log)
		ended, begin := h.rota.Done(&a.turn)
		if ended {
			a.clear()
		}
		if begin {
			h.callers.Go(h.callInTurn)
		}
	}
}

// restLog closes the file of a log until the next write, where the log can do that.
func restLog(l Log) {
	if r, ok := l.(interface{ Rest() }); ok {
		r.Rest()
	}
}

func (a *actor) warm() bool { return a.instance != nil }

// handleSome calls the handler with the next messages.
func (a *actor) handleSome() {
	for range mostTurn {
		if !a.h.rota.Free(&a.turn) {
			return
		}
		body, done, ok := a.h.cfg.Messages.Next(a.l.pid)
		if !ok {
			return
		}
		if x, ended := a.handle(body); ended {
			a.end(x)
			return
		}
		if err := done(); err != nil {
			a.log.Write("system", "[selvage] "+err.Error()+"\n")
		}
	}
	a.h.rota.Wake(&a.turn) // there may be more: after the others
}

// handle calls the handler once.
func (a *actor) handle(body []byte) (x kernel.Exit, ended bool) {
	ctx, cancel := context.WithCancel(a.h.ctx)
	defer cancel()
	a.mu.Lock()
	a.cancel = cancel
	killed := a.killed
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.cancel = nil
		a.mu.Unlock()
	}()
	if killed {
		return wasKilled, true
	}
	e, _ := a.h.table.Find(a.l.pid)
	fuel := a.fuel(e.Capabilities.Limits)
	if a.instance == nil {
		if r := a.begin(ctx, e, fuel); r.Error != nil {
			return a.failed(r), true
		}
	}
	r, ended := a.instance.Handle(ctx, handler, body, a.fuel(e.Capabilities.Limits), mostCall)
	a.spent.Add(r.FuelUsed)
	a.memory.Store(a.instance.Size())
	if !ended {
		return kernel.Exit{}, false
	}
	return a.failed(r), true
}

// failed notes how a call ended that ended the program.
func (a *actor) failed(r sandbox.Result) kernel.Exit {
	if r.Error != nil {
		a.log.Write("system", "[selvage] "+r.Error.Error()+"\n")
	}
	return wasmExit(r)
}

// fuel is what is left of the actor's processor time.
func (a *actor) fuel(l kernel.Limits) int64 {
	if l.CPUTimeMs <= 0 || a.spec.OnLimit == kernel.SuspendOnLimit { // which the kernel sees to
		return sandbox.MaxFuel
	}
	return min(l.CPUTimeMs, sandbox.MaxFuel/fuelPerMs)*fuelPerMs - a.spent.Load()
}

// begin makes the instance: a new one, or from what was kept.
func (a *actor) begin(ctx context.Context, e kernel.Entry, fuel int64) sandbox.Result {
	c := a.h.callOf(a.spec, e, a.log)
	c.Meter, c.Limits.Fuel, c.Limits.Time = &a.meter, max(fuel, 1), mostCall
	var err error
	if a.rested != nil {
		a.instance, err = a.module.Wake(ctx, c, a.rested)
		a.rested = nil
	} else if a.instance, err = a.module.Start(ctx, c); err == nil {
		a.spent.Add(a.instance.Used())
	}
	if err != nil {
		a.instance = nil
		if why, ok := errors.AsType[*sandbox.Error](err); ok {
			return sandbox.Result{Error: why}
		}
		return sandbox.Result{Error: &sandbox.Error{Code: sandbox.RuntimeUnavailable, Message: err.Error()}}
	}
	return sandbox.Result{}
}

// end says that the actor ends, from within its turn: it is cleared up at the end of that.
func (a *actor) end(x kernel.Exit) {
	a.mu.Lock()
	if a.exit == nil {
		a.exit = &x
	}
	a.mu.Unlock()
	a.h.rota.End(&a.turn)
}

// clear takes an actor away that is not called any more, and tells how it ended.
func (a *actor) clear() {
	if a.instance != nil {
		_ = a.instance.Close()
	}
	a.instance, a.rested = nil, nil
	a.h.warm.drop(a)
	_ = a.module.Close()
	a.log.End()
	a.mu.Lock()
	if a.exit == nil {
		a.exit = &wasKilled
	}
	x, over := *a.exit, a.over
	a.mu.Unlock()
	if over != nil {
		over(x)
	}
}

var wasKilled = kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed, Message: "it was killed"}

// kill ends the actor. The host may be locked.
func (a *actor) kill() {
	a.mu.Lock()
	a.killed = true
	cancel := a.cancel
	a.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if busy := a.h.rota.End(&a.turn); !busy {
		a.h.wg.Go(a.clear)
	}
}

func (a *actor) wait() kernel.Exit       { panic("an actor is watched, nobody waits for it") }
func (a *actor) terminate(time.Duration) { a.kill() } // a module has no signals
func (a *actor) renew(time.Duration)     {}           // see holdToLease
func (a *actor) machine() int            { return 0 }

func (a *actor) signal(name string) error {
	switch name {
	case "SIGSTOP":
		a.h.rota.Hold(&a.turn)
		a.meter.Suspend()
	case "SIGCONT":
		a.meter.Resume()
		if a.h.rota.Release(&a.turn) {
			a.h.callers.Go(a.h.callInTurn)
		}
	default:
		return kernel.Errorf(kernel.BadRequest, "a module takes TERM, KILL, STOP and CONT, not %s", name)
	}
	return nil
}

func (a *actor) use() (kernel.Use, bool) {
	return kernel.Use{MemoryBytes: max(a.memory.Load(), a.meter.Memory()),
		CPUTimeMs: (a.spent.Load() + a.meter.Fuel()) / fuelPerMs}, true
}

// warmth is the instances that stay between calls. It is safe for concurrent use.
type warmth struct {
	mu    sync.Mutex // guards what follows
	all   map[*actor]*warmEntry
	order warmEntry // of a ring: the next one was called last
	bytes int64
}

type warmEntry struct {
	a          *actor
	bytes      int64
	prev, next *warmEntry
}

// put notes that an actor has just been called.
func (w *warmth) put(a *actor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(a)
	if w.all == nil {
		w.all = map[*actor]*warmEntry{}
		w.order.next, w.order.prev = &w.order, &w.order
	}
	e := &warmEntry{a: a, bytes: a.memory.Load(), prev: &w.order, next: w.order.next}
	e.next.prev, w.order.next = e, e
	w.all[a] = e
	w.bytes += e.bytes
}

// drop forgets an actor.
func (w *warmth) drop(a *actor) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(a)
}

func (w *warmth) remove(a *actor) {
	if e := w.all[a]; e != nil {
		e.prev.next, e.next.prev = e.next, e.prev
		delete(w.all, a)
		w.bytes -= e.bytes
	}
}

// excess takes out and returns the actor that was called the longest ago, if there are more than
// stay; nil: there are not.
func (w *warmth) excess() *actor {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) <= mostWarm && (w.bytes <= warmBytes || len(w.all) <= 1) {
		return nil
	}
	a := w.order.prev.a
	w.remove(a)
	return a
}
