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
	{use: "link ISSUE APPROVAL", short: "Tie an approval to an issue", method: "POST", path: "/api/issues/{1}/approvals", says: "linked", fields: []field{{place: 2, member: "approvalId"}}},
	{use: "unlink ISSUE APPROVAL", short: "Take an approval off an issue", method: "DELETE", path: "/api/issues/{1}/approvals/{2}", says: "taken off"},
	{use: "unsay ISSUE COMMENT", short: "Delete a comment", method: "DELETE", path: "/api/issues/{1}/comments/{2}", says: "deleted"},
	{use: "lock ISSUE DOCUMENT", short: "Let nobody but the board change a document", method: "POST", path: "/api/issues/{1}/documents/{2}/lock", says: "{key} locked"},
	{use: "unlock ISSUE DOCUMENT", short: "Let a document be changed again", method: "POST", path: "/api/issues/{1}/documents/{2}/unlock", says: "{key} unlocked"},
	{use: "votes ISSUE", short: "List what was thought of an issue's comments", path: "/api/issues/{1}/feedback-votes", columns: "TARGET=targetId VOTE=vote REASON=reason AT=createdAt"},
	{use: "unread ISSUE", short: "Mark an issue as not read", method: "DELETE", path: "/api/issues/{1}/read", says: "unread"},
	{use: "unarchive ISSUE", short: "Bring an issue back that was put away", method: "DELETE", path: "/api/issues/{1}/inbox-archive", says: "brought back"},
	{use: "detach ATTACHMENT", short: "Delete an attachment", method: "DELETE", path: "/api/attachments/{1}", says: "deleted"},
}

var productVerbs = []verb{
	{use: "list ISSUE", short: "List what came of an issue", path: "/api/issues/{1}/work-products", columns: "ID=id TYPE=type STATUS=status TITLE=title URL=url"},
	{use: "add ISSUE TYPE TITLE", short: "Note what came of an issue", long: "TYPE is preview_url, runtime_service, pull_request, branch, commit, artifact or document.", method: "POST", path: "/api/issues/{1}/work-products", says: "{id} {type} {status}",
		fields: []field{{place: 2, member: "type"}, {place: 3, member: "title"}, {name: "provider", member: "provider", about: "where it lies", value: "manual"}, {name: "url", member: "url", about: "its address"},
			{name: "summary", member: "summary", about: "what it is"}, {name: "primary", member: "isPrimary", kind: "bool", about: "it is what the issue was for"}}},
	{use: "update PRODUCT", short: "Change a work product", method: "PATCH", path: "/api/work-products/{1}", says: "{id} {type} {status}",
		fields: []field{{name: "title", member: "title", about: "its new title"}, {name: "status", member: "status", about: "such as active, merged or closed"}, {name: "url", member: "url", about: "its address"}, {name: "summary", member: "summary", about: "what it is"}}},
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
	{use: "accesses SECRET", short: "List which runs used a secret, the newest first", path: "/api/secrets/{secret:1}/access-events", columns: "AT=createdAt RUN=heartbeatRunId AGENT=agent:agentId VARIABLE=configPath OUTCOME=outcome"},
}

var moreCostVerbs = []verb{
	costVerb("by-code", "billing code", "CODE=billingCode COST=costCents"),
	{use: "book BILLER KIND CENTS WHEN", short: "Book a fee, a credit or a correction of an ISO instant", method: "POST", path: "/api/companies/{company}/finance-events", says: "{id} {eventKind} {amountCents}",
		fields: []field{{place: 1, member: "biller"}, {place: 2, member: "eventKind"}, {place: 3, member: "amountCents", kind: "int"}, {place: 4, member: "occurredAt"}, {name: "direction", member: "direction", about: "debit or credit", value: "debit"},
			{name: "description", member: "description", about: "what for"}}},
	{use: "bookings", short: "List what was booked, the newest first", path: "/api/companies/{company}/costs/finance-events", columns: "AT=occurredAt BILLER=biller KIND=eventKind DIRECTION=direction COST=amountCents", fields: []field{withLimit}},
	{use: "booked", short: "Show what the bookings add up to", path: "/api/companies/{company}/costs/finance-summary"},
}

var routineVerbs = []verb{
	{use: "revisions ROUTINE", short: "List how a routine was before, newest first", path: "/api/routines/{routine:1}/revisions", columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{use: "restore ROUTINE REVISION", short: "Make a routine what it was", method: "POST", path: "/api/routines/{routine:1}/revisions/{2}/restore", says: "restored"},
}
