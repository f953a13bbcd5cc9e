// Command selvage is the one program of a mesh: the daemon, its operator's command line,
// and the shim that runs stand under.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/cmd/node/onboard"
)

// The linker sets version; in tests it also sets level, for a program with another
// feature level than this tree.
var (
	version = "dev"
	level   = ""
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == "run-shim" {
		return shim.Main(args[1:]) // whoever waits for a run waits for this process
	}
	return execute(ctx, args, os.Stdin, os.Stdout, os.Stderr)
}

// execute runs a command line and returns its exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, talk io.Writer) int {
	c := &cli.CLI{Talk: talk}
	root := newRootWith(c)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		cli.Completes(c, root)
	}
	root.SetArgs(spelledOut(root, args))
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
	return cli.Report(talk, cmd, cli.WantsJSON(c, args), err)
}

// An exitStatus ends the program with its own status and without a message.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprint("exit status ", int(s)) }

func newRootWith(c *cli.CLI) *cobra.Command {
	root := &cobra.Command{
		Use:               "selvage",
		Short:             "A mesh of identical peers that runs companies of AI agents",
		Version:           version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return c.Prepare(cmd) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Misuse(cli.WrongFlag(err)) })
	c.Flags(root.PersistentFlags())
	root.AddCommand(
		upCommand(c), membersCommand(c), raftCommand(c), tokenCommand(c), nodeCommand(c), stopCommand(c), ledgerCommand(c),
		companyCommand(c), agentCommand(c), approvalCommand(c), issueCommand(c), runCommand(c), costCommand(),
		budgetCommand(c), routineCommand(c),
		testnetCommand(c), statusCommand(c), versionCommand(c), logsCommand(c), identityCommand(), mcpCommand(c),
		onboard.Command(c, packageSource), secretCommand(), modelCommand(c), adapterCommand(c), skillCommand(c),
		authCommand(c), memberCommand(c), userCommand(c), keyCommand(c),
	)
	root.AddCommand(apiCommand(c), eventsCommand(c), sandboxCommand(c), toolCommand(c), appCommand(c), ownerKeyCommand(c),
		keyringCommand(c))
	root.AddCommand(snapshotCommand(c), recoverCommand(c), autopilotCommand(c), doctorCommand(c), scrubCommand(c),
		debugCommand(c), monitorCommand(c))
	root.AddCommand(processCommands(c)...)
	root.AddCommand(drainCommand(c)) // people type selvage drain NODE
	for _, cmd := range nodeCommands(c) {
		if cmd.Name() == "remove" {
			root.AddCommand(cmd)
		}
	}
	addVerbs(root, c)
	alsoCalled(root)
	inGroups(root)
	help(root)
	cli.MisusedArguments(root)
	cli.Examples(root)
	return root
}
