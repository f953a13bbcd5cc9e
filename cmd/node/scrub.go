package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/node"
)

// scrubPoll is the polling interval of a scrub.
const scrubPoll = time.Second

func scrubCommand(c *cli.CLI) *cobra.Command {
	var dir string
	var status, noWait bool
	cmd := &cobra.Command{
		Use: "scrub", Short: "Read everything that the node at --api has on disk, and report damage", Args: cobra.NoArgs,
		Long: `Read all of the store and the blobs of the node at --api, check it against its sums,
and tell what is damaged. A node does that by itself once a week (up --scrub-every),
with at most 2 % of a processor; asked for, it takes a quarter of one. What is
damaged is mended from the other nodes. With --dir it reads the data directory of
a node that does not run, and mends nothing. It ends with 1 when something is
damaged and not mended.`,
		Example: `  selvage scrub
  selvage scrub --status
  selvage scrub --dir /var/lib/selvage`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var st api.ScrubState
			far := c.Progress(cmd, "reading what the node keeps")
			defer far.End()
			switch {
			case dir != "" && (status || noWait):
				return cli.Misuse(errors.New("--dir waits until all was read: --status and --no-wait are for a node that runs"))
			case dir != "":
				st, err = node.ScrubDir(cmd.Context(), dir)
			case status:
				err = c.Call(cmd.Context(), "GET", "/api/v1/mesh/scrub", nil, &st)
			default:
				err = c.Call(cmd.Context(), "POST", "/api/v1/mesh/scrub", nil, &st)
			}
			for err == nil && st.Running && !status && !noWait {
				select {
				case <-cmd.Context().Done():
					return cmd.Context().Err()
				case <-time.After(scrubPoll):
				}
				far.Bytes(st.Bytes, st.TotalBytes)
				err = c.Call(cmd.Context(), "GET", "/api/v1/mesh/scrub", nil, &st)
			}
			far.End()
			if err != nil {
				return err
			}
			if err := c.Print(cmd, st, func(w io.Writer) { printScrub(w, st) }); err != nil {
				return err
			}
			if st.Damaged > st.Mended || st.Error != "" {
				return exitStatus(cli.ExitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "data directory of a node that does not run")
	cmd.Flags().BoolVar(&status, "status", false, "only tell how far it is, and what it found")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "begin, and do not wait for the end")
	return cmd
}

func printScrub(w io.Writer, st api.ScrubState) {
	switch {
	case st.Running:
		fmt.Fprintf(w, "reading: %d of %d MB\n", st.Bytes>>20, st.TotalBytes>>20)
	case st.Ended != nil:
		fmt.Fprintf(w, "read %d MB, ended %s\n", st.Bytes>>20, cli.When(w, st.Ended.UTC().Format(time.RFC3339)))
	default:
		fmt.Fprintln(w, "nothing was read since this node was started")
	}
	if st.Error != "" {
		fmt.Fprintln(w, "broke off:", st.Error)
	}
	for _, f := range st.Found {
		how := "damaged"
		if f.Mended {
			how = "mended"
		}
		fmt.Fprintf(w, "%-7s  %-5s  %s  %s\n", how, f.What, f.File, f.Error)
	}
	fmt.Fprintf(w, "%d damaged, %d of them mended\n", st.Damaged, st.Mended)
}
