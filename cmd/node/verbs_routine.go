package main

var triggerVerbs = []verb{
	{use: "update TRIGGER", short: "Change a trigger, or turn it on or off", method: "PATCH", path: "/api/routine-triggers/{1}", says: "{id} {kind} {enabled}", fields: []field{{name: "enabled", member: "enabled", kind: "bool", about: "it fires"},
		{name: "cron", member: "cronExpression", about: "a schedule: minute hour day month weekday"}, {name: "zone", member: "timezone", about: "whose clocks the schedule goes by"}, {name: "label", member: "label", about: "what it is for"}}},
}

var routineVerbs = []verb{
	{use: "update ROUTINE", short: "Change a routine", method: "PATCH", path: "/api/routines/{routine:1}", says: "{id} {status} {title}", fields: []field{{name: "title", member: "title", about: "its new title"}, withDescription,
		{name: "assignee", member: "assigneeAgentId", kind: "agent", about: "agent that does the work; empty for none"}, {name: "project", member: "projectId", kind: "project", about: "project of its issues; empty for none"},
		{name: "goal", member: "goalId", kind: "goal", about: "goal of its issues; empty for none"}, {name: "priority", member: "priority", about: "critical, high, medium or low"}, {name: "label", member: "labelIds", kind: "labels", about: "labels of its issues, all of them"},
		{name: "concurrency", member: "concurrencyPolicy", about: "coalesce_if_active, skip_if_active or always_enqueue"}, {name: "catch-up", member: "catchUpPolicy", about: "skip_missed or enqueue_missed_with_cap"}, {name: "billing-code", member: "billingCode", about: "where its costs go"}}},
	{use: "revisions ROUTINE", short: "List the revisions of a routine, newest first", path: "/api/routines/{routine:1}/revisions", columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{use: "restore ROUTINE REVISION", short: "Restore a revision of a routine", method: "POST", path: "/api/routines/{routine:1}/revisions/{2}/restore", says: "restored"},
}
