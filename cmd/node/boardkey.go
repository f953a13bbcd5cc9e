package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type boardKeyRow struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Token     string  `json:"token"`
	CreatedAt string  `json:"createdAt"`
	ExpiresAt *string `json:"expiresAt"`
}

func keyCommand(c *cli.CLI) *cobra.Command {
	var ttl time.Duration
	create := &cobra.Command{
		Use: "create NAME", Short: "Create a board key, with which a program acts as you; it is shown once",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{"name": args[0]}
			if ttl > 0 {
				in["expiresAt"] = cli.Wall().Add(ttl).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			var row boardKeyRow
			return c.Send(cmd, "POST", "/api/board-api-keys", in, &row, func(w io.Writer) { fmt.Fprintln(w, row.Token) })
		},
	}
	create.Flags().DurationVar(&ttl, "ttl", 0, "how long it is good (default 30 days)")
	return cli.Group("key", "Keys with which programs act as you", cli.Group("board", "Board keys", create))
}

// boardKeyVerbs are the rows of selvage key board.
var boardKeyVerbs = []cli.Verb{
	{Use: "list", Short: "List your board keys", Path: "/api/board-api-keys",
		Columns: "ID=id MADE=createdAt ENDS=expiresAt|'never' NAME=name"},
	{Use: "revoke ID", Short: "Revoke one of your board keys, on all nodes", Method: "DELETE",
		Path: "/api/board-api-keys/{1}", Says: "revoked {1}"},
}
