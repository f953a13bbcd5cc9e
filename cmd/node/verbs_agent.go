package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

var instructionVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the instruction files of an agent", Path: "/api/agents/{agent:1}/instructions-bundle", Rows: "files", Columns: "FILE=path BYTES=size READ=first?isEntryFile"},
	{Use: "remove AGENT FILE", Short: "Remove a file of an agent's instructions", Method: "DELETE", Path: "/api/agents/{agent:1}/instructions-bundle/file?path={2}", Says: "removed"},
}

var auditVerbs = []cli.Verb{
	{Use: "list", Short: "List what agents did, the newest first", Path: "/api/companies/{company}/audit/agent-actions", Rows: "items", Columns: "AT=createdAt AGENT=agent:agentId ACTION=action ENTITY=entityType ID=entityId RUN=runId WHAT=short:details", Fields: append([]cli.Field{withLimit}, auditFields...)},
	{Use: "csv", Short: "Print what agents did, for a spreadsheet", Path: "/api/companies/{company}/audit/agent-actions.csv", Raw: true, Fields: auditFields},
}

var auditFields = append([]cli.Field{{Name: "agent", Member: "agentId", Kind: "agent", About: "only this agent's"}, {Name: "run", Member: "runId", Kind: "run", About: "only under this run"}, {Name: "action", Member: "action", About: "only this action, such as issue.updated"},
	{Name: "entity", Member: "entityId", Kind: "entity", About: "only what happened to this: an ID, or ACM-1"}, {Name: "kind", Member: "entityType", About: "only what happened to such things, as issue"}, {Name: "for", Member: "responsibleUserId", About: "only what this user answers for"}}, between...)

var orgVerbs = []cli.Verb{
	{Use: "svg", Short: "Draw who reports to whom, as SVG", Path: "/api/companies/{company}/org.svg", Raw: true},
	{Use: "png", Short: "Draw who reports to whom, as PNG", Path: "/api/companies/{company}/org.png", Raw: true},
}

var adapterVerbs = []cli.Verb{
	{Use: "list", Short: "List the adapters", Path: "/api/adapters", Columns: "TYPE=type NAME=displayName PROGRAM=program INTEGRATION=integration GATEWAY=yes?modelGateway|'no'",
		Long: `List the adapters. INTEGRATION says how much of a run is known: minimum, that it
ended; status, how it went, with what it used as the agent tells it; full, that
its model calls were paid before they left.`},
	{Use: "models TYPE", Short: "List models that agents of an adapter may be given", Path: "/api/companies/{company}/adapters/{1}/models", Columns: "MODEL=id LABEL=label"},
}

var memoryVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the memories of an agent", Path: "/api/agents/{agent:1}/memory", Columns: "KEY=key UPDATED=updatedAt TEXT=value", Fields: []cli.Field{{Name: "words", Member: "q", About: "what fits these words, best first"}}},
	{Use: "show AGENT KEY", Short: "Show a memory of an agent", Path: "/api/agents/{agent:1}/memory/{2}", Says: "{value}"},
	{Use: "put AGENT KEY TEXT", Short: "Write a memory of an agent", Method: "PUT", Path: "/api/agents/{agent:1}/memory/{2}", Says: "{key}", Fields: []cli.Field{{Place: 3, Member: "value"}}},
	{Use: "forget AGENT KEY", Short: "Delete a memory of an agent", Method: "DELETE", Path: "/api/agents/{agent:1}/memory/{2}", Says: "forgotten"},
}

var messageVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the messages that wait for an agent, oldest first", Path: "/api/agents/{agent:1}/messages", Columns: "ID=id FROM=fromId TYPE=type AT=sentAt"},
	{Use: "send AGENT JSON", Short: "Send a message to an agent, which takes it when it runs next", Method: "POST", Path: "/api/agents/{agent:1}/messages", Says: done,
		Fields: []cli.Field{{Place: 2, Name: "JSON", Member: "payload", Kind: "json"}, {Name: "type", Member: "type", About: "what kind of message it is"}, {Name: "about", Member: "correlationId", About: "what it belongs to"}}},
}

var agentVerbs = []cli.Verb{
	{Use: "list", Short: "List the agents of a company", Path: "/api/companies/{company}/agents", Columns: "NAME=name ROLE=role STATUS=status ADAPTER=adapterType REPORTS-TO=agent:reportsTo SPENT=spentMonthlyCents BUDGET=budgetMonthlyCents ID=id"},
	{Use: "key AGENT NAME", Short: "Create an API key, shown once", Method: "POST", Path: "/api/agents/{agent:1}/keys", Says: "{token}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "invoke AGENT", Short: "Start a heartbeat run now", Method: "POST", Path: "/api/agents/{agent:1}/heartbeat/invoke", Says: "{id} {status}"},
	{Use: "pause AGENT", Short: "Pause an agent", Method: "POST", Path: "/api/agents/{agent:1}/pause", Says: "{name} {status}"},
	{Use: "resume AGENT", Short: "Let a paused agent work again", Method: "POST", Path: "/api/agents/{agent:1}/resume", Says: "{name} {status}"},
	{Use: "terminate AGENT", Short: "End an agent for good", Method: "POST", Path: "/api/agents/{agent:1}/terminate", Says: "{name} {status}"},
	{Use: "revisions AGENT", Short: "List changes of an agent's configuration, the newest first", Path: "/api/agents/{agent:1}/config-revisions", Columns: "REVISION=id SOURCE=source MADE=createdAt CHANGED=changedKeys"},
	{Use: "rollback AGENT REVISION", Short: "Roll an agent back to an earlier configuration", Method: "POST", Path: "/api/agents/{agent:1}/config-revisions/{2}/rollback", Says: "{name} rolled back to {2}"},
	{Use: "show AGENT", Short: "Show an agent", Path: "/api/agents/{agent:1}",
		Lines: "name=name role=role title=title status=status+pauseReason capabilities=capabilities reports_to=agent:reportsTo adapter=adapterType model=adapterConfig.model command=adapterConfig.command arguments=adapterConfig.args folder=adapterConfig.cwd spent_this_month=spentMonthlyCents budget=budgetMonthlyCents held=heldCents may_hire=permissions.canCreateAgents may_assign=access.canAssignTasks last_run=lastHeartbeatAt created=createdAt id=id"},
	{Use: "config AGENT", Short: "Show how an agent is invoked", Path: "/api/agents/{agent:1}/configuration"},
	{Use: "revision AGENT REVISION", Short: "Show one change of an agent's configuration", Path: "/api/agents/{agent:1}/config-revisions/{2}"},
	{Use: "update AGENT", Short: "Change an agent", Method: "PATCH", Path: "/api/agents/{agent:1}", Says: "{name} {status}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, {Name: "title", Member: "title", About: "what it is called"}, {Name: "capabilities", Member: "capabilities", About: "what it can do"},
			{Name: "role", Member: "role", About: agentRoles}, {Name: "reports-to", Member: "reportsTo", Kind: "agent", About: "its manager; empty for none"},
			{Name: "adapter", Member: "adapterType", About: "how its runs are carried out; give --config with it"}, {Name: "environment", Member: "defaultEnvironmentId", Kind: "environment", About: "where they are carried out; empty for the mesh's choice"}, {Name: "config", Member: "adapterConfig", Kind: "json", About: "the adapter's configuration, or a file with it"},
			{Name: "runtime", Member: "runtimeConfig", Kind: "json", About: "heartbeat and placement, or a file with it"}}},
	{Use: "delete AGENT", Short: "Delete an agent; its open issues become unassigned", Method: "DELETE", Path: "/api/agents/{agent:1}", Says: "deleted"},
	{Use: "wake AGENT", Short: "Wake an agent for a reason", Method: "POST", Path: "/api/agents/{agent:1}/wakeup", Says: "{id} {status}", Fixed: map[string]any{"source": "on_demand"},
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why"}, {Name: "fresh", Member: "forceFreshSession", Kind: "bool", About: "forget the session that it would resume"}}},
	{Use: "wakeups AGENT", Short: "List why an agent was woken, the newest first", Path: "/api/agents/{agent:1}/wakeups", Columns: "ID=id SOURCE=source STATUS=status REASON=reason ERROR=error AT=requestedAt"},
	{Use: "state AGENT", Short: "Show the totals of an agent's runs", Path: "/api/agents/{agent:1}/runtime-state"},
	{Use: "sessions AGENT", Short: "List the saved sessions of an agent, by task", Path: "/api/agents/{agent:1}/task-sessions", Columns: "TASK=taskKey ADAPTER=adapterType SESSION=sessionDisplayId UPDATED=updatedAt"},
	{Use: "reset AGENT", Short: "Delete an agent's saved sessions", Method: "POST", Path: "/api/agents/{agent:1}/runtime-state/reset-session", Says: "reset", Fields: []cli.Field{{Name: "task", Member: "taskKey", About: "only that of a task"}}},
	{Use: "keys AGENT", Short: "List the API keys of an agent, without their tokens", Path: "/api/agents/{agent:1}/keys", Columns: "ID=id NAME=name CREATED=createdAt REVOKED=revokedAt"},
	{Use: "revoke-key AGENT KEY", Short: "Revoke an API key of an agent", Method: "DELETE", Path: "/api/agents/{agent:1}/keys/{2}", Says: "revoked"},
	{Use: "skills AGENT", Short: "List the skills that an agent has", Path: "/api/agents/{agent:1}/skills", Rows: "entries", Columns: "SKILL=name STATE=state KEY=key"},
	{Use: "teach AGENT", Short: "Set the skills of an agent, by their keys", Method: "POST", Path: "/api/agents/{agent:1}/skills/sync", Says: "{adapterType} {mode}", Fields: []cli.Field{{Name: "skill", Member: "desiredSkills", Kind: "list", About: "keys of skills; repeat for more"}}},
	{Use: "clear-error AGENT", Short: "Let an agent work again after an error", Method: "POST", Path: "/api/agents/{agent:1}/clear-error", Says: "{name} {status}"},
	{Use: "approve AGENT", Short: "Hire an agent that waits for approval", Method: "POST", Path: "/api/agents/{agent:1}/approve", Says: "{name} {status}"},
	{Use: "budget AGENT CENTS", Short: "Set what an agent may spend in a month, in cents", Method: "PATCH", Path: "/api/agents/{agent:1}/budgets", Says: "{name} {budgetMonthlyCents}", Fields: []cli.Field{{Place: 2, Member: "budgetMonthlyCents", Kind: "int"}}},
}
