// Command selvage is the one program of a mesh: the daemon, its operator's
// command line, and the shim that runs stand under.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

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
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var status exitStatus
	if errors.As(err, &status) {
		return int(status)
	}
	fmt.Fprintln(os.Stderr, "selvage:", err)
	var m misuse
	if errors.As(err, &m) {
		fmt.Fprintln(os.Stderr, "Run 'selvage --help' or 'selvage COMMAND --help' for usage.")
		return exitMisused
	}
	return exitFailed
}

// An exitStatus ends the program with a status of its own and no message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprint("exit status ", int(s)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "selvage",
		Short:         "A mesh of identical peers that runs companies of AI agents",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misuse{err} })
	c := &cli{}
	c.flags(root.PersistentFlags())
	root.AddCommand(
		upCommand(c), membersCommand(c), raftCommand(c), tokenCommand(c), leaveCommand(c), nodeCommand(c), stopCommand(c), resumeCommand(c), ledgerCommand(c),
		companyCommand(c), agentCommand(c), approvalCommand(c), issueCommand(c), runCommand(c), activityCommand(c), costCommand(c), budgetCommand(c), routineCommand(c),
		workspaceCommand(c), testnetCommand(c), identityCommand(), mcpCommand(c), onboardCommand(c), secretCommand(c), modelCommand(c), adapterCommand(c), skillCommand(c),
		authCommand(c), memberCommand(c), userCommand(c), keyCommand(c),
	)
	root.AddCommand(sandboxCommand(c), toolCommand(c), pendingCommand(c), approveNodeCommand(c), rejectNodeCommand(c), ownerKeyCommand(c), keyringCommand(c))
	root.AddCommand(snapshotCommand(c), recoverCommand(c), autopilotCommand(c), doctorCommand(c), debugCommand(c), monitorCommand(c))
	for _, cmd := range append(cordonCommands(c), nodeVerbs(c)...) { // selvage drain NODE is what people type
		if name := cmd.Name(); name == "drain" || name == "uncordon" || name == "remove" {
			root.AddCommand(cmd)
		}
	}
	addVerbs(root, c)
	misusedArguments(root)
	return root
}

// misusedArguments makes a wrong number of arguments a misuse, everywhere.
func misusedArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return misuse{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		misusedArguments(sub)
	}
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
