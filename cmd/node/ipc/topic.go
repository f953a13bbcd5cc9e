// Package ipc is the commands by which people and programs talk through the mesh: topics and messages.
package ipc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// Commands returns the nouns of this package.
func Commands(c *cli.CLI) []*cobra.Command {
	topic := cli.Noun(c, "topic", "Publish messages that many may read, and read them again", topicVerbs...)
	topic.AddCommand(readTopic(c))
	messages := cli.Noun(c, "ipc", "Messages between processes: send, request, receive, dead letters", messageVerbs...)
	messages.AddCommand(followInbox(c), listLinks(c))
	return []*cobra.Command{topic, messages}
}

var withLimit = cli.Field{Name: "limit", Member: "limit", Kind: "int", About: "at most so many"}

// ofScope is the company of --company; without the flag a topic is the mesh's.
var ofScope = cli.Field{Member: "companyId", Kind: "scope"}

// inScope is the same in the query.
var inScope = cli.Field{Member: "companyId", Kind: "scope", Query: true}

const (
	topicTable        = "TOPIC=topic MESSAGES=messages BYTES=bytes FIRST=first LAST=last AT=lastAt"
	subscriptionTable = "SUBSCRIPTION=subscription PATTERN=pattern POSITION=position AT=updatedAt"
	publishedSays     = "#{height} {topic}"
)

// topicVerbs are the rows of selvage topic.
var topicVerbs = []cli.Verb{
	{Use: "publish TOPIC [TEXT]", Short: "Publish a message to a topic: every node keeps it", Method: "POST",
		Path: "/api/v1/topics/{1}", Says: publishedSays,
		Long: "Publish a message to a topic: every node keeps it, and it can be read again from any height.\n\n" +
			"A topic has levels, divided by dots or slashes: build.done, orders/eu/created. It begins with its " +
			"first message. It belongs to\n" +
			"the mesh, or with --company to a company.",
		Example: "  selvage topic publish build.done green\n  selvage topic publish orders.eu.created --json '{\"id\":7}'",
		Fields: []cli.Field{{Place: 2, Member: "text"}, {Name: "json", Member: "payload", Kind: "json",
			About: "instead of TEXT, or a file with it"}, ofScope}},
	{Use: "ls", Short: "List the topics", Also: []string{"list"}, Path: "/api/v1/topics", Rows: "topics",
		Columns: topicTable, Fields: []cli.Field{ofScope}},
	{Use: "keep TOPIC", Short: "Say how much of a topic is kept", Method: "PUT", Path: "/api/v1/topics/{1}",
		Says: "{topic} keeps {keep.messages} messages, {keep.bytes} bytes, {keep.seconds} seconds",
		Fields: []cli.Field{{Name: "messages", Member: "messages", Kind: "int", About: "at most so many; 10000 unless set"},
			{Name: "bytes", Member: "bytes", Kind: "int", About: "at most so much; 16777216 unless set"},
			{Name: "seconds", Member: "seconds", Kind: "int", About: "for so long; 604800 unless set"}, ofScope}},
	{Use: "delete TOPIC", Short: "Delete a topic with its messages", Method: "DELETE", Path: "/api/v1/topics/{1}",
		Says: "deleted", Fields: []cli.Field{inScope}},
	{Use: "subscribe NAME PATTERN", Short: "Subscribe to topics: the mesh remembers how far NAME has read", Method: "PUT",
		Path: "/api/v1/subscriptions/{1}", Says: "{subscription} {pattern} has read up to #{position}",
		Example: "  selvage topic subscribe ci 'build.*'\n  selvage topic subscribe audit '**' --from 1",
		Fields: []cli.Field{{Place: 2, Member: "pattern"}, {Name: "from", Member: "from", Kind: "int",
			About: "height of the first message; what is published next unless given"}, ofScope}},
	{Use: "subscriptions", Short: "List the subscriptions, and how far each has read", Path: "/api/v1/subscriptions",
		Rows: "subscriptions", Columns: subscriptionTable, Fields: []cli.Field{ofScope}},
	{Use: "next NAME", Short: "Read the next messages of a subscription", Path: "/api/v1/subscriptions/{1}/messages",
		Rows: "messages", Columns: "HEIGHT=height TOPIC=topic FROM=from TEXT=text",
		Next: "when they are handled: selvage topic ack NAME HEIGHT", Fields: []cli.Field{withLimit, ofScope}},
	{Use: "ack NAME HEIGHT", Short: "Acknowledge the messages of a subscription up to a height", Method: "POST",
		Path: "/api/v1/subscriptions/{1}/ack", Says: "{subscription} has read up to #{position}",
		Fields: []cli.Field{{Place: 2, Member: "height", Kind: "int"}, ofScope}},
	{Use: "unsubscribe NAME", Short: "End a subscription", Method: "DELETE", Path: "/api/v1/subscriptions/{1}",
		Says: "unsubscribed", Fields: []cli.Field{inScope}},
}

// A topicMessage is what the API answers of a message.
type topicMessage struct {
	Height uint64 `json:"height"`
	Topic  string `json:"topic"`
	At     string `json:"at"`
	From   string `json:"from"`
	Text   string `json:"text"`
}

func (m topicMessage) line(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d  %s  %s  %s  %s\n", m.Height, m.At, m.Topic, m.From,
		strings.ReplaceAll(cli.Visible(m.Text), "\n", "\\n"))
	return err
}

// readTopic prints the messages of a pattern, and with --follow what is published.
func readTopic(c *cli.CLI) *cobra.Command {
	var from uint64
	var most int
	var follow bool
	var wait time.Duration
	cmd := &cobra.Command{Use: "read PATTERN", Short: "Read the messages of topics, from a height",
		Args: cobra.ExactArgs(1),
		Long: `Read the messages of the topics that PATTERN selects, in the order of their heights: one
line for each, and with -o json the page. In a pattern * is any one level, and ** at the
end all levels. With --follow it goes on with what is published, on any node, and prints
one object on each line with -o json.`,
		Example: "  selvage topic read build.done\n  selvage topic read 'build.*' --from 1200 -n 10\n" +
			"  selvage topic read '**' --follow"}
	f := cmd.Flags()
	f.Uint64Var(&from, "from", 0, "height of the first message (default: the oldest; with --follow: from now on)")
	f.IntVarP(&most, "limit", "n", 0, "at most so many messages (default 100; with --follow: no end)")
	f.BoolVarP(&follow, "follow", "f", false, "go on with what is published")
	f.DurationVar(&wait, "for", 0, "with --follow: end after so long")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("limit") && most < 1 {
			return cli.Misuse(fmt.Errorf("--limit is %d: want at least 1", most))
		}
		q := url.Values{}
		if c.Company != "" {
			of, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			q.Set("companyId", of)
		}
		if follow {
			return followTopic(c, cmd, args[0], q, from, most, wait)
		}
		q.Set("pattern", args[0])
		q.Set("from", strconv.FormatUint(from, 10))
		if most > 0 {
			q.Set("limit", strconv.Itoa(most))
		}
		var page struct{ Messages []topicMessage }
		return c.Show(cmd, "/api/v1/topics?"+q.Encode(), &page, func(w io.Writer) {
			for _, m := range page.Messages {
				_ = m.line(w)
			}
		})
	}
	return cmd
}

func followTopic(c *cli.CLI, cmd *cobra.Command, pattern string, q url.Values, from uint64, most int,
	wait time.Duration) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	after := max(from, 1) - 1
	if !cmd.Flags().Changed("from") {
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
	enough, told := errors.New("enough"), 0
	err = cl.Stream(ctx, "/api/v1/topics/"+url.PathEscape(pattern)+"/events?"+q.Encode(), after, func(data []byte) error {
		var m topicMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return fmt.Errorf("message: %w", err)
		}
		var err error
		switch c.Output {
		case "json":
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", data)
		case "yaml":
			fmt.Fprintln(cmd.OutOrStdout(), "---")
			err = c.Print(cmd, json.RawMessage(data), nil)
		default:
			err = m.line(cmd.OutOrStdout())
		}
		if told++; err == nil && told == most {
			return enough
		}
		return err
	})
	if errors.Is(err, enough) || ctx.Err() != nil {
		return nil // enough was printed, or the user ended it
	}
	return c.NoAnswer(err)
}
