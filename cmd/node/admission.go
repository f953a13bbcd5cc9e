package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/identity"
)

// ownerFile is the file in the data directory that may contain a node's owner key.
const ownerFile = "owner.key"

// ownerKey reads the owner key from --owner, the environment or the data directory.
func ownerKey(flag, dir string) (string, error) {
	if flag == "" {
		flag = os.Getenv("SELVAGE_OWNER")
	}
	if file := filepath.Join(dir, ownerFile); flag == "" {
		if _, err := os.Stat(file); err != nil {
			return "", nil
		}
		flag = "@" + file
	}
	return readSecretFlag(flag, "owner key")
}

func ownerKeyCommand(c *cli.CLI) *cobra.Command {
	draw := &cobra.Command{
		Use: "new", Short: "Generate an owner key, offline", Args: cobra.NoArgs,
		Long: `Draw an owner key. Nodes that find it as owner.key in their data directory (or are
started with --owner) make one mesh by themselves: the first founds it, the others join.
Whoever has the key can join: keep it as you keep a password.`,
		Example: "  selvage owner-key new > owner.key; chmod 600 owner.key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), identity.EncodeOwnerKey(identity.NewOwnerKey()))
			return nil
		},
	}
	var note string
	add := &cobra.Command{
		Use: "add [@FILE]", Short: "Add an owner key to the mesh: the one in FILE, or a new one, which is shown once",
		Args: cobra.MaximumNArgs(1),
		Long: "Tell the mesh of an owner key. It is listed among the join tokens and revoked as these are.",
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"note": note}
			if len(args) == 1 {
				key, err := readSecretFlag(args[0], "owner key")
				if err != nil {
					return err
				}
				body["ownerKey"] = key
			}
			var k struct {
				Key string `json:"ownerKey"`
			}
			return c.Send(cmd, "POST", "/api/v1/mesh/owner-keys", body, &k, func(w io.Writer) {
				if len(args) == 0 {
					fmt.Fprintln(w, k.Key)
				}
			})
		},
	}
	add.Flags().StringVar(&note, "note", "", "what it is for")
	return cli.Group("owner-key", "Keys by which nodes of one owner join by themselves", draw, add)
}

type meshKeysRow struct {
	Epoch     int       `json:"epoch"`
	RotatedAt time.Time `json:"rotatedAt"`
	Wanted    bool      `json:"rotationWanted"`
}

func (k meshKeysRow) print(w io.Writer) {
	since := "-"
	if !k.RotatedAt.IsZero() {
		since = cli.When(w, k.RotatedAt.Format(time.RFC3339))
	}
	fmt.Fprintf(w, "epoch %d, drawn %s\n", k.Epoch, since)
	if k.Wanted {
		fmt.Fprintln(w, "a node was revoked: new keys are being drawn")
	}
}

func keyringCommand(c *cli.CLI) *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show the epoch of the mesh's keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var k meshKeysRow
			return c.Show(cmd, "/api/v1/mesh/keys", &k, func(w io.Writer) { k.print(w) })
		},
	}
	rotate := &cobra.Command{
		Use: "rotate", Short: "Rotate the data and gossip keys of the mesh", Args: cobra.NoArgs,
		Long: `Draw new data and gossip keys for the mesh, as happens by itself when a node is revoked,
and when they are old. Nothing is interrupted: what is sealed with earlier keys stays
readable, and is sealed anew little by little.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var k meshKeysRow
			for {
				err := c.Send(cmd, "POST", "/api/v1/mesh/keys/rotate", map[string]any{}, &k, func(w io.Writer) { k.print(w) })
				pause, soon := retryAfter(err)
				if !soon {
					return err
				}
				select { // the previous keys are not in use everywhere yet
				case <-cmd.Context().Done():
					return err
				case <-time.After(pause):
				}
			}
		},
	}
	return cli.Group("keyring", "The keys that the members share", status, rotate)
}

// An exposedRow is a secret that a revoked node could decrypt.
type exposedRow struct {
	Type    string `json:"type"`
	Company string `json:"company"`
	ID      string `json:"id"`
	Name    string `json:"name"`
}

// showExposed prints the secrets that must be replaced after a node was revoked.
func showExposed(w io.Writer, rows []exposedRow, total int) {
	if total == 0 {
		fmt.Fprintln(w, "it could open no secrets")
		return
	}
	fmt.Fprintln(w, "it could open these; replace them at their source (tokens and owner keys were revoked):")
	var t [][]string
	for _, r := range rows {
		t = append(t, []string{r.Type, cli.Dash(r.Company), cli.Dash(r.Name), r.ID})
	}
	cli.Table(w, "TYPE COMPANY NAME ID", t)
	if total > len(rows) {
		fmt.Fprintf(w, "and %d more\n", total-len(rows))
	}
}

// retryAfter returns the retry delay of a refusal, a few seconds at most.
func retryAfter(err error) (pause time.Duration, ok bool) {
	var d struct{ RetryAfterMs int64 }
	if r, is := errors.AsType[*cli.Refused](err); !is || r.Status != 409 || json.Unmarshal(r.Details, &d) != nil {
		return 0, false
	}
	pause = time.Duration(d.RetryAfterMs) * time.Millisecond
	return pause, pause > 0 && pause <= 5*time.Second
}
