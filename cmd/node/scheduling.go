package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type stopRow struct {
	Stopped bool `json:"stopped"`
	Running int  `json:"running"`
	Closing int  `json:"closing"`
	Since   *struct {
		Reason string `json:"reason"`
		At     string `json:"at"`
	} `json:"since"`
}

func (s stopRow) print(w io.Writer) {
	if s.Stopped {
		fmt.Fprintf(w, "stopped, %d runs at work, %d being ended\n", s.Running, s.Closing)
		return
	}
	fmt.Fprintf(w, "not stopped, %d runs at work\n", s.Running)
}

// stopWait bounds how long the command waits until all runs have ended.
const stopWait = 30 * time.Second

func stopCommand(c *cli.CLI) *cobra.Command {
	var all bool
	var reason string
	cmd := &cobra.Command{
		Use: "stop --all", Short: "Stop everything at once, on all nodes", Args: cobra.NoArgs,
		Long: `Stop everything at once, on all nodes: every run of every company is cancelled,
none starts, and no model call is paid. A node that can not be reached stops by
itself when its lease ends. What waits keeps its place until selvage resume.`,
		Example: `  selvage stop --all --reason 'the deploy agent runs wild'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !all {
				return cli.Misuse(errors.New("say --all: this stops the whole mesh; one run is cancelled with selvage run " +
					"cancel, one agent paused with selvage agent pause"))
			}
			var row stopRow
			if err := c.Call(cmd.Context(), "POST", "/api/v1/mesh/stop", map[string]any{"reason": reason}, &row); err != nil {
				return err
			}
			for deadline := time.Now().Add(stopWait); row.Running+row.Closing > 0 && time.Now().
				Before(deadline); time.Sleep(200 * time.Millisecond) {
				if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/stop", nil, &row); err != nil {
					return err
				}
			}
			return c.Print(cmd, row, row.print)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop the whole mesh")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func explainCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "explain RUN", Short: "Explain why a run is on its node, or why it waits", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.RunID(cmd, args[0])
			if err != nil {
				return err
			}
			var p struct {
				RunID      string `json:"runId"`
				Status     string `json:"status"`
				Summary    string `json:"summary"`
				Candidates []struct {
					NodeID   string  `json:"nodeId"`
					Name     string  `json:"name"`
					Refusal  *string `json:"refusal"`
					Affinity *string `json:"affinity"`
					Score    int64   `json:"score"`
					Slots    int64   `json:"slots"`
					Load     int64   `json:"load"`
				} `json:"candidates"`
			}
			return c.Show(cmd, "/api/heartbeat-runs/"+url.PathEscape(id)+"/placement", &p, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s, %s\n", p.RunID, p.Status, p.Summary)
				var t [][]string
				for _, r := range p.Candidates {
					score, why := strconv.FormatInt(r.Score, 10), fmt.Sprintf("%d‰ of its slots, %d‰ of its processors are taken",
						r.Slots, r.Load)
					if r.Affinity != nil {
						why += "; drawn by its " + *r.Affinity
					}
					if r.Refusal != nil {
						score, why = "-", *r.Refusal
					}
					t = append(t, []string{cli.Dash(r.Name), score, why})
				}
				cli.Table(w, "NODE SCORE WHY", t)
			})
		},
	}
}

func drainCommand(c *cli.CLI) *cobra.Command {
	var reason string
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Place no new runs on a node, and wait until it has none", Args: cobra.ExactArgs(1),
		Long: `Give a node no new runs, let it give back what it has not begun and hand
leadership on, and wait until what it has begun is over.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "node", args[0])
			if err != nil {
				return err
			}
			var row memberRow
			if err := c.Call(cmd.Context(), "POST", "/api/v1/mesh/nodes/"+id+"/cordon",
				map[string]any{"drain": true, "reason": reason}, &row); err != nil {
				return err
			}
			if err := drained(c, cmd, &row, wait); err != nil {
				return err
			}
			err = c.Print(cmd, row, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s, %d runs\n", row.Name, row.Scheduling,
					row.Runs)
			})
			if err == nil && row.Runs > 0 {
				err = fmt.Errorf("%s still has %d runs", row.Name, row.Runs)
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "how long to wait for its runs")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

// drained waits until a node has no runs, or the time has passed.
func drained(c *cli.CLI, cmd *cobra.Command, row *memberRow, wait time.Duration) error {
	far := c.Progress(cmd, "draining "+row.Name)
	defer far.End()
	for deadline := time.Now().Add(wait); row.Runs > 0 && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		far.Say(fmt.Sprintf("%d runs left", row.Runs))
		var rows []memberRow
		if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/members", nil, &rows); err != nil {
			return err
		}
		for _, m := range rows {
			if m.ID == row.ID {
				*row = m
			}
		}
	}
	return nil
}
