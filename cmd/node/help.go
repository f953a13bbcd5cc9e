package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// A heading of the help and its commands. The first ones are what a newcomer needs;
// `selvage help all` lists the rest too.
type heading struct{ title, first, rest string }

var headings = []heading{
	{"Start:", "up onboard status members doctor", "version"},
	{"Work:", "company project issue routine inbox", "goal label search extract feedback folder"},
	{"Agents:", "agent run logs skill", "memory org workspace environment tool app team adapter mcp sandbox"},
	{"Money and decisions:", "approval budget cost model secret", "govern tree member user key auth settings"},
	{"What happened:", "activity", "why effects path mind audit events ledger monitor api"},
	{"Processes:", "", "ps top spawn kill dmesg process topic ipc cron service"},
	{"The mesh:", "", "testnet node drain uncordon remove leave token pending approve reject owner-key identity " +
		"keyring raft autopilot recover snapshot scrub debug stop resume"},
	{"Shell:", "", "completion help"},
}

// groups are the headings of nouns with many commands.
var groups = map[string][]heading{
	"issue": {
		{"Everyday:", "list show create update move comment comments unsay delete", ""},
		{"What belongs together:", "part relations block unblock tag untag plan", ""},
		{"What is in it:", "doc lock unlock remark attach attachments download detach product products", ""},
		{"Agents at work:", "checkout release force-release runs live retry queue hold monitor watchdog", ""},
		{"Questions and reviews:", "ask asked answer accept reject skip withdraw judge interactions decisions approvals " +
			"link unlink", ""},
		{"What happened, and why:", "activity explain stuck stops resolve wakes cost", ""},
		{"Your inbox:", "read unread archive unarchive vote votes", ""},
	},
	"agent": {
		{"Everyday:", "list show create hire update delete", ""},
		{"Work:", "invoke wake pause resume terminate clear-error message", ""},
		{"What it is and may:", "config instructions skills teach may budget approve memory", ""},
		{"Keys:", "key keys revoke-key", ""},
		{"What happened:", "state wakeups sessions reset revisions revision rollback", ""},
	},
	"company": {
		{"Everyday:", "list show create use dashboard update", ""},
		{"Work:", "pause resume archive delete gates", ""},
		{"Packages:", "export import left-out", ""},
		{"Figures:", "badges stats", ""},
	},
}

// newcomers bounds the commands that the help lists by default, because longer lists are
// not read.
const newcomers = 20

// inGroups assigns the commands to their headings.
func inGroups(root *cobra.Command) {
	under(root, headings)
	for _, cmd := range root.Commands() {
		under(cmd, groups[cmd.Name()])
	}
	root.SetCompletionCommandGroupID("Shell:")
}

func under(parent *cobra.Command, headings []heading) {
	for _, h := range headings {
		parent.AddGroup(&cobra.Group{ID: h.title, Title: h.title})
		names := append(strings.Fields(h.first), strings.Fields(h.rest)...)
		for _, cmd := range parent.Commands() {
			if slices.Contains(names, cmd.Name()) {
				cmd.GroupID = h.title
			}
		}
	}
}

// help shortens the help of root to the first commands of each heading, unless all are
// requested.
func help(root *cobra.Command) {
	usual := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != root {
			usual(cmd, args)
			return
		}
		shortHelp(cmd.OutOrStdout(), root)
	})
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Help about a command; help all lists every command",
		GroupID: "Shell:",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
			at, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range at.Commands() {
				if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), begin) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "all" {
				usual(root, args)
				return nil
			}
			cmd, left, err := root.Find(args)
			if err == nil && len(left) > 0 {
				err = cli.WrongArguments(cmd, left, fmt.Errorf("%s has no command %q", cmd.CommandPath(), left[0]))
			}
			if err != nil {
				return cli.Misuse(err)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	})
}

// shortHelp writes the help for newcomers.
func shortHelp(out io.Writer, root *cobra.Command) {
	fmt.Fprintf(out, "%s\n\nUsage:\n  %s COMMAND [flags]\n", root.Short, root.Name())
	for _, h := range headings {
		if h.first == "" {
			continue
		}
		fmt.Fprintf(out, "\n%s\n", h.title)
		for name := range strings.FieldsSeq(h.first) {
			cmd, _, err := root.Find([]string{name})
			if err == nil {
				fmt.Fprintf(out, "  %-10s %s\n", cmd.Name(), cmd.Short)
			}
		}
	}
	fmt.Fprintf(out, "\nUse \"%[1]s COMMAND --help\" for a command, and \"%[1]s help all\" for every command and the "+
		"flags that all share.\n", root.Name())
}
