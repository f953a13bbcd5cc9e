package mind

import "time"

const (
	// BudgetRatio is how much of its interval a tick may compute, in thousandths.
	BudgetRatio = 300
	// usualInterval is between two ticks where nothing was measured; slowest and fastest
	// bound what becomes of it.
	usualInterval   = 50 * time.Millisecond
	fastestInterval = 10 * time.Millisecond
	slowestInterval = time.Second
	// overrun and idle are the parts of the budget, in thousandths, beyond and below which
	// the interval is made longer and shorter.
	overrun = 1100
	idle    = 500

	// maxImpulses bounds the queue, maxDrained what one tick takes from it.
	maxImpulses = 1024
	maxDrained  = 64
	// impulseLife is how long an impulse waits, for example for an index to be built. What
	// it told of is looked at again when its company changes.
	impulseLife = 10 * time.Minute
	// kept bounds the last impulses that are shown.
	kept = 20
	// maxCompanies bounds the companies that wait to be looked at; the state says of the
	// others how far they are.
	maxCompanies = 10_000

	// nearest is how many likes of a record are looked for.
	nearest = 5
	// retryAfter is how long a tick waits after one that could not go on: without a quorum,
	// or while an index is built.
	retryAfter = time.Second
	// commitTimeout bounds how long a commit waits for a quorum.
	commitTimeout = 10 * time.Second
)
