package run

// What the tests of this room reach into.

type RunLogPage = runLogPage

const (
	MaxTask        = maxTask
	MaxTaskContext = maxTaskContext
)

var (
	ExecutionOf  = executionOf
	IssueRunView = issueRunView
	ListItem     = listItem
	LiveView     = liveView
	SilenceOf    = silenceOf
	ViewRun      = viewRun
)
