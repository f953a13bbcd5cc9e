package main

import (
	"slices"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// aboutAct are the flags that say what is known of an act.
var aboutAct = []cli.Field{{Place: 1, Member: "action"},
	{Name: "agent", Member: "agent_id", Kind: "agent", About: "who acts; without one it is a worker whom the mesh does not have"},
	{Name: "rank", Member: "context.rank", About: "of who acts, without --agent: worker, manager or ceo"},
	{Name: "environment", Member: "context.environment", About: "dev, staging or prod"},
	{Name: "risk", Member: "context.risk", About: "at least so much, 0 to 1; likewise the next four"},
	{Name: "fairness", Member: "context.fairness", About: "0 to 1"},
	{Name: "privacy", Member: "context.privacy", About: "0 to 1"},
	{Name: "novelty", Member: "context.novelty", About: "0 to 1"},
	{Name: "security", Member: "context.security", About: "0 to 1"},
	{Name: "drift", Member: "context.drift", About: "how far it is from what the agent did before, 0 to 1"},
	{Name: "act-command", Member: "context.command", About: "command line of a shell"},
	{Name: "path", Member: "context.path", About: "file"},
	{Name: "folder", Member: "context.workspace", About: "folder that belongs to the agent"},
	{Name: "data", Member: "context.data", About: "public, personal, human-subjects or secret"},
	{Name: "reason", Member: "context.reason", About: "why it is done"},
	{Name: "issue", Member: "context.issue", About: "that it serves"},
	{Name: "revision", Member: "context.revision", About: "of the code that it is about"},
	{Name: "cents", Member: "context.amount_cents", Kind: "int", About: "money that it commits"},
	{Name: "outside", Member: "context.outside", Kind: "bool", About: "its target is outside the company"},
	{Name: "first", Member: "context.first_time", Kind: "bool", About: "the agent does it for the first time"},
	{Name: "irreversible", Member: "context.irreversible", Kind: "bool", About: "it can not be undone"},
	{Name: "incident", Member: "context.incident", Kind: "bool", About: "an incident is open"},
	{Name: "clearance", Member: "context.clearances", Kind: "list", About: "what was cleared, such as deploy; repeat for more"},
	{Name: "approver", Member: "context.approval_chain", Kind: "list", About: "who can approve; repeat for more"},
}

// somebody acts where nobody is named.
var somebody = map[string]any{"agent_id": "somebody"}

// capabilityVerb makes capability tokens.
var capabilityVerb = cli.Verb{Use: "capability", Short: "Make a capability token: it may do a part of what you may, for a time", Method: "POST", Path: "/api/v1/capabilities",
	Example: "  selvage key capability --can execute --can govern --agent Ada --seconds 600", Text: "token",
	Fields: []cli.Field{{Name: "can", Member: "capabilities", Kind: "list", About: "execute or govern; repeat for both"}, {Name: "agent", Member: "agent_id", Kind: "agent", About: "the only agent that it is for"},
		{Name: "seconds", Member: "ttl_seconds", Kind: "int", About: "how long it lasts; an hour unless given, at most 86400"}}}

// governVerbs are about the gate: they ask, and change nothing.
var governVerbs = []cli.Verb{
	{Use: "rules", Short: "List the rules in force", Example: "  selvage govern rules\n  selvage govern rules -o json", Path: "/api/v1/govern/rules",
		Rows: "rules", Columns: "RULE=id BRANCH=branch SEVERITY=severity ON=on TITLE=title WHEN=when"},
	{Use: "explain ACTION", Short: "Show how the effect of an act comes to be, step by step",
		Example: "  selvage govern explain network.egress --outside\n  selvage govern explain money.spend --cents 250000 --irreversible",
		Method:  "POST", Path: "/api/v1/govern/explain", Rows: "steps", Columns: "DIMENSION=dimension FROM=from TO=to WHY=why", Fixed: somebody, Fields: slices.Clone(aboutAct)},
	{Use: "simulate ACTION", Short: "Ask what the gate would decide, without doing anything",
		Example: "  selvage govern simulate execute_shell_command --approver Cleo\n  selvage govern simulate deploy --environment prod --agent Ada --clearance deploy",
		Method:  "POST", Path: "/api/v1/govern", Fixed: somebody, Fields: slices.Clone(aboutAct),
		Lines: "decision=decision reason=reason warnings=warnings rules_that_spoke=spoken_rules rules_asked=evaluated_rules risk=effect.risk fairness=effect.fairness " +
			"privacy=effect.privacy novelty=effect.novelty security=effect.security magnitude=effect_magnitude threshold=threshold rank=rank constitution=constitution"},
}
