package company

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/ledger"
)

// Who has to do with which issues, so that an inbox reads what it shows and not
// all comments of the company:
//
//	issue-touch/<how>.<who>/<issue>    how: made, has or said; who: user:<id> or agent:<id>
//	issue-said/<issue>.<who>           when somebody commented last, and how often
//
// What agents have is in the index of assignees. Of comments by more than
// MaxVoices on one issue the rest are kept as of one, "others".
var (
	issuesTouched = ledger.NewIndex("issue-touch")
	saidOn        = ledger.NewTable[said]("issue-said")
)

// MaxVoices bounds those who are told apart among the authors of an issue's comments.
const MaxVoices = 100

// A said is what somebody has said on an issue.
type said struct {
	Last  Time   `cbor:"1,keyasint"`
	Count uint64 `cbor:"2,keyasint"` // comments that were not deleted
}

const otherVoices = "others"

func userVoice(id string) string  { return "user:" + id }
func agentVoice(id string) string { return "agent:" + id }

// voice names the author of a comment.
func (cm Comment) voice() string {
	switch {
	case cm.AuthorUser != "":
		return userVoice(string(cm.AuthorUser))
	case cm.AuthorAgent != "":
		return agentVoice(string(cm.AuthorAgent))
	}
	return "system"
}

func hands(how, who, id string) string {
	if id == "" {
		return ""
	}
	return how + "." + who + ":" + id
}

// keepHands keeps who made and who has an issue; old is zero for a new one, next
// for one that goes.
func keepHands(tx *ledger.Tx, old, next Issue) {
	of, id := cmp.Or(next.Company, old.Company), cmp.Or(next.ID, old.ID)
	reindex(tx, issuesTouched, of, hands("made", "user", old.CreatedUser), hands("made", "user", next.CreatedUser), id)
	reindex(tx, issuesTouched, of, hands("made", "agent", old.CreatedAgent), hands("made", "agent", next.CreatedAgent), id)
	reindex(tx, issuesTouched, of, hands("has", "user", old.AssigneeUser), hands("has", "user", next.AssigneeUser), id)
}

// hear notes a comment.
func hear(tx *ledger.Tx, cm Comment) {
	who := cm.voice()
	row, ok := saidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	if !ok && voices(tx, cm.Company, cm.Issue) >= MaxVoices {
		who = otherVoices
		row, ok = saidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	}
	row.Last = max(row.Last, cm.CreatedAt)
	row.Count++
	saidOn.Put(tx, cm.Company, cm.Issue+"."+who, row)
	if !ok {
		issuesTouched.Add(tx, cm.Company, "said."+who, cm.Issue)
	}
}

func voices(tx *ledger.Tx, company, issue string) (n int) {
	for range tx.Prefix(saidOn.Key(company, issue+".")) {
		n++
	}
	return n
}

// unhear notes that a comment was deleted: what its author said last is what is
// left of them. The comment is marked already.
func unhear(tx *ledger.Tx, cm Comment) {
	who := cm.voice()
	row, ok := saidOn.Get(tx, cm.Company, cm.Issue+"."+who)
	if !ok {
		who = otherVoices
		if row, ok = saidOn.Get(tx, cm.Company, cm.Issue+"."+who); !ok {
			return
		}
	}
	if row.Count--; row.Count == 0 {
		saidOn.Delete(tx, cm.Company, cm.Issue+"."+who)
		issuesTouched.Remove(tx, cm.Company, "said."+who, cm.Issue)
		return
	}
	if row.Last == cm.CreatedAt && who != otherVoices {
		prefix := comments.Key(cm.Company, cm.Issue+".")
		for _, v := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
			if c := decodeRow[Comment](v); c.DeletedAt == 0 && c.voice() == who {
				row.Last = c.CreatedAt
				break
			}
		}
	}
	saidOn.Put(tx, cm.Company, cm.Issue+"."+who, row)
}

// dropVoices removes what was kept of the comments of a deleted issue.
func dropVoices(tx *ledger.Tx, i Issue) {
	prefix := saidOn.Key(i.Company, i.ID+".")
	for k := range tx.Prefix(prefix) {
		issuesTouched.Remove(tx, i.Company, "said."+string(k[len(prefix):]), i.ID)
		tx.Delete(slices.Clone(k))
	}
}

// spoke reports whether somebody has commented on an issue.
func spoke(tx *ledger.Tx, i Issue, who string) bool {
	return tx.Has(saidOn.Key(i.Company, i.ID+"."+who))
}

// heard returns when somebody commented on an issue last, and when others did.
func heard(tx *ledger.Tx, i Issue, who string) (s standing) {
	prefix := saidOn.Key(i.Company, i.ID+".")
	for k, v := range tx.Prefix(prefix) {
		if last := decodeRow[said](v).Last; string(k[len(prefix):]) == who {
			s.mine = last
		} else {
			s.others = max(s.others, last)
		}
	}
	return s
}

// issuesOfUser yields the IDs of the issues that a user made, has or spoke on.
func issuesOfUser(tx *ledger.Tx, company, user string) iter.Seq[string] {
	return handled(tx, company, nil, hands("made", "user", user), hands("has", "user", user), hands("said", "user", user))
}

// issuesOfAgent yields the IDs of the issues that an agent made, has or spoke on.
func issuesOfAgent(tx *ledger.Tx, company, agent string) iter.Seq[string] {
	return handled(tx, company, issuesOf(tx, company, agent), hands("made", "agent", agent), hands("said", "agent", agent))
}

// handled yields each ID once that first or the index has under the values.
func handled(tx *ledger.Tx, company string, first iter.Seq[string], values ...string) iter.Seq[string] {
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

// inboxRules are what the inbox adds to the kernel.
var inboxRules = Rules{
	Kinds: slices.Concat(readStateKinds, indexingKinds, dismissalKinds, voteKinds),
	CompanyStored: func(c *ledger.Context, was, row Company, _ SaveCompany) error {
		if was.ID == "" {
			indexed(c.Tx, row.ID)
		}
		return nil
	},
	IssueStored: func(tx *ledger.Tx, was, next Issue) Issue {
		keepHands(tx, was, next)
		return next
	},
	IssueDeleted: func(c *ledger.Context, i Issue) {
		dropVotes(c.Tx, i)
		dropReads(c.Tx, i)
	},
	CommentAdded: func(c *ledger.Context, _ Issue, cm Comment, _ []string) error {
		hear(c.Tx, cm)
		return nil
	},
	CommentEmptied: unhear,
	CommentsGone:   dropVoices,
}
