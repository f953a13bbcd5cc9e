package care

// What the tests of this room reach into.

const (
	StrandedAfter = strandedAfter
)

var (
	TreeHoldCounts = treeHoldCounts
)
