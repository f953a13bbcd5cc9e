package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type toolRow struct {
	Name   string `json:"name"`
	About  string `json:"description"`
	Effect struct {
		Risk int64 `json:"risk"`
	} `json:"effect"`
	Versions []struct {
		Version uint32 `json:"version"`
		Hash    string `json:"moduleHash"`
		Revoked bool   `json:"revoked"`
		Size    int64  `json:"byteSize"`
		Signer  string `json:"signerId"`
		Seq     uint64 `json:"chainSeq"`
	} `json:"versions"`
}

// inUse returns the newest version that is not revoked, "-" without one.
func (t toolRow) inUse() string {
	for i := len(t.Versions) - 1; i >= 0; i-- {
		if !t.Versions[i].Revoked {
			return fmt.Sprint(t.Versions[i].Version)
		}
	}
	return "-"
}

func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'g', -1, 64) }

// toolVerbs are the rows of selvage tool.
var toolVerbs = []cli.Verb{
	{Use: "catalogue", Short: "List the kernel's tools, their risk, and their counterparts here",
		Path:    "/api/v1/tools",
		Columns: "TOOL=name CATEGORY=category RISK=milli:effect.risk HERE=native"},
}

// toolCommand deploys, runs and revokes tools: modules that run in the sandbox.
func toolCommand(c *cli.CLI) *cobra.Command {
	at := func(cmd *cobra.Command, rest string) (string, error) {
		company, err := c.CompanyID(cmd)
		return "/api/companies/" + company + "/tools" + rest, err
	}
	list := &cobra.Command{
		Use: "list", Short: "List the tools of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := at(cmd, "")
			if err != nil {
				return err
			}
			var rows []toolRow
			return c.Show(cmd, path, &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.Name, r.inUse(), fmt.Sprint(len(r.Versions)), thousandths(r.Effect.Risk), r.About})
				}
				cli.Table(w, "TOOL IN-USE VERSIONS RISK DESCRIPTION", t)
			})
		},
	}
	return cli.Group("tool", "Tools of a company: programs that run in the sandbox, signed by version", list,
		toolBuildCommand(c), toolDeployCommand(c, at), toolVersionsCommand(c, at), toolRunCommand(c, at),
		toolRevokeCommand(c, at))
}

func toolDeployCommand(c *cli.CLI, at func(*cobra.Command, string) (string, error)) *cobra.Command {
	fields := map[string]*string{"description": new(string), "parameters": new(string), "effect": new(string)}
	cmd := &cobra.Command{
		Use: "deploy NAME FILE.wasm", Short: "Deploy a new version of a tool", Args: cobra.ExactArgs(2),
		Example: `  selvage tool deploy count count.wasm --description "Count words" --effect '{"risk": 0.1}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := at(cmd, "")
			if err != nil {
				return err
			}
			f, err := os.Open(args[1])
			if err != nil {
				return cli.Misuse(err)
			}
			defer f.Close()
			form := map[string]string{"name": args[0]}
			for k, v := range fields {
				form[k] = *v
			}
			up, err := c.Client()
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := up.Upload(cmd.Context(), path, filepath.Base(args[1]), f, form, &raw); err != nil {
				return err
			}
			var row toolRow
			if err := json.Unmarshal(raw, &row); err != nil {
				return err
			}
			return c.Print(cmd, raw, func(w io.Writer) {
				last := row.Versions[len(row.Versions)-1]
				fmt.Fprintf(w, "%s version %d, %s\n", row.Name, last.Version, last.Hash)
			})
		},
	}
	cmd.Flags().StringVar(fields["description"], "description", "", "what it is for")
	cmd.Flags().StringVar(fields["parameters"], "parameters", "", "JSON schema of its input")
	cmd.Flags().StringVar(fields["effect"], "effect", "",
		"what a call may do, 0 to 1 of risk, security, privacy, novelty, fairness, as JSON")
	return cmd
}

func toolVersionsCommand(c *cli.CLI, at func(*cobra.Command, string) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: "versions NAME", Short: "List the versions of a tool, and who signed them", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := at(cmd, "/"+url.PathEscape(args[0]))
			if err != nil {
				return err
			}
			var row toolRow
			return c.Show(cmd, path, &row, func(w io.Writer) {
				var t [][]string
				for _, v := range row.Versions {
					state := "in use"
					if v.Revoked {
						state = "revoked"
					}
					t = append(t, []string{fmt.Sprint(v.Version), state, v.Hash[:min(16, len(v.Hash))], fmt.Sprint(v.Size),
						v.Signer[:min(12, len(v.Signer))], fmt.Sprint(v.Seq)})
				}
				cli.Table(w, "VERSION STATE SHA256 BYTES SIGNER HEIGHT", t)
			})
		},
	}
}

func toolRunCommand(c *cli.CLI, at func(*cobra.Command, string) (string, error)) *cobra.Command {
	var input string
	var version, fuel, memory int64
	cmd := &cobra.Command{
		Use: "execute NAME", Aliases: []string{"run"}, Short: "Run a tool on the node that answers",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := at(cmd, "/"+url.PathEscape(args[0])+"/execute")
			if err != nil {
				return err
			}
			body := map[string]any{"version": version, "fuel": fuel, "memoryMb": memory}
			if input != "" {
				if !json.Valid([]byte(input)) {
					return cli.Misuse(fmt.Errorf("--input is not JSON"))
				}
				body["input"] = json.RawMessage(input)
			}
			var out struct {
				Stdout string `json:"stdout"`
				Stderr string `json:"stderr"`
				Error  *struct {
					Code    string `json:"code"`
					Message string `json:"message"`
				} `json:"error"`
			}
			err = c.Send(cmd, "POST", path, body, &out, func(w io.Writer) {
				fmt.Fprint(w, out.Stdout)
				fmt.Fprint(cmd.ErrOrStderr(), out.Stderr)
			})
			if err == nil && out.Error != nil {
				return fmt.Errorf("%s: %s", out.Error.Code, out.Error.Message)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "its standard input, JSON")
	cmd.Flags().Int64Var(&version, "version", 0, "the version (default: the newest in use)")
	cmd.Flags().Int64Var(&fuel, "fuel", 0,
		"units of fuel, about one an instruction; a program of Go takes two million to begin (default 100000000)")
	cmd.Flags().Int64Var(&memory, "memory-mb", 0, "MiB of memory (default 16)")
	return cmd
}

func toolRevokeCommand(c *cli.CLI, at func(*cobra.Command, string) (string, error)) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke NAME VERSION", Short: "Revoke a version of a tool", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := at(cmd, "/"+url.PathEscape(args[0])+"/versions/"+url.PathEscape(args[1])+"/revoke")
			if err != nil {
				return err
			}
			var row toolRow
			return c.Send(cmd, "POST", path, map[string]any{"reason": reason}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s version %s is revoked; in use: %s\n", args[0], args[1], row.inUse())
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}
