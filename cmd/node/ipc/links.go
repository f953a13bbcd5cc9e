package ipc

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// watchTable are the links and monitors of a process.
const watchTable = "PROCESS HOW MONITOR"

// listLinks prints what a process is linked to and what it monitors, on its node and on others.
func listLinks(c *cli.CLI) *cobra.Command {
	var process int
	cmd := &cobra.Command{Use: "links", Short: "List what a process is linked to, and what it monitors",
		Args: cobra.NoArgs,
		Long: `List what a process is linked to, and what it monitors. A process of the same node is named by
its PID, one of another node by node:pid. MONITOR is the name by which selvage ipc demonitor ends one.`,
		Example: "  selvage ipc links                    # in a process\n  selvage ipc links --process 12"}
	cmd.Flags().IntVar(&process, "process", 0, "PID on the node that is asked: as this process (an administrator)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path := ipcPath + "/links"
		if process > 0 {
			path += "?process=" + strconv.Itoa(process)
		}
		var w struct {
			Links    []uint64
			Monitors []struct {
				Ref     string
				Process uint64
			}
			Far []struct{ Ref, Process string }
		}
		return c.Show(cmd, path, &w, func(out io.Writer) {
			var rows [][]string
			add := func(of, ref string) {
				how := "monitor"
				if ref == "" {
					how = "link"
				}
				rows = append(rows, []string{of, how, cli.Dash(ref)})
			}
			for _, pid := range w.Links {
				add(strconv.FormatUint(pid, 10), "")
			}
			for _, m := range w.Monitors {
				add(strconv.FormatUint(m.Process, 10), m.Ref)
			}
			for _, f := range w.Far {
				add(f.Process, f.Ref)
			}
			cli.Table(out, watchTable, rows)
		})
	}
	return cmd
}
