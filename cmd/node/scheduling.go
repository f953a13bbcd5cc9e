package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
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

// A placement is why a run is on its node, or waits.
type placement struct {
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

func (p placement) print(w io.Writer) {
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
}

// A runGate is what the gate said during a run: what it permitted without more is in the decision log, the rest on the
// chain.
type runGate struct {
	Counts    map[string]uint64 `json:"counts"` // of the decisions on the chain, by decision
	Decisions []struct {
		ID       string   `json:"id"`
		Decision string   `json:"decision"`
		Action   string   `json:"action"`
		Reason   string   `json:"reason"`
		Rules    []string `json:"spoken_rules"`
		Count    uint64   `json:"count"`
	} `json:"decisions"`
	Log     *decisionLog `json:"log"`     // as the command that closed the run says, null: it says nothing
	LogSays string       `json:"logSays"` // whether the log is that one, and where it is
}

// maxExplained bounds the decisions that are shown of a run.
const maxExplained = 200

// gateOf reads what the gate said during a run, and checks its decision log.
func gateOf(c *cli.CLI, cmd *cobra.Command, id string) (g runGate, err error) {
	var run runDetail
	if err := c.Call(cmd.Context(), "GET", "/api/heartbeat-runs/"+url.PathEscape(id), nil, &run); err != nil {
		return g, err
	}
	if err := c.Call(cmd.Context(), "GET",
		fmt.Sprintf("/api/v1/govern/decisions?runId=%s&companyId=%s&limit=%d", url.QueryEscape(id),
			url.QueryEscape(run.CompanyID), maxExplained), nil, &g.Decisions); err != nil {
		return g, err
	}
	g.Counts, g.Log = map[string]uint64{}, run.DecisionLog
	for _, d := range g.Decisions {
		g.Counts[d.Decision] += max(d.Count, 1)
	}
	nodes, _ := nodeNames(c, cmd) // without names IDs are shown
	at := "on node " + cmp.Or(nodes[run.NodeID], run.NodeID)
	switch said := run.DecisionLog; {
	case said == nil && run.FinishedAt == nil:
		g.LogSays = "the run is not closed yet"
	case said == nil:
		g.LogSays = "none yet: its node was lost, or did not close the run; it tells of its log when it is back"
	case said.Bytes == 0:
		g.LogSays = "empty: nothing was permitted without more"
	default:
		if said.KeptAt != "" {
			at = "kept on several nodes since " + said.KeptAt
		}
		hash, size, gone := readDecisions(c, cmd, id, io.Discard)
		switch {
		case gone != nil:
			g.LogSays = fmt.Sprintf("%s, can not be read: %v", at, gone)
		case hash != said.SHA256 || size != said.Bytes:
			g.LogSays = at + ", and NOT the one that was closed: its SHA-256 is " + hash
		default:
			g.LogSays = at + ", its SHA-256 is the one that was closed"
		}
		if said.Late {
			g.LogSays += "; told late, so how many permits it lacks is not known"
		}
	}
	return g, nil
}

func (g runGate) print(w io.Writer) {
	permits, lost := uint64(0), uint64(0)
	if g.Log != nil {
		permits, lost = g.Log.Permits, g.Log.Lost
	}
	fmt.Fprintf(w, "\ngate: %d permits in the decision log, %d not in it; on the chain: %d denied, %d escalated, "+
		"%d permitted with a "+
		"warning, %d permitted at high risk\n", permits, lost, g.Counts["deny"], g.Counts["escalate"], g.Counts["warn"],
		g.Counts["permit"])
	fmt.Fprintln(w, "decision log:", g.LogSays)
	var t [][]string
	for _, d := range g.Decisions {
		t = append(t, []string{d.ID, d.Decision, d.Action, strconv.FormatUint(max(d.Count, 1), 10),
			cli.Dash(strings.Join(d.Rules, ",")), d.Reason})
	}
	if len(t) > 0 {
		cli.Table(w, "DECISION SAID ACTION TIMES RULES REASON", t)
	}
}

func explainCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "explain RUN", Short: "Explain why a run is on its node or waits, and what the gate said during it",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.RunID(cmd, args[0])
			if err != nil {
				return err
			}
			var out struct {
				placement
				Gate runGate `json:"gate"`
			}
			if err := c.Call(cmd.Context(), "GET", "/api/heartbeat-runs/"+url.PathEscape(id)+"/placement", nil,
				&out.placement); err != nil {
				return err
			}
			if out.Gate, err = gateOf(c, cmd, id); err != nil {
				return err
			}
			return c.Print(cmd, out, func(w io.Writer) {
				out.placement.print(w)
				out.Gate.print(w)
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
