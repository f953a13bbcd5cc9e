package ledger

import "time"

// A Command asks for one change. Its handler decides whether it happens.
// Time is the leader's and IDs that the command needs are in its payload, so
// applying it anywhere gives the same result.
type Command struct {
	Kind       string     // names the handler, e.g. "issue.checkout"
	Company    CompanyID  // company UUID; empty for commands about the mesh itself
	Actor      Actor      // who asks
	Credential Credential // how the origin node authenticated the actor
	Run        string     // the heartbeat run under which the actor acts, or ""
	Payload    []byte     // deterministic CBOR of the kind's payload type, at most MaxPayload
	Salt       [16]byte   // random, makes the payload hash unguessable; erased with the payload

	// IdempotencyKey makes a repeated request harmless: the same key by the same
	// actor in the same company within IdempotencyWindow gives the first outcome
	// again, refusals included; the same key with another RequestDigest is refused.
	IdempotencyKey string
	RequestDigest  [32]byte // SHA-256 of what the caller sent; set with IdempotencyKey
}

// An Actor is who asks for a change.
type Actor struct {
	Type string `cbor:"1,keyasint"` // "user" (the board), "agent", "system" or "node"
	ID   string `cbor:"2,keyasint"` // user ID such as "local-board", agent UUID, or NodeID
}

// A Credential names what authenticated the actor. Apply checks that it is
// still valid; a credential itself never enters the log, only its name.
type Credential struct {
	Kind string `cbor:"1,keyasint"` // "local", "agent_key", "board_key", "run", "node" or "session"
	ID   string `cbor:"2,keyasint"` // key row UUID, run UUID, NodeID; empty for "local"
}

// A Receipt is what became of a command. It comes only from the leader, after
// its own ledger applied the command.
type Receipt struct {
	Index   uint64   `cbor:"1,keyasint"`           // raft index; a read at or after it sees the command
	Height  uint64   `cbor:"2,keyasint,omitempty"` // height of the entry, 0 when nothing was entered
	Value   []byte   `cbor:"3,keyasint,omitempty"` // what the handler returned, CBOR
	Refusal *Refusal `cbor:"4,keyasint,omitempty"`
}

// Err returns the refusal as an error, or nil.
func (r Receipt) Err() error {
	if r.Refusal == nil {
		return nil
	}
	return r.Refusal
}

// A Change is one line of an entry's summary. The activity log of a company is
// the changes of its entries, in order.
type Change struct {
	Action     string `cbor:"1,keyasint"`           // e.g. "issue.checked_out"
	EntityType string `cbor:"2,keyasint"`           // e.g. "issue"
	EntityID   string `cbor:"3,keyasint"`           // UUID or other ID of the entity
	Details    []byte `cbor:"4,keyasint,omitempty"` // small JSON object or nil; never a secret
}

const (
	// MaxPayload bounds one command; larger values are staged as parts or blobs.
	MaxPayload = 256 << 10
	// MaxBatchCommands and MaxBatchBytes bound one raft entry.
	MaxBatchCommands = 512
	MaxBatchBytes    = 1 << 20
	// MaxOutstanding bounds the unanswered sequences of one session.
	MaxOutstanding = 1024
	// MaxTouched bounds the keys that one command may write, so that apply stays short.
	MaxTouched = 10_000
	// MaxTouchedWide bounds those of a command that is wide (see [Context.Widen]): a
	// company as it comes in. A key takes about 10 µs, so for so many all else waits
	// for one to two seconds, and for eight on a small board.
	MaxTouchedWide = 150_000
	// IdempotencyWindow is how long an Idempotency-Key is remembered.
	IdempotencyWindow = 24 * time.Hour
)

const _ = uint(MaxBatchBytes - MaxPayload) // a command must fit a batch
