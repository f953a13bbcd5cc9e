package work

// Internals that the tests of this package use.

type CommandBody = commandBody

const (
	ListedDescription = listedDescription
)

var (
	HeartbeatContext = heartbeatContext
	IssueBare        = issueBare
	IssueCreated     = issueCreated
	IssueListed      = issueListed
	IssueShown       = issueShown
	IssueUpdated     = issueUpdated
	SearchAnswer     = searchAnswer
)
