package inbox

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An indexing is the progress of building a company's index. A company older than the index
// has no such row; the leader has its index built, some issues per command, while other
// commands continue. Comments written meanwhile are added to the index by their own commands.
type indexing struct {
	Next string `cbor:"1,keyasint,omitempty"` // the issue from which the next command continues
	Done bool   `cbor:"2,keyasint,omitempty"`
}

var indexings = ledger.NewTable[string, indexing]("issue-index")

// theVoices is the ID of the only row, for the index of who touched which issues.
const theVoices = "voices"

const (
	// indexedIssues and indexedComments bound what one command reads. A comment causes no
	// more writes than the authors of its issue.
	indexedIssues   = 50
	indexedComments = 5_000
)

// IndexIssues is the payload of issue.index.
type IndexIssues struct{}

const KindIssueIndex = "issue.index"

var indexingKinds = []company.Kind{
	{Name: KindIssueIndex, From: company.FromNode, Traits: company.SeldomWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(indexIssues)},
}

// IssuesToIndex reports whether the index of a company may lack comments older than itself.
func IssuesToIndex(tx *ledger.Tx, company ledger.CompanyID) bool {
	row, _ := indexings.Get(tx, company, theVoices)
	return !row.Done
}

// indexed records that the index of a company is complete.
func indexed(tx *ledger.Tx, company ledger.CompanyID) {
	indexings.Put(tx, company, theVoices, indexing{Done: true})
}

// indexIssues continues building the index of a company.
func indexIssues(c *ledger.Context, _ IndexIssues) (any, error) {
	of := c.Cmd.Company
	if _, err := company.Present(c); err != nil {
		return nil, err
	}
	row, _ := indexings.Get(c.Tx, of, theVoices)
	if row.Done {
		return nil, ledger.Refuse(ledger.Conflict, nil, "the issues are indexed")
	}
	var list []entity.Issue
	prefix := ledger.Key("c", string(of), "issue", "")
	next := ""
	for k := range c.Tx.Scan(entity.IssueTable.Key(of, row.Next), ledger.PrefixEnd(prefix), false) {
		id := string(k[len(prefix):])
		if len(list) == indexedIssues {
			next = id
			break
		}
		if i, ok := entity.IssueTable.Get(c.Tx, of, id); ok {
			list = append(list, i)
		}
	}
	read := 0
	for n, i := range list {
		if n > 0 && read > indexedComments {
			next = i.ID
			list = list[:n]
			break
		}
		dropVoices(c.Tx, i)
		keepHands(c.Tx, entity.Issue{}, i)
		var said []entity.Comment
		for _, v := range c.Tx.Prefix(entity.Comments.Key(of, i.ID+".")) {
			if cm := core.DecodeRow[entity.Comment](v); cm.DeletedAt == 0 {
				said = append(said, cm)
			}
			read++
		}
		slices.SortStableFunc(said, func(a, b entity.Comment) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
		for _, cm := range said {
			hear(c.Tx, cm)
		}
	}
	indexings.Put(c.Tx, of, theVoices, indexing{Next: next, Done: next == ""})
	c.Record(ledger.Change{Action: "company.issues_indexed", EntityType: "company", EntityID: string(of),
		Details: core.Object{}.Int("issues", int64(len(list))).Bool("done", next == "").Close()})
	return nil, nil
}
