package paper

// What the tests of this room reach into.

var (
	PendingInteractions = pendingInteractions
)
