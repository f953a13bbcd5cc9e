package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api/client"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// A challengeRow is the state of a request to act as a person.
type challengeRow struct {
	Status   string `json:"status"`
	Approved *struct {
		Email string `json:"email"`
	} `json:"approvedByUser"`
}

// challenge asks a node to let this command line act as the person who approves it, and
// waits for the approval.
func challenge(c *cli.CLI, cmd *cobra.Command) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	var made struct {
		ID       string `json:"id"`
		Token    string `json:"token"`
		Key      string `json:"boardApiToken"`
		Approval string `json:"approvalUrl"`
		Poll     string `json:"pollPath"`
		Every    int    `json:"suggestedPollIntervalMs"`
	}
	nobody := cl.With("", "")
	err = nobody.Post(cmd.Context(), "/api/cli-auth/challenges", map[string]string{"command": "selvage auth login",
		"clientName": "selvage on " + host}, &made)
	if err != nil {
		return c.NoAnswer(err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "approve this where you are signed in:\n  %s\nor there: selvage auth approve '%s'\n",
		made.Approval, made.Approval)
	poll := "/api/" + strings.TrimPrefix(strings.TrimPrefix(made.Poll, "/api"), "/") + "?token=" +
		url.QueryEscape(made.Token)
	for {
		var row challengeRow
		if err := nobody.Get(cmd.Context(), poll, &row); err != nil {
			return errors.Join(err, withdraw(cmd, nobody, made.ID, made.Token))
		}
		switch row.Status {
		case "pending":
		case "approved":
			who := "somebody"
			if row.Approved != nil {
				who = row.Approved.Email
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), cli.CallTimeout)
			defer cancel()
			return keep(ctx, c, cmd, cl, made.Key, who)
		default:
			return fmt.Errorf("nobody approved: the request is %s", row.Status)
		}
		select {
		case <-cmd.Context().Done():
			return errors.Join(cmd.Context().Err(), withdraw(cmd, nobody, made.ID, made.Token))
		case <-time.After(max(time.Duration(made.Every), 100) * time.Millisecond):
		}
	}
}

// withdraw cancels a challenge that nobody waits for any more.
func withdraw(cmd *cobra.Command, cl *client.Client, id, token string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), cli.CallTimeout)
	defer cancel()
	return cl.Post(ctx, "/api/cli-auth/challenges/"+id+"/cancel", map[string]string{"token": token}, nil)
}

// keep stores a key for this URL, and revokes the previous one.
func keep(ctx context.Context, c *cli.CLI, cmd *cobra.Command, cl *client.Client, key, email string) error {
	mine, err := c.Mine()
	if err != nil {
		return err
	}
	old := ""
	err = c.Change(func(k *cli.Credential) {
		old = k.Key
		*k = cli.Credential{Key: key, User: email, Fingerprints: mine.Fingerprints, CA: mine.CA}
	})
	if err != nil {
		_ = cl.With(key, "").Post(ctx, "/api/cli-auth/revoke-current", struct{}{}, nil)
		return err
	}
	if old != "" {
		_ = cl.With(old, "").Post(ctx, "/api/cli-auth/revoke-current", struct{}{}, nil) // it may have expired
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is signed in at %s\n", email, c.URL())
	return nil
}

func approveCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "approve URL", Short: "Approve a program's request to act as you", Args: cobra.ExactArgs(1),
		Long: `Let a program act as you that asked for it, by the URL that it printed: selvage auth
login without an address, or another client of this API. It gets a key of its own,
which selvage key board list shows.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := url.Parse(args[0])
			if err != nil {
				return cli.Misuse(errors.New("that is no URL of a request"))
			}
			id, token := at.Path[strings.LastIndexByte(at.Path, '/')+1:], at.Query().Get("token")
			if len(id) != cli.UUIDLen || token == "" {
				return cli.Misuse(errors.New("that is no URL of a request: it ends in an ID and ?token="))
			}
			var row struct {
				Approved bool   `json:"approved"`
				Status   string `json:"status"`
			}
			return c.Send(cmd, "POST", "/api/cli-auth/challenges/"+id+"/approve", map[string]string{"token": token}, &row,
				func(w io.Writer) {
					fmt.Fprintln(w, row.Status)
				})
		},
	}
}

func signUpsCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "signups [open|invited|closed]", Short: "Show or change who may sign up", Args: cobra.MaximumNArgs(1),
		Long: `Tell or change who may sign up, on all nodes: anybody (open), who has an invite to
a company (invited), or nobody (closed). Those who have signed up may sign in.`,
		ValidArgs: []string{"open", "invited", "closed"},
		RunE: func(cmd *cobra.Command, args []string) error {
			var row struct {
				SignUps string `json:"signUps"`
			}
			say := func(w io.Writer) { fmt.Fprintln(w, row.SignUps) }
			if len(args) == 0 {
				return c.Show(cmd, "/api/instance/settings/general", &row, say)
			}
			return c.Send(cmd, "PATCH", "/api/instance/settings/general", map[string]string{"signUps": args[0]}, &row, say)
		},
	}
}
