package clock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

const servicePath = "/api/v1/services"

// serviceVerbs are the rows of selvage service.
var serviceVerbs = []cli.Verb{
	{Use: "list", Short: "List the services of the mesh", Also: []string{"ls"}, Path: servicePath, Rows: "services",
		Columns: "SERVICE=name VERSION=version PROVIDER=provider HEALTH=health CONTRACT=contract"},
	{Use: "show SERVICE", Short: "Show a service with its contract and its providers", Path: servicePath + "/{1}"},
	{Use: "call SERVICE METHOD [PARAMS]", Short: "Call a method of a service at a provider that lives, wherever it runs",
		Method: "POST", Path: servicePath + "/{1}/call", Says: "{by}: {result}",
		Example: "  selvage service call adder add '[1,2]'\n  selvage service call mail send @letter.json --timeout 30000",
		Fields: []cli.Field{{Place: 2, Member: "method"}, {Place: 3, Member: "params", Kind: "json or @file"},
			{Name: "timeout", Member: "timeout_ms", Kind: "int", About: "ms to wait for the answer; 10000 unless given"}}},
	{Use: "health SERVICE", Short: "Probe the providers of a service now, with the state of their breakers",
		Path: servicePath + "/{1}/health", Rows: "providers",
		Columns: "PROVIDER=address HEALTH=health BREAKER=breaker FAILURES=failures PROBES=failed_probes ERROR=error"},
	{Use: "remove SERVICE", Short: "Remove a service; its providers run on", Also: []string{"rm"}, Method: "DELETE",
		Path: servicePath + "/{1}", Says: "removed {1}"},
}

// registerService registers a service, or changes it.
func registerService(c *cli.CLI) *cobra.Command {
	var version, provider, probe, methods string
	cmd := &cobra.Command{Use: "register NAME",
		Short: "Register a service: its contract, and the declared process that provides it", Args: cobra.ExactArgs(1),
		Long: `Register a service under a name: methods with JSON schemas of what they take and answer, and
the declared process whose replicas provide it. A call goes to a replica that lives, in
turn; both sides are held to the schemas. A changed contract needs a new version.

A provider receives a message with {"service","method","params"} that wants a reply, and
replies {"result":…} or {"error":"why"}. With --probe it is asked that method every 10 s,
and it is ended and started again when it has failed three times in a row.`,
		Example: "  selvage spawn --name sums --replicas 2 -- /usr/local/bin/sums\n" +
			"  selvage service register adder --provider sums --methods " +
			"'[{\"name\":\"add\",\"params\":{\"type\":\"array\"}}]'\n" +
			"  selvage service register mail --provider mailer --version 2 --methods @mail.json --probe ping"}
	f := cmd.Flags()
	f.StringVar(&provider, "provider", "", "name of the declared process that provides it; required")
	f.StringVar(&version, "version", "1", "version of the contract")
	f.StringVar(&methods, "methods", "",
		"JSON list of methods with name, description, params and result, or @FILE; required")
	f.StringVar(&probe, "probe", "", "method that says whether a provider works")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if provider == "" || methods == "" {
			return cli.Misuse(errors.New("--provider and --methods: required"))
		}
		text, err := cli.TextOrFile(cmd, methods, cli.MaxTextFile)
		if err != nil {
			return err
		}
		if !json.Valid([]byte(text)) {
			return cli.Misuse(errors.New("--methods is not JSON"))
		}
		body := map[string]any{"version": version, "provider": provider, "methods": json.RawMessage(text)}
		if probe != "" {
			body["probe"] = probe
		}
		var s struct {
			Name      string            `json:"name"`
			Contract  string            `json:"contract"`
			Providers []json.RawMessage `json:"providers"`
		}
		return c.Send(cmd, "PUT", servicePath+"/"+url.PathEscape(args[0]), body, &s, func(w io.Writer) {
			fmt.Fprintf(w, "%s is registered, contract %.12s, %d providers run\n", s.Name, s.Contract, len(s.Providers))
		})
	}
	return cmd
}
