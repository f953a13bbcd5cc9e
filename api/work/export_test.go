package work

// What the tests of this room reach into.

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
