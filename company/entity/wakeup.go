package entity

import (
	"encoding/json"
	"iter"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A WakeSource is why an agent was woken. Persisted: do not rename.
type WakeSource string

const (
	WakeTimer      WakeSource = "timer"      // the agent's interval passed
	WakeAssignment WakeSource = "assignment" // an issue was assigned to it
	WakeOnDemand   WakeSource = "on_demand"  // somebody asked for it
	WakeAutomation WakeSource = "automation" // a rule of the system: retry, follow-up, comment, approval
)

// Valid reports whether s is a source.
func (s WakeSource) Valid() bool {
	return s == WakeTimer || s == WakeAssignment || s == WakeOnDemand || s == WakeAutomation
}

// A WakeStatus is what became of a wakeup request. Persisted: do not rename.
type WakeStatus string

const (
	WakeQueued    WakeStatus = "queued"    // its run waits
	WakeClaimed   WakeStatus = "claimed"   // its run has started
	WakeCoalesced WakeStatus = "coalesced" // merged into a run that was there
	WakeSkipped   WakeStatus = "skipped"   // not acted on, for the reason in Error
	WakeCompleted WakeStatus = "completed"
	WakeFailed    WakeStatus = "failed"
	WakeCancelled WakeStatus = "cancelled"
)

// A Wakeup is a request to wake an agent and what became of it.
type Wakeup struct {
	ID             string           `cbor:"1,keyasint" json:"id"`
	Company        ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Agent          string           `cbor:"3,keyasint" json:"agentId"`
	Source         WakeSource       `cbor:"4,keyasint" json:"source"`
	TriggerDetail  core.NullText    `cbor:"5,keyasint,omitempty" json:"triggerDetail"`
	Reason         core.NullText    `cbor:"6,keyasint,omitempty" json:"reason"`
	Payload        json.RawMessage  `cbor:"7,keyasint,omitempty" json:"payload"`
	Status         WakeStatus       `cbor:"8,keyasint" json:"status"`
	CoalescedCount int              `cbor:"9,keyasint,omitempty" json:"coalescedCount"`
	ActorType      core.NullText    `cbor:"10,keyasint,omitempty" json:"requestedByActorType"`
	ActorID        core.NullText    `cbor:"11,keyasint,omitempty" json:"requestedByActorId"`
	IdempotencyKey core.NullText    `cbor:"12,keyasint,omitempty" json:"idempotencyKey"`
	Run            core.NullText    `cbor:"13,keyasint,omitempty" json:"runId"`
	RequestedAt    core.Time        `cbor:"14,keyasint" json:"requestedAt"`
	ClaimedAt      core.Time        `cbor:"15,keyasint,omitempty" json:"claimedAt"`
	FinishedAt     core.Time        `cbor:"16,keyasint,omitempty" json:"finishedAt"`
	Error          core.NullText    `cbor:"17,keyasint,omitempty" json:"error"`
	CreatedAt      core.Time        `cbor:"18,keyasint" json:"createdAt"`
	UpdatedAt      core.Time        `cbor:"19,keyasint" json:"updatedAt"`
}

// Wakeups holds the requests; WakeupOrderKey finds the n-th of an agent, so that
// the one that falls out of keptWakeups is found without a scan.
var Wakeups = ledger.NewTable[string, Wakeup]("wakeup")

func WakeupOrderKey(company ledger.CompanyID, agent string, n uint64) []byte {
	return ledger.Key("c", string(company), "wakeup-order", agent, ledger.Order(n))
}

// WakeupOnceKey finds the request that was made with an idempotency key.
func WakeupOnceKey(company ledger.CompanyID, agent, key string) []byte {
	return ledger.Key("c", string(company), "wakeup-once", agent, core.DerivedID(key))
}

// A Wake asks to wake an agent; it is the payload of "agent.wake". The IDs of
// the rows that may come of it travel with the command.
type Wake struct {
	Agent          string          `cbor:"1,keyasint"`
	Source         WakeSource      `cbor:"2,keyasint"`
	TriggerDetail  string          `cbor:"3,keyasint,omitempty"` // "manual", "ping", "callback", "system"
	Reason         string          `cbor:"4,keyasint,omitempty"`
	Payload        json.RawMessage `cbor:"5,keyasint,omitempty"` // a JSON object, as the caller gave it
	IdempotencyKey string          `cbor:"6,keyasint,omitempty"`
	Fresh          *bool           `cbor:"7,keyasint,omitempty"` // forceFreshSession, when given
	Issue          string          `cbor:"8,keyasint,omitempty"`
	Task           string          `cbor:"9,keyasint,omitempty"`  // scope, when it is not the issue
	Comment        string          `cbor:"10,keyasint,omitempty"` // the comment that wakes
	Approval       string          `cbor:"11,keyasint,omitempty"`
	ApprovalStatus string          `cbor:"12,keyasint,omitempty"`
	Wakeup         string          `cbor:"13,keyasint"` // UUID of the request
	Run            string          `cbor:"14,keyasint"` // UUID of the run that it may make
	Responsible    string          `cbor:"15,keyasint,omitempty"`
	LinkedIssues   []string        `cbor:"16,keyasint,omitempty"` // of the approval
	From           string          `cbor:"17,keyasint,omitempty"` // what led to it, such as "issue.create"

	Interaction       string `cbor:"18,keyasint,omitempty"` // that was decided
	InteractionKind   string `cbor:"19,keyasint,omitempty"`
	InteractionStatus string `cbor:"20,keyasint,omitempty"`

	AtOnce bool `cbor:"-" json:"-"` // a run that it joins does not wait to be tried again later
	// Stopped is what the run was about that this wake takes the place of. Nobody
	// asked for it anew, so who answers for it stays the same.
	Stopped *RunContext `cbor:"-" json:"-"`
}

// Manual reports whether a person asked for exactly this wake; such a wake
// never merges into another one.
func (w Wake) Manual(by ledger.Actor) bool {
	return by.Type == "user" && w.Source == WakeOnDemand && w.TriggerDetail == "manual"
}

// A WakeResult is what became of a wake: a run for "queued", the run that was
// there for "coalesced", none for "skipped".
type WakeResult struct {
	Status WakeStatus `cbor:"1,keyasint"`
	Run    *Run       `cbor:"2,keyasint,omitempty"`
	Reason string     `cbor:"3,keyasint,omitempty"` // of a skip
}

// AgentClock is what waking remembers of an agent.
type AgentClock struct {
	Tick   uint64    `cbor:"1,keyasint,omitempty"` // last timer tick that fired
	TickAt core.Time `cbor:"2,keyasint,omitempty"` // when it was due
	Wakes  uint64    `cbor:"3,keyasint,omitempty"` // how many requests there were
	Day    string    `cbor:"4,keyasint,omitempty"` // UTC day that DayRuns counts
	Runs   int64     `cbor:"5,keyasint,omitempty"` // runs made on Day
	// Fruitless counts the last runs that came to nothing, one after the other.
	Fruitless int64 `cbor:"6,keyasint,omitempty"`
}

var AgentClocks = ledger.NewTable[string, AgentClock]("agent-clock")

// MaxWakeComments bounds the comments that one run is told of.
const MaxWakeComments = 50

// WakeupsOf returns the kept wakeup requests of an agent, newest first.
func WakeupsOf(tx *ledger.Tx, company ledger.CompanyID, agent string) []Wakeup {
	from := ledger.Key("c", string(company), "wakeup-order", agent, "")
	var out []Wakeup
	for _, id := range tx.Scan(from, ledger.PrefixEnd(from), true) {
		if u, ok := Wakeups.Get(tx, company, string(id)); ok {
			out = append(out, u)
		}
	}
	return out
}

// A Timer is an agent's heartbeat timer as it stands.
type Timer struct {
	Company ledger.CompanyID
	Agent   string
	Seq     uint64 // of the next tick
	DueAt   core.Time
}

// TimerOf returns the timer of an agent; ok is false when it has none. What
// fell due while nobody led fires once: the next tick counts from the last one
// that was due before it fired.
func TimerOf(tx *ledger.Tx, company ledger.CompanyID, agent string) (t Timer, ok bool) {
	a, ok := Wakeable(tx, company, agent)
	if !ok || a.Gone() {
		return Timer{}, false
	}
	p := a.Policy()
	if !p.Enabled || p.IntervalSec <= 0 {
		return Timer{}, false
	}
	clock, _ := AgentClocks.Get(tx, company, agent)
	base := max(clock.TickAt, a.CreatedAt)
	return Timer{company, agent, clock.Tick + 1, base + core.Time(p.IntervalSec*1000)}, true
}

// Timers yields the timers of all companies.
func Timers(tx *ledger.Tx) iter.Seq[Timer] {
	return func(yield func(Timer) bool) {
		for company := range core.CompanyIDs(tx) {
			for agent := range AgentTable.All(tx, company) {
				if t, ok := TimerOf(tx, company, agent); ok && !yield(t) {
					return
				}
			}
		}
	}
}
