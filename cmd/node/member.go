package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
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
}

func (m companyMember) person() personRow {
	if m.User == nil {
		return personRow{}
	}
	return *m.User
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

func memberCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the people of a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var page struct {
				Members []companyMember `json:"members"`
			}
			return c.show(cmd, "/api/companies/"+company+"/members", &page, func(w io.Writer) {
				var t [][]string
				for _, m := range page.Members {
					t = append(t, []string{m.person().Name, m.person().Email, dash(m.Role), m.Status, m.ID})
				}
				table(w, "NAME EMAIL ROLE STATUS ID", t)
			})
		},
	}
	role, joins := "", ""
	invite := &cobra.Command{
		Use: "invite", Short: "Make an invite; its token is shown once", Args: cobra.NoArgs,
		Long: `Make an invite to a company. Whoever has its token may join within three days:
people with selvage member join, agents as the invite's onboarding text says.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
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
			return c.send(cmd, "POST", "/api/companies/"+company+"/invites", in, &row, func(w io.Writer) { fmt.Fprintln(w, row.Token) })
		},
	}
	invite.Flags().StringVar(&role, "role", "operator", roles)
	invite.Flags().StringVar(&joins, "for", "human", "human, agent or both")
	join := &cobra.Command{
		Use: "join FILE", Short: "Accept an invite, whose token is in a file or, with -, on standard input", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := readFirst(cmd, args[0])
			if err != nil {
				return err
			}
			var row joinRow
			return c.send(cmd, "POST", "/api/invites/"+url.PathEscape(token)+"/accept", map[string]string{"requestType": "human"}, &row, func(w io.Writer) {
				switch row.Status {
				case "approved":
					fmt.Fprintln(w, "you are a member")
				default:
					fmt.Fprintf(w, "request %s is %s\n", row.ID, row.Status)
				}
			})
		},
	}
	requests := &cobra.Command{
		Use: "requests", Short: "List the requests to join a company", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.companyID(cmd)
			if err != nil {
				return err
			}
			var rows []joinRow
			return c.show(cmd, "/api/companies/"+company+"/join-requests", &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.ID, r.Type, dash(r.AgentName + r.Email), r.Status, ago(r.CreatedAt)})
				}
				table(w, "ID TYPE WHO STATUS ASKED", t)
			})
		},
	}
	decide := func(verb, short, done string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " REQUEST", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				company, err := c.companyID(cmd)
				if err != nil {
					return err
				}
				var row joinRow
				return c.send(cmd, "POST", "/api/companies/"+company+"/join-requests/"+url.PathEscape(args[0])+"/"+verb, struct{}{}, &row, func(w io.Writer) {
					fmt.Fprintln(w, done, dash(row.AgentName+row.Email))
				})
			},
		}
	}
	setRole := &cobra.Command{
		Use: "role MEMBER ROLE", Short: "Give a member another role: " + roles, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			company, m, err := c.member(cmd, args[0])
			if err != nil {
				return err
			}
			var row companyMember
			return c.send(cmd, "PATCH", "/api/companies/"+company+"/members/"+m.ID, map[string]string{"membershipRole": args[1]}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s\n", row.person().Email, row.Role)
			})
		},
	}
	remove := &cobra.Command{
		Use: "remove MEMBER", Short: "Take a member out of the company; nobody has their open issues then", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			company, m, err := c.member(cmd, args[0])
			if err != nil {
				return err
			}
			var row struct {
				Reassigned int `json:"reassignedIssueCount"`
			}
			return c.send(cmd, "POST", "/api/companies/"+company+"/members/"+m.ID+"/archive", struct{}{}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s is out; %d open issues have nobody now\n", m.person().Email, row.Reassigned)
			})
		},
	}
	return group("member", "People of a company: invites, requests to join, roles", list, invite, join, requests,
		decide("approve", "Let somebody in", "let in"), decide("reject", "Turn somebody away", "turned away"), setRole, remove)
}

// member finds a member by ID, e-mail address or name.
func (c *cli) member(cmd *cobra.Command, ref string) (company string, _ companyMember, err error) {
	if company, err = c.companyID(cmd); err != nil {
		return "", companyMember{}, err
	}
	var page struct {
		Members []companyMember `json:"members"`
	}
	if err := c.call(cmd.Context(), "GET", "/api/companies/"+company+"/members", nil, &page); err != nil {
		return "", companyMember{}, err
	}
	var found []companyMember
	for _, m := range page.Members {
		if m.ID == ref || strings.EqualFold(m.person().Email, ref) || strings.EqualFold(m.person().Name, ref) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 1:
		return company, found[0], nil
	case 0:
		return "", companyMember{}, fmt.Errorf("no member %q: see selvage member list", ref)
	}
	return "", companyMember{}, misuse{errors.New("more than one member matches: give the ID or the address")}
}

type userRow struct {
	personRow
	Admin     bool   `json:"isInstanceAdmin"`
	Companies int    `json:"activeCompanyMembershipCount"`
	Suspended string `json:"suspendedAt"`
}

func userCommand(c *cli) *cobra.Command {
	list := &cobra.Command{
		Use: "list [TEXT]", Short: "List the users of the mesh, or those whose name or address holds a text", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := ""
			if len(args) == 1 {
				query = "?query=" + url.QueryEscape(args[0])
			}
			var rows []userRow
			return c.show(cmd, "/api/admin/users"+query, &rows, func(w io.Writer) {
				var t [][]string
				for _, u := range rows {
					admin := "-"
					if u.Admin {
						admin = "admin"
					}
					if u.Suspended != "" {
						admin = "suspended"
					}
					t = append(t, []string{u.Name, u.Email, admin, fmt.Sprint(u.Companies), u.ID})
				}
				table(w, "NAME EMAIL STANDING COMPANIES ID", t)
			})
		},
	}
	set := func(verb, short, done string) *cobra.Command {
		return &cobra.Command{
			Use: verb + " USER", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				id, err := c.userID(cmd, args[0])
				if err != nil {
					return err
				}
				paths := map[string]string{"promote": "promote-instance-admin", "demote": "demote-instance-admin", "revoke": "revoke-credentials", "suspend": "suspend", "resume": "resume"}
				var row userRow
				return c.send(cmd, "POST", "/api/admin/users/"+id+"/"+paths[verb], struct{}{}, &row, func(w io.Writer) { fmt.Fprintln(w, row.Email, done) })
			},
		}
	}
	return group("user", "Users of the mesh", list, set("promote", "Make a user an administrator of the mesh", "administers the mesh"),
		set("demote", "Make a user no administrator any more", "administers nothing any more"),
		set("revoke", "End a user's sign-ins and revoke their board keys", "is signed out everywhere"),
		set("suspend", "Shut a user out until they are let in again", "is suspended"),
		set("resume", "Let a suspended user in again", "may sign in again"))
}

// userID finds a user by ID or e-mail address.
func (c *cli) userID(cmd *cobra.Command, ref string) (string, error) {
	if len(ref) == uuidLen {
		return ref, nil
	}
	var rows []userRow
	if err := c.call(cmd.Context(), "GET", "/api/admin/users?query="+url.QueryEscape(strings.ToLower(ref)), nil, &rows); err != nil {
		return "", err
	}
	for _, u := range rows {
		if strings.EqualFold(u.Email, ref) {
			return u.ID, nil
		}
	}
	return "", fmt.Errorf("no user %q: see selvage user list", ref)
}
