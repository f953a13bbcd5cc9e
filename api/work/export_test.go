package work

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Internals that the tests of this package use.

type CommandBody = commandBody

const (
	ListedDescription = listedDescription
)

var (
	HeartbeatContext = heartbeatContext
	IssueBare        = issueBare
	IssueCreated     = issueCreated
	IssueShown       = issueShown
	IssueUpdated     = issueUpdated
	SearchAnswer     = searchAnswer
)

// IssueListed is one row of a list, encoded.
func IssueListed(tx *ledger.Tx, i entity.Issue, viewer string) json.RawMessage {
	return listedRow(tx, i, viewer).Close()
}
