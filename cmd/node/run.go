package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type runRow struct {
	ID               string  `json:"id"`
	AgentID          string  `json:"agentId"`
	Status           string  `json:"status"`
	InvocationSource string  `json:"invocationSource"`
	Error            *string `json:"error"`
	ErrorCode        *string `json:"errorCode"`
	CreatedAt        string  `json:"createdAt"`
	NodeID           string  `json:"nodeId"`
	Waiting          *struct {
		Text string  `json:"text"`
		Do   *string `json:"do"`
	} `json:"waiting"`
}

// A runDetail is a run with what it was about, how it went and what came of it.
type runDetail struct {
	runRow
	CompanyID      string          `json:"companyId"`
	StartedAt      *string         `json:"startedAt"`
	FinishedAt     *string         `json:"finishedAt"`
	ExitCode       *int            `json:"exitCode"`
	Usage          json.RawMessage `json:"usageJson"`
	RetryOf        *string         `json:"retryOfRunId"`
	RetryAt        *string         `json:"scheduledRetryAt"`
	LivenessReason *string         `json:"livenessReason"`
	LogBytes       *int64          `json:"logBytes"`
	Context        struct {
		IssueID string `json:"issueId"`
		Reason  string `json:"wakeReason"`
	} `json:"contextSnapshot"`
}

// print writes a run for people; names are those of agents, nodes those of nodes.
func (r runDetail) print(w io.Writer, names, nodes map[string]string) {
	fmt.Fprintf(w, "%s %s, %s, created %s\n", r.ID, r.Status, r.InvocationSource, cli.Ago(r.CreatedAt))
	line := func(name, text string) {
		if text != "" && text != "null" {
			fmt.Fprintf(w, "%-8s %s\n", name, cli.Visible(text))
		}
	}
	line("agent", cmp.Or(names[r.AgentID], r.AgentID))
	line("node", cmp.Or(nodes[r.NodeID], r.NodeID))
	line("reason", r.Context.Reason)
	line("issue", r.Context.IssueID)
	if r.StartedAt != nil {
		line("started", *r.StartedAt)
	}
	if r.FinishedAt != nil {
		line("ended", *r.FinishedAt)
	}
	if r.ExitCode != nil {
		line("exit", strconv.Itoa(*r.ExitCode))
	}
	line("usage", cli.InPairs(r.Usage))
	if r.RetryOf != nil {
		line("retry of", *r.RetryOf)
	}
	if r.RetryAt != nil {
		line("retry at", *r.RetryAt)
	}
	if r.LivenessReason != nil {
		line("note", *r.LivenessReason)
	}
	if r.LogBytes != nil {
		line("log", fmt.Sprintf("%d bytes: selvage run log %s", *r.LogBytes, r.ID))
	}
	if r.Waiting != nil {
		line("waits", r.Waiting.Text)
		if r.Waiting.Do != nil {
			line("to do", *r.Waiting.Do)
		}
	}
	if r.Error != nil {
		line("error", *r.Error)
	}
}

// nodeNames maps node IDs to names.
func nodeNames(c *cli.CLI, cmd *cobra.Command) (map[string]string, error) {
	var rows []memberRow
	err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/members", nil, &rows)
	names := make(map[string]string, len(rows))
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names, err
}

func runCommand(c *cli.CLI) *cobra.Command {
	var agent, status, issue string
	var limit int
	list := &cobra.Command{
		Use: "list", Short: "List the newest runs of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			names, err := c.AgentNames(cmd, company)
			if err != nil {
				return err
			}
			nodes, err := nodeNames(c, cmd)
			if err != nil {
				return err
			}
			var rows []runRow
			q := url.Values{"limit": {strconv.Itoa(limit)}}
			if agent != "" {
				id, err := c.AgentID(cmd, agent)
				if err != nil {
					return err
				}
				q.Set("agentId", id)
			}
			if status != "" {
				q.Set("status", status)
			}
			if issue != "" {
				id, err := c.IssueID(cmd, issue)
				if err != nil {
					return err
				}
				q.Set("issueId", id)
			}
			return c.Show(cmd, "/api/companies/"+company+"/heartbeat-runs?"+q.Encode(), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					why := "-"
					if r.Error != nil {
						why = *r.Error
					} else if r.Waiting != nil {
						why = "waits: " + r.Waiting.Text
					}
					t = append(t, []string{r.ID, cmp.Or(names[r.AgentID], cli.Short(r.AgentID)), r.Status, r.InvocationSource, cli.Dash(nodes[r.NodeID]), cli.Ago(r.CreatedAt), why})
				}
				cli.Table(w, "RUN AGENT STATUS SOURCE NODE CREATED WHY", t)
			})
		},
	}
	list.Flags().StringVar(&agent, "agent", "", "only this agent's, by name or ID")
	list.Flags().StringVar(&status, "status", "", "only of these statuses, separated by commas, such as queued,running")
	list.Flags().StringVar(&issue, "issue", "", "only those that were woken for this issue")
	list.Flags().IntVar(&limit, "limit", 50, "at most so many")
	show := &cobra.Command{
		Use: "show RUN", Short: "Show a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.RunID(cmd, args[0])
			if err != nil {
				return err
			}
			var row runDetail
			return c.Show(cmd, "/api/heartbeat-runs/"+id, &row, func(w io.Writer) {
				names, _ := c.AgentNames(cmd, row.CompanyID) // without them IDs are shown
				nodes, _ := nodeNames(c, cmd)
				row.print(w, names, nodes)
			})
		},
	}
	var follow bool
	log := &cobra.Command{
		Use: "log RUN", Aliases: []string{"logs"}, Short: "Print the log of a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.RunID(cmd, args[0])
			if err != nil {
				return err
			}
			return runLog(c, cmd, id, follow)
		},
	}
	log.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run is over")
	return cli.Group("run", "List, follow, explain and cancel runs of agents", list, show, log, explainCommand(c))
}

// runLog prints a run's log; with follow until the run is over.
func runLog(c *cli.CLI, cmd *cobra.Command, id string, follow bool) error {
	if !follow {
		return c.Log(cmd, "/api/heartbeat-runs/"+id+"/log", nil)
	}
	return c.Log(cmd, "/api/heartbeat-runs/"+id+"/log", func() (over bool, err error) {
		var run runRow
		err = c.Call(cmd.Context(), "GET", "/api/heartbeat-runs/"+id, nil, &run)
		return run.Status != "queued" && run.Status != "running" && run.Status != "scheduled_retry", err
	})
}
