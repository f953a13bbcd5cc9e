// Package inbox is how users find issues: lists and filters, search, what a user has read or
// dismissed, and votes.
package inbox

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The index of who touched which issues, so that an inbox reads only what it shows and not
// all comments of the company:
//
//	issue-touch/<how>.<who>/<issue>    how: made, has or said; who: user:<id> or agent:<id>
//	issue-said/<issue>.<who>           when somebody last commented, and how often
//
// The issues assigned to agents are in the index of assignees. If an issue has more than
// MaxVoices authors of comments, the further ones are stored as one, "others".
var (
	issuesTouched = ledger.NewIndex[string, string]("issue-touch")
	SaidOn        = ledger.NewTable[string, said]("issue-said")
)

// MaxVoices bounds the authors of comments on one issue that are stored individually.
const MaxVoices = 100

// A said is when and how often somebody commented on an issue.
type said struct {
	Last  core.Time `cbor:"1,keyasint"`
	Count uint64    `cbor:"2,keyasint"` // number of comments that are not deleted
}

const OtherVoices = "others"

func userVoice(id string) string  { return "user:" + id }
func agentVoice(id string) string { return "agent:" + id }

// Voice returns the author of a comment, as the index names them.
func Voice(cm entity.Comment) string {
	switch {
	case cm.AuthorUser != "":
		return userVoice(string(cm.AuthorUser))
	case cm.AuthorAgent != "":
		return agentVoice(string(cm.AuthorAgent))
	}
	return "system"
}

func Hands(how, who, id string) string {
	if id == "" {
		return ""
	}
	return how + "." + who + ":" + id
}

// keepHands updates the index of who created an issue and who is assigned. old is zero for a
// new issue, next for a deleted one.
func keepHands(tx *ledger.Tx, old, next entity.Issue) {
	of, id := cmp.Or(next.Company, old.Company), cmp.Or(next.ID, old.ID)
	core.Reindex(tx, issuesTouched, of, Hands("made", "user", old.CreatedUser),
		Hands("made", "user", next.CreatedUser), id)
	core.Reindex(tx, issuesTouched, of, Hands("made", "agent", old.CreatedAgent),
		Hands("made", "agent", next.CreatedAgent), id)
	core.Reindex(tx, issuesTouched, of, Hands("has", "user", old.AssigneeUser),
		Hands("has", "user", next.AssigneeUser), id)
}

// hear adds a comment to the index.
func hear(tx *ledger.Tx, cm entity.Comment) {
	who := Voice(cm)
	row, ok := SaidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	if !ok && voices(tx, cm.Company, cm.Issue) >= MaxVoices {
		who = OtherVoices
		row, ok = SaidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	}
	row.Last = max(row.Last, cm.CreatedAt)
	row.Count++
	SaidOn.Put(tx, cm.Company, cm.Issue+"."+who, row)
	if !ok {
		issuesTouched.Add(tx, cm.Company, "said."+who, cm.Issue)
	}
}

func voices(tx *ledger.Tx, company ledger.CompanyID, issue string) (n int) {
	for range tx.Prefix(SaidOn.Key(company, issue+".")) {
		n++
	}
	return n
}

// unhear removes a deleted comment from the index: its author's last comment is now the last
// of those that remain. The comment is already marked as deleted.
func unhear(tx *ledger.Tx, cm entity.Comment) {
	who := Voice(cm)
	row, ok := SaidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	if !ok {
		who = OtherVoices
		if row, ok = SaidOn.Get(tx, cm.Company, cm.Issue+"."+who); !ok {
			return
		}
	}
	if row.Count--; row.Count == 0 {
		SaidOn.Delete(tx, cm.Company, cm.Issue+"."+who)
		issuesTouched.Remove(tx, cm.Company, "said."+who, cm.Issue)
		return
	}
	if row.Last == cm.CreatedAt && who != OtherVoices {
		prefix := entity.Comments.Key(cm.Company, cm.Issue+".")
		for _, v := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
			if c := core.DecodeRow[entity.Comment](v); c.DeletedAt == 0 && Voice(c) == who {
				row.Last = c.CreatedAt
				break
			}
		}
	}
	SaidOn.Put(tx, cm.Company, cm.Issue+"."+who, row)
}

// dropVoices removes the comments of a deleted issue from the index.
func dropVoices(tx *ledger.Tx, i entity.Issue) {
	prefix := SaidOn.Key(i.Company, i.ID+".")
	for k := range tx.Prefix(prefix) {
		issuesTouched.Remove(tx, i.Company, "said."+string(k[len(prefix):]), i.ID)
		tx.Delete(slices.Clone(k))
	}
}

// spoke reports whether who has commented on an issue.
func spoke(tx *ledger.Tx, i entity.Issue, who string) bool {
	return tx.Has(SaidOn.Key(i.Company, i.ID+"."+who))
}

// heard returns when who last commented on an issue, and when others did.
func heard(tx *ledger.Tx, i entity.Issue, who string) (s standing) {
	prefix := SaidOn.Key(i.Company, i.ID+".")
	for k, v := range tx.Prefix(prefix) {
		if last := core.DecodeRow[said](v).Last; string(k[len(prefix):]) == who {
			s.Mine = last
		} else {
			s.Others = max(s.Others, last)
		}
	}
	return s
}

// issuesOfUser yields the IDs of the issues that a user created, is assigned or commented on.
func issuesOfUser(tx *ledger.Tx, company ledger.CompanyID, user string) iter.Seq[string] {
	return handled(tx, company, nil, Hands("made", "user", user), Hands("has", "user", user), Hands("said", "user", user))
}

// issuesOfAgent yields the IDs of the issues that an agent created, is assigned or commented
// on.
func issuesOfAgent(tx *ledger.Tx, of ledger.CompanyID, agent string) iter.Seq[string] {
	return handled(tx, of, entity.IssuesOf(tx, of, agent), Hands("made", "agent", agent), Hands("said", "agent", agent))
}

// handled yields each ID of first and of the index under the values, without duplicates.
func handled(tx *ledger.Tx, company ledger.CompanyID, first iter.Seq[string], values ...string) iter.Seq[string] {
	all := map[string]bool{}
	if first != nil {
		for id := range first {
			all[id] = true
		}
	}
	for _, v := range values {
		for id := range issuesTouched.IDs(tx, company, v, false) {
			all[id] = true
		}
	}
	return slices.Values(slices.Sorted(maps.Keys(all)))
}

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(readStateKinds, indexingKinds, dismissalKinds, voteKinds),
	CompanyStored: func(c *ledger.Context, was, row entity.Company, _ entity.SaveCompany) error {
		if was.ID == "" {
			indexed(c.Tx, row.ID)
		}
		return nil
	},
	IssueStored: func(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
		keepHands(tx, was, next)
		return next
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) {
		dropVotes(c.Tx, i)
		dropReads(c.Tx, i)
	},
	CommentAdded: func(c *ledger.Context, _ entity.Issue, cm entity.Comment, _ []string) error {
		hear(c.Tx, cm)
		return nil
	},
	CommentEmptied: unhear,
	CommentsGone:   dropVoices,
}
