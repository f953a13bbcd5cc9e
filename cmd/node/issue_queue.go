package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// queuedComments are the comments that an issue's agent has not received yet.
type queuedComments struct {
	ID       *string `json:"queueId"`
	Target   *string `json:"targetRunId"`
	Revision string  `json:"revision"`
	Entries  []struct {
		ID   string `json:"id"`
		Body string `json:"body"`
	} `json:"entries"`
}

func (q queuedComments) print(w io.Writer) {
	var t [][]string
	for _, e := range q.Entries {
		t = append(t, []string{e.ID, strings.Join(strings.Fields(e.Body), " ")})
	}
	cli.Table(w, "ID TEXT", t)
}

// queueCommands change the current queue: they look up its ID and revision, and the API
// refuses if it has changed meanwhile.
func queueCommands(c *cli.CLI) []*cobra.Command {
	at := func(issue string) string { return "/api/issues/" + url.PathEscape(issue) + "/queued-comments" }
	change := func(cmd *cobra.Command, issue, method, rest string, in map[string]any) error {
		var q queuedComments
		if err := c.Call(cmd.Context(), "GET", at(issue), nil, &q); err != nil {
			return err
		}
		if q.ID == nil {
			return fmt.Errorf("nothing waits to be told to the agent of %s", issue)
		}
		in["queueId"], in["revision"] = *q.ID, q.Revision
		if method == "POST" && q.Target != nil {
			in["targetRunId"] = *q.Target
		}
		var after queuedComments
		return c.Send(cmd, method, at(issue)+rest, in, &after, func(w io.Writer) { after.print(w) })
	}
	return []*cobra.Command{
		{Use: "edit ISSUE COMMENT TEXT", Short: "Edit a queued comment before the agent reads it",
			Args: cobra.ExactArgs(3),
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, args[0], "PATCH", "/"+url.PathEscape(args[1]), map[string]any{"body": args[2]})
			}},
		{Use: "order ISSUE COMMENT...", Short: "Reorder the queued comments", Args: cobra.MinimumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, args[0], "PUT", "/order", map[string]any{"orderedCommentIds": args[1:]})
			}},
		{Use: "drop ISSUE COMMENT", Short: "Delete a queued comment", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, args[0], "DELETE", "/"+url.PathEscape(args[1]), map[string]any{})
			}},
		{Use: "interrupt ISSUE", Short: "Interrupt the run, so that its agent reads the queued comments now",
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, args[0], "POST", "/interrupt", map[string]any{})
			}},
	}
}

// queueVerbs are the rows of selvage issue queue.
var queueVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the queued comments of an issue", Path: "/api/issues/{1}/queued-comments",
		Rows: "entries", Columns: "ID=id BY=authorUserId TEXT=body"},
	{Use: "show ISSUE", Short: "Show the queue itself: its ID, its revision and the run at work",
		Path: "/api/issues/{1}/queued-comments"},
}
