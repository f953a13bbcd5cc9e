package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/ledger"
)

// notForPeople are the operations that no verb carries out, by how their paths
// begin, and why. "{c}" is a company.
var notForPeople = map[string][]string{
	"an agent asks this under its run":                {"/api/agents/me", "/api/issues/{}/heartbeat-context", "/api/heartbeat-runs/{}/callback", "/api/issues/{}/runner-goal", "/api/agents/{}/messages/take"},
	"pages ask this for their shell and their frames": {"/api/announcements", "/api/sidebar-preferences", "{c}/sidebar-preferences", "{c}/sidebar-badges", "/api/plugins", "/api/instance/settings", "/api/instance/scheduler-heartbeats", "{c}/resource-memberships", "{c}/issues/count", "{c}/timeline", "{c}/org", "/api/issues/{}/live-runs", "/api/issues/{}/active-run", "/api/issues", "/api/issues/{}/tree-control", "/api/issues/{}/tree-holds/{}", "/api/issues/{}/queued-comments/{}/steer", "{c}/audit", "{c}/agent-configurations", "/api/agents/{}/configuration", "/api/agents/{}/config-revisions/{}", "{c}/environments/capabilities", "/api/environments/{}/secret-refs", "/api/environment-leases", "{c}/environments/probe-config", "/api/execution-workspaces/{}/close-readiness", "{c}/adapters", "/api/adapters/{}", "/api/heartbeat-runs/{}/workspace-operations"},
	"programs and browsers ask this":                  {"/api/openapi.json", "/openapi.json", "/healthz", "/readyz", "/api/llms", "/api/skills", "{c}/events/ws", "/api/assets", "/api/v1/execut", "/api/v1/health", "/api/v1/mesh/ledger/entries/{}", "/api/routine-triggers/public", "{c}/cost-events", "/api/invites/{}", "/api/board-claim", "/api/cli-auth/challenges/{}", "/api/join-requests/{}/claim-api-key", "{c}/assets", "{c}/logo", "/api/auth/get-session"},
	"another verb does it by a second path":           {"{c}/exports", "{c}/imports", "/api/companies/import", "/api/agents/{}/heartbeat/invoke", "{c}/branding", "/api/agents/{}/instructions-path", "{c}/members/{}/permissions", "{c}/members/{}/role-and-grants", "/api/feedback-traces/{}/bundle", "/api/issues/{}/feedback-traces", "{c}/folders/{}/move", "{c}/folders/items/move", "{c}/teams/catalog/{}/preview", "/api/teams/catalog/{}/files", "/api/auth/revoke-sessions", "/api/auth/profile", "{c}/skills/categories", "/api/projects/{}/workspaces/{}/runtime", "{c}/user-secret-definitions/{}/coverage", "{c}/secrets/catalog", "/api/issues/{}/documents/{}/revisions"},
	"a command puts the path together at run time, and a transcript runs it": {"/api/heartbeat-runs/{}/events", "/api/heartbeat-runs/{}/log", "/api/agents/{}/pause", "/api/agents/{}/resume", "/api/agents/{}/terminate",
		"/api/execution-workspaces/{}/workspace-operations", "/api/workspace-operations/{}/log", "/api/execution-workspaces/{}/runtime", "/api/runtime-services/{}/log", "/api/approvals/{}/approve", "/api/approvals/{}/reject",
		"/api/approvals/{}/request-revision", "/api/approvals/{}/cancel", "/api/routine-triggers/{}", "{c}/skills/{}", "{c}/tools"},
	"there is none of it here, see api/absent.go": {"{c}/managed-agent-profiles", "{c}/remote-agent-profiles", "{c}/secret-provider", "/api/secret-provider-configs", "{c}/secrets/remote-import", "/api/instance/database-backups"},
	"it is for who writes skills, in an editor":   {"{c}/skills/install-catalog", "{c}/skills/scan-projects", "{c}/skills/browse-project", "/api/routines/{}/description"},
}

// TestEveryNounIsReached holds the verbs against the routes: each path of the API
// is one that some command asks for, or is named above.
func TestEveryNounIsReached(t *testing.T) {
	t.Parallel()
	s, err := api.New(api.Config{Node: deaf{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	asked := askedPaths(t)
	used := map[string]bool{}
	seen := map[string]bool{}
	for _, r := range s.Routes() {
		path := shape(r.Path)
		if seen[path] || slices.ContainsFunc(asked, func(a string) bool { return fits(a, path) }) {
			continue
		}
		seen[path] = true
		short := strings.Replace(path, "/api/companies/{}", "{c}", 1)
		why := ""
		for reason, list := range notForPeople {
			for _, begin := range list {
				if strings.HasPrefix(short, begin) {
					why, used[begin] = reason, true
				}
			}
		}
		if why == "" {
			t.Errorf("no command asks for %s (%s)", r.Path, r.Summary)
		}
	}
	for _, list := range notForPeople {
		for _, begin := range list {
			if !used[begin] {
				t.Errorf("%s is excused and needs no excuse", begin)
			}
		}
	}
}

// TestNoTwoCommandsShareAName walks the tree: of two the second could not be called.
func TestNoTwoCommandsShareAName(t *testing.T) {
	t.Parallel()
	var walk func(at *cobra.Command)
	walk = func(at *cobra.Command) {
		names := map[string]bool{}
		for _, c := range at.Commands() {
			if names[c.Name()] {
				t.Errorf("%s has two commands %s", at.CommandPath(), c.Name())
			}
			names[c.Name()] = true
			walk(c)
		}
	}
	walk(newRoot())
}

var braces = regexp.MustCompile(`\{[^}]*\}`)

func shape(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return strings.TrimSuffix(braces.ReplaceAllString(path, "{}"), "/")
}

// fits reports whether a path that a command makes may be one of a route. What is
// not known of it stands for anything; it needs two words that agree.
func fits(asked, path string) bool {
	a, p := strings.Split(asked, "/"), strings.Split(path, "/")
	if strings.HasPrefix(asked, "{}") { // begins with what another expression made
		if a = a[1:]; len(a) >= len(p) {
			return false
		}
		p = p[len(p)-len(a):]
	}
	if len(a) != len(p) {
		return false
	}
	words := 0
	for n := range a {
		switch {
		case a[n] == p[n] && a[n] != "{}" && a[n] != "" && a[n] != "api":
			words++
		case a[n] != p[n] && a[n] != "{}":
			return false
		}
	}
	return words > 0
}

// askedPaths are the paths in the sources of the commands and of the client that
// they use; what is put together at run time is "{}" in them.
func askedPaths(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.go", "../../api/client/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				_, sum := e.(*ast.BinaryExpr)
				if _, literal := e.(*ast.BasicLit); sum || literal {
					if s := shape(text(e)); strings.HasPrefix(s, "/") || strings.HasPrefix(s, "{}/") {
						out = append(out, s)
					}
				}
				return !sum
			})
		}
	}
	return out
}

func text(e ast.Expr) string {
	switch v := e.(type) {
	case *ast.BasicLit:
		if v.Kind == token.STRING {
			s, _ := strconv.Unquote(v.Value)
			return s
		}
	case *ast.BinaryExpr:
		if v.Op == token.ADD {
			return text(v.X) + text(v.Y)
		}
	}
	return "{}"
}

// deaf is a node of which only the routes are asked.
type deaf struct{}

func (deaf) Submit(context.Context, ledger.Command) (ledger.Receipt, error) {
	return ledger.Receipt{}, errors.New("deaf")
}

func (deaf) View(context.Context, ledger.Read, func(*ledger.Tx) error) (uint64, error) {
	return 0, errors.New("deaf")
}

func (deaf) Entries(context.Context, uint64) iter.Seq2[ledger.Entry, error] {
	return func(func(ledger.Entry, error) bool) {}
}
