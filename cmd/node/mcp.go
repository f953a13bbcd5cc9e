package main

import (
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

func mcpCommand(c *cli.CLI) *cobra.Command {
	var few, all bool
	var groups []string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the API as MCP tools over stdin and stdout",
		Long: `Serve the API as tools of the Model Context Protocol over stdin and stdout, for
clients that start their servers themselves. Every tool is one HTTP call to a
node, made with your credential. Clients that speak HTTP need no program: every
node serves the same tools at /mcp.

A model reads all tools that are listed before its first word, so few are: the
contract's 41, the list of companies, selvageFindTools, which finds the others, and
selvageCallTool, which calls them. --tools lists groups instead, such as issues,runs
(contract is one of them), and --all lists everything, at some 60,000 tokens.
At /mcp the same is said by ?tools=issues,runs and ?tools=all.

It reads PAPERCLIP_API_URL (or SELVAGE_API_URL, or --api, or the socket SELVAGE_API_SOCKET
that a process without a network has), PAPERCLIP_API_KEY (or
SELVAGE_API_KEY, or what auth login has kept), and the defaults PAPERCLIP_COMPANY_ID, PAPERCLIP_AGENT_ID and
PAPERCLIP_RUN_ID.`,
		Example: `  {"mcpServers": {"selvage": {"command": "selvage", "args": ["mcp"],
    "env": {"PAPERCLIP_API_URL": "http://127.0.0.1:3100", "PAPERCLIP_API_KEY": "pcp_…"}}}}`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tools, err := routes.Tools(version)
			if err != nil {
				return err
			}
			switch {
			case all:
				groups = append(groups, "all")
			case few:
				groups = append(groups, "contract")
			}
			pick, err := mcp.NewPick(tools, strings.Join(groups, ","))
			if err != nil {
				return cli.Misuse(err)
			}
			mine, err := c.Mine()
			if err != nil {
				return err
			}
			transport, err := c.Transport()
			if err != nil {
				return err
			}
			company := os.Getenv("PAPERCLIP_COMPANY_ID")
			if c.Company != "" { // it may be a name
				if company, err = c.CompanyID(cmd); err != nil {
					return err
				}
			}
			caller := mcp.Caller{Transport: transport, Base: c.URL(), Key: mine.Key, Company: company,
				Agent: os.Getenv("PAPERCLIP_AGENT_ID"), Run: os.Getenv("PAPERCLIP_RUN_ID")}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			err = mcp.Stdio(cmd.Context(), tools, pick, version, caller, os.Stdin, os.Stdout, log)
			if errors.Is(err, cmd.Context().Err()) {
				return nil
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "list all tools")
	flags.StringSliceVar(&groups, "tools", nil, "list the tools of these groups, such as issues,runs")
	flags.BoolVar(&few, "contract", false, "list the 41 tools of the contract and nothing else")
	return cmd
}
