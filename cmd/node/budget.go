package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
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
		limit = cents(p.Amount)
	}
	if p.Paused {
		status += ", paused"
	}
	stop := "warns at " + strconv.FormatInt(p.Warn, 10) + "%"
	if p.HardStop {
		stop += ", then stops"
	}
	return []string{p.ScopeType, dash(p.ScopeName), p.WindowKind, cents(p.Observed), cents(p.Held), limit, status, stop}
}

const policyHeader = "SCOPE NAME WINDOW SPENT HELD LIMIT STATUS RULE"

func budgetCommand(c *cli) *cobra.Command {
	return group("budget", "Set limits on spending, and resolve what they stopped", budgetSet(c), budgetList(c), budgetIncidents(c), budgetResolve(c), budgetHeld(c))
}

func budgetSet(c *cli) *cobra.Command {
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
				return misuse{errors.New("CENTS is a whole number from 0")}
			}
			if agent != "" && project != "" {
				return misuse{errors.New("--agent and --project exclude each other")}
			}
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"scopeType": "company", "scopeId": company, "amount": amount}
			switch {
			case agent != "":
				body["scopeType"] = "agent"
				body["scopeId"], err = c.agentID(cmd, agent)
			case project != "":
				body["scopeType"] = "project"
				body["scopeId"], err = c.resolve(cmd, "project", project)
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
			return c.send(cmd, "POST", "/api/companies/"+company+"/budgets/policies", body, &row, func(w io.Writer) {
				table(w, policyHeader, [][]string{row.cells()})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "ID or name of the agent that it is for, instead of the company")
	f.StringVar(&project, "project", "", "ID or name of the project that it is for")
	f.StringVar(&window, "window", "", "calendar_month_utc, calendar_week_utc, calendar_day_utc, rolling_24h, rolling_7d, rolling_30d or lifetime")
	f.Int64Var(&warn, "warn", 80, "percent at which a warning is given, 1 to 99")
	f.BoolVar(&soft, "soft", false, "warn only, do not stop")
	return cmd
}

func budgetList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the limits of a company and what is spent of them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var row struct {
				Policies []policyRow `json:"policies"`
			}
			return c.show(cmd, "/api/companies/"+company+"/budgets/overview", &row, func(w io.Writer) {
				var t [][]string
				for _, p := range row.Policies {
					t = append(t, p.cells())
				}
				table(w, policyHeader, t)
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

func budgetIncidents(c *cli) *cobra.Command {
	var status string
	cmd := &cobra.Command{
		Use: "incidents", Short: "List warnings and stops, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			path := "/api/companies/" + company + "/budget-incidents"
			if status != "" {
				path += "?" + url.Values{"status": {status}}.Encode()
			}
			var rows []incidentRow
			return c.show(cmd, path, &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.ID, r.ScopeType, dash(r.ScopeName), r.Threshold, cents(r.Observed), cents(r.Limit), r.Window, r.Status, ago(r.CreatedAt)})
				}
				table(w, "INCIDENT SCOPE NAME THRESHOLD SPENT LIMIT WINDOW STATUS SINCE", t)
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only open, resolved or dismissed ones")
	return cmd
}

func budgetResolve(c *cli) *cobra.Command {
	var amount int64
	cmd := &cobra.Command{
		Use: "resolve INCIDENT", Short: "Raise the limit and continue, or keep the scope paused", Args: cobra.ExactArgs(1),
		Example: `  selvage budget resolve 0199c0de-… --raise 2000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.filled(cmd, "/api/companies/{company}/budget-incidents/{1}/resolve", args)
			if err != nil {
				return err
			}
			body := map[string]any{"action": "keep_paused"}
			if cmd.Flags().Changed("raise") {
				body = map[string]any{"action": "raise_budget_and_resume", "amount": amount}
			}
			var row incidentRow
			return c.send(cmd, "POST", path, body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.ID, row.Status)
			})
		},
	}
	cmd.Flags().Int64Var(&amount, "raise", 0, "the new limit in cents; without it the scope stays paused")
	return cmd
}
