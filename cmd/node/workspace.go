package main

import (
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

type workspaceRow struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Mode       string  `json:"mode"`
	Status     string  `json:"status"`
	Cwd        *string `json:"cwd"`
	BranchName *string `json:"branchName"`
	NodeID     *string `json:"nodeId"`
	LastUsedAt string  `json:"lastUsedAt"`
}

func or(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

func workspaceCommand(c *cli) *cobra.Command {
	var status string
	list := &cobra.Command{
		Use: "list", Short: "List where runs work: folders, and Git worktrees of issues", Args: cobra.NoArgs,
		Example: `  selvage workspace list --status active`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			path := "/api/companies/" + company + "/execution-workspaces"
			if status != "" {
				path += "?" + url.Values{"status": {status}}.Encode()
			}
			var rows []workspaceRow
			return c.show(cmd, path, &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.ID, r.Name, r.Mode, r.Status, or(r.BranchName, "-"), short(or(r.NodeID, "-")), ago(r.LastUsedAt), or(r.Cwd, "-")})
				}
				table(w, "WORKSPACE ISSUE MODE STATUS BRANCH NODE USED FOLDER", t)
			})
		},
	}
	list.Flags().StringVar(&status, "status", "", "only these statuses, comma separated")
	closing := &cobra.Command{
		Use: "close WORKSPACE", Short: "Close a workspace; its node removes the worktree, the branch stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "workspace", args[0])
			if err != nil {
				return err
			}
			var row workspaceRow
			return c.send(cmd, "PATCH", "/api/execution-workspaces/"+id, map[string]any{"status": "archived"}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.Name, row.Status)
			})
		},
	}
	return group("workspace", "Where runs work", list, closing)
}
