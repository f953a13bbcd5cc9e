// Command ceo is an example agent that delegates: it proposes its strategy to
// the board, and once that is approved turns its issue into surveys for its
// reports, waits for them as blockers, and when all are done sums them up, asks
// the board what is next, and closes the issue. It keeps nothing between runs; what it needs to know is in
// the issues and the approvals.
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
	if len(children) == 0 {
		if ready, err := agreed(agent, issue); err != nil || !ready {
			return err
		}
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

// surveys are what the issue is divided into.
var surveys = []struct{ kind, title string }{
	{"gofmt", "Survey formatting"},
	{"todo", "Survey open markers"},
	{"comments", "Survey comments"},
}

// agreed reports whether the board has approved the strategy. If it has not
// been asked yet, or wants a revision, it is asked, and the issue waits blocked
// for its answer: the decision wakes this agent again.
func agreed(agent *agentkit.Agent, issue agentkit.Issue) (bool, error) {
	var company struct {
		Gate     bool    `json:"requireBoardApprovalForCeoStrategy"`
		Strategy *string `json:"strategyApprovalId"`
	}
	if err := agent.Call("GET", "/api/companies/"+agent.Company, nil, &company); err != nil {
		return false, err
	}
	if !company.Gate || company.Strategy != nil {
		return true, nil
	}
	var asked []struct {
		ID, Type, Status string
		DecisionNote     *string `json:"decisionNote"`
	}
	if err := agent.Call("GET", "/api/issues/"+issue.ID+"/approvals", nil, &asked); err != nil {
		return false, err
	}
	for _, a := range asked {
		switch {
		case a.Type != "approve_ceo_strategy":
		case a.Status == "revision_requested":
			fmt.Printf("%s: the board wants a revision\n", issue.Identifier)
			return false, agent.Call("POST", "/api/approvals/"+a.ID+"/resubmit", map[string]any{"payload": strategy(issue)}, nil)
		default:
			fmt.Printf("%s: the strategy is %s\n", issue.Identifier, a.Status)
			return false, nil
		}
	}
	if err := agent.CheckOut(issue.ID); err != nil {
		return false, err
	}
	if err := agent.Call("POST", "/api/companies/"+agent.Company+"/approvals", map[string]any{
		"type": "approve_ceo_strategy", "issueIds": []string{issue.ID}, "payload": strategy(issue),
	}, nil); err != nil {
		return false, fmt.Errorf("propose a strategy: %w", err)
	}
	fmt.Printf("%s: proposed a strategy to the board\n", issue.Identifier)
	if err := agent.Comment(issue.ID, "I have proposed a strategy and wait for the board."); err != nil {
		return false, err
	}
	return false, agent.SetStatus(issue.ID, "blocked")
}

func strategy(issue agentkit.Issue) map[string]any {
	var tasks []string
	for _, s := range surveys {
		tasks = append(tasks, s.title)
	}
	return map[string]any{"title": "How to do: " + issue.Title, "tasks": tasks,
		"plan": fmt.Sprintf("Divide the work into %d surveys, give each to one of my reports, and sum up what they find.",
			len(surveys))}
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
	for i, s := range surveys {
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
	if err := agent.Comment(issue.ID, fmt.Sprintf("Delegated %d surveys; I come back when they are done.",
		len(waiting))); err != nil {
		return err
	}
	return agent.Call("PATCH", "/api/issues/"+issue.ID, map[string]any{"status": "blocked",
		"blockedByIssueIds": waiting}, nil)
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
	if err := askWhatNext(agent, issue); err != nil {
		return err
	}
	return agent.SetStatus(issue.ID, "done")
}

// askWhatNext leaves a question to the board, which finds it in its inbox.
func askWhatNext(agent *agentkit.Agent, issue agentkit.Issue) error {
	type option struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
	question := map[string]any{"id": "next", "prompt": "What shall we survey next?", "selectionMode": "single",
		"required": true,
		"options":  []option{{"tests", "Tests"}, {"dependencies", "Dependencies"}, {"nothing", "Nothing for now"}}}
	err := agent.Call("POST", "/api/issues/"+issue.ID+"/interactions", map[string]any{
		"kind": "ask_user_questions", "title": "What shall we survey next?",
		"payload": map[string]any{"version": 1, "questions": []any{question}},
	}, nil)
	if err != nil {
		return fmt.Errorf("ask what is next: %w", err)
	}
	return nil
}
