package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// maxInstructions bounds a file of instructions that is read, in bytes, as the
// API does.
const maxInstructions = 128 << 10

// revisionsCommands show what was changed in an agent's configuration and take it back.
func revisionsCommands(c *cli) []*cobra.Command {
	type revision struct {
		ID        string   `json:"id"`
		Source    string   `json:"source"`
		Changed   []string `json:"changedKeys"`
		CreatedAt string   `json:"createdAt"`
	}
	list := &cobra.Command{
		Use: "revisions AGENT", Short: "List changes of an agent's configuration, the newest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.agentID(cmd, args[0])
			if err != nil {
				return err
			}
			var rows []revision
			return c.show(cmd, "/api/agents/"+id+"/config-revisions", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.ID, r.Source, ago(r.CreatedAt), strings.Join(r.Changed, ",")})
				}
				table(w, "REVISION SOURCE MADE CHANGED", t)
			})
		},
	}
	rollback := &cobra.Command{
		Use: "rollback AGENT REVISION", Short: "Roll an agent back to an earlier configuration", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.filled(cmd, "/api/agents/{agent:1}/config-revisions/{2}/rollback", args)
			if err != nil {
				return err
			}
			var row agentRow
			return c.send(cmd, "POST", path, nil, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s rolled back to %s\n", row.Name, args[1])
			})
		},
	}
	return []*cobra.Command{list, rollback, instructionsCommand(c)}
}

func instructionsCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list AGENT", Short: "List the instruction files of an agent", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.agentID(cmd, args[0])
			if err != nil {
				return err
			}
			var row struct {
				Mode  *string `json:"mode"`
				Files []struct {
					Path  string `json:"path"`
					Size  int    `json:"size"`
					Entry bool   `json:"isEntryFile"`
				} `json:"files"`
			}
			return c.show(cmd, "/api/agents/"+id+"/instructions-bundle", &row, func(w io.Writer) {
				var t [][]string
				for _, f := range row.Files {
					t = append(t, []string{f.Path, fmt.Sprint(f.Size), map[bool]string{true: "first", false: "-"}[f.Entry]})
				}
				table(w, "FILE BYTES READ", t)
			})
		},
	}
	get := &cobra.Command{
		Use: "get AGENT [FILE]", Short: "Print a file of an agent's instructions", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.agentID(cmd, args[0])
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
			return c.show(cmd, "/api/agents/"+id+"/instructions-bundle/file?"+url.Values{"path": {file}}.Encode(), &row, func(w io.Writer) { fmt.Fprint(w, row.Content) })
		},
	}
	var from string
	put := &cobra.Command{
		Use: "put AGENT [FILE]", Short: "Write a file of an agent's instructions, from standard input or --from", Args: cobra.RangeArgs(1, 2),
		Example: `  selvage agent instructions put Ada --from AGENTS.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.agentID(cmd, args[0])
			if err != nil {
				return err
			}
			file := "AGENTS.md"
			if len(args) > 1 {
				file = args[1]
			}
			text, err := readText(cmd, cmp.Or(from, "-"), maxInstructions)
			if err != nil {
				return err
			}
			var row struct {
				Path string `json:"path"`
				Size int    `json:"size"`
			}
			return c.send(cmd, "PUT", "/api/agents/"+id+"/instructions-bundle/file", map[string]any{"path": file, "content": text}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s, %d bytes\n", row.Path, row.Size)
			})
		},
	}
	put.Flags().StringVar(&from, "from", "", "file to read")
	return group("instructions", "Instruction files of an agent", list, get, put)
}
