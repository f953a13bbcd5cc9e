package inbox

import (
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Vote is a user's rating of what an agent wrote. It stays in the mesh.
type Vote struct {
	ID           string           `cbor:"1,keyasint" json:"id"`
	Company      ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue        string           `cbor:"3,keyasint" json:"issueId"`
	TargetType   string           `cbor:"4,keyasint" json:"targetType"` // issue_comment or issue_document_revision
	Target       string           `cbor:"5,keyasint" json:"targetId"`
	User         string           `cbor:"6,keyasint" json:"authorUserId"`
	Vote         string           `cbor:"7,keyasint" json:"vote"` // up or down
	Reason       core.NullText    `cbor:"8,keyasint,omitempty" json:"reason"`
	AllowSharing bool             `cbor:"9,keyasint,omitempty" json:"allowSharing"`
	CreatedAt    core.Time        `cbor:"10,keyasint" json:"createdAt"`
	UpdatedAt    core.Time        `cbor:"11,keyasint" json:"updatedAt"`
}

// CastVote is the payload of issue.vote.
type CastVote struct {
	Issue        string `cbor:"1,keyasint"`
	TargetType   string `cbor:"2,keyasint"`
	Target       string `cbor:"3,keyasint"`
	Vote         string `cbor:"4,keyasint"`
	Reason       string `cbor:"5,keyasint,omitempty"`
	AllowSharing bool   `cbor:"6,keyasint,omitempty"`
}

const (
	// maxVotes bounds the votes of one issue.
	maxVotes = 1_000
	// MaxVoteReason bounds the reason of a vote, in bytes.
	MaxVoteReason = 1_000
)

// votes are kept by <issue>.<hash of target and user>.
var votes = ledger.NewTable[string, Vote]("issue-vote")

const KindIssueVote = "issue.vote"

var voteKinds = []company.Kind{
	{Name: KindIssueVote, From: company.FromBoard, Traits: company.SeldomWork, Weight: company.Weights.Marks,
		Do: ledger.Typed(castVote)},
}

// VotesOf returns the votes on an issue.
func VotesOf(tx *ledger.Tx, i entity.Issue) []Vote {
	out := []Vote{}
	for _, v := range tx.Prefix(votes.Key(i.Company, i.ID+".")) {
		var vote Vote
		if err := ledger.Unmarshal(v, &vote); err != nil {
			panic("company: vote does not decode: " + err.Error())
		}
		out = append(out, vote)
	}
	return out
}

func dropVotes(tx *ledger.Tx, i entity.Issue) {
	for k := range tx.Prefix(votes.Key(i.Company, i.ID+".")) {
		tx.Delete(slices.Clone(k))
	}
}

// castVote stores a user's rating of a comment or a revision; a second vote on the same
// target replaces the first. It does not check that a revision exists: it may be deleted by
// the time somebody votes.
func castVote(c *ledger.Context, p CastVote) (any, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if p.Vote != "up" && p.Vote != "down" || len(p.Reason) > MaxVoteReason {
		return nil, ledger.Refuse(ledger.Invalid, nil, "vote is up or down, with a reason of at most %d bytes", MaxVoteReason)
	}
	switch p.TargetType {
	case "issue_comment":
		if _, ok := entity.CommentOf(c.Tx, i.Company, i.ID, p.Target); !ok {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Comment not found")
		}
	case "issue_document_revision":
		if !core.IsID(p.Target) {
			return nil, ledger.Refuse(ledger.Invalid, nil, "targetId is not an ID")
		}
	default:
		return nil, ledger.Refuse(ledger.Invalid, nil, "unknown targetType %q", p.TargetType)
	}
	user, now := c.Cmd.Actor.ID, core.TimeOf(c.Now)
	row := i.ID + "." + core.TextKey(p.Target+"/"+user)
	v, ok := votes.Get(c.Tx, i.Company, row)
	if !ok {
		if len(VotesOf(c.Tx, i)) >= maxVotes {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "An issue can have at most %d votes", maxVotes)
		}
		v = Vote{ID: core.DerivedID("vote", row), Company: i.Company, Issue: i.ID, TargetType: p.TargetType, Target: p.Target,
			User: user, CreatedAt: now}
	}
	v.Vote, v.Reason, v.AllowSharing, v.UpdatedAt = p.Vote, core.NullText(p.Reason), p.AllowSharing, now
	votes.Put(c.Tx, i.Company, row, v)
	c.Record(ledger.Change{Action: "issue.feedback_vote_saved", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("targetType", p.TargetType).Str("targetId", p.Target).
			Str("vote", p.Vote).Close()})
	return v, nil
}
