package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/company/entity"
)

type agentRow struct {
	ID                 string  `json:"id"`
	Name               string  `json:"name"`
	Role               string  `json:"role"`
	Status             string  `json:"status"`
	AdapterType        string  `json:"adapterType"`
	ReportsTo          *string `json:"reportsTo"`
	BudgetMonthlyCents int64   `json:"budgetMonthlyCents"`
	SpentMonthlyCents  int64   `json:"spentMonthlyCents"`
}

func agentCommand(c *cli.CLI) *cobra.Command {
	var who newAgent
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an agent", Args: cobra.ExactArgs(1),
		Example: `  selvage agent create Bob --role engineer --command /usr/local/bin/worker --arg --once
  selvage agent create Ida --command /usr/local/bin/worker --instructions AGENTS.md --skill memory
  selvage agent create Ada --adapter wasm --config '{"module": "/srv/ada.wasm"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, body, err := who.body(c, cmd, args[0])
			if err != nil {
				return err
			}
			var row agentRow
			return c.Send(cmd, "POST", "/api/companies/"+company+"/agents", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", row.Name, row.Status, row.ID)
			})
		},
	}
	who.add(create.Flags())
	return cli.Group("agent", "Hire, configure, wake, pause and list agents", create, hireCommand(c), mayCommand(c),
		instructionsCommand(c))
}

// mayCommand shows or changes an agent's permissions; those that are not given stay
// unchanged.
func mayCommand(c *cli.CLI) *cobra.Command {
	type power struct{ flag, member, about string }
	what := []power{
		{"create-agents", "canCreateAgents", "hire others"},
		{"assign", "canAssignTasks", "give work to others"},
		{"create-skills", "canCreateSkills", "add and change skills"},
	}
	given := make([]bool, len(what))
	cmd := &cobra.Command{
		Use: "may AGENT", Short: "Show or set the permissions of an agent", Args: cobra.ExactArgs(1),
		Example: `  selvage agent may Bob
  selvage agent may Bob --assign --create-agents=false`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.AgentID(cmd, args[0])
			if err != nil {
				return err
			}
			type answer struct {
				Name        string          `json:"name"`
				Permissions map[string]bool `json:"permissions"`
				Access      struct {
					Assign bool   `json:"canAssignTasks"`
					Why    string `json:"taskAssignSource"`
				} `json:"access"`
			}
			says := func(a *answer) func(io.Writer) {
				return func(w io.Writer) {
					a.Permissions["canAssignTasks"] = a.Access.Assign
					for _, one := range what {
						fmt.Fprintf(w, "%-13s  %-5t  %s\n", one.flag, a.Permissions[one.member], one.about)
					}
					if a.Access.Why == "agent_creator" {
						fmt.Fprintln(w, "who may hire others may give them work")
					}
				}
			}
			var now answer
			if !slices.ContainsFunc(what, func(one power) bool { return cmd.Flags().Changed(one.flag) }) {
				return c.Show(cmd, "/api/agents/"+id, &now, says(&now))
			}
			if err := c.Call(cmd.Context(), "GET", "/api/agents/"+id, nil, &now); err != nil {
				return err
			}
			body := map[string]any{"canCreateAgents": now.Permissions["canCreateAgents"], "canAssignTasks": now.Access.Assign}
			for n, one := range what {
				if cmd.Flags().Changed(one.flag) {
					body[one.member] = given[n]
				}
			}
			var then answer
			return c.Send(cmd, "PATCH", "/api/agents/"+id+"/permissions", body, &then, says(&then))
		},
	}
	for n, one := range what {
		cmd.Flags().BoolVar(&given[n], one.flag, false, one.about)
	}
	return cmd
}

// agentRoles lists the roles of agents.
var agentRoles = strings.Join(entity.Roles[:len(entity.Roles)-1], ", ") + " or " + entity.Roles[len(entity.Roles)-1]

// A newAgent holds the flags of creating or hiring an agent.
type newAgent struct {
	role, reportsTo, instructions string
	title, capabilities           string
	budget                        int64 // cents
	skills                        []string
	how                           adapterFlags
}

func (a *newAgent) add(f *pflag.FlagSet) {
	f.StringVar(&a.role, "role", "general", agentRoles)
	f.StringVar(&a.title, "title", "", "title in the org chart")
	f.StringVar(&a.capabilities, "capabilities", "", "what the agent is good for")
	f.Int64Var(&a.budget, "budget", 0, "monthly budget in cents; 0 sets none")
	f.StringVar(&a.reportsTo, "reports-to", "", "ID or name of the manager")
	f.StringVar(&a.instructions, "instructions", "", "file that tells it what to do; its AGENTS.md")
	f.StringArrayVar(&a.skills, "skill", nil, "key of a skill that it has (repeat for more)")
	a.how.add(f)
}

// body returns the company and the body of the request.
func (a *newAgent) body(c *cli.CLI, cmd *cobra.Command, name string) (company string, body map[string]any, err error) {
	if company, err = c.CompanyID(cmd); err != nil {
		return "", nil, err
	}
	config, err := a.how.config()
	if err != nil {
		return "", nil, err
	}
	body = map[string]any{"name": name, "role": a.role, "adapterType": a.how.adapter, "adapterConfig": config,
		"budgetMonthlyCents": a.budget}
	if a.title != "" {
		body["title"] = a.title
	}
	if a.capabilities != "" {
		body["capabilities"] = a.capabilities
	}
	if a.reportsTo != "" {
		if body["reportsTo"], err = c.AgentID(cmd, a.reportsTo); err != nil {
			return "", nil, err
		}
	}
	if a.instructions != "" {
		text, err := cli.ReadText(cmd, a.instructions, maxInstructions)
		if err != nil {
			return "", nil, err
		}
		body["instructionsBundle"] = map[string]any{"files": map[string]string{"AGENTS.md": text}}
	}
	if len(a.skills) > 0 {
		body["desiredSkills"] = a.skills
	}
	return company, body, nil
}

// adapterFlags are the flags of an agent's adapter.
type adapterFlags struct {
	adapter, command, cwd, extra string
	argv                         []string
}

func (a *adapterFlags) add(f *pflag.FlagSet) {
	f.StringVar(&a.adapter, "adapter", "process", "how its runs are carried out")
	f.StringVar(&a.extra, "config", "", "configuration of the adapter, a JSON object")
	f.StringVar(&a.command, "command", "", "program to run for each heartbeat")
	f.StringVar(&a.cwd, "cwd", "", "working directory of the program")
	f.StringArrayVar(&a.argv, "arg", nil, "argument of the program (repeat for more)")
}

// config returns the adapter's configuration: the given object, overridden by the values
// of single flags.
func (a *adapterFlags) config() (map[string]any, error) {
	config := map[string]any{}
	if a.extra != "" {
		if err := json.Unmarshal([]byte(a.extra), &config); err != nil || config == nil {
			return nil, errors.New("--config: want a JSON object")
		}
	}
	for key, v := range map[string]string{"command": a.command, "cwd": a.cwd} {
		if v != "" {
			config[key] = v
		}
	}
	if len(a.argv) > 0 {
		config["args"] = a.argv
	}
	if a.adapter == "process" && config["command"] == nil {
		return nil, errors.New("the process adapter needs --command")
	}
	return config, nil
}

// agentVerbs are the rows of selvage agent.
var agentVerbs = []cli.Verb{
	{Use: "list", Short: "List the agents of a company", Path: "/api/companies/{company}/agents",
		Columns: "NAME=name ROLE=role STATUS=status ADAPTER=adapterType REPORTS-TO=agent:reportsTo " +
			"SPENT=spentMonthlyCents BUDGET=budgetMonthlyCents ID=id",
		Fields: []cli.Field{{Name: "terminated", Member: "includeTerminated", Kind: "bool",
			About: "also those that were terminated"}}},
	{Use: "key AGENT NAME", Short: "Create an API key, shown once", Method: "POST",
		Path: "/api/agents/{agent:1}/keys", Says: "{token}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "invoke AGENT", Short: "Start a heartbeat run now", Method: "POST",
		Path: "/api/agents/{agent:1}/heartbeat/invoke", Says: "{id} {status}"},
	{Use: "pause AGENT", Short: "Pause an agent", Method: "POST", Path: "/api/agents/{agent:1}/pause",
		Says: "{name} {status}"},
	{Use: "resume AGENT", Short: "Let a paused agent work again", Method: "POST",
		Path: "/api/agents/{agent:1}/resume", Says: "{name} {status}"},
	{Use: "terminate AGENT", Short: "End an agent for good", Method: "POST",
		Path: "/api/agents/{agent:1}/terminate", Says: "{name} {status}"},
	{Use: "revisions AGENT", Short: "List changes of an agent's configuration, the newest first",
		Path:    "/api/agents/{agent:1}/config-revisions",
		Columns: "REVISION=id SOURCE=source MADE=createdAt CHANGED=changedKeys"},
	{Use: "rollback AGENT REVISION", Short: "Roll an agent back to an earlier configuration", Method: "POST",
		Path: "/api/agents/{agent:1}/config-revisions/{2}/rollback", Says: "{name} rolled back to {2}"},
	{Use: "show AGENT", Short: "Show an agent", Path: "/api/agents/{agent:1}",
		Lines: "name=name role=role title=title status=status+pauseReason capabilities=capabilities " +
			"reports_to=agent:reportsTo adapter=adapterType model=adapterConfig.model " +
			"command=adapterConfig.command arguments=adapterConfig.args folder=adapterConfig.cwd " +
			"spent_this_month=spentMonthlyCents budget=budgetMonthlyCents held=heldCents " +
			"may_hire=permissions.canCreateAgents may_assign=access.canAssignTasks " +
			"last_run=lastHeartbeatAt created=createdAt id=id"},
	{Use: "config AGENT", Short: "Show how an agent is invoked", Path: "/api/agents/{agent:1}/configuration"},
	{Use: "revision AGENT REVISION", Short: "Show one change of an agent's configuration",
		Path: "/api/agents/{agent:1}/config-revisions/{2}"},
	{Use: "update AGENT", Short: "Change an agent", Method: "PATCH", Path: "/api/agents/{agent:1}",
		Says: "{name} {status}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"},
			{Name: "title", Member: "title", About: "what it is called"},
			{Name: "capabilities", Member: "capabilities", About: "what it can do"},
			{Name: "role", Member: "role", About: agentRoles},
			{Name: "reports-to", Member: "reportsTo", Kind: "agent", About: "its manager; empty for none"},
			{Name: "adapter", Member: "adapterType", About: "how its runs are carried out; give --config with it"},
			{Name: "environment", Member: "defaultEnvironmentId", Kind: "environment",
				About: "where they are carried out; empty for the mesh's choice"},
			{Name: "config", Member: "adapterConfig", Kind: "json",
				About: "the adapter's configuration, or a file with it"},
			{Name: "runtime", Member: "runtimeConfig", Kind: "json",
				About: "heartbeat and placement, or a file with it"}}},
	{Use: "delete AGENT", Short: "Delete an agent; its open issues become unassigned", Method: "DELETE",
		Path: "/api/agents/{agent:1}", Says: "deleted"},
	{Use: "wake AGENT", Short: "Wake an agent for a reason", Method: "POST", Path: "/api/agents/{agent:1}/wakeup",
		Says: "{id} {status}", Fixed: map[string]any{"source": "on_demand"},
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why"},
			{Name: "fresh", Member: "forceFreshSession", Kind: "bool",
				About: "forget the session that it would resume"}}},
	{Use: "wakeups AGENT", Short: "List why an agent was woken, the newest first",
		Path:    "/api/agents/{agent:1}/wakeups",
		Columns: "ID=id SOURCE=source STATUS=status REASON=reason ERROR=error AT=requestedAt"},
	{Use: "state AGENT", Short: "Show the totals of an agent's runs", Path: "/api/agents/{agent:1}/runtime-state"},
	{Use: "sessions AGENT", Short: "List the saved sessions of an agent, by task",
		Path:    "/api/agents/{agent:1}/task-sessions",
		Columns: "TASK=taskKey ADAPTER=adapterType SESSION=sessionDisplayId UPDATED=updatedAt"},
	{Use: "reset AGENT", Short: "Delete an agent's saved sessions", Method: "POST",
		Path: "/api/agents/{agent:1}/runtime-state/reset-session", Says: "reset",
		Fields: []cli.Field{{Name: "task", Member: "taskKey", About: "only that of a task"}}},
	{Use: "keys AGENT", Short: "List the API keys of an agent, without their tokens",
		Path: "/api/agents/{agent:1}/keys", Columns: "ID=id NAME=name CREATED=createdAt REVOKED=revokedAt"},
	{Use: "revoke-key AGENT KEY", Short: "Revoke an API key of an agent", Method: "DELETE",
		Path: "/api/agents/{agent:1}/keys/{2}", Says: "revoked"},
	{Use: "skills AGENT", Short: "List the skills that an agent has", Path: "/api/agents/{agent:1}/skills",
		Rows: "entries", Columns: "SKILL=name STATE=state KEY=key"},
	{Use: "teach AGENT", Short: "Set the skills of an agent, by their keys", Method: "POST",
		Path: "/api/agents/{agent:1}/skills/sync", Says: "{adapterType} {mode}",
		Fields: []cli.Field{{Name: "skill", Member: "desiredSkills", Kind: "list",
			About: "keys of skills; repeat for more"}}},
	{Use: "clear-error AGENT", Short: "Let an agent work again after an error", Method: "POST",
		Path: "/api/agents/{agent:1}/clear-error", Says: "{name} {status}"},
	{Use: "approve AGENT", Short: "Hire an agent that waits for approval", Method: "POST",
		Path: "/api/agents/{agent:1}/approve", Says: "{name} {status}"},
	{Use: "budget AGENT CENTS", Short: "Set what an agent may spend in a month, in cents", Method: "PATCH",
		Path: "/api/agents/{agent:1}/budgets", Says: "{name} {budgetMonthlyCents}",
		Fields: []cli.Field{{Place: 2, Member: "budgetMonthlyCents", Kind: "int"}}},
}

// memoryVerbs are the rows of selvage agent memory.
var memoryVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the memories of an agent", Path: "/api/agents/{agent:1}/memory",
		Columns: "KEY=key UPDATED=updatedAt TEXT=value",
		Fields:  []cli.Field{{Name: "words", Member: "q", About: "what fits these words, best first"}}},
	{Use: "show AGENT KEY", Short: "Show a memory of an agent", Path: "/api/agents/{agent:1}/memory/{2}",
		Says: "{value}"},
	{Use: "put AGENT KEY TEXT", Short: "Write a memory of an agent", Method: "PUT",
		Path: "/api/agents/{agent:1}/memory/{2}", Says: "{key}", Fields: []cli.Field{{Place: 3, Member: "value"}}},
	{Use: "forget AGENT KEY", Short: "Delete a memory of an agent", Method: "DELETE",
		Path: "/api/agents/{agent:1}/memory/{2}", Says: "forgotten"},
}

// messageVerbs are the rows of selvage agent message.
var messageVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the messages that wait for an agent, oldest first",
		Path: "/api/agents/{agent:1}/messages", Columns: "ID=id FROM=fromId TYPE=type AT=sentAt"},
	{Use: "send AGENT JSON", Short: "Send a message to an agent, which takes it when it runs next", Method: "POST",
		Path: "/api/agents/{agent:1}/messages", Says: done,
		Fields: []cli.Field{{Place: 2, Name: "JSON", Member: "payload", Kind: "json"},
			{Name: "type", Member: "type", About: "what kind of message it is"},
			{Name: "about", Member: "correlationId", About: "what it belongs to"}}},
}
