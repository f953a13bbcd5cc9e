package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
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

// when returns what fires a trigger.
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

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return cli.Dash(*s)
}

func routineCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("routine", "Create issues on a schedule or by a webhook", routineShow(c),
		cli.Group("trigger", "Triggers of a routine", triggerAdd(c),
			triggerRotate(c)))
}

func routineShow(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "show ROUTINE", Short: "Show a routine and its triggers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "routine", args[0])
			if err != nil {
				return err
			}
			var row routineRow
			return c.Show(cmd, "/api/routines/"+id, &row, func(w io.Writer) {
				names, _ := c.AgentNames(cmd, row.CompanyID) // without names IDs are shown
				fmt.Fprintf(w, "%s  %s\n%s, %s, %s\n", row.ID, row.Title, row.Status, row.Concurrency, row.CatchUp)
				if who := orDash(row.AssigneeAgentID); who != "-" {
					fmt.Fprintf(w, "assignee %s, priority %s\n", cmp.Or(names[who], who), row.Priority)
				}
				if row.Description != nil {
					fmt.Fprintf(w, "\n%s\n", *row.Description)
				}
				var t [][]string
				for _, tr := range row.Triggers {
					t = append(t, []string{tr.ID, tr.Kind, cli.When(w, orDash(tr.NextRunAt)), tr.when(), orDash(tr.Label)})
				}
				if len(t) > 0 {
					fmt.Fprintln(w)
					cli.Table(w, "TRIGGER KIND NEXT WHEN LABEL", t)
				}
			})
		},
	}
}

func triggerAdd(c *cli.CLI) *cobra.Command {
	var cron, zone, webhook, label string
	var api bool
	cmd := &cobra.Command{
		Use: "add ROUTINE", Short: "Add a schedule, a webhook or an API trigger to a routine", Args: cobra.ExactArgs(1),
		Example: `  selvage routine trigger add 'Back up' --cron '30 2 * * *' --zone Europe/Berlin
  selvage routine trigger add 'Back up' --webhook hmac_sha256`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "routine", args[0])
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
				return cli.Misuse(errors.New("one of --cron, --webhook and --on-api is needed"))
			}
			if label != "" {
				body["label"] = label
			}
			return sendTrigger(c, cmd, "POST", "/api/routines/"+id+"/triggers", body)
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

// sendTrigger prints a trigger, with its secret if the answer has one.
func sendTrigger(c *cli.CLI, cmd *cobra.Command, method, path string, body any) error {
	var raw json.RawMessage
	return c.Send(cmd, method, path, body, &raw, func(w io.Writer) {
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

func triggerRotate(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "rotate [ROUTINE] TRIGGER", Short: "Give a webhook a new secret; the old one is void at once",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, "/api/routine-triggers/{2}/rotate-secret", cli.Whole(cmd.Use, args))
			if err != nil {
				return err
			}
			return sendTrigger(c, cmd, "POST", path, nil)
		},
	}
}

// triggerVerbs are the rows of selvage routine trigger.
var triggerVerbs = []cli.Verb{
	{Use: "remove [ROUTINE] TRIGGER", Short: "Remove a trigger", Method: "DELETE", Path: "/api/routine-triggers/{2}",
		Example: "  selvage routine trigger remove 'Back up' webhook",
		Says:    "removed"},
	{Use: "update [ROUTINE] TRIGGER", Short: "Change a trigger, or turn it on or off", Method: "PATCH",
		Path: "/api/routine-triggers/{2}", Says: "{id} {kind} {enabled}",
		Fields: []cli.Field{{Name: "enabled", Member: "enabled", Kind: "bool", About: "it fires"},
			{Name: "cron", Member: "cronExpression", About: "a schedule: minute hour day month weekday"},
			{Name: "zone", Member: "timezone", About: "whose clocks the schedule goes by"},
			{Name: "label", Member: "label", About: "what it is for"}}},
}

// routineVerbs are the rows of selvage routine.
var routineVerbs = []cli.Verb{
	{Use: "create TITLE", Short: "Create a routine", Method: "POST", Path: "/api/companies/{company}/routines",
		Says: "{id} {status} {title}",
		Long: `Create a routine: an issue with this title is made each time that it fires.
{{name}} in title and description is a blank that a run fills in. Variables of
--env-file reach the runs of its issues; they are read from a file because a
command line is for everybody to see.`,
		Example: `  selvage routine create 'Report of {{date}}' --assignee Bob --description @report.md
  selvage routine create 'Back up' --assignee Bob --concurrency skip_if_active --env-file backup.env`,
		Fields: []cli.Field{{Place: 1, Member: "title"},
			{Name: "assignee", Member: "assigneeAgentId", Kind: "agent",
				About: "ID or name of the agent that does the work; without one it is a paused draft"},
			{Name: "project", Member: "projectId", Kind: "project",
				About: "ID or name of the project of its issues"},
			{Name: "description", Member: "description", Kind: "text or file",
				About: "text of its issues, or @FILE that holds it"},
			{Name: "concurrency", Member: "concurrencyPolicy",
				About: "coalesce_if_active (default), skip_if_active or always_enqueue"},
			{Name: "catch-up", Member: "catchUpPolicy", About: "skip_missed (default) or enqueue_missed_with_cap"},
			{Name: "priority", Member: "priority", About: "critical, high, medium or low"},
			{Name: "env-file", Member: "env", Kind: "variables",
				About: "file with a variable NAME=value on each line (repeat for more)"}}},
	{Use: "list", Short: "List the routines of a company", Path: "/api/companies/{company}/routines",
		Columns: "ROUTINE=id STATUS=status ASSIGNEE=agent:assigneeAgentId TRIGGERS=n:triggers " +
			"FIRED=lastTriggeredAt TITLE=title"},
	{Use: "run ROUTINE", Short: "Run a routine now",
		Example: `  selvage routine run 'Report of {{date}}' --var topic=sales`, Method: "POST",
		Path: "/api/routines/{routine:1}/run", Says: "{id} {status}",
		Fields: []cli.Field{{Name: "var", Member: "variables", Kind: "pairs",
			About: "NAME=value of a blank of its text (repeat for more)"}}},
	{Use: "times CRON", Short: "List the next times of a schedule, before one saves it",
		Example: `  selvage routine times '30 2 * * 1-5' --zone Europe/Berlin`, Path: "/api/v1/schedules/next",
		Columns: "LOCAL=local UTC=at",
		Fields: []cli.Field{{Place: 1, Member: "cronExpression"},
			{Name: "zone", Member: "timezone", Value: "UTC", About: "whose clocks the schedule goes by"},
			{Name: "count", Member: "count", Kind: "int", Value: "10", About: "how many times"}}},
	{Use: "runs ROUTINE", Short: "List the newest runs of a routine and what became of them",
		Path: "/api/routines/{routine:1}/runs",
		Columns: "RUN=id:id SOURCE=source STATUS=status FIRED=triggeredAt " +
			"ABOUT=linkedIssue.identifier+linkedIssue.title|failureReason"},
	{Use: "pause ROUTINE", Short: "Let a routine rest", Method: "PATCH", Path: "/api/routines/{routine:1}",
		Says: "{title} {status}", Fixed: map[string]any{"status": "paused"}},
	{Use: "resume ROUTINE", Short: "Let a routine go on; what fell into its rest is not made up for",
		Method: "PATCH", Path: "/api/routines/{routine:1}", Says: "{title} {status}",
		Fixed: map[string]any{"status": "active"}},
	{Use: "delete ROUTINE", Short: "Delete a routine with its triggers and runs; its issues stay", Method: "DELETE",
		Path: "/api/routines/{routine:1}", Says: "{id} deleted"},
	{Use: "update ROUTINE", Short: "Change a routine", Method: "PATCH", Path: "/api/routines/{routine:1}",
		Says: "{id} {status} {title}",
		Fields: []cli.Field{{Name: "title", Member: "title", About: "its new title"}, withDescription,
			{Name: "assignee", Member: "assigneeAgentId", Kind: "agent",
				About: "agent that does the work; empty for none"},
			{Name: "project", Member: "projectId", Kind: "project", About: "project of its issues; empty for none"},
			{Name: "goal", Member: "goalId", Kind: "goal", About: "goal of its issues; empty for none"},
			{Name: "priority", Member: "priority", About: "critical, high, medium or low"},
			{Name: "label", Member: "labelIds", Kind: "labels", About: "labels of its issues, all of them"},
			{Name: "concurrency", Member: "concurrencyPolicy",
				About: "coalesce_if_active, skip_if_active or always_enqueue"},
			{Name: "catch-up", Member: "catchUpPolicy", About: "skip_missed or enqueue_missed_with_cap"},
			{Name: "billing-code", Member: "billingCode", About: "where its costs go"}}},
	{Use: "revisions ROUTINE", Short: "List the revisions of a routine, newest first",
		Path: "/api/routines/{routine:1}/revisions", Columns: "ID=id NUMBER=revisionNumber AT=createdAt"},
	{Use: "restore ROUTINE REVISION", Short: "Restore a revision of a routine", Method: "POST",
		Path: "/api/routines/{routine:1}/revisions/{2}/restore", Says: "restored"},
}
