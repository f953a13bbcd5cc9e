package company

// What the tests of this room reach into.

const (
	DeleteChunk     = deleteChunk
	Interrupted     = interrupted
	MaxCallbackText = maxCallbackText
	MaxFatIssues    = maxFatIssues
	MaxFatText      = maxFatText
	MaxRunEvents    = maxRunEvents
)

var (
	AddEvent       = addEvent
	CoalesceTarget = coalesceTarget
	DueLog         = dueLog
	ForgetLog      = forgetLog
	KeptLogBytes   = keptLogBytes
)
