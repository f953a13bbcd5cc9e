package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/cmd/node/localmodel"
)

type modelProviderRow struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	BaseURL  string `json:"baseUrl"`
	HasKey   bool   `json:"hasKey"`
	Priority int    `json:"priority"`
	Free     bool   `json:"free"`
	Disabled bool   `json:"disabled"`
	Models   []struct {
		Name string `json:"name"`
		As   string `json:"as"`
	} `json:"models"`
	Labels []string `json:"labels"`
}

func (r modelProviderRow) cells() []string {
	key, models := "no", []string{}
	if r.HasKey {
		key = "yes"
	}
	for _, m := range r.Models {
		if m.As != "" {
			m.Name += "=" + m.As
		}
		models = append(models, m.Name)
	}
	return []string{r.Name, r.Kind, r.BaseURL, key, strconv.Itoa(r.Priority), cli.Dash(strings.Join(models, " ")),
		cli.Dash(strings.Join(r.Labels, " "))}
}

type modelPriceRow struct {
	Model      string `json:"model"`
	Input      int64  `json:"input"`
	Output     int64  `json:"output"`
	CacheRead  int64  `json:"cacheRead"`
	CacheWrite int64  `json:"cacheWrite"`
	Version    int    `json:"version"`
	Source     string `json:"source"`
}

func modelCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("model", "Set up the models that agents may use, and their prices",
		cli.Group("provider", "Upstreams of the model gateway", modelProviderAdd(c), modelProviderList(c),
			modelProviderUpdate(c), modelProviderRemove(c), modelProviderTest(c)),
		cli.Group("price", "What the tokens of models cost", modelPriceSet(c), modelPriceList(c), modelPriceRemove(c)),
		localmodel.Command(c))
}

// modelRoot returns the path of the company's rows, or with --mesh of the mesh's.
func modelRoot(c *cli.CLI, cmd *cobra.Command, mesh bool) (string, error) {
	if mesh {
		return "/api/instance", nil
	}
	company, err := c.CompanyID(cmd)
	return "/api/companies/" + company, err
}

func meshFlag(cmd *cobra.Command, mesh *bool) *cobra.Command {
	cmd.Flags().BoolVar(mesh, "mesh", false, "of the mesh, for all companies")
	return cmd
}

func modelProviderAdd(c *cli.CLI) *cobra.Command {
	var mesh bool
	var p providerFlags
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add an upstream; its key comes from standard input, or a prompt", Args: cobra.ExactArgs(1),
		Long: `Add an upstream of the model gateway. Kinds are openai, anthropic, openrouter,
gemini, ollama, vllm, llamacpp and openai_compatible. Without --model it answers
to the names that are usual for its kind; --model NAME=THEIRS gives it a name of
your own, such as a tier ("tier/cheap=claude-haiku-4-5") or a pattern ("claude-*").
The key is sealed where it comes in and never shown again.`,
		Example: `  selvage model provider add claude --kind anthropic --key <key.txt
  selvage model provider add box --kind ollama --label gpu=yes
  selvage model provider add cheap --kind llamacpp --url http://10.0.0.7:8080/v1 --model tier/cheap=qwen3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := modelRoot(c, cmd, mesh)
			if err != nil {
				return err
			}
			body, err := p.body(c, cmd)
			if err != nil {
				return err
			}
			body["name"] = args[0]
			var row modelProviderRow
			return c.Send(cmd, "POST", root+"/model-providers", body, &row,
				func(w io.Writer) { fmt.Fprintf(w, "%s added, %s, %s\n", row.Name, row.BaseURL, row.ID) })
		},
	}
	p.add(cmd.Flags())
	_ = cmd.MarkFlagRequired("kind")
	return meshFlag(cmd, &mesh)
}

// providerFlags are the flags of an upstream; those that are not given stay unchanged or
// take the default.
type providerFlags struct {
	kind, base, secret string
	key, free, off     bool
	models, labels     []string
	priority           int
}

func (p *providerFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.kind, "kind", "", "what it speaks")
	f.StringVar(&p.base, "url", "", "where it is; default: where such upstreams usually are")
	f.BoolVar(&p.key, "key", false, "its key comes from standard input, or a prompt")
	f.StringVar(&p.secret, "secret", "", "use a secret of the company as its key")
	f.StringArrayVar(&p.models, "model", nil,
		"a name that it answers to, or NAME=THEIRS; several are possible, and replace what was there")
	f.StringArrayVar(&p.labels, "label", nil,
		"a label that a node must have to reach it; several are possible, and replace what was there")
	f.IntVar(&p.priority, "priority", 0, "the lowest is asked first")
	f.BoolVar(&p.free, "free", false, "models without a price cost nothing (default for ollama, vllm and llamacpp)")
}

// body returns the members for the flags that were given.
func (p *providerFlags) body(c *cli.CLI, cmd *cobra.Command) (body map[string]any, err error) {
	models := []map[string]string{}
	for _, m := range p.models {
		name, as, _ := strings.Cut(m, "=")
		models = append(models, map[string]string{"name": name, "as": as})
	}
	body = map[string]any{}
	for flag, given := range map[string]struct {
		member string
		value  any
	}{
		"kind": {"kind", p.kind}, "url": {"baseUrl", p.base}, "model": {"models", models}, "label": {"labels", p.labels},
		"priority": {"priority", p.priority}, "free": {"free", p.free}, "disabled": {"disabled", p.off},
	} {
		if cmd.Flags().Changed(flag) {
			body[given.member] = given.value
		}
	}
	switch {
	case p.key && p.secret != "":
		return nil, cli.Misuse(errors.New("--key and --secret exclude each other"))
	case p.key:
		body["apiKey"], err = cli.ReadSecret(cmd)
	case p.secret != "":
		body["secretId"], err = c.Resolve(cmd, "secret", p.secret)
	}
	return body, err
}

func modelProviderList(c *cli.CLI) *cobra.Command {
	var mesh bool
	cmd := &cobra.Command{
		Use: "list", Short: "List upstreams, without their keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := modelRoot(c, cmd, mesh)
			if err != nil {
				return err
			}
			var rows []modelProviderRow
			return c.Show(cmd, root+"/model-providers", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, r.cells())
				}
				cli.Table(w, "NAME KIND URL KEY PRIORITY MODELS LABELS", t)
			})
		},
	}
	return meshFlag(cmd, &mesh)
}

// modelProviderPath resolves an upstream by name or ID.
func modelProviderPath(c *cli.CLI, cmd *cobra.Command, mesh bool, ref string) (string, error) {
	root, err := modelRoot(c, cmd, mesh)
	if err != nil {
		return "", err
	}
	var rows []modelProviderRow
	if err := c.Call(cmd.Context(), "GET", root+"/model-providers", nil, &rows); err != nil {
		return "", err
	}
	for _, r := range rows {
		if r.ID == ref || r.Name == ref {
			return root + "/model-providers/" + r.ID, nil
		}
	}
	return "", fmt.Errorf("no model provider %q: see selvage model provider list", ref)
}

// modelProviderUpdate changes the given settings; a new key is read from standard input.
func modelProviderUpdate(c *cli.CLI) *cobra.Command {
	var mesh bool
	var p providerFlags
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change an upstream, turn it off, or give it another key", Args: cobra.ExactArgs(1),
		Example: `  selvage model provider update claude --key <key.txt
  selvage model provider update box --disabled --mesh
  selvage model provider update cheap --model tier/cheap=qwen3 --label gpu=yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := p.body(c, cmd)
			if err != nil {
				return err
			}
			if len(body) == 0 {
				return cli.Misuse(errors.New("nothing to change: pass a flag (see --help)"))
			}
			path, err := modelProviderPath(c, cmd, mesh, args[0])
			if err != nil {
				return err
			}
			var row modelProviderRow
			return c.Send(cmd, "PATCH", path, body, &row, func(w io.Writer) { fmt.Fprintln(w, row.Name+" changed") })
		},
	}
	p.add(cmd.Flags())
	cmd.Flags().BoolVar(&p.off, "disabled", false, "it is not used")
	return meshFlag(cmd, &mesh)
}

func modelProviderRemove(c *cli.CLI) *cobra.Command {
	var mesh bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove an upstream and its key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := modelProviderPath(c, cmd, mesh, args[0])
			if err != nil {
				return err
			}
			var done map[string]any
			return c.Send(cmd, "DELETE", path, nil, &done, func(w io.Writer) { fmt.Fprintln(w, args[0]+" removed") })
		},
	}
	return meshFlag(cmd, &mesh)
}

func modelProviderTest(c *cli.CLI) *cobra.Command {
	var mesh bool
	cmd := &cobra.Command{
		Use: "test NAME", Short: "Ask an upstream whether it answers this node and takes its key; it costs nothing",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := modelProviderPath(c, cmd, mesh, args[0])
			if err != nil {
				return err
			}
			var row struct {
				OK      bool     `json:"ok"`
				Message string   `json:"message"`
				Models  []string `json:"models"`
				Took    int64    `json:"tookMs"`
			}
			err = c.Send(cmd, "POST", path+"/test", map[string]any{}, &row, func(w io.Writer) {
				fmt.Fprintln(w, row.Message)
				for _, m := range row.Models {
					fmt.Fprintln(w, "  "+m)
				}
			})
			if err == nil && !row.OK {
				err = errors.New("the upstream can not be used from this node")
			}
			return err
		},
	}
	return meshFlag(cmd, &mesh)
}

// microPerDollar is the number of micro-cents in a dollar.
const microPerDollar = 100_000_000

// parseDollars parses an amount like 3, 0.25 or 1.875 exactly.
func parseDollars(text string) (int64, error) {
	whole, part, _ := strings.Cut(text, ".")
	bad := cli.Misuse(fmt.Errorf("%q is not a price: want dollars for a million tokens, such as 0.25", text))
	if len(part) > 8 || len(whole) > 6 || whole == "" || strings.ContainsAny(whole+part, "+-") {
		return 0, bad
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 8-len(part)), 10, 64)
	if err != nil {
		return 0, bad
	}
	return n, nil
}

// dollars formats micro-cents, without trailing zeros.
func dollars(n int64) string {
	s := strings.TrimRight(fmt.Sprintf("%d.%08d", n/microPerDollar, n%microPerDollar), "0")
	return strings.TrimSuffix(s, ".")
}

func modelPriceSet(c *cli.CLI) *cobra.Command {
	var mesh bool
	prices := map[string]*string{}
	cmd := &cobra.Command{
		Use: "set MODEL", Short: "Set a model's price, in dollars per million tokens", Args: cobra.ExactArgs(1),
		Long: `Set what a model's tokens cost, in dollars for a million of them. MODEL is a
name, UPSTREAM/NAME, or either with * at its end; what says most of a name holds.
Calls that have begun are settled at the price at which they were paid for.`,
		Example: `  selvage model price set claude-sonnet-4-5 --in 3 --out 15 --cache-read 0.30 --cache-write 3.75
  selvage model price set 'box/*' --in 0.02 --out 0.02 --mesh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := modelRoot(c, cmd, mesh)
			if err != nil {
				return err
			}
			body := map[string]any{"model": args[0]}
			for flag, name := range map[string]string{"in": "input", "out": "output", "cache-read": "cacheRead",
				"cache-write": "cacheWrite"} {
				if cmd.Flags().Changed(flag) {
					if body[name], err = parseDollars(*prices[flag]); err != nil {
						return err
					}
				}
			}
			var row modelPriceRow
			return c.Send(cmd, "PUT", root+"/model-prices", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s costs $%s in, $%s out for a million tokens, version %d\n", row.Model, dollars(row.Input),
					dollars(row.Output), row.Version)
			})
		},
	}
	for flag, doc := range map[string]string{"in": "what is sent", "out": "what is answered",
		"cache-read":  "what is read from a cache; default: as --in",
		"cache-write": "what is written to one; default: as --in"} {
		prices[flag] = cmd.Flags().String(flag, "0", "price of "+doc)
	}
	_ = cmd.MarkFlagRequired("in")
	return meshFlag(cmd, &mesh)
}

func modelPriceList(c *cli.CLI) *cobra.Command {
	var mesh bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the prices in force, in dollars per million tokens", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := modelRoot(c, cmd, mesh)
			if err != nil {
				return err
			}
			var rows []modelPriceRow
			return c.Show(cmd, root+"/model-prices", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.Model, dollars(r.Input), dollars(r.Output), dollars(r.CacheRead), dollars(r.CacheWrite),
						r.Source, strconv.Itoa(r.Version)})
				}
				cli.Table(w, "MODEL INPUT OUTPUT CACHE-READ CACHE-WRITE SET-BY VERSION", t)
			})
		},
	}
	return meshFlag(cmd, &mesh)
}

func modelPriceRemove(c *cli.CLI) *cobra.Command {
	var mesh bool
	cmd := &cobra.Command{
		Use: "remove MODEL", Short: "Delete a price", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := modelRoot(c, cmd, mesh)
			if err != nil {
				return err
			}
			var done map[string]any
			return c.Send(cmd, "DELETE", root+"/model-prices?model="+url.QueryEscape(args[0]), nil, &done,
				func(w io.Writer) { fmt.Fprintln(w, "removed") })
		},
	}
	return meshFlag(cmd, &mesh)
}
