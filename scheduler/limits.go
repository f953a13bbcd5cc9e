package scheduler

import "time"

const (
	// DefaultLease is how long a node may act after it sent a keep-alive that the
	// leader granted; one that is starved gets more, see grant.go. Short enough that a dead node's work is taken up within
	// seconds, long enough for an election in between.
	DefaultLease = 6 * time.Second
	// DefaultMargin is how long before the end of its lease a node stops acting:
	// for the KILL of its children, and for clocks that run at different speeds. Of a
	// longer lease it is the same part: a starved node kills more slowly.
	DefaultMargin = 2 * time.Second
	// oversleepLeast is how late a look must be for the leader to give the nodes the
	// time that it did not run.
	oversleepLeast = 250 * time.Millisecond
	// tellLate is from how late on, in ms, a node's lateness is a reason to tell.
	tellLate = 250
	// tripFades is by how much, in percent, what is remembered of how long a beat
	// took fades with each: to a fifth in a minute.
	tripFades = 4
	// DefaultSlots bounds the runs that one node carries out at once.
	DefaultSlots = 8
	// MaxSlots bounds what a node may claim.
	MaxSlots = 256

	// lookEvery is how often either part looks again when the feed is silent:
	// leases end and timers fall due without an entry. It also bounds how late a
	// lapsed lease is seen after the machine was suspended.
	lookEvery = 250 * time.Millisecond
	// gather is how long a signal of the feed waits for others to join it at most,
	// and gatherTimes how long in times of what the last look took.
	gather      = 5 * time.Millisecond
	gatherTimes = 8
	// manyChanges is the number of changes from which an entry may have left some
	// out that only feed the live events.
	manyChanges = 64
	// placesPerLook bounds the runs that one look places, and placesAtOnce how
	// many of their commands wait at the same time.
	placesPerLook = 128
	placesAtOnce  = 32
	// queuedPerCompany bounds the runs of one company that one look considers.
	queuedPerCompany = 64
	// waitsPerLook bounds the runs of which one look tells why they wait, and
	// tellWaitAfter is how long, in milliseconds, a run has waited by then.
	waitsPerLook  = 8
	tellWaitAfter = 1_000
	// giveUpAfter is how long a run waits when no node that is there could ever take
	// it, so that somebody has time to bring one that can.
	giveUpAfter = 10 * time.Minute
	// strandedEvery is how often the leader looks for issues that nothing brings on,
	// and strandedPerLook bounds what it does about them each time.
	// strandedReads bounds the issues that one look reads.
	strandedEvery   = time.Minute
	strandedPerLook = 32
	strandedReads   = 5_000
	// ticksPerLook bounds the timers that one look fires.
	ticksPerLook = 256
	// maxLateTimes bounds the missed times of one schedule that are counted: a
	// week of a schedule for every minute.
	maxLateTimes = 10_080
	// gateLooksBack bounds the lines of the activity log that decide whether
	// something happened since a routine last ran.
	gateLooksBack = 200
	// submitWait bounds one attempt of a command; an unknown outcome is resolved
	// below Submit, so a further attempt is a further command.
	submitWait = 10 * time.Second
	// retryFirst and retryMost are the waits between attempts of a command whose
	// outcome is not known.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
	// tellCostTries and tellCostPause bound how long a node tries to tell what a run
	// cost that it has lost: an hour, and the run takes none of its slots meanwhile.
	tellCostTries = 360
	tellCostPause = 10 * time.Second
	// tellLossTries bounds how often a node tries to tell why a run was lost.
	tellLossTries = 8
	// reportEvery is how often a run that only writes its log is reported on, and
	// reportGather how long a report waits for more to join it.
	reportEvery  = 5 * time.Second
	reportGather = 250 * time.Millisecond
	// pendingEvents bounds the events that wait for the next report.
	pendingEvents = 32
	// stopWait bounds how long a worker that stops waits for its runs' last words; no
	// longer than a lease, after which nobody listens to them.
	stopWait = 10 * time.Second
)

// keepAliveDivisor is how many keep-alives are tried in one lease.
const keepAliveDivisor = 4
