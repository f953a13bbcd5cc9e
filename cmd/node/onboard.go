package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/company/portable"
)

// An onboarding is what a first company is made of. Each step finds what an
// earlier try has made, so the command can be given again.
type onboarding struct {
	c       *cli.CLI
	cmd     *cobra.Command
	yes     bool
	answers *bufio.Scanner

	company, goal, ceo, command string
	starter                     string
	idle                        bool // the CEO runs nothing yet
	arguments                   []string
	budget                      int64
}

// onboarded is what -o json prints.
type onboarded struct {
	Company string   `json:"companyId"`
	Prefix  string   `json:"issuePrefix"`
	Goal    string   `json:"goalId"`
	CEO     string   `json:"ceoAgentId"`
	Next    []string `json:"next"`
}

// maxAnswerLine bounds one answer to a question, in bytes.
const maxAnswerLine = 16 << 10

func onboardCommand(c *cli.CLI) *cobra.Command {
	o := &onboarding{c: c}
	cmd := &cobra.Command{
		Use: "onboard", Short: "Create a first company, its goal and its CEO, step by step",
		Long: `Make a first company, its goal and its CEO, step by step, and say what comes
next. Each step asks; an empty answer takes what stands in brackets. With --yes
nothing is asked. Without --command the nodes are asked which agents they have
(Claude Code, Codex, Gemini, OpenCode …), and the CEO runs on one of them. What is there already under the same name is kept, so the
command can be given again.`,
		Example: `  selvage onboard
  selvage onboard --yes --company-name "Acme Robotics" --goal "Build a robot that folds towels" --command /usr/local/bin/ceo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.cmd, o.answers = cmd, bufio.NewScanner(cmd.InOrStdin())
			o.answers.Buffer(nil, maxAnswerLine)
			if err := o.wrong(); err != nil {
				return err
			}
			return o.run()
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.yes, "yes", "y", false, "ask nothing")
	f.StringVar(&o.company, "company-name", "First Company", "what it is called")
	f.StringVar(&o.starter, "starter", "", "begin with one of the companies that come with the program: "+strings.Join(portable.Starters(), ", "))
	f.StringVar(&o.goal, "goal", "Find out what we are for, and do it", "what everything that it does is to serve")
	f.StringVar(&o.ceo, "ceo", "Ada", "name of its first agent")
	f.StringVar(&o.command, "command", "", "program that the CEO runs when it wakes; without one it is an agent that a node has, and where none has any its runs do nothing")
	f.StringArrayVar(&o.arguments, "arg", nil, "argument of that program (repeat)")
	f.Int64Var(&o.budget, "budget", 0, "the company's monthly budget in cents; 0 sets none")
	return cmd
}

// wrong is what of the flags no step could take.
func (o *onboarding) wrong() error {
	switch {
	case o.starter != "" && !slices.Contains(portable.Starters(), o.starter):
		return cli.Misuse(fmt.Errorf("--starter %q is none of %s", o.starter, strings.Join(portable.Starters(), ", ")))
	case o.budget < 0:
		return cli.Misuse(fmt.Errorf("--budget is %d: want cents, 0 for none", o.budget))
	case o.command == "" && len(o.arguments) > 0:
		return cli.Misuse(errors.New("--arg is for the program of --command, which is not given"))
	}
	return nil
}

func (o *onboarding) run() error {
	var health struct {
		Status string `json:"status"`
	}
	if err := o.call("GET", "/api/health", nil, &health); err != nil {
		return err
	}
	company, err := o.makeCompany()
	if err != nil {
		return err
	}
	goal, err := o.makeGoal(company.ID)
	if err != nil {
		return err
	}
	ceo, err := o.makeCEO(company.ID)
	if err != nil {
		return err
	}
	flag := ""
	if o.manyCompanies() {
		flag = " -c " + company.IssuePrefix
	}
	type step struct{ do, why string }
	steps := []step{
		{fmt.Sprintf("selvage issue create 'Propose a strategy' --assignee %s%s", quoted(ceo.Name), flag), "give the CEO something to do"},
		{fmt.Sprintf("selvage agent invoke %s%s", quoted(ceo.Name), flag), "wake it now"},
		{"selvage approval list" + flag, "see what waits for your decision"},
		{"selvage company import --help", "or begin with a company that others have made"},
	}
	if o.idle {
		steps = append([]step{{"selvage adapter list", "see what an agent can run on, and which program that needs"},
			{fmt.Sprintf("selvage agent update %s --adapter claude_local --config '{}'%s", quoted(ceo.Name), flag), "let the CEO run on it, once a node has it"}}, steps...)
	}
	var next []string
	for _, s := range steps {
		next = append(next, s.do)
	}
	return o.c.Print(o.cmd, onboarded{company.ID, company.IssuePrefix, goal, ceo.ID, next}, func(w io.Writer) {
		fmt.Fprintf(w, "%s is ready, %s leads it. What you can do next:\n\n", company.Name, ceo.Name)
		for _, s := range steps {
			fmt.Fprintf(w, "  %s\n      %s\n", s.do, s.why)
		}
	})
}

// ask returns an answer, what is suggested when it is empty or nothing is asked.
func (o *onboarding) ask(question, suggested string) (string, error) {
	if o.yes {
		return suggested, nil
	}
	w := o.cmd.ErrOrStderr()
	if suggested != "" {
		fmt.Fprintf(w, "%s [%s]: ", question, suggested)
	} else {
		fmt.Fprintf(w, "%s: ", question)
	}
	if !o.answers.Scan() {
		fmt.Fprintln(w)
		return "", cmp.Or(o.answers.Err(), error(cli.Misuse(errors.New("there is nobody to answer; use --yes"))))
	}
	return cmp.Or(strings.TrimSpace(o.answers.Text()), suggested), nil
}

func (o *onboarding) call(method, path string, in, out any) error {
	return o.c.Call(o.cmd.Context(), method, path, in, out)
}

func (o *onboarding) say(format string, args ...any) {
	fmt.Fprintf(o.cmd.ErrOrStderr(), format+"\n", args...)
}

func (o *onboarding) manyCompanies() bool {
	var rows []companyRow
	return o.call(http.MethodGet, "/api/companies", nil, &rows) == nil && len(rows) > 1
}

func (o *onboarding) makeCompany() (row companyRow, err error) {
	name, err := o.ask("What is the company called?", o.company)
	if err != nil {
		return row, err
	}
	var all []companyRow
	if err := o.call("GET", "/api/companies", nil, &all); err != nil {
		return row, err
	}
	for _, r := range all {
		if strings.EqualFold(r.Name, name) {
			o.say("1. company %s is there already (%s)", r.Name, r.IssuePrefix)
			return r, nil
		}
	}
	if err := o.chooseStarter(); err != nil {
		return row, err
	}
	if o.starter != noStarter {
		return o.importStarter(name)
	}
	if err := o.call("POST", "/api/companies", map[string]any{"name": name, "budgetMonthlyCents": o.budget}, &row); err != nil {
		return row, err
	}
	o.say("1. made company %s; its issues are called %s-1 and so on", row.Name, row.IssuePrefix)
	return row, nil
}

// maxAsked bounds how often a question is asked whose answer is none of a few.
const maxAsked = 3

// chooseStarter asks which example to begin with, again after an answer that is none.
func (o *onboarding) chooseStarter() error {
	few, suggested := strings.Join(portable.Starters(), ", "), cmp.Or(o.starter, noStarter)
	for range maxAsked {
		answer, err := o.ask("Begin with an example ("+few+"), or with nothing?", suggested)
		if err != nil {
			return err
		}
		if o.starter = answer; answer == noStarter || slices.Contains(portable.Starters(), answer) {
			return nil
		}
		o.say("%q is none of %s", answer, few)
	}
	return cli.Misuse(fmt.Errorf("there is no example %q", o.starter))
}

// noStarter is the answer of who begins with an empty company.
const noStarter = "nothing"

// importStarter makes the company from one of those that come with the program.
func (o *onboarding) importStarter(name string) (row companyRow, err error) {
	source, err := packageSource(o.starter)
	if err != nil {
		return row, err
	}
	var done struct {
		Company struct{ ID string }
		Agents  []struct{ Slug string }
	}
	if err := o.call("POST", "/api/companies/import", map[string]any{"source": source, "agents": "all", "collisionStrategy": "rename",
		"target": map[string]any{"mode": "new_company", "newCompanyName": name}}, &done); err != nil {
		return row, err
	}
	if o.budget > 0 {
		if err := o.call("PATCH", "/api/companies/"+done.Company.ID+"/budgets", map[string]any{"budgetMonthlyCents": o.budget}, nil); err != nil {
			return row, err
		}
	}
	if err := o.call("GET", "/api/companies/"+done.Company.ID, nil, &row); err != nil {
		return row, err
	}
	o.say("1. made company %s from %s, with %d agents; its issues are called %s-1 and so on", row.Name, o.starter, len(done.Agents), row.IssuePrefix)
	return row, nil
}

func (o *onboarding) makeGoal(company string) (id string, err error) {
	type goalRow struct {
		ID     string  `json:"id"`
		Title  string  `json:"title"`
		Level  string  `json:"level"`
		Parent *string `json:"parentId"`
	}
	path := "/api/companies/" + company + "/goals"
	var all []goalRow
	if err := o.call("GET", path, nil, &all); err != nil {
		return "", err
	}
	if o.starter != "" && o.starter != noStarter {
		for _, g := range all {
			if g.Level == "company" && g.Parent == nil {
				o.say("2. its goal comes with it: %s", g.Title)
				return g.ID, nil
			}
		}
	}
	title, err := o.ask("What is it for?", o.goal)
	if err != nil {
		return "", err
	}
	for _, g := range all {
		if strings.EqualFold(g.Title, title) {
			o.say("2. its goal is there already: %s", g.Title)
			return g.ID, nil
		}
	}
	var g goalRow
	if err := o.call("POST", path, map[string]any{"title": title, "level": "company", "status": "active"}, &g); err != nil {
		return "", err
	}
	o.say("2. set its goal: %s", g.Title)
	return g.ID, nil
}

func (o *onboarding) makeCEO(company string) (row agentRow, err error) {
	all, err := agents(o.c, o.cmd, company)
	if err != nil {
		return row, err
	}
	for _, a := range all {
		if a.Role == "ceo" {
			o.say("3. %s leads it already", a.Name)
			return a, nil
		}
	}
	name, err := o.ask("What is its CEO called?", o.ceo)
	if err != nil {
		return row, err
	}
	body := map[string]any{"name": name, "role": "ceo", "title": "Chief Executive", "icon": "crown",
		"capabilities": "Breaks the company's goal down, hires who is missing, and asks the board for what it may not decide itself."}
	if o.command == "" {
		agent, err := o.chooseAgent(company)
		if err != nil {
			return row, err
		}
		if agent.Type != "" {
			body["adapterType"], body["adapterConfig"] = agent.Type, map[string]any{}
			if err := o.call("POST", "/api/companies/"+company+"/agents", body, &row); err != nil {
				return row, err
			}
			o.say("3. hired %s as CEO; it runs on %s", row.Name, agent.Name)
			return row, nil
		}
	}
	command, err := o.ask("Which program does the CEO run when it wakes? (none: decide later)", o.command)
	if err != nil {
		return row, err
	}
	config := map[string]any{"command": cmp.Or(command, "true")}
	if len(o.arguments) > 0 {
		config["args"] = o.arguments
	}
	body["adapterType"], body["adapterConfig"] = "process", config
	if err := o.call("POST", "/api/companies/"+company+"/agents", body, &row); err != nil {
		return row, err
	}
	if o.idle = command == ""; o.idle {
		o.say("3. hired %s as CEO; it runs nothing yet, see %s/api/llms/agent-configuration.txt", row.Name, o.c.URL())
		return row, nil
	}
	o.say("3. hired %s as CEO; it runs %s", row.Name, command)
	return row, nil
}

// chooseAgent asks which of the agents that a node of the mesh has the CEO is to be,
// none where no node has any.
func (o *onboarding) chooseAgent(company string) (chosen adapterRow, err error) {
	var all []adapterRow
	if err := o.call("GET", "/api/adapters", nil, &all); err != nil {
		return chosen, err
	}
	var here []adapterRow
	var types, missing []string
	for _, a := range all {
		if a.Program == "" {
			continue
		}
		var report adapterTestRow
		if err := o.call("POST", "/api/companies/"+company+"/adapters/"+a.Type+"/test-environment", map[string]any{}, &report); err != nil {
			return chosen, err
		}
		if report.Status == "fail" {
			missing = append(missing, a.Name)
			continue
		}
		here, types = append(here, a), append(types, a.Type)
	}
	if len(here) == 0 {
		o.say("   no node has %s", strings.Join(missing, ", "))
		return chosen, nil
	}
	for range maxAsked {
		answer, err := o.ask("Which agent is it? ("+strings.Join(types, ", ")+", or none)", types[0])
		if err != nil || answer == "none" {
			return chosen, err
		}
		if n := slices.Index(types, answer); n >= 0 {
			return here[n], nil
		}
		o.say("%q is none of %s", answer, strings.Join(types, ", "))
	}
	return chosen, cli.Misuse(errors.New("no agent was chosen"))
}

// quoted writes a name for a shell.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
