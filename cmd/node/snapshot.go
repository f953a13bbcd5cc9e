package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/node"
)

// maxKeyFile bounds a file with keys or a passphrase, in bytes.
const maxKeyFile = 64 << 10

// An opener holds the flags for sealing or opening a backup: secrets come from files,
// the environment or the terminal, never from arguments.
type opener struct {
	recipients     []string
	key            string
	passphraseFile string
}

// passphrase returns the passphrase, nil if there is none and ask is false.
func (o opener) passphrase(cmd *cobra.Command, ask bool, again bool) ([]byte, error) {
	switch env := os.Getenv("SELVAGE_PASSPHRASE"); {
	case o.passphraseFile != "":
		b, err := readSmall(o.passphraseFile)
		return bytes.TrimRight(b, "\r\n"), err
	case env != "":
		return []byte(env), nil
	case !ask:
		return nil, nil
	}
	lines := bufio.NewReader(cmd.InOrStdin())
	p, err := cli.ReadHidden(cmd, lines, "Passphrase of the backup")
	if err != nil || !again {
		return []byte(p), err
	}
	second, err := cli.ReadHidden(cmd, lines, "Once more")
	if err == nil && second != p {
		err = errors.New("the two are not the same")
	}
	return []byte(p), err
}

// to returns the recipients, including that of a passphrase.
func (o opener) to(cmd *cobra.Command) (to []identity.Recipient, err error) {
	for _, arg := range o.recipients {
		text := arg
		if path, ok := strings.CutPrefix(arg, "@"); ok {
			b, err := readSmall(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			r, err := identity.ParseRecipient(line)
			if err != nil {
				return nil, cli.Misuse(err)
			}
			to = append(to, r)
		}
	}
	pass, err := o.passphrase(cmd, len(to) == 0, true)
	if err != nil || len(pass) == 0 {
		return to, err
	}
	kdf := identity.NewKDF()
	k, err := kdf.Key(pass)
	if err != nil {
		return nil, err
	}
	return append(to, identity.Recipient{Key: k.PublicKey().Bytes(), KDF: kdf}), nil
}

// open returns the content of a backup.
func (o opener) open(cmd *cobra.Command, f *identity.SealedFile) (io.Reader, error) {
	var keys []*identity.RecipientKey
	if o.key != "" {
		b, err := readSmall(o.key)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			k, err := identity.ParseRecipientKey(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.key, err)
			}
			keys = append(keys, k)
		}
	}
	pass, err := o.passphrase(cmd, len(keys) == 0 && f.NeedsPassphrase(), false)
	if err != nil {
		return nil, err
	}
	return f.Open(pass, keys...)
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(b) > maxKeyFile {
		err = fmt.Errorf("%s is too large", path)
	}
	return b, err
}

func snapshotCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("snapshot", "Backups of the mesh", snapshotKeyCommand(), snapshotSaveCommand(c),
		snapshotInspectCommand(c), snapshotRestoreCommand(c))
}

func snapshotKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key FILE", Short: "Create a key pair for backups, and print the public key", Args: cobra.ExactArgs(1),
		Long: `Make a key that opens backups, and print its public half, which --to takes. A node
that makes backups for it holds no secret that opens them. Keep FILE away from the nodes.`,
		Example: `  selvage snapshot key backup.key > backup.pub
  selvage snapshot save mesh.selvage --to @backup.pub`,
		RunE: func(cmd *cobra.Command, args []string) error {
			k := identity.NewRecipientKey()
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			public := identity.FormatRecipient(k.PublicKey())
			_, err = fmt.Fprintf(f, "# opens backups that were made for %s\n%s\n", public, identity.FormatRecipientKey(k))
			if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), public)
			return nil
		},
	}
}

func (o *opener) openFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.key, "key", "", "file with the secret key that opens it")
	cmd.Flags().StringVar(&o.passphraseFile, "passphrase-file", "",
		"file with the passphrase (else $SELVAGE_PASSPHRASE, else it is asked for)")
}

func snapshotSaveCommand(c *cli.CLI) *cobra.Command {
	var o opener
	var noFiles bool
	cmd := &cobra.Command{
		Use: "save FILE", Short: "Take a backup of the mesh", Args: cobra.ExactArgs(1),
		Long: `Take a backup of the mesh through the node at --api: all companies, the whole
chain, the key that opens the secrets, attachments and images. It is sealed for
those named with --to, or with a passphrase, before it leaves the node. What
belongs to one machine stays out: node identities, workspaces, logs that were not kept.`,
		Example: `  selvage snapshot save mesh.selvage
  selvage snapshot save mesh.selvage --to @backup.pub
  selvage snapshot save mesh.selvage --passphrase-file pass --no-files`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err == nil { // before the user types a passphrase
				return fmt.Errorf("%s is there already", args[0])
			}
			to, err := o.to(cmd)
			if err != nil {
				return err
			}
			far := c.Progress(cmd, "saving a backup")
			err = node.WriteBackup(args[0], func(w io.Writer) error {
				return backup(cmd.Context(), c, far.Writer(w), to,
					!noFiles)
			})
			if far.End(); err != nil {
				return err
			}
			return describeBackup(c, cmd, args[0])
		},
	}
	cmd.Flags().StringArrayVar(&o.recipients, "to", nil, "public key of who can open it, or @FILE (repeat for more)")
	cmd.Flags().StringVar(&o.passphraseFile, "passphrase-file", "",
		"file with a passphrase (else $SELVAGE_PASSPHRASE, else, without --to, it is asked for)")
	cmd.Flags().BoolVar(&noFiles, "no-files", false, "leave attachments and images out")
	return cmd
}

// backup streams a backup from the node to w.
func backup(ctx context.Context, c *cli.CLI, w io.Writer, to []identity.Recipient, files bool) error {
	in := client.Snapshot{Files: files}
	for _, r := range to {
		pub, err := identity.PublicKey(r)
		if err != nil {
			return err
		}
		if r.KDF == nil {
			in.Recipients = append(in.Recipients, identity.FormatRecipient(pub))
			continue
		}
		in.Passphrase = &client.PassphraseKey{Recipient: identity.FormatRecipient(pub), Salt: r.KDF.Salt, Time: r.KDF.Time,
			MemoryKiB: r.KDF.Memory, Threads: r.KDF.Threads}
	}
	asks, err := c.Reading("")
	if err != nil {
		return err
	}
	if n, err := asks.Snapshot(ctx, w, in); err != nil && n > 0 {
		return err
	} else if err != nil {
		return c.NoAnswer(err)
	}
	return nil
}

func describeBackup(c *cli.CLI, cmd *cobra.Command, path string) error {
	f, sealed, err := openBackup(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var about node.About
	if err := json.Unmarshal(sealed.About, &about); err != nil {
		return err
	}
	return c.Print(cmd, about, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", path, describeAbout(about))
		fmt.Fprintf(w, "%d bytes, %s\n", info.Size(), filesIn(about))
	})
}

func describeAbout(a node.About) string {
	return fmt.Sprintf("mesh %s (%s) in epoch %d at height %d, taken %s by node %s", a.Name, a.Mesh.Short(), a.Epoch,
		a.Height, a.At, a.Node.Short())
}

func filesIn(a node.About) string {
	if a.Files {
		return "with attachments and images"
	}
	return "without attachments and images"
}

func openBackup(path string) (*os.File, *identity.SealedFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	s, err := identity.ReadSealedFile(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, s, nil
}

func snapshotInspectCommand(c *cli.CLI) *cobra.Command {
	var o opener
	var check bool
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Describe a backup; with its key, check every byte", Args: cobra.ExactArgs(1),
		Example: `  selvage snapshot inspect mesh.selvage
  selvage snapshot inspect mesh.selvage --key backup.key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, sealed, err := openBackup(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if o.key == "" && o.passphraseFile == "" && os.Getenv("SELVAGE_PASSPHRASE") == "" && !check {
				return describeBackup(c, cmd, args[0])
			}
			r, err := o.open(cmd, sealed)
			if err != nil {
				return err
			}
			v, err := node.Inspect(r)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return c.Print(cmd, v, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s\n", args[0], describeAbout(v.About))
				fmt.Fprintf(w, "whole and undamaged: %d rows in %d bytes, %d files in %d bytes\n", v.Rows, v.StateBytes, v.Files,
					v.FileBytes)
				left(w, v)
			})
		},
	}
	o.openFlags(cmd)
	cmd.Flags().BoolVar(&check, "check", false, "ask for the passphrase and check every byte")
	return cmd
}

// left says what a backup lacks.
func left(w io.Writer, v node.Restored) {
	if !v.About.Files {
		fmt.Fprintln(w, "attachments and images are not in it")
	}
	if v.Missing > 0 {
		fmt.Fprintf(w, "%d files were on no node that answered when it was taken\n", v.Missing)
	}
}

func snapshotRestoreCommand(c *cli.CLI) *cobra.Command {
	var o opener
	var dir string
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Restore a backup into a new data directory", Args: cobra.ExactArgs(1),
		Long: `Make a data directory of a backup, on a machine that has none. The node that is
started on it (selvage up) founds the next epoch of the mesh, alone. No node that
was a member when the backup was taken is one any more: their data directories
are to be moved away, and they join again with tokens. Secrets open as before.`,
		Example: `  selvage snapshot restore mesh.selvage --dir /var/lib/selvage --key backup.key
  selvage up --dir /var/lib/selvage`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, sealed, err := openBackup(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			r, err := o.open(cmd, sealed)
			if err != nil {
				return err
			}
			far := c.Progress(cmd, "restoring")
			v, err := node.Restore(cmd.Context(), dir, identity.MachineID(), far.Reader(r, info.Size()))
			if far.End(); err != nil {
				return err
			}
			return c.Print(cmd, v, func(w io.Writer) {
				fmt.Fprintf(w, "restored %s\n", describeAbout(v.About))
				fmt.Fprintf(w, "%d bytes of state, %d files\n", v.StateBytes, v.Files)
				left(w, v)
				fmt.Fprintf(w, "What was done after it was taken is not in it. Start it with: selvage up --dir %s\n"+
					"It goes on as epoch %d; the other nodes join anew, on empty data directories.\n", dir, v.Epoch)
			})
		},
	}
	o.openFlags(cmd)
	cmd.Flags().StringVar(&dir, "dir", defaultDir(), "data directory to make")
	return cmd
}

func recoverCommand(c *cli.CLI) *cobra.Command {
	var dir string
	var yes, follow bool
	cmd := &cobra.Command{
		Use: "recover", Short: "Continue on one survivor after most voters are lost for good", Args: cobra.NoArgs,
		Long: `Go on with one survivor when most voters are lost for good. Run it on the stopped
node whose state is the newest: without --yes it tells what is there, on each node.
With --yes the node founds the next epoch of the mesh when it is started. Nodes of
the old epoch that come back stop as soon as they meet it and say what to do: with
--follow, on such a node, its state is set aside and it follows the mesh again.

It also takes a store that is damaged, as far as it can be read, when no backup and
no other voter has more: what was lost from its log is missing then.

Never use it while most voters can still come back: what they have decided and
the survivor has not heard of is lost to the new epoch.`,
		Example: `  selvage recover --dir /var/lib/selvage          # what this survivor has
  selvage recover --dir /var/lib/selvage --yes
  selvage recover --dir /var/lib/selvage --follow # on a node that was left behind`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			machine := identity.MachineID()
			if follow {
				kept, err := node.Follow(dir, machine)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(),
					"the state of the old epoch is kept in %s; start the node again, and it follows the mesh\n", kept)
				return nil
			}
			v, err := node.Recover(cmd.Context(), dir, machine, yes)
			if err != nil {
				return err
			}
			return c.Print(cmd, v, func(w io.Writer) {
				fmt.Fprintf(w, "node %s of mesh %s\n", v.Node.Short(), v.Mesh.Short())
				fmt.Fprintf(w, "state applied to index %d, log to %d, its last entry of %s\n", v.Applied, v.Last,
					v.At.UTC().Format("2006-01-02 15:04:05Z"))
				if v.Damage != "" {
					fmt.Fprintf(w, "%s\nThis is what can still be read of it.\n", v.Damage)
				}
				fmt.Fprintf(w, "voters that must be gone for good: %s\n", strings.Join(v.Lost, ", "))
				fmt.Fprintf(w, "What they decided after that entry and this node had not heard of is missing: from height %d "+
					"on.\n", v.Missing)
				if yes {
					fmt.Fprintf(w, "Start it with: selvage up --dir %s\nIt founds epoch %d. Take a backup then.\n", dir, v.Epoch)
				} else {
					fmt.Fprintln(w, "Nothing was changed. Compare the survivors, take the one with the highest index, and say "+
						"--yes there.")
				}
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", defaultDir(), "data directory of the stopped node")
	cmd.Flags().BoolVar(&yes, "yes", false, "the other voters are lost for good: do it")
	cmd.Flags().BoolVar(&follow, "follow", false, "this node was left behind: set its state aside and follow the mesh")
	return cmd
}
