package main

import (
	"fmt"
	"io"
	"net/url"
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
			from := "-"
			if len(args) == 3 {
				from = args[2]
			}
			body, err := readText(cmd, from, maxDocumentFile)
			if err != nil {
				return err
			}
			path := at(args) + "/" + url.PathEscape(args[1])
			save := map[string]any{"format": "markdown", "body": body}
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
