package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// An orgRow is an agent in the org chart, with its reports.
type orgRow struct {
	ID, Name, Role, Status string
	Reports                []orgRow
}

// orgCommand shows the org chart: as a table with names indented below their managers,
// or as the tree of the API.
func orgCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "org", Short: "Show who reports to whom", Args: cobra.NoArgs,
		Example: `  selvage org
  selvage org svg >chart.svg`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := c.Filled(cmd, "/api/companies/{company}/org", nil)
			if err != nil {
				return err
			}
			var top []orgRow
			return c.Show(cmd, path, &top, func(w io.Writer) {
				var t [][]string
				var add func(rows []orgRow, boss string, depth int)
				add = func(rows []orgRow, boss string, depth int) {
					for _, r := range rows {
						t = append(t, []string{strings.Repeat("  ", depth) + r.Name, r.Role, r.Status, boss})
						add(r.Reports, r.Name, depth+1)
					}
				}
				add(top, "-", 0)
				cli.Table(w, "NAME ROLE STATUS REPORTS-TO", t)
			})
		},
	}
}

// orgVerbs are the rows of selvage org.
var orgVerbs = []cli.Verb{
	{Use: "svg", Short: "Draw who reports to whom, as SVG", Path: "/api/companies/{company}/org.svg", Raw: true},
	{Use: "png", Short: "Draw who reports to whom, as PNG", Path: "/api/companies/{company}/org.png", Raw: true},
}
