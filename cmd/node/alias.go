package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// singular are the nouns without a plural.
var singular = []string{"audit", "feedback", "inbox"}

// alsoCalled adds the alias ls to each list command, and the plural to each noun with
// one, unless the plural is another command: members are those of the mesh.
func alsoCalled(root *cobra.Command) {
	for _, noun := range root.Commands() {
		name := plural(noun.Name())
		if found, _, _ := root.Find([]string{name}); found == root && child(noun, "list") != nil && !slices.Contains(singular,
			noun.Name()) {
			noun.Aliases = append(noun.Aliases, name)
		}
	}
	lists(root)
}

func lists(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Name() == "list" {
			sub.Aliases = append(sub.Aliases, "ls")
		}
		lists(sub)
	}
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

func plural(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok && noun != "key" {
		return stem + "ies"
	}
	return noun + "s"
}

// spelledOut adds list after a plural that stands alone or before flags, as in selvage
// issues --status todo. A plural with a command means the noun.
func spelledOut(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Parent() != root || child(cmd, "list") == nil || slices.Contains(args, "-h") ||
		slices.Contains(args, "--help") {
		return args
	}
	for n, arg := range args {
		if arg == plural(cmd.Name()) && slices.Contains(cmd.Aliases, arg) &&
			(n+1 == len(args) || strings.HasPrefix(args[n+1], "-")) {
			return slices.Insert(slices.Clone(args), n+1, "list")
		}
	}
	return args
}
