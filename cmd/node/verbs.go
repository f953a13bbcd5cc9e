package main

import (
	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Fields that several verbs have.
var (
	withDescription = cli.Field{Name: "description", Member: "description", About: "what it is about"}
	between         = []cli.Field{{Name: "from", Member: "from", About: "ISO date"}, {Name: "to", Member: "to", About: "ISO date"}}
	withLimit       = cli.Field{Name: "limit", Member: "limit", Kind: "int", About: "at most so many"}
	withOffset      = cli.Field{Name: "offset", Member: "offset", Kind: "int", About: "without the first so many"}
	withMode        = cli.Field{Name: "mode", Member: "workMode", About: "standard, ask or planning"}
	withPolicy      = cli.Field{Name: "policy", Member: "executionPolicy", Kind: "json", About: "who looks at the work before it is done, or a file with it"}
)

const (
	operationTable = "ID=id PHASE=phase STATUS=status EXIT=exitCode STARTED=startedAt COMMAND=command"

	done       = "{id}"
	issueSays  = "{identifier} {status} {title}"
	issueTable = "ID=identifier STATUS=status PRIORITY=priority ASSIGNEE=agent:assigneeAgentId TITLE=title"
)

// addVerbs adds the commands that are one request each.
func addVerbs(root *cobra.Command, c *cli.CLI) {
	find := func(words ...string) *cobra.Command {
		cmd, _, _ := root.Find(words)
		return cmd
	}
	cli.With(c, find("company"), companyVerbs...)
	cli.With(c, find("agent"), agentVerbs...)
	cli.With(c, find("run"), runVerbs...)
	cli.With(c, find("cost"), costVerbs...)
	cli.With(c, find("member"), memberVerbs...)
	cli.With(c, find("issue"), issueVerbs...).AddCommand(
		cli.Noun(c, "hold", "Pause, cancel or restore an issue and everything below it", holdVerbs...),
		subs(cli.Noun(c, "queue", "Comments that wait for a working agent", queueVerbs...), queueCommands(c)...),
		cli.Noun(c, "watchdog", "The agent that is woken when an issue stops", watchdogVerbs...),
		cli.Noun(c, "monitor", "Wake an issue's agent at a time", monitorVerbs...),
		cli.Noun(c, "plan", "Issues made of an issue's plan", planVerbs...),
		subs(cli.Noun(c, "remark", "Remarks on the words of a document", remarkVerbs...), remarkOnDocument(c)))
	find("issue").AddCommand(cli.Noun(c, "product", "Work products of an issue", productVerbs...))
	find("agent").AddCommand(cli.Noun(c, "memory", "Memories of an agent", memoryVerbs...), cli.Noun(c, "message", "Messages that wait for an agent", messageVerbs...))
	cli.With(c, find("secret"), secretVerbs...).AddCommand(
		cli.Noun(c, "wanted", "Secrets that each person stores for themselves", definitionVerbs...),
		subs(cli.Noun(c, "mine", "Your own secrets, for runs that you are responsible for", mineVerbs...), setMine(c)))
	cli.With(c, find("approval"), approvalVerbs...)
	cli.With(c, find("user"), userVerbs...)
	cli.With(c, find("key", "board"), boardKeyVerbs...)
	cli.With(c, find("token"), tokenVerbs...)
	cli.With(c, find("budget"), budgetVerbs...)
	cli.With(c, find("routine"), routineVerbs...)
	cli.With(c, find("routine", "trigger"), triggerVerbs...)
	root.AddCommand(cli.Noun(c, "workspace", "Where runs work", spaceVerbs...))
	cli.With(c, find("auth"), profileVerbs...)
	cli.With(c, find("adapter"), adapterVerbs...)
	cli.With(c, find("issue", "doc"), documentVerbs...)
	cli.With(c, find("agent", "instructions"), instructionVerbs...)
	cli.With(c, find("member"), cli.Verb{Use: "directory", Short: "List the people of a company", Path: "/api/companies/{company}/user-directory", Rows: "users", Columns: "NAME=user.name EMAIL=user.email ID=principalId STATUS=status"})
	cli.With(c, find("skill"), skillVerbs...).AddCommand(cli.Noun(c, "test", "Have agents try a skill", skillTestVerbs...), cli.Noun(c, "file", "Files of a skill", skillFileVerbs...))
	root.AddCommand(
		cli.Noun(c, "goal", "Create and list the goals of a company", goalVerbs...),
		cli.With(c, cli.Group("project", "Create and list projects, and where their work lies", cli.Noun(c, "workspace", "Workspaces of a project", workspaceVerbs...)), projectVerbs...),
		cli.Noun(c, "label", "Labels of issues", labelVerbs...),
		cli.Noun(c, "environment", "Where runs are carried out, and machines that are reached over ssh", environmentVerbs...),
		cli.Noun(c, "inbox", "List what waits for you", inboxVerbs...),
		cli.Noun(c, "folder", "Folders of skills and routines", folderVerbs...),
		cli.Noun(c, "team", "Teams that come with the program", teamVerbs...),
		cli.Noun(c, "feedback", "Votes on what agents did", feedbackVerbs...),
		cli.Noun(c, "audit", "What agents did, and for whom", auditVerbs...),
		cli.With(c, orgCommand(c), orgVerbs...),
		cli.Noun(c, "settings", "Settings of the mesh", settingsVerbs...),
	)
	cli.With(c, find("node"), nodeVerbs...)
	cli.With(c, find("tool"), cli.Verb{Use: "catalogue", Short: "List the kernel's tools, their risk, and their counterparts here", Path: "/api/v1/tools",
		Columns: "TOOL=name CATEGORY=category RISK=milli:effect.risk HERE=native"})
	cli.With(c, root, topVerbs...)
}

var companyVerbs = []cli.Verb{
	{Use: "list", Short: "List the companies", Path: "/api/companies", Columns: "PREFIX=issuePrefix NAME=name STATUS=status ISSUES=issueCounter SPENT=spentMonthlyCents BUDGET=budgetMonthlyCents ID=id"},
	{Use: "create NAME", Short: "Create a company", Example: `  selvage company create "Acme Robotics" --budget 500000`, Method: "POST", Path: "/api/companies", Says: "{issuePrefix} {name} {id}",
		Fields: []cli.Field{{Place: 1, Member: "name"}, {Name: "description", Member: "description", About: "what the company is for"}, {Name: "budget", Member: "budgetMonthlyCents", Kind: "int", About: "monthly budget in cents; 0 sets none"}}},
	{Use: "show [COMPANY]", Short: "Show a company", Path: "/api/companies/{company:1}",
		Lines: "prefix=issuePrefix name=name description=description status=status+pauseReason issues=issueCounter spent_this_month=spentMonthlyCents budget=budgetMonthlyCents held=heldCents board_approves_hires=requireBoardApprovalForNewAgents board_approves_strategy=requireBoardApprovalForCeoStrategy created=createdAt id=id"},
	{Use: "update [COMPANY]", Short: "Change a company", Method: "PATCH", Path: "/api/companies/{company:1}", Says: "{issuePrefix} {name}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, withDescription, {Name: "budget", Member: "budgetMonthlyCents", Kind: "int", About: "monthly budget in cents"},
			{Name: "color", Member: "brandColor", About: "of its mark, such as #ff8800"}, {Name: "share-feedback", Member: "feedbackDataSharingEnabled", Kind: "bool", About: "votes may be handed on"}}},
	{Use: "badges [COMPANY]", Short: "Count what waits for the board", Path: "/api/companies/{company:1}/sidebar-badges"},
	{Use: "pause [COMPANY]", Short: "Pause a company", Method: "POST", Path: "/api/companies/{company:1}/pause", Says: "{name} {status}"},
	{Use: "resume [COMPANY]", Short: "Resume a company", Method: "POST", Path: "/api/companies/{company:1}/resume", Says: "{name} {status}"},
	{Use: "archive [COMPANY]", Short: "Archive a company; it stops working", Method: "POST", Path: "/api/companies/{company:1}/archive", Says: "{name} {status}"},
	{Use: "delete COMPANY", Short: "Delete a company and everything in it", Method: "DELETE", Path: "/api/companies/{company:1}", Says: "deleted"},
	{Use: "left-out", Short: "List what an export of a company leaves out", Path: "/api/companies/{company}/export/fidelity", Rows: "omissions", Columns: "WHAT=kind COUNT=count WHY=reason"},
}

var runVerbs = []cli.Verb{
	{Use: "cancel RUN", Short: "Cancel a run", Method: "POST", Path: "/api/heartbeat-runs/{run:1}/cancel", Says: "cancelled"},
	{Use: "events RUN", Short: "List the steps of a run", Path: "/api/heartbeat-runs/{run:1}/events?limit=1000", Columns: "SEQ=seq TIME=createdAt LEVEL=level EVENT=eventType MESSAGE=message"},
	{Use: "issues RUN", Short: "List the issues that a run is about", Path: "/api/heartbeat-runs/{run:1}/issues", Columns: "ID=identifier STATUS=status PRIORITY=priority TITLE=title"},
	{Use: "operations RUN", Short: "List the commands that prepared the workspace of a run", Path: "/api/heartbeat-runs/{run:1}/workspace-operations", Columns: operationTable},
	{Use: "judge RUN DECISION", Short: "Judge a silent run: continue, dismissed_false_positive or snooze", Method: "POST", Path: "/api/heartbeat-runs/{run:1}/watchdog-decisions", Says: "{decision}",
		Fields: []cli.Field{{Place: 2, Member: "decision"}, {Name: "until", Member: "snoozedUntil", About: "of a snooze: ISO instant"}, {Name: "reason", Member: "reason", About: "why"}}},
	{Use: "live", Short: "List the runs that are queued or at work", Path: "/api/companies/{company}/live-runs", Columns: "ID=id AGENT=agentName STATUS=status ISSUE=issueId SILENT=outputSilence.level STARTED=startedAt"},
}

var approvalVerbs = []cli.Verb{
	{Use: "list", Short: "List approvals, newest first", Example: `  selvage approval list --status pending`, Path: "/api/companies/{company}/approvals",
		Columns: "ID=id TYPE=type STATUS=status FROM=agent:requestedByAgentId|board?requestedByUserId|'system' ASKED=createdAt ABOUT=payload.title|payload.name|payload.scopeName|payload.plan|payload.summary",
		Fields:  []cli.Field{{Name: "status", Member: "status", About: "only these statuses, separated by commas"}}},
	{Use: "resubmit APPROVAL", Short: "Resubmit a revised approval", Method: "POST", Path: "/api/approvals/{approval:1}/resubmit", Says: "{type} {status}",
		Fields: []cli.Field{{Name: "payload", Member: "payload", Kind: "json", About: "what is asked for now, or a file with it"}}},
	{Use: "ask TYPE", Short: "Ask the board for something", Method: "POST", Path: "/api/companies/{company}/approvals", Says: "{id} {status}",
		Long: `Ask the board for something: TYPE is hire_agent, approve_ceo_strategy,
budget_override_required or request_board_approval. The payload is what is to
happen, as a JSON object; it may hold secrets (the environment of an agent to be
hired), so give it as @FILE, or @- for standard input.`,
		Example: `  selvage approval ask request_board_approval --payload '{"title":"Buy a yacht"}'
  selvage approval ask approve_ceo_strategy --payload @plan.json --issue ACM-1`,
		Fields: []cli.Field{{Place: 1, Member: "type"}, {Name: "payload", Member: "payload", Kind: "json or @file", About: "what is asked for: a JSON object, or @FILE that holds it", Value: "{}"}, {Name: "issue", Member: "issueIds", Kind: "issues", About: "issue that it is about; repeat for more"}}},
	{Use: "approve APPROVAL", Short: "Approve, and carry out what waits", Example: decideExample("approve"), Method: "POST", Path: "/api/approvals/{approval:1}/approve", Says: "{id} {status}",
		Fields: []cli.Field{withNote, {Name: "amount", Member: "amount", Kind: "int", About: "of a budget: the new limit in cents, instead of the proposed one"}}},
	{Use: "reject APPROVAL", Short: "Reject; what was made ready is taken back", Example: decideExample("reject"), Method: "POST", Path: "/api/approvals/{approval:1}/reject", Says: "{id} {status}", Fields: []cli.Field{withNote}},
	{Use: "revise APPROVAL", Short: "Send back for changes", Example: decideExample("revise"), Method: "POST", Path: "/api/approvals/{approval:1}/request-revision", Says: "{id} {status}", Fields: []cli.Field{withNote}},
	{Use: "cancel APPROVAL", Short: "Cancel, without a verdict", Example: decideExample("cancel"), Method: "POST", Path: "/api/approvals/{approval:1}/cancel", Says: "{id} {status}", Fields: []cli.Field{withNote}},
	{Use: "comment APPROVAL TEXT", Short: "Comment on an approval", Method: "POST", Path: "/api/approvals/{approval:1}/comments", Says: "commented", Fields: []cli.Field{{Place: 2, Member: "body"}}},
}

var withNote = cli.Field{Name: "note", Member: "decisionNote", About: "what to tell whoever asked"}

func decideExample(verb string) string {
	return "  selvage approval " + verb + " 0199c0de --note 'as we said'"
}

var userVerbs = []cli.Verb{
	{Use: "list [TEXT]", Short: "List the users of the mesh, or those whose name or address holds a text", Path: "/api/admin/users",
		Columns: "NAME=name EMAIL=email STANDING=suspended?suspendedAt|admin?isInstanceAdmin COMPANIES=activeCompanyMembershipCount ID=id",
		Fields:  []cli.Field{{Place: 1, Member: "query"}}},
	{Use: "promote USER", Short: "Make a user an administrator of the mesh", Method: "POST", Path: "/api/admin/users/{user:1}/promote-instance-admin", Says: "{email} administers the mesh"},
	{Use: "demote USER", Short: "Make a user no administrator any more", Method: "POST", Path: "/api/admin/users/{user:1}/demote-instance-admin", Says: "{email} administers nothing any more"},
	{Use: "revoke USER", Short: "End a user's sign-ins and revoke their board keys", Method: "POST", Path: "/api/admin/users/{user:1}/revoke-credentials", Says: "{email} is signed out everywhere"},
	{Use: "suspend USER", Short: "Shut a user out until they are let in again", Method: "POST", Path: "/api/admin/users/{user:1}/suspend", Says: "{email} is suspended"},
	{Use: "resume USER", Short: "Let a suspended user in again", Method: "POST", Path: "/api/admin/users/{user:1}/resume", Says: "{email} may sign in again"},
}

var boardKeyVerbs = []cli.Verb{
	{Use: "list", Short: "List your board keys", Path: "/api/board-api-keys", Columns: "ID=id MADE=createdAt ENDS=expiresAt|'never' NAME=name"},
	{Use: "revoke ID", Short: "Revoke one of your board keys, on all nodes", Method: "DELETE", Path: "/api/board-api-keys/{1}", Says: "revoked {1}"},
}

var tokenVerbs = []cli.Verb{
	{Use: "revoke TOKEN-ID", Short: "Revoke a join token", Method: "DELETE", Path: "/api/v1/mesh/tokens/{1}", Says: "revoked"},
}

var budgetVerbs = []cli.Verb{
	{Use: "incidents", Short: "List warnings and stops, newest first", Path: "/api/companies/{company}/budget-incidents", Fields: []cli.Field{{Name: "status", Member: "status", About: "only open, resolved or dismissed ones"}},
		Columns: "INCIDENT=id SCOPE=scopeType NAME=scopeName THRESHOLD=thresholdType SPENT=cents:amountObserved LIMIT=cents:amountLimit WINDOW=windowKind STATUS=status SINCE=createdAt"},
}

var memberVerbs = []cli.Verb{
	{Use: "list", Short: "List the people of a company", Path: "/api/companies/{company}/members", Rows: "members", Columns: "NAME=user.name EMAIL=user.email ROLE=membershipRole STATUS=status ID=id"},
	{Use: "requests", Short: "List the requests to join a company", Path: "/api/companies/{company}/join-requests", Columns: "ID=id TYPE=requestType WHO=agentName|requestEmailSnapshot STATUS=status ASKED=createdAt"},
	{Use: "approve REQUEST", Short: "Let somebody in", Method: "POST", Path: "/api/companies/{company}/join-requests/{1}/approve", Says: "let in {agentName|requestEmailSnapshot}"},
	{Use: "reject REQUEST", Short: "Turn somebody away", Method: "POST", Path: "/api/companies/{company}/join-requests/{1}/reject", Says: "turned away {agentName|requestEmailSnapshot}"},
	{Use: "show USER", Short: "Show a member's activity", Long: "USER is a user's ID, or what stands before the @ of their address.", Path: "/api/companies/{company}/users/{1}/profile", Rows: "stats", Columns: "WHEN=label MADE=createdIssues DONE=completedIssues OPEN=openAssignedIssues LINES=activityCount"},
	{Use: "role MEMBER ROLE", Short: "Change a member's role: " + roles, Method: "PATCH", Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {membershipRole}", Fields: []cli.Field{{Place: 2, Member: "membershipRole"}}},
	{Use: "suspend MEMBER", Short: "Suspend a member", Method: "PATCH", Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {status}", Fixed: map[string]any{"status": "suspended"}},
	{Use: "resume MEMBER", Short: "Restore a suspended member", Method: "PATCH", Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {status}", Fixed: map[string]any{"status": "active"}},
	{Use: "remove MEMBER", Short: "Remove a member; their open issues become unassigned", Method: "POST", Path: "/api/companies/{company}/members/{member:1}/archive", Says: "{member.user.email} is out; {reassignedIssueCount} open issues have nobody now"},
	{Use: "invites", Short: "List invites, newest first", Path: "/api/companies/{company}/invites", Rows: "invites", Columns: "ID=id FOR=allowedJoinTypes ROLE=humanRole STATE=state UNTIL=expiresAt"},
	{Use: "revoke-invite INVITE", Short: "Revoke an invite", Method: "POST", Path: "/api/invites/{1}/revoke", Says: "{id} {state}"},
	{Use: "invite-openclaw", Short: "Invite an agent of OpenClaw; the token is shown once", Method: "POST", Path: "/api/companies/{company}/openclaw/invite-prompt", Says: "{prompt}", Fields: []cli.Field{{Name: "message", Member: "agentMessage", About: "a word to the agent"}}},
}

var issueFields = []cli.Field{withDescription, {Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "agent that has it"}, {Name: "user", Member: "assigneeUserId", About: "user that has it"},
	{Name: "project", Member: "projectId", Kind: "project", About: "its project"}, {Name: "goal", Member: "goalId", Kind: "goal", About: "its goal"}, {Name: "parent", Member: "parentId", Kind: "issue", About: "the issue that it is part of"},
	{Name: "blocked-by", Member: "blockedByIssueIds", Kind: "issues", About: "what it waits for; repeat for more"}, {Name: "label", Member: "labelIds", Kind: "labels", About: "its labels; repeat for more"},
	{Name: "billing-code", Member: "billingCode", About: "where its costs go"}, {Name: "priority", Member: "priority", About: "critical, high, medium or low", Value: "medium"}, {Name: "status", Member: "status", About: "backlog or todo", Value: "todo"}, withMode, withPolicy}

var holdVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the holds on an issue, newest first", Path: "/api/issues/{1}/tree-holds", Columns: "ID=id MODE=mode STATUS=status REASON=reason SINCE=createdAt"},
	{Use: "state ISSUE", Short: "Check whether an issue, or one above it, is held", Path: "/api/issues/{1}/tree-control/state"},
	{Use: "show ISSUE HOLD", Short: "Show a hold", Path: "/api/issues/{1}/tree-holds/{2}"},
	{Use: "preview ISSUE MODE", Short: "Preview a hold: pause, resume, cancel or restore", Method: "POST", Path: "/api/issues/{1}/tree-control/preview", Fields: []cli.Field{{Place: 2, Member: "mode"}}},
	{Use: "put ISSUE MODE", Short: "Pause, resume, cancel or restore an issue and everything below it", Method: "POST", Path: "/api/issues/{1}/tree-holds", Says: "{hold.id} {hold.mode} {hold.status}, {preview.totals.affectedIssues} issues",
		Fields: []cli.Field{{Place: 2, Member: "mode"}, {Name: "reason", Member: "reason", About: "why"}}},
	{Use: "release ISSUE HOLD", Short: "Release a hold", Method: "POST", Path: "/api/issues/{1}/tree-holds/{2}/release", Says: "{id} {status}", Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why"}}},
}

var queueVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the queued comments of an issue", Path: "/api/issues/{1}/queued-comments", Rows: "entries", Columns: "ID=id BY=authorUserId TEXT=body"},
	{Use: "show ISSUE", Short: "Show the queue itself: its ID, its revision and the run at work", Path: "/api/issues/{1}/queued-comments"},
}

var watchdogVerbs = []cli.Verb{
	{Use: "show ISSUE", Short: "Show the watchdog of an issue", Path: "/api/issues/{1}/watchdog"},
	{Use: "set ISSUE AGENT", Short: "Set the agent that watches an issue and everything below it", Method: "PUT", Path: "/api/issues/{1}/watchdog", Says: "{status}", Fields: []cli.Field{{Place: 2, Member: "agentId", Kind: "agent"}, {Name: "instructions", Member: "instructions", About: "what it is to do then"}}},
	{Use: "remove ISSUE", Short: "Remove the watchdog of an issue", Method: "DELETE", Path: "/api/issues/{1}/watchdog", Says: "removed"},
}

var monitorVerbs = []cli.Verb{
	{Use: "set ISSUE WHEN", Short: "Wake an issue's agent at an ISO time", Method: "PATCH", Path: "/api/issues/{1}", Says: "{identifier} is looked at again {monitorNextCheckAt}",
		Fields: []cli.Field{{Place: 2, Member: "executionPolicy.monitor.nextCheckAt"}, {Name: "notes", Member: "executionPolicy.monitor.notes", About: "at what"}}},
	{Use: "now ISSUE", Short: "Wake an issue's monitor now", Method: "POST", Path: "/api/issues/{1}/monitor/check-now", Says: "woken"},
}

var planVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the issues made of an issue's plan", Path: "/api/issues/{1}/accepted-plan-decompositions", Columns: "ID=id REVISION=acceptedPlanRevisionNumber ISSUES=childIssues AT=completedAt"},
	{Use: "split ISSUE REVISION FILE", Short: "Turn an accepted plan into sub-issues, all or none", Long: `FILE holds a JSON list of issues, such as [{"title": "Cut"}, {"title": "Weld", "blockedByIssueIds": ["#1"]}]; - is standard input.`,
		Method: "POST", Path: "/api/issues/{1}/accepted-plan-decompositions", Says: "{decomposition.id}: {newlyCreatedChildIssueIds}", Fields: []cli.Field{{Place: 2, Member: "acceptedPlanRevisionId"}, {Place: 3, Name: "FILE", Member: "children", Kind: "json"}}},
}

var remarkVerbs = []cli.Verb{
	{Use: "list ISSUE DOCUMENT", Short: "List the remarks on a document", Path: "/api/issues/{1}/documents/{2}/annotations", Columns: "ID=id STATUS=status WORDS=selectedText STANDS=anchorState AT=createdAt"},
	{Use: "show ISSUE DOCUMENT REMARK", Short: "Show a remark with what was said", Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Rows: "comments", Columns: "AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{Use: "answer ISSUE DOCUMENT REMARK TEXT", Short: "Reply to a remark", Method: "POST", Path: "/api/issues/{1}/documents/{2}/annotations/{3}/comments", Says: done, Fields: []cli.Field{{Place: 4, Member: "body"}}},
	{Use: "resolve ISSUE DOCUMENT REMARK", Short: "Close a remark", Method: "PATCH", Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Says: "{status}", Fixed: map[string]any{"status": "resolved"}},
	{Use: "reopen ISSUE DOCUMENT REMARK", Short: "Open a remark again", Method: "PATCH", Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Says: "{status}", Fixed: map[string]any{"status": "open"}},
}

var skillVerbs = []cli.Verb{
	{Use: "list", Short: "List the skills that agents can have", Path: "/api/companies/{company}/skills", Columns: "SKILL=slug SOURCE=sourceLabel AGENTS=attachedAgentCount ABOUT=description"},
	{Use: "show SKILL", Short: "Print the text of a skill", Path: "/api/companies/{company}/skills/{1}", Text: "markdown"},
	{Use: "fork SKILL [NAME]", Short: "Fork a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/fork", Says: "{slug}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "remove SKILL", Short: "Remove a skill", Method: "DELETE", Path: "/api/companies/{company}/skills/{1}", Says: "{slug} removed"},
	{Use: "comments SKILL", Short: "List the comments on a skill", Path: "/api/companies/{company}/skills/{1}/comments", Columns: "ID=id AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{Use: "comment SKILL TEXT", Short: "Comment on a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/comments", Says: done, Fields: []cli.Field{{Place: 2, Member: "body"}}},
	{Use: "audit SKILL", Short: "Audit a skill for tokens, hidden characters and downloads", Method: "POST", Path: "/api/companies/{company}/skills/{1}/audit", Says: "{verdict} {codes}"},
	{Use: "versions SKILL", Short: "List the versions of a skill, newest first", Path: "/api/companies/{company}/skills/{1}/versions", Columns: "ID=id NUMBER=versionNumber LABEL=label AT=createdAt"},
	{Use: "version SKILL VERSION", Short: "Show a version of a skill with its files", Path: skillPath + "/versions/{2}", Rows: "files", Columns: "FILE=path KIND=kind BYTES=sizeBytes"},
	{Use: "save SKILL LABEL", Short: "Save the current text of a skill as a named version", Method: "POST", Path: skillPath + "/versions", Says: "{versionNumber} {label} {id}", Fields: []cli.Field{{Place: 2, Member: "label"}, {Name: "summary", Member: "changeSummary", About: "what changed"}}},
	{Use: "reset SKILL", Short: "Reset a skill to a version, or to its origin", Method: "POST", Path: skillPath + "/reset", Says: "reset", Fields: []cli.Field{{Name: "version", Member: "versionId", About: "ID of the version"}}},
	{Use: "outdated SKILL", Short: "Check whether a skill's origin has changed", Path: skillPath + "/update-status"},
	{Use: "rename SKILL NAME", Short: "Rename a skill", Method: "POST", Path: skillPath + "/rename", Says: "{skill.slug} {skill.name}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "describe SKILL", Short: "Edit how a skill is listed", Method: "PATCH", Path: skillPath, Says: "{slug} {name}", Fields: []cli.Field{withDescription, {Name: "categories", Member: "categories", Kind: "list", About: "what it belongs to; repeat for more"}}},
	{Use: "catalog", Short: "List the skills that come with the program", Path: "/api/skills/catalog", Columns: "SKILL=slug CATEGORY=category ABOUT=description"},
	{Use: "edit-comment SKILL COMMENT TEXT", Short: "Edit your comment on a skill", Method: "PATCH", Path: skillPath + "/comments/{2}", Says: done, Fields: []cli.Field{{Place: 3, Member: "body"}}},
	{Use: "unsay SKILL COMMENT", Short: "Delete a comment on a skill", Method: "DELETE", Path: skillPath + "/comments/{2}", Says: "deleted"},
	{Use: "unstar SKILL", Short: "Unstar a skill", Method: "DELETE", Path: skillPath + "/star", Says: "unstarred"},
	{Use: "star SKILL", Short: "Star a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/star", Says: "starred"},
}

const skillPath = "/api/companies/{company}/skills/{1}"

var skillFileVerbs = []cli.Verb{
	{Use: "list SKILL", Short: "List the files of a skill", Path: skillPath, Rows: "fileInventory", Columns: "FILE=path KIND=kind"},
	{Use: "get SKILL FILE", Short: "Print a file of a skill", Path: skillPath + "/files?path={2}", Text: "content"},
	{Use: "put SKILL FILE FROM", Short: "Write a file of a skill from a file here, or with - from standard input", Method: "PATCH", Path: skillPath + "/files", Says: "{path}", Fields: []cli.Field{{Place: 2, Member: "path"}, {Place: 3, Name: "FROM", Member: "content", Kind: "file"}}},
	{Use: "remove SKILL FILE", Short: "Remove a file of a skill", Method: "DELETE", Path: skillPath + "/files", Says: "removed", Fixed: map[string]any{"target": "file"}, Fields: []cli.Field{{Place: 2, Member: "path"}}},
}

var skillTestVerbs = []cli.Verb{
	{Use: "list SKILL", Short: "List the tests of a skill, newest first", Path: "/api/companies/{company}/skills/{1}/test-runs", Columns: "ID=id AGENT=agent:agentId STATUS=status ISSUE=harnessIssue.identifier AT=createdAt"},
	{Use: "run SKILL AGENT TEXT", Short: "Test a skill: an agent applies it to a text, in a new issue", Method: "POST", Path: "/api/companies/{company}/skills/{1}/test-runs", Says: "{id} {status} {harnessIssue.identifier}",
		Fields: []cli.Field{{Place: 2, Member: "agentId", Kind: "agent"}, {Place: 3, Member: "content"}}},
	{Use: "show SKILL TEST", Short: "Show a try, and what came of it", Path: "/api/companies/{company}/skills/{1}/test-runs/{2}"},
	{Use: "cancel SKILL TEST", Short: "Cancel a test of a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/test-runs/{2}/cancel", Says: "{id} {status}"},
	{Use: "forget SKILL TEST", Short: "Hide a test of a skill", Method: "DELETE", Path: "/api/companies/{company}/skills/{1}/test-runs/{2}", Says: "forgotten"},
	{Use: "inputs SKILL", Short: "List the test inputs of a skill", Path: "/api/companies/{company}/skills/{1}/test-inputs", Columns: "ID=id NAME=name TEXT=content"},
	{Use: "change SKILL INPUT TEXT", Short: "Edit a test input of a skill", Method: "PATCH", Path: skillPath + "/test-inputs/{2}", Says: done, Fields: []cli.Field{{Place: 3, Member: "content"}}},
	{Use: "drop SKILL INPUT", Short: "Delete a test input of a skill", Method: "DELETE", Path: skillPath + "/test-inputs/{2}", Says: "deleted"},
	{Use: "keep SKILL NAME TEXT", Short: "Add a test input to a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/test-inputs", Says: done, Fields: []cli.Field{{Place: 2, Member: "name"}, {Place: 3, Member: "content"}}},
}

var goalFields = []cli.Field{withDescription, {Name: "level", Member: "level", About: "company, team, agent or task"}, {Name: "status", Member: "status", About: "planned, active, achieved or cancelled"},
	{Name: "parent", Member: "parentId", Kind: "goal", About: "the goal that it serves"}, {Name: "owner", Member: "ownerAgentId", Kind: "agent", About: "agent that answers for it"}}

var goalVerbs = []cli.Verb{
	{Use: "list", Short: "List the goals of a company", Path: "/api/companies/{company}/goals", Columns: "ID=id LEVEL=level STATUS=status OWNER=agent:ownerAgentId TITLE=title"},
	{Use: "show GOAL", Short: "Show a goal", Path: "/api/goals/{goal:1}",
		Lines: "title=title description=description level=level status=status owner=agent:ownerAgentId parent=parentId created=createdAt id=id"},
	{Use: "create TITLE", Short: "Create a goal", Method: "POST", Path: "/api/companies/{company}/goals", Says: "{id} {level} {status}", Fields: append([]cli.Field{{Place: 1, Member: "title"}}, goalFields...)},
	{Use: "update GOAL", Short: "Change a goal", Method: "PATCH", Path: "/api/goals/{goal:1}", Says: "{title} {status}", Fields: append([]cli.Field{{Name: "title", Member: "title", About: "its new title"}}, goalFields...)},
	{Use: "delete GOAL", Short: "Delete a goal; its projects and issues move to its parent", Method: "DELETE", Path: "/api/goals/{goal:1}", Says: "deleted"},
}

var projectFields = []cli.Field{withDescription, {Name: "status", Member: "status", About: "backlog, planned, in_progress, completed or cancelled"}, {Name: "goal", Member: "goalId", Kind: "goal", About: "the goal that it serves"},
	{Name: "lead", Member: "leadAgentId", Kind: "agent", About: "agent that leads it"}, {Name: "until", Member: "targetDate", About: "date by which it is to be done"},
	{Name: "env", Member: "env", Kind: "json", About: "variables of its runs, or a file with them"}, {Name: "workspaces", Member: "executionWorkspacePolicy", Kind: "json", About: "where the runs of its issues work, or a file with it"}}

var projectVerbs = []cli.Verb{
	{Use: "list", Short: "List the projects of a company", Path: "/api/companies/{company}/projects", Columns: "NAME=name STATUS=status ISSUES=taskCount LEAD=agent:leadAgentId UNTIL=targetDate ID=id"},
	{Use: "show PROJECT", Short: "Show a project", Path: "/api/projects/{project:1}",
		Lines: "name=name description=description status=status+pauseReason lead=agent:leadAgentId goal=goals.0.title until=targetDate workspace=primaryWorkspace.name repository=codebase.repoUrl folder=codebase.effectiveLocalFolder created=createdAt id=id"},
	{Use: "create NAME", Short: "Create a project", Method: "POST", Path: "/api/companies/{company}/projects", Says: "{name} {status} {id}", Fields: append([]cli.Field{{Place: 1, Member: "name"}}, projectFields...)},
	{Use: "update PROJECT", Short: "Change a project", Method: "PATCH", Path: "/api/projects/{project:1}", Says: "{name} {status}", Fields: append([]cli.Field{{Name: "name", Member: "name", About: "its new name"}}, projectFields...)},
	{Use: "delete PROJECT", Short: "Delete a project; its issues stay", Method: "DELETE", Path: "/api/projects/{project:1}", Says: "deleted"},
}

var workspaceVerbs = []cli.Verb{
	{Use: "list PROJECT", Short: "List the workspaces of a project", Path: "/api/projects/{project:1}/workspaces", Columns: "NAME=name SOURCE=sourceType PRIMARY=isPrimary FOLDER=cwd REPOSITORY=repoUrl ID=id"},
	{Use: "add PROJECT NAME", Short: "Add a workspace to a project", Method: "POST", Path: "/api/projects/{project:1}/workspaces", Says: "{name} {id}", Fields: []cli.Field{{Place: 2, Member: "name"},
		{Name: "folder", Member: "cwd", About: "folder on the node that has it"}, {Name: "repository", Member: "repoUrl", About: "URL of a Git repository"}, {Name: "ref", Member: "repoRef", About: "its branch or commit"}, {Name: "primary", Member: "isPrimary", Kind: "bool", About: "issues use it unless they say otherwise"}}},
	{Use: "update PROJECT WORKSPACE", Short: "Change where a project's work lies", Method: "PATCH", Path: "/api/projects/{project:1}/workspaces/{2}", Says: "{name} {id}", Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"},
		{Name: "folder", Member: "cwd", About: "folder on the node that has it"}, {Name: "repository", Member: "repoUrl", About: "URL of a Git repository"}, {Name: "ref", Member: "repoRef", About: "its branch or commit"}, {Name: "primary", Member: "isPrimary", Kind: "bool", About: "issues use it unless they say otherwise"},
		{Name: "setup", Member: "setupCommand", About: "command that makes it ready"}, {Name: "runtime", Member: "runtimeConfig", Kind: "json", About: "its services and commands, or a file with them"}}},
	serviceVerb("start", "Start the services of a project's workspace", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("stop", "Stop the services of a project's workspace", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("restart", "Start the services of a project's workspace again", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	{Use: "run PROJECT WORKSPACE COMMAND", Short: "Run a command that the board declared for a project's workspace", Method: "POST", Path: "/api/projects/{project:1}/workspaces/{2}/runtime-commands/run", Says: "{operation.id} {operation.status}", Fields: []cli.Field{{Place: 3, Member: "workspaceCommandId"}}},
	{Use: "remove PROJECT WORKSPACE", Short: "Remove a workspace from a project", Method: "DELETE", Path: "/api/projects/{project:1}/workspaces/{2}", Says: "removed"},
}

var labelVerbs = []cli.Verb{
	{Use: "list", Short: "List the labels of a company", Path: "/api/companies/{company}/labels", Columns: "NAME=name COLOR=color ID=id"},
	{Use: "create NAME", Short: "Create a label", Method: "POST", Path: "/api/companies/{company}/labels", Says: "{name} {id}", Fields: []cli.Field{{Place: 1, Member: "name"}, {Name: "color", Member: "color", About: "such as #ff8800", Value: "#808080"}}},
	{Use: "delete LABEL", Short: "Delete a label", Method: "DELETE", Path: "/api/labels/{label:1}", Says: "deleted"},
}

var environmentVerbs = []cli.Verb{
	{Use: "list", Short: "List environments and ssh machines", Path: "/api/companies/{company}/environments", Columns: "NAME=name DRIVER=driver STATUS=status HOST=config.host ID=id"},
	{Use: "show ENVIRONMENT", Short: "Show an environment", Path: "/api/environments/{environment:1}",
		Lines: "name=name description=description driver=driver status=status host=config.host port=config.port user=config.username folder=config.remoteWorkspacePath created=createdAt id=id"},
	{Use: "add NAME HOST USER FOLDER", Short: "Add an ssh machine", Method: "POST", Path: "/api/companies/{company}/environments", Says: "{name} {id}", Fixed: map[string]any{"driver": "ssh"},
		Fields: []cli.Field{{Place: 1, Member: "name"}, {Place: 2, Member: "config.host"}, {Place: 3, Member: "config.username"}, {Place: 4, Member: "config.remoteWorkspacePath"},
			{Name: "port", Member: "config.port", Kind: "int", About: "port of its ssh server"}, {Name: "known-hosts", Member: "config.knownHosts", Kind: "file", About: "file with its host key"}, withDescription}},
	{Use: "update ENVIRONMENT", Short: "Edit an ssh machine", Method: "PATCH", Path: "/api/environments/{environment:1}", Says: "{name} {status}", Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, withDescription,
		{Name: "status", Member: "status", About: "active or archived"}, {Name: "config", Member: "config", Kind: "json", About: "how it is reached, or a file with it"}}},
	{Use: "capabilities", Short: "Show what adapters can do in which environment", Path: "/api/companies/{company}/environments/capabilities"},
	{Use: "secrets ENVIRONMENT", Short: "List the secrets that an environment refers to, without values", Path: "/api/environments/{environment:1}/secret-refs", Columns: "SECRET=secretName VARIABLE=configPath VERSION=version STATUS=status"},
	{Use: "lease LEASE", Short: "Show a lease", Path: "/api/environment-leases/{1}"},
	{Use: "probe ENVIRONMENT", Short: "Test the connection to an ssh machine", Method: "POST", Path: "/api/environments/{environment:1}/probe", Says: "{ok} {summary}"},
	{Use: "leases ENVIRONMENT", Short: "List its leases", Path: "/api/environments/{environment:1}/leases", Columns: "ID=id RUN=heartbeatRunId STATUS=status SINCE=acquiredAt"},
	{Use: "uses ENVIRONMENT", Short: "List what uses an environment", Path: "/api/environments/{environment:1}/delete-blast-radius"},
	{Use: "remove ENVIRONMENT", Short: "Forget a machine", Method: "DELETE", Path: "/api/environments/{environment:1}", Says: "{name} removed"},
}

var inboxVerbs = []cli.Verb{
	{Use: "list", Short: "List the issues that you have, created or commented on", Path: "/api/companies/{company}/issues", Columns: issueTable,
		Fields: []cli.Field{{Name: "of", Member: "touchedByUserId", Value: "me", About: "whose; me is you"}, {Name: "status", Member: "status", About: "only of these statuses, separated by commas"}, withLimit}},
	{Use: "unread", Short: "List the issues with comments that you have not read", Path: "/api/companies/{company}/issues", Columns: issueTable, Fields: []cli.Field{{Name: "of", Member: "unreadForUserId", Value: "me", About: "whose; me is you"}, withLimit}},
	{Use: "desk", Short: "List what needs a decision of the board", Path: "/api/companies/{company}/attention", Rows: "items", Columns: "KIND=sourceKind SEVERITY=severity WHAT=subject.title WHY=whyNow ISSUE=relatedIssue.identifier KEY=dismissalKey"},
	{Use: "dismissed", Short: "List what you dismissed from the inbox", Path: "/api/companies/{company}/inbox-dismissals", Columns: "KEY=itemKey KIND=kind UNTIL=snoozedUntil AT=dismissedAt"},
	{Use: "dismiss KEY", Short: "Dismiss something from the inbox", Method: "POST", Path: "/api/companies/{company}/inbox-dismissals", Says: "{itemKey}", Fixed: map[string]any{"kind": "dismiss"}, Fields: []cli.Field{{Place: 1, Member: "itemKey", Kind: "dismissal"}}},
	{Use: "snooze KEY WHEN", Short: "Snooze something in the inbox until an ISO time", Method: "POST", Path: "/api/companies/{company}/inbox-dismissals", Says: "{itemKey} {snoozedUntil}", Fixed: map[string]any{"kind": "snooze"}, Fields: []cli.Field{{Place: 1, Member: "itemKey", Kind: "dismissal"}, {Place: 2, Member: "snoozedUntil"}}},
	{Use: "restore KEY", Short: "Restore something to the inbox", Method: "DELETE", Path: "/api/companies/{company}/inbox-dismissals/{dismissal:1}", Says: "restored"},
}

var folderVerbs = []cli.Verb{
	{Use: "list KIND", Short: "List folders: of routine or skill", Path: "/api/companies/{company}/folders", Rows: "folders", Columns: "NAME=name SLUG=slug PARENT=parentId ID=id", Fields: []cli.Field{{Place: 1, Member: "kind"}}},
	{Use: "create KIND NAME", Short: "Create a folder of routines or skills", Method: "POST", Path: "/api/companies/{company}/folders", Says: "{name} {id}", Fields: []cli.Field{{Place: 1, Member: "kind"}, {Place: 2, Member: "name"}}},
	{Use: "rename FOLDER NAME", Short: "Rename a folder", Method: "PATCH", Path: "/api/companies/{company}/folders/{folder:1}", Says: "{name} {id}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "move FOLDER PARENT", Short: "Move a folder into another", Method: "POST", Path: "/api/companies/{company}/folders/{folder:1}/move", Says: "moved", Fixed: map[string]any{"position": 0}, Fields: []cli.Field{{Place: 2, Member: "parentId", Kind: "folder"}}},
	{Use: "put FOLDER ROUTINE", Short: "Move a routine into a folder", Method: "POST", Path: "/api/companies/{company}/folders/items/move", Says: "put", Fixed: map[string]any{"kind": "routine"}, Fields: []cli.Field{{Place: 1, Member: "folderId", Kind: "folder"}, {Place: 2, Member: "itemId", Kind: "routine"}}},
	{Use: "delete FOLDER", Short: "Delete a folder; its contents stay", Method: "DELETE", Path: "/api/companies/{company}/folders/{folder:1}", Says: "deleted"},
}

var teamVerbs = []cli.Verb{
	{Use: "list", Short: "List the teams that come with the program", Path: "/api/teams/catalog", Columns: "TEAM=slug AGENTS=counts.agents PROJECTS=counts.projects ISSUES=counts.issues ABOUT=description"},
	{Use: "show TEAM", Short: "List who is in a team", Path: "/api/teams/catalog/{1}", Rows: "agents", Columns: "NAME=name ROLE=role REPORTS-TO=reportsToSlug"},
	{Use: "add TEAM", Short: "Add a team to a company", Method: "POST", Path: "/api/companies/{company}/teams/catalog/{1}/install", Rows: "agents", Columns: "NAME=name ACTION=action ID=id",
		Fields: []cli.Field{{Name: "collision", Member: "collisionStrategy", About: "rename, skip or replace what is there by the same name"}}},
	{Use: "installed", Short: "List the teams that a company has taken in", Path: "/api/companies/{company}/teams/catalog/installed", Columns: "TEAM=slug NAME=name AGENTS=agents"},
}

var feedbackVerbs = []cli.Verb{
	{Use: "list", Short: "List the shared votes", Path: "/api/companies/{company}/feedback-traces", Columns: "ID=traceId ISSUE=issueIdentifier VOTE=vote AT=createdAt"},
	{Use: "show TRACE", Short: "Show a vote with what it was about", Path: "/api/feedback-traces/{1}"},
}

var settingsVerbs = []cli.Verb{
	{Use: "show", Short: "Show the settings of the mesh", Path: "/api/instance/settings/general"},
	{Use: "parts", Short: "Show which parts of the board are on", Path: "/api/instance/settings/experimental"},
	{Use: "part NAME ON", Short: "Turn a part of the board on or off: true or false", Method: "PATCH", Path: "/api/instance/settings/experimental", Says: "changed", Fields: []cli.Field{{Place: 2, Member: "{1}", Kind: "json"}}},
	{Use: "environment ENVIRONMENT", Short: "Set the default environment of runs", Method: "PATCH", Path: "/api/instance/settings", Says: "changed", Fields: []cli.Field{{Place: 1, Member: "defaultEnvironmentId", Kind: "environment"}}},
	{Use: "set", Short: "Change the settings of the mesh", Method: "PATCH", Path: "/api/instance/settings/general", Says: "changed", Fields: []cli.Field{{Name: "sign-ups", Member: "signUps", About: "open, invited or closed"},
		{Name: "log-days", Member: "runLogRetention.days", Kind: "int", About: "how long the logs of runs are kept; with --log-bytes"}, {Name: "log-bytes", Member: "runLogRetention.maxBytes", Kind: "int", About: "how much of them the mesh keeps; with --log-days"},
		{Name: "event-days", Member: "runEventRetention.days", Kind: "int", About: "how long the events of runs are kept"}}},
}

// nodeVerbs are those of the nodes of a mesh.
var nodeVerbs = []cli.Verb{
	{Use: "cordon NODE", Short: "Place no new runs on a node", Method: "POST", Path: nodePath + "/cordon", Says: nodeSays,
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why, for the record"}}},
	uncordonVerb,
	{Use: "role NODE auto|voter|observer", Short: "Set whether a node may vote; an observer never does", Method: "PATCH", Path: nodePath,
		Says: "{name}: role {role|'auto'}, labels {labels}", Fields: []cli.Field{{Place: 2, Member: "role"}}},
}

const (
	nodePath = "/api/v1/mesh/nodes/{node:1}"
	nodeSays = "{name} is {scheduling}, {runs} runs"
)

var uncordonVerb = cli.Verb{Use: "uncordon NODE", Also: []string{"undrain"}, Short: "Allow runs on a node again", Method: "POST", Path: nodePath + "/uncordon", Says: nodeSays}

var topVerbs = []cli.Verb{
	uncordonVerb,
	{Use: "pending", Short: "List the nodes that ask to be let in", Path: "/api/v1/mesh/requests",
		Long: `List the nodes of the local network that ask to be let in. Compare the code with the
one that the node shows (on its console, or in its log) before you approve it: when
they differ, somebody stands between.`,
		Columns: "CODE=code NAME=name ID=id:nodeId ADDRESS=address UNTIL=expiresAt",
		Next:    "compare the code with the one that the node shows, then: selvage approve CODE"},
	{Use: "approve CODE", Short: "Admit the node that shows this code", Method: "POST", Path: "/api/v1/mesh/requests/{1}/approve", Says: "let in {name+id}",
		Long: "Let in the node that shows this code (see selvage pending). Anything else that is to be approved: selvage approval."},
	{Use: "reject CODE", Short: "Reject the node that shows this code", Method: "POST", Path: "/api/v1/mesh/requests/{1}/reject", Says: "rejected"},
	{Use: "leave", Short: "Remove the node at --api from the mesh for good", Method: "POST", Path: "/api/v1/mesh/leave", Says: "the node leaves the mesh",
		Long: "Let the node at --api leave the mesh for good: it gives up leadership and its vote, and stops. Its data stays on disk; it can come back only with a new join."},
	{Use: "resume", Short: "Resume work after selvage stop --all", Method: "POST", Path: "/api/v1/mesh/resume", Says: "not stopped, {running} runs at work"},
	{Use: "activity", Short: "List what happened in a company, the newest first", Path: "/api/companies/{company}/activity",
		Example: `  selvage activity --agent Bob --from 2026-11-21T03:10:00Z --to 2026-11-21T03:20:00Z`,
		Columns: "TIME=createdAt WHO=agent:agentId|actorType+actorId ACTION=action ENTITY=entityType ID=entityId RUN=runId WHAT=short:details",
		Fields: []cli.Field{
			{Name: "agent", Member: "agentId", Kind: "agent", About: "what this agent did; with --from also when its runs began and ended"},
			{Name: "run", Member: "runId", Kind: "run", About: "what was done under this run"},
			{Name: "action", Member: "action", About: "only this action, such as issue.updated"},
			{Name: "entity", Member: "entityId", Kind: "entity", About: "only what happened to this: an ID, or ACM-1"},
			{Name: "from", Member: "from", About: "not before this time, such as 2026-11-21T03:10:00Z"},
			{Name: "to", Member: "to", About: "not after this time"},
			{Name: "limit", Member: "limit", Kind: "int", Value: "50", About: "at most so many, up to 500"}}},
	{Use: "search TEXT", Short: "Look for a text in issues, comments, documents, agents and projects", Path: "/api/companies/{company}/search", Rows: "results", Columns: "KIND=type OPEN=issue.identifier|id TITLE=title TEXT=snippet", Fields: []cli.Field{{Place: 1, Member: "q"}, withLimit}},
	{Use: "extract TEXT", Short: "List the places where a text or URL occurs", Path: "/api/companies/{company}/search/extract", Rows: "results", Columns: "ID=identifier STATUS=status MATCHES=matches TITLE=title",
		Fields: []cli.Field{{Place: 1, Member: "contains"}, {Name: "kind", Member: "kind", About: "literal or url"}, {Name: "scope", Member: "scope", About: "all, issues, comments or documents"}, {Name: "within", Member: "updatedWithin", About: "such as 24h, 7d, 4w or 3m"}, withLimit}},
}

// subs adds commands to a group.
func subs(to *cobra.Command, more ...*cobra.Command) *cobra.Command {
	to.AddCommand(more...)
	return to
}

var profileVerbs = []cli.Verb{
	{Use: "profile", Short: "Show what others see of you", Path: "/api/auth/profile"},
	{Use: "rename NAME", Short: "Change your display name", Method: "PATCH", Path: "/api/auth/profile", Says: "{name}", Fields: []cli.Field{{Place: 1, Member: "name"}}},
}

var secretVerbs = []cli.Verb{
	{Use: "list", Short: "List the secrets of a company, without their values", Path: "/api/companies/{company}/secrets", Columns: "KEY=key NAME=name STATUS=status VERSION=latestVersion USES=referenceCount ID=id"},
	{Use: "create NAME", Short: "Create a secret; its value comes from standard input, or a prompt", Example: `  selvage secret create "OpenAI key" <key.txt`, Method: "POST", Path: "/api/companies/{company}/secrets", Says: "{key} created, version {latestVersion}, {id}",
		Fields: []cli.Field{{Place: 1, Member: "name"}, {Kind: "secret", Member: "value"}}},
	{Use: "rotate SECRET", Short: "Give a secret a new value, from standard input or a prompt", Method: "POST", Path: "/api/secrets/{secret:1}/rotate", Says: "{key} rotated, version {latestVersion}, {id}", Fields: []cli.Field{{Kind: "secret", Member: "value"}}},
	{Use: "delete SECRET", Short: "Delete a secret with all its versions", Method: "DELETE", Path: "/api/secrets/{secret:1}", Says: "deleted"},
	{Use: "usage SECRET", Short: "List the variables that refer to a secret", Path: "/api/secrets/{secret:1}/usage", Rows: "bindings", Columns: "TYPE=targetType ID=targetId VARIABLE=configPath"},
	{Use: "update SECRET", Short: "Change a secret's name, key or status", Method: "PATCH", Path: "/api/secrets/{secret:1}", Says: "{key} {status}", Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, {Name: "key", Member: "key", About: "its new key"},
		{Name: "status", Member: "status", About: "active, disabled or archived"}, withDescription}},
	{Use: "accesses SECRET", Short: "List which runs used a secret, the newest first", Path: "/api/secrets/{secret:1}/access-events", Columns: "AT=createdAt RUN=heartbeatRunId BY=actorType VARIABLE=configPath VERSION=version OUTCOME=outcome"},
}
