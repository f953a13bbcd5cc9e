package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type adapterRow struct {
	Type    string `json:"type"`
	Name    string `json:"displayName"`
	Program string `json:"program"`
	Level   string `json:"integration"`
	Gateway bool   `json:"modelGateway"`
}

type adapterTestRow struct {
	Type   string `json:"adapterType"`
	Status string `json:"status"`
	Nodes  []struct {
		Node   string `json:"nodeId"`
		Name   string `json:"name"`
		Status string `json:"status"`
		Checks []struct {
			Code    string `json:"code"`
			Level   string `json:"level"`
			Message string `json:"message"`
			Detail  string `json:"detail"`
			Hint    string `json:"hint"`
		} `json:"checks"`
	} `json:"nodes"`
}

func adapterCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("adapter", "Adapters: how agents are run, and what a node needs for them", adapterShow(c),
		adapterTest(c))
}

func adapterShow(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "show TYPE", Short: "Show what an adapter is and which fields its configuration has",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var row struct {
				adapterRow
				Note   string   `json:"note"`
				Keys   []string `json:"keys"`
				Fields []struct {
					Key, Label, Type, Hint string
					Required               bool
					Default                any
				} `json:"fields"`
			}
			return c.Show(cmd, "/api/adapters/"+url.PathEscape(args[0]), &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s, integration %s\n%s\n\n", row.Type, row.Name, row.Level, row.Note)
				var cells [][]string
				for _, f := range row.Fields {
					what, given := f.Label, "-"
					if f.Hint != "" {
						what += ": " + f.Hint
					}
					if f.Default != nil {
						given = fmt.Sprint(f.Default)
					}
					if f.Required {
						given = "(needed)"
					}
					cells = append(cells, []string{f.Key, f.Type, given, what})
				}
				cli.Table(w, "FIELD TYPE DEFAULT WHAT", cells)
			})
		},
	}
}

func adapterTest(c *cli.CLI) *cobra.Command {
	var node, config string
	cmd := &cobra.Command{
		Use: "test TYPE", Short: "Check on each node what an adapter lacks", Args: cobra.ExactArgs(1),
		Example: `  selvage adapter test claude_local
  selvage adapter test process --node berlin-1 --config '{"command": "/srv/agent", "cwd": "/srv"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{}
			if node != "" {
				body["nodeId"] = node
			}
			if config != "" {
				if !json.Valid([]byte(config)) {
					return cli.Misuse(errors.New("--config is not JSON"))
				}
				body["adapterConfig"] = json.RawMessage(config)
			}
			var row adapterTestRow
			err = c.Send(cmd, "POST", "/api/companies/"+company+"/adapters/"+url.PathEscape(args[0])+"/test-environment", body,
				&row, func(w io.Writer) {
					for _, n := range row.Nodes {
						fmt.Fprintf(w, "%s: %s\n", n.Name, n.Status)
						for _, k := range n.Checks {
							fmt.Fprintf(w, "  %-5s %s\n", k.Level, k.Message)
							if k.Level != "info" && k.Hint != "" {
								fmt.Fprintf(w, "        %s\n", k.Hint)
							}
						}
					}
				})
			if err == nil && row.Status == "fail" {
				err = fmt.Errorf("no node has what %s needs", row.Type)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "name or ID of the node; all that are there unless given")
	cmd.Flags().StringVar(&config, "config", "", "adapterConfig as JSON")
	return cmd
}

// adapterVerbs are the rows of selvage adapter.
var adapterVerbs = []cli.Verb{
	{Use: "list", Short: "List the adapters", Path: "/api/adapters",
		Columns: "TYPE=type NAME=displayName PROGRAM=program INTEGRATION=integration GATEWAY=yes?modelGateway|'no'",
		Long: `List the adapters. INTEGRATION says how much of a run is known: minimum, that it
ended; status, how it went, with what it used as the agent tells it; full, that
its model calls were paid before they left.`},
	{Use: "models TYPE", Short: "List models that agents of an adapter may be given",
		Path: "/api/companies/{company}/adapters/{1}/models", Columns: "MODEL=id LABEL=label"},
}
