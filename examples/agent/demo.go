package main

import (
	"fmt"
	"sort"
	"strings"
)

// maxSeen bounds what a demo lists of one kind.
const maxSeen = 20

// A seen is what a demo looks at in its company, with its own rights.
type seen struct {
	company struct {
		Name, IssuePrefix                     string
		BudgetMonthlyCents, SpentMonthlyCents int64
	}
	goals  []struct{ Title, Level, Status string }
	agents []struct{ ID, Name, Role, Status string }
	issues []Issue
}

// look reads the company. What the agent may not read is left out.
func (a *agent) look() (s seen) {
	of := "/api/companies/" + a.me.CompanyID
	read := func(path string, out any) {
		if err := a.ask("api", map[string]string{"method": "GET", "path": path}, out); err != nil {
			_ = wasmkitLog(a.ask, "warn", "not read: "+path+": "+err.Error())
		}
	}
	read(of, &s.company)
	read(of+"/goals", &s.goals)
	read(of+"/agents", &s.agents)
	read(of+"/issues", &s.issues)
	return s
}

// demo works on an issue without a model: it reports what it sees in its company,
// and says that it does not think. It shows the whole way of an issue: the run that
// takes it, the comment and the end.
func (a *agent) demo(i Issue) (Outcome, error) {
	out := Outcome{Profile: classify(i.Title + "\n" + i.Description), Status: "done", Score: 1}
	out.Result = a.report(i, a.look())
	if err := a.ask("comment.create", map[string]string{"id": i.ID, "body": out.Result}, nil); err != nil {
		return out, err
	}
	return out, a.ask("issue.update", map[string]string{"id": i.ID, "status": out.Status}, nil)
}

// report is what a demo posts.
func (a *agent) report(i Issue, s seen) string {
	var b strings.Builder
	fmt.Fprintf(&b, "I am %s, a demo agent. I have no model, so I do not think about \"%s\": I read the company and report what is there.\n", a.me.AgentName, i.Title)
	fmt.Fprintf(&b, "\n**%s**, whose issues are called %s-1 and so on", s.company.Name, s.company.IssuePrefix)
	if s.company.BudgetMonthlyCents > 0 {
		fmt.Fprintf(&b, ", has spent $%.2f of $%.2f this month", float64(s.company.SpentMonthlyCents)/100, float64(s.company.BudgetMonthlyCents)/100)
	}
	b.WriteString(".\n")
	section(&b, "Goals", len(s.goals), func(n int) string { return s.goals[n].Title + " (" + s.goals[n].Status + ")" })
	section(&b, "Agents", len(s.agents), func(n int) string {
		who := s.agents[n].Name + ", " + s.agents[n].Role + ", " + s.agents[n].Status
		if s.agents[n].ID == a.me.AgentID {
			who += ": that is me"
		}
		return who
	})
	sort.SliceStable(s.issues, func(x, y int) bool { return s.issues[x].Status < s.issues[y].Status })
	section(&b, "Issues", len(s.issues), func(n int) string {
		return s.issues[n].Identifier + " " + s.issues[n].Title + ", " + s.issues[n].Status
	})
	fmt.Fprintf(&b, "\nWhat I did: run %s took this issue, posted this comment, and closes the issue. Its log: selvage run log %s\n", short(a.me.RunID), short(a.me.RunID))
	b.WriteString("\nTo give me a model: `selvage model local`, and then " +
		"`selvage agent update '" + strings.ReplaceAll(a.me.AgentName, "'", `'\''`) + "' --config '{\"env\": {}}'`.")
	return b.String()
}

// section writes a heading and up to maxSeen lines.
func section(b *strings.Builder, heading string, n int, line func(n int) string) {
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n\n", heading)
	for k := range min(n, maxSeen) {
		b.WriteString("- " + line(k) + "\n")
	}
	if n > maxSeen {
		fmt.Fprintf(b, "- and %d more\n", n-maxSeen)
	}
}

// short is the beginning of an ID, which the command line takes for it.
func short(id string) string { return id[:min(len(id), 8)] }
