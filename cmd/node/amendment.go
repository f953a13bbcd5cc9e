package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/company/govern"
)

const maxDraft = 256 << 10 // bytes of a file with an amendment, as a command holds

// amendmentCommands change the constitution, and play decisions again.
func amendmentCommands(c *cli.CLI) []*cobra.Command {
	return []*cobra.Command{proposeCommand(c), reviewCommand(c), signCommand(c), signingKeyCommand(c), replayCommand(c)}
}

// draftFlags are what can be proposed without a file.
func draftFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("title", "", "what it is about")
	f.StringArray("rule", nil, "a rule as JSON, or @FILE; repeat for more")
	f.StringSlice("drop", nil, "ID of an added rule to drop; repeat for more")
	f.StringArray("signing-key", nil, "a signing key to add, NAME=PUBLIC; repeat for more")
	f.StringSlice("drop-key", nil, "ID of a signing key to drop; repeat for more")
	f.Int64("threshold", 0, "signatures that an amendment needs; 0: more than half of the keys")
	f.String("environment", "", "of the mesh: dev, staging, prod or none")
}

// draftOf reads what is proposed from a file and the flags.
func draftOf(cmd *cobra.Command, args []string) (map[string]any, error) {
	in := map[string]any{}
	if len(args) > 0 {
		text, err := cli.ReadText(cmd, args[0], maxDraft)
		if err != nil {
			return nil, cli.Misuse(err)
		}
		if in, err = draftIn(text); err != nil {
			return nil, cli.Misuse(fmt.Errorf("%s: %w", args[0], err))
		}
	}
	f := cmd.Flags()
	list, err := f.GetStringArray("rule")
	if err != nil {
		return nil, err
	}
	rules, _ := in["rules"].([]any)
	for _, text := range list {
		if text, err = cli.TextOrFile(cmd, text, maxDraft); err != nil {
			return nil, cli.Misuse(err)
		}
		more, err := draftIn(text)
		if err != nil {
			return nil, cli.Misuse(fmt.Errorf("--rule: %w", err))
		}
		put, _ := more["rules"].([]any)
		rules = append(rules, put...)
	}
	if len(rules) > 0 {
		in["rules"] = rules
	}
	for flag, member := range map[string]string{"drop": "dropRules", "drop-key": "dropKeys"} {
		if list, err := f.GetStringSlice(flag); err == nil && len(list) > 0 {
			in[member] = list
		}
	}
	for flag, member := range map[string]string{"title": "title", "environment": "environment"} {
		if text, err := f.GetString(flag); err == nil && f.Changed(flag) {
			in[member] = text
		}
	}
	if n, err := f.GetInt64("threshold"); err == nil && f.Changed("threshold") {
		in["threshold"] = n
	}
	keys, err := f.GetStringArray("signing-key")
	if err != nil {
		return nil, err
	}
	var added []any
	for _, k := range keys {
		name, public, ok := strings.Cut(k, "=")
		if !ok {
			return nil, cli.Misuse(fmt.Errorf("--signing-key: want NAME=PUBLIC, got %q", k))
		}
		added = append(added, map[string]any{"name": name, "publicKey": public})
	}
	if len(added) > 0 {
		in["keys"] = added
	}
	if len(in) == 0 {
		return nil, cli.Misuse(fmt.Errorf("nothing to propose: give a FILE or --rule (see %s --help)", cmd.CommandPath()))
	}
	return in, nil
}

// draftIn reads an amendment, a list of rules, or one rule.
func draftIn(text string) (map[string]any, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, errors.New("is not JSON: want an amendment {\"rules\": […]}, a list of rules, or one rule")
	}
	switch v := v.(type) {
	case []any:
		return map[string]any{"rules": v}, nil
	case map[string]any:
		if _, one := v["when"]; one {
			return map[string]any{"rules": []any{v}}, nil
		}
		return v, nil
	}
	return nil, errors.New("want an amendment {\"rules\": […]}, a list of rules, or one rule")
}

// amendmentLines is how an amendment is shown.
var amendmentLines = cli.Verb{Lines: "id=id title=title status=status base=base version=version height=height " +
	"signed=signed required=required by=proposedBy digest=digest"}

func proposeCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "propose [FILE]",
		Short: "Propose an amendment: rules to add, supersede or drop, signing keys, the environment of the mesh",
		Args:  cobra.MaximumNArgs(1),
		Example: "  selvage govern propose rules.json\n" +
			"  selvage govern propose --rule " +
			"'{\"id\":\"ACM-1\",\"branch\":\"executive\",\"severity\":\"blocking\",\"on\":[\"issue.delete\"],\"when\":\"rank " +
			"== \\\"worker\\\"\",\"reason\":\"{act} is for managers\"}'"}
	draftFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := draftOf(cmd, args)
		if err != nil {
			return err
		}
		return amendmentLines.Ask(c, cmd, nil, "POST", "/api/v1/govern/amendments", in)
	}
	return cmd
}

func reviewCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "review [ID|FILE]",
		Short:   "Show what an amendment would have decided of the last acts, without changing anything",
		Args:    cobra.MaximumNArgs(1),
		Example: "  selvage govern review 3\n  selvage govern review rules.json --last 12000"}
	draftFlags(cmd)
	cmd.Flags().Int64("last", 12_000, "acts to look at, at most 20000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := map[string]any{}
		if n, err := cmd.Flags().GetInt64("last"); err == nil {
			in["last"] = n
		}
		if len(args) == 1 && isNumber(args[0]) {
			in["amendmentId"] = args[0]
		} else {
			draft, err := draftOf(cmd, args)
			if err != nil {
				return err
			}
			in["draft"] = draft
		}
		var a struct {
			Summary    string
			Considered int
			Examples   []struct{ ID, Action, ActorID, Was, WouldBe, Rule, Reason string }
		}
		return c.Send(cmd, "POST", "/api/v1/govern/review", in, &a, func(w io.Writer) {
			fmt.Fprintln(w, cli.Visible(a.Summary))
			for _, x := range a.Examples {
				fmt.Fprintln(w, cli.Visible(fmt.Sprintf("#%s %s: %s → %s, %s %s", x.ID, x.Action, x.Was, x.WouldBe,
					x.Rule, x.Reason)))
			}
		})
	}
	return cmd
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

func signCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "sign ID",
		Short:   "Sign an amendment with a signing key of the board, or as an administrator while it has none",
		Args:    cobra.ExactArgs(1),
		Example: "  selvage govern sign 3\n  selvage govern sign 3 --key board.key"}
	cmd.Flags().String("key", "", "file with a signing key, made by selvage govern key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := cmd.Flags().GetString("key")
		if err != nil {
			return err
		}
		at, in := "/api/v1/govern/amendments/"+args[0], map[string]any{}
		if !isNumber(args[0]) {
			return cli.Misuse(fmt.Errorf("%q is not the ID of an amendment: a number is needed", args[0]))
		}
		if file != "" {
			key, err := readKey(cmd, file)
			if err != nil {
				return err
			}
			var a struct{ Message string }
			if err := c.Call(cmd.Context(), "GET", at, nil, &a); err != nil {
				return err
			}
			in["keyId"] = govern.KeyID(key.Public().(ed25519.PublicKey))
			in["signature"] = ed25519.Sign(key, []byte(a.Message))
		}
		return amendmentLines.Ask(c, cmd, nil, "POST", at+"/sign", in)
	}
	return cmd
}

// readKey reads the private key that a file holds, without showing it in errors.
func readKey(cmd *cobra.Command, file string) (ed25519.PrivateKey, error) {
	text, err := cli.ReadText(cmd, file, 1<<10)
	if err != nil {
		return nil, cli.Misuse(err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, cli.Misuse(fmt.Errorf("%s holds no signing key: make one with selvage govern key FILE", file))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func signingKeyCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "key FILE",
		Short: "Make a signing key in a new file, or show the public part of one that is there", Args: cobra.ExactArgs(1),
		Example: "  selvage govern key board.key"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		seed := make([]byte, ed25519.SeedSize)
		rand.Read(seed)
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, os.ErrExist):
		case err != nil:
			return cli.Misuse(err)
		default:
			_, err = f.WriteString(base64.StdEncoding.EncodeToString(seed) + "\n")
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
		}
		key, err := readKey(cmd, args[0])
		if err != nil {
			return err
		}
		public := key.Public().(ed25519.PublicKey)
		out := struct {
			ID     string `json:"id"`
			Public []byte `json:"publicKey"`
			File   string `json:"file"`
		}{govern.KeyID(public), public, args[0]}
		return c.Print(cmd, out, func(w io.Writer) {
			fmt.Fprintf(w, "id      %s\npublic  %s\n", out.ID, base64.StdEncoding.EncodeToString(public))
		})
	}
	return cmd
}

// errDiffers ends a replay that found a difference.
var errDiffers = errors.New("replay: at least one decision or receipt differs")

func replayCommand(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "replay [ID]",
		Short:   "Decide again what was decided, and compare bit for bit; without ID all decisions",
		Args:    cobra.MaximumNArgs(1),
		Example: "  selvage govern replay\n  selvage govern replay 1042 --version 1"}
	cmd.Flags().Int64("version", 0, "of the constitution; the one that decided unless given")
	cmd.Flags().Uint64("sequence", 0, "receipts of filters from this one on; the oldest that is kept unless given")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := map[string]any{}
		if len(args) == 1 {
			in["id"] = args[0]
		}
		if n, err := cmd.Flags().GetUint64("sequence"); err == nil && cmd.Flags().Changed("sequence") {
			in["sequence"] = n
		}
		if n, err := cmd.Flags().GetInt64("version"); err == nil && cmd.Flags().Changed("version") {
			in["version"] = n
		}
		var a struct {
			Replayed  int                                            `json:"replayed"`
			Same      int                                            `json:"same"`
			Differ    int                                            `json:"differ"`
			Different []struct{ ID, Action, Was, Is, Reason string } `json:"different"`
			Receipts  int                                            `json:"receipts"`
			Faults    []struct {
				Company  string `json:"companyId"`
				Sequence uint64 `json:"sequence"`
				Wrong    string `json:"wrong"`
			} `json:"faults"`
		}
		err := c.Send(cmd, "POST", "/api/v1/govern/replay", in, &a, func(w io.Writer) {
			fmt.Fprintf(w, "%d decisions replayed, %d the same, %d different\n", a.Replayed, a.Same, a.Differ)
			for _, x := range a.Different {
				fmt.Fprintln(w, cli.Visible(fmt.Sprintf("#%s %s: was %s, is %s: %s", x.ID, x.Action, x.Was, x.Is, x.Reason)))
			}
			if len(args) == 0 {
				fmt.Fprintf(w, "%d receipts replayed, %d wrong\n", a.Receipts, len(a.Faults))
			}
			for _, x := range a.Faults {
				fmt.Fprintln(w, cli.Visible(fmt.Sprintf("receipt %d of %s: %s", x.Sequence, x.Company, x.Wrong)))
			}
		})
		if err == nil && a.Differ+len(a.Faults) > 0 {
			return errDiffers
		}
		return err
	}
	return cmd
}
