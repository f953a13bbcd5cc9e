package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/node"
)

func autopilotCommand(c *cli.CLI) *cobra.Command {
	state := &cobra.Command{
		Use: "state", Short: "Show how the leader sees the voters, and how many may fail", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s struct {
				Term      uint64 `json:"term"`
				Leader    string `json:"leader"`
				Voters    int    `json:"voters"`
				Most      int    `json:"mostVoters"`
				Tolerance int    `json:"failureTolerance"`
				Healthy   bool   `json:"healthy"`
				Next      string `json:"next"`
				Warning   string `json:"warning"`
				Servers   []struct {
					Node   string `json:"node"`
					Voter  bool   `json:"voter"`
					Leader bool   `json:"leader"`
					May    bool   `json:"mayVote"`
					Zone   string `json:"zone"`
					Alive  bool   `json:"alive"`
					Halted bool   `json:"cannotFollow"`
					Stable int64  `json:"stableSeconds"`
					Gone   int64  `json:"goneSeconds"`
				} `json:"servers"`
				Names map[string]string `json:"names"`
			}
			return c.Show(cmd, "/api/v1/mesh/autopilot", &s, func(w io.Writer) {
				healthy := "healthy"
				if !s.Healthy {
					healthy = "not healthy"
				}
				fmt.Fprintf(w, "%s, %d voters of at most %d, failure tolerance %d\n", healthy, s.Voters, s.Most, s.Tolerance)
				if s.Warning != "" {
					fmt.Fprintln(w, s.Warning)
				}
				if s.Next != "" {
					fmt.Fprintln(w, "next:", s.Next)
				}
				fmt.Fprintln(w)
				var t [][]string
				for _, v := range s.Servers {
					standing := "caught up for " + (time.Duration(v.Stable) * time.Second).String()
					switch {
					case !v.Alive:
						standing = "gone for " + (time.Duration(v.Gone) * time.Second).String()
					case v.Halted:
						standing = "can not follow: upgrade it"
					case v.Leader:
						standing = "leads"
					case s.Leader == "":
						standing = "alive"
					case v.Stable == 0:
						standing = "catching up"
					}
					may := ""
					if !v.May {
						may = ", may not vote"
					}
					t = append(t, []string{cli.Dash(s.Names[v.Node]), cli.Short(v.Node),
						memberRow{Voter: v.Voter, Leader: v.Leader}.role() + may, cli.Dash(v.Zone), standing})
				}
				cli.Table(w, "NODE ID ROLE ZONE STATE", t)
			})
		},
	}
	return cli.Group("autopilot", "Show who votes, and who will", state)
}

// raftVerbs are the subcommands of raft.
func raftVerbs(c *cli.CLI, list func(cmd *cobra.Command, _ []string) error) []*cobra.Command {
	peers := &cobra.Command{Use: "list-peers", Short: "List the servers of the consensus group",
		Args: cobra.NoArgs, RunE: list}
	transfer := &cobra.Command{
		Use: "transfer-leader", Short: "Hand leadership to another voter", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Call(cmd.Context(), "POST", "/api/v1/mesh/raft/transfer", map[string]any{}, nil); err != nil {
				return err
			}
			return list(cmd, nil)
		},
	}
	remove := &cobra.Command{
		Use: "remove NODE", Short: "Remove a node from the consensus group; a live member rejoins", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "node", args[0])
			if err != nil {
				return err
			}
			if err := c.Call(cmd.Context(), "POST", "/api/v1/mesh/raft/remove/"+id, map[string]any{}, nil); err != nil {
				return err
			}
			return list(cmd, nil)
		},
	}
	return []*cobra.Command{peers, transfer, remove}
}

// nodeCommands are the subcommands of node that are not single requests.
func nodeCommands(c *cli.CLI) []*cobra.Command {
	var force bool
	remove := &cobra.Command{
		Use: "remove NODE", Short: "Remove a lost node from the mesh", Args: cobra.ExactArgs(1),
		Long: `Strike a node that is gone for good off the mesh: it loses its vote and its
membership, and its runs are given to others. One that still lives leaves by
selvage leave; selvage node revoke throws it out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "node", args[0])
			if err != nil {
				return err
			}
			var rows []memberRow
			if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/members", nil, &rows); err != nil {
				return err
			}
			for _, r := range rows {
				if r.ID == id && r.Status == "alive" && !force {
					return fmt.Errorf("%s is alive: let it leave (selvage --api URL leave), or throw it out (selvage node "+
						"revoke)", args[0])
				}
			}
			if err := c.Call(cmd.Context(), "POST", "/api/v1/mesh/nodes/"+id+"/revoke", map[string]any{"reason": "removed"},
				nil); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "removed", id)
			return nil
		},
	}
	remove.Flags().BoolVar(&force, "force", false, "also when it is alive")
	change := func(cmd *cobra.Command, ref string, body map[string]any) error {
		id, err := c.Resolve(cmd, "node", ref)
		if err != nil {
			return err
		}
		var row struct {
			Name   string   `json:"name"`
			Role   string   `json:"role"`
			Labels []string `json:"labels"`
		}
		return c.Send(cmd, "PATCH", "/api/v1/mesh/nodes/"+id, body, &row, func(w io.Writer) {
			fmt.Fprintf(w, "%s: role %s, labels %s\n", row.Name, cmp.Or(row.Role, "auto"),
				cli.Dash(strings.Join(row.Labels, ",")))
		})
	}
	label := &cobra.Command{
		Use: "label NODE KEY=VALUE...", Short: "Set labels of a node, such as zone=b; KEY- takes one away",
		Args:    cobra.MinimumNArgs(2),
		Example: "  selvage node label box2 zone=attic gpu-",
		RunE: func(cmd *cobra.Command, args []string) error {
			labels := map[string]any{}
			for _, a := range args[1:] {
				key, value, ok := strings.Cut(a, "=")
				if gone, take := strings.CutSuffix(a, "-"); take && !ok {
					labels[gone] = nil
					continue
				}
				labels[key] = value
			}
			return change(cmd, args[0], map[string]any{"labels": labels})
		},
	}
	return []*cobra.Command{remove, label}
}

func doctorCommand(c *cli.CLI) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the node at --api and its mesh, and say what to do", Args: cobra.NoArgs,
		Long: `Tell what is wrong with the node at --api and its mesh, and what to do: quorum,
voters, members, versions, ports, clock, disk, memory, state, files, certificate, backups.
With --dir it looks at the data directory of a node that does not start. It ends
with 1 when something is wrong.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var checks []api.Check
			if dir != "" {
				checks = node.DoctorDir(dir, identity.MachineID())
			} else if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh/doctor", nil, &checks); err != nil {
				return fmt.Errorf("%w\nIf the node does not start, look at its data: selvage doctor --dir DIR", err)
			}
			bad := 0
			err := c.Print(cmd, checks, func(w io.Writer) {
				for _, k := range checks {
					fmt.Fprintf(w, "%-4s  %-11s  %s\n", k.Level, k.Name, k.Found)
					if k.Do != "" {
						fmt.Fprintf(w, "%-4s  %-11s  -> %s\n", "", "", k.Do)
					}
				}
			})
			for _, k := range checks {
				if k.Level == mesh.CheckBad {
					bad++
				}
			}
			if err == nil && bad > 0 {
				return exitStatus(cli.ExitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "data directory of a node that does not run")
	return cmd
}

// bundle lists the files of a debug bundle. None contains data of companies, or any key,
// token or configuration.
var bundle = []struct{ name, path string }{
	{"mesh.json", "/api/v1/mesh"}, {"members.json", "/api/v1/mesh/members"}, {"raft.json", "/api/v1/mesh/raft"},
	{"autopilot.json", "/api/v1/mesh/autopilot"}, {"doctor.json", "/api/v1/mesh/doctor"}, {"health.json", "/api/health"},
	{"ledger.json", "/api/v1/mesh/ledger"}, {"metrics.txt", "/metrics"}, {"stacks.txt", "/api/v1/mesh/stacks"},
	{"log.json", "/api/v1/mesh/logs?limit=1000"},
}

func debugCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "debug FILE", Short: "Collect diagnostics into a .tar.gz, without secrets", Args: cobra.ExactArgs(1),
		Long: `Write what helps to find a fault into a .tar.gz: how the mesh, raft and the
voters stand, the doctor's findings, metrics, goroutines, and the newest lines of
the log of the node at --api. There are no secrets in it, no configurations, and
nothing of what companies have; addresses and names of nodes are.`,
		Example: "  selvage debug bundle.tar.gz",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := node.WriteBackup(args[0], func(w io.Writer) error { return debugBundle(c, cmd, w) })
			if err != nil {
				return err
			}
			return c.Print(cmd, map[string]string{"file": args[0]}, func(w io.Writer) { fmt.Fprintln(w, args[0]) })
		},
	}
}

func debugBundle(c *cli.CLI, cmd *cobra.Command, to io.Writer) error {
	z := gzip.NewWriter(to)
	t := tar.NewWriter(z)
	add := func(name string, b []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: "selvage-debug/" + name, Mode: 0o600, Size: int64(len(b)),
			ModTime: time.Now()}); err != nil {
			return err
		}
		_, err := t.Write(b)
		return err
	}
	got := 0
	for _, f := range bundle {
		b, err := fetch(cmd.Context(), c, f.path)
		if err != nil {
			f.name, b = f.name+".error", []byte(err.Error()+"\n")
		} else {
			got++
		}
		if err := add(f.name, b); err != nil {
			return err
		}
	}
	if got == 0 {
		return c.Call(cmd.Context(), "GET", "/api/health", nil, nil)
	}
	if err := add("version.txt", []byte(version+"\n")); err != nil {
		return err
	}
	return errors.Join(t.Close(), z.Close())
}

// fetch reads one answer from the node's own state, with or without a quorum.
func fetch(ctx context.Context, c *cli.CLI, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	asks, err := c.Reading("")
	if err != nil {
		return nil, err
	}
	res, err := asks.Open(ctx, "GET", path, nil)
	if err != nil {
		return nil, c.NoAnswer(err)
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, cli.MaxAnswer))
}

// monitorEvery is the polling interval of a node's log.
const monitorEvery = 500 * time.Millisecond

func monitorCommand(c *cli.CLI) *cobra.Command {
	var every time.Duration
	var lines int
	var forTime time.Duration
	cmd := &cobra.Command{
		Use: "monitor", Short: "Follow the log and the figures of the node at --api", Args: cobra.NoArgs,
		Long: `Follow the log of the node at --api as it is written, with a line of figures
now and then: height, entries a second, runs, connections, voters.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if forTime > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, forTime)
				defer cancel()
			}
			err := monitor(ctx, c, cmd.OutOrStdout(), every, lines)
			if ctx.Err() != nil {
				return nil // the time has passed, or the user ended it
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&every, "every", 5*time.Second, "how often the figures are shown")
	cmd.Flags().IntVarP(&lines, "lines", "n", 20, "how many lines of the past")
	cmd.Flags().DurationVar(&forTime, "for", 0, "end after this long (default: never)")
	return cmd
}

func monitor(ctx context.Context, c *cli.CLI, w io.Writer, every time.Duration, lines int) error {
	after, limit := uint64(0), max(1, min(lines, 1000))
	var shown time.Time
	var before map[string]float64
	for {
		b, err := fetch(ctx, c, "/api/v1/mesh/logs?"+url.Values{"after": {strconv.FormatUint(after, 10)},
			"limit": {strconv.Itoa(limit)}}.Encode())
		if err != nil {
			return err
		}
		var got []api.LogLine
		if err := json.Unmarshal(b, &got); err != nil {
			return err
		}
		for _, l := range got {
			fmt.Fprintln(w, plainLine(l.Line))
			after = l.Seq
		}
		limit = 1000
		if now := time.Now(); now.Sub(shown) >= every {
			m, err := nodeMetrics(ctx, c)
			if err != nil {
				return err
			}
			rate := 0.0
			if before != nil {
				rate = (m["selvage_ledger_height"] - before["selvage_ledger_height"]) / now.Sub(shown).Seconds()
			}
			fmt.Fprintf(w, "%s  height %.0f, %.1f entries/s, term %.0f, %.0f voters, leads %.0f, %.0f connections, %.0f runs "+
				"here\n", now.UTC().Format("15:04:05Z"),
				m["selvage_ledger_height"], rate, m["selvage_raft_term"], m["selvage_raft_voters"], m["selvage_raft_leader"],
				m["selvage_transport_connections"], m["selvage_runs_here"])
			shown, before = now, m
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(monitorEvery):
		}
	}
}

// nodeMetrics reads the node's metrics without labels.
func nodeMetrics(ctx context.Context, c *cli.CLI) (map[string]float64, error) {
	b, err := fetch(ctx, c, "/metrics")
	if err != nil {
		return nil, err
	}
	m := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.ContainsAny(name, "{#") {
			m[name] = v
		}
	}
	return m, nil
}

// plainLine formats a line of the JSON log as text; other lines stay unchanged.
func plainLine(line string) string {
	d := json.NewDecoder(strings.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return line
	}
	var head, rest bytes.Buffer
	for d.More() {
		key, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return line
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		switch key {
		case "time":
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				text = at.UTC().Format("15:04:05.000Z")
			}
			head.WriteString(text)
		case "level", "msg":
			head.WriteString("  " + text)
		default:
			fmt.Fprintf(&rest, "  %v=%s", key, text)
		}
	}
	return head.String() + rest.String()
}
