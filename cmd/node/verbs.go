package main

import "github.com/spf13/cobra"

// Fields that several verbs have.
var (
	withDescription = field{name: "description", member: "description", about: "what it is about"}
	between         = []field{{name: "from", member: "from", about: "ISO date"}, {name: "to", member: "to", about: "ISO date"}}
	withLimit       = field{name: "limit", member: "limit", kind: "int", about: "at most so many"}
	withOffset      = field{name: "offset", member: "offset", kind: "int", about: "without the first so many"}
	withMode        = field{name: "mode", member: "workMode", about: "standard, ask or planning"}
	withPolicy      = field{name: "policy", member: "executionPolicy", kind: "json", about: "who looks at the work before it is done, or a file with it"}
)

const (
	operationTable = "ID=id PHASE=phase STATUS=status EXIT=exitCode STARTED=startedAt COMMAND=command"

	done       = "{id}"
	issueSays  = "{identifier} {status} {title}"
	issueTable = "ID=identifier STATUS=status PRIORITY=priority ASSIGNEE=agent:assigneeAgentId TITLE=title"
)

// addVerbs adds the commands that are one request each.
func addVerbs(root *cobra.Command, c *cli) {
	find := func(words ...string) *cobra.Command {
		cmd, _, _ := root.Find(words)
		return cmd
	}
	with(c, find("company"), companyVerbs...)
	with(c, find("agent"), agentVerbs...)
	with(c, find("run"), runVerbs...)
	with(c, find("cost"), costVerbs...)
	with(c, find("member"), memberVerbs...)
	with(c, find("issue"), issueVerbs...).AddCommand(
		noun(c, "hold", "Pause, cancel or restore an issue and everything below it", holdVerbs...),
		subs(noun(c, "queue", "Comments that wait for a working agent", queueVerbs...), queueCommands(c)...),
		noun(c, "watchdog", "The agent that is woken when an issue stops", watchdogVerbs...),
		noun(c, "monitor", "Wake an issue's agent at a time", monitorVerbs...),
		noun(c, "plan", "Issues made of an issue's plan", planVerbs...),
		subs(noun(c, "remark", "Remarks on the words of a document", remarkVerbs...), remarkOnDocument(c)))
	find("issue").AddCommand(noun(c, "product", "Work products of an issue", productVerbs...))
	find("agent").AddCommand(noun(c, "memory", "Memories of an agent", memoryVerbs...), noun(c, "message", "Messages that wait for an agent", messageVerbs...))
	with(c, find("secret"), secretVerbs...).AddCommand(
		noun(c, "wanted", "Secrets that each person stores for themselves", definitionVerbs...),
		subs(noun(c, "mine", "Your own secrets, for runs that you are responsible for", mineVerbs...), setMine(c)))
	with(c, find("approval"), approvalVerbs...)
	with(c, find("user"), userVerbs...)
	with(c, find("key", "board"), boardKeyVerbs...)
	with(c, find("token"), tokenVerbs...)
	with(c, find("budget"), budgetVerbs...)
	with(c, find("routine"), routineVerbs...)
	with(c, find("routine", "trigger"), triggerVerbs...)
	root.AddCommand(noun(c, "workspace", "Where runs work", spaceVerbs...))
	find("workspace").AddCommand(
		logCommand(c, "log OPERATION", "Print what a command in a workspace has written", "/api/workspace-operations/{1}/log"),
		logCommand(c, "service-log SERVICE", "Print what a service has written since it was started", "/api/runtime-services/{1}/log"))
	with(c, find("auth"), profileVerbs...)
	with(c, find("adapter"), adapterVerbs...)
	with(c, find("issue", "doc"), documentVerbs...)
	with(c, find("agent", "instructions"), instructionVerbs...)
	with(c, find("member"), verb{use: "directory", short: "List the people of a company", path: "/api/companies/{company}/user-directory", rows: "users", columns: "NAME=user.name EMAIL=user.email ID=principalId STATUS=status"})
	with(c, find("skill"), skillVerbs...).AddCommand(noun(c, "test", "Have agents try a skill", skillTestVerbs...), noun(c, "file", "Files of a skill", skillFileVerbs...))
	root.AddCommand(
		noun(c, "goal", "Create and list the goals of a company", goalVerbs...),
		with(c, group("project", "Create and list projects, and where their work lies", noun(c, "workspace", "Workspaces of a project", workspaceVerbs...)), projectVerbs...),
		noun(c, "label", "Labels of issues", labelVerbs...),
		noun(c, "environment", "Where runs are carried out, and machines that are reached over ssh", environmentVerbs...),
		noun(c, "inbox", "List what waits for you", inboxVerbs...),
		noun(c, "folder", "Folders of skills and routines", folderVerbs...),
		noun(c, "team", "Teams that come with the program", teamVerbs...),
		noun(c, "feedback", "Votes on what agents did", feedbackVerbs...),
		noun(c, "audit", "What agents did, and for whom", auditVerbs...),
		with(c, orgCommand(c), orgVerbs...),
		noun(c, "settings", "Settings of the mesh", settingsVerbs...),
	)
	with(c, root, topVerbs...)
}

var companyVerbs = []verb{
	{use: "list", short: "List the companies", path: "/api/companies", columns: "PREFIX=issuePrefix NAME=name STATUS=status ISSUES=issueCounter SPENT=spentMonthlyCents BUDGET=budgetMonthlyCents ID=id"},
	{use: "create NAME", short: "Create a company", example: `  selvage company create "Acme Robotics" --budget 500000`, method: "POST", path: "/api/companies", says: "{issuePrefix} {name} {id}",
		fields: []field{{place: 1, member: "name"}, {name: "description", member: "description", about: "what the company is for"}, {name: "budget", member: "budgetMonthlyCents", kind: "int", about: "monthly budget in cents; 0 sets none"}}},
	{use: "show", short: "Show a company", path: "/api/companies/{company}"},
	{use: "update", short: "Change a company", method: "PATCH", path: "/api/companies/{company}", says: "{issuePrefix} {name}",
		fields: []field{{name: "name", member: "name", about: "its new name"}, withDescription, {name: "budget", member: "budgetMonthlyCents", kind: "int", about: "monthly budget in cents"},
			{name: "color", member: "brandColor", about: "of its mark, such as #ff8800"}, {name: "share-feedback", member: "feedbackDataSharingEnabled", kind: "bool", about: "votes may be handed on"}}},
	{use: "badges", short: "Count what waits for the board", path: "/api/companies/{company}/sidebar-badges"},
	{use: "pause", short: "Pause a company", method: "POST", path: "/api/companies/{company}/pause", says: "{name} {status}"},
	{use: "resume", short: "Resume a company", method: "POST", path: "/api/companies/{company}/resume", says: "{name} {status}"},
	{use: "archive", short: "Archive a company; it stops working", method: "POST", path: "/api/companies/{company}/archive", says: "{name} {status}"},
	{use: "delete ID", short: "Delete a company and everything in it", method: "DELETE", path: "/api/companies/{1}", says: "deleted"},
	{use: "left-out", short: "List what an export of a company leaves out", path: "/api/companies/{company}/export/fidelity", rows: "omissions", columns: "WHAT=kind COUNT=count WHY=reason"},
}

var runVerbs = []verb{
	{use: "cancel RUN", short: "Cancel a run", method: "POST", path: "/api/heartbeat-runs/{run:1}/cancel", says: "cancelled"},
	{use: "events RUN", short: "List the steps of a run", path: "/api/heartbeat-runs/{run:1}/events?limit=1000", columns: "SEQ=seq TIME=createdAt LEVEL=level EVENT=eventType MESSAGE=message"},
	{use: "issues RUN", short: "List the issues that a run is about", path: "/api/heartbeat-runs/{run:1}/issues", columns: "ID=identifier STATUS=status PRIORITY=priority TITLE=title"},
	{use: "operations RUN", short: "List the commands that prepared the workspace of a run", path: "/api/heartbeat-runs/{run:1}/workspace-operations", columns: operationTable},
	{use: "judge RUN DECISION", short: "Judge a silent run: continue, dismissed_false_positive or snooze", method: "POST", path: "/api/heartbeat-runs/{run:1}/watchdog-decisions", says: "{decision}",
		fields: []field{{place: 2, member: "decision"}, {name: "until", member: "snoozedUntil", about: "of a snooze: ISO instant"}, {name: "reason", member: "reason", about: "why"}}},
	{use: "live", short: "List the runs that are queued or at work", path: "/api/companies/{company}/live-runs", columns: "ID=id AGENT=agentName STATUS=status ISSUE=issueId SILENT=outputSilence.level STARTED=startedAt"},
}

var approvalVerbs = []verb{
	{use: "resubmit APPROVAL", short: "Resubmit a revised approval", method: "POST", path: "/api/approvals/{approval:1}/resubmit", says: "{type} {status}",
		fields: []field{{name: "payload", member: "payload", kind: "json", about: "what is asked for now, or a file with it"}}},
	{use: "ask TYPE", short: "Ask the board for something", method: "POST", path: "/api/companies/{company}/approvals", says: "{id} {status}",
		long: `Ask the board for something: TYPE is hire_agent, approve_ceo_strategy,
budget_override_required or request_board_approval. The payload is what is to
happen, as a JSON object; it may hold secrets (the environment of an agent to be
hired), so give it as @FILE, or @- for standard input.`,
		example: `  selvage approval ask request_board_approval --payload '{"title":"Buy a yacht"}'
  selvage approval ask approve_ceo_strategy --payload @plan.json --issue ACM-1`,
		fields: []field{{place: 1, member: "type"}, {name: "payload", member: "payload", kind: "json or @file", about: "what is asked for: a JSON object, or @FILE that holds it", value: "{}"}, {name: "issue", member: "issueIds", kind: "issues", about: "issue that it is about; repeat for more"}}},
	{use: "approve APPROVAL", short: "Approve, and carry out what waits", example: decideExample("approve"), method: "POST", path: "/api/approvals/{approval:1}/approve", says: "{id} {status}",
		fields: []field{withNote, {name: "amount", member: "amount", kind: "int", about: "of a budget: the new limit in cents, instead of the proposed one"}}},
	{use: "reject APPROVAL", short: "Reject; what was made ready is taken back", example: decideExample("reject"), method: "POST", path: "/api/approvals/{approval:1}/reject", says: "{id} {status}", fields: []field{withNote}},
	{use: "revise APPROVAL", short: "Send back for changes", example: decideExample("revise"), method: "POST", path: "/api/approvals/{approval:1}/request-revision", says: "{id} {status}", fields: []field{withNote}},
	{use: "cancel APPROVAL", short: "Cancel, without a verdict", example: decideExample("cancel"), method: "POST", path: "/api/approvals/{approval:1}/cancel", says: "{id} {status}", fields: []field{withNote}},
	{use: "comment APPROVAL TEXT", short: "Comment on an approval", method: "POST", path: "/api/approvals/{approval:1}/comments", says: "commented", fields: []field{{place: 2, member: "body"}}},
}

var withNote = field{name: "note", member: "decisionNote", about: "what to tell whoever asked"}

func decideExample(verb string) string {
	return "  selvage approval " + verb + " 0199c0de --note 'as we said'"
}

var userVerbs = []verb{
	{use: "promote USER", short: "Make a user an administrator of the mesh", method: "POST", path: "/api/admin/users/{user:1}/promote-instance-admin", says: "{email} administers the mesh"},
	{use: "demote USER", short: "Make a user no administrator any more", method: "POST", path: "/api/admin/users/{user:1}/demote-instance-admin", says: "{email} administers nothing any more"},
	{use: "revoke USER", short: "End a user's sign-ins and revoke their board keys", method: "POST", path: "/api/admin/users/{user:1}/revoke-credentials", says: "{email} is signed out everywhere"},
	{use: "suspend USER", short: "Shut a user out until they are let in again", method: "POST", path: "/api/admin/users/{user:1}/suspend", says: "{email} is suspended"},
	{use: "resume USER", short: "Let a suspended user in again", method: "POST", path: "/api/admin/users/{user:1}/resume", says: "{email} may sign in again"},
}

var boardKeyVerbs = []verb{
	{use: "list", short: "List your board keys", path: "/api/board-api-keys", columns: "ID=id MADE=ago:createdAt ENDS=expiresAt|'never' NAME=name"},
	{use: "revoke ID", short: "Revoke one of your board keys, on all nodes", method: "DELETE", path: "/api/board-api-keys/{1}", says: "revoked {1}"},
}

var tokenVerbs = []verb{
	{use: "revoke TOKEN-ID", short: "Revoke a join token", method: "DELETE", path: "/api/v1/mesh/tokens/{1}", says: "revoked"},
}

var budgetVerbs = []verb{
	{use: "incidents", short: "List warnings and stops, newest first", path: "/api/companies/{company}/budget-incidents", fields: []field{{name: "status", member: "status", about: "only open, resolved or dismissed ones"}},
		columns: "INCIDENT=id SCOPE=scopeType NAME=scopeName THRESHOLD=thresholdType SPENT=cents:amountObserved LIMIT=cents:amountLimit WINDOW=windowKind STATUS=status SINCE=ago:createdAt"},
}

var memberVerbs = []verb{
	{use: "list", short: "List the people of a company", path: "/api/companies/{company}/members", rows: "members", columns: "NAME=user.name EMAIL=user.email ROLE=membershipRole STATUS=status ID=id"},
	{use: "requests", short: "List the requests to join a company", path: "/api/companies/{company}/join-requests", columns: "ID=id TYPE=requestType WHO=agentName|requestEmailSnapshot STATUS=status ASKED=ago:createdAt"},
	{use: "approve REQUEST", short: "Let somebody in", method: "POST", path: "/api/companies/{company}/join-requests/{1}/approve", says: "let in {agentName|requestEmailSnapshot}"},
	{use: "reject REQUEST", short: "Turn somebody away", method: "POST", path: "/api/companies/{company}/join-requests/{1}/reject", says: "turned away {agentName|requestEmailSnapshot}"},
	{use: "show USER", short: "Show a member's activity", long: "USER is a user's ID, or what stands before the @ of their address.", path: "/api/companies/{company}/users/{1}/profile", rows: "stats", columns: "WHEN=label MADE=createdIssues DONE=completedIssues OPEN=openAssignedIssues LINES=activityCount"},
	{use: "role MEMBER ROLE", short: "Change a member's role: " + roles, method: "PATCH", path: "/api/companies/{company}/members/{member:1}", says: "{user.email} is {membershipRole}", fields: []field{{place: 2, member: "membershipRole"}}},
	{use: "suspend MEMBER", short: "Suspend a member", method: "PATCH", path: "/api/companies/{company}/members/{member:1}", says: "{user.email} is {status}", fixed: map[string]any{"status": "suspended"}},
	{use: "resume MEMBER", short: "Restore a suspended member", method: "PATCH", path: "/api/companies/{company}/members/{member:1}", says: "{user.email} is {status}", fixed: map[string]any{"status": "active"}},
	{use: "remove MEMBER", short: "Remove a member; their open issues become unassigned", method: "POST", path: "/api/companies/{company}/members/{member:1}/archive", says: "{member.user.email} is out; {reassignedIssueCount} open issues have nobody now"},
	{use: "invites", short: "List invites, newest first", path: "/api/companies/{company}/invites", rows: "invites", columns: "ID=id FOR=allowedJoinTypes ROLE=humanRole STATE=state UNTIL=expiresAt"},
	{use: "revoke-invite INVITE", short: "Revoke an invite", method: "POST", path: "/api/invites/{1}/revoke", says: "{id} {state}"},
	{use: "invite-openclaw", short: "Invite an agent of OpenClaw; the token is shown once", method: "POST", path: "/api/companies/{company}/openclaw/invite-prompt", says: "{prompt}", fields: []field{{name: "message", member: "agentMessage", about: "a word to the agent"}}},
}

var issueFields = []field{withDescription, {name: "assignee", member: "assigneeAgentId", kind: "agent", about: "agent that has it"}, {name: "user", member: "assigneeUserId", about: "user that has it"},
	{name: "project", member: "projectId", kind: "project", about: "its project"}, {name: "goal", member: "goalId", kind: "goal", about: "its goal"}, {name: "parent", member: "parentId", kind: "issue", about: "the issue that it is part of"},
	{name: "blocked-by", member: "blockedByIssueIds", kind: "issues", about: "what it waits for; repeat for more"}, {name: "label", member: "labelIds", kind: "labels", about: "its labels; repeat for more"},
	{name: "billing-code", member: "billingCode", about: "where its costs go"}, {name: "priority", member: "priority", about: "critical, high, medium or low", value: "medium"}, {name: "status", member: "status", about: "backlog or todo", value: "todo"}, withMode, withPolicy}

var holdVerbs = []verb{
	{use: "list ISSUE", short: "List the holds on an issue, newest first", path: "/api/issues/{1}/tree-holds", columns: "ID=id MODE=mode STATUS=status REASON=reason SINCE=createdAt"},
	{use: "state ISSUE", short: "Check whether an issue, or one above it, is held", path: "/api/issues/{1}/tree-control/state"},
	{use: "show ISSUE HOLD", short: "Show a hold", path: "/api/issues/{1}/tree-holds/{2}"},
	{use: "preview ISSUE MODE", short: "Preview a hold: pause, resume, cancel or restore", method: "POST", path: "/api/issues/{1}/tree-control/preview", fields: []field{{place: 2, member: "mode"}}},
	{use: "put ISSUE MODE", short: "Pause, resume, cancel or restore an issue and everything below it", method: "POST", path: "/api/issues/{1}/tree-holds", says: "{hold.id} {hold.mode} {hold.status}, {preview.totals.affectedIssues} issues",
		fields: []field{{place: 2, member: "mode"}, {name: "reason", member: "reason", about: "why"}}},
	{use: "release ISSUE HOLD", short: "Release a hold", method: "POST", path: "/api/issues/{1}/tree-holds/{2}/release", says: "{id} {status}", fields: []field{{name: "reason", member: "reason", about: "why"}}},
}

var queueVerbs = []verb{
	{use: "list ISSUE", short: "List the queued comments of an issue", path: "/api/issues/{1}/queued-comments", rows: "entries", columns: "ID=id BY=authorUserId TEXT=body"},
	{use: "show ISSUE", short: "Show the queue itself: its ID, its revision and the run at work", path: "/api/issues/{1}/queued-comments"},
}

var watchdogVerbs = []verb{
	{use: "show ISSUE", short: "Show the watchdog of an issue", path: "/api/issues/{1}/watchdog"},
	{use: "set ISSUE AGENT", short: "Set the agent that watches an issue and everything below it", method: "PUT", path: "/api/issues/{1}/watchdog", says: "{status}", fields: []field{{place: 2, member: "agentId", kind: "agent"}, {name: "instructions", member: "instructions", about: "what it is to do then"}}},
	{use: "remove ISSUE", short: "Remove the watchdog of an issue", method: "DELETE", path: "/api/issues/{1}/watchdog", says: "removed"},
}

var monitorVerbs = []verb{
	{use: "set ISSUE WHEN", short: "Wake an issue's agent at an ISO time", method: "PATCH", path: "/api/issues/{1}", says: "{identifier} is looked at again at {monitorNextCheckAt}",
		fields: []field{{place: 2, member: "executionPolicy.monitor.nextCheckAt"}, {name: "notes", member: "executionPolicy.monitor.notes", about: "at what"}}},
	{use: "now ISSUE", short: "Wake an issue's monitor now", method: "POST", path: "/api/issues/{1}/monitor/check-now", says: "woken"},
}

var planVerbs = []verb{
	{use: "list ISSUE", short: "List the issues made of an issue's plan", path: "/api/issues/{1}/accepted-plan-decompositions", columns: "ID=id REVISION=acceptedPlanRevisionNumber ISSUES=childIssues AT=completedAt"},
	{use: "split ISSUE REVISION FILE", short: "Turn an accepted plan into sub-issues, all or none", long: `FILE holds a JSON list of issues, such as [{"title": "Cut"}, {"title": "Weld", "blockedByIssueIds": ["#1"]}]; - is standard input.`,
		method: "POST", path: "/api/issues/{1}/accepted-plan-decompositions", says: "{decomposition.id}: {newlyCreatedChildIssueIds}", fields: []field{{place: 2, member: "acceptedPlanRevisionId"}, {place: 3, name: "FILE", member: "children", kind: "json"}}},
}

var remarkVerbs = []verb{
	{use: "list ISSUE DOCUMENT", short: "List the remarks on a document", path: "/api/issues/{1}/documents/{2}/annotations", columns: "ID=id STATUS=status WORDS=selectedText STANDS=anchorState AT=createdAt"},
	{use: "show ISSUE DOCUMENT REMARK", short: "Show a remark with what was said", path: "/api/issues/{1}/documents/{2}/annotations/{3}", rows: "comments", columns: "AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{use: "answer ISSUE DOCUMENT REMARK TEXT", short: "Reply to a remark", method: "POST", path: "/api/issues/{1}/documents/{2}/annotations/{3}/comments", says: done, fields: []field{{place: 4, member: "body"}}},
	{use: "resolve ISSUE DOCUMENT REMARK", short: "Close a remark", method: "PATCH", path: "/api/issues/{1}/documents/{2}/annotations/{3}", says: "{status}", fixed: map[string]any{"status": "resolved"}},
	{use: "reopen ISSUE DOCUMENT REMARK", short: "Open a remark again", method: "PATCH", path: "/api/issues/{1}/documents/{2}/annotations/{3}", says: "{status}", fixed: map[string]any{"status": "open"}},
}

var skillVerbs = []verb{
	{use: "list", short: "List the skills that agents can have", path: "/api/companies/{company}/skills", columns: "SKILL=slug SOURCE=sourceLabel AGENTS=attachedAgentCount ABOUT=description"},
	{use: "show SKILL", short: "Print the text of a skill", path: "/api/companies/{company}/skills/{1}", text: "markdown"},
	{use: "fork SKILL [NAME]", short: "Fork a skill", method: "POST", path: "/api/companies/{company}/skills/{1}/fork", says: "{slug}", fields: []field{{place: 2, member: "name"}}},
	{use: "remove SKILL", short: "Remove a skill", method: "DELETE", path: "/api/companies/{company}/skills/{1}", says: "{slug} removed"},
	{use: "comments SKILL", short: "List the comments on a skill", path: "/api/companies/{company}/skills/{1}/comments", columns: "ID=id AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{use: "comment SKILL TEXT", short: "Comment on a skill", method: "POST", path: "/api/companies/{company}/skills/{1}/comments", says: done, fields: []field{{place: 2, member: "body"}}},
	{use: "audit SKILL", short: "Audit a skill for tokens, hidden characters and downloads", method: "POST", path: "/api/companies/{company}/skills/{1}/audit", says: "{verdict} {codes}"},
	{use: "versions SKILL", short: "List the versions of a skill, newest first", path: "/api/companies/{company}/skills/{1}/versions", columns: "ID=id NUMBER=versionNumber LABEL=label AT=createdAt"},
	{use: "version SKILL VERSION", short: "Show a version of a skill with its files", path: skillPath + "/versions/{2}", rows: "files", columns: "FILE=path KIND=kind BYTES=sizeBytes"},
	{use: "save SKILL LABEL", short: "Save the current text of a skill as a named version", method: "POST", path: skillPath + "/versions", says: "{versionNumber} {label} {id}", fields: []field{{place: 2, member: "label"}, {name: "summary", member: "changeSummary", about: "what changed"}}},
	{use: "reset SKILL", short: "Reset a skill to a version, or to its origin", method: "POST", path: skillPath + "/reset", says: "reset", fields: []field{{name: "version", member: "versionId", about: "ID of the version"}}},
	{use: "outdated SKILL", short: "Check whether a skill's origin has changed", path: skillPath + "/update-status"},
	{use: "rename SKILL NAME", short: "Rename a skill", method: "POST", path: skillPath + "/rename", says: "{skill.slug} {skill.name}", fields: []field{{place: 2, member: "name"}}},
	{use: "describe SKILL", short: "Edit how a skill is listed", method: "PATCH", path: skillPath, says: "{slug} {name}", fields: []field{withDescription, {name: "categories", member: "categories", kind: "list", about: "what it belongs to; repeat for more"}}},
	{use: "catalog", short: "List the skills that come with the program", path: "/api/skills/catalog", columns: "SKILL=slug CATEGORY=category ABOUT=description"},
	{use: "edit-comment SKILL COMMENT TEXT", short: "Edit your comment on a skill", method: "PATCH", path: skillPath + "/comments/{2}", says: done, fields: []field{{place: 3, member: "body"}}},
	{use: "unsay SKILL COMMENT", short: "Delete a comment on a skill", method: "DELETE", path: skillPath + "/comments/{2}", says: "deleted"},
	{use: "unstar SKILL", short: "Unstar a skill", method: "DELETE", path: skillPath + "/star", says: "unstarred"},
	{use: "star SKILL", short: "Star a skill", method: "POST", path: "/api/companies/{company}/skills/{1}/star", says: "starred"},
}

const skillPath = "/api/companies/{company}/skills/{1}"

var skillFileVerbs = []verb{
	{use: "list SKILL", short: "List the files of a skill", path: skillPath, rows: "fileInventory", columns: "FILE=path KIND=kind"},
	{use: "get SKILL FILE", short: "Print a file of a skill", path: skillPath + "/files?path={2}", text: "content"},
	{use: "put SKILL FILE FROM", short: "Write a file of a skill from a file here, or with - from standard input", method: "PATCH", path: skillPath + "/files", says: "{path}", fields: []field{{place: 2, member: "path"}, {place: 3, name: "FROM", member: "content", kind: "file"}}},
	{use: "remove SKILL FILE", short: "Remove a file of a skill", method: "DELETE", path: skillPath + "/files", says: "removed", fixed: map[string]any{"target": "file"}, fields: []field{{place: 2, member: "path"}}},
}

var skillTestVerbs = []verb{
	{use: "list SKILL", short: "List the tests of a skill, newest first", path: "/api/companies/{company}/skills/{1}/test-runs", columns: "ID=id AGENT=agent:agentId STATUS=status ISSUE=harnessIssue.identifier AT=createdAt"},
	{use: "run SKILL AGENT TEXT", short: "Test a skill: an agent applies it to a text, in a new issue", method: "POST", path: "/api/companies/{company}/skills/{1}/test-runs", says: "{id} {status} {harnessIssue.identifier}",
		fields: []field{{place: 2, member: "agentId", kind: "agent"}, {place: 3, member: "content"}}},
	{use: "show SKILL TEST", short: "Show a try, and what came of it", path: "/api/companies/{company}/skills/{1}/test-runs/{2}"},
	{use: "cancel SKILL TEST", short: "Cancel a test of a skill", method: "POST", path: "/api/companies/{company}/skills/{1}/test-runs/{2}/cancel", says: "{id} {status}"},
	{use: "forget SKILL TEST", short: "Hide a test of a skill", method: "DELETE", path: "/api/companies/{company}/skills/{1}/test-runs/{2}", says: "forgotten"},
	{use: "inputs SKILL", short: "List the test inputs of a skill", path: "/api/companies/{company}/skills/{1}/test-inputs", columns: "ID=id NAME=name TEXT=content"},
	{use: "change SKILL INPUT TEXT", short: "Edit a test input of a skill", method: "PATCH", path: skillPath + "/test-inputs/{2}", says: done, fields: []field{{place: 3, member: "content"}}},
	{use: "drop SKILL INPUT", short: "Delete a test input of a skill", method: "DELETE", path: skillPath + "/test-inputs/{2}", says: "deleted"},
	{use: "keep SKILL NAME TEXT", short: "Add a test input to a skill", method: "POST", path: "/api/companies/{company}/skills/{1}/test-inputs", says: done, fields: []field{{place: 2, member: "name"}, {place: 3, member: "content"}}},
}

var goalFields = []field{withDescription, {name: "level", member: "level", about: "company, team, agent or task"}, {name: "status", member: "status", about: "planned, active, achieved or cancelled"},
	{name: "parent", member: "parentId", kind: "goal", about: "the goal that it serves"}, {name: "owner", member: "ownerAgentId", kind: "agent", about: "agent that answers for it"}}

var goalVerbs = []verb{
	{use: "list", short: "List the goals of a company", path: "/api/companies/{company}/goals", columns: "ID=id LEVEL=level STATUS=status OWNER=agent:ownerAgentId TITLE=title"},
	{use: "show GOAL", short: "Show a goal", path: "/api/goals/{goal:1}"},
	{use: "create TITLE", short: "Create a goal", method: "POST", path: "/api/companies/{company}/goals", says: "{id} {level} {status}", fields: append([]field{{place: 1, member: "title"}}, goalFields...)},
	{use: "update GOAL", short: "Change a goal", method: "PATCH", path: "/api/goals/{goal:1}", says: "{title} {status}", fields: append([]field{{name: "title", member: "title", about: "its new title"}}, goalFields...)},
	{use: "delete GOAL", short: "Delete a goal; its projects and issues move to its parent", method: "DELETE", path: "/api/goals/{goal:1}", says: "deleted"},
}

var projectFields = []field{withDescription, {name: "status", member: "status", about: "backlog, planned, in_progress, completed or cancelled"}, {name: "goal", member: "goalId", kind: "goal", about: "the goal that it serves"},
	{name: "lead", member: "leadAgentId", kind: "agent", about: "agent that leads it"}, {name: "until", member: "targetDate", about: "date by which it is to be done"},
	{name: "env", member: "env", kind: "json", about: "variables of its runs, or a file with them"}, {name: "workspaces", member: "executionWorkspacePolicy", kind: "json", about: "where the runs of its issues work, or a file with it"}}

var projectVerbs = []verb{
	{use: "list", short: "List the projects of a company", path: "/api/companies/{company}/projects", columns: "NAME=name STATUS=status ISSUES=taskCount LEAD=agent:leadAgentId UNTIL=targetDate ID=id"},
	{use: "show PROJECT", short: "Show a project", path: "/api/projects/{project:1}"},
	{use: "create NAME", short: "Create a project", method: "POST", path: "/api/companies/{company}/projects", says: "{name} {status} {id}", fields: append([]field{{place: 1, member: "name"}}, projectFields...)},
	{use: "update PROJECT", short: "Change a project", method: "PATCH", path: "/api/projects/{project:1}", says: "{name} {status}", fields: append([]field{{name: "name", member: "name", about: "its new name"}}, projectFields...)},
	{use: "delete PROJECT", short: "Delete a project; its issues stay", method: "DELETE", path: "/api/projects/{project:1}", says: "deleted"},
}

var workspaceVerbs = []verb{
	{use: "list PROJECT", short: "List the workspaces of a project", path: "/api/projects/{project:1}/workspaces", columns: "NAME=name SOURCE=sourceType PRIMARY=isPrimary FOLDER=cwd REPOSITORY=repoUrl ID=id"},
	{use: "add PROJECT NAME", short: "Add a workspace to a project", method: "POST", path: "/api/projects/{project:1}/workspaces", says: "{name} {id}", fields: []field{{place: 2, member: "name"},
		{name: "folder", member: "cwd", about: "folder on the node that has it"}, {name: "repository", member: "repoUrl", about: "URL of a Git repository"}, {name: "ref", member: "repoRef", about: "its branch or commit"}, {name: "primary", member: "isPrimary", kind: "bool", about: "issues use it unless they say otherwise"}}},
	{use: "update PROJECT WORKSPACE", short: "Change where a project's work lies", method: "PATCH", path: "/api/projects/{project:1}/workspaces/{2}", says: "{name} {id}", fields: []field{{name: "name", member: "name", about: "its new name"},
		{name: "folder", member: "cwd", about: "folder on the node that has it"}, {name: "repository", member: "repoUrl", about: "URL of a Git repository"}, {name: "ref", member: "repoRef", about: "its branch or commit"}, {name: "primary", member: "isPrimary", kind: "bool", about: "issues use it unless they say otherwise"},
		{name: "setup", member: "setupCommand", about: "command that makes it ready"}, {name: "runtime", member: "runtimeConfig", kind: "json", about: "its services and commands, or a file with them"}}},
	serviceVerb("start", "Start the services of a project's workspace", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("stop", "Stop the services of a project's workspace", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("restart", "Start the services of a project's workspace again", "PROJECT WORKSPACE", "/api/projects/{project:1}/workspaces/{2}"),
	{use: "run PROJECT WORKSPACE COMMAND", short: "Run a command that the board declared for a project's workspace", method: "POST", path: "/api/projects/{project:1}/workspaces/{2}/runtime-commands/run", says: "{operation.id} {operation.status}", fields: []field{{place: 3, member: "workspaceCommandId"}}},
	{use: "remove PROJECT WORKSPACE", short: "Remove a workspace from a project", method: "DELETE", path: "/api/projects/{project:1}/workspaces/{2}", says: "removed"},
}

var labelVerbs = []verb{
	{use: "list", short: "List the labels of a company", path: "/api/companies/{company}/labels", columns: "NAME=name COLOR=color ID=id"},
	{use: "create NAME", short: "Create a label", method: "POST", path: "/api/companies/{company}/labels", says: "{name} {id}", fields: []field{{place: 1, member: "name"}, {name: "color", member: "color", about: "such as #ff8800", value: "#808080"}}},
	{use: "delete LABEL", short: "Delete a label", method: "DELETE", path: "/api/labels/{label:1}", says: "deleted"},
}

var environmentVerbs = []verb{
	{use: "list", short: "List environments and ssh machines", path: "/api/companies/{company}/environments", columns: "NAME=name DRIVER=driver STATUS=status HOST=config.host ID=id"},
	{use: "show ENVIRONMENT", short: "Show an environment", path: "/api/environments/{environment:1}"},
	{use: "add NAME HOST USER FOLDER", short: "Add an ssh machine", method: "POST", path: "/api/companies/{company}/environments", says: "{name} {id}", fixed: map[string]any{"driver": "ssh"},
		fields: []field{{place: 1, member: "name"}, {place: 2, member: "config.host"}, {place: 3, member: "config.username"}, {place: 4, member: "config.remoteWorkspacePath"},
			{name: "port", member: "config.port", kind: "int", about: "port of its ssh server"}, {name: "known-hosts", member: "config.knownHosts", kind: "file", about: "file with its host key"}, withDescription}},
	{use: "update ENVIRONMENT", short: "Edit an ssh machine", method: "PATCH", path: "/api/environments/{environment:1}", says: "{name} {status}", fields: []field{{name: "name", member: "name", about: "its new name"}, withDescription,
		{name: "status", member: "status", about: "active or archived"}, {name: "config", member: "config", kind: "json", about: "how it is reached, or a file with it"}}},
	{use: "capabilities", short: "Show what adapters can do in which environment", path: "/api/companies/{company}/environments/capabilities"},
	{use: "secrets ENVIRONMENT", short: "List the secrets that an environment refers to, without values", path: "/api/environments/{environment:1}/secret-refs", columns: "SECRET=secretName VARIABLE=configPath VERSION=version STATUS=status"},
	{use: "lease LEASE", short: "Show a lease", path: "/api/environment-leases/{1}"},
	{use: "probe ENVIRONMENT", short: "Test the connection to an ssh machine", method: "POST", path: "/api/environments/{environment:1}/probe", says: "{ok} {summary}"},
	{use: "leases ENVIRONMENT", short: "List its leases", path: "/api/environments/{environment:1}/leases", columns: "ID=id RUN=heartbeatRunId STATUS=status SINCE=acquiredAt"},
	{use: "uses ENVIRONMENT", short: "List what uses an environment", path: "/api/environments/{environment:1}/delete-blast-radius"},
	{use: "remove ENVIRONMENT", short: "Forget a machine", method: "DELETE", path: "/api/environments/{environment:1}", says: "{name} removed"},
}

var inboxVerbs = []verb{
	{use: "list", short: "List the issues that you have, created or commented on", path: "/api/companies/{company}/issues", columns: issueTable,
		fields: []field{{name: "of", member: "touchedByUserId", value: "me", about: "whose; me is you"}, {name: "status", member: "status", about: "only of these statuses, separated by commas"}, withLimit}},
	{use: "unread", short: "List the issues with comments that you have not read", path: "/api/companies/{company}/issues", columns: issueTable, fields: []field{{name: "of", member: "unreadForUserId", value: "me", about: "whose; me is you"}, withLimit}},
	{use: "desk", short: "List what needs a decision of the board", path: "/api/companies/{company}/attention", rows: "items", columns: "KIND=sourceKind SEVERITY=severity WHAT=subject.title WHY=whyNow ISSUE=relatedIssue.identifier KEY=dismissalKey"},
	{use: "dismissed", short: "List what you dismissed from the inbox", path: "/api/companies/{company}/inbox-dismissals", columns: "KEY=itemKey KIND=kind UNTIL=snoozedUntil AT=dismissedAt"},
	{use: "dismiss KEY", short: "Dismiss something from the inbox", method: "POST", path: "/api/companies/{company}/inbox-dismissals", says: "{itemKey}", fixed: map[string]any{"kind": "dismiss"}, fields: []field{{place: 1, member: "itemKey"}}},
	{use: "snooze KEY WHEN", short: "Snooze something in the inbox until an ISO time", method: "POST", path: "/api/companies/{company}/inbox-dismissals", says: "{itemKey} {snoozedUntil}", fixed: map[string]any{"kind": "snooze"}, fields: []field{{place: 1, member: "itemKey"}, {place: 2, member: "snoozedUntil"}}},
	{use: "restore KEY", short: "Restore something to the inbox", method: "DELETE", path: "/api/companies/{company}/inbox-dismissals/{1}", says: "restored"},
}

var folderVerbs = []verb{
	{use: "list KIND", short: "List folders: of routine or skill", path: "/api/companies/{company}/folders", rows: "folders", columns: "NAME=name SLUG=slug PARENT=parentId ID=id", fields: []field{{place: 1, member: "kind"}}},
	{use: "create KIND NAME", short: "Create a folder of routines or skills", method: "POST", path: "/api/companies/{company}/folders", says: "{name} {id}", fields: []field{{place: 1, member: "kind"}, {place: 2, member: "name"}}},
	{use: "rename FOLDER NAME", short: "Rename a folder", method: "PATCH", path: "/api/companies/{company}/folders/{1}", says: "{name} {id}", fields: []field{{place: 2, member: "name"}}},
	{use: "move FOLDER PARENT", short: "Move a folder into another", method: "POST", path: "/api/companies/{company}/folders/{1}/move", says: "moved", fixed: map[string]any{"position": 0}, fields: []field{{place: 2, member: "parentId"}}},
	{use: "put FOLDER ROUTINE", short: "Move a routine into a folder", method: "POST", path: "/api/companies/{company}/folders/items/move", says: "put", fixed: map[string]any{"kind": "routine"}, fields: []field{{place: 1, member: "folderId"}, {place: 2, member: "itemId", kind: "routine"}}},
	{use: "delete FOLDER", short: "Delete a folder; its contents stay", method: "DELETE", path: "/api/companies/{company}/folders/{1}", says: "deleted"},
}

var teamVerbs = []verb{
	{use: "list", short: "List the teams that come with the program", path: "/api/teams/catalog", columns: "TEAM=slug AGENTS=counts.agents PROJECTS=counts.projects ISSUES=counts.issues ABOUT=description"},
	{use: "show TEAM", short: "List who is in a team", path: "/api/teams/catalog/{1}", rows: "agents", columns: "NAME=name ROLE=role REPORTS-TO=reportsToSlug"},
	{use: "add TEAM", short: "Add a team to a company", method: "POST", path: "/api/companies/{company}/teams/catalog/{1}/install", rows: "agents", columns: "NAME=name ACTION=action ID=id",
		fields: []field{{name: "collision", member: "collisionStrategy", about: "rename, skip or replace what is there by the same name"}}},
	{use: "installed", short: "List the teams that a company has taken in", path: "/api/companies/{company}/teams/catalog/installed", columns: "TEAM=slug NAME=name AGENTS=agents"},
}

var feedbackVerbs = []verb{
	{use: "list", short: "List the shared votes", path: "/api/companies/{company}/feedback-traces", columns: "ID=traceId ISSUE=issueIdentifier VOTE=vote AT=createdAt"},
	{use: "show TRACE", short: "Show a vote with what it was about", path: "/api/feedback-traces/{1}"},
}

var settingsVerbs = []verb{
	{use: "show", short: "Show the settings of the mesh", path: "/api/instance/settings/general"},
	{use: "parts", short: "Show which parts of the board are on", path: "/api/instance/settings/experimental"},
	{use: "part NAME ON", short: "Turn a part of the board on or off: true or false", method: "PATCH", path: "/api/instance/settings/experimental", says: "changed", fields: []field{{place: 2, member: "{1}", kind: "json"}}},
	{use: "environment ENVIRONMENT", short: "Set the default environment of runs", method: "PATCH", path: "/api/instance/settings", says: "changed", fields: []field{{place: 1, member: "defaultEnvironmentId", kind: "environment"}}},
	{use: "set", short: "Change the settings of the mesh", method: "PATCH", path: "/api/instance/settings/general", says: "changed", fields: []field{{name: "sign-ups", member: "signUps", about: "open, invited or closed"},
		{name: "log-days", member: "runLogRetention.days", kind: "int", about: "how long the logs of runs are kept; with --log-bytes"}, {name: "log-bytes", member: "runLogRetention.maxBytes", kind: "int", about: "how much of them the mesh keeps; with --log-days"},
		{name: "event-days", member: "runEventRetention.days", kind: "int", about: "how long the events of runs are kept"}}},
}

var topVerbs = []verb{
	{use: "search TEXT", short: "Look for a text in issues, comments, documents, agents and projects", path: "/api/companies/{company}/search", rows: "results", columns: "KIND=type TITLE=title WHERE=href TEXT=snippet", fields: []field{{place: 1, member: "q"}, withLimit}},
	{use: "extract TEXT", short: "List the places where a text or URL occurs", path: "/api/companies/{company}/search/extract", rows: "results", columns: "ID=identifier STATUS=status MATCHES=matches TITLE=title",
		fields: []field{{place: 1, member: "contains"}, {name: "kind", member: "kind", about: "literal or url"}, {name: "scope", member: "scope", about: "all, issues, comments or documents"}, {name: "within", member: "updatedWithin", about: "such as 24h, 7d, 4w or 3m"}, withLimit}},
}

// subs adds commands to a group.
func subs(to *cobra.Command, more ...*cobra.Command) *cobra.Command {
	to.AddCommand(more...)
	return to
}

var profileVerbs = []verb{
	{use: "profile", short: "Show what others see of you", path: "/api/auth/profile"},
	{use: "rename NAME", short: "Change your display name", method: "PATCH", path: "/api/auth/profile", says: "{name}", fields: []field{{place: 1, member: "name"}}},
}

var secretVerbs = []verb{
	{use: "list", short: "List the secrets of a company, without their values", path: "/api/companies/{company}/secrets", columns: "KEY=key NAME=name STATUS=status VERSION=latestVersion USES=referenceCount ID=id"},
	{use: "create NAME", short: "Create a secret; its value comes from standard input, or a prompt", example: `  selvage secret create "OpenAI key" <key.txt`, method: "POST", path: "/api/companies/{company}/secrets", says: "{key} created, version {latestVersion}, {id}",
		fields: []field{{place: 1, member: "name"}, {kind: "secret", member: "value"}}},
	{use: "rotate SECRET", short: "Give a secret a new value, from standard input or a prompt", method: "POST", path: "/api/secrets/{secret:1}/rotate", says: "{key} rotated, version {latestVersion}, {id}", fields: []field{{kind: "secret", member: "value"}}},
	{use: "delete SECRET", short: "Delete a secret with all its versions", method: "DELETE", path: "/api/secrets/{secret:1}", says: "deleted"},
	{use: "usage SECRET", short: "List the variables that refer to a secret", path: "/api/secrets/{secret:1}/usage", rows: "bindings", columns: "TYPE=targetType ID=targetId VARIABLE=configPath"},
	{use: "update SECRET", short: "Change a secret's name, key or status", method: "PATCH", path: "/api/secrets/{secret:1}", says: "{key} {status}", fields: []field{{name: "name", member: "name", about: "its new name"}, {name: "key", member: "key", about: "its new key"},
		{name: "status", member: "status", about: "active, disabled or archived"}, withDescription}},
	{use: "accesses SECRET", short: "List which runs used a secret, the newest first", path: "/api/secrets/{secret:1}/access-events", columns: "AT=createdAt RUN=heartbeatRunId BY=actorType VARIABLE=configPath VERSION=version OUTCOME=outcome"},
}
