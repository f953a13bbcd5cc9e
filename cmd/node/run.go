package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	LivenessState    *string `json:"livenessState"`
	Context          struct {
		IssueID string `json:"issueId"`
		Reason  string `json:"wakeReason"`
	} `json:"contextSnapshot"`
	NodeID  string `json:"nodeId"`
	Waiting *struct {
		Text string  `json:"text"`
		Do   *string `json:"do"`
	} `json:"waiting"`
}

// A runDetail is a run with its subject, its course and its results.
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
	DecisionLog    *decisionLog    `json:"decisionLog"`
}

// A decisionLog is what the command that closed a run says of its decision log.
type decisionLog struct {
	Permits uint64 `json:"permits"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Lost    uint64 `json:"lost"`
	KeptAt  string `json:"keptAt"`
	Late    bool   `json:"late"`
}

// print writes a run for people. names are the agents' names, nodes the nodes' names.
func (r runDetail) print(w io.Writer, names, nodes map[string]string) {
	fmt.Fprintf(w, "%s %s, %s, created %s\n", r.ID, r.Status, r.InvocationSource, cli.When(w, r.CreatedAt))
	line := func(name, text string) {
		if text != "" && text != "null" {
			fmt.Fprintf(w, "%-8s %s\n", name, cli.Visible(text))
		}
	}
	line("agent", cmp.Or(names[r.AgentID], r.AgentID))
	line("node", cmp.Or(nodes[r.NodeID], r.NodeID))
	if d := r.DecisionLog; d != nil && d.Permits+d.Lost > 0 {
		line("permits", fmt.Sprintf("%d in the decision log, %d lost (run log --decisions)", d.Permits, d.Lost))
	}
	line("reason", r.Context.Reason)
	line("issue", r.Context.IssueID)
	if r.StartedAt != nil {
		line("started", cli.When(w, *r.StartedAt))
	}
	if r.FinishedAt != nil {
		line("ended", cli.When(w, *r.FinishedAt))
	}
	if r.ExitCode != nil {
		line("exit", strconv.Itoa(*r.ExitCode))
	}
	line("usage", cli.InPairs(r.Usage))
	if r.RetryOf != nil {
		line("retry of", *r.RetryOf)
	}
	if r.RetryAt != nil {
		line("retry", cli.When(w, *r.RetryAt))
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

// why returns what went wrong with a run, or what it waits for.
func (r runRow) why() string {
	switch {
	case r.Error != nil:
		return *r.Error
	case r.Waiting != nil:
		return "waits: " + r.Waiting.Text
	}
	return "-"
}

// idle reports whether a timer woke the agent for nothing: the run succeeded, had no
// issue, and wrote nothing.
func (r runRow) idle() bool {
	return r.InvocationSource == "timer" && r.Status == "succeeded" && r.Context.IssueID == "" && r.LivenessState != nil &&
		*r.LivenessState == "empty_response"
}

// idleTimers counts the idle timer runs of one agent at the beginning of a list.
func idleTimers(rows []runRow) (n int) {
	for n < len(rows) && rows[n].idle() && rows[n].AgentID == rows[0].AgentID {
		n++
	}
	return n
}

// nodeNames returns the nodes' names by ID.
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
	var all bool
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
				for n := 0; n < len(rows); n++ {
					r := rows[n]
					why := r.why()
					if same := idleTimers(rows[n:]); same > 1 && !all {
						why = fmt.Sprintf("%d timers that did nothing (--all lists them)", same)
						n += same - 1
					}
					t = append(t, []string{r.ID, cmp.Or(names[r.AgentID], cli.Short(r.AgentID)), r.Status, r.InvocationSource,
						cli.Dash(nodes[r.NodeID]), cli.When(w, r.CreatedAt), why})
				}
				cli.Table(w, "RUN AGENT STATUS SOURCE NODE CREATED WHY", t)
			})
		},
	}
	list.Flags().StringVar(&agent, "agent", "", "only this agent's, by name or ID")
	list.Flags().StringVar(&status, "status", "", "only of these statuses, separated by commas, such as queued,running")
	list.Flags().StringVar(&issue, "issue", "", "only those that were woken for this issue")
	list.Flags().BoolVar(&all, "all", false, "list each timer that did nothing")
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
				names, _ := c.AgentNames(cmd, row.CompanyID) // without names IDs are shown
				nodes, _ := nodeNames(c, cmd)
				row.print(w, names, nodes)
			})
		},
	}
	var follow, decisions bool
	log := &cobra.Command{
		Use: "log RUN", Aliases: []string{"logs"}, Short: "Print the log of a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.RunID(cmd, args[0])
			if err != nil {
				return err
			}
			if decisions {
				return runDecisions(c, cmd, id)
			}
			return runLog(c, cmd, id, follow)
		},
	}
	log.Flags().BoolVar(&decisions, "decisions", false,
		"print what the gate permitted at the run's node, and check it against the command that closed the run")
	log.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run is over")
	return cli.Group("run", "List, follow, explain and cancel runs of agents", list, show, log, explainCommand(c))
}

// runLog prints a run's log, with follow until the run has ended.
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

// readDecisions writes the decision log of a run to w, and returns its SHA-256 and size.
func readDecisions(c *cli.CLI, cmd *cobra.Command, id string, w io.Writer) (hash string, size int64, gone error) {
	sum := sha256.New()
	for next, more := int64(0), true; more && gone == nil; more = next > 0 {
		var content string
		content, next, gone = c.LogPage(cmd.Context(), "/api/heartbeat-runs/"+id+"/log", "&decisions=true", next)
		fmt.Fprint(w, content)
		_, _ = io.WriteString(sum, content)
		size += int64(len(content))
	}
	return hex.EncodeToString(sum.Sum(nil)), size, gone
}

// runDecisions prints the decision log of a run, and checks it against what the command that closed the run says of it.
func runDecisions(c *cli.CLI, cmd *cobra.Command, id string) error {
	var run runDetail
	if err := c.Call(cmd.Context(), "GET", "/api/heartbeat-runs/"+id, nil, &run); err != nil {
		return err
	}
	said := run.DecisionLog
	got, size, gone := readDecisions(c, cmd, id, cmd.OutOrStdout())
	teller := "the command that closed the run"
	if said != nil && said.Late {
		teller = "its node, when it was back,"
	}
	switch {
	case said == nil && run.FinishedAt == nil:
		fmt.Fprintln(cmd.ErrOrStderr(), "The run is not closed yet, so there is nothing to check the log against.")
	case said == nil:
		return errors.New("the command that closed the run names no decision log: its node was lost, or did not " +
			"close the run; it tells of its log when it is back")
	case said.Permits > 0 && gone != nil:
		return fmt.Errorf("the run had %d permits in its decision log, and the log can not be read: %w", said.Permits, gone)
	case got != said.SHA256 || size != said.Bytes:
		return fmt.Errorf("the decision log has %d bytes and SHA-256 %s, but %s says %d and %s",
			size, got, teller, said.Bytes, said.SHA256)
	default:
		fmt.Fprintf(cmd.ErrOrStderr(), "%d permits, SHA-256 %s, as %s says.\n", said.Permits, got, teller)
		if said.Lost > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d more are not in it: it was full, or could not be written.\n", said.Lost)
		}
		if said.Late {
			fmt.Fprintln(cmd.ErrOrStderr(),
				"Its node was lost while the run went on and told of it later: how many are not in it is not known.")
		}
	}
	return nil
}

// logsCommand prints the log of the newest run of an agent, an issue or a company.
func logsCommand(c *cli.CLI) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs [WHAT]", Short: "Print the log of a run, or of the newest of an agent or issue",
		Args: cobra.MaximumNArgs(1),
		Long: `Print the log of a run: of the one whose ID is given, else of the newest one of an agent
or an issue, else of the newest of the company.`,
		Example: `  selvage logs
  selvage logs Bob --follow
  selvage logs ACM-1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := newestRun(c, cmd, args)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "run", run.ID+",", run.Status)
			return runLog(c, cmd, run.ID, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run is over")
	return cmd
}

// newestRun returns the named run, or the newest one of an agent, an issue or a company.
func newestRun(c *cli.CLI, cmd *cobra.Command, args []string) (runRow, error) {
	company, err := c.CompanyID(cmd)
	if err != nil {
		return runRow{}, err
	}
	q, of := url.Values{"limit": {"1"}}, "this company"
	if len(args) > 0 {
		of = args[0]
		issue, err := c.EntityID(cmd, of)
		if err != nil {
			return runRow{}, err
		}
		if issue != of {
			q.Set("issueId", issue)
		} else if agent, err := c.AgentID(cmd, of); err == nil && len(of) != cli.UUIDLen {
			q.Set("agentId", agent)
		} else {
			return namedRun(c, cmd, of)
		}
	}
	var rows []runRow
	if err := c.Call(cmd.Context(), "GET", "/api/companies/"+company+"/heartbeat-runs?"+q.Encode(), nil,
		&rows); err != nil {
		return runRow{}, err
	}
	if len(rows) == 0 {
		return runRow{}, fmt.Errorf("%s has no runs yet: selvage agent invoke AGENT starts one", of)
	}
	return rows[0], nil
}

func namedRun(c *cli.CLI, cmd *cobra.Command, ref string) (row runRow, err error) {
	id, err := c.RunID(cmd, ref)
	if err != nil {
		return row, fmt.Errorf("no agent, issue or run %q: see selvage agent list, issue list and run list", ref)
	}
	return row, c.Call(cmd.Context(), "GET", "/api/heartbeat-runs/"+id, nil, &row)
}

// runVerbs are the rows of selvage run.
var runVerbs = []cli.Verb{
	{Use: "cancel RUN", Short: "Cancel a run", Method: "POST", Path: "/api/heartbeat-runs/{run:1}/cancel",
		Says: "cancelled"},
	{Use: "events RUN", Short: "List the steps of a run", Path: "/api/heartbeat-runs/{run:1}/events?limit=1000",
		Columns: "SEQ=seq TIME=createdAt LEVEL=level EVENT=eventType MESSAGE=message"},
	{Use: "issues RUN", Short: "List the issues that a run is about", Path: "/api/heartbeat-runs/{run:1}/issues",
		Columns: "ID=identifier STATUS=status PRIORITY=priority TITLE=title"},
	{Use: "operations RUN", Short: "List the commands that prepared the workspace of a run",
		Path: "/api/heartbeat-runs/{run:1}/workspace-operations", Columns: operationTable},
	{Use: "judge RUN DECISION", Short: "Judge a silent run: continue, dismissed_false_positive or snooze",
		Method: "POST", Path: "/api/heartbeat-runs/{run:1}/watchdog-decisions", Says: "{decision}",
		Fields: []cli.Field{{Place: 2, Member: "decision"},
			{Name: "until", Member: "snoozedUntil", About: "of a snooze: ISO instant"},
			{Name: "reason", Member: "reason", About: "why"}}},
	{Use: "live", Short: "List the runs that are queued or at work", Path: "/api/companies/{company}/live-runs",
		Columns: "ID=id AGENT=agentName STATUS=status ISSUE=issueId SILENT=outputSilence.level STARTED=startedAt"},
}
