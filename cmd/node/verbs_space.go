package main

func serviceVerb(action, short, words, at string) verb {
	return verb{use: action + " " + words, short: short, method: "POST", path: at + "/runtime-services/" + action, says: "{operation.id} {operation.status}",
		fields: []field{{name: "service", member: "runtimeServiceId", about: "only this one, by its ID"}}}
}

const spacePath = "/api/execution-workspaces/{workspace:1}"

var spaceVerbs = []verb{
	{use: "list", short: "List where runs work: folders, and Git worktrees of issues", example: "  selvage workspace list --status active", path: "/api/companies/{company}/execution-workspaces", fields: []field{{name: "status", member: "status", about: "only these statuses, comma separated"}},
		columns: "WORKSPACE=id ISSUE=name MODE=mode STATUS=status BRANCH=branchName NODE=id:nodeId USED=ago:lastUsedAt FOLDER=cwd"},
	{use: "close WORKSPACE", short: "Close a workspace; its node removes the worktree, the branch stays", method: "PATCH", path: "/api/execution-workspaces/{workspace:1}", says: "{name} {status}", fixed: map[string]any{"status": "archived"}},
	{use: "show WORKSPACE", short: "Show where an issue's runs work", path: spacePath},
	{use: "ready WORKSPACE", short: "Check whether a workspace can be closed", path: spacePath + "/close-readiness"},
	{use: "operations WORKSPACE", short: "List the commands that ran in a workspace, newest first", path: spacePath + "/workspace-operations", columns: operationTable},
	serviceVerb("start", "Start the services of a workspace", "WORKSPACE", spacePath), serviceVerb("stop", "Stop the services of a workspace", "WORKSPACE", spacePath), serviceVerb("restart", "Start the services of a workspace again", "WORKSPACE", spacePath),
	{use: "run WORKSPACE COMMAND", short: "Run a command that the board declared for a workspace", method: "POST", path: spacePath + "/runtime-commands/run", says: "{operation.id} {operation.status}", fields: []field{{place: 2, member: "workspaceCommandId"}}},
}
