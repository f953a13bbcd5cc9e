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

// skillFile reads a text that a skill is made of.
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

// skillsAt is the path of the company's skills, or of what lies under them.
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
		Use: "add FILE|OWNER/REPOSITORY|URL", Short: "Add a skill from a Markdown file, or skills from GitHub", Args: cobra.ExactArgs(1),
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
