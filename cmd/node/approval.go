package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type approvalRow struct {
	ID                 string          `json:"id"`
	Type               string          `json:"type"`
	Status             string          `json:"status"`
	RequestedByAgentID *string         `json:"requestedByAgentId"`
	RequestedByUserID  *string         `json:"requestedByUserId"`
	Payload            json.RawMessage `json:"payload"`
	DecisionNote       *string         `json:"decisionNote"`
	CreatedAt          string          `json:"createdAt"`
	Refused            *struct {
		Error string `json:"error"`
	} `json:"refused"`
}

// from returns who requested the approval.
func (r approvalRow) from(names map[string]string) string {
	switch {
	case r.RequestedByAgentID != nil:
		return cli.Dash(names[*r.RequestedByAgentID])
	case r.RequestedByUserID != nil:
		return "board"
	}
	return "system"
}

// print writes an approval with all its details.
func (r approvalRow) print(w io.Writer, names map[string]string) {
	fmt.Fprintf(w, "%s  %s\n%s, asked for by %s %s\n", r.ID, r.Type, r.Status, r.from(names), cli.When(w, r.CreatedAt))
	if r.DecisionNote != nil {
		fmt.Fprintf(w, "note: %s\n", cli.Visible(*r.DecisionNote))
	}
	if r.Refused != nil {
		fmt.Fprintf(w, "could not be carried out: %s\n", r.Refused.Error)
	}
	printMembers(w, "  ", r.Payload)
}

// printMembers writes the members of a JSON object, one per line, those of an object in it below its name.
func printMembers(w io.Writer, indent string, object json.RawMessage) {
	var p map[string]json.RawMessage
	_ = json.Unmarshal(object, &p)
	for _, key := range slices.Sorted(maps.Keys(p)) {
		var text string
		switch {
		case string(p[key]) == "null":
		case json.Unmarshal(p[key], &text) == nil:
			fmt.Fprintf(w, "%s%s: %s\n", indent, key, cli.Visible(text))
		case p[key][0] == '{' && len(p[key]) > 2:
			fmt.Fprintf(w, "%s%s:\n", indent, key)
			printMembers(w, indent+"  ", p[key])
		default:
			fmt.Fprintf(w, "%s%s: %s\n", indent, key, p[key])
		}
	}
}

func approvalCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("approval", "Approve or reject what agents ask for", approvalShow(c))
}

func approvalShow(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "show APPROVAL", Short: "Show an approval, what it is about, and its comments", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, names, err := approvalID(c, cmd, args[0])
			if err != nil {
				return err
			}
			var issues []issueRow
			if err := c.Call(cmd.Context(), "GET", "/api/approvals/"+id+"/issues", nil, &issues); err != nil {
				return err
			}
			var comments []commentRow
			if err := c.Call(cmd.Context(), "GET", "/api/approvals/"+id+"/comments", nil, &comments); err != nil {
				return err
			}
			var row approvalRow
			return c.Show(cmd, "/api/approvals/"+id, &row, func(w io.Writer) {
				row.print(w, names)
				for _, i := range issues {
					fmt.Fprintf(w, "issue %s %s %s\n", i.Identifier, i.Status, i.Title)
				}
				for _, cm := range comments {
					who := "board"
					if cm.AuthorAgentID != nil {
						who = cli.Dash(names[*cm.AuthorAgentID])
					}
					fmt.Fprintf(w, "\n--- %s, %s\n%s\n", who, cli.When(w, cm.CreatedAt), cm.Body)
				}
			})
		},
	}
}

// approvalID resolves an approval by ID, or by a prefix that is unique among the
// company's newest ones. names are the agents' names.
func approvalID(c *cli.CLI, cmd *cobra.Command, ref string) (id string, names map[string]string, err error) {
	company, err := c.CompanyID(cmd)
	if err != nil {
		if len(ref) == cli.UUIDLen {
			return ref, nil, nil
		}
		return "", nil, err
	}
	if names, err = c.AgentNames(cmd, company); err != nil {
		return "", nil, err
	}
	id, err = c.Resolve(cmd, "approval", ref)
	return id, names, err
}

// hireCommand requests an agent where the caller may not create one directly.
func hireCommand(c *cli.CLI) *cobra.Command {
	var who newAgent
	cmd := &cobra.Command{
		Use: "hire NAME", Short: "Hire an agent, after the board's approval where one is needed",
		Args:    cobra.ExactArgs(1),
		Example: `  selvage agent hire Dora --role engineer --reports-to Cleo --command /usr/local/bin/worker`,
		RunE: func(cmd *cobra.Command, args []string) error {
			company, body, err := who.body(c, cmd, args[0])
			if err != nil {
				return err
			}
			var row struct {
				Agent    agentRow     `json:"agent"`
				Approval *approvalRow `json:"approval"`
			}
			return c.Send(cmd, "POST", "/api/companies/"+company+"/agent-hires", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s %s\n", row.Agent.Name, row.Agent.Status, row.Agent.ID)
				if row.Approval != nil {
					fmt.Fprintf(w, "approval %s %s\n", row.Approval.Status, row.Approval.ID)
				}
			})
		},
	}
	who.add(cmd.Flags())
	return cmd
}

// gatesCommand shows and sets which actions in a company need the board's approval.
func gatesCommand(c *cli.CLI) *cobra.Command {
	var hires, strategy bool
	cmd := &cobra.Command{
		Use: "gates", Short: "Show or set what needs the board's approval", Args: cobra.NoArgs,
		Example: `  selvage company gates --hires=true --strategy=false`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{}
			if cmd.Flags().Changed("hires") {
				body["requireBoardApprovalForNewAgents"] = hires
			}
			if cmd.Flags().Changed("strategy") {
				body["requireBoardApprovalForCeoStrategy"] = strategy
			}
			var row struct {
				Hires    bool    `json:"requireBoardApprovalForNewAgents"`
				Strategy bool    `json:"requireBoardApprovalForCeoStrategy"`
				Approved *string `json:"strategyApprovalId"`
			}
			human := func(w io.Writer) {
				fmt.Fprintf(w, "hires     %s\n", onOff(row.Hires))
				state := onOff(row.Strategy)
				if row.Strategy && row.Approved == nil {
					state += ", none is approved: a CEO only drafts"
				} else if row.Approved != nil {
					state += ", approved"
				}
				fmt.Fprintf(w, "strategy  %s\n", state)
			}
			if len(body) == 0 {
				return c.Show(cmd, "/api/companies/"+company, &row, human)
			}
			return c.Send(cmd, "PATCH", "/api/companies/"+company, body, &row, human)
		},
	}
	cmd.Flags().BoolVar(&hires, "hires", false, "new agents need an approval")
	cmd.Flags().BoolVar(&strategy, "strategy", true, "a CEO only drafts until a strategy is approved")
	return cmd
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// approvalVerbs are the rows of selvage approval.
var approvalVerbs = []cli.Verb{
	{Use: "list", Short: "List approvals, newest first", Example: `  selvage approval list --status pending`,
		Path: "/api/companies/{company}/approvals",
		Columns: "ID=id TYPE=type STATUS=status FROM=agent:requestedByAgentId|board?requestedByUserId|'system' " +
			"ASKED=createdAt " +
			"ABOUT=payload.title|payload.name|payload.scopeName|payload.plan|payload.summary",
		Fields: []cli.Field{{Name: "status", Member: "status", About: "only these statuses, separated by commas"}}},
	{Use: "resubmit APPROVAL", Short: "Resubmit a revised approval", Method: "POST",
		Path: "/api/approvals/{approval:1}/resubmit", Says: "{type} {status}",
		Fields: []cli.Field{{Name: "payload", Member: "payload", Kind: "json",
			About: "what is asked for now, or a file with it"}}},
	{Use: "ask TYPE", Short: "Ask the board for something", Method: "POST",
		Path: "/api/companies/{company}/approvals", Says: "{id} {status}",
		Long: `Ask the board for something: TYPE is hire_agent, approve_ceo_strategy,
budget_override_required or request_board_approval. The payload is what is to
happen, as a JSON object; it may hold secrets (the environment of an agent to be
hired), so give it as @FILE, or @- for standard input.`,
		Example: `  selvage approval ask request_board_approval --payload '{"title":"Buy a yacht"}'
  selvage approval ask approve_ceo_strategy --payload @plan.json --issue ACM-1`,
		Fields: []cli.Field{{Place: 1, Member: "type"},
			{Name: "payload", Member: "payload", Kind: "json or @file",
				About: "what is asked for: a JSON object, or @FILE that holds it", Value: "{}"},
			{Name: "issue", Member: "issueIds", Kind: "issues", About: "issue that it is about; repeat for more"}}},
	{Use: "approve APPROVAL", Short: "Approve, and carry out what waits", Example: decideExample("approve"),
		Method: "POST", Path: "/api/approvals/{approval:1}/approve", Says: "{id} {status}",
		Fields: []cli.Field{withNote,
			{Name: "amount", Member: "amount", Kind: "int",
				About: "of a budget: the new limit in cents, instead of the proposed one"}}},
	{Use: "reject APPROVAL", Short: "Reject; what was made ready is taken back", Example: decideExample("reject"),
		Method: "POST", Path: "/api/approvals/{approval:1}/reject", Says: "{id} {status}",
		Fields: []cli.Field{withNote}},
	{Use: "revise APPROVAL", Short: "Send back for changes", Example: decideExample("revise"), Method: "POST",
		Path: "/api/approvals/{approval:1}/request-revision", Says: "{id} {status}", Fields: []cli.Field{withNote}},
	{Use: "cancel APPROVAL", Short: "Cancel, without a verdict", Example: decideExample("cancel"), Method: "POST",
		Path: "/api/approvals/{approval:1}/cancel", Says: "{id} {status}", Fields: []cli.Field{withNote}},
	{Use: "comment APPROVAL TEXT", Short: "Comment on an approval", Method: "POST",
		Path: "/api/approvals/{approval:1}/comments", Says: "commented",
		Fields: []cli.Field{{Place: 2, Member: "body"}}},
}

var withNote = cli.Field{Name: "note", Member: "decisionNote", About: "what to tell whoever asked"}

func decideExample(verb string) string {
	return "  selvage approval " + verb + " 0199c0de --note 'as we said'"
}
