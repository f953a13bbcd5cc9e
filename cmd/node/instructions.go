package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// maxInstructions bounds a file of instructions, in bytes, as the API does.
const maxInstructions = 128 << 10

func instructionsCommand(c *cli.CLI) *cobra.Command {
	get := &cobra.Command{
		Use: "get AGENT [FILE]", Short: "Print a file of an agent's instructions", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.AgentID(cmd, args[0])
			if err != nil {
				return err
			}
			file := "AGENTS.md"
			if len(args) > 1 {
				file = args[1]
			}
			var row struct {
				Content string `json:"content"`
			}
			return c.Show(cmd, "/api/agents/"+id+"/instructions-bundle/file?"+url.Values{"path": {file}}.Encode(), &row,
				func(w io.Writer) { fmt.Fprint(w, row.Content) })
		},
	}
	var from string
	put := &cobra.Command{
		Use: "put AGENT [FILE]", Short: "Write a file of an agent's instructions, from standard input or --from",
		Args:    cobra.RangeArgs(1, 2),
		Example: `  selvage agent instructions put Ada --from AGENTS.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.AgentID(cmd, args[0])
			if err != nil {
				return err
			}
			file := "AGENTS.md"
			if len(args) > 1 {
				file = args[1]
			}
			text, err := cli.ReadText(cmd, cmp.Or(from, "-"), maxInstructions)
			if err != nil {
				return err
			}
			var row struct {
				Path string `json:"path"`
				Size int    `json:"size"`
			}
			return c.Send(cmd, "PUT", "/api/agents/"+id+"/instructions-bundle/file",
				map[string]any{"path": file, "content": text}, &row, func(w io.Writer) {
					fmt.Fprintf(w, "%s, %d bytes\n", row.Path, row.Size)
				})
		},
	}
	put.Flags().StringVar(&from, "from", "", "file to read")
	return cli.Group("instructions", "Instruction files of an agent", get, put)
}

// instructionVerbs are the rows of selvage agent instructions.
var instructionVerbs = []cli.Verb{
	{Use: "list AGENT", Short: "List the instruction files of an agent",
		Path: "/api/agents/{agent:1}/instructions-bundle", Rows: "files",
		Columns: "FILE=path BYTES=size READ=first?isEntryFile"},
	{Use: "remove AGENT FILE", Short: "Remove a file of an agent's instructions", Method: "DELETE",
		Path: "/api/agents/{agent:1}/instructions-bundle/file?path={2}", Says: "removed"},
}
