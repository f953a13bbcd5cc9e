package purse

import (
	"time"

	"github.com/selvage-mesh/selvage/company/core"
)

const (
	// DefaultSlice bounds a slice: a dollar pays for hundreds of small calls, and is little money
	// to hold for a lost node.
	DefaultSlice = 100 * core.Cent
	// DefaultFor is how long calls may start under one slice, so that a lowered limit takes
	// effect soon.
	DefaultFor = 2 * time.Minute
	// DefaultIdle is the time after which an unused slice is returned.
	DefaultIdle = 15 * time.Second
	// MaxCalls bounds the calls in progress. MaxStocks bounds the reservations that are not yet
	// settled. Both are in memory and in the journal.
	MaxCalls  = 4096
	MaxStocks = 1024

	// gather is how long the settlement of a call waits for others to be sent with it.
	// lookEvery is how often the purse checks for expired slices.
	gather    = 200 * time.Millisecond
	lookEvery = time.Second
	// tellAtOnce bounds the commands in progress.
	tellAtOnce = 8
	// submitWait bounds one attempt of a command.
	submitWait = 10 * time.Second
	// pauseFirst and pauseMost bound the wait before the retry of a command whose outcome is
	// unknown, or that was refused for a temporary reason.
	pauseFirst = 250 * time.Millisecond
	pauseMost  = 30 * time.Second
	// closeWait bounds how long Close sends remaining settlements; the others are sent after
	// the next start.
	closeWait = 3 * time.Second
	// maxJournal is the size of the journal, in bytes, at which it is rewritten.
	maxJournal = 4 << 20
	// maxPaid bounds the runs that are remembered as having paid at the gateway, and as refused,
	// until they are over: far more than a node executes at once.
	maxPaid = 4096
	// maxNote bounds one note, in bytes.
	maxNote = 64 << 10
)
