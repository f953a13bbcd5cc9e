package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// maxWaiting bounds the waiting items that the status names.
const maxWaiting = 3

// A status combines the answers about a mesh and a company.
type status struct {
	Mesh struct {
		Name    string `json:"name"`
		Leader  string `json:"leader"`
		Quorum  bool   `json:"quorum"`
		Voters  int    `json:"voters"`
		Warning string `json:"warning,omitempty"`
	} `json:"mesh"`
	Nodes   []memberRow      `json:"nodes"`
	Asking  []map[string]any `json:"nodesThatAsk"`
	Stop    stopRow          `json:"stop"`
	Company *companyRow      `json:"company"`
	Figures *dashboard       `json:"dashboard"`
	Waiting []waitingRow     `json:"waiting"`

	others int // companies, if none is selected
}

// A waitingRow is something that needs a decision.
type waitingRow struct {
	Kind    string `json:"sourceKind"`
	Why     string `json:"whyNow"`
	Subject struct {
		Title string `json:"title"`
	} `json:"subject"`
	Issue *struct {
		Identifier string `json:"identifier"`
	} `json:"relatedIssue"`
}

func statusCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what is up, and what waits for you", Args: cobra.NoArgs,
		Long: `Show in ten lines which nodes are up, what a company is doing, and what waits for
your decision. With several companies, name one with --company or selvage company use.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s status
			if err := s.ofMesh(c, cmd); err != nil {
				return err
			}
			if err := s.ofCompany(c, cmd); err != nil {
				return err
			}
			return c.Print(cmd, s, func(w io.Writer) { s.print(w, c.URL()) })
		},
	}
}

// ofMesh reads what only administrators may see; for others the status shows their
// company only.
func (s *status) ofMesh(c *cli.CLI, cmd *cobra.Command) error {
	for path, into := range map[string]any{"": &s.Mesh, "/members": &s.Nodes, "/requests": &s.Asking, "/stop": &s.Stop} {
		err := c.Call(cmd.Context(), "GET", "/api/v1/mesh"+path, nil, into)
		if no, ok := errors.AsType[*cli.Refused](err); ok && no.Status == http.StatusForbidden {
			continue
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *status) ofCompany(c *cli.CLI, cmd *cobra.Command) error {
	var rows []companyRow
	if err := c.Call(cmd.Context(), "GET", "/api/companies", nil, &rows); err != nil {
		return err
	}
	if s.others = len(rows); s.others == 0 {
		return nil
	}
	id, err := c.CompanyID(cmd)
	if errors.Is(err, cli.ErrWhichCompany) {
		return nil
	} else if err != nil {
		return err
	}
	for n := range rows {
		if rows[n].ID == id {
			s.Company = &rows[n]
		}
	}
	at := "/api/companies/" + id
	if err := c.Call(cmd.Context(), "GET", at+"/dashboard", nil, &s.Figures); err != nil {
		return err
	}
	var attention struct {
		Items []waitingRow `json:"items"`
	}
	err = c.Call(cmd.Context(), "GET", at+"/attention", nil, &attention)
	s.Waiting = attention.Items
	return err
}

func (s *status) print(w io.Writer, at string) {
	line := func(name, format string, args ...any) {
		fmt.Fprintln(w, cli.Fit(w, fmt.Sprintf("%-8s  %s", name, cli.Visible(fmt.Sprintf(format, args...)))))
	}
	if s.Mesh.Name != "" {
		line("mesh", "%s at %s: %s", s.Mesh.Name, at, s.nodes())
	}
	switch {
	case s.Stop.Stopped:
		line("stopped", "nothing runs in any company: selvage resume")
	case s.Mesh.Warning != "":
		line("note", "%s", s.Mesh.Warning)
	}
	switch {
	case s.others == 0:
		line("company", "none yet: selvage onboard, or selvage company create NAME")
	case s.Company == nil:
		line("company", "there are %d: choose one with selvage company use NAME", s.others)
	default:
		line("company", "%s %s, %s", s.Company.IssuePrefix, s.Company.Name, s.Company.Status)
		s.Figures.print(w)
	}
	s.printWaiting(line)
}

// nodes says how many nodes are up and which one leads.
func (s *status) nodes() string {
	up, members, leader := 0, 0, "nobody leads, nothing can be changed"
	for _, n := range s.Nodes {
		if n.Status != "revoked" {
			members++
		}
		if n.Status == "alive" {
			up++
		}
		if n.Leader && s.Mesh.Quorum {
			leader = n.Name + " leads"
		}
	}
	return fmt.Sprintf("%d of %d nodes up, %d vote, %s", up, members, s.Mesh.Voters, leader)
}

func (s *status) printWaiting(line func(name, format string, args ...any)) {
	if len(s.Asking) > 0 {
		line("waits", "%d nodes ask to be let in: selvage pending", len(s.Asking))
	}
	if s.Company == nil {
		return
	}
	if len(s.Waiting) == 0 {
		line("waits", "nothing waits for you")
		return
	}
	line("waits", "%d for you: selvage inbox desk", len(s.Waiting))
	for _, r := range s.Waiting[:min(maxWaiting, len(s.Waiting))] {
		about := r.Subject.Title
		if r.Issue != nil {
			about = strings.TrimSpace(r.Issue.Identifier + " " + about)
		}
		line("", "%s: %s (%s)", strings.ReplaceAll(r.Kind, "_", " "), about, r.Why)
	}
}

func versionCommand(c *cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show which version of the program this is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			built := map[string]string{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return c.Print(cmd, built, func(w io.Writer) {
				fmt.Fprintf(w, "selvage %s, %s, %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			})
		},
	}
}
