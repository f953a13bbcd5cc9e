package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

// auditVerbs are the rows of selvage audit.
var auditVerbs = []cli.Verb{
	{Use: "list", Short: "List what agents did, the newest first",
		Path: "/api/companies/{company}/audit/agent-actions", Rows: "items",
		Columns: "AT=createdAt AGENT=agent:agentId ACTION=action ENTITY=entityType ID=entityId RUN=runId " +
			"WHAT=short:details",
		Fields: append([]cli.Field{withLimit}, auditFields...)},
	{Use: "csv", Short: "Print what agents did, for a spreadsheet",
		Path: "/api/companies/{company}/audit/agent-actions.csv", Raw: true, Fields: auditFields},
}

var auditFields = append([]cli.Field{{Name: "agent", Member: "agentId", Kind: "agent", About: "only this agent's"},
	{Name: "run", Member: "runId", Kind: "run", About: "only under this run"},
	{Name: "action", Member: "action", About: "only this action, such as issue.updated"},
	{Name: "entity", Member: "entityId", Kind: "entity", About: "only what happened to this: an ID, or ACM-1"},
	{Name: "kind", Member: "entityType", About: "only what happened to such things, as issue"},
	{Name: "for", Member: "responsibleUserId", About: "only what this user answers for"}}, between...)

var activityVerb = cli.Verb{Use: "activity", Short: "List what happened in a company, the newest first",
	Path:    "/api/companies/{company}/activity",
	Example: `  selvage activity --agent Bob --from 2026-11-21T03:10:00Z --to 2026-11-21T03:20:00Z`,
	Columns: "TIME=createdAt WHO=agent:agentId|actorType+actorId ACTION=action ENTITY=entityType ID=entityId " +
		"RUN=runId WHAT=short:details",
	Fields: []cli.Field{
		{Name: "agent", Member: "agentId", Kind: "agent",
			About: "what this agent did; with --from also when its runs began and ended"},
		{Name: "run", Member: "runId", Kind: "run", About: "what was done under this run"},
		{Name: "action", Member: "action", About: "only this action, such as issue.updated"},
		{Name: "entity", Member: "entityId", Kind: "entity", About: "only what happened to this: an ID, or ACM-1"},
		{Name: "from", Member: "from", About: "not before this time, such as 2026-11-21T03:10:00Z"},
		{Name: "to", Member: "to", About: "not after this time"},
		{Name: "limit", Member: "limit", Kind: "int", Value: "50", About: "at most so many, up to 500"}}}
