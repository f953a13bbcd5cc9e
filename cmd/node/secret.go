package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// maxSecret bounds the value of a secret that is read, in bytes, as the API does.
const maxSecret = 64 << 10

func secretCommand(c *cli) *cobra.Command {
	return group("secret", "Store sealed values that agents' variables refer to")
}

// readSecret reads a value from standard input, or from a prompt that does not
// show it. One line break at its end is not part of it. It is never an argument:
// those are seen by everybody on the machine.
func readSecret(cmd *cobra.Command) (string, error) {
	var b []byte
	var err error
	if in, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(cmd.ErrOrStderr(), "Value: ")
		b, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
	} else {
		b, err = io.ReadAll(io.LimitReader(bufio.NewReader(cmd.InOrStdin()), maxSecret+3))
	}
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case value == "":
		return "", misuse{errors.New("the value is empty: give it on standard input")}
	case len(value) > maxSecret:
		return "", misuse{fmt.Errorf("a value has at most %d bytes", maxSecret)}
	}
	return value, nil
}

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

// A secretRow is the part of a secret that is asked for besides its value.
type secretRow struct {
	ID            string `json:"id"`
	Key           string `json:"key"`
	LatestVersion int    `json:"latestVersion"`
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
