// Command selvage is the one program of a mesh: the daemon, its operator's
// command line, and the shim that runs stand under.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/adapter/shim"
)

// version is set by the linker.
var version = "dev"

// Exit statuses: done, refused or failed, misused.
const (
	exitFailed  = 1
	exitMisused = 2
)

// A misuse is an error of the command line itself.
type misuse struct{ error }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == "run-shim" {
		return shim.Main(args[1:]) // whoever waits for a run waits for this
	}
	return execute(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// execute runs a command line and returns its exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, talk io.Writer) int {
	c := &cli{talk: talk}
	root := newRootWith(c)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completes(c, root)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(talk)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	return report(talk, cmd, wantsJSON(c, args), err)
}

// An exitStatus ends the program with a status of its own and no message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprint("exit status ", int(s)) }

func newRoot() *cobra.Command { return newRootWith(&cli{}) }

func newRootWith(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "selvage",
		Short:         "A mesh of identical peers that runs companies of AI agents",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return misuse{err}
			}
			if c.read != "" && !slices.Contains(freshnesses, c.read) {
				return misuse{fmt.Errorf("--read is %q: want %s", c.read, strings.Join(freshnesses, ", "))}
			}
			c.reads = cmd.Annotations[changesNothing] != "" || slices.Contains(readers, cmd.Name())
			return nil
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misuse{wrongFlag(err)} })
	c.flags(root.PersistentFlags())
	root.AddCommand(
		upCommand(c), membersCommand(c), raftCommand(c), tokenCommand(c), leaveCommand(c), nodeCommand(c), stopCommand(c), resumeCommand(c), ledgerCommand(c),
		companyCommand(c), agentCommand(c), approvalCommand(c), issueCommand(c), runCommand(c), activityCommand(c), costCommand(c), budgetCommand(c), routineCommand(c),
		testnetCommand(c), identityCommand(), mcpCommand(c), onboardCommand(c), secretCommand(c), modelCommand(c), adapterCommand(c), skillCommand(c),
		authCommand(c), memberCommand(c), userCommand(c), keyCommand(c),
	)
	root.AddCommand(apiCommand(c), eventsCommand(c), sandboxCommand(c), toolCommand(c), pendingCommand(c), approveNodeCommand(c), rejectNodeCommand(c), ownerKeyCommand(c), keyringCommand(c))
	root.AddCommand(snapshotCommand(c), recoverCommand(c), autopilotCommand(c), doctorCommand(c), scrubCommand(c), debugCommand(c), monitorCommand(c))
	for _, cmd := range append(cordonCommands(c), nodeVerbs(c)...) { // selvage drain NODE is what people type
		if name := cmd.Name(); name == "drain" || name == "uncordon" || name == "remove" {
			root.AddCommand(cmd)
		}
	}
	addVerbs(root, c)
	inGroups(root)
	help(root)
	misusedArguments(root)
	examples(root)
	return root
}

// misusedArguments makes a wrong number of arguments a misuse, everywhere, and says
// which is missing or too many.
func misusedArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return misuse{wrongArguments(cmd, args, err)}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		misusedArguments(sub)
	}
}

// wrongFlag says what is wrong with the value of a flag in words of this program.
func wrongFlag(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	want := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number from 0", "bool": "true or false", "duration": "a time such as 90s or 24h"}[bad.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s is %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// wrongArguments says what is wrong with arguments that err refuses.
func wrongArguments(cmd *cobra.Command, args []string, err error) error {
	if cmd.HasAvailableSubCommands() {
		cmd.SuggestionsMinimumDistance = 2 // as cobra has it elsewhere
		text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		} else if cmd.HasParent() {
			var there []string
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					there = append(there, sub.Name())
				}
			}
			text += ": it has " + strings.Join(there, ", ")
		}
		return errors.New(text)
	}
	least, most := wanted(cmd.Use)
	switch {
	case len(args) < len(least):
		return fmt.Errorf("%s is missing: %s", least[len(args)], cmd.UseLine())
	case most >= 0 && len(args) > most:
		return fmt.Errorf("%q is one argument too many: %s", args[most], cmd.UseLine())
	}
	return err
}

// wanted are the arguments that a line of usage asks for, and how many there may
// be, -1 for any number.
func wanted(use string) (least []string, most int) {
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case word == "[--":
			return least, -1
		case strings.HasPrefix(word, "--"): // a flag that must be there; the command says why
		case word == "[flags]":
		case strings.HasSuffix(word, "...]"):
			return least, -1
		case strings.HasSuffix(word, "..."):
			return append(least, strings.TrimSuffix(word, "...")), -1
		case strings.HasPrefix(word, "["):
			most++
		default:
			least = append(least, word)
		}
	}
	return least, most + len(least)
}

// group is a command that only has subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(subs...)
	return c
}
