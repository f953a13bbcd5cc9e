package main

import (
	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/cmd/node/clock"
	"github.com/selvage-mesh/selvage/cmd/node/ipc"
)

// The verbs of a noun are in its file; here are the verbs of nouns without other
// commands, and what several verbs share.
var (
	withDescription = cli.Field{Name: "description", Member: "description", About: "what it is about"}
	between         = []cli.Field{{Name: "from", Member: "from", About: "ISO date"},
		{Name: "to", Member: "to", About: "ISO date"}}
	withLimit  = cli.Field{Name: "limit", Member: "limit", Kind: "int", About: "at most so many"}
	withOffset = cli.Field{Name: "offset", Member: "offset", Kind: "int", About: "without the first so many"}
	withMode   = cli.Field{Name: "mode", Member: "workMode", About: "standard, ask or planning"}
	withPolicy = cli.Field{Name: "policy", Member: "executionPolicy", Kind: "json",
		About: "who looks at the work before it is done, or a file with it"}
)

const (
	operationTable = "ID=id PHASE=phase STATUS=status EXIT=exitCode STARTED=startedAt COMMAND=command"

	done       = "{id}"
	issueSays  = "{identifier} {status} {title}"
	issueTable = "ID=identifier STATUS=status PRIORITY=priority ASSIGNEE=agent:assigneeAgentId TITLE=title"
)

// addVerbs adds the commands that are single requests.
func addVerbs(root *cobra.Command, c *cli.CLI) {
	find := func(words ...string) *cobra.Command {
		cmd, _, _ := root.Find(words)
		return cmd
	}
	cli.With(c, find("company"), companyVerbs...)
	cli.With(c, find("agent"), agentVerbs...)
	cli.With(c, find("run"), runVerbs...)
	cli.With(c, find("cost"), costVerbs...)
	cli.With(c, find("member"), memberVerbs...)
	cli.With(c, find("issue"), issueVerbs...).AddCommand(
		cli.Noun(c, "hold", "Pause, cancel or restore an issue and everything below it", holdVerbs...),
		subs(cli.Noun(c, "queue", "Comments that wait for a working agent", queueVerbs...), queueCommands(c)...),
		cli.Noun(c, "watchdog", "The agent that is woken when an issue stops", watchdogVerbs...),
		cli.Noun(c, "monitor", "Wake an issue's agent at a time", monitorVerbs...),
		cli.Noun(c, "plan", "Issues made of an issue's plan", planVerbs...),
		subs(cli.Noun(c, "remark", "Remarks on the words of a document", remarkVerbs...), remarkOnDocument(c)))
	find("issue").AddCommand(cli.Noun(c, "product", "Work products of an issue", productVerbs...))
	find("agent").AddCommand(cli.Noun(c, "memory", "Memories of an agent", memoryVerbs...),
		cli.Noun(c, "message", "Messages that wait for an agent", messageVerbs...))
	cli.With(c, find("secret"), secretVerbs...).AddCommand(
		cli.Noun(c, "wanted", "Secrets that each person stores for themselves", definitionVerbs...),
		subs(cli.Noun(c, "mine", "Your own secrets, for runs that you are responsible for", mineVerbs...), setMine(c)))
	cli.With(c, find("approval"), approvalVerbs...)
	cli.With(c, find("user"), userVerbs...)
	cli.With(c, find("key", "board"), boardKeyVerbs...)
	cli.With(c, find("key"), capabilityVerb)
	cli.With(c, find("token"), tokenVerbs...)
	cli.With(c, find("budget"), budgetVerbs...)
	cli.With(c, find("routine"), routineVerbs...)
	cli.With(c, find("routine", "trigger"), triggerVerbs...)
	root.AddCommand(cli.Noun(c, "workspace", "Where runs work", spaceVerbs...),
		cli.Noun(c, "memory", "What a company remembers, and finding it again", recallVerbs...),
		subs(subs(cli.Noun(c, "govern", "Ask the gate what it decides, by which rules, and change the rules", governVerbs...),
			amendmentCommands(c)...),
			cli.Noun(c, "pack", "Packs of rules to start from", packVerbs...),
			cli.Noun(c, "permit", "Permits of agents for single acts", permitVerbs...),
			cli.Noun(c, "elevation", "Clearances that agents have for a time", elevationVerbs...)))
	find("memory").AddCommand(memoryConsolidate(c))
	root.AddCommand(treeCommand(c))
	root.AddCommand(whyCommands(c)...)
	root.AddCommand(ipc.Commands(c)...)
	root.AddCommand(clock.Commands(c)...)
	cli.With(c, root, mindVerb)
	cli.With(c, find("auth"), profileVerbs...)
	cli.With(c, find("adapter"), adapterVerbs...)
	cli.With(c, find("issue", "doc"), documentVerbs...)
	cli.With(c, find("agent", "instructions"), instructionVerbs...)
	cli.With(c, find("skill"), skillVerbs...).AddCommand(cli.Noun(c, "test", "Have agents try a skill", skillTestVerbs...),
		cli.Noun(c, "file", "Files of a skill", skillFileVerbs...))
	root.AddCommand(
		cli.Noun(c, "goal", "Create and list the goals of a company", goalVerbs...),
		cli.With(c, cli.Group("project", "Create and list projects, and where their work lies",
			cli.Noun(c, "workspace", "Workspaces of a project", workspaceVerbs...)), projectVerbs...),
		cli.Noun(c, "label", "Labels of issues", labelVerbs...),
		cli.Noun(c, "environment", "Where runs are carried out, and machines that are reached over ssh", environmentVerbs...),
		cli.Noun(c, "inbox", "List what waits for you", inboxVerbs...),
		cli.Noun(c, "folder", "Folders of skills and routines", folderVerbs...),
		cli.Noun(c, "team", "Teams that come with the program", teamVerbs...),
		cli.Noun(c, "feedback", "Votes on what agents did", feedbackVerbs...),
		cli.Noun(c, "audit", "What agents did, and for whom", auditVerbs...),
		cli.With(c, orgCommand(c), orgVerbs...),
		cli.Noun(c, "settings", "Settings of the mesh", settingsVerbs...),
	)
	cli.With(c, find("node"), nodeVerbs...)
	cli.With(c, find("tool"), toolVerbs...)
	cli.With(c, find("app"), appVerbs...)
	cli.With(c, root, topVerbs...)
}

// folderVerbs are the rows of selvage folder.
var folderVerbs = []cli.Verb{
	{Use: "list KIND", Short: "List folders: of routine or skill", Path: "/api/companies/{company}/folders",
		Rows: "folders", Columns: "NAME=name SLUG=slug PARENT=parentId ID=id",
		Fields: []cli.Field{{Place: 1, Member: "kind"}}},
	{Use: "create KIND NAME", Short: "Create a folder of routines or skills", Method: "POST",
		Path: "/api/companies/{company}/folders", Says: "{name} {id}",
		Fields: []cli.Field{{Place: 1, Member: "kind"}, {Place: 2, Member: "name"}}},
	{Use: "rename FOLDER NAME", Short: "Rename a folder", Method: "PATCH",
		Path: "/api/companies/{company}/folders/{folder:1}", Says: "{name} {id}",
		Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "move FOLDER PARENT", Short: "Move a folder into another", Method: "POST",
		Path: "/api/companies/{company}/folders/{folder:1}/move", Says: "moved",
		Fixed: map[string]any{"position": 0}, Fields: []cli.Field{{Place: 2, Member: "parentId", Kind: "folder"}}},
	{Use: "put FOLDER ROUTINE", Short: "Move a routine into a folder", Method: "POST",
		Path: "/api/companies/{company}/folders/items/move", Says: "put", Fixed: map[string]any{"kind": "routine"},
		Fields: []cli.Field{{Place: 1, Member: "folderId", Kind: "folder"},
			{Place: 2, Member: "itemId", Kind: "routine"}}},
	{Use: "delete FOLDER", Short: "Delete a folder; its contents stay", Method: "DELETE",
		Path: "/api/companies/{company}/folders/{folder:1}", Says: "deleted"},
}

// teamVerbs are the rows of selvage team.
var teamVerbs = []cli.Verb{
	{Use: "list", Short: "List the teams that come with the program", Path: "/api/teams/catalog",
		Columns: "TEAM=slug AGENTS=counts.agents PROJECTS=counts.projects ISSUES=counts.issues ABOUT=description"},
	{Use: "show TEAM", Short: "List who is in a team", Path: "/api/teams/catalog/{1}", Rows: "agents",
		Columns: "NAME=name ROLE=role REPORTS-TO=reportsToSlug"},
	{Use: "add TEAM", Short: "Add a team to a company", Method: "POST",
		Path: "/api/companies/{company}/teams/catalog/{1}/install", Rows: "agents",
		Columns: "NAME=name ACTION=action ID=id",
		Fields: []cli.Field{{Name: "collision", Member: "collisionStrategy",
			About: "rename, skip or replace what is there by the same name"}}},
	{Use: "installed", Short: "List the teams that a company has taken in",
		Path: "/api/companies/{company}/teams/catalog/installed", Columns: "TEAM=slug NAME=name AGENTS=agents"},
}

// feedbackVerbs are the rows of selvage feedback.
var feedbackVerbs = []cli.Verb{
	{Use: "list", Short: "List the shared votes", Path: "/api/companies/{company}/feedback-traces",
		Columns: "ID=traceId ISSUE=issueIdentifier VOTE=vote AT=createdAt"},
	{Use: "show TRACE", Short: "Show a vote with what it was about", Path: "/api/feedback-traces/{1}"},
}

// settingsVerbs are the rows of selvage settings.
var settingsVerbs = []cli.Verb{
	{Use: "show", Short: "Show the settings of the mesh", Path: "/api/instance/settings/general"},
	{Use: "parts", Short: "Show which parts of the board are on", Path: "/api/instance/settings/experimental"},
	{Use: "part NAME ON", Short: "Turn a part of the board on or off: true or false", Method: "PATCH",
		Path: "/api/instance/settings/experimental", Says: "changed",
		Fields: []cli.Field{{Place: 2, Member: "{1}", Kind: "json"}}},
	{Use: "environment ENVIRONMENT", Short: "Set the default environment of runs", Method: "PATCH",
		Path: "/api/instance/settings", Says: "changed",
		Fields: []cli.Field{{Place: 1, Member: "defaultEnvironmentId", Kind: "environment"}}},
	{Use: "set", Short: "Change the settings of the mesh", Method: "PATCH", Path: "/api/instance/settings/general",
		Says: "changed",
		Fields: []cli.Field{{Name: "sign-ups", Member: "signUps", About: "open, invited or closed"},
			{Name: "log-days", Member: "runLogRetention.days", Kind: "int",
				About: "how long the logs of runs are kept; with --log-bytes"},
			{Name: "log-bytes", Member: "runLogRetention.maxBytes", Kind: "int",
				About: "how much of them the mesh keeps; with --log-days"},
			{Name: "event-days", Member: "runEventRetention.days", Kind: "int",
				About: "how long the events of runs are kept"}}},
}

var topVerbs = []cli.Verb{
	uncordonVerb,
	{Use: "pending", Short: "List the nodes that ask to be let in", Path: "/api/v1/mesh/requests",
		Long: `List the nodes of the local network that ask to be let in. Compare the code with the
one that the node shows (on its console, or in its log) before you approve it: when
they differ, somebody stands between.`,
		Columns: "CODE=code NAME=name ID=id:nodeId ADDRESS=address UNTIL=expiresAt",
		Next:    "compare the code with the one that the node shows, then: selvage approve CODE"},
	{Use: "approve CODE", Short: "Admit the node that shows this code", Method: "POST",
		Path: "/api/v1/mesh/requests/{1}/approve", Says: "let in {name+id}",
		Long: "Let in the node that shows this code (see selvage pending). Anything else that is to be approved: " +
			"selvage approval."},
	{Use: "reject CODE", Short: "Reject the node that shows this code", Method: "POST",
		Path: "/api/v1/mesh/requests/{1}/reject", Says: "rejected"},
	{Use: "leave", Short: "Remove the node at --api from the mesh for good", Method: "POST",
		Path: "/api/v1/mesh/leave", Says: "the node leaves the mesh",
		Long: "Let the node at --api leave the mesh for good: it gives up leadership and its vote, and stops. " +
			"Its data stays on disk; it can come back only with a new join."},
	{Use: "resume", Short: "Resume work after selvage stop --all", Method: "POST", Path: "/api/v1/mesh/resume",
		Says: "not stopped, {running} runs at work"},
	activityVerb,
	{Use: "search TEXT", Short: "Look for a text in issues, comments, documents, agents and projects",
		Path: "/api/companies/{company}/search", Rows: "results",
		Columns: "KIND=type OPEN=issue.identifier|id TITLE=title TEXT=snippet",
		Fields:  []cli.Field{{Place: 1, Member: "q"}, withLimit}},
	{Use: "extract TEXT", Short: "List the places where a text or URL occurs",
		Path: "/api/companies/{company}/search/extract", Rows: "results",
		Columns: "ID=identifier STATUS=status MATCHES=matches TITLE=title",
		Fields: []cli.Field{{Place: 1, Member: "contains"}, {Name: "kind", Member: "kind", About: "literal or url"},
			{Name: "scope", Member: "scope", About: "all, issues, comments or documents"},
			{Name: "within", Member: "updatedWithin", About: "such as 24h, 7d, 4w or 3m"}, withLimit}},
}

// subs adds commands to a group.
func subs(to *cobra.Command, more ...*cobra.Command) *cobra.Command {
	to.AddCommand(more...)
	return to
}
