package run

// Internals that the tests of this package use.

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
