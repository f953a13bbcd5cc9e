package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// happened formats an event for people: who, and what they did, said or became.
func happened(payload json.RawMessage, names map[string]string) string {
	var o map[string]any
	if json.Unmarshal(payload, &o) != nil {
		return cli.Cell(string(payload))
	}
	text := func(name string) string { s, _ := o[name].(string); return s }
	who := cmp.Or(names[text("agentId")], text("agentId"))
	if who == "" && text("actorId") != "" {
		who = text("actorType") + " " + text("actorId")
	}
	words := []string{who}
	for _, name := range []string{"action", "status", "entityType", "entityId", "invocationSource", "message",
		"chunk", "error"} {
		words = append(words, text(name))
	}
	if text("entityId") == "" && text("runId") != "" {
		words = append(words, "run "+text("runId"))
	}
	return cli.Cut(strings.Join(strings.Fields(strings.Join(words, " ")), " "), cli.MaxHappened)
}

// eventsCommand prints a company's events as they happen.
func eventsCommand(c *cli.CLI) *cobra.Command {
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
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			cl, err := c.Client()
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("after") {
				head, err := cl.Ledger(cmd.Context())
				if err != nil {
					return c.NoAnswer(err)
				}
				after = head.Height
			}
			ctx := cmd.Context()
			if wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
			}
			names := map[string]string{}
			if !c.ForMachines() {
				names, _ = c.AgentNames(cmd, company) // without names IDs are shown
			}
			enough, told := errors.New("enough"), 0
			err = cl.Follow(ctx, company, after, func(ev client.Event) error {
				switch c.Output {
				case "json":
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(ev)
				case "yaml":
					fmt.Fprintln(cmd.OutOrStdout(), "---")
					err = c.Print(cmd, ev, nil)
				default:
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d  %s  %-28s %s\n", ev.ID, ev.CreatedAt, ev.Type,
						happened(ev.Payload, names))
				}
				if told++; err == nil && told == most {
					return enough
				}
				return err
			})
			if errors.Is(err, enough) || ctx.Err() != nil {
				return nil // enough events were printed, or the user ended it
			}
			return c.NoAnswer(err)
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "begin above this height; 0 is the beginning (default: now)")
	cmd.Flags().IntVar(&most, "most", 0, "end after so many events; 0 goes on")
	cmd.Flags().DurationVar(&wait, "for", 0, "end after so long; 0 goes on")
	return cmd
}
