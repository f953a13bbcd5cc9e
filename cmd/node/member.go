package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type personRow struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type companyMember struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Role   string     `json:"membershipRole"`
	User   *personRow `json:"user"`
	Grants []struct {
		Permission string `json:"permissionKey"`
	} `json:"grants"`
}

type joinRow struct {
	ID        string     `json:"id"`
	Type      string     `json:"requestType"`
	Status    string     `json:"status"`
	AgentName string     `json:"agentName"`
	Email     string     `json:"requestEmailSnapshot"`
	CreatedAt string     `json:"createdAt"`
	Requester *personRow `json:"requesterUser"`
}

const roles = "owner, admin, operator or viewer"

func memberCommand(c *cli.CLI) *cobra.Command {
	role, joins := "", ""
	invite := &cobra.Command{
		Use: "invite", Short: "Create an invite; its token is shown once", Args: cobra.NoArgs,
		Long: `Make an invite to a company. Whoever has its token may join within three days:
people with selvage member join, agents as the invite's onboarding text says.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			in := map[string]any{"allowedJoinTypes": joins}
			if joins != "agent" {
				in["humanRole"] = role
			}
			var row struct {
				Token   string `json:"token"`
				Expires string `json:"expiresAt"`
			}
			return c.Send(cmd, "POST", "/api/companies/"+company+"/invites", in, &row,
				func(w io.Writer) { fmt.Fprintln(w, row.Token) })
		},
	}
	invite.Flags().StringVar(&role, "role", "operator", roles)
	invite.Flags().StringVar(&joins, "for", "human", "human, agent or both")
	join := &cobra.Command{
		Use: "join FILE", Short: "Accept an invite, whose token is in a file or, with -, on standard input",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := readFirst(cmd, args[0])
			if err != nil {
				return err
			}
			var row joinRow
			return c.Send(cmd, "POST", "/api/invites/"+url.PathEscape(token)+"/accept",
				map[string]string{"requestType": "human"}, &row, func(w io.Writer) {
					switch row.Status {
					case "approved":
						fmt.Fprintln(w, "you are a member")
					default:
						fmt.Fprintf(w, "request %s is %s\n", row.ID, row.Status)
					}
				})
		},
	}
	return cli.Group("member", "People of a company: invites, requests to join, roles", invite, join, grantsCommand(c))
}

// grantsCommand shows or sets what a member may do besides their role.
func grantsCommand(c *cli.CLI) *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use: "grants MEMBER [PERMISSION...]", Short: "Show or set the permissions of a member",
		Args: cobra.MinimumNArgs(1),
		Example: `  selvage member grants ann@example.com
  selvage member grants ann@example.com agents:create tasks:assign`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := c.Filled(cmd, "/api/companies/{company}/members", nil)
			if err != nil {
				return err
			}
			id, err := c.Resolve(cmd, "member", args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 || none {
				grants := []map[string]string{}
				for _, key := range args[1:] {
					grants = append(grants, map[string]string{"permissionKey": key})
				}
				var row companyMember
				return c.Send(cmd, "PATCH", at+"/"+id+"/permissions", map[string]any{"grants": grants}, &row, row.printGrants)
			}
			var page struct {
				Members []json.RawMessage `json:"members"`
			}
			if err := c.Call(cmd.Context(), "GET", at, nil, &page); err != nil {
				return err
			}
			for _, raw := range page.Members {
				var row companyMember
				if err := json.Unmarshal(raw, &row); err != nil {
					return err
				}
				if row.ID == id {
					return c.Print(cmd, raw, row.printGrants)
				}
			}
			return fmt.Errorf("no member %q: see selvage member list", args[0])
		},
	}
	cmd.Flags().BoolVar(&none, "none", false, "take all of them away")
	return cmd
}

func (m *companyMember) printGrants(w io.Writer) {
	var t [][]string
	for _, g := range m.Grants {
		t = append(t, []string{g.Permission})
	}
	cli.Table(w, "PERMISSION", t)
}

// accessCommand shows or sets which companies a user belongs to.
func accessCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "access USER [COMPANY...]", Short: "Show or set the companies of a user", Args: cobra.MinimumNArgs(1),
		Long: "Show which companies a user is in, or say all of them, by their IDs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, "/api/admin/users/{user:1}/company-access", args)
			if err != nil {
				return err
			}
			var row struct {
				Companies []struct {
					ID     string `json:"companyId"`
					Role   string `json:"membershipRole"`
					Status string `json:"status"`
				} `json:"companyAccess"`
			}
			human := func(w io.Writer) {
				var t [][]string
				for _, m := range row.Companies {
					t = append(t, []string{m.ID, cli.Dash(m.Role), m.Status})
				}
				cli.Table(w, "COMPANY ROLE STATUS", t)
			}
			if len(args) == 1 {
				return c.Show(cmd, path, &row, human)
			}
			return c.Send(cmd, "PUT", path, map[string]any{"companyIds": args[1:]}, &row, human)
		},
	}
}

func userCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("user", "Users of the mesh", accessCommand(c))
}

// memberVerbs are the rows of selvage member.
var memberVerbs = []cli.Verb{
	{Use: "directory", Short: "List the people of a company",
		Path: "/api/companies/{company}/user-directory", Rows: "users",
		Columns: "NAME=user.name EMAIL=user.email ID=principalId STATUS=status"},
	{Use: "list", Short: "List the people of a company", Path: "/api/companies/{company}/members", Rows: "members",
		Columns: "NAME=user.name EMAIL=user.email ROLE=membershipRole STATUS=status ID=id"},
	{Use: "requests", Short: "List the requests to join a company", Path: "/api/companies/{company}/join-requests",
		Columns: "ID=id TYPE=requestType WHO=agentName|requestEmailSnapshot STATUS=status ASKED=createdAt"},
	{Use: "approve REQUEST", Short: "Let somebody in", Method: "POST",
		Path: "/api/companies/{company}/join-requests/{1}/approve",
		Says: "let in {agentName|requestEmailSnapshot}"},
	{Use: "reject REQUEST", Short: "Turn somebody away", Method: "POST",
		Path: "/api/companies/{company}/join-requests/{1}/reject",
		Says: "turned away {agentName|requestEmailSnapshot}"},
	{Use: "show USER", Short: "Show a member's activity",
		Long: "USER is a user's ID, or what stands before the @ of their address.",
		Path: "/api/companies/{company}/users/{1}/profile", Rows: "stats",
		Columns: "WHEN=label MADE=createdIssues DONE=completedIssues OPEN=openAssignedIssues LINES=activityCount"},
	{Use: "role MEMBER ROLE", Short: "Change a member's role: " + roles, Method: "PATCH",
		Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {membershipRole}",
		Fields: []cli.Field{{Place: 2, Member: "membershipRole"}}},
	{Use: "suspend MEMBER", Short: "Suspend a member", Method: "PATCH",
		Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {status}",
		Fixed: map[string]any{"status": "suspended"}},
	{Use: "resume MEMBER", Short: "Restore a suspended member", Method: "PATCH",
		Path: "/api/companies/{company}/members/{member:1}", Says: "{user.email} is {status}",
		Fixed: map[string]any{"status": "active"}},
	{Use: "remove MEMBER", Short: "Remove a member; their open issues become unassigned", Method: "POST",
		Path: "/api/companies/{company}/members/{member:1}/archive",
		Says: "{member.user.email} is out; {reassignedIssueCount} open issues have nobody now"},
	{Use: "invites", Short: "List invites, newest first", Path: "/api/companies/{company}/invites", Rows: "invites",
		Columns: "ID=id FOR=allowedJoinTypes ROLE=humanRole STATE=state UNTIL=expiresAt"},
	{Use: "revoke-invite INVITE", Short: "Revoke an invite", Method: "POST", Path: "/api/invites/{1}/revoke",
		Says: "{id} {state}"},
	{Use: "invite-openclaw", Short: "Invite an agent of OpenClaw; the token is shown once", Method: "POST",
		Path: "/api/companies/{company}/openclaw/invite-prompt", Says: "{prompt}",
		Fields: []cli.Field{{Name: "message", Member: "agentMessage", About: "a word to the agent"}}},
}

// userVerbs are the rows of selvage user.
var userVerbs = []cli.Verb{
	{Use: "list [TEXT]", Short: "List the users of the mesh, or those whose name or address holds a text",
		Path: "/api/admin/users",
		Columns: "NAME=name EMAIL=email STANDING=suspended?suspendedAt|admin?isInstanceAdmin " +
			"COMPANIES=activeCompanyMembershipCount ID=id",
		Fields: []cli.Field{{Place: 1, Member: "query"}}},
	{Use: "promote USER", Short: "Make a user an administrator of the mesh", Method: "POST",
		Path: "/api/admin/users/{user:1}/promote-instance-admin", Says: "{email} administers the mesh"},
	{Use: "demote USER", Short: "Make a user no administrator any more", Method: "POST",
		Path: "/api/admin/users/{user:1}/demote-instance-admin", Says: "{email} administers nothing any more"},
	{Use: "revoke USER", Short: "End a user's sign-ins and revoke their board keys", Method: "POST",
		Path: "/api/admin/users/{user:1}/revoke-credentials", Says: "{email} is signed out everywhere"},
	{Use: "suspend USER", Short: "Shut a user out until they are let in again", Method: "POST",
		Path: "/api/admin/users/{user:1}/suspend", Says: "{email} is suspended"},
	{Use: "resume USER", Short: "Let a suspended user in again", Method: "POST",
		Path: "/api/admin/users/{user:1}/resume", Says: "{email} may sign in again"},
}
