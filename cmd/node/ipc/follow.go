package ipc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// followInbox prints the messages of a process as they arrive.
func followInbox(c *cli.CLI) *cobra.Command {
	var process, most int
	var after uint64
	var wait time.Duration
	cmd := &cobra.Command{Use: "follow", Short: "Receive messages as they arrive, from a stream that resumes",
		Args: cobra.NoArgs,
		Long: `Receive the messages of a process as they arrive: one line for each, and with -o json one
object. When the connection breaks, the node sends again what did not arrive, up to 256
messages. Requests and reliable messages are answered and acknowledged as ever.`,
		Example: "  selvage ipc follow                             # in a process\n" +
			"  selvage ipc follow --process 12 -n 1 --for 30s"}
	f := cmd.Flags()
	f.IntVar(&process, "process", 0, "PID on the node that is asked: as this process (an administrator)")
	f.Uint64Var(&after, "after", 0, "number of the last message that was seen")
	f.IntVarP(&most, "limit", "n", 0, "at most so many messages (default: no end)")
	f.DurationVar(&wait, "for", 0, "end after so long")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cl, err := c.Client()
		if err != nil {
			return err
		}
		ctx := cmd.Context()
		if wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, wait)
			defer cancel()
		}
		path := ipcPath + "/inbox/events"
		if process > 0 {
			path = fmt.Sprintf("%s?process=%d", path, process)
		}
		enough, told := errors.New("enough"), 0
		err = cl.Stream(ctx, path, after, func(data []byte) error {
			var err error
			if c.Output == "json" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", data)
			} else {
				var m struct {
					ID, From, To string
					Payload      struct {
						Kind, Text string
						JSON       json.RawMessage
					}
				}
				if err := json.Unmarshal(data, &m); err != nil {
					return fmt.Errorf("message: %w", err)
				}
				said := strings.ReplaceAll(cli.Visible(m.Payload.Text+string(m.Payload.JSON)), "\n", "\\n")
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %s  %s  %s\n", m.ID, m.From, m.To, m.Payload.Kind, said)
			}
			if told++; err == nil && told == most {
				return enough
			}
			return err
		})
		if errors.Is(err, enough) || ctx.Err() != nil {
			return nil
		}
		return c.NoAnswer(err)
	}
	return cmd
}
