package company

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The rows of an issue apart from its comments (documents, interactions, work products,
// workspaces with their operations) can be more than one command may touch. Deleting the
// issue hides them at once, because all of them are reached through the issue. A node then
// removes them with issue.sweep:
//
//	thread-sweep/<issue>   a deleted issue with rows left
const threadSweep = "thread-sweep"

// ThreadChunk bounds the rows that one issue.sweep removes. Each of them may name all parts
// of a long document.
const ThreadChunk = 250

// SweepThreads is the payload of issue.sweep.
type SweepThreads struct{}

const KindIssueSweep = "issue.sweep"

var threadKinds = []Kind{
	{Name: KindIssueSweep, From: FromNode, Traits: SeldomWork, Weight: Weights.ByNodes, Do: ledger.Typed(sweepThreads)},
}

func ThreadKey(company ledger.CompanyID, issue string) []byte {
	return ledger.Key("c", string(company), threadSweep, issue)
}

// dropThread marks a deleted issue for the sweep.
func dropThread(tx *ledger.Tx, i entity.Issue) {
	for range leftBehind(tx, i.Company, i.ID) {
		tx.Set(ThreadKey(i.Company, i.ID), nil)
		return
	}
}

// ThreadsToSweep reports whether deleted issues have rows left.
func ThreadsToSweep(tx *ledger.Tx, company ledger.CompanyID) bool {
	for range tx.Prefix(ThreadKey(company, "")) {
		return true
	}
	return false
}

func sweepThreads(c *ledger.Context, _ SweepThreads) (any, error) {
	company, prefix := c.Cmd.Company, ThreadKey(c.Cmd.Company, "")
	var over []string
	type found struct {
		key  string
		drop func()
	}
	var rows []found
	now := core.TimeOf(c.Now)
	for k := range c.Prefix(prefix) {
		issue := string(k[len(prefix):])
		for key, drop := range leftBehind(c.Tx, company, issue) {
			if len(rows) == ThreadChunk {
				break
			}
			rows = append(rows, found{string(key), func() { drop(now) }})
		}
		if len(rows) == ThreadChunk || len(over) == ThreadChunk {
			break
		}
		over = append(over, issue)
	}
	for _, r := range rows {
		r.drop()
		c.Delete([]byte(r.key))
	}
	for _, issue := range over {
		c.Delete(ThreadKey(company, issue))
	}
	if len(rows)+len(over) > 0 {
		c.Record(ledger.Change{Action: "issue.thread_swept", EntityType: "company", EntityID: string(company),
			Details: core.Object{}.Int("rows", int64(len(rows))).Close()})
	}
	return nil, nil
}
