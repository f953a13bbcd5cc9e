package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

var onTreePath = cli.Field{Place: 1, Member: "path"}

// treeVerbs are about who may do what on a path of the resource tree.
var treeVerbs = []cli.Verb{
	{Use: "grants [PATH]", Short: "List who may do what on a path and below it", Path: "/api/v1/tree/grants",
		Fields:  []cli.Field{onTreePath},
		Columns: "PATH=path SUBJECT=subject ROLE=role DENY=yes?deny|'' DELEGATE=yes?delegate|'' UNTIL=until BY=by"},
	{Use: "grant PATH SUBJECT", Short: "Say what somebody may do on a path and below it", Method: "POST",
		Path:    "/api/v1/tree/grants",
		Example: "  selvage tree grant /apps user:ada --role operator\n  selvage tree grant /kernel/tools '*' --deny",
		Fields: []cli.Field{onTreePath, {Place: 2, Member: "subject"}, {Name: "role", Member: "role",
			About: "viewer, operator, admin or owner"},
			{Name: "deny", Member: "deny", Kind: "bool", About: "take everything away"}, {Name: "delegate", Member: "delegate",
				Kind: "bool", About: "who has it may grant as much to others"},
			{Name: "until", Member: "until", About: "when it ends, an ISO date with time"}}},
	{Use: "revoke PATH SUBJECT", Short: "Take a grant back", Example: "  selvage tree revoke /apps user:ada",
		Method: "DELETE", Path: "/api/v1/tree/grants?path={1}&subject={2}"},
	{Use: "access PATH [ACTION]", Short: "Ask whether you, or somebody, may do an action on a path",
		Path:    "/api/v1/tree/access",
		Example: "  selvage tree access /companies read --subject user:ada",
		Fields: []cli.Field{onTreePath, {Place: 2, Member: "action"}, {Name: "subject", Member: "subject",
			About: "agent:ID or user:ID; you unless given"}},
		Lines: "allowed=allowed reason=reason subject=subject action=action path=path names=names"},
	{Use: "commit", Short: "Commit the root of the tree on the chain now", Method: "POST", Path: "/api/v1/tree/commit",
		Lines: "root=root vertices=vertices height=height at=at"},
}

// treeCommand shows the resource tree.
func treeCommand(c *cli.CLI) *cobra.Command {
	var depth int
	tree := cli.Noun(c, "tree", "Show the resource tree: companies, agents, nodes, tools and secrets, and their root hash",
		treeVerbs...)
	tree.Use, tree.Args = "tree [PATH]", cobra.MaximumNArgs(1)
	tree.Long = `Show what lies at a path of the resource tree and below it. The root is a hash over path,
kind and content of all of it: equal roots are equal trees. The leader commits it on the
chain when it has changed.`
	tree.Example = "  selvage tree\n  selvage tree /companies --depth 3\n" +
		"  selvage tree grant /apps user:ada --role operator"
	tree.RunE = func(cmd *cobra.Command, args []string) error {
		q := url.Values{"depth": {strconv.Itoa(depth)}}
		if len(args) > 0 {
			q.Set("path", args[0])
		}
		var t struct {
			Root      string `json:"root"`
			Vertices  int    `json:"vertices"`
			More      bool   `json:"more"`
			Unchanged bool   `json:"unchanged"`
			Committed *struct {
				Height uint64 `json:"height"`
			} `json:"committed"`
			Nodes []struct {
				Path     string            `json:"path"`
				Kind     string            `json:"kind"`
				Metadata map[string]string `json:"metadata"`
				Hash     string            `json:"merkle_hash"`
				Children int               `json:"children"`
			} `json:"nodes"`
		}
		return c.Show(cmd, "/api/v1/tree?"+q.Encode(), &t, func(w io.Writer) {
			fmt.Fprintf(w, "root %s, %d vertices\n", t.Root, t.Vertices)
			switch {
			case t.Committed == nil:
				fmt.Fprintln(w, "not on the chain yet")
			case t.Unchanged:
				fmt.Fprintf(w, "on the chain at height %d\n", t.Committed.Height)
			default:
				fmt.Fprintf(w, "changed since height %d, where the chain has its root\n", t.Committed.Height)
			}
			var rows [][]string
			for _, n := range t.Nodes {
				rows = append(rows, []string{n.Path, n.Kind, strconv.Itoa(n.Children), cli.Short(n.Hash), factsOf(n.Metadata)})
			}
			cli.Table(w, "PATH KIND BELOW HASH WHAT", rows)
			if t.More {
				fmt.Fprintln(w, "there is more: name a path below")
			}
		})
	}
	tree.Flags().IntVar(&depth, "depth", 1, "how many levels below the path, 0 to 16")
	return tree
}

func factsOf(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
