package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

type attachmentRow struct {
	ID          string  `json:"id"`
	ContentType string  `json:"contentType"`
	Size        int64   `json:"byteSize"`
	SHA256      string  `json:"sha256"`
	Filename    *string `json:"originalFilename"`
	CreatedAt   string  `json:"createdAt"`
	Copies      struct {
		Synced int `json:"synced"`
		Wanted int `json:"wanted"`
	} `json:"copies"`
}

func (r attachmentRow) name() string {
	if r.Filename == nil {
		return "-"
	}
	return *r.Filename
}

func attachCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "attach ISSUE FILE", Short: "Attach a file to an issue", Args: cobra.ExactArgs(2),
		Example: `  selvage issue attach ACM-1 report.pdf`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[1])
			if err != nil {
				return err
			}
			defer f.Close()
			var issue struct {
				ID      string `json:"id"`
				Company string `json:"companyId"`
			}
			if err := c.Call(cmd.Context(), "GET", "/api/issues/"+url.PathEscape(args[0]), nil, &issue); err != nil {
				return err
			}
			up, err := c.Client()
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := up.Upload(cmd.Context(), "/api/companies/"+issue.Company+"/issues/"+issue.ID+"/attachments",
				filepath.Base(args[1]), f, nil, &raw); err != nil {
				return err
			}
			var row attachmentRow
			if err := json.Unmarshal(raw, &row); err != nil {
				return err
			}
			return c.Print(cmd, raw, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s, %d bytes, on %d of %d nodes\n", row.ID, row.name(), row.Size, row.Copies.Synced,
					row.Copies.Wanted)
			})
		},
	}
}

func attachments(c *cli.CLI, cmd *cobra.Command, issue string) (rows []attachmentRow, err error) {
	return rows, c.Call(cmd.Context(), "GET", "/api/issues/"+url.PathEscape(issue)+"/attachments", nil, &rows)
}

func downloadCommand(c *cli.CLI) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "download ISSUE ATTACHMENT", Short: "Save an attachment, named by ID or file name", Args: cobra.ExactArgs(2),
		Example: `  selvage issue download ACM-1 report.pdf --to /tmp/report.pdf`,
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := attachments(c, cmd, args[0])
			if err != nil {
				return err
			}
			var found []attachmentRow
			for _, r := range rows {
				if r.name() == args[1] || len(args[1]) >= 8 && strings.HasPrefix(r.ID, args[1]) {
					found = append(found, r)
				}
			}
			switch {
			case len(found) == 0:
				return fmt.Errorf("%s has no attachment %q: see selvage issue attachments %s", args[0], args[1], args[0])
			case len(found) > 1:
				return cli.Misuse(fmt.Errorf("%d attachments have the name %q: give an ID", len(found), args[1]))
			}
			return download(c, cmd, found[0], to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "",
		`file to write, "-" for standard output (default: the attachment's name, in this directory)`)
	return cmd
}

// download writes to a new file, and deletes it again if it fails.
func download(c *cli.CLI, cmd *cobra.Command, row attachmentRow, to string) (err error) {
	down, err := c.Client()
	if err != nil {
		return err
	}
	path := "/api/attachments/" + row.ID + "/content"
	if to == "-" {
		_, err := down.Download(cmd.Context(), path, cmd.OutOrStdout())
		return err
	}
	if to == "" {
		// The name comes from another user: only its last element is used.
		if to = filepath.Base(row.name()); to == "." || to == ".." || to == "-" || to == string(filepath.Separator) {
			to = row.ID
		}
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: name another file with --to", to)
	} else if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(to)
		}
	}()
	n, err := down.Download(cmd.Context(), path, f)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s, %d bytes\n", to, n)
	return nil
}
