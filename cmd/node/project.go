package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

var goalFields = []cli.Field{withDescription,
	{Name: "level", Member: "level", About: "company, team, agent or task"},
	{Name: "status", Member: "status", About: "planned, active, achieved or cancelled"},
	{Name: "parent", Member: "parentId", Kind: "goal", About: "the goal that it serves"},
	{Name: "owner", Member: "ownerAgentId", Kind: "agent", About: "agent that answers for it"}}

// goalVerbs are the rows of selvage goal.
var goalVerbs = []cli.Verb{
	{Use: "list", Short: "List the goals of a company", Path: "/api/companies/{company}/goals",
		Columns: "ID=id LEVEL=level STATUS=status OWNER=agent:ownerAgentId TITLE=title"},
	{Use: "show GOAL", Short: "Show a goal", Path: "/api/goals/{goal:1}",
		Lines: "title=title description=description level=level status=status owner=agent:ownerAgentId " +
			"parent=parentId created=createdAt id=id"},
	{Use: "create TITLE", Short: "Create a goal", Method: "POST", Path: "/api/companies/{company}/goals",
		Says: "{id} {level} {status}", Fields: append([]cli.Field{{Place: 1, Member: "title"}}, goalFields...)},
	{Use: "update GOAL", Short: "Change a goal", Method: "PATCH", Path: "/api/goals/{goal:1}",
		Says:   "{title} {status}",
		Fields: append([]cli.Field{{Name: "title", Member: "title", About: "its new title"}}, goalFields...)},
	{Use: "delete GOAL", Short: "Delete a goal; its projects and issues move to its parent", Method: "DELETE",
		Path: "/api/goals/{goal:1}", Says: "deleted"},
}

var projectFields = []cli.Field{withDescription,
	{Name: "status", Member: "status", About: "backlog, planned, in_progress, completed or cancelled"},
	{Name: "goal", Member: "goalId", Kind: "goal", About: "the goal that it serves"},
	{Name: "lead", Member: "leadAgentId", Kind: "agent", About: "agent that leads it"},
	{Name: "until", Member: "targetDate", About: "date by which it is to be done"},
	{Name: "env", Member: "env", Kind: "json", About: "variables of its runs, or a file with them"},
	{Name: "workspaces", Member: "executionWorkspacePolicy", Kind: "json",
		About: "where the runs of its issues work, or a file with it"}}

// projectVerbs are the rows of selvage project.
var projectVerbs = []cli.Verb{
	{Use: "list", Short: "List the projects of a company", Path: "/api/companies/{company}/projects",
		Columns: "NAME=name STATUS=status ISSUES=taskCount LEAD=agent:leadAgentId UNTIL=targetDate ID=id"},
	{Use: "show PROJECT", Short: "Show a project", Path: "/api/projects/{project:1}",
		Lines: "name=name description=description status=status+pauseReason lead=agent:leadAgentId " +
			"goal=goals.0.title until=targetDate workspace=primaryWorkspace.name " +
			"repository=codebase.repoUrl folder=codebase.effectiveLocalFolder created=createdAt id=id"},
	{Use: "create NAME", Short: "Create a project", Method: "POST", Path: "/api/companies/{company}/projects",
		Says: "{name} {status} {id}", Fields: append([]cli.Field{{Place: 1, Member: "name"}}, projectFields...)},
	{Use: "update PROJECT", Short: "Change a project", Method: "PATCH", Path: "/api/projects/{project:1}",
		Says:   "{name} {status}",
		Fields: append([]cli.Field{{Name: "name", Member: "name", About: "its new name"}}, projectFields...)},
	{Use: "delete PROJECT", Short: "Delete a project; its issues stay", Method: "DELETE",
		Path: "/api/projects/{project:1}", Says: "deleted"},
}

// workspaceVerbs are the rows of selvage project workspace.
var workspaceVerbs = []cli.Verb{
	{Use: "list PROJECT", Short: "List the workspaces of a project", Path: "/api/projects/{project:1}/workspaces",
		Columns: "NAME=name SOURCE=sourceType PRIMARY=isPrimary FOLDER=cwd REPOSITORY=repoUrl ID=id"},
	{Use: "add PROJECT NAME", Short: "Add a workspace to a project", Method: "POST",
		Path: "/api/projects/{project:1}/workspaces", Says: "{name} {id}",
		Fields: []cli.Field{{Place: 2, Member: "name"},
			{Name: "folder", Member: "cwd", About: "folder on the node that has it"},
			{Name: "repository", Member: "repoUrl", About: "URL of a Git repository"},
			{Name: "ref", Member: "repoRef", About: "its branch or commit"},
			{Name: "primary", Member: "isPrimary", Kind: "bool", About: "issues use it unless they say otherwise"}}},
	{Use: "update PROJECT WORKSPACE", Short: "Change where a project's work lies", Method: "PATCH",
		Path: "/api/projects/{project:1}/workspaces/{2}", Says: "{name} {id}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"},
			{Name: "folder", Member: "cwd", About: "folder on the node that has it"},
			{Name: "repository", Member: "repoUrl", About: "URL of a Git repository"},
			{Name: "ref", Member: "repoRef", About: "its branch or commit"},
			{Name: "primary", Member: "isPrimary", Kind: "bool", About: "issues use it unless they say otherwise"},
			{Name: "setup", Member: "setupCommand", About: "command that makes it ready"},
			{Name: "runtime", Member: "runtimeConfig", Kind: "json",
				About: "its services and commands, or a file with them"}}},
	serviceVerb("start", "Start the services of a project's workspace", "PROJECT WORKSPACE",
		"/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("stop", "Stop the services of a project's workspace", "PROJECT WORKSPACE",
		"/api/projects/{project:1}/workspaces/{2}"),
	serviceVerb("restart", "Start the services of a project's workspace again", "PROJECT WORKSPACE",
		"/api/projects/{project:1}/workspaces/{2}"),
	{Use: "run PROJECT WORKSPACE COMMAND", Short: "Run a command that the board declared for a project's workspace",
		Method: "POST", Path: "/api/projects/{project:1}/workspaces/{2}/runtime-commands/run",
		Says: "{operation.id} {operation.status}", Fields: []cli.Field{{Place: 3, Member: "workspaceCommandId"}}},
	{Use: "remove PROJECT WORKSPACE", Short: "Remove a workspace from a project", Method: "DELETE",
		Path: "/api/projects/{project:1}/workspaces/{2}", Says: "removed"},
}

// labelVerbs are the rows of selvage label.
var labelVerbs = []cli.Verb{
	{Use: "list", Short: "List the labels of a company", Path: "/api/companies/{company}/labels",
		Columns: "NAME=name COLOR=color ID=id"},
	{Use: "create NAME", Short: "Create a label", Method: "POST", Path: "/api/companies/{company}/labels",
		Says: "{name} {id}",
		Fields: []cli.Field{{Place: 1, Member: "name"},
			{Name: "color", Member: "color", About: "such as #ff8800", Value: "#808080"}}},
	{Use: "update LABEL", Short: "Rename or recolour a label", Method: "PATCH", Path: "/api/labels/{label:1}",
		Example: "  selvage label update bug --name fault", Says: "{name} {id}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "new name"},
			{Name: "color", Member: "color", About: "such as #ff8800"}}},
	{Use: "delete LABEL", Short: "Delete a label", Method: "DELETE", Path: "/api/labels/{label:1}", Says: "deleted"},
}
