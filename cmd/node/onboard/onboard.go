// Package onboard is the command that makes a first company: its goal, a CEO that works
// with what is there, and a first task that ends well.
package onboard

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
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
	source  Source
	yes     bool
	answers *bufio.Scanner

	company, goal, ceo, command string
	starter, use, task          string
	arguments                   []string
	budget                      int64

	made    companyRow
	fresh   bool            // whether this try made the company
	left    []way           // that were not tried
	staffed []agent         // that work in the way that was taken last
	told    map[string]bool // comments that were shown
}

// A Source makes the source of an import of a starter's name.
type Source func(starter string) (map[string]any, error)

type companyRow struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	IssuePrefix string `json:"issuePrefix"`
}

// firstTask is what a CEO is asked to do first.
const firstTask = "Propose a strategy"

// onboarded is what -o json prints.
type onboarded struct {
	Company string   `json:"companyId"`
	Prefix  string   `json:"issuePrefix"`
	Goal    string   `json:"goalId"`
	CEO     string   `json:"ceoAgentId"`
	Issue   string   `json:"issueId,omitempty"`
	Status  string   `json:"issueStatus,omitempty"`
	Next    []string `json:"next"`
}

// maxAnswerLine bounds one answer to a question, in bytes.
const maxAnswerLine = 16 << 10

// Command is selvage onboard.
func Command(c *cli.CLI, source Source) *cobra.Command {
	o := &onboarding{c: c, source: source, told: map[string]bool{}}
	cmd := &cobra.Command{
		Use: "onboard", Short: "Create a first company, its goal and its CEO, step by step",
		Long: `Make a first company, its goal and its CEO, step by step, give the CEO a first task,
and show what comes of it. Each step asks; an empty answer takes what stands in
brackets. With --yes nothing is asked.

Without --command the nodes are looked at: command lines on their PATH (Claude Code,
Codex, Gemini, OpenCode …), upstreams of the model gateway, servers of models on their
usual ports (Ollama, llama.cpp, vLLM, LM Studio), and keys of vendors in variables of the
node that answers and of your shell. What is chosen is tested with one call. Where
nothing of that is there, or nothing works, the CEO is a demo that needs no model.

The value of a key is kept, sealed, only when you choose it, by an answer or by --use
with its variable; it is never printed, and not kept where the vendor refuses it. Where the
same environment has ANTHROPIC_BASE_URL or OPENAI_BASE_URL, the vendor is asked there.
What is there already under the same name is kept, so the command can be given again.`,
		Example: `  selvage onboard
  selvage onboard --yes --company-name "Acme Robotics" --goal "Build a robot that folds towels"
  selvage onboard --yes --use ANTHROPIC_API_KEY`,
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
	f.StringVar(&o.starter, "starter", "",
		"begin with one of the companies that come with the program: "+strings.Join(portable.Starters(), ", "))
	f.StringVar(&o.goal, "goal", "Find out what we are for, and do it", "what everything that it does is to serve")
	f.StringVar(&o.ceo, "ceo", "Ada", "name of its first agent")
	f.StringVar(&o.command, "command", "",
		"program that the CEO runs when it wakes; without one it works with what is there")
	f.StringVar(&o.use, "use", "",
		"what agents work with, and nothing else: an adapter, a server, an upstream, a variable with a key, or demo")
	f.StringVar(&o.task, "task", "", "the CEO's first task; none gives it none (default "+strconv.Quote(firstTask)+")")
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
	case o.command != "" && o.use != "":
		return cli.Misuse(errors.New("--command and --use exclude each other"))
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
	o.made = company
	goal, err := o.makeGoal(company.ID)
	if err != nil {
		return err
	}
	ceo, err := o.staff()
	if err != nil && o.fresh && o.use != "" {
		return o.undo(err)
	}
	if err != nil {
		return err
	}
	task, err := o.firstTask(ceo)
	if err != nil {
		return err
	}
	selvage, flag := "selvage", ""
	if o.cmd.Flags().Changed("api") {
		selvage += " --api " + o.c.URL()
	}
	if o.manyCompanies() {
		flag = " -c " + company.IssuePrefix
	}
	type step struct{ do, why string }
	var steps []step
	if task.ID != "" {
		steps = append(steps, step{selvage + " issue show " + task.Identifier, "see what came of the first task"})
	}
	steps = append(steps,
		step{fmt.Sprintf("%s issue create 'Name three risks' --assignee %s%s", selvage, quoted(ceo.Name), flag),
			"give the CEO something else to do"},
		step{selvage + " approval list" + flag, "see what waits for your decision"},
		step{selvage + " model local", "give the mesh a model of its own machines"},
		step{selvage + " company import --help", "or begin with a company that others have made"})
	var next []string
	for _, s := range steps {
		next = append(next, s.do)
	}
	return o.c.Print(o.cmd, onboarded{company.ID, company.IssuePrefix, goal, ceo.ID, task.ID, task.Status, next},
		func(w io.Writer) {
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
	o.fresh = true
	if o.starter != noStarter {
		return o.importStarter(name)
	}
	if err := o.call("POST", "/api/companies", map[string]any{"name": name, "budgetMonthlyCents": o.budget},
		&row); err != nil {
		return row, err
	}
	o.say("1. made company %s; its issues are called %s-1 and so on", row.Name, row.IssuePrefix)
	return row, nil
}

// undo deletes the company that this try has made: what it was to work with does not work.
func (o *onboarding) undo(why error) error {
	if err := o.call(http.MethodDelete, "/api/companies/"+o.made.ID, nil, nil); err != nil {
		return errors.Join(why, fmt.Errorf("delete company %s, which is of no use now: %w", o.made.Name, err))
	}
	o.say("   deleted company %s again: --use %s does not work", o.made.Name, o.use)
	return why
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
	source, err := o.source(o.starter)
	if err != nil {
		return row, err
	}
	var done struct {
		Company struct{ ID string }
		Agents  []struct{ Slug string }
	}
	if err := o.call("POST", "/api/companies/import", map[string]any{"source": source, "agents": "all",
		"collisionStrategy": "rename",
		"target":            map[string]any{"mode": "new_company", "newCompanyName": name}}, &done); err != nil {
		return row, err
	}
	if o.budget > 0 {
		if err := o.call("PATCH", "/api/companies/"+done.Company.ID+"/budgets",
			map[string]any{"budgetMonthlyCents": o.budget}, nil); err != nil {
			return row, err
		}
	}
	if err := o.call("GET", "/api/companies/"+done.Company.ID, nil, &row); err != nil {
		return row, err
	}
	o.say("1. made company %s from %s, with %d agents; its issues are called %s-1 and so on", row.Name, o.starter,
		len(done.Agents), row.IssuePrefix)
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
	given := o.cmd.Flags().Changed("goal")
	if o.starter != "" && o.starter != noStarter {
		for _, g := range all {
			if g.Level != "company" || g.Parent != nil {
				continue
			}
			o.say("2. its goal comes with it: %s", g.Title)
			if !given {
				o.goal = g.Title
				return g.ID, nil
			}
			break
		}
	}
	title := o.goal
	if !given {
		if title, err = o.ask("What is it for?", o.goal); err != nil {
			return "", err
		}
	}
	o.goal = title
	for _, g := range all {
		if strings.EqualFold(g.Title, title) {
			o.say("2. its goal is there already: %s", g.Title)
			return g.ID, nil
		}
	}
	var g goalRow
	if err := o.call("POST", path, map[string]any{"title": title, "level": "company", "status": "active"},
		&g); err != nil {
		return "", err
	}
	o.say("2. set its goal: %s", g.Title)
	return g.ID, nil
}

// quoted writes a name for a shell.
func quoted(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
