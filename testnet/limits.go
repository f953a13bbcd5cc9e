package testnet

import "time"

const (
	// MaxNodes bounds a local mesh: each node costs about 80 MB and two ports.
	MaxNodes = 25
	// readyTimeout bounds the wait for one node to serve, and for three to vote; generous,
	// because the machine may be small and busy, or emulated. A process that ends is told at once.
	readyTimeout = 3 * time.Minute
	// stopTimeout is how long a node may take to leave in order before it is killed.
	stopTimeout = 15 * time.Second
	// portTimeout is how long the ports of a node may be taken by one that is ending.
	portTimeout = 5 * time.Second
	// pollInterval is how often a waiting command looks again.
	pollInterval = 100 * time.Millisecond
	// maxAnswer bounds what is read of a node's answer, in bytes.
	maxAnswer = 1 << 20
	// shownLog is how much of a node's log a failed test shows, in bytes.
	shownLog = 6000
	// shownStacks is how much of its goroutines' stacks, in bytes, and shownFrames of
	// how many calls each.
	shownStacks = 16_000
	shownFrames = 14
	// maxFaultFile bounds the file that lists the cut links, in bytes.
	maxFaultFile = 64 << 10
)
