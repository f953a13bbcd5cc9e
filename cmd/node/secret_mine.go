package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// definitionVerbs are about what each person may bring a secret for.
var definitionVerbs = []verb{
	{use: "list", short: "List the definitions of personal secrets", path: "/api/companies/{company}/user-secret-definitions", columns: "KEY=key NAME=name STATUS=status GUIDANCE=usageGuidance ID=id"},
	{use: "add KEY NAME", short: "Define a secret that each person stores for themselves", method: "POST", path: "/api/companies/{company}/user-secret-definitions", says: "{key} {status} {id}",
		fields: []field{{place: 1, member: "key"}, {place: 2, member: "name"}, {name: "guidance", member: "usageGuidance", about: "what people are told of it"}}},
	{use: "update DEFINITION", short: "Edit the definition of a personal secret", method: "PATCH", path: "/api/companies/{company}/user-secret-definitions/{definition:1}", says: "{key} {status}",
		fields: []field{{name: "name", member: "name", about: "its new name"}, {name: "status", member: "status", about: "active, disabled or archived"}, {name: "guidance", member: "usageGuidance", about: "what people are told of it"}}},
	{use: "remove DEFINITION", short: "Delete the definition of a personal secret", method: "DELETE", path: "/api/companies/{company}/user-secret-definitions/{definition:1}", says: "removed"},
}

// mineVerbs are about the caller's own secrets, but for their values.
var mineVerbs = []verb{
	{use: "list", short: "List your own secrets, without their values", path: "/api/companies/{company}/me/user-secrets", columns: "KEY=key STATUS=status VERSION=latestVersion ID=id"},
	{use: "remove KEY", short: "Delete your own secret", method: "DELETE", path: "/api/companies/{company}/me/user-secrets/{mine:1}", says: "removed"},
}

// setMine gives the caller's value for a definition, or a new one.
func setMine(c *cli) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY", Short: "Store your own secret; its value comes from standard input, or a prompt", Args: cobra.ExactArgs(1),
		Example: `  selvage secret mine set GITHUB_TOKEN <token.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			at := "/api/companies/" + company + "/me/user-secrets"
			var rows []secretRow
			if err := c.call(cmd.Context(), "GET", at, nil, &rows); err != nil {
				return err
			}
			value, err := readSecret(cmd)
			if err != nil {
				return err
			}
			in := map[string]any{"value": value}
			var row secretRow
			for _, r := range rows {
				if r.Key == args[0] {
					return c.send(cmd, "POST", at+"/"+r.ID+"/rotate", in, &row, func(w io.Writer) { fmt.Fprintf(w, "%s version %d\n", args[0], row.LatestVersion) })
				}
			}
			in["definitionKey"] = args[0]
			return c.send(cmd, "POST", at, in, &row, func(w io.Writer) { fmt.Fprintf(w, "%s version %d\n", args[0], row.LatestVersion) })
		},
	}
}
