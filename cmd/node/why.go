package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// A causeNode and a causeEdge are what the API answers about causes.
type causeNode struct {
	ID, Type, Label, Status string
	More                    bool
}

type causeEdge struct {
	From, To, Kind, Why string
	Height              uint64
	Weight              int64
}

type causeAnswer struct {
	Root      string
	Direction string
	Found     bool
	Nodes     []causeNode
	Edges     []causeEdge
	More      bool
}

// relations are the words for an edge that is read from the effect to its cause, and from
// the cause to its effect.
var relations = map[string][2]string{
	"causes":       {"caused by", "caused"},
	"inhibits":     {"stopped by", "stopped"},
	"correlates":   {"like", "like"},
	"enables":      {"enabled by", "enabled"},
	"follows":      {"after", "then"},
	"contradicts":  {"contradicted by", "contradicted"},
	"triggered_by": {"triggered by", "triggered"},
	"evidence_for": {"on the evidence of", "is evidence for"},
}

// mindVerb shows the mind of a node.
var mindVerb = cli.Verb{Use: "mind",
	Short: "Show what the mind of this node did: ticks, impulses and links, and what was measured of the node",
	Path:  "/api/v1/mind",
	Lines: "node=nodeId state=state leads=leads ticks=tick.count interval_µs=tick.intervalMicros " +
		"budget_µs=tick.budgetMicros mean_µs=tick.meanMicros max_µs=tick.maxMicros " +
		"waiting=impulses.waiting acknowledged=impulses.acknowledged dropped=impulses.dropped " +
		"expired=impulses.expired sensed=loop.sensed searched=loop.searched " +
		"linked=loop.linked commits=loop.commits hash_µs=calibration.hashMicros sync_µs=calibration.syncMicros " +
		"search_µs=calibration.searchMicros tick_µs=calibration.tickMicros"}

// whyCommands are why, effects and path.
func whyCommands(c *cli.CLI) []*cobra.Command {
	walk := func(way, short, example string) *cobra.Command {
		cmd := &cobra.Command{Use: way + " ENTITY", Short: short, Example: example, Args: cobra.ExactArgs(1),
			Long: short + ".\n\nAn entity is an identifier such as ACM-7, an ID, type:id, or #height of an entry " +
				"of the chain. Types are issue, run,\n" +
				"comment, wakeup, cost, incident, approval, interaction, decision, memory, agent, project, goal, " +
				"routine and entry."}
		depth := cmd.Flags().Int("depth", 0, "at most so many steps (default 12)")
		limit := cmd.Flags().Int("limit", 0, "at most so many nodes (default 100)")
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			q := url.Values{}
			for name, n := range map[string]int{"depth": *depth, "limit": *limit} {
				if n != 0 {
					q.Set(name, strconv.Itoa(n))
				}
			}
			var a causeAnswer
			path, err := causePath(c, cmd, "/api/v1/"+way+"/"+url.PathEscape(args[0]), q)
			if err != nil {
				return err
			}
			return c.Show(cmd, path, &a, func(w io.Writer) { a.draw(w, way == "why") })
		}
		return cmd
	}
	path := &cobra.Command{Use: "path FROM TO", Short: "Show how two things hang together", Args: cobra.ExactArgs(2),
		Example: "  selvage path ACM-3 ACM-7\n  selvage path ACM-3 incident:0193f2a1-7c55-7d01-9a6b-2f0c8f1e4d10"}
	path.RunE = func(cmd *cobra.Command, args []string) error {
		var a causeAnswer
		at, err := causePath(c, cmd, "/api/v1/path", url.Values{"from": {args[0]}, "to": {args[1]}})
		if err != nil {
			return err
		}
		return c.Show(cmd, at, &a, a.drawPath)
	}
	return []*cobra.Command{
		walk("why", "Show why something is there, back to where it began",
			"  selvage why ACM-7\n  selvage why '#1234'\n"+
				"  selvage why run:0193f2a1-7c55-7d01-9a6b-2f0c8f1e4d10 --depth 3 -o json"),
		walk("effects", "Show what came of something", "  selvage effects ACM-7\n  selvage effects ACM-7 --limit 500"),
		path,
	}
}

// causePath adds the company to a request.
func causePath(c *cli.CLI, cmd *cobra.Command, path string, q url.Values) (string, error) {
	of, err := c.CompanyID(cmd)
	q.Set("companyId", of)
	return path + "?" + q.Encode(), err
}

// draw writes a walk as a tree: each node once, below the first node by which the walk came
// to it.
func (a *causeAnswer) draw(w io.Writer, back bool) {
	nodes, below, placed := map[string]causeNode{}, map[string][]causeEdge{}, map[string]bool{a.Root: true}
	for _, n := range a.Nodes {
		nodes[n.ID] = n
	}
	for _, e := range a.Edges {
		if !back {
			e.From, e.To = e.To, e.From
		}
		below[e.To] = append(below[e.To], e) // To is nearer to the root
	}
	fmt.Fprintln(w, nodes[a.Root].line())
	var add func(id, indent string)
	add = func(id, indent string) {
		for i, e := range below[id] {
			branch, deeper := "├─ ", "│  "
			if i == len(below[id])-1 {
				branch, deeper = "└─ ", "   "
			}
			words := relations[e.Kind]
			word := words[1]
			if back {
				word = words[0]
			}
			seen := placed[e.From]
			placed[e.From] = true
			line := indent + branch + cmp.Or(word, e.Kind) + " " + nodes[e.From].line() + e.reason()
			switch {
			case seen:
				line += " (see above)"
			case nodes[e.From].More:
				line += " …"
			}
			fmt.Fprintln(w, line)
			if !seen {
				add(e.From, indent+deeper)
			}
		}
	}
	a.order(below)
	add(a.Root, "")
	if a.More {
		fmt.Fprintln(w, "There is more where … stands: see --depth and --limit, or ask about that node.")
	}
}

// order sorts the edges below each node so that a node is first met where the walk met it.
func (a *causeAnswer) order(below map[string][]causeEdge) {
	at := map[string]int{}
	for n, node := range a.Nodes {
		at[node.ID] = n
	}
	for _, list := range below {
		slices.SortStableFunc(list, func(x, y causeEdge) int { return cmp.Compare(at[x.From], at[y.From]) })
	}
}

// line is a node in words.
func (n causeNode) line() string {
	out := n.Type + " " + n.Label
	if n.Type == "issue" {
		out = n.Label
	}
	if n.Status != "" {
		out += " (" + n.Status + ")"
	}
	_, id, _ := strings.Cut(n.ID, ":")
	switch n.Type {
	case "issue", "user", "system", "agent", "project", "goal":
		return out
	case "entry":
		return out + " #" + id
	}
	return out + " " + id
}

// reason is what an edge says besides its kind.
func (e causeEdge) reason() string {
	out := ""
	if e.Why != "" {
		out = ": " + e.Why
	}
	if e.Weight < 1000 {
		out += fmt.Sprintf(" %.2f", float64(e.Weight)/1000)
	}
	if e.Height != 0 {
		out += fmt.Sprintf(" [#%d]", e.Height)
	}
	return out
}

// drawPath writes a path, one step below the other.
func (a *causeAnswer) drawPath(w io.Writer) {
	if !a.Found {
		fmt.Fprintln(w, "They do not hang together.")
		if a.More {
			fmt.Fprintln(w, "The search stopped at its bound; ask about a node in between.")
		}
		return
	}
	for n, node := range a.Nodes {
		if n > 0 {
			e, arrow, word := a.Edges[n-1], "↓", relations[a.Edges[n-1].Kind][1]
			if e.From == node.ID {
				arrow, word = "↑", relations[e.Kind][0]
			}
			fmt.Fprintln(w, "  "+arrow+" "+cmp.Or(word, e.Kind)+e.reason())
		}
		fmt.Fprintln(w, node.line())
	}
}
