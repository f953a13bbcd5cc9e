package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// An issueRow is the part of an issue that lists and people read.
type issueRow struct {
	ID              string  `json:"id"`
	Identifier      string  `json:"identifier"`
	Title           string  `json:"title"`
	Description     *string `json:"description"`
	Status          string  `json:"status"`
	Priority        string  `json:"priority"`
	AssigneeAgentID *string `json:"assigneeAgentId"`
	AssigneeUserID  *string `json:"assigneeUserId"`
	UpdatedAt       string  `json:"updatedAt"`
}

// An issueDetail is an issue with what it belongs to, waits for and has brought.
type issueDetail struct {
	issueRow
	CompanyID   string     `json:"companyId"`
	BillingCode *string    `json:"billingCode"`
	Checkout    *string    `json:"checkoutRunId"`
	BlockedBy   []issueRow `json:"blockedBy"`
	Blocks      []issueRow `json:"blocks"`
	Ancestors   []issueRow `json:"ancestors"`
	Labels      []struct {
		Name string `json:"name"`
	} `json:"labels"`
	Project *struct {
		Name string `json:"name"`
	} `json:"project"`
	Goal *struct {
		Title string `json:"title"`
	} `json:"goal"`
	Documents []struct {
		Key string `json:"key"`
	} `json:"documentSummaries"`
	Products []struct {
		Title string `json:"title"`
	} `json:"workProducts"`
}

type commentRow struct {
	AuthorAgentID *string `json:"authorAgentId"`
	AuthorUserID  *string `json:"authorUserId"`
	Body          string  `json:"body"`
	CreatedAt     string  `json:"createdAt"`
}

// who is whose comment it is.
func (r commentRow) who(names map[string]string) string {
	switch {
	case r.AuthorAgentID != nil:
		return cmp.Or(names[*r.AuthorAgentID], "agent "+cli.Short(*r.AuthorAgentID))
	case r.AuthorUserID != nil && *r.AuthorUserID != localBoard:
		return *r.AuthorUserID
	}
	return "board"
}

// localBoard is the user at the keyboard of a mesh that asks nobody to sign in.
const localBoard = "local-board"

// print writes an issue for people; names are those of agents, runs its queued and
// running ones.
func (r issueDetail) print(w io.Writer, names map[string]string, runs []runRow) {
	fmt.Fprintf(w, "%s  %s\nstatus %s, priority %s, updated %s\n", r.Identifier, cli.Visible(r.Title), r.Status, r.Priority, cli.When(w, r.UpdatedAt))
	line := func(name string, words ...string) {
		if text := strings.Join(words, ", "); text != "" {
			fmt.Fprintf(w, "%-10s %s\n", name, cli.Visible(text))
		}
	}
	switch {
	case r.AssigneeAgentID != nil:
		line("assignee", cmp.Or(names[*r.AssigneeAgentID], *r.AssigneeAgentID))
	case r.AssigneeUserID != nil:
		line("assignee", *r.AssigneeUserID)
	}
	if r.Checkout != nil {
		line("held by", "run "+*r.Checkout)
	}
	for _, run := range runs {
		if run.Waiting != nil {
			line("run waits", cmp.Or(names[run.AgentID], cli.Short(run.AgentID))+": "+run.Waiting.Text)
		}
		if run.Waiting != nil && run.Waiting.Do != nil {
			line("to do", *run.Waiting.Do)
		}
	}
	if r.Project != nil {
		line("project", r.Project.Name)
	}
	if r.Goal != nil {
		line("goal", r.Goal.Title)
	}
	if len(r.Ancestors) > 0 {
		line("part of", identified(r.Ancestors[:1])...)
	}
	line("waits for", identified(r.BlockedBy)...)
	line("holds up", identified(r.Blocks)...)
	var labels, documents, products []string
	for _, l := range r.Labels {
		labels = append(labels, l.Name)
	}
	for _, d := range r.Documents {
		documents = append(documents, d.Key)
	}
	for _, p := range r.Products {
		products = append(products, p.Title)
	}
	line("labels", labels...)
	line("documents", documents...)
	line("products", products...)
	if r.BillingCode != nil {
		line("billed to", *r.BillingCode)
	}
	if r.Description != nil {
		fmt.Fprintf(w, "\n%s\n", cli.Visible(*r.Description))
	}
}

// identified are issues in a line: ACM-2 (done).
func identified(rows []issueRow) (words []string) {
	for _, r := range rows {
		words = append(words, fmt.Sprintf("%s (%s)", r.Identifier, r.Status))
	}
	return words
}

func issueCommand(c *cli.CLI) *cobra.Command {
	show := &cobra.Command{
		Use: "show ISSUE", Short: "Show an issue and its comments", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := "/api/issues/" + url.PathEscape(args[0])
			var row issueDetail
			var comments []commentRow
			var runs []runRow
			if !c.ForMachines() {
				if err := c.Call(cmd.Context(), "GET", at+"/live-runs", nil, &runs); err != nil {
					return err
				}
				if err := c.Call(cmd.Context(), "GET", at+"/comments?order=asc", nil, &comments); err != nil {
					return err
				}
			}
			return c.Show(cmd, at, &row, func(w io.Writer) {
				names, _ := c.AgentNames(cmd, row.CompanyID) // without them IDs are shown
				row.print(w, names, runs)
				for _, m := range comments {
					fmt.Fprintf(w, "\n--- %s, %s\n%s\n", m.who(names), cli.When(w, m.CreatedAt), cli.Visible(m.Body))
				}
			})
		},
	}
	rest := append(interactionCommands(c), attachCommand(c), downloadCommand(c), documentCommand(c))
	return cli.Group("issue", "Create, assign, comment on and close issues", append(append(relationCommands(c), show), rest...)...)
}
