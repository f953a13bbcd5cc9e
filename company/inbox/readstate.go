package inbox

import (
	"cmp"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ReadState says when a user last read an issue.
type ReadState struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue     string           `cbor:"3,keyasint" json:"issueId"`
	User      string           `cbor:"4,keyasint" json:"userId"`
	ReadAt    core.Time        `cbor:"5,keyasint" json:"lastReadAt"`
	CreatedAt core.Time        `cbor:"6,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"7,keyasint" json:"updatedAt"`
}

// An InboxArchive says that a user archived an issue until it changes again.
type InboxArchive struct {
	ID            string           `cbor:"1,keyasint" json:"id"`
	Company       ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue         string           `cbor:"3,keyasint" json:"issueId"`
	User          string           `cbor:"4,keyasint" json:"userId"`
	ArchivedType  string           `cbor:"5,keyasint" json:"archivedByActorType"`
	ArchivedAgent core.NullText    `cbor:"6,keyasint,omitempty" json:"archivedByAgentId"`
	ArchivedRun   core.NullText    `cbor:"7,keyasint,omitempty" json:"archivedByRunId"`
	ArchivedAt    core.Time        `cbor:"8,keyasint" json:"archivedAt"`
	CreatedAt     core.Time        `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt     core.Time        `cbor:"10,keyasint" json:"updatedAt"`
}

// Both tables are keyed by "<issue>.<hash of the user>": the rows of one issue are adjacent,
// and a user's name may contain any character.
var (
	reads    = ledger.NewTable[string, ReadState]("issue-read")
	archives = ledger.NewTable[string, InboxArchive]("issue-archive")
)

func readerKey(issue, user string) string { return issue + "." + core.TextKey(user) }

// MarkIssue is the payload of issue.read, issue.unread, issue.archive and issue.unarchive.
// It changes one user's view of one issue.
type MarkIssue struct {
	Issue string `cbor:"1,keyasint"`
	User  string `cbor:"2,keyasint,omitempty"` // empty: the actor
}

const (
	KindIssueRead      = "issue.read"
	KindIssueUnread    = "issue.unread"
	KindIssueArchive   = "issue.archive"
	KindIssueUnarchive = "issue.unarchive"
)

var readStateKinds = []company.Kind{
	{Name: KindIssueRead, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Marks, Do: ledger.Typed(markRead)},
	{Name: KindIssueUnread, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Marks, Do: ledger.Typed(markUnread)},
	{Name: KindIssueArchive, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Marks, Do: ledger.Typed(archiveIssue)},
	{Name: KindIssueUnarchive, From: company.FromBoard | company.FromAgent, Traits: company.SeldomWork,
		Weight: company.Weights.Marks, Do: ledger.Typed(unarchiveIssue)},
}

// marked returns the issue and the user whose view changes. An agent has no inbox; it marks
// for the user who is responsible for the issue.
func marked(c *ledger.Context, p MarkIssue) (entity.Issue, string, error) {
	i, ok := entity.IssueTable.Get(c.Tx, c.Cmd.Company, p.Issue)
	if !ok {
		return i, "", company.ErrNoIssue()
	}
	user := cmp.Or(p.User, c.Cmd.Actor.ID)
	if c.Cmd.Actor.Type == "agent" {
		user = i.ResponsibleUser
	}
	if user == "" {
		return i, "", ledger.Refuse(ledger.Unprocessable, nil, "Issue has no responsible user")
	}
	return i, user, nil
}

func markRead(c *ledger.Context, p MarkIssue) (any, error) {
	i, user, err := marked(c, p)
	if err != nil {
		return nil, err
	}
	key, now := readerKey(i.ID, user), core.TimeOf(c.Now)
	r, ok := reads.Get(c.Tx, i.Company, key)
	if !ok {
		if err := roomForReader(c.Tx, "issue-read", i); err != nil {
			return nil, err
		}
		r = ReadState{ID: core.DerivedID("issue-read", i.ID, user), Company: i.Company, Issue: i.ID, User: user,
			CreatedAt: now}
	}
	r.ReadAt, r.UpdatedAt = now, now
	c.Record(ledger.Change{Action: "issue.read_marked", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("userId", user).Time("lastReadAt", now).Close()})
	return reads.Put(c.Tx, i.Company, key, r), nil
}

func markUnread(c *ledger.Context, p MarkIssue) (any, error) {
	i, user, err := marked(c, p)
	if err != nil {
		return nil, err
	}
	key := readerKey(i.ID, user)
	removed := c.Has(reads.Key(i.Company, key))
	if removed {
		reads.Delete(c.Tx, i.Company, key)
		c.Record(ledger.Change{Action: "issue.read_unmarked", EntityType: "issue", EntityID: i.ID,
			Details: core.Object{}.Str("userId", user).Close()})
	}
	return Removed{i.ID, removed}, nil
}

// Removed says whether there was a mark to remove.
type Removed struct {
	ID      string `cbor:"1,keyasint" json:"id"`
	Removed bool   `cbor:"2,keyasint" json:"removed"`
}

func archiveIssue(c *ledger.Context, p MarkIssue) (any, error) {
	i, user, err := marked(c, p)
	if err != nil {
		return nil, err
	}
	key, now := readerKey(i.ID, user), core.TimeOf(c.Now)
	a, ok := archives.Get(c.Tx, i.Company, key)
	if !ok {
		if err := roomForReader(c.Tx, "issue-archive", i); err != nil {
			return nil, err
		}
		a = InboxArchive{ID: core.DerivedID("issue-archive", i.ID, user), Company: i.Company, Issue: i.ID, User: user,
			CreatedAt: now}
	}
	a.ArchivedType, a.ArchivedAgent, a.ArchivedRun = "user", "", ""
	if c.Cmd.Actor.Type == "agent" {
		a.ArchivedType, a.ArchivedAgent, a.ArchivedRun = "agent", core.NullText(c.Cmd.Actor.ID), core.NullText(c.Cmd.Run)
	}
	a.ArchivedAt, a.UpdatedAt = now, now
	c.Record(ledger.Change{Action: "issue.inbox_archived", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("userId", user).Time("archivedAt", now).Str("targetResolvedFrom",
			"responsible_user").Close()})
	return archives.Put(c.Tx, i.Company, key, a), nil
}

func unarchiveIssue(c *ledger.Context, p MarkIssue) (any, error) {
	i, user, err := marked(c, p)
	if err != nil {
		return nil, err
	}
	key := readerKey(i.ID, user)
	removed := c.Has(archives.Key(i.Company, key))
	if removed {
		archives.Delete(c.Tx, i.Company, key)
		c.Record(ledger.Change{Action: "issue.inbox_unarchived", EntityType: "issue", EntityID: i.ID,
			Details: core.Object{}.Str("userId", user).Close()})
	}
	return Removed{i.ID, removed}, nil
}

// Archived reports whether user has archived the issue since it last changed.
func Archived(tx *ledger.Tx, i entity.Issue, user string) bool {
	a, ok := archives.Get(tx, i.Company, readerKey(i.ID, user))
	return ok && a.ArchivedAt >= i.UpdatedAt
}

func roomForReader(tx *ledger.Tx, table string, i entity.Issue) error {
	n := 0
	for range tx.Prefix(ledger.Key("c", string(i.Company), table, i.ID+".")) {
		n++
	}
	if n >= entity.MaxReads {
		return ledger.Refuse(ledger.Unprocessable, nil, "An issue keeps at most %d readers", entity.MaxReads)
	}
	return nil
}

// dropReads deletes every user's view of i.
func dropReads(tx *ledger.Tx, i entity.Issue) {
	for _, table := range []string{"issue-read", "issue-archive"} {
		for k := range tx.Prefix(ledger.Key("c", string(i.Company), table, i.ID+".")) {
			tx.Delete(k)
		}
	}
}
