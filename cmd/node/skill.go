package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/company/skill"
)

type skillRow struct {
	ID          string  `json:"id"`
	Slug        string  `json:"slug"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Source      string  `json:"sourceLabel"`
	Attached    int     `json:"attachedAgentCount"`
	Markdown    string  `json:"markdown"`
}

// skillFile reads a text for a skill.
func skillFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, skill.MaxSkillFile+1))
	if err == nil && len(b) > skill.MaxSkillFile {
		err = fmt.Errorf("%s is longer than %d bytes", name, skill.MaxSkillFile)
	}
	return string(b), err
}

// skillsAt returns the path of the company's skills, or of something below it.
func skillsAt(c *cli.CLI, cmd *cobra.Command, more ...string) (string, error) {
	of, err := c.CompanyID(cmd)
	for n, part := range more {
		more[n] = url.PathEscape(part)
	}
	return strings.Join(append([]string{"/api/companies/" + of + "/skills"}, more...), "/"), err
}

func skillCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("skill", "Write skills that agents learn, and test them", skillAddCommand(c), skillUpdateCommand(c))
}

func skillAddCommand(c *cli.CLI) *cobra.Command {
	var name, about string
	add := &cobra.Command{
		Use: "add FILE|OWNER/REPOSITORY|URL", Short: "Add a skill from a Markdown file, or skills from GitHub",
		Args: cobra.ExactArgs(1),
		Example: `  selvage skill add skills/weld/SKILL.md
  selvage skill add https://github.com/acme/skills/tree/main/weld`,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := skillsAt(c, cmd)
			if err != nil {
				return err
			}
			if _, err := os.Stat(args[0]); err != nil && (strings.Contains(args[0], "://") || strings.Count(args[0], "/") == 1) {
				var out struct {
					Imported []skillRow `json:"imported"`
					Warnings []string   `json:"warnings"`
				}
				return c.Send(cmd, "POST", at+"/import", map[string]any{"source": args[0]}, &out, func(w io.Writer) {
					for _, r := range out.Imported {
						fmt.Fprintln(w, r.Slug)
					}
					for _, text := range out.Warnings {
						fmt.Fprintln(cmd.ErrOrStderr(), text)
					}
				})
			}
			text, err := skillFile(args[0])
			if err != nil {
				return err
			}
			body := map[string]any{"markdown": text, "name": name}
			if name == "" {
				path, err := filepath.Abs(args[0])
				if err != nil {
					return err
				}
				name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
				if filepath.Base(path) == skill.SkillFile {
					name = filepath.Base(filepath.Dir(path))
				}
				body["name"] = name
			}
			if about != "" {
				body["description"] = about
			}
			var row skillRow
			return c.Send(cmd, "POST", at, body, &row, func(w io.Writer) { fmt.Fprintln(w, row.Slug) })
		},
	}
	add.Flags().StringVar(&name, "name", "", "its name; without one that of the file or its folder")
	add.Flags().StringVar(&about, "description", "", "what it teaches; without one what the file says")
	return add
}

func skillUpdateCommand(c *cli.CLI) *cobra.Command {
	var from string
	update := &cobra.Command{
		Use: "update SKILL", Short: "Update a skill from its origin, or with a new text", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := skillsAt(c, cmd, args[0])
			if err != nil {
				return err
			}
			var row skillRow
			done := func(w io.Writer) { fmt.Fprintln(w, row.Slug) }
			if from == "" {
				return c.Send(cmd, "POST", at+"/install-update", nil, &row, done)
			}
			text, err := skillFile(from)
			if err != nil {
				return err
			}
			return c.Send(cmd, "PATCH", at, map[string]any{"markdown": text}, &row, done)
		},
	}
	update.Flags().StringVar(&from, "file", "", "Markdown file with the new text")
	return update
}

// skillVerbs are the rows of selvage skill.
var skillVerbs = []cli.Verb{
	{Use: "list", Short: "List the skills that agents can have", Path: "/api/companies/{company}/skills",
		Columns: "SKILL=slug SOURCE=sourceLabel AGENTS=attachedAgentCount ABOUT=description"},
	{Use: "show SKILL", Short: "Print the text of a skill", Path: "/api/companies/{company}/skills/{1}",
		Text: "markdown"},
	{Use: "fork SKILL [NAME]", Short: "Fork a skill", Method: "POST",
		Path: "/api/companies/{company}/skills/{1}/fork", Says: "{slug}",
		Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "remove SKILL", Short: "Remove a skill", Method: "DELETE", Path: "/api/companies/{company}/skills/{1}",
		Says: "{slug} removed"},
	{Use: "comments SKILL", Short: "List the comments on a skill",
		Path:    "/api/companies/{company}/skills/{1}/comments",
		Columns: "ID=id AGENT=agent:authorAgentId USER=authorUserId AT=createdAt TEXT=body"},
	{Use: "comment SKILL TEXT", Short: "Comment on a skill", Method: "POST",
		Path: "/api/companies/{company}/skills/{1}/comments", Says: done,
		Fields: []cli.Field{{Place: 2, Member: "body"}}},
	{Use: "audit SKILL", Short: "Audit a skill for tokens, hidden characters and downloads", Method: "POST",
		Path: "/api/companies/{company}/skills/{1}/audit", Says: "{verdict} {codes}"},
	{Use: "versions SKILL", Short: "List the versions of a skill, newest first",
		Path:    "/api/companies/{company}/skills/{1}/versions",
		Columns: "ID=id NUMBER=versionNumber LABEL=label AT=createdAt"},
	{Use: "version SKILL VERSION", Short: "Show a version of a skill with its files",
		Path: skillPath + "/versions/{2}", Rows: "files", Columns: "FILE=path KIND=kind BYTES=sizeBytes"},
	{Use: "save SKILL LABEL", Short: "Save the current text of a skill as a named version", Method: "POST",
		Path: skillPath + "/versions", Says: "{versionNumber} {label} {id}",
		Fields: []cli.Field{{Place: 2, Member: "label"},
			{Name: "summary", Member: "changeSummary", About: "what changed"}}},
	{Use: "reset SKILL", Short: "Reset a skill to a version, or to its origin", Method: "POST",
		Path: skillPath + "/reset", Says: "reset",
		Fields: []cli.Field{{Name: "version", Member: "versionId", About: "ID of the version"}}},
	{Use: "outdated SKILL", Short: "Check whether a skill's origin has changed", Path: skillPath + "/update-status"},
	{Use: "rename SKILL NAME", Short: "Rename a skill", Method: "POST", Path: skillPath + "/rename",
		Says: "{skill.slug} {skill.name}", Fields: []cli.Field{{Place: 2, Member: "name"}}},
	{Use: "describe SKILL", Short: "Edit how a skill is listed", Method: "PATCH", Path: skillPath,
		Says: "{slug} {name}",
		Fields: []cli.Field{withDescription,
			{Name: "categories", Member: "categories", Kind: "list",
				About: "what it belongs to; repeat for more"}}},
	{Use: "catalog", Short: "List the skills that come with the program", Path: "/api/skills/catalog",
		Columns: "SKILL=slug CATEGORY=category ABOUT=description"},
	{Use: "edit-comment SKILL COMMENT TEXT", Short: "Edit your comment on a skill", Method: "PATCH",
		Path: skillPath + "/comments/{2}", Says: done, Fields: []cli.Field{{Place: 3, Member: "body"}}},
	{Use: "unsay SKILL COMMENT", Short: "Delete a comment on a skill", Method: "DELETE",
		Path: skillPath + "/comments/{2}", Says: "deleted"},
	{Use: "unstar SKILL", Short: "Unstar a skill", Method: "DELETE", Path: skillPath + "/star", Says: "unstarred"},
	{Use: "star SKILL", Short: "Star a skill", Method: "POST", Path: "/api/companies/{company}/skills/{1}/star",
		Says: "starred"},
}

const skillPath = "/api/companies/{company}/skills/{1}"

// skillFileVerbs are the rows of selvage skill file.
var skillFileVerbs = []cli.Verb{
	{Use: "list SKILL", Short: "List the files of a skill", Path: skillPath, Rows: "fileInventory",
		Columns: "FILE=path KIND=kind"},
	{Use: "get SKILL FILE", Short: "Print a file of a skill", Path: skillPath + "/files?path={2}", Text: "content"},
	{Use: "put SKILL FILE FROM", Short: "Write a file of a skill from a file here, or with - from standard input",
		Method: "PATCH", Path: skillPath + "/files", Says: "{path}",
		Fields: []cli.Field{{Place: 2, Member: "path"}, {Place: 3, Name: "FROM", Member: "content", Kind: "file"}}},
	{Use: "remove SKILL FILE", Short: "Remove a file of a skill", Method: "DELETE", Path: skillPath + "/files",
		Says: "removed", Fixed: map[string]any{"target": "file"}, Fields: []cli.Field{{Place: 2, Member: "path"}}},
}

// skillTestVerbs are the rows of selvage skill test.
var skillTestVerbs = []cli.Verb{
	{Use: "list SKILL", Short: "List the tests of a skill, newest first",
		Path:    "/api/companies/{company}/skills/{1}/test-runs",
		Columns: "ID=id AGENT=agent:agentId STATUS=status ISSUE=harnessIssue.identifier AT=createdAt"},
	{Use: "run SKILL AGENT TEXT", Short: "Test a skill: an agent applies it to a text, in a new issue",
		Method: "POST", Path: "/api/companies/{company}/skills/{1}/test-runs",
		Says:   "{id} {status} {harnessIssue.identifier}",
		Fields: []cli.Field{{Place: 2, Member: "agentId", Kind: "agent"}, {Place: 3, Member: "content"}}},
	{Use: "show SKILL TEST", Short: "Show a try, and what came of it",
		Path: "/api/companies/{company}/skills/{1}/test-runs/{2}"},
	{Use: "cancel SKILL TEST", Short: "Cancel a test of a skill", Method: "POST",
		Path: "/api/companies/{company}/skills/{1}/test-runs/{2}/cancel", Says: "{id} {status}"},
	{Use: "forget SKILL TEST", Short: "Hide a test of a skill", Method: "DELETE",
		Path: "/api/companies/{company}/skills/{1}/test-runs/{2}", Says: "forgotten"},
	{Use: "inputs SKILL", Short: "List the test inputs of a skill",
		Path: "/api/companies/{company}/skills/{1}/test-inputs", Columns: "ID=id NAME=name TEXT=content"},
	{Use: "change SKILL INPUT TEXT", Short: "Edit a test input of a skill", Method: "PATCH",
		Path: skillPath + "/test-inputs/{2}", Says: done, Fields: []cli.Field{{Place: 3, Member: "content"}}},
	{Use: "drop SKILL INPUT", Short: "Delete a test input of a skill", Method: "DELETE",
		Path: skillPath + "/test-inputs/{2}", Says: "deleted"},
	{Use: "keep SKILL NAME TEXT", Short: "Add a test input to a skill", Method: "POST",
		Path: "/api/companies/{company}/skills/{1}/test-inputs", Says: done,
		Fields: []cli.Field{{Place: 2, Member: "name"}, {Place: 3, Member: "content"}}},
}
