package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
)

// eventsCommand follows what happens in a company, as it happens.
func eventsCommand(c *cli) *cobra.Command {
	var after uint64
	var most int
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "events", Short: "Follow what happens in a company, as it happens", Args: cobra.NoArgs,
		Long: `Follow what happens in a company, as it happens: one line for each event, and with
-o json one object on each line. It begins with what is new, or above --after, which is
the height that the last line of an earlier call has.`,
		Example: `  selvage events
  selvage events --after 1200 --most 10 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			cl, err := c.client()
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("after") {
				head, err := cl.Ledger(cmd.Context())
				if err != nil {
					return c.refusedSignIn(err)
				}
				after = head.Height
			}
			ctx := cmd.Context()
			if wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			enough, told := errors.New("enough"), 0
			err = cl.Follow(ctx, company, after, func(ev client.Event) error {
				if c.output == "json" {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(ev)
				} else {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d  %s  %-28s %s\n", ev.ID, ev.CreatedAt, ev.Type, cell(string(ev.Payload)))
				}
				if told++; err == nil && told == most {
					return enough
				}
				return err
			})
			if errors.Is(err, enough) || ctx.Err() != nil {
				return nil // as was asked for
			}
			return c.refusedSignIn(err)
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "begin above this height; 0 is the beginning (default: now)")
	cmd.Flags().IntVar(&most, "most", 0, "end after so many events; 0 goes on")
	cmd.Flags().DurationVar(&wait, "for", 0, "end after so long; 0 goes on")
	return cmd
}
