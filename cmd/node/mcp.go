package main

import (
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

func mcpCommand(c *cli.CLI) *cobra.Command {
	var few bool
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the API as MCP tools over stdin and stdout",
		Long: `Serve the API as tools of the Model Context Protocol over stdin and stdout, for
clients that start their servers themselves. Every tool is one HTTP call to a
node, made with your credential. Clients that speak HTTP need no program: every
node serves the same tools at /mcp.

It reads PAPERCLIP_API_URL (or SELVAGE_API_URL, or --api), PAPERCLIP_API_KEY (or
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
			if few {
				tools = mcp.Contract(tools)
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
			if c.Company != "" { // may be a name
				if company, err = c.CompanyID(cmd); err != nil {
					return err
				}
			}
			caller := mcp.Caller{Transport: transport, Base: c.URL(), Key: mine.Key, Company: company,
				Agent: os.Getenv("PAPERCLIP_AGENT_ID"), Run: os.Getenv("PAPERCLIP_RUN_ID")}
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			err = mcp.Stdio(cmd.Context(), tools, version, caller, os.Stdin, os.Stdout, log)
			if errors.Is(err, cmd.Context().Err()) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&few, "contract", false, "offer the 41 tools of the contract only")
	return cmd
}
