package governance

// A pack for each risk of the OWASP Top 10 for Agentic Applications (2026): ASI01 to ASI10. They come beside a base
// pack and beside each other. Each rule is about what the gate sees of an act: its action, effect, context and what was
// done before. What a model thinks, it does not see.

const agenticReference = "OWASP Agentic "

func guard(name, about string, rules ...Rule) Pack {
	for i := range rules {
		rules[i].Reference = agenticReference + rules[i].ID[:5]
	}
	return Pack{Name: name, About: about, Added: true, Rules: rules}
}

func about(classes ...Class) (out []string) {
	for _, c := range classes {
		out = append(out, string(c))
	}
	return out
}

// agentic returns the ten packs in the order of the list.
func agentic() []Pack {
	return []Pack{
		guard("asi01-goal-hijack",
			"ASI01 Agent Goal Hijack: what serves no task does not leave the company, and acts far from what the "+
				"agent did before wait.",
			Rule{ID: "ASI01-1", Title: "what leaves serves a task", Branch: Judicial, Severity: Blocking,
				On:     about(Egress, Message, Money),
				When:   `context.outside && context.issue == "" && effect.risk >= 100 && !("approved" in clearances)`,
				Reason: "{act} leaves the company and serves no issue"},
			Rule{ID: "ASI01-2", Title: "a change of aim", Branch: Judicial, Severity: Blocking,
				On:     about(Shell, Code, Spawn, Egress, Money, Install, Deploy, Release, Elevate, Admit, Configure),
				When:   `context.drift >= 600 && !("approved" in clearances)`,
				Reason: "{act} is far from what the agent did before: a person has to see whether its aim was changed"}),
		guard("asi02-tool-misuse",
			"ASI02 Tool Misuse and Exploitation: command lines that destroy, removals outside the workspace, and "+
				"tools used in bulk.",
			Rule{ID: "ASI02-1", Title: "command lines that destroy", Branch: Legislative, Severity: Critical, On: about(Shell),
				When: `context.command.contains("rm -rf /") || context.command.contains("rm -fr /") || ` +
					`context.command.contains("mkfs") || ` +
					`context.command.contains("dd if=") || context.command.contains("--no-preserve-root") || ` +
					`context.command.contains(":(){")`,
				Reason: "{act} destroys what it can reach"},
			Rule{ID: "ASI02-2", Title: "removal outside the workspace", Branch: Legislative, Severity: Blocking,
				On:   about(Remove),
				When: `!context.inside`, Reason: "{act} is not inside the agent's workspace"},
			Rule{ID: "ASI02-3", Title: "removal in bulk", Branch: Judicial, Severity: Critical, On: about(Remove, Decommission),
				When: `hour.count > 50`, Reason: "{act}: more than 50 in an hour"}),
		guard("asi03-privilege-abuse",
			"ASI03 Identity and Privilege Abuse: agents do not raise rights, and secrets are not read in bulk or "+
				"by somebody unknown.",
			Rule{ID: "ASI03-1", Title: "rights come from people", Branch: Executive, Severity: Critical,
				On:   about(Elevate, Admit),
				When: `rank != "board"`, Reason: "{act} gives rights: only people do that"},
			Rule{ID: "ASI03-2", Title: "secrets are for who is known", Branch: Executive, Severity: Critical,
				On:   []string{"secret.read"},
				When: `rank == ""`, Reason: "{act} by somebody whom the mesh does not know"},
			Rule{ID: "ASI03-3", Title: "secrets in bulk", Branch: Judicial, Severity: Critical, On: []string{"secret.read"},
				When: `hour.count > 20`, Reason: "{act}: more than 20 in an hour"}),
		guard("asi04-supply-chain",
			"ASI04 Agentic Supply Chain: what no scan has seen is not installed or deployed by agents, and code "+
				"that is deployed names its revision.",
			Rule{ID: "ASI04-1", Title: "what no scan has seen", Branch: Executive, Severity: Blocking,
				On:   about(Install, Deploy),
				When: `rank != "board" && !("scan" in clearances)`, Reason: "{act} brings code that no scan has seen"},
			Rule{ID: "ASI04-2", Title: "named revisions", Branch: Legislative, Severity: Blocking,
				On:   []string{"tool.deploy", "deploy", "release.publish"},
				When: `context.revision == ""`, Reason: "{act} names no revision, so nobody can say what it is"}),
		guard("asi05-code-execution",
			"ASI05 Unexpected Code Execution: command lines that fetch, decode or assemble code and run it.",
			Rule{ID: "ASI05-1", Title: "code from elsewhere", Branch: Legislative, Severity: Critical, On: about(Shell, Code),
				When: `(context.command.contains("curl") || context.command.contains("wget") || ` +
					`context.command.contains("base64")) && ` +
					`(context.command.contains("| sh") || context.command.contains("|sh") || context.command.contains("| bash") || ` +
					`context.command.contains("|bash") || context.command.contains("| python"))`,
				Reason: "{act} fetches or decodes code and runs it"},
			Rule{ID: "ASI05-2", Title: "code in words", Branch: Legislative, Severity: Blocking, On: about(Shell, Code),
				When: `context.command.contains("eval ") || context.command.contains("eval(") || ` +
					`context.command.contains("exec(")`,
				Reason: "{act} assembles code and runs it"}),
		guard("asi06-memory-poisoning",
			"ASI06 Memory and Context Poisoning: memories from outside wait for a person, and are not written in "+
				"bulk; workers do not change instructions.",
			Rule{ID: "ASI06-1", Title: "memories from outside", Branch: Legislative, Severity: Blocking,
				On:   []string{"memory.add", "memory.put"},
				When: `context.outside`, Reason: "{act} keeps what comes from outside the company"},
			Rule{ID: "ASI06-2", Title: "memories in bulk", Branch: Judicial, Severity: Critical,
				On:   []string{"memory.add", "memory.put", "memory.forget", "memory.delete"},
				When: `hour.count > 120`, Reason: "{act}: more than 120 in an hour"},
			Rule{ID: "ASI06-3", Title: "instructions", Branch: Executive, Severity: Blocking, On: []string{"instructions.set",
				"instructions.file"},
				When: `rank == "worker"`, Reason: "{act} changes what an agent believes it is told"}),
		guard("asi07-agent-messages",
			"ASI07 Insecure Inter-Agent Communication: no messages of senders that are not known, no protected "+
				"data in messages that leave, no floods.",
			Rule{ID: "ASI07-1", Title: "known senders", Branch: Executive, Severity: Critical, On: about(Message),
				When: `rank == ""`, Reason: "{act} from somebody whom the mesh does not know"},
			Rule{ID: "ASI07-2", Title: "protected data", Branch: Legislative, Severity: Critical, On: about(Message),
				When:   `context.outside && context.data in ["secret", "personal", "human-subjects"]`,
				Reason: "{act} takes protected data out of the company"},
			Rule{ID: "ASI07-3", Title: "floods", Branch: Judicial, Severity: Critical, On: []string{"ipc.send", "agent.send",
				"message.send"},
				When: `hour.count > 1000`, Reason: "{act}: more than 1,000 in an hour"}),
		guard("asi08-cascading-failures",
			"ASI08 Cascading Failures: agents do not multiply, and what keeps being refused stops instead of trying on.",
			Rule{ID: "ASI08-1", Title: "agents multiply", Branch: Legislative, Severity: Critical, On: about(Spawn),
				When: `hour.company_count > 20`, Reason: "{act}: more than 20 of a company in an hour"},
			Rule{ID: "ASI08-2", Title: "calls in a loop", Branch: Judicial, Severity: Critical, On: about(Model, Egress),
				When: `hour.count > 2000`, Reason: "{act}: more than 2,000 in an hour"},
			Rule{ID: "ASI08-3", Title: "trying on", Branch: Judicial, Severity: Critical, On: about(Shell, Code, Spawn, Egress,
				Money, Install, Deploy, Elevate),
				When: `hour.refused >= 20`, Reason: "{act} of somebody who was refused 20 times in an hour"}),
		guard("asi09-human-trust",
			"ASI09 Human-Agent Trust Exploitation: people are not flooded with questions, and what is decided "+
				"about people, or much money, has a reason.",
			Rule{ID: "ASI09-1", Title: "questions in bulk", Branch: Judicial, Severity: Critical, On: []string{"approval.create",
				"interaction.create"},
				When: `hour.count > 30`, Reason: "{act}: more than 30 in an hour, which nobody reads with care"},
			Rule{ID: "ASI09-2", Title: "decisions have reasons", Branch: Judicial, Severity: Blocking, On: about(Decide),
				When: `context.reason == ""`, Reason: "{act} is about people and gives no reason"},
			Rule{ID: "ASI09-3", Title: "money in small parts", Branch: Legislative, Severity: Blocking, On: about(Money),
				When:   `day.amount >= 100000 && !("purchase-order" in clearances)`,
				Reason: "{act} brings what was committed within a day to $1,000 or more"}),
		guard("asi10-rogue-agents",
			"ASI10 Rogue Agents: workers do not steer or make agents, and the risk of what one agent does in an "+
				"hour has an end.",
			Rule{ID: "ASI10-1", Title: "workers steer nobody", Branch: Executive, Severity: Critical,
				On:   []string{"agent.stop", "agent.suspend", "agent.spawn", "agent.hire"},
				When: `rank in ["worker", ""] && !("spawn" in clearances)`, Reason: "{act} by a worker"},
			Rule{ID: "ASI10-2", Title: "risk of an hour", Branch: Judicial, Severity: Blocking, On: about(Shell, Remove, Spawn,
				Egress, Money, Install, Deploy, Elevate, Decommission),
				When:   `hour.risk > 50000`,
				Reason: "{act}: what was done within an hour has more risk together than a person has agreed to"}),
	}
}
