package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

type routineRow struct {
	ID              string       `json:"id"`
	Title           string       `json:"title"`
	Description     *string      `json:"description"`
	Status          string       `json:"status"`
	CompanyID       string       `json:"companyId"`
	Priority        string       `json:"priority"`
	AssigneeAgentID *string      `json:"assigneeAgentId"`
	Concurrency     string       `json:"concurrencyPolicy"`
	CatchUp         string       `json:"catchUpPolicy"`
	Triggers        []triggerRow `json:"triggers"`
	LastTriggeredAt *string      `json:"lastTriggeredAt"`
}

type triggerRow struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	Label     *string `json:"label"`
	Enabled   bool    `json:"enabled"`
	Cron      *string `json:"cronExpression"`
	Zone      *string `json:"timezone"`
	Signing   *string `json:"signingMode"`
	NextRunAt *string `json:"nextRunAt"`
}

// when says what fires a trigger.
func (t triggerRow) when() string {
	switch {
	case !t.Enabled:
		return "off"
	case t.Cron != nil && t.Zone != nil:
		return *t.Cron + " " + *t.Zone
	case t.Signing != nil:
		return *t.Signing
	}
	return "-"
}

type routineRunRow struct {
	ID          string  `json:"id"`
	Source      string  `json:"source"`
	Status      string  `json:"status"`
	TriggeredAt string  `json:"triggeredAt"`
	Failure     *string `json:"failureReason"`
	LinkedIssue *struct {
		Identifier string `json:"identifier"`
		Title      string `json:"title"`
	} `json:"linkedIssue"`
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return dash(*s)
}

func routineCommand(c *cli) *cobra.Command {
	return group("routine", "Create issues on a schedule or by a webhook", routineCreate(c), routineList(c), routineShow(c), routineRun(c), routineRuns(c),
		group("trigger", "Triggers of a routine", triggerAdd(c),
			triggerVerb(c, "remove TRIGGER", "Remove a trigger", "DELETE", ""),
			triggerVerb(c, "rotate TRIGGER", "Give a webhook a new secret; the old one is void at once", "POST", "/rotate-secret")),
		routineStatus(c, "pause", "paused", "Let a routine rest"),
		routineStatus(c, "resume", "active", "Let a routine go on; what fell into its rest is not made up for"),
		routineDelete(c))
}

func routineCreate(c *cli) *cobra.Command {
	var assignee, project, description, concurrency, catchUp, priority string
	var env []string
	cmd := &cobra.Command{
		Use: "create TITLE", Short: "Create a routine", Args: cobra.ExactArgs(1),
		Long: `Create a routine: an issue with this title is made each time that it fires.
{{name}} in title and description is a blank that a run fills in. Variables of
--env-file reach the runs of its issues; they are read from a file because a
command line is for everybody to see.`,
		Example: `  selvage routine create 'Report of {{date}}' --assignee Bob --description @report.md
  selvage routine create 'Back up' --assignee Bob --concurrency skip_if_active --env-file backup.env`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"title": args[0]}
			for key, v := range map[string]string{"concurrencyPolicy": concurrency, "catchUpPolicy": catchUp, "priority": priority} {
				if v != "" {
					body[key] = v
				}
			}
			if description != "" {
				if body["description"], err = textOrFile(cmd, description, maxPayload); err != nil {
					return err
				}
			}
			if assignee != "" {
				if body["assigneeAgentId"], err = c.agentID(cmd, assignee); err != nil {
					return err
				}
			}
			if project != "" {
				if body["projectId"], err = c.resolve(cmd, "project", project); err != nil {
					return err
				}
			}
			vars := map[string]string{}
			for _, path := range env {
				text, err := textOrFile(cmd, "@"+path, maxPayload)
				if err != nil {
					return err
				}
				for _, line := range strings.Split(text, "\n") {
					line = strings.TrimSpace(line)
					if line == "" || strings.HasPrefix(line, "#") {
						continue
					}
					k, v, ok := strings.Cut(line, "=")
					if !ok {
						return misuse{fmt.Errorf("%s: a line is not NAME=value", path)}
					}
					vars[k] = v
				}
			}
			if len(vars) > 0 {
				body["env"] = vars
			}
			var row routineRow
			return c.send(cmd, "POST", "/api/companies/"+company+"/routines", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", row.ID, row.Status, row.Title)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&assignee, "assignee", "", "ID or name of the agent that does the work; without one it is a paused draft")
	f.StringVar(&project, "project", "", "ID or name of the project of its issues")
	f.StringVar(&description, "description", "", "text of its issues, or @FILE that holds it")
	f.StringVar(&concurrency, "concurrency", "", "coalesce_if_active (default), skip_if_active or always_enqueue")
	f.StringVar(&catchUp, "catch-up", "", "skip_missed (default) or enqueue_missed_with_cap")
	f.StringVar(&priority, "priority", "", "critical, high, medium or low")
	f.StringArrayVar(&env, "env-file", nil, "file with a variable NAME=value on each line (repeat for more)")
	return cmd
}

func routineList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the routines of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			names, err := c.agentNames(cmd, company)
			if err != nil {
				return err
			}
			var rows []routineRow
			return c.show(cmd, "/api/companies/"+company+"/routines", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					who, last := "-", "-"
					if r.AssigneeAgentID != nil {
						who = dash(names[*r.AssigneeAgentID])
					}
					if r.LastTriggeredAt != nil {
						last = ago(*r.LastTriggeredAt)
					}
					t = append(t, []string{r.ID, r.Status, who, strconv.Itoa(len(r.Triggers)), last, r.Title})
				}
				table(w, "ROUTINE STATUS ASSIGNEE TRIGGERS FIRED TITLE", t)
			})
		},
	}
}

func routineShow(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "show ROUTINE", Short: "Show a routine and its triggers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			var row routineRow
			return c.show(cmd, "/api/routines/"+id, &row, func(w io.Writer) {
				names, _ := c.agentNames(cmd, row.CompanyID) // without them IDs are shown
				fmt.Fprintf(w, "%s  %s\n%s, %s, %s\n", row.ID, row.Title, row.Status, row.Concurrency, row.CatchUp)
				if who := orDash(row.AssigneeAgentID); who != "-" {
					fmt.Fprintf(w, "assignee %s, priority %s\n", cmp.Or(names[who], who), row.Priority)
				}
				if row.Description != nil {
					fmt.Fprintf(w, "\n%s\n", *row.Description)
				}
				var t [][]string
				for _, tr := range row.Triggers {
					t = append(t, []string{tr.ID, tr.Kind, orDash(tr.NextRunAt), tr.when(), orDash(tr.Label)})
				}
				if len(t) > 0 {
					fmt.Fprintln(w)
					table(w, "TRIGGER KIND NEXT WHEN LABEL", t)
				}
			})
		},
	}
}

func routineRun(c *cli) *cobra.Command {
	var vars []string
	cmd := &cobra.Command{
		Use: "run ROUTINE", Short: "Run a routine now", Args: cobra.ExactArgs(1),
		Example: `  selvage routine run 'Report of {{date}}' --var topic=sales`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			body, values := map[string]any{}, map[string]string{}
			for _, v := range vars {
				k, value, ok := strings.Cut(v, "=")
				if !ok {
					return misuse{errors.New("--var is NAME=value")}
				}
				values[k] = value
			}
			if len(values) > 0 {
				body["variables"] = values
			}
			var row routineRunRow
			return c.send(cmd, "POST", "/api/routines/"+id+"/run", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.ID, row.Status)
			})
		},
	}
	cmd.Flags().StringArrayVar(&vars, "var", nil, "NAME=value of a blank of its text (repeat for more)")
	return cmd
}

func routineRuns(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "runs ROUTINE", Short: "List the newest runs of a routine and what became of them", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			var rows []routineRunRow
			return c.show(cmd, "/api/routines/"+id+"/runs", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					about := orDash(r.Failure)
					if r.LinkedIssue != nil {
						about = r.LinkedIssue.Identifier + " " + r.LinkedIssue.Title
					}
					t = append(t, []string{short(r.ID), r.Source, r.Status, ago(r.TriggeredAt), about})
				}
				table(w, "RUN SOURCE STATUS FIRED ABOUT", t)
			})
		},
	}
}

func routineStatus(c *cli, verb, status, what string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ROUTINE", Short: what, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			var row routineRow
			return c.send(cmd, "PATCH", "/api/routines/"+id, map[string]any{"status": status}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.Title, row.Status)
			})
		},
	}
}

func routineDelete(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "delete ROUTINE", Short: "Delete a routine with its triggers and runs; its issues stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			var row routineRow
			return c.send(cmd, "DELETE", "/api/routines/"+id, nil, &row, func(w io.Writer) { fmt.Fprintf(w, "%s deleted\n", id) })
		},
	}
}

func triggerAdd(c *cli) *cobra.Command {
	var cron, zone, webhook, label string
	var api bool
	cmd := &cobra.Command{
		Use: "add ROUTINE", Short: "Add a schedule, a webhook or an API trigger to a routine", Args: cobra.ExactArgs(1),
		Example: `  selvage routine trigger add 'Back up' --cron '30 2 * * *' --zone Europe/Berlin
  selvage routine trigger add 'Back up' --webhook hmac_sha256`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			body := map[string]any{}
			switch {
			case cron != "" && webhook == "" && !api:
				body["kind"], body["cronExpression"], body["timezone"] = "schedule", cron, zone
			case webhook != "" && cron == "" && !api:
				body["kind"], body["signingMode"] = "webhook", webhook
			case api && cron == "" && webhook == "":
				body["kind"] = "api"
			default:
				return misuse{errors.New("one of --cron, --webhook and --on-api is needed")}
			}
			if label != "" {
				body["label"] = label
			}
			return c.sendTrigger(cmd, "POST", "/api/routines/"+id+"/triggers", body)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cron, "cron", "", "a schedule: minute hour day month weekday")
	f.StringVar(&zone, "zone", "UTC", "whose clocks the schedule goes by, such as Europe/Berlin")
	f.StringVar(&webhook, "webhook", "", "a webhook that is signed by bearer, hmac_sha256, github_hmac, or none")
	f.BoolVar(&api, "on-api", false, "a trigger for calls of the API")
	f.StringVar(&label, "label", "", "what it is for")
	return cmd
}

// sendTrigger prints a trigger, with its secret where the answer holds one.
func (c *cli) sendTrigger(cmd *cobra.Command, method, path string, body any) error {
	var raw json.RawMessage
	return c.send(cmd, method, path, body, &raw, func(w io.Writer) {
		var row struct {
			Trigger triggerRow `json:"trigger"`
			Secret  *struct {
				URL    string `json:"webhookUrl"`
				Secret string `json:"webhookSecret"`
			} `json:"secretMaterial"`
		}
		if json.Unmarshal(raw, &row) != nil || row.Trigger.ID == "" {
			fmt.Fprintln(w, "done")
			return
		}
		fmt.Fprintf(w, "%s %s %s\n", row.Trigger.ID, row.Trigger.Kind, row.Trigger.when())
		if row.Secret != nil {
			fmt.Fprintf(w, "url     %s\nsecret  %s (shown this once)\n", row.Secret.URL, row.Secret.Secret)
		}
	})
}

func triggerVerb(c *cli, use, what, method, path string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: what, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.sendTrigger(cmd, method, "/api/routine-triggers/"+url.PathEscape(args[0])+path, nil)
		},
	}
}
