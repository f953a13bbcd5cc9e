package main

var triggerVerbs = []verb{
	{use: "update TRIGGER", short: "Change a trigger, or turn it on or off", method: "PATCH", path: "/api/routine-triggers/{1}", says: "{id} {kind} {enabled}", fields: []field{{name: "enabled", member: "enabled", kind: "bool", about: "it fires"},
		{name: "cron", member: "cronExpression", about: "a schedule: minute hour day month weekday"}, {name: "zone", member: "timezone", about: "whose clocks the schedule goes by"}, {name: "label", member: "label", about: "what it is for"}}},
}

var routineVerbs = []verb{
	{use: "create TITLE", short: "Create a routine", method: "POST", path: "/api/companies/{company}/routines", says: "{id} {status} {title}",
		long: `Create a routine: an issue with this title is made each time that it fires.
{{name}} in title and description is a blank that a run fills in. Variables of
--env-file reach the runs of its issues; they are read from a file because a
command line is for everybody to see.`,
		example: `  selvage routine create 'Report of {{date}}' --assignee Bob --description @report.md
  selvage routine create 'Back up' --assignee Bob --concurrency skip_if_active --env-file backup.env`,
		fields: []field{{place: 1, member: "title"}, {name: "assignee", member: "assigneeAgentId", kind: "agent", about: "ID or name of the agent that does the work; without one it is a paused draft"},
			{name: "project", member: "projectId", kind: "project", about: "ID or name of the project of its issues"}, {name: "description", member: "description", kind: "text or file", about: "text of its issues, or @FILE that holds it"},
			{name: "concurrency", member: "concurrencyPolicy", about: "coalesce_if_active (default), skip_if_active or always_enqueue"}, {name: "catch-up", member: "catchUpPolicy", about: "skip_missed (default) or enqueue_missed_with_cap"},
			{name: "priority", member: "priority", about: "critical, high, medium or low"}, {name: "env-file", member: "env", kind: "variables", about: "file with a variable NAME=value on each line (repeat for more)"}}},
	{use: "list", short: "List the routines of a company", path: "/api/companies/{company}/routines", columns: "ROUTINE=id STATUS=status ASSIGNEE=agent:assigneeAgentId TRIGGERS=n:triggers FIRED=ago:lastTriggeredAt TITLE=title"},
	{use: "run ROUTINE", short: "Run a routine now", example: `  selvage routine run 'Report of {{date}}' --var topic=sales`, method: "POST", path: "/api/routines/{routine:1}/run", says: "{id} {status}",
		fields: []field{{name: "var", member: "variables", kind: "pairs", about: "NAME=value of a blank of its text (repeat for more)"}}},
	{use: "runs ROUTINE", short: "List the newest runs of a routine and what became of them", path: "/api/routines/{routine:1}/runs", columns: "RUN=id:id SOURCE=source STATUS=status FIRED=ago:triggeredAt ABOUT=linkedIssue.identifier+linkedIssue.title|failureReason"},
	{use: "pause ROUTINE", short: "Let a routine rest", method: "PATCH", path: "/api/routines/{routine:1}", says: "{title} {status}", fixed: map[string]any{"status": "paused"}},
	{use: "resume ROUTINE", short: "Let a routine go on; what fell into its rest is not made up for", method: "PATCH", path: "/api/routines/{routine:1}", says: "{title} {status}", fixed: map[string]any{"status": "active"}},
	{use: "delete ROUTINE", short: "Delete a routine with its triggers and runs; its issues stay", method: "DELETE", path: "/api/routines/{routine:1}", says: "{id} deleted"},
	{use: "update ROUTINE", short: "Change a routine", method: "PATCH", path: "/api/routines/{routine:1}", says: "{id} {status} {title}", fields: []field{{name: "title", member: "title", about: "its new title"}, withDescription,
		{name: "assignee", member: "assigneeAgentId", kind: "agent", about: "agent that does the work; empty for none"}, {name: "project", member: "projectId", kind: "project", about: "project of its issues; empty for none"},
		{name: "goal", member: "goalId", kind: "goal", about: "goal of its issues; empty for none"}, {name: "priority", member: "priority", about: "critical, high, medium or low"}, {name: "label", member: "labelIds", kind: "labels", about: "labels of its issues, all of them"},
		{name: "concurrency", member: "concurrencyPolicy", about: "coalesce_if_active, skip_if_active or always_enqueue"}, {name: "catch-up", member: "catchUpPolicy", about: "skip_missed or enqueue_missed_with_cap"}, {name: "billing-code", member: "billingCode", about: "where its costs go"}}},
	{use: "revisions ROUTINE", short: "List the revisions of a routine, newest first", path: "/api/routines/{routine:1}/revisions", columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{use: "restore ROUTINE REVISION", short: "Restore a revision of a routine", method: "POST", path: "/api/routines/{routine:1}/revisions/{2}/restore", says: "restored"},
}
