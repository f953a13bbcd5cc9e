package company

import "github.com/selvage-mesh/selvage/ledger"

// What people and agents leave on an issue besides comments (documents,
// interactions, work products, workspaces with their operations) can be more than one command may
// touch. When the issue goes it is hidden with it at once, as all of it is
// reached through the issue; a node then removes it with issue.sweep:
//
//	thread-sweep/<issue>   a deleted issue of which something is left
const threadSweep = "thread-sweep"

// threadChunk bounds the rows that one issue.sweep removes, each of which may
// name all parts of a long document.
const threadChunk = 250

const _ = uint(ledger.MaxTouched - threadChunk*(3*(MaxDocument/MaxPart+2)+2))

// SweepThreads is the payload of issue.sweep.
type SweepThreads struct{}

const KindIssueSweep = "issue.sweep"

var threadKinds = []Kind{
	{Name: KindIssueSweep, From: FromNode, Traits: SeldomWork, Do: ledger.Typed(sweepThreads)},
}

func threadKey(company, issue string) []byte { return ledger.Key("c", company, threadSweep, issue) }

// dropThread marks what is left of a deleted issue.
func dropThread(tx *ledger.Tx, i Issue) {
	for range threadRows(tx, i.Company, i.ID) {
		tx.Set(threadKey(i.Company, i.ID), nil)
		return
	}
}

// ThreadsToSweep reports whether something is left of deleted issues.
func ThreadsToSweep(tx *ledger.Tx, company string) bool {
	for range tx.Prefix(threadKey(company, "")) {
		return true
	}
	return false
}

func sweepThreads(c *ledger.Context, _ SweepThreads) (any, error) {
	company, prefix := c.Cmd.Company, threadKey(c.Cmd.Company, "")
	var over []string
	type found struct {
		key  string
		drop func()
	}
	var rows []found
	now := TimeOf(c.Now)
	for k := range c.Prefix(prefix) {
		issue := string(k[len(prefix):])
		for key, drop := range threadRows(c.Tx, company, issue) {
			if len(rows) == threadChunk {
				break
			}
			rows = append(rows, found{string(key), func() { drop(now) }})
		}
		if len(rows) == threadChunk || len(over) == threadChunk {
			break
		}
		over = append(over, issue)
	}
	for _, r := range rows {
		r.drop()
		c.Delete([]byte(r.key))
	}
	for _, issue := range over {
		c.Delete(threadKey(company, issue))
	}
	if len(rows)+len(over) > 0 {
		c.Record(ledger.Change{Action: "issue.thread_swept", EntityType: "company", EntityID: company,
			Details: jsonObject{}.int("rows", int64(len(rows))).close()})
	}
	return nil, nil
}

// threadRows yields the keys of an issue's rows, each with what goes besides it.
func threadRows(tx *ledger.Tx, company, issue string) func(func([]byte, func(Time)) bool) {
	return func(yield func([]byte, func(Time)) bool) {
		for k, v := range tx.Prefix(docRevisions.Key(company, issue+".")) {
			named := decodeRow[DocumentRevision](v).Parts
			if !yield(k, func(now Time) { unrefParts(tx, company, named, now) }) {
				return
			}
		}
		for id := range productsIssue.IDs(tx, company, issue, false) {
			w, _ := products.Get(tx, company, id)
			if !yield(products.Key(company, id), func(Time) { dropProduct(tx, w) }) {
				return
			}
		}
		for k, v := range tx.Prefix(interactions.Key(company, issue+".")) {
			in := decodeRow[Interaction](v)
			if !yield(k, func(Time) {
				interactionsPending.Remove(tx, company, issue, ledger.Order(in.Seq))
				tx.Delete(interactionRequestKey(company, issue, string(in.IdempotencyKey)))
			}) {
				return
			}
		}
		for id := range operationsPlace.IDs(tx, company, issue, false) {
			if !yield(operations.Key(company, id), func(Time) { dropOperation(tx, company, id) }) {
				return
			}
		}
		for id := range execWorkspaceOf.IDs(tx, company, issue, false) {
			w, _ := execWorkspaces.Get(tx, company, id)
			// The key of the index goes whatever becomes of the row.
			if !yield(ledger.Key("c", company, "exec-workspace-of", issue, id), func(now Time) { dropExecutionWorkspace(tx, w, now) }) {
				return
			}
		}
		for _, prefix := range [][]byte{executionDecisions.Key(company, issue+"."), decompositions.Key(company, issue+"."), annotations.Key(company, issue+"."), documents.Key(company, issue+".")} {
			for k := range tx.Prefix(prefix) {
				if !yield(k, func(Time) {}) {
					return
				}
			}
		}
	}
}
