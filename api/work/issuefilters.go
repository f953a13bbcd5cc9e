package work

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// issueFilters parses the filters of a list of issues that are not fields of the issue.
// "me" is the calling person.
func issueFilters(rc *api.Request, q *inbox.IssueQuery) (err error) {
	for _, f := range []struct {
		name string
		to   *string
	}{{"touchedByUserId", &q.Touched}, {"inboxArchivedByUserId", &q.InInboxOf}, {"unreadForUserId", &q.UnreadBy}} {
		if *f.to = rc.Query(f.name); *f.to == "me" {
			if !rc.IsBoard() {
				return api.Forbidden(f.name + "=me requires board authentication")
			}
			*f.to = rc.Actor.ID
		}
		if len(*f.to) > maxUserRef {
			return api.Invalid("Invalid %s", f.name)
		}
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{"descendantOf", &q.Below}, {"participantAgentId", &q.Agent}, {"executionWorkspaceId", &q.Space},
		{"workspaceId", &q.Workspace}} {
		if *f.to, err = rc.QueryUUID(f.name); err != nil {
			return err
		}
	}
	if q.Parent == "" {
		if q.Parent, err = rc.QueryUUID("parentIssueId"); err != nil {
			return err
		}
	}
	q.Origin, q.OriginText, q.OriginID, q.WorkMode = rc.Query("originKind"), rc.Query("originKindPrefix"),
		rc.Query("originId"), rc.Query("workMode")
	if len(q.Origin)+len(q.OriginText)+len(q.OriginID)+len(q.WorkMode) > 4*maxUserRef {
		return api.Invalid("Invalid originKind, originId or workMode")
	}
	q.NoRoutines, err = rc.QueryBool("excludeRoutineExecutions")
	return err
}

// maxUserRef bounds a reference to a user or an origin, in bytes.
const maxUserRef = 200

// inboxMine lists a person's inbox for the agent that manages it.
func inboxMine(rc *api.Request) (r api.Response, err error) {
	q := inbox.IssueQuery{Sort: inbox.SortUpdated, Descending: true}
	user := rc.Query("userId")
	if user == "" || len(user) > maxUserRef {
		return r, api.Invalid("Invalid userId: whose inbox?")
	}
	q.Touched, q.InInboxOf = user, user
	for _, part := range orList(rc.QueryList("status"), []string{"backlog", "todo", "in_progress", "in_review",
		"blocked", "done"}) {
		s := entity.IssueStatus(part)
		if !s.Valid() {
			return r, api.Invalid("Invalid status: %s", api.Cut(part, 40))
		}
		q.Statuses = append(q.Statuses, s)
	}
	err = rc.View(func(tx *ledger.Tx) error {
		r = readyJSON(listedIssues(tx, rc.Company, q, false))
		return nil
	})
	return r, err
}

func orList(list, otherwise []string) []string {
	if len(list) == 0 {
		return otherwise
	}
	return list
}
