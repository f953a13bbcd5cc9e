package main

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

var adapterVerbs = []verb{
	{use: "models TYPE", short: "List models that agents of an adapter may be given", path: "/api/companies/{company}/adapters/{1}/models", columns: "MODEL=id LABEL=label"},
}

var memoryVerbs = []verb{
	{use: "list AGENT", short: "List the memories of an agent", path: "/api/agents/{agent:1}/memory", columns: "KEY=key UPDATED=updatedAt TEXT=value", fields: []field{{name: "words", member: "q", about: "what fits these words, best first"}}},
	{use: "show AGENT KEY", short: "Show a memory of an agent", path: "/api/agents/{agent:1}/memory/{2}", says: "{value}"},
	{use: "put AGENT KEY TEXT", short: "Write a memory of an agent", method: "PUT", path: "/api/agents/{agent:1}/memory/{2}", says: "{key}", fields: []field{{place: 3, member: "value"}}},
	{use: "forget AGENT KEY", short: "Delete a memory of an agent", method: "DELETE", path: "/api/agents/{agent:1}/memory/{2}", says: "forgotten"},
}

var messageVerbs = []verb{
	{use: "list AGENT", short: "List the messages that wait for an agent, oldest first", path: "/api/agents/{agent:1}/messages", columns: "ID=id FROM=fromId TYPE=type AT=sentAt"},
	{use: "send AGENT JSON", short: "Send a message to an agent, which takes it when it runs next", method: "POST", path: "/api/agents/{agent:1}/messages", says: done,
		fields: []field{{place: 2, name: "JSON", member: "payload", kind: "json"}, {name: "type", member: "type", about: "what kind of message it is"}, {name: "about", member: "correlationId", about: "what it belongs to"}}},
}

var agentVerbs = []verb{
	{use: "list", short: "List the agents of a company", path: "/api/companies/{company}/agents", columns: "NAME=name ROLE=role STATUS=status ADAPTER=adapterType REPORTS-TO=agent:reportsTo SPENT=spentMonthlyCents BUDGET=budgetMonthlyCents ID=id"},
	{use: "key AGENT NAME", short: "Create an API key, shown once", method: "POST", path: "/api/agents/{agent:1}/keys", says: "{token}", fields: []field{{place: 2, member: "name"}}},
	{use: "invoke AGENT", short: "Start a heartbeat run now", method: "POST", path: "/api/agents/{agent:1}/heartbeat/invoke", says: "{id} {status}"},
	{use: "pause AGENT", short: "Pause an agent", method: "POST", path: "/api/agents/{agent:1}/pause", says: "{name} {status}"},
	{use: "resume AGENT", short: "Let a paused agent work again", method: "POST", path: "/api/agents/{agent:1}/resume", says: "{name} {status}"},
	{use: "terminate AGENT", short: "End an agent for good", method: "POST", path: "/api/agents/{agent:1}/terminate", says: "{name} {status}"},
	{use: "revisions AGENT", short: "List changes of an agent's configuration, the newest first", path: "/api/agents/{agent:1}/config-revisions", columns: "REVISION=id SOURCE=source MADE=ago:createdAt CHANGED=changedKeys"},
	{use: "rollback AGENT REVISION", short: "Roll an agent back to an earlier configuration", method: "POST", path: "/api/agents/{agent:1}/config-revisions/{2}/rollback", says: "{name} rolled back to {2}"},
	{use: "show AGENT", short: "Show an agent", path: "/api/agents/{agent:1}"},
	{use: "config AGENT", short: "Show how an agent is invoked", path: "/api/agents/{agent:1}/configuration"},
	{use: "revision AGENT REVISION", short: "Show one change of an agent's configuration", path: "/api/agents/{agent:1}/config-revisions/{2}"},
	{use: "update AGENT", short: "Change an agent", method: "PATCH", path: "/api/agents/{agent:1}", says: "{name} {status}",
		fields: []field{{name: "name", member: "name", about: "its new name"}, {name: "title", member: "title", about: "what it is called"}, {name: "capabilities", member: "capabilities", about: "what it can do"},
			{name: "role", member: "role", about: agentRoles}, {name: "reports-to", member: "reportsTo", kind: "agent", about: "its manager; empty for none"},
			{name: "adapter", member: "adapterType", about: "how its runs are carried out; give --config with it"}, {name: "environment", member: "defaultEnvironmentId", kind: "environment", about: "where they are carried out; empty for the mesh's choice"}, {name: "config", member: "adapterConfig", kind: "json", about: "the adapter's configuration, or a file with it"},
			{name: "runtime", member: "runtimeConfig", kind: "json", about: "heartbeat and placement, or a file with it"}}},
	{use: "delete AGENT", short: "Delete an agent; its open issues become unassigned", method: "DELETE", path: "/api/agents/{agent:1}", says: "deleted"},
	{use: "wake AGENT", short: "Wake an agent for a reason", method: "POST", path: "/api/agents/{agent:1}/wakeup", says: "{id} {status}", fixed: map[string]any{"source": "on_demand"},
		fields: []field{{name: "reason", member: "reason", about: "why"}, {name: "fresh", member: "forceFreshSession", kind: "bool", about: "forget the session that it would resume"}}},
	{use: "wakeups AGENT", short: "List why an agent was woken, the newest first", path: "/api/agents/{agent:1}/wakeups", columns: "ID=id SOURCE=source STATUS=status REASON=reason ERROR=error AT=requestedAt"},
	{use: "state AGENT", short: "Show the totals of an agent's runs", path: "/api/agents/{agent:1}/runtime-state"},
	{use: "sessions AGENT", short: "List the saved sessions of an agent, by task", path: "/api/agents/{agent:1}/task-sessions", columns: "TASK=taskKey ADAPTER=adapterType SESSION=sessionDisplayId UPDATED=updatedAt"},
	{use: "reset AGENT", short: "Delete an agent's saved sessions", method: "POST", path: "/api/agents/{agent:1}/runtime-state/reset-session", says: "reset", fields: []field{{name: "task", member: "taskKey", about: "only that of a task"}}},
	{use: "keys AGENT", short: "List the API keys of an agent, without their tokens", path: "/api/agents/{agent:1}/keys", columns: "ID=id NAME=name CREATED=createdAt REVOKED=revokedAt"},
	{use: "revoke-key AGENT KEY", short: "Revoke an API key of an agent", method: "DELETE", path: "/api/agents/{agent:1}/keys/{2}", says: "revoked"},
	{use: "skills AGENT", short: "List the skills that an agent has", path: "/api/agents/{agent:1}/skills", rows: "entries", columns: "SKILL=name STATE=state KEY=key"},
	{use: "teach AGENT", short: "Set the skills of an agent, by their keys", method: "POST", path: "/api/agents/{agent:1}/skills/sync", says: "{adapterType} {mode}", fields: []field{{name: "skill", member: "desiredSkills", kind: "list", about: "keys of skills; repeat for more"}}},
	{use: "clear-error AGENT", short: "Let an agent work again after an error", method: "POST", path: "/api/agents/{agent:1}/clear-error", says: "{name} {status}"},
	{use: "approve AGENT", short: "Hire an agent that waits for approval", method: "POST", path: "/api/agents/{agent:1}/approve", says: "{name} {status}"},
	{use: "budget AGENT CENTS", short: "Set what an agent may spend in a month, in cents", method: "PATCH", path: "/api/agents/{agent:1}/budgets", says: "{name} {budgetMonthlyCents}", fields: []field{{place: 2, member: "budgetMonthlyCents", kind: "int"}}},
}
