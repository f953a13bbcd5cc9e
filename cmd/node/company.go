package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Rows are the part of the API's answers that the tables show; with -o json the
// answer is printed as it came.
type companyRow struct {
	ID                 string `json:"id"`
	Name               string `json:"name"`
	Status             string `json:"status"`
	IssuePrefix        string `json:"issuePrefix"`
	IssueCounter       int64  `json:"issueCounter"`
	BudgetMonthlyCents int64  `json:"budgetMonthlyCents"`
	SpentMonthlyCents  int64  `json:"spentMonthlyCents"`
}

func companyCommand(c *cli.CLI) *cobra.Command {
	dashboard := &cobra.Command{
		Use: "dashboard", Short: "Show a company's figures", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
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
			return c.Show(cmd, "/api/companies/"+company+"/dashboard", &d, func(w io.Writer) {
				fmt.Fprintf(w, "agents  %d active, %d running, %d paused, %d in error\n", d.Agents.Active, d.Agents.Running, d.Agents.Paused, d.Agents.Error)
				fmt.Fprintf(w, "tasks   %d open, %d in progress, %d blocked, %d done\n", d.Tasks.Open, d.Tasks.InProgress, d.Tasks.Blocked, d.Tasks.Done)
				fmt.Fprintf(w, "money   %s of %s this month, %s held\n", cli.Cents(d.Costs.Spend), cli.Cents(d.Costs.Budget), cli.Cents(d.Costs.Held))
			})
		},
	}
	return cli.Group("company", "Create, show, export and import companies", dashboard, statsCommand(c), gatesCommand(c), exportCommand(c), importCommand(c))
}

func costCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("cost", "Show what was spent, by agent, project or model")
}

// statsCommand counts what companies have.
func statsCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count agents and issues, by company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var companies []companyRow
			if err := c.Call(cmd.Context(), "GET", "/api/companies", nil, &companies); err != nil {
				return err
			}
			var counts map[string]struct {
				Agents int64 `json:"agentCount"`
				Issues int64 `json:"issueCount"`
			}
			return c.Show(cmd, "/api/companies/stats", &counts, func(w io.Writer) {
				var t [][]string
				for _, r := range companies {
					n := counts[r.ID]
					t = append(t, []string{r.IssuePrefix, r.Name, strconv.FormatInt(n.Agents, 10), strconv.FormatInt(n.Issues, 10)})
				}
				cli.Table(w, "PREFIX NAME AGENTS ISSUES", t)
			})
		},
	}
}
