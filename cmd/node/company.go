package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The rows below are the part of the API's answers that the tables show; with
// -o json the answer is printed as it came.
type (
	companyRow struct {
		ID                 string `json:"id"`
		Name               string `json:"name"`
		Status             string `json:"status"`
		IssuePrefix        string `json:"issuePrefix"`
		IssueCounter       int64  `json:"issueCounter"`
		BudgetMonthlyCents int64  `json:"budgetMonthlyCents"`
		SpentMonthlyCents  int64  `json:"spentMonthlyCents"`
	}
	agentRow struct {
		ID                 string  `json:"id"`
		Name               string  `json:"name"`
		Role               string  `json:"role"`
		Status             string  `json:"status"`
		AdapterType        string  `json:"adapterType"`
		ReportsTo          *string `json:"reportsTo"`
		BudgetMonthlyCents int64   `json:"budgetMonthlyCents"`
		SpentMonthlyCents  int64   `json:"spentMonthlyCents"`
	}
	issueRow struct {
		ID              string  `json:"id"`
		Identifier      string  `json:"identifier"`
		Title           string  `json:"title"`
		Description     *string `json:"description"`
		Status          string  `json:"status"`
		Priority        string  `json:"priority"`
		AssigneeAgentID *string `json:"assigneeAgentId"`
		UpdatedAt       string  `json:"updatedAt"`
	}
	commentRow struct {
		AuthorAgentID *string `json:"authorAgentId"`
		Body          string  `json:"body"`
		CreatedAt     string  `json:"createdAt"`
	}
	runRow struct {
		ID               string  `json:"id"`
		AgentID          string  `json:"agentId"`
		Status           string  `json:"status"`
		InvocationSource string  `json:"invocationSource"`
		Error            *string `json:"error"`
		ErrorCode        *string `json:"errorCode"`
		CreatedAt        string  `json:"createdAt"`
		NodeID           string  `json:"nodeId"`
	}
)

func companyCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the companies", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []companyRow
			return c.show(cmd, "/api/companies", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.IssuePrefix, r.Name, r.Status, strconv.FormatInt(r.IssueCounter, 10), cents(r.SpentMonthlyCents), cents(r.BudgetMonthlyCents), r.ID})
				}
				table(w, "PREFIX NAME STATUS ISSUES SPENT BUDGET ID", t)
			})
		},
	}
	var description string
	var budget int64
	create := &cobra.Command{
		Use: "create NAME", Short: "Create a company", Args: cobra.ExactArgs(1),
		Example: `  selvage company create "Acme Robotics" --budget 500000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var row companyRow
			return c.send(cmd, "POST", "/api/companies", map[string]any{"name": args[0], "description": description, "budgetMonthlyCents": budget}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", row.IssuePrefix, row.Name, row.ID)
			})
		},
	}
	create.Flags().StringVar(&description, "description", "", "what the company is for")
	create.Flags().Int64Var(&budget, "budget", 0, "monthly budget in cents; 0 sets none")
	dashboard := &cobra.Command{
		Use: "dashboard", Short: "Show a company's figures", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var d struct {
				Agents struct{ Active, Running, Paused, Error int64 } `json:"agents"`
				Tasks  struct {
					Open, Blocked, Done int64
					InProgress          int64 `json:"inProgress"`
				} `json:"tasks"`
				Costs struct {
					Spend  int64 `json:"monthSpendCents"`
					Budget int64 `json:"monthBudgetCents"`
					Held   int64 `json:"heldCents"`
				} `json:"costs"`
			}
			return c.show(cmd, "/api/companies/"+company+"/dashboard", &d, func(w io.Writer) {
				fmt.Fprintf(w, "agents  %d active, %d running, %d paused, %d in error\n", d.Agents.Active, d.Agents.Running, d.Agents.Paused, d.Agents.Error)
				fmt.Fprintf(w, "tasks   %d open, %d in progress, %d blocked, %d done\n", d.Tasks.Open, d.Tasks.InProgress, d.Tasks.Blocked, d.Tasks.Done)
				fmt.Fprintf(w, "money   %s of %s this month, %s held\n", cents(d.Costs.Spend), cents(d.Costs.Budget), cents(d.Costs.Held))
			})
		},
	}
	return group("company", "Companies", list, create, dashboard, gatesCommand(c), exportCommand(c), importCommand(c))
}

func agentCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the agents of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var rows []agentRow
			return c.show(cmd, "/api/companies/"+company+"/agents", &rows, func(w io.Writer) {
				names := map[string]string{}
				for _, r := range rows {
					names[r.ID] = r.Name
				}
				var t [][]string
				for _, r := range rows {
					boss := "-"
					if r.ReportsTo != nil {
						boss = dash(names[*r.ReportsTo])
					}
					t = append(t, []string{r.Name, r.Role, r.Status, r.AdapterType, boss, cents(r.SpentMonthlyCents), cents(r.BudgetMonthlyCents), r.ID})
				}
				table(w, "NAME ROLE STATUS ADAPTER REPORTS-TO SPENT BUDGET ID", t)
			})
		},
	}
	var role, reportsTo string
	var how adapterFlags
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an agent", Args: cobra.ExactArgs(1),
		Example: `  selvage agent create Bob --role engineer --command /usr/local/bin/worker --arg --once
  selvage agent create Ada --adapter wasm --config '{"module": "/srv/ada.wasm"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			config, err := how.config()
			if err != nil {
				return err
			}
			body := map[string]any{"name": args[0], "role": role, "adapterType": how.adapter, "adapterConfig": config}
			if reportsTo != "" {
				if body["reportsTo"], err = c.agentID(cmd, reportsTo); err != nil {
					return err
				}
			}
			var row agentRow
			return c.send(cmd, "POST", "/api/companies/"+company+"/agents", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", row.Name, row.Status, row.ID)
			})
		},
	}
	create.Flags().StringVar(&role, "role", "general", "role in the company")
	create.Flags().StringVar(&reportsTo, "reports-to", "", "ID or name of the manager")
	how.add(create.Flags())
	act := func(verb, path, short string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " AGENT", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				id, err := c.agentID(cmd, args[0])
				if err != nil {
					return err
				}
				var row struct {
					ID     string `json:"id"`
					Status string `json:"status"`
				}
				return c.send(cmd, "POST", "/api/agents/"+id+path, map[string]any{}, &row, func(w io.Writer) {
					fmt.Fprintf(w, "%s %s\n", row.ID, row.Status)
				})
			},
		}
	}
	key := &cobra.Command{
		Use: "key AGENT NAME", Short: "Make an API key, shown once", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.agentID(cmd, args[0])
			if err != nil {
				return err
			}
			var row struct {
				Token string `json:"token"`
			}
			return c.send(cmd, "POST", "/api/agents/"+id+"/keys", map[string]any{"name": args[1]}, &row, func(w io.Writer) {
				fmt.Fprintln(w, row.Token)
			})
		},
	}
	agent := group("agent", "Agents of a company", list, create, hireCommand(c), key,
		act("invoke", "/heartbeat/invoke", "Start a heartbeat run now"),
		act("pause", "/pause", "Pause an agent"),
		act("resume", "/resume", "Let a paused agent work again"),
		act("terminate", "/terminate", "End an agent for good"))
	agent.AddCommand(revisionsCommands(c)...)
	return agent
}

func issueCommand(c *cli) *cobra.Command {
	show := &cobra.Command{
		Use: "show ISSUE", Short: "Show an issue and its comments", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var row issueRow
			var comments []commentRow
			if c.output != "json" {
				if err := c.call(cmd.Context(), "GET", "/api/issues/"+url.PathEscape(args[0])+"/comments?order=asc", nil, &comments); err != nil {
					return err
				}
			}
			return c.show(cmd, "/api/issues/"+url.PathEscape(args[0]), &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s  %s\nstatus %s, priority %s, updated %s\n", row.Identifier, row.Title, row.Status, row.Priority, ago(row.UpdatedAt))
				if row.Description != nil {
					fmt.Fprintf(w, "\n%s\n", *row.Description)
				}
				for _, m := range comments {
					who := "board"
					if m.AuthorAgentID != nil {
						who = "agent " + short(*m.AuthorAgentID)
					}
					fmt.Fprintf(w, "\n--- %s, %s\n%s\n", who, ago(m.CreatedAt), m.Body)
				}
			})
		},
	}
	rest := append(interactionCommands(c), attachCommand(c), attachmentsCommand(c), downloadCommand(c), documentCommand(c))
	return group("issue", "Issues of a company", append(append(relationCommands(c), show), rest...)...)
}

func runCommand(c *cli) *cobra.Command {
	var agent string
	var limit int
	list := &cobra.Command{
		Use: "list", Short: "List the newest runs of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			names, err := c.agentNames(cmd, company)
			if err != nil {
				return err
			}
			var members []memberRow
			if err := c.call(cmd.Context(), "GET", "/api/v1/mesh/members", nil, &members); err != nil {
				return err
			}
			nodes := map[string]string{}
			for _, m := range members {
				nodes[m.ID] = m.Name
			}
			var rows []runRow
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if agent != "" {
				id, err := c.agentID(cmd, agent)
				if err != nil {
					return err
				}
				q.Set("agentId", id)
			}
			return c.show(cmd, "/api/companies/"+company+"/heartbeat-runs?"+q.Encode(), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					why := "-"
					if r.Error != nil {
						why = *r.Error
					}
					t = append(t, []string{r.ID, dash(names[r.AgentID]), r.Status, r.InvocationSource, dash(nodes[r.NodeID]), ago(r.CreatedAt), why})
				}
				table(w, "RUN AGENT STATUS SOURCE NODE CREATED ERROR", t)
			})
		},
	}
	list.Flags().StringVar(&agent, "agent", "", "only this agent's, by name or ID")
	list.Flags().IntVar(&limit, "limit", 50, "at most so many")
	show := &cobra.Command{
		Use: "show RUN", Short: "Show a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.runID(cmd, args[0])
			if err != nil {
				return err
			}
			var row runRow
			return c.show(cmd, "/api/heartbeat-runs/"+id, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s, %s, created %s\n", row.ID, row.Status, row.InvocationSource, ago(row.CreatedAt))
				if row.Error != nil {
					fmt.Fprintln(w, *row.Error)
				}
			})
		},
	}
	var follow bool
	log := &cobra.Command{
		Use: "log RUN", Aliases: []string{"logs"}, Short: "Print what a run has written", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.runID(cmd, args[0])
			if err != nil {
				return err
			}
			return c.runLog(cmd, id, follow)
		},
	}
	log.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run is over")
	cancel := &cobra.Command{
		Use: "cancel RUN", Short: "Cancel a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.runID(cmd, args[0])
			if err != nil {
				return err
			}
			var row runRow
			return c.send(cmd, "POST", "/api/heartbeat-runs/"+id+"/cancel", map[string]any{}, &row, func(w io.Writer) {
				fmt.Fprintln(w, "cancelled")
			})
		},
	}
	return group("run", "Heartbeat runs", list, show, log, runEvents(c), explainCommand(c), cancel)
}

func costCommand(c *cli) *cobra.Command {
	return group("cost", "Costs of a company")
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
