package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/cmd/node/onboard"
	"github.com/selvage-mesh/selvage/company/portable"
)

func exportCommand(c *cli.CLI) *cobra.Command {
	var template, force bool
	export := &cobra.Command{
		Use: "export DIR", Short: "Export a company as a portable package", Args: cobra.ExactArgs(1),
		Long: `Write a company as a portable package: Markdown with front matter, and one sidecar.
By default it is a snapshot with projects, issues, comments and files; with --template
only who works there. Values of secrets and environments, local paths and commands of
this machine are never part of it.`,
		Example: `  selvage company export ./acme
  selvage company export ./acme --template`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 && !force {
				return cli.Misuse(fmt.Errorf("%s is not empty; choose another folder, or give --force", dir))
			}
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			all := !template
			body := map[string]any{"include": map[string]bool{"company": true, "agents": true, "projects": all, "issues": all,
				"skills": true}}
			var out struct {
				Files    portable.Files `json:"files"`
				Warnings []string       `json:"warnings"`
			}
			if err := c.Call(cmd.Context(), "POST", "/api/companies/"+company+"/export", body, &out); err != nil {
				return err
			}
			if err := writePackage(dir, out.Files); err != nil {
				return err
			}
			for _, w := range out.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "selvage:", w)
			}
			return c.Print(cmd, map[string]any{"folder": dir, "files": out.Files.Paths(), "warnings": out.Warnings},
				func(w io.Writer) { fmt.Fprintf(w, "%d files in %s\n", len(out.Files), dir) })
		},
	}
	export.Flags().BoolVar(&template, "template", false, "only the company and its agents")
	export.Flags().BoolVar(&force, "force", false, "write into a folder that is not empty")
	return export
}

// writePackage writes below dir; os.Root keeps every path inside.
func writePackage(dir string, files portable.Files) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range files.Paths() {
		if folder := filepath.Dir(name); folder != "." {
			if err := root.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := root.WriteFile(name, files[name].Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func importCommand(c *cli.CLI) *cobra.Command {
	var name, collision string
	var into, preview bool
	imports := &cobra.Command{
		Use:   "import DIR|FILE.zip|company.json|https://github.com/OWNER/REPO|STARTER",
		Short: "Import a company from a portable package or a company.json", Args: cobra.ExactArgs(1),
		Long: `Make a company from a portable package: a folder, a zip file, a company.json (agents
with their adapters or runtimes, in one JSON file), a folder on GitHub, or one of the
starters that come with the program: ` + strings.Join(portable.Starters(), ", ") + `.
All of it is imported or nothing. Timers are off and no agent is woken; the variables
that the package asks for are named, and wait for their values.`,
		Example: `  selvage company import software-studio --name "Acme"
  selvage company import ./acme --preview
  selvage company import company.json --name "Acme"
  selvage company import ./acme --into --company ACM --collision skip`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := packageSource(args[0])
			if err != nil {
				return cli.Misuse(err)
			}
			target := map[string]any{"mode": "new_company"}
			if name != "" {
				target["newCompanyName"] = name
			}
			if into {
				company, err := c.CompanyID(cmd)
				if err != nil {
					return err
				}
				target = map[string]any{"mode": "existing_company", "companyId": company}
			}
			body := map[string]any{"source": source, "target": target, "agents": "all", "collisionStrategy": collision}
			if preview {
				return previewImport(c, cmd, body)
			}
			var done struct {
				Company                    struct{ ID, Name, Action string }
				Agents, Projects, Routines []struct{ Slug, Action string }
				EnvInputs                  []variableToFillIn `json:"envInputs"`
				ToFillIn                   []settingToFillIn  `json:"toFillIn"`
				Warnings                   []string
			}
			far := c.Progress(cmd, "importing")
			defer far.End()
			err = c.Send(cmd, "POST", "/api/companies/import", body, &done, func(w io.Writer) {
				far.End()
				fmt.Fprintf(w, "%s %s %s\n", done.Company.Action, done.Company.Name, done.Company.ID)
				fmt.Fprintf(w, "%d agents, %d projects, %d routines\n", len(done.Agents), len(done.Projects), len(done.Routines))
				printVariables(w, done.EnvInputs)
				for _, f := range done.ToFillIn {
					f.print(w)
				}
				for _, warning := range done.Warnings {
					fmt.Fprintln(cmd.ErrOrStderr(), "selvage:", warning)
				}
			})
			if err != nil {
				return err
			}
			lacks, err := onboard.Lacks(c, cmd, done.Company.ID)
			for _, line := range lacks {
				fmt.Fprintln(cmd.ErrOrStderr(), "selvage:", line)
			}
			return err
		},
	}
	imports.Flags().StringVar(&name, "name", "", "name of the new company; default: the package's")
	imports.Flags().BoolVar(&into, "into", false, "import into the company of --company instead of a new one")
	imports.Flags().StringVar(&collision, "collision", "rename",
		"what to do with agents and projects that are there: rename, skip or replace")
	imports.Flags().BoolVar(&preview, "preview", false, "show what would happen, and change nothing")
	return imports
}

// A variableToFillIn is an environment variable that a package asks for, without its
// value.
type variableToFillIn struct {
	Key         string  `json:"key"`
	Description string  `json:"description"`
	Requirement string  `json:"requirement"` // required or optional
	Agent       *string `json:"agentSlug"`
	Project     *string `json:"projectSlug"`
}

// printVariables prints a line for each variable, with those that want it, and how one
// is set.
func printVariables(w io.Writer, variables []variableToFillIn) {
	type variable struct{ key, why string }
	var order []variable
	of := map[variable][]string{}
	for _, v := range variables {
		slug := cmp.Or(v.Agent, v.Project)
		if slug == nil {
			continue
		}
		one := variable{key: v.Key, why: v.Description}
		if v.Requirement == "optional" {
			one.why = strings.TrimSuffix("optional: "+one.why, ": ")
		}
		if of[one] == nil {
			order = append(order, one)
		}
		of[one] = append(of[one], *slug)
	}
	for _, one := range order {
		fmt.Fprintf(w, "to fill in: %s of %s", one.key, strings.Join(of[one], ", "))
		if one.why != "" {
			fmt.Fprintf(w, " (%s)", one.why)
		}
		fmt.Fprintln(w)
	}
	if len(order) > 0 {
		fmt.Fprintf(w, "  set one with: selvage secret create %[1]s, and "+
			`selvage agent update AGENT --config '{"env": {"%[1]s": {"type": "secret_ref", "secretId": "ID"}}}'`+"\n",
			order[0].key)
	}
}

// A settingToFillIn is a setting that an imported agent lacks, and the command that sets
// it.
type settingToFillIn struct {
	Name    string `json:"agentName"`
	Setting string `json:"setting"`
	Do      string `json:"do"`
}

func (f settingToFillIn) print(w io.Writer) {
	fmt.Fprintf(w, "to fill in: %s of %s: %s\n", f.Setting, f.Name, f.Do)
}

func previewImport(c *cli.CLI, cmd *cobra.Command, body map[string]any) error {
	type row struct{ Slug, Action, PlannedName, PlannedTitle string }
	var p struct {
		Plan struct {
			Company  string `json:"companyAction"`
			Agents   []row  `json:"agentPlans"`
			Projects []row  `json:"projectPlans"`
			Issues   []row  `json:"issuePlans"`
		} `json:"plan"`
		ToFillIn []settingToFillIn `json:"toFillIn"`
		Warnings []string          `json:"warnings"`
	}
	return c.Send(cmd, "POST", "/api/companies/import/preview", body, &p, func(w io.Writer) {
		var t [][]string
		for _, part := range []struct {
			kind string
			rows []row
		}{{"agent", p.Plan.Agents}, {"project", p.Plan.Projects}, {"issue", p.Plan.Issues}} {
			for _, r := range part.rows {
				t = append(t, []string{part.kind, r.Slug, r.Action, r.PlannedName + r.PlannedTitle})
			}
		}
		cli.Table(w, "KIND SLUG ACTION AS", t)
		for _, f := range p.ToFillIn {
			f.print(w)
		}
		for _, warning := range p.Warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "selvage:", warning)
		}
	})
}

// packageSource reads the argument of import.
func packageSource(from string) (map[string]any, error) {
	if strings.HasPrefix(from, "https://") {
		return map[string]any{"type": "github", "url": from}, nil
	}
	files, starter := portable.Starter(from)
	if info, err := os.Stat(from); err == nil {
		if info.IsDir() {
			files, err = readFolder(from)
		} else {
			files, err = readFile(from)
		}
		if err != nil {
			return nil, err
		}
	} else if !starter {
		return nil, fmt.Errorf("%s is not a folder, a file or a starter (%s)", from, strings.Join(portable.Starters(), ", "))
	}
	return map[string]any{"type": "inline", "rootPath": filepath.Base(filepath.Clean(from)), "files": files}, nil
}

func readFolder(dir string) (portable.Files, error) {
	files, total := portable.Files{}, 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		return addFile(files, name, b, &total)
	})
	return files, err
}

// readFile reads a package that is one file: a zip, or a company.json.
func readFile(path string) (portable.Files, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, portable.MaxText+1))
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".json") || portable.LooksLikeCompanyJSON(b) {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		files, err := portable.FromCompanyJSON(b, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return files, nil
	}
	return readZip(path)
}

func readZip(path string) (portable.Files, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := f.Stat()
	if err != nil {
		return nil, err
	}
	files, err := portable.Unzip(f, at.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return files, nil
}

// addFile applies the API's limits, so that a wrong folder is detected before it is
// sent.
func addFile(files portable.Files, name string, b []byte, total *int) error {
	if *total += len(b); *total > portable.MaxBytes || len(files) >= portable.MaxFiles {
		return fmt.Errorf("larger than a package may be (%d MiB, %d files)", portable.MaxBytes>>20, portable.MaxFiles)
	}
	files[filepath.ToSlash(name)] = portable.File{Data: b}
	return nil
}
