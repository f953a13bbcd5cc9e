package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

func secretCommand() *cobra.Command {
	return cli.Group("secret", "Store sealed values that agents' variables refer to")
}

// definitionVerbs manage definitions of secrets with a value per user.
var definitionVerbs = []cli.Verb{
	{Use: "list", Short: "List the definitions of personal secrets",
		Path:    "/api/companies/{company}/user-secret-definitions",
		Columns: "KEY=key NAME=name STATUS=status GUIDANCE=usageGuidance ID=id"},
	{Use: "add KEY NAME", Short: "Define a secret that each person stores for themselves", Method: "POST",
		Path: "/api/companies/{company}/user-secret-definitions", Says: "{key} {status} {id}",
		Fields: []cli.Field{{Place: 1, Member: "key"}, {Place: 2, Member: "name"},
			{Name: "guidance", Member: "usageGuidance", About: "what people are told of it"}}},
	{Use: "update DEFINITION", Short: "Edit the definition of a personal secret", Method: "PATCH",
		Path: "/api/companies/{company}/user-secret-definitions/{definition:1}", Says: "{key} {status}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"},
			{Name: "status", Member: "status", About: "active, disabled or archived"},
			{Name: "guidance", Member: "usageGuidance", About: "what people are told of it"}}},
	{Use: "remove DEFINITION", Short: "Delete the definition of a personal secret", Method: "DELETE",
		Path: "/api/companies/{company}/user-secret-definitions/{definition:1}", Says: "removed"},
}

// mineVerbs manage the caller's own secrets, except for setting values.
var mineVerbs = []cli.Verb{
	{Use: "list", Short: "List your own secrets, without their values",
		Path:    "/api/companies/{company}/me/user-secrets",
		Columns: "KEY=key STATUS=status VERSION=latestVersion ID=id"},
	{Use: "remove KEY", Short: "Delete your own secret", Method: "DELETE",
		Path: "/api/companies/{company}/me/user-secrets/{mine:1}", Says: "removed"},
}

// A secretRow is the part of a secret that is needed besides its value.
type secretRow struct {
	ID            string `json:"id"`
	Key           string `json:"key"`
	LatestVersion int    `json:"latestVersion"`
}

// setMine creates or replaces the caller's value for a definition.
func setMine(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "set KEY", Short: "Store your own secret; its value comes from standard input, or a prompt",
		Args:    cobra.ExactArgs(1),
		Example: `  selvage secret mine set GITHUB_TOKEN <token.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			at := "/api/companies/" + company + "/me/user-secrets"
			var rows []secretRow
			if err := c.Call(cmd.Context(), "GET", at, nil, &rows); err != nil {
				return err
			}
			value, err := cli.ReadSecret(cmd)
			if err != nil {
				return err
			}
			in := map[string]any{"value": value}
			var row secretRow
			for _, r := range rows {
				if r.Key == args[0] {
					return c.Send(cmd, "POST", at+"/"+r.ID+"/rotate", in, &row,
						func(w io.Writer) { fmt.Fprintf(w, "%s version %d\n", args[0], row.LatestVersion) })
				}
			}
			in["definitionKey"] = args[0]
			return c.Send(cmd, "POST", at, in, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s version %d\n", args[0],
					row.LatestVersion)
			})
		},
	}
}

// secretVerbs are the rows of selvage secret.
var secretVerbs = []cli.Verb{
	{Use: "list", Short: "List the secrets of a company, without their values",
		Path:    "/api/companies/{company}/secrets",
		Columns: "KEY=key NAME=name STATUS=status VERSION=latestVersion USES=referenceCount ID=id"},
	{Use: "create NAME", Short: "Create a secret; its value comes from standard input, or a prompt",
		Example: `  selvage secret create "OpenAI key" <key.txt`, Method: "POST",
		Path: "/api/companies/{company}/secrets", Says: "{key} created, version {latestVersion}, {id}",
		Fields: []cli.Field{{Place: 1, Member: "name"}, {Kind: "secret", Member: "value"}}},
	{Use: "rotate SECRET", Short: "Give a secret a new value, from standard input or a prompt", Method: "POST",
		Path: "/api/secrets/{secret:1}/rotate", Says: "{key} rotated, version {latestVersion}, {id}",
		Fields: []cli.Field{{Kind: "secret", Member: "value"}}},
	{Use: "delete SECRET", Short: "Delete a secret with all its versions", Method: "DELETE",
		Path: "/api/secrets/{secret:1}", Says: "deleted"},
	{Use: "usage SECRET", Short: "List the variables that refer to a secret", Path: "/api/secrets/{secret:1}/usage",
		Rows: "bindings", Columns: "TYPE=targetType ID=targetId VARIABLE=configPath"},
	{Use: "update SECRET", Short: "Change a secret's name, key or status", Method: "PATCH",
		Path: "/api/secrets/{secret:1}", Says: "{key} {status}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"},
			{Name: "key", Member: "key", About: "its new key"},
			{Name: "status", Member: "status", About: "active, disabled or archived"}, withDescription}},
	{Use: "accesses SECRET", Short: "List which runs used a secret, the newest first",
		Path:    "/api/secrets/{secret:1}/access-events",
		Columns: "AT=createdAt RUN=heartbeatRunId BY=actorType VARIABLE=configPath VERSION=version OUTCOME=outcome"},
}
