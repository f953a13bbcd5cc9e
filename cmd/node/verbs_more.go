package main

import "github.com/spf13/cobra"

// subs adds commands to a group.
func subs(to *cobra.Command, more ...*cobra.Command) *cobra.Command {
	to.AddCommand(more...)
	return to
}

var moreIssueVerbs = []verb{
	{use: "stops ISSUE", short: "List where an issue came to a stop and who has to decide", path: "/api/issues/{1}/recovery-actions", rows: "actions", columns: "KIND=kind STATUS=status OUTCOME=outcome NEXT=nextAction AT=createdAt"},
	{use: "decisions ISSUE", short: "List what was decided of an issue's work, stage by stage", path: "/api/issues/{1}/execution-decisions", columns: "STAGE=stageType OUTCOME=outcome AGENT=agent:actorAgentId USER=actorUserId AT=createdAt TEXT=body"},
	{use: "approvals ISSUE", short: "List the approvals that an issue waits or waited for", path: "/api/issues/{1}/approvals", columns: "ID=id TYPE=type STATUS=status AT=createdAt"},
	{use: "link ISSUE APPROVAL", short: "Tie an approval to an issue", method: "POST", path: "/api/issues/{1}/approvals", says: "linked", fields: []field{{place: 2, member: "approvalId", kind: "approval"}}},
	{use: "unlink ISSUE APPROVAL", short: "Take an approval off an issue", method: "DELETE", path: "/api/issues/{1}/approvals/{approval:2}", says: "taken off"},
	{use: "unsay ISSUE COMMENT", short: "Delete a comment", method: "DELETE", path: "/api/issues/{1}/comments/{2}", says: "deleted"},
	{use: "lock ISSUE DOCUMENT", short: "Let nobody change a document until it is unlocked", method: "POST", path: "/api/issues/{1}/documents/{2}/lock", says: "{key} locked"},
	{use: "unlock ISSUE DOCUMENT", short: "Let a document be changed again", method: "POST", path: "/api/issues/{1}/documents/{2}/unlock", says: "{key} unlocked"},
	{use: "comments ISSUE", short: "List the comments of an issue, the oldest first", path: "/api/issues/{1}/comments?order=asc", columns: "ID=id AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{use: "live ISSUE", short: "List the queued and running runs for an issue", path: "/api/issues/{1}/live-runs", columns: "RUN=id AGENT=agent:agentId STATUS=status STARTED=startedAt"},
	{use: "ask ISSUE KIND PAYLOAD", short: "Suggest tasks, ask, or request a confirmation", long: "KIND is suggest_tasks, ask_user_questions, request_confirmation, request_checkbox_confirmation or\nrequest_item_verdicts; PAYLOAD is JSON, or a file with it, - is standard input.", method: "POST", path: "/api/issues/{1}/interactions", says: "{id} {kind} {status}",
		fields: []field{{place: 2, member: "kind"}, {place: 3, name: "PAYLOAD", member: "payload", kind: "json"}, {name: "title", member: "title", about: "what it is about"}, {name: "to", member: "addresseeAgentId", kind: "agent", about: "agent that is asked"}}},
	{use: "votes ISSUE", short: "List what was thought of an issue's comments", path: "/api/issues/{1}/feedback-votes", columns: "TARGET=targetId VOTE=vote REASON=reason AT=createdAt"},
	{use: "unread ISSUE", short: "Mark an issue as not read", method: "DELETE", path: "/api/issues/{1}/read", says: "unread"},
	{use: "unarchive ISSUE", short: "Bring an issue back that was put away", method: "DELETE", path: "/api/issues/{1}/inbox-archive", says: "brought back"},
	{use: "detach ATTACHMENT", short: "Delete an attachment", method: "DELETE", path: "/api/attachments/{1}", says: "deleted"},
}

// documentVerbs go with those that read and write files.
var documentVerbs = []verb{
	{use: "revisions ISSUE KEY", short: "List the revisions of a document, newest first", path: "/api/issues/{1}/documents/{2}/revisions", columns: "ID=id NUMBER=revisionNumber AGENT=agent:createdByAgentId USER=createdByUserId AT=createdAt SUMMARY=changeSummary"},
	{use: "restore ISSUE KEY REVISION", short: "Make an old revision of a document the latest", method: "POST", path: "/api/issues/{1}/documents/{2}/revisions/{3}/restore", says: "restored"},
	{use: "delete ISSUE KEY", short: "Delete a document", method: "DELETE", path: "/api/issues/{1}/documents/{2}", says: "deleted"},
}

func serviceVerb(action, short, words, at string) verb {
	return verb{use: action + " " + words, short: short, method: "POST", path: at + "/runtime-services/" + action, says: "{operation.id} {operation.status}",
		fields: []field{{name: "service", member: "runtimeServiceId", about: "only this one, by its ID"}}}
}

const spacePath = "/api/execution-workspaces/{workspace:1}"

var spaceVerbs = []verb{
	{use: "show WORKSPACE", short: "Show where an issue's runs work", path: spacePath},
	{use: "ready WORKSPACE", short: "Tell whether a workspace can be closed", path: spacePath + "/close-readiness"},
	{use: "operations WORKSPACE", short: "List the commands that were carried out in a workspace, newest first", path: spacePath + "/workspace-operations", columns: operationTable},
	serviceVerb("start", "Start the services of a workspace", "WORKSPACE", spacePath), serviceVerb("stop", "Stop the services of a workspace", "WORKSPACE", spacePath), serviceVerb("restart", "Start the services of a workspace again", "WORKSPACE", spacePath),
	{use: "run WORKSPACE COMMAND", short: "Run a command that the board declared for a workspace", method: "POST", path: spacePath + "/runtime-commands/run", says: "{operation.id} {operation.status}", fields: []field{{place: 2, member: "workspaceCommandId"}}},
}

var instructionVerbs = []verb{
	{use: "remove AGENT FILE", short: "Remove a file of an agent's instructions", method: "DELETE", path: "/api/agents/{agent:1}/instructions-bundle/file?path={2}", says: "removed"},
}

var auditVerbs = []verb{
	{use: "list", short: "List what agents did, the newest first", path: "/api/companies/{company}/audit/agent-actions", rows: "items", columns: "AT=createdAt AGENT=agent:agentId ACTION=action ENTITY=entityType ID=entityId RUN=runId WHAT=short:details", fields: append([]field{withLimit}, auditFields...)},
	{use: "csv", short: "Print what agents did, for a spreadsheet", path: "/api/companies/{company}/audit/agent-actions.csv", raw: true, fields: auditFields},
}

var auditFields = append([]field{{name: "agent", member: "agentId", kind: "agent", about: "only this agent's"}, {name: "run", member: "runId", kind: "run", about: "only under this run"}, {name: "action", member: "action", about: "only this action, such as issue.updated"},
	{name: "entity", member: "entityId", kind: "entity", about: "only what happened to this: an ID, or ACM-1"}, {name: "kind", member: "entityType", about: "only what happened to such things, as issue"}, {name: "for", member: "responsibleUserId", about: "only what this user answers for"}}, between...)

var orgVerbs = []verb{
	{use: "svg", short: "Draw who reports to whom, as SVG", path: "/api/companies/{company}/org.svg", raw: true},
	{use: "png", short: "Draw who reports to whom, as PNG", path: "/api/companies/{company}/org.png", raw: true},
}

var profileVerbs = []verb{
	{use: "profile", short: "Show what others see of you", path: "/api/auth/profile"},
	{use: "rename NAME", short: "Change what you are called", method: "PATCH", path: "/api/auth/profile", says: "{name}", fields: []field{{place: 1, member: "name"}}},
}

var adapterVerbs = []verb{
	{use: "models TYPE", short: "List models that agents of an adapter may be given", path: "/api/companies/{company}/adapters/{1}/models", columns: "MODEL=id LABEL=label"},
}

var productVerbs = []verb{
	{use: "list ISSUE", short: "List what came of an issue", path: "/api/issues/{1}/work-products", columns: "ID=id TYPE=type STATUS=status TITLE=title URL=url"},
	{use: "add ISSUE TYPE TITLE", short: "Note what came of an issue", long: "TYPE is preview_url, runtime_service, pull_request, branch, commit, artifact or document.", method: "POST", path: "/api/issues/{1}/work-products", says: "{id} {type} {status}",
		fields: []field{{place: 2, member: "type"}, {place: 3, member: "title"}, {name: "provider", member: "provider", about: "where it lies", value: "manual"}, {name: "url", member: "url", about: "its address"},
			{name: "summary", member: "summary", about: "what it is"}, {name: "primary", member: "isPrimary", kind: "bool", about: "it is what the issue was for"}}},
	{use: "update PRODUCT", short: "Change a work product", method: "PATCH", path: "/api/work-products/{1}", says: "{id} {type} {status}",
		fields: []field{{name: "title", member: "title", about: "its new title"}, {name: "status", member: "status", about: "such as active, merged or closed"}, {name: "url", member: "url", about: "its address"}, {name: "summary", member: "summary", about: "what it is"}, {name: "primary", member: "isPrimary", kind: "bool", about: "it is what the issue was for"}}},
	{use: "remove PRODUCT", short: "Forget a work product", method: "DELETE", path: "/api/work-products/{1}", says: "removed"},
}

var moreAgentVerbs = []verb{
	{use: "clear-error AGENT", short: "Let an agent work again after an error", method: "POST", path: "/api/agents/{agent:1}/clear-error", says: "{name} {status}"},
	{use: "approve AGENT", short: "Hire an agent that waits for approval", method: "POST", path: "/api/agents/{agent:1}/approve", says: "{name} {status}"},
	{use: "budget AGENT CENTS", short: "Set what an agent may spend in a month, in cents", method: "PATCH", path: "/api/agents/{agent:1}/budgets", says: "{name} {budgetMonthlyCents}", fields: []field{{place: 2, member: "budgetMonthlyCents", kind: "int"}}},
}

var memoryVerbs = []verb{
	{use: "list AGENT", short: "List what an agent keeps", path: "/api/agents/{agent:1}/memory", columns: "KEY=key UPDATED=updatedAt TEXT=value", fields: []field{{name: "words", member: "q", about: "what fits these words, best first"}}},
	{use: "show AGENT KEY", short: "Show what an agent keeps under a key", path: "/api/agents/{agent:1}/memory/{2}", says: "{value}"},
	{use: "put AGENT KEY TEXT", short: "Have an agent keep a text", method: "PUT", path: "/api/agents/{agent:1}/memory/{2}", says: "{key}", fields: []field{{place: 3, member: "value"}}},
	{use: "forget AGENT KEY", short: "Have an agent forget what is under a key", method: "DELETE", path: "/api/agents/{agent:1}/memory/{2}", says: "forgotten"},
}

var messageVerbs = []verb{
	{use: "list AGENT", short: "List the messages that wait for an agent, oldest first", path: "/api/agents/{agent:1}/messages", columns: "ID=id FROM=fromId TYPE=type AT=sentAt"},
	{use: "send AGENT JSON", short: "Send a message to an agent, which takes it when it runs next", method: "POST", path: "/api/agents/{agent:1}/messages", says: done,
		fields: []field{{place: 2, name: "JSON", member: "payload", kind: "json"}, {name: "type", member: "type", about: "what kind of message it is"}, {name: "about", member: "correlationId", about: "what it belongs to"}}},
}

var secretVerbs = []verb{
	{use: "update SECRET", short: "Change a secret's name, key or status", method: "PATCH", path: "/api/secrets/{secret:1}", says: "{key} {status}", fields: []field{{name: "name", member: "name", about: "its new name"}, {name: "key", member: "key", about: "its new key"},
		{name: "status", member: "status", about: "active, disabled or archived"}, withDescription}},
	{use: "accesses SECRET", short: "List which runs used a secret, the newest first", path: "/api/secrets/{secret:1}/access-events", columns: "AT=createdAt RUN=heartbeatRunId BY=actorType VARIABLE=configPath VERSION=version OUTCOME=outcome"},
}

var moreCostVerbs = []verb{
	costVerb("by-code", "billing code", "CODE=billingCode COST=costCents INPUT=inputTokens OUTPUT=outputTokens"),
	{use: "book BILLER KIND CENTS WHEN", short: "Book a fee, a credit or a correction of an ISO instant", method: "POST", path: "/api/companies/{company}/finance-events", says: "{id} {eventKind} {amountCents}",
		fields: []field{{place: 1, member: "biller"}, {place: 2, member: "eventKind"}, {place: 3, member: "amountCents", kind: "int"}, {place: 4, member: "occurredAt"}, {name: "direction", member: "direction", about: "debit or credit", value: "debit"},
			{name: "description", member: "description", about: "what for"}}},
	{use: "bookings", short: "List what was booked, the newest first", path: "/api/companies/{company}/costs/finance-events", columns: "AT=occurredAt BILLER=biller KIND=eventKind DIRECTION=direction COST=amountCents", fields: append([]field{withLimit}, between...)},
	{use: "booked", short: "Show what the bookings add up to", path: "/api/companies/{company}/costs/finance-summary", fields: between},
	{use: "booked-by-biller", short: "Show what the bookings add up to by who sends the bill", path: "/api/companies/{company}/costs/finance-by-biller", columns: "BILLER=biller BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents", fields: between},
	{use: "booked-by-kind", short: "Show what the bookings add up to by kind", path: "/api/companies/{company}/costs/finance-by-kind", columns: "KIND=eventKind BOOKINGS=eventCount DEBIT=debitCents CREDIT=creditCents NET=netCents", fields: between},
	{use: "windows", short: "Show the costs of the last hours, day and week", path: "/api/companies/{company}/costs/window-spend", columns: "WINDOW=window PROVIDER=provider BILLER=biller COST=costCents INPUT=inputTokens OUTPUT=outputTokens"},
	{use: "quota", short: "Show how much of the providers' subscriptions is used", path: "/api/companies/{company}/costs/quota-windows", columns: "PROVIDER=provider KNOWN=ok WHY=error"},
}

var triggerVerbs = []verb{
	{use: "update TRIGGER", short: "Change a trigger, or turn it on or off", method: "PATCH", path: "/api/routine-triggers/{1}", says: "{id} {kind} {enabled}", fields: []field{{name: "enabled", member: "enabled", kind: "bool", about: "it fires"},
		{name: "cron", member: "cronExpression", about: "a schedule: minute hour day month weekday"}, {name: "zone", member: "timezone", about: "whose clocks the schedule goes by"}, {name: "label", member: "label", about: "what it is for"}}},
}

var routineVerbs = []verb{
	{use: "update ROUTINE", short: "Change a routine", method: "PATCH", path: "/api/routines/{routine:1}", says: "{id} {status} {title}", fields: []field{{name: "title", member: "title", about: "its new title"}, withDescription,
		{name: "assignee", member: "assigneeAgentId", kind: "agent", about: "agent that does the work; empty for none"}, {name: "project", member: "projectId", kind: "project", about: "project of its issues; empty for none"},
		{name: "goal", member: "goalId", kind: "goal", about: "goal of its issues; empty for none"}, {name: "priority", member: "priority", about: "critical, high, medium or low"}, {name: "label", member: "labelIds", kind: "labels", about: "labels of its issues, all of them"},
		{name: "concurrency", member: "concurrencyPolicy", about: "coalesce_if_active, skip_if_active or always_enqueue"}, {name: "catch-up", member: "catchUpPolicy", about: "skip_missed or enqueue_missed_with_cap"}, {name: "billing-code", member: "billingCode", about: "where its costs go"}}},
	{use: "revisions ROUTINE", short: "List how a routine was before, newest first", path: "/api/routines/{routine:1}/revisions", columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{use: "restore ROUTINE REVISION", short: "Make a routine what it was", method: "POST", path: "/api/routines/{routine:1}/revisions/{2}/restore", says: "restored"},
}
