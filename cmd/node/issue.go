package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// An issueRow is the part of an issue that lists show.
type issueRow struct {
	ID              string  `json:"id"`
	Identifier      string  `json:"identifier"`
	Title           string  `json:"title"`
	Description     *string `json:"description"`
	Status          string  `json:"status"`
	Priority        string  `json:"priority"`
	AssigneeAgentID *string `json:"assigneeAgentId"`
	AssigneeUserID  *string `json:"assigneeUserId"`
	UpdatedAt       string  `json:"updatedAt"`
}

// An issueDetail is an issue with its project and goal, its blockers and its results.
type issueDetail struct {
	issueRow
	CompanyID   string     `json:"companyId"`
	BillingCode *string    `json:"billingCode"`
	Checkout    *string    `json:"checkoutRunId"`
	BlockedBy   []issueRow `json:"blockedBy"`
	Blocks      []issueRow `json:"blocks"`
	Ancestors   []issueRow `json:"ancestors"`
	Labels      []struct {
		Name string `json:"name"`
	} `json:"labels"`
	Project *struct {
		Name string `json:"name"`
	} `json:"project"`
	Goal *struct {
		Title string `json:"title"`
	} `json:"goal"`
	Documents []struct {
		Key string `json:"key"`
	} `json:"documentSummaries"`
	Products []struct {
		Title string `json:"title"`
	} `json:"workProducts"`
}

type commentRow struct {
	AuthorAgentID *string `json:"authorAgentId"`
	AuthorUserID  *string `json:"authorUserId"`
	Body          string  `json:"body"`
	CreatedAt     string  `json:"createdAt"`
}

// who returns the author of a comment.
func (r commentRow) who(names map[string]string) string {
	switch {
	case r.AuthorAgentID != nil:
		return cmp.Or(names[*r.AuthorAgentID], "agent "+cli.Short(*r.AuthorAgentID))
	case r.AuthorUserID != nil && *r.AuthorUserID != localBoard:
		return *r.AuthorUserID
	}
	return "board"
}

// localBoard is the local user of a mesh without sign-in.
const localBoard = "local-board"

// print writes an issue for people. names are the agents' names, runs its queued and
// running runs.
func (r issueDetail) print(w io.Writer, names map[string]string, runs []runRow) {
	fmt.Fprintf(w, "%s  %s\nstatus %s, priority %s, updated %s\n", r.Identifier, cli.Visible(r.Title), r.Status,
		r.Priority, cli.When(w, r.UpdatedAt))
	line := func(name string, words ...string) {
		if text := strings.Join(words, ", "); text != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, cli.Visible(text))
		}
	}
	switch {
	case r.AssigneeAgentID != nil:
		line("assignee", cmp.Or(names[*r.AssigneeAgentID], *r.AssigneeAgentID))
	case r.AssigneeUserID != nil:
		line("assignee", *r.AssigneeUserID)
	}
	if r.Checkout != nil {
		line("held by", "run "+*r.Checkout)
	}
	for _, run := range runs {
		if run.Waiting != nil {
			line("run waits", cmp.Or(names[run.AgentID], cli.Short(run.AgentID))+": "+run.Waiting.Text)
		}
		if run.Waiting != nil && run.Waiting.Do != nil {
			line("to do", *run.Waiting.Do)
		}
	}
	if r.Project != nil {
		line("project", r.Project.Name)
	}
	if r.Goal != nil {
		line("goal", r.Goal.Title)
	}
	if len(r.Ancestors) > 0 {
		line("part of", identified(r.Ancestors[:1])...)
	}
	line("waits for", identified(r.BlockedBy)...)
	line("holds up", identified(r.Blocks)...)
	var labels, documents, products []string
	for _, l := range r.Labels {
		labels = append(labels, l.Name)
	}
	for _, d := range r.Documents {
		documents = append(documents, d.Key)
	}
	for _, p := range r.Products {
		products = append(products, p.Title)
	}
	line("labels", labels...)
	line("documents", documents...)
	line("products", products...)
	if r.BillingCode != nil {
		line("billed to", *r.BillingCode)
	}
	if r.Description != nil {
		fmt.Fprintf(w, "\n%s\n", cli.Visible(*r.Description))
	}
}

// identified formats issues for one line: ACM-2 (done).
func identified(rows []issueRow) (words []string) {
	for _, r := range rows {
		words = append(words, fmt.Sprintf("%s (%s)", r.Identifier, r.Status))
	}
	return words
}

func issueCommand(c *cli.CLI) *cobra.Command {
	show := &cobra.Command{
		Use: "show ISSUE", Short: "Show an issue and its comments", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := "/api/issues/" + url.PathEscape(args[0])
			var row issueDetail
			var comments []commentRow
			var runs []runRow
			if !c.ForMachines() {
				if err := c.Call(cmd.Context(), "GET", at+"/live-runs", nil, &runs); err != nil {
					return err
				}
				if err := c.Call(cmd.Context(), "GET", at+"/comments?order=asc", nil, &comments); err != nil {
					return err
				}
			}
			return c.Show(cmd, at, &row, func(w io.Writer) {
				names, _ := c.AgentNames(cmd, row.CompanyID) // without names IDs are shown
				row.print(w, names, runs)
				for _, m := range comments {
					fmt.Fprintf(w, "\n--- %s, %s\n%s\n", m.who(names), cli.When(w, m.CreatedAt), cli.Visible(m.Body))
				}
			})
		},
	}
	rest := append(interactionCommands(c), attachCommand(c), downloadCommand(c), documentCommand(c))
	return cli.Group("issue", "Create, assign, comment on and close issues", append(append(relationCommands(c), show),
		rest...)...)
}

// issueVerbs are the rows of selvage issue.
var issueVerbs = []cli.Verb{
	{Use: "attachments ISSUE", Short: "List the attachments of an issue", Path: "/api/issues/{1}/attachments",
		Columns: "ATTACHMENT=id NAME=originalFilename BYTES=byteSize TYPE=contentType CREATED=createdAt"},
	{Use: "interactions ISSUE", Short: "List the questions and requests on an issue",
		Path: "/api/issues/{1}/interactions",
		Columns: "ID=id KIND=kind STATUS=status ASKED=createdAt " +
			"ABOUT=title|payload.prompt|payload.questions.0.prompt|payload.tasks.0.title"},
	{Use: "accept ISSUE INTERACTION", Short: "Accept suggested tasks or a confirmation", Method: "POST",
		Path: "/api/issues/{1}/interactions/{2}/accept", Says: "{kind} {status}",
		Fields: []cli.Field{{Name: "tasks", Member: "selectedClientKeys", Kind: "list",
			About: "only these of the suggested tasks, by their keys"},
			{Name: "options", Member: "selectedOptionIds", Kind: "list",
				About: "the options that are chosen, by their IDs"}}},
	{Use: "reject ISSUE INTERACTION", Short: "Reject what was suggested", Method: "POST",
		Path: "/api/issues/{1}/interactions/{2}/reject", Says: "{kind} {status}",
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why"}}},
	{Use: "skip ISSUE INTERACTION", Short: "End what was asked without deciding it", Method: "POST",
		Path: "/api/issues/{1}/interactions/{2}/skip", Says: "{kind} {status}"},
	{Use: "withdraw ISSUE INTERACTION", Short: "Withdraw what was asked", Method: "POST",
		Path: "/api/issues/{1}/interactions/{2}/withdraw", Says: "{kind} {status}"},
	{Use: "list", Short: "List the issues of a company", Path: "/api/companies/{company}/issues",
		Columns: "ISSUE=identifier STATUS=status PRIORITY=priority ASSIGNEE=agent:assigneeAgentId " +
			"UPDATED=updatedAt TITLE=title",
		Fields: []cli.Field{{Name: "status", Member: "status", About: "only these statuses, comma separated"},
			{Name: "assignee", Member: "assigneeAgentId", Kind: "agent or none",
				About: "only this agent's, by name or ID; none for nobody's"},
			{Name: "user", Member: "assigneeUserId", About: "only this user's; me is you"},
			{Name: "goal", Member: "goalId", Kind: "goal", About: "only of this goal"},
			{Name: "project", Member: "projectId", Kind: "project", About: "only of this project"},
			{Name: "label", Member: "labelId", Kind: "label", About: "only with this label"},
			{Name: "parent", Member: "parentId", Kind: "issue", About: "only parts of this issue"},
			{Name: "below", Member: "descendantOf", Kind: "issue", About: "only what is below this issue"},
			{Name: "words", Member: "q", About: "only with these words"},
			{Name: "since", Member: "updatedSince", About: "only what changed since this ISO instant"},
			{Name: "sort", Member: "sortField", About: "created, updated, priority, status or title",
				Value: "created"}, {Name: "order", Member: "sortDir", About: "asc or desc", Value: "asc"}, withLimit,
			withOffset}},
	{Use: "create TITLE", Short: "Create an issue",
		Example: `  selvage issue create "Fix the flaky test" --assignee Bob --label bug`, Method: "POST",
		Path: "/api/companies/{company}/issues", Says: issueSays,
		Fields: append([]cli.Field{{Place: 1, Member: "title"}}, issueFields...)},
	{Use: "comment ISSUE TEXT", Short: "Comment on an issue", Method: "POST", Path: "/api/issues/{1}/comments",
		Says: done,
		Fields: []cli.Field{{Place: 2, Member: "body"},
			{Name: "reopen", Member: "reopen", Kind: "bool", About: "and open the issue again"},
			{Name: "resume", Member: "resume", Kind: "bool",
				About: "and let the work go on: what is done, cancelled or blocked is to do again"},
			{Name: "interrupt", Member: "interrupt", Kind: "bool",
				About: "and end the run at work on the issue, so that its agent is told now"}}},
	{Use: "move ISSUE STATUS", Short: "Move an issue to another status", Method: "PATCH", Path: "/api/issues/{1}",
		Says: "{identifier} {status}", Fields: []cli.Field{{Place: 2, Member: "status"}}},
	{Use: "update ISSUE", Short: "Change an issue", Method: "PATCH", Path: "/api/issues/{1}", Says: issueSays,
		Fields: []cli.Field{{Name: "title", Member: "title", About: "its new title"}, withDescription,
			{Name: "priority", Member: "priority", About: "critical, high, medium or low"},
			{Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "agent that has it; empty for none"},
			{Name: "user", Member: "assigneeUserId", About: "user that has it; empty for none"},
			{Name: "project", Member: "projectId", Kind: "project", About: "its project; empty for none"},
			{Name: "goal", Member: "goalId", Kind: "goal", About: "its goal"},
			{Name: "parent", Member: "parentId", Kind: "issue", About: "the issue that it is part of; empty for none"},
			{Name: "blocked-by", Member: "blockedByIssueIds", Kind: "issues", About: "what it waits for, all of it"},
			{Name: "label", Member: "labelIds", Kind: "labels", About: "its labels, all of them"},
			{Name: "billing-code", Member: "billingCode", About: "where its costs go"}, withMode, withPolicy,
			{Name: "comment", Member: "comment", About: "a comment with it"}}},
	{Use: "part ISSUE TITLE", Short: "Create a sub-issue", Method: "POST", Path: "/api/issues/{1}/children",
		Says: issueSays, Fields: []cli.Field{{Place: 2, Member: "title"}, withDescription,
			{Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "agent that has it"},
			{Name: "priority", Member: "priority", About: "critical, high, medium or low"},
			{Name: "wait", Member: "blockParentUntilDone", Kind: "bool", About: "the issue waits for it"}}},
	{Use: "delete ISSUE", Short: "Delete an issue; its parts move up", Method: "DELETE", Path: "/api/issues/{1}",
		Says: "{identifier} deleted"},
	{Use: "checkout ISSUE AGENT", Short: "Check an issue out for an agent", Method: "POST",
		Path: "/api/issues/{1}/checkout", Says: "{identifier} {status}, fencing token {fencingToken}",
		Fixed: map[string]any{"expectedStatuses": []string{"todo", "backlog", "blocked", "in_review",
			"in_progress"}}, Fields: []cli.Field{{Place: 2, Member: "agentId", Kind: "agent"}}},
	{Use: "release ISSUE", Short: "Release an issue that you checked out", Method: "POST",
		Path: "/api/issues/{1}/release", Says: "{identifier} {status}"},
	{Use: "force-release ISSUE", Short: "Force the release of an issue", Method: "POST",
		Path: "/api/issues/{1}/admin/force-release", Says: "released"},
	{Use: "activity ISSUE", Short: "List what happened to an issue, newest first", Path: "/api/issues/{1}/activity",
		Columns: "AT=createdAt WHO=actorType ACTION=action"},
	{Use: "runs ISSUE", Short: "List the runs for an issue, newest first", Path: "/api/issues/{1}/runs",
		Columns: "RUN=runId AGENT=agent:agentId STATUS=status SOURCE=invocationSource STARTED=startedAt"},
	{Use: "cost ISSUE", Short: "Show what an issue cost", Path: "/api/issues/{1}/cost-summary"},
	{Use: "explain ISSUE", Short: "Explain why an issue does not move, and what it waits for",
		Path: "/api/issues/{1}/diagnostics/blockers", Says: "{issue.identifier} {issue.status}: {diagnosis}"},
	{Use: "stuck ISSUE", Short: "List the issues below one that need attention",
		Path: "/api/issues/{1}/diagnostics/subtree", Rows: "issues",
		Columns: "ID=identifier STATUS=status STUCK=needsAttention RUNS=liveRuns WHY=diagnosis"},
	{Use: "wakes ISSUE", Short: "Explain why an issue's agent was woken, or was not",
		Path: "/api/issues/{1}/diagnostics/wakes", Rows: "events",
		Columns: "AT=requestedAt KIND=kind AGENT=agent:agentId STATUS=status REASON=reason ERROR=error"},
	{Use: "retry ISSUE", Short: "Retry a scheduled run now", Method: "POST",
		Path: "/api/issues/{1}/scheduled-retry/retry-now",
		Says: "{scheduledRetry.runId} {scheduledRetry.scheduledRetryAt}"},
	{Use: "resolve ISSUE OUTCOME STATUS", Short: "Resolve a recovery action of a stuck issue",
		Long:   "OUTCOME is restored, false_positive, blocked or cancelled, STATUS todo, done, in_review or blocked.",
		Method: "POST", Path: "/api/issues/{1}/recovery-actions/resolve",
		Says: "{issue.identifier} {issue.status}",
		Fields: []cli.Field{{Place: 2, Member: "outcome"}, {Place: 3, Member: "sourceIssueStatus"},
			{Name: "note", Member: "resolutionNote", About: "why"}}},
	{Use: "read ISSUE", Short: "Mark an issue as read", Method: "POST", Path: "/api/issues/{1}/read", Says: "read"},
	{Use: "archive ISSUE", Short: "Archive an issue in the inbox until it changes", Method: "POST",
		Path: "/api/issues/{1}/inbox-archive", Says: "put away"},
	{Use: "products ISSUE", Short: "List the work products of an issue", Path: "/api/issues/{1}/work-products",
		Columns: "ID=id TYPE=type STATUS=status TITLE=title URL=url"},
	{Use: "vote ISSUE COMMENT VERDICT", Short: "Vote on an agent's comment: up or down", Method: "POST",
		Path: "/api/issues/{1}/feedback-votes", Says: "{vote}",
		Fixed: map[string]any{"targetType": "issue_comment"},
		Fields: []cli.Field{{Place: 2, Member: "targetId"}, {Place: 3, Member: "vote"},
			{Name: "reason", Member: "reason", About: "why"}}},
	{Use: "stops ISSUE", Short: "List the recovery actions of an issue", Path: "/api/issues/{1}/recovery-actions",
		Rows: "actions", Columns: "KIND=kind STATUS=status OUTCOME=outcome NEXT=nextAction AT=createdAt"},
	{Use: "decisions ISSUE", Short: "List the review decisions of an issue, by stage",
		Path:    "/api/issues/{1}/execution-decisions",
		Columns: "STAGE=stageType OUTCOME=outcome AGENT=agent:actorAgentId USER=actorUserId AT=createdAt TEXT=body"},
	{Use: "approvals ISSUE", Short: "List the approvals that an issue waits or waited for",
		Path: "/api/issues/{1}/approvals", Columns: "ID=id TYPE=type STATUS=status AT=createdAt"},
	{Use: "link ISSUE APPROVAL", Short: "Link an approval to an issue", Method: "POST",
		Path: "/api/issues/{1}/approvals", Says: "linked",
		Fields: []cli.Field{{Place: 2, Member: "approvalId", Kind: "approval"}}},
	{Use: "unlink ISSUE APPROVAL", Short: "Unlink an approval from an issue", Method: "DELETE",
		Path: "/api/issues/{1}/approvals/{approval:2}", Says: "taken off"},
	{Use: "unsay ISSUE COMMENT", Short: "Delete a comment", Method: "DELETE", Path: "/api/issues/{1}/comments/{2}",
		Says: "deleted"},
	{Use: "lock ISSUE DOCUMENT", Short: "Lock a document", Method: "POST",
		Path: "/api/issues/{1}/documents/{2}/lock", Says: "{key} locked"},
	{Use: "unlock ISSUE DOCUMENT", Short: "Unlock a document", Method: "POST",
		Path: "/api/issues/{1}/documents/{2}/unlock", Says: "{key} unlocked"},
	{Use: "comments ISSUE", Short: "List the comments of an issue, the oldest first",
		Path:    "/api/issues/{1}/comments?order=asc",
		Columns: "ID=id AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{Use: "live ISSUE", Short: "List the queued and running runs for an issue", Path: "/api/issues/{1}/live-runs",
		Columns: "RUN=id AGENT=agent:agentId STATUS=status STARTED=startedAt"},
	{Use: "ask ISSUE KIND PAYLOAD", Short: "Suggest tasks, ask questions, or request a confirmation",
		Long: "KIND is suggest_tasks, ask_user_questions, request_confirmation, request_checkbox_confirmation " +
			"or\nrequest_item_verdicts; PAYLOAD is JSON, or a file with it, - is standard input.",
		Method: "POST", Path: "/api/issues/{1}/interactions", Says: "{id} {kind} {status}",
		Fields: []cli.Field{{Place: 2, Member: "kind"},
			{Place: 3, Name: "PAYLOAD", Member: "payload", Kind: "json"},
			{Name: "title", Member: "title", About: "what it is about"},
			{Name: "to", Member: "addresseeAgentId", Kind: "agent", About: "agent that is asked"}}},
	{Use: "votes ISSUE", Short: "List the votes on an issue's comments", Path: "/api/issues/{1}/feedback-votes",
		Columns: "TARGET=targetId VOTE=vote REASON=reason AT=createdAt"},
	{Use: "unread ISSUE", Short: "Mark an issue as not read", Method: "DELETE", Path: "/api/issues/{1}/read",
		Says: "unread"},
	{Use: "unarchive ISSUE", Short: "Show an archived issue in the inbox again", Method: "DELETE",
		Path: "/api/issues/{1}/inbox-archive", Says: "brought back"},
	{Use: "detach [ISSUE] ATTACHMENT", Short: "Delete an attachment, named by ID or file name", Method: "DELETE",
		Path: "/api/attachments/{2}", Example: "  selvage issue detach ACM-1 report.pdf",
		Says: "deleted"},
}

// productVerbs are the rows of selvage issue product.
var productVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the work products of an issue", Path: "/api/issues/{1}/work-products",
		Columns: "ID=id TYPE=type STATUS=status TITLE=title URL=url"},
	{Use: "add ISSUE TYPE TITLE", Short: "Add a work product to an issue",
		Long:   "TYPE is preview_url, runtime_service, pull_request, branch, commit, artifact or document.",
		Method: "POST", Path: "/api/issues/{1}/work-products", Says: "{id} {type} {status}",
		Fields: []cli.Field{{Place: 2, Member: "type"}, {Place: 3, Member: "title"},
			{Name: "provider", Member: "provider", About: "where it lies", Value: "manual"},
			{Name: "url", Member: "url", About: "its address"},
			{Name: "summary", Member: "summary", About: "what it is"},
			{Name: "primary", Member: "isPrimary", Kind: "bool", About: "it is what the issue was for"}}},
	{Use: "update [ISSUE] PRODUCT", Short: "Change a work product", Method: "PATCH", Path: "/api/work-products/{2}",
		Says: "{id} {type} {status}",
		Fields: []cli.Field{{Name: "title", Member: "title", About: "its new title"},
			{Name: "status", Member: "status", About: "such as active, merged or closed"},
			{Name: "url", Member: "url", About: "its address"},
			{Name: "summary", Member: "summary", About: "what it is"},
			{Name: "primary", Member: "isPrimary", Kind: "bool", About: "it is what the issue was for"}}},
	{Use: "remove [ISSUE] PRODUCT", Short: "Forget a work product", Method: "DELETE", Path: "/api/work-products/{2}",
		Says: "removed"},
}

var issueFields = []cli.Field{withDescription,
	{Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "agent that has it"},
	{Name: "user", Member: "assigneeUserId", About: "user that has it"},
	{Name: "project", Member: "projectId", Kind: "project", About: "its project"},
	{Name: "goal", Member: "goalId", Kind: "goal", About: "its goal"},
	{Name: "parent", Member: "parentId", Kind: "issue", About: "the issue that it is part of"},
	{Name: "blocked-by", Member: "blockedByIssueIds", Kind: "issues", About: "what it waits for; repeat for more"},
	{Name: "label", Member: "labelIds", Kind: "labels", About: "its labels; repeat for more"},
	{Name: "billing-code", Member: "billingCode", About: "where its costs go"},
	{Name: "priority", Member: "priority", About: "critical, high, medium or low", Value: "medium"},
	{Name: "status", Member: "status", About: "backlog or todo", Value: "todo"}, withMode, withPolicy}

// holdVerbs are the rows of selvage issue hold.
var holdVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the holds on an issue, newest first", Path: "/api/issues/{1}/tree-holds",
		Columns: "ID=id MODE=mode STATUS=status REASON=reason SINCE=createdAt"},
	{Use: "state ISSUE", Short: "Check whether an issue, or one above it, is held",
		Path: "/api/issues/{1}/tree-control/state"},
	{Use: "show ISSUE HOLD", Short: "Show a hold", Path: "/api/issues/{1}/tree-holds/{2}"},
	{Use: "preview ISSUE MODE", Short: "Preview a hold: pause, resume, cancel or restore", Method: "POST",
		Path: "/api/issues/{1}/tree-control/preview", Fields: []cli.Field{{Place: 2, Member: "mode"}}},
	{Use: "put ISSUE MODE", Short: "Pause, resume, cancel or restore an issue and everything below it",
		Method: "POST", Path: "/api/issues/{1}/tree-holds",
		Says:   "{hold.id} {hold.mode} {hold.status}, {preview.totals.affectedIssues} issues",
		Fields: []cli.Field{{Place: 2, Member: "mode"}, {Name: "reason", Member: "reason", About: "why"}}},
	{Use: "release ISSUE HOLD", Short: "Release a hold", Method: "POST",
		Path: "/api/issues/{1}/tree-holds/{2}/release", Says: "{id} {status}",
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why"}}},
}

// watchdogVerbs are the rows of selvage issue watchdog.
var watchdogVerbs = []cli.Verb{
	{Use: "show ISSUE", Short: "Show the watchdog of an issue", Path: "/api/issues/{1}/watchdog"},
	{Use: "set ISSUE AGENT", Short: "Set the agent that watches an issue and everything below it", Method: "PUT",
		Path: "/api/issues/{1}/watchdog", Says: "{status}",
		Fields: []cli.Field{{Place: 2, Member: "agentId", Kind: "agent"},
			{Name: "instructions", Member: "instructions", About: "what it is to do then"}}},
	{Use: "remove ISSUE", Short: "Remove the watchdog of an issue", Method: "DELETE",
		Path: "/api/issues/{1}/watchdog", Says: "removed"},
}

// monitorVerbs are the rows of selvage issue monitor.
var monitorVerbs = []cli.Verb{
	{Use: "set ISSUE WHEN", Short: "Wake an issue's agent at an ISO time", Method: "PATCH", Path: "/api/issues/{1}",
		Says: "{identifier} is looked at again {monitorNextCheckAt}",
		Fields: []cli.Field{{Place: 2, Member: "executionPolicy.monitor.nextCheckAt"},
			{Name: "notes", Member: "executionPolicy.monitor.notes", About: "at what"}}},
	{Use: "now ISSUE", Short: "Wake an issue's monitor now", Method: "POST",
		Path: "/api/issues/{1}/monitor/check-now", Says: "woken"},
}

// planVerbs are the rows of selvage issue plan.
var planVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the issues made of an issue's plan",
		Path:    "/api/issues/{1}/accepted-plan-decompositions",
		Columns: "ID=id REVISION=acceptedPlanRevisionNumber ISSUES=childIssues AT=completedAt"},
	{Use: "split ISSUE REVISION FILE", Short: "Turn an accepted plan into sub-issues, all or none",
		Long: `FILE holds a JSON list of issues, such as [{"title": "Cut"}, {"title": "Weld", ` +
			`"blockedByIssueIds": ["#1"]}]; - is standard input.`,
		Method: "POST", Path: "/api/issues/{1}/accepted-plan-decompositions",
		Says: "{decomposition.id}: {newlyCreatedChildIssueIds}",
		Fields: []cli.Field{{Place: 2, Member: "acceptedPlanRevisionId"},
			{Place: 3, Name: "FILE", Member: "children", Kind: "json"}}},
}
