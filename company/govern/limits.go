package govern

import "time"

// Bounds of what the constitution and its decisions take.
const (
	// MaxDecisions bounds the decisions that are kept of a company, and of the mesh: the oldest go. A decision has about
	// 1 KiB.
	MaxDecisions = 20_000
	// MaxListed bounds one list of decisions, MaxReviewed what one review or replay looks at.
	MaxListed   = 1_000
	MaxReviewed = 20_000
	// SameWithin is how long identical denials are counted, and not stored again.
	SameWithin = time.Minute
	// MaxWaiting bounds the commands of a company that wait for a person.
	MaxWaiting = 200
	// WaitFor is how long a command waits unless its place says otherwise; then it is denied. MaxWaitMinutes bounds
	// what a place can say.
	WaitFor        = 24 * time.Hour
	MaxWaitMinutes = 30 * 24 * 60
	// MaxWaitingActs bounds the acts at nodes of one agent that wait: one that tries ever new arguments must not fill
	// the board's list.
	MaxWaitingActs = 10
	// MaxPermits bounds the permits of a company, which are kept for PermitKept after their end.
	MaxPermits = 2_000
	PermitKept = 24 * time.Hour
	// permitChunk bounds the ended permits that go when one comes.
	permitChunk = 4
	// PermitFor is how long a permit holds unless it says otherwise: the agent is woken when it is granted. MaxPermitFor
	// bounds what it can say.
	PermitFor    = time.Hour
	MaxPermitFor = 24 * time.Hour
	// MaxDetail bounds what people see of an act's arguments, in bytes.
	MaxDetail = 500
	// MaxElevations bounds the elevations of one agent, and MaxCleared the clearances of one: all are in one row.
	MaxElevations, MaxCleared = 16, 8
	// ElevateFor is how long an elevation lasts unless it says otherwise, MaxElevateFor what it can say: what is needed
	// longer is a permission.
	ElevateFor    = 15 * time.Minute
	MaxElevateFor = 24 * time.Hour
	// lapseChunk bounds the waiting commands that one governance.lapse denies.
	lapseChunk = 50
	// MaxOpen bounds the amendments that are not decided yet: each of them is read by people.
	MaxOpen = 50
	// MaxChanged bounds the rules that one amendment puts or drops: what people sign, they have to read.
	MaxChanged = 500
	// MaxKeys bounds the signing keys of the board.
	MaxKeys = 15
	// MaxTitle and maxKeyName bound texts, in bytes.
	MaxTitle   = 500
	maxKeyName = 100
	// maxGates bounds the compiled constitutions that are kept in memory.
	maxGates = 4
	// maxCount bounds the acts that a node counts in one decision.
	maxCount = 1_000_000
	// MaxRecorded bounds the decisions that a node records with one command.
	MaxRecorded = 50
	// hourSpans and daySpans are the parts of the windows in which acts are counted: five minutes of an hour, an hour
	// of a day.
	hourMs, hourSpans, daySpans = 3_600_000, 12, 24
	// maxTallied bounds the actions that are counted of one actor, and of a company: those that were used last. A rule
	// is seldom about more, and a row has at most 40 KiB.
	maxTallied = 32
	// maxCounted bounds the agents and companies whose acts one node counts.
	maxCounted = 4_096
	// MaxReceipts bounds the receipts of the filters that are kept of a company: the oldest go. A receipt has about 1 KiB.
	MaxReceipts = 5_000
	// maxSum bounds a sum of amounts, in cents, so that it does not overflow.
	maxSum = 1 << 53
)
