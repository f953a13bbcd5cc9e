package people

// What the tests of this room reach into.

var (
	SessionsOf = sessionsOf
)
