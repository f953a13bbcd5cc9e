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

type secretRow struct {
	ID            string `json:"id"`
	Key           string `json:"key"`
	Name          string `json:"name"`
	Status        string `json:"status"`
	LatestVersion int    `json:"latestVersion"`
	References    int    `json:"referenceCount"`
	UpdatedAt     string `json:"updatedAt"`
}

func secretCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the secrets of a company, without their values", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var rows []secretRow
			return c.show(cmd, "/api/companies/"+company+"/secrets", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.Key, r.Name, r.Status, fmt.Sprint(r.LatestVersion), fmt.Sprint(r.References), r.ID})
				}
				table(w, "KEY NAME STATUS VERSION USES ID", t)
			})
		},
	}
	create := &cobra.Command{
		Use: "create NAME", Short: "Create a secret; its value comes from standard input, or a prompt", Args: cobra.ExactArgs(1),
		Example: `  selvage secret create "OpenAI key" <key.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			value, err := readSecret(cmd)
			if err != nil {
				return err
			}
			var row secretRow
			return c.send(cmd, "POST", "/api/companies/"+company+"/secrets", map[string]any{"name": args[0], "value": value}, &row, row.print("created", &row))
		},
	}
	rotate := &cobra.Command{
		Use: "rotate SECRET", Short: "Give a secret a new value, from standard input or a prompt", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "secret", args[0])
			if err != nil {
				return err
			}
			value, err := readSecret(cmd)
			if err != nil {
				return err
			}
			var row secretRow
			return c.send(cmd, "POST", "/api/secrets/"+id+"/rotate", map[string]any{"value": value}, &row, row.print("rotated", &row))
		},
	}
	remove := &cobra.Command{
		Use: "delete SECRET", Short: "Delete a secret with all its versions", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "secret", args[0])
			if err != nil {
				return err
			}
			var done map[string]any
			return c.send(cmd, "DELETE", "/api/secrets/"+id, nil, &done, func(w io.Writer) { fmt.Fprintln(w, "deleted") })
		},
	}
	usage := &cobra.Command{
		Use: "usage SECRET", Short: "List the variables that refer to a secret", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := c.resolve(cmd, "secret", args[0])
			if err != nil {
				return err
			}
			var row struct {
				Bindings []struct {
					TargetType string `json:"targetType"`
					TargetID   string `json:"targetId"`
					ConfigPath string `json:"configPath"`
				} `json:"bindings"`
			}
			return c.show(cmd, "/api/secrets/"+id+"/usage", &row, func(w io.Writer) {
				var t [][]string
				for _, b := range row.Bindings {
					t = append(t, []string{b.TargetType, b.TargetID, b.ConfigPath})
				}
				table(w, "TYPE ID VARIABLE", t)
			})
		},
	}
	return group("secret", "Store sealed values that agents' variables refer to", list, create, rotate, remove, usage)
}

func (secretRow) print(what string, r *secretRow) func(io.Writer) {
	return func(w io.Writer) { fmt.Fprintf(w, "%s %s, version %d, %s\n", r.Key, what, r.LatestVersion, r.ID) }
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
