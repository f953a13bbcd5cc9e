package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// An operation is a row of the API's table of routes, from the API description.
type operation struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Summary string `json:"summary"`
}

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// operations returns the operations of this program's own API, by path and then by
// method.
func operations() (all []operation, err error) {
	b, err := routes.Describe(version)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Summary string `json:"summary"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methods {
			if op, ok := doc.Paths[path][strings.ToLower(method)]; ok {
				all = append(all, operation{method, path, op.Summary})
			}
		}
	}
	return all, nil
}

// apiCommand makes any request of the API, including those without another command.
func apiCommand(c *cli.CLI) *cobra.Command {
	var data string
	var query []string
	cmd := &cobra.Command{
		Use: "api [METHOD] [PATH]", Short: "Make one request of the API, or list what it answers",
		Args: cobra.MaximumNArgs(2),
		Long: `Make one request of the API, with your credential, and print what it answers: JSON in
readable form, all else byte by byte. {company} in the path is the company of
--company. The body is JSON: --data, @FILE, or @- for standard input. Without a path
it lists the operations of this program's API, or those of a METHOD.`,
		Example: `  selvage api GET /api/companies/{company}/issues --query status=todo,blocked
  selvage api POST /api/companies/{company}/labels --data '{"name": "bug", "color": "#ff0000"}'
  selvage api PATCH`,
		ValidArgsFunction: completeOperation,
		RunE: func(cmd *cobra.Command, args []string) error {
			method := ""
			if len(args) > 0 {
				if method = strings.ToUpper(args[0]); !slices.Contains(methods, method) {
					return cli.Misuse(fmt.Errorf("%q is not a method: want %s", args[0], strings.Join(methods, ", ")))
				}
			}
			c.Reads = method == "GET"
			if len(args) < 2 {
				return listOperations(c, cmd, method)
			}
			at, err := url.Parse(args[1])
			if err != nil || !strings.HasPrefix(args[1], "/") || at.Host != "" {
				return cli.Misuse(fmt.Errorf("%q is not a path of the API: one begins with /, such as /api/companies", args[1]))
			}
			path, err := c.Filled(cmd, args[1], nil)
			if err != nil {
				return err
			}
			q := url.Values{}
			for _, one := range query {
				name, value, ok := strings.Cut(one, "=")
				if !ok || name == "" {
					return cli.Misuse(fmt.Errorf("--query %s: want NAME=VALUE", one))
				}
				q.Add(name, value)
			}
			if len(q) > 0 {
				path += cmp.Or(map[bool]string{true: "&"}[strings.Contains(path, "?")], "?") + q.Encode()
			}
			var body any
			if cmd.Flags().Changed("data") {
				text, err := cli.TextOrFile(cmd, data, cli.MaxTextFile)
				if err != nil {
					return err
				}
				if !json.Valid([]byte(text)) {
					return cli.Misuse(errors.New("--data is not JSON"))
				}
				body = json.RawMessage(text)
			} else if method == "POST" || method == "PUT" || method == "PATCH" {
				body = struct{}{}
			}
			var raw []byte
			if err := c.Call(cmd.Context(), method, path, body, &raw); err != nil {
				return err
			}
			var pretty bytes.Buffer
			if json.Indent(&pretty, raw, "", "  ") == nil {
				raw = append(pretty.Bytes(), '\n')
			}
			_, err = cmd.OutOrStdout().Write(raw)
			return err
		},
	}
	cmd.Flags().StringVarP(&data, "data", "d", "", "body: JSON, or @FILE that holds it")
	cmd.Flags().StringArrayVarP(&query, "query", "q", nil, "NAME=VALUE of the query (repeat for more)")
	return cmd
}

func listOperations(c *cli.CLI, cmd *cobra.Command, method string) error {
	all, err := operations()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o operation) bool { return method != "" && o.Method != method })
	return c.Print(cmd, all, func(w io.Writer) {
		var t [][]string
		for _, o := range all {
			t = append(t, []string{o.Method, o.Path, o.Summary})
		}
		cli.Table(w, "METHOD PATH SUMMARY", t)
	})
}

// completeOperation completes a method, and then a path up to its next placeholder.
func completeOperation(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return methods, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := operations()
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var fits []string
	for _, o := range all {
		path := strings.Replace(o.Path, "/companies/{companyId}", "/companies/{company}", 1)
		if o.Method == strings.ToUpper(args[0]) && strings.HasPrefix(path, typed) {
			fits = append(fits, path+"\t"+o.Summary)
		}
	}
	return fits, cobra.ShellCompDirectiveNoFileComp
}
