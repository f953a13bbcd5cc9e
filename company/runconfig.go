package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Bounds of a fat context, so that it fits into one environment variable.
const (
	maxFatIssues   = 20
	maxFatComments = 10
	maxFatText     = 2 << 10
)

type fatIssue struct {
	ID       string             `json:"id"`
	Title    string             `json:"title"`
	Status   entity.IssueStatus `json:"status"`
	Priority entity.Priority    `json:"priority"`
	Project  core.NullText      `json:"projectId"`
}

type fatComment struct {
	ID          string        `json:"id"`
	AuthorAgent core.NullText `json:"authorAgentId"`
	AuthorUser  core.NullText `json:"authorUserId"`
	Body        string        `json:"body"`
	CreatedAt   core.Time     `json:"createdAt"`
}

type fatGoal struct {
	ID          string            `json:"id"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Status      entity.GoalStatus `json:"status"`
}

// WakeOf returns the context of a run as the agent gets it. For agents whose contextMode
// is thin, the default, it has IDs and reasons. For fat ones it also has their assigned
// issues, the issue's goal, their budget, and the latest comments, oldest first.
func WakeOf(tx *ledger.Tx, r entity.Run, now core.Time) (json.RawMessage, error) {
	thin, err := json.Marshal(r.Context)
	a, ok := entity.Wakeable(tx, r.Company, r.Agent)
	if err != nil || !ok || a.Mode() != "fat" {
		return thin, err
	}
	var all map[string]any
	if err := json.Unmarshal(thin, &all); err != nil {
		return nil, err
	}
	assigned := []fatIssue{}
	for id := range entity.IssuesOf(tx, r.Company, r.Agent, entity.IssueInProgress, entity.IssueTodo, entity.IssueInReview,
		entity.IssueBlocked) {
		if len(assigned) == maxFatIssues {
			break
		}
		if i, ok := entity.IssueOf(tx, r.Company, id); ok {
			assigned = append(assigned, fatIssue{i.ID, fatText(i.Title), i.Status, i.Priority, core.NullText(i.Project)})
		}
	}
	all["assignments"] = assigned
	all["budget"] = Ask.Told(tx, r.Company, r.Agent, now)
	comments := []fatComment{}
	if i, ok := entity.IssueOf(tx, r.Company, r.Context.Issue()); ok {
		all["issue"] = map[string]any{"id": i.ID, "title": i.Title, "status": i.Status, "description": fatText(i.Description)}
		if g, ok := entity.GoalOf(tx, r.Company, i.Goal); ok {
			all["goal"] = fatGoal{g.ID, g.Title, fatText(string(g.Description)), g.Status}
		}
		list, err := entity.CommentsOf(tx, i, entity.CommentQuery{Limit: maxFatComments})
		if err != nil {
			return nil, err
		}
		for _, c := range slices.Backward(list) {
			if c.DeletedAt == 0 {
				comments = append(comments, fatComment{c.ID, c.AuthorAgent, c.AuthorUser, fatText(c.Body), c.CreatedAt})
			}
		}
	}
	all["recentComments"] = comments
	return json.Marshal(all)
}

// fatText returns the beginning of a text.
func fatText(s string) string {
	if len(s) <= maxFatText {
		return s
	}
	cut := maxFatText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
