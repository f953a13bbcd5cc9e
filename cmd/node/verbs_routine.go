package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

var triggerVerbs = []cli.Verb{
	{Use: "remove TRIGGER", Short: "Remove a trigger", Method: "DELETE", Path: "/api/routine-triggers/{1}", Says: "removed"},
	{Use: "update TRIGGER", Short: "Change a trigger, or turn it on or off", Method: "PATCH", Path: "/api/routine-triggers/{1}", Says: "{id} {kind} {enabled}", Fields: []cli.Field{{Name: "enabled", Member: "enabled", Kind: "bool", About: "it fires"},
		{Name: "cron", Member: "cronExpression", About: "a schedule: minute hour day month weekday"}, {Name: "zone", Member: "timezone", About: "whose clocks the schedule goes by"}, {Name: "label", Member: "label", About: "what it is for"}}},
}

var routineVerbs = []cli.Verb{
	{Use: "create TITLE", Short: "Create a routine", Method: "POST", Path: "/api/companies/{company}/routines", Says: "{id} {status} {title}",
		Long: `Create a routine: an issue with this title is made each time that it fires.
{{name}} in title and description is a blank that a run fills in. Variables of
--env-file reach the runs of its issues; they are read from a file because a
command line is for everybody to see.`,
		Example: `  selvage routine create 'Report of {{date}}' --assignee Bob --description @report.md
  selvage routine create 'Back up' --assignee Bob --concurrency skip_if_active --env-file backup.env`,
		Fields: []cli.Field{{Place: 1, Member: "title"}, {Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "ID or name of the agent that does the work; without one it is a paused draft"},
			{Name: "project", Member: "projectId", Kind: "project", About: "ID or name of the project of its issues"}, {Name: "description", Member: "description", Kind: "text or file", About: "text of its issues, or @FILE that holds it"},
			{Name: "concurrency", Member: "concurrencyPolicy", About: "coalesce_if_active (default), skip_if_active or always_enqueue"}, {Name: "catch-up", Member: "catchUpPolicy", About: "skip_missed (default) or enqueue_missed_with_cap"},
			{Name: "priority", Member: "priority", About: "critical, high, medium or low"}, {Name: "env-file", Member: "env", Kind: "variables", About: "file with a variable NAME=value on each line (repeat for more)"}}},
	{Use: "list", Short: "List the routines of a company", Path: "/api/companies/{company}/routines", Columns: "ROUTINE=id STATUS=status ASSIGNEE=agent:assigneeAgentId TRIGGERS=n:triggers FIRED=lastTriggeredAt TITLE=title"},
	{Use: "run ROUTINE", Short: "Run a routine now", Example: `  selvage routine run 'Report of {{date}}' --var topic=sales`, Method: "POST", Path: "/api/routines/{routine:1}/run", Says: "{id} {status}",
		Fields: []cli.Field{{Name: "var", Member: "variables", Kind: "pairs", About: "NAME=value of a blank of its text (repeat for more)"}}},
	{Use: "runs ROUTINE", Short: "List the newest runs of a routine and what became of them", Path: "/api/routines/{routine:1}/runs", Columns: "RUN=id:id SOURCE=source STATUS=status FIRED=triggeredAt ABOUT=linkedIssue.identifier+linkedIssue.title|failureReason"},
	{Use: "pause ROUTINE", Short: "Let a routine rest", Method: "PATCH", Path: "/api/routines/{routine:1}", Says: "{title} {status}", Fixed: map[string]any{"status": "paused"}},
	{Use: "resume ROUTINE", Short: "Let a routine go on; what fell into its rest is not made up for", Method: "PATCH", Path: "/api/routines/{routine:1}", Says: "{title} {status}", Fixed: map[string]any{"status": "active"}},
	{Use: "delete ROUTINE", Short: "Delete a routine with its triggers and runs; its issues stay", Method: "DELETE", Path: "/api/routines/{routine:1}", Says: "{id} deleted"},
	{Use: "update ROUTINE", Short: "Change a routine", Method: "PATCH", Path: "/api/routines/{routine:1}", Says: "{id} {status} {title}", Fields: []cli.Field{{Name: "title", Member: "title", About: "its new title"}, withDescription,
		{Name: "assignee", Member: "assigneeAgentId", Kind: "agent", About: "agent that does the work; empty for none"}, {Name: "project", Member: "projectId", Kind: "project", About: "project of its issues; empty for none"},
		{Name: "goal", Member: "goalId", Kind: "goal", About: "goal of its issues; empty for none"}, {Name: "priority", Member: "priority", About: "critical, high, medium or low"}, {Name: "label", Member: "labelIds", Kind: "labels", About: "labels of its issues, all of them"},
		{Name: "concurrency", Member: "concurrencyPolicy", About: "coalesce_if_active, skip_if_active or always_enqueue"}, {Name: "catch-up", Member: "catchUpPolicy", About: "skip_missed or enqueue_missed_with_cap"}, {Name: "billing-code", Member: "billingCode", About: "where its costs go"}}},
	{Use: "revisions ROUTINE", Short: "List the revisions of a routine, newest first", Path: "/api/routines/{routine:1}/revisions", Columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{Use: "restore ROUTINE REVISION", Short: "Restore a revision of a routine", Method: "POST", Path: "/api/routines/{routine:1}/revisions/{2}/restore", Says: "restored"},
}
