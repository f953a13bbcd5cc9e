package people

// Unexported names that the tests of this package use.

var (
	SessionsOf = sessionsOf
)
