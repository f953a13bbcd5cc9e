package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

type documentRow struct {
	Key        string  `json:"key"`
	Title      *string `json:"title"`
	Body       string  `json:"body"`
	Revision   int64   `json:"latestRevisionNumber"`
	RevisionID *string `json:"latestRevisionId"`
	UpdatedAt  string  `json:"updatedAt"`
}

// maxDocumentFile bounds what is read from a file or standard input: a document
// has at most 2 MiB.
const maxDocumentFile = 2 << 20

func documentCommand(c *cli) *cobra.Command {
	at := func(args []string) string { return "/api/issues/" + url.PathEscape(args[0]) + "/documents" }
	list := &cobra.Command{
		Use: "list ISSUE", Short: "List the documents of an issue", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []documentRow
			return c.show(cmd, at(args), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.Key, strconv.FormatInt(r.Revision, 10), ago(r.UpdatedAt), orDash(r.Title)})
				}
				table(w, "KEY REVISION UPDATED TITLE", t)
			})
		},
	}
	get := &cobra.Command{
		Use: "get ISSUE KEY", Short: "Print a document", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var row documentRow
			return c.show(cmd, at(args)+"/"+url.PathEscape(args[1]), &row, func(w io.Writer) {
				fmt.Fprintln(w, strings.TrimSuffix(row.Body, "\n"))
			})
		},
	}
	var title, summary string
	put := &cobra.Command{
		Use: "put ISSUE KEY [FILE]", Short: "Write a document from a file, or from standard input", Args: cobra.RangeArgs(2, 3),
		Long: `Write a document from a file, or from standard input. It replaces the latest revision that
is there now; when somebody else writes meanwhile, theirs stays and this one is refused.`,
		Example: `  selvage issue doc put ACM-1 plan plan.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if len(args) == 3 {
				f, err := os.Open(args[2])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			body, err := io.ReadAll(io.LimitReader(in, maxDocumentFile+1))
			if err != nil {
				return err
			}
			if len(body) > maxDocumentFile {
				return fmt.Errorf("a document has at most %d bytes", maxDocumentFile)
			}
			path := at(args) + "/" + url.PathEscape(args[1])
			save := map[string]any{"format": "markdown", "body": string(body)}
			if title != "" {
				save["title"] = title
			}
			if summary != "" {
				save["changeSummary"] = summary
			}
			var there []documentRow
			if err := c.call(cmd.Context(), "GET", at(args), nil, &there); err != nil {
				return err
			}
			for _, d := range there {
				if d.Key == strings.ToLower(args[1]) && d.RevisionID != nil {
					save["baseRevisionId"] = *d.RevisionID
				}
			}
			var row documentRow
			return c.send(cmd, "PUT", path, save, &row, func(w io.Writer) { fmt.Fprintf(w, "%s revision %d\n", row.Key, row.Revision) })
		},
	}
	put.Flags().StringVar(&title, "title", "", "title of the document")
	put.Flags().StringVar(&summary, "summary", "", "what changed")
	return group("doc", "Documents of an issue", list, get, put)
}

type interactionRow struct {
	ID      string  `json:"id"`
	Kind    string  `json:"kind"`
	Status  string  `json:"status"`
	Title   *string `json:"title"`
	Created string  `json:"createdAt"`
}

// interactionCommands show what agents ask on an issue, and answer it.
func interactionCommands(c *cli) []*cobra.Command {
	at := func(args []string) string { return "/api/issues/" + url.PathEscape(args[0]) + "/interactions" }
	list := &cobra.Command{
		Use: "interactions ISSUE", Short: "List what was asked on an issue", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []interactionRow
			return c.show(cmd, at(args), &rows, func(w io.Writer) {
				var t [][]string
				for _, r := range rows {
					t = append(t, []string{r.ID, r.Kind, r.Status, ago(r.Created), orDash(r.Title)})
				}
				table(w, "ID KIND STATUS ASKED ABOUT", t)
			})
		},
	}
	decide := func(use, verb, short string, body func() map[string]any) *cobra.Command {
		return &cobra.Command{
			Use: use + " ISSUE INTERACTION", Short: short, Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				var row interactionRow
				return c.send(cmd, "POST", at(args)+"/"+url.PathEscape(args[1])+"/"+verb, body(), &row, func(w io.Writer) {
					fmt.Fprintf(w, "%s %s\n", row.Kind, row.Status)
				})
			},
		}
	}
	var keys, options []string
	accept := decide("accept", "accept", "Accept suggested tasks or a confirmation", func() map[string]any {
		b := map[string]any{}
		if len(keys) > 0 {
			b["selectedClientKeys"] = keys
		}
		if len(options) > 0 {
			b["selectedOptionIds"] = options
		}
		return b
	})
	accept.Flags().StringSliceVar(&keys, "tasks", nil, "only these of the suggested tasks, by their keys")
	accept.Flags().StringSliceVar(&options, "options", nil, "the options that are chosen, by their IDs")
	var reason string
	reject := decide("reject", "reject", "Reject what was suggested", func() map[string]any {
		if reason == "" {
			return map[string]any{}
		}
		return map[string]any{"reason": reason}
	})
	reject.Flags().StringVar(&reason, "reason", "", "why")
	plain := func() map[string]any { return map[string]any{} }
	skip := decide("skip", "skip", "End what was asked without deciding it", plain)
	withdraw := decide("withdraw", "withdraw", "Withdraw what was asked", plain)
	judge := &cobra.Command{
		Use: "judge ISSUE INTERACTION ITEM=approve|reject|defer[:REASON]...", Short: "Say of each item what becomes of it", Args: cobra.MinimumNArgs(3),
		Example: `  selvage issue judge ACM-1 8e40b13d-5f02-49a6-92bc-807bd79fee94 logo=approve "slogan=reject:too long"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var verdicts []map[string]any
			for _, a := range args[2:] {
				item, said, ok := strings.Cut(a, "=")
				verdict, why, _ := strings.Cut(said, ":")
				if !ok || item == "" || verdict == "" {
					return misuse{fmt.Errorf("%q is no ITEM=VERDICT; selvage issue interactions -o json shows the items", a)}
				}
				v := map[string]any{"id": item, "verdict": verdict}
				if why != "" {
					v["reason"] = why
				}
				verdicts = append(verdicts, v)
			}
			var row interactionRow
			return c.send(cmd, "POST", at(args)+"/"+url.PathEscape(args[1])+"/verdicts", map[string]any{"verdicts": verdicts}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.Kind, row.Status)
			})
		},
	}
	answer := &cobra.Command{
		Use: "answer ISSUE INTERACTION QUESTION=OPTION[,OPTION]...", Short: "Answer questions", Args: cobra.MinimumNArgs(3),
		Example: `  selvage issue answer ACM-1 8e40b13d-5f02-49a6-92bc-807bd79fee94 which=a`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var answers []map[string]any
			for _, a := range args[2:] {
				question, chosen, ok := strings.Cut(a, "=")
				if !ok || question == "" || chosen == "" {
					return misuse{fmt.Errorf("%q is no QUESTION=OPTION; selvage issue interactions -o json shows both", a)}
				}
				answers = append(answers, map[string]any{"questionId": question, "optionIds": strings.Split(chosen, ",")})
			}
			var row interactionRow
			return c.send(cmd, "POST", at(args)+"/"+url.PathEscape(args[1])+"/respond", map[string]any{"answers": answers}, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s\n", row.Kind, row.Status)
			})
		},
	}
	return []*cobra.Command{list, accept, answer, judge, reject, skip, withdraw}
}
