package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type documentRow struct {
	Key        string  `json:"key"`
	Title      *string `json:"title"`
	Body       string  `json:"body"`
	Revision   int64   `json:"latestRevisionNumber"`
	RevisionID *string `json:"latestRevisionId"`
	UpdatedAt  string  `json:"updatedAt"`
}

// maxDocumentFile bounds what is read from a file or standard input, in bytes: a
// document has at most 2 MiB.
const maxDocumentFile = 2 << 20

func documentCommand(c *cli.CLI) *cobra.Command {
	at := func(args []string) string { return "/api/issues/" + url.PathEscape(args[0]) + "/documents" }
	var title, summary string
	put := &cobra.Command{
		Use: "put ISSUE KEY [FILE]", Short: "Write a document from a file, or from standard input",
		Args: cobra.RangeArgs(2, 3),
		Long: `Write a document from a file, or from standard input. It replaces the latest revision that
is there now; when somebody else writes meanwhile, theirs stays and this one is refused.`,
		Example: `  selvage issue doc put ACM-1 plan plan.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			from := "-"
			if len(args) == 3 {
				from = args[2]
			}
			body, err := cli.ReadText(cmd, from, maxDocumentFile)
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
			if err := c.Call(cmd.Context(), "GET", at(args), nil, &there); err != nil {
				return err
			}
			for _, d := range there {
				if d.Key == strings.ToLower(args[1]) && d.RevisionID != nil {
					save["baseRevisionId"] = *d.RevisionID
				}
			}
			var row documentRow
			return c.Send(cmd, "PUT", path, save, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s revision %d\n", row.Key,
					row.Revision)
			})
		},
	}
	put.Flags().StringVar(&title, "title", "", "title of the document")
	put.Flags().StringVar(&summary, "summary", "", "what changed")
	return cli.Group("doc", "Documents of an issue", put)
}

// remarkContext is how much of the surrounding text is sent with a remark, so that the
// words are found again when the document changes.
const remarkContext = 32

// addRemark returns the command that comments on words of a text: of a document, or of a
// routine's description.
func addRemark(c *cli.CLI, use, short string, args int, path func(args []string) string,
	text func(cmd *cobra.Command, args []string) (documentRow, error)) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, given []string) error {
			words, says := given[args-2], given[args-1]
			row, err := text(cmd, given)
			if err != nil {
				return err
			}
			at := strings.Index(row.Body, words)
			if at < 0 || words == "" || row.RevisionID == nil {
				return fmt.Errorf("%q is not there", words)
			}
			units := func(s string) int { return len(utf16.Encode([]rune(s))) }
			start, end := units(row.Body[:at]), units(row.Body[:at+len(words)])
			before, after := []rune(row.Body[:at]), []rune(row.Body[at+len(words):])
			in := map[string]any{"baseRevisionId": *row.RevisionID, "baseRevisionNumber": row.Revision, "body": says,
				"selector": map[string]any{
					"quote": map[string]any{"exact": words,
						"prefix": string(before[max(0, len(before)-remarkContext):]),
						"suffix": string(after[:min(remarkContext, len(after))])},
					"position": map[string]any{"normalizedStart": start, "normalizedEnd": end, "markdownStart": start,
						"markdownEnd": end}}}
			var made struct {
				ID string `json:"id"`
			}
			return c.Send(cmd, "POST", path(given), in, &made, func(w io.Writer) { fmt.Fprintln(w, made.ID) })
		}}
}

// remarkOnDocument comments on words of an issue's document.
func remarkOnDocument(c *cli.CLI) *cobra.Command {
	at := func(args []string) string {
		return "/api/issues/" + url.PathEscape(args[0]) + "/documents/" + url.PathEscape(args[1])
	}
	cmd := addRemark(c, "add ISSUE DOCUMENT WORDS TEXT", "Say something about words of a document", 4,
		func(args []string) string { return at(args) + "/annotations" },
		func(cmd *cobra.Command, args []string) (row documentRow, err error) {
			err = c.Call(cmd.Context(), "GET", at(args), nil, &row)
			return row, err
		})
	cmd.Example = `  selvage issue remark add ACM-1 plan "weld" "With which gas?"`
	return cmd
}

// documentVerbs are the rows of selvage issue document, besides the commands that read
// and write files.
var documentVerbs = []cli.Verb{
	{Use: "list ISSUE", Short: "List the documents of an issue", Path: "/api/issues/{1}/documents",
		Columns: "KEY=key REVISION=latestRevisionNumber UPDATED=updatedAt TITLE=title"},
	{Use: "get ISSUE KEY", Short: "Print a document", Path: "/api/issues/{1}/documents/{2}", Text: "body"},
	{Use: "revisions ISSUE KEY", Short: "List the revisions of a document, newest first",
		Path: "/api/issues/{1}/documents/{2}/revisions",
		Columns: "ID=id NUMBER=revisionNumber AGENT=agent:createdByAgentId USER=createdByUserId AT=createdAt " +
			"SUMMARY=changeSummary"},
	{Use: "restore ISSUE KEY REVISION", Short: "Restore a revision of a document", Method: "POST",
		Path: "/api/issues/{1}/documents/{2}/revisions/{3}/restore", Says: "restored"},
	{Use: "delete ISSUE KEY", Short: "Delete a document", Method: "DELETE", Path: "/api/issues/{1}/documents/{2}",
		Says: "deleted"},
}

// remarkVerbs are the rows of selvage issue remark.
var remarkVerbs = []cli.Verb{
	{Use: "list ISSUE DOCUMENT", Short: "List the remarks on a document",
		Path:    "/api/issues/{1}/documents/{2}/annotations",
		Columns: "ID=id STATUS=status WORDS=selectedText STANDS=anchorState AT=createdAt"},
	{Use: "show ISSUE DOCUMENT REMARK", Short: "Show a remark with what was said",
		Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Rows: "comments",
		Columns: "AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{Use: "answer ISSUE DOCUMENT REMARK TEXT", Short: "Reply to a remark", Method: "POST",
		Path: "/api/issues/{1}/documents/{2}/annotations/{3}/comments", Says: done,
		Fields: []cli.Field{{Place: 4, Member: "body"}}},
	{Use: "resolve ISSUE DOCUMENT REMARK", Short: "Close a remark", Method: "PATCH",
		Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Says: "{status}",
		Fixed: map[string]any{"status": "resolved"}},
	{Use: "reopen ISSUE DOCUMENT REMARK", Short: "Open a remark again", Method: "PATCH",
		Path: "/api/issues/{1}/documents/{2}/annotations/{3}", Says: "{status}",
		Fixed: map[string]any{"status": "open"}},
}
