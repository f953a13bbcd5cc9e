package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// interactionPath is the path of an interaction of an issue, before the action.
const interactionPath = "/api/issues/{1}/interactions/{2}/"

// An interactionRow is an interaction on an issue, with the readable part of its
// payload.
type interactionRow struct {
	ID      string  `json:"id"`
	Kind    string  `json:"kind"`
	Status  string  `json:"status"`
	Title   *string `json:"title"`
	Summary *string `json:"summary"`
	Created string  `json:"createdAt"`
	Payload struct {
		Prompt    string       `json:"prompt"`
		Details   string       `json:"detailsMarkdown"`
		Questions []askedThing `json:"questions"`
		Options   []askedThing `json:"options"`
		Items     []askedThing `json:"items"`
		Tasks     []askedThing `json:"tasks"`
	} `json:"payload"`
	Result json.RawMessage `json:"result"`
}

// An askedThing is a question, an option, an item or a task. Each has a text, and an ID
// that answers refer to.
type askedThing struct {
	ID          string       `json:"id"`
	ClientKey   string       `json:"clientKey"`
	Prompt      string       `json:"prompt"`
	Label       string       `json:"label"`
	Title       string       `json:"title"`
	Description string       `json:"description"`
	HelpText    string       `json:"helpText"`
	Options     []askedThing `json:"options"`
	AllowOther  bool         `json:"allowOther"`
}

func (r interactionRow) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s, %s, asked %s\n", r.ID, r.Kind, r.Status, cli.When(w, r.Created))
	for _, text := range []*string{r.Title, r.Summary, &r.Payload.Prompt, &r.Payload.Details} {
		if text != nil && *text != "" {
			fmt.Fprintln(w, cli.Visible(*text))
		}
	}
	for _, list := range [][]askedThing{r.Payload.Questions, r.Payload.Options, r.Payload.Items, r.Payload.Tasks} {
		for _, one := range list {
			one.print(w, "  ")
		}
	}
	if len(r.Result) > 0 && string(r.Result) != "null" {
		fmt.Fprintf(w, "result: %s\n", r.Result)
	}
}

// print writes the ID for answers and the text, and below it the options.
func (a askedThing) print(w io.Writer, before string) {
	line := before + cmp.Or(a.ID, a.ClientKey) + ": " + cmp.Or(a.Prompt, a.Label, a.Title)
	if more := cmp.Or(a.Description, a.HelpText); more != "" {
		line += " (" + strings.Join(strings.Fields(more), " ") + ")"
	}
	fmt.Fprintln(w, cli.Visible(line))
	for _, option := range a.Options {
		option.print(w, before+"  ")
	}
	if a.AllowOther {
		fmt.Fprintln(w, before+"  :TEXT: anything else")
	}
}

// interactionCommands show the interactions of an issue and answer them.
func interactionCommands(c *cli.CLI) []*cobra.Command {
	return []*cobra.Command{interactionShow(c), answerCommand(c), judgeCommand(c)}
}

// interact resolves the interaction that the first two arguments name.
func interact(c *cli.CLI, cmd *cobra.Command, args []string, verb string, body map[string]any) error {
	path, err := c.Filled(cmd, interactionPath+verb, args)
	if err != nil {
		return err
	}
	var row interactionRow
	return c.Send(cmd, "POST", path, body, &row, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s\n", row.Kind, row.Status)
	})
}

// judgeCommand gives verdicts on the items of a request.
func judgeCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "judge ISSUE INTERACTION ITEM=approve|reject|defer[:REASON]...", Short: "Give a verdict on each item",
		Args:    cobra.MinimumNArgs(3),
		Example: `  selvage issue judge ACM-1 8e40b13d-5f02-49a6-92bc-807bd79fee94 logo=approve "slogan=reject:too long"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var verdicts []map[string]any
			for _, a := range args[2:] {
				item, said, ok := strings.Cut(a, "=")
				verdict, why, _ := strings.Cut(said, ":")
				if !ok || item == "" || verdict == "" {
					return cli.Misuse(fmt.Errorf("%q is not ITEM=VERDICT; selvage issue asked %s %s shows the items", a,
						args[0], args[1]))
				}
				v := map[string]any{"id": item, "verdict": verdict}
				if why != "" {
					v["reason"] = why
				}
				verdicts = append(verdicts, v)
			}
			return interact(c, cmd, args, "verdicts", map[string]any{"verdicts": verdicts})
		},
	}
}

// answerCommand answers questions: with options, free text, or both.
func answerCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use:   "answer ISSUE INTERACTION QUESTION=OPTION[,OPTION][:TEXT]...",
		Short: "Answer questions; selvage issue asked shows them", Args: cobra.MinimumNArgs(3),
		Example: `  selvage issue answer ACM-1 8e40b13d-5f02-49a6-92bc-807bd79fee94 which=a
  selvage issue answer ACM-1 8e40b13d-5f02-49a6-92bc-807bd79fee94 which=:neither`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var answers []map[string]any
			for _, a := range args[2:] {
				question, said, ok := strings.Cut(a, "=")
				chosen, other, _ := strings.Cut(said, ":")
				if !ok || question == "" || chosen+other == "" {
					return cli.Misuse(fmt.Errorf("%q is not QUESTION=OPTION: selvage issue asked %s %s shows both", a,
						args[0], args[1]))
				}
				one := map[string]any{"questionId": question, "optionIds": []string{}}
				if chosen != "" {
					one["optionIds"] = strings.Split(chosen, ",")
				}
				if other != "" {
					one["otherText"] = other
				}
				answers = append(answers, one)
			}
			return interact(c, cmd, args, "respond", map[string]any{"answers": answers})
		},
	}
}

// interactionShow prints an interaction with the IDs that an answer refers to.
func interactionShow(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "asked ISSUE INTERACTION", Short: "Show what was asked, and what can be answered", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, interactionPath, args)
			if err != nil {
				return err
			}
			list, id := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
			var rows []json.RawMessage
			if err := c.Call(cmd.Context(), "GET", list, nil, &rows); err != nil {
				return err
			}
			for _, raw := range rows {
				var row interactionRow
				if err := json.Unmarshal(raw, &row); err != nil {
					return err
				}
				if row.ID == id {
					return c.Print(cmd, raw, row.print)
				}
			}
			return fmt.Errorf("%s has no interaction %q: see selvage issue interactions %s", args[0], args[1], args[0])
		},
	}
}
