package kernel

import (
	"slices"
	"sync"
	"time"
)

// A Phase is a step of booting.
type Phase string

// The phases of booting, in their order.
const (
	PhaseInit     Phase = "init"
	PhaseConfig   Phase = "config"
	PhaseServices Phase = "services"
	PhaseTree     Phase = "tree"
	PhaseAgents   Phase = "agents"
	PhaseNetwork  Phase = "network"
	PhaseECC      Phase = "ecc"
	PhaseReady    Phase = "ready"
)

// Tag is how a phase is shown, such as "[INIT]".
func (p Phase) Tag() string {
	b := []byte("[" + string(p) + "]")
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// A KernelState is where a node is in its life.
type KernelState string

// The states of a node, in their order; each one is followed by the next alone, except that
// a boot that fails is Halted at once.
const (
	Booting      KernelState = "booting"
	NodeRunning  KernelState = "running"
	ShuttingDown KernelState = "shutting_down"
	Halted       KernelState = "halted"
)

// A Boot is the life of one node: its state, its phase while it boots, and when it began.
// It is safe for concurrent use.
type Boot struct {
	log   *EventLog
	began time.Time

	mu    sync.Mutex // guards what follows
	state KernelState
	phase Phase
	took  time.Duration // of booting, once it is over
}

// NewBoot returns a node that boots from now on, and writes its events to log.
func NewBoot(log *EventLog, now time.Time) *Boot {
	return &Boot{log: log, began: now, state: Booting, phase: PhaseInit}
}

// Enter begins a phase, with an event.
func (b *Boot) Enter(p Phase, message string) {
	b.mu.Lock()
	b.phase = p
	b.mu.Unlock()
	b.log.Add(Event{Level: LevelInfo, Phase: p, Message: message})
}

// Status returns the state, and the phase that was entered last.
func (b *Boot) Status() (KernelState, Phase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.phase
}

// Took returns how long booting took, or has taken so far at now.
func (b *Boot) Took(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Booting {
		return now.Sub(b.began)
	}
	return b.took
}

// Move changes the state at now. A state that is not the next one is refused, and nothing
// changes.
func (b *Boot) Move(to KernelState, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := []KernelState{Booting, NodeRunning, ShuttingDown, Halted}
	at, next := slices.Index(order, b.state), slices.Index(order, to)
	if next != at+1 && !(b.state == Booting && to != NodeRunning && next > at) {
		return errorf(InvalidStateTransition, "a node that is %s can not become %s", b.state, to)
	}
	if b.state == Booting {
		b.took = now.Sub(b.began)
	}
	b.state = to
	b.log.Add(Event{Level: LevelInfo, Phase: b.phase, Message: "the node is " + string(to)})
	return nil
}
