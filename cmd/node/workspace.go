package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

func serviceVerb(action, short, words, at string) cli.Verb {
	return cli.Verb{Use: action + " " + words, Short: short, Method: "POST", Path: at + "/runtime-services/" + action,
		Says:   "{operation.id} {operation.status}",
		Fields: []cli.Field{{Name: "service", Member: "runtimeServiceId", About: "only this one, by its ID"}}}
}

const spacePath = "/api/execution-workspaces/{workspace:1}"

// spaceVerbs are the rows of selvage workspace.
var spaceVerbs = []cli.Verb{
	{Use: "log OPERATION", Short: "Print what a command in a workspace has written",
		Path: "/api/workspace-operations/{1}/log", Log: true},
	{Use: "service-log SERVICE", Short: "Print what a service has written since it was started",
		Path: "/api/runtime-services/{1}/log", Log: true},
	{Use: "list", Short: "List where runs work: folders, and Git worktrees of issues",
		Example: "  selvage workspace list --status active", Path: "/api/companies/{company}/execution-workspaces",
		Fields: []cli.Field{{Name: "status", Member: "status", About: "only these statuses, comma separated"}},
		Columns: "WORKSPACE=id ISSUE=name MODE=mode STATUS=status BRANCH=branchName NODE=id:nodeId " +
			"USED=lastUsedAt FOLDER=cwd"},
	{Use: "close WORKSPACE", Short: "Close a workspace; its node removes the worktree, the branch stays",
		Method: "PATCH", Path: "/api/execution-workspaces/{workspace:1}", Says: "{name} {status}",
		Fixed: map[string]any{"status": "archived"}},
	{Use: "show WORKSPACE", Short: "Show where an issue's runs work", Path: spacePath,
		Lines: "issue=name mode=mode status=status branch=branchName base=baseRef repository=repoUrl " +
			"folder=cwd node=nodeId used=lastUsedAt created=createdAt id=id"},
	{Use: "ready WORKSPACE", Short: "Check whether a workspace can be closed", Path: spacePath + "/close-readiness"},
	{Use: "operations WORKSPACE", Short: "List the commands that ran in a workspace, newest first",
		Path: spacePath + "/workspace-operations", Columns: operationTable},
	serviceVerb("start", "Start the services of a workspace", "WORKSPACE", spacePath),
	serviceVerb("stop", "Stop the services of a workspace", "WORKSPACE", spacePath),
	serviceVerb("restart", "Start the services of a workspace again", "WORKSPACE", spacePath),
	{Use: "run WORKSPACE COMMAND", Short: "Run a command that the board declared for a workspace", Method: "POST",
		Path: spacePath + "/runtime-commands/run", Says: "{operation.id} {operation.status}",
		Fields: []cli.Field{{Place: 2, Member: "workspaceCommandId"}}},
}
