package main

import (
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// related is the part of an issue about other issues.
type related struct {
	issueRow
	Ancestors []issueRef `json:"ancestors"`
	BlockedBy []issueRef `json:"blockedBy"`
	Blocks    []issueRef `json:"blocks"`
	Labels    []string   `json:"labelIds"`
}

type issueRef struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"`
	Status     string `json:"status"`
	Title      string `json:"title"`
}

// relationCommands show and change single blockers and labels of an issue; issue update
// replaces all of them.
func relationCommands(c *cli.CLI) []*cobra.Command {
	at := func(issue string) string { return "/api/issues/" + url.PathEscape(issue) }
	show := &cobra.Command{
		Use: "relations ISSUE", Short: "List the parent, blockers and dependents of an issue", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var row related
			return c.Show(cmd, at(args[0]), &row, func(w io.Writer) {
				var t [][]string
				for _, r := range []struct {
					how string
					to  []issueRef
				}{{"part-of", row.Ancestors}, {"waits-for", row.BlockedBy}, {"holds-up", row.Blocks}} {
					for _, i := range r.to {
						t = append(t, []string{r.how, i.Identifier, i.Status, i.Title})
					}
				}
				cli.Table(w, "RELATION ISSUE STATUS TITLE", t)
			})
		},
	}
	change := func(use, short, member string, named func(*cobra.Command, string) (string, error),
		list func(related) []string, add bool) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				var row related
				if err := c.Call(cmd.Context(), "GET", at(args[0]), nil, &row); err != nil {
					return err
				}
				id, err := named(cmd, args[1])
				if err != nil {
					return err
				}
				all := slices.DeleteFunc(append([]string{}, list(row)...), func(have string) bool { return have == id })
				if add {
					all = append(all, id)
				}
				return cli.Verb{Says: issueSays}.Ask(c, cmd, nil, "PATCH", at(args[0]), map[string]any{member: all})
			},
		}
	}
	blockers := func(row related) (ids []string) {
		for _, i := range row.BlockedBy {
			ids = append(ids, i.ID)
		}
		return ids
	}
	labels := func(row related) []string { return row.Labels }
	label := func(cmd *cobra.Command, ref string) (string, error) { return c.Resolve(cmd, "label", ref) }
	return []*cobra.Command{show,
		change("block ISSUE BLOCKER", "Let an issue wait for another", "blockedByIssueIds", c.IssueID, blockers, true),
		change("unblock ISSUE BLOCKER", "Let an issue wait for another no more", "blockedByIssueIds", c.IssueID,
			blockers, false),
		change("tag ISSUE LABEL", "Give an issue a label more", "labelIds", label, labels, true),
		change("untag ISSUE LABEL", "Take a label off an issue", "labelIds", label, labels, false)}
}
