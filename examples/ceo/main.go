// Command ceo is an example agent that delegates: it turns its issue into
// surveys for its reports, waits for them as blockers, and when all are done
// sums them up and closes the issue. It keeps nothing between runs; what it
// needs to know is in the issues.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/examples/agentkit"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ceo:", err)
		os.Exit(1)
	}
}

func run() error {
	agent, err := agentkit.FromEnv()
	if err != nil {
		return err
	}
	issues, err := agent.Mine("todo,in_progress,blocked")
	if err != nil {
		return fmt.Errorf("list my issues: %w", err)
	}
	for _, issue := range issues {
		if err := lead(agent, issue); err != nil {
			return fmt.Errorf("%s: %w", issue.Identifier, err)
		}
	}
	return nil
}

func lead(agent *agentkit.Agent, issue agentkit.Issue) error {
	children, err := childrenOf(agent, issue)
	if err != nil {
		return err
	}
	if len(children) > 0 && open(children) > 0 {
		fmt.Printf("%s waits for %d of %d surveys\n", issue.Identifier, open(children), len(children))
		return nil
	}
	var refused *agentkit.Refused
	if err := agent.CheckOut(issue.ID); errors.As(err, &refused) && refused.Status == 409 {
		fmt.Printf("%s is held by another run\n", issue.Identifier)
		return nil
	} else if err != nil {
		return err
	}
	if len(children) == 0 {
		return delegate(agent, issue)
	}
	return sumUp(agent, issue, children)
}

func childrenOf(agent *agentkit.Agent, issue agentkit.Issue) (list []agentkit.Issue, err error) {
	return list, agent.Call("GET", "/api/companies/"+agent.Company+"/issues?parentId="+issue.ID, nil, &list)
}

func open(issues []agentkit.Issue) (n int) {
	for _, i := range issues {
		if i.Status != "done" && i.Status != "cancelled" {
			n++
		}
	}
	return n
}

// delegate gives each survey to one of the agents that report to this one.
func delegate(agent *agentkit.Agent, issue agentkit.Issue) error {
	var agents []struct {
		ID        string  `json:"id"`
		Name      string  `json:"name"`
		ReportsTo *string `json:"reportsTo"`
	}
	if err := agent.Call("GET", "/api/companies/"+agent.Company+"/agents", nil, &agents); err != nil {
		return err
	}
	var reports []string
	for _, a := range agents {
		if a.ReportsTo != nil && *a.ReportsTo == agent.ID {
			reports = append(reports, a.ID)
		}
	}
	if len(reports) == 0 {
		return errors.New("nobody reports to me: hire a worker first")
	}
	var waiting []string
	for i, s := range []struct{ kind, title string }{
		{"gofmt", "Survey formatting"},
		{"todo", "Survey open markers"},
		{"vet", "Survey with go vet"},
	} {
		var child agentkit.Issue
		err := agent.Call("POST", "/api/companies/"+agent.Company+"/issues", map[string]any{
			"title": s.title, "description": "survey: " + s.kind, "parentId": issue.ID,
			"status": "todo", "assigneeAgentId": reports[i%len(reports)], "priority": "medium",
		}, &child)
		if err != nil {
			return fmt.Errorf("delegate %s: %w", s.kind, err)
		}
		fmt.Printf("delegated %s %q\n", child.Identifier, child.Title)
		waiting = append(waiting, child.ID)
	}
	if err := agent.Comment(issue.ID, fmt.Sprintf("Delegated %d surveys; I come back when they are done.", len(waiting))); err != nil {
		return err
	}
	return agent.Call("PATCH", "/api/issues/"+issue.ID, map[string]any{"status": "blocked", "blockedByIssueIds": waiting}, nil)
}

// sumUp puts the last comment of each survey under one heading.
func sumUp(agent *agentkit.Agent, issue agentkit.Issue, children []agentkit.Issue) error {
	start := time.Now()
	var b strings.Builder
	fmt.Fprintf(&b, "All %d surveys are in.\n", len(children))
	for _, c := range children {
		var comments []struct {
			Body string `json:"body"`
		}
		if err := agent.Call("GET", "/api/issues/"+c.ID+"/comments?order=desc&limit=1", nil, &comments); err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n**%s %s** (%s)\n", c.Identifier, c.Title, c.Status)
		if len(comments) > 0 {
			first, _, _ := strings.Cut(comments[0].Body, "\n")
			fmt.Fprintf(&b, "%s\n", first)
		}
	}
	if err := agent.Comment(issue.ID, b.String()); err != nil {
		return err
	}
	if err := agent.ReportCost(issue.ID, time.Since(start)); err != nil {
		return err
	}
	return agent.SetStatus(issue.ID, "done")
}
