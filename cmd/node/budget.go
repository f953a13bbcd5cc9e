package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type policyRow struct {
	ScopeType  string `json:"scopeType"`
	ScopeName  string `json:"scopeName"`
	WindowKind string `json:"windowKind"`
	Amount     int64  `json:"amount"`
	Observed   int64  `json:"observedAmount"`
	Held       int64  `json:"heldAmount"`
	Warn       int64  `json:"warnPercent"`
	HardStop   bool   `json:"hardStopEnabled"`
	Status     string `json:"status"`
	Paused     bool   `json:"paused"`
}

func (p policyRow) cells() []string {
	limit, status := "none", p.Status
	if p.Amount > 0 {
		limit = cli.Cents(p.Amount)
	}
	if p.Paused {
		status += ", paused"
	}
	stop := "warns at " + strconv.FormatInt(p.Warn, 10) + "%"
	if p.HardStop {
		stop += ", then stops"
	}
	return []string{p.ScopeType, cli.Dash(p.ScopeName), p.WindowKind, cli.Cents(p.Observed), cli.Cents(p.Held), limit,
		status, stop}
}

const policyHeader = "SCOPE NAME WINDOW SPENT HELD LIMIT STATUS RULE"

func budgetCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("budget", "Set limits on spending, and resolve what they stopped", budgetSet(c), budgetList(c),
		budgetResolve(c), budgetHeld(c))
}

func budgetSet(c *cli.CLI) *cobra.Command {
	var agent, project, window string
	var warn int64
	var soft bool
	cmd := &cobra.Command{
		Use: "set CENTS", Short: "Limit what a company, an agent or a project may spend", Args: cobra.ExactArgs(1),
		Long: `Limit what a company, an agent or a project may spend in a window, in whole
cents; 0 sets none. At 80 percent a warning is given, at the limit the scope is
paused. Windows are calendar_month_utc, calendar_week_utc, calendar_day_utc,
lifetime, rolling_24h, rolling_7d and rolling_30d; without --window it is the
calendar month, of a project its lifetime.`,
		Example: `  selvage budget set 500000
  selvage budget set 1500 --agent Bob --window rolling_24h
  selvage budget set 20000 --project Rig --warn 50`,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || amount < 0 {
				return cli.Misuse(errors.New("CENTS is a whole number from 0"))
			}
			if agent != "" && project != "" {
				return cli.Misuse(errors.New("--agent and --project exclude each other"))
			}
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"scopeType": "company", "scopeId": company, "amount": amount}
			switch {
			case agent != "":
				body["scopeType"] = "agent"
				body["scopeId"], err = c.AgentID(cmd, agent)
			case project != "":
				body["scopeType"] = "project"
				body["scopeId"], err = c.Resolve(cmd, "project", project)
			}
			if err != nil {
				return err
			}
			if window != "" {
				body["windowKind"] = window
			}
			if cmd.Flags().Changed("warn") {
				body["warnPercent"] = warn
			}
			if cmd.Flags().Changed("soft") {
				body["hardStopEnabled"] = !soft
			}
			var row policyRow
			return c.Send(cmd, "POST", "/api/companies/"+company+"/budgets/policies", body, &row, func(w io.Writer) {
				cli.Table(w, policyHeader, [][]string{row.cells()})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "ID or name of the agent that it is for, instead of the company")
	f.StringVar(&project, "project", "", "ID or name of the project that it is for")
	f.StringVar(&window, "window", "",
		"calendar_month_utc, calendar_week_utc, calendar_day_utc, rolling_24h, rolling_7d, rolling_30d or lifetime")
	f.Int64Var(&warn, "warn", 80, "percent at which a warning is given, 1 to 99")
	f.BoolVar(&soft, "soft", false, "warn only, do not stop")
	return cmd
}

func budgetList(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the limits of a company and what is spent of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			var row struct {
				Policies []policyRow `json:"policies"`
			}
			return c.Show(cmd, "/api/companies/"+company+"/budgets/overview", &row, func(w io.Writer) {
				var t [][]string
				for _, p := range row.Policies {
					t = append(t, p.cells())
				}
				cli.Table(w, policyHeader, t)
			})
		},
	}
}

type incidentRow struct {
	ID        string `json:"id"`
	ScopeType string `json:"scopeType"`
	ScopeName string `json:"scopeName"`
	Window    string `json:"windowKind"`
	Threshold string `json:"thresholdType"`
	Limit     int64  `json:"amountLimit"`
	Observed  int64  `json:"amountObserved"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
}

func budgetResolve(c *cli.CLI) *cobra.Command {
	var amount int64
	cmd := &cobra.Command{
		Use: "resolve INCIDENT", Short: "Raise the limit and continue, or keep the scope paused",
		Args:    cobra.ExactArgs(1),
		Example: `  selvage budget resolve 0199c0de-… --raise 2000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, "/api/companies/{company}/budget-incidents/{1}/resolve", args)
			if err != nil {
				return err
			}
			body := map[string]any{"action": "keep_paused"}
			if cmd.Flags().Changed("raise") {
				body = map[string]any{"action": "raise_budget_and_resume", "amount": amount}
			}
			var row incidentRow
			return c.Send(cmd, "POST", path, body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.ID, row.Status)
			})
		},
	}
	cmd.Flags().Int64Var(&amount, "raise", 0, "the new limit in cents; without it the scope stays paused")
	return cmd
}

type heldRow struct {
	ID        string `json:"id"`
	Agent     string `json:"agentId"`
	Node      string `json:"nodeName"`
	Amount    int64  `json:"amount"`
	Spent     int64  `json:"spent"`
	Held      int64  `json:"held"`
	Slice     bool   `json:"slice"`
	Lost      bool   `json:"lost"`
	Uncertain bool   `json:"uncertain"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
}

func (r heldRow) cells(w io.Writer) []string {
	kind, status := "call", r.Status
	if r.Slice {
		kind = "slice"
	}
	switch {
	case r.Status != "open":
	case r.Uncertain:
		status = "uncertain"
	case r.Lost:
		status = "lost"
	}
	return []string{r.ID, kind, r.Agent, cli.Dash(r.Node), cli.Cents(r.Spent), cli.Cents(r.Held), status,
		cli.When(w, r.CreatedAt)}
}

const heldHeader = "ID KIND AGENT NODE SPENT HELD STATUS SINCE"

func budgetHeld(c *cli.CLI) *cobra.Command {
	var lost bool
	list := &cobra.Command{
		Use: "list", Short: "List the money that nodes have set aside for calls", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			path := "/api/companies/" + company + "/budgets/reservations"
			if lost {
				path += "?lost=true"
			}
			var rows []heldRow
			return c.Show(cmd, path, &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, r.cells(w))
				}
				cli.Table(w, heldHeader, t)
			})
		},
	}
	list.Flags().BoolVar(&lost, "lost", false, "only what a lost node holds, or one that does not know what it spent")

	var spent int64
	var note string
	off := &cobra.Command{
		Use: "writeoff ID", Short: "Write off what a lost node holds", Args: cobra.ExactArgs(1),
		Long: `End what a lost node holds, so that it does not count against budgets any more.
All of it is booked as spent, unless --spent says how much was. When the node
comes back and tells after all, what it tells is not booked twice.`,
		Example: `  selvage budget held list --lost
  selvage budget held writeoff 0199c0de-… --spent 0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, "/api/companies/{company}/budgets/reservations/{1}/write-off", args)
			if err != nil {
				return err
			}
			body := map[string]any{}
			if cmd.Flags().Changed("spent") {
				body["spentCents"] = spent
			}
			if note != "" {
				body["note"] = note
			}
			var row heldRow
			return c.Send(cmd, "POST", path, body, &row, func(w io.Writer) {
				cli.Table(w, heldHeader, [][]string{row.cells(w)})
			})
		},
	}
	off.Flags().Int64Var(&spent, "spent", 0, "cents of it that were spent (default: all)")
	off.Flags().StringVar(&note, "note", "", "why, for the record")
	return cli.Group("held", "Money that is set aside for calls under way", list, off)
}

// budgetVerbs are the rows of selvage budget.
var budgetVerbs = []cli.Verb{
	{Use: "incidents", Short: "List warnings and stops, newest first",
		Path:   "/api/companies/{company}/budget-incidents",
		Fields: []cli.Field{{Name: "status", Member: "status", About: "only open, resolved or dismissed ones"}},
		Columns: "INCIDENT=id SCOPE=scopeType NAME=scopeName THRESHOLD=thresholdType SPENT=cents:amountObserved " +
			"LIMIT=cents:amountLimit WINDOW=windowKind STATUS=status SINCE=createdAt"},
}
