package scheduler

import "time"

const (
	// DefaultLease is how long a node may act after it sent a beat that the leader
	// granted. A starved node gets more, see grant.go. It is short, so that a dead
	// node's work is retried within seconds, and long enough for an election in between.
	DefaultLease = 6 * time.Second
	// DefaultMargin is how long before the end of its lease a node stops acting. It
	// covers the KILL of child processes and clocks of different speed. A longer lease
	// has a proportionally longer margin, because a starved node kills more slowly.
	DefaultMargin = 2 * time.Second
	// oversleepLeast is how late a look must be before the leader extends all leases by
	// the time in which it did not run.
	oversleepLeast = 250 * time.Millisecond
	// tellLate is the delay, in ms, from which a node's delay is given as a reason.
	tellLate = 250
	// tripFades is the percentage by which the remembered duration of a beat decays with
	// each beat: to a fifth within a minute.
	tripFades = 4
	// DefaultSlots bounds the runs that one node executes at the same time.
	DefaultSlots = 8
	// MaxSlots bounds the slots that a node may announce.
	MaxSlots = 256

	// lookEvery is how often leader and worker look without a signal from the feed:
	// leases end and timers fall due without an entry. It also bounds how late an ended
	// lease is noticed after the machine was suspended.
	lookEvery = 250 * time.Millisecond
	// gather is how long a signal of the feed waits for more signals, at most.
	// gatherTimes is the same bound as a multiple of the duration of the last look.
	gather      = 5 * time.Millisecond
	gatherTimes = 8
	// manyChanges is the number of changes from which an entry may omit those that only
	// the live events need.
	manyChanges = 64
	// placesPerLook bounds the runs that one look places. placesAtOnce bounds how many of
	// these commands wait at the same time.
	placesPerLook = 128
	placesAtOnce  = 32
	// queuedPerCompany bounds the runs of one company that one look considers.
	queuedPerCompany = 64
	// waitsPerLook bounds the runs for which one look stores why they wait. A run must
	// have waited for tellWaitAfter, in milliseconds.
	waitsPerLook  = 8
	tellWaitAfter = 1_000
	// giveUpAfter is how long a run waits when no present node can ever take it. It gives
	// an operator time to add a node that can.
	giveUpAfter = 10 * time.Minute
	// strandedEvery is how often the leader searches for open issues that nothing
	// continues. strandedPerLook bounds how many it handles in one search, and
	// strandedReads how many issues one search reads.
	strandedEvery   = time.Minute
	strandedPerLook = 32
	strandedReads   = 5_000
	// ticksPerLook bounds the timers that one look fires.
	ticksPerLook = 256
	// maxLateTimes bounds how many missed times of one schedule are counted: a week of a
	// schedule that fires every minute.
	maxLateTimes = 10_080
	// gateLooksBack bounds how many activity lines are read to decide whether something
	// happened since a routine last ran.
	gateLooksBack = 200
	// submitWait bounds one attempt to submit a command. Submit itself resolves an unknown
	// outcome, so another attempt is another command.
	submitWait = 10 * time.Second
	// retryFirst and retryMost are the first and the longest wait between attempts of a
	// command whose outcome is unknown.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// tellCostTries and tellCostPause bound for how long a node retries to report the
	// cost of a run that it lost: an hour. The run occupies no slot meanwhile.
	tellCostTries = 360
	tellCostPause = 10 * time.Second
	// tellLossTries bounds how often a node retries to report why a run was lost.
	tellLossTries = 8
	// reportEvery is how often a run that only writes to its log is reported.
	// reportGather is how long a report waits for more to report.
	reportEvery  = 5 * time.Second
	reportGather = 250 * time.Millisecond
	// pendingEvents bounds the events that wait for the next report.
	pendingEvents = 32
	// stopWait bounds how long a stopping worker waits for the last reports of its runs.
	// It is no longer than a lease, after which reports are refused.
	stopWait = 10 * time.Second
)

// keepAliveDivisor is the number of beats that are tried within one lease.
const keepAliveDivisor = 4
