package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/testnet"
)

func testnetCommand(c *cli.CLI) *cobra.Command {
	t := &testnetVerbs{CLI: c}
	start := func(cmd *cobra.Command, p *testnet.Processes, n string) (err error) {
		if p.Bin, err = os.Executable(); err != nil {
			return err
		}
		return p.Start(cmd.Context(), n)
	}
	g := cli.Group("testnet", "Start and stop a mesh of several nodes on this machine", t.up(), t.status(), t.partition(),
		t.one("kill", "End a node without warning (SIGKILL)", "{node} is killed, it was process {pid}",
			func(_ *cobra.Command, p *testnet.Processes, n string) error { return p.Kill(n) }),
		t.one("start", "Start a node again, with the program that is called",
			"{node} serves on {http}, it is process {pid} of {bin}", start),
		t.one("pause", "Stop a node's process (SIGSTOP)",
			"{node} stands still, process {pid}; selvage testnet resume {node} lets it go on",
			func(_ *cobra.Command, p *testnet.Processes, n string) error { return p.Pause(n) }),
		t.one("resume", "Let a paused node go on", "{node} goes on, process {pid}",
			func(_ *cobra.Command, p *testnet.Processes, n string) error { return p.Resume(n) }),
		t.whole("heal", "Mend all links", "all links are mended", (*testnet.Processes).Heal),
		t.whole("down", "Stop all nodes; their data stays", "all nodes are stopped, their data is kept",
			(*testnet.Processes).Down))
	g.PersistentFlags().StringVar(&t.dir, "dir", ".run/mesh", "where the mesh lives")
	return g
}

// testnetVerbs makes the commands of a local mesh, which lives in dir.
type testnetVerbs struct {
	*cli.CLI
	dir string
}

func (t *testnetVerbs) told(cmd *cobra.Command, says string) error {
	return t.Print(cmd, map[string]string{"done": says}, func(w io.Writer) { fmt.Fprintln(w, says) })
}

func (t *testnetVerbs) up() *cobra.Command {
	var o testnet.Options
	up := &cobra.Command{
		Use: "up", Short: "Start a mesh of real processes on this machine", Args: cobra.NoArgs,
		Example: `  selvage testnet up -n 3 --dir /tmp/mesh --http-port 3100 --mesh-port 9470`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Bin, err = os.Executable(); err != nil {
				return err
			}
			o.Dir, o.Log = t.dir, cmd.ErrOrStderr()
			p, err := testnet.Up(cmd.Context(), o)
			if err != nil {
				return err
			}
			return printNodes(t.CLI, cmd, p.Status(cmd.Context()))
		},
	}
	up.Flags().IntVarP(&o.N, "nodes", "n", 3, "number of nodes")
	up.Flags().IntVar(&o.HTTPPort, "http-port", 3100, "HTTP port of the first node; node i listens on this plus i")
	up.Flags().IntVar(&o.MeshPort, "mesh-port", 9470, "peer port of the first node; node i listens on this plus i")
	up.Flags().StringArrayVar(&o.Args, "node-arg", nil, "argument for each node's selvage up (repeat for more)")
	return up
}

func (t *testnetVerbs) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the nodes of the local mesh", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := testnet.Load(t.dir)
			if err != nil {
				return err
			}
			return printNodes(t.CLI, cmd, p.Status(cmd.Context()))
		},
	}
}

func (t *testnetVerbs) partition() *cobra.Command {
	return &cobra.Command{
		Use: "partition GROUP...", Short: "Cut all links between groups of nodes", Args: cobra.MinimumNArgs(1),
		Long: "Cut all links between groups of nodes. A group is a comma-separated list; nodes that are not named form " +
			"one more group.",
		Example: `  selvage testnet partition n1,n2 n3 --dir /tmp/mesh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := testnet.Load(t.dir)
			if err != nil {
				return err
			}
			var groups [][]string
			for _, a := range args {
				groups = append(groups, strings.Split(a, ","))
			}
			if err := p.Partition(groups); err != nil {
				return err
			}
			return t.told(cmd, "links are cut between "+strings.Join(args, " and ")+"; selvage testnet heal mends them")
		},
	}
}

// one returns a command that does something to one node. In says stand {node}, {pid}, {http}
// and {bin}.
func (t *testnetVerbs) one(verb, short, says string, do func(cmd *cobra.Command, p *testnet.Processes,
	name string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NODE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := testnet.Load(t.dir)
			if err != nil {
				return err
			}
			if err := do(cmd, p, args[0]); err != nil {
				return err
			}
			n, err := p.Node(args[0])
			if err != nil {
				return err
			}
			return t.Print(cmd, n, func(w io.Writer) {
				fmt.Fprintln(w, strings.NewReplacer("{node}", n.Name, "{pid}", strconv.Itoa(n.PID), "{http}", n.HTTP, "{bin}",
					p.Bin).Replace(says))
			})
		},
	}
}

// whole returns a command that does something to the whole mesh.
func (t *testnetVerbs) whole(verb, short, says string, do func(p *testnet.Processes) error) *cobra.Command {
	return &cobra.Command{
		Use: verb, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := testnet.Load(t.dir)
			if err != nil {
				return err
			}
			if err := do(p); err != nil {
				return err
			}
			return t.told(cmd, says)
		},
	}
}

func printNodes(c *cli.CLI, cmd *cobra.Command, nodes []testnet.Node) error {
	return c.Print(cmd, map[string]any{"nodes": nodes}, func(w io.Writer) {
		var t [][]string
		for _, n := range nodes {
			state := "down"
			if n.Alive {
				state = "up"
			}
			t = append(t, []string{n.Name, cli.Short(n.ID), state, cli.Dash(n.Role), n.HTTP, n.Mesh, strconv.Itoa(n.PID), n.Dir})
		}
		cli.Table(w, "NODE ID STATE ROLE HTTP MESH PID DIR", t)
		if len(nodes) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "API: %s\n", nodes[0].HTTP)
		}
	})
}
