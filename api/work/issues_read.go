package work

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// issueQuery parses the filters, the order and the page of a list.
func issueQuery(rc *api.Request) (q inbox.IssueQuery, err error) {
	if q, err = issueChoice(rc); err != nil {
		return q, err
	}
	if err := issueOrder(rc, &q); err != nil {
		return q, err
	}
	if q.Limit, err = rc.QueryInt("limit", entity.DefaultIssueLimit, 1, entity.MaxIssueLimit); err != nil {
		return q, err
	}
	q.Offset, err = rc.QueryInt("offset", 0, 0, 1<<31-1)
	return q, err
}

// issueChoices are the query parameters that issueChoice parses.
func issueChoices() []api.Param {
	return []api.Param{
		{Name: "status", Doc: "statuses, separated by commas"}, {Name: "assigneeAgentId", Doc: "UUID, me or none"},
		{Name: "assigneeUserId", Doc: "user ID or me"}, {Name: "projectId"}, {Name: "goalId"}, {Name: "createdByAgentId"},
		{Name: "parentId"}, {Name: "parentIssueId", Doc: "the same as parentId"}, {Name: "labelId"},
		{Name: "q", Doc: "text in identifier, title or description"}, {Name: "updatedSince", Doc: "ISO date"},
		{Name: "touchedByUserId", Doc: "what a user made, has or commented on; me"}, {Name: "inboxArchivedByUserId",
			Doc: "without what a user put away; me"},
		{Name: "unreadForUserId", Doc: "what others have commented on since a user looked; me"},
		{Name: "descendantOf", Doc: "an issue: all below it"},
		{Name: "participantAgentId", Doc: "what an agent made, has or commented on"}, {Name: "executionWorkspaceId"},
		{Name: "workspaceId", Doc: "of a project"},
		{Name: "originKind"}, {Name: "originKindPrefix"}, {Name: "originId"}, {Name: "workMode"},
		{Name: "excludeRoutineExecutions", Type: "boolean"},
		{Name: "attention", Doc: "blocked: those that are, unless status says otherwise"},
	}
}

// issueChoice parses which issues are selected.
func issueChoice(rc *api.Request) (q inbox.IssueQuery, err error) {
	for _, f := range []struct {
		name string
		to   *string
	}{{"projectId", &q.Project}, {"goalId", &q.Goal}, {"parentId", &q.Parent}, {"labelId", &q.Label},
		{"createdByAgentId", &q.CreatedAgent}} {
		if *f.to, err = rc.QueryUUID(f.name); err != nil {
			return q, err
		}
	}
	switch rc.Query("assigneeAgentId") {
	case "null", "none":
		q.Unassigned = true
	case "me":
		q.Assignee = rc.Actor.ID
	default:
		if q.Assignee, err = rc.QueryUUID("assigneeAgentId"); err != nil {
			return q, err
		}
	}
	if q.AssigneeUser = rc.Query("assigneeUserId"); q.AssigneeUser == "me" {
		q.AssigneeUser = rc.Actor.ID
	}
	if q.Text = strings.TrimSpace(rc.Query("q")); len(q.Text) > inbox.MaxQuery {
		return q, api.Invalid("Invalid q: at most %d bytes", inbox.MaxQuery)
	}
	for _, part := range rc.QueryList("status") {
		s := entity.IssueStatus(part)
		if !s.Valid() {
			return q, api.Invalid("Invalid status: %s", part)
		}
		q.Statuses = append(q.Statuses, s)
	}
	switch rc.Query("attention") {
	case "":
	case "blocked":
		if len(q.Statuses) == 0 {
			q.Statuses = []entity.IssueStatus{entity.IssueBlocked}
		}
	default:
		return q, api.Invalid("Invalid attention: only blocked is known")
	}
	if err := issueFilters(rc, &q); err != nil {
		return q, err
	}
	since, err := rc.QueryTime("updatedSince")
	if err != nil {
		return q, err
	}
	q.UpdatedSince = core.TimeOf(since)
	return q, nil
}

func issueOrder(rc *api.Request, q *inbox.IssueQuery) error {
	switch field := rc.Query("sortField") + rc.Query("sort"); field {
	case "":
	case "updatedAt", "updated", "lastActivityAt":
		q.Sort, q.Descending = inbox.SortUpdated, true
	case "createdAt", "created", "issueNumber", "id":
		q.Sort, q.Descending = inbox.SortCreated, true
	case "priority":
		q.Sort = inbox.SortPriority
	case "title":
		q.Sort = inbox.SortTitle
	case "status":
		q.Sort = inbox.SortStatus
	default:
		return api.Invalid("Invalid sortField: %s", field)
	}
	switch dir := rc.Query("sortDir") + rc.Query("order"); dir {
	case "":
	case "asc":
		q.Descending = false
	case "desc":
		q.Descending = true
	default:
		return api.Invalid("Invalid sortDir: %s", dir)
	}
	return nil
}

// listedIssues returns an encoded list. With live, each row counts the issues below it
// that are being worked on.
func listedIssues(tx *ledger.Tx, of ledger.CompanyID, q inbox.IssueQuery, live bool) json.RawMessage {
	found := inbox.ListIssues(tx, of, q)
	var below map[string]int
	if live {
		below = entity.LiveBelow(tx, of)
	}
	rows := make([]json.RawMessage, len(found))
	for n, i := range found {
		b := listedRow(tx, i, q.Viewer())
		if live {
			b = b.Int("liveDescendantCount", int64(below[i.ID]))
		}
		rows[n] = b.Close()
	}
	return jsonList(rows)
}

// inboxLite is an agent's open work in short form: what is in progress first, then by
// priority.
func inboxLite(tx *ledger.Tx, of ledger.CompanyID, agent string) json.RawMessage {
	found := inbox.ListIssues(tx, of, inbox.IssueQuery{Assignee: agent,
		Statuses: []entity.IssueStatus{entity.IssueTodo, entity.IssueInProgress, entity.IssueInReview, entity.IssueBlocked}})
	slices.SortStableFunc(found, func(a, b entity.Issue) int { return atWork(b) - atWork(a) })
	rows := make([]json.RawMessage, len(found))
	for n, i := range found {
		waiting := entity.Unresolved(tx, i)
		ids := make([]string, len(waiting))
		for k, w := range waiting {
			ids[k] = w.ID
		}
		rows[n] = core.Object{}.Str("id", i.ID).Str("identifier", i.Identifier).Str("title", i.Title).
			Str("status", string(i.Status)).
			Str("priority", string(i.Priority)).Null("projectId", i.Project).Null("goalId", i.Goal).Null("parentId", i.Parent).
			Time("updatedAt", i.UpdatedAt).With(activeRunMember(tx, i)).Bool("dependencyReady", len(waiting) == 0).
			Int("unresolvedBlockerCount", int64(len(waiting))).Value("unresolvedBlockerIssueIds", ids).Close()
	}
	return jsonList(rows)
}

func atWork(i entity.Issue) int {
	if i.Status == entity.IssueInProgress {
		return 1
	}
	return 0
}

// heartbeatContext is what an agent needs to start work on an issue. project and goal
// are encoded JSON or nil.
func heartbeatContext(tx *ledger.Tx, i entity.Issue, wakeComment string, project,
	goal []byte) (json.RawMessage, error) {
	issue := core.Object{}.Str("id", i.ID).Str("identifier", i.Identifier).Str("title", i.Title).Null("description",
		i.Description).
		Str("status", string(i.Status)).Str("workMode", i.Mode()).With(attentionMember(tx, i)).Fixed(noReview).
		With(retryMember(tx, i)).With(recoveryMember(tx, i)).
		Str("priority", string(i.Priority)).Null("projectId", i.Project).Null("goalId", i.Goal).Null("parentId", i.Parent).
		With(refsMember("blockedBy", refsOf(entity.Blockers(tx, i)))).
		With(refsMember("blocks", waiting(tx, i, company.ExtrasOf(tx, i.Company, i.ID)))).
		Null("assigneeAgentId", i.Assignee).Null("assigneeUserId", i.AssigneeUser).Str("originKind", i.Origin()).
		Null("originId", i.OriginID).
		Raw("executionState", i.ExecutionStateJSON()).Time("updatedAt", i.UpdatedAt).Close()
	latest, err := entity.CommentsOf(tx, i, entity.CommentQuery{Limit: 1})
	if err != nil {
		return nil, err
	}
	cursor := core.Object{}.Int("totalComments", int64(i.Comments))
	if len(latest) > 0 {
		cursor = cursor.Str("latestCommentId", latest[0].ID).Time("latestCommentAt", latest[0].CreatedAt)
	} else {
		cursor = cursor.Fixed(`"latestCommentId":null,"latestCommentAt":null`)
	}
	b := core.Object{}.Raw("issue", issue).With(ancestorsMember(tx, i)).Raw("project", project).Raw("goal", goal).
		Raw("commentCursor", cursor.Close())
	if cm, ok := entity.CommentOf(tx, i.Company, i.ID, wakeComment); ok && wakeComment != "" {
		b = b.Value("wakeComment", cm)
	} else {
		b = b.Raw("wakeComment", nil)
	}
	return b.Value("attachments", contextAttachments(tx, i)).
		Fixed(`"continuationSummary":null,"planReviewContext":null,"documentReviewContext":null`).
		Value("currentExecutionWorkspace", currentWorkspace(tx, i)).Close(), nil
}

// searchAnswer returns an encoded page of search results.
func searchAnswer(tx *ledger.Tx, of ledger.CompanyID, prefix, query string, limit, offset int,
	now core.Time) json.RawMessage {
	found := inbox.Search(tx, of, query, limit, offset)
	if limit == 0 {
		limit = inbox.DefaultSearchLimit
	}
	rows := make([]json.RawMessage, len(found.Hits))
	counts := map[string]map[string]int{"status": {}, "priority": {}, "assigneeAgentId": {}, "assigneeUserId": {},
		"projectId": {}, "labelId": {}, "updatedWithin": {}}
	for n, h := range found.Hits {
		i := h.Issue
		for name, v := range map[string]string{"status": string(i.Status), "priority": string(i.Priority),
			"assigneeAgentId": i.Assignee, "assigneeUserId": i.AssigneeUser, "projectId": i.Project} {
			if v != "" {
				counts[name][v]++
			}
		}
		for name, days := range map[string]core.Time{"24h": 1, "7d": 7, "30d": 30, "90d": 90} {
			if now-i.UpdatedAt <= days*24*3_600_000 {
				counts["updatedWithin"][name]++
			}
		}
		for _, id := range i.Labels {
			counts["labelId"][id]++
		}
		rows[n] = searchHit(h, prefix)
	}
	if last := offset + len(found.Hits); last >= found.Total {
		// Agents and projects come after all issues, if the page has room.
		others := make([]json.RawMessage, 0, len(found.Agents)+len(found.Projects))
		for _, a := range found.Agents {
			others = append(others, nameHit("agent", a.ID, a.Name, "/"+prefix+"/agents/"+core.URLKey(a.Name), a.UpdatedAt))
		}
		for _, p := range found.Projects {
			others = append(others, nameHit("project", p.ID, p.Name, "/"+prefix+"/projects/"+core.URLKey(p.Name), p.UpdatedAt))
		}
		others = others[min(max(offset-found.Total, 0), len(others)):]
		rows = append(rows, others[:min(limit-len(rows), len(others))]...)
	}
	total := found.Total + len(found.Agents) + len(found.Projects)
	return core.Object{}.Str("query", query).Str("normalizedQuery",
		strings.ToLower(strings.Join(strings.Fields(query), " "))).
		Fixed(`"scope":"all","sort":"relevance"`).Int("limit", int64(limit)).Int("offset", int64(offset)).
		Raw("results", jsonList(rows)).
		Value("countsByType", map[string]int{"issue": found.Total, "comment": found.Comments, "document": found.Docs,
			"artifact": 0, "agent": len(found.Agents), "project": len(found.Projects)}).
		Value("filterOptionCounts", counts).Fixed(`"zeroResults":null`).Bool("hasMore", offset+len(rows) < total).
		Bool("partial", found.Partial).Close()
}

// nameHit is an agent or a project whose name matched.
func nameHit(kind, id, name, href string, updated core.Time) json.RawMessage {
	label := strings.ToUpper(kind[:1]) + kind[1:]
	return core.Object{}.Str("id", id).Str("type", kind).Int("score", 1_000).Str("title", name).Str("href", href).
		Value("matchedFields", []string{"name"}).
		Str("sourceLabel", label).Str("snippet", name).Raw("snippets", jsonList(nil)).Raw("issue", nil).Time("updatedAt",
		updated).Fixed(`"previewImageUrl":null`).Close()
}

func searchHit(h inbox.Hit, prefix string) json.RawMessage {
	i := h.Issue
	snippets := make([]json.RawMessage, len(h.Snippets))
	first := i.Title
	for n, s := range h.Snippets {
		label := strings.ToUpper(s.Field[:1]) + s.Field[1:]
		marks := jsonList(nil)
		if s.End > s.Start {
			marks = jsonList([]json.RawMessage{core.Object{}.Int("start", int64(utf16Len(s.Text[:s.Start]))).
				Int("end", int64(utf16Len(s.Text[:s.End]))).Close()})
		}
		if n == 0 {
			first = s.Text
		}
		snippets[n] = core.Object{}.Str("field", s.Field).Str("label", label).Str("text", s.Text).Raw("highlights",
			marks).Close()
	}
	label := strings.ToUpper(h.Fields[0][:1]) + h.Fields[0][1:]
	issue := core.Object{}.Str("id", i.ID).Str("identifier", i.Identifier).Str("title", i.Title).
		Str("status", string(i.Status)).Str("priority", string(i.Priority)).
		Null("assigneeAgentId", i.Assignee).Null("assigneeUserId", i.AssigneeUser).Null("projectId", i.Project).
		Time("updatedAt", i.UpdatedAt).Close()
	return core.Object{}.Str("id", i.ID).Str("type", "issue").Int("score", int64(h.Score)).
		Str("title", i.Identifier+" "+i.Title).
		Str("href", issuePage(prefix, i)).Value("matchedFields", h.Fields).Str("sourceLabel", label).Str("snippet", first).
		Raw("snippets", jsonList(snippets)).Raw("issue", issue).Time("updatedAt", i.UpdatedAt).
		Fixed(`"previewImageUrl":null`).Close()
}

// issuePage is the path of the board's page of an issue, in a company with a prefix.
func issuePage(prefix string, i entity.Issue) string {
	return "/" + prefix + "/issues/" + i.Identifier
}

// utf16Len is the length of s in UTF-16 code units, as JavaScript counts it.
func utf16Len(s string) (n int) {
	for _, c := range s {
		if n++; c > 0xffff {
			n++
		}
	}
	return n
}
