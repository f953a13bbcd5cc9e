package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// A memberRow is the part of a member of the mesh that tables show.
type memberRow struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	Leader    bool     `json:"leader"`
	Voter     bool     `json:"voter"`
	Addresses []string `json:"addresses"`
	Version   string   `json:"version"`

	Scheduling string `json:"scheduling"`
	Runs       int    `json:"runs"`
}

func (m memberRow) role() string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	case m.Status == "revoked":
		return "-"
	}
	return "non-voter"
}

func membersCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "members", Short: "List the members of the mesh", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []memberRow
			var mesh struct {
				Warning string `json:"warning"`
			}
			if err := c.Call(cmd.Context(), "GET", "/api/v1/mesh", nil, &mesh); err != nil {
				return err
			}
			err := c.Show(cmd, "/api/v1/mesh/members", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					status := r.Status
					if r.Scheduling != "" && r.Scheduling != "open" {
						status += ", " + r.Scheduling
					}
					t = append(t, []string{cli.Dash(r.Name), cli.Short(r.ID), status, r.role(), cli.Dash(r.Version),
						strings.Join(r.Addresses, ",")})
				}
				cli.Table(w, "NODE ID STATUS ROLE VERSION ADDRESS", t)
			})
			if err == nil && mesh.Warning != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), mesh.Warning)
			}
			return err
		},
	}
}

func raftCommand(c *cli.CLI) *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error {
		var s struct {
			State     string `json:"state"`
			Term      uint64 `json:"term"`
			Leader    string `json:"leader"`
			LastIndex uint64 `json:"lastIndex"`
			Applied   uint64 `json:"appliedIndex"`
			Servers   []struct {
				Node   string `json:"node"`
				Voter  bool   `json:"voter"`
				Leader bool   `json:"leader"`
			} `json:"servers"`
		}
		return c.Show(cmd, "/api/v1/mesh/raft", &s, func(w io.Writer) {
			fmt.Fprintf(w, "%s in term %d, leader %s, log at %d, applied %d\n\n", strings.ToLower(s.State), s.Term,
				cli.Dash(cli.Short(s.Leader)), s.LastIndex, s.Applied)
			var t [][]string
			for _, r := range s.Servers {
				t = append(t, []string{cli.Short(r.Node), memberRow{Voter: r.Voter, Leader: r.Leader}.role()})
			}
			cli.Table(w, "NODE ROLE", t)
		})
	}
	raft := &cobra.Command{Use: "raft", Short: "Show the consensus group as the answering node sees it",
		Args: cobra.NoArgs, RunE: list}
	raft.AddCommand(raftVerbs(c, list)...)
	return raft
}

func tokenCommand(c *cli.CLI) *cobra.Command {
	var uses int
	var ttl time.Duration
	create := &cobra.Command{
		Use: "create", Short: "Create a join token, shown once", Args: cobra.NoArgs,
		Example: `  selvage token create --uses 1 --ttl 1h > token; scp token box2: ; selvage up --join @token   # on box2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var t struct {
				Token string `json:"token"`
			}
			return c.Send(cmd, "POST", "/api/v1/mesh/tokens", map[string]any{"uses": uses, "ttlSeconds": int(ttl / time.Second)},
				&t, func(w io.Writer) {
					fmt.Fprintln(w, t.Token)
				})
		},
	}
	create.Flags().IntVar(&uses, "uses", 1, "how many nodes may join with it")
	create.Flags().DurationVar(&ttl, "ttl", time.Hour, "how long it is good for")
	list := &cobra.Command{
		Use: "list", Short: "List the join tokens", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []struct {
				ID        string `json:"id"`
				Uses      int    `json:"uses"`
				Used      int    `json:"used"`
				ExpiresAt string `json:"expiresAt"`
				Usable    bool   `json:"usable"`
				Owner     bool   `json:"owner"`
			}
			return c.Show(cmd, "/api/v1/mesh/tokens", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					state := "usable"
					if !r.Usable {
						state = "over"
					}
					used := strconv.Itoa(r.Used) + "/" + strconv.Itoa(r.Uses)
					if r.Owner {
						used, r.ExpiresAt = strconv.Itoa(r.Used), "-"
					}
					t = append(t, []string{r.ID, used, cli.When(w, r.ExpiresAt), state})
				}
				cli.Table(w, "TOKEN USED EXPIRES STATE", t)
			})
		},
	}
	return cli.Group("token", "Join tokens", create, list)
}

func nodeCommand(c *cli.CLI) *cobra.Command {
	revoke := &cobra.Command{
		Use: "revoke NODE", Short: "Revoke a node, and list what it could read", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.Resolve(cmd, "node", args[0])
			if err != nil {
				return err
			}
			var r struct {
				Exposed []exposedRow `json:"exposed"`
				Total   int          `json:"exposedTotal"`
			}
			return c.Send(cmd, "POST", "/api/v1/mesh/nodes/"+id+"/revoke", map[string]any{}, &r, func(w io.Writer) {
				fmt.Fprintln(cmd.ErrOrStderr(), "revoked", id)
				showExposed(w, r.Exposed, r.Total)
			})
		},
	}
	return cli.Group("node", "Nodes of the mesh", append(nodeCommands(c), drainCommand(c), revoke)...)
}

// tokenVerbs are the rows of selvage token.
var tokenVerbs = []cli.Verb{
	{Use: "revoke TOKEN-ID", Short: "Revoke a join token", Method: "DELETE", Path: "/api/v1/mesh/tokens/{1}",
		Says: "revoked"},
}

// nodeVerbs are the rows of selvage node.
var nodeVerbs = []cli.Verb{
	{Use: "cordon NODE", Short: "Place no new runs on a node", Method: "POST", Path: nodePath + "/cordon",
		Says:   nodeSays,
		Fields: []cli.Field{{Name: "reason", Member: "reason", About: "why, for the record"}}},
	uncordonVerb,
	{Use: "role NODE auto|voter|observer", Short: "Set whether a node may vote; an observer never does",
		Method: "PATCH", Path: nodePath,
		Says: "{name}: role {role|'auto'}, labels {labels}", Fields: []cli.Field{{Place: 2, Member: "role"}}},
}

var uncordonVerb = cli.Verb{Use: "uncordon NODE", Also: []string{"undrain"}, Short: "Allow runs on a node again",
	Method: "POST", Path: nodePath + "/uncordon", Says: nodeSays}

const (
	nodePath = "/api/v1/mesh/nodes/{node:1}"
	nodeSays = "{name} is {scheduling}, {runs} runs"
)
