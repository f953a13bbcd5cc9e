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
	return cli.Group("agent", "Hire, configure, wake, pause and list agents", create, hireCommand(c), mayCommand(c), instructionsCommand(c))
}

// mayCommand shows or changes what an agent may do; what is not given stays.
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

// agentRoles are what an agent can be.
var agentRoles = strings.Join(entity.Roles[:len(entity.Roles)-1], ", ") + " or " + entity.Roles[len(entity.Roles)-1]

// A newAgent is what flags say of an agent that is made or hired.
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

// body returns the company and what it is told of the agent.
func (a *newAgent) body(c *cli.CLI, cmd *cobra.Command, name string) (company string, body map[string]any, err error) {
	if company, err = c.CompanyID(cmd); err != nil {
		return "", nil, err
	}
	config, err := a.how.config()
	if err != nil {
		return "", nil, err
	}
	body = map[string]any{"name": name, "role": a.role, "adapterType": a.how.adapter, "adapterConfig": config, "budgetMonthlyCents": a.budget}
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

// adapterFlags say how an agent is invoked.
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

// config is the adapter's configuration: the object that was given, and over it
// what has flags of its own.
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

func agents(c *cli.CLI, cmd *cobra.Command, company string) (rows []agentRow, err error) {
	return rows, c.Call(cmd.Context(), "GET", "/api/companies/"+company+"/agents", nil, &rows)
}
