package company

// What the tests of this room reach into.

type HeartbeatPolicy = heartbeatPolicy

const (
	DeleteChunk     = deleteChunk
	Interrupted     = interrupted
	MaxCallbackText = maxCallbackText
	MaxFatIssues    = maxFatIssues
	MaxFatText      = maxFatText
	MaxRunEvents    = maxRunEvents
	MaxWakeComments = maxWakeComments
)

var (
	AddEvent       = addEvent
	CoalesceTarget = coalesceTarget
	DueLog         = dueLog
	ForgetLog      = forgetLog
	KeptLogBytes   = keptLogBytes
	ParsePolicy    = parsePolicy
)
