package purse

import (
	"time"

	"github.com/selvage-mesh/selvage/company/core"
)

const (
	// DefaultSlice is how much a slice is at most: a dollar pays hundreds of small
	// calls, and is little to be held for a node that is lost.
	DefaultSlice = 100 * core.Cent
	// DefaultFor is how long calls begin under one slice, so that a limit that is
	// lowered is felt soon.
	DefaultFor = 2 * time.Minute
	// DefaultIdle is after which time an unused slice is given back.
	DefaultIdle = 15 * time.Second
	// MaxCalls bounds the calls that are under way at once, and MaxStocks the
	// reservations of which there is something to tell: both are in memory and in
	// the journal.
	MaxCalls  = 4096
	MaxStocks = 1024

	// gather is how long a call that ended waits for others to be told with it,
	// and lookEvery how often the purse looks for what grew old.
	gather    = 200 * time.Millisecond
	lookEvery = time.Second
	// tellAtOnce bounds the commands that are under way at once.
	tellAtOnce = 8
	// submitWait bounds one attempt of a command.
	submitWait = 10 * time.Second
	// pauseFirst and pauseMost are the waits after a command whose outcome is not
	// known, or that was refused for a reason that may pass.
	pauseFirst = 250 * time.Millisecond
	pauseMost  = 30 * time.Second
	// closeWait bounds how long a purse that is closed tries to tell what is left;
	// the rest is told after the next start.
	closeWait = 3 * time.Second
	// maxJournal is the size of the journal at which it is written anew.
	maxJournal = 4 << 20
	// maxPaid bounds the runs that are remembered as paying at the gateway until they
	// are over, and those as refused: far more than a node carries out at once.
	maxPaid = 4096
	// maxNote bounds one note.
	maxNote = 64 << 10
)
