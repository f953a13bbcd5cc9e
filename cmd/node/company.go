package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Rows are the parts of the API's answers that tables show; -o json prints the answer
// unchanged.
type companyRow struct {
	ID                 string `json:"id"`
	Name               string `json:"name"`
	Status             string `json:"status"`
	IssuePrefix        string `json:"issuePrefix"`
	IssueCounter       int64  `json:"issueCounter"`
	BudgetMonthlyCents int64  `json:"budgetMonthlyCents"`
	SpentMonthlyCents  int64  `json:"spentMonthlyCents"`
}

// A dashboard is the figures of a company's work.
type dashboard struct {
	Agents struct {
		Active  int64 `json:"active"`
		Running int64 `json:"running"`
		Paused  int64 `json:"paused"`
		Error   int64 `json:"error"`
	} `json:"agents"`
	Tasks struct {
		Open       int64 `json:"open"`
		Blocked    int64 `json:"blocked"`
		Done       int64 `json:"done"`
		InProgress int64 `json:"inProgress"`
	} `json:"tasks"`
	Costs struct {
		Spend  int64 `json:"monthSpendCents"`
		Budget int64 `json:"monthBudgetCents"`
		Held   int64 `json:"heldCents"`
	} `json:"costs"`
}

func (d dashboard) print(w io.Writer) {
	fmt.Fprintf(w, "agents    %d active, %d running, %d paused, %d in error\n", d.Agents.Active, d.Agents.Running,
		d.Agents.Paused, d.Agents.Error)
	fmt.Fprintf(w, "tasks     %d open, %d in progress, %d blocked, %d done\n", d.Tasks.Open, d.Tasks.InProgress,
		d.Tasks.Blocked, d.Tasks.Done)
	of := "without a limit"
	if d.Costs.Budget > 0 {
		of = "of " + cli.Cents(d.Costs.Budget)
	}
	fmt.Fprintf(w, "money     %s %s this month, %s held\n", cli.Cents(d.Costs.Spend), of, cli.Cents(d.Costs.Held))
}

func companyCommand(c *cli.CLI) *cobra.Command {
	figures := &cobra.Command{
		Use: "dashboard", Short: "Show a company's figures", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			var d dashboard
			return c.Show(cmd, "/api/companies/"+company+"/dashboard", &d, func(w io.Writer) { d.print(w) })
		},
	}
	return cli.Group("company", "Create, show, export and import companies", figures, useCompany(c), statsCommand(c),
		gatesCommand(c), exportCommand(c), importCommand(c))
}

// statsCommand shows what companies contain, in figures.
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

// useCompany stores the default company for the URL of the API.
func useCompany(c *cli.CLI) *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "use [COMPANY]", Short: "Choose the company that commands mean without --company",
		Args: cobra.MaximumNArgs(1),
		Long: `Choose the company that commands mean without --company. It is kept beside the
credentials, for each URL of an API; $SELVAGE_COMPANY goes before it. Without COMPANY it
tells which one is chosen.`,
		Example: `  selvage company use ACM
  selvage company use --none`,
		RunE: func(cmd *cobra.Command, args []string) error {
			mine, err := c.Mine()
			if err != nil {
				return err
			}
			id := mine.Company
			switch {
			case none && len(args) > 0:
				return cli.Misuse(errors.New("--none and COMPANY exclude each other"))
			case none:
				id = ""
			case len(args) > 0:
				if id, err = c.Resolve(cmd, "company", args[0]); err != nil {
					return err
				}
			}
			if id != mine.Company {
				if err := c.Change(func(m *cli.Credential) { m.Company = id }); err != nil {
					return err
				}
			}
			if os.Getenv("SELVAGE_COMPANY") != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), "$SELVAGE_COMPANY is set, and goes before it")
			}
			if id == "" {
				return c.Print(cmd, map[string]any{}, func(w io.Writer) { fmt.Fprintln(w, "no company is chosen") })
			}
			var row companyRow
			return c.Show(cmd, "/api/companies/"+id, &row, func(w io.Writer) {
				fmt.Fprintf(w, "commands mean %s %s\n", row.IssuePrefix, row.Name)
			})
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "choose none")
	return cmd
}

// companyVerbs are the rows of selvage company.
var companyVerbs = []cli.Verb{
	{Use: "list", Short: "List the companies", Path: "/api/companies",
		Columns: "PREFIX=issuePrefix NAME=name STATUS=status ISSUES=issueCounter SPENT=spentMonthlyCents " +
			"BUDGET=budgetMonthlyCents ID=id"},
	{Use: "create NAME", Short: "Create a company",
		Example: `  selvage company create "Acme Robotics" --budget 500000`, Method: "POST", Path: "/api/companies",
		Says: "{issuePrefix} {name} {id}",
		Fields: []cli.Field{{Place: 1, Member: "name"},
			{Name: "description", Member: "description", About: "what the company is for"},
			{Name: "budget", Member: "budgetMonthlyCents", Kind: "int",
				About: "monthly budget in cents; 0 sets none"}}},
	{Use: "show [COMPANY]", Short: "Show a company", Path: "/api/companies/{company:1}",
		Lines: "prefix=issuePrefix name=name description=description status=status+pauseReason " +
			"issues=issueCounter spent_this_month=spentMonthlyCents budget=budgetMonthlyCents " +
			"held=heldCents board_approves_hires=requireBoardApprovalForNewAgents " +
			"board_approves_strategy=requireBoardApprovalForCeoStrategy created=createdAt id=id"},
	{Use: "update [COMPANY]", Short: "Change a company", Method: "PATCH", Path: "/api/companies/{company:1}",
		Says: "{issuePrefix} {name}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, withDescription,
			{Name: "budget", Member: "budgetMonthlyCents", Kind: "int", About: "monthly budget in cents"},
			{Name: "color", Member: "brandColor", About: "of its mark, such as #ff8800"},
			{Name: "share-feedback", Member: "feedbackDataSharingEnabled", Kind: "bool",
				About: "votes may be handed on"}}},
	{Use: "badges [COMPANY]", Short: "Count what waits for the board",
		Path: "/api/companies/{company:1}/sidebar-badges"},
	{Use: "pause [COMPANY]", Short: "Pause a company", Method: "POST", Path: "/api/companies/{company:1}/pause",
		Says: "{name} {status}"},
	{Use: "resume [COMPANY]", Short: "Resume a company", Method: "POST", Path: "/api/companies/{company:1}/resume",
		Says: "{name} {status}"},
	{Use: "archive [COMPANY]", Short: "Archive a company; it stops working", Method: "POST",
		Path: "/api/companies/{company:1}/archive", Says: "{name} {status}"},
	{Use: "delete COMPANY", Short: "Delete a company and everything in it", Method: "DELETE",
		Path: "/api/companies/{company:1}", Says: "deleted"},
	{Use: "left-out", Short: "List what an export of a company leaves out",
		Path: "/api/companies/{company}/export/fidelity", Rows: "omissions",
		Columns: "WHAT=kind COUNT=count WHY=reason"},
}
