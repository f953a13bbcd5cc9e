package inbox

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A FeedbackTrace is a vote that its user shares, in a company that has agreed to sharing.
// It stays in the mesh until somebody fetches it.
type FeedbackTrace struct {
	Vote
	TraceID    string `json:"traceId"`
	Status     string `json:"status"` // always local_only
	Identifier string `json:"issueIdentifier"`
}

// MaxTraces bounds the issues that one list reads, and the traces that it returns.
const MaxTraces = 1_000

// TraceID is the ID of the trace of a vote.
func TraceID(v Vote) string { return core.DerivedID("feedback-trace", v.ID) }

// TracesOfIssue returns the traces of an issue.
func TracesOfIssue(tx *ledger.Tx, i entity.Issue) []FeedbackTrace {
	out := []FeedbackTrace{}
	if row, ok := entity.CompanyOf(tx, i.Company); !ok || !row.Feedback.Sharing {
		return out
	}
	for _, v := range VotesOf(tx, i) {
		if v.AllowSharing {
			out = append(out, FeedbackTrace{v, TraceID(v), "local_only", i.Identifier})
		}
	}
	return out
}

// TracesOf returns the traces of a company, at most MaxTraces.
func TracesOf(tx *ledger.Tx, of ledger.CompanyID) []FeedbackTrace {
	out := []FeedbackTrace{}
	if row, ok := entity.CompanyOf(tx, of); !ok || !row.Feedback.Sharing {
		return out
	}
	for _, b := range tx.Prefix(votes.Key(of, "")) {
		v := core.DecodeRow[Vote](b)
		if !v.AllowSharing {
			continue
		}
		i, ok := entity.IssueTable.Get(tx, of, v.Issue)
		if !ok {
			continue
		}
		if out = append(out, FeedbackTrace{v, TraceID(v), "local_only", i.Identifier}); len(out) == MaxTraces {
			break
		}
	}
	return out
}

// TargetText returns the text that a vote is about, of a comment or of a document's revision;
// "" if it is deleted.
func (v Vote) TargetText(tx *ledger.Tx, i entity.Issue) string {
	if v.TargetType == "issue_comment" {
		cm, _ := entity.CommentOf(tx, i.Company, i.ID, v.Target)
		return cm.Body
	}
	text, _ := company.Ask.Revision(tx, i, v.Target)
	return text
}
