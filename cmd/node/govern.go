package main

import (
	"slices"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// aboutAct are the flags that say what is known of an act.
var aboutAct = []cli.Field{{Place: 1, Member: "action"},
	{Name: "agent", Member: "agent_id", Kind: "agent",
		About: "who acts; without one it is a worker whom the mesh does not have"},
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
	{Name: "target", Member: "context.target",
		About: "path in the resource tree that it is about, such as /network/peers/ID"},
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
	{Name: "clearance", Member: "context.clearances", Kind: "list",
		About: "what was cleared, such as deploy; repeat for more"},
	{Name: "approver", Member: "context.approval_chain", Kind: "list", About: "who can approve; repeat for more"},
}

// somebody acts where nobody is named.
var somebody = map[string]any{"agent_id": "somebody"}

// capabilityVerb makes capability tokens.
var capabilityVerb = cli.Verb{Use: "capability",
	Short: "Make a capability token: it may do a part of what you may, for a time", Method: "POST",
	Path:    "/api/v1/capabilities",
	Example: "  selvage key capability --can execute --can govern --agent Ada --seconds 600", Text: "token",
	Fields: []cli.Field{{Name: "can", Member: "capabilities", Kind: "list", About: "execute or govern; repeat for both"},
		{Name: "agent", Member: "agent_id", Kind: "agent", About: "the only agent that it is for"},
		{Name: "seconds", Member: "ttl_seconds", Kind: "int",
			About: "how long it lasts; an hour unless given, at most 86400"}}}

// packVerbs are about packs of rules.
var packVerbs = []cli.Verb{
	{Use: "list", Short: "List the packs", Path: "/api/v1/govern/packs",
		Columns: "PACK=name RULES=count ENVIRONMENT=environment ABOUT=about"},
	{Use: "show NAME", Short: "Show the rules of a pack", Path: "/api/v1/govern/packs/{1}", Rows: "rules",
		Columns: "RULE=id BRANCH=branch SEVERITY=severity ON=on TITLE=title WHEN=when"},
	{Use: "apply NAME",
		Short:  "Propose a pack: relaxed, standard or strict; without signing keys of the board it is in force at once",
		Method: "POST", Path: "/api/v1/govern/packs/{1}/apply",
		Lines: "id=id title=title status=status version=version height=height signed=signed required=required"},
}

// permitLines are those of a permit.
const permitLines = "id=id status=status agent=agent_id action=action arguments=arguments_sha256 once=once " +
	"approval=approvalId " +
	"rules=rules reason=reason constitution=constitution height=height granted=grantedAt until=until uses=uses " +
	"used=usedAt by=usedBy token=token"

// ofAct are the fields that name an act by its arguments.
var ofAct = []cli.Field{{Name: "arguments", Member: "arguments", Kind: "json or @file",
	About: "of the act, as JSON or @FILE"},
	{Name: "sha256", Member: "arguments_sha256", About: "of the arguments, in place of them"}}

// permitVerbs are about permits for single acts.
var permitVerbs = []cli.Verb{
	{Use: "list", Short: "List permits, those that end last first", Path: "/api/v1/govern/permits",
		Example: "  selvage govern permit list --status granted",
		Fields: []cli.Field{{Name: "agent", Member: "agentId", Kind: "agent", About: "who acts"},
			{Name: "status", Member: "status", About: "granted, used, expired, revoked or rejected; several with commas"},
			{Name: "limit", Member: "limit", Kind: "int", About: "100 unless given"}},
		Columns: "ID=id STATUS=status ACTION=action AGENT=agent_id ONCE=once USES=uses UNTIL=until"},
	{Use: "ask ACTION", Short: "Ask for a permit for one act of an agent, with these arguments and no other",
		Method: "POST", Path: "/api/v1/govern/permits", Lines: permitLines,
		Example: `  selvage govern permit ask deploy --agent Ada --arguments '{"service":"web"}' --once --seconds 600`,
		Fields: slices.Concat([]cli.Field{{Place: 1, Member: "action"}, {Name: "agent", Member: "agent_id", Kind: "agent",
			About: "who acts"}}, ofAct, []cli.Field{{Name: "once", Member: "once", Kind: "bool", About: "it holds once"},
			{Name: "seconds", Member: "ttl_seconds", Kind: "int", About: "how long it holds; an hour unless given"},
			{Name: "detail", Member: "detail", About: "what a person who is asked sees of the arguments"},
			{Name: "outside", Member: "context.outside", Kind: "bool", About: "its target is outside the company"},
			{Name: "irreversible", Member: "context.irreversible", Kind: "bool", About: "it can not be undone"},
			{Name: "reason", Member: "context.reason", About: "why it is done"},
			{Name: "cents", Member: "context.amount_cents", Kind: "int", About: "money that it commits"}})},
	{Use: "show ID", Short: "Show a permit, with its signed token while it holds", Path: "/api/v1/govern/permits/{1}",
		Lines: permitLines},
	{Use: "revoke ID", Short: "End a permit at once", Method: "POST", Path: "/api/v1/govern/permits/{1}/revoke",
		Lines: permitLines},
	{Use: "use TOKEN ACTION", Short: "Check that a permit is for an act, and use it", Method: "POST",
		Path: "/api/v1/govern/use", Lines: permitLines,
		Example: `  selvage govern permit use @permit deploy --agent Ada --arguments '{"service":"web"}'`,
		Fields: slices.Concat([]cli.Field{{Place: 1, Member: "token", Kind: "text or file"}, {Place: 2, Member: "action"},
			{Name: "agent", Member: "agent_id", Kind: "agent", About: "who acts"}}, ofAct)},
}

// elevationVerbs give agents clearances for a time.
var elevationVerbs = []cli.Verb{
	{Use: "list", Short: "List elevations of agents", Path: "/api/v1/govern/elevations",
		Fields:  []cli.Field{{Name: "status", Member: "status", About: "in_force, ended or revoked"}},
		Columns: "ID=id STATUS=status AGENT=agentId CLEARANCES=clearances UNTIL=until BY=requestedBy REASON=reason"},
	{Use: "ask AGENT", Short: "Ask for clearances of an agent for a time; usually a person decides", Method: "POST",
		Path:    "/api/v1/govern/elevations",
		Example: "  selvage govern elevation ask Ada --clearance deploy --seconds 600 --reason 'release 1.4'",
		Lines:   elevationLines, Fields: []cli.Field{{Place: 1, Member: "agentId", Kind: "agent"},
			{Name: "clearance", Member: "clearances", Kind: "list", About: "that rules read, such as deploy; repeat for more"},
			{Name: "seconds", Member: "seconds", Kind: "int", About: "how long it lasts; 900 unless given"},
			{Name: "entries", Member: "entries", Kind: "int", About: "it also ends after so many entries of the chain"},
			{Name: "reason", Member: "reason", About: "what a person who is asked sees"}}},
	{Use: "revoke ID", Short: "End an elevation at once", Method: "POST", Path: "/api/v1/govern/elevations/{1}/revoke",
		Lines: elevationLines},
}

const elevationLines = "id=id status=status agent=agentId clearances=clearances since=inForceSince until=until " +
	"last_height=lastHeight by=requestedBy reason=reason"

// governVerbs are about the gate, its decisions and the constitution.
var governVerbs = []cli.Verb{
	{Use: "rules", Short: "List the rules in force", Example: "  selvage govern rules\n  selvage govern rules -o json",
		Path: "/api/v1/govern/rules",
		Fields: []cli.Field{{Name: "version", Member: "version", Kind: "int",
			About: "of the constitution; the one in force unless given"}},
		Rows: "rules", Columns: "RULE=id BRANCH=branch SEVERITY=severity ON=on TITLE=title WHEN=when"},
	{Use: "decisions",
		Short: "List what the gate decided, newest first: denials, deferrals, warnings and permits of high risk",
		Path:  "/api/v1/govern/decisions",
		Example: "  selvage govern decisions --decision deny,escalate --limit 20\n" +
			"  selvage govern decisions --rule GOV-001 -o json",
		Fields: []cli.Field{{Name: "decision", Member: "decision",
			About: "permit, warn, escalate or deny; several with commas"}, {Name: "agent", Member: "agentId", Kind: "agent",
			About: "who acts"},
			{Name: "action", Member: "action", About: "such as issue.delete"}, {Name: "rule", Member: "rule",
				About: "that spoke"}, {Name: "run", Member: "runId", About: "ID of the run"},
			{Name: "version", Member: "version", Kind: "int", About: "of the constitution"}, {Name: "since", Member: "since",
				About: "a time, such as 2026-11-24T00:00:00Z"}, {Name: "limit", Member: "limit", Kind: "int",
				About: "100 unless given"}},
		Columns: "ID=id DECISION=decision ACTION=action BY=actorId RULES=spoken_rules COUNT=count V=constitution " +
			"ANSWER=answer REASON=reason"},
	{Use: "decision ID", Short: "Show a decision, with everything that led to it", Path: "/api/v1/govern/decisions/{1}",
		Lines: "id=id decision=decision reason=reason action=action class=class by=actorId rank=rank run=runId " +
			"node=nodeId rules_that_spoke=spoken_rules rules_asked=evaluated_rules risk=effect.risk " +
			"fairness=effect.fairness privacy=effect.privacy novelty=effect.novelty security=effect.security " +
			"magnitude=effect_magnitude threshold=threshold environment=environment " +
			"count=count approval=approvalId answer=answer constitution=constitution height=height at=at"},
	{Use: "amendments", Short: "List amendments, newest first", Path: "/api/v1/govern/amendments",
		Columns: "ID=id STATUS=status TITLE=title BASE=base SIGNED=signed REQUIRED=required VERSION=version HEIGHT=height"},
	{Use: "amendment ID", Short: "Show an amendment, and the message that is signed",
		Path: "/api/v1/govern/amendments/{1}",
		Lines: "id=id title=title status=status base=base version=version height=height signed=signed " +
			"required=required stale=stale by=proposedBy digest=digest message=message"},
	{Use: "verify TOKEN", Short: "Check who signed a permit or an attestation, and whether it holds", Method: "POST",
		Path: "/api/v1/govern/verify", Example: "  selvage govern verify @token",
		Fields: []cli.Field{{Place: 1, Member: "token", Kind: "text or file"}},
		Lines: "kind=kind valid=valid status=status node=nodeId agent=agent_id action=action " +
			"arguments=arguments_sha256 permit=permitId " +
			"once=once decision=decision rules=rules constitution=constitution height=height " +
			"chain_hash=chain_hash on_chain=onChain at=at until=until"},
	{Use: "place", Short: "Show what is set for the mesh, a company or a project", Path: "/api/v1/govern/place",
		Fields: []cli.Field{{Name: "of", Member: "companyId", About: "ID of the company; the mesh unless given"},
			{Name: "project", Member: "projectId", About: "ID of a project of the company"}},
		Lines: "company=companyId project=projectId environment=environment threshold=threshold " +
			"human_approval=humanApproval minutes=set:approvalMinutes"},
	{Use: "amend ID", Short: "Bring an amendment into force that enough have signed", Method: "POST",
		Path: "/api/v1/govern/amendments/{1}/enact", Example: "  selvage govern amend 3",
		Lines: "id=id title=title status=status version=version height=height signed=signed required=required"},
	{Use: "withdraw ID", Short: "Withdraw an amendment", Method: "POST", Path: "/api/v1/govern/amendments/{1}/withdraw",
		Lines: "id=id title=title status=status"},
	{Use: "environment dev|staging|prod|none",
		Short: "Set the environment of the mesh, a company or a project; none: as further out", Method: "PUT",
		Path: "/api/v1/govern/place",
		Example: "  selvage govern environment prod --of 0193f2a1-7c55-7d01-9a6b-2f0c8f1e4d10\n" +
			"  selvage govern environment dev",
		Fields: []cli.Field{{Place: 1, Member: "environment"}, {Name: "of", Member: "companyId",
			About: "ID of the company; the mesh unless given"}, {Name: "project", Member: "projectId",
			About: "ID of a project of the company"},
			{Name: "human-approval", Member: "humanApproval", Kind: "bool",
				About: "with =false what a rule blocks is denied, and no person is asked"},
			{Name: "minutes", Member: "approvalMinutes", Kind: "int", About: "how long a command waits for a person"}},
		Lines: "company=companyId project=projectId environment=environment threshold=threshold " +
			"human_approval=humanApproval minutes=set:approvalMinutes"},
	{Use: "filters", Short: "Show whether a company has chosen the filters, and what they keep of its agents",
		Path: "/api/v1/govern/filters?companyId={company}", Rows: "agents",
		Columns: "AGENT=agentId NAME=name ACTS=acts EVIDENCE=evidence"},
	{Use: "filter", Short: "Choose the filters for a company: they speak beside the rules about who acts", Method: "PUT",
		Path:    "/api/v1/govern/filters?companyId={company}",
		Example: "  selvage govern filter --on\n  selvage govern filter --on=false",
		Fields: []cli.Field{{Name: "on", Member: "on", Kind: "bool", About: "with =false off"},
			{Name: "min-cut", Member: "minCut", About: "authority that has to reach an agent, 0 to 1"},
			{Name: "max-shift", Member: "maxShift", About: "how far behaviour may move before a person is asked, 0 to 1"},
			{Name: "permit-evidence", Member: "permitEvidence", Kind: "int",
				About: "power of two below which a person is asked"},
			{Name: "deny-evidence", Member: "denyEvidence", Kind: "int", About: "power of two below which an act is denied"},
			{Name: "floor", Member: "floor", About: "magnitude below which an act passes, 0 to 1"}},
		Lines: "company=companyId on=on min_cut=minCut max_shift=maxShift permit_evidence=permitEvidence " +
			"deny_evidence=denyEvidence floor=floor receipts=receipts"},
	{Use: "forget AGENT", Short: "Let the filters begin anew with an agent", Method: "POST",
		Path:   "/api/v1/govern/filters/forget?companyId={company}",
		Fields: []cli.Field{{Place: 1, Member: "agentId", Kind: "agent"}},
		Lines:  "company=companyId on=on receipts=receipts"},
	{Use: "receipts", Short: "List receipts of the filters, the oldest first",
		Path: "/api/v1/govern/receipts?companyId={company}", Rows: "receipts",
		Fields: []cli.Field{{Name: "from", Member: "from", Kind: "int", About: "sequence of the first"},
			{Name: "limit", Member: "limit", Kind: "int", About: "100 unless given, at most 1000"}},
		Columns: "N=sequence AGENT=agentId ACTION=action RULES=rules DECISION=decision FILTERS=spoken_filters " +
			"HASH=hash WRONG=wrong"},
	{Use: "explain ACTION", Short: "Show how the effect of an act comes to be, step by step",
		Example: "  selvage govern explain network.egress --outside\n" +
			"  selvage govern explain money.spend --cents 250000 --irreversible",
		Method: "POST", Path: "/api/v1/govern/explain", Rows: "steps",
		Columns: "DIMENSION=dimension FROM=from TO=to WHY=why", Fixed: somebody, Fields: slices.Clone(aboutAct)},
	{Use: "simulate ACTION", Short: "Ask what the gate would decide, without doing anything",
		Example: "  selvage govern simulate execute_shell_command --approver Cleo\n" +
			"  selvage govern simulate deploy --environment prod --agent Ada --clearance deploy",
		Method: "POST", Path: "/api/v1/govern", Fixed: somebody, Fields: slices.Clone(aboutAct),
		Lines: "decision=decision reason=reason warnings=warnings rules_that_spoke=spoken_rules " +
			"rules_asked=evaluated_rules risk=effect.risk fairness=effect.fairness " +
			"privacy=effect.privacy novelty=effect.novelty security=effect.security magnitude=effect_magnitude " +
			"threshold=threshold rank=rank constitution=constitution height=height chain_hash=chain_hash " +
			"attestation=attestation"},
}
