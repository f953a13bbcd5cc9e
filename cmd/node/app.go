package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/plugin"
)

// appVerbs are the rows of selvage app.
var appVerbs = []cli.Verb{
	{Use: "ls", Also: []string{"list"}, Short: "List the installed apps of a company",
		Path:    "/api/companies/{company}/apps",
		Columns: "APP=name VERSION=version STATE=state AGENTS=n:agents ABOUT=description", Next: "selvage app show APP"},
	{Use: "show APP", Short: "Show an app: what belongs to it, what it may do",
		Path: "/api/companies/{company}/apps/{app:1}"},
	{Use: "services", Short: "List the services that the apps of a company offer",
		Path:    "/api/companies/{company}/services",
		Columns: "SERVICE=name VERSION=version HEALTH=health PROVIDERS=n:providers METHODS=n:methods",
		Next:    "selvage app call APP/SERVICE METHOD [PARAMS]"},
	{Use: "start APP", Short: "Start an app: its agents and routines work", Method: "POST",
		Path: "/api/companies/{company}/apps/{app:1}/start", Says: "{name} {version} is {state}"},
	{Use: "stop APP", Short: "Stop an app: its agents are paused, its routines rest", Method: "POST",
		Path: "/api/companies/{company}/apps/{app:1}/stop", Says: "{name} {version} is {state}"},
	{Use: "rollback APP", Short: "Take an app back to the version before its upgrade", Method: "POST",
		Path: "/api/companies/{company}/apps/{app:1}/rollback", Says: "{name} is {version} again, and {state}"},
}

// appCommand packs, installs and changes apps.
func appCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("app", "Apps: agents, skills, routines, services and tools that are installed together, signed",
		appPack(c), appSign(c), appCatalogue(c), appInstall(c), appUpgrade(c), appRemove(c), appCall(c))
}

// A previewed is what the API tells of an archive.
type previewed struct {
	Name, Version, Description, Author, Signer string
	Installed                                  *string `json:"installedVersion"`
	SameSigner                                 bool    `json:"sameSigner"`
	Capabilities, Agents, Skills, Routines     []string
	Services, Tools, Programs, Problems        []string
}

// preview asks what an archive brings, prints it, and asks whether to go on.
func previewApp(c *cli.CLI, cmd *cobra.Command, at string, b []byte) (previewed, string, error) {
	var p previewed
	encoded := base64.StdEncoding.EncodeToString(b)
	if err := c.Call(cmd.Context(), http.MethodPost, at+"/preview", map[string]any{"archive": encoded}, &p); err != nil {
		return p, "", err
	}
	w := cmd.ErrOrStderr()
	fmt.Fprintf(w, "%s %s: %s\n", cli.Visible(p.Name), cli.Visible(p.Version), cli.Visible(p.Description))
	for _, l := range []struct {
		what string
		list []string
	}{{"agents", p.Agents}, {"skills", p.Skills}, {"routines", p.Routines}, {"services", p.Services},
		{"tools", p.Tools}, {"hooks run", p.Programs}, {"asks for", p.Capabilities},
		{"problems", p.Problems}} {
		if len(l.list) > 0 {
			fmt.Fprintf(w, "  %-9s %s\n", l.what, cli.Visible(strings.Join(l.list, ", ")))
		}
	}
	fmt.Fprintf(w, "  %-9s key %.16s\n", "signed", p.Signer)
	if !p.SameSigner {
		fmt.Fprintf(w, "  the version in use was signed with another key\n")
	}
	if len(p.Problems) > 0 {
		return p, "", fmt.Errorf("the app can not be installed: %s", strings.Join(p.Problems, "; "))
	}
	return p, encoded, cli.Confirm(cmd, "install it and grant what it asks for")
}

// settings reads --set NAME=VALUE.
func settings(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, cli.Misuse(fmt.Errorf("--set %q: write NAME=VALUE", s))
		}
		if file, ok := strings.CutPrefix(value, "@"); ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, cli.Misuse(err)
			}
			value = strings.TrimRight(string(b), "\n")
		}
		out[name] = value
	}
	return out, nil
}

// offered is an app that a command names, with the settings that it gives.
type offered struct {
	name, key string
	set       []string
}

func (o *offered) flags(cmd *cobra.Command, set string) {
	cmd.Flags().StringVar(&o.name, "app", "", "which app of a catalogue")
	cmd.Flags().StringVar(&o.key, "key", "",
		"file with the key that signs a folder (default: $SELVAGE_APP_KEY, else the user's own)")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, set)
}

// shown packs the app of a source, shows what it asks for, and has that confirmed. It returns
// the address of the company's apps, what the node says of the app, and the body of a request.
func (o *offered) shown(c *cli.CLI, cmd *cobra.Command, source string) (at string, p previewed, body map[string]any,
	err error) {
	given, err := settings(o.set)
	if err != nil {
		return "", p, nil, err
	}
	if at, err = appsPath(c, cmd); err != nil {
		return "", p, nil, err
	}
	b, err := archive(cmd, source, o.name, o.key)
	if err != nil {
		return "", p, nil, err
	}
	p, encoded, err := previewApp(c, cmd, at, b)
	return at, p, map[string]any{"archive": encoded, "settings": given, "grant": p.Capabilities}, err
}

func appInstall(c *cli.CLI) *cobra.Command {
	var o offered
	var stopped bool
	cmd := &cobra.Command{
		Use: "install DIR|URL", Short: "Install an app: a folder, an archive, or one of a catalogue",
		Args: cobra.ExactArgs(1),
		Example: "  selvage app install examples/apps/web-monitor --yes --set urls=https://example.com\n  " +
			"selvage app install https://example.com/apps.git --app web-monitor",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, _, body, err := o.shown(c, cmd, args[0])
			if err != nil {
				return err
			}
			body["stopped"] = stopped
			var row struct{ Name, Version, State string }
			return c.Send(cmd, http.MethodPost, at, body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s is installed, and %s\n", row.Name, row.Version, row.State)
			})
		},
	}
	cmd.Flags().Bool("yes", false, "install it, grant what it asks for, and do not ask")
	o.flags(cmd, "a setting, as NAME=VALUE, or NAME=@FILE for what a file has")
	cmd.Flags().BoolVar(&stopped, "stopped", false, "do not start it")
	return cmd
}

// appsPath returns the address of the apps of the company.
func appsPath(c *cli.CLI, cmd *cobra.Command) (string, error) {
	company, err := c.CompanyID(cmd)
	return "/api/companies/" + company + "/apps", err
}

func appUpgrade(c *cli.CLI) *cobra.Command {
	var o offered
	var rollback, signer bool
	cmd := &cobra.Command{
		Use: "upgrade DIR|URL", Short: "Upgrade an app; it goes back when its agents fail", Args: cobra.ExactArgs(1),
		Example: "  selvage app upgrade examples/apps/web-monitor --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, p, body, err := o.shown(c, cmd, args[0])
			if err != nil {
				return err
			}
			body["rollback"], body["newSigner"] = rollback, signer
			var row struct {
				Name, Version, State string
				Previous             *string `json:"previousVersion"`
				Watched              *string `json:"upgradeWatchedUntil"`
			}
			return c.Send(cmd, http.MethodPost, at+"/"+url.PathEscape(p.Name)+"/upgrade", body, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s now, and %s\n", row.Name, row.Version, row.State)
				if row.Watched != nil && row.Previous != nil {
					fmt.Fprintf(w, "until %s a run that fails takes it back to %s\n", *row.Watched, *row.Previous)
				}
			})
		},
	}
	cmd.Flags().Bool("yes", false, "upgrade it, grant what it asks for, and do not ask")
	o.flags(cmd, "a setting that changes, as NAME=VALUE, or NAME=@FILE")
	cmd.Flags().BoolVar(&rollback, "rollback", false, "also to an older version, or the same")
	cmd.Flags().BoolVar(&signer, "new-signer", false, "also if it is signed with another key than the version in use")
	return cmd
}

func appRemove(c *cli.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove APP", Short: "Remove an app: its agents end, its routines and skills are deleted",
		Args:    cobra.ExactArgs(1),
		Example: "  selvage app remove web-monitor --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.Filled(cmd, "/api/companies/{company}/apps/{app:1}", args)
			if err != nil {
				return err
			}
			if err := cli.Confirm(cmd, "remove the app "+args[0]); err != nil {
				return err
			}
			var row json.RawMessage
			return c.Send(cmd, http.MethodDelete, path, nil, &row, func(w io.Writer) {
				fmt.Fprintf(w, "%s is removed\n", args[0])
			})
		},
	}
	cmd.Flags().Bool("yes", false, "do it, and do not ask")
	return cmd
}

// appCall calls a method of a service of an app, and prints what it answers.
func appCall(c *cli.CLI) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "call APP/SERVICE METHOD [PARAMS]", Short: "Call a method of a service of an app, wherever it runs",
		Args:    cobra.RangeArgs(2, 3),
		Example: "  selvage app call web-monitor/pages check '{\"url\":\"https://example.com\"}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			app, service, ok := strings.Cut(args[0], "/")
			if !ok {
				return cli.Misuse(fmt.Errorf("%q: write APP/SERVICE, as selvage app services lists them", args[0]))
			}
			company, err := c.CompanyID(cmd)
			if err != nil {
				return err
			}
			body := map[string]any{"method": args[1]}
			if len(args) > 2 {
				if !json.Valid([]byte(args[2])) {
					return cli.Misuse(errors.New("PARAMS: give JSON, such as '{\"name\":1}' or '\"text\"'"))
				}
				body["params"] = json.RawMessage(args[2])
			}
			if timeout > 0 {
				body["timeoutMs"] = timeout.Milliseconds()
			}
			var a struct {
				By     string
				Result json.RawMessage
			}
			path := "/api/companies/" + company + "/services/" + url.PathEscape(app) + "/" + url.PathEscape(service) + "/call"
			return c.Send(cmd, http.MethodPost, path, body, &a, func(w io.Writer) {
				fmt.Fprintf(w, "%s: %s\n", a.By, cli.Visible(string(a.Result)))
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait for the answer (default: 10s)")
	return cmd
}

// appKey returns the key that signs, made at the first use.
func appKey(file string) (ed25519.PrivateKey, error) {
	if file == "" {
		if file = os.Getenv("SELVAGE_APP_KEY"); file == "" {
			dir, err := os.UserConfigDir()
			if err != nil {
				return nil, err
			}
			file = filepath.Join(dir, "selvage", "app.key")
		}
	}
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		return key, os.WriteFile(file, []byte(hex.EncodeToString(key.Seed())+"\n"), 0o600)
	}
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s: not a key that signs apps: 64 hex digits are expected", file)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// pack reads a folder, checks its manifest and makes the signed archive.
func pack(dir, key string) (plugin.Manifest, []byte, error) {
	files, err := plugin.ReadFolder(dir)
	if err != nil {
		return plugin.Manifest{}, nil, err
	}
	m, err := plugin.Read(files)
	if problems, ok := errors.AsType[plugin.Problems](err); ok {
		return m, nil, fmt.Errorf("%s: %d problems\n  %s", dir, len(problems), strings.Join(problems, "\n  "))
	}
	if err != nil {
		return m, nil, err
	}
	private, err := appKey(key)
	if err != nil {
		return m, nil, err
	}
	b, err := plugin.Pack(files, private)
	return m, b, err
}

// A packed is what pack and sign print.
type packed struct {
	File    string `json:"file"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Signer  string `json:"signer"`
	Bytes   int    `json:"byteSize"`
}

func (c packed) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s %s, %d bytes, sha256 %s, signed with key %.16s\n", c.File, c.Name, c.Version, c.Bytes,
		c.Digest, c.Signer)
}

func appPack(c *cli.CLI) *cobra.Command {
	var to, key string
	cmd := &cobra.Command{
		Use: "pack DIR", Short: "Check the manifest of an app, and make its signed archive", Args: cobra.ExactArgs(1),
		Example: "  selvage app pack examples/apps/web-monitor --to web-monitor.selvage-app",
		RunE: func(cmd *cobra.Command, args []string) error {
			m, b, err := pack(args[0], key)
			if err != nil {
				return err
			}
			if to == "" {
				to = m.Name + "-" + m.Version + plugin.ArchiveExt
			}
			if err := os.WriteFile(to, b, 0o644); err != nil {
				return err
			}
			a, err := plugin.Open(b)
			if err != nil {
				return err
			}
			out := packed{to, m.Name, m.Version, a.Digest, a.Signer, len(b)}
			return c.Print(cmd, out, out.print)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the file to write (default: NAME-VERSION.selvage-app)")
	cmd.Flags().StringVar(&key, "key", "",
		"file with the key that signs (default: $SELVAGE_APP_KEY, else the user's own, made at the first use)")
	return cmd
}

func appSign(c *cli.CLI) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign an archive with another key", Args: cobra.ExactArgs(1),
		Example: "  selvage app sign web-monitor.selvage-app --key release.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := os.ReadFile(args[0])
			if err != nil {
				return cli.Misuse(err)
			}
			content, err := plugin.Content(b)
			if err != nil {
				return err
			}
			private, err := appKey(key)
			if err != nil {
				return err
			}
			if b, err = plugin.Sign(content, private); err != nil {
				return err
			}
			a, err := plugin.Open(b)
			if err != nil {
				return err
			}
			m, err := plugin.Read(a.Files)
			if err != nil {
				return err
			}
			if err := os.WriteFile(args[0], b, 0o644); err != nil {
				return err
			}
			out := packed{args[0], m.Name, m.Version, a.Digest, a.Signer, len(b)}
			return c.Print(cmd, out, out.print)
		},
	}
	cmd.Flags().StringVar(&key, "key", "",
		"file with the key that signs (default: $SELVAGE_APP_KEY, else the user's own, made at the first use)")
	return cmd
}

// fetchTimeout bounds fetching an app or a catalogue.
const fetchTimeout = 5 * time.Minute

// isGit reports whether an address is that of a Git repository.
func isGit(at string) bool {
	return strings.HasPrefix(at, "git+") || strings.HasPrefix(at, "git@") || strings.HasPrefix(at, "ssh://") ||
		strings.HasSuffix(at, ".git")
}

// fetched returns a local file or folder for a source: a path, an archive on the web, or a Git repository. done removes
// what was fetched.
func fetched(cmd *cobra.Command, at string) (path string, done func(), err error) {
	done = func() {}
	web := strings.HasPrefix(at, "https://") || strings.HasPrefix(at, "http://")
	if !web && !isGit(at) {
		if _, err := os.Stat(at); err != nil {
			return "", done, cli.Misuse(err)
		}
		return at, done, nil
	}
	dir, err := os.MkdirTemp("", "selvage-app-")
	if err != nil {
		return "", done, err
	}
	done = func() { _ = os.RemoveAll(dir) } // a leftover in the folder for temporary files harms nobody
	if isGit(at) {
		from := strings.TrimPrefix(at, "git+")
		if strings.HasPrefix(from, "-") {
			return "", done, cli.Misuse(errors.New("the address of a repository does not begin with -"))
		}
		git := exec.CommandContext(cmd.Context(), "git", "clone", "--quiet", "--depth", "1", "--", from,
			filepath.Join(dir, "repository"))
		git.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
		git.Stderr = cmd.ErrOrStderr()
		if err := git.Run(); err != nil {
			return "", done, fmt.Errorf("git clone of the catalogue: %w", err)
		}
		return filepath.Join(dir, "repository"), done, nil
	}
	client := &http.Client{Timeout: fetchTimeout}
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, at, nil)
	if err != nil {
		return "", done, cli.Misuse(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return "", done, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, plugin.MaxArchive+1))
	switch {
	case err != nil:
		return "", done, err
	case res.StatusCode != http.StatusOK:
		return "", done, fmt.Errorf("%s answered %d", at, res.StatusCode)
	case !plugin.IsArchive(b):
		return "", done, fmt.Errorf("%s is no archive of an app; for a Git repository write git+%s", at, at)
	}
	path = filepath.Join(dir, "app"+plugin.ArchiveExt)
	return path, done, os.WriteFile(path, b, 0o600)
}

func appCatalogue(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "catalogue DIR|URL", Short: "List the apps of a catalogue: a folder or a Git repository",
		Args:    cobra.ExactArgs(1),
		Example: "  selvage app catalogue examples/apps",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, done, err := fetched(cmd, args[0])
			defer done()
			if err != nil {
				return err
			}
			all, err := plugin.Catalogue(path)
			if err != nil {
				return err
			}
			return c.Print(cmd, append([]plugin.Listed{}, all...), func(w io.Writer) {
				var rows [][]string
				for _, l := range all {
					signer, about := "-", l.About
					if l.Signer != "" {
						signer = l.Signer[:16]
					}
					if l.Problem != "" {
						about, _, _ = strings.Cut("refused: "+l.Problem, "\n")
					}
					rows = append(rows, []string{l.Name, l.Version, signer, filepath.Base(l.Path), about})
				}
				cli.Table(w, "APP VERSION SIGNER FILE ABOUT", rows)
			})
		},
	}
}

// archive returns the archive of a source; name chooses an app of a catalogue.
func archive(cmd *cobra.Command, source, name, key string) ([]byte, error) {
	path, done, err := fetched(cmd, source)
	defer done()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && !plugin.IsFolder(path) {
		all, err := plugin.Catalogue(path)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, cli.Misuse(fmt.Errorf("%s is no app, and no catalogue of apps: give a folder with %s, an archive of "+
				"selvage app pack, or a folder with several of them", source, strings.Join(plugin.ManifestNames, " or ")))
		}
		i := slices.IndexFunc(all, func(l plugin.Listed) bool { return l.Name == name })
		if name == "" || i < 0 {
			var names []string
			for _, l := range all {
				names = append(names, l.Name)
			}
			return nil, cli.Misuse(fmt.Errorf("%s is a catalogue: choose with --app one of %s", source,
				strings.Join(slices.Compact(names), ", ")))
		}
		path = all[i].Path
		if info, err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	if info.IsDir() {
		_, b, err := pack(path, key)
		return b, err
	}
	return os.ReadFile(path)
}
