package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// maxLine bounds the length of a password or token, in bytes.
const maxLine = 4 << 10

type whoRow struct {
	User struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"user"`
	Admin       bool   `json:"isInstanceAdmin"`
	Source      string `json:"source"`
	Memberships []struct {
		Company string `json:"companyId"`
		Role    string `json:"membershipRole"`
	} `json:"memberships"`
}

func authCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("auth", "Sign in and out, and how people prove who they are", loginCommand(c), logoutCommand(c),
		whoamiCommand(c), signupCommand(c), claimCommand(c), passwordCommand(c), authModeCommand(c), approveCommand(c),
		signUpsCommand(c))
}

func loginCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "login [EMAIL]", Short: "Sign in, and keep a key for this URL", Args: cobra.MaximumNArgs(1),
		Long: `Sign in with a password, from a prompt or the first line of standard input. What is
kept is a key of its own, not the password, in a file for you alone
($SELVAGE_CREDENTIALS, else selvage/credentials.json in your configuration
directory), with the certificates that --fingerprint and --ca name. It ends by
itself after 30 days.

Without an address nobody types a password here: what is printed is a URL to open
where you are signed in already, or to give to selvage auth approve there. login
waits until that was done.`,
		Example: `  selvage --api https://192.0.2.1:3100 --fingerprint 1f:c0:… auth login ann@example.com`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return challenge(c, cmd)
			}
			return enter(c, cmd, func(cl *client.Client, password string) (client.SignedIn, error) {
				return cl.SignIn(cmd.Context(), args[0], password)
			})
		},
	}
}

func signupCommand(c *cli.CLI) *cobra.Command {
	name, inviteFile := "", ""
	signup := &cobra.Command{
		Use: "signup EMAIL", Short: "Sign up, and keep a key for this URL", Args: cobra.ExactArgs(1),
		Long: `Make a user, with a password from a prompt or the first line of standard input,
and sign in as login does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := mail.ParseAddress(args[0]); err != nil {
				return cli.Misuse(fmt.Errorf("%q is not an e-mail address", args[0]))
			}
			if name == "" {
				name, _, _ = strings.Cut(args[0], "@")
			}
			invite := ""
			if inviteFile != "" {
				var err error
				if invite, err = readFirst(cmd, inviteFile); err != nil {
					return err
				}
			}
			return enter(c, cmd, func(cl *client.Client, password string) (client.SignedIn, error) {
				return cl.SignUp(cmd.Context(), name, args[0], password, invite)
			})
		},
	}
	signup.Flags().StringVar(&name, "name", "", "what you are called (default: what stands before the @)")
	signup.Flags().StringVar(&inviteFile, "invite-file", "",
		"file that holds the token of an invite, where signing up takes one")
	return signup
}

func logoutCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Revoke the key that is kept for this URL, and forget it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := cli.ReadCredentials()
			if err != nil {
				return err
			}
			key := all[c.URL()].Key
			if key == "" {
				return fmt.Errorf("nobody is signed in at %s", c.URL())
			}
			cl, err := c.Client()
			if err != nil {
				return err
			}
			err = cl.With(key, "").Post(cmd.Context(), "/api/cli-auth/revoke-current", struct{}{}, nil)
			if no, ok := errors.AsType[*client.Error](err); ok && no.Status == http.StatusUnauthorized {
				err = nil // it had ended already
			}
			if err != nil {
				return fmt.Errorf("the key was not revoked and is kept: %w", err)
			}
			if err := c.Change(func(k *cli.Credential) { k.Key, k.User = "", "" }); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "signed out at", c.URL())
			return nil
		},
	}
}

func whoamiCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show as whom you are signed in", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var row whoRow
			return c.Show(cmd, "/api/cli-auth/me", &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s <%s>, by %s\n", row.User.Name, row.User.Email, row.Source)
				if row.Admin {
					fmt.Fprintln(w, "administers the instance")
				}
				for _, m := range row.Memberships {
					fmt.Fprintf(w, "%s in company %s\n", cli.Dash(m.Role), m.Company)
				}
			})
		},
	}
}

func claimCommand(c *cli.CLI) *cobra.Command {
	codeFile := ""
	claim := &cobra.Command{
		Use: "claim", Short: "Become the first administrator of the mesh", Args: cobra.NoArgs,
		Long: `Become the first administrator of the mesh, after signup. From another machine it
takes the code that is in the file claim-code of the node's data directory.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := map[string]string{}
			if codeFile != "" {
				code, err := readFirst(cmd, codeFile)
				if err != nil {
					return err
				}
				in["code"] = code
			}
			var row struct {
				User string `json:"userId"`
			}
			return c.Send(cmd, "POST", "/api/bootstrap/claim", in, &row, func(w io.Writer) {
				fmt.Fprintln(w, "you administer this mesh now")
			})
		},
	}
	claim.Flags().StringVar(&codeFile, "code-file", "", "file that holds the claim code, - for standard input")
	return claim
}

func passwordCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "password [EMAIL]", Short: "Change your password; you are signed out elsewhere",
		Args: cobra.MaximumNArgs(1),
		Long: `Change your password. The old and the new one come from prompts, or from the first
two lines of standard input. Sign-ins elsewhere end; keys stay (selvage key board list).`,
		RunE: func(cmd *cobra.Command, args []string) error {
			mine, err := c.Mine()
			if err != nil {
				return err
			}
			email := mine.User
			if len(args) == 1 {
				email = args[0]
			}
			if email == "" {
				return cli.Misuse(errors.New("whose password? Nobody has signed in at " + c.URL() + ": give the address"))
			}
			cl, err := c.Client()
			if err != nil {
				return err
			}
			lines := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 2*maxLine))
			old, err := cli.ReadHidden(cmd, lines, "Old password")
			if err != nil {
				return err
			}
			next, err := cli.ReadHidden(cmd, lines, "New password")
			if err != nil {
				return err
			}
			in, err := cl.SignIn(cmd.Context(), email, old)
			if err != nil {
				return c.NoAnswer(err)
			}
			with := cl.With("", in.Session)
			if err := with.Post(cmd.Context(), "/api/auth/change-password", map[string]any{"currentPassword": old,
				"newPassword": next}, nil); err != nil {
				return errors.Join(err, with.SignOut(cmd.Context()))
			}
			if err := with.SignOut(cmd.Context()); err != nil {
				fmt.Fprintln(cmd.ErrOrStderr(), "selvage: the sign-in itself did not end and does so by itself:", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the password is changed")
			return nil
		},
	}
}

func authModeCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use:   "mode [local_trusted|authenticated]",
		Short: "Show or change whether people must sign in, on all nodes", Args: cobra.MaximumNArgs(1),
		Long: `Tell how people prove who they are, or change it on all nodes at once. With
local_trusted, nodes that listen beyond loopback answer nobody from elsewhere.`,
		ValidArgs: []string{"local_trusted", "authenticated"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var row struct {
				Mode string `json:"mode"`
			}
			say := func(w io.Writer) { fmt.Fprintln(w, row.Mode) }
			if len(args) == 0 {
				return c.Show(cmd, "/api/v1/mesh/auth", &row, say)
			}
			return c.Send(cmd, "PUT", "/api/v1/mesh/auth", map[string]string{"mode": args[0]}, &row, say)
		},
	}
}

// enter signs in or up, exchanges the session for a key, and stores the key.
func enter(c *cli.CLI, cmd *cobra.Command, sign func(*client.Client, string) (client.SignedIn, error)) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	password, err := cli.ReadHidden(cmd, bufio.NewReader(io.LimitReader(cmd.InOrStdin(), maxLine)), "Password")
	if err != nil {
		return err
	}
	in, err := sign(cl.With("", ""), password)
	if err != nil {
		return c.NoAnswer(err)
	}
	with := cl.With("", in.Session)
	host, _ := os.Hostname()
	var key struct {
		Token string `json:"token"`
	}
	err = with.Post(cmd.Context(), "/api/board-api-keys", map[string]string{"name": "selvage on " + host}, &key)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), cli.CallTimeout)
	defer cancel()
	if out := with.SignOut(ctx); err == nil && out != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "selvage: the sign-in itself did not end and does so by itself:", out)
	}
	if err != nil {
		return err
	}
	return keep(ctx, c, cmd, cl, key.Token, in.User.Email)
}

// readFirst returns the first line of a file; "-" is standard input.
func readFirst(cmd *cobra.Command, path string) (string, error) {
	in := cmd.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", cli.Misuse(err)
		}
		defer f.Close()
		in = f
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxLine)).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", cli.Misuse(fmt.Errorf("nothing on the first line of %s: %w", path, err))
	}
	return line, nil
}

// profileVerbs are the rows of selvage auth.
var profileVerbs = []cli.Verb{
	{Use: "profile", Short: "Show what others see of you", Path: "/api/auth/profile"},
	{Use: "rename NAME", Short: "Change your display name", Method: "PATCH", Path: "/api/auth/profile",
		Says: "{name}", Fields: []cli.Field{{Place: 1, Member: "name"}}},
}
